//! Where a release is, and as whom it is changed.

use std::fmt;
use std::sync::Arc;

/// Where the records of a release are, where its objects without a namespace go, and as whom all of it is changed.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ReleaseTarget {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name of the `ServiceAccount` of that namespace which is impersonated; `None` for the operator itself.
    pub account: Option<Arc<str>>,
}

impl ReleaseTarget {
    /// The `ServiceAccount` as which modules of a namespace are changed.
    pub const ACCOUNT: &str = "addon-operator";

    /// Returns a namespace in which the operator changes releases itself.
    pub fn of_operator(namespace: &str) -> Self {
        Self { namespace: namespace.into(), account: None }
    }

    /// Returns a namespace in which releases are changed with the rights that its people gave to modules, and no others.
    pub fn of_namespace(namespace: &str) -> Self {
        Self { namespace: namespace.into(), account: Some(Self::ACCOUNT.into()) }
    }
}

/// Writes `namespace web` or `namespace web as its ServiceAccount addon-operator`.
impl fmt::Display for ReleaseTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "namespace {}", self.namespace)?;
        match &self.account {
            Some(account) => write!(f, " as its ServiceAccount {account}"),
            None => Ok(()),
        }
    }
}
