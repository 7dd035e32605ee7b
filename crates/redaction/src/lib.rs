//! Values in texts that everybody may read: found as they are and encoded, and replaced.

mod decoding;
mod earlier;
mod shared;
mod unquotable;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use decoding::Decoded;
pub use unquotable::Unquotable;

/// Shorter texts are not masked: they are words like `true` and `prod` that tell nothing and occur everywhere.
const SHORTEST: usize = 6;

/// What programs take for the end of a line.
const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// What stands for a masked text.
const MASK: &str = "******";

/// What is in the names of keys that hold secrets.
const SECRET_NAMES: [&str; 9] = ["auth", "cert", "cred", "key", "pass", "private", "pwd", "secret", "token"];

/// How many bits tell whether a value may begin with some bytes.
const FILTER_BITS: usize = 1 << 15;

/// The values of some sections that are long enough to be secrets.
///
/// They are found in any text that quotes them: as they are, escaped by JSON, YAML, Go, Rust, Python or a shell, escaped
/// for HTML, a URL, a form or a table, shown as `cat -v` does, three of these one in the other, and all that in base64.
/// Those that are known to be secret are found in upper and lower case, too: a name in Kubernetes has no capital letters.
#[derive(Clone, Default, PartialEq)]
pub struct Secrets<'v> {
    /// Sorted, each once.
    texts: Vec<Cow<'v, str>>,
    /// What is masked only where no letter or digit stands beside it. Sorted, each once.
    words: Vec<Cow<'v, str>>,
    /// A bit for the first bytes of each text and word.
    filter: Vec<u64>,
    /// Whether upper and lower case of ASCII letters is one. Then texts and words are in lower case.
    ignores_case: bool,
    /// Others that are masked with them.
    others: Vec<Arc<Secrets<'static>>>,
}

impl<'v> Secrets<'v> {
    /// Returns the string values in `values`, and each line of those that have several.
    pub fn of(values: &[&'v Value]) -> Self {
        let mut texts = Vec::new();
        for value in values {
            collect(value, &mut texts);
        }
        Self::from_texts(texts.into_iter().map(Cow::Borrowed).collect(), Vec::new(), false)
    }

    /// Returns all values in `values` that can be recognised: shorter strings with a digit, and numbers, too.
    pub fn all_of(values: &[&'v Value]) -> Self {
        let (mut texts, mut words) = (Vec::new(), Vec::new());
        for value in values {
            collect(value, &mut texts);
            Self::collect_words(value, &mut words);
        }
        Self::from_texts(texts.into_iter().map(Cow::Borrowed).collect(), words, true)
    }

    /// Returns these secrets with others, which are masked in the same pass.
    #[must_use]
    pub fn with(self, others: Arc<Secrets<'static>>) -> Self {
        let others = self.others.into_iter().chain([others].into_iter().filter(|others| !others.is_empty()));
        Self { others: others.collect(), ..self }
    }

    /// Returns only those below a key whose name tells of a secret, such as `adminPassword` or `token`.
    pub fn named(values: &[&'v Value]) -> Self {
        let mut texts = Vec::new();
        for value in values {
            collect_named(value, &mut texts);
        }
        Self::from_texts(texts.into_iter().map(Cow::Borrowed).collect(), Vec::new(), true)
    }

    fn from_texts(mut texts: Vec<Cow<'v, str>>, mut words: Vec<Cow<'v, str>>, ignores_case: bool) -> Self {
        for all in [&mut texts, &mut words] {
            if ignores_case {
                all.iter_mut().for_each(fold);
            }
            all.sort_unstable();
            all.dedup();
        }
        let is_nothing = texts.is_empty() && words.is_empty();
        let mut filter = vec![0; if is_nothing { 0 } else { FILTER_BITS / 64 }];
        for (place, bit) in texts.iter().chain(&words).filter_map(|text| place(text.as_bytes())) {
            if let Some(bits) = filter.get_mut(place) {
                *bits |= bit;
            }
        }
        Self { texts, words, filter, ignores_case, others: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.others.is_empty()
    }

    /// Returns the same texts, which depend on no section any more.
    pub fn into_owned(self) -> Secrets<'static> {
        let owned = |texts: Vec<Cow<'v, str>>| {
            texts.into_iter().map(|secret| Cow::Owned(secret.into_owned())).collect()
        };
        let Self { texts, words, filter, ignores_case, others } = self;
        let (texts, words) = (owned(texts), owned(words));
        Secrets { texts, words, filter, ignores_case, others }
    }

    /// Returns `text` with each of the texts masked.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.hide_all(text, false)
    }

    /// Returns `text`, which was cut behind its end, with each of the texts masked, and what the cut left of one.
    pub fn hide_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.hide_all(text, true)
    }

    fn hide_all<'t>(&self, text: &'t str, is_cut: bool) -> Cow<'t, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut found = Vec::new();
        self.find(&Decoded::plain(text.as_bytes()), is_cut, &mut found);
        decoding::each(text.as_bytes(), &mut |decoded| self.find(decoded, is_cut, &mut found));
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_unstable_by_key(|range| range.start);
        let mut shown = String::with_capacity(text.len());
        let mut end = 0;
        let mut masked_to = None;
        for range in found {
            if masked_to.is_none_or(|masked_to| range.start > masked_to) {
                shown.push_str(text.get(end..range.start).unwrap_or_default());
                shown.push_str(MASK);
            }
            end = end.max(range.end);
            masked_to = Some(end);
        }
        shown.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(shown)
    }

    /// Adds where in the source of `decoded` the texts are, and those of the others.
    fn find(&self, decoded: &Decoded<'_>, is_cut: bool, found: &mut Vec<Range<usize>>) {
        for others in &self.others {
            others.find(decoded, is_cut, found);
        }
        if self.filter.is_empty() {
            return;
        }
        self.find_encoded_words(decoded, found);
        let bytes = self.folded(decoded.bytes());
        let cuts = cuts(decoded, is_cut);
        for (at, first) in bytes.windows(4).enumerate() {
            if !self.may_begin(first) {
                continue;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let (whole, part) = longest(&self.texts, rest, SHORTEST, |_| true);
            let (word, part_of_word) = self.word_at(&bytes, at);
            let part = part.max(part_of_word);
            // The last cut that leaves nothing but the beginning of a text.
            let cut = cuts.get(..cuts.partition_point(|cut| *cut <= at + part)).and_then(<[usize]>::last);
            let part = cut.and_then(|cut| cut.checked_sub(at)).filter(|length| *length >= SHORTEST);
            if let Some(length) = whole.max(part).max(word) {
                found.push(decoded.source(at..at + length));
            }
        }
        if !decoded.is_base64() {
            for at in decoding::begins_cut(decoded.bytes()) {
                let rest = bytes.get(at..).unwrap_or_default();
                let length = ends(&self.texts, rest).map(<[u8]>::len).max().max(self.rest_of_word(rest));
                found.extend(length.map(|length| decoded.source(at..at + length)));
            }
        }
    }

    /// Returns what is compared with the texts and words.
    fn folded<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.ignores_case && bytes.iter().any(u8::is_ascii_uppercase) {
            bytes.to_ascii_lowercase().into()
        } else {
            bytes.into()
        }
    }

    fn may_begin(&self, text: &[u8]) -> bool {
        place(text).is_some_and(|(word, bit)| self.filter.get(word).is_some_and(|word| word & bit != 0))
    }

    /// Masks each string in a value, each number, and each key.
    pub fn hide_in_value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.has_number(number) {
                    *value = MASK.into();
                }
            }
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.hide(text) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_value(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.hide_in_value(item));
                let is_open = |key: &String| matches!(self.hide(key), Cow::Owned(_));
                if map.keys().any(is_open) {
                    let pairs = std::mem::take(map).into_iter();
                    *map = pairs.map(|(key, item)| (self.hide(&key).into_owned(), item)).collect();
                }
            }
        }
    }
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.texts.len())
    }
}

/// Returns the bit of the filter for a text, by its first bytes; `None` for a text that is too short.
fn place(text: &[u8]) -> Option<(usize, u64)> {
    let [a, b, c, d, ..] = text else { return None };
    let first = u32::from_le_bytes([*a, *b, *c, *d]);
    let bit = (first.wrapping_mul(0x9E37_79B1) >> 17) as usize;
    Some((bit / 64, 1 << (bit % 64)))
}

/// Returns how long the longest of some sorted texts is that `text` begins with, if it is not shorter than `shortest` and may end there, and
/// how long the longest beginning of one is.
fn longest(
    texts: &[Cow<'_, str>],
    text: &[u8],
    shortest: usize,
    may_end: impl Fn(usize) -> bool,
) -> (Option<usize>, usize) {
    let behind = texts.partition_point(|known| known.as_bytes() <= text);
    let part = |place: Option<usize>| {
        let neighbour = place.and_then(|place| texts.get(place));
        neighbour.map_or(0, |known| common(known.as_bytes(), text))
    };
    let before = part(behind.checked_sub(1));
    let mut probe = text.get(..before).unwrap_or_default();
    let whole = loop {
        if probe.len() < shortest {
            break None;
        }
        // What `probe` begins with is sorted before it, and all between the two begins with that, too.
        let behind = texts.partition_point(|known| known.as_bytes() <= probe);
        let Some(known) = behind.checked_sub(1).and_then(|place| texts.get(place)) else {
            break None;
        };
        let mut same = common(known.as_bytes(), probe);
        if same == known.len() {
            if may_end(same) {
                break Some(same);
            }
            same = same.saturating_sub(1);
        }
        probe = probe.get(..same).unwrap_or_default();
    };
    (whole, before.max(part(Some(behind))))
}

/// Has a text in lower case.
fn fold(text: &mut Cow<'_, str>) {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_mut().make_ascii_lowercase();
    }
}

/// Returns the ends of some texts that `text` begins with, where they are long enough.
fn ends<'s>(texts: &'s [Cow<'_, str>], text: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
    let first = text.get(..SHORTEST);
    let ends = texts.iter().flat_map(move |known| {
        let known = known.as_bytes();
        let places = known.windows(SHORTEST).enumerate().filter(move |(_, window)| Some(*window) == first);
        places.filter_map(|(place, _)| known.get(place..))
    });
    ends.filter(move |end| text.starts_with(end))
}

/// Returns how many bytes two texts have in common from their beginning on.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns where a text was cut, in order.
fn cuts(text: &Decoded<'_>, is_cut: bool) -> Vec<usize> {
    let bytes = text.bytes();
    // What is in base64 is marked behind it.
    let marked = if text.is_base64() { &[] } else { bytes };
    let is_mark = |at: &usize| {
        let rest = marked.get(*at..).unwrap_or_default();
        decoding::is_cut_mark(rest)
    };
    let mut cuts: Vec<usize> = (0..marked.len()).filter(is_mark).collect();
    if is_cut && text.is_at_end() {
        // An escape that was cut is read as other letters.
        let from = bytes.len().saturating_sub(decoding::LONGEST_ESCAPE);
        cuts.extend(from..=bytes.len());
    } else if text.is_cut() {
        cuts.push(bytes.len());
    }
    cuts.sort_unstable();
    cuts
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            // A text of several lines is quoted line by line.
            let parts = std::iter::once(text.as_str()).chain(text.split(BREAKS).map(str::trim));
            texts.extend(parts.filter(|part| part.chars().nth(SHORTEST - 1).is_some()));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
    }
}

fn collect_named<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter().for_each(|item| collect_named(item, texts)),
        Value::Object(map) => {
            for (key, item) in map {
                if is_named(key) {
                    collect(item, texts);
                } else {
                    collect_named(item, texts);
                }
            }
        }
    }
}

/// Reports whether the name of a key tells of a secret.
fn is_named(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|name| key.contains(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_is_part_of_another_leaves_no_rest() {
        let values = json!(["secret", "secret-and-more", "more-than-that", "secretly-not"]);
        for (text, shown) in [
            ("x secret-and-more y", "x ****** y"),
            ("x secret-and-more-than-that y", "x ****** y"),
            ("x secret-and y", "x ******-and y"),
            ("secretsecret", "******"),
        ] {
            assert_eq!(Secrets::of(&[&values]).hide(text), shown, "{text}");
        }
    }

    #[test]
    fn a_log_keeps_its_lines_and_json_its_form() {
        let values = json!({"key": "line one\nsecret line two", "quoted": "say \"hunter22\" twice"});
        let secrets = Secrets::of(&[&values]);
        assert_eq!(secrets.hide("a\n  line one\n  secret line two\nb"), "a\n  ******\n  ******\nb");
        assert_eq!(secrets.hide(&json!({"k": "say \"hunter22\" twice"}).to_string()), r#"{"k":"******"}"#);
        assert_eq!(secrets.hide("nothing"), "nothing");
        assert_eq!(format!("{:?}", secrets.into_owned()), "Secrets(4)");
    }

    #[test]
    fn slip_03_values_are_found_in_each_way_to_write_them() {
        let values = json!(["it's <b>&\tü \u{1f}%", "hunter22"]);
        let secrets = Secrets::of(&[&values]);
        for (text, shown) in [
            (r#""it's <b>&\tü \u001f%""#, r#""******""#),
            (r#""it's \u003cb\u003e\u0026\tü \u001f%""#, r#""******""#),
            (r#""it's \u003Cb>&\t\u00fc \x1f%""#, r#""******""#),
            (r#"{"a":"{\"b\":\"it's <b>&\\tü \\u001f%\"}"}"#, r#"{"a":"{\"b\":\"******\"}"}"#),
            (r#""it's <b>&\tü \u{1f}%""#, r#""******""#),
            (r"$'it\'s <b>&\t\303\274 \037%'", "$'******'"),
            ("'it'\\''s <b>&\tü \u{1f}%'", "'******'"),
            ("'it''s <b>&\tü \u{1f}%'", "'******'"),
            ("?q=it%27s%20%3Cb%3E%26%09%C3%BC%20%1F%25&x=1", "?q=******&x=1"),
            ("<i>it&#39;s &lt;b&gt;&amp;&#x9;ü \u{1f}%</i>", "<i>******</i>"),
            ("aHVudGVyMjI=", "******"),
            ("Basic dXNlcjpodW50ZXIyMg==", "Basic dXNl******"),
            ("password-aHVudGVyMjI", "password-******"),
            (r#"{"data":"aHVudGVyMjI="}"#, r#"{"data":"******"}"#),
            (r"at \/aHVudGVyMjI=", r"at \/******"),
        ] {
            assert_eq!(secrets.hide(text), shown, "{text}");
        }
    }

    #[test]
    fn slip_03_values_are_found_where_one_escape_lies_over_another() {
        let values = json!(["it's <b>&\tü \"+\\%", "hunter22 hunter33"]);
        let secrets = Secrets::of(&[&values]);
        let ways: [fn(&str) -> String; 8] = [
            |text| Value::from(text).to_string().trim_matches('"').to_owned(),
            |text| text.replace('\'', r"'\''"),
            |text| text.replace('\'', r#"'"'"'"#),
            |text| text.replace('\'', "''"),
            |text| {
                text.bytes().flat_map(|byte| format!("%{byte:02x}").into_bytes()).map(char::from).collect()
            },
            |text| text.replace('%', "%25").replace('+', "%2B").replace('"', "%22").replace(' ', "+"),
            |text| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
            |text| format!("{text:?}").trim_matches('"').to_owned(),
        ];
        for value in values.as_array().unwrap().iter().filter_map(Value::as_str) {
            for (inner, outer) in (0..ways.len()).flat_map(|n| (0..ways.len()).map(move |m| (n, m))) {
                let text = ways[outer](&ways[inner](value));
                assert_eq!(
                    secrets.hide(&format!("a {text} z")),
                    "a ****** z",
                    "{outer} over {inner}: {text}"
                );
            }
        }
        assert_eq!(
            secrets.hide("GET /?data=%7B%22p%22%3A+%22hunter22+hunter33%22%7D"),
            "GET /?data=%7B%22p%22%3A+%22******%22%7D"
        );
    }

    /// Draws numbers from a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((self.0 >> 33) % u64::try_from(limit).unwrap()).unwrap()
        }

        fn value(&mut self) -> String {
            const SPECIAL: [&str; 30] = [
                "'", "\"", "\\", "\t", "\n", " ", "&", "<", ">", "%", "+", "=", "/", "é", "🦀", "\u{7f}",
                "\u{1b}", "\u{2028}", "%41", "\\u0041", "&amp;", "''", "\\\\", "$()", "\r", "\u{85}",
                "\u{a0}", "ÿ", "日本", "\"\"",
            ];
            let mut value = String::new();
            for _ in 0..=self.below(4) {
                for _ in 0..3 + self.below(6) {
                    value.push(char::from(b"abcdefghXYZ0123456789_-"[self.below(23)]));
                }
                value.push_str(SPECIAL[self.below(SPECIAL.len())]);
            }
            value + "end"
        }
    }

    fn percent(text: &str, is_kept: impl Fn(u8) -> bool) -> String {
        let bytes = text.bytes().map(|byte| match byte {
            kept if is_kept(kept) => char::from(kept).to_string(),
            other => format!("%{other:02X}"),
        });
        bytes.collect()
    }

    fn is_plain(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
    }

    /// Quotes as tools of GNU do; `is_shown` tells what their locale can print.
    fn gnu(text: &str, is_shown: impl Fn(char) -> bool) -> String {
        let mut quoted = String::new();
        let mut is_escaped = false;
        for char in text.chars() {
            let shown = is_shown(char) && !char.is_control() && char != '\u{2028}';
            if shown == is_escaped {
                quoted.push_str(if shown { "''" } else { "'$'" });
                is_escaped = !shown;
            }
            match char {
                '\'' => quoted.push_str(r"'\''"),
                shown_char if shown => quoted.push(shown_char),
                '\t' => quoted.push_str(r"\t"),
                '\n' => quoted.push_str(r"\n"),
                '\r' => quoted.push_str(r"\r"),
                other => {
                    let bytes = other.to_string().into_bytes().into_iter();
                    quoted.extend(bytes.map(|byte| format!("\\{byte:03o}")));
                }
            }
        }
        quoted + if is_escaped { "''" } else { "" }
    }

    /// Quotes with a backslash: letters that have an escape of their own, and other than ASCII by their code.
    fn coded(text: &str, own: &[(char, char)], code: fn(u32) -> String) -> String {
        let escape = |char: char| match own.iter().find(|(own, _)| *own == char) {
            Some((_, letter)) => format!("\\{letter}"),
            None if (' '..='~').contains(&char) => char.to_string(),
            None => code(u32::from(char)),
        };
        text.chars().map(escape).collect()
    }

    const OF_YAML: [(char, char); 10] = [
        ('\t', 't'),
        ('\n', 'n'),
        ('\r', 'r'),
        ('\u{1b}', 'e'),
        ('"', '"'),
        ('\\', '\\'),
        ('\u{85}', 'N'),
        ('\u{a0}', '_'),
        ('\u{2028}', 'L'),
        ('\u{2029}', 'P'),
    ];

    const OF_PYTHON: [(char, char); 5] = [('\t', 't'), ('\n', 'n'), ('\r', 'r'), ('\'', '\''), ('\\', '\\')];

    fn cat(text: &str) -> String {
        let control = |byte: u8| format!("^{}", char::from(byte ^ 0x40));
        let plain = |byte: u8| match byte {
            b' '..=b'~' | b'\n' => char::from(byte).to_string(),
            other => control(other),
        };
        let bytes = text.bytes().map(|byte| match byte {
            0x80..=0xff if byte & 0x7f == b'\n' => "M-^J".to_owned(),
            0x80..=0xff => format!("M-{}", plain(byte & 0x7f)),
            byte => plain(byte),
        });
        bytes.collect()
    }

    /// The ways to quote a text that can lie one over another.
    const WAYS: [fn(&str) -> String; 19] = [
        |text| gnu(text, |_| true),
        |text| gnu(text, |char| char.is_ascii()),
        |text| {
            coded(text, &OF_YAML, |code| match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            })
        },
        |text| {
            coded(text, &OF_PYTHON, |code| match code {
                0..=0xff => format!("\\x{code:02x}"),
                0x100..=0xffff => format!("\\u{code:04x}"),
                _ => format!("\\U{code:08x}"),
            })
        },
        |text| text.replace('"', "\"\""),
        cat,
        |text| Value::from(text).to_string().trim_matches('"').to_owned(),
        |text| String::from_utf8(golang::json::to_vec(text).unwrap()).unwrap().trim_matches('"').to_owned(),
        |text| format!("{text:?}").trim_matches('"').to_owned(),
        |text| golang::strconv::quote(text.as_bytes()).trim_matches('"').to_owned(),
        |text| text.replace('\'', r"'\''"),
        |text| text.replace('\'', r#"'"'"'"#),
        |text| text.replace('\'', "''"),
        |text| percent(text, |_| false),
        |text| percent(text, is_plain),
        |text| percent(text, |byte| is_plain(byte) || b"/:?&=,;+'()!*$".contains(&byte)),
        |text| percent(text, |byte| is_plain(byte) || byte == b' ').replace(' ', "+"),
        |text| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('\'', "&#x27;"),
        |text| text.chars().fold(String::new(), |text, char| text + &format!("&#{};", u32::from(char))),
    ];

    #[test]
    fn slip_03_both_halves_of_a_value_are_found_where_a_break_in_it_ends_a_line() {
        for line_break in BREAKS {
            let values = json!([format!("hunter22{line_break}hunter33")]);
            let secrets = Secrets::of(&[&values]);
            assert_eq!(secrets.hide("a hunter22\n  hunter33 z"), "a ******\n  ****** z", "{line_break:?}");
        }
    }

    #[test]
    fn slip_03_what_a_cut_left_of_a_value_in_quotes_of_gnu_is_found() {
        let values = json!(["hunter22日本日本日本 hunter33"]);
        let secrets = Secrets::of(&[&values]);
        let quoted =
            format!("ls: cannot access '{}'", gnu("hunter22日本日本日本 hunter33", |char| char.is_ascii()));
        assert_eq!(secrets.hide(&quoted), "ls: cannot access '******'");
        for length in 30..quoted.len() {
            let shown = secrets.hide_cut(&quoted[..length]).into_owned();
            assert!(!shown.contains("hunter22"), "{shown}");
        }
    }

    #[test]
    fn slip_03_values_are_found_in_any_stack_of_three_ways_to_quote_them() {
        use base64::Engine as _;
        let mut open = Vec::new();
        for seed in 0..1_000 {
            let mut random = Random(seed);
            let _ = random.below(2);
            let value = random.value();
            let values = json!([value]);
            let secrets = Secrets::of(&[&values]);
            let mut text = value.clone();
            let mut stack = Vec::new();
            for _ in 0..=random.below(3) {
                let way = random.below(WAYS.len() + 1);
                stack.push(way);
                text = match WAYS.get(way) {
                    Some(way) => way(&text),
                    None => base64::engine::general_purpose::STANDARD.encode(&text),
                };
            }
            let line = format!("a {text} z");
            let is_logged = random.below(2) == 0;
            let line = if is_logged { json!({ "msg": line }).to_string() } else { line };
            let shown = secrets.hide(&line);
            let frame = if is_logged { (r#"{"msg":"a "#, r#" z"}"#) } else { ("a ", " z") };
            let inner = shown.strip_prefix(frame.0).and_then(|shown| shown.strip_suffix(frame.1));
            let rest = inner.map(|inner| inner.replace(MASK, ""));
            if !rest.is_some_and(|rest| shown.contains(MASK) && rest.len() <= 4) {
                open.push(format!("seed {seed}, ways {stack:?} over {value:?}: {line} is shown as {shown}"));
            }
        }
        assert!(open.is_empty(), "{} of 1000:\n{}", open.len(), open[..open.len().min(9)].join("\n"));
    }

    #[test]
    fn slip_03_values_are_found_in_base64_of_base64() {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let values = json!(["hunter22 \"and\" more", "hunter22-hunter33-hunter44"]);
        let secrets = Secrets::of(&[&values]);
        for value in values.as_array().unwrap().iter().filter_map(Value::as_str) {
            for user in ["", "u", "us", "use"] {
                let auth = STANDARD.encode(format!("{user}:{value}"));
                let config = json!({"auths": {"example.com": {"auth": auth, "password": value}}}).to_string();
                for text in [
                    STANDARD.encode(&auth),
                    STANDARD.encode(&config),
                    STANDARD.encode(STANDARD.encode(&config)),
                ] {
                    let shown = secrets.hide(&text);
                    let longest = shown.split(MASK).map(str::len).max().unwrap();
                    assert!(shown.contains(MASK) && longest < 80, "{text}: {shown}");
                    let rest: Vec<u8> = shown
                        .split(MASK)
                        .flat_map(|part| STANDARD.decode(&part[..part.len() / 4 * 4]))
                        .flatten()
                        .collect();
                    let rest = String::from_utf8_lossy(&rest).into_owned();
                    assert!(!rest.contains(&auth[8..]) && !rest.contains("hunter"), "{rest}");
                }
            }
        }
        let plain = STANDARD.encode(STANDARD.encode("nothing of interest is in here"));
        assert_eq!(secrets.hide(&plain), plain);
    }

    #[test]
    fn slip_03_what_a_cut_left_of_a_value_is_masked() {
        let values = json!(["hunter22-hunter33", "hunter2"]);
        let secrets = Secrets::of(&[&values]);
        for (text, shown) in [
            ("`hunter22-h...` into int", "`******...` into int"),
            ("`hunter22-h…", "`******…"),
            ("hunter22-h:truncated", "******:truncated"),
            ("hunte...", "hunte..."),
            ("aHVudGVyMjItaHVudGVy...", "******..."),
            ("hunter22-h, a word", "******2-h, a word"),
        ] {
            assert_eq!(secrets.hide(text), shown, "{text}");
        }
        assert_eq!(secrets.hide("… 9 bytes left out …\n22-hunter33 x"), "… 9 bytes left out …\n****** x");
        assert_eq!(secrets.hide_cut("is hunter22-hunt"), "is ******");
        assert_eq!(secrets.hide_cut("is aHVudGVyMjItaHVudG"), "is ******");
    }

    #[test]
    fn numbers_and_short_strings_with_a_digit_are_masked_where_they_stand_alone() {
        let values = json!({
            "pin": 918_273_645, "code": 4711, "factor": -1234.5, "port": 80, "on": true,
            "short": "ab12", "word": "prod", "digits": "0815",
        });
        let secrets = Secrets::all_of(&[&values]);
        for (text, shown) in [
            ("pin 918273645, code=4711!", "pin ******, code=******!"),
            ("PIN_4711 (9.18273645e+08) -1234.5", "PIN_****** (******) -******"),
            ("x4711 47110 a4711b 14711", "x4711 47110 a4711b 14711"),
            ("port 80 is true in prod", "port 80 is true in prod"),
            ("ab12 ab123 xab12 0815", "****** ab123 xab12 ******"),
            (r#"{\"a\":\"one\\n4711\"}"#, r#"{\"a\":\"one\\n******\"}"#),
            ("https://h/?a=%204711", "https://h/?a=%20******"),
            ("OTE4MjczNjQ1 918273645", "****** ******"),
        ] {
            assert_eq!(secrets.hide(text), shown, "{text}");
        }
        let mut shown = json!({"a": [918_273_645, 80, 4711.0], "b": true, "c": "code 4711"});
        secrets.hide_in_value(&mut shown);
        assert_eq!(shown, json!({"a": [MASK, 80, MASK], "b": true, "c": "code ******"}));
        assert_eq!(Secrets::of(&[&values]).hide("918273645 4711 ab12"), "918273645 4711 ab12");
    }

    #[test]
    fn slip_03_what_the_secret_says_is_found_in_upper_and_lower_case() {
        let values = json!({"pw": "Hunter-Zwei-Ü2", "pin": "A1b2", "factor": 918_273_645});
        let secrets = Secrets::all_of(&[&values]);
        for (text, shown) in [
            ("namespaces \"hunter-zwei-Ü2\" not found", "namespaces \"******\" not found"),
            ("HUNTER-ZWEI-Ü2 hUnTeR-zWeI-Ü2", "****** ******"),
            ("hunter-zwei-\\u00dc2 a1b2 A1B2 xa1b2", "****** ****** ****** xa1b2"),
            ("hunter-zw... HUNTER-...", "******... ******..."),
            ("is aHVudGVyLXp3ZWktw5wy or YTFiMg== 9.18273645E+08", "is ****** or ****** ******"),
            ("… 9 bytes left out …\nER-ZWEI-Ü2 x", "… 9 bytes left out …\n****** x"),
        ] {
            assert_eq!(secrets.hide(text), shown, "{text}");
        }
        assert_eq!(secrets.hide_cut("is hunter-z"), "is ******");
        assert_eq!(secrets.clone().into_owned().hide("hunter-zwei-Ü2"), "******");
        let named = json!({"adminPassword": "Hunter-Zwei-Ü2"});
        assert_eq!(Secrets::named(&[&named]).hide("hunter-zwei-Ü2"), "******");
        // Of other values most are words, which texts about them may need.
        assert_eq!(Secrets::of(&[&json!(["Always"])]).hide("always Always"), "always ******");
    }

    #[test]
    fn two_sets_of_values_are_masked_in_one_pass() {
        let (own, others) = (json!(["secret"]), json!(["secret-and-more", 4711]));
        let others = Arc::new(Secrets::all_of(&[&others]).into_owned());
        let both = Secrets::of(&[&own]).with(Arc::clone(&others));
        assert_eq!(both.hide("secret-and-more secrets 4711"), "****** ******s ******");
        assert_eq!(Secrets::default().with(others).hide("secret-and-more secrets"), "****** secrets");
        assert!(matches!(Secrets::default().with(Arc::default()).hide("secret"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_of_many_cuts_and_values_is_read_in_one_pass() {
        let values: Vec<Value> = (0..20_000).map(|n| json!(format!("https://example.com/{n:x}"))).collect();
        let values = Value::from(values);
        let secrets = Secrets::of(&[&values]);
        let text = "https:... %41 \\u0041 ".repeat(3_000);
        assert!(secrets.hide(&text).starts_with("******... "));
    }
}
