//! Requests that change nothing: get, list and watch.

mod encoder;
mod list;
mod table;
mod token;
mod watch;

pub(crate) use encoder::{ObjectEncoder, encode, respond};
pub(crate) use list::{check_list, get, list, listed};
pub(crate) use watch::watch;
