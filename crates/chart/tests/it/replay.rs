//! Runs what fuzzing keeps: every input of the corpora, again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files of this crate")]

#[path = "../fuzz/archive.rs"]
mod archive;
#[path = "../../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/execute.rs"]
mod execute;
#[path = "../fuzz/format.rs"]
mod format;
#[path = "../../../values/tests/fuzz/mutations.rs"]
mod mutations;
#[path = "../fuzz/parse.rs"]
mod parse;
#[path = "../fuzz/record.rs"]
mod record;

use corpus::replay;
use mutations::mutate;

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

#[test]
fn every_input_of_the_record_corpus_is_survived() {
    assert!(replay("record", record::run) >= 5);
}

#[test]
fn random_records_are_survived() {
    mutate("record", 500, record::run);
}
