//! A stream whose reader may be slow, and not absent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::{Connection, InFlight};

/// A stream that returns a timeout error when nothing could be written for some time.
///
/// While it waits for its reader the connection is busy: an answer is sent only when it is read, not already when it
/// has been handed over to be sent.
#[derive(Debug)]
pub struct WriteTimeout<S> {
    stream: S,
    connection: Arc<Connection>,
    waiting: Option<(Pin<Box<Sleep>>, InFlight)>,
}

impl<S> WriteTimeout<S> {
    /// Returns a stream of `connection`, which may wait for its reader as long as one may be idle.
    pub fn new(stream: S, connection: &Arc<Connection>) -> Self {
        Self { stream, connection: Arc::clone(connection), waiting: None }
    }

    /// Returns `outcome`, or an error when it has been pending for too long.
    fn limited<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let connection = &self.connection;
        let begin = || (Box::pin(sleep(connection.all.limits.idle)), connection.busy());
        let (waiting, _) = self.waiting.get_or_insert_with(begin);
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limited(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.limited(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::{Connections, Limits};

    const IDLE: Duration = Duration::from_secs(90);

    fn stream(near: DuplexStream) -> WriteTimeout<DuplexStream> {
        let all = Connections::new(Limits { connections: 1, probes: 0, idle: IDLE });
        WriteTimeout::new(near, &all.admit().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_is_given_up() {
        let (near, _far) = duplex(64);
        let mut stream = stream(near);
        let error = stream.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (near, mut far) = duplex(64);
        let mut stream = stream(near);
        let write = async move { stream.write_all(&[7; 1000]).await };
        let read = async move {
            let mut all = Vec::new();
            let mut part = [0; 64];
            while all.len() < 1000 {
                sleep(IDLE / 2).await;
                let length = far.read(&mut part).await.unwrap();
                all.extend_from_slice(&part[..length]);
            }
            all.len()
        };
        let (written, read) = tokio::join!(write, read);
        assert_eq!((written.is_ok(), read), (true, 1000));
    }
}
