//! What a text says when escapes and base64 in it are read, with where each byte came from.
//!
//! A value can be quoted in many ways, several of them one in the other: a JSON object in a JSON string in a log line.
//! It is cheaper to read the text once in each way than to write every value in each way.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;

/// How deep escapes can be one in the other. A JSON string around them does not count.
///
/// A script quotes a value for a shell, that is in a JSON object, and that in a URL.
const DEPTH: usize = 3;

/// From how many bytes on one escape less is read, since each makes eight times as many readings of the whole text.
const LONG: usize = 16 * 1024;

/// How many times a text can be in base64: the password of a Docker configuration is in base64 in an object that is in
/// base64 in a Secret, which may be printed in base64.
const LAYERS: usize = 3;

/// How many bytes at the end of a text that was cut can be the beginning of an escape.
pub(super) const LONGEST_ESCAPE: usize = 16;

/// How many characters of base64 hold a text that is long enough to be masked.
const SHORTEST_BASE64: usize = 8;

/// What stands behind a text that was cut.
const CUTS: [&str; 3] = ["…", "...", ":truncated"];

/// Returns whether a text begins with the mark that what stands before it was cut.
pub(super) fn is_cut_mark(text: &[u8]) -> bool {
    // Most bytes begin none of them.
    matches!(text.first(), Some(b'.' | b':' | 0xe2))
        && CUTS.iter().any(|mark| text.starts_with(mark.as_bytes()))
}

/// What stands before a text whose beginning was left out.
const LEFT_OUT: &[u8] = b"bytes left out \xe2\x80\xa6\n";

/// Returns where texts begin whose beginnings were left out.
pub(super) fn begins_cut(text: &[u8]) -> impl Iterator<Item = usize> {
    let windows = text.windows(LEFT_OUT.len()).enumerate();
    windows.filter(|(_, window)| *window == LEFT_OUT).map(|(at, window)| at + window.len())
}

/// The bytes that a part of a text stands for.
pub(super) struct Decoded<'t> {
    bytes: Cow<'t, [u8]>,
    /// Where in the source each byte begins, and the end; `None` where every byte stands for itself.
    begins: Option<Cow<'t, [usize]>>,
    /// Where in the source the characters of base64 that the bytes were read from begin and end.
    base64: Option<Range<usize>>,
    /// Whether the source of that base64 was read from base64 itself, so that its bytes share letters with neighbours.
    is_nested: bool,
    /// Whether the source goes on with a mark that it was cut here.
    is_cut: bool,
    /// Whether it ends where the source ends.
    is_at_end: bool,
}

impl<'t> Decoded<'t> {
    /// Returns bytes that stand for themselves.
    pub(super) fn plain(bytes: &'t [u8]) -> Self {
        Self {
            bytes: bytes.into(),
            begins: None,
            base64: None,
            is_nested: false,
            is_cut: false,
            is_at_end: true,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_base64(&self) -> bool {
        self.base64.is_some()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Returns the part of the source that these bytes were read from.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        let own = match &self.base64 {
            // Four characters hold three bytes, so that neighbours are in the same ones.
            Some(base64) => {
                let begin = base64.start + range.start / 3 * 4;
                let end = base64.start + range.end.div_ceil(3) * 4;
                // Of a text that was cut, a character may be left that holds a part of the next byte.
                let is_last = range.end >= self.bytes.len();
                begin..if is_last { base64.end } else { end.min(base64.end) }
            }
            None => range,
        };
        let Some(begins) = &self.begins else { return own };
        let begin = |at: usize| begins.get(at).or(begins.last()).copied().unwrap_or_default();
        begin(own.start)..begin(own.end + usize::from(self.is_nested))
    }
}

/// A text of which some escapes are read.
struct Text {
    bytes: Vec<u8>,
    begins: Vec<usize>,
}

/// Calls `take` with each reading of `text` but the plain one.
pub(super) fn each(text: &[u8], take: &mut dyn FnMut(&Decoded<'_>)) {
    let depth = DEPTH - usize::from(text.len() >= LONG);
    base64(text, None, LAYERS, take);
    read(text, None, (depth, LAYERS), &mut BTreeMap::new(), take);
}

/// Reads escapes in `bytes`, whose bytes begin in the source at `begins`, and again in what comes out of that.
///
/// Escapes that do not touch each other can be read in any order. What was read is in `known`, with how deep it was
/// looked into: it is looked at once.
fn read(
    bytes: &[u8],
    begins: Option<&[usize]>,
    (depth, layers): (usize, usize),
    known: &mut BTreeMap<u64, usize>,
    take: &mut dyn FnMut(&Decoded<'_>),
) {
    if depth == 0 {
        return;
    }
    for (index, escape) in ESCAPES.iter().enumerate() {
        let Some(text) = unescaped(bytes, begins, escape) else { continue };
        // Whatever prints a text may quote it once more in its log.
        let is_around = begins.is_none() && index == 0;
        let depth = if is_around { depth } else { depth - 1 };
        let digest = digest(&text.bytes);
        let before = known.get(&digest).copied();
        if before.is_some_and(|before| before >= depth) {
            continue;
        }
        known.insert(digest, depth);
        if before.is_none() {
            base64(&text.bytes, Some(&text.begins), layers, take);
        }
        read(&text.bytes, Some(&text.begins), (depth, layers), known, take);
        if before.is_some() {
            continue;
        }
        take(&Decoded {
            bytes: text.bytes.into(),
            begins: Some(text.begins.into()),
            base64: None,
            is_nested: layers < LAYERS,
            is_cut: false,
            is_at_end: true,
        });
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Reads an escape at the beginning of a text, with what stands before it. Returns its length and what it stands for;
/// `None` if there is none.
type Unescape = fn(&[u8], Option<u8>) -> Option<(usize, Letter)>;

/// What an escape stands for.
enum Letter {
    Byte(u8),
    Char(char),
    Several(Vec<u8>),
}

/// A way to escape.
struct Escape {
    /// The letters that its escapes begin with.
    marks: [u8; 2],
    unescape: Unescape,
}

/// What all escapes of programming languages begin with.
const BACKSLASH: [u8; 2] = [b'\\'; 2];

/// The ways to escape.
const ESCAPES: &[Escape] = &[
    Escape { marks: BACKSLASH, unescape: |text, _| backslash(text) },
    Escape { marks: BACKSLASH, unescape: |text, _| code_point(text) },
    // A quote within quotes of a shell, where a backslash is no escape.
    Escape { marks: [b'\''; 2], unescape: |text, _| shell(text) },
    Escape {
        marks: [b'\''; 2],
        unescape: |text, _| text.starts_with(b"''").then_some((2, Letter::Byte(b'\''))),
    },
    Escape { marks: [b'"'; 2], unescape: doubled },
    Escape { marks: [b'^', b'M'], unescape: |text, _| caret(text) },
    Escape { marks: [b'%'; 2], unescape: |text, _| percent(text) },
    // In forms a plus is a blank.
    Escape {
        marks: [b'%', b'+'],
        unescape: |text, _| {
            if text.starts_with(b"+") { Some((1, Letter::Byte(b' '))) } else { percent(text) }
        },
    },
    Escape { marks: [b'&'; 2], unescape: |text, _| entity(text) },
];

/// Returns a text with its escapes read; `None` if there are none.
fn unescaped(bytes: &[u8], begins: Option<&[usize]>, escape: &Escape) -> Option<Text> {
    let [one, other] = escape.marks;
    let next_mark = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().position(|byte| *byte == one || *byte == other).map(|place| from + place)
    };
    let read_at = |place: usize| {
        let before = place.checked_sub(1).and_then(|before| bytes.get(before)).copied();
        bytes.get(place..).and_then(|text| (escape.unescape)(text, before))
    };
    let mut next = next_mark(0);
    let (mut place, (mut length, mut letter)) = loop {
        let place = next?;
        if let Some(found) = read_at(place) {
            break (place, found);
        }
        next = next_mark(place + 1);
    };
    let source = |at: usize| begins.map_or(at, |begins| begins.get(at).copied().unwrap_or_default());
    let mut text =
        Text { bytes: Vec::with_capacity(bytes.len()), begins: Vec::with_capacity(bytes.len() + 1) };
    let mut at = 0;
    loop {
        text.copy(bytes, at..place, source);
        match letter {
            Letter::Byte(byte) => text.bytes.push(byte),
            Letter::Char(char) => text.bytes.extend(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Letter::Several(bytes) => text.bytes.extend(bytes),
        }
        text.begins.resize(text.bytes.len(), source(place));
        at = place + length;
        let Some(next) = next_mark(at) else { break };
        place = next;
        // A mark that begins no escape stands for itself.
        let itself = || (1, Letter::Byte(bytes.get(place).copied().unwrap_or_default()));
        (length, letter) = read_at(place).unwrap_or_else(itself);
    }
    text.copy(bytes, at..bytes.len(), source);
    text.begins.push(source(bytes.len()));
    Some(text)
}

impl Text {
    /// Adds bytes that stand for themselves.
    fn copy(&mut self, bytes: &[u8], range: Range<usize>, source: impl Fn(usize) -> usize) {
        self.bytes.extend_from_slice(bytes.get(range.clone()).unwrap_or_default());
        self.begins.extend(range.map(source));
    }
}

/// Reads escapes of JSON, YAML, Go, Rust and shells.
fn backslash(text: &[u8]) -> Option<(usize, Letter)> {
    let [b'\\', second, rest @ ..] = text else { return None };
    let byte = |byte| Some((2, Letter::Byte(byte)));
    match second {
        b'n' => byte(b'\n'),
        b'r' => byte(b'\r'),
        b't' => byte(b'\t'),
        b'b' => byte(8),
        b'f' => byte(12),
        b'a' => byte(7),
        b'v' => byte(11),
        b'e' | b'E' => byte(27),
        b'x' => hex(rest, 2).map_or_else(
            || byte(b'x'),
            |code| Some((4, Letter::Byte(u8::try_from(code).unwrap_or_default()))),
        ),
        b'u' => {
            unicode(rest).map_or_else(|| byte(b'u'), |(length, char)| Some((2 + length, Letter::Char(char))))
        }
        b'U' => {
            let char = hex(rest, 8).and_then(char::from_u32);
            char.map_or_else(|| byte(b'U'), |char| Some((10, Letter::Char(char))))
        }
        b'0'..=b'7' => {
            let digits = text.iter().skip(1).take(3).take_while(|digit| (b'0'..=b'7').contains(digit));
            let digits: Vec<u32> = digits.map(|digit| u32::from(digit - b'0')).collect();
            let code = digits.iter().fold(0, |code, digit| code * 8 + digit);
            Some((1 + digits.len(), Letter::Byte(u8::try_from(code).unwrap_or(b'?'))))
        }
        // A quote, a slash, or a letter that a shell would read otherwise.
        other if other.is_ascii() => byte(*other),
        _ => None,
    }
}

/// Letters of YAML that a backslash stands before, and what they stand for.
const LETTERS: [(u8, char); 4] = [(b'N', '\u{85}'), (b'_', '\u{a0}'), (b'L', '\u{2028}'), (b'P', '\u{2029}')];

/// Reads escapes of YAML and Python, whose `\xe9` is a letter where it is a byte for others.
fn code_point(text: &[u8]) -> Option<(usize, Letter)> {
    let [b'\\', second, rest @ ..] = text else { return None };
    if *second == b'x'
        && let Some(char) = hex(rest, 2).and_then(char::from_u32)
    {
        return Some((4, Letter::Char(char)));
    }
    match LETTERS.iter().find(|(letter, _)| letter == second) {
        Some((_, char)) => Some((2, Letter::Char(*char))),
        None => backslash(text),
    }
}

/// Reads a quote in a field of CSV. An empty text of JSON looks the same, but signs stand at both its sides.
fn doubled(text: &[u8], before: Option<u8>) -> Option<(usize, Letter)> {
    let behind = text.strip_prefix(b"\"\"")?;
    let begins = before.is_none_or(|before| b" :,=([{".contains(&before));
    let ends = behind.first().is_none_or(|behind| b" ,)]}\n".contains(behind));
    // A text that ends with two quotes is one of JSON whose last letter is a quote.
    let closes = behind.is_empty()
        || (before == Some(b'\\') && behind.first().is_some_and(|behind| b",:}]\n".contains(behind)));
    (!(begins && ends || closes)).then_some((2, Letter::Byte(b'"')))
}

/// Reads how `cat -v` and others show what is not printed: `^I`, `^?`, and `M-C` for what is not ASCII.
fn caret(text: &[u8]) -> Option<(usize, Letter)> {
    let (length, byte) = match text {
        [b'^', control @ (b'@'..=b'_' | b'?'), ..] => (2, control ^ 0x40),
        [b'M', b'-', b'^', control @ (b'@'..=b'_' | b'?'), ..] => (4, 0x80 | (control ^ 0x40)),
        [b'M', b'-', printed @ b' '..=b'~', ..] => (3, 0x80 | printed),
        _ => return None,
    };
    Some((length, Letter::Byte(byte)))
}

/// Reads what follows `\u`: `00e9`, a pair of them, or `{e9}`.
fn unicode(text: &[u8]) -> Option<(usize, char)> {
    if let Some(rest) = text.strip_prefix(b"{") {
        let length = rest.iter().take(7).position(|byte| *byte == b'}')?;
        return Some((length + 2, char::from_u32(hex(rest, length)?)?));
    }
    let first = hex(text, 4)?;
    if let Some(char) = char::from_u32(first) {
        return Some((4, char));
    }
    let second = hex(text.get(4..)?.strip_prefix(b"\\u")?, 4)?;
    let pair = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    Some((10, char::decode_utf16(pair).next()?.ok()?))
}

/// Reads how a quote, or what is not printed, is written within quotes of a shell: they end, and begin again behind it.
fn shell(text: &[u8]) -> Option<(usize, Letter)> {
    let ways: [&[u8]; 2] = [b"'\\''", b"'\"'\"'"];
    if let Some(way) = ways.iter().find(|way| text.starts_with(way)) {
        return Some((way.len(), Letter::Byte(b'\'')));
    }
    // Tools of GNU write a tab so: 'one'$'\t''two'.
    let mut rest = text.strip_prefix(b"'$'")?;
    let mut bytes = Vec::new();
    while let Some((length, letter)) = backslash(rest) {
        match letter {
            Letter::Byte(byte) => bytes.push(byte),
            Letter::Char(_) | Letter::Several(_) => return None,
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    // A text that was cut ends in the middle of it.
    let is_cut = matches!(rest, [] | [b'\\']);
    let behind = rest.strip_prefix(b"'").or(is_cut.then_some(&[]))?;
    let behind = behind.strip_prefix(b"'").unwrap_or(behind);
    (!bytes.is_empty()).then(|| (text.len() - behind.len(), Letter::Several(bytes)))
}

fn percent(text: &[u8]) -> Option<(usize, Letter)> {
    let code = hex(text.strip_prefix(b"%")?, 2)?;
    Some((3, Letter::Byte(u8::try_from(code).ok()?)))
}

fn entity(text: &[u8]) -> Option<(usize, Letter)> {
    let rest = text.strip_prefix(b"&")?;
    let length = rest.iter().take(8).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(rest.get(..length)?).ok()?;
    let letter = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let code = name.strip_prefix('#')?;
            let code = match code.strip_prefix(['x', 'X']) {
                Some(code) => u32::from_str_radix(code, 16).ok()?,
                None => code.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((length + 2, Letter::Char(letter)))
}

fn hex(text: &[u8], length: usize) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(..length)?).ok()?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Reads each word that may be base64, from each of the places where its first group may begin, and what is in it.
fn base64(bytes: &[u8], begins: Option<&[usize]>, layers: usize, take: &mut dyn FnMut(&Decoded<'_>)) {
    let source = |at: usize| begins.map_or(at, |begins| begins.get(at).copied().unwrap_or_default());
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let length = leading_base64(rest).len();
        let behind = rest.get(length..).unwrap_or_default();
        let padding = padding(behind);
        for skipped in 0..4.min(length.saturating_sub(SHORTEST_BASE64 - 1)) {
            let word = rest.get(skipped..length).unwrap_or_default();
            let tail = behind.get(padding..).unwrap_or_default();
            let (begin, end) = (at + skipped, at + length + padding);
            let read_bytes = groups(word);
            if layers > 1 && is_text(&read_bytes) {
                let place = |byte: usize| source((begin + byte * 4 / 3).min(end));
                // What ends where the word ends has its padding, too.
                let places = (0..read_bytes.len()).map(place).chain([source(end)]);
                let places: Vec<usize> = places.collect();
                base64(&read_bytes, Some(&places), layers - 1, take);
                read(&read_bytes, Some(&places), (DEPTH - 1, layers - 1), &mut BTreeMap::new(), take);
            }
            take(&Decoded {
                bytes: read_bytes.into(),
                begins: begins.map(Cow::Borrowed),
                base64: Some(begin..end),
                is_nested: layers < LAYERS,
                is_cut: is_cut_mark(tail),
                is_at_end: tail.is_empty(),
            });
        }
        at += length.max(1);
    }
}

/// Returns whether bytes are a text in which something can be encoded. What is read as base64 and is none hardly ever is.
fn is_text(bytes: &[u8]) -> bool {
    // Some values have control characters, which not all escapes change.
    let is_printed = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    let most = 1 + bytes.len() / 8;
    // The end may be cut in the middle of a letter.
    let whole = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    whole + 4 > bytes.len()
        && whole >= SHORTEST_BASE64
        && bytes.iter().filter(|byte| !is_printed(byte)).nth(most).is_none()
}

/// Returns the word of base64 that a text begins with, without padding.
pub(super) fn leading_base64(text: &[u8]) -> &[u8] {
    let length = text.iter().take_while(|byte| sextet(**byte).is_some()).count();
    text.get(..length).unwrap_or_default()
}

/// Returns how long the padding is that a text begins with.
pub(super) fn padding(text: &[u8]) -> usize {
    text.iter().take(2).take_while(|byte| **byte == b'=').count()
}

/// Returns what a byte stands for in base64, of files or of URLs.
fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

/// Returns the bytes of all whole groups, and of what is left of the last one.
pub(super) fn groups(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len() / 4 * 3 + 2);
    for group in word.chunks(4) {
        let bits = group.iter().filter_map(|byte| sextet(*byte)).fold(0, |bits, six| (bits << 6) | six);
        let bits = bits << (6 * (4 - group.len()));
        let [_, a, b, c] = bits.to_be_bytes();
        bytes.extend([a, b, c].iter().take(group.len() * 3 / 4));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(text: &str) -> usize {
        let mut count = 0;
        each(text.as_bytes(), &mut |_| count += 1);
        count
    }

    #[test]
    fn a_text_is_read_a_bounded_number_of_times_however_often_it_is_escaped() {
        assert_eq!(readings("what says nothing is (not) read: 100% of A & B isn't"), 0);
        assert_eq!(readings(r#"{"empty":"","list":["",""]}"#), 0, "empty texts are no quotes of CSV");
        assert_eq!(readings("a%41 &lt;"), 3, "both orders are one");
        let all = r#"\\\"\\u005c \' ' '' '\'' '"'"' '$'\t'' a""b \\xe9 \L ^I M-CM-) %25%35%63 %255c + %2b &amp;amp; &#37;41 %26amp; "#;
        for (times, most) in [(1, 400), (10, 400), (1_000, 160)] {
            let count = readings(&all.repeat(times));
            assert!(count <= most, "{times} times: {count}");
        }
    }
}
