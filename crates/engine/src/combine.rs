//! The one rule that merges binding contexts.

use crate::hook::context::BindingContext;

/// Appends `later` to contexts that are merged already; of adjacent ones of one group only the last stays.
///
/// The hook sees the snapshots of a group as they are when it runs, so the
/// contexts before the last one would tell it nothing more.
pub(crate) fn append(contexts: &mut Vec<BindingContext>, later: impl IntoIterator<Item = BindingContext>) {
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
    use crate::hook::context::{Included, Trigger};

    fn merged(contexts: Vec<BindingContext>) -> Vec<BindingContext> {
        let mut kept = Vec::new();
        append(&mut kept, contexts);
        kept
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
