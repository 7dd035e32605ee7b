//! The socket: TLS with certificates made at start, HTTP/1.1 and HTTP/2, and a kubeconfig that leads to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use connections::{Connection, Connections, Limits, WriteTimeout};
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::response;
use crate::server::endpoint::{ConnectionCut, Endpoint};
use crate::status::ApiError;

/// How long a client may take to agree on a connection.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request. In HTTP/1.1 the next one begins where the last answer ends, so a
/// connection may be idle for no longer, either.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How many connections are open at a time, and how long they may be idle or not read: as long as those of the real
/// server may be idle.
const LIMITS: Limits = Limits { connections: 2_048, probes: 64, idle: Duration::from_secs(90) };

/// What is answered whatever else goes on.
const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// How long requests that are under way may take when the server stops.
const SHUTDOWN_TIME: Duration = Duration::from_secs(1);

/// Why a socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The address of the socket is not known.
    #[error("find the address of the socket: {0}")]
    Address(#[from] std::io::Error),
    /// The certificates could not be made.
    #[error("make certificates: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificates could not be used.
    #[error("set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A server on a socket. It is served until this is dropped or shut down.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    kubeconfig: String,
    stop: watch::Sender<bool>,
}

impl Serving {
    /// Returns the address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a kubeconfig with which clients reach the server as its administrator.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Takes no more connections, ends the watches and waits for the requests that are under way.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

pub(crate) fn serve(
    listener: TcpListener,
    service: Endpoint,
    token: &str,
) -> Result<Serving, TransportError> {
    let address = listener.local_addr()?;
    let identity = Identity::new(address)?;
    let kubeconfig = kubeconfig(address, &identity.authority, token);
    let acceptor = identity.acceptor()?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(accept(listener, acceptor, service, LIMITS, stopped));
    Ok(Serving { address, kubeconfig, stop })
}

struct Identity {
    /// The authority's certificate in PEM.
    authority: String,
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Returns what agrees on TLS as this server.
    fn acceptor(self) -> Result<TlsAcceptor, TransportError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(tls)))
    }

    fn new(address: SocketAddr) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "addon-operator apiserver");
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned).to_vec())?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.subject_alt_names.push(SanType::IpAddress(address.ip()));
        params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        params.subject_alt_names.push(SanType::IpAddress(std::net::Ipv6Addr::LOCALHOST.into()));
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        Ok(Identity {
            authority: authority.pem(),
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }
}

fn kubeconfig(address: SocketAddr, authority: &str, token: &str) -> String {
    let authority = base64::engine::general_purpose::STANDARD.encode(authority);
    // An address that stands for all interfaces is reached through the loopback one.
    let host = match address.ip() {
        ip if ip.is_unspecified() && ip.is_ipv4() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        ip if ip.is_unspecified() => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, address.port())),
        _ => address,
    };
    let token = serde_json::Value::from(token);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: addon-operator\n\
         \x20 cluster:\n\
         \x20   server: https://{host}\n\
         \x20   certificate-authority-data: {authority}\n\
         users:\n\
         - name: admin\n\
         \x20 user:\n\
         \x20   token: {token}\n\
         contexts:\n\
         - name: addon-operator\n\
         \x20 context:\n\
         \x20   cluster: addon-operator\n\
         \x20   user: admin\n\
         \x20   namespace: default\n\
         current-context: addon-operator\n"
    )
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    service: Endpoint,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let connections = Connections::new(limits);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                // A connection for which there is no place is closed at once: who asks again may find one.
                let Some(connection) = connections.admit() else { continue };
                // Small answers must not wait for more.
                let _ = stream.set_nodelay(true);
                tokio::spawn(converse(
                    stream,
                    acceptor.clone(),
                    connection,
                    service.clone(),
                    stopped.clone(),
                ));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                connections.make_room();
                // Without free descriptors the next attempt fails as well.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    acceptor: TlsAcceptor,
    connection: Arc<Connection>,
    service: Endpoint,
    mut stopped: watch::Receiver<bool>,
) {
    let agreed = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream));
    let stream = tokio::select! {
        agreed = agreed => agreed,
        () = connection.ended() => return,
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    let Ok(Ok(stream)) = stream else { return };
    answer_all(stream, connection, service, stopped).await;
}

/// Answers the requests of a connection until it ends, or nothing of the answers is read for as long as it may be idle.
async fn answer_all(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    connection: Arc<Connection>,
    service: Endpoint,
    mut stopped: watch::Receiver<bool>,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(2_000).keep_alive_interval(None);
    let asked = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let (connection, service) = (Arc::clone(&asked), service.clone());
        async move { answer(&connection, service, request).await }
    });
    let stream = WriteTimeout::new(stream, &connection);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    tokio::select! {
        _ = served.as_mut() => return,
        () = connection.ended() => {}
        () = async { drop(stopped.wait_for(|stopped| *stopped).await) } => {}
    }
    served.as_mut().graceful_shutdown();
    // Watches do not end by themselves: what is not finished by then is cut.
    let _ = tokio::time::timeout(SHUTDOWN_TIME, served).await;
}

/// Returns the answer to a request, while whose connection is busy.
async fn answer(
    connection: &Arc<Connection>,
    service: Endpoint,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionCut> {
    if !connection.is_for_probes() {
        return answered(connection, service, request).await;
    }
    let mut answer = if PROBES.iter().any(|probe| request.uri().path().starts_with(probe)) {
        answered(connection, service, request).await?
    } else {
        response::refusal(&ApiError::too_many_requests(1))
    };
    answer.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    Ok(answer)
}

/// Returns what the service answers. The connection is busy until all of it is sent.
async fn answered(
    connection: &Arc<Connection>,
    service: Endpoint,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionCut> {
    let in_flight = connection.busy();
    let answer = service.oneshot(request).await?;
    Ok(in_flight.until_sent(answer).map(Body::new))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http_body::Frame;
    use http_body_util::{BodyExt, Empty, StreamBody};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::task::JoinHandle;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;
    use crate::ApiServer;
    use crate::server::endpoint::BODY_TIME;

    const SECOND: Duration = Duration::from_secs(1);

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    /// Returns a server with so many `ConfigMaps` of 1 MiB.
    async fn server(maps: usize) -> Endpoint {
        let server = ApiServer::builder().seed(1).build().unwrap();
        for number in 0..maps {
            let map = serde_json::json!({"metadata": {"name": format!("m{number}")}, "data": {"k": "x".repeat(MIB - 9)}});
            let request = Request::post(MAPS).header("content-type", "application/json");
            let request = request.body(Body::from(map.to_string())).unwrap();
            assert_eq!(server.service().oneshot(request).await.unwrap().status(), 201);
        }
        server.service()
    }

    const MIB: usize = 1 << 20;

    /// Returns the client's end of a connection on which so many bytes are on their way at a time, and what ends with it.
    fn connected(service: &Endpoint, bytes: usize) -> (DuplexStream, JoinHandle<()>) {
        let (near, far) = duplex(bytes);
        let connection = Connections::new(LIMITS).admit().unwrap();
        let service = service.clone();
        let served = tokio::spawn(async move {
            let (_stop, stopped) = watch::channel(false);
            answer_all(far, connection, service, stopped).await;
        });
        (near, served)
    }

    async fn ask(client: &mut DuplexStream, path: &str) {
        client.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
    }

    /// Asks in HTTP/2, where so many bytes of the answer are sent until the client has read them.
    async fn ask_in_http_2(client: DuplexStream, path: &str, window: u32) -> Incoming {
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window).initial_connection_window_size(window);
        let (mut sender, link) = builder.handshake(TokioIo::new(client)).await.unwrap();
        tokio::spawn(link);
        let request = Request::get(format!("http://x{path}")).body(Empty::<Bytes>::new()).unwrap();
        sender.send_request(request).await.unwrap().into_body()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_but_steadily_gets_everything() {
        let service = server(20).await;
        // A list of 20 MiB with 64 KiB a second, and one object with less.
        for (path, size, bytes) in [(MAPS, 20 * MIB, 64 * 1024), (&*format!("{MAPS}/m0"), MIB, 1024)] {
            let (mut client, _served) = connected(&service, bytes);
            ask(&mut client, path).await;
            let (begin, mut part, mut length) = (Instant::now(), vec![0; bytes], 0);
            loop {
                sleep(SECOND).await;
                match client.read(&mut part).await.unwrap() {
                    0 => break,
                    read => length += read,
                }
            }
            assert!(length > size, "{length} bytes of {path}");
            assert!(begin.elapsed() > 3 * LIMITS.idle, "{:?}", begin.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_http_2_that_reads_slowly_but_steadily_gets_everything() {
        let service = server(20).await;
        for (path, size, window) in [(MAPS, 20 * MIB, 64 * 1024), (&*format!("{MAPS}/m0"), MIB, 1024)] {
            let (client, _served) = connected(&service, 64 * 1024);
            let mut body = ask_in_http_2(client, path, window).await;
            let (begin, mut length) = (Instant::now(), 0);
            while let Some(frame) = body.frame().await {
                length += frame.unwrap().into_data().map_or(0, |data| data.len());
                sleep(SECOND).await;
            }
            assert!(length > size, "{length} bytes of {path}");
            assert!(begin.elapsed() > 3 * LIMITS.idle, "{:?}", begin.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_closed_and_not_too_early() {
        let service = server(1).await;
        let path = format!("{MAPS}/m0");
        let (mut client, served) = connected(&service, 1024);
        ask(&mut client, &path).await;
        closes(served).await;
        let (client, served) = connected(&service, 1024);
        let _unread = ask_in_http_2(client, &path, 1024).await;
        closes(served).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_http_2_sends_all_of_a_body_that_is_too_large_and_reads_why_it_is_refused() {
        let service = server(0).await;
        for announced in [false, true] {
            let (client, _served) = connected(&service, 64 * 1024);
            let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
            let (mut sender, link) = builder.handshake(TokioIo::new(client)).await.unwrap();
            tokio::spawn(link);
            let sent = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&sent);
            let parts = (0..6).map(move |_| {
                counted.fetch_add(MIB, Ordering::Relaxed);
                Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from(vec![b'x'; MIB])))
            });
            let body = StreamBody::new(futures::stream::iter(parts));
            let mut request =
                Request::post(format!("https://x{MAPS}")).header("content-type", "application/json");
            if announced {
                request = request.header("content-length", 6 * MIB);
            }
            let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
            assert_eq!(answer.status(), 413);
            let text = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&text).contains("RequestEntityTooLarge"), "{text:?}");
            assert_eq!(sent.load(Ordering::Relaxed), 6 * MIB);
        }
    }

    /// Waits until a connection ends, which takes as long as one may be idle.
    async fn closes(served: JoinHandle<()>) {
        let begin = Instant::now();
        timeout(3 * LIMITS.idle, served).await.unwrap().unwrap();
        assert!(begin.elapsed() + SECOND >= LIMITS.idle, "{:?}", begin.elapsed());
    }

    /// What ends a connection of which no more comes than was said, and the longest that it takes.
    const DEADLINES: [(&str, Duration); 5] = [
        ("", LIMITS.idle),
        ("GET /healthz HTTP/1.1\r\nhost:", HEAD_TIME),
        ("POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf", BODY_TIME),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", LIMITS.idle),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", HEAD_TIME),
    ];

    #[tokio::test(start_paused = true)]
    async fn slip_06_a_connection_has_a_deadline_for_its_first_whole_request_and_for_the_next() {
        let service = server(0).await;
        for (said, longest) in DEADLINES {
            let (mut client, served) = connected(&service, 4096);
            client.write_all(said.as_bytes()).await.unwrap();
            ends(served, longest, said).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slip_06_who_does_not_agree_on_tls_is_closed() {
        let service = server(0).await;
        // Nothing, and the beginning of a greeting.
        for said in ["", "\x16\x03\x01"] {
            let (mut client, far) = duplex(4096);
            let acceptor = Identity::new(([127, 0, 0, 1], 1).into()).unwrap().acceptor().unwrap();
            let connection = Connections::new(LIMITS).admit().unwrap();
            let (_stop, stopped) = watch::channel(false);
            let served = tokio::spawn(converse(far, acceptor, connection, service.clone(), stopped));
            client.write_all(said.as_bytes()).await.unwrap();
            ends(served, HANDSHAKE_TIME, said).await;
        }
    }

    /// Waits until a connection ends, which may take this long and the time of its last answer.
    async fn ends(served: JoinHandle<()>, longest: Duration, said: &str) {
        let begin = Instant::now();
        let ended = timeout(longest + SHUTDOWN_TIME + SECOND, served).await;
        assert!(ended.is_ok_and(|ended| ended.is_ok()), "open after {:?}: {said:?}", begin.elapsed());
        assert!(begin.elapsed() + SECOND >= longest, "closed after {:?}: {said:?}", begin.elapsed());
    }
}
