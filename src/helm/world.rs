//! What templates may ask of the outside: time, chance, keys, host names.

use std::net::{IpAddr, ToSocketAddrs as _};

use chart::world::{Certificate, CertificateRequest, KeyKind, World, WorldError};
use serde_json::Value;

use super::keys;

/// The outside without a cluster: `lookup` finds nothing.
#[derive(Clone, Debug, Default)]
pub struct LocalWorld {
    /// Whether host names are looked up; `helm` does so only when asked to.
    pub dns: bool,
}

impl World for LocalWorld {
    fn now(&mut self) -> jiff::Zoned {
        jiff::Zoned::now()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        rand::fill(bytes);
    }

    fn private_key(&mut self, kind: KeyKind) -> Result<String, WorldError> {
        keys::private_key(kind).map_err(|error| WorldError(error.to_string()))
    }

    fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, WorldError> {
        keys::certificate(request, jiff::Timestamp::now()).map_err(|error| WorldError(error.to_string()))
    }

    fn resolve(&mut self, host: &str) -> Result<String, WorldError> {
        if !self.dns {
            return Ok(String::new());
        }
        let addresses = (host, 0).to_socket_addrs();
        let address = addresses.ok().and_then(|mut addresses| addresses.next()).map(|address| address.ip());
        Ok(address.map(|address: IpAddr| address.to_string()).unwrap_or_default())
    }

    fn lookup(&mut self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, WorldError> {
        Ok(Value::Object(serde_json::Map::new()))
    }
}
