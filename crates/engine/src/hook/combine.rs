//! Merges binding contexts. See docs/hooks.md#how-waiting-runs-are-merged.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::hook::context::{BindingContext, Trigger};
use crate::hook::snapshot::{Change, Key};
use crate::hook::spec::WatchEvent;

/// Appends `later` to contexts that are merged already; of adjacent ones of one group only the last stays.
///
/// The hook sees the snapshots of a group as they are when it runs, so the
/// contexts before the last one would tell it nothing more.
///
/// Of very many, those are dropped that tell the hook nothing: states of objects with a later state of the same object,
/// and further times that one schedule was due.
pub(crate) fn append(contexts: &mut Vec<BindingContext>, later: impl IntoIterator<Item = BindingContext>) {
    for context in later {
        if is_full(contexts) {
            condense(contexts);
        }
        push(contexts, context);
    }
}

fn push(contexts: &mut Vec<BindingContext>, context: BindingContext) {
    match contexts.last_mut().filter(|last| last.group.is_some() && last.group == context.group) {
        Some(last) => *last = context,
        None => contexts.push(context),
    }
}

/// Appends a change to those that wait for a Synchronization, in the same way.
///
/// Additions stay beside the modification that follows: the hook may ask for events of one of the two types only.
pub(crate) fn hold_back(changes: &mut Vec<Change>, change: Change) {
    if is_full(changes) {
        let mut compacted = Compacted::new();
        for change in changes.drain(..) {
            if change.event == WatchEvent::Added || compacted.is_new((0, &change.key), change.event) {
                compacted.list.push(change);
            } else if let Some(earlier) = compacted.earlier((0, &change.key)) {
                earlier.item = change.item;
            }
        }
        *changes = compacted.finish();
    }
    changes.push(change);
}

/// How many contexts wait before any is dropped.
const MANY: usize = 1024;

/// Returns whether there are so many that it is time to look through them.
///
/// A list that was looked through has room for as many as are left in it, so that the work is in proportion.
fn is_full<T>(list: &Vec<T>) -> bool {
    list.len() >= MANY && list.len() == list.capacity()
}

/// Those that stay of a list, and where the last state of each object that exists is among them.
struct Compacted<T> {
    list: Vec<T>,
    places: BTreeMap<(usize, Key), usize>,
}

impl<T> Compacted<T> {
    fn new() -> Self {
        Self { list: Vec::new(), places: BTreeMap::new() }
    }

    /// Returns those that stay, with room for as many again.
    fn finish(self) -> Vec<T> {
        let mut list = Vec::with_capacity(self.list.len().saturating_mul(2).max(MANY));
        list.extend(self.list);
        list
    }

    /// Returns whether an event of this object and binding has to stay for itself: a deletion, and what follows it.
    fn is_new(&mut self, (binding, key): (usize, &Key), event: WatchEvent) -> bool {
        let place = self.list.len();
        match event {
            WatchEvent::Deleted => {
                self.places.remove(&(binding, key.clone()));
                true
            }
            WatchEvent::Added | WatchEvent::Modified => match self.places.entry((binding, key.clone())) {
                Entry::Occupied(_) => false,
                Entry::Vacant(entry) => {
                    entry.insert(place);
                    true
                }
            },
        }
    }

    /// Returns the event that shows the object before.
    fn earlier(&mut self, (binding, key): (usize, &Key)) -> Option<&mut T> {
        let place = self.places.get(&(binding, key.clone()))?;
        self.list.get_mut(*place)
    }
}

/// Drops states of objects that a later one of the same object makes worthless, and schedules that are there already.
/// Deletions stay.
fn condense(contexts: &mut Vec<BindingContext>) {
    let mut compacted = Compacted::new();
    let mut schedules: BTreeSet<Arc<str>> = BTreeSet::new();
    for context in contexts.drain(..) {
        // All times that a schedule was due look the same to its hook: it is shown the snapshots of its run.
        let is_schedule = context.group.is_none() && matches!(context.trigger, Trigger::Schedule);
        if is_schedule && !schedules.insert(Arc::clone(&context.binding)) {
            continue;
        }
        let Trigger::Event { binding, event, key, item, .. } = &context.trigger else {
            push(&mut compacted.list, context);
            continue;
        };
        let of = (*binding, key);
        if context.group.is_some() {
            push(&mut compacted.list, context);
        } else if compacted.is_new(of, *event) {
            compacted.list.push(context);
        } else if let Some(BindingContext { trigger: Trigger::Event { item: shown, .. }, .. }) =
            compacted.earlier(of)
        {
            *shown = Arc::clone(item);
        }
    }
    *contexts = compacted.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::HookKind;
    use crate::hook::context::{Included, Trigger};
    use crate::hook::spec::HookSpec;

    fn merged(contexts: Vec<BindingContext>) -> Vec<BindingContext> {
        let mut compacted = Vec::new();
        append(&mut compacted, contexts);
        compacted
    }

    /// Contexts as letters: a capital one is of the group with that name.
    fn schedule(letter: char, place: usize) -> BindingContext {
        BindingContext {
            binding: format!("{letter}{place}").into(),
            group: letter.is_uppercase().then(|| letter.to_string().into()),
            trigger: Trigger::Schedule,
            snapshots: Included::All,
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
        let text = "{configVersion: v1, kubernetes: [{name: plain, kind: A}]}";
        crate::hook::config::parse("h".into(), HookKind::Module, text).unwrap()
    }

    fn event(name: &str, event: WatchEvent, text: &str) -> BindingContext {
        thread_local! { static SPEC: HookSpec = spec(); }
        let change = Change {
            event,
            key: Key::new("ns", name),
            item: Arc::new(crate::hook::snapshot::Item::unfiltered(text.as_bytes().into(), true)),
        };
        SPEC.with(|spec| BindingContext::event(&spec.kubernetes[0], 0, change))
    }

    fn shown(context: &BindingContext) -> String {
        let Trigger::Event { event, key, item, .. } = &context.trigger else { unreachable!() };
        format!("{event} {} {}", key.name, String::from_utf8_lossy(item.object().unwrap()))
    }

    #[test]
    fn of_very_many_events_the_last_state_of_each_object_and_all_deletions_stay() {
        let mut contexts = Vec::new();
        append(&mut contexts, [event("a", WatchEvent::Added, "0")]);
        for round in 0..100_000 {
            append(&mut contexts, [event("a", WatchEvent::Modified, &round.to_string())]);
            if round == 50_000 {
                append(&mut contexts, [event("a", WatchEvent::Deleted, "gone")]);
                append(&mut contexts, [event("a", WatchEvent::Added, "again")]);
            }
        }
        assert!(contexts.len() <= 2 * MANY, "{}", contexts.len());
        condense(&mut contexts);
        let all: Vec<String> = contexts.iter().map(shown).collect();
        assert_eq!(all, ["Added a 50000", "Deleted a gone", "Added a 99999"]);
    }

    #[test]
    fn of_very_many_changes_that_are_held_back_additions_modifications_and_deletions_stay() {
        use WatchEvent::{Added, Deleted, Modified};
        let change = |what, text: &str| {
            let Trigger::Event { event, key, item, .. } = event("a", what, text).trigger else {
                unreachable!()
            };
            Change { event, key, item }
        };
        let mut held_back = Vec::new();
        for life in ["one", "two"] {
            hold_back(&mut held_back, change(Added, life));
            for round in 0..100_000 {
                hold_back(&mut held_back, change(Modified, &round.to_string()));
            }
            hold_back(&mut held_back, change(Deleted, life));
        }
        assert!(held_back.len() <= 2 * MANY, "{}", held_back.len());
        let mut told: Vec<WatchEvent> = held_back.iter().map(|change| change.event).collect();
        told.dedup();
        assert_eq!(told, [Added, Modified, Deleted, Added, Modified, Deleted]);
        let last = held_back.iter().rfind(|change| change.event == Modified).unwrap();
        assert_eq!(last.item.object(), Some(&b"99999"[..]));
    }

    #[test]
    fn of_very_many_schedules_each_stays_once_before_what_came_behind_it() {
        let due = |name: &str| BindingContext { binding: name.into(), ..schedule('s', 0) };
        let mut contexts = Vec::new();
        append(&mut contexts, [due("tick"), event("a", WatchEvent::Deleted, "gone"), due("tock")]);
        for _ in 0..50_000 {
            append(&mut contexts, [due("tick"), due("tock")]);
        }
        assert!(contexts.len() <= 2 * MANY, "{}", contexts.len());
        condense(&mut contexts);
        assert_eq!(names(&contexts), "tick plain tock");
        append(&mut contexts, (0..500).map(|_| due("tick")));
        assert_eq!(contexts.len(), 503, "few are shown one by one");
    }

    #[test]
    fn few_events_are_shown_one_by_one() {
        let mut contexts = Vec::new();
        append(&mut contexts, (0..1000).map(|round| event("a", WatchEvent::Modified, &round.to_string())));
        assert_eq!(contexts.len(), 1000);
    }

    proptest::proptest! {
        #[test]
        fn merging_twice_or_in_parts_changes_nothing(letters in "[abAB]{0,30}", cut in 0_usize..30) {
            let whole = merged(list(&letters));
            proptest::prop_assert_eq!(merged(whole.clone()), whole.clone());
            let all = list(&letters);
            let (first, rest) = all.split_at(cut.min(all.len()));
            let mut parts = merged(first.to_vec());
            append(&mut parts, rest.to_vec());
            proptest::prop_assert_eq!(parts, whole);
        }
    }
}
