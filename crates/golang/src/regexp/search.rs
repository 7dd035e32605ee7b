//! Searching.

use regex::{Captures, Regex, RegexBuilder};

use super::error::{ErrorCode, SyntaxError};
use super::translate::translate;

/// How much memory an expression may take, in bytes, if nobody says otherwise.
const MOST: usize = 10 << 20;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Regexp {
    regex: Regex,
    names: Vec<Option<String>>,
    empty: bool,
}

impl Regexp {
    /// Compiles an expression of RE2's syntax.
    pub fn compile(expression: &str) -> Result<Self, SyntaxError> {
        Self::compile_within(expression, MOST)
    }

    /// Compiles an expression that may take so many bytes of memory.
    pub fn compile_within(expression: &str, most: usize) -> Result<Self, SyntaxError> {
        let translated = translate(expression)?;
        let regex = RegexBuilder::new(&translated.pattern)
            .nest_limit(2_500)
            .size_limit(most)
            .build()
            .map_err(|_| SyntaxError::new(ErrorCode::Large, expression))?;
        Ok(Self { regex, names: translated.names, empty: expression.is_empty() })
    }

    /// Reports whether there is a match anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns where each match and its groups begin and end; nothing for a group that takes no part in it.
    pub fn captures<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Vec<Option<(usize, usize)>>> + 't {
        let range = |group: Option<regex::Match<'_>>| group.map(|group| (group.start(), group.end()));
        self.regex.captures_iter(text).map(move |captures| captures.iter().map(range).collect())
    }

    /// Returns the names of the groups, the first of which is the first one in parentheses.
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// Returns the first match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).map(|found| found.as_str())
    }

    /// Returns where the first matches begin and end, `limit` of them; all if it is negative.
    pub fn find_all(&self, text: &str, limit: i64) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut position, mut previous_end) = (0, None);
        while position <= text.len() && all.len() < limit {
            let Some(found) = self.regex.find_at(text, position) else {
                break;
            };
            // An empty match right behind another match does not count.
            let mut accept = true;
            if found.end() == position {
                accept = Some(found.start()) != previous_end;
                position += char_len(text, position).unwrap_or(text.len() + 1 - position);
            } else {
                position = found.end();
            }
            previous_end = Some(found.end());
            if accept {
                all.push((found.start(), found.end()));
            }
        }
        all
    }

    /// Returns what stands between the matches, at most `limit` parts; all if it is negative.
    pub fn split<'t>(&self, text: &'t str, limit: i64) -> Vec<&'t str> {
        if limit == 0 {
            return Vec::new();
        }
        if !self.empty && text.is_empty() {
            return vec![""];
        }
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
        for (start, stop) in self.find_all(text, limit) {
            if parts.len() + 1 >= most {
                break;
            }
            end = start;
            if stop != 0 {
                parts.push(text.get(begin..end).unwrap_or_default());
            }
            begin = stop;
        }
        if end != text.len() {
            parts.push(text.get(begin..).unwrap_or_default());
        }
        parts
    }

    /// Returns `text` with every match replaced by what `replacement` answers.
    pub(super) fn replace_with(
        &self,
        text: &str,
        mut replacement: impl FnMut(&Captures<'_>, &mut String),
    ) -> String {
        let mut replaced = String::with_capacity(text.len());
        let (mut last_end, mut position) = (0, 0);
        while position <= text.len() {
            let Some(captures) = self.regex.captures_at(text, position) else {
                break;
            };
            let Some(found) = captures.get(0) else {
                break;
            };
            replaced.push_str(text.get(last_end..found.start()).unwrap_or_default());
            // Not for an empty match right behind another match.
            if found.end() > last_end || found.start() == 0 {
                replacement(&captures, &mut replaced);
            }
            last_end = found.end();
            let step = char_len(text, position).unwrap_or(1);
            position = (position + step).max(found.end());
        }
        replaced.push_str(text.get(last_end..).unwrap_or_default());
        replaced
    }

    /// Returns the numbers of the groups with this name; several may have it.
    pub(super) fn groups(&self, name: &str) -> Vec<usize> {
        let names = self.names.iter().zip(1..);
        names.filter(|(group, _)| group.as_deref() == Some(name)).map(|(_, number)| number).collect()
    }
}

fn char_len(text: &str, position: usize) -> Option<usize> {
    text.get(position..)?.chars().next().map(char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_32_classes_and_marks_are_those_of_re2() {
        for name in ["Greek", "greek", "Lu", "Letter", "LC", "Any", "ASCII", "Thai", "Han"] {
            assert!(Regexp::compile(&format!(r"\p{{{name}}}")).is_ok(), "{name}");
        }
        for name in ["IsGreek", "Alphabetic", "Script=Greek", "Emoji", "Grek", "XID_Start", "age:3.0"] {
            assert!(Regexp::compile(&format!(r"\p{{{name}}}")).is_err(), "{name}");
        }
        for (pattern, text) in [(r"^\<$", "<"), (r"^\>$", ">"), (r"^[\<\-\]]+$", "<-]"), (r"^a\&b$", "a&b")] {
            assert!(Regexp::compile(pattern).unwrap().is_match(text), "{pattern}");
        }
    }

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a_b-c", true),
            (r"^[\w-]+$", "é", false),
            (r"^[^\d]$", "a", true),
            (r"^[^\D]$", "1", true),
            (r"^\s$", "\u{a0}", false),
            (r"^{{.*}}$", "{{x}}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^[a[b]$", "[", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:]+$", "[:", true),
            (r"^[^]a]$", "b", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^\Qa.b\E+$", "a.bb", true),
            (r"^(?i)abc$", "ABC", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\/x$", "/x", true),
            (r"<b>", "a<b>", true),
            (r"^\<b\>$", "<b>", true),
            (r"^[<>]+$", "<>", true),
            (r"<b>", "b", false),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
        ] {
            assert_eq!(Regexp::compile(pattern).unwrap().is_match(text), matches, "{pattern} {text}");
        }
        assert!(Regexp::compile("(").is_err());
        assert!(Regexp::compile("\\").is_err());
    }
}
