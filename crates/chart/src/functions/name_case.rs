//! Names in camel case, snake case and kebab case.

use golang::unicode::{self, is_upper, to_lower, to_upper};

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// Joins words that connectors separate, each with a capital: `a-bc` becomes `ABc`.
///
/// Of several connectors in a row all but the last stay. A word that begins with a capital
/// loses the capitals that follow.
pub(super) fn pascal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut pending = None;
    for c in chars.by_ref() {
        if !is_connector(c) {
            pending = Some(c);
            break;
        }
        out.push(c);
    }
    let Some(first) = pending else {
        // Where there is nothing to join, the last connector comes twice.
        out.extend(text.chars().next_back());
        return out;
    };
    let mut in_capitals = is_upper(first);
    let mut last = to_upper(first);
    for c in chars {
        let before = std::mem::replace(&mut last, c);
        match (is_connector(before), is_connector(c)) {
            (true, true) => out.push(before),
            (true, false) => {
                in_capitals = is_upper(c);
                last = to_upper(c);
            }
            (false, _) => {
                if in_capitals {
                    if is_upper(c) {
                        last = to_lower(c);
                    } else {
                        in_capitals = false;
                    }
                }
                out.push(before);
            }
        }
    }
    out.push(last);
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Capital,
    Connector,
    Letters,
    Number,
    Other,
    Punctuation,
}

impl Word {
    /// Reports whether a word of this kind begins anew behind a connector only.
    fn is_joint(self) -> bool {
        matches!(self, Self::Connector | Self::Punctuation)
    }

    fn is_small(self) -> bool {
        matches!(self, Self::Letters | Self::Number)
    }
}

/// Separates the words of a name, in lower case: `HTTPServer2` becomes `http_server_2`.
pub(super) fn separated(text: &str, connector: char) -> String {
    let mut words = words(text).into_iter().peekable();
    let mut out = String::with_capacity(text.len() + 4);
    while let Some((kind, word)) = words.next() {
        append(&mut out, kind, word, connector);
        let Some((next, _)) = words.peek().copied() else {
            break;
        };
        if kind.is_joint() {
            continue;
        }
        if kind != Word::Number {
            if next != Word::Number {
                if !next.is_joint() {
                    out.push(connector);
                }
                continue;
            }
            // A number belongs to the word before, unless letters follow it.
            let mut ahead = words.clone();
            ahead.next();
            if ahead.peek().is_none_or(|(after, _)| *after != Word::Letters) {
                if let Some((kind, word)) = words.next() {
                    append(&mut out, kind, word, connector);
                }
                if words.peek().is_some_and(|(after, _)| !after.is_joint()) {
                    out.push(connector);
                }
                continue;
            }
            out.push(connector);
        }
        // Letters and numbers behind a number stay together.
        while let Some((kind, word)) = words.next_if(|(kind, _)| kind.is_small()) {
            append(&mut out, kind, word, connector);
        }
        if words.peek().is_some_and(|(after, _)| !after.is_joint()) {
            out.push(connector);
        }
    }
    out
}

fn append(out: &mut String, kind: Word, word: &str, connector: char) {
    match kind {
        Word::Connector => word.chars().for_each(|_| out.push(connector)),
        Word::Capital => out.extend(word.chars().map(|c| if is_upper(c) { to_lower(c) } else { c })),
        Word::Letters | Word::Number | Word::Other | Word::Punctuation => out.push_str(word),
    }
}

fn words(text: &str) -> Vec<(Word, &str)> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = kind(first);
        let len = word_len(rest, first, kind);
        let (word, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        words.push((kind, word));
        rest = after;
    }
    words
}

fn kind(c: char) -> Word {
    if is_connector(c) {
        Word::Connector
    } else if is_punctuation(c) {
        Word::Punctuation
    } else if is_upper(c) {
        Word::Capital
    } else if is_letter(c) {
        Word::Letters
    } else if c.is_numeric() {
        Word::Number
    } else {
        Word::Other
    }
}

/// Letters of scripts without case, such as Chinese, do not form words.
fn is_letter(c: char) -> bool {
    unicode::is_letter(c)
        && !matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        // The other marks of ASCII are symbols.
        c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
    } else {
        matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}'
            | '\u{2053}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}')
    }
}

/// Returns the length of the word at the front of `text`.
fn word_len(text: &str, first: char, kind: Word) -> usize {
    let run = |belongs: fn(char) -> bool| {
        let tail = text.get(first.len_utf8()..).unwrap_or_default();
        first.len_utf8() + tail.find(|c| !belongs(c)).unwrap_or(tail.len())
    };
    match kind {
        Word::Connector => run(is_connector),
        Word::Punctuation => run(is_punctuation),
        Word::Letters => run(|c| is_letter(c) && !is_upper(c)),
        Word::Number => run(char::is_numeric),
        Word::Other => run(|c| !is_connector(c) && !is_letter(c) && !c.is_numeric() && !is_punctuation(c)),
        Word::Capital => {
            let capitals = run(is_upper);
            if capitals == first.len_utf8() {
                return run(|c| is_letter(c) && !is_upper(c));
            }
            // The last of several capitals belongs to the letters behind it.
            let (word, after) = text.split_at_checked(capitals).unwrap_or((text, ""));
            match (after.chars().next(), word.chars().next_back()) {
                (Some(next), Some(last)) if is_letter(next) => capitals - last.len_utf8(),
                _ => capitals,
            }
        }
    }
}
