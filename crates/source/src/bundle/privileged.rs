//! What in a bundle acts with the rights of the operator, whoever had it registered.

use super::tree::Tree;

/// Code that the operator runs, and objects that it writes itself. Whatever they are, links too: the loader follows those.
const PARTS: [&str; 3] = ["crds", "enabled", "hooks"];

/// Returns what of this is in a bundle, sorted: `hooks/`, `enabled`, `crds/`. `chart` is the directory of a chart bundle's
/// chart, which becomes the module's.
pub(super) fn privileged(tree: &Tree, chart: Option<&str>) -> Vec<String> {
    let roots = [Some(String::new()), chart.map(|chart| format!("{chart}/"))];
    let mut found = Vec::new();
    for root in roots.into_iter().flatten() {
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
    found
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

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
        ] {
            assert_eq!(privileged(&tree(&entries), Some("chart/a")), expected);
        }
    }
}
