//! All configurations, and which of them are how far: a question about a few does not lead over all.
//!
//! Whoever may change a configuration leaves its key in `touched`. Those are looked at beside what the index says until
//! [`KnownSources::reindex`]; so an answer is right at any time, and nobody has to say what was changed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::remove_from;
use super::known::{Decided, Source};
use super::pass::Pass;
use super::status::SourcePhase;
use crate::addon::{RegisteredAddon, SourceKey, SourceKind};

/// What a configuration is, or does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Role {
    /// What was decided is what its object said at the start.
    Adopted,
    /// Its object is being deleted.
    Deleting,
    /// Its object depends on others.
    Dependent,
    /// It failed.
    Failed,
    /// It waits until it may fetch.
    Starting,
    /// Bundles of it may be in the store directory that nobody else knows of.
    Storing,
    /// Nothing was decided for its object as it is.
    Undecided,
}

/// All configurations.
#[derive(Debug, Default)]
pub(super) struct KnownSources {
    sources: BTreeMap<SourceKey, Source>,
    touched: BTreeSet<SourceKey>,
    roles: BTreeMap<Role, BTreeSet<SourceKey>>,
    /// Who offers each id, of those that failed.
    offers: BTreeMap<String, BTreeSet<SourceKey>>,
    /// Who could not read each repository.
    unread: BTreeMap<String, BTreeSet<SourceKey>>,
    /// Who failed because of each.
    blocked: BTreeMap<SourceKey, BTreeSet<SourceKey>>,
    /// What was decided of each, as it is in the index.
    indexed: BTreeMap<SourceKey, Arc<Decided>>,
    looked_at: Cell<usize>,
}

impl Role {
    const ALL: [Self; 7] = [
        Self::Adopted,
        Self::Deleting,
        Self::Dependent,
        Self::Failed,
        Self::Starting,
        Self::Storing,
        Self::Undecided,
    ];

    fn is_of(self, source: &Source) -> bool {
        match self {
            Self::Adopted => source.is_adopted,
            Self::Deleting => source.object.as_ref().is_some_and(|object| object.is_deleting),
            Self::Dependent => {
                source.object.as_ref().is_some_and(|object| !object.spec.depends_on.is_empty())
            }
            Self::Failed => source.is_there() && source.phase() == SourcePhase::Failed,
            Self::Starting => matches!(source.pass, Pass::Starting),
            Self::Storing => {
                matches!(source.pass, Pass::Fetching { .. } | Pass::Registering(_) | Pass::Keeping(_))
            }
            Self::Undecided => source.is_there() && !source.is_decided(),
        }
    }
}

impl KnownSources {
    pub(super) fn get(&self, key: &SourceKey) -> Option<&Source> {
        self.sources.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &SourceKey) -> Option<&mut Source> {
        let source = self.sources.get_mut(key)?;
        if !self.touched.contains(key) {
            self.touched.insert(key.clone());
        }
        Some(source)
    }

    /// Returns a configuration, a new one if it is not known.
    pub(super) fn known(&mut self, key: &SourceKey) -> &mut Source {
        self.touched.insert(key.clone());
        self.sources.entry(key.clone()).or_default()
    }

    pub(super) fn remove(&mut self, key: &SourceKey) {
        self.touched.insert(key.clone());
        self.sources.remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Iterates over all.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SourceKey, &Source)> {
        self.sources.iter().inspect(|_| self.look())
    }

    /// Iterates over the configurations of a role.
    pub(super) fn in_role(&self, role: Role) -> impl Iterator<Item = (&SourceKey, &Source)> {
        let all = self.roles.get(&role).into_iter().flatten();
        self.look_up(all).filter(move |(_, source)| role.is_of(source))
    }

    /// Returns whether there is a configuration of a role.
    pub(super) fn has(&self, role: Role) -> bool {
        self.in_role(role).next().is_some()
    }

    /// Iterates over the configurations of a role in the scope of a configuration, that one too.
    pub(super) fn in_scope(
        &self,
        role: Role,
        scope: &SourceKey,
    ) -> impl Iterator<Item = (&SourceKey, &Source)> {
        let namespace = Arc::clone(&scope.namespace);
        let first = SourceKey { kind: scope.kind, namespace, name: "".into() };
        let all = self.roles.get(&role).into_iter().flat_map(move |keys| keys.range(first.clone()..));
        let scope = scope.clone();
        let rest = scope.clone();
        let all = all.take_while(move |key| key.shares_scope_with(&rest));
        let its = self.look_up(all).filter(move |(key, _)| key.shares_scope_with(&scope));
        its.filter(move |(_, source)| role.is_of(source))
    }

    /// Iterates over the configurations that failed because of another one.
    pub(super) fn blocked_by(&self, key: &SourceKey) -> impl Iterator<Item = (&SourceKey, &Source)> {
        let blocked = |decided: &Decided| decided.blocked_by.contains(key);
        let all = self.blocked.get(key).into_iter().flatten();
        self.look_up(all).filter(move |(_, source)| source.decided.as_deref().is_some_and(blocked))
    }

    /// Returns whether another configuration of the scope lists an addon of this one, or may list it for all that is known: it
    /// was not processed yet, or can't read the repository that the addon came from.
    pub(super) fn is_wanted_elsewhere(&self, key: &SourceKey, addon: &RegisteredAddon) -> bool {
        let is_other = |other: &SourceKey| other != key && other.shares_scope_with(key);
        if self.in_scope(Role::Undecided, key).any(|(other, _)| other != key) {
            return true;
        }
        let offers = |source: &Source| {
            let decided = source.decided.as_deref().filter(|_| source.is_there());
            let failed = decided.filter(|decided| decided.status.phase == SourcePhase::Failed);
            failed.is_some_and(|decided| {
                decided.offered.contains(&addon.bundle.id) || decided.unread.contains(&addon.url)
            })
        };
        let of_id = self.offers.get(&addon.bundle.id).into_iter().flatten();
        let all = of_id.chain(self.unread.get(&addon.url).into_iter().flatten());
        self.look_up(all).any(|(other, source)| is_other(other) && offers(source))
    }

    /// Looks up those of the index, and those that may have changed since.
    fn look_up<'k>(
        &'k self,
        keys: impl Iterator<Item = &'k SourceKey>,
    ) -> impl Iterator<Item = (&'k SourceKey, &'k Source)> {
        let settled = keys.filter(|key| !self.touched.contains(*key));
        let all = settled.chain(&self.touched).inspect(|_| self.look());
        all.filter_map(|key| self.sources.get_key_value(key))
    }

    /// Takes into the index what may have changed.
    pub(super) fn reindex(&mut self) {
        for key in std::mem::take(&mut self.touched) {
            let source = self.sources.get(&key);
            for role in Role::ALL {
                let keys = self.roles.entry(role).or_default();
                if source.is_some_and(|source| role.is_of(source)) {
                    if !keys.contains(&key) {
                        keys.insert(key.clone());
                    }
                } else {
                    keys.remove(&key);
                }
            }
            let decided = source.and_then(|source| source.decided.as_ref());
            let is_same = match (self.indexed.get(&key), decided) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                (before, now) => before.is_none() && now.is_none(),
            };
            if is_same {
                continue;
            }
            let decided = decided.map(Arc::clone);
            if let Some(before) = self.indexed.remove(&key) {
                before.offered.iter().for_each(|id| remove_from(&mut self.offers, id, &key));
                before.unread.iter().for_each(|url| remove_from(&mut self.unread, url, &key));
                before.blocked_by.iter().for_each(|other| remove_from(&mut self.blocked, other, &key));
            }
            if let Some(now) = decided {
                if now.status.phase == SourcePhase::Failed {
                    for id in &now.offered {
                        self.offers.entry(id.clone()).or_default().insert(key.clone());
                    }
                    for url in &now.unread {
                        self.unread.entry(url.clone()).or_default().insert(key.clone());
                    }
                }
                for other in &now.blocked_by {
                    self.blocked.entry(other.clone()).or_default().insert(key.clone());
                }
                self.indexed.insert(key, now);
            }
        }
    }

    /// Iterates over the keys of a kind.
    pub(super) fn of_kind(&self, kind: SourceKind) -> impl Iterator<Item = &SourceKey> {
        self.iter().map(|(key, _)| key).filter(move |key| key.kind == kind)
    }

    /// Returns how many configurations were looked at so far, but for those that were asked for by name.
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at.get()
    }

    fn look(&self) {
        self.looked_at.set(self.looked_at.get().wrapping_add(1));
    }
}
