//! Encodings and checksums.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest as _;

use super::args::{STRING, bytes};
use crate::value::{Function, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("adler32sum", &[STRING], STRING, |_, args| Ok(adler32(bytes(args, 0)).to_string().into())),
    Function::new("b32dec", &[STRING], STRING, |_, args| {
        Ok(base32_decoded(bytes(args, 0)).map_or_else(Value::from, Value::text))
    }),
    Function::new("b32enc", &[STRING], STRING, |_, args| Ok(base32_encoded(bytes(args, 0)).into())),
    Function::new("b64dec", &[STRING], STRING, |_, args| {
        Ok(base64_decoded(bytes(args, 0)).map_or_else(Value::from, Value::text))
    }),
    Function::new("b64enc", &[STRING], STRING, |_, args| Ok(STANDARD.encode(bytes(args, 0)).into())),
    Function::new("sha1sum", &[STRING], STRING, |_, args| {
        Ok(hexadecimal(&sha1::Sha1::digest(bytes(args, 0))).into())
    }),
    Function::new("sha256sum", &[STRING], STRING, |_, args| {
        Ok(hexadecimal(&sha2::Sha256::digest(bytes(args, 0))).into())
    }),
    Function::new("sha512sum", &[STRING], STRING, |_, args| {
        Ok(hexadecimal(&sha2::Sha512::digest(bytes(args, 0))).into())
    }),
];

/// Writes bytes in hexadecimal.
fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1_u32, 0_u32);
    // So many bytes can be summed before the sums have to be reduced.
    for chunk in bytes.chunks(5_552) {
        for byte in chunk {
            a += u32::from(*byte);
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

/// Decodes base64 as Go does: line breaks are ignored, bits that are left over too.
///
/// Returns Go's error text, with the offset of what is wrong, if it is not base64.
pub(super) fn base64_decoded(text: &[u8]) -> Result<Vec<u8>, String> {
    decode64(text).map_err(|offset| format!("illegal base64 data at input byte {offset}"))
}

/// Returns the offset at which the text is wrong.
fn decode64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut input = text.iter().copied().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    loop {
        let mut group: u64 = 0;
        for count in 0..4 {
            match input.next() {
                None if count == 0 => return Ok(out),
                None => return Err(text.len() - count),
                Some((offset, b'=')) => {
                    check_padding(offset, count, text.len(), &mut input)?;
                    push_bits(&mut out, group, count * 6);
                    return Ok(out);
                }
                Some((offset, byte)) => {
                    group = group << 6 | u64::from(digit64(byte).ok_or(offset)?);
                }
            }
        }
        push_bits(&mut out, group, 24);
    }
}

/// Reads what follows the first `=`, which stood at `offset` behind `count` digits.
fn check_padding(
    offset: usize,
    count: usize,
    len: usize,
    input: &mut impl Iterator<Item = (usize, u8)>,
) -> Result<(), usize> {
    if count < 2 {
        return Err(offset);
    }
    if count == 2 {
        match input.next() {
            Some((_, b'=')) => {}
            Some((next, _)) => return Err(next.saturating_sub(1)),
            None => return Err(len),
        }
    }
    input.next().map_or(Ok(()), |(next, _)| Err(next))
}

fn digit64(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// Decodes base32 as Go does: what follows the padding is not looked at.
fn base32_decoded(text: &[u8]) -> Result<Vec<u8>, String> {
    decode32(text).map_err(|offset| format!("illegal base32 data at input byte {offset}"))
}

/// Returns the offset at which the text, its line breaks aside, is wrong.
fn decode32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let mut group: u64 = 0;
        for count in 0..8 {
            let offset = text.len() - rest.len();
            let Some((byte, after)) = rest.split_first() else {
                return Err(offset - count);
            };
            rest = after;
            if *byte == b'=' && count >= 2 && rest.len() < 8 {
                if rest.len() + count < 7 {
                    return Err(text.len());
                }
                let wrong = rest.iter().take(7 - count).position(|byte| *byte != b'=');
                if let Some(wrong) = wrong {
                    return Err(offset + wrong);
                }
                if matches!(count, 3 | 6) {
                    return Err(offset);
                }
                push_bits(&mut out, group, count * 5);
                return Ok(out);
            }
            group = group << 5 | u64::from(digit32(*byte).ok_or(offset)?);
        }
        push_bits(&mut out, group, 40);
    }
    Ok(out)
}

fn digit32(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

/// Appends the whole bytes among the lowest `bits` bits.
fn push_bits(out: &mut Vec<u8>, group: u64, bits: usize) {
    let group = group >> (bits % 8);
    out.extend(group.to_be_bytes().into_iter().skip(8 - bits / 8));
}

fn base32_encoded(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let group = chunk.iter().fold(0_u64, |group, byte| group << 8 | u64::from(*byte));
        let bits = chunk.len() * 8;
        let digits = bits.div_ceil(5);
        let group = group << (digits * 5 - bits);
        let encoded = (0..digits).rev().filter_map(|place| DIGITS.get((group >> (place * 5) & 31) as usize));
        text.extend(encoded.map(|digit| char::from(*digit)));
        text.extend(std::iter::repeat_n('=', 8 - digits));
    }
    text
}
