//! What in a bundle acts with the rights of the operator, whoever had it registered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::chart::load;
use ::chart::warnings::Warnings;

use serde_json::Value;
use values::yaml;

use super::meta::MAX_TREE_BYTES;
use super::tree::{Content, Files, MAX_READ_BYTES, MODULE_FILE, Tree};

/// Code that the operator runs, and objects that it writes itself. Whatever they are, links too: the loader follows those.
const PARTS: [&str; 3] = ["crds", "enabled", "hooks"];

/// How long the name of a namespace may be.
const MAX_NAMESPACE: usize = 63;

/// Where the charts are that a chart depends on, packed or not.
const CHARTS: &str = "charts";

/// Returns what of this is in a bundle, sorted: `hooks/`, `enabled`, `crds/`, also those of the charts that its chart depends
/// on, and the chart that its `module.yaml` names. `chart` is the directory of a chart bundle's chart, which becomes the module's.
pub(super) fn privileged(tree: &Tree, chart: Option<&str>) -> Vec<String> {
    let roots = [Some(String::new()), chart.map(|chart| format!("{chart}/"))];
    let mut found = Vec::new();
    for root in roots.into_iter().flatten() {
        found.extend(dependencies_with_crds(tree, &root).into_iter().map(|place| format!("{root}{place}")));
        for part in PARTS {
            let path = format!("{root}{part}");
            let inside = format!("{path}/");
            if tree.keys().any(|known| known.starts_with(&inside)) {
                found.push(inside);
            } else if tree.contains_key(&path) {
                found.push(path);
            }
        }
    }
    found.extend(names_chart(tree).then(|| format!("chart in {MODULE_FILE}")));
    found.sort();
    found
}

/// Reports whether a bundle names a chart of a Repository: that is read with the credentials of the operator, and its CRDs are
/// written by it.
fn names_chart(tree: &Tree) -> bool {
    module_file(tree).is_some_and(|file| file.get("chart").is_some())
}

/// Returns the namespace of the release that a bundle names. One that is no name of a namespace is no release either.
pub(super) fn namespace(tree: &Tree) -> Option<String> {
    let file = module_file(tree)?;
    let name = file.get("namespace")?.as_str()?;
    let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (name.len() <= MAX_NAMESPACE && name.bytes().all(is_letter)).then(|| name.to_owned())
}

fn module_file(tree: &Tree) -> Option<Value> {
    let text = Files::new(tree).bytes(MODULE_FILE).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(|text| yaml::parse_within(text, MAX_TREE_BYTES).ok())
}

/// Returns where the charts have CRDs that the chart in a directory depends on, such as `charts/db/crds/`. A chart that can't
/// be loaded is never installed.
fn dependencies_with_crds(tree: &Tree, root: &str) -> BTreeSet<String> {
    let inside = |(path, content): (&str, &Content)| {
        let data: Arc<[u8]> = match content {
            Content::Bytes(bytes) => Arc::clone(bytes),
            Content::Size(_) => Arc::from([]),
        };
        (format!("{CHARTS}/{path}"), data)
    };
    let files = Files::new(tree);
    let directory = format!("{root}{CHARTS}");
    let below = files.below(&directory).map(|(path, content, _)| inside((path, content)));
    let mut charts: BTreeMap<String, Arc<[u8]>> = below.collect();
    if charts.is_empty() {
        return BTreeSet::new();
    }
    // Only what is below `charts/` counts, so that nothing hides it.
    charts.insert("Chart.yaml".to_owned(), b"{name: bundle, version: 0.1.0}".as_slice().into());
    let Ok(chart) = load::from_directory_within(&charts, MAX_READ_BYTES, &mut Warnings::default()) else {
        return BTreeSet::new();
    };
    let place = |path: &str| {
        let (_, path) = path.split_once('/')?;
        let (directory, _) = path.rsplit_once("crds/")?;
        Some(format!("{directory}crds/"))
    };
    chart.crds().iter().filter_map(|crd| place(&crd.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

    /// The files of a bundle: path and bytes.
    type Files<'f> = Vec<(&'f str, &'f [u8])>;

    #[test]
    fn code_and_crds_are_found_whatever_they_are() {
        let file = || Entry::file(b"x".as_slice(), true);
        let link = || Entry::Link { target: "other".to_owned() };
        let tree = |entries: &[(&str, Entry)]| -> Tree {
            entries.iter().map(|(path, entry)| ((*path).to_owned(), entry.clone())).collect()
        };
        for (entries, expected) in [
            (vec![("Chart.yaml", file()), ("templates/hooks/a.yaml", file())], vec![]),
            (vec![("hooks/a.sh", file()), ("enabled", file())], vec!["enabled", "hooks/"]),
            (vec![("hooks", link()), ("crds", Entry::Directory)], vec!["crds", "hooks"]),
            (vec![("chart/a/crds/b.yaml", file()), ("chart/a/Chart.yaml", file())], vec!["chart/a/crds/"]),
            (
                vec![("module.yaml", Entry::file(b"chart: {}".as_slice(), false))],
                vec!["chart in module.yaml"],
            ),
            (vec![("module.yaml", Entry::file(b"namespace: web".as_slice(), false))], vec![]),
        ] {
            assert_eq!(privileged(&tree(&entries), Some("chart/a")), expected);
        }
    }

    /// Packs files as a chart.
    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (path, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, *bytes).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn crds_of_charts_in_charts_are_found_packed_and_unpacked() {
        let head = b"{name: db, version: 0.1.0}".as_slice();
        let crd = b"kind: CustomResourceDefinition".as_slice();
        let inner = packed(&[("db/Chart.yaml", head), ("db/crds/a.yaml", crd)]);
        let harmless = packed(&[("db/Chart.yaml", head), ("db/templates/crds/a.yaml", crd)]);
        let outer = packed(&[
            ("mid/Chart.yaml", b"{name: mid, version: 0.1.0}"),
            ("mid/charts/db-0.1.0.tgz", &inner),
        ]);
        let cases: [(Files<'_>, &[&str]); 6] = [
            (vec![("charts/db/Chart.yaml", head), ("charts/db/crds/a.yaml", crd)], &["charts/db/crds/"]),
            (vec![("charts/db-0.1.0.tgz", &inner)], &["charts/db/crds/"]),
            (vec![("charts/mid.tgz", &outer)], &["charts/mid/charts/db/crds/"]),
            (vec![(".helmignore", b"charts/"), ("charts/db.tgz", &inner)], &["charts/db/crds/"]),
            (vec![("chart/a/charts/db.tgz", &inner)], &["chart/a/charts/db/crds/"]),
            (vec![("charts/db.tgz", &harmless), ("charts/x.tgz.prov", b"x")], &[]),
        ];
        for (files, expected) in cases {
            let entry = |(path, bytes): &(&str, &[u8])| ((*path).to_owned(), Entry::file(*bytes, false));
            let tree: Tree = files.iter().map(entry).collect();
            assert_eq!(privileged(&tree, Some("chart/a")), expected);
        }
    }
}
