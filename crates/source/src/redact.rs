//! Takes secrets out of messages.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::url::Credentials;

/// What stands in the place of a secret.
const MASK: &str = "***";

/// The most characters of a message: a status holds many of them.
pub const MAX_MESSAGE: usize = 1024;

/// Knows secrets in all forms in which a message could hold them. It is not printed.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest ones first, so that none is left in part.
    forms: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("forms", &self.forms.len()).finish()
    }
}

impl Redactor {
    /// Returns a redactor that knows the values that were put into a URL.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut redactor = Self::default();
        secrets.into_iter().for_each(|secret| redactor.add(secret));
        redactor.sort();
        redactor
    }

    /// Returns a redactor that also knows user and password of a URL.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Option<&Credentials>) -> Self {
        if let Some(credentials) = credentials {
            self.add(&String::from_utf8_lossy(credentials.user()));
            self.add(&String::from_utf8_lossy(credentials.password()));
            self.forms.push(credentials.token());
            self.sort();
        }
        self
    }

    fn add(&mut self, secret: &str) {
        let escaped = utf8_percent_encode(secret, crate::template::ESCAPED).to_string();
        let all = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let json = serde_json::Value::from(secret).to_string();
        let debug = format!("{secret:?}");
        let quoted = [json, debug].map(|text| text.trim_matches('"').to_owned());
        self.forms.extend([secret.to_owned(), escaped.replace("%20", "+"), escaped.clone(), all.clone()]);
        self.forms.extend([lower_hex(&escaped), lower_hex(&all)]);
        self.forms.extend(quoted);
        self.forms
            .extend([STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|form| form.encode(secret)));
    }

    fn sort(&mut self) {
        self.forms.retain(|form| !form.is_empty());
        self.forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.forms.dedup();
    }

    /// Returns a message without secrets and without user and password of URLs, at most [`MAX_MESSAGE`] characters long.
    pub fn clean(&self, message: &str) -> String {
        let mut out = String::with_capacity(message.len());
        let mut rest = message;
        while let Some(first) = rest.chars().next() {
            if let Some(form) = self.forms.iter().find(|form| rest.starts_with(form.as_str())) {
                out.push_str(MASK);
                rest = rest.get(form.len()..).unwrap_or_default();
            } else {
                out.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
        shortened(without_userinfo(&out))
    }
}

/// Writes the digits of escapes in small letters.
fn lower_hex(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        out.push('%');
        out.push_str(&hex.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

/// Masks what stands between `://` and `@`.
fn without_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = behind.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(behind.len());
        let authority = behind.get(..end).unwrap_or_default();
        rest = match authority.rfind('@') {
            Some(at) => {
                out.push_str(MASK);
                behind.get(at..).unwrap_or_default()
            }
            None => behind,
        };
    }
    out.push_str(rest);
    out
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some(_) => text.chars().take(MAX_MESSAGE - 1).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::{HttpUrl, Protocols};

    #[test]
    fn secrets_are_masked_in_every_form() {
        let secret = "p w/\"ß+1";
        let redactor = Redactor::new([secret]);
        for message in [
            secret.to_owned(),
            "p%20w%2F%22%C3%9F%2B1".to_owned(),
            "p%20w%2f%22%c3%9f%2b1".to_owned(),
            "p+w%2F%22%C3%9F%2B1".to_owned(),
            r#"p w/\"ß+1"#.to_owned(),
            STANDARD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
        ] {
            assert_eq!(redactor.clean(&format!("a {message}, b")), "a ***, b", "{message}");
        }
    }

    #[test]
    fn a_secret_that_begins_like_another_is_masked_as_a_whole() {
        let redactor = Redactor::new(["ab", "abcd", ""]);
        assert_eq!(redactor.clean("abcdab xabx"), "****** x***x");
    }

    #[test]
    fn user_and_password_of_urls_are_masked() {
        let redactor = Redactor::default();
        for (message, clean) in [
            ("GET https://joe:pw@h/a@b: 404", "GET https://***@h/a@b: 404"),
            ("https://h/a and git::https://x@y@h//p?q=1", "https://h/a and git::https://***@h//p?q=1"),
            ("mail joe@h", "mail joe@h"),
            ("://@", "://***@"),
        ] {
            assert_eq!(redactor.clean(message), clean);
        }
        let url = HttpUrl::parse("https://joe:s%3Acret@h/", Protocols::default()).unwrap();
        let redactor = redactor.with_credentials(url.credentials());
        let header = url.credentials().unwrap().authorization();
        assert_eq!(redactor.clean(&format!("{header} s:cret s%3Acret joe")), "Basic *** *** *** ***");
    }

    #[test]
    fn a_long_message_is_cut_after_it_was_cleaned() {
        let redactor = Redactor::new(["secret"]);
        let message = format!("{}secret{}", "ß".repeat(MAX_MESSAGE - 5), "x".repeat(5000));
        let clean = redactor.clean(&message);
        assert_eq!(clean.chars().count(), MAX_MESSAGE);
        assert!(clean.ends_with("***x…"), "{clean}");
    }

    #[test]
    fn a_redactor_is_not_printed() {
        assert!(!format!("{:?}", Redactor::new(["hunter2"])).contains("hunter2"));
    }
}
