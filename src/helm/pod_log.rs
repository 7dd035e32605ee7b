//! How much is kept of the log of a container: its last whole lines. No I/O.

/// How many bytes of a log are read at most.
pub(super) const LONGEST_LOG: usize = 1 << 20;

/// How many lines of a log are read at most: its last ones.
pub(super) const MOST_LINES: usize = 2_000;

/// How many bytes of them are kept.
const KEPT: usize = 64 << 10;

/// Returns the last whole lines of what was read of a log, and whether there were more. A line of which a part is missing is left
/// out: nobody can tell whether that is the half of a secret.
pub(super) fn last_lines(read: &str) -> (&str, bool) {
    let mut text = read;
    let mut is_cut = read.bytes().filter(|byte| *byte == b'\n').count() >= MOST_LINES;
    if text.len() >= LONGEST_LOG {
        is_cut = true;
        text = text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default();
    }
    if text.len() > KEPT {
        is_cut = true;
        let from = text.len() - KEPT;
        let end = text.bytes().enumerate().position(|(place, byte)| place >= from && byte == b'\n');
        text = end.and_then(|end| text.get(end + 1..)).unwrap_or_default();
    }
    (text, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_log_is_kept_as_it_is() {
        assert_eq!(last_lines(""), ("", false));
        assert_eq!(last_lines("one\ntwo"), ("one\ntwo", false));
    }

    #[test]
    fn of_a_long_log_the_last_whole_lines_are_kept() {
        let log = "line\n".repeat(20_000) + "line 9999\n";
        let (kept, is_cut) = last_lines(&log);
        assert!(is_cut && kept.len() <= KEPT && kept.starts_with("line\n") && kept.ends_with("line 9999\n"));
        let lines: String = "x\n".repeat(MOST_LINES);
        assert_eq!(last_lines(&lines), (lines.as_str(), true));
    }

    #[test]
    fn of_a_line_that_was_cut_nothing_is_kept() {
        let log = format!("whole\n{}", "s".repeat(LONGEST_LOG - 6));
        assert_eq!(last_lines(&log), ("whole\n", true));
        assert_eq!(last_lines(&"s".repeat(LONGEST_LOG)), ("", true));
        assert_eq!(last_lines(&"é".repeat(KEPT)), ("", true));
        let behind_it = format!("{}\nend\n", "s".repeat(2 * KEPT));
        assert_eq!(last_lines(&behind_it), ("end\n", true));
    }
}
