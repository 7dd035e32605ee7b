//! The options of webhooks with their types.

use std::path::PathBuf;

use super::{ConfigError, OptionSources};
use crate::webhook::CertificateFiles;

/// How the API server asks hooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether it does.
    pub enabled: bool,
    /// The address where it asks.
    pub address: String,
    /// The port where it asks; 0 for a free one.
    pub port: u16,
    /// The files with the certificate; `None` for one of our own.
    pub certificates: Option<CertificateFiles>,
    /// The files with authorities that clients must have a certificate of.
    pub client_authorities: Vec<PathBuf>,
    /// The Service that leads there.
    pub service: String,
    /// The address that leads there instead. Its port 0 stands for the port where it asks.
    pub url: Option<String>,
    /// The name of the configurations of webhooks.
    pub name: String,
    /// Whether requests go on whose validating webhook does not answer, if it does not say so itself.
    pub ignores_failures: bool,
    /// How many hooks answer at a time.
    pub concurrency: usize,
}

impl WebhookSettings {
    pub(super) fn new(given: &OptionSources) -> Result<Self, ConfigError> {
        let text = |flag| given.text(flag).0;
        let name = text("webhook-configuration-name");
        let url =
            given.parse("webhook-url", "an address like https://10.0.0.1:9651, without a path", read_url)?;
        Ok(Self {
            enabled: given.switch("admission-server-enabled")?,
            address: text("admission-server-listen-address"),
            port: given
                .parse("admission-server-listen-port", "a port, 0 to 65535", |text| text.parse().ok())?,
            certificates: certificates(&text),
            client_authorities: list(&text("admission-server-client-ca")),
            service: text("webhook-service-name"),
            url,
            name: if name.is_empty() { format!("addon-operator-{}", text("namespace")) } else { name },
            ignores_failures: given.parse("webhook-failure-policy", "Fail or Ignore", |text| match text {
                "Fail" => Some(false),
                "Ignore" => Some(true),
                _ => None,
            })?,
            concurrency: given.parse("webhook-concurrency", "a number, at least 1", |text| {
                text.parse().ok().filter(|count: &usize| *count > 0)
            })?,
        })
    }
}

/// Returns the files with the certificate. Those that are not named are in the directory, or beside the first that is.
fn certificates(text: &impl Fn(&'static str) -> String) -> Option<CertificateFiles> {
    let given = |flag| Some(PathBuf::from(text(flag))).filter(|path| !path.as_os_str().is_empty());
    let [cert, key, ca] = ["admission-server-cert", "admission-server-key", "admission-server-ca"].map(given);
    let beside = || Some([&cert, &key, &ca].into_iter().flatten().next()?.parent()?.to_owned());
    let directory = given("admission-server-certs-dir").or_else(beside)?;
    let file = |given: Option<PathBuf>, name: &str| given.unwrap_or_else(|| directory.join(name));
    Some(CertificateFiles { cert: file(cert, "tls.crt"), key: file(key, "tls.key"), ca: file(ca, "ca.crt") })
}

fn list(text: &str) -> Vec<PathBuf> {
    text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// Returns the address of a URL; nothing for an empty text.
#[expect(clippy::option_option, reason = "the outer one says whether the text can be read")]
fn read_url(text: &str) -> Option<Option<String>> {
    if text.is_empty() {
        return Some(None);
    }
    let uri: http::Uri = text.parse().ok()?;
    let is_address =
        uri.scheme_str() == Some("https") && uri.host().is_some() && matches!(uri.path(), "" | "/");
    is_address.then(|| Some(text.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn settings(flags: &[(&str, &str)], variables: &[(&str, &str)]) -> WebhookSettings {
        let flags = flags.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let none = Environment::default();
        let environment = variables.iter().fold(none, |known, (name, text)| known.with(name, *text));
        WebhookSettings::new(&OptionSources::new(flags, environment)).unwrap()
    }

    #[test]
    fn the_variables_of_both_servers_of_shell_operator_are_understood() {
        for server in ["VALIDATING", "CONVERSION"] {
            let of = |rest: &str| format!("{server}_WEBHOOK_{rest}");
            let given = [
                ("LISTEN_ADDRESS", "127.0.0.1"),
                ("LISTEN_PORT", "9680"),
                ("SERVICE_NAME", "hooks"),
                ("SERVER_CERT", "/a/tls.crt"),
                ("SERVER_KEY", "/b/tls.key"),
                ("CA", "/c/ca.crt"),
                ("CLIENT_CA", "/d/x.crt,/d/y.crt"),
            ];
            let given = given.map(|(rest, text)| (of(rest), text));
            let given: Vec<(&str, &str)> = given.iter().map(|(name, text)| (name.as_str(), *text)).collect();
            let found = settings(&[], &given);
            assert_eq!(
                (found.address.as_str(), found.port, found.service.as_str()),
                ("127.0.0.1", 9680, "hooks")
            );
            let files = CertificateFiles {
                cert: "/a/tls.crt".into(),
                key: "/b/tls.key".into(),
                ca: "/c/ca.crt".into(),
            };
            assert_eq!(found.certificates, Some(files));
            assert_eq!(found.client_authorities, [PathBuf::from("/d/x.crt"), PathBuf::from("/d/y.crt")]);
        }
        let both = [("CONVERSION_WEBHOOK_LISTEN_PORT", "2"), ("VALIDATING_WEBHOOK_LISTEN_PORT", "1")];
        assert_eq!(settings(&[], &both).port, 1);
        let named = settings(
            &[],
            &[
                ("VALIDATING_WEBHOOK_CONFIGURATION_NAME", "hooks"),
                ("VALIDATING_WEBHOOK_FAILURE_POLICY", "Ignore"),
            ],
        );
        assert_eq!((named.name.as_str(), named.ignores_failures), ("hooks", true));
    }

    #[test]
    fn files_that_are_not_named_are_in_the_directory_or_beside_those_that_are() {
        let files =
            |flags: &[(&str, &str)]| settings(flags, &[]).certificates.map(|it| [it.cert, it.key, it.ca]);
        let paths = |paths: [&str; 3]| Some(paths.map(PathBuf::from));
        assert_eq!(files(&[]), None);
        let directory = ("admission-server-certs-dir", "/certs");
        assert_eq!(files(&[directory]), paths(["/certs/tls.crt", "/certs/tls.key", "/certs/ca.crt"]));
        let key = ("admission-server-key", "/keys/own.pem");
        assert_eq!(files(&[directory, key]), paths(["/certs/tls.crt", "/keys/own.pem", "/certs/ca.crt"]));
        assert_eq!(files(&[key]), paths(["/keys/tls.crt", "/keys/own.pem", "/keys/ca.crt"]));
    }
}
