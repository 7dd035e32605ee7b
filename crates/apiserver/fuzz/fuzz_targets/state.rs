//! Starts a server with arbitrary bytes as its state file.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../values/fuzz/library.rs"]
mod library;
#[expect(dead_code, reason = "another target uses the rest")]
#[path = "../../tests/fuzz/server.rs"]
mod server;
#[path = "../../tests/fuzz/state.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| {
    library::tolerate();
    target::run(bytes);
});
