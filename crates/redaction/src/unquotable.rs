//! What texts must not quote that are made later, by whoever reads a notice.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Secrets;

/// The values that texts about something must not quote. The masks are made where there is a text, as most often there is none.
#[derive(Clone, Default, PartialEq)]
pub struct Unquotable {
    values: Vec<Arc<Value>>,
    always: Arc<Secrets<'static>>,
}

impl Unquotable {
    /// Returns the string values in `values` and what is `always` secret.
    pub fn new(values: Vec<Arc<Value>>, always: Arc<Secrets<'static>>) -> Self {
        Self { values, always }
    }

    /// Returns `texts` with each of the values masked.
    pub fn hide_in(&self, texts: &[String]) -> Vec<String> {
        if texts.is_empty() {
            return Vec::new();
        }
        let secrets = Secrets::default().with(Secrets::shared(&self.values)).with(Arc::clone(&self.always));
        texts.iter().map(|text| secrets.hide(text).into_owned()).collect()
    }
}

impl fmt::Debug for Unquotable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unquotable({})", self.values.len())
    }
}
