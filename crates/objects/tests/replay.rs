//! The fuzz targets survive every input of their corpora.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files of this crate")]

#[path = "../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "fuzz/legal.rs"]
mod legal;
#[path = "fuzz/patch.rs"]
mod patch;

use corpus::replay;

#[test]
fn every_input_of_the_patch_corpus_is_survived() {
    assert!(replay("patch", patch::run) > 5);
}

#[test]
fn every_text_of_the_corpus_becomes_legal_names() {
    assert!(replay("legal", legal::run) >= 7);
}
