//! What filters run with beside their input: the further inputs, and where messages go.

use std::io::{self, Write};

use jaq_core::data::HasLut;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{DataT, Exn, Lut, RunPtr};

use super::folds::States;
use super::value::{Error, Val};

/// Where `input` and `inputs` read from.
pub(super) trait Inputs {
    /// Returns the next input, or why it can't be read; `None` at the end.
    fn next(&self) -> Option<Result<Val, String>>;
}

/// There are no further inputs.
pub(super) struct NoInputs;

impl Inputs for NoInputs {
    fn next(&self) -> Option<Result<Val, String>> {
        None
    }
}

/// The kind of filters that are run here.
pub(super) struct Kind;

/// What a running filter can reach.
#[derive(Clone)]
pub(super) struct Data<'a> {
    pub(super) lut: &'a Lut<Kind>,
    pub(super) inputs: &'a dyn Inputs,
    pub(super) states: &'a States,
}

impl<'a> HasLut<'a, Kind> for Data<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}

impl DataT for Kind {
    type V<'a> = Val;
    type Data<'a> = Data<'a>;
}

/// Returns the functions that only programs have.
pub(super) fn funs() -> impl Iterator<Item = Fun<Kind>> {
    let table: Vec<Filter<RunPtr<Kind>>> = vec![
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
    table.into_iter().map(run::<Kind>)
}

/// Returns what is said of a value: a string as it is, anything else as JSON with `end` behind it.
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
