//! Base64, as far as the tag `!!binary` needs it.

/// Decodes standard base64; line breaks are skipped, bytes that are not UTF-8
/// become replacement characters.
pub(super) fn decode(text: &str) -> Option<String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let groups = digits.len() / 4;
    for (index, group) in digits.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 != groups) {
            return None;
        }
        let mut bits = 0_u32;
        for byte in group.iter().take(4 - padding) {
            bits = bits << 6 | sextet(*byte)?;
        }
        bits <<= 6 * padding;
        let [_, first, second, third] = bits.to_be_bytes();
        bytes.extend([first, second, third].iter().take(3 - padding));
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}
