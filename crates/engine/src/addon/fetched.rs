//! What fetching the repositories of a configuration brought: bundles and problems, nothing left out.

use super::Bundle;

/// What the repositories of a configuration offer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Fetched {
    /// One for each repository of the spec, in its order.
    pub repositories: Vec<FetchedRepository>,
}

/// What one repository offers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchedRepository {
    /// Its addons by name, then version, or why there are none.
    pub outcome: Result<Vec<FetchedAddon>, RepositoryProblem>,
}

/// Why a repository could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RepositoryProblem {
    /// Why, in one word for machines.
    pub reason: RepositoryReason,
    /// One line for people, the same each time. It shows no credentials.
    pub message: String,
}

/// Why a repository could not be read, as its status says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::EnumString, strum::IntoStaticStr)]
pub enum RepositoryReason {
    /// It has no URL.
    EmptyURLError,
    /// Its index could not be fetched or is none.
    FetchingIndexError,
    /// What it sends could not be kept while it was read.
    RegisteringError,
    /// Its URL has a placeholder that nothing fills.
    TemplatingURLError,
    /// The signatures of its bundles can't be checked.
    LoadingError,
}

/// One line of an index, with what became of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchedAddon {
    /// The name of the addon.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether this version becomes the module. The others are registered, and nothing runs of them.
    pub is_chosen: bool,
    /// What is in its bundle that would act with the rights of the operator: hooks, the enabled script, CRDs.
    pub privileged: Vec<String>,
    /// Its bundle, or why there is none.
    pub outcome: Result<Bundle, AddonProblem>,
}

/// Why an addon is not registered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AddonProblem {
    /// Why, in one word for machines.
    pub reason: AddonReason,
    /// One line for people, the same each time. It shows no credentials.
    pub message: String,
}

/// Why an addon is not registered, as its status says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::EnumString, strum::IntoStaticStr)]
pub enum AddonReason {
    /// Another addon of the same configuration has its id or its name.
    ConflictInSpecifiedRepositories,
    /// An addon of another configuration, or a built-in module, has its id or its name.
    ConflictWithAlreadyRegisteredAddon,
    /// Its bundle could not be fetched.
    FetchingError,
    /// Its bundle can't be used.
    LoadingError,
    /// Its bundle could not be kept.
    RegisteringError,
    /// It could not be removed.
    UnregisteringError,
}

impl Fetched {
    /// Iterates over all bundles.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &Bundle> {
        let addons = self.repositories.iter().flat_map(|its| its.outcome.iter().flatten());
        addons.filter_map(|addon| addon.outcome.as_ref().ok())
    }
}

impl RepositoryReason {
    /// Returns the word that the status uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl AddonReason {
    /// Returns the word that the status uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
