//! Floats answered by Go's `strconv` and `encoding/json`.

use golang::json::format_number;
use golang::strconv::format_float;

#[test]
fn floats_are_formatted_as_go_formats_them() {
    let cases: Vec<(String, String, i32, String)> =
        serde_json::from_str(include_str!("data/go_float.json")).unwrap();
    let mut wrong = Vec::new();
    for (text, verb, precision, answer) in cases {
        let number: f64 = text.parse().unwrap();
        let precision = usize::try_from(precision).ok();
        let written = match verb.as_str() {
            "json" => format_number(number).unwrap(),
            verb => format_float(number, verb.parse().unwrap(), precision),
        };
        if written != answer {
            wrong.push(format!("{text} {verb} {precision:?}: {written} instead of {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
