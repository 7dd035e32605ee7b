//! Flags of a verb, and text padded by them.

use crate::strconv::{can_backquote, quote, quote_to_ascii};
use crate::unicode::decode_rune;

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the format")]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`
    pub(super) plus_v: bool,
    /// `%#v`
    pub(super) sharp_v: bool,
}

impl Flags {
    /// Reports whether a number stands as it is.
    pub(super) fn is_bare(&self) -> bool {
        self.precision.is_none() && self.is_bare_but_for_precision()
    }

    /// Reports whether nothing but the precision changes how a number stands.
    pub(super) fn is_bare_but_for_precision(&self) -> bool {
        self.width.is_none() && !(self.plus || self.sharp || self.space)
    }

    fn fill(&self, out: &mut Vec<u8>, width: usize, zero: bool) {
        let byte = if zero && !self.minus { b'0' } else { b' ' };
        out.resize(out.len() + width, byte);
    }

    /// Writes spaces (or zeros) as wide as the width.
    pub(super) fn blank(&self, out: &mut Vec<u8>, zero: bool) {
        self.fill(out, self.width.unwrap_or(0), zero && self.zero);
    }

    /// Writes `text`, padded to the width.
    pub(super) fn pad(&self, out: &mut Vec<u8>, text: &[u8]) {
        self.pad_with(out, text, self.zero);
    }

    /// Writes `text`, padded with spaces even under the flag `0`.
    pub(super) fn pad_spaces(&self, out: &mut Vec<u8>, text: &[u8]) {
        self.pad_with(out, text, false);
    }

    fn pad_with(&self, out: &mut Vec<u8>, text: &[u8], zero: bool) {
        let missing = match self.width {
            Some(width) if width > 0 => width.saturating_sub(count_runes(text)),
            Some(_) | None => 0,
        };
        if self.minus {
            out.extend_from_slice(text);
            self.fill(out, missing, zero);
        } else {
            self.fill(out, missing, zero);
            out.extend_from_slice(text);
        }
    }

    fn truncate<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(precision) = self.precision else {
            return text;
        };
        let mut end = 0;
        for _ in 0..precision {
            match decode_rune(text.get(end..).unwrap_or_default()) {
                Some((_, width)) => end += width,
                None => break,
            }
        }
        text.get(..end).unwrap_or(text)
    }

    /// Writes a string.
    pub(super) fn string(&self, out: &mut Vec<u8>, text: &[u8]) {
        self.pad(out, self.truncate(text));
    }

    /// Writes a quoted string.
    pub(super) fn quoted(&self, out: &mut Vec<u8>, text: &[u8]) {
        let text = self.truncate(text);
        if self.sharp && can_backquote(text) {
            let mut raw = vec![b'`'];
            raw.extend_from_slice(text);
            raw.push(b'`');
            self.pad(out, &raw);
        } else if self.plus {
            self.pad(out, quote_to_ascii(text).as_bytes());
        } else {
            self.pad(out, quote(text).as_bytes());
        }
    }

    /// Writes the bytes of a string in hexadecimal.
    pub(super) fn hex_bytes(&self, out: &mut Vec<u8>, bytes: &[u8], upper: bool) {
        let length = self.precision.map_or(bytes.len(), |precision| precision.min(bytes.len()));
        if length == 0 {
            self.blank(out, true);
            return;
        }
        let prefix: &[u8] = match (self.sharp, upper) {
            (false, _) => b"",
            (true, false) => b"0x",
            (true, true) => b"0X",
        };
        let mut text = Vec::with_capacity(2 * length + prefix.len());
        for (index, byte) in bytes.iter().take(length).enumerate() {
            if index > 0 && self.space {
                text.push(b' ');
            }
            if index == 0 || self.space {
                text.extend_from_slice(prefix);
            }
            let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
            for half in [byte >> 4, byte & 0xf] {
                text.extend(digits.get(usize::from(half)));
            }
        }
        self.pad(out, &text);
    }
}

fn count_runes(text: &[u8]) -> usize {
    if let Ok(text) = std::str::from_utf8(text) {
        return text.chars().count();
    }
    let mut rest = text;
    let mut count = 0;
    while let Some((_, width)) = decode_rune(rest) {
        rest = rest.get(width..).unwrap_or_default();
        count += 1;
    }
    count
}
