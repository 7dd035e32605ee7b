//! Functions that can run without end, kept within the limits: recursion and `range`.

use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, v};
use jaq_core::{Exn, Native, ValX};

use super::arithmetic::typed;
use super::error_text::fail;
use super::limits::{Exceeded, LONGEST_PATH, go_deeper, go_on, pass};
use super::runtime::Runtime;
use super::value::Val;

/// Returns an exception that no filter can catch, for a run that has passed a limit.
fn stop<'a, T>() -> ValX<'a, T, Val> {
    Err(Exn::halt(0))
}

/// Returns the functions by name.
pub(super) fn functions() -> impl Iterator<Item = Fun<Runtime>> {
    // It is put at the beginning of each definition that may call itself, and returns its input.
    let guard = Native::new(|cv| box_once(if go_deeper() { Ok(cv.1) } else { stop() }))
        .with_paths(|cv| {
            if cv.1.1.skip(LONGEST_PATH).head().is_some() {
                pass(Exceeded::Path);
            }
            box_once(if go_deeper() { Ok(cv.1) } else { stop() })
        })
        .with_update(|cv, update| if go_deeper() { update(cv.1) } else { box_once(stop()) });
    let range = Native::new(|mut cv| {
        let (by, to, from) = (cv.0.pop_var(), cv.0.pop_var(), cv.0.pop_var());
        Box::new(range(from, to, by))
    });
    [("native_guard", v(0), guard), ("native_range", v(3), range)].into_iter()
}

/// Returns the values from `from` up to `to`, without `to`.
fn range<'a>(from: Val, to: Val, by: Val) -> impl Iterator<Item = ValX<'a, Val>> {
    let zero = Val::Int(0);
    let direction = by.cmp(&zero);
    let wrong = [&from, &to, &by]
        .into_iter()
        .find(|value| value.as_float().is_none())
        .map(|other| fail(format!("range expects numbers but got: {}", typed(other))));
    let mut next = Some(wrong.unwrap_or(Ok(from)));
    std::iter::from_fn(move || {
        let current = match next.take()? {
            Ok(current) => current,
            Err(error) => return Some(Err(Exn::from(error))),
        };
        let goes_on = match direction {
            std::cmp::Ordering::Greater => current < to,
            std::cmp::Ordering::Less => current > to,
            std::cmp::Ordering::Equal => current != to,
        };
        if !goes_on {
            return None;
        }
        if !go_on(0) {
            return Some(stop());
        }
        next = Some(current.clone() + by.clone());
        Some(Ok(current))
    })
}
