//! Which version of a chart a constraint takes: the one that Helm takes.

use chart::semver::{Constraint, ConstraintError, Version};

use super::entry::Entry;

/// The longest constraint, in bytes.
pub const MAX_CONSTRAINT: usize = 256;

/// Why a constraint takes no version.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ChoiceError {
    /// It does not parse.
    #[error("{constraint:?} is no constraint on versions, such as ~1.2 or >=1.0.0 <2: {source}")]
    Constraint {
        /// The constraint.
        constraint: String,
        /// What is wrong with it.
        source: ConstraintError,
    },
    /// It is too long.
    #[error("a constraint has more than {MAX_CONSTRAINT} bytes")]
    Long,
    /// Nothing fits.
    #[error("no version of the chart fits {constraint:?}; {known}")]
    None {
        /// The constraint.
        constraint: String,
        /// What there is.
        known: String,
    },
    /// There is no such tag.
    #[error(
        "no version of the chart has the tag {constraint:?}, and in a registry a whole version is a tag; {known}{hint}"
    )]
    Tag {
        /// The constraint.
        constraint: String,
        /// What there is.
        known: String,
        /// What would take it, if that is a range.
        hint: String,
    },
    /// What fits is too new.
    #[error("what fits {constraint:?} is too new yet: {version}")]
    Young {
        /// The constraint.
        constraint: String,
        /// The highest version that fits.
        version: String,
    },
}

/// Where versions are listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Listing {
    /// In the index of a repository.
    Index,
    /// As tags of a registry. What names a version is the tag itself there, and never a range.
    Tags,
}

impl Listing {
    /// Returns whether a constraint is a tag, and no range.
    fn is_tag(self, constraint: &str) -> bool {
        self == Self::Tags && Version::parse(constraint).is_ok()
    }
}

/// Returns the version that a constraint takes of `entries`, which are in Helm's order: the highest first.
///
/// A version that is written exactly so, without a space around it, counts before all others. An empty constraint is `*`. Pre-releases fit only constraints that
/// name one. Of what fits, only that is taken which `is_old_enough`, unless it is named exactly.
pub fn choose<'e>(
    listing: Listing,
    entries: &'e [Entry],
    constraint: &str,
    is_old_enough: impl Fn(&Entry) -> bool,
) -> Result<&'e Entry, ChoiceError> {
    let given = constraint;
    let constraint = given.trim();
    if constraint.len() > MAX_CONSTRAINT {
        return Err(ChoiceError::Long);
    }
    let parsed = Constraint::parse(if constraint.is_empty() { "*" } else { constraint });
    let parsed =
        parsed.map_err(|source| ChoiceError::Constraint { constraint: constraint.to_owned(), source })?;
    if let Some(exact) = entries.iter().find(|entry| entry.version == given) {
        return Ok(exact);
    }
    if listing.is_tag(given) {
        let hint = match constraint.strip_prefix('v').unwrap_or(constraint) {
            part if part.contains(['+', '-']) => String::new(),
            part => format!("; ~{part} is a range"),
        };
        return Err(ChoiceError::Tag { constraint: constraint.to_owned(), known: known(entries), hint });
    }
    let mut youngest = None;
    for entry in entries.iter().filter(|entry| entry.fits(&parsed)) {
        if entry.is_exactly(constraint) || is_old_enough(entry) {
            return Ok(entry);
        }
        youngest.get_or_insert(entry);
    }
    let constraint = constraint.to_owned();
    if let Some(entry) = youngest {
        return Err(ChoiceError::Young { constraint, version: entry.version.clone() });
    }
    Err(ChoiceError::None { constraint, known: known(entries) })
}

/// Returns in words what there is.
fn known(entries: &[Entry]) -> String {
    match (entries.first(), entries.len()) {
        (None, _) => "there is none".to_owned(),
        (Some(only), 1) => format!("there is only {}", only.version),
        (Some(highest), count) => format!("the highest of {count} is {}", highest.version),
    }
}

/// Iterates over the versions that would come before what a constraint takes if they were old enough.
///
/// Nothing comes before a version that is named exactly, nor does anything of a constraint that does not parse.
pub fn too_young<'e>(
    listing: Listing,
    entries: &'e [Entry],
    constraint: &'e str,
    is_old_enough: impl Fn(&Entry) -> bool + 'e,
) -> impl Iterator<Item = &'e Entry> {
    let trimmed = constraint.trim();
    let is_named = entries.iter().any(|entry| entry.version == constraint);
    let is_looked_at = trimmed.len() <= MAX_CONSTRAINT && !is_named && !listing.is_tag(constraint);
    let text = if trimmed.is_empty() { "*" } else { trimmed };
    let parsed = is_looked_at.then(|| Constraint::parse(text).ok()).flatten();
    let fitting = entries.iter().filter(move |entry| parsed.as_ref().is_some_and(|its| entry.fits(its)));
    fitting.take_while(move |entry| !entry.is_exactly(trimmed) && !is_old_enough(entry))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::chart_repository::index::{ChartIndex, Wanted};

    /// Returns the entries of an index that has exactly these versions.
    fn entries(versions: &[&str]) -> Vec<Entry> {
        let list: Vec<Value> = versions.iter().map(|version| json!({ "version": version })).collect();
        let text = json!({"entries": {"a": list}}).to_string();
        let (wanted, mut store) = (Wanted { first: 1, ..Wanted::default() }, Vec::new());
        ChartIndex::read(text.as_bytes(), 1 << 20, wanted, &mut store).unwrap();
        let kept: Vec<Value> = serde_json::from_slice(&store).unwrap();
        kept.iter().filter_map(Entry::read).collect()
    }

    #[test]
    fn b07_a_constraint_takes_what_helm_takes() {
        // What Helm 3 takes of lists that are made up, and Helm 4 of lists as repositories have them.
        let made_up = include_str!("../../tests/constraints.json");
        let random = include_str!("../../tests/random_constraints.json");
        let mut wrong = Vec::new();
        for (truth, count) in [(made_up, 278), (random, 500)] {
            let truth: Value = serde_json::from_str(truth).unwrap();
            let cases = truth["choices"].as_array().unwrap();
            assert_eq!(cases.len(), count);
            for case in cases {
                let [list, constraint] = ["list", "constraint"].map(|name| case[name].as_str().unwrap());
                let versions = truth["lists"][list].as_array().unwrap();
                let versions: Vec<&str> = versions.iter().map(|version| version.as_str().unwrap()).collect();
                let entries = entries(&versions);
                let chosen = choose(Listing::Index, &entries, constraint, |_| true)
                    .ok()
                    .map(|entry| entry.version.as_str());
                if chosen != case["chosen"].as_str() {
                    wrong.push(format!("{list} {constraint:?}: {chosen:?} instead of {}", case["chosen"]));
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn what_is_too_young_waits_unless_it_is_named_exactly() {
        let entries = entries(&["1.0.0", "1.1.0", "1.2.0"]);
        let is_old = |entry: &Entry| entry.version == "1.1.0";
        assert_eq!(choose(Listing::Index, &entries, "^1", is_old).unwrap().version, "1.1.0");
        assert_eq!(choose(Listing::Index, &entries, "1.2.0", is_old).unwrap().version, "1.2.0");
        assert_eq!(
            choose(Listing::Index, &entries, "=1.2.0", is_old).unwrap().version,
            "1.2.0",
            "that is no range either"
        );
        assert_eq!(choose(Listing::Index, &entries, "= 1.2.0", is_old).unwrap().version, "1.2.0");
        assert!(choose(Listing::Index, &entries, "=1.2", is_old).is_err());
        let young = choose(Listing::Index, &entries, "~1.2", is_old).unwrap_err();
        assert_eq!(young.to_string(), "what fits \"~1.2\" is too new yet: 1.2.0");
        for (constraint, waits) in
            [("^1", vec!["1.2.0"]), ("~1.2", vec!["1.2.0"]), ("1.2.0", vec![]), ("<1.2", vec![])]
        {
            let young =
                too_young(Listing::Index, &entries, constraint, is_old).map(|entry| entry.version.as_str());
            assert_eq!(young.collect::<Vec<_>>(), waits, "{constraint}");
        }
    }

    #[test]
    fn b19_of_a_registry_a_version_is_the_tag_itself() {
        let entries = entries(&["1.2.0", "1.0.0+1", "1.0.0+3", "0.1.0"]);
        let taken = |constraint: &str| {
            choose(Listing::Tags, &entries, constraint, |_| true).map(|entry| entry.version.as_str())
        };
        for (constraint, version) in [
            ("1.0.0+3", "1.0.0+3"),
            ("~1.0", "1.0.0+1"),
            ("=1.0.0", "1.0.0+1"),
            (" 1.2.0", "1.2.0"),
            ("", "1.2.0"),
        ] {
            assert_eq!(taken(constraint), Ok(version), "{constraint:?}");
        }
        for (constraint, says) in [
            (
                "1.0.0+9",
                "no version of the chart has the tag \"1.0.0+9\", and in a registry a whole version is a tag; the highest of 4 is 1.2.0",
            ),
            (
                "1.0",
                "no version of the chart has the tag \"1.0\", and in a registry a whole version is a tag; the highest of 4 is 1.2.0; ~1.0 is a range",
            ),
        ] {
            assert_eq!(taken(constraint).unwrap_err().to_string(), says);
        }
        assert_eq!(too_young(Listing::Tags, &entries, "1.0", |_| false).count(), 0);
    }

    #[test]
    fn b06_a_constraint_that_takes_nothing_says_why() {
        let entries = entries(&["1.0.0", "2.0.0"]);
        for (constraint, says) in [
            ("9.9.9", "no version of the chart fits \"9.9.9\"; the highest of 2 is 2.0.0"),
            ("one", "\"one\" is no constraint on versions"),
            (&"1".repeat(MAX_CONSTRAINT + 1), "a constraint has more than 256 bytes"),
        ] {
            let error = choose(Listing::Index, &entries, constraint, |_| true).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
