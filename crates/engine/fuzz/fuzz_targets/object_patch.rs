//! Feeds arbitrary bytes to the reader of object patches.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/object_patch.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
