//! The fuzz targets survive every input of their corpora.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

#[path = "fuzz/decode.rs"]
mod decode;
#[path = "fuzz/patch.rs"]
mod patch;
#[path = "fuzz/selector.rs"]
mod selector;
#[path = "fuzz/table.rs"]
mod table;

/// Runs the target on every file of its corpus; returns how many there are.
fn replay(corpus: &str, target: fn(&[u8])) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(corpus);
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| target(&fs::read(file).unwrap())).count()
}

#[test]
fn every_input_of_the_decode_corpus_is_survived() {
    assert!(replay("decode", decode::run) > 5);
}

#[test]
fn every_input_of_the_patch_corpus_is_survived() {
    assert!(replay("patch", patch::run) > 5);
}

#[test]
fn every_input_of_the_selector_corpus_is_survived() {
    assert!(replay("selector", selector::run) > 5);
}

#[test]
fn every_input_of_the_table_corpus_is_survived() {
    assert!(replay("table", table::run) > 5);
}
