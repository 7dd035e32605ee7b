//! The options of the broker with their types.

use super::{ConfigError, OptionSources};

/// How platforms ask the broker.
#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// Where it listens; `None` for no broker.
    pub address: Option<String>,
    /// The Secret with the user name and the password of platforms.
    pub secret: String,
    /// The address under which platforms reach it.
    pub url: String,
}

impl BrokerSettings {
    pub(super) fn new(given: &OptionSources) -> Result<Self, ConfigError> {
        let text = |flag| given.text(flag).0;
        let expected = "an address like 0.0.0.0:8081 or :8081";
        let address = given.parse("osb-listen", expected, |text| match text.rsplit_once(':') {
            None if text.is_empty() => Some(None),
            None => None,
            Some((_, port)) => port.parse::<u16>().ok().map(|_| Some(text.to_owned())),
        })?;
        let expected = "an address like http://broker.example.com, without a path";
        let url = given.parse("osb-url", expected, |text| {
            let uri: Option<http::Uri> = (!text.is_empty()).then(|| text.parse().ok()).flatten();
            let is_address = uri.is_some_and(|uri| {
                matches!(uri.scheme_str(), Some("http" | "https")) && matches!(uri.path(), "" | "/")
            });
            (text.is_empty() || is_address).then(|| text.to_owned())
        })?;
        let namespace = text("namespace");
        let service = || format!("http://addon-operator-broker.{namespace}.svc.cluster.local");
        let url = if url.is_empty() { service() } else { url };
        Ok(Self { address, secret: text("osb-secret"), url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn settings(flags: &[(&str, &str)]) -> Result<BrokerSettings, String> {
        let flags = flags.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let given = OptionSources::new(flags, Environment::default());
        BrokerSettings::new(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn the_broker_is_off_unless_it_has_an_address() {
        let off = settings(&[("namespace", "ops")]).unwrap();
        let url = "http://addon-operator-broker.ops.svc.cluster.local";
        assert_eq!(
            (off.address, off.secret.as_str(), off.url.as_str()),
            (None, "addon-operator-broker", url)
        );
        for address in [":8081", "127.0.0.1:0", "[::1]:80"] {
            let on = settings(&[("osb-listen", address), ("osb-url", "https://b.example.com")]).unwrap();
            assert_eq!((on.address.as_deref(), on.url.as_str()), (Some(address), "https://b.example.com"));
        }
    }

    #[test]
    fn what_is_no_address_is_named() {
        for (flag, text) in [
            ("osb-listen", "8081"),
            ("osb-listen", "host:http"),
            ("osb-url", "b.example.com"),
            ("osb-url", "http://b/x"),
        ] {
            let problem = settings(&[(flag, text)]).unwrap_err();
            assert!(problem.contains(flag) && problem.contains("an address like"), "{problem}");
        }
    }
}
