//! Floats as text: `strconv.FormatFloat`.

/// Returns `number` in the Go format `verb` (`e E f g G b x X`) with `precision`
/// digits, or as few as are needed to read it back if there is none.
pub fn format_float(number: f64, verb: char, precision: Option<usize>) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = match verb {
        'b' => return binary(number),
        'x' | 'X' => hexadecimal(number, precision),
        'e' | 'E' => exponent(number, precision),
        'f' | 'F' => match precision {
            Some(digits) => fixed(number, digits),
            None => format!("{number}"),
        },
        _ => general(number, precision),
    };
    if verb.is_ascii_uppercase() && verb != 'F' { text.to_ascii_uppercase() } else { text }
}

/// Returns `number` in the Go format `g` with the fewest digits that read back as the same
/// number of 32 bits.
pub fn format_float32(number: f32) -> String {
    // These digits are few enough to be the shortest of the nearest float of 64 bits, too.
    let wide = format!("{number:e}").parse().unwrap_or_else(|_| f64::from(number));
    format_float(wide, 'g', None)
}

/// Returns the form of `%e`: the exponent has a sign and at least two digits.
fn exponent(number: f64, precision: Option<usize>) -> String {
    let (mantissa, exponent) = scientific(number, precision);
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent.as_str()),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// No float has more digits behind the point than this; what is asked for beyond are zeros.
const MAX_DIGITS: usize = 1_100;

fn fixed(number: f64, digits: usize) -> String {
    let exact = digits.min(MAX_DIGITS);
    let mut text = format!("{number:.exact$}");
    text.extend(std::iter::repeat_n('0', digits - exact));
    text
}

/// Returns the mantissa and the exponent of ten.
fn scientific(number: f64, precision: Option<usize>) -> (String, String) {
    let text = match precision {
        Some(digits) => format!("{number:.exact$e}", exact = digits.min(MAX_DIGITS)),
        None => format!("{number:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut mantissa = mantissa.to_owned();
    let missing = precision.unwrap_or(0).saturating_sub(MAX_DIGITS);
    mantissa.extend(std::iter::repeat_n('0', missing));
    (mantissa, exponent.to_owned())
}

/// Returns the form that `%g` chooses: with an exponent if that is below -4 or
/// not below the precision, which counts as 6 if it is the shortest.
fn general(number: f64, precision: Option<usize>) -> String {
    // Between these the shortest form has no exponent, and is what Rust prints.
    if precision.is_none() && (number == 0.0 || (1e-4..1e6).contains(&number.abs())) {
        return format!("{number}");
    }
    let shortest = precision.is_none();
    // The zeros behind the last digit are not printed, so they need not be made.
    let (mantissa, exp) = scientific(number, precision.map(|digits| digits.clamp(1, MAX_DIGITS) - 1));
    let exp: i64 = exp.parse().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    // Zeros at the end of a given precision do not count.
    let significant = if shortest {
        digits
    } else {
        mantissa.trim_start_matches('-').replace('.', "").trim_end_matches('0').len().max(1)
    };
    let point = exp + 1;
    let mut limit = i64::try_from(precision.unwrap_or(6).max(1)).unwrap_or(i64::MAX);
    let counted = i64::try_from(significant).unwrap_or(i64::MAX);
    if limit > counted && counted >= point {
        limit = counted;
    }
    if shortest {
        limit = 6;
    }
    if exp < -4 || exp >= limit {
        return exponent(number, Some(significant - 1));
    }
    let decimals = usize::try_from(counted - point).unwrap_or(0);
    fixed(number, decimals)
}

/// Returns the mantissa and the exponent of two: `mantissa * 2^exponent` is the magnitude.
fn split(number: f64) -> (bool, u64, i64) {
    let bits = number.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let raw = i64::try_from((bits >> 52) & 0x7ff).unwrap_or_default();
    let (mantissa, exponent) = if raw == 0 { (fraction, -1074) } else { (fraction | (1 << 52), raw - 1075) };
    (bits >> 63 == 1, mantissa, exponent)
}

fn binary(number: f64) -> String {
    let (negative, mantissa, exponent) = split(number);
    format!("{}{mantissa}p{exponent:+}", if negative { "-" } else { "" })
}

fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    let (negative, mut mantissa, mut exponent) = split(number);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The leading one is put at bit 60: one digit before the point, fifteen behind.
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - i64::from(shift);
    }
    if let Some(digits) = precision.filter(|digits| *digits < 15) {
        let dropped = 60 - 4 * u32::try_from(digits).unwrap_or(15);
        let kept = mantissa >> dropped;
        let rest = mantissa & ((1 << dropped) - 1);
        let half = 1_u64 << (dropped - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        mantissa = (kept + u64::from(up)) << dropped;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction = match precision {
        None => fraction.trim_end_matches('0').to_owned(),
        Some(digits) if digits < 15 => fraction.get(..digits).unwrap_or_default().to_owned(),
        Some(digits) => fraction + &"0".repeat(digits - 15),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if negative { "-" } else { "" };
    let (exponent_sign, exponent) = if exponent < 0 { ('-', -exponent) } else { ('+', exponent) };
    format!("{sign}0x{}{point}{fraction}p{exponent_sign}{exponent:02}", mantissa >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_form_has_an_exponent_from_a_million_on() {
        for (number, expected) in [
            (1.1, "1.1"),
            (1e6, "1e+06"),
            (-1_234_567.5, "-1.2345675e+06"),
            (1e-5, "1e-05"),
            (999_999.0, "999999"),
        ] {
            assert_eq!(format_float(number, 'g', None), expected);
        }
        assert_eq!(format_float32(1.1), "1.1");
        assert_eq!(format_float32(f32::NEG_INFINITY), "-Inf");
    }
}
