//! Reads arbitrary bytes as the data of a Secret that holds a release.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/record.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
