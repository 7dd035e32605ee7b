//! Makes names of arbitrary texts.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/legal.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
