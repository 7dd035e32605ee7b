//! Module sources in this process, on an API server in this process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::source::allow::{AllowList, AllowedHost};
use ::source::mirror::Mirrors;
use ::source::url::Protocols;
use addon_operator::source::{Lookup, Options, Sources, Trust, TrustOptions};
use apiserver::ApiServer;
use engine::{
    AddonReason, Bundle, Fetched, FetchedAddon, RegisteredAddon, Registry, RepositorySpec, SourceKey,
    SourceSpec,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Method;
use kube::Client;
use serde_json::json;
use tempfile::TempDir;

use super::repository::{Repository, write_authority};
use super::server;

/// Resolves each name to loopback, but for those that are listed.
#[derive(Clone, Default)]
pub(crate) struct Names(pub(crate) BTreeMap<&'static str, &'static str>);

impl Lookup for Names {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        let address = self.0.get(host).copied().unwrap_or("127.0.0.1");
        let found = vec![SocketAddr::new(address.parse().unwrap(), port)];
        async move { Ok(found) }.boxed()
    }
}

/// A directory and a cluster that outlive operators.
pub(crate) struct SourceFixture {
    pub(crate) dir: TempDir,
    pub(crate) server: ApiServer,
    pub(crate) options: Options,
}

impl SourceFixture {
    /// Returns one whose operator trusts `repository` and may ask `localhost` and the hosts that are listed.
    pub(crate) async fn new(repository: &Repository, hosts: &[&str]) -> Self {
        Self::trusting(&repository.authority, hosts).await
    }

    /// Returns one that trusts an authority, or speaks plain http if there is none.
    pub(crate) async fn trusting(authority: &str, hosts: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = ApiServer::builder().seed(1).build().unwrap();
        let namespace = json!({"metadata": {"name": "ops"}});
        server::ok(&server, Method::POST, "/api/v1/namespaces", &namespace).await;
        let authorities = (!authority.is_empty()).then(|| write_authority(authority, dir.path()));
        let hosts =
            hosts.iter().chain(&["localhost"]).map(|host| AllowedHost::parse(host).unwrap()).collect();
        let protocols = Protocols { has_http: authority.is_empty() };
        let allowed = AllowList { protocols, hosts, prefixes: Vec::new() };
        let trust = Trust {
            allowed,
            authorities,
            api_server: None,
            lookup: Arc::new(Names::default()),
            options: TrustOptions::OPERATOR,
        };
        let options = Options {
            directory: dir.path().join("sources"),
            namespace: "ops".to_owned(),
            config_map: "addon-operator".to_owned(),
            secret_namespaces: vec!["ops".to_owned()],
            mirrors: Mirrors::default(),
            trust,
            in_flight: 16,
            timeout: Duration::from_mins(1),
        };
        Self { dir, server, options }
    }

    pub(crate) fn sources(&self) -> Sources {
        self.sources_with(|_| {})
    }

    pub(crate) fn sources_with(&self, change: impl FnOnce(&mut Options)) -> Sources {
        let mut options = self.options.clone();
        change(&mut options);
        Sources::new(Client::new(self.server.service(), "ops"), options).unwrap()
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.options.directory.clone()
    }

    /// Returns how many entries there are below a folder of the store directory.
    pub(crate) fn count(&self, folder: &str) -> usize {
        std::fs::read_dir(self.directory().join(folder)).map_or(0, Iterator::count)
    }
}

/// Returns the key of all configurations here.
pub(crate) fn key() -> SourceKey {
    SourceKey::cluster("platform")
}

/// Returns a spec with these repositories.
pub(crate) fn spec(urls: &[String]) -> SourceSpec {
    let repository = |url: &String| RepositorySpec { url: url.clone(), secret: None, include: Vec::new() };
    spec_of(urls.iter().map(repository).collect())
}

pub(crate) fn spec_of(repositories: Vec<RepositorySpec>) -> SourceSpec {
    SourceSpec { repositories, ..SourceSpec::default() }
}

/// Returns the addons of the first repository.
pub(crate) fn addons(fetched: &Fetched) -> &[FetchedAddon] {
    fetched.repositories[0].outcome.as_ref().unwrap()
}

/// Returns the bundle of the first addon.
pub(crate) fn bundle(fetched: &Fetched) -> Bundle {
    addons(fetched)[0].outcome.clone().unwrap()
}

/// Returns what is wrong with the first addon.
pub(crate) fn problem(fetched: &Fetched) -> (AddonReason, String) {
    let problem = addons(fetched)[0].outcome.clone().unwrap_err();
    (problem.reason, problem.message)
}

/// Returns what is wrong with the first repository.
pub(crate) fn repository_problem(fetched: &Fetched) -> (&'static str, String) {
    let problem = fetched.repositories[0].outcome.clone().unwrap_err();
    (problem.reason.as_str(), problem.message)
}

/// Returns a registry with these bundles, all of them modules.
pub(crate) fn registry(bundles: &[Bundle]) -> Registry {
    let addon =
        |bundle: &Bundle| RegisteredAddon::new(key(), "https://repo/index.yaml".to_owned(), bundle.clone());
    Registry { addons: bundles.iter().map(addon).collect(), is_written: true }
}
