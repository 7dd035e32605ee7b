//! Who says whether a module is on, and in which order: `--applied-module-extenders` of the reference operator.

use strum::{EnumString, VariantArray};

/// One who says whether a module is on, by the name that the reference operator has for it.
#[derive(Clone, Copy, Debug, EnumString, Eq, PartialEq, VariantArray)]
pub enum Extender {
    /// Files of values.
    Static,
    /// Global hooks.
    DynamicallyEnabled,
    /// The ConfigMap, and the Secret over it.
    KubeConfig,
    /// The enabled script, which can only say no, wherever it stands.
    ScriptEnabled,
}

/// All who are asked. Of those before the script, the last one with a word on it counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Extenders(Vec<Extender>);

impl Default for Extenders {
    fn default() -> Self {
        Self(Extender::VARIANTS.to_vec())
    }
}

impl Extenders {
    /// Reads names with commas between them, each at most once; an empty text stands for all in their usual order. `None` if it
    /// is no such list.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let mut extenders = Vec::new();
        for name in text.split(',') {
            let extender: Extender = name.parse().ok()?;
            if extenders.contains(&extender) {
                return None;
            }
            extenders.push(extender);
        }
        Some(Self(extenders))
    }

    /// Returns who is asked, in this order.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = Extender> {
        self.0.iter().copied()
    }

    /// Returns whether one is asked.
    pub fn has(&self, extender: Extender) -> bool {
        self.0.contains(&extender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_each_once_and_only_those_that_there_are() {
        assert_eq!(Extenders::parse(""), Some(Extenders::default()));
        let all = Extenders::parse("Static,DynamicallyEnabled,KubeConfig,ScriptEnabled");
        assert_eq!(all, Some(Extenders::default()));
        let some = Extenders::parse("KubeConfig,Static").unwrap();
        assert_eq!(some.in_order().collect::<Vec<_>>(), [Extender::KubeConfig, Extender::Static]);
        assert!(some.has(Extender::Static) && !some.has(Extender::ScriptEnabled));
        for text in ["static", "Static, KubeConfig", "Static,", ",", "Static,KubeConfig,Static", "Webhook"] {
            assert_eq!(Extenders::parse(text), None, "{text}");
        }
    }
}
