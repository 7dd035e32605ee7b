//! Feeds arbitrary bytes to the template parser.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/parse.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
