//! Lists and watches: the one place that follows objects of the API server.

mod definitions;
mod reflector;
mod stream;

pub(crate) use definitions::{Kinds, is_custom};
pub(crate) use reflector::{Feed, News, backoff};
pub(crate) use stream::{Changes, Head, Line, Source, StreamError, encode, watch_error};
