//! Prints arbitrary objects.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/table.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
