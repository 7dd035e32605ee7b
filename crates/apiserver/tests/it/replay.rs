//! The fuzz targets survive every input of their corpora.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/decode.rs"]
mod decode;
#[path = "../../../values/tests/fuzz/mutations.rs"]
mod mutations;
#[path = "../fuzz/request.rs"]
mod request;
#[path = "../fuzz/requests.rs"]
mod requests;
#[path = "../fuzz/selector.rs"]
mod selector;
#[path = "../fuzz/server.rs"]
mod server;
#[path = "../fuzz/state.rs"]
mod state;
#[path = "../fuzz/table.rs"]
mod table;

use corpus::replay;
use mutations::mutate;

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

#[test]
fn every_input_of_the_request_corpus_is_survived() {
    assert!(replay("request", request::run) > 5);
}

#[test]
fn every_input_of_the_state_corpus_is_survived() {
    assert!(replay("state", state::run) > 5);
}

#[test]
fn random_requests_are_survived() {
    mutate("request", 100, request::run);
}

#[test]
fn random_state_files_are_survived() {
    mutate("state", 100, state::run);
}
