//! Runs what fuzzing keeps: every input of the corpora, again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files of this crate")]

#[path = "fuzz/archive.rs"]
mod archive;
#[path = "../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "fuzz/execute.rs"]
mod execute;
#[path = "fuzz/format.rs"]
mod format;
#[path = "fuzz/parse.rs"]
mod parse;

use corpus::replay;

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
