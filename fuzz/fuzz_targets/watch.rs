//! Feeds arbitrary bytes, cut anywhere, to the reader of watches.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/watch.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
