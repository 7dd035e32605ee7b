//! The operators `+ - * / %` on values.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::sync::Arc;

use jaq_core::val::ValR;

use super::error_text::{self, fail};
use super::limits::{go_deeper, go_on, go_on_bytes};
use super::value::{Object, Val};

/// How many bytes a repeated string may have.
const LONGEST_STRING: usize = 64 * 1024 * 1024;

fn wrong(left: &Val, what: &str, right: &Val) -> ValR<Val> {
    fail(format!("cannot {what}: {} and {}", typed(left), typed(right)))
}

/// Returns the type of a value with the beginning of its text, for errors: `number (1)`.
pub(super) fn typed(value: &Val) -> String {
    error_text::about(value, format!("{} ({})", value.type_name(), beginning(value)))
}

/// Returns the beginning of a value's text, for errors.
pub(super) fn short(value: &Val) -> String {
    error_text::about(value, beginning(value))
}

fn beginning(value: &Val) -> String {
    use std::fmt::Write as _;
    let mut text = Beginning(String::new());
    // It fails when the text is long enough.
    let _ = write!(text, "{value}");
    let text = text.0;
    if text.chars().count() <= 30 { text } else { text.chars().take(27).chain("...".chars()).collect() }
}

/// Takes the beginning of a text.
struct Beginning(String);

impl std::fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend(text.chars().take(31));
        if self.0.chars().count() > 30 { Err(std::fmt::Error) } else { Ok(()) }
    }
}

fn numbers(left: &Val, right: &Val, float: impl Fn(f64, f64) -> f64) -> Option<Val> {
    Some(Val::number(float(left.as_float()?, right.as_float()?)))
}

impl Add for Val {
    type Output = ValR<Self>;

    fn add(self, right: Self) -> ValR<Self> {
        Ok(match (self, right) {
            (Self::Null, other) | (other, Self::Null) => other,
            (Self::Int(a), Self::Int(b)) if a.checked_add(b).is_some() => Self::Int(a.saturating_add(b)),
            (Self::Str(a), Self::Str(b)) => {
                if a.len() + b.len() > LONGEST_STRING || !go_on_bytes(a.len() + b.len()) {
                    return fail("cannot add: the string would become too long");
                }
                Self::Str([&*a, &*b].concat().into())
            }
            (Self::Arr(mut a), Self::Arr(b)) => {
                let _ = go_on(b.len());
                Arc::make_mut(&mut a).extend(b.iter().cloned());
                Self::Arr(a)
            }
            (Self::Obj(mut a), Self::Obj(b)) => {
                let _ = go_on(b.len());
                Arc::make_mut(&mut a).extend(b.iter().map(|(key, value)| (Arc::clone(key), value.clone())));
                Self::Obj(a)
            }
            (a, b) => return numbers(&a, &b, f64::add).map_or_else(|| wrong(&a, "add", &b), Ok),
        })
    }
}

impl Sub for Val {
    type Output = ValR<Self>;

    fn sub(self, right: Self) -> ValR<Self> {
        Ok(match (self, right) {
            (Self::Int(a), Self::Int(b)) if a.checked_sub(b).is_some() => Self::Int(a.saturating_sub(b)),
            (Self::Arr(a), Self::Arr(b)) => {
                a.iter().filter(|item| go_on(b.len()) && !b.contains(item)).cloned().collect()
            }
            (a, b) => return numbers(&a, &b, f64::sub).map_or_else(|| wrong(&a, "subtract", &b), Ok),
        })
    }
}

impl Mul for Val {
    type Output = ValR<Self>;

    fn mul(self, right: Self) -> ValR<Self> {
        Ok(match (self, right) {
            (Self::Int(a), Self::Int(b)) if a.checked_mul(b).is_some() => Self::Int(a.saturating_mul(b)),
            (Self::Str(text), count @ (Self::Int(_) | Self::Float(_)))
            | (count @ (Self::Int(_) | Self::Float(_)), Self::Str(text)) => return repeated(&text, &count),
            (Self::Obj(a), Self::Obj(b)) => Self::Obj(merged(a, &b)),
            (a, b) => return numbers(&a, &b, f64::mul).map_or_else(|| wrong(&a, "multiply", &b), Ok),
        })
    }
}

#[expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the count was checked to be in range"
)]
fn repeated(text: &str, count: &Val) -> ValR<Val> {
    let count = count.as_float().unwrap_or(0.0);
    if count < 0.0 || count.is_nan() {
        return Ok(Val::Null);
    }
    let times = count.floor();
    if times * text.len() as f64 > LONGEST_STRING as f64 {
        return fail("cannot multiply: the string would become too long");
    }
    let _ = go_on_bytes((times * text.len() as f64) as usize);
    Ok(Val::str(&text.repeat(times as usize)))
}

/// Returns both objects merged at every level.
fn merged(mut left: Arc<Object>, right: &Object) -> Arc<Object> {
    if !go_deeper() {
        return left;
    }
    let object = Arc::make_mut(&mut left);
    for (key, value) in right.iter() {
        let value = match (object.remove(key), value) {
            (Some(Val::Obj(a)), Val::Obj(b)) => Val::Obj(merged(a, b)),
            (_, value) => value.clone(),
        };
        object.insert(Arc::clone(key), value);
    }
    left
}

impl Div for Val {
    type Output = ValR<Self>;

    fn div(self, right: Self) -> ValR<Self> {
        match (&self, &right) {
            (Self::Str(text), Self::Str(separator)) => Ok(split(text, separator)),
            (Self::Int(_) | Self::Float(_), Self::Int(0)) => wrong(&self, "divide by zero", &right),
            (Self::Int(_) | Self::Float(_), Self::Float(zero)) if *zero == 0.0 => {
                wrong(&self, "divide by zero", &right)
            }
            (Self::Int(a), Self::Int(b)) if a.checked_rem(*b) == Some(0) => Ok(Self::Int(a / b)),
            _ => numbers(&self, &right, f64::div).map_or_else(|| wrong(&self, "divide", &right), Ok),
        }
    }
}

fn split(text: &str, separator: &str) -> Val {
    if separator.is_empty() {
        return text.chars().map(|char| Val::from(char.to_string())).collect();
    }
    text.split(separator).map(Val::str).collect()
}

impl Rem for Val {
    type Output = ValR<Self>;

    #[expect(clippy::cast_possible_truncation, reason = "the remainder is that of whole numbers, as in jq")]
    fn rem(self, right: Self) -> ValR<Self> {
        let whole = |value: &Self| match value {
            Self::Int(value) => Some(*value),
            Self::Float(value) if !value.is_nan() => Some(*value as i128),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::Str(_) | Self::Arr(_) | Self::Obj(_) => None,
        };
        if [&self, &right].iter().any(|value| matches!(value, Self::Float(value) if value.is_nan())) {
            return Ok(Self::Float(f64::NAN));
        }
        match (whole(&self), whole(&right)) {
            (Some(_), Some(0)) => wrong(&self, "modulo by zero", &right),
            (Some(a), Some(b)) => {
                let rest = a.unsigned_abs().checked_rem(b.unsigned_abs()).unwrap_or(0);
                let rest = i128::try_from(rest).unwrap_or(i128::MAX);
                Ok(Self::Int(if a < 0 { -rest } else { rest }))
            }
            _ => wrong(&self, "modulo", &right),
        }
    }
}

impl Neg for Val {
    type Output = ValR<Self>;

    fn neg(self) -> ValR<Self> {
        match self {
            Self::Int(value) => Ok(Self::Int(value.saturating_neg())),
            Self::Float(value) => Ok(Self::Float(-value)),
            other => fail(format!("cannot negate: {}", typed(&other))),
        }
    }
}
