//! The fuzz targets survive every input of their corpora.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "fuzz/decode.rs"]
mod decode;
#[path = "fuzz/selector.rs"]
mod selector;
#[path = "fuzz/table.rs"]
mod table;

use corpus::replay;

#[test]
fn every_input_of_the_decode_corpus_is_survived() {
    assert!(replay("decode", decode::run) > 5);
}

#[test]
fn every_input_of_the_selector_corpus_is_survived() {
    assert!(replay("selector", selector::run) > 5);
}

#[test]
fn every_input_of_the_table_corpus_is_survived() {
    assert!(replay("table", table::run) > 5);
}
