//! Times, durations and layouts as Go knows them.
//!
//! A layout is an example: the reference time Mon Jan 2 15:04:05 MST 2006,
//! written as the time is to be written.

mod calendar;
mod civil;
mod duration;
mod format;
mod instant;
mod layout;
mod parse;
mod zone;

use std::fmt::Write as _;

pub use calendar::{Month, Weekday};
pub use duration::{Duration, DurationError};
pub use instant::Time;
pub use parse::ParseTimeError;
pub use zone::Zone;

/// Quotes text in an error as Go's `time` package does: what is not printable
/// ASCII appears byte by byte.
fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' | 0x7f => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}
