//! The one rule that merges binding contexts.

use std::collections::BTreeSet;

use crate::hook::context::{BindingContext, Trigger};
use crate::hook::spec::{ConfigVersion, HookSpec};

/// Why a hook runs, what it is shown, and what its success unlocks: the part of a task that can be merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contexts {
    /// What the hook is shown, in order.
    pub shown: Vec<BindingContext>,
    /// The kubernetes bindings, by index, whose events wait for the success of this run.
    ///
    /// They are kept apart from the contexts: a context of a group can be
    /// dropped, and a Synchronization can be one that the hook is not run for.
    pub synchronizes: BTreeSet<usize>,
}

impl Contexts {
    /// Returns the contexts of a task for one reason.
    ///
    /// The hook is not shown a Synchronization that it did not ask for.
    pub fn of(spec: &HookSpec, context: BindingContext) -> Self {
        let Trigger::Synchronization { binding } = context.trigger else {
            return Self { shown: vec![context], synchronizes: BTreeSet::new() };
        };
        let asked = spec.kubernetes.get(binding).is_none_or(|binding| binding.execute_on_synchronization);
        let shown = if asked { vec![context] } else { Vec::new() };
        Self { shown, synchronizes: BTreeSet::from([binding]) }
    }

    /// Returns whether nothing has to run; what it synchronizes is done at once.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns whether a task with these contexts may take in the tasks behind it when it begins.
    ///
    /// A first list without a group stands for itself, points of a lifecycle do so too, and contexts of the oldest
    /// dialect are never merged.
    pub fn can_take_in(&self, version: ConfigVersion) -> bool {
        let Some(first) = self.shown.first() else { return false };
        version == ConfigVersion::V1
            && match first.trigger {
                Trigger::Event { .. } | Trigger::Schedule => true,
                Trigger::Lifecycle(_) => false,
                Trigger::Synchronization { .. } => first.group.is_some(),
            }
    }

    /// Appends the contexts of a later task and merges the whole.
    pub fn take_in(&mut self, later: Self) {
        append(&mut self.shown, later.shown);
        self.synchronizes.extend(later.synchronizes);
    }
}

/// Returns the contexts in their order; of adjacent ones of one group only the last stays.
///
/// The hook sees the snapshots of a group as they are when it runs, so the
/// contexts before the last one would tell it nothing more.
pub fn merged(contexts: Vec<BindingContext>) -> Vec<BindingContext> {
    let mut kept = Vec::with_capacity(contexts.len());
    append(&mut kept, contexts);
    kept
}

/// Appends `later` to contexts that are merged already, and merges the whole.
pub fn append(contexts: &mut Vec<BindingContext>, later: impl IntoIterator<Item = BindingContext>) {
    for context in later {
        match contexts.last_mut().filter(|last| last.group.is_some() && last.group == context.group) {
            Some(last) => *last = context,
            None => contexts.push(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::HookKind;
    use crate::hook::spec::Lifecycle;

    /// Contexts as letters: a capital one is of the group with that name.
    fn schedule(letter: char, place: usize) -> BindingContext {
        BindingContext {
            binding: format!("{letter}{place}").into(),
            group: letter.is_uppercase().then(|| letter.to_string().into()),
            trigger: Trigger::Schedule,
            snapshots: crate::hook::context::Included::All,
        }
    }

    fn names(contexts: &[BindingContext]) -> String {
        contexts.iter().map(|context| &*context.binding).collect::<Vec<_>>().join(" ")
    }

    fn list(letters: &str) -> Vec<BindingContext> {
        letters.chars().enumerate().map(|(place, letter)| schedule(letter, place)).collect()
    }

    #[test]
    fn of_adjacent_contexts_of_one_group_the_last_stays() {
        for (letters, expected) in [
            ("", ""),
            ("a", "a0"),
            ("aaa", "a0 a1 a2"),
            ("A", "A0"),
            ("AAA", "A2"),
            ("AAxA", "A1 x2 A3"),
            ("AABBA", "A1 B3 A4"),
            ("xAAx", "x0 A2 x3"),
            ("ABAB", "A0 B1 A2 B3"),
            ("AAAxAyA", "A2 x3 A4 y5 A6"),
        ] {
            assert_eq!(names(&merged(list(letters))), expected, "{letters}");
        }
    }

    fn spec() -> HookSpec {
        let text = "
configVersion: v1
kubernetes:
- {name: plain, kind: A}
- {name: grouped, kind: B, group: G}
- {name: quiet, kind: C, group: G, executeHookOnSynchronization: false}
";
        crate::hook::config::parse("h".into(), HookKind::Module, text).unwrap()
    }

    fn synchronization(spec: &HookSpec, index: usize) -> Contexts {
        Contexts::of(spec, BindingContext::synchronization(&spec.kubernetes[index], index))
    }

    #[test]
    fn what_a_run_synchronizes_survives_the_merging() {
        let spec = spec();
        let mut contexts = synchronization(&spec, 1);
        contexts.take_in(synchronization(&spec, 2));
        contexts.take_in(Contexts { shown: vec![schedule('G', 0)], synchronizes: BTreeSet::new() });
        assert_eq!(names(&contexts.shown), "G0");
        assert_eq!(contexts.synchronizes, BTreeSet::from([1, 2]));
    }

    #[test]
    fn a_synchronization_that_was_not_asked_for_shows_nothing() {
        let spec = spec();
        let contexts = synchronization(&spec, 2);
        assert!(contexts.is_empty() && !contexts.can_take_in(ConfigVersion::V1));
        assert_eq!(contexts.synchronizes, BTreeSet::from([2]));
    }

    #[test]
    fn only_events_schedules_and_grouped_synchronizations_take_in_what_follows() {
        let spec = spec();
        let lifecycle = Contexts::of(&spec, BindingContext::lifecycle(Lifecycle::BeforeHelm));
        let schedule = Contexts::of(&spec, schedule('a', 0));
        for (contexts, expected) in [
            (synchronization(&spec, 0), false),
            (synchronization(&spec, 1), true),
            (lifecycle, false),
            (schedule.clone(), true),
            (Contexts::default(), false),
        ] {
            assert_eq!(contexts.can_take_in(ConfigVersion::V1), expected, "{contexts:?}");
        }
        assert!(!schedule.can_take_in(ConfigVersion::V0));
    }

    proptest::proptest! {
        #[test]
        fn merging_twice_or_in_parts_changes_nothing(letters in "[abAB]{0,30}", cut in 0_usize..30) {
            let whole = merged(list(&letters));
            proptest::prop_assert_eq!(merged(whole.clone()), whole.clone());
            let all = list(&letters);
            let (first, rest) = all.split_at(cut.min(all.len()));
            let mut parts = Contexts { shown: merged(first.to_vec()), ..Contexts::default() };
            parts.take_in(Contexts { shown: rest.to_vec(), ..Contexts::default() });
            proptest::prop_assert_eq!(parts.shown, whole);
        }
    }
}
