//! What is wrong with a text that is not TOML, in the words that templates see from Helm.

use std::collections::BTreeMap;

use super::number::{self, quoted};

/// Returns the first problem of `text`, with its line and the last key before it; none if
/// this does not know it.
pub(super) fn find(text: &str) -> Option<String> {
    let mut scan = Scan {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
        table: Vec::new(),
        key: Vec::new(),
        known: BTreeMap::new(),
        depth: 0,
    };
    let problem = scan.document().err()?;
    let key = if scan.key.is_empty() {
        String::new()
    } else {
        format!(" (last key {})", quoted(&scan.key.join(".")))
    };
    Some(format!("toml: line {}{key}: {problem}", scan.line))
}

/// How deeply arrays and tables of one line are followed.
const MAX_DEPTH: usize = 64;

/// How long a date is.
const DATE: usize = "2006-01-02".len();

/// What a key stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Value,
    Table,
    Array,
    /// A table that only its inner ones name.
    Implied,
}

type Step<T = ()> = Result<T, String>;

struct Scan {
    chars: Vec<char>,
    at: usize,
    line: usize,
    table: Vec<String>,
    /// The key whose value is read.
    key: Vec<String>,
    known: BTreeMap<Vec<String>, Meaning>,
    depth: usize,
}

/// Returns a character, or the end, as a quoted one.
fn shown(found: Option<char>) -> String {
    match found {
        None => "'\\x00'".to_owned(),
        Some('\n') => "'\\n'".to_owned(),
        Some(c) => format!("'{c}'"),
    }
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl Scan {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.chars.get(self.at..).is_some_and(|rest| {
            rest.iter().copied().zip(text.chars()).filter(|(a, b)| a == b).count() == text.len()
        })
    }

    fn next(&mut self) -> Step<Option<char>> {
        let found = self.peek();
        let Some(c) = found else { return Ok(None) };
        let ends_line = c == '\r' && self.chars.get(self.at + 1) == Some(&'\n');
        if (c.is_control() && !matches!(c, '\n' | '\t') && !ends_line) || c == '\u{7f}' {
            return Err(format!("TOML files cannot contain control characters: '0x{:02x}'", u32::from(c)));
        }
        self.at += 1;
        self.line += usize::from(c == '\n');
        Ok(found)
    }

    /// Passes over white space, and over line breaks and comments if `lines`.
    fn skip(&mut self, lines: bool) -> Step {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.next()?;
                }
                Some('\n' | '\r') if lines => {
                    self.next()?;
                }
                Some('#') if lines => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next()?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn document(&mut self) -> Step {
        loop {
            self.skip(true)?;
            match self.peek() {
                None => return Ok(()),
                Some('[') => self.header()?,
                Some(_) => {
                    self.entry(&self.table.clone())?;
                    self.key.clear();
                }
            }
            self.skip(false)?;
            match self.peek() {
                None | Some('\n' | '#') => {}
                Some('\r') => {
                    self.next()?;
                }
                found => {
                    return Err(format!(
                        "expected a top-level item to end with a newline, comment, or EOF, but got {} instead",
                        shown(found)
                    ));
                }
            }
            self.key.clear();
        }
    }

    fn header(&mut self) -> Step {
        self.next()?;
        let is_array = self.peek() == Some('[');
        if is_array {
            self.next()?;
        }
        self.skip(false)?;
        if matches!(self.peek(), None | Some(']')) {
            return Err("unexpected end of table name (table names cannot be empty)".to_owned());
        }
        let path = self.path(
            |found| format!("expected '.' or ']' to end table name, but got {} instead", shown(found)),
            ']',
        )?;
        self.next()?;
        if is_array {
            if self.peek() != Some(']') {
                return Err(format!(
                    "expected end of table array name delimiter ']', but got {} instead",
                    shown(self.peek())
                ));
            }
            self.next()?;
        }
        self.define_table(&path, is_array)?;
        self.key.clone_from(&path);
        self.table = path;
        Ok(())
    }

    fn define_table(&mut self, path: &[String], is_array: bool) -> Step {
        self.check_outer(path, "was already created as a hash")?;
        let defined = |path: &[String]| format!("Key '{}' has already been defined.", path.join("."));
        match (self.known.get(path), is_array) {
            (None | Some(Meaning::Implied), false) => {}
            (None | Some(Meaning::Array), true) => {
                // Each table of an array has keys of its own.
                self.known.retain(|known, _| !(known.starts_with(path) && known.len() > path.len()));
            }
            (Some(_), true) => {
                return Err(format!(
                    "Key '{}' was already created and cannot be used as an array.",
                    path.join(".")
                ));
            }
            (Some(_), false) => return Err(defined(path)),
        }
        self.imply(path);
        self.known.insert(path.to_vec(), if is_array { Meaning::Array } else { Meaning::Table });
        Ok(())
    }

    fn imply(&mut self, path: &[String]) {
        for length in 1..path.len() {
            if let Some(outer) = path.get(..length) {
                self.known.entry(outer.to_vec()).or_insert(Meaning::Implied);
            }
        }
    }

    /// Checks that no key around `path` has a value.
    fn check_outer(&self, path: &[String], problem: &str) -> Step {
        for length in 1..path.len() {
            if let Some(outer) = path.get(..length)
                && self.known.get(outer) == Some(&Meaning::Value)
            {
                return Err(format!("Key '{}' {problem}.", outer.join(".")));
            }
        }
        Ok(())
    }

    /// Reads the parts of a key up to `end`, which stays.
    fn path(&mut self, problem: impl Fn(Option<char>) -> String, end: char) -> Step<Vec<String>> {
        let mut path = Vec::new();
        loop {
            self.skip(false)?;
            match self.peek() {
                Some('.') if path.is_empty() => {
                    return Err("unexpected '.': keys cannot start with a '.'".to_owned());
                }
                Some(c) if path.is_empty() && c == '=' => {
                    return Err("unexpected '=': key name appears blank".to_owned());
                }
                Some(c @ ('.' | '=')) => return Err(format!("unexpected '{c}'")),
                Some(quote @ ('"' | '\'')) => {
                    let start = self.at + 1;
                    self.next()?;
                    self.string_end(quote, false)?;
                    let part = self.chars.get(start..self.at - 1).unwrap_or_default();
                    path.push(part.iter().collect());
                }
                Some(c) if is_bare(c) => {
                    let mut part = String::new();
                    while let Some(c) = self.peek().filter(|c| is_bare(*c)) {
                        part.push(c);
                        self.next()?;
                    }
                    path.push(part);
                }
                found => {
                    if let Some(c) = found {
                        // A control character is the worse problem.
                        self.next()?;
                        self.at -= 1;
                        self.line -= usize::from(c == '\n');
                    }
                    return Err(problem(found));
                }
            }
            self.skip(false)?;
            match self.peek() {
                Some('.') => {
                    self.next()?;
                }
                Some(c) if c == end => return Ok(path),
                found => return Err(problem(found)),
            }
        }
    }

    /// Reads a key with its value in the table `table`.
    fn entry(&mut self, table: &[String]) -> Step {
        let path = self.path(
            |found| match found {
                None => "unexpected EOF; expected key separator '='".to_owned(),
                found => format!("expected '.' or '=', but got {} instead", shown(found)),
            },
            '=',
        )?;
        self.next()?;
        let mut full = table.to_vec();
        full.extend(path);
        self.key.clone_from(&full);
        self.skip(false)?;
        if self.peek().is_none() {
            return Err("unexpected EOF; expected value".to_owned());
        }
        // The keys of an inline table imply it.
        let is_known = self.known.contains_key(&full);
        self.value()?;
        self.key.clone_from(&full);
        self.check_outer(&full, "has already been defined")?;
        if is_known {
            return Err(format!("Key '{}' has already been defined.", full.join(".")));
        }
        self.imply(&full);
        self.known.insert(full, Meaning::Value);
        Ok(())
    }

    fn value(&mut self) -> Step {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("values are nested too deeply".to_owned());
        }
        let outcome = match self.peek() {
            None => Err("unexpected EOF; expected value".to_owned()),
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some('[') => self.array(),
            Some('{') => self.inline(),
            Some('.') => Err("floats must start with a digit, not '.'".to_owned()),
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-') => self.number(),
            Some(c) if c.is_alphabetic() => {
                let word = self.word(char::is_alphabetic)?;
                match word.as_str() {
                    "true" | "false" | "inf" | "nan" => Ok(()),
                    word => Err(format!("expected value but found {} instead", quoted(word))),
                }
            }
            found => Err(format!("expected value but found {} instead", shown(found))),
        };
        self.depth -= 1;
        outcome
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> Step<String> {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| is_part(*c)) {
            word.push(c);
            self.next()?;
        }
        Ok(word)
    }

    fn string(&mut self, quote: char) -> Step {
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let is_long = self.starts_with(&triple);
        for _ in 0..if is_long { 3 } else { 1 } {
            self.next()?;
        }
        self.string_end(quote, is_long)
    }

    /// Reads up to the end of a string that has begun.
    fn string_end(&mut self, quote: char, is_long: bool) -> Step {
        let end: String = std::iter::repeat_n(quote, if is_long { 3 } else { 1 }).collect();
        let unended = if quote == '"' { format!("'{end}'") } else { format!("\"{end}\"") };
        loop {
            if self.starts_with(&end) {
                for _ in end.chars() {
                    self.next()?;
                }
                return Ok(());
            }
            match self.peek() {
                None => return Err(format!("unexpected EOF; expected {unended}")),
                Some('\n') if !is_long => return Err("strings cannot contain newlines".to_owned()),
                Some('\\') if quote == '"' => self.escape(is_long)?,
                Some(_) => {
                    self.next()?;
                }
            }
        }
    }

    fn escape(&mut self, is_long: bool) -> Step {
        self.next()?;
        let Some(kind) = self.next()? else { return Ok(()) };
        let digits = match kind {
            'u' => 4,
            'U' => 8,
            'b' | 't' | 'n' | 'f' | 'r' | '"' | '\\' => return Ok(()),
            ' ' | '\t' | '\n' if is_long => return Ok(()),
            other => return Err(format!("invalid escape in string '\\{other}'")),
        };
        let mut code = format!("\\{kind}");
        for _ in 0..digits {
            let found = self.next()?;
            code.extend(found);
            if !found.is_some_and(|c| c.is_ascii_hexdigit()) {
                let count = if digits == 4 { "four" } else { "eight" };
                return Err(format!(
                    "expected {count} hexadecimal digits after '\\{kind}', but got {} instead",
                    quoted(&code)
                ));
            }
        }
        let number = code.get(2..).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match number.and_then(char::from_u32) {
            Some(_) => Ok(()),
            None => Err(format!("Escaped character '{code}' is not valid UTF-8.")),
        }
    }

    fn array(&mut self) -> Step {
        const ENDS: &str = "expected a comma (',') or array terminator (']'), but got";
        self.next()?;
        loop {
            self.skip(true)?;
            match self.peek() {
                Some(',') => return Err("unexpected comma".to_owned()),
                Some(']') => {
                    self.next()?;
                    return Ok(());
                }
                None | Some(_) => self.value()?,
            }
            self.skip(true)?;
            match self.peek() {
                Some(',') => {
                    self.next()?;
                }
                Some(']') => {}
                None => return Err(format!("{ENDS} end of file")),
                found => return Err(format!("{ENDS} {}", shown(found))),
            }
        }
    }

    fn inline(&mut self) -> Step {
        const ENDS: &str = "expected a comma or an inline table terminator '}', but got";
        self.next()?;
        let table = self.key.clone();
        self.skip(false)?;
        if self.peek() == Some('}') {
            self.next()?;
            return Ok(());
        }
        loop {
            self.skip(false)?;
            match self.peek() {
                None => return Err("unexpected '=': key name appears blank".to_owned()),
                Some('\n') => return Err("newlines not allowed within inline tables".to_owned()),
                Some(',') => return Err("unexpected comma".to_owned()),
                Some(_) => self.entry(&table)?,
            }
            self.skip(false)?;
            match self.next()? {
                Some(',') => {
                    self.skip(false)?;
                    if self.peek() == Some('}') {
                        return Err("trailing comma not allowed in inline tables".to_owned());
                    }
                }
                Some('}') => {
                    self.key = table;
                    return Ok(());
                }
                Some('\n') => {
                    self.line -= 1;
                    return Err("newlines not allowed within inline tables".to_owned());
                }
                None => return Err(format!("{ENDS} end of file instead")),
                found => return Err(format!("{ENDS} {} instead", shown(found))),
            }
        }
    }

    fn number(&mut self) -> Step {
        let sign = self.peek().filter(|c| matches!(c, '+' | '-'));
        if sign.is_some() {
            self.next()?;
            match self.peek() {
                Some('i' | 'n') => return self.word(char::is_alphabetic).map(|_| ()),
                Some(c) if c.is_ascii_digit() => {}
                found => return Err(format!("expected a digit but got {}", shown(found))),
            }
        }
        for (prefix, name, radix) in [("0x", "hexadecimal", 16), ("0o", "octal", 8), ("0b", "binary", 2)] {
            if self.starts_with(prefix) {
                self.at += 2;
                return match self.peek() {
                    Some(c) if c.is_digit(radix) => self.word(|c| c.is_digit(radix) || c == '_').map(|_| ()),
                    found => {
                        let found = found.unwrap_or('\0');
                        Err(format!("not a {name} number: '{prefix}{found}'"))
                    }
                };
            }
        }
        let is_part = |c: char| {
            c.is_ascii_digit() || matches!(c, '_' | '.' | 'e' | 'E' | '+' | '-' | ':' | 'T' | 'Z' | 't' | 'z')
        };
        let mut text = self.word(is_part)?;
        // A date and a time may have a space between them.
        let goes_on = self.chars.get(self.at + 1).is_some_and(char::is_ascii_digit);
        if text.len() == DATE && text.get(4..5) == Some("-") && self.peek() == Some(' ') && goes_on {
            self.next()?;
            text.push(' ');
            text.push_str(&self.word(is_part)?);
        }
        let whole = format!("{}{text}", sign.map(String::from).unwrap_or_default());
        number::check(&text, &whole)
    }
}
