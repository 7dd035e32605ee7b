//! Placeholders in URLs: `{key}` is replaced by the value of a Secret's key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is not escaped in a value: what is never special in any part of a URL.
pub(crate) const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The most characters of a key that a message quotes. A Secret's keys have no more.
const QUOTED: usize = 253;

/// The data of a Secret: bytes by key.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// Why placeholders can't be filled. The texts name keys and no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace that is not closed.
    #[error("the URL has a {{ without a }}: write {{key}}, or %7B for the character itself")]
    Open,
    /// A placeholder, but no Secret.
    #[error(
        "the URL has the placeholder {{{0}}}, and the repository has no secretRef: add one, or remove the placeholder"
    )]
    NoSecret(String),
    /// The Secret has no such keys, each named once, in the order of the URL.
    #[error("the Secret has no {}: add what is missing, or change the placeholders of the URL", keys(.0))]
    NoKeys(Vec<String>),
    /// The value is no text.
    #[error("the Secret's key {0:?} is not text in UTF-8, so it can't be put into the URL")]
    NotText(String),
}

/// Returns the names of keys for a sentence: `key "a"`, or `keys "a", "b"`.
fn keys(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("{} {}", if names.len() == 1 { "key" } else { "keys" }, quoted.join(", "))
}

/// A URL whose placeholders were filled. It can hold secrets, and is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct FilledUrl<'u> {
    /// The URL; the text that was given if it has no placeholder.
    pub url: Cow<'u, str>,
    /// The values that were put in, before escaping.
    pub secrets: Vec<String>,
}

impl fmt::Debug for FilledUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilledUrl").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

/// Reports whether a URL has placeholders, so that its Secret has to be read.
pub fn has_placeholder(url: &str) -> bool {
    url.contains('{')
}

/// Fills the placeholders of a URL from a Secret; `None` says that the repository names none.
///
/// Values are percent-escaped, without the newlines at their end. See the specification of the source's URL in
/// docs/sources.md.
pub fn fill<'u>(url: &'u str, secret: Option<&SecretData>) -> Result<FilledUrl<'u>, TemplateError> {
    if !has_placeholder(url) {
        return Ok(FilledUrl { url: Cow::Borrowed(url), secrets: Vec::new() });
    }
    let (mut out, mut rest, mut secrets, mut missing) = (String::new(), url, Vec::new(), Vec::new());
    while let Some((before, behind)) = rest.split_once('{') {
        let (key, behind) = behind.split_once('}').ok_or(TemplateError::Open)?;
        let quoted = || key.chars().take(QUOTED).collect();
        let secret = secret.ok_or_else(|| TemplateError::NoSecret(quoted()))?;
        rest = behind;
        let Some(value) = secret.get(key) else {
            if !missing.contains(&quoted()) {
                missing.push(quoted());
            }
            continue;
        };
        let value = std::str::from_utf8(value).map_err(|_| TemplateError::NotText(quoted()))?;
        let value = value.trim_end_matches(['\n', '\r']);
        out.push_str(before);
        out.extend(utf8_percent_encode(value, ESCAPED));
        if !secrets.iter().any(|secret| secret == value) {
            secrets.push(value.to_owned());
        }
    }
    if !missing.is_empty() {
        return Err(TemplateError::NoKeys(missing));
    }
    out.push_str(rest);
    Ok(FilledUrl { url: Cow::Owned(out), secrets })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(entries: &[(&str, &[u8])]) -> SecretData {
        entries.iter().map(|(key, value)| ((*key).to_owned(), value.to_vec())).collect()
    }

    #[test]
    fn placeholders_are_filled_and_escaped() {
        let secret =
            secret(&[("user", b"joe\r\n\n"), ("pass", "a b/@:?#+%é{".as_bytes()), ("x.y_z-1", b"-._~")]);
        for (url, filled) in [
            ("https://{user}:{pass}@h/i", "https://joe:a%20b%2F%40%3A%3F%23%2B%25%C3%A9%7B@h/i"),
            ("https://h/{user}/{user}{x.y_z-1}", "https://h/joe/joe-._~"),
            ("https://h/i?token={user}", "https://h/i?token=joe"),
        ] {
            assert_eq!(fill(url, Some(&secret)).unwrap().url, filled, "{url}");
        }
        let filled = fill("{user}{user}{x.y_z-1}", Some(&secret)).unwrap();
        assert_eq!(filled.secrets, ["joe", "-._~"], "each is known once, as it was before it was escaped");
    }

    #[test]
    fn a_url_without_placeholders_is_not_copied_and_needs_no_secret() {
        let filled = fill("https://h/i", None).unwrap();
        assert!(matches!(filled.url, Cow::Borrowed("https://h/i")));
        assert_eq!(filled.secrets, Vec::<String>::new());
    }

    #[test]
    fn what_can_not_be_filled_names_the_key_and_no_value() {
        let secret = secret(&[("user", b"hunter2"), ("bytes", b"hunter2\xff")]);
        for (url, secret, error) in [
            ("https://{user}@h", None, TemplateError::NoSecret("user".to_owned())),
            ("https://{user}:{pass}@h", Some(&secret), TemplateError::NoKeys(vec!["pass".to_owned()])),
            (
                "https://{a}:{user}@{b}/{a}",
                Some(&secret),
                TemplateError::NoKeys(vec!["a".to_owned(), "b".to_owned()]),
            ),
            ("https://{user}:{}@h", Some(&secret), TemplateError::NoKeys(vec![String::new()])),
            ("https://{bytes}@h", Some(&secret), TemplateError::NotText("bytes".to_owned())),
            ("https://{user}:{user@h", Some(&secret), TemplateError::Open),
        ] {
            let found = fill(url, secret).unwrap_err();
            assert_eq!(found, error);
            assert!(!found.to_string().contains("hunter2"), "{found}");
        }
    }

    #[test]
    fn what_was_filled_is_not_printed() {
        let secret = secret(&[("user", b"hunter2")]);
        let filled = fill("https://{user}@h", Some(&secret)).unwrap();
        assert!(!format!("{filled:?}").contains("hunter2"));
    }
}
