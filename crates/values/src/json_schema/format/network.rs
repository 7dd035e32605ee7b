//! Addresses and names in networks.

use golang::url::{Url, address_problem};

use super::text::{failed, quoted};

pub(super) fn ipv4(text: &str) -> Result<(), String> {
    if text.split('.').count() != 4 {
        return failed("expected four decimals");
    }
    for group in text.split('.') {
        if group.len() > 1 && group.starts_with('0') {
            return failed("leading zeros");
        }
        if !(0..=255).contains(&golang::strconv::atoi(group)?) {
            return failed("decimal must be between 0 and 255");
        }
    }
    Ok(())
}

pub(super) fn ipv6(text: &str) -> Result<(), String> {
    if !text.contains(':') {
        return failed("missing colon");
    }
    if let Some(problem) = address_problem(text) {
        return Err(problem);
    }
    if text.contains('%') {
        return failed("zone id is not a part of ipv6 address");
    }
    Ok(())
}

pub(super) fn hostname(text: &str) -> Result<(), String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > 253 {
        return failed("more than 253 characters long");
    }
    for label in text.split('.') {
        if label.is_empty() || label.len() > 63 {
            return failed("label must be 1 to 63 characters long");
        }
        if label.starts_with('-') {
            return failed("label starts with hyphen");
        }
        if label.ends_with('-') {
            return failed("label ends with hyphen");
        }
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-';
        if let Some(other) = label.chars().find(|character| !is_allowed(*character)) {
            return Err(format!("invalid character {}", quoted(other)));
        }
    }
    Ok(())
}

pub(super) fn email(text: &str) -> Result<(), String> {
    if text.len() > 254 {
        return failed("more than 255 characters long");
    }
    let Some((local, domain)) = text.rsplit_once('@') else { return failed("missing @") };
    if local.len() > 64 {
        return failed("local part more than 64 characters long");
    }
    email_local(local)?;
    let in_brackets = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = in_brackets {
        return match address.strip_prefix("IPv6:") {
            Some(address) => ipv6(address).map_err(|why| format!("invalid ipv6 address: {why}")),
            None => ipv4(address).map_err(|why| format!("invalid ipv4 address: {why}")),
        };
    }
    hostname(domain).map_err(|why| format!("invalid domain: {why}"))
}

fn email_local(local: &str) -> Result<(), String> {
    if local.len() > 1 && local.starts_with('"') {
        // What ends it is not looked at, whatever it is.
        let inner: &[u8] = local.as_bytes().get(1..local.len() - 1).unwrap_or_default();
        return if inner.iter().any(|byte| matches!(byte, b'\\' | b'"')) {
            failed("backslash and quote are not allowed within quoted local part")
        } else {
            Ok(())
        };
    }
    if local.starts_with('.') {
        return failed("starts with dot");
    }
    if local.ends_with('.') {
        return failed("ends with dot");
    }
    if local.contains("..") {
        return failed("consecutive dots");
    }
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(character);
    match local.chars().find(|character| !is_allowed(*character)) {
        Some(other) => Err(format!("invalid character {}", quoted(other))),
        None => Ok(()),
    }
}

pub(super) fn uri(text: &str) -> Result<(), String> {
    if url(text)?.scheme.is_empty() { failed("relative url") } else { Ok(()) }
}

pub(super) fn uri_reference(text: &str) -> Result<(), String> {
    if text.contains('\\') {
        return failed("contains \\");
    }
    url(text).map(|_| ())
}

pub(super) fn uri_template(text: &str) -> Result<(), String> {
    let url = url(text)?;
    if !url.opaque.is_empty() {
        return Ok(());
    }
    for part in url.raw_path(text).split('/') {
        let part = golang::url::path_unescape(part).map_err(|why| format!("percent decode failed: {why}"))?;
        let mut is_open = false;
        for brace in part.chars().filter(|character| matches!(character, '{' | '}')) {
            if (brace == '{') == is_open {
                return failed("nested curly braces");
            }
            is_open = !is_open;
        }
        if is_open {
            return failed("no matching closing brace");
        }
    }
    Ok(())
}

fn url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let host = url.hostname();
    if host.contains(':') {
        if !url.host.contains('[') || !url.host.contains(']') {
            return failed("ipv6 address not enclosed in brackets");
        }
        ipv6(host).map_err(|why| format!("invalid ipv6 address: {why}"))?;
    }
    Ok(url)
}
