//! Reads arbitrary packs and answers of git servers.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/git.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
