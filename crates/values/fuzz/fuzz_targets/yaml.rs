//! Feeds arbitrary text to the YAML reader, and what it read to the writer.
#![no_main]

use std::panic;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/yaml.rs"]
mod target;

static HOOK: Once = Once::new();

/// Lets panics of the parser's library pass: the reader catches them, but the
/// fuzzer's hook would end the process before.
fn tolerate_the_library() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_library = |place: &panic::Location<'_>| place.file().contains("libyaml-safer");
        if !info.location().is_some_and(is_library) {
            abort(info);
        }
    }));
}

fuzz_target!(|bytes: &[u8]| {
    HOOK.call_once(tolerate_the_library);
    target::run(bytes);
});
