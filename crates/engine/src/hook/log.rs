//! From what a hook prints to log entries, which quote no values.
//!
//! What was read is masked first, and cut and encoded then: half of a value is not recognised any more.

use redaction::Secrets;
use serde_json::{Map, Value};

/// How many bytes of a line or of the fields of a entry are kept.
const LONGEST_TEXT: usize = 10_000;

/// How much of a line is read; the rest is left out.
const LONGEST_LINE: usize = 64 << 10;

/// How much text is kept while the end of a JSON value is waited for.
const LONGEST_JSON: usize = 2 << 20;

/// What stands behind a text that was cut.
const CUT: &str = ":truncated";

/// How grave a entry is.
#[derive(Clone, Copy, Debug, strum::EnumString, Eq, strum::IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(ascii_case_insensitive, serialize_all = "lowercase")]
pub enum Level {
    /// Every step.
    Trace,
    /// What helps to find an error.
    Debug,
    /// What happens.
    Info,
    /// What may become an error.
    #[strum(to_string = "warn", serialize = "warning")]
    Warn,
    /// What went wrong.
    Error,
    /// What ends a program.
    Fatal,
}

impl Level {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One entry of the operator's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What the hook said, or `info`.
    pub level: Level,
    /// The line, or the message of a JSON object.
    pub message: String,
    /// The other properties of a JSON object, each with the prefix `hook_`, as a JSON object; empty for a plain line.
    pub fields: String,
}

/// One output stream of a running hook, cut into entries.
///
/// A line is complete when its end was seen, however the text arrives. A line
/// that begins with `{` begins a JSON object, which can go on over more lines;
/// what turns out to be none is logged line by line. No line is lost; long ones are cut.
#[derive(Debug, Default)]
pub struct LineLog {
    /// Whether JSON lists are kept together as well.
    with_lists: bool,
    line: Vec<u8>,
    /// Whether the line is complete as far as it is read: what follows up to its end is left out.
    is_cut: bool,
    json: Option<Json>,
}

/// Lines that may become a JSON value.
#[derive(Debug, Default)]
struct Json {
    text: String,
    lines: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl LineLog {
    /// Returns a stream of which nothing was seen; `proxy_json` is the operator's option to pass JSON on.
    pub fn new(proxy_json: bool) -> Self {
        Self { with_lists: proxy_json, ..Self::default() }
    }

    /// Takes in a line, without its end, and returns what is complete now.
    pub fn feed(&mut self, line: &str) -> Vec<Entry> {
        let mut entries = self.push(line.as_bytes(), &Secrets::default());
        entries.extend(self.push(b"\n", &Secrets::default()));
        entries
    }

    /// Takes in bytes as they come and returns what is complete now, without the `secrets`.
    pub fn push(&mut self, bytes: &[u8], secrets: &Secrets<'_>) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.is_cut {
                let end = rest.iter().position(|byte| *byte == b'\n');
                self.is_cut = end.is_none();
                rest = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
                continue;
            }
            if self.line.is_empty() {
                // What stands before a line says nothing; what it begins with says how long it may become.
                rest = rest.trim_ascii_start();
            }
            let begins_json = self.begins_json(rest.first());
            let room = if begins_json { LONGEST_JSON } else { LONGEST_LINE } - self.line.len();
            let end = rest.iter().take(room).position(|byte| *byte == b'\n');
            let (piece, behind) = rest.split_at(end.map_or(room.min(rest.len()), |end| end + 1));
            self.line.extend_from_slice(piece);
            rest = behind;
            self.is_cut = end.is_none() && piece.len() == room;
            if end.is_some() || self.is_cut {
                self.end_line(&mut entries, secrets);
            }
        }
        entries
    }

    /// Returns what is left when the stream has ended, without the `secrets`.
    pub fn finish(mut self, secrets: &Secrets<'_>) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.end_line(&mut entries, secrets);
        if let Some(json) = self.json.take() {
            plain_lines(&json.text, false, secrets, &mut entries);
        }
        entries
    }

    fn begins_json(&self, next: Option<&u8>) -> bool {
        let first = self.line.first().or(next);
        first == Some(&b'{') || (self.with_lists && first == Some(&b'['))
    }

    fn end_line(&mut self, entries: &mut Vec<Entry>, secrets: &Secrets<'_>) {
        let begins_json = self.begins_json(None);
        let mut line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if self.is_cut {
            // Half of a letter.
            line.truncate(line.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        }
        if line.trim().is_empty() {
            return;
        }
        let mut json = match self.json.take() {
            Some(json) => json,
            None if begins_json => Json::default(),
            None => return plain_lines(&line, self.is_cut, secrets, entries),
        };
        json.add(&line);
        match json.read() {
            Reading::Complete(value) => entries.push(entry_of(value, &json.text, secrets)),
            Reading::Open if json.text.len() <= LONGEST_JSON && !self.is_cut => self.json = Some(json),
            Reading::Open | Reading::Broken => plain_lines(&json.text, self.is_cut, secrets, entries),
        }
    }
}

enum Reading {
    Complete(Value),
    Open,
    Broken,
}

impl Json {
    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.lines += 1;
        for byte in line.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns what the lines are so far.
    ///
    /// They are read when they look complete, and now and then to notice that they will never be: at numbers of
    /// lines that double each time, so that long values are not read over and over.
    fn read(&self) -> Reading {
        if self.depth > 0 && !self.lines.is_power_of_two() {
            return Reading::Open;
        }
        match serde_json::from_str(&self.text) {
            Ok(value) => Reading::Complete(value),
            Err(error) if error.is_eof() && self.depth > 0 => Reading::Open,
            Err(_) => Reading::Broken,
        }
    }
}

/// Adds an entry for each line of a text, whose last line can be cut.
fn plain_lines(text: &str, is_cut: bool, secrets: &Secrets<'_>, entries: &mut Vec<Entry>) {
    let text = if is_cut { secrets.hide_cut(text) } else { secrets.hide(text) };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    entries.extend(lines.map(|line| Entry { level: Level::Info, message: cut(line), fields: String::new() }));
    if let Some(last) = entries.last_mut().filter(|last| is_cut && !last.message.ends_with(CUT)) {
        last.message.push_str(CUT);
    }
}

fn entry_of(mut value: Value, text: &str, secrets: &Secrets<'_>) -> Entry {
    secrets.hide_in_value(&mut value);
    let Value::Object(mut map) = value else {
        return Entry {
            level: Level::Info,
            message: cut(secrets.hide(text.trim()).as_ref()),
            fields: String::new(),
        };
    };
    let level = map
        .remove("level")
        .as_ref()
        .and_then(Value::as_str)
        .and_then(|name| name.parse().ok())
        .unwrap_or(Level::Info);
    let message = match map.remove("msg") {
        None => "hook result".to_owned(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    map.remove("time");
    Entry { level, message: cut(&message), fields: fields_of(map) }
}

fn fields_of(map: Map<String, Value>) -> String {
    let whole = golang::json::bytes(&Value::Object(map.clone()));
    let mut fields: Map<String, Value> = if whole.len() > LONGEST_TEXT {
        let truncated = cut(&String::from_utf8_lossy(&whole));
        [("hook".to_owned(), serde_json::json!({ "truncated": truncated }))].into_iter().collect()
    } else {
        map.into_iter().map(|(key, value)| (format!("hook_{key}"), value)).collect()
    };
    fields.insert("proxyJsonLog".to_owned(), true.into());
    String::from_utf8_lossy(&golang::json::bytes(&Value::Object(fields))).into_owned()
}

/// Returns the text, cut between two characters if it is too long.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_TEXT);
    match text.get(..end) {
        Some(head) if head.len() < text.len() => format!("{head}{CUT}"),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(entries: &[Entry]) -> Vec<String> {
        entries
            .iter()
            .map(|e| format!("{:?} {} {}", e.level, e.message, e.fields).trim_end().to_owned())
            .collect()
    }

    fn logged(chunks: &[&str], proxy_json: bool) -> Vec<String> {
        let mut output = LineLog::new(proxy_json);
        let mut entries: Vec<Entry> =
            chunks.iter().flat_map(|chunk| output.push(chunk.as_bytes(), &Secrets::default())).collect();
        entries.extend(output.finish(&Secrets::default()));
        shown(&entries)
    }

    #[test]
    fn lines_are_trimmed_and_empty_ones_left_out() {
        assert_eq!(logged(&["one\n  two \n\n \nthree"], false), ["Info one", "Info two", "Info three"]);
    }

    #[test]
    fn a_line_is_one_record_however_it_arrives() {
        assert_eq!(logged(&["on", "e\ntw", "o", "\n"], false), ["Info one", "Info two"]);
        assert_eq!(logged(&["{\"msg\"", ":\"a\"}\n"], false), ["Info a {\"proxyJsonLog\":true}"]);
    }

    #[test]
    fn lines_can_be_fed_without_their_ends() {
        let mut log = LineLog::new(false);
        assert_eq!(shown(&log.feed("one")), ["Info one"]);
        assert!(log.feed("{").is_empty());
        assert_eq!(shown(&log.feed("\"msg\": \"two\"}")), ["Info two {\"proxyJsonLog\":true}"]);
        assert!(log.finish(&Secrets::default()).is_empty());
    }

    #[test]
    fn a_json_object_becomes_fields() {
        let text = r#"{"level":"error","msg":"boom","time":"x","a":1,"level2":{"b":[1]}}"#;
        assert_eq!(
            logged(&[text], false),
            [r#"Error boom {"hook_a":1,"hook_level2":{"b":[1]},"proxyJsonLog":true}"#]
        );
        assert_eq!(logged(&["{\"a\":1}"], false), [r#"Info hook result {"hook_a":1,"proxyJsonLog":true}"#]);
        assert_eq!(logged(&["{\"msg\":5,\"level\":\"loud\"}"], false), [r#"Info 5 {"proxyJsonLog":true}"#]);
    }

    #[test]
    fn a_json_object_can_have_many_lines() {
        let text = "before\n{\n  \"msg\": \"a } \\\" {\",\n  \"b\": [\n 1,\n 2\n ]\n}\nafter\n";
        assert_eq!(
            logged(&[text], false),
            ["Info before", r#"Info a } " { {"hook_b":[1,2],"proxyJsonLog":true}"#, "Info after"]
        );
    }

    #[test]
    fn what_only_looks_like_json_is_logged_line_by_line() {
        assert_eq!(logged(&["{ not json\nnext\n"], false), ["Info { not json", "Info next"]);
        assert_eq!(logged(&["{\n\"a\": 1\n"], false), ["Info {", "Info \"a\": 1"]);
        assert_eq!(logged(&["{\nplain\nmore\n"], false), ["Info {", "Info plain", "Info more"]);
        assert_eq!(logged(&["{\"a\":1} tail\n"], false), ["Info {\"a\":1} tail"]);
        assert_eq!(logged(&["}{\n"], false), ["Info }{"]);
    }

    #[test]
    fn lists_are_kept_together_when_json_is_passed_on() {
        assert_eq!(logged(&["[1,\n2]\n"], true), ["Info [1,\n2]"]);
        assert_eq!(logged(&["[1,\n2]\n"], false), ["Info [1,", "Info 2]"]);
        assert_eq!(logged(&["[INFO] up\n"], true), ["Info [INFO] up"]);
    }

    #[test]
    fn long_texts_are_cut() {
        let line = "x".repeat(20_000);
        assert_eq!(logged(&[&line], false), [format!("Info {}:truncated", "x".repeat(10_000))]);
        let wide = "é".repeat(6_000);
        assert_eq!(logged(&[&wide], false), [format!("Info {}:truncated", "é".repeat(5_000))]);
        let json = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
        let entries = logged(&[&json], true);
        assert_eq!(entries.len(), 1);
        assert!(entries[0].starts_with("Info hook result {\"hook\":{\"truncated\":\"{\\\"a\\\":\\\"xxx"));
        assert!(entries[0].ends_with("xxx:truncated\"},\"proxyJsonLog\":true}"));
    }

    /// Returns what is logged of a text by who may not know `secret`.
    fn masked(text: &str, secret: &Value) -> Vec<String> {
        let secrets = Secrets::of(&[secret]);
        let mut output = LineLog::new(true);
        let mut entries = output.push(text.as_bytes(), &secrets);
        entries.extend(output.finish(&secrets));
        shown(&entries)
    }

    #[test]
    fn slip_03_a_value_in_a_json_line_is_masked_before_it_is_encoded() {
        let secret = Value::from("p&ss<w>rd \"x\"");
        let line =
            serde_json::json!({"msg": "login", "user": {"key": secret, "p&ss<w>rd \"x\"": 1}}).to_string();
        let shown = masked(&line, &secret);
        assert_eq!(
            shown,
            [r#"Info login {"hook_user":{"******":1,"key":"******"},"proxyJsonLog":true}"#],
            "{line}"
        );
        let as_go_writes_it = String::from_utf8(golang::json::bytes(&secret)).unwrap();
        assert_eq!(masked(&as_go_writes_it, &secret), [r#"Info "******""#]);
    }

    #[test]
    fn slip_03_a_long_line_is_masked_before_it_is_cut() {
        let token: String = (b'a'..=b'z').cycle().step_by(7).take(2_103).map(char::from).collect();
        let secret = Value::from(token.as_str());
        for before in [0, 8_434, 9_995, LONGEST_LINE - 2_000, LONGEST_LINE - 7] {
            let line = format!("{}{token} and more", "-".repeat(before));
            for line in [line.clone(), serde_json::json!({"msg": "x", "line": line}).to_string()] {
                let shown = masked(&line, &secret).concat();
                assert!(!shown.contains(&token[..12]) && !shown.contains(&token[2_080..]), "{before}");
            }
        }
        // What is left of a line can begin with anything, so it is left out.
        let line = format!("{}\nnext", "-".repeat(3 * LONGEST_LINE));
        assert_eq!(masked(&line, &secret).len(), 2);
    }

    #[test]
    fn memory_is_bounded_whatever_is_printed() {
        let mut output = LineLog::new(true);
        let mut count = 0;
        for chunk in std::iter::repeat_n("{\"a\":[".repeat(4096), 200) {
            count += output.push(chunk.as_bytes(), &Secrets::default()).len();
            assert!(output.line.len() <= LONGEST_JSON + chunk.len(), "{}", output.line.len());
        }
        assert!(count > 0);
    }

    #[test]
    fn long_json_of_many_lines_is_read_in_time() {
        let mut text = String::from("{\"a\": [\n");
        text.push_str(&"  1,\n".repeat(100_000));
        text.push_str("  1\n]}\n");
        let entries = logged(&[&text], false);
        assert_eq!(entries.len(), 1, "{:?}", entries.first());
    }

    proptest::proptest! {
        #[test]
        fn the_cut_of_the_chunks_does_not_matter(text in "[{}\\[\\]\":,a1 \n]{0,80}", at in 0_usize..80) {
            let cut = text.floor_char_boundary(at.min(text.len()));
            let (first, second) = text.split_at(cut);
            proptest::prop_assert_eq!(logged(&[first, second], true), logged(&[&text], true));
        }

        #[test]
        fn no_line_is_lost(lines in proptest::collection::vec("[a-z{}\"]{1,10}", 0..10)) {
            let text = lines.join("\n");
            let all = logged(&[&text], false).join("");
            let letters = |text: &str| text.chars().filter(|c| *c == 'z').count();
            let keys_and_values = letters(&all);
            proptest::prop_assert_eq!(keys_and_values, letters(&text));
        }
    }
}
