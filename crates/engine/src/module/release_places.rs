//! Where the release of a module is, and where it was before: a place is left when the release is in the new one.

use std::collections::BTreeSet;

use crate::release_target::ReleaseTarget;

/// Where there is, or may be, a release of a module.
///
/// ```text
/// enter(a) ─▶ current: a ─▶ enter(b) ─▶ current: b, left: a ─▶ removed_left() ─▶ current: b
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ReleasePlaces {
    current: Option<ReleaseTarget>,
    left: BTreeSet<ReleaseTarget>,
}

impl ReleasePlaces {
    /// Records that a release is about to be written there. Returns where it was before, if that was elsewhere.
    pub(super) fn enter(&mut self, target: &ReleaseTarget) -> Option<ReleaseTarget> {
        self.left.remove(target);
        let before = self.current.replace(target.clone()).filter(|before| before != target)?;
        self.left.insert(before.clone());
        Some(before)
    }

    /// Records that there is a release in a place other than `wanted`, or there.
    pub(super) fn found(&mut self, target: &ReleaseTarget, wanted: &ReleaseTarget) {
        if target == wanted {
            self.current.get_or_insert_with(|| target.clone());
        } else if self.current.as_ref() != Some(target) {
            self.left.insert(target.clone());
        }
    }

    /// Returns where the release was before, and where it still is.
    pub(super) fn next_left(&self) -> Option<&ReleaseTarget> {
        self.left.first()
    }

    /// Returns where there is something to remove when the module is removed.
    pub(super) fn next(&self) -> Option<&ReleaseTarget> {
        self.current.as_ref().or_else(|| self.left.first())
    }

    /// Returns whether there is, or may be, a release of the module in a place.
    pub(super) fn has(&self, target: &ReleaseTarget) -> bool {
        self.current.as_ref() == Some(target) || self.left.contains(target)
    }

    /// Iterates over where there was a release before, and where there may still be one.
    pub(super) fn all_left(&self) -> impl Iterator<Item = &ReleaseTarget> {
        self.left.iter()
    }

    /// Records that what is there is none of the module's. Returns whether it was where its release is.
    pub(super) fn give_up(&mut self, target: &ReleaseTarget) -> bool {
        let was_there = self.current.as_ref() == Some(target);
        self.removed(target);
        was_there
    }

    /// Records that nothing is there any more.
    pub(super) fn removed(&mut self, target: &ReleaseTarget) {
        self.left.remove(target);
        if self.current.as_ref() == Some(target) {
            self.current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_left_until_its_release_is_removed() {
        let [a, b] = ["a", "b"].map(ReleaseTarget::of_operator);
        let mut places = ReleasePlaces::default();
        assert_eq!((places.enter(&a), places.enter(&a), places.next_left()), (None, None, None));
        assert_eq!(
            (places.enter(&b), places.next_left(), places.next()),
            (Some(a.clone()), Some(&a), Some(&b))
        );
        assert_eq!((places.enter(&a), places.next_left()), (Some(b.clone()), Some(&b)));
        places.removed(&b);
        assert_eq!((places.next_left(), places.next()), (None, Some(&a)));
        places.found(&b, &a);
        places.removed(&a);
        assert_eq!((places.next(), places.next_left()), (Some(&b), Some(&b)));
    }
}
