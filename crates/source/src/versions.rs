//! Which version of an addon becomes a module.
//!
//! Without `include` every addon of the index is wanted. Of an addon's versions one is chosen: the highest that is no
//! pre-release, or the highest pre-release if there is nothing else. An `include` chooses one version exactly, or the
//! highest in a range, or leaves the choice as it is; then nothing else is wanted, so that what is published beside it
//! breaks nothing.

use chart::semver::{Constraint, Version};

use crate::digest::Digest;
use crate::index::{Entry, Index, Line};

/// An addon that a repository's spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The name in the index.
    pub name: String,
    /// The version, or a range of which the highest is meant; none means the highest of all.
    pub version: Option<String>,
    /// The digest that the chosen version's packed bundle must have.
    pub digest: Option<Digest>,
}

/// A line of the index that is wanted.
#[derive(Clone, Debug)]
pub struct Choice<'i> {
    /// The line.
    pub line: &'i Line,
    /// Whether this version becomes the module.
    pub is_chosen: bool,
    /// Whether this version may become the module where the chosen one may not yet.
    pub is_called_for: bool,
    /// The digest that the packed bundle must have: what was included says it, or the index does.
    pub digest: Option<&'i Digest>,
}

/// What was chosen from an index.
#[derive(Clone, Debug, Default)]
pub struct Selection<'i> {
    /// What is wanted, in the order of the index.
    pub choices: Vec<Choice<'i>>,
    /// What was included and is not in the index, in the order of the spec.
    pub missing: Vec<&'i Include>,
}

/// What the version of an include means.
enum Wanted<'i> {
    Highest,
    Exactly(&'i str),
    In(Constraint),
}

impl Include {
    /// Returns why its version is neither a version nor a range, if it is not.
    pub fn problem(&self) -> Option<String> {
        let text = self.version.as_deref()?;
        let error = Version::parse(text).err().and_then(|_| Constraint::parse(text).err())?;
        Some(format!("{text:?} is neither a version nor a range such as ~1.2 or '>=1.4 <2': {error}"))
    }

    fn wanted(&self) -> Wanted<'_> {
        let Some(text) = self.version.as_deref() else { return Wanted::Highest };
        // What is a version means that one, also where Helm would read a range: `1.9` is `1.9.0`.
        match Version::parse(text).is_err().then(|| Constraint::parse(text)) {
            Some(Ok(range)) => Wanted::In(range),
            Some(Err(_)) | None => Wanted::Exactly(text),
        }
    }

    /// Returns whether it means a line, or could if no other one were there.
    fn covers(&self, line: &Line) -> bool {
        match self.wanted() {
            Wanted::Highest => line.outcome.is_ok(),
            Wanted::Exactly(wanted) => is_version(line, wanted),
            Wanted::In(range) => is_in(line, &range),
        }
    }

    /// Returns the position of the line that it chooses. Lines are those of its addon, sorted.
    fn position(&self, lines: &[Line]) -> Option<usize> {
        match self.wanted() {
            Wanted::Highest => highest(lines),
            Wanted::Exactly(wanted) => lines.iter().position(|line| is_version(line, wanted)),
            Wanted::In(range) => {
                // A line with this very text is meant, which can't be used.
                let text = self.version.as_deref().unwrap_or_default();
                let literally = lines.iter().position(|line| line.outcome.is_err() && line.version == text);
                literally.or_else(|| lines.iter().rposition(|line| is_in(line, &range)))
            }
        }
    }
}

impl<'i> Selection<'i> {
    /// Chooses from an index.
    pub fn new(index: &'i Index, include: &'i [Include]) -> Self {
        Self::with(index, include, |_| false)
    }

    /// Chooses from an index. Below each version that is chosen and for which `calls` does not hold, the highest one that could be
    /// chosen, too, and for which it holds, is wanted beside it.
    pub fn with(index: &'i Index, include: &'i [Include], calls: impl Fn(&Line) -> bool) -> Self {
        let mut selection = Self::default();
        for lines in index.lines().chunk_by(|a, b| a.name == b.name) {
            let Some(first) = lines.first() else { continue };
            let included: Vec<&Include> =
                include.iter().filter(|include| include.name == first.name).collect();
            if include.is_empty() || !included.is_empty() {
                selection.add(lines, &included, &calls);
            }
        }
        selection.missing = include.iter().filter(|include| !selection.has(include)).collect();
        selection
    }

    /// Adds the versions of one addon. Of several that are included the highest is chosen; lines are sorted.
    fn add(&mut self, lines: &'i [Line], wanted: &[&'i Include], calls: &impl Fn(&Line) -> bool) {
        let is_usable = |place: usize| lines.get(place).is_some_and(|line| line.outcome.is_ok());
        let found: Vec<(Option<usize>, &Include)> =
            wanted.iter().map(|include| (include.position(lines), *include)).collect();
        let places = found.iter().filter_map(|(place, include)| Some(((*place)?, *include)));
        // One that can't be used is chosen only where nothing else is included: its problem is that of the addon.
        let is_candidate = |place: usize| wanted.len() == 1 || is_usable(place);
        let best = places.filter(|(place, _)| is_candidate(*place)).max_by_key(|(place, _)| *place);
        let (chosen, included) = match best {
            Some((place, include)) => (Some(place), Some(include)),
            None if wanted.is_empty() => (highest(lines), None),
            None => (None, None),
        };
        let below =
            chosen.and_then(|place| lines.get(..place).filter(|_| !lines.get(place).is_some_and(calls)));
        let is_covered = |line: &Line| wanted.is_empty() || wanted.iter().any(|include| include.covers(line));
        let called = below.and_then(|lines| {
            lines.iter().rposition(|line| line.outcome.is_ok() && is_covered(line) && calls(line))
        });
        // Where none can be used, all of them say why.
        let has_none =
            |(place, include): &(Option<usize>, &Include)| place.is_none() && include.version.is_none();
        let are_all_wanted = found.is_empty() || found.iter().any(has_none);
        for (position, line) in lines.iter().enumerate() {
            let is_called_for = called == Some(position);
            let is_wanted =
                are_all_wanted || is_called_for || found.iter().any(|(place, _)| *place == Some(position));
            if !is_wanted {
                continue;
            }
            let is_chosen = chosen == Some(position);
            let pinned = included.filter(|_| is_chosen).and_then(|include| include.digest.as_ref());
            let listed = line.outcome.as_ref().ok().and_then(|entry| entry.digest.as_ref());
            self.choices.push(Choice { line, is_chosen, is_called_for, digest: pinned.or(listed) });
        }
    }

    fn has(&self, include: &Include) -> bool {
        let mut lines =
            self.choices.iter().map(|choice| choice.line).filter(|line| line.name == include.name);
        match include.wanted() {
            Wanted::Highest => lines.next().is_some(),
            Wanted::Exactly(wanted) => lines.any(|line| is_version(line, wanted)),
            Wanted::In(range) => {
                lines.any(|line| is_in(line, &range) || Some(&line.version) == include.version.as_ref())
            }
        }
    }
}

/// Reports whether a line has exactly this version; `v1.2` is `1.2.0`. One that can't be used has it, too, as it is written.
fn is_version(line: &Line, wanted: &str) -> bool {
    match (&line.outcome, Version::parse(wanted)) {
        (Ok(entry), Ok(wanted)) => entry.version.to_string() == wanted.to_string(),
        (Ok(_), Err(_)) => false,
        (Err(_), _) => line.version == wanted,
    }
}

/// Reports whether the version of a line can be used, and is in a range.
fn is_in(line: &Line, range: &Constraint) -> bool {
    line.outcome.as_ref().is_ok_and(|entry| range.matches(&entry.version))
}

/// Returns the position of the highest version that is no pre-release, else of the highest one. Lines are sorted.
fn highest(lines: &[Line]) -> Option<usize> {
    let is_release = |entry: &Entry| entry.version.prerelease().is_empty();
    let usable = |line: &Line| line.outcome.is_ok();
    lines
        .iter()
        .rposition(|line| line.outcome.as_ref().is_ok_and(is_release))
        .or_else(|| lines.iter().rposition(usable))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn include(name: &str, version: Option<&str>) -> Include {
        Include { name: name.to_owned(), version: version.map(str::to_owned), digest: None }
    }

    fn chosen(index: &str, include: &[Include]) -> (Vec<String>, Vec<String>) {
        let index = Index::parse(index.as_bytes()).unwrap();
        let selection = Selection::new(&index, include);
        let show = |choice: &Choice<'_>| {
            let mark = if choice.is_chosen { "*" } else { "" };
            format!("{} {}{mark}", choice.line.name, choice.line.version)
        };
        let missing = selection.missing.iter().map(|include| include.name.clone()).collect();
        (selection.choices.iter().map(show).collect(), missing)
    }

    const INDEX: &str = "entries: {a: [{version: 1.10.0}, {version: 2.0.0-rc.1}, {version: 1.9.0}, {version: x}], \
                         b: [{version: 1.0.0-2}, {version: 1.0.0-10}], c: [{version: z}]}";

    #[test]
    fn without_include_the_highest_release_is_chosen_and_a_pre_release_only_without_one() {
        let (choices, missing) = chosen(INDEX, &[]);
        assert_eq!(
            choices,
            ["a 1.9.0", "a 1.10.0*", "a 2.0.0-rc.1", "a x", "b 1.0.0-2", "b 1.0.0-10*", "c z"]
        );
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn an_include_chooses_exactly_and_leaves_other_addons_out() {
        let (choices, missing) = chosen(INDEX, &[include("a", Some("v1.9")), include("b", None)]);
        assert_eq!(choices, ["a 1.9.0*", "b 1.0.0-10*"], "no other version is of any concern");
        assert_eq!(missing, Vec::<String>::new());
        // Where there is none that can be used, its lines say why.
        assert_eq!(chosen(INDEX, &[include("c", None)]).0, ["c z"]);
        assert_eq!(
            chosen(INDEX, &[include("a", Some("1.9.0")), include("a", Some("~1.10"))]).0,
            ["a 1.9.0", "a 1.10.0*"]
        );
    }

    #[test]
    fn a_range_chooses_the_highest_in_it_as_helm_does() {
        for (range, expected) in [
            ("~1.9", "1.9.0"),
            (">=1.9 <2", "1.10.0"),
            ("1.x", "1.10.0"),
            ("^1.2 || ^2", "1.10.0"),
            (">=2.0.0-0", "2.0.0-rc.1"),
            (">=1.9.0-0", "2.0.0-rc.1"),
        ] {
            let (choices, missing) = chosen(INDEX, &[include("a", Some(range))]);
            let chosen: Vec<_> = choices.iter().filter_map(|choice| choice.strip_suffix('*')).collect();
            assert_eq!((chosen, missing), (vec![&*format!("a {expected}")], Vec::new()), "{range}");
        }
        let (choices, missing) = chosen(INDEX, &[include("a", Some(">=2"))]);
        assert!(choices.iter().all(|choice| !choice.ends_with('*')) && missing == ["a"], "{choices:?}");
        assert_eq!(include("a", Some(">=2")).problem(), None);
        let problem = include("a", Some("latest")).problem().unwrap();
        assert!(problem.starts_with("\"latest\" is neither a version nor a range"), "{problem}");
    }

    #[test]
    fn a_version_that_is_called_for_is_wanted_below_the_one_that_is_chosen() {
        let text = b"entries: {a: [{version: 1.0.0}, {version: 1.1.0}, {version: 1.2.0}, {version: 2.0.0}]}";
        let index = Index::parse(text).unwrap();
        for (range, called, expected) in [
            (Some("1.x"), ["1.0.0", "1.1.0"], vec!["1.1.0", "1.2.0*"]),
            (Some("1.x"), ["1.1.0", "1.2.0"], vec!["1.2.0*"]),
            (Some("1.x"), ["2.0.0", "3.0.0"], vec!["1.2.0*"]),
            (Some("1.2.0"), ["1.0.0", "1.1.0"], vec!["1.2.0*"]),
            (None, ["1.2.0", "3.0.0"], vec!["1.2.0", "2.0.0*"]),
        ] {
            let include = [include("a", range)];
            let selection = Selection::with(&index, &include, |line| called.contains(&line.version.as_str()));
            let shown = selection.choices.iter().map(|choice| {
                assert_ne!(choice.is_chosen, choice.is_called_for);
                format!("{}{}", choice.line.version, if choice.is_chosen { "*" } else { "" })
            });
            assert_eq!(shown.collect::<Vec<_>>(), expected, "{range:?} {called:?}");
        }
    }

    #[test]
    fn what_is_included_and_not_there_is_missing() {
        let includes = [include("a", Some("7.0.0")), include("z", None), include("a", Some("x"))];
        let (choices, missing) = chosen(INDEX, &includes);
        assert!(choices.iter().all(|choice| !choice.ends_with('*')), "{choices:?}");
        assert_eq!(missing, ["a", "z"]);
    }

    #[test]
    fn the_digest_of_an_include_is_that_of_the_chosen_version() {
        let [listed, pinned] = ["listed", "pinned"].map(|text| Digest::of(text.as_bytes()));
        let text = format!(
            "entries: {{a: [{{version: 1.0.0, digest: '{listed}'}}, {{version: 2.0.0, digest: '{listed}'}}]}}"
        );
        let index = Index::parse(text.as_bytes()).unwrap();
        let includes = [Include { digest: Some(pinned.clone()), ..include("a", None) }];
        let digests: Vec<_> =
            Selection::new(&index, &includes).choices.iter().map(|choice| choice.digest.cloned()).collect();
        assert_eq!(digests, [Some(pinned)]);
    }

    #[test]
    fn of_several_versions_that_are_included_the_highest_is_chosen_in_any_order() {
        let index =
            Index::parse(b"entries: {a: [{version: 1.0.0}, {version: 1.1.0}, {version: 2.0.0}]}").unwrap();
        let wanted =
            |version: &str| Include { name: "a".to_owned(), version: Some(version.to_owned()), digest: None };
        for include in [
            [wanted("1.0.0"), wanted("1.1.0")],
            [wanted("1.1.0"), wanted("1.0.0")],
            [wanted("1.1.0"), wanted("9.0.0")],
        ] {
            let selection = Selection::new(&index, &include);
            let chosen = selection.choices.iter().find(|choice| choice.is_chosen).unwrap();
            assert_eq!(chosen.line.version, "1.1.0");
        }
    }
}
