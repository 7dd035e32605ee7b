//! The options of webhooks with their types.

use std::path::PathBuf;

use super::{ConfigError, OptionSources};

/// How the API server asks hooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether it does.
    pub enabled: bool,
    /// The address where it asks.
    pub address: String,
    /// The port where it asks; 0 for a free one.
    pub port: u16,
    /// The directory with the certificate; `None` for one of our own.
    pub certificates: Option<PathBuf>,
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
        let certificates = text("admission-server-certs-dir");
        let name = text("webhook-configuration-name");
        let url =
            given.parse("webhook-url", "an address like https://10.0.0.1:9651, without a path", read_url)?;
        Ok(Self {
            enabled: given.switch("admission-server-enabled")?,
            address: text("admission-server-listen-address"),
            port: given
                .parse("admission-server-listen-port", "a port, 0 to 65535", |text| text.parse().ok())?,
            certificates: (!certificates.is_empty()).then(|| certificates.into()),
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
