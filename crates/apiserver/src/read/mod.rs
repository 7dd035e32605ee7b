//! Requests that change nothing: get, list and watch.

mod list;
mod present;
mod token;
mod watch;

pub(crate) use list::selection;
pub(crate) use list::{get, list};
pub(crate) use present::{Presenter, convert, encode, respond};
pub(crate) use watch::watch;
