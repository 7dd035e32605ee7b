//! `.helmignore`: which files of a directory are no part of the chart.

use std::collections::BTreeMap;

use super::pattern;

/// What of every chart is left out: hidden files of `templates/`.
const ALWAYS: &str = "templates/.?*";

/// Why a `.helmignore` can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A pattern with two stars.
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    /// A pattern that is malformed.
    #[error(transparent)]
    Pattern(#[from] pattern::BadPattern),
}

/// The rules of one `.helmignore`, in the order of its lines.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    pattern: String,
    negated: bool,
    directories_only: bool,
    /// Whether the whole path has to fit, or only its last part.
    whole_path: bool,
}

impl Rules {
    /// Returns the rules of the text of a `.helmignore` and those that always hold.
    pub fn parse(text: &str) -> Result<Self, IgnoreError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rules = Vec::new();
        for line in text.lines().chain([ALWAYS]) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            rules.push(Rule::parse(line)?);
        }
        Ok(Self(rules))
    }

    /// Reports whether `path` (relative to the chart, with slashes) itself is ignored.
    fn ignores(&self, path: &str, directory: bool) -> bool {
        self.0.iter().any(|rule| rule.ignores(path, directory))
    }

    /// Returns a filter that reports whether a file is left out, for itself or
    /// because a directory above it is.
    pub fn filter(&self) -> impl FnMut(&str) -> bool {
        let mut directories: BTreeMap<String, bool> = BTreeMap::new();
        move |path: &str| {
            let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
            for directory in above {
                let ignored = directories.get(directory).copied().unwrap_or_else(|| {
                    let ignored = self.ignores(directory, true);
                    directories.insert(directory.to_owned(), ignored);
                    ignored
                });
                if ignored {
                    return true;
                }
            }
            self.ignores(path, false)
        }
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, IgnoreError> {
        if line.contains("**") {
            return Err(IgnoreError::DoubleStar);
        }
        pattern::matches(line, "abc")?;
        let (negated, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (directories_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let pattern = line.strip_prefix('/').unwrap_or(line).to_owned();
        Ok(Self { whole_path: line.contains('/'), pattern, negated, directories_only })
    }

    fn ignores(&self, path: &str, directory: bool) -> bool {
        if self.directories_only && !directory {
            return self.negated;
        }
        let name = match path.rsplit_once('/') {
            Some((_, name)) if !self.whole_path => name,
            Some(_) | None => path,
        };
        let fits = pattern::matches(&self.pattern, name).unwrap_or(false);
        fits != self.negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(rules: &str, files: &[&str]) -> Vec<String> {
        let rules = Rules::parse(rules).unwrap();
        let mut ignored = rules.filter();
        files.iter().filter(|file| !ignored(file)).map(|file| (*file).to_owned()).collect()
    }

    #[test]
    fn rules_leave_files_and_directories_out() {
        let rules = "# c\n\n*.bak\n/root.txt\nskip/\ntemplates/x.yaml\n  spaced  \n?ne.dat\n";
        let files = [
            "a.bak",
            "b/a.bak",
            "root.txt",
            "sub/root.txt",
            "skip/a",
            "sub/skip/b",
            "skip",
            "templates/x.yaml",
            "templates/.dot",
            "templates/ok.yaml",
            "spaced",
            "one.dat",
            "done.dat",
        ];
        assert_eq!(left(rules, &files), ["sub/root.txt", "skip", "templates/ok.yaml", "done.dat"]);
    }

    #[test]
    fn a_negated_rule_ignores_all_that_does_not_fit() {
        assert_eq!(left("!keep.md", &["keep.md", "Chart.yaml"]), ["keep.md"]);
    }

    #[test]
    fn two_stars_are_refused() {
        assert_eq!(Rules::parse("a/**").unwrap_err(), IgnoreError::DoubleStar);
        assert_eq!(Rules::parse("a[").unwrap_err().to_string(), "syntax error in pattern");
    }
}
