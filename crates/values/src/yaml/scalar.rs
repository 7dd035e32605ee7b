//! What a plain scalar means: null, boolean, number or text.

use serde_json::Value;

use super::base64;
use super::error::{Position, YamlError, YamlProblem};
use super::timestamp::is_timestamp;

/// The meaning of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Timestamp,
    Text,
}

/// A tag that says how a scalar is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Binary,
    Bool,
    Float,
    Int,
    Null,
    Text,
    Timestamp,
}

impl Scalar {
    /// Returns the short form of the tag of what was read.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Timestamp => "!!timestamp",
            Self::Text => "!!str",
        }
    }
}

impl Tag {
    /// Returns the tag for its long name; unknown tags mean nothing.
    pub(super) fn from_uri(uri: &str) -> Option<Self> {
        Some(match uri.strip_prefix("tag:yaml.org,2002:")? {
            "binary" => Self::Binary,
            "bool" => Self::Bool,
            "float" => Self::Float,
            "int" => Self::Int,
            "null" => Self::Null,
            "str" => Self::Text,
            "timestamp" => Self::Timestamp,
            _ => return None,
        })
    }

    /// Returns the tag as people write it.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Binary => "!!binary",
            Self::Bool => "!!bool",
            Self::Float => "!!float",
            Self::Int => "!!int",
            Self::Null => "!!null",
            Self::Text => "!!str",
            Self::Timestamp => "!!timestamp",
        }
    }
}

/// Which of the two readers of the field is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Reads manifests and values.
    #[default]
    V2,
    /// Reads `yes`, `on` and the like as texts.
    V3,
}

impl Dialect {
    /// Returns what the unquoted `text` means without a tag.
    pub(super) fn resolve(self, text: &str) -> Scalar {
        let scalar = resolve(text);
        if self == Self::V3 && scalar.old_boolean(text).is_some() { Scalar::Text } else { scalar }
    }

    /// Returns what `text` means under an explicit tag, or `None` if it does not fit.
    ///
    /// `Tag::Text` and `Tag::Binary` fit everything.
    pub(super) fn resolve_tagged(self, tag: Tag, text: &str) -> Option<Scalar> {
        let scalar = match tag {
            Tag::Text | Tag::Binary => return Some(Scalar::Text),
            Tag::Timestamp => return is_timestamp(text).then_some(Scalar::Text),
            Tag::Bool | Tag::Float | Tag::Int | Tag::Null => self.resolve(text),
        };
        match (tag, scalar) {
            #[expect(clippy::cast_precision_loss, reason = "the tag asks for a floating-point number")]
            (Tag::Float, Scalar::Int(number)) => Some(Scalar::Float(number as f64)),
            (Tag::Float, scalar @ Scalar::Float(_))
            | (Tag::Int, scalar @ (Scalar::Int(_) | Scalar::Uint(_)))
            | (Tag::Bool, scalar @ Scalar::Bool(_))
            | (Tag::Null, scalar @ Scalar::Null) => Some(scalar),
            _ => None,
        }
    }
}

/// Returns what the unquoted `text` means without a tag.
fn resolve(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else {
        return Scalar::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match special_float(text).or_else(|| fraction(text)) {
            Some(number) => Scalar::Float(number),
            None => Scalar::Text,
        },
        b'+' | b'-' => match special_float(text) {
            Some(number) => Scalar::Float(number),
            None => number(text),
        },
        b'0'..=b'9' => number(text),
        _ => Scalar::Text,
    }
}

/// Returns the meaning of a word that may be a null or a boolean.
fn word(text: &str) -> Scalar {
    match text {
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        _ => Scalar::Text,
    }
}

/// Returns the boolean that the unquoted `text` is only for readers of YAML 1.1: `yes`, `off`, `n`.
pub(super) fn old_boolean(text: &str) -> Option<bool> {
    resolve(text).old_boolean(text)
}

impl Scalar {
    /// Returns the boolean that this is, if it is written as a word that only YAML 1.1 knows.
    fn old_boolean(&self, text: &str) -> Option<bool> {
        let Self::Bool(flag) = self else { return None };
        (!text.eq_ignore_ascii_case(&flag.to_string())).then_some(*flag)
    }
}

/// Returns the numbers that are spelled with letters.
fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Returns the meaning of a text that begins with a digit or a sign.
fn number(text: &str) -> Scalar {
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let stripped: String;
    let plain = if text.contains('_') {
        stripped = text.replace('_', "");
        stripped.as_str()
    } else {
        text
    };
    if let Some(number) = any_base(plain) {
        return number;
    }
    if is_float(plain)
        && let Some(number) = decimal(plain)
    {
        return Scalar::Float(number);
    }
    binary_with_sign(plain).unwrap_or(Scalar::Text)
}

/// Reads an integer whose prefix names its base; a leading zero means octal.
fn any_base(text: &str) -> Option<Scalar> {
    let (negative, digits, signed) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?, true),
        Some(b'+') => (false, text.get(1..)?, true),
        _ => (false, text, false),
    };
    if !digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let prefixed = |prefix: [&str; 2]| {
        prefix.iter().find_map(|prefix| digits.strip_prefix(prefix)).filter(|rest| !rest.is_empty())
    };
    let (base, digits) = if let Some(rest) = prefixed(["0x", "0X"]) {
        (16, rest)
    } else if let Some(rest) = prefixed(["0o", "0O"]) {
        (8, rest)
    } else if let Some(rest) = prefixed(["0b", "0B"]) {
        (2, rest)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, digits)
    } else {
        (10, digits)
    };
    if !digits.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(number) => Some(Scalar::Int(number)),
        // A sign is accepted for 64-bit signed numbers only.
        Err(_) if signed => None,
        Err(_) => Some(Scalar::Uint(magnitude)),
    }
}

/// Reads the odd forms `0b-1` and `-0b…`, which the field's parser accepts.
fn binary_with_sign(text: &str) -> Option<Scalar> {
    if let Some(digits) = text.strip_prefix("0b") {
        return i64::from_str_radix(digits, 2).ok().map(Scalar::Int);
    }
    let digits = text.strip_prefix("-0b")?;
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(&format!("-{digits}"), 2).ok().map(Scalar::Int)
}

/// Returns whether `text` has the form of a decimal number with an optional
/// sign, point and exponent.
fn is_float(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    let mut rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if whole == 0 && length == 0 {
            return false;
        }
        rest = fraction.get(length..).unwrap_or_default();
    } else if whole == 0 {
        return false;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else {
        return rest.is_empty();
    };
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

/// Reads a number that begins with its point; underscores may separate digits.
fn fraction(text: &str) -> Option<f64> {
    if !text.contains('_') {
        return decimal(text);
    }
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let separates = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| bytes.get(before));
        is_digit(before) && is_digit(bytes.get(index + 1))
    };
    let mut underscores = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    if underscores.all(|(index, _)| separates(index)) { decimal(&text.replace('_', "")) } else { None }
}

/// Reads a decimal number; one that is too large is none.
fn decimal(text: &str) -> Option<f64> {
    if !is_float(text) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns whether `text` is a number in base 60, which older readers know.
pub(super) fn is_base60(text: &str) -> bool {
    let Some((head, rest)) = text.split_once(':') else {
        return false;
    };
    let head = head.strip_prefix(['+', '-']).unwrap_or(head);
    let mut bytes = head.bytes();
    let head_fits = bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        && bytes.all(|byte| byte.is_ascii_digit() || byte == b'_');
    let (groups, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    head_fits
        && groups.split(':').all(|group| match group.as_bytes() {
            [unit] => unit.is_ascii_digit(),
            [ten, unit] => (b'0'..=b'5').contains(ten) && unit.is_ascii_digit(),
            _ => false,
        })
        && fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

/// Returns whether the string `text` is read back as itself when it is written
/// without quotes, as far as its meaning goes.
pub(super) fn is_plain_text(text: &str) -> bool {
    resolve(text) == Scalar::Text && !is_base60(text)
}

/// Returns the JSON value of `scalar`, or `None` for a number JSON has not.
pub(super) fn to_json(scalar: &Scalar, text: String) -> Option<Value> {
    Some(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(*flag),
        Scalar::Int(number) => Value::from(*number),
        Scalar::Uint(number) => Value::from(*number),
        Scalar::Float(number) => Value::Number(golang::json::number(*number)?),
        Scalar::Timestamp | Scalar::Text => Value::String(text),
    })
}

/// Returns what a scalar means, and its text.
pub(super) fn interpret(
    dialect: Dialect,
    tag: Option<&str>,
    text: String,
    implicit: bool,
    position: Position,
) -> Result<(Scalar, String), YamlError> {
    let Some(uri) = tag else {
        let scalar = if implicit { dialect.resolve(&text) } else { Scalar::Text };
        return Ok((scalar, text));
    };
    let Some(tag) = Tag::from_uri(uri) else {
        return Ok((Scalar::Text, text));
    };
    let unfit = |text: &str| {
        let own = dialect.resolve(text).tag().to_owned();
        YamlProblem::Tag { text: text.to_owned(), tag: tag.short().to_owned(), own }.at(position)
    };
    if tag == Tag::Binary {
        let text = base64::decode(&text).ok_or_else(|| unfit(&text))?;
        return Ok((Scalar::Text, text));
    }
    match dialect.resolve_tagged(tag, &text) {
        Some(scalar) => Ok((scalar, text)),
        None => Err(unfit(&text)),
    }
}

/// Returns the value of a scalar.
pub(super) fn read(
    dialect: Dialect,
    tag: Option<&str>,
    text: String,
    implicit: bool,
    position: Position,
) -> Result<Value, YamlError> {
    let (scalar, text) = interpret(dialect, tag, text, implicit, position)?;
    if matches!(scalar, Scalar::Float(number) if !number.is_finite()) {
        return Err(YamlProblem::NotJson { text }.at(position));
    }
    Ok(to_json(&scalar, text).unwrap_or(Value::Null))
}
