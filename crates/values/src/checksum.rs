//! Checksums of values, which show whether they changed.

use std::fmt;
use std::io;

use serde::Serialize;

/// The offset basis of FNV-1a with 128 bits.
const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// The prime of FNV-1a with 128 bits.
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A checksum of canonical JSON: equal values have equal checksums, on every
/// machine and in every run.
///
/// It distinguishes values that changed by themselves; it does not protect from
/// somebody who looks for two values with one checksum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum(u128);

impl Checksum {
    /// Returns the checksum of `value`, whose maps must be sorted by key, as
    /// those of [`serde_json::Value`] are.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        let mut hasher = Hasher(OFFSET);
        // A tree of JSON cannot fail to be written, and the hasher takes all.
        let _ = serde_json::to_writer(&mut hasher, value);
        Self(hasher.0)
    }

    /// Returns the checksum of `bytes`.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hasher = Hasher(OFFSET);
        hasher.update(bytes);
        Self(hasher.0)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checksum({self})")
    }
}

struct Hasher(u128);

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_checksum_is_that_of_fnv_1a() {
        assert_eq!(Checksum::of_bytes(b"").to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(Checksum::of_bytes(b"a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn order_of_keys_does_not_matter_and_values_do() {
        let one: serde_json::Value = serde_json::from_str(r#"{"a":1,"b":[1,2]}"#).unwrap();
        let two: serde_json::Value = serde_json::from_str(r#"{"b":[1,2],"a":1}"#).unwrap();
        assert_eq!(Checksum::of(&one), Checksum::of(&two));
        assert_ne!(Checksum::of(&one), Checksum::of(&json!({"a": 1, "b": [2, 1]})));
        assert_ne!(Checksum::of(&json!("1")), Checksum::of(&json!(1)));
        assert_eq!(Checksum::of(&one), Checksum::of_bytes(br#"{"a":1,"b":[1,2]}"#));
    }
}
