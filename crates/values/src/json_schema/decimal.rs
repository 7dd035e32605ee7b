//! Exact numbers, so that 0.3 is a multiple of 0.1.

use std::cmp::Ordering;

use serde_json::Number;

/// `digits` × 10^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decimal {
    Exact {
        digits: i128,
        exponent: i32,
    },
    /// A number with more digits than fit.
    Rough(f64),
}

/// How far two exponents may be apart for numbers to be compared digit by digit.
const FARTHEST: u32 = 36;

impl Decimal {
    /// Reads a number.
    pub(super) fn of(number: &Number) -> Self {
        let text = number.to_string();
        let rough = Self::Rough(number.as_f64().unwrap_or_default());
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}").parse::<i128>();
        let (Ok(digits), Ok(exponent), Ok(places)) =
            (digits, exponent.parse::<i32>(), i32::try_from(fraction.len()))
        else {
            return rough;
        };
        Self::Exact { digits, exponent: exponent.saturating_sub(places) }
    }

    /// Returns the nearest binary number.
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Exact { digits, exponent } => {
                format!("{digits}e{exponent}").parse().unwrap_or(f64::INFINITY)
            }
            Self::Rough(number) => number,
        }
    }

    /// Compares two numbers.
    pub(super) fn order(self, other: Self) -> Ordering {
        match self.aligned(other) {
            Some((one, two)) => one.cmp(&two),
            None => self.float().total_cmp(&other.float()),
        }
    }

    /// Reports whether this is a whole number.
    pub(super) fn is_whole(self) -> bool {
        match self {
            Self::Exact { exponent, .. } if exponent >= 0 => true,
            Self::Exact { digits, exponent } => {
                10_i128.checked_pow(exponent.unsigned_abs()).map_or(digits == 0, |unit| digits % unit == 0)
            }
            Self::Rough(number) => number.fract() == 0.0,
        }
    }

    /// Reports whether this is a multiple of `other`.
    pub(super) fn is_multiple_of(self, other: Self) -> bool {
        match self.aligned(other) {
            Some((one, two)) => one.checked_rem(two) == Some(0),
            None => (self.float() / other.float()).fract() == 0.0,
        }
    }

    /// Returns the digits of both with the same exponent.
    fn aligned(self, other: Self) -> Option<(i128, i128)> {
        let (Self::Exact { digits: one, exponent: up }, Self::Exact { digits: two, exponent: down }) =
            (self, other)
        else {
            return None;
        };
        let lower = up.min(down);
        let scaled = |digits: i128, exponent: i32| {
            if digits == 0 {
                return Some(0);
            }
            let by = exponent.abs_diff(lower);
            10_i128.checked_pow(by).filter(|_| by <= FARTHEST)?.checked_mul(digits)
        };
        Some((scaled(one, up)?, scaled(two, down)?))
    }
}
