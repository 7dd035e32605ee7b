//! Executes arbitrary templates within small limits.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../values/fuzz/library.rs"]
mod library;
#[path = "../../tests/fuzz/execute.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| {
    library::tolerate();
    target::run(bytes);
});
