//! What a bundle says about itself.

use ::chart::semver::Version;
use values::name::ModuleName;

/// The name of the file that describes a bundle.
pub const META: &str = "meta.yaml";

/// What a bundle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A module: chart, hooks, values, schemas and CRDs.
    Module,
    /// One chart below `chart/`, with plans.
    Chart,
}

/// A bundle that was linted.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its id, which no other bundle of the scope has.
    pub id: String,
    /// The name of its module.
    pub name: ModuleName,
    /// The version.
    pub version: Version,
    /// The name for people.
    pub display_name: String,
    /// One sentence.
    pub description: String,
    /// What it holds.
    pub kind: Kind,
    /// The order of its module; none means that of modules without a number.
    pub weight: Option<u32>,
    /// The chart's directory in a chart bundle, such as `chart/redis`.
    pub chart: Option<String>,
    /// The plans of a chart bundle, sorted by directory.
    pub plans: Vec<Plan>,
    /// The namespace of the release that its `module.yaml` names, if it does.
    pub namespace: Option<String>,
    /// What in it would act with the rights of the operator, sorted: `hooks/`, `enabled`, `crds/`.
    pub privileged: Vec<String>,
}

/// A plan of a chart bundle: a preset of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its directory in the bundle, such as `plans/micro`.
    pub directory: String,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether its `bind.yaml` says how the credentials of a release are found.
    pub is_bindable: bool,
}
