//! Which configuration of sources is meant.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A configuration of sources: an object in the cluster that lists repositories.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct SourceKey {
    /// Its kind.
    pub kind: SourceKind,
    /// Its namespace; empty for the cluster.
    #[serde(default)]
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// The kind of a configuration of sources.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    strum::EnumString,
    strum::IntoStaticStr,
)]
pub enum SourceKind {
    /// For the cluster: its modules do what modules in files do.
    #[serde(rename = "ClusterAddonsConfiguration")]
    #[strum(to_string = "ClusterAddonsConfiguration")]
    Cluster,
    /// For one namespace.
    #[serde(rename = "AddonsConfiguration")]
    #[strum(to_string = "AddonsConfiguration")]
    Namespaced,
}

impl SourceKey {
    /// The group and version of both kinds.
    pub const API_VERSION: &str = "addons.kyma-project.io/v1alpha1";

    /// The annotation that names the versions which may come.
    pub const APPROVED: &str = "addon-operator.io/approved-version";

    /// Returns the key of a `ClusterAddonsConfiguration`.
    pub fn cluster(name: &str) -> Self {
        Self { kind: SourceKind::Cluster, namespace: "".into(), name: name.into() }
    }

    /// Returns how commands call it: `cac/platform` or `ac/team/tools`.
    pub fn address(&self) -> String {
        let Self { kind, namespace, name } = self;
        let kind = kind.short();
        if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
    }

    /// Returns whether it gives a name to the other one that both want: names belong to the cluster first.
    pub fn yields_to(&self, other: &Self) -> bool {
        self.kind == SourceKind::Namespaced && other.kind == SourceKind::Cluster
    }

    /// Returns whether both are in one scope: ids of addons are unique in each.
    pub fn shares_scope_with(&self, other: &Self) -> bool {
        self.kind == other.kind && self.namespace == other.namespace
    }
}

/// The object of a configuration, for those who write about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceReference {
    /// Which one.
    pub key: SourceKey,
    /// Its identity, which no later object of that name has.
    pub uid: String,
}

impl SourceKind {
    /// Returns the name of the CRD of the kind.
    pub fn crd(self) -> &'static str {
        match self {
            Self::Cluster => "clusteraddonsconfigurations.addons.kyma-project.io",
            Self::Namespaced => "addonsconfigurations.addons.kyma-project.io",
        }
    }

    /// Returns the short name of the kind: `cac` or `ac`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Cluster => "cac",
            Self::Namespaced => "ac",
        }
    }

    /// Returns the kind as objects name it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Writes `ClusterAddonsConfiguration platform` or `AddonsConfiguration team/platform`.
impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name } = self;
        let kind = kind.as_str();
        if namespace.is_empty() { write!(f, "{kind} {name}") } else { write!(f, "{kind} {namespace}/{name}") }
    }
}
