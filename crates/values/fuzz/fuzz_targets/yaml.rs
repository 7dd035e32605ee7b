//! Feeds arbitrary text to the YAML reader, and what it read to the writer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../library.rs"]
mod library;
#[path = "../../tests/fuzz/yaml.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| {
    library::tolerate();
    target::run(bytes);
});
