//! What webhooks of all kinds share: how they are called, and conversions by them.

mod call;
pub(crate) mod conversion;

use tokio::runtime::Handle;

pub(crate) use call::call;

/// Waits on this thread. Requests that webhooks may be asked about run on one that may wait.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    Handle::current().block_on(work)
}
