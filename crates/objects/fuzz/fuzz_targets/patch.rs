//! Applies arbitrary patches to arbitrary documents.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/patch.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
