//! Feeds arbitrary bytes to the reader of packed charts.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/archive.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
