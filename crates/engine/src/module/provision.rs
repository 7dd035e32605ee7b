//! Where the charts come from that the chart of a module needs.

use std::sync::Arc;

use crate::package::Package;

/// Where a chart comes from that the chart of a module needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Provision {
    /// Nobody knows yet whether a Repository has its URL.
    Unknown,
    /// Not from a Repository.
    Elsewhere,
    /// From a Repository, which did not give it yet.
    Awaited,
    /// It is kept.
    Here(Arc<Package>),
    /// It was kept, and could not be read.
    Lost(Arc<Package>),
}

impl Provision {
    /// Returns whether nothing is to be waited for.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Elsewhere | Self::Here(_))
    }
}

/// Returns the packages among provisions.
pub(super) fn packages(provisions: &[Provision]) -> Vec<Arc<Package>> {
    let package = |provision: &Provision| match provision {
        Provision::Here(package) | Provision::Lost(package) => Some(Arc::clone(package)),
        Provision::Unknown | Provision::Elsewhere | Provision::Awaited => None,
    };
    provisions.iter().filter_map(package).collect()
}
