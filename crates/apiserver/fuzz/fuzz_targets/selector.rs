//! Parses arbitrary selectors and paths.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/selector.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
