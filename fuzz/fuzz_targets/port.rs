//! Sends arbitrary requests to the port of the operator.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/apiserver/tests/fuzz/requests.rs"]
mod requests;
#[path = "../../tests/fuzz/port.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
