//! Connections with time limits: for the client's request, and for reading the answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Sleep, sleep};

/// How long a client may take to send a request, to send the next one, and to read the next part of an answer.
const TIMEOUT: Duration = Duration::from_secs(90);

/// How many connections are open at a time. Further ones wait in the system's queue.
const CONNECTIONS: usize = 2048;

/// How long to wait when the system has no file descriptor for another connection.
const BREATHER: Duration = Duration::from_millis(50);

/// Answers on `listener` until `stopped` becomes true.
pub(super) async fn serve(listener: TcpListener, router: Router, mut stopped: watch::Receiver<bool>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = requested(&mut stopped) => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(BREATHER).await;
            continue;
        };
        let (router, mut stopped) = (router.clone(), stopped.clone());
        tokio::spawn(async move {
            let mut server = Builder::new(TokioExecutor::new());
            server.http1().timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            server
                .http2()
                .timer(TokioTimer::new())
                .keep_alive_interval(TIMEOUT / 3)
                .keep_alive_timeout(TIMEOUT);
            let io = TokioIo::new(WriteTimeout::new(stream, TIMEOUT));
            tokio::select! {
                // A client that disconnected or timed out needs no answer.
                _ = server.serve_connection(io, TowerToHyperService::new(router)) => {}
                () = requested(&mut stopped) => {}
            }
            drop(permit);
        });
    }
}

/// Waits until `stopped` becomes true, or nobody can set it any more.
pub(super) async fn requested(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// A stream that returns a timeout error when nothing could be written for some time.
struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, waiting: None }
    }

    /// Returns `outcome`, or an error when it has been pending for too long.
    fn limited<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(timeout)));
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_is_given_up() {
        let (near, _far) = duplex(64);
        let mut stream = WriteTimeout::new(near, TIMEOUT);
        let error = stream.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (near, mut far) = duplex(64);
        let mut stream = WriteTimeout::new(near, TIMEOUT);
        let write = async move { stream.write_all(&[7; 1000]).await };
        let read = async move {
            let mut all = Vec::new();
            let mut part = [0; 64];
            while all.len() < 1000 {
                sleep(TIMEOUT / 2).await;
                let length = far.read(&mut part).await.unwrap();
                all.extend_from_slice(&part[..length]);
            }
            all.len()
        };
        let (written, read) = tokio::join!(write, read);
        assert_eq!((written.is_ok(), read), (true, 1000));
    }
}
