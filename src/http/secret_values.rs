//! Values of the Secret over the ConfigMap on the socket: masked, unless whoever asks wants to see them.

use std::sync::Arc;

use engine::view::{Format, Secrets};
use engine::{Failure, ScopeInspection};
use serde_json::Value;
use values::overlay;

use super::explain;

/// What an answer on the socket does not quote.
pub(super) struct SecretValues {
    secrets: Arc<Secrets<'static>>,
    is_shown: bool,
}

impl SecretValues {
    /// Returns what an answer does not quote: nothing if they are to be shown.
    pub(super) fn of(secrets: Arc<Secrets<'static>>, is_shown: bool) -> Self {
        Self { secrets: if is_shown { Arc::default() } else { secrets }, is_shown }
    }

    /// Reports whether they are shown.
    pub(super) fn are_shown(&self) -> bool {
        self.is_shown
    }

    /// Returns a text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        self.secrets.hide(text).into_owned()
    }

    /// Returns a failure without them.
    pub(super) fn hide_failure(&self, failure: &Failure) -> Failure {
        failure.without(&self.secrets)
    }

    /// Gives pictures of the operator to `tell` in a format that shows everything else.
    pub(super) fn telling<T>(&self, tell: impl FnOnce(Format<'_>) -> T) -> T {
        tell(Format { show: &|text| self.hide(text), at: &explain::time_of_day })
    }

    /// Returns values of a scope, or something made of them, without them.
    pub(super) fn hide_in(&self, mut value: Value) -> Value {
        self.secrets.hide_in_value(&mut value);
        value
    }

    /// Returns the values of a scope without those that come from the Secret, however short they are.
    pub(super) fn hide_part(&self, scope: &ScopeInspection, values: &Value) -> Value {
        match scope.secret.as_deref().filter(|_| !self.is_shown) {
            Some(secret) => self.hide_in(overlay::masked(values, secret)),
            None => self.hide_in(values.clone()),
        }
    }
}
