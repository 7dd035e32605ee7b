//! One call of a webhook: over HTTPS, with the authority that its configuration trusts, and no longer than it allows.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use golang::url::Url;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::cluster::Cluster;
use crate::fields::{get, has, int, list, text};

/// How many bytes an answer may have.
const LONGEST: usize = 16 << 20;

/// Where a webhook is reached.
struct Address {
    host: String,
    port: u16,
    /// The name that its certificate has.
    name: String,
    path: String,
}

/// Posts a review to where a client configuration leads. Returns the answer, or why there is none.
pub(crate) async fn call(
    cluster: &Cluster,
    client: &Value,
    timeout: Duration,
    review: &Value,
) -> Result<Value, String> {
    let address = address(cluster, client)?;
    let target = format!("{}?timeout={}s", address.path, timeout.as_secs());
    let url = format!("https://{}:{}{target}", address.name, address.port);
    let answer = tokio::time::timeout(timeout, post(&address, client, &target, review)).await;
    let answer = answer.map_err(|_| "context deadline exceeded".to_owned()).and_then(|answer| answer);
    answer.map_err(|error| format!("Post {url:?}: {error}"))
}

async fn post(address: &Address, client: &Value, target: &str, review: &Value) -> Result<Value, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(|e| text(&e))?;
    let _ = stream.set_nodelay(true);
    let name = ServerName::try_from(address.name.clone()).map_err(|e| text(&e))?;
    let stream = tls(client)?.connect(name, stream).await.map_err(|e| text(&e))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| text(&e))?;
    let body = serde_json::to_vec(review).unwrap_or_default();
    let request = Request::post(target)
        .header(header::HOST, format!("{}:{}", address.name, address.port))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|e| text(&e))?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(|e| text(&e))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await.map_err(|e| text(&e))?;
        let body = body.to_bytes();
        if !status.is_success() {
            return Err(format!("the server answered {status}: {}", String::from_utf8_lossy(&body).trim()));
        }
        serde_json::from_slice(&body).map_err(|error| format!("the answer is no JSON: {error}"))
    };
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection carries the exchange, which goes on to say what came of it.
        _ = connection => exchange.await,
    }
}

/// Returns what connects with the authorities that a client configuration trusts.
fn tls(client: &Value) -> Result<TlsConnector, String> {
    let pem = STANDARD.decode(text(client, "caBundle")).map_err(|error| format!("caBundle: {error}"))?;
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    if roots.is_empty() {
        return Err("there is no caBundle, and this server trusts no other authorities".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns where a client configuration leads: to a URL, or to the first endpoint of a Service.
fn address(cluster: &Cluster, client: &Value) -> Result<Address, String> {
    if has(client, "service") {
        return service(cluster, get(client, "service"));
    }
    let url = Url::parse(text(client, "url")).map_err(|error| error.to_string())?;
    let (host, port) = match url.host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().map_err(|_| "the port is none".to_owned())?)
        }
        _ => (url.host.as_str(), 443),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Address { name: host.clone(), host, port, path: url.path.clone() })
}

fn service(cluster: &Cluster, service: &Value) -> Result<Address, String> {
    let (namespace, name) = (text(service, "namespace"), text(service, "name"));
    let port = int(service, "port").unwrap_or(443);
    let missing = || format!("no endpoints available for service {name:?}");
    let found = cluster.storage.find("/services", Some(namespace), name);
    let found = found.ok_or_else(|| format!("service {name:?} not found"))?.value();
    let of_port = |known: &&Value| int(known, "port") == Some(port);
    let ports = found.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let wanted = ports.clone().find(of_port).ok_or_else(|| format!("service {name:?} has no port {port}"))?;
    let endpoints = cluster.storage.find("/endpoints", Some(namespace), name).ok_or_else(missing)?.value();
    for subset in list(&endpoints, "subsets") {
        let address = list(subset, "addresses").first().map(|address| text(address, "ip").to_owned());
        let target = list(subset, "ports").iter().find(|port| text(port, "name") == text(wanted, "name"));
        let target = target.and_then(|port| u16::try_from(int(port, "port")?).ok());
        if let (Some(host), Some(port)) = (address, target) {
            let path = text(service, "path").to_owned();
            return Ok(Address { host, port, name: format!("{name}.{namespace}.svc"), path });
        }
    }
    Err(missing())
}
