//! Notices a hook that asks for something else each time it runs: each run leads to the next one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::identity::ChildKey;
use super::observed::{APPLIED, ORDER};
use crate::time::Time;

/// How often a child may be changed by runs without a run between that changes none. A child that follows many others may change
/// some times in a row; nothing that is at rest changes that often.
const LIMIT: u32 = 20;

/// How deep a place is looked for in which two objects differ.
const DEEPEST: usize = 20;

/// What runs did to the children of an object since the last run that left all as they were.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The generation of the object that they are about. Who follows another one goes round in no circle.
    generation: i64,
    /// How often each child was changed, made or removed.
    of: BTreeMap<ChildKey, u32>,
    /// How many runs made one child and removed another one.
    swaps: u32,
    run: Option<Run>,
    /// What goes round in circles, once that is so.
    what: Option<What>,
    /// When the hook runs again, while it is slowed down.
    until: Option<Time>,
}

/// What the run did that is under way, or was the last one.
#[derive(Debug, Default)]
struct Run {
    is_quiet: bool,
    made: Option<ChildKey>,
    removed: Option<ChildKey>,
}

/// What goes round in circles.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum What {
    /// A child differs each time in this place.
    Place(ChildKey, String),
    /// A child is made, or removed, again and again.
    Again(ChildKey),
    /// Each run makes another child and removes the one before.
    Swap(ChildKey, ChildKey),
}

/// What becomes of a child.
#[derive(Debug)]
pub(super) enum ChildChange {
    Made(ChildKey),
    /// It is changed, in this place if that is asked for.
    Changed(ChildKey, Option<String>),
}

impl ChildChange {
    /// Returns of which child it is.
    pub(super) fn child(&self) -> &ChildKey {
        match self {
            Self::Made(child) | Self::Changed(child, _) => child,
        }
    }

    /// Records it as a turn.
    pub(super) fn count_in(&self, turns: &mut Turns) {
        match self {
            Self::Made(child) => turns.made(child),
            Self::Changed(child, place) => turns.changed(child, place.as_ref()),
        }
    }
}

impl Turns {
    /// Begins to look at an object of this generation, after the run before.
    pub(super) fn look(&mut self, generation: i64) {
        self.settle();
        if self.generation != generation {
            self.clear();
            self.generation = generation;
        }
    }

    /// Begins a run.
    pub(super) fn run(&mut self) {
        self.run = Some(Run { is_quiet: true, ..Run::default() });
    }

    /// Ends a run. One that changed no child ends all that was before.
    pub(super) fn settle(&mut self) {
        match self.run.take() {
            Some(Run { is_quiet: true, .. }) => self.clear(),
            Some(Run { made: Some(made), removed: Some(removed), .. }) => {
                self.swaps = self.swaps.saturating_add(1);
                if self.swaps >= LIMIT {
                    self.what = Some(What::Swap(made, removed));
                }
            }
            Some(_) | None => {}
        }
    }

    /// Forgets everything: what the hook reads is something else now.
    pub(super) fn clear(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    /// Returns the first place in which a child is not what it should be, if that is told of with this turn.
    pub(super) fn place(&self, child: &ChildKey, living: &Value, wanted: &Value) -> Option<String> {
        let turns = self.of.get(child).copied().unwrap_or_default();
        if turns.saturating_add(1) < LIMIT {
            return None;
        }
        let place = difference(living, wanted, DEEPEST)?;
        (!place.is_empty()).then(|| place.join("."))
    }

    /// Records that a child is changed, in this place if that is known.
    pub(super) fn changed(&mut self, child: &ChildKey, place: Option<&String>) {
        if self.count(child) >= LIMIT {
            let child = child.clone();
            self.what = Some(match place {
                Some(place) => What::Place(child, place.clone()),
                None => What::Again(child),
            });
        }
    }

    /// Records that a child is made.
    pub(super) fn made(&mut self, child: &ChildKey) {
        if let Some(run) = &mut self.run {
            run.made = Some(child.clone());
        }
        self.again(child);
    }

    /// Records that a child is removed.
    pub(super) fn removed(&mut self, child: &ChildKey) {
        if let Some(run) = &mut self.run {
            run.removed = Some(child.clone());
        }
        self.again(child);
    }

    fn again(&mut self, child: &ChildKey) {
        if self.count(child) >= LIMIT {
            self.what = Some(What::Again(child.clone()));
        }
    }

    fn count(&mut self, child: &ChildKey) -> u32 {
        if let Some(run) = &mut self.run {
            run.is_quiet = false;
        }
        let count = self.of.entry(child.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Returns what goes round in circles, if anything does.
    pub(super) fn circle(&self) -> Option<&What> {
        self.what.as_ref()
    }

    /// Returns how long the next run waits; `None` if it may begin now. `grown` is the wait after so many turns too much.
    pub(super) fn wait(&mut self, now: Time, grown: impl Fn(u32) -> Duration) -> Option<Duration> {
        self.what.as_ref()?;
        match self.until {
            Some(until) if until <= now => {
                self.until = None;
                None
            }
            Some(until) => Some(until.since(now)),
            None => {
                let turns = self.of.values().copied().max().unwrap_or_default().max(self.swaps);
                let wait = grown(turns.saturating_sub(LIMIT).saturating_add(1));
                self.until = Some(now + wait);
                Some(wait)
            }
        }
    }

    /// Returns how many things are kept.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

/// Returns the first place in which an object is not what it should be.
fn difference(living: &Value, wanted: &Value, depth: usize) -> Option<Vec<String>> {
    if depth == 0 {
        return Some(Vec::new());
    }
    let below = |key: String, living: Option<&Value>, wanted: &Value| {
        let mut place = difference(living.unwrap_or(&Value::Null), wanted, depth - 1)?;
        place.insert(0, key);
        Some(place)
    };
    match (living, wanted) {
        (Value::Object(living), Value::Object(wanted)) => {
            // Our own annotations follow from the rest.
            let others = wanted.iter().filter(|(key, _)| ![APPLIED, ORDER].contains(&key.as_str()));
            others.into_iter().find_map(|(key, wanted)| below(key.clone(), living.get(key), wanted))
        }
        (Value::Array(living), Value::Array(wanted)) if living.len() == wanted.len() => {
            let mut both = living.iter().zip(wanted).enumerate();
            both.find_map(|(index, (living, wanted))| below(index.to_string(), Some(living), wanted))
        }
        (living, wanted) => (living != wanted).then(Vec::new),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::snapshot::Key;

    fn child(name: &str) -> ChildKey {
        (0, Key::new("ns", name))
    }

    fn seconds(turns: u32) -> Duration {
        Duration::from_secs(turns.into())
    }

    #[test]
    fn a_child_that_differs_in_each_run_is_a_circle_until_a_run_changes_nothing() {
        let mut turns = Turns::default();
        let (living, wanted) =
            (json!({"data": {"a": "1", "time": "1"}}), json!({"data": {"a": "1", "time": "2"}}));
        for number in 1..=LIMIT {
            assert_eq!(turns.circle(), None, "{number}");
            turns.look(1);
            turns.run();
            let place = turns.place(&child("x"), &living, &wanted);
            turns.changed(&child("x"), place.as_ref());
        }
        turns.look(1);
        assert_eq!(turns.circle(), Some(&What::Place(child("x"), "data.time".to_owned())));
        assert_eq!(turns.wait(Time::START, seconds), Some(seconds(1)));
        assert_eq!(turns.wait(Time::START, seconds), Some(seconds(1)), "it does not grow by being asked for");
        assert_eq!(turns.wait(Time::START + seconds(1), seconds), None);
        turns.run();
        turns.look(1);
        assert_eq!((turns.circle(), turns.len()), (None, 0));
    }

    #[test]
    fn another_generation_is_no_circle() {
        let mut turns = Turns::default();
        for generation in 1..100 {
            turns.look(generation);
            turns.run();
            turns.changed(&child("x"), None);
        }
        assert_eq!(turns.circle(), None);
    }

    #[test]
    fn many_children_are_no_circle_and_one_that_is_replaced_by_another_each_time_is() {
        let mut turns = Turns::default();
        for number in 0..100 {
            turns.look(1);
            turns.run();
            turns.made(&child(&number.to_string()));
        }
        assert_eq!(turns.circle(), None);
        for number in 0..LIMIT {
            turns.look(1);
            turns.run();
            turns.made(&child(&(200 + number).to_string()));
            turns.removed(&child(&(199 + number).to_string()));
        }
        turns.settle();
        assert_eq!(turns.circle(), Some(&What::Swap(child("219"), child("218"))));
    }

    #[test]
    fn a_place_is_named_by_its_keys_and_our_own_annotations_are_none() {
        let place =
            |living: Value, wanted: Value| difference(&living, &wanted, DEEPEST).map(|place| place.join("."));
        let of = |applied: &str, image: &str| json!({"metadata": {"annotations": {APPLIED: applied}}, "spec": {"containers": [{"image": image}]}});
        assert_eq!(place(of("1", "a"), of("2", "b")).as_deref(), Some("spec.containers.0.image"));
        assert_eq!(place(of("1", "a"), of("2", "a")), None);
        assert_eq!(place(json!({}), json!({"data": {"x": 1}})).as_deref(), Some("data"));
    }
}
