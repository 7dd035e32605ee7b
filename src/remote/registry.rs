//! Conversations with registries (OCI): who asks logs in as the registry wants, and leaves it alone if it wants that.

use std::time::Duration;

use ::source::allow::AllowList;
use ::source::digest::Digest;
use ::source::registry::challenge::{Challenge, MAX_TOKEN_ANSWER, Token, token, token_url};
use ::source::registry::reference::{RegistryUrl, RepositoryReference};
use ::source::registry::tags::{MAX_PAGE, Tags, next_page};
use ::source::url::{BundleUrl, Credentials, HttpUrl};
use bytes::Bytes;
use http::header::{LINK, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use thiserror::Error;

use super::authorizations::Occasion;
use super::http::{HttpClient, HttpError, RegistryAnswer, RegistryRequest, Sink, host};
use super::pauses;

/// The longest pause that a request itself waits for; for a longer one, the work is put off.
const SHORT_PAUSE: Duration = Duration::from_secs(2);

/// What is accepted where anything may come.
pub(crate) const ANY: &str = "*/*";

/// The type of what is pushed, if nobody looks at it.
const BYTES: &str = "application/octet-stream";

/// Why a registry brought nothing.
#[derive(Debug, Error)]
pub(crate) enum RegistryError {
    /// It answered, but not so that it helps.
    #[error("{text}")]
    Refused { status: StatusCode, text: String },
    /// It may not be asked, or not now, or what it says can't be used.
    #[error("{0}")]
    Rejected(String),
    /// There is no answer.
    #[error("{what} can't be fetched: {error}")]
    Http {
        what: &'static str,
        #[source]
        error: HttpError,
    },
}

impl RegistryError {
    /// Returns whether our own disk is to blame.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Http { error, .. } if error.is_ours())
    }

    /// Returns whether the registry may not know what it was asked for. There are several ways to say so.
    pub(crate) fn is_unknown_call(&self) -> bool {
        let Self::Refused { status, .. } = self else { return false };
        status.is_client_error() && !matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Returns whether the registry says that there is no such thing.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::NOT_FOUND, .. })
    }
}

/// What people do who have to log in.
#[derive(Clone, Copy)]
pub(crate) struct Login {
    /// What is told to those who named no user.
    pub(crate) missing: &'static str,
    /// Where user and password are.
    pub(crate) place: &'static str,
}

/// How one repository of a registry is spoken about.
pub(crate) struct Session<'s> {
    http: &'s HttpClient,
    allowed: &'s AllowList,
    /// Whether an allowed prefix names the registry as people do, with `oci://`.
    is_allowed: bool,
    /// The server, without credentials.
    server: HttpUrl,
    /// The server without TLS, if that may be asked and nobody answered yet.
    plain: Option<HttpUrl>,
    /// User and password as the header has them.
    basic: Option<String>,
    repository: RepositoryReference,
    /// What a token has to permit, if the registry does not say.
    scope: String,
    login: Login,
    /// What the registry wanted to see.
    authorization: Option<String>,
}

impl<'s> Session<'s> {
    /// Returns a conversation with the user and password of the URL, if it has some.
    pub(crate) fn open(
        http: &'s HttpClient,
        allowed: &'s AllowList,
        registry: &RegistryUrl,
        repository: RepositoryReference,
        login: Login,
    ) -> Result<Self, RegistryError> {
        let plain = allowed.protocols.has_http.then(|| registry.plain_server()).transpose();
        let session = Self {
            http,
            allowed,
            is_allowed: allowed.names_registry(registry),
            server: registry.server().without_credentials(),
            plain: plain.map_err(|error| RegistryError::Rejected(error.to_string()))?,
            basic: None,
            scope: repository.scope(),
            repository,
            login,
            authorization: None,
        };
        Ok(session.with_user(registry.server().credentials()))
    }

    /// Returns the same conversation with other credentials, if there are some.
    #[must_use]
    pub(crate) fn with_user(mut self, credentials: Option<&Credentials>) -> Self {
        self.basic = credentials.map(Credentials::authorization).or(self.basic);
        self
    }

    /// Returns what is spoken about.
    pub(crate) fn repository(&self) -> &RepositoryReference {
        &self.repository
    }

    /// Returns the server that answers. It is another one, without TLS, once that did.
    pub(crate) fn server(&self) -> &HttpUrl {
        &self.server
    }

    /// Returns what is at a URL of the registry, with its headers and the URL that answered.
    pub(crate) async fn get(
        &mut self,
        url: &HttpUrl,
        accept: &'static str,
        limit: u64,
    ) -> Result<(Vec<u8>, HeaderMap, HttpUrl), RegistryError> {
        let mut body = Vec::new();
        let answer = self.get_into(url, accept, limit, &mut body).await?;
        Ok((body, answer.headers, answer.url))
    }

    /// Hands what is at a URL of the registry to `sink`.
    pub(crate) async fn get_into(
        &mut self,
        url: &HttpUrl,
        accept: &'static str,
        limit: u64,
        sink: &mut impl Sink,
    ) -> Result<RegistryAnswer, RegistryError> {
        let answer = self.ask((Method::GET, None), url, accept, limit, sink).await?;
        if answer.status == StatusCode::OK { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    /// Returns all tags of the repository.
    pub(crate) async fn tags(&mut self) -> Result<Tags, RegistryError> {
        let mut tags = Tags::default();
        let mut url = self.repository.tags(&self.server);
        loop {
            let (page, headers, answered) = self.get(&url, ANY, MAX_PAGE).await?;
            tags.take(&page).map_err(|error| RegistryError::Rejected(error.to_string()))?;
            let link = headers.get(LINK).and_then(|link| link.to_str().ok()).and_then(next_page);
            let Some(link) = link else { return Ok(tags) };
            let next = answered.join(link, self.allowed.protocols);
            let next = next.ok().filter(|next| next.is_same_server(&self.server));
            url = next.ok_or_else(|| {
                RegistryError::Rejected(
                    "the registry names a next page of tags that can't be used: it is not on the same server"
                        .to_owned(),
                )
            })?;
        }
    }

    /// Asks for the headers of what is at a URL.
    pub(crate) async fn head(
        &mut self,
        url: &HttpUrl,
        accept: &'static str,
    ) -> Result<HeaderMap, RegistryError> {
        let answer = self.ask((Method::HEAD, None), url, accept, 0, &mut Vec::new()).await?;
        if answer.status == StatusCode::OK { Ok(answer.headers) } else { Err(self.refused(&answer)) }
    }

    /// Returns the same conversation for somebody who pushes.
    #[must_use]
    pub(crate) fn for_push(mut self) -> Self {
        self.scope = self.repository.push_scope();
        self
    }

    /// Gives the registry bytes, unless it has them.
    pub(crate) async fn push_blob(&mut self, digest: &Digest, bytes: Bytes) -> Result<(), RegistryError> {
        let url = self.repository.blob(&self.server, digest);
        match self.head(&url, ANY).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        let url = self.repository.uploads(&self.server);
        let answer = self.put(Method::POST, &url, (BYTES, Bytes::new())).await?;
        let place = answer.headers.get(LOCATION).and_then(|place| place.to_str().ok()).unwrap_or_default();
        let place = answer.url.join(place, self.allowed.protocols).ok();
        let place = place.filter(|place| place.is_same_server(&self.server)).ok_or_else(|| {
            RegistryError::Rejected(
                "the registry sends the upload to a URL that can't be used: it is not on the same server"
                    .to_owned(),
            )
        })?;
        let and = place.query().map(|query| format!("{query}&")).unwrap_or_default();
        let place = place.with_query(&format!("{and}digest={digest}"));
        self.put(Method::PUT, &place, (BYTES, bytes)).await.map(drop)
    }

    /// Gives the registry a manifest under a tag.
    pub(crate) async fn push_manifest(
        &mut self,
        tag: &str,
        kind: &str,
        manifest: Bytes,
    ) -> Result<(), RegistryError> {
        let url = self.repository.manifest_of(&self.server, tag);
        self.put(Method::PUT, &url, (kind, manifest)).await.map(drop)
    }

    async fn put(
        &mut self,
        method: Method,
        url: &HttpUrl,
        sent: (&str, Bytes),
    ) -> Result<RegistryAnswer, RegistryError> {
        let answer = self.ask((method, Some(sent)), url, ANY, 0, &mut Vec::new()).await?;
        match answer.status {
            StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(answer)
            }
            StatusCode::UNAUTHORIZED => Err(self.refused(&answer)),
            status => {
                let (host, name) = (host(&answer.url), self.repository.name());
                let why = match status {
                    StatusCode::FORBIDDEN => format!("the user may not push to {name}"),
                    StatusCode::METHOD_NOT_ALLOWED => "it takes no pushes".to_owned(),
                    _ => format!("{name} can't be pushed"),
                };
                Err(RegistryError::Refused { status, text: format!("{host} answered {status}: {why}") })
            }
        }
    }

    /// Sends a request until the registry is content with who asks. Any other answer than 401 and 429 is returned.
    async fn ask(
        &mut self,
        (method, sent): (Method, Option<(&str, Bytes)>),
        url: &HttpUrl,
        accept: &'static str,
        limit: u64,
        sink: &mut impl Sink,
    ) -> Result<RegistryAnswer, RegistryError> {
        let mut has_waited = false;
        let mut has_authorized = false;
        if self.authorization.is_none() {
            self.authorization = self.http.authorizations.get(self.occasion());
        }
        let mut url = self.server.below(url.path(), url.query());
        loop {
            self.check(&url)?;
            let authorization = self.authorization.as_deref();
            let (method, body) = (method.clone(), sent.clone());
            let request = RegistryRequest { method, url: &url, accept, body, authorization, limit };
            let answer = match self.http.ask_registry(request, sink).await {
                // Only while developing: a registry without TLS does not understand the beginning of it.
                Err(HttpError::Connect(_)) if self.plain.is_some() => {
                    self.server = self.plain.take().unwrap_or_else(|| self.server.clone());
                    // What another server wanted is not shown to this one.
                    self.authorization = self.http.authorizations.get(self.occasion());
                    url = self.server.below(url.path(), url.query());
                    continue;
                }
                Err(error) => return Err(RegistryError::Http { what: "what the registry has", error }),
                Ok(answer) => answer,
            };
            self.plain = None;
            let is_own = answer.url.is_same_server(&self.server);
            match answer.status {
                StatusCode::UNAUTHORIZED if is_own && !has_authorized => {
                    has_authorized = true;
                    self.http.authorizations.forget(self.occasion());
                    self.authorize(&answer.headers).await?;
                }
                StatusCode::TOO_MANY_REQUESTS => self.pause(&answer, &mut has_waited).await?,
                _ => return Ok(answer),
            }
        }
    }

    /// Checks that a URL may be asked now.
    fn check(&self, url: &HttpUrl) -> Result<(), RegistryError> {
        if !(self.is_allowed && url.is_same_server(&self.server)) {
            let allowed = self.allowed.check_bundle(&BundleUrl::Http(url.clone()));
            allowed.map_err(|error| RegistryError::Rejected(format!("the registry: {error}")))?;
        }
        let host = host(url);
        if self.http.pauses.has(&host) { Err(busy(&host)) } else { Ok(()) }
    }

    /// Waits as long as a server wants that, if it is short and the first time; else nobody asks it until then.
    async fn pause(&self, answer: &RegistryAnswer, has_waited: &mut bool) -> Result<(), RegistryError> {
        let pause = pauses::wanted(&answer.headers, Timestamp::now());
        if pause <= SHORT_PAUSE && !std::mem::replace(has_waited, true) {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let host = host(&answer.url);
        self.http.pauses.add(&host, pause);
        Err(busy(&host))
    }

    /// Returns what stands for who asks whom for what.
    fn occasion(&self) -> Occasion {
        Occasion::new(&self.server.to_string(), self.basic.as_deref().unwrap_or_default(), &self.scope)
    }

    /// Gets what the registry wants to see.
    async fn authorize(&mut self, headers: &HeaderMap) -> Result<(), RegistryError> {
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut challenges: Vec<Challenge> = challenges.filter_map(Challenge::parse).collect();
        // A token, if there is a choice.
        challenges.sort_by_key(|challenge| matches!(challenge, Challenge::Basic));
        let refused = |why: &str| {
            let host = host(&self.server);
            RegistryError::Rejected(format!("{host} answered 401 Unauthorized: {why}"))
        };
        let (header, lasts) = match challenges.into_iter().next() {
            Some(Challenge::Basic) => {
                let basic = self.basic.clone();
                (basic.ok_or_else(|| refused(self.login.missing))?, None)
            }
            Some(Challenge::Bearer { realm, service, scope }) => {
                let named = (&*realm, &*service, &*scope);
                let at = token_url(&self.server, named, &self.scope, self.allowed.protocols);
                let at = at.map_err(|error| RegistryError::Rejected(error.to_string()))?;
                let basic = self.basic.as_deref().filter(|_| at.takes_credentials);
                let token = self.token(&at.url, basic).await?;
                (format!("Bearer {}", token.text), Some(token.lasts))
            }
            None => return Err(refused("it names no way to log in that is known here (Basic or Bearer)")),
        };
        self.http.authorizations.put(self.occasion(), &header, lasts);
        self.authorization = Some(header);
        Ok(())
    }

    async fn token(&self, url: &HttpUrl, basic: Option<&str>) -> Result<Token, RegistryError> {
        self.check(url)?;
        let mut answer_body = Vec::new();
        let (method, body, limit) = (Method::GET, None, MAX_TOKEN_ANSWER);
        let request = RegistryRequest { method, url, accept: ANY, body, authorization: basic, limit };
        let answer = self.http.ask_registry(request, &mut answer_body).await;
        let answer = answer.map_err(|error| RegistryError::Http { what: "a token", error })?;
        match answer.status {
            StatusCode::OK => token(&answer_body).map_err(|error| RegistryError::Rejected(error.to_string())),
            StatusCode::TOO_MANY_REQUESTS => {
                self.pause(&answer, &mut true).await?;
                Err(busy(&host(&answer.url)))
            }
            _ => Err(self.refused(&answer)),
        }
    }

    /// Returns what a refusal means, and what to do about it.
    fn refused(&self, answer: &RegistryAnswer) -> RegistryError {
        let (host, name, status) = (host(&answer.url), self.repository.name(), answer.status);
        let Login { missing, place } = self.login;
        let why = match status {
            StatusCode::UNAUTHORIZED if self.basic.is_none() => missing.to_owned(),
            StatusCode::UNAUTHORIZED => format!("it refuses the user and password of {place}"),
            StatusCode::FORBIDDEN => {
                format!("nobody may read {name} so; {place} has to name a user who may, or it is not there")
            }
            StatusCode::NOT_FOUND => format!("it has no {name}, or not this version of it"),
            _ => format!("nothing of {name} can be had"),
        };
        RegistryError::Refused { status, text: format!("{host} answered {status}: {why}") }
    }
}

/// Returns what is said while a server wants no requests. It is the same text all the time: the status is written once.
fn busy(host: &str) -> RegistryError {
    RegistryError::Rejected(format!("{host} wants to be left alone for a while (429 Too Many Requests)"))
}
