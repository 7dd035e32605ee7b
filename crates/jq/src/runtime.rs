//! What filters run with beside their input: further inputs, and the states of folds.

use std::cell::RefCell;

use jaq_core::data::HasLut;
use jaq_core::{DataT, Lut};

use super::value::Val;

/// Where `input` and `inputs` read from.
pub(super) trait Inputs {
    /// Returns the next input, or why it can't be read; `None` at the end.
    fn next(&self) -> Option<Result<Val, String>>;
}

/// There are no further inputs.
pub(super) struct NoInputs;

impl Inputs for NoInputs {
    fn next(&self) -> Option<Result<Val, String>> {
        None
    }
}

/// The types that filters run with, for the engine.
pub(super) struct Runtime;

/// What a running filter can reach.
#[derive(Clone)]
pub(super) struct RunData<'a> {
    pub(super) lut: &'a Lut<Runtime>,
    pub(super) inputs: &'a dyn Inputs,
    pub(super) states: &'a FoldStates,
}

impl<'a> HasLut<'a, Runtime> for RunData<'a> {
    fn lut(&self) -> &'a Lut<Runtime> {
        self.lut
    }
}

impl DataT for Runtime {
    type V<'a> = Val;
    type Data<'a> = RunData<'a>;
}

/// The states of the folds that run. A filter refers to a state by its index.
#[derive(Default)]
pub(super) struct FoldStates(RefCell<Vec<Option<Val>>>);

impl FoldStates {
    /// Keeps a new state and returns its index.
    pub(super) fn begin(&self, state: Val) -> usize {
        let mut states = self.0.borrow_mut();
        states.push(Some(state));
        states.len() - 1
    }

    /// Returns a state; null where there is none.
    pub(super) fn get(&self, index: &Val) -> Val {
        let states = self.0.borrow();
        let state = as_usize(index).and_then(|index| states.get(index));
        state.and_then(Clone::clone).unwrap_or(Val::Null)
    }

    /// Replaces a state.
    pub(super) fn put(&self, index: &Val, state: Val) {
        let mut states = self.0.borrow_mut();
        if let Some(slot) = as_usize(index).and_then(|index| states.get_mut(index)) {
            *slot = Some(state);
        }
    }

    /// Removes a state. The indices behind the last state that is left are used again.
    pub(super) fn end(&self, index: &Val) {
        let mut states = self.0.borrow_mut();
        if let Some(slot) = as_usize(index).and_then(|index| states.get_mut(index)) {
            *slot = None;
        }
        while let Some(None) = states.last() {
            states.pop();
        }
    }
}

fn as_usize(index: &Val) -> Option<usize> {
    index.as_index().and_then(|index| usize::try_from(index).ok())
}
