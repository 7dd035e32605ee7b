//! What tells something only where it stands alone: numbers, and short strings with a digit.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Number, Value};

use super::decoding::{self, Decoded};
use super::{SHORTEST, Secrets, ends, longest};

/// Shorter ones are not masked where they stand alone either: each `1` and `80` would be.
const SHORTEST_WORD: usize = 4;

/// Numbers are not longer, as they are or as Go writes them.
const LONGEST_WORD: usize = 32;

/// How many characters of base64 hold a word, with white space around it.
const ENCODED_WORD: [usize; 2] = [6, 48];

impl<'v> Secrets<'v> {
    /// Collects what tells something only where it stands alone: numbers, and short strings with a digit.
    pub(super) fn collect_words(value: &'v Value, words: &mut Vec<Cow<'v, str>>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => words.extend(number_words(number).map(Cow::Owned)),
            Value::String(text) => {
                let is_short = text.len() >= SHORTEST_WORD && text.chars().nth(SHORTEST - 1).is_none();
                let has_digit = || text.bytes().any(|byte| byte.is_ascii_digit());
                words.extend((is_short && has_digit()).then_some(Cow::Borrowed(text.as_str())));
            }
            Value::Array(items) => items.iter().for_each(|item| Self::collect_words(item, words)),
            Value::Object(map) => map.values().for_each(|item| Self::collect_words(item, words)),
        }
    }

    /// Returns how long the longest of the words is that stands alone at this place, and how long the longest beginning of
    /// one that does, if it goes on.
    pub(super) fn word_at(&self, bytes: &[u8], at: usize) -> (Option<usize>, usize) {
        if self.words.is_empty() || is_of_word(bytes, at.checked_sub(1)) {
            return (None, 0);
        }
        let ends_alone = |length: usize| !is_of_word(bytes, at.checked_add(length));
        longest(&self.words, bytes.get(at..).unwrap_or_default(), SHORTEST_WORD, ends_alone)
    }

    /// Returns the length of the longest end of one of the words that `text` begins with, and that stands alone.
    pub(super) fn rest_of_word(&self, text: &[u8]) -> Option<usize> {
        let ends = ends(&self.words, text);
        ends.map(<[u8]>::len).filter(|length| !is_of_word(text, Some(*length))).max()
    }

    /// Adds where in the source tokens of base64 are that say one of the words and nothing else, but for white space.
    ///
    /// Most words are too short for what is read wherever base64 may begin: a token stands alone as the word would.
    pub(super) fn find_encoded_words(&self, decoded: &Decoded<'_>, found: &mut Vec<Range<usize>>) {
        if self.words.is_empty() {
            return;
        }
        let bytes = decoded.bytes();
        let mut at = 0;
        while at < bytes.len() {
            let rest = bytes.get(at..).unwrap_or_default();
            let token = decoding::leading_base64(rest);
            found.extend(self.encoded_word(decoded, at, token));
            // What stands beside words can be a letter of base64, too: `pin-YTFiMg==`.
            if token.iter().any(|byte| !byte.is_ascii_alphanumeric()) {
                let mut begin = at;
                for part in token.split(|byte| !byte.is_ascii_alphanumeric()) {
                    found.extend(self.encoded_word(decoded, begin, part));
                    begin += part.len() + 1;
                }
            }
            at += token.len().max(1);
        }
    }

    /// Returns where in the source a token at this place is, with its padding, if it says one of the words.
    fn encoded_word(&self, decoded: &Decoded<'_>, at: usize, token: &[u8]) -> Option<Range<usize>> {
        let [shortest, longest] = ENCODED_WORD;
        if token.len() < shortest || token.len() > longest {
            return None;
        }
        let said = decoding::groups(token);
        if !self.is_word(said.trim_ascii()) {
            return None;
        }
        let end = at + token.len();
        let behind = decoded.bytes().get(end..).unwrap_or_default();
        Some(decoded.source(at..end + decoding::padding(behind)))
    }

    fn is_word(&self, text: &[u8]) -> bool {
        let text = &*self.folded(text);
        self.may_begin(text) && self.words.binary_search_by(|known| known.as_bytes().cmp(text)).is_ok()
    }

    /// Reports whether one of the words is this number, or one of those of the others.
    pub(super) fn has_number(&self, number: &Number) -> bool {
        let is_word = |word: String| self.words.binary_search(&Cow::Owned(word)).is_ok();
        !self.words.is_empty() && number_words(number).any(is_word)
            || self.others.iter().any(|others| others.has_number(number))
    }
}

/// Reports whether a letter or a digit is at this place.
fn is_of_word(bytes: &[u8], place: Option<usize>) -> bool {
    place.and_then(|place| bytes.get(place)).is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns how a number is written, without its sign, if it has enough digits: as in JSON, and as charts print it.
fn number_words(number: &Number) -> impl Iterator<Item = String> + use<> {
    let plain = number.to_string();
    let of_charts = number.as_f64().map(|float| golang::strconv::format_float(float, 'g', None));
    let words = std::iter::once(plain).chain(of_charts);
    let words = words.map(|word| word.trim_start_matches('-').to_owned());
    let has_digits = |word: &String| {
        let digits = word.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
        digits >= SHORTEST_WORD && word.len() <= LONGEST_WORD
    };
    words.filter(has_digits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slip_03_words_are_masked_in_base64_that_says_nothing_else() {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let values = json!({"num": 918_273_645, "s4": "a1b2", "pin": "4711", "s5": "x1y2z", "sign": "0>~?1"});
        let secrets = Secrets::all_of(&[&values]);
        for (text, shown) in [
            ("pin: YTFiMg==", "pin: ******"),
            ("data: {pin: NDcxMQ==, s5: eDF5Mno=}", "data: {pin: ******, s5: ******}"),
            ("YTFiMg YTFiMgo= YTFiMgo", "****** ****** ******"),
            ("?pin=YTFiMg%3D%3D&x=1", "?pin=******&x=1"),
            (r#"{\"pin\":\"NDcxMQ\\u003d\\u003d\"}"#, r#"{\"pin\":\"******\"}"#),
            ("pin-YTFiMg== _NDcxMQ/ MD5+PzE=", "pin-****** _******/ ******"),
            (r"a\nYTFiMg==", r"a\n******"),
            ("num OTE4MjczNjQ1Cg==", "num ******"),
            // Not alone.
            ("xYTFiMg YTFiMg5 abcdef Dockerfile", "xYTFiMg YTFiMg5 abcdef Dockerfile"),
        ] {
            assert_eq!(secrets.hide(text), shown, "{text}");
        }
        for word in ["a1b2", "4711", "x1y2z", "918273645", " a1b2\r\n"] {
            let twice = STANDARD.encode(STANDARD.encode(word));
            assert_eq!(secrets.hide(&format!("is {twice}")), "is ******", "{word}");
            assert_eq!(secrets.hide(&format!("is {}", twice.trim_end_matches('='))), "is ******", "{word}");
        }
        let other = STANDARD.encode("a1b3");
        assert_eq!(secrets.hide(&other), other);
        assert_eq!(Secrets::of(&[&values]).hide("YTFiMg=="), "YTFiMg==", "only the Secret has words");
    }

    #[test]
    fn slip_03_what_a_cut_left_of_a_number_is_masked() {
        let values = json!({"num": 918_273_645, "factor": 3_141.592_653, "short": 4711});
        let secrets = Secrets::all_of(&[&values]);
        for (text, shown) in [
            ("token=9182736... 918273…", "token=******... ******…"),
            ("-3141.592... 9.182736...", "-******... ******..."),
            ("num OTE4MjczN...", "num ******..."),
            // Too short, not alone, not cut, and other ones.
            ("91827... 4711... x9182736...", "91827... ******... x9182736..."),
            ("9182736 9182737...", "9182736 9182737..."),
        ] {
            assert_eq!(secrets.hide(text), shown, "{text}");
        }
        assert_eq!(secrets.hide_cut("is 9182736"), "is ******");
        assert_eq!(secrets.hide_cut("is x9182736"), "is x9182736");
        assert_eq!(secrets.hide("… 9 bytes left out …\n8273645, x"), "… 9 bytes left out …\n******, x");
        assert_eq!(secrets.hide("… 9 bytes left out …\n8273645x"), "… 9 bytes left out …\n8273645x");
    }
}
