//! Access by path: filters read, slice and update parts of values. Updates create missing parents.

use std::sync::Arc;

use jaq_core::box_iter::BoxIter;
use jaq_core::path::Opt;
use jaq_core::val::{Range, ValR, ValT, ValX};

use super::arithmetic::{short, typed};
use super::collections::List;
use super::error_text::{detail, error, fail};
use super::limits::{go_deeper, go_on};
use super::value::{Error, Object, Val};

/// The longest array that an update by index may create.
const LONGEST_ARRAY: usize = 0x2000_0000 / 64;

fn not_iterable(value: &Val) -> Error {
    error(format!("cannot iterate over: {}", typed(value)))
}

fn not_indexable(value: &Val, index: &Val) -> Error {
    let expected = match index {
        Val::Str(_) => "an object",
        Val::Null | Val::Bool(_) | Val::Int(_) | Val::Float(_) | Val::Arr(_) | Val::Obj(_) => "an array",
    };
    error(format!("expected {expected} but got: {}", typed(value)))
}

/// Returns the items, for as long as the run may go on.
fn boxed<T: 'static>(items: impl Iterator<Item = T> + 'static) -> Box<dyn Iterator<Item = T>> {
    if go_deeper() { Box::new(items.take_while(|_| go_on(0))) } else { Box::new(std::iter::empty()) }
}

/// Returns why an update inside of a value can't go on.
fn stopped() -> Error {
    error("the filter has passed a limit")
}

/// Returns the position of an index in an array of length `len`. Negative ones count from the end; `None` if it is before the beginning.
fn resolved_index(index: isize, len: usize) -> Option<usize> {
    if index >= 0 { usize::try_from(index).ok() } else { len.checked_sub(index.unsigned_abs()) }
}

/// Returns the bounds of a slice of something with `len` parts.
fn bounds(range: &Range<&Val>, len: usize) -> ValR<(usize, usize), Val> {
    let resolve = |bound: Option<&Val>, default: usize| -> ValR<usize, Val> {
        let value = match bound {
            None | Some(Val::Null) => return Ok(default),
            Some(value) => value.clone(),
        };
        let Some(index) = value.as_index() else {
            return fail(format!("a slice needs numbers but got: {}", typed(&value)));
        };
        Ok(resolved_index(index, len).unwrap_or(0).min(len))
    };
    let (start, end) = (resolve(range.start, 0)?, resolve(range.end, len)?);
    Ok((start, end.max(start)))
}

impl ValT for Val {
    fn from_num(number: &str) -> ValR<Self> {
        if let Ok(value) = number.parse::<i128>() {
            return Ok(Self::Int(value));
        }
        number
            .parse::<f64>()
            .map(Self::number)
            .or_else(|_| fail(format!("invalid number: {}", detail(number))))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(pairs: I) -> ValR<Self> {
        let mut object = Object::new();
        for (key, value) in pairs {
            let Self::Str(key) = key else {
                return fail(format!("expected a string for object key but got: {}", typed(&key)));
            };
            object.insert(key, value);
        }
        Ok(Self::obj(object))
    }

    fn key_values(self) -> BoxIter<'static, ValR<(Self, Self), Self>> {
        match self {
            Self::Arr(items) => {
                let items: Vec<Self> = items.to_vec();
                boxed(items.into_iter().enumerate().map(|(position, item)| Ok((Self::from(position), item))))
            }
            Self::Obj(object) => {
                let pairs: Vec<_> = object
                    .iter()
                    .map(|(key, value)| Ok((Self::Str(Arc::clone(key)), value.clone())))
                    .collect();
                boxed(pairs.into_iter())
            }
            other => boxed(std::iter::once(Err(not_iterable(&other)))),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Self>>> {
        match self {
            Self::Arr(items) => boxed(Arc::unwrap_or_clone(items).into_items().into_iter().map(Ok)),
            Self::Obj(object) => boxed(object.values().cloned().collect::<Vec<_>>().into_iter().map(Ok)),
            other => boxed(std::iter::once(Err(not_iterable(&other)))),
        }
    }

    fn index(self, index: &Self) -> ValR<Self> {
        match (&self, index) {
            (Self::Null, Self::Str(_) | Self::Int(_) | Self::Float(_) | Self::Null) => Ok(Self::Null),
            (Self::Obj(object), Self::Str(key)) => Ok(object.get(key).cloned().unwrap_or(Self::Null)),
            (Self::Arr(items), Self::Int(_) | Self::Float(_)) => {
                let found = index
                    .as_index()
                    .and_then(|index| resolved_index(index, items.len()))
                    .and_then(|position| items.get(position));
                Ok(found.cloned().unwrap_or(Self::Null))
            }
            (Self::Str(text), Self::Int(_) | Self::Float(_)) => {
                let found = index.as_index().and_then(|index| resolved_index(index, text.chars().count()));
                let letter = found.and_then(|position| text.chars().nth(position));
                Ok(letter.map_or(Self::Null, |letter| Self::from(letter.to_string())))
            }
            (Self::Arr(items), Self::Arr(part)) => Ok(super::builtins::indices(items, part)),
            (_, Self::Obj(range)) => self.clone().range(range.get("start")..range.get("end")),
            _ => Err(not_indexable(&self, index)),
        }
    }

    fn range(self, range: Range<&Self>) -> ValR<Self> {
        match &self {
            Self::Null => Ok(Self::Null),
            Self::Arr(items) => {
                let (start, end) = bounds(&range, items.len())?;
                Ok(Self::arr(items.get(start..end).unwrap_or_default().to_vec()))
            }
            Self::Str(text) => {
                let (start, end) = bounds(&range, text.chars().count())?;
                Ok(Self::from(text.chars().skip(start).take(end - start).collect::<String>()))
            }
            other => fail(format!("expected an array or string but got: {}", typed(other))),
        }
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        if !go_deeper() {
            return Err(stopped().into());
        }
        match self {
            Self::Arr(items) => {
                let items = items.iter().cloned().filter_map(|item| f(item).next());
                Ok(Self::arr(items.collect::<Result<_, _>>()?))
            }
            Self::Obj(object) => {
                let pairs = object.iter().filter_map(|(key, value)| {
                    Some(f(value.clone()).next()?.map(|value| (Arc::clone(key), value)))
                });
                Ok(Self::obj(pairs.collect::<Result<_, _>>()?))
            }
            other => opt.fail(other, |other| not_iterable(&other).into()),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        index: &Self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        if !go_deeper() {
            return Err(stopped().into());
        }
        match (self, index) {
            (Self::Null, Self::Str(key)) => match f(Self::Null).next().transpose()? {
                Some(value) => Ok(Self::obj(Object::from([(Arc::clone(key), value)]))),
                None => Ok(Self::Null),
            },
            (Self::Obj(mut object), Self::Str(key)) => {
                let old = object.get(key).cloned().unwrap_or(Self::Null);
                match f(old).next().transpose()? {
                    Some(value) => {
                        Arc::make_mut(&mut object).insert(Arc::clone(key), value);
                    }
                    None => {
                        Arc::make_mut(&mut object).remove(key);
                    }
                }
                Ok(Self::Obj(object))
            }
            (Self::Null, Self::Int(_) | Self::Float(_)) => match f(Self::Null).next().transpose()? {
                Some(value) => put(Arc::default(), index, value).map_err(Into::into),
                None => Ok(Self::Null),
            },
            (Self::Arr(items), Self::Int(_) | Self::Float(_)) => {
                let found = index.as_index().and_then(|index| resolved_index(index, items.len()));
                let old = found.and_then(|position| items.get(position)).cloned();
                match (f(old.clone().unwrap_or(Self::Null)).next().transpose()?, old) {
                    (Some(value), _) => put(items, index, value).map_err(Into::into),
                    (None, None) => Ok(Self::Arr(items)),
                    (None, Some(_)) => {
                        let mut items = items;
                        Arc::make_mut(&mut items).remove(found.unwrap_or_default());
                        Ok(Self::Arr(items))
                    }
                }
            }
            (value, Self::Obj(range)) => value.map_range(range.get("start")..range.get("end"), opt, f),
            (value, index) => opt.fail(value, |value| not_indexable(&value, index).into()),
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        range: Range<&Self>,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        if !go_deeper() {
            return Err(stopped().into());
        }
        let mut items = match self {
            Self::Null => Arc::default(),
            Self::Arr(items) => items,
            other => {
                return opt.fail(other, |other| not_indexable(&other, &Self::Int(0)).into());
            }
        };
        let (start, end) = bounds(&range, items.len())?;
        let part = Self::arr(items.get(start..end).unwrap_or_default().to_vec());
        let new = match f(part).next().transpose()? {
            None => Arc::default(),
            Some(Self::Arr(new)) => new,
            Some(other) => {
                let error = error(format!("expected an array but got: {}", typed(&other)));
                return Err(error.into());
            }
        };
        Arc::make_mut(&mut items).splice(start..end, new.iter().cloned());
        Ok(Self::Arr(items))
    }

    fn as_bool(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    fn into_string(self) -> Self {
        match self {
            text @ Self::Str(_) => text,
            other => Self::from(other.to_string()),
        }
    }
}

/// Sets an item of an array. A short array is padded with nulls.
fn put(mut items: Arc<List>, index: &Val, value: Val) -> ValR<Val> {
    let position = index.as_index().and_then(|index| resolved_index(index, items.len()));
    let Some(position) = position else {
        return fail(format!("array index should not be negative but got: {}", short(index)));
    };
    if position >= LONGEST_ARRAY {
        return fail(format!("array index too large: {}", short(index)));
    }
    let grown = Arc::make_mut(&mut items);
    if position >= grown.len() {
        grown.resize(position + 1, Val::Null);
    }
    if let Some(slot) = grown.get_mut(position) {
        *slot = value;
    }
    Ok(Val::Arr(items))
}

impl jaq_std::ValT for Val {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self {
            Self::Arr(items) => Ok(Arc::unwrap_or_clone(items).into_items().into_iter().collect()),
            other => Err(other),
        }
    }

    fn is_int(&self) -> bool {
        matches!(self, Self::Int(_))
    }

    fn as_isize(&self) -> Option<isize> {
        match self {
            Self::Int(value) => isize::try_from(*value).ok(),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::Str(_) | Self::Arr(_) | Self::Obj(_) => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        self.as_float()
    }

    fn is_utf8_str(&self) -> bool {
        matches!(self, Self::Str(_))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Str(text) => Some(text.as_bytes()),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Arr(_) | Self::Obj(_) => None,
        }
    }

    fn as_sub_str(&self, sub: &[u8]) -> Self {
        Self::from(String::from_utf8_lossy(sub).into_owned())
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::from(String::from_utf8_lossy(bytes.as_ref()).into_owned())
    }
}
