//! Reads the heads of documents that are written as almost all are: block mappings and lists, a line
//! for each key, simple values. They need no parser, which is most of a render's time.

use super::Head;

/// How deeply documents are nested that are looked at here.
const MAX_DEPTH: usize = 64;

/// How long a key may be.
const MAX_KEY: usize = 200;

/// How deeply brackets are nested that are looked into here.
const MAX_FLOW_DEPTH: usize = 16;

/// How long a number may be that surely fits.
const MAX_NUMBER: usize = 15;

/// Returns the head of `document` if it is surely what a YAML parser would read; without an
/// answer the parser has to be asked.
pub(super) fn scan(document: &str) -> Option<Head> {
    let is_plain = |c: char| matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{2030}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{10000}'..='\u{10fffd}');
    let is_ascii = document.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~'));
    if !is_ascii && !document.chars().all(is_plain) {
        return None;
    }
    let mut reader = Reader {
        stack: Vec::new(),
        waits: true,
        block: None,
        plain: None,
        place: Vec::new(),
        seen: 0,
        head: Head::default(),
    };
    for line in document.split('\n') {
        reader.line(line)?;
    }
    // An object without these is for the parser.
    (reader.seen & (KIND | METADATA) == KIND | METADATA).then_some(reader.head)
}

const API_VERSION: u8 = 1;
const KIND: u8 = 2;
const METADATA: u8 = 4;
const NAME: u8 = 8;
const ANNOTATIONS: u8 = 16;

/// An open mapping or list, and the column that its entries begin in.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Level {
    column: usize,
    is_list: bool,
}

/// A block of text that goes on for all lines further in.
struct Block {
    /// The column of the entry that it belongs to.
    outer: usize,
    /// The column of its text, once that is known.
    inner: Option<usize>,
}

struct Reader<'t> {
    stack: Vec<Level>,
    /// The last entry has no value yet.
    waits: bool,
    block: Option<Block>,
    /// The line before ended with a value without quotes, which may go on: whether it is in the head.
    plain: Option<bool>,
    /// The keys of the open mappings, but for those in lists.
    place: Vec<(usize, &'t str)>,
    /// Which parts of the head were there.
    seen: u8,
    head: Head,
}

/// What stands behind a key or a dash.
enum Scalar<'t> {
    None,
    /// A text between quotes, as it stands there.
    Quoted(&'t str),
    /// A text between quotes with parts that stand for others.
    Escaped,
    /// A text without quotes.
    Plain(&'t str),
    /// A number, or a word with a meaning of its own.
    Other,
    /// A mapping or a list in brackets, which may be empty.
    Collection,
    Block,
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: &'t str) -> Option<()> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if self.is_of_block(text, indent)? {
            return Some(());
        }
        if text.is_empty() || text.starts_with('#') {
            self.plain = None;
            return Some(());
        }
        if self.goes_on(text, indent)? {
            return Some(());
        }
        self.entries(text, indent)
    }

    /// Reports whether a line belongs to the value without quotes of the line before.
    fn goes_on(&mut self, text: &str, indent: usize) -> Option<bool> {
        let (Some(is_of_head), Some(top)) = (self.plain, self.stack.last()) else { return Some(false) };
        if indent <= top.column {
            return Some(false);
        }
        if has_indicator(text) || !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return None;
        }
        if is_of_head {
            let Some([(_, "metadata"), (_, "annotations"), (_, key)]) = self.path() else { return None };
            let value = self.head.annotations.get_mut(*key)?;
            value.push(' ');
            value.push_str(text.trim_end_matches(' '));
        }
        Some(true)
    }

    /// Reports whether a line belongs to the open block of text.
    fn is_of_block(&mut self, text: &str, indent: usize) -> Option<bool> {
        let Some(block) = &mut self.block else { return Some(false) };
        match block.inner {
            // Blank lines that reach further in than the text are for the parser.
            None if text.is_empty() => return (indent == 0).then_some(true),
            Some(inner) if text.is_empty() => return (indent <= inner).then_some(true),
            None if indent > block.outer => {
                block.inner = Some(indent);
                return Some(true);
            }
            Some(inner) if indent >= inner => return Some(true),
            Some(_) if indent > block.outer => return None,
            None | Some(_) => {}
        }
        self.block = None;
        Some(false)
    }

    fn entries(&mut self, mut text: &'t str, mut column: usize) -> Option<()> {
        self.plain = None;
        let mut is_inner = false;
        while let Some(rest) = text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' '))
        {
            self.enter(column, true, is_inner)?;
            is_inner = true;
            self.waits = true;
            let item = rest.trim_start_matches(' ');
            if item.is_empty() {
                return Some(());
            }
            column += text.len() - item.len();
            text = item;
        }
        let Some((key, rest)) = split_key(text) else {
            // A value of its own is an item of a list.
            if !is_inner {
                return None;
            }
            let scalar = scalar(text)?;
            self.value(&scalar, column.saturating_sub(1), false);
            return Some(());
        };
        self.enter(column, false, is_inner)?;
        self.name(key, column)?;
        let scalar = scalar(rest)?;
        let is_of_head = self.keep(&scalar)?;
        self.value(&scalar, column, is_of_head);
        Some(())
    }

    /// Goes to the mapping or list whose entries begin in `column`.
    fn enter(&mut self, column: usize, is_list: bool, is_inner: bool) -> Option<()> {
        let mut waits = self.waits;
        while self.stack.last().is_some_and(|top| top.column > column) {
            self.stack.pop();
            waits = false;
        }
        // A list may stand in the column of its key.
        if let Some(top) = self.stack.last().copied()
            && top.column == column
            && top.is_list
            && !is_list
        {
            self.stack.pop();
            waits = false;
        }
        match self.stack.last() {
            Some(top) if top.column == column && top.is_list == is_list && !is_inner => {}
            Some(top) if top.column == column && is_list && waits => self.push(column, is_list)?,
            Some(top) if top.column < column && waits => self.push(column, is_list)?,
            None if column == 0 && !is_list && waits => self.push(column, is_list)?,
            Some(_) | None => return None,
        }
        self.waits = false;
        Some(())
    }

    fn push(&mut self, column: usize, is_list: bool) -> Option<()> {
        let keys = self.place.as_slice();
        let is_head = matches!(
            keys,
            [(_, "apiVersion" | "kind" | "metadata")] | [(_, "metadata"), (_, "name" | "annotations")]
        );
        // A list where a text or a mapping is expected is for the parser to refuse.
        if is_list && is_head {
            return None;
        }
        self.stack.push(Level { column, is_list });
        (self.stack.len() <= MAX_DEPTH).then_some(())
    }

    /// Notes the key that was read, and which part of the head it is.
    fn name(&mut self, key: &'t str, column: usize) -> Option<()> {
        while self.place.last().is_some_and(|(at, _)| *at >= column) {
            self.place.pop();
        }
        self.place.push((column, key));
        let known: &[(&str, u8)] = match self.path() {
            Some([_]) => &[("apiVersion", API_VERSION), ("kind", KIND), ("metadata", METADATA)],
            Some([(_, "metadata"), _]) => &[("name", NAME), ("annotations", ANNOTATIONS)],
            _ => return Some(()),
        };
        for (name, part) in known {
            if name.eq_ignore_ascii_case(key) {
                // One that stands there twice, or is written in another way, is for the parser.
                if *name != key || self.seen & part != 0 {
                    return None;
                }
                self.seen |= part;
            }
        }
        Some(())
    }

    /// Returns the keys that lead to the last one, if no list does.
    fn path(&self) -> Option<&[(usize, &'t str)]> {
        let is_plain = self.stack.len() == self.place.len() && self.stack.iter().all(|level| !level.is_list);
        is_plain.then_some(self.place.as_slice())
    }

    /// Takes the value of the last key into the head, if it belongs there. Returns whether it does.
    fn keep(&mut self, scalar: &Scalar<'t>) -> Option<bool> {
        let Some(path) = self.path() else { return Some(false) };
        let (slot, text) = match (path, scalar) {
            ([(_, "apiVersion")], Scalar::Quoted(text) | Scalar::Plain(text)) => {
                (&mut self.head.api_version, text)
            }
            ([(_, "kind")], Scalar::Quoted(text) | Scalar::Plain(text)) => (&mut self.head.kind, text),
            ([(_, "metadata"), (_, "name")], Scalar::Quoted(text) | Scalar::Plain(text)) => {
                (&mut self.head.name, text)
            }
            ([(_, "metadata"), (_, "annotations"), (_, key)], Scalar::Quoted(text) | Scalar::Plain(text)) => {
                // A word or a number as a key is what it means.
                if has_meaning(key) || !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    return None;
                }
                (self.head.annotations.entry((*key).to_owned()).or_default(), text)
            }
            ([(_, "metadata")] | [(_, "metadata"), (_, "annotations")], Scalar::None) => return Some(false),
            ([(_, "apiVersion" | "kind" | "metadata"), ..], _) if !matches!(path, [(_, "metadata"), (_, other), ..] if !matches!(*other, "name" | "annotations")) =>
            {
                return None;
            }
            _ => return Some(false),
        };
        (*text).clone_into(slot);
        Some(true)
    }

    /// Notes what stands behind a key or dash; `column` is that of the entry.
    fn value(&mut self, scalar: &Scalar<'t>, column: usize, is_of_head: bool) {
        self.waits = matches!(scalar, Scalar::None);
        self.plain = matches!(scalar, Scalar::Plain(_) | Scalar::Other).then_some(is_of_head);
        if matches!(scalar, Scalar::Block) {
            let outer = self.stack.last().map_or(column, |level| level.column);
            self.block = Some(Block { outer, inner: None });
        }
    }
}

/// Splits a line into its key and what stands behind the colon.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = if text.starts_with(['"', '\'']) {
        quoted_key(text)?
    } else {
        let end = text.bytes().position(|byte| !is_of_word(char::from(byte)))?;
        let (key, rest) = text.split_at_checked(end)?;
        let first = key.chars().next()?;
        let is_number = !first.is_ascii_alphabetic() && key.len() > MAX_NUMBER;
        let is_null = key.eq_ignore_ascii_case("null");
        (first != '-' && first != '.' && !is_number && !is_null).then_some((key, rest))?
    };
    let rest = rest.strip_prefix(':').filter(|rest| rest.is_empty() || rest.starts_with(' '))?;
    (key.len() <= MAX_KEY).then_some((key, rest.trim_matches(' ')))
}

/// Splits a key between quotes from what follows it.
fn quoted_key(text: &str) -> Option<(&str, &str)> {
    let (_, rest, is_escaped) = quoted(text)?;
    let key = text.get(1..text.len() - rest.len() - 1)?;
    (!is_escaped && !key.is_empty() && key.len() <= MAX_KEY && key != "<<").then_some((key, rest))
}

/// Reports whether `pair` stands in `text`. For texts as short as these, the search of the
/// standard library takes longer to set up than to do.
fn has_pair(text: &str, pair: [u8; 2]) -> bool {
    text.as_bytes().windows(2).any(|window| window == pair)
}

/// Reports whether something in a text without quotes may end it, or make a key of it.
fn has_indicator(text: &str) -> bool {
    text.ends_with(':') || has_pair(text, *b": ") || has_pair(text, *b" #")
}

/// Reports whether a text is a word with a meaning of its own.
fn has_meaning(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "yes", "n", "no", "true", "false", "on", "off", "null"];
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Returns what a value is, if that is sure.
fn scalar(text: &str) -> Option<Scalar<'_>> {
    let text = text.trim_matches(' ');
    let Some(first) = text.chars().next() else { return Some(Scalar::None) };
    match first {
        '"' | '\'' => match quoted(text)? {
            (_, "", true) => Some(Scalar::Escaped),
            (inner, "", false) => Some(Scalar::Quoted(inner)),
            _ => None,
        },
        '{' | '[' => flow(text, 0).filter(|rest| rest.is_empty()).map(|_| Scalar::Collection),
        '|' | '>' => matches!(text, "|" | "|-" | "|+" | ">" | ">-" | ">+").then_some(Scalar::Block),
        _ if has_indicator(text) => None,
        'a'..='z' | 'A'..='Z' => Some(if has_meaning(text) { Scalar::Other } else { Scalar::Plain(text) }),
        '0'..='9' | '/' | '_' | '$' | '(' | '+' | '.' | ';' | '<' | '=' | '^' | '~' | '\\' | '\u{a0}'.. => {
            is_harmless(text).then_some(Scalar::Other)
        }
        '-' => (text.len() > 1 && !text.starts_with("- ") && is_harmless(text)).then_some(Scalar::Other),
        _ => None,
    }
}

/// Skips a value between brackets, or a mapping or a list in them; returns what follows it.
///
/// Names are of letters, and words of what no notation gives a meaning to.
fn flow(text: &str, depth: usize) -> Option<&str> {
    if depth > MAX_FLOW_DEPTH {
        return None;
    }
    let (close, is_map) = match text.chars().next()? {
        '{' => ('}', true),
        '[' => (']', false),
        '"' | '\'' => return quoted(text).map(|(_, rest, _)| rest),
        _ => return word(text),
    };
    let mut rest = text.get(1..)?.trim_start_matches(' ');
    if let Some(after) = rest.strip_prefix(close) {
        return Some(after);
    }
    loop {
        if is_map {
            rest = flow_key(rest)?.trim_start_matches(' ');
        }
        rest = flow(rest, depth + 1)?.trim_start_matches(' ');
        if let Some(after) = rest.strip_prefix(close) {
            return Some(after);
        }
        rest = rest.strip_prefix(',')?.trim_start_matches(' ');
    }
}

/// Skips a key between brackets and its colon.
fn flow_key(text: &str) -> Option<&str> {
    if text.starts_with(['"', '\'']) {
        // Behind quotes no space is needed.
        return quoted_key(text)?.1.strip_prefix(':');
    }
    let (key, rest) = text.split_once(": ")?;
    let is_name = key.len() <= MAX_KEY
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(is_of_word)
        && !key.eq_ignore_ascii_case("null");
    is_name.then_some(rest)
}

/// Skips a word or a number.
fn word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !is_of_word(c))?;
    let (word, rest) = text.split_at_checked(end)?;
    let first = word.chars().next()?;
    (first.is_ascii_alphabetic() || (first.is_ascii_digit() && is_harmless(word))).then_some(rest)
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-')
}

/// Reports whether a value can't be a number that JSON does not hold.
fn is_harmless(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    let is_special = digits.starts_with('.') && digits.len() <= 4;
    let is_of_other_base =
        digits.strip_prefix('0').is_some_and(|rest| rest.starts_with(['x', 'X', 'o', 'O', 'b', 'B']));
    // A checksum has letters that no number has.
    let is_number = is_of_other_base
        || digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | '.' | '+' | '-' | 'e' | 'E'));
    !is_special
        && text != "<<"
        && text != "="
        && (!is_number || (text.len() <= MAX_NUMBER && !text.contains(['e', 'E'])))
}

/// Splits a text between quotes from what follows it: the text as it stands there, the rest, and whether parts of the text
/// stand for others.
fn quoted(text: &str) -> Option<(&str, &str, bool)> {
    let quote = text.bytes().next()?;
    let body = text.get(1..)?;
    let bytes = body.as_bytes();
    let (mut at, mut is_escaped) = (0, false);
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == quote || (*byte == b'\\' && quote == b'"'))?;
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'\\', Some(b'"' | b'\\' | b'n' | b't' | b'r')) => at += 2,
            (b'\\', Some(b'u')) => at = after_code(bytes, at + 2)?,
            // Another escape, or two quotes in a row, which are one of the text.
            (b'\\', _) => return None,
            (_, Some(next)) if *next == quote => return None,
            _ => return Some((body.get(..at)?, body.get(at + 1..)?, is_escaped)),
        }
        is_escaped = true;
    }
}

/// Returns where the four digits of a character end that is no half of another one.
fn after_code(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal)?;
    char::from_u32(code).map(|_| at + 4)
}
