//! Functions that only the `jq` command has: they read further inputs and write messages to standard error.

use std::io::{self, Write};

use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{Exn, RunPtr};

use super::runtime::Runtime;
use super::value::{Error, Val};

/// Returns the functions by name.
pub(super) fn functions() -> impl Iterator<Item = Fun<Runtime>> {
    let table: Vec<Filter<RunPtr<Runtime>>> = vec![
        ("native_input", v(0), |cv| {
            let input = cv.0.data().inputs.next();
            bome(input.unwrap_or_else(|| Err("No more inputs".to_owned())).map_err(Error::str))
        }),
        ("inputs", v(0), |cv| {
            let inputs = cv.0.data().inputs;
            Box::new(
                std::iter::from_fn(move || inputs.next())
                    .map(|input| input.map_err(|error| Exn::from(Error::str(error)))),
            )
        }),
        ("native_debug", v(0), |cv| {
            say(&format!("[\"DEBUG:\",{}]\n", cv.1));
            bome(Ok(cv.1))
        }),
        ("native_stderr", v(0), |cv| {
            say(&message(&cv.1, ""));
            bome(Ok(cv.1))
        }),
        ("native_last_words", v(0), |cv| {
            if !matches!(cv.1, Val::Null) {
                say(&message(&cv.1, "\n"));
            }
            bome(Ok(cv.1))
        }),
    ];
    table.into_iter().map(run::<Runtime>)
}

/// Returns the message for a value: a string as it is, anything else as JSON with `end` behind it.
fn message(value: &Val, end: &str) -> String {
    match value {
        Val::Str(text) => text.as_ref().to_owned(),
        other => format!("{other}{end}"),
    }
}

fn say(text: &str) {
    // A message that nobody can read is no reason to fail.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
