//! How pictures are put into words: lengths of time, moments, texts that are not ours.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::addon::SourceKey;
use crate::failure::Failure;
use crate::name::{ModuleName, QueueName};

/// How texts that are not ours, and moments, are shown to who asks.
#[derive(Clone, Copy)]
pub struct Format<'a> {
    /// Returns a text that can quote values as it may be shown: as it is to the owner, masked to everybody.
    pub show: &'a dyn Fn(&str) -> String,
    /// Returns the time of day of a moment that was so long ago.
    pub at: &'a dyn Fn(Duration) -> String,
}

impl Format<'_> {
    /// Returns a failure as it may be shown.
    pub fn failure(&self, failure: &Failure) -> String {
        (self.show)(&failure.to_string())
    }
}

impl fmt::Debug for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").finish_non_exhaustive()
    }
}

/// Returns a length of time as people say it: `3.2 s`, `45 s`, `5 min`, `3 h`, `2 d`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{}.{} s", seconds, time.subsec_millis() / 100),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns a text whose control characters are escapes, `\u001b`, but for the ends of lines and tabs.
///
/// What hooks print must not move the cursor of who reads about it, nor turn the letters around.
pub fn escaped(text: &str) -> Cow<'_, str> {
    // Most texts are of ASCII alone, which is seen sooner.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let is_plain = |char: char| match char {
        '\n' | '\t' => true,
        '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        other => !other.is_control(),
    };
    let Some(first) = text.find(|char| !is_plain(char)) else { return Cow::Borrowed(text) };
    let (plain, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(plain);
    for char in rest.chars() {
        if is_plain(char) {
            shown.push(char);
        } else {
            let _ = write!(shown, "\\u{:04x}", u32::from(char));
        }
    }
    Cow::Owned(shown)
}

/// Returns `1 task` or `5 tasks`.
pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Returns `once` or `5 times`.
pub(super) fn times(number: u32) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// Returns the command that explains a queue.
pub(super) fn why_queue(queue: &QueueName) -> String {
    format!("`addon-operator why queue {queue}`")
}

/// Returns the command that explains a module.
pub(super) fn why_module(module: &ModuleName) -> String {
    format!("`addon-operator why module {module}`")
}

/// Returns the command that explains a configuration of module sources.
pub(super) fn why_source(source: &SourceKey) -> String {
    format!("`addon-operator why source {}`", source.address())
}

/// How many letters of a line of a failure are shown on one line with others.
const LONGEST_LINE: usize = 500;

/// How many letters of all lines of a failure are shown on one line.
const LONGEST_TEXT: usize = 2 * LONGEST_LINE;

/// Returns a text on one line. Of a line that is too long to be read the middle is left out, and of too many lines, too.
pub fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<_> = lines.map(|line| shortened(line, LONGEST_LINE)).collect();
    shortened(&lines.join(" … "), LONGEST_TEXT).into_owned()
}

/// Returns at most so many letters of a text, on one line.
pub fn cut(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn shortened(line: &str, most: usize) -> Cow<'_, str> {
    let letters = line.chars().count();
    if letters <= most {
        return Cow::Borrowed(line);
    }
    let end = |kept: usize| line.char_indices().nth(kept).map_or(line.len(), |(place, _)| place);
    let (begin, rest) = (end(most / 2), end(letters - most / 2));
    let parts = (line.get(..begin).unwrap_or_default(), line.get(rest..).unwrap_or_default());
    Cow::Owned(format!("{}…{}", parts.0, parts.1))
}

/// Returns lines with columns of equal width, the first line being `head`; nothing trails.
pub(super) fn columns(head: &[&str], rows: &[Vec<String>], indent: &str) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> =
            cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        format!("{indent}{}\n", cells.join("  ").trim_end())
    };
    let mut text =
        if head.iter().all(|cell| cell.is_empty()) { String::new() } else { line(&mut head.iter().copied()) };
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_said_as_people_say_them() {
        for (millis, said) in [
            (0, "0.0 s"),
            (9_990, "9.9 s"),
            (45_000, "45 s"),
            (300_000, "5 min"),
            (10_800_000, "3 h"),
            (200_000_000, "2 d"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), said);
        }
    }

    #[test]
    fn slip_14_what_moves_the_cursor_is_shown_as_an_escape() {
        assert_eq!(
            escaped("a\u{1b}[2J\r\u{9b}1m\u{7f}\u{202e}b\n\tü"),
            "a\\u001b[2J\\u000d\\u009b1m\\u007f\\u202eb\n\tü"
        );
        assert!(matches!(escaped("plain ü\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn of_a_line_that_nobody_can_read_the_middle_is_left_out() {
        assert_eq!(one_line(" a \n\n b"), "a … b");
        let line = format!("begin {} end", "é".repeat(4_000));
        let shown = one_line(&format!("why\n{line}"));
        assert!(shown.starts_with("why … begin é") && shown.ends_with("é end"), "{shown}");
        assert_eq!(shown.chars().count(), "why … ".chars().count() + LONGEST_LINE + 1);
        let fits = "x".repeat(LONGEST_LINE);
        assert_eq!(one_line(&fits), fits);
        let many: Vec<String> = (0..200).map(|line| format!("this is line {line}")).collect();
        let shown = one_line(&many.join("\n"));
        assert!(shown.starts_with("this is line 0 … ") && shown.ends_with("this is line 199"), "{shown}");
        assert_eq!(shown.chars().count(), LONGEST_TEXT + 1);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "long one".to_owned()], vec!["bbb".to_owned(), String::new()]];
        assert_eq!(columns(&["X", "Y"], &rows, "  "), "  X    Y\n  a    long one\n  bbb\n");
    }
}
