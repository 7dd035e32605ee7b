//! Pictures of configurations of module sources.

use std::time::Duration;

use super::TaskView;
use crate::addon::{Digest, SourceKey};
use crate::name::ModuleName;

/// A configuration of module sources.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceView {
    /// Which one.
    pub key: SourceKey,
    /// `New`, `Pending`, `Ready` or `Failed`. One that was ready and is being deleted is `Pending`.
    pub phase: &'static str,
    /// Why, in one line.
    pub message: String,
    /// How many of its modules are in force, of how many it offers or retains, as `1/2`; empty before the first status.
    pub modules: String,
    /// The generation of its object.
    pub generation: i64,
    /// The generation that its status is about.
    pub observed_generation: i64,
    /// Whether its object is being deleted.
    pub is_deleting: bool,
    /// What it waits for before it is processed, if others are to be ready first.
    pub waits_for: Option<String>,
    /// Whether nothing is done for it: `spec.suspend` is true.
    pub is_suspended: bool,
    /// Whether its status is not written any more, since somebody else writes it.
    pub is_left_alone: bool,
    /// When its status was written last, as that says; empty before the first time.
    pub processed_at: String,
    /// How long until it is processed again by itself.
    pub processed_in: Option<Duration>,
    /// The work on it, if there is any.
    pub work: Option<TaskView>,
    /// Its repositories, in the order of its spec.
    pub repositories: Vec<SourceRepositoryView>,
}

/// A repository of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRepositoryView {
    /// Its URL as the spec has it, without what is secret in it.
    pub url: String,
    /// `Ready` or `Failed`.
    pub phase: &'static str,
    /// Why it failed, in one word; empty if it did not.
    pub reason: String,
    /// Why it failed, in one line.
    pub message: String,
    /// Its addons.
    pub addons: Vec<SourceAddonView>,
}

/// An addon of a repository.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceAddonView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its bundle; empty if there is none.
    pub digest: String,
    /// `Ready` or `Failed`.
    pub phase: &'static str,
    /// Why it failed, in one word; empty if it did not.
    pub reason: String,
    /// Why it failed, in one line.
    pub message: String,
    /// Its module, and what that does: `Registered`, `Enabled`, `Running`, `Error` or `Retained`; or what keeps this version from
    /// it: `RolledBack` or `Waiting`.
    pub module: Option<(ModuleName, &'static str)>,
    /// Why its module does that, in one line; empty if there is nothing to say.
    pub module_message: String,
    /// For how many addons this stands that are not listed; 0 for an addon.
    pub unlisted: usize,
}

/// Where a module comes from that is in no directory of files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ModuleOriginView {
    /// The configuration that brought it.
    pub source: SourceKey,
    /// The URL of its repository, without what is secret in it.
    pub url: String,
    /// The version of its bundle.
    pub version: String,
    /// The digest of its bundle.
    pub digest: Digest,
    /// Whether it goes on although it is registered no more.
    pub is_retained: bool,
    /// Why another version that its repository offers is not in force, if there is one.
    pub held_back: Option<String>,
}

impl SourceView {
    /// Returns a name that no other one has: `cac/platform` or `ac/team/tools`.
    pub fn address(&self) -> String {
        self.key.address()
    }

    /// Returns whether a person means this one: `NAME`, `NAMESPACE/NAME`, or one of both behind a kind.
    pub fn is_called(&self, text: &str) -> bool {
        let SourceKey { kind, namespace, name } = &self.key;
        let own = if namespace.is_empty() { name.to_string() } else { format!("{namespace}/{name}") };
        let names = [name.to_string(), own.clone()];
        let is_kind = |word: &str| {
            let word = word.to_lowercase();
            let long = kind.as_str().to_lowercase();
            word == kind.short() || word == long || word.strip_suffix('s') == Some(&long)
        };
        names.iter().any(|name| name == text)
            || text.split_once('/').is_some_and(|(word, rest)| is_kind(word) && rest == own)
    }

    /// Iterates over the addons whose versions do not come, or not yet.
    pub fn held_back(&self) -> impl Iterator<Item = &SourceAddonView> {
        let is_held = |state: &str| matches!(state, "RolledBack" | "Waiting");
        self.addons().filter(move |addon| addon.module.as_ref().is_some_and(|(_, state)| is_held(state)))
    }

    /// Iterates over the addons of all repositories.
    pub fn addons(&self) -> impl Iterator<Item = &SourceAddonView> {
        self.repositories.iter().flat_map(|repository| &repository.addons)
    }
}
