//! Integers, floats and characters under a verb.

use crate::strconv::format_float;
use crate::strconv::quote_rune;
use crate::unicode::is_print;

use super::flags::Flags;

/// An integer as a sign and a magnitude.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integer {
    pub(super) negative: bool,
    pub(super) magnitude: u64,
    pub(super) signed: bool,
}

impl Integer {
    pub(super) fn signed(number: i64) -> Self {
        Self { negative: number < 0, magnitude: number.unsigned_abs(), signed: true }
    }

    pub(super) fn unsigned(number: u64) -> Self {
        Self { negative: false, magnitude: number, signed: false }
    }

    /// Returns the character with this number; Go wraps negative ones to invalid ones.
    fn rune(self) -> char {
        if self.negative {
            return char::REPLACEMENT_CHARACTER;
        }
        u32::try_from(self.magnitude).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Returns the bits as an unsigned number.
    fn bits(self) -> u64 {
        if self.negative { self.magnitude.wrapping_neg() } else { self.magnitude }
    }
}

/// Writes an integer; returns `false` if the verb is not one for integers.
pub(super) fn integer(flags: &Flags, out: &mut Vec<u8>, number: Integer, verb: char) -> bool {
    match verb {
        'v' if flags.sharp_v && !number.signed => {
            let flags = Flags { sharp: true, ..*flags };
            digits(&flags, out, number, 16, verb);
        }
        'v' | 'd' => digits(flags, out, number, 10, verb),
        'b' => digits(flags, out, number, 2, verb),
        'o' | 'O' => digits(flags, out, number, 8, verb),
        'x' | 'X' => digits(flags, out, number, 16, verb),
        'c' => {
            let mut buffer = [0; 4];
            flags.pad(out, number.rune().encode_utf8(&mut buffer).as_bytes());
        }
        'q' => flags.pad(out, quote_rune(number.rune(), flags.plus).as_bytes()),
        'U' => unicode(flags, out, number),
        _ => return false,
    }
    true
}

fn digits(flags: &Flags, out: &mut Vec<u8>, number: Integer, base: u32, verb: char) {
    if base == 10 && flags.is_bare() {
        if number.negative {
            out.push(b'-');
        }
        decimal(out, number.magnitude);
        return;
    }
    if flags.precision == Some(0) && number.magnitude == 0 {
        flags.blank(out, false);
        return;
    }
    let has_sign = number.negative || flags.plus || flags.space;
    let least = match (flags.precision, flags.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.zero && !flags.minus => width - usize::from(has_sign && width > 0),
        (None, _) => 0,
    };
    let magnitude = number.magnitude;
    let body = match (base, verb) {
        (2, _) => format!("{magnitude:b}"),
        (8, _) => format!("{magnitude:o}"),
        (16, 'X') => format!("{magnitude:X}"),
        (16, _) => format!("{magnitude:x}"),
        _ => format!("{magnitude}"),
    };
    let mut text = String::new();
    if number.negative {
        text.push('-');
    } else if flags.plus {
        text.push('+');
    } else if flags.space {
        text.push(' ');
    }
    if verb == 'O' {
        text.push_str("0o");
    }
    let body = with_zeros(&body, least);
    if flags.sharp {
        match base {
            2 => text.push_str("0b"),
            8 if !body.starts_with('0') => text.push('0'),
            16 => text.push_str(if verb == 'X' { "0X" } else { "0x" }),
            _ => {}
        }
    }
    text.push_str(&body);
    flags.pad_spaces(out, text.as_bytes());
}

/// Writes a number as people do. A list of bytes is written so, each of them: a file of a chart that is printed with the chart.
fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        first -= 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(first..).unwrap_or_default());
}

/// Puts zeros before `digits` until there are `least`; a width of Rust's formats ends at 65535.
fn with_zeros(digits: &str, least: usize) -> String {
    let mut text = "0".repeat(least.saturating_sub(digits.len()));
    text.push_str(digits);
    text
}

fn unicode(flags: &Flags, out: &mut Vec<u8>, number: Integer) {
    let least = flags.precision.unwrap_or(4).max(4);
    let mut text = format!("U+{}", with_zeros(&format!("{:X}", number.bits()), least));
    let rune = u32::try_from(number.bits()).ok().and_then(char::from_u32);
    if let Some(rune) = rune.filter(|rune| flags.sharp && is_print(*rune)) {
        text.push_str(" '");
        text.push(rune);
        text.push('\'');
    }
    flags.pad_spaces(out, text.as_bytes());
}

/// Writes a float; returns `false` if the verb is not one for floats.
pub(super) fn float(flags: &Flags, out: &mut Vec<u8>, number: f64, verb: char) -> bool {
    let (format, precision) = match verb {
        'v' => ('g', None),
        'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
        'e' | 'E' | 'f' => (verb, Some(6)),
        'F' => ('f', Some(6)),
        _ => return false,
    };
    let precision = flags.precision.or(precision);
    if flags.is_bare_but_for_precision() && number.is_finite() {
        out.extend_from_slice(format_float(number, format, precision).as_bytes());
        return true;
    }
    let text = format_float(number, format, precision);
    let (sign, mut body) = match text.strip_prefix(['-', '+']) {
        Some(body) => (if text.starts_with('-') { '-' } else { '+' }, body.to_owned()),
        None => ('+', text),
    };
    let shown = if sign == '+' && flags.space && !flags.plus { ' ' } else { sign };
    let with_sign = flags.plus || shown != '+';
    if number.is_nan() || number.is_infinite() {
        // Infinity keeps its plus: that is how it reads.
        let bare = number.is_nan() && !flags.space && !flags.plus;
        let text = if bare { body } else { format!("{shown}{body}") };
        flags.pad_spaces(out, text.as_bytes());
        return true;
    }
    if flags.sharp && format != 'b' {
        body = with_point(&body, format, precision);
    }
    if !with_sign {
        flags.pad(out, body.as_bytes());
        return true;
    }
    let text = format!("{shown}{body}");
    match flags.width {
        Some(width) if flags.zero && !flags.minus && width > text.len() => {
            let zeros = "0".repeat(width - text.len());
            out.extend_from_slice(format!("{shown}{zeros}{body}").as_bytes());
        }
        Some(_) | None => flags.pad(out, text.as_bytes()),
    }
    true
}

/// Adds the point and the zeros that the flag `#` keeps.
fn with_point(body: &str, verb: char, precision: Option<usize>) -> String {
    let mut missing = match verb {
        'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let hex = matches!(verb, 'x' | 'X');
    let at = body.find(|mark| matches!(mark, 'p' | 'P') || (!hex && matches!(mark, 'e' | 'E')));
    let (mantissa, tail) = body.split_at(at.unwrap_or(body.len()));
    let significant = mantissa.chars().filter(|mark| *mark != '.').skip_while(|digit| *digit == '0').count();
    missing = missing.saturating_sub(significant);
    let mut text = mantissa.to_owned();
    if !mantissa.contains('.') {
        if mantissa == "0" {
            missing = missing.saturating_sub(1);
        }
        text.push('.');
    }
    text.push_str(&"0".repeat(missing));
    text.push_str(tail);
    text
}
