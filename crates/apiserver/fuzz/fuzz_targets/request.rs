//! Sends arbitrary requests to a server in this process.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../values/fuzz/library.rs"]
mod library;
#[path = "../../tests/fuzz/requests.rs"]
mod requests;
#[expect(dead_code, reason = "another target uses the rest")]
#[path = "../../tests/fuzz/server.rs"]
mod server;
#[path = "../../tests/fuzz/request.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| {
    library::tolerate();
    target::run(bytes);
});
