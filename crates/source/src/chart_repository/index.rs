//! The index of a chart repository, read as a stream: of the charts that are wanted, one is held at a time. What is kept of it
//! goes into a store, which is a file where indexes are large.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Cursor, Read};

use chart::semver::Version;
use serde_json::Value;
use values::yaml::{self, ListPart, YamlError};

use super::entry::{kept, too_long};
use crate::index::{self, ENTRIES, is_html, is_name};

/// The most memory that one entry of an index, and what is beside the entries, may take while it is read, in bytes.
const MAX_ENTRY_MEMORY: usize = 2 << 20;

/// How much of it says whether it is a page, in bytes.
const HEAD: u64 = 512;

/// How much of an index is looked at at a time, in bytes.
const BUFFER: usize = 16 << 10;

/// The most bytes that are kept of one chart: an object of the cluster has to hold them.
pub const MAX_CHART_BYTES: usize = 900 << 10;

/// The most bytes of the versions of one chart, before they are cut to what an object can hold.
const MAX_HELD_BYTES: usize = 16 << 20;

/// How many names are held.
const MAX_NAMES: usize = 10_000;

/// The longest name of a chart, in bytes: that of Helm.
pub const MAX_NAME: usize = 250;

/// How many names are told that can't be used, and how many letters of each.
const MAX_LEFT_OUT: usize = 10;
const MAX_SHOWN: usize = 80;

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
    /// Something is there twice. Helm refuses that, too: which of the two counts is anybody's guess.
    #[error("the index has the key {0:?} twice: remove one of them")]
    Twice(String),
    /// The versions of one chart take too much room.
    #[error("the versions of chart {0:?} take more than {most} MiB in the index", most = MAX_HELD_BYTES >> 20)]
    Memory(String),
    /// Our own disk can't be written.
    #[error("what is kept of the index can't be put aside: {0}")]
    Store(String),
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
    /// Where that is which is kept of each chart: a JSON list of its versions in the order in which Helm looks at them, the
    /// highest first.
    pub charts: BTreeMap<String, Extent>,
    /// Whether there are more charts than were wanted, though none was named.
    pub is_truncated: bool,
    /// How many charts the index has.
    pub offered: usize,
    /// The names of the first of them in the order of the index, as what was meant instead of one that is not there.
    pub names: Vec<String>,
    /// The first names of charts that can't be used, and versions behind the names of their charts that are too long; cut.
    pub left_out: BTreeSet<String>,
}

/// A part of a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extent {
    /// Where it begins, in bytes.
    pub start: u64,
    /// How long it is, in bytes.
    pub length: usize,
}

/// Where what is kept of charts is put, one behind the other.
pub trait ListStore {
    /// Puts a list behind what is there, and returns where that ended before.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    fn append(&mut self, list: &[u8]) -> io::Result<u64>;
}

impl ListStore for Vec<u8> {
    fn append(&mut self, list: &[u8]) -> io::Result<u64> {
        let start = u64::try_from(self.len()).map_err(io::Error::other)?;
        self.extend_from_slice(list);
        Ok(start)
    }
}

impl ChartIndex {
    /// Reads an index of at most `most` bytes while it comes, and puts what is kept of its charts into a store.
    ///
    /// # Errors
    ///
    /// If it can't be used at all. An entry that is no version of a chart is left out, as Helm does.
    pub fn read(
        text: impl Read,
        most: u64,
        wanted: Wanted,
        store: &mut impl ListStore,
    ) -> Result<Self, IndexError> {
        let mut text = text.take(most.saturating_add(1));
        // It may come in small parts.
        let mut head = Vec::new();
        if text.by_ref().take(HEAD).read_to_end(&mut head).is_ok() && is_html(&head) {
            return Err(IndexError::Html);
        }
        let mut text = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(text));
        let mut builder = Builder::new(wanted, store);
        let read = yaml::parse_lists(&mut text, ENTRIES, MAX_ENTRY_MEMORY, |part| builder.take(part));
        if text.get_ref().get_ref().1.limit() == 0 {
            return Err(IndexError::Large(most));
        }
        builder.take_rest(&read?)?;
        builder.finish()
    }
}

/// One version that is kept.
type ParsedEntry = (Version, Box<[u8]>);

struct Builder<'s, S> {
    wanted: Wanted,
    store: &'s mut S,
    charts: BTreeMap<String, Extent>,
    /// The charts that are among the first.
    first: BTreeSet<String>,
    /// The chart whose versions come; nothing if it is not wanted.
    name: Option<String>,
    /// Its versions so far.
    versions: Vec<ParsedEntry>,
    /// How many bytes they take.
    bytes: usize,
    offered: usize,
    names: Vec<String>,
    left_out: BTreeSet<String>,
    is_truncated: bool,
    /// Whether the mapping of lists began.
    has_begun: bool,
    /// The names of the lists so far.
    seen: BTreeSet<String>,
}

impl<'s, S: ListStore> Builder<'s, S> {
    fn new(wanted: Wanted, store: &'s mut S) -> Self {
        Self {
            wanted,
            store,
            charts: BTreeMap::new(),
            first: BTreeSet::new(),
            name: None,
            versions: Vec::new(),
            bytes: 0,
            offered: 0,
            names: Vec::new(),
            left_out: BTreeSet::new(),
            is_truncated: false,
            has_begun: false,
            seen: BTreeSet::new(),
        }
    }

    fn take(&mut self, part: ListPart) -> Result<(), IndexError> {
        match part {
            ListPart::Lists if self.has_begun => return Err(IndexError::Twice(ENTRIES.to_owned())),
            ListPart::Lists => self.has_begun = true,
            ListPart::List(name) => {
                // So many are held as can be meant.
                if is_name(&name, MAX_NAME) && self.seen.len() < MAX_NAMES && !self.seen.insert(name.clone())
                {
                    return Err(IndexError::Twice(name));
                }
                self.begin(name)?;
            }
            ListPart::Item(entry) => self.add(&entry)?,
        }
        Ok(())
    }

    /// Takes what is left of the tree of the index: it shows the structure, and has lists that are shared.
    fn take_rest(&mut self, rest: &Value) -> Result<(), IndexError> {
        let Some(lists) = index::lists(rest).map_err(IndexError::Structure)? else {
            self.charts.clear();
            self.name = None;
            return Ok(());
        };
        for (name, versions) in lists {
            // What is merged takes the place of nothing that stands there.
            if let Some(versions) = versions
                && !self.seen.contains(name)
            {
                self.begin(name.to_owned())?;
                versions.iter().try_for_each(|version| self.add(version))?;
            }
        }
        Ok(())
    }

    /// Takes in that the versions of a chart come.
    fn begin(&mut self, name: String) -> Result<(), IndexError> {
        self.put_aside()?;
        self.offered = self.offered.saturating_add(1);
        let is_usable = is_name(&name, MAX_NAME);
        if !is_usable {
            self.leave_out(&name);
        }
        if is_usable && self.names.len() < MAX_NAMES {
            self.names.push(name.clone());
        }
        self.charts.remove(&name);
        let is_wanted = is_usable && (self.wanted.named.contains(&name) || self.is_first(&name));
        self.name = is_wanted.then_some(name);
        Ok(())
    }

    /// Returns whether a chart is among the first by name that were not named. It may take the place of another one.
    fn is_first(&mut self, name: &str) -> bool {
        self.first.insert(name.to_owned());
        if self.first.len() <= self.wanted.first {
            return true;
        }
        self.is_truncated |= self.wanted.first > 0;
        let Some(last) = self.first.pop_last() else { return false };
        self.charts.remove(&last);
        last != name
    }

    fn leave_out(&mut self, what: &str) {
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.insert(what.chars().take(MAX_SHOWN).collect());
        }
    }

    /// Adds what the list of the chart holds next.
    fn add(&mut self, entry: &Value) -> Result<(), IndexError> {
        let Some(name) = &self.name else { return Ok(()) };
        let Some((version, kept)) = kept(entry) else {
            if let Some(version) = too_long(entry) {
                let what = format!("{name} {version}");
                self.leave_out(&what);
            }
            return Ok(());
        };
        let json = kept.to_string().into_bytes().into_boxed_slice();
        self.bytes += json.len();
        if self.bytes > MAX_HELD_BYTES {
            return Err(IndexError::Memory(name.clone()));
        }
        self.versions.push((version, json));
        Ok(())
    }

    /// Puts what is kept of the chart into the store: it is complete.
    fn put_aside(&mut self) -> Result<(), IndexError> {
        self.bytes = 0;
        let Some(name) = self.name.take() else { return Ok(()) };
        let list = listed(std::mem::take(&mut self.versions));
        let start = self.store.append(&list).map_err(|error| IndexError::Store(error.to_string()))?;
        self.charts.insert(name, Extent { start, length: list.len() });
        Ok(())
    }

    fn finish(mut self) -> Result<ChartIndex, IndexError> {
        self.put_aside()?;
        let Self { charts, is_truncated, offered, names, left_out, .. } = self;
        Ok(ChartIndex { charts, is_truncated, offered, names, left_out })
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

    /// An index, with what is kept of its charts.
    type Read = (ChartIndex, Vec<u8>);

    fn read_of(text: &str, most: u64, wanted: Wanted) -> Result<Read, IndexError> {
        let mut store = Vec::new();
        ChartIndex::read(text.as_bytes(), most, wanted, &mut store).map(|index| (index, store))
    }

    fn read(text: &str, wanted: Wanted) -> Result<Read, IndexError> {
        read_of(text, 1 << 20, wanted)
    }

    fn named(names: &[&str]) -> Wanted {
        Wanted { named: names.iter().map(|name| (*name).to_owned()).collect(), first: 0 }
    }

    fn first(count: usize) -> Wanted {
        Wanted { first: count, ..Wanted::default() }
    }

    fn list<'r>((index, store): &'r Read, name: &str) -> &'r [u8] {
        let Extent { start, length } = index.charts[name];
        &store[usize::try_from(start).unwrap()..][..length]
    }

    fn versions(read: &Read, name: &str) -> Vec<String> {
        let list: Vec<Value> = serde_json::from_slice(list(read, name)).unwrap();
        list.iter().map(|entry| entry["version"].as_str().unwrap().to_owned()).collect()
    }

    const INDEX: &str = "apiVersion: v1\nentries:\n  b: [{version: 1.0.0}]\n  a: [{version: 1.9.0}, {version: 1.10.0+1}, {version: x}, {version: 1.10.0+2}]\n  c: []\n";

    #[test]
    fn b01_wanted_charts_are_kept_with_the_highest_version_first() {
        let all = read(INDEX, first(10)).unwrap();
        assert_eq!(all.0.charts.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(versions(&all, "a"), ["1.10.0+1", "1.10.0+2", "1.9.0"]);
        let (index, _) = read(INDEX, named(&["b", "d"])).unwrap();
        assert_eq!((index.charts.len(), index.is_truncated, index.offered), (1, false, 3));
    }

    #[test]
    fn an_entry_that_takes_too_much_memory_ends_the_reading() {
        let entry = |length: usize| {
            format!("entries: {{a: [{{version: 1.0.0, description: {}}}]}}", "x".repeat(length))
        };
        assert!(read_of(&entry(MAX_ENTRY_MEMORY / 4), 1 << 30, first(1)).is_ok());
        let error = read_of(&entry(MAX_ENTRY_MEMORY * 2), 1 << 30, first(1)).unwrap_err();
        assert!(matches!(error, IndexError::Yaml(_)), "{error}");
    }

    #[test]
    fn so_many_names_are_known_for_what_was_meant() {
        let many: Vec<String> = (0..=MAX_NAMES).map(|number| format!("n{number}: []")).collect();
        let (index, _) = read(&format!("entries: {{{}}}", many.join(", ")), first(1)).unwrap();
        assert_eq!((index.names.len(), index.offered), (MAX_NAMES, MAX_NAMES + 1));
    }

    #[test]
    fn long_names_are_kept_and_those_that_cannot_be_used_are_told() {
        let [longest, longer] = [MAX_NAME, MAX_NAME + 1].map(|length| "n".repeat(length));
        let text = format!(
            "entries:\n  {longest}: [{{version: 1.0.0}}]\n  {longer}: [{{version: 1.0.0}}]\n  ../x: [{{version: 1.0.0}}]\n  .y: []\n"
        );
        let (index, _) = read(&text, first(10)).unwrap();
        assert_eq!(index.charts.keys().collect::<Vec<_>>(), [&longest]);
        let told: Vec<&str> = index.left_out.iter().map(String::as_str).collect();
        assert_eq!(told, ["../x", ".y", &longer[..MAX_SHOWN]]);
        let text = format!(
            "entries: {{a: [{{version: 1.0.0}}, {{version: 1.0.0-{}}}, {{version: x}}]}}",
            "b".repeat(300)
        );
        let read_long = read(&text, first(10)).unwrap();
        assert_eq!(versions(&read_long, "a"), ["1.0.0"]);
        let told: Vec<&str> = read_long.0.left_out.iter().map(String::as_str).collect();
        assert_eq!(told, [format!("a 1.0.0-{}", "b".repeat(MAX_SHOWN - 8))]);
        let many: Vec<String> = (0..=MAX_LEFT_OUT).map(|number| format!("/{number}: []")).collect();
        let (index, _) = read(&format!("entries: {{{}}}", many.join(", ")), first(10)).unwrap();
        assert_eq!(index.left_out.len(), MAX_LEFT_OUT);
    }

    #[test]
    fn of_too_many_charts_the_first_by_name_are_kept() {
        let (index, _) = read(INDEX, first(1)).unwrap();
        assert_eq!(index.charts.keys().collect::<Vec<_>>(), ["a"]);
        assert!(index.is_truncated);
        let text =
            "entries: {c: [{version: 1.0.0}], b: [{version: 1.0.0}], a: [{version: 1.0.0}], '../x': []}";
        let (index, _) = read(text, first(2)).unwrap();
        assert_eq!(index.charts.keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn what_is_there_twice_is_refused_whether_it_is_wanted_or_not() {
        for (text, key) in [
            ("entries: {a: [{version: 1.0.0}]}\nentries: {b: []}", "entries"),
            ("entries:\n  a: [{version: 1.0.0}]\n  b: []\n  a: [{version: 2.0.0}]\n", "a"),
        ] {
            for wanted in [first(10), first(1), named(&["b"])] {
                assert_eq!(read(text, wanted).unwrap_err(), IndexError::Twice(key.to_owned()));
            }
        }
        // What is merged is no second one.
        let text = "x: &x {a: [{version: 1.0.0}]}\nentries:\n  <<: *x\n  a: [{version: 2.0.0}]\n";
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
    fn of_one_chart_the_highest_versions_stay_and_of_many_charts_all() {
        let entry = |n: usize| format!("{{version: 1.{n}.0, urls: ['{}']}},", "u".repeat(3000));
        let list = |count: usize| (0..count).map(entry).collect::<String>();
        let text = format!("entries: {{a: [{}]}}", list(400));
        let read = read_of(&text, 1 << 30, first(10)).unwrap();
        assert!(self::list(&read, "a").len() <= MAX_CHART_BYTES);
        assert_eq!(versions(&read, "a")[0], "1.399.0");
        let text = format!("entries: {{a: [{}]}}", list(6000));
        assert_eq!(read_of(&text, 1 << 30, first(10)).unwrap_err(), IndexError::Memory("a".to_owned()));
        // All together are more than one may have.
        let charts: Vec<String> = (0..30).map(|n| format!("c{n}: [{}]", list(250))).collect();
        let read = read_of(&format!("entries: {{{}}}", charts.join(", ")), 1 << 30, first(30)).unwrap();
        assert!(read.1.len() > MAX_HELD_BYTES && read.0.charts.len() == 30, "{}", read.1.len());
        assert_eq!(versions(&read, "c29")[0], "1.249.0");
    }

    #[test]
    fn a_store_that_is_full_is_told() {
        struct Full;
        impl ListStore for Full {
            fn append(&mut self, _: &[u8]) -> io::Result<u64> {
                Err(io::Error::other("no space"))
            }
        }
        let told = ChartIndex::read(INDEX.as_bytes(), 1 << 20, first(10), &mut Full).unwrap_err();
        assert_eq!(told, IndexError::Store("no space".to_owned()));
    }
}
