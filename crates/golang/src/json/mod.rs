//! JSON as Go's `encoding/json` reads and writes it, error texts included.
//!
//! [`encode`] writes values of Go, [`write()`] and its kin what `serde` serialises, both in the same
//! text: compact, keys as they come, numbers in Go's form.

mod canonical;
mod decode;
mod encode;
mod number;
mod serialize;

pub use canonical::is_as_written;
pub use decode::{DecodeError, Decoded, Unmarshal, decode, decode_as};
pub use encode::{EncodeError, Escape, Marshal, encode, indented};
pub use number::{format_number, normalize, number};
pub use serialize::{bytes, to_vec, write};
