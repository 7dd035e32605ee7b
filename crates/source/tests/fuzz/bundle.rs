//! What must hold for every bundle that is linted.

use source::bundle::{Entry, MAX_PROBLEMS, META, Tree, lint};

/// Reads files from `bytes`: each is a line with its path, which may end with `*` if it can be run, and its content up to a
/// line `===`. The first is `meta.yaml`.
fn tree(bytes: &[u8]) -> Option<Tree> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut tree = Tree::new();
    for (number, file) in text.split("\n===\n").enumerate() {
        let (path, content) = if number == 0 { (META, file) } else { file.split_once('\n')? };
        let name = path.trim_end_matches('*');
        // What is unpacked has such paths only.
        let is_path = !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if is_path {
            tree.insert(name.to_owned(), Entry::file(content.as_bytes(), path != name));
        }
    }
    Some(tree)
}

/// Lints a bundle twice: it must say the same, and either what the bundle is or at least one problem.
pub(crate) fn run(bytes: &[u8]) {
    let Some(tree) = tree(bytes) else { return };
    let (report, again) = (lint(&tree, |_| Ok(())), lint(&tree, |_| Ok(())));
    assert_eq!(format!("{report:?}"), format!("{again:?}"));
    match report.outcome {
        Ok(bundle) => {
            assert!(!bundle.id.is_empty() && !bundle.display_name.is_empty());
            assert!(values::name::ModuleName::new(bundle.name.as_str()).is_ok());
        }
        Err(problems) => assert!(!problems.is_empty() && problems.len() <= MAX_PROBLEMS + 1),
    }
}
