//! The fuzz targets survive every input of their corpora, and random texts.

#![expect(clippy::unwrap_used, clippy::unreachable, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files of this crate")]

#[path = "fuzz/bundle.rs"]
mod bundle;
#[path = "../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "fuzz/index.rs"]
mod index;
#[path = "../../values/tests/fuzz/shuffle.rs"]
mod shuffle;
#[path = "fuzz/url.rs"]
mod url;

use corpus::replay;
use shuffle::shuffle;

#[test]
fn every_input_of_the_corpora_is_survived() {
    assert!(replay("bundle", bundle::run) >= 4);
    assert!(replay("index", index::run) >= 6);
    assert!(replay("url", url::run) >= 8);
}

#[test]
fn random_urls_are_survived() {
    let words = "https:// http:// git:: s3:: hg:: github.com/ bitbucket.org/ a b.example [::1] 127.0.0.1 : 443 8443 @ user:hunter2@ / // .. . \
                 index.yaml ? ref=v1 & depth=1 sshkey=x # % %2e %40 ~ é { } \\";
    shuffle(words, 100_000, url::run);
}

#[test]
fn random_indexes_are_survived() {
    let words = "entries: ~ ~__ ~__-_ ~____ a: b: {} [] null version: _1.0.0 _v1.0.0 _2 _1.0.0+x _latest digest:_x urls:_[x] id:_i &a _*a <<:_*a \
                 - , [ ] { } ' \" # x: ~entries: ~--- |";
    shuffle(words, 100_000, index::run);
}
