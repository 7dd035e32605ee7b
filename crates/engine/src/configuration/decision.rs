//! Whether a module is on, and who says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::addon::{RegisteredAddon, SourceKey};
use crate::cause::Cause;
use crate::config_object::ConfigObject;
use crate::event::Verdict;
use crate::name::{HookId, HookName, ModuleName};
use crate::time::Time;

/// What a global hook said about a module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DynamicFlag {
    pub(crate) on: bool,
    pub(crate) hook: HookId,
    /// Since when it says so.
    pub(crate) since: Time,
    /// Why the hook ran.
    pub(crate) cause: Cause,
}

/// What is known about a module of a bundle.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sourced {
    pub(super) source: SourceKey,
    /// Whether what the bundle says about `<key>Enabled` counts.
    pub(super) auto_enable: bool,
    /// Whether the module is to be removed, whatever others say.
    pub(super) is_withdrawn: bool,
    /// Whether it was never on when that was decided.
    pub(super) was_never_on: bool,
    /// The namespaces where releases of it may be left.
    pub(super) left_namespaces: BTreeSet<Option<Arc<str>>>,
}

impl Sourced {
    /// Returns what an addon says about its module.
    pub(super) fn of(addon: &RegisteredAddon) -> Self {
        Self {
            source: addon.source.clone(),
            auto_enable: addon.auto_enable,
            is_withdrawn: addon.is_withdrawn,
            was_never_on: addon.was_never_on,
            left_namespaces: addon.left_namespaces.clone(),
        }
    }

    /// Returns whether both say the same about whether the module is on, and about where it belongs.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let said = |sourced: &Self| (sourced.auto_enable, sourced.is_withdrawn);
        self.source == other.source && said(self) == said(other)
    }
}

/// The modules of bundles, by name.
pub(super) type SourcedModules = BTreeMap<ModuleName, Sourced>;

/// Whether a module is on, and who said so.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Decision {
    /// Whether it is on.
    pub(crate) enabled: bool,
    /// Who said what, the last one wins.
    pub(crate) opinions: Vec<Opinion>,
}

/// What one source says about a module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Opinion {
    /// A file of static values.
    Static { on: bool, file: Arc<str> },
    /// A global hook.
    Dynamic { on: bool, hook: HookName },
    /// The ConfigMap, or the Secret over it.
    Config { on: bool, object: ConfigObject, key: String },
    /// The enabled script. It is asked if all others say yes.
    Script(Verdict),
    /// The configuration of sources that brought the module takes it back. No other word counts.
    Withdrawn(SourceKey),
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static { on, file } => write!(f, "{file} says {on}"),
            Self::Dynamic { on, hook } => write!(f, "global hook {hook} says {on}"),
            Self::Config { on, object, key } => write!(f, "{object} key {key} says {on}"),
            Self::Script(verdict) => {
                write!(f, "enabled script says {}", verdict.enabled)?;
                match &verdict.reason {
                    Some(reason) => write!(f, " ({reason})"),
                    None => Ok(()),
                }
            }
            Self::Withdrawn(source) => write!(f, "{source} does not bring it any more"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.opinions.is_empty() {
            return f.write_str("nothing enables it");
        }
        for (place, opinion) in self.opinions.iter().enumerate() {
            if place > 0 {
                f.write_str(", then ")?;
            }
            opinion.fmt(f)?;
        }
        Ok(())
    }
}

impl Opinion {
    /// Returns what it says.
    pub(super) fn is_yes(&self) -> bool {
        match self {
            Self::Static { on, .. } | Self::Dynamic { on, .. } | Self::Config { on, .. } => *on,
            Self::Script(verdict) => verdict.enabled,
            Self::Withdrawn(_) => false,
        }
    }
}
