//! Listeners that others ask over HTTP: connections are taken and answered on until the task ends.
//!
//! Webhooks and the broker have one each. What they answer, and over what, is theirs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use connections::{Connection, Connections, Limits, WriteTimeout};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How long to wait when the system has no file descriptor for another connection.
const BREATHER: Duration = Duration::from_millis(50);

/// How patient a listener is.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// How many connections are open at a time, and how long one may be idle.
    pub(crate) limits: Limits,
    /// How long a client may take to send the head of a request, and to answer when it is asked whether it is still there.
    pub(crate) head: Duration,
}

/// Answers what comes to a listener.
pub(crate) trait Responder: Clone + Send + Sync + 'static {
    /// What is spoken over.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Agrees with a client on how to speak; `None` if there is no agreement.
    fn agree(&self, stream: TcpStream) -> impl Future<Output = Option<Self::Stream>> + Send;

    /// Returns the answer to a request.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// Answers on a listener until it is dropped. Connections end with it.
pub(crate) async fn listen(listener: Arc<TcpListener>, patience: Patience, responder: impl Responder) {
    let connections = Connections::new(patience.limits);
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            connections.make_room();
            tokio::time::sleep(BREATHER).await;
            continue;
        };
        if let Some(connection) = connections.admit() {
            open.spawn(converse(stream, connection, patience.head, responder.clone()));
        }
    }
}

/// Answers on a connection until it ends, is idle for too long, or has to make room.
async fn converse(
    stream: TcpStream,
    connection: Arc<Connection>,
    patience: Duration,
    responder: impl Responder,
) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let stream = tokio::select! {
        stream = responder.agree(stream) => stream,
        () = connection.ended() => None,
    };
    let Some(stream) = stream else { return };
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(patience);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(patience / 2).keep_alive_timeout(patience);
    let asked = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let (responder, connection) = (responder.clone(), Arc::clone(&asked));
        async move {
            let busy = connection.busy();
            Ok::<_, Infallible>(busy.until_sent(responder.answer(request).await))
        }
    });
    tokio::select! {
        // Who disconnected needs no answer.
        _ = server.serve_connection(TokioIo::new(WriteTimeout::new(stream, &connection)), service) => {}
        () = connection.ended() => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Answers with the path.
    #[derive(Clone)]
    struct Echo;

    impl Responder for Echo {
        type Stream = TcpStream;

        async fn agree(&self, stream: TcpStream) -> Option<TcpStream> {
            Some(stream)
        }

        async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
            Response::new(Body::from(request.uri().path().to_owned()))
        }
    }

    async fn listening(connections: usize, idle: Duration) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let patience =
            Patience { limits: Limits { connections, probes: 0, idle }, head: Duration::from_mins(1) };
        tokio::spawn(listen(Arc::new(listener), patience, Echo));
        address
    }

    #[tokio::test]
    async fn one_more_connection_than_there_may_be_closes_the_one_that_was_idle_longest() {
        let address = listening(2, Duration::from_mins(1)).await;
        let mut silent = Vec::new();
        for _ in 0..2 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut third = TcpStream::connect(address).await.unwrap();
        third.write_all(b"GET /third HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        third.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("/third"), "{answer}");
        assert_eq!(silent[0].read(&mut [0; 8]).await.unwrap_or_default(), 0);
    }

    #[tokio::test]
    async fn who_says_nothing_or_half_a_request_is_left() {
        let address = listening(8, Duration::from_millis(100)).await;
        for said in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n\r\n"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            // It ends, whatever was answered before.
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
        }
    }
}
