//! Values of filters: JSON with exact integers and sorted keys.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jaq_core::val::Range;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::collections::List;
pub(super) use super::collections::Object;
use super::limits::{go_deeper, go_on, go_on_bytes};

/// How deep a result may nest.
const DEEPEST_RESULT: usize = 1_000;

/// A value that a filter works on. A clone shares what it holds.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Arc<str>),
    Arr(Arc<List>),
    Obj(Arc<Object>),
}

pub(super) type Error = jaq_core::Error<Val>;

impl Val {
    /// Returns the type as jq names it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) | Self::Float(_) => "number",
            Self::Str(_) => "string",
            Self::Arr(_) => "array",
            Self::Obj(_) => "object",
        }
    }

    pub(super) fn str(text: &str) -> Self {
        Self::Str(text.into())
    }

    pub(super) fn arr(items: Vec<Val>) -> Self {
        Self::Arr(Arc::new(items.into()))
    }

    pub(super) fn obj(object: Object) -> Self {
        Self::Obj(Arc::new(object))
    }

    /// Returns a number, as an integer where it is one that fits exactly.
    #[expect(clippy::cast_possible_truncation, reason = "the value was checked to be an integer in range")]
    pub(super) fn number(value: f64) -> Self {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() <= EXACT {
            Self::Int(value as i128)
        } else {
            Self::Float(value)
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a float is asked for")]
    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Null | Self::Bool(_) | Self::Str(_) | Self::Arr(_) | Self::Obj(_) => None,
        }
    }

    /// Returns the whole number below, as an index into an array.
    #[expect(clippy::cast_possible_truncation, reason = "an index beyond any array is beyond any array")]
    pub(super) fn as_index(&self) -> Option<isize> {
        match self {
            Self::Int(value) => {
                Some(isize::try_from(*value).unwrap_or(if *value < 0 { isize::MIN } else { isize::MAX }))
            }
            Self::Float(value) if !value.is_nan() => Some(value.floor() as isize),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::Str(_) | Self::Arr(_) | Self::Obj(_) => None,
        }
    }

    /// Returns the JSON value, or why there is none: a number that is not finite, or values in values too deep.
    pub(super) fn to_json(&self) -> Result<Value, String> {
        self.to_json_at(0)
    }

    fn to_json_at(&self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST_RESULT || !go_deeper() {
            return Err(format!("the result nests deeper than {DEEPEST_RESULT}"));
        }
        let inner = |value: &Self| value.to_json_at(depth + 1);
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                (Err(_), Err(_)) => json_float(self.as_float().unwrap_or(f64::NAN))?,
            },
            Self::Float(value) => json_float(*value)?,
            Self::Str(text) => {
                let _ = go_on_bytes(text.len());
                Value::String(text.as_ref().to_owned())
            }
            Self::Arr(items) => Value::Array(items.iter().map(inner).collect::<Result<_, _>>()?),
            Self::Obj(object) => {
                let pairs = object.iter().map(|(key, value)| Ok((key.as_ref().to_owned(), inner(value)?)));
                Value::Object(pairs.collect::<Result<_, String>>()?)
            }
        })
    }
}

fn json_float(value: f64) -> Result<Value, String> {
    golang::json::number(value)
        .map(Value::Number)
        .ok_or_else(|| format!("the result holds a number that JSON does not have: {value}"))
}

impl From<&Value> for Val {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Self::Int(value.into()),
                (_, Some(value), _) => Self::Int(value.into()),
                (_, _, value) => Self::number(value.unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::str(text),
            Value::Array(items) => Self::arr(items.iter().map(Self::from).collect()),
            Value::Object(object) => Self::obj(
                object.iter().map(|(key, value)| (Arc::from(key.as_str()), Self::from(value))).collect(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Val {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

thread_local! {
    /// Whether a whole number was read that may have had more digits than a float keeps.
    static ROUNDED: Cell<bool> = const { Cell::new(false) };
}

/// Reads JSON. Whole numbers of up to 128 bits stay exact.
pub(super) fn from_json(text: &[u8]) -> Result<Val, serde_json::Error> {
    ROUNDED.set(false);
    let value = serde_json::from_slice(text)?;
    // Such numbers are rare, and the first pass has read them as floats.
    if ROUNDED.get() { exactly(serde_json::from_slice(text)?) } else { Ok(value) }
}

/// Reads a value part by part. It is known to be one, and how deep it nests.
fn exactly(raw: &RawValue) -> Result<Val, serde_json::Error> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            Val::arr(items.into_iter().map(exactly).collect::<Result<_, _>>()?)
        }
        Some(b'{') => {
            let pairs: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text)?;
            let pairs = pairs.into_iter().map(|(key, value)| Ok((key.as_ref().into(), exactly(value)?)));
            Val::obj(pairs.collect::<Result<_, serde_json::Error>>()?)
        }
        _ => match text.parse() {
            Ok(number) => Val::Int(number),
            Err(_) => serde_json::from_str(text)?,
        },
    })
}

/// A result that serializes as JSON.
pub(super) struct JsonResult<'a>(&'a Val, usize);

impl<'a> JsonResult<'a> {
    pub(super) fn new(value: &'a Val) -> Self {
        Self(value, 0)
    }
}

impl Serialize for JsonResult<'_> {
    /// Fails where [`Val::to_json`] fails; whole numbers are exact.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, depth) = *self;
        if depth > DEEPEST_RESULT || !go_deeper() {
            return Err(S::Error::custom(format!("the result nests deeper than {DEEPEST_RESULT}")));
        }
        match value {
            Val::Null => serializer.serialize_unit(),
            Val::Bool(value) => serializer.serialize_bool(*value),
            Val::Int(value) => match i64::try_from(*value) {
                Ok(value) => serializer.serialize_i64(value),
                Err(_) => serializer.serialize_i128(*value),
            },
            Val::Float(value) => json_float(*value).map_err(S::Error::custom)?.serialize(serializer),
            Val::Str(text) => {
                let _ = go_on_bytes(text.len());
                serializer.serialize_str(text)
            }
            Val::Arr(items) => serializer.collect_seq(items.iter().map(|item| Self(item, depth + 1))),
            Val::Obj(object) => {
                serializer.collect_map(object.iter().map(|(key, value)| (&**key, Self(value, depth + 1))))
            }
        }
    }
}

/// Builds a value from the deserializer's input.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Val, E> {
        Ok(Val::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Val, E> {
        Ok(Val::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Val, E> {
        Ok(Val::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Val, E> {
        if value.abs() >= 9e18 {
            ROUNDED.set(true);
        }
        Ok(Val::number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Val, E> {
        Ok(Val::str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Val, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Val::arr(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Val, A::Error> {
        let mut object = Object::new();
        while let Some((key, value)) = pairs.next_entry::<Cow<'_, str>, Val>()? {
            object.insert(key.as_ref().into(), value);
        }
        Ok(Val::obj(object))
    }
}

/// Returns a string as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007f")
}

impl fmt::Display for Val {
    /// Writes compact JSON; numbers that JSON does not have as jq writes them.
    ///
    /// Nothing is written any more once the run has passed a limit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !go_deeper() {
            return Ok(());
        }
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) if value.is_nan() => f.write_str("null"),
            Self::Float(value) if value.is_infinite() => {
                let largest = if *value > 0.0 { f64::MAX } else { f64::MIN };
                Self::Float(largest).fmt(f)
            }
            Self::Float(value) => f.write_str(&golang::json::format_number(*value).unwrap_or_default()),
            Self::Str(text) if !go_on_bytes(text.len()) => Ok(()),
            Self::Str(text) => f.write_str(&quoted(text)),
            Self::Arr(items) => {
                f.write_str("[")?;
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Obj(object) => {
                f.write_str("{")?;
                for (position, (key, value)) in object.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{}:{value}", quoted(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl Val {
    /// Orders as jq does: null, false, true, numbers, strings, arrays, objects.
    ///
    /// NaN is smaller than any number; how it compares with itself is `nan`.
    fn compare(&self, other: &Self, nan: Ordering) -> Ordering {
        fn rank(value: &Val) -> u8 {
            match value {
                Val::Null => 0,
                Val::Bool(false) => 1,
                Val::Bool(true) => 2,
                Val::Int(_) | Val::Float(_) => 3,
                Val::Str(_) => 4,
                Val::Arr(_) => 5,
                Val::Obj(_) => 6,
            }
        }
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Int(_) | Self::Float(_), Self::Int(_) | Self::Float(_)) => {
                let (a, b) = (self.as_float().unwrap_or(f64::NAN), other.as_float().unwrap_or(f64::NAN));
                a.partial_cmp(&b).unwrap_or(match (a.is_nan(), b.is_nan()) {
                    (true, true) => nan,
                    (true, false) => Ordering::Less,
                    (false, _) => Ordering::Greater,
                })
            }
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            // After a limit the result is discarded.
            (Self::Arr(_), Self::Arr(_)) | (Self::Obj(_), Self::Obj(_)) if !go_deeper() => Ordering::Equal,
            (Self::Arr(a), Self::Arr(b)) => compare_all(a.iter(), b.iter(), nan),
            (Self::Obj(a), Self::Obj(b)) => {
                a.keys().cmp(b.keys()).then_with(|| compare_all(a.values(), b.values(), nan))
            }
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

fn compare_all<'a>(
    a: impl Iterator<Item = &'a Val>,
    mut b: impl Iterator<Item = &'a Val>,
    nan: Ordering,
) -> Ordering {
    for a in a {
        match b.next().map_or(Ordering::Greater, |b| a.compare(b, nan)) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    if b.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

impl Ord for Val {
    /// Orders as jq sorts: there NaN is as great as itself.
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other, Ordering::Equal)
    }
}

#[expect(clippy::non_canonical_partial_ord_impl, reason = "a filter sees that NaN is smaller than itself")]
impl PartialOrd for Val {
    /// Orders as filters compare: there NaN is smaller than itself.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.compare(other, Ordering::Less))
    }
}

impl PartialEq for Val {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other, Ordering::Less) == Ordering::Equal
    }
}

impl Eq for Val {}

impl From<bool> for Val {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<isize> for Val {
    fn from(value: isize) -> Self {
        Self::Int(value as i128)
    }
}

impl From<usize> for Val {
    fn from(value: usize) -> Self {
        Self::Int(value as i128)
    }
}

impl From<f64> for Val {
    fn from(value: f64) -> Self {
        Self::number(value)
    }
}

impl From<String> for Val {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<Range<Val>> for Val {
    fn from(range: Range<Val>) -> Self {
        let bounds = [("start", range.start), ("end", range.end)];
        Self::obj(bounds.into_iter().map(|(key, bound)| (key.into(), bound.unwrap_or(Self::Null))).collect())
    }
}

impl FromIterator<Val> for Val {
    fn from_iter<I: IntoIterator<Item = Val>>(items: I) -> Self {
        // A generator without end stops only at the limits of the run.
        Self::arr(items.into_iter().take_while(|_| go_on(0)).collect())
    }
}
