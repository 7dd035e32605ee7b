//! Why a task exists: a chain of causes back to something outside.

use std::fmt;
use std::sync::Arc;

/// One link of a chain of causes. The chain ends at an outside event.
///
/// Printed from the outside in, as people tell it:
/// `ConfigMap ops/addon-operator key webEnabled rv 123 → converge 2 → module web`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cause(Arc<Link>);

#[derive(Debug, Eq, PartialEq)]
struct Link {
    what: String,
    because: Option<Cause>,
}

/// How many links a chain keeps; a hook that triggers itself can't grow it for ever.
const LONGEST_CHAIN: usize = 12;

/// What the start of the operator is called.
const START: &str = "start";

impl Cause {
    /// Returns the beginning of the chain of everything that the start of the operator leads to.
    pub fn start() -> Self {
        Self::outside(START)
    }

    /// Returns whether the chain begins with the start of the operator.
    pub fn is_of_start(&self) -> bool {
        self.links().first() == Some(&START)
    }

    /// Returns the beginning of a chain: something that happened outside.
    pub fn outside(what: impl Into<String>) -> Self {
        Self(Arc::new(Link { what: what.into(), because: None }))
    }

    /// Returns a chain that goes on from this one with `what`.
    ///
    /// A chain that has become too long keeps its beginning and its last links.
    #[must_use]
    pub fn then(&self, what: impl Into<String>) -> Self {
        let links = self.links();
        let mut because = self.clone();
        if links.len() >= LONGEST_CHAIN {
            let first = links.first().copied().unwrap_or_default();
            let kept = links.iter().skip(links.len() - LONGEST_CHAIN / 2);
            because = kept.fold(Self::outside(first).link("…"), |chain, what| chain.link(*what));
        }
        because.link(what)
    }

    fn link(&self, what: impl Into<String>) -> Self {
        Self(Arc::new(Link { what: what.into(), because: Some(self.clone()) }))
    }

    /// Returns the links from the outside event on.
    pub fn links(&self) -> Vec<&str> {
        let mut links = vec![self.0.what.as_str()];
        let mut next = self.0.because.as_ref();
        while let Some(cause) = next {
            links.push(&cause.0.what);
            next = cause.0.because.as_ref();
        }
        links.reverse();
        links
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.links().join(" → "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_reads_from_the_outside_in() {
        let cause = Cause::outside("start").then("converge 1").then("module web");
        assert_eq!(cause.to_string(), "start → converge 1 → module web");
    }

    #[test]
    fn a_chain_stays_short_and_keeps_its_beginning() {
        let mut cause = Cause::outside("start");
        for n in 0..1000 {
            cause = cause.then(format!("hook {n}"));
        }
        let links = cause.links();
        assert!(links.len() <= LONGEST_CHAIN + 1, "{cause}");
        assert_eq!(links.first(), Some(&"start"));
        assert_eq!(links.last(), Some(&"hook 999"));
    }
}
