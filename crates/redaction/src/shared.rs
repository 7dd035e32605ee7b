//! Texts to mask that are collected once for as long as the values are the same.
//!
//! Each failure, page and line of a hook is masked with the values of the moment. To collect and sort those of a large section
//! takes longer than all that is masked with them, and who waits meanwhile may be asked whether it is alive.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;

use super::Secrets;

/// For how many sets of values the texts are kept.
const MOST: usize = 4;

/// From how many texts on they are kept. Fewer are collected faster than anything that would show.
const MANY: usize = 256;

/// The texts that were asked for last, at the end the last ones.
static KNOWN: Mutex<VecDeque<Known>> = Mutex::new(VecDeque::new());

struct Known {
    values: Vec<Weak<Value>>,
    secrets: Arc<Secrets<'static>>,
}

impl Known {
    fn is_of(&self, values: &[&Arc<Value>]) -> bool {
        self.values.len() == values.len()
            && self.values.iter().zip(values).all(|(known, value)| known.as_ptr() == Arc::as_ptr(value))
    }

    /// Reports whether anybody has these values still.
    fn is_in_use(&self) -> bool {
        self.values.iter().all(|value| value.strong_count() > 0)
    }
}

impl Secrets<'static> {
    /// Returns the same texts as [`Secrets::of`]. Many of them are not collected again while these values are in use.
    pub fn shared<'v>(values: impl IntoIterator<Item = &'v Arc<Value>>) -> Arc<Self> {
        // What is configured nowhere is another value each time.
        let values: Vec<&Arc<Value>> = values.into_iter().filter(|value| !value.is_null()).collect();
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(Known::is_in_use);
        let place = known.iter().position(|known| known.is_of(&values));
        if let Some(found) = place.and_then(|place| known.remove(place)) {
            let secrets = Arc::clone(&found.secrets);
            known.push_back(found);
            return secrets;
        }
        // Nobody waits for whoever collects them.
        drop(known);
        let read: Vec<&Value> = values.iter().map(|value| &***value).collect();
        let secrets = Arc::new(Secrets::of(&read).into_owned());
        if secrets.texts.len() >= MANY {
            let values = values.into_iter().map(Arc::downgrade).collect();
            let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            known.push_back(Known { values, secrets: Arc::clone(&secrets) });
            let surplus = known.len().saturating_sub(MOST);
            known.drain(..surplus);
        }
        secrets
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn many(word: &str) -> Arc<Value> {
        Arc::new((0..MANY).map(|n| format!("{word}-{n}")).collect::<Vec<_>>().into())
    }

    #[test]
    fn slip_02_texts_are_collected_once_for_as_long_as_the_values_are_the_same() {
        let (one, other) = (many("one"), many("other"));
        let nothing = || Arc::new(Value::Null);
        let first = Secrets::shared([&one, &other, &nothing()]);
        assert_eq!(first.hide("one-77 other-88 third-99"), "****** ****** third-99");
        let again = Secrets::shared([&one, &nothing(), &other]);
        assert!(Arc::ptr_eq(&first, &again));
        let less = Secrets::shared([&one]);
        assert_eq!(less.hide("one-77 other-88"), "****** other-88");
        assert!(Arc::ptr_eq(&first, &Secrets::shared([&one, &other])), "both are kept");
        let same = Arc::new((*one).clone());
        assert!(
            !Arc::ptr_eq(&less, &Secrets::shared([&same])),
            "other values are other ones, whatever they say"
        );
        let little = Arc::new(json!(["little"]));
        assert!(!Arc::ptr_eq(&Secrets::shared([&little]), &Secrets::shared([&little])), "few are not kept");
    }

    #[test]
    fn texts_of_values_that_nobody_has_any_more_are_not_kept() {
        let gone = many("gone");
        let texts = Arc::downgrade(&Secrets::shared([&gone]));
        assert!(texts.upgrade().is_some());
        drop(gone);
        drop(Secrets::shared([]));
        assert!(texts.upgrade().is_none());
    }
}
