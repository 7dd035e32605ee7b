//! Feeds arbitrary bytes to the patch reader, and what it read to a section.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/values_patch.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
