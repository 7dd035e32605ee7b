//! Formats of texts.

mod names;
mod network;
mod pointer;
mod text;
mod times;

/// A format that is checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    name: &'static str,
    check: fn(&str) -> Result<(), String>,
}

const FORMATS: &[Format] = &[
    Format { name: "json-pointer", check: pointer::absolute },
    Format { name: "relative-json-pointer", check: pointer::relative },
    Format { name: "uuid", check: names::uuid },
    Format { name: "semver", check: names::semver },
    Format { name: "regex", check: names::regex },
    Format { name: "duration", check: times::duration },
    Format { name: "period", check: times::period },
    Format { name: "date", check: times::date },
    Format { name: "time", check: times::time },
    Format { name: "date-time", check: times::date_time },
    Format { name: "ipv4", check: network::ipv4 },
    Format { name: "ipv6", check: network::ipv6 },
    Format { name: "hostname", check: network::hostname },
    Format { name: "email", check: network::email },
    Format { name: "uri", check: network::uri },
    Format { name: "iri", check: network::uri },
    Format { name: "uri-reference", check: network::uri_reference },
    Format { name: "iri-reference", check: network::uri_reference },
    Format { name: "uri-template", check: network::uri_template },
];

impl Format {
    /// Returns the format of a name; others are not checked.
    pub(super) fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|format| format.name == name).copied()
    }

    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// Returns why `text` is not of this format.
    pub(super) fn problem(self, text: &str) -> Option<String> {
        (self.check)(text).err()
    }
}
