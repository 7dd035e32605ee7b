//! Who may read a registry, as a Secret says it: user and password, or a configuration of Docker.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};

use super::reference::RegistryUrl;
use crate::template::SecretData;

/// The key that Secrets of the type `kubernetes.io/dockerconfigjson` have.
const CONFIG: &str = ".dockerconfigjson";

/// How Docker names the registry of Docker Hub.
const HUB: [&str; 2] = ["docker.io", "index.docker.io"];

/// Why a Secret says nothing about a registry. The texts name keys and hosts, and no values.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoginError {
    /// It has other keys.
    #[error(
        "the Secret has neither {CONFIG} nor username (or user) and password: add them, or remove secretRef"
    )]
    Keys,
    /// The configuration of Docker can't be read.
    #[error(
        "{0} is no configuration of Docker: that is JSON with {{\"auths\": {{\"HOST\": {{\"auth\": …}}}}}}"
    )]
    Config(&'static str),
    /// It is about other registries.
    #[error(
        "{CONFIG} of the Secret has nothing for {0}: add it with `kubectl create secret docker-registry`"
    )]
    Host(String),
    /// What it says of the host can't be read.
    #[error(
        "what {CONFIG} of the Secret has for {0} is no user and password: auth is base64 of USER:PASSWORD"
    )]
    Auth(String),
}

/// A user and a password.
pub type UserAndPassword = (Vec<u8>, Vec<u8>);

/// Returns who a Secret says that may read a registry.
///
/// # Errors
///
/// If it says nothing about it.
pub fn of_secret(secret: &SecretData, registry: &RegistryUrl) -> Result<UserAndPassword, LoginError> {
    if let Some(config) = secret.get(CONFIG) {
        return of_config(config, registry)?.ok_or_else(|| LoginError::Host(registry.host().to_owned()));
    }
    let text = |key: &str| secret.get(key).map(|value| value.trim_ascii_end().to_vec());
    let user = text("username").or_else(|| text("user"));
    user.zip(text("password")).ok_or(LoginError::Keys)
}

/// Returns who the configuration of Docker in a Secret says that may read a registry, if it has one that says so.
pub fn of_secret_for(secret: &SecretData, registry: &RegistryUrl) -> Option<UserAndPassword> {
    of_config(secret.get(CONFIG)?, registry).ok().flatten()
}

/// Returns who a configuration of Docker says that may read a registry; `None` if it is about others.
///
/// # Errors
///
/// If it can't be read.
pub fn of_config(config: &[u8], registry: &RegistryUrl) -> Result<Option<UserAndPassword>, LoginError> {
    let config: Value = serde_json::from_slice(config).map_err(|_| LoginError::Config(CONFIG))?;
    let auths = match config.get("auths") {
        Some(Value::Object(auths)) => auths,
        None | Some(Value::Null) => return Ok(None),
        Some(_) => return Err(LoginError::Config(CONFIG)),
    };
    let host = registry.host();
    let is_its = |key: &str| {
        let key = host_of(key);
        key.eq_ignore_ascii_case(host) || (HUB.contains(&host) && HUB.contains(&key.as_str()))
    };
    let Some((_, entry)) = auths.iter().find(|(key, _)| is_its(key)) else { return Ok(None) };
    let login = entry.as_object().and_then(login);
    login.map(Some).ok_or_else(|| LoginError::Auth(host.to_owned()))
}

/// Returns the host of a key: `HOST`, `HOST/PATH` or `https://HOST/v1/`.
fn host_of(key: &str) -> String {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.strip_suffix(":443").unwrap_or(host).to_owned()
}

fn login(entry: &Map<String, Value>) -> Option<UserAndPassword> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(auth) = text("auth") {
        let auth = auth.trim();
        let decoded = STANDARD.decode(auth).or_else(|_| STANDARD_NO_PAD.decode(auth)).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, password) = decoded.split_at_checked(colon)?;
        return Some((user.to_vec(), password.get(1..)?.to_vec()));
    }
    Some((text("username")?.into(), text("password")?.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(key: &str, value: &Value) -> SecretData {
        [(key.to_owned(), value.to_string().into_bytes())].into()
    }

    fn found(config: &Value, url: &str) -> Result<(String, String), LoginError> {
        let registry = RegistryUrl::parse(url).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        of_secret(&secret(CONFIG, config), &registry).map(|(user, password)| (text(user), text(password)))
    }

    #[test]
    fn a_configuration_of_docker_is_looked_up_by_the_host_and_its_port() {
        let config = json!({"auths": {
            "a.example": {"auth": STANDARD.encode("joe:hunter:2")},
            "b.example:5000": {"username": "me", "password": "word"},
            "https://index.docker.io/v1/": {"auth": STANDARD.encode("hub:word")},
            "https://c.example/v2": {"auth": STANDARD_NO_PAD.encode("x:")},
        }});
        for (url, user, password) in [
            ("oci://a.example/x", "joe", "hunter:2"),
            ("oci://A.example/x", "joe", "hunter:2"),
            ("oci://b.example:5000/x", "me", "word"),
            ("oci://docker.io/x", "hub", "word"),
            ("oci://c.example", "x", ""),
        ] {
            assert_eq!(found(&config, url), Ok((user.to_owned(), password.to_owned())), "{url}");
        }
        assert_eq!(found(&config, "oci://b.example/x"), Err(LoginError::Host("b.example".to_owned())));
    }

    #[test]
    fn user_and_password_have_keys_of_their_own() {
        let registry = RegistryUrl::parse("oci://a.example/x").unwrap();
        let entry = |key: &str, value: &[u8]| (key.to_owned(), value.to_vec());
        let secret: SecretData = [entry("username", b"joe\n"), entry("password", b"word\n")].into();
        assert_eq!(of_secret(&secret, &registry), Ok((b"joe".to_vec(), b"word".to_vec())));
        let secret: SecretData = [entry("user", b"joe"), entry("password", b"word")].into();
        assert!(of_secret(&secret, &registry).is_ok());
        let secret: SecretData = [entry("user", b"joe")].into();
        assert_eq!(of_secret(&secret, &registry), Err(LoginError::Keys));
    }

    #[test]
    fn what_can_not_be_read_says_so_and_quotes_no_value() {
        for (config, error) in [
            (json!("hunter2"), LoginError::Host("a.example".to_owned())),
            (json!({"auths": ["hunter2"]}), LoginError::Config(CONFIG)),
            (json!({"auths": {"a.example": {"auth": "hunter2"}}}), LoginError::Auth("a.example".to_owned())),
            (
                json!({"auths": {"a.example": {"username": "hunter2"}}}),
                LoginError::Auth("a.example".to_owned()),
            ),
            (json!({"auths": {}}), LoginError::Host("a.example".to_owned())),
        ] {
            let said = found(&config, "oci://a.example/x").unwrap_err();
            assert_eq!(said, error);
            assert!(!said.to_string().contains("hunter2"), "{said}");
        }
        let registry = RegistryUrl::parse("oci://a.example/x").unwrap();
        assert_eq!(of_config(b"hunter2", &registry), Err(LoginError::Config(CONFIG)));
    }
}
