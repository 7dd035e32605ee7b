//! Go's `fmt` and `strconv`: how values become text.

mod float;
mod number;
mod pad;
mod parse;
mod print;
mod printf;
mod quote;
mod rune;

pub use float::format_float;
pub use parse::{parse_float, parse_int, parse_uint};
pub use print::{PrintError, sprint, sprintln};
pub use printf::sprintf;
pub use quote::{quote, quote_rune, quote_to_ascii};
pub use rune::{decode_rune, is_digit, is_letter, is_print};

pub(crate) use parse::uint_to_float;
pub(crate) use print::{print_pointed, print_value, sprint_pointed};
