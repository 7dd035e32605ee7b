//! What the parsers of one source share: names that were read before, and the parts of what is not complete yet.

use std::sync::Arc;

use super::ast::{Callee, Command, Expr, Fields, Node};
use super::builtins;

/// Names and paths are few, and the same ones come again and again: most are found where they were put the last time.
const SLOTS: usize = 256;

/// A value for each text that was read lately. One that falls into the place of another one takes it.
pub(super) struct Recent<'a, T>(Vec<Option<(&'a [u8], T)>>);

impl<'a, T: Clone> Recent<'a, T> {
    fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of `text`, which is made if it was not read lately.
    pub(super) fn of<E>(&mut self, text: &'a [u8], make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.0.is_empty() {
            self.0.resize(SLOTS, None);
        }
        let place = place(text);
        if let Some(Some((known, value))) = self.0.get(place)
            && *known == text
        {
            return Ok(value.clone());
        }
        let value = make()?;
        if let Some(slot) = self.0.get_mut(place) {
            *slot = Some((text, value.clone()));
        }
        Ok(value)
    }
}

/// Returns the place of a text among the slots.
fn place(text: &[u8]) -> usize {
    let mixed =
        text.iter().fold(text.len(), |mixed, byte| mixed.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    (mixed ^ (mixed >> 8)) % SLOTS
}

/// What the parsers of one source share.
pub(super) struct Pool<'a> {
    pub(super) text: &'a [u8],
    /// Paths as they are written: `.Values.image`.
    paths: Recent<'a, Fields>,
    functions: Recent<'a, Option<Callee>>,
    /// String literals with their quotes.
    pub(super) literals: Recent<'a, Arc<[u8]>>,
    /// Parts of lists that are not complete; those of the innermost one come last.
    pub(super) nodes: Vec<Node>,
    pub(super) commands: Vec<Command>,
    pub(super) arguments: Vec<Expr>,
}

impl<'a> Pool<'a> {
    /// Returns the pool of a source.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            paths: Recent::new(),
            functions: Recent::new(),
            literals: Recent::new(),
            nodes: Vec::new(),
            commands: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Returns the names in a path that is written as `.a.b`.
    pub(super) fn path(&mut self, text: &'a [u8]) -> Fields {
        let fields = self.paths.of(text, || {
            let text = String::from_utf8_lossy(text);
            Ok::<_, std::convert::Infallible>(Fields::new(text.split('.').skip(1).map(Arc::from).collect()))
        });
        match fields {
            Ok(fields) => fields,
        }
    }

    /// Returns what the function `name` is, if there is one.
    pub(super) fn function(&mut self, name: &'a [u8]) -> Option<Callee> {
        let found = self.functions.of(name, || {
            let name = String::from_utf8_lossy(name);
            Ok::<_, std::convert::Infallible>(builtins::lookup(&name))
        });
        match found {
            Ok(found) => found,
        }
    }
}

/// Takes what was added to `parts` since it had so many, without room for more.
pub(super) fn taken<T>(parts: &mut Vec<T>, since: usize) -> Box<[T]> {
    parts.drain(since.min(parts.len())..).collect()
}
