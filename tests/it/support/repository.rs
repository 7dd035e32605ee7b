//! A repository of bundles on loopback, with TLS and without, that does what a test says and notes what it is asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, StreamExt as _};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::git_server::GitRepository;

/// What is answered at a path.
#[derive(Clone)]
pub(crate) enum Reply {
    /// A file, with an `ETag`.
    File(Vec<u8>),
    /// A status and headers, without a body.
    Status(u16, Vec<(&'static str, String)>),
    /// A page.
    Page,
    /// So many bytes.
    Zeros(usize),
    /// A byte now and then, for ever.
    Drip,
    /// Nothing until the gate is open, then a file.
    Gated(Vec<u8>),
    /// What a git server answers to the message.
    Git(GitRepository),
    /// A file of this type.
    Typed(&'static str, Vec<u8>),
    /// A file with these headers.
    With(Vec<(&'static str, String)>, Vec<u8>),
    /// The last for those who show this `Authorization`; for others 401 and this challenge.
    Guarded(String, String, Box<Reply>),
    /// The first once, then the second.
    First(Box<Reply>, Box<Reply>),
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) status: u16,
}

impl Asked {
    fn new<B>(head: Parts, path: String, response: &Response<B>) -> Self {
        let status = response.status().as_u16();
        Self { method: head.method, path, headers: head.headers, status }
    }
}

#[derive(Default)]
struct State {
    /// Whether what is pushed to a registry is kept.
    takes_pushes: bool,
    replies: BTreeMap<String, Reply>,
    asked: Vec<Asked>,
    in_flight: usize,
}

/// The repository.
#[derive(Clone)]
pub(crate) struct Repository {
    pub(crate) address: SocketAddr,
    /// The certificate of its authority, in PEM; empty without TLS.
    pub(crate) authority: String,
    scheme: &'static str,
    state: Arc<Mutex<State>>,
    gate: watch::Sender<bool>,
    /// How many requests are at work.
    busy: watch::Sender<usize>,
}

impl Repository {
    /// Starts one with TLS, for `localhost`, `127.0.0.1` and these names.
    pub(crate) async fn tls(names: &[&str]) -> Self {
        let (authority, acceptor) = identity(names);
        Self::start(authority, Some(acceptor)).await
    }

    /// Starts one without TLS.
    pub(crate) async fn plain() -> Self {
        Self::start(String::new(), None).await
    }

    async fn start(authority: String, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let repository = Self {
            address: listener.local_addr().unwrap(),
            authority,
            scheme: if acceptor.is_some() { "https" } else { "http" },
            state: Arc::default(),
            gate: watch::Sender::new(false),
            busy: watch::Sender::new(0),
        };
        let serving = repository.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, acceptor) = (serving.clone(), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serving.converse(TokioIo::new(stream)).await;
                            }
                        }
                        None => serving.converse(TokioIo::new(stream)).await,
                    }
                });
            }
        });
        repository
    }

    async fn converse(&self, stream: impl hyper::rt::Read + hyper::rt::Write + Unpin) {
        let answer =
            hyper::service::service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await;
    }

    /// Returns what is answered to a request now.
    fn reply(&self, path: &str, headers: &HeaderMap) -> Option<Reply> {
        let mut state = self.state.lock().unwrap();
        state.in_flight += 1;
        self.busy.send_replace(state.in_flight);
        let mut reply = state.replies.get(path).cloned()?;
        if let Reply::First(first, then) = reply {
            state.replies.insert(path.to_owned(), *then);
            reply = *first;
        }
        let Reply::Guarded(wanted, challenge, guarded) = reply else { return Some(reply) };
        let is_shown = headers.get("authorization").is_some_and(|shown| *shown == wanted);
        Some(if is_shown { *guarded } else { Reply::Status(401, vec![("www-authenticate", challenge)]) })
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let message = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        match self.take_push(&head, &message) {
            Some(response) => response,
            None => self.respond(head, &message).await,
        }
    }

    async fn respond(&self, head: Parts, message: &[u8]) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let mut path = head.uri.to_string();
        let reply = self.reply(&path, &head.headers);
        let mut response = Response::builder();
        let response = match reply {
            None | Some(Reply::Guarded(..) | Reply::First(..)) => {
                response.status(404).body(Full::default().boxed_unsync())
            }
            Some(Reply::With(headers, bytes)) => {
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(Full::from(bytes).boxed_unsync())
            }
            Some(Reply::Gated(bytes)) => {
                self.gate.subscribe().wait_for(|open| *open).await.unwrap();
                response.body(Full::from(bytes).boxed_unsync())
            }
            Some(Reply::Git(git)) => {
                path.push_str(&command(message));
                let kind = if message.is_empty() { "advertisement" } else { "result" };
                response
                    .header("content-type", format!("application/x-git-upload-pack-{kind}"))
                    .body(Full::from(git.answer(message)).boxed_unsync())
            }
            Some(Reply::Typed(kind, bytes)) => {
                response.header("content-type", kind).body(Full::from(bytes).boxed_unsync())
            }
            Some(Reply::File(bytes)) => {
                let etag = format!("\"{}\"", digest(&bytes));
                let is_known = head.headers.get("if-none-match").is_some_and(|known| *known == etag);
                response = response.header("etag", etag);
                if is_known {
                    response.status(304).body(Full::default().boxed_unsync())
                } else {
                    response.body(Full::from(bytes).boxed_unsync())
                }
            }
            Some(Reply::Status(status, headers)) => {
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.status(status).body(Full::default().boxed_unsync())
            }
            Some(Reply::Page) => response
                .header("content-type", "text/html; charset=utf-8")
                .body(Full::from("<!DOCTYPE html><html></html>").boxed_unsync()),
            Some(Reply::Zeros(count)) => {
                let part = Bytes::from(vec![0; 64 * 1024]);
                let parts =
                    stream::iter(0..count.div_ceil(part.len())).map(move |_| Ok(Frame::data(part.clone())));
                response.body(StreamBody::new(parts).boxed_unsync())
            }
            Some(Reply::Drip) => {
                let bytes = stream::unfold((), |()| async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
                });
                response.body(StreamBody::new(bytes).boxed_unsync())
            }
        };
        let response = response.unwrap();
        let mut state = self.state.lock().unwrap();
        state.in_flight -= 1;
        self.busy.send_replace(state.in_flight);
        state.asked.push(Asked::new(head, path, &response));
        response
    }

    /// Keeps what is pushed from now on.
    pub(crate) fn take_pushes(&self) {
        self.state.lock().unwrap().takes_pushes = true;
    }

    /// Takes a part of a push, if this is one, and keeps it where it is looked for.
    fn take_push(&self, head: &Parts, body: &[u8]) -> Option<Response<UnsyncBoxBody<Bytes, Infallible>>> {
        if !self.state.lock().unwrap().takes_pushes || matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let (path, mut status, mut location) = (head.uri.path(), 201, String::new());
        if let Some((name, _)) = path.split_once("/blobs/uploads/") {
            if head.method == Method::POST {
                (status, location) = (202, format!("{name}/blobs/uploads/1?state=x"));
            } else {
                let digest = head.uri.query().unwrap().rsplit_once("digest=").unwrap().1;
                self.put(&format!("{name}/blobs/{digest}"), Reply::File(body.to_vec()));
            }
        } else if let Some((name, tag)) = path.split_once("/manifests/") {
            let kind = head.headers["content-type"].to_str().unwrap().to_owned();
            let its = format!("sha256:{}", digest(body));
            let kept =
                Reply::With(vec![("content-type", kind), ("docker-content-digest", its)], body.to_vec());
            self.put(path, kept);
            let tags = serde_json::json!({"tags": [tag]}).to_string().into_bytes();
            self.put(&format!("{name}/tags/list?n=1000"), Reply::Typed("application/json", tags));
        }
        let response = Response::builder().status(status).header("location", location);
        Some(response.body(Full::default().boxed_unsync()).unwrap())
    }

    /// Says what is answered at a path.
    pub(crate) fn put(&self, path: &str, reply: Reply) {
        self.state.lock().unwrap().replies.insert(path.to_owned(), reply);
    }

    /// Publishes an index at `/index.yaml` and the bundles beside it.
    pub(crate) fn publish(&self, bundles: &[(&str, &str, Vec<u8>)]) {
        self.put("/index.yaml", Reply::File(index(bundles, false)));
        for (name, version, packed) in bundles {
            self.put(&format!("/{name}-{version}.tgz"), Reply::File(packed.clone()));
        }
    }

    /// Returns a URL here, at `localhost`.
    pub(crate) fn url(&self, path: &str) -> String {
        self.url_at("localhost", path)
    }

    /// Returns a URL here, at another name.
    pub(crate) fn url_at(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme, self.address.port())
    }

    /// Returns what was asked since this was called last: the path and the status.
    pub(crate) fn asked(&self) -> Vec<(String, u16)> {
        self.requests().into_iter().map(|asked| (asked.path, asked.status)).collect()
    }

    /// Returns the requests since this or [`Self::asked`] was called last.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }

    /// Lets gated requests pass.
    pub(crate) fn open_gate(&self) {
        self.gate.send_replace(true);
    }

    /// Waits until so many requests are at work.
    pub(crate) async fn busy(&self, count: usize) {
        let mut busy = self.busy.subscribe();
        let waiting = busy.wait_for(|busy| *busy >= count);
        tokio::time::timeout(super::DEADLINE, waiting).await.unwrap().unwrap();
    }

    /// Returns how many requests are at work.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.lock().unwrap().in_flight
    }

    /// Writes the certificate of the authority into a directory.
    pub(crate) fn write_authority(&self, dir: &Path) -> PathBuf {
        write_authority(&self.authority, dir)
    }
}

/// Writes the certificate of an authority into a directory.
pub(crate) fn write_authority(authority: &str, dir: &Path) -> PathBuf {
    let path = dir.join("ca.pem");
    std::fs::write(&path, authority).unwrap();
    path
}

/// A certificate, its key and the authority of it.
pub(crate) struct Issued {
    /// The certificate of the authority, in PEM.
    pub(crate) authority: String,
    pub(crate) certificate: Certificate,
    pub(crate) key: KeyPair,
}

/// Issues a certificate for `localhost`, `127.0.0.1` and these names.
pub(crate) fn issue(names: &[&str]) -> Issued {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // Some clients take a certificate whose issuer has its own name for one that signed itself.
    params.distinguished_name.push(DnType::CommonName, "an authority of tests");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.push("localhost".to_owned());
    let mut params = CertificateParams::new(names).unwrap();
    params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    Issued { authority: authority.pem(), certificate, key }
}

pub(crate) fn identity(names: &[&str]) -> (String, TlsAcceptor) {
    let Issued { authority, certificate, key } = issue(names);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (authority, TlsAcceptor::from(Arc::new(tls)))
}

/// Returns the first word of a message of git.
fn command(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let line = text.lines().next().and_then(|line| line.get(4..));
    line.and_then(|line| line.split(' ').next()).map(|word| format!(" {word}")).unwrap_or_default()
}

/// Returns the text of an index.
pub(crate) fn index(bundles: &[(&str, &str, Vec<u8>)], has_digests: bool) -> Vec<u8> {
    let mut entries: BTreeMap<&str, Vec<serde_json::Value>> = BTreeMap::new();
    for (name, version, packed) in bundles {
        let mut entry = serde_json::json!({"name": name, "version": version});
        if has_digests {
            entry["digest"] = format!("sha256:{}", digest(packed)).into();
        }
        entries.entry(name).or_default().push(entry);
    }
    serde_json::json!({"apiVersion": "v1", "entries": entries}).to_string().into_bytes()
}

/// Returns the digits of a digest.
pub(crate) fn digest(bytes: &[u8]) -> String {
    ::source::digest::Digest::of(bytes).hex().to_owned()
}

/// Returns a packed module whose hook says `says`.
pub(crate) fn module(name: &str, version: &str, says: &str) -> Vec<u8> {
    let meta =
        format!("id: id-{name}\nname: {name}\nversion: {version}\ndescription: A test.\ndisplayName: Test\n");
    let hook = format!("#!/bin/sh\n# {says}\necho 'configVersion: v1'\n");
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("hooks/run.sh", 0o755, hook.as_bytes());
    packed.finish()
}

/// An archive in the making. Names are written as they are given.
pub(crate) struct Packed(GzEncoder<Vec<u8>>);

impl Packed {
    pub(crate) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::default()))
    }

    /// Adds an entry of any type.
    pub(crate) fn entry(&mut self, kind: u8, name: &str, link: &str, mode: u32, size: u64) {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_mode(mode);
        header.set_size(size);
        let ustar = header.as_ustar_mut().unwrap();
        ustar.name[..name.len()].copy_from_slice(name.as_bytes());
        ustar.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.write_all(header.as_bytes()).unwrap();
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entry(b'0', name, "", mode, content.len() as u64);
        self.bytes(content);
    }

    /// Adds the bytes of an entry.
    pub(crate) fn bytes(&mut self, content: &[u8]) {
        self.0.write_all(content).unwrap();
        self.0.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.write_all(&[0; 1024]).unwrap();
        self.0.finish().unwrap()
    }
}
