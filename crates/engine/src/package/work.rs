//! What is asked of a repository and of the cluster for it, and what comes of that.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::addon::Digest;

/// How a Repository is reached.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RepositoryAccess {
    /// Its name.
    pub name: Arc<str>,
    /// The identity of its object.
    pub uid: String,
    /// Its URL.
    pub url: String,
    /// The Secret with user and password.
    pub secret: Option<String>,
}

/// The index of a repository that is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IndexRequest {
    /// The repository.
    pub repository: RepositoryAccess,
    /// The charts whose versions are kept in any case.
    pub charts: BTreeSet<Arc<str>>,
    /// Those of them that the index which is known does not have.
    pub absent: BTreeSet<Arc<str>>,
    /// Those of them for which it matters when their versions were published.
    pub aged: BTreeSet<Arc<str>>,
    /// Whether all other charts are kept, too, as far as they are not too many.
    pub is_open: bool,
    /// What says whether the index is still the one that is kept.
    pub known: Option<IndexValidator>,
    /// How many charts of that one are kept. If there are fewer, somebody removed some.
    pub kept: usize,
}

/// What says whether an answer is the one that is known already.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IndexValidator {
    /// The `ETag`; empty if there was none.
    pub etag: String,
    /// The `Last-Modified`; empty if there was none.
    pub modified: String,
}

/// What was kept of an index.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FetchedIndex {
    /// What stands for it, if the server said that.
    pub validator: IndexValidator,
    /// Whether it is the one that was known; then nothing was written.
    pub is_unchanged: bool,
    /// How many charts of it are kept.
    pub kept: usize,
    /// The charts whose versions are others now.
    pub changed: BTreeSet<String>,
    /// The charts that were asked for and are not in it, each with the nearest name that is.
    pub missing: Vec<(Arc<str>, Option<String>)>,
    /// The charts whose versions could not be had, each with the reason. The others are kept.
    pub refused: Vec<(Arc<str>, String)>,
    /// How many charts it has, if not all of them are kept because there are too many.
    pub truncated: Option<usize>,
    /// The first names of charts that can't be used, cut.
    pub left_out: BTreeSet<String>,
}

/// A version that is looked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WantedVersion {
    /// The constraint.
    pub constraint: String,
    /// The time until which a version has to have been published that a range takes, in RFC 3339; `None` if that does not matter.
    pub not_after: Option<String>,
}

/// The versions of a chart that are looked for in what is kept of an index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResolveRequest {
    /// The repository.
    pub repository: RepositoryAccess,
    /// The name of the chart.
    pub chart: Arc<str>,
    /// What is wanted.
    pub versions: Vec<WantedVersion>,
}

/// What was found for each constraint, in their order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResolvedChart {
    /// The version that each takes, or why it takes none.
    pub versions: Vec<Result<ResolvedVersion, Unresolved>>,
    /// The highest version that there is, whatever is wanted.
    pub highest: Option<String>,
    /// When the first of those versions was published that fit, are higher than what was taken, and are too new yet, in RFC 3339.
    pub next_published: Option<String>,
}

/// A version that a constraint takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResolvedVersion {
    /// The version as the index writes it.
    pub version: Arc<str>,
    /// Where its archive is, as the index writes it.
    pub url: String,
    /// The digest that the archive must have, if the index names one.
    pub digest: Option<Digest>,
    /// Whether it should not be used any more.
    pub deprecated: bool,
    /// `application` or `library`; empty means the former.
    pub kind: String,
    /// Whether its default values are kept already.
    pub has_values: bool,
    /// The charts that it needs, as the index says. Which of them are needed with its default values, its archive says.
    pub dependencies: Vec<PackageDependency>,
}

/// Why a constraint takes no version that can be kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unresolved {
    /// The step at which that turned out.
    pub step: VersionStep,
    /// What is wrong.
    pub problem: String,
}

/// A step on the way from a constraint to a version, in their order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VersionStep {
    /// The constraint is read, and takes a version of the index.
    Parse,
    /// The Repository is looked up, and its credentials.
    Repository,
    /// The place of the archive is found.
    Url,
    /// The default values are looked up. It is no failure that they are not kept yet.
    Values,
    /// What the index says about other charts that are needed is read.
    Dependencies,
}

impl VersionStep {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [Self::Parse, Self::Repository, Self::Url, Self::Values, Self::Dependencies];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Repository => "repository",
            Self::Url => "url",
            Self::Values => "values",
            Self::Dependencies => "dependencies",
        }
    }
}

/// A version that is to be kept: fetched, if it is not there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreRequest {
    /// The repository.
    pub repository: RepositoryAccess,
    /// The name of the chart.
    pub chart: Arc<str>,
    /// The version.
    pub version: ResolvedVersion,
    /// The Chart that wants it, with its identity: what is kept belongs to it.
    pub owner: (Arc<str>, String),
    /// Whether an archive that was published again takes the place of the one that is kept.
    pub replaces: bool,
    /// The digest of the archive that was kept before, if that is known. If it was lost, no other one takes its place, unless
    /// archives are replaced.
    pub known: Option<Digest>,
}

/// What is kept of a version.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredPackage {
    /// The digest of the archive that is kept.
    pub digest: Digest,
    /// The digest that the index names, if it is another one: the archive was published again.
    pub republished: Option<Digest>,
    /// What the archive says of itself, if the index says that it is another chart or version.
    pub differs: Option<String>,
    /// The charts that it needs with its default values, as far as they come from a repository.
    pub dependencies: Vec<PackageDependency>,
}

/// A map in which something of a chart is kept, as it was when it was seen last.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChartConfigMap {
    /// The name of the Repository.
    pub repository: Arc<str>,
    /// The name of the chart.
    pub chart: Arc<str>,
    /// The version that it is of; `None` if it is the list of versions.
    pub version: Option<Arc<str>>,
    /// The digest of the archive of which it is a part, if it is one of a package.
    pub digest: Option<Digest>,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PackageDependency {
    /// Its name.
    pub name: Arc<str>,
    /// The constraint on its version.
    pub version: String,
    /// The URL of its repository.
    pub repository: String,
}

impl PackageDependency {
    /// Returns a chart that another one needs; `None` if that has it in itself, or beside itself.
    pub fn remote(name: &str, version: &str, repository: &str) -> Option<Self> {
        let is_remote = !repository.is_empty() && !repository.starts_with("file:");
        is_remote.then(|| Self {
            name: name.into(),
            version: version.to_owned(),
            repository: repository.to_owned(),
        })
    }
}
