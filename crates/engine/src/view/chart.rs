//! Pictures of chart repositories, of the Charts that are kept, and of the modules that name one.

use std::time::Duration;

use chart::semver::Version;

use crate::name::ModuleName;
use crate::package::{GivenUp, Package, RepositoryAccess};

/// Chart repositories, what is kept of them, and what modules are installed from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartsView {
    /// The Repositories.
    pub repositories: Vec<ChartRepositoryView>,
    /// The Charts.
    pub charts: Vec<ChartView>,
    /// The modules that name a chart.
    pub modules: Vec<ModuleChartView>,
}

/// A Repository.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartRepositoryView {
    /// How it is reached.
    pub access: RepositoryAccess,
    /// The name of its group; empty if it is in none.
    pub group: String,
    /// Whether its index was read when it was looked at last; `None` before the first time.
    pub is_synced: Option<bool>,
    /// What its condition says, in one line.
    pub message: String,
    /// How many Charts are about it.
    pub charts: usize,
    /// How long until its index is looked at again.
    pub next_in: Option<Duration>,
}

/// A Chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartView {
    /// The name of its object.
    pub name: String,
    /// The name of the Repository.
    pub repository: String,
    /// The name of the chart in it.
    pub chart: String,
    /// Whether it is synced as it is; `None` before its first status.
    pub is_synced: Option<bool>,
    /// What its condition says, in one line.
    pub message: String,
    /// What its constraints took, in their order, as far as that is kept.
    pub versions: Vec<ChartVersionView>,
    /// The highest version that its repository has, pre-releases only if there is nothing else.
    pub highest: Option<String>,
    /// How long until it is looked at again, if something is wrong.
    pub next_in: Option<Duration>,
}

/// A version of a Chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartVersionView {
    /// The constraint that took it.
    pub constraint: String,
    /// The version.
    pub version: String,
    /// The digest of its archive.
    pub digest: String,
}

/// A module that names a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleChartView {
    /// The module.
    pub module: ModuleName,
    /// The name of its Chart.
    pub chart: String,
    /// The name of the Repository that it names.
    pub repository: String,
    /// The name of the chart in it.
    pub name: String,
    /// The constraint that it names.
    pub constraint: String,
    /// Whether it follows newer versions.
    pub auto_upgrade: bool,
    /// What it is installed from.
    pub pinned: Option<Package>,
    /// Why that is not where it is kept, if it is not.
    pub lost: Option<String>,
    /// What it goes back to if runs fail.
    pub previous: Option<Package>,
    /// The digest of what it went back from.
    pub rejected: Option<String>,
    /// Which version that was, and why.
    pub given_up: Option<GivenUp>,
    /// The version that the constraint takes now.
    pub fits: Option<String>,
    /// The highest version that its repository has.
    pub highest: Option<String>,
}

impl ModuleChartView {
    /// Returns what has the version tried again that the module went back from.
    pub fn how_to_try_again(&self) -> String {
        format!(
            "raise the annotation addon-operator.io/reprocess of Chart {} to have it tried again; a newer version is tried by itself if it follows, and so is another chart.version in its module.yaml",
            self.chart
        )
    }

    /// Returns whether there is something newer than what it is installed from: what fits, or what the repository has.
    pub fn is_outdated(&self) -> bool {
        [&self.fits, &self.highest].into_iter().flatten().any(|version| self.is_newer(version))
    }

    /// Returns whether a version is newer than what it is installed from. The index may have lost that: what is lower is not.
    pub fn is_newer(&self, version: &str) -> bool {
        let Some(pinned) = self.pinned.as_ref().map(|pinned| &*pinned.version) else { return false };
        let both = Version::parse(version).ok().zip(Version::parse(pinned).ok());
        version != pinned && both.is_none_or(|(version, pinned)| version.precedence(&pinned).is_ge())
    }
}
