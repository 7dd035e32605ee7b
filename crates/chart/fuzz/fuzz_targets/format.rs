//! Formats values by arbitrary formats.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/format.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
