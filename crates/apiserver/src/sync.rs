//! Locks of state that a panic cannot leave half-changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what is whole between any two statements, so that a panic in another thread does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
