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

    /// Returns the key of a `ClusterAddonsConfiguration`.
    pub fn cluster(name: &str) -> Self {
        Self { kind: SourceKind::Cluster, namespace: "".into(), name: name.into() }
    }

    /// Returns whether both are in one scope: ids of addons are unique in each.
    pub fn shares_scope_with(&self, other: &Self) -> bool {
        self.kind == other.kind && self.namespace == other.namespace
    }
}

impl SourceKind {
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
