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
    /// The keys of the open mappings, but for those in lists.
    place: Vec<(usize, &'t str)>,
    /// Which parts of the head were there.
    seen: u8,
    head: Head,
}

/// What stands behind a key or a dash.
enum Scalar<'t> {
    None,
    /// A text, whatever it looks like.
    Text(&'t str),
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
            return Some(());
        }
        self.entries(text, indent)
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
            self.value(&scalar, column.saturating_sub(1));
            return Some(());
        };
        self.enter(column, false, is_inner)?;
        self.name(key, column)?;
        let scalar = scalar(rest)?;
        self.keep(&scalar)?;
        self.value(&scalar, column);
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

    /// Takes the value of the last key into the head, if it belongs there.
    fn keep(&mut self, scalar: &Scalar<'t>) -> Option<()> {
        let Some(path) = self.path() else { return Some(()) };
        let (slot, text) = match (path, scalar) {
            ([(_, "apiVersion")], Scalar::Text(text)) => (&mut self.head.api_version, text),
            ([(_, "kind")], Scalar::Text(text)) => (&mut self.head.kind, text),
            ([(_, "metadata"), (_, "name")], Scalar::Text(text)) => (&mut self.head.name, text),
            ([(_, "metadata"), (_, "annotations"), (_, key)], Scalar::Text(text)) => {
                (self.head.annotations.entry((*key).to_owned()).or_default(), text)
            }
            ([(_, "metadata")] | [(_, "metadata"), (_, "annotations")], Scalar::None) => return Some(()),
            ([(_, "apiVersion" | "kind" | "metadata"), ..], _) if !matches!(path, [(_, "metadata"), (_, other), ..] if !matches!(*other, "name" | "annotations")) =>
            {
                return None;
            }
            _ => return Some(()),
        };
        (*text).clone_into(slot);
        Some(())
    }

    /// Notes what stands behind a key or dash; `column` is that of the entry.
    fn value(&mut self, scalar: &Scalar<'t>, column: usize) {
        self.waits = matches!(scalar, Scalar::None);
        if matches!(scalar, Scalar::Block) {
            let outer = self.stack.last().map_or(column, |level| level.column);
            self.block = Some(Block { outer, inner: None });
        }
    }
}

/// Splits a line into its key and what stands behind the colon.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !is_of_word(char::from(byte)))?;
    let (key, rest) = text.split_at_checked(end)?;
    let rest = rest.strip_prefix(':').filter(|rest| rest.is_empty() || rest.starts_with(' '))?;
    let first = key.chars().next()?;
    let is_number = !first.is_ascii_alphabetic() && key.len() > MAX_NUMBER;
    let is_null = key.eq_ignore_ascii_case("null");
    (first != '-' && first != '.' && key.len() <= MAX_KEY && !is_number && !is_null)
        .then_some((key, rest.trim_matches(' ')))
}

/// Reports whether `pair` stands in `text`. For texts as short as these, the search of the
/// standard library takes longer to set up than to do.
fn has_pair(text: &str, pair: [u8; 2]) -> bool {
    text.as_bytes().windows(2).any(|window| window == pair)
}

/// Returns what a value is, if that is sure.
fn scalar(text: &str) -> Option<Scalar<'_>> {
    let text = text.trim_matches(' ');
    let Some(first) = text.chars().next() else { return Some(Scalar::None) };
    match first {
        '"' => quoted(text, '"').filter(|inner| !inner.contains('\\')).map(Scalar::Text),
        '\'' => quoted(text, '\'').map(Scalar::Text),
        '{' | '[' => flow(text, 0).filter(|rest| rest.is_empty()).map(|_| Scalar::Collection),
        '|' | '>' => matches!(text, "|" | "|-" | "|+" | ">" | ">-" | ">+").then_some(Scalar::Block),
        _ if text.ends_with(':') || has_pair(text, *b": ") || has_pair(text, *b" #") => None,
        'a'..='z' | 'A'..='Z' => {
            const WORDS: [&str; 9] = ["y", "yes", "n", "no", "true", "false", "on", "off", "null"];
            let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
            Some(if is_word { Scalar::Other } else { Scalar::Text(text) })
        }
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
        quote @ ('"' | '\'') => {
            let (inner, rest) = text.strip_prefix(quote)?.split_once(quote)?;
            // Two quotes in a row are one of the text.
            return (!inner.contains('\\') && !rest.starts_with(quote)).then_some(rest);
        }
        _ => return word(text),
    };
    let mut rest = text.get(1..)?.trim_start_matches(' ');
    if let Some(after) = rest.strip_prefix(close) {
        return Some(after);
    }
    loop {
        if is_map {
            let (key, after) = rest.split_once(": ")?;
            let is_name = key.len() <= MAX_KEY
                && key.starts_with(|c: char| c.is_ascii_alphabetic())
                && key.chars().all(is_of_word)
                && !key.eq_ignore_ascii_case("null");
            rest = is_name.then(|| after.trim_start_matches(' '))?;
        }
        rest = flow(rest, depth + 1)?.trim_start_matches(' ');
        if let Some(after) = rest.strip_prefix(close) {
            return Some(after);
        }
        rest = rest.strip_prefix(", ")?.trim_start_matches(' ');
    }
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

/// Returns what stands between two quotes that are the first and the last of a value.
fn quoted(text: &str, quote: char) -> Option<&str> {
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(quote)).then_some(inner)
}
