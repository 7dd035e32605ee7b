//! What the API server is told of webhooks, and how far that is: it is kept as the hooks in service want it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::index::WebhookIndex;
use super::registration::{Terms, says};
use crate::binding::Bindings;
use crate::config::{Config, WebhookConfig};
use crate::context::Context;
use crate::effect::{Effect, WebhookRegistration};
use crate::failure::Failure;
use crate::hook::selection::Selection;
use crate::hook::snapshot::{Item, Key};
use crate::hook::{AdmissionKind, MonitorSpec};
use crate::name::{MonitorId, RunId, Scope};
use crate::notice::Notice;
use crate::time::Time;

/// The one who tells the API server.
///
/// ```text
/// nothing wanted ─▶ Serve ─▶ Register ─▶ as wanted ─▶ Register …
///                     └─ again later ─┘      (nothing is a reason not to start)
/// ```
#[derive(Debug, Default)]
pub(super) struct Registrar {
    /// The certificates that the API server has to trust, once reviews are taken.
    ca_bundle: Option<Arc<str>>,
    /// What is under way.
    in_flight: Option<(RunId, Step)>,
    /// What was told last; `None` if that is not known.
    told: Option<(Option<Value>, Option<Value>)>,
    /// Whether definitions were looked for that an operator before this one left behind.
    is_swept: bool,
    /// The definitions that were given conversions and that no hook wants any more.
    unwanted: BTreeSet<Arc<str>>,
    watch: DefinitionWatch,
    /// Whether something changed since everything was as it is to be.
    is_dirty: bool,
    failures: u32,
    last_failure: Option<Arc<Failure>>,
    retry_at: Option<Time>,
}

/// What is under way.
#[derive(Debug)]
enum Step {
    Register(Arc<WebhookRegistration>),
    Serve,
}

/// The definitions whose objects are converted, as they are in the cluster.
#[derive(Debug, Default)]
struct DefinitionWatch {
    monitor: Option<MonitorId>,
    names: BTreeSet<String>,
    /// The `spec.conversion` of each that exists.
    known: BTreeMap<String, Value>,
}

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub(super) webhooks: &'w WebhookConfig,
    pub(super) index: &'w WebhookIndex,
    /// Whether requests go on whose webhook does not answer.
    pub(super) is_ignoring: bool,
    /// Whether the operator ends: what fails now is not tried again.
    pub(super) is_ending: bool,
    /// Whether the API server is told. Otherwise reviews are taken, and that is all.
    pub(super) registers: bool,
}

impl Registrar {
    /// Has everything looked at again.
    pub(super) fn mark_dirty(&mut self) {
        self.is_dirty = true;
    }

    /// Tries at once what failed before.
    pub(super) fn try_now(&mut self) {
        self.retry_at = None;
    }

    /// Begins what is missing, if anything. It looks only if something changed.
    pub(super) fn advance(
        &mut self,
        cx: &mut Context,
        bindings: &mut Bindings,
        config: &Arc<Config>,
        wanted: Wanted<'_>,
    ) {
        if wanted.is_ending && self.retry_at.take().is_some() {
            // It is not tried again.
            self.is_dirty = false;
        }
        let waits = self.retry_at.is_some_and(|at| at > cx.now);
        if !self.is_dirty || self.in_flight.is_some() || waits {
            return;
        }
        self.retry_at = None;
        self.is_dirty = false;
        if !wanted.is_ending && wanted.registers {
            self.watch_definitions(cx, bindings, wanted.index);
        }
        let Some(ca_bundle) = self.ca_bundle.clone() else {
            if wanted.is_ending {
                return;
            }
            if !wanted.index.is_empty() {
                let run = cx.ids.run();
                self.in_flight = Some((run, Step::Serve));
                cx.push(Effect::ServeWebhooks { run });
            } else if wanted.registers && (self.told != Some((None, None)) || !self.is_swept) {
                let sweep = Some(BTreeSet::new());
                self.register(cx, WebhookRegistration { sweep, ..WebhookRegistration::default() });
            }
            return;
        };
        if !wanted.registers {
            return;
        }
        let terms = Terms { config: Arc::clone(config), ca_bundle, is_ignoring: wanted.is_ignoring };
        let of = |kind| terms.configuration(wanted.webhooks, wanted.index, kind);
        let (validating, mutating) = (of(AdmissionKind::Validating), of(AdmissionKind::Mutating));
        let conversions = self.conversions(&terms, wanted);
        let is_told = self.told.as_ref().is_some_and(|(old, older)| *old == validating && *older == mutating);
        if is_told && conversions.is_empty() && self.is_swept {
            return;
        }
        let sweep = (!self.is_swept).then(|| wanted.index.definitions().map(ToString::to_string).collect());
        self.register(cx, WebhookRegistration { validating, mutating, conversions, sweep });
    }

    fn register(&mut self, cx: &mut Context, registration: WebhookRegistration) {
        let (run, registration) = (cx.ids.run(), Arc::new(registration));
        self.in_flight = Some((run, Step::Register(Arc::clone(&registration))));
        cx.push(Effect::RegisterWebhooks { run, registration });
    }

    /// Returns the conversions of definitions that are not as they are to be.
    fn conversions(&self, terms: &Terms, wanted: Wanted<'_>) -> BTreeMap<String, Option<Value>> {
        let mut conversions = BTreeMap::new();
        for crd in wanted.index.definitions() {
            // A definition that does not exist yet is told when it comes.
            let Some(actual) = self.watch.known.get(&**crd) else { continue };
            let conversion = terms.conversion(wanted.webhooks, crd);
            if !says(actual, &conversion) {
                conversions.insert(crd.to_string(), Some(conversion));
            }
        }
        let unwanted = self.unwanted.iter().filter(|crd| wanted.index.rules(crd).is_none());
        conversions.extend(unwanted.map(|crd| (crd.to_string(), None)));
        conversions
    }

    /// Watches the definitions whose objects are converted, and no others.
    fn watch_definitions(&mut self, cx: &mut Context, bindings: &mut Bindings, index: &WebhookIndex) {
        let names: BTreeSet<String> = index.definitions().map(ToString::to_string).collect();
        if self.watch.names == names {
            return;
        }
        if let Some(monitor) = self.watch.monitor.take() {
            cx.push(Effect::StopMonitor { monitor });
        }
        let gone = self.watch.names.difference(&names).filter(|name| self.watch.known.contains_key(*name));
        self.unwanted.extend(gone.map(|name| Arc::from(name.as_str())));
        self.watch = DefinitionWatch { monitor: None, names, known: BTreeMap::new() };
        if self.watch.names.is_empty() {
            return;
        }
        let monitor = bindings.own_monitor();
        self.watch.monitor = Some(monitor);
        let selection = Selection {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            names: self.watch.names.clone(),
            ..Selection::default()
        };
        let jq_filter = Some(".spec.conversion".to_owned());
        let spec = Arc::new(MonitorSpec { selection, jq_filter, keep_objects: false });
        cx.push(Effect::StartMonitor { monitor, spec });
    }

    /// Returns whether a watch is ours.
    pub(super) fn owns(&self, monitor: MonitorId) -> bool {
        self.watch.monitor == Some(monitor)
    }

    /// Records all definitions that exist.
    pub(super) fn listed(&mut self, objects: Vec<(Key, Arc<Item>)>) {
        self.is_dirty = true;
        self.watch.known =
            objects.into_iter().map(|(key, item)| (key.name.to_string(), section(&item))).collect();
    }

    /// Records how a definition is now.
    pub(super) fn definition_changed(&mut self, key: &Key, is_gone: bool, item: &Item) {
        self.is_dirty = true;
        if is_gone {
            self.watch.known.remove(&*key.name);
        } else {
            self.watch.known.insert(key.name.to_string(), section(item));
        }
    }

    /// Returns whether a run is ours.
    pub(super) fn awaits(&self, run: RunId) -> bool {
        self.in_flight.as_ref().is_some_and(|(own, _)| *own == run)
    }

    /// Records that reviews are taken, or why not.
    pub(super) fn served(
        &mut self,
        cx: &mut Context,
        config: &Config,
        run: RunId,
        outcome: Result<Arc<str>, Failure>,
    ) {
        if !self.awaits(run) {
            return;
        }
        self.in_flight = None;
        self.is_dirty = true;
        match outcome {
            Ok(ca_bundle) => {
                self.ca_bundle = Some(ca_bundle);
                self.succeeded();
            }
            Err(failure) => self.failed(cx, config, failure),
        }
    }

    /// Records that the certificate is another one.
    pub(super) fn certificate_renewed(&mut self, ca_bundle: Arc<str>) {
        self.is_dirty = true;
        self.ca_bundle = Some(ca_bundle);
    }

    /// Records that the API server was told, or why not.
    pub(super) fn registered(
        &mut self,
        cx: &mut Context,
        config: &Config,
        run: RunId,
        outcome: Result<(), Failure>,
    ) {
        if !self.awaits(run) {
            return;
        }
        let Some((_, Step::Register(registration))) = self.in_flight.take() else { return };
        self.is_dirty = true;
        if let Err(failure) = outcome {
            // Some of it may have been written.
            self.told = None;
            return self.failed(cx, config, failure);
        }
        self.succeeded();
        self.is_swept = true;
        self.told = Some((registration.validating.clone(), registration.mutating.clone()));
        for (crd, conversion) in &registration.conversions {
            match conversion {
                // The watch may be a moment late.
                Some(conversion) => drop(self.watch.known.insert(crd.clone(), conversion.clone())),
                None => drop(self.unwanted.remove(crd.as_str())),
            }
        }
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.last_failure = None;
    }

    fn failed(&mut self, cx: &mut Context, config: &Config, failure: Failure) {
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(cx.now + config.retry_after(self.failures, 0));
        if !self.last_failure.as_ref().is_some_and(|last| last.repeats(&failure)) {
            let message = format!(
                "the API server does not know the webhooks of hooks as they are: {failure}; it is told again"
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        self.last_failure = Some(Arc::new(failure));
    }

    /// Returns why the API server could not be told.
    pub(super) fn last_failure(&self) -> Option<&Arc<Failure>> {
        self.last_failure.as_ref()
    }

    /// Returns when it is tried again.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.retry_at
    }

    /// Returns whether nothing is under way.
    pub(super) fn is_at_rest(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Returns how many things are kept by name.
    pub(super) fn entries(&self) -> usize {
        self.watch.known.len() + self.unwanted.len()
    }
}

/// Returns the conversion of a definition as its watch shows it.
fn section(item: &Item) -> Value {
    item.filter_result().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}
