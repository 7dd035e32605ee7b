//! The configurations of webhooks as they are in the cluster: others can edit and delete them.

use std::sync::Arc;

use serde_json::Value;

use super::registration::says;
use crate::binding::Bindings;
use crate::context::Context;
use crate::effect::Effect;
use crate::hook::selection::Selection;
use crate::hook::snapshot::Item;
use crate::hook::{AdmissionKind, MonitorSpec};
use crate::name::MonitorId;

/// The part of a filter that shows how new an object is, and who wrote it when.
pub(super) const ABOUT: &str = "version: .metadata.resourceVersion, \
    writers: [.metadata.managedFields[]? | {manager, operation, time}]";

/// The configuration of one kind.
#[derive(Debug, Default)]
pub(super) struct ConfigurationWatch {
    monitor: Option<MonitorId>,
    /// What it says and who wrote it; `None` if it is not there, or not known yet.
    actual: Option<Seen>,
    is_listed: bool,
    /// Whether it was deleted since it was begun to be written.
    is_gone: bool,
}

/// What others see of an object that the operator writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What it says.
    pub(super) said: Value,
    /// Who wrote it last, in words; empty if it does not tell.
    pub(super) writer: String,
    /// How new it is; `None` if it does not tell.
    version: Option<u64>,
}

impl Seen {
    /// Returns an object as it was written by this operator.
    pub(super) fn written(said: Value, version: Option<u64>) -> Self {
        Self { said, writer: String::new(), version }
    }

    /// Returns whether it is of the write that had this version, or of a later one.
    pub(super) fn is_of_or_after(&self, written: Option<u64>) -> bool {
        self.version.zip(written).is_some_and(|(seen, written)| seen >= written)
    }
}

impl ConfigurationWatch {
    /// Watches the configuration of a kind and of this name.
    pub(super) fn start(
        &mut self,
        cx: &mut Context,
        bindings: &mut Bindings,
        (kind, name): (AdmissionKind, &str),
    ) {
        if self.monitor.is_some() {
            return;
        }
        let selection = Selection {
            api_version: "admissionregistration.k8s.io/v1".to_owned(),
            kind: format!("{kind}WebhookConfiguration"),
            names: [name.to_owned()].into(),
            ..Selection::default()
        };
        let monitor = bindings.own_monitor();
        self.monitor = Some(monitor);
        let spec = MonitorSpec {
            selection,
            jq_filter: Some(format!("{{said: .webhooks, {ABOUT}}}")),
            keep_objects: false,
        };
        cx.push(Effect::StartMonitor { monitor, spec: Arc::new(spec) });
    }

    /// Ends the watch: there is to be no configuration.
    pub(super) fn stop(&mut self, cx: &mut Context) {
        if let Some(monitor) = std::mem::take(self).monitor {
            cx.push(Effect::StopMonitor { monitor });
        }
    }

    /// Returns whether a watch is this one.
    pub(super) fn owns(&self, monitor: MonitorId) -> bool {
        self.monitor == Some(monitor)
    }

    /// Records how the configuration is; `None` if it is not there.
    pub(super) fn see(&mut self, item: Option<&Item>) {
        self.is_listed = true;
        self.actual = item.map(seen);
        self.is_gone = self.actual.is_none();
    }

    /// Records that something is about to be written.
    pub(super) fn begin_write(&mut self) {
        self.is_gone = false;
    }

    /// Records what is written, with its version. The watch may be a moment late; what it has shown after that counts.
    pub(super) fn written(&mut self, object: Option<&Value>, version: Option<u64>) {
        let is_newer = self.actual.as_ref().map_or(self.is_gone, |seen| seen.is_of_or_after(version));
        if self.is_listed && !is_newer {
            self.actual = object.map(|object| Seen::written(said(object), version));
        }
    }

    /// Returns who made it another one than `wanted`, if it is another one.
    pub(super) fn differs(&self, wanted: &Value) -> Option<Difference> {
        if !self.is_listed {
            return None;
        }
        match &self.actual {
            None => Some(Difference::Gone),
            Some(seen) if is_told(&seen.said, &said(wanted)) => None,
            Some(seen) => Some(Difference::Changed { writer: seen.writer.clone() }),
        }
    }
}

/// What somebody did to an object that the operator writes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Difference {
    /// It was deleted.
    Gone,
    /// It was changed.
    Changed {
        /// By whom, in words; empty if that is not known.
        writer: String,
    },
}

fn said(object: &Value) -> Value {
    object.get("webhooks").cloned().unwrap_or_default()
}

/// Returns whether all webhooks are there as they are to be. Others may have added theirs.
fn is_told(actual: &Value, wanted: &Value) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let actual = list(actual);
    let mut wanted = list(wanted).into_iter();
    wanted.all(|wanted| {
        let name = wanted.get("name");
        actual.iter().any(|actual| actual.get("name") == name && says(actual, &wanted))
    })
}

/// Returns what a watch shows of an object: `said`, and what is asked [`ABOUT`] it.
pub(super) fn seen(item: &Item) -> Seen {
    let shown = item.filter_result().and_then(|bytes| serde_json::from_slice(bytes).ok());
    let shown: Value = shown.unwrap_or_default();
    let writers = shown.get("writers").and_then(Value::as_array).into_iter().flatten();
    let text =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let last = writers.max_by_key(|entry| text(entry, "time"));
    let writer = last.map(|entry| {
        format!("{} ({}, {})", text(entry, "manager"), text(entry, "operation"), text(entry, "time"))
    });
    let version = shown.get("version").and_then(Value::as_str).and_then(|version| version.parse().ok());
    Seen { said: shown.get("said").cloned().unwrap_or_default(), writer: writer.unwrap_or_default(), version }
}
