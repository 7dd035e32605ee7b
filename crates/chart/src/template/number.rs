//! Numbers in templates: every type that a literal can stand for.

use golang::strconv::{parse_float, parse_int, parse_uint, quote, uint_to_float};

use super::unquote::unquote_char;

/// A literal, held as every kind of number that it may become.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// How it was written.
    pub(super) text: Box<str>,
    pub(super) int: Option<i64>,
    pub(super) uint: Option<u64>,
    pub(super) float: Option<f64>,
    pub(super) complex: Option<(f64, f64)>,
}

impl Number {
    /// Reads a character constant with its quotes.
    pub(super) fn from_char(text: &str) -> Result<Self, String> {
        let (rune, rest) =
            text.strip_prefix('\'').and_then(|inner| unquote_char(inner, '\'')).ok_or("invalid syntax")?;
        if rest != "'" {
            return Err(format!("malformed character constant: {text}"));
        }
        Ok(Self {
            text: text.into(),
            int: Some(i64::from(rune)),
            uint: Some(u64::from(rune)),
            float: Some(f64::from(rune)),
            complex: None,
        })
    }

    /// Reads a sum such as `1+2i`.
    pub(super) fn from_complex(text: &str) -> Result<Self, String> {
        let split = text.char_indices().skip(1).filter(|(at, sign)| {
            matches!(sign, '+' | '-') && !text.get(..*at).unwrap_or_default().ends_with(['e', 'E', 'p', 'P'])
        });
        for (at, _) in split {
            let (real, imaginary) = text.split_at(at);
            let imaginary = imaginary.strip_suffix('i').unwrap_or(imaginary);
            if let (Some(real), Some(imaginary)) = (parse_float(real), parse_float(imaginary)) {
                return Ok(Self::complex(text, real, imaginary));
            }
        }
        Err("syntax error scanning complex number".to_owned())
    }

    /// Reads any other number.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(imaginary) = text.strip_suffix('i').and_then(parse_float) {
            return Ok(Self::complex(text, 0.0, imaginary));
        }
        let mut number = Self {
            text: text.into(),
            int: parse_int(text),
            uint: parse_uint(text),
            float: None,
            complex: None,
        };
        if number.int == Some(0) {
            number.uint = Some(0);
        }
        if let Some(int) = number.int {
            number.float = Some(int_to_float(int));
        } else if let Some(uint) = number.uint {
            number.float = Some(uint_to_float(uint));
        } else if let Some(float) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quote(text.as_bytes())));
            }
            number.set_float(float);
        }
        if number.float.is_none() {
            return Err(format!("illegal number syntax: {}", quote(text.as_bytes())));
        }
        Ok(number)
    }

    fn complex(text: &str, real: f64, imaginary: f64) -> Self {
        let mut number =
            Self { text: text.into(), int: None, uint: None, float: None, complex: Some((real, imaginary)) };
        if imaginary == 0.0 {
            number.set_float(real);
        }
        number
    }

    #[expect(clippy::cast_possible_truncation, reason = "compared with the float afterwards")]
    #[expect(clippy::cast_sign_loss, reason = "compared with the float afterwards")]
    #[expect(clippy::float_cmp, reason = "a whole number converts back to itself")]
    fn set_float(&mut self, float: f64) {
        self.float = Some(float);
        if int_to_float(float as i64) == float {
            self.int = Some(float as i64);
        }
        if uint_to_float(float as u64) == float {
            self.uint = Some(float as u64);
        }
    }

    /// Reports whether it reads like a float, and so is one where any type fits.
    pub(super) fn looks_like_float(&self) -> bool {
        let text = self.text.as_bytes();
        let hex = matches!(text, [b'0', b'x' | b'X', _, ..]) && !self.text.contains(['p', 'P']);
        self.float.is_some()
            && !hex
            && !self.text.starts_with('\'')
            && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds here too")]
fn int_to_float(int: i64) -> f64 {
    int as f64
}
