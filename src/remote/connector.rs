//! The one way by which bytes from outside come in: a connector that checks each address before it connects.
//!
//! Names are resolved here and connections go to the addresses that were checked, so that a name which means something
//! else a moment later changes nothing. Connections that wait in the pool were checked when they were opened.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::source::allow::AllowList;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::address;
use crate::regular_file;

/// How long a connection to one address, and then the beginning of TLS, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many addresses of one name are tried.
const MOST_ADDRESSES: usize = 4;

/// Resolves names of hosts.
pub trait Lookup: Send + Sync {
    /// Returns the addresses of `host` with `port`.
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Resolves names as the system does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }.boxed()
    }
}

/// What the connector trusts and where it may go.
#[derive(Clone)]
pub struct Trust {
    /// The hosts whose addresses are not checked.
    pub allowed: AllowList,
    /// A file with certificates of authorities that are trusted beside those of the system.
    pub authorities: Option<PathBuf>,
    /// The host of the API server: nobody may send us to its addresses.
    pub api_server: Option<String>,
    /// Resolves names.
    pub lookup: Arc<dyn Lookup>,
    /// What the options are called that people set this with.
    pub options: TrustOptions,
}

/// What the options are called with which people say whom they trust.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrustOptions {
    /// The one that names authorities.
    pub authorities: &'static str,
    /// The one that permits servers without TLS.
    pub plain: &'static str,
}

impl TrustOptions {
    /// Those of the operator.
    pub const OPERATOR: Self = Self { authorities: "--source-ca", plain: "--source-develop" };
    /// Those of commands that need no operator.
    pub const COMMAND: Self = Self { authorities: "--ca", plain: "--plain-http" };

    /// Returns why there is no TLS with a host, and what to do about it.
    fn no_tls(self, host: String, error: &io::Error) -> ConnectError {
        let Self { authorities, plain } = self;
        let of = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let trust = || format!("{authorities} names authorities to trust beside the system's");
        let (problem, advice) = match of {
            Some(rustls::Error::InvalidMessage(_)) => (
                "what it answers is no TLS".to_owned(),
                format!("write http:// if it has none, which {plain} permits"),
            ),
            Some(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
                if other.to_string().contains(AS_ITS_OWN) =>
            {
                let what = "its certificate is that of an authority, which is not taken for that of a server";
                (what.to_owned(), "make one for the server that the authority signs".to_owned())
            }
            _ => (error.to_string(), trust()),
        };
        ConnectError::Tls { host, problem, advice }
    }
}

/// How the library of certificates names an authority that shows its own as that of a server.
const AS_ITS_OWN: &str = "CaUsedAsEndEntity";

/// Why there is no connection. It names the host, and nothing else of the URL.
#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    #[error("the name {host} can't be resolved: {source}")]
    Unknown { host: String, source: io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("{host} is {address}, which is {kind}; allow it with --source-allow={host} if it may be asked")]
    Refused { host: String, address: IpAddr, kind: &'static str },
    #[error("{host} can't be reached: {source}")]
    Unreachable { host: String, source: io::Error },
    #[error("{host} does not answer within {} s", PATIENCE.as_secs())]
    Silent { host: String },
    #[error("no TLS with {host}: {problem} ({advice})")]
    Tls { host: String, problem: String, advice: String },
    #[error("no authority is trusted: the system has no certificates, name a file with {option}")]
    NoAuthorities { option: &'static str },
    #[error("the URL has no host")]
    NoHost,
}

/// Why a file with authorities can't be used.
#[derive(Debug, Error)]
pub enum AuthoritiesError {
    /// It can't be read.
    #[error("can't read {path}: {error} ({option} names a file with certificates in PEM)")]
    Unreadable {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// It has something else than certificates.
    #[error("{path} has no certificates that can be used: {problem} ({option} names a file with PEM)")]
    Unusable {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Opens connections to checked addresses.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Inner>);

struct Inner {
    trust: Trust,
    authorities: Vec<CertificateDer<'static>>,
    /// Read at the first connection: the certificates of the system take some milliseconds and some memory.
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Connector {
    /// Returns a connector. The file with authorities is read at once, so that a wrong one is told at the start.
    pub(crate) fn new(trust: Trust) -> Result<Self, AuthoritiesError> {
        let option = trust.options.authorities;
        let read = |path| read_authorities(path, option);
        let authorities = trust.authorities.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(Self(Arc::new(Inner { trust, authorities, tls: OnceCell::new() })))
    }
}

fn read_authorities(
    path: &Path,
    option: &'static str,
) -> Result<Vec<CertificateDer<'static>>, AuthoritiesError> {
    let text = regular_file::read(path).map_err(|error| AuthoritiesError::Unreadable {
        option,
        path: path.to_owned(),
        error,
    })?;
    let unusable = |problem: String| AuthoritiesError::Unusable { option, path: path.to_owned(), problem };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| unusable(error.to_string()))?;
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store.add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
    }
    if found.is_empty() { Err(unusable("there is none in it".to_owned())) } else { Ok(found) }
}

impl Inner {
    async fn connect(&self, uri: &Uri) -> Result<Stream, ConnectError> {
        let host = uri.host().ok_or(ConnectError::NoHost)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tcp = self.connect_tcp(&host, port).await?;
        if !is_tls {
            return Ok(Stream(Box::pin(tcp)));
        }
        let config = self.tls.get_or_try_init(|| self.configure_tls()).await?;
        let failed = |error: io::Error| self.trust.options.no_tls(host.clone(), &error);
        let name = ServerName::try_from(host.clone()).map_err(|error| failed(io::Error::other(error)))?;
        let shaking = TlsConnector::from(Arc::clone(config)).connect(name, tcp);
        match tokio::time::timeout(PATIENCE, shaking).await {
            Ok(stream) => Ok(Stream(Box::pin(stream.map_err(failed)?))),
            Err(_) => Err(ConnectError::Silent { host }),
        }
    }

    /// Connects to the first address of a host that answers, of those that may be asked.
    async fn connect_tcp(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let mut problem = ConnectError::NoAddress { host: host.to_owned() };
        for address in self.addresses(host, port).await? {
            match tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => problem = ConnectError::Unreachable { host: host.to_owned(), source },
                Err(_) => problem = ConnectError::Silent { host: host.to_owned() },
            }
        }
        Err(problem)
    }

    /// Returns the addresses of a host that may be asked.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let mut addresses = self.resolve(host, port).await?;
        if self.trust.allowed.permits_private(host, port) {
            addresses.truncate(MOST_ADDRESSES);
            return Ok(addresses);
        }
        let api_server = match &self.trust.api_server {
            Some(name) => self.resolve(name, port).await?.iter().map(SocketAddr::ip).collect(),
            None => BTreeSet::new(),
        };
        let mut refused = None;
        addresses.retain(|address| {
            let address = address.ip();
            let kind = address::refusal(address)
                .or_else(|| api_server.contains(&address).then_some("an address of the API server"));
            if let Some(kind) = kind {
                refused = Some(ConnectError::Refused { host: host.to_owned(), address, kind });
            }
            kind.is_none()
        });
        addresses.truncate(MOST_ADDRESSES);
        match refused {
            Some(refused) if addresses.is_empty() => Err(refused),
            _ => Ok(addresses),
        }
    }

    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = tokio::time::timeout(PATIENCE, self.trust.lookup.lookup(host, port)).await;
        let found = found.map_err(|_| ConnectError::Silent { host: host.to_owned() })?;
        found.map_err(|source| ConnectError::Unknown { host: host.to_owned(), source })
    }

    async fn configure_tls(&self) -> Result<Arc<ClientConfig>, ConnectError> {
        let mut roots = RootCertStore::empty();
        let system = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
        // What can't be read or parsed is left out, as all programs do with the certificates of the system.
        roots.add_parsable_certificates(system.map(|found| found.certs).unwrap_or_default());
        roots.add_parsable_certificates(self.authorities.iter().cloned());
        if roots.is_empty() {
            return Err(ConnectError::NoAuthorities { option: self.trust.options.authorities });
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let failed = |error| self.trust.options.no_tls(String::new(), &io::Error::other(error));
        let config = builder.map_err(failed)?.with_root_certificates(roots).with_no_client_auth();
        Ok(Arc::new(config))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.connect(&uri).await.map(TokioIo::new) })
    }
}

trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

/// A connection, with TLS or without.
pub(crate) struct Stream(Pin<Box<dyn Bytes>>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use ::source::allow::AllowedHost;

    use super::*;

    /// Names with fixed addresses.
    struct Names(Vec<(&'static str, &'static str)>);

    impl Lookup for Names {
        fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            let its = self.0.iter().filter(|(name, _)| *name == host);
            let found = its.map(|(_, address)| SocketAddr::new(address.parse().unwrap(), port)).collect();
            async { Ok(found) }.boxed()
        }
    }

    fn connector(allowed: &[&str]) -> Connector {
        let names = Names(vec![
            ("repo.example", "10.0.0.7"),
            ("both.example", "127.0.0.1"),
            ("both.example", "1.1.1.1"),
            ("sly.example", "8.8.4.4"),
            ("api.example", "8.8.4.4"),
        ]);
        let hosts = allowed.iter().map(|host| AllowedHost::parse(host).unwrap()).collect();
        let trust = Trust {
            allowed: AllowList { hosts, ..AllowList::default() },
            authorities: None,
            api_server: Some("api.example".to_owned()),
            lookup: Arc::new(names),
            options: TrustOptions::OPERATOR,
        };
        Connector::new(trust).unwrap()
    }

    async fn asked(connector: &Connector, host: &str, port: u16) -> Result<Vec<String>, String> {
        let found = connector.0.addresses(host, port).await.map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn what_a_name_means_decides_and_not_the_name() {
        let connector = connector(&[]);
        let refused = asked(&connector, "repo.example", 443).await.unwrap_err();
        assert_eq!(
            refused,
            "repo.example is 10.0.0.7, which is a private address; allow it with --source-allow=repo.example if it \
             may be asked"
        );
        assert_eq!(asked(&connector, "both.example", 443).await.unwrap(), ["1.1.1.1:443"]);
        let refused = asked(&connector, "sly.example", 443).await.unwrap_err();
        assert!(refused.contains("8.8.4.4, which is an address of the API server"), "{refused}");
        for literal in ["127.0.0.1", "::1", "::ffff:169.254.169.254"] {
            asked(&connector, literal, 443).await.unwrap_err();
        }
        assert_eq!(asked(&connector, "none.example", 443).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn an_allowed_host_is_asked_wherever_it_is_and_at_its_port_only() {
        let connector = connector(&["repo.example:8443", "sly.example"]);
        assert_eq!(asked(&connector, "repo.example", 8443).await.unwrap(), ["10.0.0.7:8443"]);
        asked(&connector, "repo.example", 443).await.unwrap_err();
        assert_eq!(asked(&connector, "sly.example", 1).await.unwrap(), ["8.8.4.4:1"]);
        asked(&connector, "10.0.0.7", 8443).await.unwrap_err();
    }

    #[test]
    fn a_file_that_holds_no_authority_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for (text, says) in [
            (Some("nothing"), "there is none in it"),
            (Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "no certificates"),
            (None, "can't read"),
        ] {
            let path = dir.path().join("ca.pem");
            match text {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let error = read_authorities(&path, "--ca").unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("ca.pem"), "{error}");
        }
    }
}
