//! Replacing matches.

use regex::Captures;

use super::Regexp;

/// A part of a replacement.
enum Part<'a> {
    Literal(&'a str),
    /// The first of these groups that took part in the match.
    Groups(Vec<usize>),
}

impl Regexp {
    /// Returns `text` with every match replaced; `$1` and `${name}` stand for groups.
    pub fn replace_all(&self, text: &str, replacement: &str) -> String {
        let parts = self.parts(replacement);
        self.replace_with(text, |captures, out| expand(&parts, captures, out))
    }

    /// Returns `text` with every match replaced by `replacement` as it is.
    pub fn replace_all_literal(&self, text: &str, replacement: &str) -> String {
        self.replace_with(text, |_, out| out.push_str(replacement))
    }

    fn parts<'a>(&self, replacement: &'a str) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut rest = replacement;
        while let Some((literal, after)) = rest.split_once('$') {
            parts.push(Part::Literal(literal));
            rest = if let Some(after) = after.strip_prefix('$') {
                parts.push(Part::Literal("$"));
                after
            } else if let Some((name, after)) = reference(after) {
                parts.push(self.part(name));
                after
            } else {
                // A dollar that refers to nothing stands for itself.
                parts.push(Part::Literal("$"));
                after
            };
        }
        parts.push(Part::Literal(rest));
        parts
    }

    fn part<'a>(&self, name: &str) -> Part<'a> {
        let is_number =
            name.bytes().all(|b| b.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
        Part::Groups(if is_number { name.parse().into_iter().collect() } else { self.groups(name) })
    }
}

/// Splits a name, in braces perhaps, off the front of what follows a dollar.
fn reference(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{');
    let text = inner.unwrap_or(text);
    let end = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
    match inner {
        Some(_) => Some((name, rest.strip_prefix('}')?)),
        None => Some((name, rest)),
    }
}

fn expand(parts: &[Part<'_>], captures: &Captures<'_>, out: &mut String) {
    for part in parts {
        match part {
            Part::Literal(text) => out.push_str(text),
            Part::Groups(groups) => {
                let found = groups.iter().find_map(|group| captures.get(*group));
                out.push_str(found.map_or("", |found| found.as_str()));
            }
        }
    }
}
