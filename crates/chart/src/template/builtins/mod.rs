//! The functions of the language itself, and those that need the executor.

mod collection;
mod compare;
mod escape;
mod helm;
mod print;

use std::sync::LazyLock;

use super::ast::Callee;
use crate::functions;
use crate::value::{Function, Value};

const GROUPS: &[&[Function]] =
    &[helm::FUNCTIONS, compare::FUNCTIONS, collection::FUNCTIONS, print::FUNCTIONS, escape::FUNCTIONS];

/// The functions by a number that is made of the name. A function that finds its place taken has the next free one.
struct Callees(Vec<Option<(&'static str, Callee)>>);

static CALLEES: LazyLock<Callees> = LazyLock::new(|| {
    let functions = functions::all().map(Callee::Function);
    let special = [Callee::And, Callee::Or, Callee::Call, Callee::Len];
    let own = GROUPS.iter().copied().flatten().map(Callee::Function);
    let mut callees = Callees(vec![None; CALLEES_ROOM]);
    // The functions of Helm hide those of the language, since the first of a name is kept.
    for callee in functions.chain(special).chain(own) {
        callees.insert(callee.name(), callee);
    }
    callees
});

/// About four times as many places as there are functions.
const CALLEES_ROOM: usize = 1 << 10;

impl Callees {
    /// Returns the places of `name`, the first one first.
    fn places(name: &[u8]) -> impl Iterator<Item = usize> {
        let sum = name.iter().fold(0, |sum: usize, byte| sum.wrapping_mul(31) ^ usize::from(*byte));
        (0..CALLEES_ROOM).map(move |step| sum.wrapping_add(step) % CALLEES_ROOM)
    }

    fn insert(&mut self, name: &'static str, callee: Callee) {
        for at in Self::places(name.as_bytes()) {
            match self.0.get_mut(at) {
                Some(place @ None) => return *place = Some((name, callee)),
                Some(Some((other, _))) if *other != name => {}
                _ => return,
            }
        }
    }

    fn get(&self, name: &[u8]) -> Option<Callee> {
        for at in Self::places(name) {
            match self.0.get(at) {
                Some(Some((found, callee))) if found.as_bytes() == name => return Some(*callee),
                Some(Some(_)) => {}
                _ => return None,
            }
        }
        None
    }
}

/// Returns what `name` calls; the functions of Helm hide those of the language.
pub(super) fn lookup(name: &[u8]) -> Option<Callee> {
    CALLEES.get(name)
}

/// Returns what Go's `reflect.Value.String` answers.
pub(super) fn reflected(value: &Value) -> String {
    match value.as_text() {
        Some(text) => text.lossy().into_owned(),
        None if value.is_nil() => "<invalid Value>".to_owned(),
        None => format!("<{} Value>", value.type_name()),
    }
}

/// Returns the length of `value`, or Go's words for why it has none.
///
/// `boxed` says that a nil is behind an `interface {}`.
pub(super) fn length(value: &Value, boxed: bool) -> Result<Value, String> {
    let underlying = value.underlying();
    let length = if let Value::Text(text) = &underlying {
        text.len()
    } else if let Value::Bytes(bytes) = &underlying {
        bytes.len()
    } else if let Value::List(list) = &underlying {
        list.len()
    } else if let Value::Map(map) = &underlying {
        map.len()
    } else if value.is_nil() && boxed {
        return Err("len of nil pointer".to_owned());
    } else if value.is_nil() {
        return Err("reflect: call of reflect.Value.Type on zero Value".to_owned());
    } else {
        let name = value.type_name();
        return Err(format!("len of type {}", name.strip_prefix('*').unwrap_or(name)));
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}
