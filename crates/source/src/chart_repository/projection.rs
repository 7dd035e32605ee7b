//! What people can read of a version of a chart in the cluster: its templates, CRDs and default values in `ConfigMaps`.
//!
//! They are for reading. Nothing is installed from them; that is done from the package, which is the archive byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use chart::chart::{Chart, File};
use objects::legal::{self, key};
use serde_json::Value;

/// The most bytes that the data of one object has. The API server takes 1 MiB; this leaves room for names.
pub const MAX_MAP_BYTES: usize = 900 << 10;

/// The most objects that one version may have.
pub const MAX_MAPS: usize = 256;

/// The directory of templates that is left out.
const TESTS: &str = "tests";

/// What the name and the label of an object say about it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum MapType {
    /// The default values.
    Default,
    /// The CRDs.
    Crds,
    /// The templates.
    Templates,
}

impl MapType {
    /// Returns the word in names and labels.
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Crds => "crds",
            Self::Templates => "tmpl",
        }
    }
}

/// A `ConfigMap` of one version, without its metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartMap {
    /// What it holds.
    pub map_type: MapType,
    /// The directory below that of the templates or CRDs, `a__b` for `a/b`, told apart from a directory `a__b`; empty for the
    /// files that lie there directly.
    pub directory: String,
    /// Which part of what fits no single object it is, from 1 on.
    pub part: usize,
    /// Files by key, or the values under `values`.
    pub data: BTreeMap<String, Vec<u8>>,
    /// The names of the files whose keys are others.
    pub renamed: BTreeMap<String, String>,
}

/// Why a chart can't be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the templates and CRDs of the chart fill more than {MAX_MAPS} ConfigMaps")]
pub struct TooMany;

impl ChartMap {
    /// Returns the name of the object for a version of a chart.
    pub fn name(&self, repository: &str, chart: &str, version: &str) -> String {
        legal::object(&self.text(repository, chart, version))
    }

    /// Returns the name before it is made legal.
    pub fn text(&self, repository: &str, chart: &str, version: &str) -> String {
        let word = self.map_type.word();
        let directory =
            if self.directory.is_empty() { String::new() } else { format!("{}-", self.directory) };
        let part = if self.part > 1 { format!("-{}", self.part) } else { String::new() };
        format!("helm-{word}-{repository}-{chart}-{directory}{version}{part}")
    }
}

/// Returns all objects of a chart, each at most [`MAX_MAP_BYTES`]. There are always one of each type.
///
/// # Errors
///
/// If there are too many of them.
pub fn maps(chart: &Chart) -> Result<Vec<ChartMap>, TooMany> {
    let mut maps = values(chart);
    let below = |file: &File, top: &str| file.name.strip_prefix(top).map(str::to_owned);
    let crds = chart.files.iter().filter_map(|file| Some((below(file, "crds/")?, file)));
    maps.extend(files(MapType::Crds, crds));
    let templates = chart.templates.iter().filter_map(|file| Some((below(file, "templates/")?, file)));
    let is_test = |path: &str| path.split_once('/').is_some_and(|(directory, _)| directory == TESTS);
    maps.extend(files(MapType::Templates, templates.filter(|(path, _)| !is_test(path))));
    if maps.len() > MAX_MAPS { Err(TooMany) } else { Ok(maps) }
}

/// Returns the objects with the default values as one JSON text, in parts if it is long.
fn values(chart: &Chart) -> Vec<ChartMap> {
    let mut values = Value::Object(chart.defaults());
    golang::json::normalize(&mut values);
    let json = golang::json::bytes(&values);
    let mut rest = std::str::from_utf8(&json).unwrap_or_default();
    let mut maps = Vec::new();
    loop {
        let mut end = rest.len().min(MAX_MAP_BYTES);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (part, left) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let data = BTreeMap::from([("values".to_owned(), part.as_bytes().to_vec())]);
        maps.push(empty(MapType::Default, "", maps.len() + 1, data));
        rest = left;
        if rest.is_empty() {
            return maps;
        }
    }
}

/// Returns the object of this type that is there of every version, without what it holds.
pub fn first(map_type: MapType) -> ChartMap {
    empty(map_type, "", 1, BTreeMap::new())
}

fn empty(map_type: MapType, directory: &str, part: usize, data: BTreeMap<String, Vec<u8>>) -> ChartMap {
    ChartMap { map_type, directory: directory.to_owned(), part, data, renamed: BTreeMap::new() }
}

/// Returns how a directory is shown. Two of them may come to one text, such as `a/b` and `a__b`: the later gets a hash.
fn shown_directory(path: &str, texts: &mut BTreeSet<String>) -> String {
    let text = path.replace('/', "__");
    if texts.insert(text.clone()) { text } else { legal::told_apart(&text, &[path]) }
}

/// Returns the objects with files, by directory.
fn files<'f>(map_type: MapType, files: impl Iterator<Item = (String, &'f File)>) -> Vec<ChartMap> {
    let mut directories: BTreeMap<String, BTreeMap<String, &File>> = BTreeMap::new();
    directories.entry(String::new()).or_default();
    for (path, file) in files {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        directories.entry(directory.to_owned()).or_default().insert(name.to_owned(), file);
    }
    let (mut maps, mut texts) = (Vec::new(), BTreeSet::new());
    for (path, files) in directories {
        let directory = shown_directory(&path, &mut texts);
        let mut map = empty(map_type, &directory, 1, BTreeMap::new());
        let mut bytes = 0;
        for (name, file) in files {
            // A file that is too large for one object goes on in the next.
            let mut parts: Vec<&[u8]> = file.data.chunks(MAX_MAP_BYTES).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            for part in parts {
                if bytes + part.len() > MAX_MAP_BYTES && !map.data.is_empty() {
                    let next = empty(map_type, &directory, map.part + 1, BTreeMap::new());
                    maps.push(std::mem::replace(&mut map, next));
                    bytes = 0;
                }
                let key = key(&name);
                bytes += part.len() + key.len();
                if key != name {
                    map.renamed.insert(key.clone(), name.clone());
                }
                map.data.insert(key, part.to_vec());
            }
        }
        maps.push(map);
    }
    maps
}

#[cfg(test)]
mod tests {
    use chart::load::{self, Tree};
    use chart::warnings::Warnings;

    use super::*;

    fn chart(files: &[(&str, &[u8])]) -> Chart {
        let mut tree: Tree = files.iter().map(|(name, data)| ((*name).to_owned(), (*data).into())).collect();
        tree.insert("Chart.yaml".to_owned(), b"apiVersion: v2\nname: a\nversion: 1.0.0\n".as_slice().into());
        load::from_directory(&tree, &mut Warnings::default()).unwrap()
    }

    fn shown(maps: &[ChartMap]) -> Vec<String> {
        let keys = |map: &ChartMap| map.data.keys().cloned().collect::<Vec<_>>().join(",");
        maps.iter().map(|map| format!("{} {}", map.text("r", "a", "1.0.0"), keys(map))).collect()
    }

    #[test]
    fn b03_there_is_one_of_each_type_whatever_the_chart_has() {
        let maps = maps(&chart(&[])).unwrap();
        assert_eq!(
            shown(&maps),
            ["helm-default-r-a-1.0.0 values", "helm-crds-r-a-1.0.0 ", "helm-tmpl-r-a-1.0.0 "]
        );
        for map in &maps {
            let text = |map: &ChartMap| map.text("r", "a", "1.0.0");
            assert_eq!(text(&first(map.map_type)), text(map));
        }
        assert_eq!(maps[0].data["values"], b"{}");
    }

    #[test]
    fn b16_directories_long_files_and_odd_names_are_all_shown() {
        let large = vec![b'x'; MAX_MAP_BYTES];
        let chart = chart(&[
            ("values.yaml", b"i: 1\nf: 1.5\n"),
            ("templates/a.yaml", b"a"),
            ("templates/x/y/z.yaml", b"z"),
            ("templates/tests/t.yaml", b"t"),
            ("templates/odd name.yaml", b"o"),
            ("crds/1.yaml", &large),
            ("crds/2.yaml", &large),
            ("crds/3.yaml", b"three"),
        ]);
        let maps = maps(&chart).unwrap();
        let odd = key("odd name.yaml");
        assert_eq!(
            shown(&maps),
            [
                "helm-default-r-a-1.0.0 values".to_owned(),
                "helm-crds-r-a-1.0.0 1.yaml".to_owned(),
                "helm-crds-r-a-1.0.0-2 2.yaml".to_owned(),
                "helm-crds-r-a-1.0.0-3 3.yaml".to_owned(),
                format!("helm-tmpl-r-a-1.0.0 a.yaml,{odd}"),
                "helm-tmpl-r-a-x__y-1.0.0 z.yaml".to_owned(),
            ]
        );
        assert_eq!(maps[0].data["values"], br#"{"f":1.5,"i":1}"#);
        assert_eq!(maps[4].renamed[&odd], "odd name.yaml");
        assert!(maps[5].name("r", "a", "1.0.0").starts_with("helm-tmpl-r-a-x--y-1.0.0-"));
    }

    #[test]
    fn default_values_that_fit_no_object_go_on_in_the_next() {
        let text = format!("a: {}\nb: {}\n", "\u{fc}".repeat(MAX_MAP_BYTES / 2), "x".repeat(MAX_MAP_BYTES));
        let maps = maps(&chart(&[("values.yaml", text.as_bytes())])).unwrap();
        let values: Vec<&ChartMap> = maps.iter().filter(|map| map.map_type == MapType::Default).collect();
        let names: Vec<String> = values.iter().map(|map| map.text("r", "a", "1.0.0")).collect();
        assert_eq!(names, ["helm-default-r-a-1.0.0", "helm-default-r-a-1.0.0-2", "helm-default-r-a-1.0.0-3"]);
        assert!(values.iter().all(|map| map.data["values"].len() <= MAX_MAP_BYTES));
        let whole: Vec<u8> = values.iter().flat_map(|map| map.data["values"].clone()).collect();
        let read: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(read["b"].as_str().unwrap().len(), MAX_MAP_BYTES);
    }

    #[test]
    fn b16_directories_whose_names_come_to_the_same_have_maps_of_their_own() {
        let chart = chart(&[
            ("templates/x/y/a.yaml", b"nested"),
            ("templates/x__y/a.yaml", b"flat"),
            ("crds/x__y/a.yaml", b"alone"),
        ]);
        let maps = maps(&chart).unwrap();
        let of = |map_type: MapType, data: &[u8]| {
            let mut found = maps
                .iter()
                .filter(|map| map.map_type == map_type && map.data.values().any(|its| its == data));
            let map = found.next().unwrap();
            assert_eq!((found.count(), map.data.len()), (0, 1));
            map
        };
        let [nested, flat] = [b"nested".as_slice(), b"flat"].map(|data| of(MapType::Templates, data));
        assert_eq!(nested.directory, "x__y");
        assert!(flat.directory.starts_with("x--y-"), "{}", flat.directory);
        assert_eq!(of(MapType::Crds, b"alone").directory, "x__y");
        let names: BTreeSet<String> = maps.iter().map(|map| map.name("r", "a", "1.0.0")).collect();
        assert_eq!(names.len(), maps.len());
    }

    #[test]
    fn a_chart_that_fills_too_many_objects_is_refused() {
        let names: Vec<String> = (0..=MAX_MAPS).map(|n| format!("templates/{n}/a.yaml")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
        assert_eq!(maps(&chart(&files)), Err(TooMany));
    }
}
