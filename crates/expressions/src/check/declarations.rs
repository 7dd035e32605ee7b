//! The functions that expressions can call, and their types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::types::Type;

/// One form of a function.
#[derive(Clone, Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) is_member: bool,
    /// The types of what it takes; that of its target is the first.
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
}

/// How many types an overload may leave open.
pub(super) const MAX_PARAMS: usize = 26;

/// Returns the forms of a function.
pub(crate) fn overloads(function: &str) -> &'static [Overload] {
    DECLARATIONS.get(function).map(Vec::as_slice).unwrap_or_default()
}

/// Returns whether there is a function of this name.
pub(crate) fn is_function(name: &str) -> bool {
    DECLARATIONS.contains_key(name)
}

static DECLARATIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut all: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some((function, overload)) = read(line) {
            all.entry(function).or_default().push(overload);
        }
    }
    all
});

/// Reads `function id (params) result`, or `function id target.(params) result`.
fn read(line: &'static str) -> Option<(&'static str, Overload)> {
    let (function, rest) = line.split_once(' ')?;
    let (id, rest) = rest.split_once(' ')?;
    let mut types = Types { rest };
    let target = if types.rest.starts_with('(') { None } else { Some(types.one()?) };
    types.take(".");
    types.take("(");
    let mut params: Vec<Type> = target.iter().cloned().collect();
    while !types.take(")") {
        params.push(types.one()?);
        types.take(", ");
    }
    types.take(" ");
    let result = types.one()?;
    Some((function, Overload { id, is_member: target.is_some(), params, result }))
}

/// Reads types from a text.
struct Types {
    rest: &'static str,
}

impl Types {
    fn take(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).map(|rest| self.rest = rest).is_some()
    }

    fn one(&mut self) -> Option<Type> {
        // Names of libraries have points in them; the point before a list of parameters is none of them.
        let end = self.rest.find([' ', ',', '(', ')']).unwrap_or(self.rest.len());
        let end = if self.rest.get(..end)?.ends_with('.') { end - 1 } else { end };
        let (name, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        let mut letters = name.chars();
        if let (Some(letter @ 'A'..='Z'), None) = (letters.next(), letters.next()) {
            return Some(Type::Param(usize::from(u8::try_from(letter).ok()? - b'A')));
        }
        Some(match name {
            "dyn" => Type::Dyn,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "list" => Type::list(self.inner()?),
            "optional" => Type::optional(self.inner()?),
            "type" => Type::Type(self.inner()?.into()),
            "map" => {
                self.take("(");
                let key = self.one()?;
                self.take(", ");
                let value = self.one()?;
                self.take(")");
                Type::map(key, value)
            }
            library => Type::Opaque(library),
        })
    }

    fn inner(&mut self) -> Option<Type> {
        self.take("(");
        let inner = self.one()?;
        self.take(")");
        Some(inner)
    }
}

const TABLE: &str = include_str!("functions.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.trim().is_empty());
        for line in lines {
            let (function, overload) = read(line.trim()).unwrap();
            let params: Vec<String> = overload.params.iter().map(ToString::to_string).collect();
            assert!(!params.iter().any(String::is_empty), "{line}");
            let shown = [params, vec![overload.result.to_string()]].concat().join(" ");
            assert!(
                is_function(function) && !shown.contains(['.', ')', '(']) || line.contains(['.', '(']),
                "{line}"
            );
        }
        let contains = overloads("containsIP");
        assert_eq!(contains.len(), 2);
        assert_eq!(contains[0].params, [Type::Opaque("net.CIDR"), Type::String]);
        assert_eq!(overloads("find")[0].params, [Type::String, Type::String]);
        assert!(overloads("nothing").is_empty());
    }
}
