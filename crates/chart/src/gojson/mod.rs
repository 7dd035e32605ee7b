//! JSON as Go's `encoding/json` reads and writes it, error texts included.

mod decode;
mod encode;

pub use decode::{DecodeError, Decoded, decode};
pub use encode::{encode, indented};
