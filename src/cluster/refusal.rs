//! What an API server says when it refuses, without the values that it quotes.
//!
//! A refusal can hold the whole object as it would have been, with the data of a Secret that nobody told the operator of,
//! so that no mask knows it. The path of the field and the reason are enough to find out what is wrong.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// How many characters of a quoted text are shown. Names, and values that are not what was expected, are shorter.
const LONGEST_QUOTED: usize = 128;

/// What stands where a value was.
const LEFT_OUT: &str = "…";

/// What stands before the surroundings of an error in JSON.
const SURROUNDINGS: &str = ", error found in #";

/// Texts in double quotes with Go's escapes, objects in single quotes, and what Go prints of a value.
static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = [
        r#"(?<before>(?:Invalid|Unsupported|Duplicate) value: )?"(?<text>(?:[^"\\]|\\.)*)""#,
        r"(?s)'[{\[].*[}\]]'",
        r"(?s)\bgot &?[\w.\[\]*]*[{\[].*",
    ];
    Regex::new(&parts.join("|")).ok()
});

/// Returns what an API server said, with `…` where it quotes a value that may be of a Secret, or that is long.
pub(super) fn without_values(message: &str) -> Cow<'_, str> {
    let Some(quoted) = QUOTED.as_ref() else { return Cow::Borrowed(LEFT_OUT) };
    let message = message.split_once(SURROUNDINGS).map_or(message, |(before, _)| before);
    let is_of_secret = message.trim_start().starts_with("Secret ");
    quoted.replace_all(message, |found: &Captures<'_>| {
        let Some(text) = found.name("text").map(|text| text.as_str()) else {
            let whole = &found[0];
            let before = if whole.starts_with("got ") { "got " } else { "" };
            return format!("{before}{LEFT_OUT}");
        };
        let before = found.name("before").map_or("", |before| before.as_str());
        let is_value = is_of_secret && !before.is_empty();
        let is_object = text.starts_with(['{', '[']);
        if is_value || is_object || text.chars().count() > LONGEST_QUOTED {
            return format!("{before}{LEFT_OUT}");
        }
        found[0].to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_03_what_an_api_server_quotes_of_a_secret_is_left_out() {
        let cases = [
            (
                r#" "" is invalid: patch: Invalid value: "{\"data\":{\"password\":\"UHIw\"},\"kind\":\"Secret\"}": json: cannot unmarshal number"#,
                r#" "" is invalid: patch: Invalid value: …: json: cannot unmarshal number"#,
            ),
            (
                r#"Secret "prod" is invalid: type: Invalid value: "UHIw": field is immutable"#,
                r#"Secret "prod" is invalid: type: Invalid value: …: field is immutable"#,
            ),
            (
                r#"failed to create typed patch object (ns/prod; /v1, Kind=Secret): .data.x: expected string, got &value.valueUnstructured{Value:"UHIw"}"#,
                "failed to create typed patch object (ns/prod; /v1, Kind=Secret): .data.x: expected string, got …",
            ),
            (
                r#"Object 'Kind' is missing in '{"data":{"password":"UHIw"}}'"#,
                "Object 'Kind' is missing in …",
            ),
            (
                r#"v1.Secret.StringData: ReadString: expects " or n, but found 5, error found in #10 byte of ...|"count":5}|..., bigger context ...|{"data":{"p":"UHIw"}}|..."#,
                r#"v1.Secret.StringData: ReadString: expects " or n, but found 5"#,
            ),
        ];
        for (said, shown) in cases {
            assert_eq!(without_values(said), shown);
        }
    }

    #[test]
    fn what_helps_is_shown_as_it_was_said() {
        for said in [
            r#"configmaps "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "configmaps""#,
            r#"Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
            r#"ConfigMap "x" is invalid: metadata.labels: Invalid value: "a b": a valid label must be an empty string"#,
            r#"strict decoding error: unknown field "spec.replica""#,
            "",
        ] {
            assert_eq!(without_values(said), said);
        }
        let long = format!("x: Invalid value: \"{}\": too long", "a".repeat(LONGEST_QUOTED + 1));
        assert_eq!(without_values(&long), "x: Invalid value: …: too long");
    }
}
