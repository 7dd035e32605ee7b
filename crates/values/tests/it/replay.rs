//! Replays the corpora of the fuzz targets.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "the corpora are files")]

#[path = "../fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/mutations.rs"]
mod mutations;
#[path = "../fuzz/schema.rs"]
mod schema;
#[path = "../fuzz/values_patch.rs"]
mod values_patch;
#[path = "../fuzz/yaml.rs"]
mod yaml;

use corpus::replay;
use mutations::{Dice, mutate};

#[test]
fn every_input_of_the_yaml_corpus_is_survived() {
    assert!(replay("yaml", yaml::run) >= 20);
}

#[test]
fn every_input_of_the_values_patch_corpus_is_survived() {
    assert!(replay("values_patch", values_patch::run) >= 10);
}

#[test]
fn every_input_of_the_schema_corpus_is_survived() {
    assert!(replay("schema", schema::run) >= 10);
}

/// Runs the target on texts made of `pieces`.
fn shuffle(pieces: &[&str], rounds: usize, target: fn(&[u8])) {
    let mut dice = Dice::new(7);
    for _ in 0..rounds {
        let mut text = String::new();
        for _ in 0..dice.roll(24) {
            if let Some(piece) = pieces.get(dice.roll(pieces.len())) {
                text.push_str(piece);
            }
        }
        target(text.as_bytes());
    }
}

#[test]
fn random_yaml_is_survived_and_written_back() {
    let short = [
        "a", "b:", ": ", "- ", "\n", "\n  ", "\n    ", " ", "\t", "[", "]", "{", "}", ",", "&x ", "*x",
        "<<: ", "!!int ", "!t ", "|", ">", "|2-\n", "'", "\"", "\\", "\\u00e9", "#", "? ", "---\n", "...\n",
        "é", "\u{85}", "\u{2028}", "😀", "0x1F", "1e3", "-.inf", "yes", "~", "0123", "1:30", "\r\n",
        "\u{feff}", "!%e9 ", "\\xff", "\\ud800", "@", "`",
    ];
    let long = ["!!binary ", "%YAML 1.1\n", "%TAG ! tag:x,2000:\n", "2001-12-14", "!<tag:%41>"];
    let pieces = [&short[..], &long].concat();
    shuffle(&pieces, 30_000, yaml::run);
}

#[test]
fn random_patches_are_survived() {
    let short = [
        "/b", "/-", "/0", "/-1", "/~1", "/~0", "1}", "null}", "\"}", "[", "]", ",", " ", "\n", "{", "}",
        "1.0}",
    ];
    let long = [
        "{\"op\":\"add\",\"path\":\"/m/a",
        "{\"op\":\"remove\",\"path\":\"/m/a",
        "{\"op\":\"test\",\"path\":\"/global/s",
        "\",\"value\":",
        "{\"x\":[]}}",
        "{\"op\":\"add\",\"path\":\"/xEnabled\",\"value\":true}",
        "\"\\ud800\"}",
    ];
    let pieces = [&short[..], &long].concat();
    shuffle(&pieces, 30_000, values_patch::run);
}

#[test]
fn random_schemas_are_survived() {
    mutate("schema", 5_000, schema::run);
}
