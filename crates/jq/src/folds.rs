//! Functions for `reduce` and `foreach` whose steps have no result, or several: they keep the state of the fold.

use jaq_core::box_iter::box_once;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{Bind, Native, RunPtr};

use super::runtime::Runtime;
use super::value::Val;

/// Returns the functions that desugared folds call.
pub(super) fn functions() -> impl Iterator<Item = Fun<Runtime>> {
    let table: Vec<Filter<RunPtr<Runtime>>> = vec![
        ("native_new_state", v(1), |mut cv| {
            let state = cv.0.pop_var();
            bome(Ok(Val::from(cv.0.data().states.begin(state))))
        }),
        ("native_state", v(1), |mut cv| {
            let index = cv.0.pop_var();
            bome(Ok(cv.0.data().states.get(&index)))
        }),
        ("native_put_state", v(1), |mut cv| {
            let index = cv.0.pop_var();
            cv.0.data().states.put(&index, cv.1.clone());
            bome(Ok(cv.1))
        }),
        ("native_end_state", v(1), |mut cv| {
            let index = cv.0.pop_var();
            cv.0.data().states.end(&index);
            Box::new(std::iter::empty())
        }),
    ];
    // The last result of a step, or what it began with when it has none.
    let last = Native::<Runtime>::new(|mut cv| {
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
    let last: Fun<Runtime> = ("native_last_state", [Bind::Fun(())].into(), last);
    table.into_iter().map(run::<Runtime>).chain([last])
}
