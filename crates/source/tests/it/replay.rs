//! The fuzz targets survive every input of their corpora, and random texts.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    reason = "a test fails by panicking"
)]
#![expect(clippy::disallowed_methods, reason = "the corpora are files of this crate")]

#[path = "../fuzz/bundle.rs"]
mod bundle;
#[path = "../fuzz/chart_index.rs"]
mod chart_index;
#[path = "../../../values/tests/fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/git.rs"]
mod git;
#[path = "../fuzz/index.rs"]
mod index;
#[path = "../../../values/tests/fuzz/shuffle.rs"]
mod shuffle;
#[path = "../fuzz/url.rs"]
mod url;

use corpus::replay;
use shuffle::shuffle;

#[test]
fn every_input_of_the_corpora_is_survived() {
    assert!(replay("bundle", bundle::run) >= 4);
    assert!(replay("chart_index", chart_index::run) >= 5);
    assert!(replay("git", git::run) >= 10);
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
fn random_answers_of_git_servers_are_survived() {
    let id = "1111111111111111111111111111111111111111";
    // `|` stands between the parts of an input.
    let words = format!(
        "| | 000eversion_2~ 0000 0001 0002 0003 0005x fff0 zzzz 0032{id}_HEAD~ 003d{id}_refs/heads/main~ 000bERR_no~ 000dpackfile~ \
         0008NAK~ 0035shallow_{id}~ 001bobject-format=sha256~ 0007\u{1}PA 0007\u{2}PA 0007\u{3}PA refs/tags/v1 PACK"
    );
    let run = |bytes: &[u8]| {
        let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'|').collect();
        git::run(&[b"a", parts.join(&0xff_u8).as_slice()].concat());
    };
    shuffle(&words, 20_000, run);
}

#[test]
fn random_indexes_are_survived() {
    let words = "entries: ~ ~__ ~__-_ ~____ a: b: {} [] null version: _1.0.0 _v1.0.0 _2 _1.0.0+x _latest digest:_x urls:_[x] id:_i &a _*a <<:_*a \
                 - , [ ] { } ' \" # x: ~entries: ~--- |";
    shuffle(words, 100_000, index::run);
    shuffle(words, 20_000, chart_index::run);
}
