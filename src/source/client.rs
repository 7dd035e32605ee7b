//! How people reach repositories and registries from the command line: with their own rights, wherever they want to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::source::allow::{AllowList, AllowedHost};
use ::source::registry::docker_config;
use ::source::registry::reference::{RegistryUrl, RepositoryReference};
use ::source::url::{HttpUrl, Protocols};

use crate::remote::http::HttpClient;
use crate::remote::registry::{Login, RegistryError, Session};
use crate::remote::{AuthoritiesError, Connector, SystemLookup, Trust, TrustOptions};

/// How many requests are in flight.
const IN_FLIGHT: usize = 4;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Where people name who may read and write.
const LOGIN: Login = Login {
    missing: "it wants user and password, give --username and --password-stdin, or --registry-config",
    place: "--username or --registry-config",
};

/// What people say about servers.
#[derive(Default)]
pub struct ClientOptions {
    /// A file with authorities to trust beside those of the system.
    pub authorities: Option<PathBuf>,
    /// Whether servers may be without TLS.
    pub plain_http: bool,
    /// User and password.
    pub login: Option<(String, String)>,
    /// A configuration of Docker, for other registries.
    pub docker_config: Option<Vec<u8>>,
}

/// Reaches servers.
pub struct Client {
    pub(super) http: HttpClient,
    pub(super) allowed: AllowList,
    options: ClientOptions,
}

impl Client {
    /// Returns a client. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// When the file with authorities can't be used.
    pub fn new(options: ClientOptions) -> Result<Self, AuthoritiesError> {
        let protocols = Protocols { has_http: options.plain_http };
        let allowed = AllowList { protocols, hosts: vec![AllowedHost::any()], prefixes: Vec::new() };
        let authorities = options.authorities.clone();
        let lookup = Arc::new(SystemLookup);
        let trust = Trust {
            allowed: allowed.clone(),
            authorities,
            api_server: None,
            lookup,
            options: TrustOptions::COMMAND,
        };
        let http = HttpClient::new(Connector::new(trust)?, IN_FLIGHT, TIMEOUT, protocols);
        Ok(Self { http, allowed, options })
    }

    /// Returns a URL with user and password, if there are some and it has none.
    pub(super) fn as_user(&self, url: HttpUrl) -> HttpUrl {
        match &self.options.login {
            Some((user, password)) if url.credentials().is_none() => {
                url.with_credentials(user.as_bytes(), password.as_bytes())
            }
            Some(_) | None => url,
        }
    }

    /// Returns a conversation about one repository of a registry.
    pub(super) fn session(
        &self,
        registry: &RegistryUrl,
        repository: RepositoryReference,
    ) -> Result<Session<'_>, RegistryError> {
        let config = self.options.docker_config.as_deref();
        let registry = match (&self.options.login, config) {
            (Some((user, password)), _) => {
                Some(registry.with_credentials(user.as_bytes(), password.as_bytes()))
            }
            (None, Some(config)) => {
                let login = docker_config::of_config(config, registry);
                let wrong = |error| RegistryError::Rejected(format!("--registry-config: {error}"));
                let login = login.map_err(wrong)?;
                login.map(|(user, password)| registry.with_credentials(&user, &password))
            }
            (None, None) => None,
        }
        .unwrap_or_else(|| registry.clone());
        Session::open(&self.http, &self.allowed, &registry, repository, LOGIN)
    }
}
