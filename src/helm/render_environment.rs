//! What templates may ask of the environment: time, random numbers, keys, host names, objects of the cluster.

use std::net::{IpAddr, ToSocketAddrs as _};

use chart::environment::{Certificate, CertificateRequest, Environment, EnvironmentError, KeyKind};
use serde_json::Value;

use super::certificates;
use crate::cluster::Discovery;
use crate::cluster::request::Requests;

/// The environment without a cluster: `lookup` finds nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalEnvironment {
    /// Whether host names are looked up; `helm` does so only when asked to.
    pub(super) dns: bool,
}

impl Environment for LocalEnvironment {
    fn now(&mut self) -> jiff::Zoned {
        jiff::Zoned::now()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        rand::fill(bytes);
    }

    fn private_key(&mut self, kind: KeyKind) -> Result<String, EnvironmentError> {
        certificates::private_key(kind).map_err(|error| EnvironmentError(error.to_string()))
    }

    fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, EnvironmentError> {
        certificates::certificate(request, jiff::Timestamp::now())
            .map_err(|error| EnvironmentError(error.to_string()))
    }

    fn resolve(&mut self, host: &str) -> Result<String, EnvironmentError> {
        if !self.dns {
            return Ok(String::new());
        }
        let addresses = (host, 0).to_socket_addrs();
        let address = addresses.ok().and_then(|mut addresses| addresses.next()).map(|address| address.ip());
        Ok(address.map(|address: IpAddr| address.to_string()).unwrap_or_default())
    }

    fn lookup(&mut self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, EnvironmentError> {
        Ok(Value::Object(serde_json::Map::new()))
    }
}

/// The environment with a cluster that `lookup` asks.
///
/// For threads that may be blocked, not for those of the runtime.
pub(super) struct ClusterEnvironment {
    local: LocalEnvironment,
    requests: Requests,
    discovery: Discovery,
    runtime: tokio::runtime::Handle,
}

impl ClusterEnvironment {
    /// Returns an environment that asks on the current runtime.
    pub(super) fn new(requests: Requests, discovery: Discovery) -> Self {
        let runtime = tokio::runtime::Handle::current();
        Self { local: LocalEnvironment::default(), requests, discovery, runtime }
    }

    async fn find(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, EnvironmentError> {
        let failed = |error: &dyn std::error::Error| EnvironmentError(error.to_string());
        let resource = self.discovery.resolve(api_version, kind).await.map_err(|error| failed(&error))?;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let path =
            if name.is_empty() { resource.path(namespace) } else { resource.object_path(namespace, name) };
        let found = self.requests.get(&path).await.map_err(|error| failed(&error))?;
        Ok(found.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
    }
}

impl Environment for ClusterEnvironment {
    fn now(&mut self) -> jiff::Zoned {
        self.local.now()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        self.local.random(bytes);
    }

    fn private_key(&mut self, kind: KeyKind) -> Result<String, EnvironmentError> {
        self.local.private_key(kind)
    }

    fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, EnvironmentError> {
        self.local.certificate(request)
    }

    fn resolve(&mut self, host: &str) -> Result<String, EnvironmentError> {
        self.local.resolve(host)
    }

    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, EnvironmentError> {
        self.runtime.block_on(self.find(api_version, kind, namespace, name))
    }
}
