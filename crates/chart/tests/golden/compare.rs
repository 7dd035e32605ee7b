//! Comparing what was printed with what Helm printed.

use std::collections::BTreeSet;
use std::path::Path;

use chart::load::Tree;
use chart::render_cache::Cache;
use serde_json::Value;

use super::case::{self, Case, Outcome};
use super::findings::canonical;

/// What stands before a snippet in its file, and before its output.
const SNIPPET: &str = "v: |-\n  ";
const SNIPPET_OUTPUT: &str = "---\n# Source: snippets/templates/t.yaml\nv: |-\n  ";

/// Returns how the case in `directory` differs, if it does.
pub(crate) fn directory(directory: &Path) -> Option<String> {
    let case = Case::read(directory);
    let tree = case::tree(&directory.join("chart"));
    let mut cache = Cache::default();
    // What is known from an earlier render must change nothing.
    let first = once(directory, &case, &tree, &mut cache);
    let again =
        || once(directory, &case, &tree, &mut cache).map(|text| format!("in the second render: {text}"));
    first.or_else(again).or_else(|| {
        let mut cache = case::parsed_ahead(&tree);
        once(directory, &case, &tree, &mut cache).map(|text| format!("parsed ahead: {text}"))
    })
}

/// Returns how one render of a case differs, if it does.
fn once(directory: &Path, case: &Case, tree: &Tree, cache: &mut Cache) -> Option<String> {
    let (outcome, warnings) = case.run(directory, tree, cache);
    if let Ok(expected) = std::fs::read_to_string(directory.join("expected_stderr.txt")) {
        // The order of Helm's warnings and how often it repeats them vary.
        let told: BTreeSet<&str> = warnings.iter().map(String::as_str).collect();
        let expected: BTreeSet<&str> = expected.lines().filter(|line| !line.is_empty()).collect();
        if told != expected {
            return Some(format!("warnings:\n  expected {expected:?}\n  got      {told:?}"));
        }
    }
    match outcome {
        Outcome::Text(text) => {
            let expected = std::fs::read(directory.join("expected.yaml")).unwrap_or_default();
            difference(&String::from_utf8_lossy(&expected), &text)
        }
        Outcome::Error(text) => {
            let expected = std::fs::read_to_string(directory.join("expected_error.txt")).unwrap_or_default();
            difference(&canonical(&normal(&expected)), &canonical(&normal(&text)))
        }
    }
}

/// Returns how a one-line template differs, if it does.
pub(crate) fn snippet(case: &Case, tree: &Tree, snippet: &Value) -> Option<String> {
    let template = snippet["tpl"].as_str().unwrap();
    let mut tree = tree.clone();
    tree.insert("templates/t.yaml".to_owned(), format!("{SNIPPET}{template}\n").into_bytes().into());
    let (key, got) = match case.run(Path::new("."), &tree, &mut Cache::default()).0 {
        Outcome::Text(text) => match text.strip_prefix(SNIPPET_OUTPUT) {
            Some(rest) => ("out", rest.strip_suffix('\n').unwrap_or(rest).to_owned()),
            None => ("out", text),
        },
        Outcome::Error(text) => ("err", normal(&text)),
    };
    let Some(expected) = snippet.get(key).and_then(Value::as_str) else {
        return Some(format!("{}: {template}\nexpected {snippet}\ngot {key}: {got}", snippet["name"]));
    };
    difference(expected, &got).map(|text| format!("{}: {template}\n{text}", snippet["name"]))
}

/// Returns how a construct differs, if it does: the error of one only by what it
/// says last, because lines and columns were those of another file.
pub(crate) fn construct(tree: &Tree, construct: &Value) -> Option<String> {
    let name = construct["name"].as_str().unwrap();
    let template = construct["tpl"].as_str().unwrap();
    let mut tree = tree.clone();
    tree.insert("templates/NOTES.txt".to_owned(), template.as_bytes().into());
    let case = serde_json::json!({"namespace": "default", "kube_version": "1.32.0"});
    let got = Case::from_json(&case).notes(&tree);
    let expected = construct["out"].as_str();
    // An older Go could not range over a number; the others name the file or the version.
    if matches!(name, "range-int" | "capab-gitver" | "chart-meta") {
        return None;
    }
    match (expected, got) {
        (Some(expected), Ok(got)) => difference(expected.trim(), got.trim()),
        (None, Err(_)) => None,
        (expected, got) => Some(format!("expected {expected:?}\ngot {got:?}")),
    }
    .map(|text| format!("{name}: {template}\n{text}"))
}

fn difference(expected: &str, got: &str) -> Option<String> {
    if expected == got {
        return None;
    }
    let first = expected.lines().zip(got.lines()).position(|(expected, got)| expected != got);
    let at = first.unwrap_or_else(|| expected.lines().count().min(got.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("<end>").to_owned();
    Some(format!("line {}:\n  expected {:?}\n  got      {:?}", at + 1, line(expected), line(got)))
}

/// Drops white space at the ends of lines and around the text.
fn normal(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
    format!("{}\n", lines.join("\n").trim())
}
