//! `--update`: replaces wrong expectations in the text of a file. All else, comments too, stays as it is.

use serde_json::Value;
use values::yaml::locate;

use super::check::Mismatch;

/// Returns `text` with the expectations that would have been right.
pub(super) fn updated(text: &str, mismatches: &[Mismatch]) -> String {
    let mut text = text.to_owned();
    for mismatch in mismatches {
        let Some(actual) = &mismatch.actual else { continue };
        if let Some(changed) = with_expectation(&text, &mismatch.pointer, mismatch.key, actual) {
            text = changed;
        }
    }
    text
}

fn with_expectation(text: &str, step: &str, key: &str, actual: &Value) -> Option<String> {
    let document = values::yaml::parse(text).ok()?;
    let expect = document.pointer(&format!("{step}/expect"));
    let fields = expect.and_then(Value::as_object);
    let at_key = format!("{step}/expect/{key}");
    if fields.is_some_and(|fields| fields.contains_key(key))
        && let Some(block) = Block::of_key(text, &at_key)
    {
        return Some(block.replaced(text, &entry(key, actual, block.column)));
    }
    let mut wanted = fields.cloned().unwrap_or_default();
    wanted.insert(key.to_owned(), actual.clone());
    if expect.is_some() {
        if let Some(block) = Block::of_key(text, &format!("{step}/expect")) {
            return Some(block.replaced(text, &entry("expect", &Value::Object(wanted), block.column)));
        }
        return None;
    }
    // There is no `expect` yet: it is added before the steps, or else at the end of the test.
    if let Some(steps) = Block::of_key(text, &format!("{step}/steps")) {
        let written = entry("expect", &Value::Object(wanted), steps.column);
        return Some(steps.preceded(text, &written));
    }
    let first = document
        .pointer(step)?
        .as_object()?
        .keys()
        .filter_map(|key| Block::of_key(text, &format!("{step}/{key}")));
    let last = first.max_by_key(|block| block.end)?;
    Some(last.followed(text, &entry("expect", &Value::Object(wanted), last.column)))
}

/// A key in block style with its value: whole lines.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The first line, counted from zero, and the one behind the last.
    start: usize,
    end: usize,
    /// The column of the key, counted from zero.
    column: usize,
}

impl Block {
    /// Returns the block of the key at `pointer`; `None` if it is written within braces.
    fn of_key(text: &str, pointer: &str) -> Option<Self> {
        let position = locate(text, pointer)?;
        let (start, column) = (position.line.checked_sub(1)?, position.column.checked_sub(1)?);
        let lines: Vec<&str> = text.lines().collect();
        let before: String = lines.get(start)?.chars().take(column).collect();
        if !before.chars().all(|char| matches!(char, ' ' | '-')) {
            return None;
        }
        let rest: String = lines.get(start)?.chars().skip(column).collect();
        // For a missing value `locate` returns what contains it.
        let key = pointer.rsplit('/').next()?;
        if !rest.trim_start_matches(['"', '\'']).starts_with(key) {
            return None;
        }
        let mut end = start + 1;
        let mut last = end;
        while let Some(line) = lines.get(end) {
            let content = line.trim_start();
            let indent = line.chars().count() - content.chars().count();
            let is_inside = indent > column || (indent == column && content.starts_with("- "));
            if content.is_empty() || (content.starts_with('#') && indent <= column) {
                // It belongs to what follows, unless the value continues.
                end += 1;
            } else if is_inside {
                end += 1;
                last = end;
            } else {
                break;
            }
        }
        Some(Self { start, end: last, column })
    }

    /// Returns the text with `entry` instead of the block.
    fn replaced(self, text: &str, entry: &str) -> String {
        let first = text.lines().nth(self.start).unwrap_or_default();
        let prefix: String = first.chars().take(self.column).collect();
        spliced(text, self.start, self.end, &format!("{prefix}{}", entry.trim_start_matches(' ')))
    }

    /// Returns the text with `entry` before the block, which may begin an item of a list.
    fn preceded(self, text: &str, entry: &str) -> String {
        let first = text.lines().nth(self.start).unwrap_or_default();
        let prefix: String = first.chars().take(self.column).collect();
        let rest: String = first.chars().skip(self.column).collect();
        let entry = format!("{prefix}{}{}{rest}", entry.trim_start_matches(' '), " ".repeat(self.column));
        spliced(text, self.start, self.start + 1, &entry)
    }

    fn followed(self, text: &str, entry: &str) -> String {
        spliced(text, self.end, self.end, entry)
    }
}

/// Returns the text with `entry` in place of some lines.
fn spliced(text: &str, start: usize, end: usize, entry: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let kept = |lines: &[&str]| lines.iter().fold(String::new(), |text, line| text + line + "\n");
    let before = kept(lines.get(..start).unwrap_or_default());
    let after = kept(lines.get(end..).unwrap_or_default());
    before + entry.trim_end_matches('\n') + "\n" + &after
}

/// Returns a key with its value in block style, indented by `column`.
fn entry(key: &str, value: &Value, column: usize) -> String {
    let yaml = values::yaml::emit(value);
    let is_block = match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let indent = " ".repeat(column);
    if !is_block {
        let rest = " ".repeat(column + 2);
        return format!("{indent}{key}: {}\n", yaml.trim_end().replace('\n', &format!("\n{rest}")));
    }
    let deeper = if value.is_object() { format!("{indent}  ") } else { indent.clone() };
    let lines =
        yaml.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{deeper}{line}\n") });
    format!("{indent}{key}:\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(text: &str, pointer: &str, key: &'static str, actual: Value) -> String {
        let mismatch =
            Mismatch { pointer: pointer.to_owned(), key, message: String::new(), actual: Some(actual) };
        updated(text, &[mismatch])
    }

    #[test]
    fn only_the_expectation_that_is_wrong_changes() {
        let text = "# About greetings.\n- name: a # first\n  expect:\n    # The text.\n    log: [old]\n\n    exit: 0\n- name: b\n";
        assert_eq!(
            after(text, "/0", "log", json!(["new", "x: y"])),
            "# About greetings.\n- name: a # first\n  expect:\n    # The text.\n    log:\n    - new\n    - 'x: y'\n\n    exit: 0\n- name: b\n"
        );
        assert_eq!(
            after(text, "/1", "exit", json!(3)),
            "# About greetings.\n- name: a # first\n  expect:\n    # The text.\n    log: [old]\n\n    exit: 0\n- name: b\n  expect:\n    exit: 3\n"
        );
    }

    #[test]
    fn an_expectation_within_braces_or_without_content_is_written_anew() {
        assert_eq!(
            after("run: a\nexpect: {exit: 1}\n", "", "exit", json!(0)),
            "run: a\nexpect:\n  exit: 0\n"
        );
        assert_eq!(
            after("run: a\nexpect:\n", "", "values", json!({"web": {"a": "b"}})),
            "run: a\nexpect:\n  values:\n    web:\n      a: b\n"
        );
        assert_eq!(
            after("tests:\n- steps:\n  - schedule: a\n", "/tests/0", "runs", json!([])),
            "tests:\n- expect:\n    runs: []\n  steps:\n  - schedule: a\n"
        );
    }

    #[test]
    fn a_rewritten_file_says_what_is_right() {
        let text = "- expect:\n    valuesPatch:\n    - op: add\n      path: /a\n    - op: remove\n      path: /b\n    log: []\n";
        let actual = json!([{"op": "add", "path": "/x", "value": "line\nline\n"}]);
        let changed = after(text, "/0", "valuesPatch", actual.clone());
        let document = values::yaml::parse(&changed).unwrap();
        assert_eq!(document, json!([{"expect": {"valuesPatch": actual, "log": []}}]));
    }
}
