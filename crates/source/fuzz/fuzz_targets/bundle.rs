//! Lints arbitrary bundles.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/bundle.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
