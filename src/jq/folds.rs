//! States of `reduce` and `foreach` whose steps have no result, or several.

use std::cell::RefCell;

use jaq_core::box_iter::box_once;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{Bind, Native, RunPtr};

use super::inputs::Kind;
use super::value::Val;

/// What the folds of a run have come to. A state is named by its place.
#[derive(Default)]
pub(super) struct States(RefCell<Vec<Option<Val>>>);

impl States {
    fn begin(&self, state: Val) -> usize {
        let mut states = self.0.borrow_mut();
        states.push(Some(state));
        states.len() - 1
    }

    fn get(&self, place: &Val) -> Val {
        let states = self.0.borrow();
        let state = of(place).and_then(|place| states.get(place));
        state.and_then(Clone::clone).unwrap_or(Val::Null)
    }

    fn put(&self, place: &Val, state: Val) {
        let mut states = self.0.borrow_mut();
        if let Some(slot) = of(place).and_then(|place| states.get_mut(place)) {
            *slot = Some(state);
        }
    }

    /// Forgets a state, and the place of those that nothing follows.
    fn end(&self, place: &Val) {
        let mut states = self.0.borrow_mut();
        if let Some(slot) = of(place).and_then(|place| states.get_mut(place)) {
            *slot = None;
        }
        while let Some(None) = states.last() {
            states.pop();
        }
    }
}

fn of(place: &Val) -> Option<usize> {
    place.as_index().and_then(|place| usize::try_from(place).ok())
}

/// Returns the functions that rewritten folds call.
pub(super) fn funs() -> impl Iterator<Item = Fun<Kind>> {
    let table: Vec<Filter<RunPtr<Kind>>> = vec![
        ("native_new_state", v(1), |mut cv| {
            let state = cv.0.pop_var();
            bome(Ok(Val::from(cv.0.data().states.begin(state))))
        }),
        ("native_state", v(1), |mut cv| {
            let place = cv.0.pop_var();
            bome(Ok(cv.0.data().states.get(&place)))
        }),
        ("native_put_state", v(1), |mut cv| {
            let place = cv.0.pop_var();
            cv.0.data().states.put(&place, cv.1.clone());
            bome(Ok(cv.1))
        }),
        ("native_end_state", v(1), |mut cv| {
            let place = cv.0.pop_var();
            cv.0.data().states.end(&place);
            Box::new(std::iter::empty())
        }),
    ];
    // The last result of a step, or what it began with when it has none.
    let last = Native::<Kind>::new(|mut cv| {
        let (step, context) = cv.0.pop_fun();
        let before = cv.1.clone();
        let after = step.run((context, cv.1)).try_fold(None, |_, result| result.map(Some));
        box_once(after.map(|after| after.unwrap_or(before)))
    })
    .with_paths(|mut cv| {
        let (step, context) = cv.0.pop_fun();
        let before = cv.1.clone();
        let after = step.paths((context, cv.1)).try_fold(None, |_, result| result.map(Some));
        box_once(after.map(|after| after.unwrap_or(before)))
    });
    let last: Fun<Kind> = ("native_last_state", [Bind::Fun(())].into(), last);
    table.into_iter().map(run::<Kind>).chain([last])
}
