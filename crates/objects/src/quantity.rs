//! Amounts of resources: `100m`, `1.5Gi`, `3e6`.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use thiserror::Error;

/// An amount, kept in billionths and with the suffixes it was written with.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// The text has another form.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// The number has several points or no digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const NANO: i128 = 1_000_000_000;
/// Larger amounts are capped.
const MAX: i128 = i64::MAX as i128 * NANO;

impl Quantity {
    /// Returns whether the amount is below zero.
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Returns whether the amount is a whole number.
    pub fn is_integer(self) -> bool {
        self.nano % NANO == 0
    }

    /// Returns the amount in billionths.
    pub fn nanos(self) -> i128 {
        self.nano
    }

    /// Returns the order of two amounts.
    pub fn compare(self, other: Quantity) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

/// The sum has the suffixes of the first amount, unless that is zero. Sums that are too large are capped.
impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.nano == 0 { other.format } else { self.format };
        Self { nano: (self.nano + other.nano).clamp(-MAX, MAX), format }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at_checked(end).unwrap_or_default();
        if number.is_empty() || !is_suffix(suffix) {
            return Err(QuantityError::Form);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(QuantityError::Form);
        }
        let (format, scale) = scale(suffix)?;
        let nano = amount(whole, fraction, scale).min(MAX);
        Ok(Quantity { nano: if negative { -nano } else { nano }, format })
    }
}

/// Returns whether a suffix has the form that the error text of [`QuantityError::Form`] gives.
fn is_suffix(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits.bytes().all(|b| b.is_ascii_digit())
}

#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

fn scale(suffix: &str) -> Result<(Format, Scale), QuantityError> {
    let decimal = |exponent| Ok((Format::Decimal, Scale::Ten(exponent)));
    let binary = |exponent| Ok((Format::Binary, Scale::Two(exponent)));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
            let exponent: i32 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
            Ok((Format::Exponent, Scale::Ten(exponent)))
        }
    }
}

/// Returns billionths, rounded up; amounts that are too large become [`MAX`].
fn amount(whole: &str, fraction: &str, scale: Scale) -> i128 {
    // Digits beyond these are below what an amount keeps.
    let fraction = fraction.get(..fraction.len().min(18)).unwrap_or_default();
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let Some(mantissa) = (digits.len() <= 37).then(|| digits.parse::<i128>().ok()).flatten() else {
        return MAX;
    };
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    match scale {
        Scale::Ten(exponent) => times_ten(mantissa, exponent.saturating_sub(places).saturating_add(9)),
        Scale::Two(bits) => {
            let Some(units) = mantissa.checked_mul(1_i128 << bits) else {
                return MAX;
            };
            times_ten(units, 9 - places)
        }
    }
}

fn times_ten(mantissa: i128, exponent: i32) -> i128 {
    if exponent >= 0 {
        let power = 10_i128.checked_pow(exponent.unsigned_abs());
        power.and_then(|power| mantissa.checked_mul(power)).unwrap_or(MAX)
    } else {
        match 10_i128.checked_pow(exponent.unsigned_abs()) {
            Some(power) => mantissa / power + i128::from(mantissa % power != 0),
            None => 1,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small = self.nano.abs() < 1024 * NANO;
        match self.format {
            // Parts of a unit are not rounded away.
            Format::Binary if !small && self.is_integer() => self.write_binary(f),
            Format::Binary | Format::Decimal => self.write_decimal(f, false),
            Format::Exponent => self.write_decimal(f, true),
        }
    }
}

impl Quantity {
    fn write_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut units = self.nano / NANO;
        let mut suffix = "";
        for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
            if units % 1024 != 0 {
                break;
            }
            units /= 1024;
            suffix = next;
        }
        write!(f, "{units}{suffix}")
    }

    fn write_decimal(self, f: &mut fmt::Formatter<'_>, exponent: bool) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        let (mut mantissa, mut power) = (self.nano, -9);
        while mantissa % 1000 == 0 && power < 18 {
            mantissa /= 1000;
            power += 3;
        }
        if exponent && power != 0 {
            return write!(f, "{mantissa}e{power}");
        }
        let suffix = match power {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            _ => "",
        };
        write!(f, "{mantissa}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_become_canonical() {
        for (text, expected) in [
            ("1", "1"),
            ("0", "0"),
            ("0Mi", "0"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1.4Gi", "1503238553600m"),
            ("0.5Ki", "512"),
            ("100000", "100k"),
            ("3e6", "3e6"),
            ("1e3", "1e3"),
            ("12e5", "1200e3"),
            ("-1.5", "-1500m"),
            ("+2", "2"),
            ("0.0000000001", "1n"),
            ("1E", "1E"),
            (".5", "500m"),
            ("5.", "5"),
            ("100Ei", "9223372036854775807"),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for (text, expected) in [
            ("", QuantityError::Form),
            ("abc", QuantityError::Form),
            ("1.2.3", QuantityError::Form),
            ("1Xi", QuantityError::Form),
            ("1KK", QuantityError::Suffix),
            ("1 ", QuantityError::Form),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap_err(), expected, "{text}");
        }
    }
}
