//! Scalars, indicators and indentation on their way into the text.

/// What a text contains, as far as it decides on how it can be written.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent finding")]
pub(super) struct Analysis {
    /// It has line breaks.
    pub(super) multiline: bool,
    /// It can be written without quotes.
    pub(super) plain_allowed: bool,
    /// It can be written in single quotes.
    pub(super) single_allowed: bool,
    /// It can be written as a literal block.
    pub(super) block_allowed: bool,
    /// It has tabs, which some writers escape even in blocks.
    pub(super) tabs: bool,
}

/// Returns whether `character` breaks a line.
fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns whether `character` is white space or a line break.
fn is_blank_or_break(character: char) -> bool {
    matches!(character, ' ' | '\t') || is_break(character)
}

/// Returns whether `character` is written as it is.
fn is_printable(character: char) -> bool {
    matches!(
        character,
        '\n' | '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
    )
}

/// Returns in which ways `text` can be written.
pub(super) fn analyze(text: &str) -> Analysis {
    if text.is_empty() {
        return Analysis {
            multiline: false,
            plain_allowed: true,
            single_allowed: true,
            block_allowed: false,
            tabs: false,
        };
    }
    let edge = |character: Option<char>| character.is_some_and(|edge| edge == ' ' || is_break(edge));
    let has_edge = edge(text.chars().next()) || edge(text.chars().next_back());
    let inner = scan(text);
    let escapes_needed = inner.special || inner.space_break;
    let quotes_needed = escapes_needed || inner.tabs;
    Analysis {
        multiline: inner.breaks,
        plain_allowed: !(has_edge || inner.breaks || inner.break_space || inner.indicators || quotes_needed),
        single_allowed: !(inner.break_space || quotes_needed),
        block_allowed: !(text.ends_with(' ') || escapes_needed),
        tabs: inner.tabs,
    }
}

/// What a walk over all characters finds.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent finding")]
struct Findings {
    indicators: bool,
    breaks: bool,
    special: bool,
    tabs: bool,
    /// A space directly behind a line break.
    break_space: bool,
    /// A line break directly behind a space.
    space_break: bool,
}

fn scan(text: &str) -> Findings {
    let mut found =
        Findings { indicators: text.starts_with("---") || text.starts_with("..."), ..Findings::default() };
    if text.is_ascii() {
        scan_ascii(text.as_bytes(), &mut found);
        return found;
    }
    let mut previous: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let before_blank = characters.peek().is_none_or(|next| is_blank_or_break(*next));
        found.indicators |= match previous {
            None => match character {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`' => true,
                '?' | ':' | '-' => before_blank,
                _ => false,
            },
            Some(previous) => match character {
                ':' => before_blank,
                '#' => is_blank_or_break(previous),
                _ => false,
            },
        };
        if character == '\t' {
            found.tabs = true;
        } else {
            found.special |= !is_printable(character);
        }
        if character == ' ' {
            found.break_space |= previous.is_some_and(is_break);
        } else if is_break(character) {
            found.breaks = true;
            found.space_break |= previous == Some(' ');
        }
        previous = Some(character);
    }
    found
}

/// Does the same for a text of ASCII, most of whose characters mean nothing.
fn scan_ascii(text: &[u8], found: &mut Findings) {
    let is_break = |byte: u8| matches!(byte, b'\r' | b'\n');
    let is_blank_or_break = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let mut previous: Option<u8> = None;
    for (index, byte) in text.iter().copied().enumerate() {
        let before_blank = || text.get(index + 1).is_none_or(|next| is_blank_or_break(*next));
        match byte {
            b'#' => found.indicators |= previous.is_none_or(is_blank_or_break),
            b':' => found.indicators |= before_blank(),
            b'?' | b'-' if previous.is_none() => found.indicators |= before_blank(),
            b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"' | b'%'
            | b'@' | b'`' => found.indicators |= previous.is_none(),
            b'\t' => found.tabs = true,
            b' ' => found.break_space |= previous.is_some_and(is_break),
            b'\n' | b'\r' => {
                found.special |= byte == b'\r';
                found.breaks = true;
                found.space_break |= previous == Some(b' ');
            }
            0..=0x1f | 0x7f => found.special = true,
            _ => {}
        }
        previous = Some(byte);
    }
}

/// Text under construction.
pub(super) struct Writer {
    out: String,
    column: usize,
    /// The last character was white space.
    whitespace: bool,
    /// Only indentation and indicators stand in this line so far.
    indention: bool,
    step: usize,
    width: usize,
}

impl Writer {
    /// Returns a writer that indents by `step` and folds behind `width` columns.
    pub(super) fn new(step: usize, width: usize) -> Self {
        Self { out: String::new(), column: 0, whitespace: true, indention: true, step, width }
    }

    pub(super) fn into_text(self) -> String {
        self.out
    }

    pub(super) fn is_indention(&self) -> bool {
        self.indention
    }

    /// Returns how many columns one level of indentation has.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, character: char) {
        if character == '\n' {
            self.put_break();
        } else {
            self.out.push(character);
            self.column = 0;
        }
    }

    /// Ends the last line, if it is not ended yet.
    pub(super) fn end_line(&mut self) {
        self.indent(0);
    }

    /// Moves to the column `indent` of a line that holds nothing else.
    pub(super) fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    pub(super) fn indicator(
        &mut self,
        indicator: &str,
        need_whitespace: bool,
        is_whitespace: bool,
        is_indention: bool,
    ) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(indicator);
        self.column += indicator.len();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    /// Writes `text` without quotes.
    pub(super) fn plain(&mut self, text: &str, folds: bool, indent: usize) {
        if !self.whitespace {
            self.put(' ');
        }
        if text.contains(' ') {
            self.flow(text, folds, indent, None);
        } else {
            self.out.push_str(text);
            self.column += text.chars().count();
        }
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes `text` in single quotes.
    pub(super) fn single_quoted(&mut self, text: &str, folds: bool, indent: usize) {
        self.indicator("'", true, false, false);
        self.flow(text, folds, indent, Some('\''));
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes the characters of a plain or single-quoted text; `quote` is
    /// doubled, and its presence protects the spaces at both ends.
    fn flow(&mut self, text: &str, folds: bool, indent: usize, quote: Option<char>) {
        let mut spaces = false;
        let mut breaks = false;
        let mut characters = text.chars().peekable();
        let mut is_first = true;
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            if character == ' ' {
                let protected = quote.is_some() && (is_first || next.is_none());
                if folds && !spaces && self.column > self.width && !protected && next != Some(' ') {
                    self.indent(indent);
                } else {
                    self.put(character);
                }
                spaces = true;
            } else if is_break(character) {
                if !breaks && character == '\n' {
                    self.put_break();
                }
                self.write_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent(indent);
                }
                if Some(character) == quote {
                    self.put(character);
                }
                self.put(character);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
            is_first = false;
        }
    }

    /// Writes `text` in double quotes, with escapes.
    pub(super) fn double_quoted(&mut self, text: &str, folds: bool, indent: usize) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let mut characters = text.chars().peekable();
        let mut is_first = true;
        // Go's library looks for a byte order mark at the beginning of the text for each of its characters.
        let is_marked = text.starts_with('\u{feff}');
        while let Some(character) = characters.next() {
            let is_special = is_break(character) || matches!(character, '"' | '\\');
            if is_marked || is_special || !is_printable(character) {
                self.escape(character);
                spaces = false;
            } else if character == ' ' {
                let next = characters.peek().copied();
                if folds && !spaces && self.column > self.width && !is_first && next.is_some() {
                    self.indent(indent);
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(character);
                }
                spaces = true;
            } else {
                self.put(character);
                spaces = false;
            }
            is_first = false;
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, character: char) {
        let code = u32::from(character);
        let escape = match character {
            '\0' => "\\0".to_owned(),
            '\u{7}' => "\\a".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{b}' => "\\v".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{1b}' => "\\e".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{85}' => "\\N".to_owned(),
            '\u{a0}' => "\\_".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            _ if code <= 0xff => format!("\\x{code:02X}"),
            _ if code <= 0xffff => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        self.out.push_str(&escape);
        self.column += escape.len();
    }

    /// Writes `text` as a literal block, which is indented by `relative` columns
    /// more than what is around it.
    pub(super) fn literal(&mut self, text: &str, indent: usize, relative: usize) {
        self.indicator("|", true, false, false);
        if text.starts_with(' ') || text.starts_with(is_break) {
            let hint = relative.to_string();
            self.indicator(&hint, false, false, false);
        }
        let mut from_end = text.chars().rev();
        let last_breaks = from_end.next().is_some_and(is_break);
        let chomping = match from_end.next() {
            _ if !last_breaks => "-",
            None => "+",
            Some(before) if is_break(before) => "+",
            Some(_) => "",
        };
        self.indicator(chomping, false, false, false);
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        if !text.contains(|character| character != '\n' && is_break(character)) {
            for (index, line) in text.split('\n').enumerate() {
                if index > 0 {
                    self.put_break();
                    self.indention = true;
                    breaks = true;
                }
                if !line.is_empty() {
                    if breaks {
                        self.indent(indent);
                    }
                    self.out.push_str(line);
                    self.column += line.chars().count();
                    self.indention = false;
                    breaks = false;
                }
            }
            return;
        }
        for character in text.chars() {
            if is_break(character) {
                self.write_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent(indent);
                }
                self.put(character);
                self.indention = false;
                breaks = false;
            }
        }
    }
}
