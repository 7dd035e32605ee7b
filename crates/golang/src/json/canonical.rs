//! Texts that are already as [`bytes`](super::bytes) would write them.

/// How deep a text may nest here.
const DEEPEST: usize = 64;

/// How many digits every integer may have that is written as it was read.
const DIGITS: usize = 18;

/// Returns whether a text is an object with these fields, and is what [`bytes`](super::bytes) writes of the value that it is.
///
/// It costs less than to read the text and to write it. A few texts of which this is true are not recognised: those with
/// fractions, with numbers of more than 18 digits, with escapes in names of fields, or nested deeper than 64.
pub fn is_as_written(text: &[u8], fields: &[&str]) -> bool {
    if std::str::from_utf8(text).is_err() {
        return false;
    }
    let mut rest = Rest(text);
    rest.object(DEEPEST, fields) && rest.0.is_empty()
}

/// What is left of a text.
struct Rest<'t>(&'t [u8]);

impl<'t> Rest<'t> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn takes(&mut self, expected: &[u8]) -> bool {
        self.0.strip_prefix(expected).map(|rest| self.0 = rest).is_some()
    }

    fn value(&mut self, depth: usize) -> bool {
        match self.0.first() {
            Some(b'{') => self.object(depth, &[]),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.text().is_some(),
            Some(b't') => self.takes(b"true"),
            Some(b'f') => self.takes(b"false"),
            Some(b'n') => self.takes(b"null"),
            Some(_) => self.integer(),
            None => false,
        }
    }

    fn object(&mut self, depth: usize, fields: &[&str]) -> bool {
        let Some(depth) = depth.checked_sub(1).filter(|_| self.takes(b"{")) else { return false };
        if self.takes(b"}") {
            return fields.is_empty();
        }
        let (mut last, mut found): (Option<&[u8]>, usize) = (None, 0);
        loop {
            let Some(name) = self.text().filter(|name| !name.contains(&b'\\')) else { return false };
            // Names are sorted, and none is there twice.
            if last.replace(name).is_some_and(|last| last >= name) || !self.takes(b":") || !self.value(depth)
            {
                return false;
            }
            found += usize::from(fields.iter().any(|field| field.as_bytes() == name));
            match self.next() {
                Some(b',') => {}
                Some(b'}') => return found == fields.len(),
                _ => return false,
            }
        }
    }

    fn array(&mut self, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1).filter(|_| self.takes(b"[")) else { return false };
        if self.takes(b"]") {
            return true;
        }
        while self.value(depth) {
            match self.next() {
                Some(b',') => {}
                last => return last == Some(b']'),
            }
        }
        false
    }

    fn integer(&mut self) -> bool {
        let is_negative = self.takes(b"-");
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count).unwrap_or_default();
        self.0 = rest;
        match digits {
            [b'0'] => !is_negative,
            [first, ..] => *first != b'0' && count <= DIGITS,
            [] => false,
        }
    }

    /// Takes a text. Returns what is between its quotes.
    fn text(&mut self) -> Option<&'t [u8]> {
        if !self.takes(b"\"") {
            return None;
        }
        let whole = self.0;
        loop {
            let plain = self.0.iter().position(|byte| !is_plain(*byte))?;
            self.0 = self.0.get(plain..)?;
            match self.next()? {
                b'"' => return whole.get(..whole.len() - self.0.len() - 1),
                b'\\' => self.escape()?,
                // The ends of lines and of paragraphs are written as escapes.
                0xe2 if !matches!(self.0, [0x80, 0xa8 | 0xa9, ..]) => {}
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => return Some(()),
            b'u' => {}
            _ => return None,
        }
        let (digits, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        let has_shorter_form = matches!(digits, b"0008" | b"0009" | b"000a" | b"000c" | b"000d");
        let is_written = matches!(
            digits,
            b"003c" | b"003e" | b"0026" | b"2028" | b"2029" | [b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f']
        );
        (is_written && !has_shorter_form).then_some(())
    }
}

/// Returns whether a byte of a text stands for itself, whatever is around it.
fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0..0x20 | 0xe2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::bytes;
    use super::*;

    #[test]
    fn a_text_that_would_be_written_otherwise_or_is_none_is_not_taken() {
        for text in [
            "",
            "[]",
            "{",
            "{}x",
            r#"{"a":1"#,
            r#"{"a": 1}"#,
            r#"{"b":1,"a":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e2}"#,
            r#"{"a":-0}"#,
            r#"{"a":01}"#,
            r#"{"a":-}"#,
            r#"{"a":nul}"#,
            r#"{"a":"<"}"#,
            r#"{"a":"&"}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u003C"}"#,
            r#"{"a":"\u000a"}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\ud83d\ude00"}"#,
            "{\"a\":\"\u{2028}\"}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"",
            r#"{"\u0026":1}"#,
        ] {
            assert!(!is_as_written(text.as_bytes(), &[]), "{text}");
        }
        assert!(!is_as_written(b"{\"a\":\"\xff\"}", &[]));
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_as_written(deep(DEEPEST - 1).as_bytes(), &[]));
        assert!(!is_as_written(deep(DEEPEST).as_bytes(), &[]));
        assert!(!is_as_written(deep(1_000_000).as_bytes(), &[]));
    }

    #[test]
    fn fields_that_are_asked_for_are_there_at_the_top() {
        let text =
            bytes(&json!({"a": {"b": 1}, "c": null, "d": "<\u{2028}é\u{1}\"\\/\n", "e": [-12, 0, true]}));
        assert!(is_as_written(&text, &[]));
        assert!(is_as_written(&text, &["c", "a"]));
        assert!(!is_as_written(&text, &["a", "b"]));
        assert!(is_as_written(b"{}", &[]) && !is_as_written(b"{}", &["a"]));
    }

    /// Values without fractions, whose texts have all that is written in another way.
    fn values() -> impl Strategy<Value = Value> {
        let text = "[a-c<>&\"\\\\/\u{0}\u{8}\n\u{1f}\u{7f}é\u{2027}\u{2028}\u{2029}\u{202a}😀]{0,4}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1_000_000_000_000_000..1_000_000_000_000_000_i64).prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]{0,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_recognised(value in values()) {
            let text = bytes(&json!({"a": value}));
            prop_assert!(is_as_written(&text, &["a"]));
        }

        #[test]
        fn what_is_recognised_is_written_like_that(
            value in values(), at in any::<prop::sample::Index>(), other in "[ 0-9a-c\"\\\\{}\\[\\],:.eEu<-]{0,2}",
        ) {
            let mut text = String::from_utf8(bytes(&json!({"a": value, "b": 10}))).unwrap();
            let mut at = at.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let end = at + text[at..].chars().next().map_or(0, char::len_utf8);
            text.replace_range(at..end, &other);
            if is_as_written(text.as_bytes(), &[]) {
                let value: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(String::from_utf8(bytes(&value)).unwrap(), text);
            }
        }
    }
}
