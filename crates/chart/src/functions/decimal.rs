//! Decimal numbers of any length.

use std::cmp::Ordering;

/// How many places behind the point a quotient gets.
const DIVISION_PLACES: i64 = 16;

/// A number `digits` × 10^`exponent`.
#[derive(Clone, Debug, Default)]
pub(super) struct Decimal {
    negative: bool,
    /// The digits, the least significant first; no zeros at the end. Zero has none.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Returns the number whose shortest decimal form is that of `number`, if it is finite.
    pub(super) fn from_f64(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let text = format!("{:e}", number.abs());
        let (mantissa, exponent) = text.split_once('e')?;
        let places = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa.bytes().rev().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        let exponent = exponent.parse::<i64>().ok()? - i64::try_from(places).ok()?;
        Some(Self { negative: number < 0.0, digits, exponent }.trimmed())
    }

    /// Returns the nearest float.
    pub(super) fn to_f64(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().rev().map(|digit| char::from(digit + b'0')).collect();
        if digits.is_empty() {
            return 0.0;
        }
        format!("{sign}{digits}e{}", self.exponent).parse().unwrap_or_default()
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let (left, right) = (self.shifted_to(exponent), other.shifted_to(exponent));
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, add(&left, &right))
        } else if compare(&left, &right) == Ordering::Less {
            (other.negative, subtract(&right, &left))
        } else {
            (self.negative, subtract(&left, &right))
        };
        Self { negative, digits, exponent }.trimmed()
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { negative: !other.negative, ..other.clone() })
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0_u32; self.digits.len() + other.digits.len()];
        for (shift, a) in self.digits.iter().enumerate() {
            let mut carry = 0;
            let right = other.digits.iter().copied().chain(std::iter::repeat(0));
            for (digit, b) in digits.iter_mut().skip(shift).zip(right) {
                let sum = *digit + u32::from(*a) * u32::from(b) + carry;
                (*digit, carry) = (sum % 10, sum / 10);
            }
        }
        Self {
            negative: self.negative != other.negative,
            digits: digits.into_iter().filter_map(|digit| u8::try_from(digit).ok()).collect(),
            exponent: self.exponent + other.exponent,
        }
        .trimmed()
    }

    /// Returns the quotient, rounded half away from zero; `None` if `other` is zero.
    pub(super) fn divided_by(&self, other: &Self) -> Option<Self> {
        if other.digits.is_empty() {
            return None;
        }
        // Both are scaled so that the quotient is a whole number of the last place.
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let numerator = scaled(&self.digits, shift);
        let denominator = scaled(&other.digits, -shift);
        let (digits, rest) = divide(&numerator, &denominator);
        let up = compare(&add(&rest, &rest), &denominator) != Ordering::Less;
        let digits = if up { add(&digits, &[1]) } else { digits };
        let negative = self.negative != other.negative;
        Some(Self { negative, digits, exponent: -DIVISION_PLACES }.trimmed())
    }

    /// Returns the digits of the number written with a smaller exponent.
    fn shifted_to(&self, exponent: i64) -> Vec<u8> {
        scaled(&self.digits, self.exponent - exponent)
    }

    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        self.negative &= !self.digits.is_empty();
        self
    }
}

/// Returns the digits with so many zeros at the end; a negative number of them is none.
fn scaled(digits: &[u8], zeros: i64) -> Vec<u8> {
    let zeros = usize::try_from(zeros).unwrap_or_default();
    if digits.is_empty() {
        return Vec::new();
    }
    std::iter::repeat_n(0, zeros).chain(digits.iter().copied()).collect()
}

fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let significant = |digits: &[u8]| digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    let (a, b) = (significant(left), significant(right));
    a.cmp(&b).then_with(|| left.iter().take(a).rev().cmp(right.iter().take(b).rev()))
}

fn add(left: &[u8], right: &[u8]) -> Vec<u8> {
    let len = left.len().max(right.len()) + 1;
    let padded =
        |digits: &[u8]| digits.iter().copied().chain(std::iter::repeat(0)).take(len).collect::<Vec<_>>();
    let mut carry = 0;
    padded(left)
        .into_iter()
        .zip(padded(right))
        .map(|(a, b)| {
            let sum = a + b + carry;
            carry = sum / 10;
            sum % 10
        })
        .collect()
}

/// Subtracts the smaller number from the greater one.
fn subtract(greater: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    greater
        .iter()
        .zip(smaller.iter().copied().chain(std::iter::repeat(0)))
        .map(|(a, b)| {
            let difference = 10 + a - b - borrow;
            borrow = u8::from(difference < 10);
            difference % 10
        })
        .collect()
}

/// Returns quotient and rest by long division.
fn divide(numerator: &[u8], denominator: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut rest: Vec<u8> = Vec::new();
    let mut quotient = Vec::with_capacity(numerator.len());
    for digit in numerator.iter().rev() {
        rest.insert(0, *digit);
        let mut times = 0;
        while compare(&rest, denominator) != Ordering::Less {
            rest = subtract(&rest, denominator);
            times += 1;
        }
        while rest.last() == Some(&0) {
            rest.pop();
        }
        quotient.insert(0, times);
    }
    (quotient, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_compute_as_people_do() {
        let number = |n: f64| Decimal::from_f64(n).unwrap();
        for (left, operation, right, result) in [
            (0.1, '+', 0.2, 0.3),
            (1.5, '-', 2.0, -0.5),
            (1e20, '+', -1e20, 0.0),
            (1.1, '*', 1.1, 1.21),
            (1.0, '/', 3.0, 0.333_333_333_333_333_3),
            (2.0, '/', 3.0, 0.666_666_666_666_666_7),
            (-2.0, '/', 3.0, -0.666_666_666_666_666_7),
            (10.0, '/', 4.0, 2.5),
            (1e-10, '/', 1e10, 0.0),
            (1e300, '/', 1e-5, 1e305),
            (123_456.789, '/', 0.001, 123_456_789.0),
        ] {
            let (a, b) = (number(left), number(right));
            let computed = match operation {
                '+' => a.plus(&b),
                '-' => a.minus(&b),
                '*' => a.times(&b),
                _ => a.divided_by(&b).unwrap(),
            };
            assert_eq!(computed.to_f64().to_bits(), f64::to_bits(result), "{left} {operation} {right}");
        }
        assert!(number(1.0).divided_by(&number(0.0)).is_none());
    }
}
