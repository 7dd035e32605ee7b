//! Index files: which bundles a repository offers. See docs/sources.md.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read};

use chart::semver::Version;
use serde_json::{Map, Value};
use values::yaml::{self, ListPart, YamlError};

use crate::digest::Digest;
use crate::url::MAX_URL_BYTES;

/// The most bytes of the text of an index.
pub const MAX_INDEX_BYTES: usize = 32 << 20;

/// The most memory that an index may take once it is read, in bytes.
pub const MAX_INDEX_MEMORY: usize = 8 << 20;

/// The most memory that one entry of an index, and what is beside the entries, may take while it is read, in bytes.
const MAX_ENTRY_MEMORY: usize = 2 << 20;

/// How much of an index is looked at at a time, in bytes.
const BUFFER: usize = 16 << 10;

/// The most lines of an index: versions of all addons together.
pub const MAX_LINES: usize = 20_000;

/// The most bytes of an addon's name.
pub const MAX_NAME: usize = 63;

/// The most bytes of a version.
pub const MAX_VERSION: usize = 128;

/// The most bytes of an id.
pub const MAX_ID: usize = 253;

/// The most URLs of one bundle.
const MAX_URLS: usize = 8;

/// The key of the lists of versions.
pub(crate) const ENTRIES: &str = "entries";

/// How much of a name or version that is refused is quoted, in characters.
const QUOTED: usize = 64;

/// A name of an index, and its list of versions, if there is anything behind the name.
type NamedList<'v> = (&'v str, Option<&'v [Value]>);

/// Returns the lists of versions in the tree of an index; `None` if it says that there are none.
///
/// # Errors
///
/// The place that is something else.
pub(crate) fn lists(index: &Value) -> Result<Option<Vec<NamedList<'_>>>, String> {
    let wrong = |place: &str| place.chars().take(QUOTED).collect::<String>();
    let entries = match index.get(ENTRIES) {
        Some(Value::Null) => return Ok(None),
        Some(Value::Object(entries)) => entries,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) | None => {
            return Err(wrong(ENTRIES));
        }
    };
    let mut lists = Vec::with_capacity(entries.len());
    for (name, versions) in entries {
        lists.push(match versions {
            Value::Null => (name.as_str(), None),
            Value::Array(versions) => (name.as_str(), Some(versions.as_slice())),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                return Err(wrong(&format!("{ENTRIES}.{name}")));
            }
        });
    }
    Ok(Some(lists))
}

/// Why an index can't be used at all.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum IndexError {
    /// The text is too large.
    #[error("the index is larger than {} MiB", MAX_INDEX_BYTES >> 20)]
    Large,
    /// The text is a page of HTML.
    #[error(
        "the answer is a page of HTML and no index: the URL has to be that of the file itself, and may need credentials"
    )]
    Html,
    /// The text is not YAML.
    #[error("the index is not YAML: {0}")]
    Yaml(#[from] YamlError),
    /// It has another structure.
    #[error(
        "the index has no mapping of names to lists of versions at {0:?}: write entries: {{NAME: [{{version: 1.2.3}}]}}, \
         or entries: {{}} if nothing is offered"
    )]
    Structure(String),
    /// It has too many lines.
    #[error("the index has more than {MAX_LINES} versions: remove old ones")]
    Lines,
    /// What it says takes too much memory.
    #[error("the names, versions and URLs of the index take more than {} MiB: remove old versions", MAX_INDEX_MEMORY >> 20)]
    Memory,
}

/// What an index says about one version of an addon.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The version.
    pub version: Version,
    /// The digest that its packed bundle must have.
    pub digest: Option<Digest>,
    /// Where it lies, relative to the index or absolute; empty if it lies where bundles usually do.
    pub urls: Vec<String>,
    /// The id that its bundle must have.
    pub id: Option<String>,
}

/// One version of an addon in an index: an entry, or what is wrong with it.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name: the key in the index.
    pub name: String,
    /// The version as it is written; cut if it is too long.
    pub version: String,
    /// The entry, or why it can't be used.
    pub outcome: Result<Entry, String>,
    /// The number of the list in which it stands. Of two lists of one name, the later counts.
    list: u32,
}

/// The lines of an index, sorted by name and version; those without a usable version come last.
#[derive(Clone, Debug, Default)]
pub struct Index {
    lines: Vec<Line>,
}

impl Index {
    /// Reads the text of an index.
    pub fn parse(text: &[u8]) -> Result<Self, IndexError> {
        Self::read(text)
    }

    /// Reads an index while it comes: of its text, only the entry that is read is held.
    pub fn read(text: impl Read) -> Result<Self, IndexError> {
        let mut text = BufReader::with_capacity(BUFFER, text.take(MAX_INDEX_BYTES as u64 + 1));
        if text.fill_buf().is_ok_and(is_html) {
            return Err(IndexError::Html);
        }
        let mut builder = IndexBuilder::default();
        let read = yaml::parse_only_lists(&mut text, ENTRIES, MAX_ENTRY_MEMORY, |part| builder.take(part));
        if text.get_ref().limit() == 0 {
            return Err(IndexError::Large);
        }
        builder.take_rest(&read?)?;
        Ok(builder.finish())
    }

    /// Returns the index of addons whose versions a registry lists.
    ///
    /// # Errors
    ///
    /// When there are too many.
    pub fn of_versions<'v>(
        addons: impl IntoIterator<Item = (&'v str, &'v BTreeSet<String>)>,
    ) -> Result<Self, IndexError> {
        let mut builder = IndexBuilder::default();
        for (name, versions) in addons {
            builder.begin(name.to_owned());
            for version in versions {
                builder.add(&serde_json::json!({ "version": version }))?;
            }
        }
        Ok(builder.finish())
    }

    /// Returns the lines in their order.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns how much memory it takes, in bytes, about.
    pub fn memory(&self) -> usize {
        self.lines.iter().map(Line::memory).sum()
    }
}

impl Line {
    /// Returns how much memory it takes, in bytes, about.
    fn memory(&self) -> usize {
        // What the allocator adds.
        let text = |text: &str| text.len() + 16;
        let outcome = match &self.outcome {
            // The version keeps how it was written.
            Ok(Entry { urls, id, version, .. }) => {
                let urls = urls.iter().map(|url| size_of::<String>() + text(url)).sum::<usize>();
                urls + text(version.original()) + id.as_deref().map_or(0, text)
            }
            Err(problem) => text(problem),
        };
        size_of::<Self>() + text(&self.name) + text(&self.version) + outcome
    }
}

/// Collects the lines of an index one by one.
#[derive(Debug, Default)]
struct IndexBuilder {
    lines: Vec<Line>,
    /// The name whose versions come, and the number of its list.
    name: String,
    list: u32,
    memory: usize,
}

impl IndexBuilder {
    /// Takes what comes next.
    fn take(&mut self, part: ListPart) -> Result<(), IndexError> {
        match part {
            ListPart::Lists => {
                self.lines.clear();
                self.memory = 0;
            }
            ListPart::List(name) => self.begin(name),
            ListPart::Item(entry) => self.add(&entry)?,
        }
        Ok(())
    }

    /// Takes what is left of the tree of the index: it shows the structure, and has lists that are shared.
    fn take_rest(&mut self, rest: &Value) -> Result<(), IndexError> {
        let Some(lists) = lists(rest).map_err(IndexError::Structure)? else {
            // A file that was cut behind its head looks like this. Who offers nothing any more says so.
            return Err(IndexError::Structure(ENTRIES.to_owned()));
        };
        for (name, versions) in lists {
            self.begin(name.to_owned());
            let Some(versions) = versions else {
                let problem = "there is no list of its versions in the index: write one, or remove the name";
                self.add_line("", Err(problem.to_owned()))?;
                continue;
            };
            versions.iter().try_for_each(|version| self.add(version))?;
        }
        Ok(())
    }

    /// Takes in that the versions of an addon come.
    fn begin(&mut self, name: String) {
        self.name = name;
        self.list = self.list.saturating_add(1);
    }

    /// Adds what the list of the addon holds next.
    fn add(&mut self, entry: &Value) -> Result<(), IndexError> {
        let version = entry.get("version").map(scalar).unwrap_or_default();
        let outcome = check_name(&self.name).and_then(|()| read_entry(entry, &version));
        self.add_line(&version, outcome)
    }

    /// Adds a line of the addon.
    fn add_line(&mut self, version: &str, outcome: Result<Entry, String>) -> Result<(), IndexError> {
        if self.lines.len() >= MAX_LINES {
            return Err(IndexError::Lines);
        }
        let (name, version) =
            (self.name.chars().take(QUOTED).collect(), version.chars().take(MAX_VERSION).collect());
        let line = Line { name, version, outcome, list: self.list };
        self.memory += line.memory();
        if self.memory > MAX_INDEX_MEMORY {
            return Err(IndexError::Memory);
        }
        self.lines.push(line);
        Ok(())
    }

    /// Returns the index. A version that was there before is a problem of its line, and so is a name.
    fn finish(self) -> Index {
        let mut lines = self.lines;
        // Equal ones keep their order: of two, the first stays.
        lines.sort_by(|a, b| a.name.cmp(&b.name).then(b.list.cmp(&a.list)).then_with(|| order(a, b)));
        let (mut before, mut repeated) = (None, BTreeSet::new());
        lines.retain(|line| {
            let (_, list) =
                before.take_if(|(name, _)| *name == line.name).unwrap_or((String::new(), line.list));
            before = Some((line.name.clone(), list));
            if list != line.list {
                repeated.insert(line.name.clone());
            }
            list == line.list
        });
        lines.extend(repeated.into_iter().map(|name| {
            let problem = "the index has this name twice, and only the last list of its versions is read: make one list of them";
            Line { name, version: String::new(), outcome: Err(problem.to_owned()), list: 0 }
        }));
        let mut before: Option<(String, String)> = None;
        for line in &mut lines {
            let Ok(entry) = &line.outcome else { continue };
            let this = Some((line.name.clone(), entry.version.to_string()));
            if before == this {
                line.outcome = Err("the index lists this version twice: remove one of them".to_owned());
            }
            before = this;
        }
        // Those with a problem go behind the others of their name.
        lines.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| order(a, b)));
        lines.shrink_to_fit();
        Index { lines }
    }
}

/// Returns the order of two lines of one addon.
fn order(a: &Line, b: &Line) -> Ordering {
    match (&a.outcome, &b.outcome) {
        (Ok(a), Ok(b)) => {
            let texts = || a.version.to_string().cmp(&b.version.to_string());
            a.version.precedence(&b.version).then_with(texts)
        }
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.version.cmp(&b.version),
    }
}

/// Reports whether a text begins as pages do.
pub(crate) fn is_html(text: &[u8]) -> bool {
    let start = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii_start();
    ["<!doctype", "<html", "<head", "<body", "<!--"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes())))
}

/// Returns a scalar as Go reads it into a text; other values are no text.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Returns whether a text of at most `longest` bytes can be a name: it is part of URLs, paths and names of objects.
pub(crate) fn is_name(text: &str, longest: usize) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= longest && !text.starts_with('.') && text.bytes().all(is_safe)
}

fn check_name(name: &str) -> Result<(), String> {
    if !is_name(name, MAX_NAME) {
        return Err(format!(
            "the name in the index has to be of at most {MAX_NAME} letters, digits, -, _ and ., and not begin with a dot"
        ));
    }
    Ok(())
}

fn read_entry(entry: &Value, version: &str) -> Result<Entry, String> {
    let Value::Object(fields) = entry else {
        return Err("the entry of the index is no mapping: write {version: 1.2.3}".to_owned());
    };
    if let Some(Value::Number(number)) = fields.get("version").filter(|version| version.is_f64()) {
        // YAML takes 1.10 for the number 1.1, which is another version.
        return Err(format!("the version in the index is read as the number {number}: write it in quotes"));
    }
    if version.is_empty() {
        return Err("the entry of the index has no version: write version: 1.2.3".to_owned());
    }
    let parsed = (version.len() <= MAX_VERSION).then(|| Version::parse(version).ok()).flatten();
    let version = parsed.ok_or_else(|| {
        format!("the version in the index is not a semantic version of at most {MAX_VERSION} characters, such as 1.2.3")
    })?;
    let digest = match text(fields, "digest")? {
        Some(digest) => Some(Digest::parse(digest).map_err(|error| format!("digest: {error}"))?),
        None => None,
    };
    let id = text(fields, "id")?.map(str::to_owned);
    if id.as_ref().is_some_and(|id| id.len() > MAX_ID) {
        return Err(format!("id: it is longer than {MAX_ID} bytes"));
    }
    Ok(Entry { version, digest, urls: urls(fields)?, id })
}

/// Returns a text, none if it is missing, null or empty.
fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Result<Option<&'v str>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(format!("{name}: it has to be a text"))
        }
    }
}

fn urls(fields: &Map<String, Value>) -> Result<Vec<String>, String> {
    let wrong =
        || format!("urls: it has to be a list of at most {MAX_URLS} texts of at most {MAX_URL_BYTES} bytes");
    match fields.get("urls") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(urls)) if urls.len() <= MAX_URLS => {
            let url = |url: &Value| {
                url.as_str().filter(|url| !url.is_empty() && url.len() <= MAX_URL_BYTES).map(str::to_owned)
            };
            urls.iter().map(url).collect::<Option<_>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let show = |line: &Line| {
            let outcome =
                line.outcome.as_ref().map_or_else(|problem| format!(" ! {problem}"), |_| String::new());
            format!("{} {}{outcome}", line.name, line.version)
        };
        Index::parse(text.as_bytes()).unwrap().lines().iter().map(show).collect()
    }

    #[test]
    fn lines_are_sorted_by_name_and_version() {
        let text = "apiVersion: v1\nentries:\n  b: [{version: 1.10.0}, {version: 1.9.0, name: Display}]\n  \
                    a: [{version: 2}, {version: v1.0.0}, {version: 1.0.0-rc.1}]\n  c: []\n";
        assert_eq!(shown(text), ["a 1.0.0-rc.1", "a v1.0.0", "a 2", "b 1.9.0", "b 1.10.0"]);
    }

    #[test]
    fn a_bad_line_is_a_problem_of_that_line_only() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let lines = shown(&format!(
            "entries:\n  a:\n  - {{version: latest}}\n  - {{version: 1.0.0, digest: {digest}, urls: [x.tgz], id: i}}\n  \
             - {{version: 1.0.0}}\n  - {{digest: x}}\n  - {{version: 2.0.0, digest: x}}\n  - text\n  \
             - {{version: 3.0.0, urls: x}}\n  - {{version: 4.0.0, id: 7}}\n  ../b: [{{version: 1.0.0}}]\n  empty:\n"
        ));
        let good: Vec<&String> = lines.iter().filter(|line| !line.contains('!')).collect();
        assert_eq!(good, ["a 1.0.0"]);
        assert_eq!(lines.len(), 10, "{lines:#?}");
        for word in [
            "latest ! the version",
            "twice",
            "no version",
            "digest: a digest is",
            "no mapping",
            "urls:",
            "id:",
            "../b 1.0.0 ! the name",
            "empty  ! there is no list of its versions",
        ] {
            assert!(lines.iter().any(|line| line.contains(word)), "{word}: {lines:#?}");
        }
    }

    #[test]
    fn a_version_that_yaml_takes_for_another_number_is_a_problem_and_a_second_index_is_one() {
        let lines = shown("entries:\n  a: [{version: 1.10}, {version: '1.10'}, {version: 3}]\n");
        let problem = "a 1.1 ! the version in the index is read as the number 1.1: write it in quotes";
        assert_eq!(lines, ["a 1.10", "a 3", problem]);
        let two = Index::parse(b"entries: {}\n---\nentries: {a: [{version: 1.0.0}]}\n").unwrap_err();
        assert!(two.to_string().contains("line 2, column 1: a second document begins here"), "{two}");
    }

    #[test]
    fn a_name_that_is_empty_is_a_problem_of_its_lines() {
        let lines = shown("entries:\n  '': [{version: 1.0.0}, {version: 1.1.0}]\n  a: [{version: 1.0.0}]\n");
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (3, Some("a 1.0.0")), "{lines:#?}");
        assert!(
            lines.iter().take(2).all(|line| line.contains("! the name in the index has to be")),
            "{lines:#?}"
        );
    }

    #[test]
    fn what_is_no_index_says_so() {
        let many = format!("entries: {{a: [{}]}}", "{version: 1.0.0},".repeat(MAX_LINES + 1));
        for (text, expected) in [
            ("<!DOCTYPE html><html>", IndexError::Html),
            (" \n<HTML>", IndexError::Html),
            ("", IndexError::Structure("entries".to_owned())),
            ("- a", IndexError::Structure("entries".to_owned())),
            ("entries: []", IndexError::Structure("entries".to_owned())),
            ("apiVersion: v1\nentries:\n", IndexError::Structure("entries".to_owned())),
            ("entries: {a: {version: 1.0.0}}", IndexError::Structure("entries.a".to_owned())),
            (&many, IndexError::Lines),
        ] {
            assert_eq!(Index::parse(text.as_bytes()).unwrap_err(), expected);
        }
        assert!(matches!(Index::parse(b"a: [b"), Err(IndexError::Yaml(_))));
        assert!(matches!(Index::parse(b"entries: \xff"), Err(IndexError::Yaml(_))));
        let entry = format!("{{version: 1.0.0, description: '{}'}},", "x".repeat(100_000));
        let large = format!("entries: {{a: [{}]}}", entry.repeat(MAX_INDEX_BYTES / entry.len() + 1));
        assert_eq!(Index::parse(large.as_bytes()).unwrap_err(), IndexError::Large);
        assert_eq!(shown("entries: {}\n"), Vec::<String>::new());
    }

    #[test]
    fn what_an_index_holds_is_limited_whatever_is_around_it() {
        let much = "x".repeat(100);
        let description = format!("{{version: 1.0.0, description: '{}'}},", "y".repeat(60_000));
        let lines = format!("entries: {{a: [{}]}}", description.repeat(500));
        assert_eq!(Index::parse(lines.as_bytes()).unwrap().lines().len(), 500);
        let urls = format!("{{version: 1.0.0, urls: [{}]}},", format!("{much},").repeat(8)).repeat(15_000);
        assert_eq!(
            Index::parse(format!("entries: {{a: [{urls}]}}").as_bytes()).unwrap_err(),
            IndexError::Memory
        );
        let one = format!("entries: {{a: [[{}]]}}", "{},".repeat(1 << 20));
        assert!(Index::parse(one.as_bytes()).unwrap_err().to_string().contains("MiB of memory"));
    }

    #[test]
    fn versions_of_a_registry_are_lines_like_others() {
        let versions = |all: &[&str]| all.iter().map(|version| (*version).to_owned()).collect();
        let (a, b) = (versions(&["1.10.0", "1.9.0"]), versions(&["1.0.0"]));
        let index = Index::of_versions([("b", &b), ("a", &a), ("../c", &b)]).unwrap();
        let shown: Vec<_> =
            index.lines().iter().map(|line| (&*line.name, &*line.version, line.outcome.is_ok())).collect();
        assert_eq!(
            shown,
            [("../c", "1.0.0", false), ("a", "1.9.0", true), ("a", "1.10.0", true), ("b", "1.0.0", true)]
        );
    }

    #[test]
    fn an_index_that_says_something_twice_is_damaged() {
        for text in [
            "entries:\n  a: [{version: 1.0.0}]\nentries: {}\n",
            "entries:\n  a: [{version: 1.0.0}]\nentries: null\n",
            "entries:\n  a: [{version: 1.0.0}]\n  b: []\n  a: [{version: 2.0.0}]\n",
            "entries:\n  a: [{version: 1.0.0, version: 2.0.0}]\n",
            "generated: x\ngenerated: y\nentries: {}\n",
        ] {
            let error = Index::parse(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("is already set at line"), "{text}: {error}");
        }
        // Many names are remembered, and not without end.
        let names = |count: usize| -> String {
            (0..count).fold("entries:\n".to_owned(), |text, name| {
                format!("{text}  addon-{name}: [{{version: 1.0.0}}]\n")
            })
        };
        assert_eq!(Index::parse(names(MAX_LINES).as_bytes()).unwrap().lines().len(), MAX_LINES);
        let much: String =
            (0..400_000).fold("entries:\n".to_owned(), |text, name| text + &format!("  a{name}: []\n"));
        assert!(Index::parse(much.as_bytes()).unwrap_err().to_string().contains("MiB of memory"));
    }

    #[test]
    fn of_two_lists_of_one_name_the_merged_one_counts_and_that_is_told() {
        let text =
            "entries:\n  a: [{version: 1.0.0}]\n  b: [{version: 1.0.0}]\n  <<: {a: [{version: 2.0.0}]}\n";
        let twice = "a  ! the index has this name twice, and only the last list of its versions is read: make one list of them";
        assert_eq!(shown(text), ["a 2.0.0", twice, "b 1.0.0"]);
        assert_eq!(shown("x: &x [{version: 1.0.0}]\nentries: {a: *x, b: *x}\n"), ["a 1.0.0", "b 1.0.0"]);
    }
}
