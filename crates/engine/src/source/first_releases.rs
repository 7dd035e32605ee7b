//! Which modules of namespaces are about to have a release for the first time.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::addon::{RegisteredAddon, SourceKey, SourceKind};
use crate::name::ModuleName;

/// What is on record about releases of modules of namespaces, and what is to be.
#[derive(Debug, Default)]
pub(super) struct FirstReleases {
    /// The modules whose first revision is due.
    pub(super) due: BTreeSet<ModuleName>,
    /// The modules whose runs do not begin, as these are registered no more.
    pub(super) held_back: BTreeSet<ModuleName>,
    /// Whether there is one more than when that was looked at.
    pub(super) is_wanted: bool,
    /// The modules, behind their namespaces, of which something else may be on record now.
    pub(super) changed: BTreeSet<(Arc<str>, ModuleName)>,
}

impl FirstReleases {
    /// Records that modules of these addons may have other addons now.
    pub(super) fn changed<'a>(&mut self, addons: impl Iterator<Item = &'a RegisteredAddon>) {
        self.changed.extend(addons.filter_map(guest_module));
    }
}

/// Returns the module of an addon behind the namespace of its configuration, if that is of one.
pub(super) fn guest_module(addon: &RegisteredAddon) -> Option<(Arc<str>, ModuleName)> {
    let SourceKey { kind, namespace, .. } = &addon.source;
    (*kind == SourceKind::Namespaced).then(|| (Arc::clone(namespace), addon.bundle.name.clone()))
}
