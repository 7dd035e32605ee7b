//! Which children a binding may call its own: a kind may have several controllers, of different hooks.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::observed::Metadata;

/// Which children of a kind are those of a binding.
#[derive(Debug)]
pub(super) struct Claim {
    /// How the binding is named on its children.
    own: Arc<str>,
    /// How the others are named that make objects of this kind for the same parents.
    others: BTreeSet<Arc<str>>,
}

impl Claim {
    /// Returns the claim of a binding that is the only one.
    pub(super) fn of(own: Arc<str>) -> Self {
        Self { own, others: BTreeSet::new() }
    }

    /// Sets which others there are. Returns whether that is news.
    pub(super) fn share(&mut self, others: BTreeSet<Arc<str>>) -> bool {
        let is_news = self.others != others;
        self.others = others;
        is_news
    }

    /// Returns how the binding is named on its children.
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Returns whether a child of the parent is one of this binding. One that names nobody is, if nobody else can be meant. One
    /// of a binding that is off, or has another name now, is not: it may come back.
    pub(super) fn includes(&self, child: &Metadata) -> bool {
        child.made_by().map_or(self.others.is_empty(), |by| *by == *self.own)
    }

    /// Returns which of the others a child is of, if it is.
    pub(super) fn rival<'c>(&'c self, child: &Metadata) -> Option<&'c str> {
        self.others.get(child.made_by()?).map(|other| &**other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::reconcile::MADE_BY;
    use crate::hook::snapshot::Item;

    fn child(by: Option<&str>) -> Metadata {
        let object = json!({"metadata": {"annotations": by.map(|by| json!({MADE_BY: by}))}});
        Metadata::of(&Item::unfiltered(object.to_string().as_bytes().into(), true))
    }

    #[test]
    fn a_child_is_of_whom_it_names_and_one_that_names_nobody_of_the_only_one() {
        let mut claim = Claim::of("a/x".into());
        assert!(claim.includes(&child(Some("a/x"))) && claim.includes(&child(None)));
        assert!(!claim.includes(&child(Some("b/y"))));
        assert_eq!(claim.rival(&child(Some("b/y"))), None, "nobody has this name");
        assert!(claim.share(["b/y".into()].into()) && !claim.share(["b/y".into()].into()));
        assert!(claim.includes(&child(Some("a/x"))) && !claim.includes(&child(None)));
        assert_eq!(claim.rival(&child(Some("b/y"))), Some("b/y"));
        assert_eq!((claim.rival(&child(Some("a/x"))), claim.rival(&child(None))), (None, None));
    }
}
