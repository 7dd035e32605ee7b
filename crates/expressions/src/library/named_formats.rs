//! Formats of texts that have names: `format.dns1123Label().validate(self)`.

use base64::Engine as _;
use objects::names;

use super::called::Called;
use crate::times;
use crate::value::{Opaque, Value};

/// The formats, and how long the expressions of regular languages are that a real server uses for them, for costs.
const FORMATS: [(&str, u64); 13] = [
    ("dns1123Label", 30),
    ("dns1123Subdomain", 60),
    ("dns1035Label", 30),
    ("qualifiedName", 60),
    ("dns1123LabelPrefix", 30),
    ("dns1123SubdomainPrefix", 60),
    ("dns1035LabelPrefix", 30),
    ("labelValue", 40),
    ("uri", 1_103),
    ("uuid", 71),
    ("byte", 84),
    ("date", 71),
    ("datetime", 71),
];

/// Returns how long the expression behind a format is, for costs.
pub(crate) fn length(name: &str) -> u64 {
    FORMATS.iter().find(|(format, _)| *format == name).map_or(1, |(_, length)| *length)
}

fn find(name: &str) -> Option<Value> {
    let found = FORMATS.iter().find(|(format, _)| *format == name);
    found.map(|(name, _)| Value::Opaque(Opaque::Format(name)))
}

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    match (function, values) {
        ("format.named", [Value::String(name)]) => {
            Some(Ok(find(name).map_or(Value::Optional(None), Value::some)))
        }
        ("validate", [Value::Opaque(Opaque::Format(name)), Value::String(text)]) => {
            let problems = problems(name, text);
            Some(Ok(if problems.is_empty() {
                Value::Optional(None)
            } else {
                Value::some(Value::list(problems.into_iter().map(Value::text).collect()))
            }))
        }
        (function, []) => find(function.strip_prefix("format.")?).map(Ok),
        _ => None,
    }
}

fn problems(name: &str, text: &str) -> Vec<String> {
    // A prefix may end with a dash: something follows it.
    let masked = || text.strip_suffix('-').map_or_else(|| text.to_owned(), |start| format!("{start}a"));
    let told = |holds: bool, problem: &str| if holds { Vec::new() } else { vec![problem.to_owned()] };
    match name {
        "dns1123Label" => names::label(text),
        "dns1123LabelPrefix" => names::label(&masked()),
        "dns1123Subdomain" => names::subdomain(text),
        "dns1123SubdomainPrefix" => names::subdomain(&masked()),
        "dns1035Label" => names::dns_1035(text),
        "dns1035LabelPrefix" => names::dns_1035(&masked()),
        "qualifiedName" => names::qualified(text),
        "labelValue" => names::label_value(text),
        "uri" => crate::address::request_problem(text).into_iter().collect(),
        "uuid" => told(is_uuid(text), "does not match the UUID format"),
        "byte" => {
            let read = base64::engine::general_purpose::STANDARD.decode(text);
            told(read.is_ok() && !text.is_empty(), "invalid base64")
        }
        "date" => told(times::parse_date(text).is_some(), "invalid date"),
        "datetime" => told(times::parse_timestamp(&text.to_uppercase()).is_some(), "invalid datetime"),
        _ => Vec::new(),
    }
}

fn is_uuid(text: &str) -> bool {
    let plain: String = text.chars().filter(|character| *character != '-').collect();
    let has_dashes = [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    plain.len() == 32
        && plain.chars().all(|digit| digit.is_ascii_hexdigit())
        && (text.len() == 32 || (text.len() == 36 && has_dashes))
}
