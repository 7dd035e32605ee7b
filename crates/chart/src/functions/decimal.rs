//! Decimal numbers of any length.

use num_bigint::{BigInt, BigUint};

/// How many places behind the point a quotient gets.
const DIVISION_PLACES: i64 = 16;

/// A number `digits` × 10^`exponent`.
#[derive(Clone, Debug, Default)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

impl Decimal {
    /// Returns the number whose shortest decimal form is that of `number`, if it is finite.
    pub(super) fn from_f64(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let places = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let exponent = exponent.parse::<i64>().ok()? - i64::try_from(places).ok()?;
        Some(Self { digits: mantissa.replace('.', "").parse().ok()?, exponent })
    }

    /// Returns the nearest float.
    pub(super) fn to_f64(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or_default()
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let scaled = |number: &Self| &number.digits * power_of_ten(number.exponent - exponent);
        Self { digits: scaled(self) + scaled(other), exponent }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { digits: -&other.digits, exponent: other.exponent })
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self { digits: &self.digits * &other.digits, exponent: self.exponent + other.exponent }
    }

    /// Returns the quotient, rounded half away from zero; `None` if `other` is zero.
    pub(super) fn divided_by(&self, other: &Self) -> Option<Self> {
        // Both are scaled so that the quotient is a whole number of the last place.
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let numerator = &self.digits * power_of_ten(shift);
        let denominator = &other.digits * power_of_ten(-shift);
        let quotient = numerator.checked_div(&denominator)?;
        let rest: BigUint = (&numerator - &quotient * &denominator).into_parts().1;
        let up = BigInt::from(u8::from(&rest + &rest >= *denominator.magnitude()));
        let digits = if numerator.sign() == denominator.sign() { quotient + up } else { quotient - up };
        Some(Self { digits, exponent: -DIVISION_PLACES })
    }
}

/// Returns 10 to the power of `exponent`; 1 if that is negative.
fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or_default())
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
