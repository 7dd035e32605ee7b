//! Where the operator's own watches report whether they work: those of the ConfigMap, CRDs, releases and their objects.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::error::WatchError;

type Listener = Box<dyn Fn(&str, Option<&str>) + Send + Sync>;

/// Where watches report whether they work. Its clones share one listener.
#[derive(Clone, Default)]
pub struct WatchReports(Arc<OnceLock<Listener>>);

/// The reports of one watch.
#[derive(Debug)]
pub(crate) struct WatchReport {
    name: String,
    reports: WatchReports,
    is_broken: bool,
}

impl fmt::Debug for WatchReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchReports").finish_non_exhaustive()
    }
}

impl WatchReports {
    /// Sets the listener; a second one is ignored. It gets the name of a watch, and why it does not work or that it does again.
    pub fn listen(&self, listener: impl Fn(&str, Option<&str>) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    /// Returns the reports of the watch with this name, as people read it.
    pub(crate) fn of(&self, name: &str) -> WatchReport {
        WatchReport { name: name.to_owned(), reports: self.clone(), is_broken: false }
    }

    fn report(&self, name: &str, error: Option<&str>) {
        if let Some(listener) = self.0.get() {
            listener(name, error);
        }
    }
}

impl WatchReport {
    /// Reports that the watch failed; it is tried again.
    pub(crate) fn broke(&mut self, error: &WatchError) {
        self.is_broken = true;
        self.reports.report(&self.name, Some(&error.to_string()));
    }

    /// Reports that the watch works, if it did not.
    pub(crate) fn works(&mut self) {
        if std::mem::take(&mut self.is_broken) {
            self.reports.report(&self.name, None);
        }
    }
}

/// A watch that nobody needs any more is not broken.
impl Drop for WatchReport {
    fn drop(&mut self) {
        self.works();
    }
}
