//! URLs.

use golang::url::{Url, path_escape};

/// A URL, and the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// The parts of the URL.
    pub(crate) url: Url,
    raw_path: String,
}

/// Reads a URL that a request can be sent to.
pub(crate) fn read(text: &str) -> Result<Address, String> {
    if let Some(problem) = request_problem(text) {
        return Err(problem);
    }
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let raw_path = url.raw_path(text).to_owned();
    Ok(Address { url, raw_path })
}

/// Returns why no request can be sent to a URL: it has to be absolute, or a path from the root on.
pub(crate) fn request_problem(text: &str) -> Option<String> {
    let quoted = golang::strconv::quote(text.as_bytes());
    if text.is_empty() {
        return Some(format!("parse {quoted}: empty url"));
    }
    match Url::parse(text) {
        Err(error) => Some(error.to_string()),
        Ok(url) if url.scheme.is_empty() && !text.starts_with('/') => {
            Some(format!("parse {quoted}: invalid URI for request"))
        }
        Ok(url) if !url.scheme.is_empty() && !url.opaque.is_empty() => {
            Some(format!("parse {quoted}: invalid URI for request"))
        }
        Ok(_) => None,
    }
}

/// Returns the port of a host; empty if it has none.
pub(crate) fn port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((_, port)) if port.chars().all(|digit| digit.is_ascii_digit()) => port,
        _ => "",
    }
}

/// Returns the path as it was written.
pub(crate) fn escaped_path(address: &Address) -> String {
    if !address.raw_path.is_empty() {
        return address.raw_path.clone();
    }
    let parts: Vec<String> = address.url.path.split('/').map(path_escape).collect();
    parts.join("/")
}
