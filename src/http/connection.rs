//! Connections with time limits: for the client's request, and for reading the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use connections::{Connection, Connections, Limits, WriteTimeout};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::ServiceExt as _;

/// How long a client may take to send a request, to send the next one, and to read the next part of an answer.
const TIMEOUT: Duration = Duration::from_secs(90);

/// How many connections are open at a time, and how long they may be idle.
pub(super) const LIMITS: Limits = Limits { connections: 2048, probes: 64, idle: TIMEOUT };

/// What is answered whatever else goes on.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// How long to wait when the system has no file descriptor for another connection.
const BREATHER: Duration = Duration::from_millis(50);

/// The longest body of a request that is read, in bytes.
const LONGEST_BODY: usize = 2 * 1024 * 1024;

/// Answers on connections, wherever they come from.
pub struct Port {
    router: Router,
    connections: Connections,
    stopped: watch::Receiver<bool>,
}

impl Port {
    fn new(router: Router, limits: Limits, stopped: watch::Receiver<bool>) -> Self {
        Self { router, connections: Connections::new(limits), stopped }
    }

    /// Returns a port that has room for so many connections, and for so many more that ask for probes.
    pub fn with_room_for(
        connections: usize,
        probes: usize,
        router: Router,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self::new(router, Limits { connections, probes, ..LIMITS }, stopped)
    }

    /// Answers on a connection until it ends.
    ///
    /// One for which there is no place is closed at once: who asks again may find one.
    pub fn admit(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let Some(connection) = self.connections.admit() else { return };
        tokio::spawn(converse(stream, connection, self.router.clone(), self.stopped.clone()));
    }
}

/// Answers on `listener` until `stopped` becomes true.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let port = Port::new(router, limits, stopped.clone());
    loop {
        let accepted = tokio::select! {
            () = requested(&mut stopped) => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            port.connections.make_room();
            tokio::time::sleep(BREATHER).await;
            continue;
        };
        port.admit(stream);
    }
}

/// Answers on a connection until it ends, is idle for too long, or has to make room.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    connection: Arc<Connection>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(TIMEOUT / 3).keep_alive_timeout(TIMEOUT);
    let io = TokioIo::new(WriteTimeout::new(stream, &connection));
    let asked = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let (connection, router) = (Arc::clone(&asked), router.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(&connection, router, request).await) }
    });
    tokio::select! {
        // A client that disconnected or timed out needs no answer.
        _ = server.serve_connection(io, service) => {}
        () = connection.ended() => {}
        () = requested(&mut stopped) => {}
    }
}

/// Returns the answer to a request. Its connection is busy as soon as the request is whole.
async fn answer(connection: &Arc<Connection>, router: Router, request: Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, LONGEST_BODY).collect().await {
        Ok(body) => Body::from(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => return StatusCode::BAD_REQUEST.into_response(),
    };
    if !connection.is_for_probes() {
        return answered(connection, router, Request::from_parts(head, body)).await;
    }
    let mut answer = if PROBES.contains(&head.uri.path()) {
        answered(connection, router, Request::from_parts(head, body)).await
    } else {
        let busy = "too many connections are busy; only probes are answered, try again later\n";
        (StatusCode::SERVICE_UNAVAILABLE, busy).into_response()
    };
    answer.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    answer
}

/// Returns what the router answers. The connection is busy until all of it is sent.
async fn answered(connection: &Arc<Connection>, router: Router, request: Request<Body>) -> Response {
    let in_flight = connection.busy();
    let answer = router.oneshot(request).await.unwrap_or_else(|never| match never {});
    in_flight.until_sent(answer).map(Body::new)
}

/// Waits until `stopped` becomes true, or nobody can set it any more.
pub(super) async fn requested(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::net::TcpStream;
    use tokio::time::sleep;

    use super::*;

    /// Serves probes, and what is answered when `free` says so. Returns the address.
    async fn served(limits: Limits, free: &Arc<tokio::sync::Notify>) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let free = Arc::clone(free);
        let slow = move || {
            let free = Arc::clone(&free);
            async move { free.notified().await }
        };
        let router = Router::new()
            .route("/healthz", axum::routing::get(|| async { "fine" }))
            .route("/slow", axum::routing::get(slow));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(async move {
            serve(listener, router, limits, stopped).await;
            drop(stop);
        });
        address
    }

    async fn ask(address: std::net::SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        stream
    }

    /// Returns the first line of an answer.
    async fn head(mut stream: TcpStream) -> String {
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn slip_06_connections_that_say_nothing_do_not_keep_the_port_shut() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let most = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
        let address = served(LIMITS, &Arc::default()).await;
        let mut silent = Vec::new();
        for _ in 0..LIMITS.connections + 50 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(head(ask(address, "/healthz").await).await, "HTTP/1.1 200 OK");
        // The oldest made room.
        assert_eq!(silent[0].read(&mut [0; 8]).await.unwrap_or_default(), 0);
    }

    #[tokio::test]
    async fn slip_06_a_connection_has_a_deadline_for_its_first_whole_request_and_for_the_next() {
        let address = served(Limits { idle: Duration::from_millis(100), ..LIMITS }, &Arc::default()).await;
        for said in [
            "",
            "GET /healthz HT",
            "GET /healthz HTTP/1.1\r\nhost:",
            "POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            // It ends, whatever was answered before.
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
        }
    }

    #[tokio::test]
    async fn slip_06_probes_get_in_when_all_connections_are_busy() {
        let free = Arc::new(tokio::sync::Notify::new());
        let address = served(Limits { connections: 2, probes: 1, idle: TIMEOUT }, &free).await;
        let busy = [ask(address, "/slow").await, ask(address, "/slow").await];
        // Whether a request has arrived is seen by what others are answered.
        while head(ask(address, "/other").await).await != "HTTP/1.1 503 Service Unavailable" {}
        assert_eq!(head(ask(address, "/healthz").await).await, "HTTP/1.1 200 OK");
        free.notify_waiters();
        for stream in busy {
            assert_eq!(head(stream).await, "HTTP/1.1 200 OK");
        }
        while head(ask(address, "/other").await).await != "HTTP/1.1 404 Not Found" {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_not_idle_while_its_answer_is_on_its_way() {
        let router = Router::new().route("/long", axum::routing::get(|| async { "x".repeat(2_000) }));
        let (_stop, stopped) = watch::channel(false);
        let port = Port::with_room_for(1, 0, router, stopped);
        let (mut near, far) = duplex(64);
        port.admit(far);
        near.write_all(b"GET /long HTTP/1.0\r\n\r\n").await.unwrap();
        let mut chunk = [0; 64];
        let mut all = near.read(&mut chunk).await.unwrap();
        loop {
            // It takes longer than a connection may be idle, and somebody else wants its place.
            port.admit(duplex(64).1);
            sleep(TIMEOUT / 4).await;
            match near.read(&mut chunk).await.unwrap_or_default() {
                0 => break,
                length => all += length,
            }
        }
        assert!(all > 2_000, "only {all} bytes");
    }
}
