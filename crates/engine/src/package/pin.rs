//! What a module says about its chart, and which package that came to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::addon::Digest;
use crate::name::ModuleName;

/// The chart that a module names in `module.yaml`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChartReference {
    /// The name of the Repository.
    pub repository: Arc<str>,
    /// The name of the chart in it.
    pub name: Arc<str>,
    /// The constraint on its version.
    pub version: Arc<str>,
    /// Whether the module follows newer versions.
    pub auto_upgrade: bool,
    /// How long ago a version has to be published that a range takes.
    pub min_age: Duration,
}

/// A chart that the chart of a module needs and does not hold itself.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ChartDependency {
    /// The name of the chart.
    pub name: Arc<str>,
    /// The constraint on its version; the version itself where the chart has a lock.
    pub version: Arc<str>,
    /// The URL of its repository, or `catalog://NAME` for the Repository of this name.
    pub repository: Arc<str>,
}

/// The charts that the chart of a module needs and does not hold itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChartDependencies {
    /// What its files name.
    pub named: Vec<ChartDependency>,
    /// What that came to, as far as it comes from Repositories. The loader leaves it empty: it is not in the files.
    pub packages: Vec<Arc<Package>>,
}

/// A version of a chart as it is kept, known by the digest of its archive.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Package {
    /// The name of the Repository.
    pub repository: Arc<str>,
    /// The name of the chart.
    pub chart: Arc<str>,
    /// The version as the index writes it.
    pub version: Arc<str>,
    /// The digest of the archive.
    pub digest: Digest,
}

/// The package that a module stays with.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The constraint that took it.
    pub constraint: Arc<str>,
    /// The package.
    pub package: Package,
    /// Whether the module ran with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_good: bool,
    /// The one before it with which the module ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Package>,
    /// The digest of the last package with which the module failed, and which was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Digest>,
    /// Which version that was, and why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<GivenUp>,
    /// Up to which number its Chart was told to take archives that were published again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reprocessed: u64,
}

/// A version that a module went back from.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct GivenUp {
    /// The version.
    pub version: Arc<str>,
    /// Why its last run failed, in words that everybody may read.
    pub error: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The pins of all modules.
pub type Pins = BTreeMap<ModuleName, Pin>;

impl ChartReference {
    /// Returns whether a pin is for what the module asks for now.
    pub fn is_met_by(&self, pin: &Pin) -> bool {
        self.repository == pin.package.repository
            && self.name == pin.package.chart
            && self.version == pin.constraint
    }
}
