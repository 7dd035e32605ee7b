//! The fuzz targets of `fuzz` survive every input of their corpora.

#[path = "../../crates/values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/jq.rs"]
mod jq;
#[path = "../../crates/values/tests/fuzz/mutations.rs"]
mod mutations;
#[path = "../fuzz/port.rs"]
mod port;
#[path = "../../crates/apiserver/tests/fuzz/requests.rs"]
mod requests;
#[path = "../fuzz/unpack.rs"]
mod unpack;
#[path = "../fuzz/watch.rs"]
mod watch;

use corpus::replay;
use mutations::mutate;

#[test]
fn every_input_of_the_jq_corpus_is_survived() {
    assert!(replay("jq", jq::run) > 10);
}

#[test]
fn every_input_of_the_port_corpus_is_survived() {
    assert!(replay("port", port::run) > 4);
}

#[test]
fn every_input_of_the_unpack_corpus_is_survived() {
    assert!(replay("unpack", unpack::run) > 4);
}

#[test]
fn every_input_of_the_watch_corpus_is_survived() {
    assert!(replay("watch", watch::run) > 5);
}

#[test]
fn random_filters_are_survived() {
    mutate("jq", 500, jq::run);
}

#[test]
fn random_requests_to_the_port_are_survived() {
    mutate("port", 500, port::run);
}

#[test]
fn random_archives_are_survived() {
    mutate("unpack", 300, unpack::run);
}

#[test]
fn random_watches_are_survived() {
    mutate("watch", 500, watch::run);
}
