//! Taking URLs apart.

use super::address::address_problem;
use super::error::{UrlError, UrlErrorKind, quoted};
use super::escape::{Mode, unescaped};
use super::parts::{Url, UserInfo, is_port};

impl Url {
    /// Takes a URL apart.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let failed = |url: &str| {
            let url = quoted(url);
            move |kind| UrlError { url, kind }
        };
        let mut url = parse(before).map_err(failed(before))?;
        url.fragment = unescaped(fragment, Mode::Fragment).map_err(failed(text))?;
        Ok(url)
    }
}

fn parse(text: &str) -> Result<Url, UrlErrorKind> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err(UrlErrorKind::Control);
    }
    let mut url = Url::default();
    if text == "*" {
        "*".clone_into(&mut url.path);
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    match rest.strip_suffix('?') {
        Some(before) if !before.contains('?') => {
            url.force_query = true;
            rest = before;
        }
        Some(_) | None => {
            let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
            query.clone_into(&mut url.query);
            rest = before;
        }
    }
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err(UrlErrorKind::Colon);
        }
    }
    let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///"));
    if let Some(authority) = authority {
        let end = authority.find('/').unwrap_or(authority.len());
        let (authority, path) = authority.split_at_checked(end).unwrap_or((authority, ""));
        parse_authority(&mut url, authority)?;
        rest = path;
    } else if !scheme.is_empty() && rest.starts_with('/') {
        url.omit_host = true;
    }
    url.path = unescaped(rest, Mode::Path)?;
    Ok(url)
}

/// Splits off what stands before the first colon, if it can be a scheme.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlErrorKind> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err(UrlErrorKind::MissingScheme),
            b':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(url: &mut Url, authority: &str) -> Result<(), UrlErrorKind> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = parse_host(host)?;
    let Some(user) = user else {
        return Ok(());
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_allowed) {
        return Err(UrlErrorKind::UserInfo);
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user, None),
    };
    url.user = Some(UserInfo {
        name: unescaped(name, Mode::User)?,
        password: password.map(|password| unescaped(password, Mode::User)).transpose()?,
    });
    Ok(())
}

fn parse_host(host: &str) -> Result<String, UrlErrorKind> {
    if host.rfind('[').is_some_and(|bracket| bracket > 0) {
        return Err(UrlErrorKind::Literal);
    }
    if host.starts_with('[') {
        let end = host.rfind(']').ok_or(UrlErrorKind::MissingBracket)?;
        let (address, port) = host.split_at_checked(end).unwrap_or((host, ""));
        let port = port.strip_prefix(']').unwrap_or(port);
        if !is_port(port) {
            return Err(UrlErrorKind::Port(port.to_owned()));
        }
        let address = address.strip_prefix('[').unwrap_or(address);
        // A zone may hold what a host may not.
        let zone = address.find("%25").unwrap_or(address.len());
        let (address, zone) = address.split_at_checked(zone).unwrap_or((address, ""));
        let address = unescaped(address, Mode::Host)?;
        let zone = unescaped(zone, Mode::Zone)?;
        let port = unescaped(port, Mode::Host)?;
        let whole = format!("{address}{zone}");
        if let Some(problem) = address_problem(&whole) {
            return Err(UrlErrorKind::Address(problem));
        }
        return if address.contains(':') {
            Ok(format!("[{whole}]{port}"))
        } else {
            Err(UrlErrorKind::Literal)
        };
    } else if let Some(colon) = host.rfind(':') {
        let port = host.get(colon..).unwrap_or_default();
        if !is_port(port) {
            return Err(UrlErrorKind::Port(port.to_owned()));
        }
    }
    unescaped(host, Mode::Host)
}
