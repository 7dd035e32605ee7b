//! Clients that are many, slow, silent or half gone.

use std::sync::Arc;
use std::time::Duration;

use apiserver::ApiServer;
use axum::body::{Body, Bytes};
use base64::Engine as _;
use http::{Method, Request};
use http_body_util::BodyExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt;

use crate::{post, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) async fn open_watch(server: &ApiServer, path: &str) -> Body {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    server.service().oneshot(request).await.unwrap().into_body()
}

#[tokio::test]
async fn a_thousand_watches_hear_of_a_write_and_share_its_bytes() {
    let server = server();
    let mut watches = Vec::new();
    for _ in 0..1_000 {
        watches.push(open_watch(&server, &format!("{MAPS}?watch=1")).await);
    }
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let mut places = std::collections::BTreeSet::new();
    for watch in &mut watches {
        let frame = watch.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.starts_with(b"{\"type\":\"ADDED\""), "{frame:?}");
        places.insert(frame.as_ptr() as usize);
    }
    assert_eq!(places.len(), 1, "the event was written more than once");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for_forever() {
    let server = server();
    let begin = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{\"metadata\""))]);
    let body = Body::from_stream(futures::StreamExt::chain(begin, futures::stream::pending()));
    let request = Request::builder().method(Method::POST).uri(MAPS).body(body).unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 408);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_told_that_it_missed_changes() {
    let server = server();
    let mut watch = open_watch(&server, &format!("{MAPS}?watch=1")).await;
    for n in 0..1_500 {
        post(&server, MAPS, json!({"metadata": {"name": format!("map-{n}")}})).await;
    }
    let mut last = Value::Null;
    while let Some(Ok(frame)) = watch.frame().await {
        let text = frame.into_data().unwrap();
        let line = text.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap().to_vec();
        last = serde_json::from_slice(&line).unwrap();
    }
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

/// Connects with TLS as clients do that speak HTTP/1.1.
async fn connect(kubeconfig: &str, address: std::net::SocketAddr) -> TlsStream<TcpStream> {
    let (_, rest) = kubeconfig.split_once("certificate-authority-data: ").unwrap();
    let encoded = rest.lines().next().unwrap();
    let pem = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Reads until `part` has been received.
async fn read_until(stream: &mut TlsStream<TcpStream>, part: &str) -> String {
    let mut text = String::new();
    let mut buffer = vec![0; 4_096];
    while !text.contains(part) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the connection ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

#[tokio::test]
async fn half_closed_and_silent_connections_disturb_nobody() {
    let server = ApiServer::builder().token("t").build().unwrap();
    let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let address = serving.address();
    // Connections that never send anything, and one that stops in the middle of a request.
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut cut = connect(serving.kubeconfig(), address).await;
    cut.write_all(
        b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-length: 90\r\n\r\n{",
    )
    .await
    .unwrap();
    cut.shutdown().await.unwrap();
    let mut whole = connect(serving.kubeconfig(), address).await;
    whole.write_all(request("GET", MAPS, "").as_bytes()).await.unwrap();
    let answer = read_until(&mut whole, "\"items\":[").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serving.shutdown().await;
}

#[tokio::test]
async fn slip_06_connections_that_say_nothing_do_not_keep_the_socket_shut() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let server = ApiServer::builder().token("t").build().unwrap();
    let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let address = serving.address();
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let mut silent = Vec::new();
    for _ in 0..2_048 + 20 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut probe = connect(serving.kubeconfig(), address).await;
    probe.write_all(request("GET", "/readyz", "").as_bytes()).await.unwrap();
    read_until(&mut probe, "HTTP/1.1 200").await;
    // The oldest made room.
    assert_eq!(silent[0].read(&mut [0; 8]).await.unwrap_or_default(), 0);
    serving.shutdown().await;
}

#[tokio::test]
async fn watches_over_hundreds_of_connections_hear_of_a_write() {
    let server = ApiServer::builder().token("t").build().unwrap();
    let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = connect(serving.kubeconfig(), serving.address()).await;
        stream.write_all(request("GET", &format!("{MAPS}?watch=1"), "").as_bytes()).await.unwrap();
        read_until(&mut stream, "\r\n\r\n").await;
        streams.push(stream);
    }
    post(&server, MAPS, json!({"metadata": {"name": "heard"}})).await;
    let all = async {
        for stream in &mut streams {
            read_until(stream, "\"name\":\"heard\"").await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), all).await.unwrap();
    drop(streams);
    serving.shutdown().await;
}
