//! Answers to "why": why a module is on or off, why a task runs, why a queue is stuck.
//!
//! An answer is made from a picture alone. It says what is known, from the outside in, and what to do.

pub(super) mod advice;
mod answer;
mod module;
mod opinions;
mod queue;
mod source;
mod task;
mod text;

pub use advice::in_log as advice_in_log;

use super::View;
use super::suggestion::nearest;

pub use answer::{Answer, Link, Unknown};
pub use module::module;
pub use queue::queue;
pub use source::source;
pub use task::task;

/// Reports that there is no such thing, and which one may be meant.
pub(super) fn unknown<'k>(
    what: &'static str,
    name: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Unknown {
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None => "`addon-operator status` shows the names".to_owned(),
    };
    Unknown { what, name: name.to_owned(), hint: Some(hint) }
}

/// Reports that there is no such module, and which one may be meant.
pub fn unknown_module(view: &View, name: &str) -> Unknown {
    unknown("module", name, view.modules.iter().map(|module| module.name.as_str()))
}
