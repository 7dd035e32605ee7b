//! How two texts differ, line by line, in groups of changes with the lines around them.

use std::fmt;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Changes that lie near each other, and the lines around them.
#[derive(Debug)]
pub(crate) struct Hunk<'a> {
    /// Which lines of the first text and which of the second one it is about, counted from 0.
    sides: [Range<usize>; 2],
    /// The lines without their ends: `-` is in the first text only, `+` in the second one, a space in both.
    pub(crate) lines: Vec<(char, &'a str)>,
}

/// Returns what has to be changed in the first text to get the second one, with at most `context` lines before and behind
/// each change. Equal texts have no hunks.
pub(crate) fn hunks<'a>(before: &'a str, after: &'a str, context: usize) -> Vec<Hunk<'a>> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let texts: [Vec<&str>; 2] = [before.lines().collect(), after.lines().collect()];
    let changes: Vec<[Range<usize>; 2]> = diff
        .hunks()
        .map(|change| [change.before, change.after].map(|side| side.start as usize..side.end as usize))
        .collect();
    // What would share a line of their surroundings, or follow each other without a gap, is told together.
    let is_near = |a: &[Range<usize>; 2], b: &[Range<usize>; 2]| b[0].start - a[0].end <= 2 * context;
    changes.chunk_by(is_near).filter_map(|near| hunk(near, &texts, context)).collect()
}

/// Returns changes with the lines before, between and behind them. These are the same in both texts.
fn hunk<'a>(changes: &[[Range<usize>; 2]], texts: &[Vec<&'a str>; 2], context: usize) -> Option<Hunk<'a>> {
    let ([first, first_after], [last, last_after]) = (changes.first()?, changes.last()?);
    let before = first.start.min(context);
    let behind = (texts[0].len() - last.end).min(context);
    let sides =
        [first.start - before..last.end + behind, first_after.start - before..last_after.end + behind];
    let mut lines = Vec::new();
    let mut take = |sign, text: &[&'a str], range: Range<usize>| {
        lines.extend(text.get(range).unwrap_or_default().iter().map(|line| (sign, *line)));
    };
    let mut at = sides[0].start;
    for [removed, added] in changes {
        take(' ', &texts[0], at..removed.start);
        take('-', &texts[0], removed.clone());
        take('+', &texts[1], added.clone());
        at = removed.end;
    }
    take(' ', &texts[0], at..sides[0].end);
    Some(Hunk { sides, lines })
}

/// As `diff -u` prints it.
impl fmt::Display for Hunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Lines are counted from 1; where there is none, it says behind which one.
        let [before, after] = self.sides.each_ref().map(|side| match side.len() {
            0 => format!("{},0", side.start),
            1 => (side.start + 1).to_string(),
            length => format!("{},{length}", side.start + 1),
        });
        writeln!(f, "@@ -{before} +{after} @@")?;
        self.lines.iter().try_for_each(|(sign, line)| writeln!(f, "{sign}{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified(before: &str, after: &str, context: usize) -> String {
        hunks(before, after, context).iter().map(Hunk::to_string).collect()
    }

    #[test]
    fn changes_are_told_with_the_lines_around_them() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        assert_eq!(unified(before, before, 3), "");
        assert_eq!(unified("", "a\nb\n", 3), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(unified("a\n", "", 3), "@@ -1 +0,0 @@\n-a\n");
        let near = "a\nB\nc\nd\nE\nf\ng\nh\ni\n";
        assert_eq!(unified(before, near, 1), "@@ -1,6 +1,6 @@\n a\n-b\n+B\n c\n d\n-e\n+E\n f\n");
        let far = "B\nb\nc\nd\ne\nf\ng\nh\n";
        assert_eq!(unified(before, far, 1), "@@ -1,2 +1,2 @@\n-a\n+B\n b\n@@ -8,2 +8 @@\n h\n-i\n");
    }

    #[test]
    fn the_first_text_with_its_changes_is_the_second() {
        // All texts of up to five lines, each of which is one of two.
        let texts: Vec<String> = (0..=5)
            .flat_map(|length| (0..1 << length).map(move |bits: u32| (length, bits)))
            .map(|(length, bits)| {
                (0..length).map(|at| if bits >> at & 1 == 1 { "a\n" } else { "b\n" }).collect()
            })
            .collect();
        for (before, after) in texts.iter().flat_map(|before| texts.iter().map(move |after| (before, after)))
        {
            for context in 0..3 {
                let (mut old, mut at) = (before.lines(), 0);
                let mut new = Vec::new();
                for hunk in hunks(before, after, context) {
                    new.extend(old.by_ref().take(hunk.sides[0].start - at));
                    assert_eq!(new.len(), hunk.sides[1].start);
                    for (sign, line) in &hunk.lines {
                        if *sign != '+' {
                            assert_eq!(old.next(), Some(*line));
                        }
                        if *sign != '-' {
                            new.push(*line);
                        }
                    }
                    at = hunk.sides[0].end;
                    assert_eq!(new.len(), hunk.sides[1].end);
                }
                new.extend(old);
                assert_eq!(new, after.lines().collect::<Vec<_>>(), "{before:?} to {after:?}");
            }
        }
    }
}
