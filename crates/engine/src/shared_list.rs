//! A sorted list of thousands whose versions share nearly all: to change a few items copies some dozens, not the list.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// How many items a part has at most.
const MOST: usize = 64;

/// A part of a list, never empty.
type Part<T> = Arc<Vec<T>>;

/// A sorted list in parts, which its versions share.
pub(crate) struct SharedList<T> {
    parts: Arc<Vec<Part<T>>>,
}

impl<T> SharedList<T> {
    /// Iterates over all items in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

impl<T: Clone> SharedList<T> {
    /// Returns the list with other items in the places where `order` says of them that they belong: each comes before the items
    /// that are greater, and in the place of the one that is equal. `None` takes that one away.
    pub(crate) fn with<K>(
        &self,
        changes: impl IntoIterator<Item = (K, Option<T>)>,
        order: impl Fn(&T, &K) -> Ordering,
    ) -> Self {
        let mut parts = Vec::clone(&self.parts);
        for (key, item) in changes {
            put(&mut parts, item, |known| order(known, &key));
        }
        Self { parts: Arc::new(parts) }
    }

    /// Returns the items that are not in `new` as they are here, and those that are not here as they are there. What both share is
    /// not looked at.
    pub(crate) fn differing<'a>(
        &'a self,
        new: &'a Self,
        order: impl Fn(&T, &T) -> Ordering,
        is_same: impl Fn(&T, &T) -> bool,
    ) -> (Vec<&'a T>, Vec<&'a T>) {
        let (mut gone, mut came) = (Vec::new(), Vec::new());
        let (mut old, mut new) = (Cursor::new(self), Cursor::new(new));
        loop {
            if old.skips_shared(&mut new) {
                continue;
            }
            match (old.item(), new.item()) {
                (None, None) => return (gone, came),
                (Some(item), Some(other)) if is_same(item, other) => {
                    old.advance();
                    new.advance();
                }
                (Some(item), other) if other.is_none_or(|other| order(item, other) != Ordering::Greater) => {
                    gone.push(item);
                    old.advance();
                }
                (_, other) => {
                    came.extend(other);
                    new.advance();
                }
            }
        }
    }
}

/// Puts an item in its place, or takes away the one that is there.
fn put<T: Clone>(parts: &mut Vec<Part<T>>, item: Option<T>, order: impl Fn(&T) -> Ordering) {
    let begins_behind = |part: &Part<T>| part.first().is_some_and(|first| order(first) == Ordering::Greater);
    let place = parts.partition_point(|part| !begins_behind(part)).saturating_sub(1);
    let Some(part) = parts.get_mut(place) else {
        parts.extend(item.map(|item| Arc::new(vec![item])));
        return;
    };
    match (part.binary_search_by(&order), item) {
        (Err(_), None) => {}
        (Ok(at), Some(item)) => {
            if let Some(known) = Arc::make_mut(part).get_mut(at) {
                *known = item;
            }
        }
        (Err(at), Some(item)) => {
            let items = Arc::make_mut(part);
            items.insert(at, item);
            if items.len() > MOST {
                let rest = items.split_off(MOST / 2);
                parts.insert(place + 1, Arc::new(rest));
            }
        }
        (Ok(at), None) => {
            Arc::make_mut(part).remove(at);
            join(parts, place);
            if place > 0 {
                join(parts, place - 1);
            }
        }
    }
}

/// Puts a part and the one behind it together if both are small.
fn join<T: Clone>(parts: &mut Vec<Part<T>>, place: usize) {
    if parts.get(place).is_some_and(|part| part.is_empty()) {
        parts.remove(place);
        return;
    }
    if let Some([part, behind]) = parts.get(place..place + 2)
        && part.len() + behind.len() <= MOST / 2
    {
        let behind = parts.remove(place + 1);
        if let Some(part) = parts.get_mut(place) {
            Arc::make_mut(part).extend(behind.iter().cloned());
        }
    }
}

/// A place in a list.
struct Cursor<'a, T> {
    /// The part it is in, and those behind.
    parts: &'a [Part<T>],
    /// Which item of that part.
    at: usize,
}

impl<'a, T> Cursor<'a, T> {
    fn new(list: &'a SharedList<T>) -> Self {
        Self { parts: &list.parts, at: 0 }
    }

    fn item(&self) -> Option<&'a T> {
        self.parts.first()?.get(self.at)
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.parts.first().is_some_and(|part| self.at >= part.len()) {
            self.skip();
        }
    }

    fn skip(&mut self) {
        (self.parts, self.at) = (self.parts.get(1..).unwrap_or_default(), 0);
    }

    /// Leaves a part behind at whose beginning both are, if it is one of both lists. Returns whether it is.
    fn skips_shared(&mut self, other: &mut Self) -> bool {
        let is_shared = match (self.parts.first(), other.parts.first()) {
            (Some(part), Some(its)) => (self.at, other.at) == (0, 0) && Arc::ptr_eq(part, its),
            _ => false,
        };
        if is_shared {
            self.skip();
            other.skip();
        }
        is_shared
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { parts: Arc::default() }
    }
}

impl<T: Clone> FromIterator<T> for SharedList<T> {
    /// Takes items in their order.
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        Self { parts: Arc::new(items.chunks(MOST / 2).map(|part| Arc::new(part.to_vec())).collect()) }
    }
}

impl<T: PartialEq> PartialEq for SharedList<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts) || self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for SharedList<T> {}

impl<T: fmt::Debug> fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Item = (u32, char);

    fn list(items: impl IntoIterator<Item = Item>) -> SharedList<Item> {
        items.into_iter().collect()
    }

    fn changed(list: &SharedList<Item>, changes: &[(u32, Option<char>)]) -> SharedList<Item> {
        let changes = changes.iter().map(|(key, letter)| (*key, letter.map(|letter| (*key, letter))));
        list.with(changes, |item, key| item.0.cmp(key))
    }

    fn differing(old: &SharedList<Item>, new: &SharedList<Item>) -> (Vec<Item>, Vec<Item>) {
        let (gone, came) = old.differing(new, |a, b| a.0.cmp(&b.0), |a, b| a == b);
        (gone.into_iter().copied().collect(), came.into_iter().copied().collect())
    }

    /// Returns numbers without an order that are the same each time.
    fn numbers(mut state: u32) -> impl Iterator<Item = u32> {
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        })
    }

    #[test]
    fn it_holds_what_a_map_holds_after_any_changes_and_says_what_differs() {
        for seed in 0..20 {
            let (mut known, mut map) = (SharedList::default(), BTreeMap::new());
            let mut random = numbers(seed);
            for round in 0..60 {
                let before: BTreeMap<u32, char> = map.clone();
                let old = known.clone();
                let mut changes = Vec::new();
                for _ in 0..random.next().unwrap() % 40 {
                    let key = random.next().unwrap() % 300;
                    // First it grows, then it shrinks.
                    let is_gone = random.next().unwrap() % 60 < round;
                    let letter = if random.next().unwrap().is_multiple_of(2) { 'a' } else { 'b' };
                    changes.push((key, (!is_gone).then_some(letter)));
                    if is_gone {
                        map.remove(&key);
                    } else {
                        map.insert(key, letter);
                    }
                }
                known = changed(&old, &changes);
                let pairs =
                    |map: &BTreeMap<u32, char>| map.iter().map(|(key, letter)| (*key, *letter)).collect();
                let (was, is): (Vec<Item>, Vec<Item>) = (pairs(&before), pairs(&map));
                assert_eq!(known.iter().copied().collect::<Vec<_>>(), is, "seed {seed}, round {round}");
                assert_eq!(old.iter().copied().collect::<Vec<_>>(), was, "a version that others have stays");
                let gone = was.iter().filter(|item| !is.contains(item)).copied().collect();
                let came = is.iter().filter(|item| !was.contains(item)).copied().collect();
                assert_eq!(differing(&old, &known), (gone, came), "seed {seed}, round {round}");
                assert!(known.parts.iter().all(|part| (1..=MOST).contains(&part.len())));
                assert_eq!(known, list(is));
            }
        }
    }

    #[test]
    fn a_change_copies_one_part_and_what_is_shared_is_not_looked_at() {
        let old = list((0..10_000).map(|number| (number * 2, 'a')));
        for changes in [[(5_000, Some('b'))], [(5_001, Some('b'))], [(5_000, None)]] {
            let new = changed(&old, &changes);
            let is_replaced = |part: &&Part<Item>| !new.parts.iter().any(|its| Arc::ptr_eq(its, part));
            assert_eq!(old.parts.iter().filter(is_replaced).count(), 1);
            let looked_at = std::cell::Cell::new(0);
            let is_same = |a: &Item, b: &Item| {
                looked_at.set(looked_at.get() + 1);
                a == b
            };
            old.differing(&new, |a, b| a.0.cmp(&b.0), is_same);
            assert!(looked_at.get() <= MOST, "{}", looked_at.get());
        }
    }

    #[test]
    fn a_list_that_became_short_has_few_parts() {
        let all: Vec<u32> = (0..10_000).collect();
        let long = list(all.iter().map(|number| (*number, 'a')));
        let away: Vec<(u32, Option<char>)> =
            all.iter().filter(|number| *number % 100 != 0).map(|number| (*number, None)).collect();
        let short = changed(&long, &away);
        assert_eq!(short.iter().count(), 100);
        assert!(short.parts.len() < 20, "{} parts", short.parts.len());
    }
}
