//! What a configuration would bring about if it were applied as it is in a file.

use super::{Bundle, SourceKey};
use crate::name::ModuleName;

/// What a configuration would bring about.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcePlan {
    /// The configuration.
    pub source: SourceKey,
    /// What is wrong, one line each. If there is anything, nothing of it would be registered.
    pub problems: Vec<String>,
    /// The modules that it would bring, change or take away, or that would wait, by name.
    pub modules: Vec<PlannedModule>,
}

/// What would become of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedModule {
    /// Its name.
    pub name: ModuleName,
    /// What would become of it.
    pub change: PlannedChange,
    /// The bundle that it has.
    pub from: Option<Bundle>,
    /// The bundle that it would have.
    pub to: Option<Bundle>,
    /// Whether it is on now; of one that comes, whether the ConfigMap switches it on.
    pub is_on: bool,
    /// Why another version would not come, if one would be held back.
    pub held_back: Option<String>,
}

/// What would become of a module.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PlannedChange {
    /// It would have another bundle.
    Change,
    /// It would be there.
    Come,
    /// It would be there no more.
    Go,
    /// It would go on as it is.
    Stay,
}

impl SourcePlan {
    /// Returns whether a module would come, change or go.
    pub fn has_changes(&self) -> bool {
        self.modules.iter().any(|module| module.change != PlannedChange::Stay)
    }
}
