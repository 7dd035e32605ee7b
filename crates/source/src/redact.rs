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

/// From how many characters on a text from a URL can be a secret. Passwords are, however short they are.
const MIN_SECRET: usize = 6;

/// How many characters a shorter text has at least, to be masked where it stands alone.
const MIN_WORD: usize = 3;

/// Knows secrets in all forms in which a message could hold them. It is not printed.
///
/// A user name is no secret, unless it is a token. A short one is part of many words, so it is masked only where it stands
/// alone; a message in which each `a` is masked would tell nothing.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest ones first, so that none is left in part.
    forms: Vec<Form>,
}

/// One form of a secret.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    text: String,
    /// Whether it counts inside of words, too.
    is_anywhere: bool,
}

impl Form {
    /// Reports whether a message has it at `rest`, behind `before`.
    fn begins(&self, before: Option<char>, rest: &str) -> bool {
        // A host is written in small letters, whatever was put into it.
        let Some((found, behind)) = rest.split_at_checked(self.text.len()) else { return false };
        if !found.eq_ignore_ascii_case(&self.text) {
            return false;
        }
        let is_within = |own: Option<char>, other: Option<char>| {
            own.is_some_and(char::is_alphanumeric) && other.is_some_and(char::is_alphanumeric)
        };
        self.is_anywhere
            || !(is_within(self.text.chars().next(), before)
                || is_within(self.text.chars().next_back(), behind.chars().next()))
    }
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
            self.add_forms(&String::from_utf8_lossy(credentials.password()), true);
            self.forms.push(Form { text: credentials.token(), is_anywhere: true });
            self.sort();
        }
        self
    }

    /// Adds what may be a secret, by its length.
    fn add(&mut self, text: &str) {
        let length = text.chars().count();
        if length >= MIN_WORD {
            self.add_forms(text, length >= MIN_SECRET);
        }
    }

    fn add_forms(&mut self, secret: &str, is_anywhere: bool) {
        let escaped = utf8_percent_encode(secret, crate::template::ESCAPED).to_string();
        let all = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let json = serde_json::Value::from(secret).to_string();
        let debug = format!("{secret:?}");
        let quoted = [json, debug].map(|text| text.trim_matches('"').to_owned());
        let plain = [secret.to_owned(), escaped.replace("%20", "+"), escaped.clone(), all.clone()];
        let encoded = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|form| form.encode(secret));
        let texts =
            plain.into_iter().chain([lower_hex(&escaped), lower_hex(&all)]).chain(quoted).chain(encoded);
        self.forms.extend(texts.map(|text| Form { text, is_anywhere }));
    }

    /// Puts the longest forms first, and of two equal ones that which counts anywhere.
    fn sort(&mut self) {
        self.forms.retain(|form| !form.text.is_empty());
        let place = |form: &Form| (std::cmp::Reverse(form.text.len()), !form.is_anywhere);
        self.forms.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.text.cmp(&b.text)));
        self.forms.dedup();
    }

    /// Returns whether a text is one of the values that are masked wherever they stand.
    pub fn is_secret(&self, text: &str) -> bool {
        self.forms.iter().any(|form| form.is_anywhere && form.text.eq_ignore_ascii_case(text))
    }

    /// Returns a message without secrets and without user and password of URLs, at most [`MAX_MESSAGE`] characters long.
    pub fn clean(&self, message: &str) -> String {
        let mut out = String::with_capacity(message.len());
        let (mut before, mut rest) = (None, message);
        while let Some(first) = rest.chars().next() {
            let length = if let Some(form) = self.forms.iter().find(|form| form.begins(before, rest)) {
                out.push_str(MASK);
                form.text.len()
            } else {
                out.push(first);
                first.len_utf8()
            };
            let (done, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
            (before, rest) = (done.chars().next_back(), left);
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
        let redactor = Redactor::new(["abcdef", "abcdefgh", ""]);
        assert_eq!(redactor.clean("abcdefghabcdef xabcdefx"), "****** x***x");
    }

    #[test]
    fn a_short_user_name_garbles_no_message_and_a_short_password_is_masked_always() {
        let redactor = |url: &str| {
            let url = HttpUrl::parse(url, Protocols::default()).unwrap();
            Redactor::default().with_credentials(url.credentials())
        };
        let message = "the server at https://a:xy@repo/joe answered joey, joe and 401";
        let clean = redactor("https://a:secret@repo/").clean(message);
        assert_eq!(clean, "the server at https://***@repo/joe answered joey, joe and 401");
        let clean = redactor("https://joe:xy@repo/").clean(message);
        assert_eq!(clean, "the server at https://***@repo/*** answered joey, *** and 401");
        // A token in the place of a user, and a password of one letter.
        assert_eq!(redactor("https://gh-token@repo/").clean("Xgh-tokenX"), "X***X");
        assert_eq!(redactor("https://joe:x@repo/").clean("axb"), "a***b");
        // What a Secret gives may stand in a path.
        assert_eq!(Redactor::new(["k3y", "eu"]).clean("/eu/k3y/k3ys/k3y"), "/eu/***/k3ys/***");
        // It is both: the password counts.
        assert_eq!(redactor("https://joe:joe@repo/").clean("joey"), "***y");
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
    fn a_secret_is_masked_in_small_and_in_capital_letters() {
        let redactor = Redactor::new(["MixedCasePw", "Eu1"]);
        for message in ["the name mixedcasepw.invalid", "the name MIXEDCASEPW.invalid"] {
            assert_eq!(redactor.clean(message), "the name ***.invalid");
        }
        assert_eq!(redactor.clean("https://eu1.invalid/aeu1"), "https://***.invalid/aeu1");
        assert_eq!(
            (
                redactor.is_secret("mixedcasepw"),
                redactor.is_secret("a-mixedcasepw"),
                redactor.is_secret("eu1")
            ),
            (true, false, false)
        );
    }

    #[test]
    fn a_redactor_is_not_printed() {
        assert!(!format!("{:?}", Redactor::new(["hunter2"])).contains("hunter2"));
    }
}
