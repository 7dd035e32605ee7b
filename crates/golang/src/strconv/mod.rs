//! Go's `strconv`: numbers and quoted strings as text.

mod float;
mod parse;
mod quote;

pub use float::{format_float, format_float32};
pub use parse::{atoi, atoi_closest, parse_float, parse_int, parse_uint, uint_to_float};
pub use quote::{can_backquote, quote, quote_rune, quote_to_ascii};
