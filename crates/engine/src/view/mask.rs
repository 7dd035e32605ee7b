//! Failures as they may be shown to everybody.

use redaction::Secrets;
use serde_json::Value;

use crate::failure::Failure;

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
    fn of_many_lines_the_first_and_the_last_are_shown() {
        assert_eq!(masked(&failure("exit status 1\n\n a\n b\n last\n"), &[]), "exit status 1 … last");
    }
}
