//! Which object of a chart repository is meant.

use std::fmt;
use std::sync::Arc;

/// An object of one of the kinds of chart repositories. They are in no namespace.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RepositoryKey {
    /// Its kind.
    pub kind: RepositoryKind,
    /// Its name.
    pub name: Arc<str>,
}

/// The kind of an object of a chart repository.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, strum::EnumString, strum::IntoStaticStr)]
pub enum RepositoryKind {
    /// A chart, of which versions are kept.
    Chart,
    /// Repositories that belong together.
    RepoGroup,
    /// A repository.
    Repository,
}

impl RepositoryKey {
    /// The group and version of all kinds.
    pub const API_VERSION: &str = "yaho.soer3n.dev/v1alpha1";

    /// Returns the key of an object.
    pub fn new(kind: RepositoryKind, name: &str) -> Self {
        Self { kind, name: name.into() }
    }
}

impl RepositoryKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Chart, Self::RepoGroup, Self::Repository];

    /// Returns the name of the CRD of the kind.
    pub fn crd(self) -> &'static str {
        match self {
            Self::Chart => "charts.yaho.soer3n.dev",
            Self::RepoGroup => "repogroups.yaho.soer3n.dev",
            Self::Repository => "repositories.yaho.soer3n.dev",
        }
    }

    /// Returns the kind as objects name it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Writes `Chart cache`.
impl fmt::Display for RepositoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}
