//! URLs as Go's `net/url` takes them apart and puts them together.

mod address;
mod error;
mod escape;
mod parse;
mod parts;
mod resolve;

pub use address::address_problem;
pub use error::{UrlError, UrlErrorKind};
pub use escape::{path_escape, path_unescape};
pub use parts::{Url, UserInfo};
pub use resolve::without_dots;
