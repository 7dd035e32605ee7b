//! Reads arbitrary indexes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../values/fuzz/library.rs"]
mod library;
#[path = "../../tests/fuzz/index.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| {
    library::tolerate();
    target::run(bytes);
});
