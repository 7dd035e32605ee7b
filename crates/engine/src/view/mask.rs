//! Failures as they may be shown to everybody.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::failure::Failure;

/// Shorter texts are not masked: they are words like `true` and `prod` that tell nothing and occur everywhere.
const SHORTEST: usize = 6;

/// What stands for a masked text.
const MASK: &str = "******";

/// The string values of some sections that are long enough to be secrets, the longest first.
#[derive(Clone, Default)]
pub struct Secrets<'v>(Vec<Cow<'v, str>>);

impl<'v> Secrets<'v> {
    /// Returns the string values in `values`, as they are and as JSON writes them.
    pub fn of(values: &[&'v Value]) -> Self {
        let mut secrets = Vec::new();
        for value in values {
            collect(value, &mut secrets);
        }
        // The longest first, so that a value that is part of another leaves no rest.
        secrets.sort_by(|a: &Cow<'_, str>, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(secrets)
    }

    /// Returns the same texts, which depend on no section any more.
    pub fn into_owned(self) -> Secrets<'static> {
        Secrets(self.0.into_iter().map(|secret| Cow::Owned(secret.into_owned())).collect())
    }

    /// Returns `text` with each of the texts masked.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        for secret in &self.0 {
            if shown.contains(&**secret) {
                shown = Cow::Owned(shown.replace(&**secret, MASK));
            }
        }
        shown
    }

    /// Returns a failure that quotes none of the texts.
    pub fn hide_in(&self, failure: &Failure) -> Failure {
        let hidden = |text: &String| self.hide(text).into_owned();
        Failure {
            kind: failure.kind,
            message: hidden(&failure.message),
            chain: failure.chain.iter().map(hidden).collect(),
            advice: failure.advice.as_ref().map(hidden),
        }
    }
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// Returns `failure` as one line that quotes none of the string values in `values`.
///
/// That is what the port without authentication may show: the message and its last line, with every
/// string value of the module that is long enough to be a secret masked.
pub fn masked(failure: &Failure, values: &[&Value]) -> String {
    masked_text(&failure.to_string(), values)
}

/// Returns `text` as [`masked`] returns a failure.
pub fn masked_text(text: &str, values: &[&Value]) -> String {
    ends(&Secrets::of(values).hide(text))
}

/// Returns the first and the last line of a text as one.
pub fn ends(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => (*line).to_owned(),
        [first, .., last] => format!("{first} … {last}"),
    }
}

fn collect<'v>(value: &'v Value, secrets: &mut Vec<Cow<'v, str>>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            // A text of several lines is quoted line by line.
            for part in std::iter::once(text.as_str()).chain(text.lines().map(str::trim)) {
                if part.chars().count() < SHORTEST {
                    continue;
                }
                secrets.push(Cow::Borrowed(part));
                if part.contains(['"', '\\']) {
                    let escaped = Value::from(part).to_string();
                    secrets.push(Cow::Owned(escaped.trim_matches('"').to_owned()));
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Object(map) => map.values().for_each(|item| collect(item, secrets)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::FailureKind;

    fn failure(message: &str) -> Failure {
        Failure::new(FailureKind::HookExit, message)
    }

    #[test]
    fn f_e7_string_values_of_a_module_are_masked() {
        let values = json!({"password": "hunter22", "deep": [{"key": "line one\nsecret line two"}], "short": "abc", "n": 123_456});
        for (text, shown) in [
            ("login hunter22 failed", "login ****** failed"),
            ("+ echo hunter22x\nsecret line two", "+ echo ******x … ******"),
            ("abc and 123456 stay", "abc and 123456 stay"),
            ("", ""),
        ] {
            assert_eq!(masked(&failure(text), &[&values]), shown);
        }
    }

    #[test]
    fn a_value_that_is_part_of_another_leaves_no_rest() {
        let values = json!(["secret", "secret-and-more"]);
        assert_eq!(masked(&failure("x secret-and-more y"), &[&values]), "x ****** y");
    }

    #[test]
    fn a_log_keeps_its_lines_and_json_its_form() {
        let values = json!({"key": "line one\nsecret line two", "quoted": "say \"hunter22\" twice"});
        let secrets = Secrets::of(&[&values]);
        assert_eq!(secrets.hide("a\n  line one\n  secret line two\nb"), "a\n  ******\n  ******\nb");
        assert_eq!(secrets.hide(&json!({"k": "say \"hunter22\" twice"}).to_string()), r#"{"k":"******"}"#);
        assert_eq!(secrets.hide("nothing"), "nothing");
        assert_eq!(format!("{:?}", secrets.into_owned()), "Secrets(5)");
    }

    #[test]
    fn of_many_lines_the_first_and_the_last_are_shown() {
        assert_eq!(masked(&failure("exit status 1\n\n a\n b\n last\n"), &[]), "exit status 1 … last");
    }
}
