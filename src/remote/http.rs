//! HTTP as far as a repository needs it: files and git's messages, redirects, conditions, and a limit for everything.
//!
//! Messages name hosts and codes. They never show a URL, which may hold credentials.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use ::source::url::{HttpUrl, Protocols};
use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION, USER_AGENT,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;
use tokio::time::Instant;

use super::authorizations::Authorizations;
use super::connector::{ConnectError, Connector};
use super::pauses::Pauses;
use super::permits::{PER_HOST, Permit, Permits, patiently};

/// How often a request is sent on.
const MOST_REDIRECTS: usize = 5;

/// How long a connection waits for the next request.
const IDLE: Duration = Duration::from_secs(5);

/// The longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;

/// How many headers an answer may have.
const MOST_HEADERS: usize = 100;

/// The longest `ETag` or date that is kept.
const LONGEST_VALIDATOR: usize = 1024;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("addon-operator/", env!("CARGO_PKG_VERSION")));

/// Sends requests through the guarded connector.
pub(crate) struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    permits: Permits,
    timeout: Duration,
    protocols: Protocols,
    /// The registries that want to be left alone for a while.
    pub(super) pauses: Pauses,
    /// What registries wanted to see.
    pub(super) authorizations: Authorizations,
}

/// What says whether an answer is the one that is known already.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Validator {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl Validator {
    /// Returns the validator that was written down as these texts; empty ones stand for nothing.
    pub(crate) fn of_texts(etag: &str, modified: &str) -> Self {
        let value = |text: &str| HeaderValue::try_from(text).ok().filter(|value| !value.is_empty());
        Self { etag: value(etag), modified: value(modified) }
    }

    /// Returns the `ETag` and the date to write down; empty texts stand for nothing.
    pub(crate) fn texts(&self) -> [String; 2] {
        [&self.etag, &self.modified]
            .map(|value| value.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned())
    }
}

/// What came of a request.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Answer<T> {
    /// What the caller made of the body.
    New(T, Validator),
    /// It is what the validator stands for.
    Unchanged,
}

/// Why a request brought nothing.
#[derive(Debug, Error)]
pub(crate) enum HttpError {
    #[error("{0}")]
    Connect(String),
    #[error("the answer of {host} broke off: {problem}")]
    Broken { host: String, problem: String },
    #[error("{host} answered {status}")]
    Status { host: String, status: StatusCode },
    #[error(
        "{host} answered with a web page (HTML), not with a file; the URL may need credentials or another path"
    )]
    Html { host: String },
    #[error("{host} took longer than {} s (--source-timeout)", .timeout.as_secs())]
    Late { host: String, timeout: Duration },
    #[error("what {host} sends is longer than {}", size(.limit >> 10))]
    TooLong { host: String, limit: u64 },
    #[error("{host} sends on to a URL that can't be used: {problem}")]
    Redirect { host: String, problem: String },
    #[error("{host} sends on more than {MOST_REDIRECTS} times")]
    Redirects { host: String },
    #[error("{host} sends a message of git on to another URL: use that one")]
    MessageRedirect { host: String },
    #[error("{host} is no git server at this URL (smart HTTP): it answered with a page or a file")]
    NoGit { host: String },
    #[error("{host} answered {status}: it wants another user and password in the URL, or refuses them")]
    Credentials { host: String, status: StatusCode },
    #[error("the URL can't be sent to {host}")]
    Url { host: String },
    #[error("can't write what {host} sends: {source}")]
    Write { host: String, source: io::Error },
}

/// Returns a limit in KiB in the unit that people know it in.
fn size(kib: u64) -> String {
    if kib < 1024 { format!("{kib} KiB") } else { format!("{} MiB", kib >> 10) }
}

impl HttpError {
    /// Returns whether our own disk is to blame.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Write { .. })
    }
}

/// What reads a body, part by part.
pub(crate) trait Sink {
    /// Takes a part.
    fn write(&mut self, part: &[u8]) -> io::Result<()>;
}

impl Sink for Vec<u8> {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.extend_from_slice(part);
        Ok(())
    }
}

impl<S: Sink> Sink for &mut S {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        (**self).write(part)
    }
}

/// A file that is asked for.
pub(crate) struct Get<'g> {
    /// The URL, with credentials if it has some.
    pub(crate) url: &'g HttpUrl,
    /// What is known already.
    pub(crate) known: Option<&'g Validator>,
    /// How long the body may be, in bytes.
    pub(crate) limit: u64,
}

/// A message of git's protocol.
pub(crate) struct Exchange<'e> {
    /// The URL, with credentials if it has some.
    pub(crate) url: &'e HttpUrl,
    /// What is sent; without it, the server is asked what it can do.
    pub(crate) message: Option<Vec<u8>>,
    /// How long the answer may be, in bytes.
    pub(crate) limit: u64,
}

/// What is asked of a registry, or given to it.
pub(crate) struct RegistryRequest<'g> {
    pub(crate) method: Method,
    /// The URL, without credentials.
    pub(crate) url: &'g HttpUrl,
    /// The types that may come.
    pub(crate) accept: &'static str,
    /// What is sent, with its type.
    pub(crate) body: Option<(&'g str, Bytes)>,
    /// The header `Authorization`, for the server of the URL and no other.
    pub(crate) authorization: Option<&'g str>,
    /// How long the body of the answer may be, in bytes.
    pub(crate) limit: u64,
}

impl RegistryRequest<'_> {
    /// Returns whether nothing changes by it, so that it may be sent on.
    fn only_reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// How a registry answered.
pub(crate) struct RegistryAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Who answered, after redirects.
    pub(crate) url: HttpUrl,
}

/// What all requests until the last redirect have in common.
struct Call<'c> {
    known: Option<&'c Validator>,
    limit: u64,
    git: Option<GitCall>,
    registry: Option<&'c RegistryRequest<'c>>,
}

struct GitCall {
    message: Option<Bytes>,
}

impl GitCall {
    /// Returns the type that the answer of a git server has.
    fn answer(&self) -> &'static str {
        match self.message {
            Some(_) => "application/x-git-upload-pack-result",
            None => "application/x-git-upload-pack-advertisement",
        }
    }
}

/// The type of git's messages.
const GIT_REQUEST: HeaderValue = HeaderValue::from_static("application/x-git-upload-pack-request");

/// Some servers answer only those whose name begins so.
const GIT_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("git/addon-operator-", env!("CARGO_PKG_VERSION")));

/// Asks for the newest version of git's protocol; a server that does not know it ignores this.
const GIT_PROTOCOL: (&str, &str) = ("git-protocol", "version=2");

impl HttpClient {
    /// Returns a client with `in_flight` requests at a time, each of which may take `timeout` from its turn on.
    pub(crate) fn new(
        connector: Connector,
        in_flight: usize,
        timeout: Duration,
        protocols: Protocols,
    ) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_idle_timeout(IDLE).pool_max_idle_per_host(PER_HOST).pool_timer(TokioTimer::new());
        builder.http1_max_buf_size(LONGEST_HEAD).http1_max_headers(MOST_HEADERS);
        let permits = Permits::new(in_flight);
        Self {
            client: builder.build(connector),
            permits,
            timeout,
            protocols,
            pauses: Pauses::default(),
            authorizations: Authorizations::default(),
        }
    }

    /// Sends a request and hands the body to `sink`. After an error, what is in there is of no use.
    pub(crate) async fn get<S: Sink>(&self, get: Get<'_>, mut sink: S) -> Result<Answer<S>, HttpError> {
        let call = Call { known: get.known, limit: get.limit, git: None, registry: None };
        match self.send(get.url, &call, &mut sink).await? {
            (Last::Read(validator, _), _) => Ok(Answer::New(sink, validator)),
            (Last::Unchanged, _) => Ok(Answer::Unchanged),
            (Last::Told(status, _), url) => Err(HttpError::Status { host: host(&url), status }),
        }
    }

    /// Sends a message of git's protocol and hands the answer to `sink`. Returns the URL that answered.
    pub(crate) async fn exchange(
        &self,
        exchange: Exchange<'_>,
        sink: &mut impl Sink,
    ) -> Result<HttpUrl, HttpError> {
        let git = GitCall { message: exchange.message.map(Bytes::from) };
        let call = Call { known: None, limit: exchange.limit, git: Some(git), registry: None };
        self.send(exchange.url, &call, sink).await.map(|(_, url)| url)
    }

    /// Speaks to a registry and hands the body of an answer with 200 to `sink`, if something was asked.
    pub(crate) async fn ask_registry(
        &self,
        request: RegistryRequest<'_>,
        sink: &mut impl Sink,
    ) -> Result<RegistryAnswer, HttpError> {
        let call = Call { known: None, limit: request.limit, git: None, registry: Some(&request) };
        let (last, url) = self.send(request.url, &call, sink).await?;
        let (status, headers) = match last {
            Last::Read(_, headers) => (StatusCode::OK, headers),
            Last::Told(status, headers) => (status, headers),
            Last::Unchanged => (StatusCode::NOT_MODIFIED, HeaderMap::new()),
        };
        Ok(RegistryAnswer { status, headers, url })
    }

    /// Sends a request, as often as it is sent on. Returns what came of the last one, and its URL.
    async fn send(
        &self,
        url: &HttpUrl,
        call: &Call<'_>,
        sink: &mut impl Sink,
    ) -> Result<(Last, HttpUrl), HttpError> {
        let mut url = url.clone();
        let mut left = self.timeout;
        for _ in 0..=MOST_REDIRECTS {
            // The permit of a host is given back before that of the next one is asked for.
            let mut permit = self.permits.acquire(&host(&url)).await;
            let begun = Instant::now();
            let asked = tokio::time::timeout(left, self.ask(&url, call, sink, &mut permit)).await;
            drop(permit);
            left = left.saturating_sub(begun.elapsed());
            match asked.map_err(|_| HttpError::Late { host: host(&url), timeout: self.timeout })?? {
                Step::Last(last) => return Ok((last, url)),
                Step::Redirect(next) => url = next,
            }
        }
        Err(HttpError::Redirects { host: host(&url) })
    }

    /// Returns the request for a URL.
    fn request(url: &HttpUrl, call: &Call<'_>) -> Result<Request<Full<Bytes>>, HttpError> {
        let unsendable = || HttpError::Url { host: host(url) };
        let message = call.git.as_ref().and_then(|git| git.message.clone());
        let registry = call.registry;
        let method = match registry {
            Some(registry) => registry.method.clone(),
            None if message.is_some() => Method::POST,
            None => Method::GET,
        };
        let mut request = Request::builder().method(method).uri(url.to_string());
        request = request.header(USER_AGENT, if call.git.is_some() { GIT_AGENT } else { AGENT });
        if let Some(known) = call.known {
            let conditions = [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.modified)];
            for (name, value) in conditions {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
        }
        if let Some(credentials) = url.credentials() {
            let value = HeaderValue::try_from(credentials.authorization());
            let mut value = value.map_err(|_| unsendable())?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        // A registry sends on to where its blobs are: that server is not to have what only the registry may know.
        let own = registry.filter(|get| get.url.is_same_server(url)).and_then(|get| get.authorization);
        if let Some(authorization) = own {
            let mut value = HeaderValue::try_from(authorization).map_err(|_| unsendable())?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request = match &call.git {
            Some(git) => request.header(ACCEPT, git.answer()).header(GIT_PROTOCOL.0, GIT_PROTOCOL.1),
            None => request.header(ACCEPT, registry.map_or("*/*", |get| get.accept)),
        };
        if message.is_some() {
            request = request.header(CONTENT_TYPE, GIT_REQUEST);
        }
        if let Some((kind, body)) = registry.and_then(|registry| registry.body.as_ref()) {
            return request
                .header(CONTENT_TYPE, *kind)
                .body(Full::new(body.clone()))
                .map_err(|_| unsendable());
        }
        request.body(Full::new(message.unwrap_or_default())).map_err(|_| unsendable())
    }

    async fn ask(
        &self,
        url: &HttpUrl,
        call: &Call<'_>,
        sink: &mut impl Sink,
        permit: &mut Option<Permit>,
    ) -> Result<Step, HttpError> {
        let request = Self::request(url, call)?;
        let response = patiently(permit, self.client.request(request)).await;
        let response = response.map_err(|error| no_answer(&error, url))?;
        let (headers, status) = (response.headers(), response.status());
        match status {
            StatusCode::NOT_MODIFIED if call.known.is_some() => return Ok(Step::Last(Last::Unchanged)),
            // What is given to a registry goes to nobody else.
            _ if call.registry.is_some_and(|registry| !registry.only_reads()) => {
                return Ok(Step::Last(Last::Told(status, headers.clone())));
            }
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                if call.git.as_ref().is_some_and(|git| git.message.is_some()) {
                    return Err(HttpError::MessageRedirect { host: host(url) });
                }
                let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
                return self.redirect(url, location.unwrap_or_default()).map(Step::Redirect);
            }
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if call.git.is_some() => {
                return Err(HttpError::Credentials { host: host(url), status });
            }
            _ if call.registry.is_some() => {
                return Ok(Step::Last(Last::Told(status, headers.clone())));
            }
            _ => return Err(HttpError::Status { host: host(url), status }),
        }
        if let Some(git) = &call.git {
            let found = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
            let found = found.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            if found != git.answer().as_bytes() {
                return Err(HttpError::NoGit { host: host(url) });
            }
        }
        let is_html =
            headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
        if is_html {
            return Err(HttpError::Html { host: host(url) });
        }
        let short = |name| headers.get(name).filter(|value| value.len() <= LONGEST_VALIDATOR).cloned();
        let validator = Validator { etag: short(ETAG), modified: short(LAST_MODIFIED) };
        let headers = call.registry.map(|_| headers.clone()).unwrap_or_default();
        read(response, call.limit, url, sink, permit).await?;
        Ok(Step::Last(Last::Read(validator, headers)))
    }

    /// Returns where an answer sends the request on to.
    fn redirect(&self, url: &HttpUrl, location: &str) -> Result<HttpUrl, HttpError> {
        let wrong = |problem| HttpError::Redirect { host: host(url), problem };
        let location = location.split('#').next().unwrap_or_default();
        if location.is_empty() {
            return Err(wrong("it names none".to_owned()));
        }
        url.redirected(location, self.protocols).map_err(|error| wrong(error.to_string()))
    }
}

/// Returns the host with its port, as messages and permits name it.
pub(crate) fn host(url: &HttpUrl) -> String {
    let (name, port) = (url.host(), url.port());
    match (name.contains(':'), port == url.scheme().port()) {
        (true, true) => format!("[{name}]"),
        (true, false) => format!("[{name}]:{port}"),
        (false, true) => name.to_owned(),
        (false, false) => format!("{name}:{port}"),
    }
}

enum Step {
    Last(Last),
    Redirect(HttpUrl),
}

/// What came of a request that was not sent on.
enum Last {
    /// The body was read. Of the headers, only those of a registry are kept.
    Read(Validator, HeaderMap),
    Unchanged,
    /// A registry answered with something else than 200.
    Told(StatusCode, HeaderMap),
}

/// Hands a body to `sink` while it comes.
async fn read(
    response: Response<Incoming>,
    limit: u64,
    url: &HttpUrl,
    sink: &mut impl Sink,
    permit: &mut Option<Permit>,
) -> Result<(), HttpError> {
    let host = || host(url);
    let mut body = response.into_body();
    let mut length: u64 = 0;
    while let Some(frame) = patiently(permit, body.frame()).await {
        let frame = frame.map_err(|error| HttpError::Broken { host: host(), problem: innermost(&error) })?;
        let Ok(part) = frame.into_data() else { continue };
        length = length.saturating_add(part.len().try_into().unwrap_or(u64::MAX));
        if length > limit {
            return Err(HttpError::TooLong { host: host(), limit });
        }
        sink.write(&part).map_err(|source| HttpError::Write { host: host(), source })?;
    }
    Ok(())
}

/// Returns why there was no answer: what the connector says, if that was it.
fn no_answer(error: &hyper_util::client::legacy::Error, url: &HttpUrl) -> HttpError {
    let said = error.source().and_then(|source| source.downcast_ref::<ConnectError>());
    if let Some(said) = said {
        return HttpError::Connect(said.to_string());
    }
    HttpError::Broken { host: host(url), problem: innermost(error) }
}

/// Returns what the first cause of an error says. What is wrapped round it by libraries says less.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        // The words of the library for it are an address of its manual.
        Some(io::ErrorKind::UnexpectedEof) => "the connection was closed before it was whole".to_owned(),
        Some(_) | None => cause.to_string(),
    }
}
