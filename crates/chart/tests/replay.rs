//! Runs what fuzzing keeps: every input of the corpora, again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files of this crate")]

use std::path::Path;

#[path = "fuzz/archive.rs"]
mod archive;
#[path = "fuzz/execute.rs"]
mod execute;
#[path = "fuzz/format.rs"]
mod format;
#[path = "fuzz/parse.rs"]
mod parse;

/// Runs the target on every file of its corpus; returns how many there are.
fn replay(corpus: &str, target: fn(&[u8])) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(corpus);
    let mut inputs = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        target(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    inputs
}

#[test]
fn every_input_of_the_archive_corpus_is_survived() {
    assert!(replay("archive", archive::run) > 0);
}

#[test]
fn every_input_of_the_parse_corpus_is_survived() {
    assert!(replay("parse", parse::run) > 0);
}

#[test]
fn every_input_of_the_execute_corpus_is_survived() {
    assert!(replay("execute", execute::run) > 0);
}

#[test]
fn every_input_of_the_format_corpus_is_survived() {
    assert!(replay("format", format::run) > 0);
}
