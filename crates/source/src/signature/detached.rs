//! A signature in a file of its own, beside what is signed: `<bundle>.tgz.sig`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::sigstore;

/// What the name of such a file ends with.
pub const SUFFIX: &str = ".sig";

/// The most bytes of the file.
pub const MAX_FILE: u64 = 16 << 10;

/// Returns the signature in a file: a bundle or base64 as `cosign sign-blob` writes them, or the bytes as `openssl dgst -sign` does.
pub fn signature(file: &[u8]) -> Vec<u8> {
    if let Some(signature) = sigstore::message_signature(file) {
        return signature;
    }
    let text: Vec<u8> = file.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(text).unwrap_or_else(|_| file.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_base64_in_any_number_of_lines_or_bytes() {
        let bytes = [0x30, 0x45, 0x02, 0xff];
        let text = STANDARD.encode(bytes);
        assert_eq!(signature(format!("{text}\n").as_bytes()), bytes);
        let (begin, end) = text.split_at(3);
        assert_eq!(signature(format!("{begin}\r\n{end}").as_bytes()), bytes);
        assert_eq!(signature(&bytes), bytes);
        let bundle = format!(r#"{{"messageSignature": {{"signature": "{text}"}}}}"#);
        assert_eq!(signature(bundle.as_bytes()), bytes);
        assert_eq!(signature(b""), b"");
    }
}
