//! Reads arbitrary URLs of sources, and what indexes say of bundles.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/url.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
