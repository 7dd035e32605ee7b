//! Failures as they may be shown to everybody.

use serde_json::Value;

use crate::failure::Failure;

/// Shorter texts are not masked: they are words like `true` and `prod` that tell nothing and occur everywhere.
const SHORTEST: usize = 6;

/// What stands for a masked text.
const MASK: &str = "******";

/// Returns `failure` as one line that quotes none of the string values in `values`.
///
/// That is what the port without authentication may show: the message and its last line, with every
/// string value of the module that is long enough to be a secret masked.
pub fn masked(failure: &Failure, values: &[&Value]) -> String {
    masked_text(&failure.to_string(), values)
}

/// Returns `text` as [`masked`] returns a failure.
pub fn masked_text(text: &str, values: &[&Value]) -> String {
    let mut secrets = Vec::new();
    for value in values {
        collect(value, &mut secrets);
    }
    // The longest first, so that a value that is part of another leaves no rest.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    let mut text = text.to_owned();
    for secret in secrets {
        if text.contains(secret) {
            text = text.replace(secret, MASK);
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => (*line).to_owned(),
        [first, .., last] => format!("{first} … {last}"),
    }
}

fn collect<'v>(value: &'v Value, secrets: &mut Vec<&'v str>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if text.chars().count() >= SHORTEST {
                secrets.push(text);
            }
            // A text of several lines is quoted line by line.
            secrets.extend(text.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST));
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
    fn of_many_lines_the_first_and_the_last_are_shown() {
        assert_eq!(masked(&failure("exit status 1\n\n a\n b\n last\n"), &[]), "exit status 1 … last");
    }
}
