//! Functions of URLs.

use std::collections::BTreeMap;
use std::sync::Arc;

use golang::url::path_unescape;

use super::called::Called;
use crate::address::{escaped_path, port, read};
use crate::failure::Failure;
use crate::value::{Key, Opaque, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    Some(match (function, values) {
        ("url", [Value::String(text)]) => match read(text) {
            Ok(address) => Ok(Value::Opaque(Opaque::Url(Arc::new(address)))),
            Err(problem) => {
                Err(Failure::other(format!("URL parse error during conversion from string: {problem}")))
            }
        },
        ("isURL", [Value::String(text)]) => Ok(Value::Bool(read(text).is_ok())),
        (_, [Value::Opaque(Opaque::Url(address))]) => {
            let url = &address.url;
            Ok(match function {
                "getScheme" => Value::text(url.scheme.as_str()),
                "getHost" => Value::text(url.host.as_str()),
                "getHostname" => Value::text(url.hostname()),
                "getPort" => Value::text(port(&url.host)),
                "getEscapedPath" => Value::text(escaped_path(address)),
                "getQuery" => query(&url.query),
                _ => return None,
            })
        }
        _ => return None,
    })
}

fn query(text: &str) -> Value {
    let mut found: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let plain = |text: &str| path_unescape(&text.replace('+', " "));
        if let (Ok(key), Ok(value)) = (plain(key), plain(value)) {
            found.entry(Key::text(&key)).or_default().push(Value::text(value));
        }
    }
    Value::map(found.into_iter().map(|(key, values)| (key, Value::list(values))))
}
