//! Which types stand for those that are not known yet.

use std::sync::Arc;

use crate::types::Type;

/// How deeply types may lie in each other; deeper ones are taken as any type.
const MAX_DEPTH: usize = 64;

/// What is known about open types, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Substitution {
    known: Vec<Option<Type>>,
}

impl Substitution {
    /// Returns the number of the first of `count` new open types.
    pub(super) fn open(&mut self, count: usize) -> usize {
        let first = self.known.len();
        self.known.resize(first + count, None);
        first
    }

    /// Returns a new open type.
    pub(super) fn fresh(&mut self) -> Type {
        Type::Param(self.open(1))
    }

    /// Returns a type with everything that is known; what is still open stays so.
    pub(super) fn resolved(&self, of: &Type) -> Type {
        self.resolved_within(of, MAX_DEPTH)
    }

    fn resolved_within(&self, of: &Type, depth: usize) -> Type {
        let Some(depth) = depth.checked_sub(1) else { return Type::Dyn };
        let inner = |of: &Arc<Type>| Arc::new(self.resolved_within(of, depth));
        match of {
            Type::Param(number) => match self.known.get(*number) {
                Some(Some(known)) => self.resolved_within(known, depth),
                _ => of.clone(),
            },
            Type::List(element) => Type::List(inner(element)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            Type::Optional(value) => Type::Optional(inner(value)),
            Type::Type(of) => Type::Type(inner(of)),
            _ => of.clone(),
        }
    }

    /// Returns whether values of these types can be given where others are expected, and learns from it.
    pub(super) fn accepts_all(&mut self, given: &[Type], expected: &[Type]) -> bool {
        let before = self.known.clone();
        let fits = given.iter().zip(expected).all(|(given, expected)| self.fits(given, expected, MAX_DEPTH));
        if !fits {
            self.known = before;
        }
        fits
    }

    /// Returns whether a value of one type can be given where another is expected, and learns from it.
    pub(super) fn accepts(&mut self, given: &Type, expected: &Type) -> bool {
        self.accepts_all(std::slice::from_ref(given), std::slice::from_ref(expected))
    }

    fn fits(&mut self, given: &Type, expected: &Type, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match (given, expected) {
            (Type::Param(a), Type::Param(b)) if a == b => true,
            (other, Type::Param(number)) | (Type::Param(number), other) => self.learn(*number, other, depth),
            // Types are values of one kind.
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) | (Type::Type(_), Type::Type(_)) => {
                true
            }
            (Type::Null, other) | (other, Type::Null) => other.takes_null(),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.fits(a, b, depth),
            (Type::Map(a, b), Type::Map(c, d)) => self.fits(a, c, depth) && self.fits(b, d, depth),
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b) || a.name == b.name,
            (a, b) => a == b,
        }
    }

    fn learn(&mut self, number: usize, other: &Type, depth: usize) -> bool {
        if let Some(Some(known)) = self.known.get(number).cloned() {
            if !self.fits(other, &known, depth) {
                return false;
            }
            let other = self.resolved(other);
            if is_open(&other)
                && !is_open(&known)
                && !mentions(&other, number)
                && let Some(slot) = self.known.get_mut(number)
            {
                *slot = Some(other);
            }
            return true;
        }
        let other = self.resolved(other);
        if other == Type::Param(number) {
            return true;
        }
        if mentions(&other, number) {
            return false;
        }
        if let Some(slot) = self.known.get_mut(number) {
            *slot = Some(other);
        }
        true
    }
}

/// Returns whether a type is `dyn` somewhere.
pub(super) fn is_open(of: &Type) -> bool {
    match of {
        Type::Dyn => true,
        Type::List(inner) | Type::Optional(inner) => is_open(inner),
        Type::Map(key, value) => is_open(key) || is_open(value),
        _ => false,
    }
}

fn mentions(of: &Type, number: usize) -> bool {
    match of {
        Type::Param(other) => *other == number,
        Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => mentions(inner, number),
        Type::Map(key, value) => mentions(key, number) || mentions(value, number),
        _ => false,
    }
}

/// Returns a type of a declaration with its own open types.
pub(super) fn shifted(of: &Type, first: usize) -> Type {
    match of {
        Type::Param(number) => Type::Param(first + number),
        Type::List(inner) => Type::list(shifted(inner, first)),
        Type::Optional(inner) => Type::optional(shifted(inner, first)),
        Type::Type(inner) => Type::Type(shifted(inner, first).into()),
        Type::Map(key, value) => Type::map(shifted(key, first), shifted(value, first)),
        _ => of.clone(),
    }
}
