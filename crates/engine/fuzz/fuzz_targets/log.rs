//! Feeds arbitrary bytes to the log of a hook.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/log.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
