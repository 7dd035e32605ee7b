//! Feeds arbitrary schemas and sections to the reader of schemas, to defaults and to the check.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../library.rs"]
mod library;
#[path = "../../tests/fuzz/schema.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| {
    library::tolerate();
    target::run(bytes);
});
