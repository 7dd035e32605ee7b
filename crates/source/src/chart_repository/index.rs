//! The index of a chart repository, read as a stream: only the charts that are wanted are held, as they are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read};

use chart::semver::Version;
use serde_json::Value;
use values::yaml::{self, ListPart, YamlError};

use super::entry::kept;
use crate::index::{self, ENTRIES, check_name, is_html};

/// The most memory that one entry of an index, and what is beside the entries, may take while it is read, in bytes.
const MAX_ENTRY_MEMORY: usize = 2 << 20;

/// How much of an index is looked at at a time, in bytes.
const BUFFER: usize = 16 << 10;

/// The most bytes that are kept of one chart: an object of the cluster has to hold them.
pub const MAX_CHART_BYTES: usize = 900 << 10;

/// The most bytes that are kept of all charts together.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// How many names are held.
const MAX_NAMES: usize = 10_000;

/// Why an index can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum IndexError {
    /// The text is too large.
    #[error("the index is larger than {0} bytes (--charts-index-bytes)")]
    Large(u64),
    /// The text is a page of HTML.
    #[error(
        "the answer is a page of HTML and no index: spec.url has to be the directory that holds index.yaml, and may need credentials"
    )]
    Html,
    /// The text is not YAML.
    #[error("the index is not YAML: {0}")]
    Yaml(#[from] YamlError),
    /// It has another structure.
    #[error("the index has no mapping of names to lists of versions at {0:?}: `helm repo index` writes one")]
    Structure(String),
    /// What is wanted of it takes too much room.
    #[error(
        "what is kept of the index takes more than {} MiB: name the charts that are wanted in spec.charts",
        MAX_KEPT_BYTES >> 20
    )]
    Memory,
}

/// Which charts of an index are wanted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wanted {
    /// These in any case.
    pub named: BTreeSet<String>,
    /// The first so many of the others by name.
    pub first: usize,
}

/// What is wanted of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartIndex {
    /// What is kept of each chart: a JSON list of its versions in the order in which Helm looks at them, the highest first.
    pub charts: BTreeMap<String, Vec<u8>>,
    /// Whether there are more charts than were wanted, though none was named.
    pub is_truncated: bool,
    /// How many charts the index has.
    pub offered: usize,
    /// The names of the first of them in the order of the index, as what was meant instead of one that is not there.
    pub names: Vec<String>,
}

impl ChartIndex {
    /// Reads an index of at most `most` bytes while it comes.
    ///
    /// # Errors
    ///
    /// If it can't be used at all. An entry that is no version of a chart is left out, as Helm does.
    pub fn read(text: impl Read, most: u64, wanted: Wanted) -> Result<Self, IndexError> {
        let mut text = BufReader::with_capacity(BUFFER, text.take(most.saturating_add(1)));
        if text.fill_buf().is_ok_and(is_html) {
            return Err(IndexError::Html);
        }
        let mut builder = Builder { wanted, ..Builder::default() };
        let read = yaml::parse_lists(&mut text, ENTRIES, MAX_ENTRY_MEMORY, |part| builder.take(part));
        if text.get_ref().limit() == 0 {
            return Err(IndexError::Large(most));
        }
        builder.take_rest(&read?)?;
        Ok(builder.finish())
    }
}

/// One version that is kept.
type ParsedEntry = (Version, Box<[u8]>);

#[derive(Debug, Default)]
struct Builder {
    wanted: Wanted,
    charts: BTreeMap<String, Vec<ParsedEntry>>,
    /// The charts that are among the first.
    first: BTreeSet<String>,
    /// The chart whose versions come.
    name: String,
    is_wanted: bool,
    bytes: usize,
    offered: usize,
    names: Vec<String>,
    is_truncated: bool,
}

impl Builder {
    fn take(&mut self, part: ListPart) -> Result<(), IndexError> {
        match part {
            ListPart::Lists => {
                *self = Self { wanted: std::mem::take(&mut self.wanted), ..Self::default() };
            }
            ListPart::List(name) => self.begin(name),
            ListPart::Item(entry) => self.add(&entry)?,
        }
        Ok(())
    }

    /// Takes what is left of the tree of the index: it shows the structure, and has lists that are shared.
    fn take_rest(&mut self, rest: &Value) -> Result<(), IndexError> {
        let Some(lists) = index::lists(rest).map_err(IndexError::Structure)? else {
            self.charts.clear();
            return Ok(());
        };
        for (name, versions) in lists {
            if let Some(versions) = versions {
                self.begin(name.to_owned());
                versions.iter().try_for_each(|version| self.add(version))?;
            }
        }
        Ok(())
    }

    /// Takes in that the versions of a chart come. Of two lists of one name, the later counts.
    fn begin(&mut self, name: String) {
        self.offered = self.offered.saturating_add(1);
        if self.names.len() < MAX_NAMES && check_name(&name).is_ok() {
            self.names.push(name.clone());
        }
        self.forget(&name);
        self.is_wanted =
            check_name(&name).is_ok() && (self.wanted.named.contains(&name) || self.is_first(&name));
        if self.is_wanted {
            self.charts.insert(name.clone(), Vec::new());
            self.name = name;
        }
    }

    /// Returns whether a chart is among the first by name that were not named. It may take the place of another one.
    fn is_first(&mut self, name: &str) -> bool {
        self.first.insert(name.to_owned());
        if self.first.len() <= self.wanted.first {
            return true;
        }
        self.is_truncated |= self.wanted.first > 0;
        let Some(last) = self.first.pop_last() else { return false };
        self.forget(&last);
        last != name
    }

    fn forget(&mut self, name: &str) {
        let gone = self.charts.remove(name).unwrap_or_default();
        self.bytes -= gone.iter().map(|(_, json)| json.len()).sum::<usize>();
    }

    /// Adds what the list of the chart holds next.
    fn add(&mut self, entry: &Value) -> Result<(), IndexError> {
        if !self.is_wanted {
            return Ok(());
        }
        let Some((version, kept)) = kept(entry) else { return Ok(()) };
        let json = kept.to_string().into_bytes().into_boxed_slice();
        self.bytes += json.len();
        if self.bytes > MAX_KEPT_BYTES {
            return Err(IndexError::Memory);
        }
        if let Some(versions) = self.charts.get_mut(&self.name) {
            versions.push((version, json));
        }
        Ok(())
    }

    fn finish(self) -> ChartIndex {
        let charts = self.charts.into_iter().map(|(name, versions)| (name, listed(versions))).collect();
        ChartIndex { charts, is_truncated: self.is_truncated, offered: self.offered, names: self.names }
    }
}

/// Returns what is kept of the entries of one chart, as [`ChartIndex::charts`] has it. What is no version is left out.
pub fn list(entries: impl Iterator<Item = Value>) -> Vec<u8> {
    let parsed = entries.filter_map(|entry| kept(&entry));
    listed(
        parsed.map(|(version, kept)| (version, kept.to_string().into_bytes().into_boxed_slice())).collect(),
    )
}

/// Returns the versions as one JSON list, the highest first; equal ones keep their order. What is too much is left out.
fn listed(mut versions: Vec<ParsedEntry>) -> Vec<u8> {
    versions.sort_by(|(a, _), (b, _)| b.precedence(a));
    let mut json = vec![b'['];
    for (_, version) in versions {
        if json.len() + version.len() + 2 > MAX_CHART_BYTES {
            break;
        }
        if json.len() > 1 {
            json.push(b',');
        }
        json.extend_from_slice(&version);
    }
    json.push(b']');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, wanted: Wanted) -> Result<ChartIndex, IndexError> {
        ChartIndex::read(text.as_bytes(), 1 << 20, wanted)
    }

    fn named(names: &[&str]) -> Wanted {
        Wanted { named: names.iter().map(|name| (*name).to_owned()).collect(), first: 0 }
    }

    fn first(count: usize) -> Wanted {
        Wanted { first: count, ..Wanted::default() }
    }

    fn versions(index: &ChartIndex, name: &str) -> Vec<String> {
        let list: Vec<Value> = serde_json::from_slice(&index.charts[name]).unwrap();
        list.iter().map(|entry| entry["version"].as_str().unwrap().to_owned()).collect()
    }

    const INDEX: &str = "apiVersion: v1\nentries:\n  b: [{version: 1.0.0}]\n  a: [{version: 1.9.0}, {version: 1.10.0+1}, {version: x}, {version: 1.10.0+2}]\n  c: []\n";

    #[test]
    fn b01_wanted_charts_are_kept_with_the_highest_version_first() {
        let index = read(INDEX, first(10)).unwrap();
        assert_eq!(index.charts.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(versions(&index, "a"), ["1.10.0+1", "1.10.0+2", "1.9.0"]);
        let index = read(INDEX, named(&["b", "d"])).unwrap();
        assert_eq!((index.charts.len(), index.is_truncated, index.offered), (1, false, 3));
    }

    #[test]
    fn of_too_many_charts_the_first_by_name_are_kept() {
        let index = read(INDEX, first(1)).unwrap();
        assert_eq!(index.charts.keys().collect::<Vec<_>>(), ["a"]);
        assert!(index.is_truncated);
        let text =
            "entries: {c: [{version: 1.0.0}], b: [{version: 1.0.0}], a: [{version: 1.0.0}], '../x': []}";
        let index = read(text, first(2)).unwrap();
        assert_eq!(index.charts.keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn of_two_lists_of_one_name_the_later_counts() {
        let text = "entries:\n  a: [{version: 1.0.0}]\n  a: [{version: 2.0.0}]\n";
        assert_eq!(versions(&read(text, first(10)).unwrap(), "a"), ["2.0.0"]);
        let text = "x: &x [{version: 1.0.0}]\nentries: {a: *x, b: *x}\n";
        assert_eq!(versions(&read(text, named(&["b"])).unwrap(), "b"), ["1.0.0"]);
    }

    #[test]
    fn what_is_no_index_says_so() {
        for (text, expected) in [
            ("<!DOCTYPE html><html>", IndexError::Html),
            ("", IndexError::Structure("entries".to_owned())),
            ("entries: []", IndexError::Structure("entries".to_owned())),
            ("entries: {a: {version: 1.0.0}}", IndexError::Structure("entries.a".to_owned())),
        ] {
            assert_eq!(read(text, first(10)).unwrap_err(), expected);
        }
        assert!(matches!(read("a: [b", first(10)), Err(IndexError::Yaml(_))));
        let large = format!("entries: {{a: [{}]}}", "{version: 1.0.0},".repeat(1 << 17));
        assert_eq!(read(&large, first(10)).unwrap_err(), IndexError::Large(1 << 20));
    }

    #[test]
    fn what_is_kept_is_limited_and_of_one_chart_the_highest_versions_stay() {
        let entry = |n: usize| format!("{{version: 1.{n}.0, urls: ['{}']}},", "u".repeat(3000));
        let text = format!("entries: {{a: [{}]}}", (0..400).map(entry).collect::<String>());
        let index = ChartIndex::read(text.as_bytes(), 1 << 30, first(10)).unwrap();
        assert!(index.charts["a"].len() <= MAX_CHART_BYTES);
        assert_eq!(versions(&index, "a")[0], "1.399.0");
        let text = format!("entries: {{a: [{}]}}", (0..6000).map(entry).collect::<String>());
        let error = ChartIndex::read(text.as_bytes(), 1 << 30, first(10)).unwrap_err();
        assert_eq!(error, IndexError::Memory);
    }
}
