//! What a controller knows of the ends of objects, for whoever looks after these next: a binding may get another queue, name or file
//! at any moment.
//!
//! That their hook said that they are finalized is written on the objects. But what the next one is shown first may be older than that,
//! and so it would ask its hook once more.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::key_state::End;
use super::single::Controller;

/// What is known of the ends of objects that no controller looks after at the moment.
#[derive(Debug, Default)]
pub(super) struct Inheritance(BTreeMap<Estate, BTreeMap<Arc<str>, End>>);

/// The kind of objects, and the finalizer that they have: who names that comes next.
type Estate = (String, String);

impl Inheritance {
    /// Keeps what a controller knows that is no more.
    pub(super) fn keep(&mut self, of: &Controller) {
        let Some(estate) = of.estate() else { return };
        let seen = of.keys.iter().filter(|(_, state)| state.end != End::Open);
        let seen = seen.filter_map(|(key, state)| Some((&of.metadata_of(key)?.uid, state.end)));
        // What its list did not show is gone.
        let unseen = of.ends.iter().filter(|_| !of.is_listed()).map(|(uid, end)| (uid, *end));
        let ends: Vec<_> = seen.chain(unseen).map(|(uid, end)| (Arc::clone(uid), end)).collect();
        if !ends.is_empty() {
            self.0.entry(estate).or_default().extend(ends);
        }
    }

    /// Gives a controller that begins what is kept for it.
    pub(super) fn hand_over(&mut self, to: &mut Controller) {
        to.ends = to.estate().and_then(|estate| self.0.remove(&estate)).unwrap_or_default();
    }

    /// Forgets what nobody asks for any more: no object has the finalizer of this one.
    pub(super) fn forget(&mut self, of: &Controller) {
        of.estate().map(|estate| self.0.remove(&estate));
    }

    /// Returns how many ends are kept.
    pub(super) fn entries(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}

impl Controller {
    /// Returns what another one has in common with it that may look after its objects.
    fn estate(&self) -> Option<Estate> {
        Some((self.kind.to_string(), self.binding.finalizer.clone()?))
    }
}
