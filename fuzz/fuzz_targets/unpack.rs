//! Unpacks and lints arbitrary archives.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/unpack.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
