//! The target `format`: what is before the first line end is a format, the rest its values.

use chart::value::Value;
use golang::fmt::{sprint, sprintf};

/// Formats one value of each kind that the bytes choose.
pub(crate) fn run(bytes: &[u8]) {
    let (format, rest) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len()));
    let mut values = Vec::new();
    for chunk in rest.chunks(9).take(8) {
        let (kind, payload) = chunk.split_first().map_or((0, chunk), |(kind, payload)| (*kind, payload));
        let mut bits = [0; 8];
        for (bit, byte) in bits.iter_mut().zip(payload) {
            *bit = *byte;
        }
        let bits = u64::from_le_bytes(bits);
        values.push(match kind % 8 {
            0 => Value::Nil,
            1 => Value::Int64(bits.cast_signed()),
            2 => Value::Float(f64::from_bits(bits)),
            3 => Value::text(payload.to_vec()),
            4 => Value::Bytes(payload.into()),
            5 => Value::list(values.clone()),
            6 => Value::map([("k", Value::list(values.clone()))]),
            _ => Value::Bool(bits % 2 == 0),
        });
    }
    let printed = sprintf(format, &values);
    assert!(printed.is_ok() || sprint(&values).is_ok());
}
