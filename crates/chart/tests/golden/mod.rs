//! Whole charts and single constructs against what Helm printed for them.
//!
//! The expected files were written by `helm template` v3.19.0 (`constructs.json` by v3.17.3) with
//! `TZ=UTC`, and nothing else; `case.json` of a case holds the flags.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test reads its own files and fails by panicking"
)]

pub(crate) mod case;
mod compare;
pub(crate) mod findings;

use std::path::{Path, PathBuf};

use case::Case;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Does `work` where templates have as much stack as in the operator.
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

fn assert_all(failures: &[String], total: usize) {
    assert!(failures.is_empty(), "{} of {total} cases differ:\n{}", failures.len(), failures.join("\n"));
}

/// Cases that need real certificates; they are run with the program.
const REAL_KEYS: &str = "048-crypto-shape";

fn check_directory(kind: &str) {
    let mut directories: Vec<PathBuf> =
        std::fs::read_dir(root().join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
    directories.retain(|directory| !directory.ends_with(REAL_KEYS));
    directories.sort();
    let failures: Vec<String> = with_stack(|| {
        directories
            .iter()
            .filter_map(|directory| compare::directory(directory).map(|text| (directory, text)))
            .map(|(directory, text)| format!("{}: {text}", directory.display()))
            .collect()
    });
    assert_all(&failures, directories.len());
}

#[test]
fn charts_print_what_helm_prints() {
    check_directory("render");
}

#[test]
fn merged_values_are_helms() {
    check_directory("coalesce");
}

fn check_snippets(name: &str) {
    let file = std::fs::read(root().join("snippets").join(name)).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let case = Case::from_json(&file["case"]);
    let snippets = file["snippets"].as_array().unwrap();
    let tree = case::tree(&root().join("snippets/chart"));
    let failures = with_stack(|| {
        let check = |snippet| compare::snippet(&case, &tree, snippet);
        snippets.iter().filter_map(check).collect::<Vec<String>>()
    });
    assert_all(&failures, snippets.len());
}

#[test]
fn errors_of_templates_are_helms() {
    check_snippets("exec-errors.json");
}

#[test]
fn functions_give_what_helms_give() {
    check_snippets("functions.json");
}

#[test]
fn the_language_is_helms() {
    check_snippets("language.json");
}

#[test]
fn strange_arguments_give_what_they_give_in_helm() {
    check_snippets("arguments.json");
}

#[test]
fn odd_documents_versions_and_pointers_are_helms() {
    check_snippets("odd.json");
}

#[test]
fn slip_25_what_random_charts_found_is_what_helm_prints() {
    check_directory("random");
    check_snippets("random.json");
}

#[test]
fn constructs_give_what_an_older_helm_gave() {
    let truth = std::fs::read(root().join("constructs.json")).unwrap();
    let truth: Vec<serde_json::Value> = serde_json::from_slice(&truth).unwrap();
    let tree = case::tree(&root().join("constructs"));
    let failures = with_stack(|| {
        let check = |construct| compare::construct(&tree, construct);
        truth.iter().filter_map(check).collect::<Vec<String>>()
    });
    assert_all(&failures, truth.len());
}
