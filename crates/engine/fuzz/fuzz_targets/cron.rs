//! Feeds arbitrary crontab lines to the search for their next moment.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/fuzz/cron.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::run(bytes));
