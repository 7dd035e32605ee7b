//! Pictures of configurations of module sources.

use std::time::Duration;

use crate::addon::SourceKey;
use crate::name::ModuleName;

/// A configuration of module sources.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceView {
    /// Which one.
    pub key: SourceKey,
    /// `New`, `Pending`, `Ready` or `Failed`.
    pub phase: &'static str,
    /// Why, in one line.
    pub message: String,
    /// The generation of its object.
    pub generation: i64,
    /// The generation that its status is about.
    pub observed_generation: i64,
    /// Whether its object is being deleted.
    pub is_deleting: bool,
    /// Whether its status is not written any more, since somebody else writes it.
    pub is_left_alone: bool,
    /// How long until it is processed again by itself.
    pub processed_in: Option<Duration>,
    /// Its repositories, in the order of its spec.
    pub repositories: Vec<SourceRepositoryView>,
}

/// A repository of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRepositoryView {
    /// Its URL as the spec has it.
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
    /// Its module, and what that does: `Registered`, `Enabled`, `Running`, `Error` or `Retained`.
    pub module: Option<(ModuleName, &'static str)>,
}
