//! What the API server is told of webhooks, and how far that is: it is kept as the hooks in service want it.
//!
//! It is long because configurations and conversions are told in one step, and each answer is about both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::configuration_watch::{ABOUT, ConfigurationWatch, Difference, Seen, seen};
use super::health::WebhookChange;
use super::index::WebhookIndex;
use super::mending::{Mending, Turn};
use super::refused::Refused;
use super::registration::{Terms, is_harmless, narrowing, says};
use crate::binding::Bindings;
use crate::config::{Config, WebhookConfig};
use crate::context::Context;
use crate::effect::{Effect, WebhookRegistration};
use crate::event::{WebhookRefusal, WrittenVersions};
use crate::failure::{Failure, FailureKind};
use crate::hook::selection::Selection;
use crate::hook::snapshot::{Item, Key};
use crate::hook::{AdmissionKind, MonitorSpec};
use crate::name::{MonitorId, RunId, Scope};
use crate::notice::Notice;
use crate::time::Time;
use crate::view::UnservedWebhook;

/// The one who tells the API server.
///
/// ```text
/// nothing wanted ─▶ Serve ─▶ Register ─▶ as wanted ─▶ Register …
///                     └─ again later ─┘      (nothing is a reason not to start)
/// refused for a webhook ─▶ Register without it          refused for no known reason ─▶ Narrow, again later
/// the end ─▶ Register: what is there lets requests go on
/// ```
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, none excludes another")]
pub(super) struct Registrar {
    /// The certificates that the API server has to trust, once reviews are taken.
    ca_bundle: Option<Arc<str>>,
    /// What is under way.
    in_flight: Option<(RunId, Step)>,
    /// What was told last; `None` if that is not known.
    told: Option<(Option<Value>, Option<Value>)>,
    /// Which of their webhooks were left out if the API server did not know them.
    kept: BTreeSet<(AdmissionKind, String)>,
    /// The configurations as they are in the cluster.
    validating: ConfigurationWatch,
    mutating: ConfigurationWatch,
    /// What others changed, by object.
    disputes: BTreeMap<String, Dispute>,
    /// Whether definitions were looked for that an operator before this one left behind.
    is_swept: bool,
    /// Those that were left as they are when it was looked for the last time.
    spared: Option<BTreeSet<String>>,
    /// The definitions that were given conversions and that no hook wants any more.
    unwanted: BTreeSet<Arc<str>>,
    watch: DefinitionWatch,
    /// Whether something changed since everything was as it is to be.
    is_dirty: bool,
    /// Whether something else may be wanted than what is under way.
    is_outdated: bool,
    failures: u32,
    last_failure: Option<Arc<Failure>>,
    retry_at: Option<Time>,
    /// Whether reviews can't be taken, and the API server may know of somebody to ask.
    withdraws: bool,
    /// The webhooks that the API server refused.
    refused: Refused,
    /// The configurations that it refused without a word of which webhook is wrong.
    narrows: BTreeSet<AdmissionKind>,
    /// Whether webhooks were left as they are that no hook has asked for so far.
    others_stay: bool,
    /// Whether all that an operator before this one registered lets requests go on: nobody takes reviews so far.
    is_narrowed: bool,
}

/// What came of a registration: why not everything was written, what was refused, and how new what was written is.
pub(super) type Registered<'r> = (Result<(), Failure>, &'r [WebhookRefusal], &'r WrittenVersions);

/// What is under way.
#[derive(Debug)]
enum Step {
    Register(Arc<WebhookRegistration>),
    Serve,
    /// Reviews can't be taken: nobody is to be asked.
    Withdraw,
    /// Configurations can't be written as they are wanted: those that are there are to hold up nobody.
    Narrow,
}

/// An object that somebody else changed.
#[derive(Debug, Default)]
struct Dispute {
    mending: Mending,
    /// What is told of it while both write it again and again.
    failure: Option<Arc<Failure>>,
}

/// The definitions whose objects are converted, as they are in the cluster.
#[derive(Debug, Default)]
struct DefinitionWatch {
    monitor: Option<MonitorId>,
    names: BTreeSet<String>,
    /// The `spec.conversion` of each that exists.
    known: BTreeMap<String, Seen>,
    /// What they were given.
    told: BTreeMap<String, Value>,
}

/// What is wanted.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, none excludes another")]
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
    /// Whether webhooks stay that none of these hooks wants: others may, which have not said so yet.
    pub(super) keeps_others: bool,
    /// Whether it is known of all definitions whether a hook wants them: what an operator before this one left behind is given back.
    pub(super) may_sweep: bool,
    /// Before that, the definitions for which a hook is there at all, if they are known: others are given back at once, since nobody is
    /// going to convert their objects.
    pub(super) converted: Option<&'w BTreeSet<String>>,
}

impl Registrar {
    /// Has everything looked at again.
    pub(super) fn mark_dirty(&mut self) {
        self.is_dirty = true;
        self.is_outdated = true;
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
        if !self.is_due(cx, wanted) {
            return;
        }
        self.retry_at = None;
        self.is_dirty = false;
        if !wanted.is_ending && wanted.registers {
            self.watch_definitions(cx, bindings, wanted.index);
        }
        let Some(ca_bundle) = self.ca_bundle.clone() else { return self.begin_to_serve(cx, wanted) };
        if !wanted.registers {
            return;
        }
        let terms = Terms { config: Arc::clone(config), ca_bundle, is_ignoring: wanted.is_ignoring };
        let mut objects = BTreeSet::new();
        if wanted.is_ending {
            let conversions = self.conversions(cx, &terms, wanted, &mut objects);
            return self.take_leave(cx, wanted, conversions);
        }
        self.refused.retain(wanted.index);
        let of = |kind| terms.configuration(wanted.webhooks, wanted.index, &self.refused, kind);
        let (validating, mutating) = (of(AdmissionKind::Validating), of(AdmissionKind::Mutating));
        let conversions = self.conversions(cx, &terms, wanted, &mut objects);
        let kept: BTreeSet<(AdmissionKind, String)> =
            wanted.index.to_come().map(|admission| (admission.kind, admission.name.to_string())).collect();
        let is_told = self.kept == kept
            && self.others_stay == wanted.keeps_others
            && self.told.as_ref().is_some_and(|(old, older)| *old == validating && *older == mutating);
        let mut is_changed = false;
        // Which of those that may come the API server knows is not known here.
        if is_told && kept.is_empty() {
            for (kind, wished) in
                [(AdmissionKind::Validating, &validating), (AdmissionKind::Mutating, &mutating)]
            {
                let object = (kind, wanted.webhooks.name.as_str());
                is_changed |= self.mends_configuration(cx, bindings, object, wished.as_ref(), &mut objects);
            }
        }
        if is_told {
            self.disputes.retain(|object, _| objects.contains(object));
        }
        let sweep = self.sweep(wanted);
        if is_told && !is_changed && conversions.is_empty() && sweep.is_none() {
            return;
        }
        let keeps_others = wanted.keeps_others;
        let mut narrowed = BTreeMap::new();
        for (kind, wished) in [(AdmissionKind::Validating, &validating), (AdmissionKind::Mutating, &mutating)]
        {
            if keeps_others && wished.is_none() {
                narrowed.insert(kind, narrowing(wanted.webhooks, kind, None));
            }
        }
        let registration =
            WebhookRegistration { validating, mutating, kept, keeps_others, conversions, sweep, narrowed };
        self.register(cx, registration);
    }

    /// Has reviews taken, if a hook answers them. If none does, the API server is told so once that is known for sure.
    fn begin_to_serve(&mut self, cx: &mut Context, wanted: Wanted<'_>) {
        if wanted.is_ending {
            return;
        }
        if !wanted.index.is_empty() {
            let run = cx.ids.run();
            self.in_flight = Some((run, Step::Serve));
            cx.push(Effect::ServeWebhooks { run });
        } else if wanted.registers && wanted.keeps_others {
            if !std::mem::replace(&mut self.is_narrowed, true) {
                self.narrow(cx, wanted, [AdmissionKind::Validating, AdmissionKind::Mutating].into());
            }
        } else if wanted.registers {
            let sweep = self.sweep(wanted);
            if self.told != Some((None, None)) || sweep.is_some() {
                self.register(cx, WebhookRegistration { sweep, ..WebhookRegistration::default() });
            }
        }
    }

    /// Returns the definitions that are left as they are if it is looked now for what an operator before this one left behind; `None`
    /// if it is not looked for now.
    fn sweep(&mut self, wanted: Wanted<'_>) -> Option<BTreeSet<String>> {
        if self.is_swept {
            return None;
        }
        let spares = if wanted.may_sweep {
            wanted.index.definitions().map(ToString::to_string).collect()
        } else {
            wanted.converted?.clone()
        };
        let is_done = self.spared.as_ref().is_some_and(|spared| spared.is_subset(&spares));
        self.is_swept = is_done && wanted.may_sweep;
        (!is_done).then_some(spares)
    }

    /// Has configurations hold up nobody. What is registered there stays, as far as it is wanted or may be.
    fn narrow(&mut self, cx: &mut Context, wanted: Wanted<'_>, kinds: BTreeSet<AdmissionKind>) {
        let run = cx.ids.run();
        let stay = (!wanted.keeps_others).then_some(wanted.index);
        let of = |kind| (kind, narrowing(wanted.webhooks, kind, stay));
        let narrowed = kinds.into_iter().map(of).collect();
        let registration = Arc::new(WebhookRegistration { narrowed, ..WebhookRegistration::default() });
        self.in_flight = Some((run, Step::Narrow));
        cx.push(Effect::RegisterWebhooks { run, registration });
    }

    /// Has everything that is registered let requests go on, whether it is as it was wanted or not: nobody answers from now on.
    fn take_leave(
        &mut self,
        cx: &mut Context,
        wanted: Wanted<'_>,
        conversions: BTreeMap<String, Option<Value>>,
    ) {
        let is_harmless = self.told.as_ref().is_some_and(|(validating, mutating)| {
            is_harmless(validating.as_ref()) && is_harmless(mutating.as_ref())
        });
        if is_harmless && conversions.is_empty() {
            return;
        }
        let of = |kind| (kind, narrowing(wanted.webhooks, kind, None));
        let narrowed = [AdmissionKind::Validating, AdmissionKind::Mutating].map(of).into();
        self.register(cx, WebhookRegistration { conversions, narrowed, ..WebhookRegistration::default() });
    }

    /// Returns whether something changed, and nothing is under way. Withdraws and narrows webhooks first, if they are to be.
    fn is_due(&mut self, cx: &mut Context, wanted: Wanted<'_>) -> bool {
        if wanted.is_ending && self.retry_at.take().is_some() {
            // It is not tried again.
            self.is_dirty = false;
        }
        if wanted.is_ending {
            self.disputes.clear();
        }
        let now = cx.now;
        self.is_dirty |=
            self.disputes.values().filter_map(|dispute| dispute.mending.next()).any(|at| at <= now);
        if self.in_flight.is_none() && wanted.registers && std::mem::take(&mut self.withdraws) {
            let run = cx.ids.run();
            self.in_flight = Some((run, Step::Withdraw));
            cx.push(Effect::RegisterWebhooks { run, registration: Arc::default() });
        }
        if self.in_flight.is_none() && wanted.registers && !self.narrows.is_empty() {
            let kinds = std::mem::take(&mut self.narrows);
            self.narrow(cx, wanted, kinds);
        }
        let waits = self.retry_at.is_some_and(|at| at > now);
        self.is_dirty && self.in_flight.is_none() && !waits
    }

    /// Watches a configuration, and adds it to `objects`. Returns whether it is put right now; one that is not wanted is not watched.
    fn mends_configuration(
        &mut self,
        cx: &mut Context,
        bindings: &mut Bindings,
        (kind, name): (AdmissionKind, &str),
        wished: Option<&Value>,
        objects: &mut BTreeSet<String>,
    ) -> bool {
        let watch = self.configuration(kind);
        let Some(wished) = wished else {
            watch.stop(cx);
            return false;
        };
        watch.start(cx, bindings, (kind, name));
        let difference = watch.differs(wished);
        let object = format!("{kind}WebhookConfiguration {name}");
        let is_mended = self.mends(cx, &object, difference);
        objects.insert(object);
        is_mended
    }

    fn register(&mut self, cx: &mut Context, registration: WebhookRegistration) {
        self.is_outdated = false;
        let (run, registration) = (cx.ids.run(), Arc::new(registration));
        self.validating.begin_write();
        self.mutating.begin_write();
        self.in_flight = Some((run, Step::Register(Arc::clone(&registration))));
        cx.push(Effect::RegisterWebhooks { run, registration });
    }

    fn configuration(&mut self, kind: AdmissionKind) -> &mut ConfigurationWatch {
        match kind {
            AdmissionKind::Mutating => &mut self.mutating,
            AdmissionKind::Validating => &mut self.validating,
        }
    }

    /// Returns whether an object that is not as it is to be is put right now.
    fn mends(&mut self, cx: &mut Context, object: &str, difference: Option<Difference>) -> bool {
        let Some(difference) = difference else {
            if let Some(dispute) = self.disputes.get_mut(object) {
                dispute.mending.rest(cx.now);
                if dispute.mending.is_over() {
                    self.disputes.remove(object);
                }
            }
            return false;
        };
        let what = match difference {
            Difference::Gone => "deleted".to_owned(),
            Difference::Changed { writer } if writer.is_empty() => "changed".to_owned(),
            Difference::Changed { writer } => format!("changed by {writer}"),
        };
        let dispute = self.disputes.entry(object.to_owned()).or_default();
        let message = match dispute.mending.turn(cx.now) {
            Turn::Later => return false,
            Turn::Now => format!("{object} was {what}: it is put right"),
            Turn::Paused(pause) => {
                let message =
                    format!("{object} is {what} again and again: it is put right in {} s", pause.as_secs());
                let failure = Failure::new(FailureKind::Conflict, &message)
                    .advise("find who writes it beside this operator, another operator with the same name for example, and stop one of the two");
                dispute.failure = Some(Arc::new(failure));
                cx.notify(Notice::Warned { scope: Scope::Global, message });
                return false;
            }
        };
        cx.notify(Notice::Warned { scope: Scope::Global, message });
        true
    }

    /// Returns the conversions of definitions that are to be written now, and adds the definitions to `objects`.
    fn conversions(
        &mut self,
        cx: &mut Context,
        terms: &Terms,
        wanted: Wanted<'_>,
        objects: &mut BTreeSet<String>,
    ) -> BTreeMap<String, Option<Value>> {
        let mut conversions = BTreeMap::new();
        for crd in wanted.index.definitions() {
            // A definition that does not exist yet is told when it comes, and one that may be unwanted is not watched.
            let Some(actual) = self.watch.known.get(&**crd) else { continue };
            let conversion = terms.conversion(wanted.webhooks, crd);
            let difference = (!says(&actual.said, &conversion))
                .then(|| Difference::Changed { writer: actual.writer.clone() });
            let is_told = self.watch.told.get(&**crd) == Some(&conversion);
            if difference.is_none() {
                self.watch.told.insert(crd.to_string(), conversion.clone());
            }
            let object = format!("CustomResourceDefinition {crd}");
            let is_due = if is_told && !wanted.is_ending {
                self.mends(cx, &object, difference)
            } else {
                difference.is_some()
            };
            objects.insert(object);
            if is_due {
                conversions.insert(crd.to_string(), Some(conversion));
            }
        }
        let unwanted = self.unwanted.iter().filter(|crd| wanted.index.rules(crd).is_none());
        conversions.extend(unwanted.map(|crd| (crd.to_string(), None)));
        conversions
    }

    /// Watches the definitions whose objects are converted, and no others.
    fn watch_definitions(&mut self, cx: &mut Context, bindings: &mut Bindings, index: &WebhookIndex) {
        let certain = index.definitions().filter(|crd| index.is_certain(crd));
        let names: BTreeSet<String> = certain.map(ToString::to_string).collect();
        if self.watch.names == names {
            return;
        }
        if let Some(monitor) = self.watch.monitor.take() {
            cx.push(Effect::StopMonitor { monitor });
        }
        let mut told = std::mem::take(&mut self.watch.told);
        for gone in self.watch.names.difference(&names) {
            if told.contains_key(gone) {
                self.unwanted.insert(Arc::from(gone.as_str()));
            } else {
                // Nobody has seen yet whether it leads here.
                (self.is_swept, self.spared) = (false, None);
            }
        }
        told.retain(|name, _| names.contains(name));
        self.watch = DefinitionWatch { names, told, ..DefinitionWatch::default() };
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
        let jq_filter = Some(format!("{{said: .spec.conversion, {ABOUT}}}"));
        let spec = Arc::new(MonitorSpec { selection, jq_filter, keep_objects: false });
        cx.push(Effect::StartMonitor { monitor, spec });
    }

    /// Returns whether a watch is ours.
    pub(super) fn owns(&self, monitor: MonitorId) -> bool {
        self.watch.monitor == Some(monitor) || self.validating.owns(monitor) || self.mutating.owns(monitor)
    }

    /// Returns what a watch of ours is about, in words.
    pub(super) fn watch_title(&self, monitor: MonitorId) -> &'static str {
        if self.validating.owns(monitor) {
            "ValidatingWebhookConfiguration of hooks"
        } else if self.mutating.owns(monitor) {
            "MutatingWebhookConfiguration of hooks"
        } else {
            "CustomResourceDefinitions of webhooks"
        }
    }

    fn configuration_of(&mut self, monitor: MonitorId) -> Option<&mut ConfigurationWatch> {
        [&mut self.validating, &mut self.mutating].into_iter().find(|watch| watch.owns(monitor))
    }

    /// Records all objects of a watch that exist.
    pub(super) fn listed(&mut self, monitor: MonitorId, objects: Vec<(Key, Arc<Item>)>) {
        self.is_dirty = true;
        if let Some(watch) = self.configuration_of(monitor) {
            watch.see(objects.first().map(|(_, item)| &**item));
            return;
        }
        self.watch.known.clear();
        for (key, item) in objects {
            self.see_definition(&key, seen(&item));
        }
    }

    /// Records how an object of a watch is now.
    pub(super) fn object_changed(&mut self, monitor: MonitorId, key: &Key, is_gone: bool, item: &Item) {
        self.is_dirty = true;
        if let Some(watch) = self.configuration_of(monitor) {
            watch.see((!is_gone).then_some(item));
            return;
        }
        if is_gone {
            self.watch.known.remove(&*key.name);
            self.watch.told.remove(&*key.name);
        } else {
            self.see_definition(key, seen(item));
        }
    }

    fn see_definition(&mut self, key: &Key, seen: Seen) {
        self.watch.known.insert(key.name.to_string(), seen);
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
                // The certificate may have been renewed before this was said.
                self.ca_bundle.get_or_insert(ca_bundle);
                self.succeeded();
            }
            Err(failure) => {
                // What an operator before this one left there holds up requests that nobody answers.
                self.withdraws = self.told.is_none();
                self.failed(cx, config, failure);
            }
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
        (outcome, refusals, versions): Registered<'_>,
        index: &WebhookIndex,
    ) {
        if !self.awaits(run) {
            return;
        }
        let step = self.in_flight.take();
        self.is_dirty = true;
        if let Some((_, Step::Withdraw)) = &step {
            if outcome.is_ok() {
                self.told = Some((None, None));
            }
            return;
        }
        if let (Some((_, Step::Narrow)), None, Err(failure)) = (&step, &self.ca_bundle, &outcome) {
            // Nobody takes reviews so far, and requests are held up.
            self.is_narrowed = false;
            return self.failed(cx, config, failure.clone());
        }
        let Some((_, Step::Register(registration))) = step else { return };
        let (mut failure, is_refused) = (outcome.err(), !refusals.is_empty());
        // What hooks want may be something else by now, which is told at once.
        let refusals: &[WebhookRefusal] = if self.is_outdated { &[] } else { refusals };
        for refusal in refusals {
            if !self.refused.add(cx, refusal, index) {
                self.narrows.insert(refusal.kind);
                failure.get_or_insert_with(|| refusal.failure.clone());
            }
        }
        if let Some(failure) = failure {
            // Some of it may have been written.
            self.told = None;
            return self.failed(cx, config, failure);
        }
        self.succeeded();
        if is_refused {
            // All others are told at once, without those that are wrong.
            self.told = None;
            return;
        }
        if let Some(spared) = &registration.sweep {
            self.spared = Some(spared.clone());
        }
        self.told = Some((registration.validating.clone(), registration.mutating.clone()));
        self.kept.clone_from(&registration.kept);
        self.others_stay = registration.keeps_others;
        let version = |kind| versions.configurations.get(&kind).copied();
        self.validating.written(registration.validating.as_ref(), version(AdmissionKind::Validating));
        self.mutating.written(registration.mutating.as_ref(), version(AdmissionKind::Mutating));
        for (crd, conversion) in &registration.conversions {
            let Some(conversion) = conversion else {
                self.unwanted.remove(crd.as_str());
                continue;
            };
            self.watch.told.insert(crd.clone(), conversion.clone());
            // It is written only if it is known. So it was deleted since, if it is not.
            let Some(seen) = self.watch.known.get_mut(crd) else { continue };
            // The watch may be a moment late. What it has shown after that counts.
            let written = versions.definitions.get(crd).copied();
            if !seen.is_of_or_after(written) {
                *seen = Seen::written(conversion.clone(), written);
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

    /// Returns the webhooks that the API server refused, in the form of a picture.
    pub(super) fn refused(&self) -> impl Iterator<Item = UnservedWebhook> {
        self.refused.views()
    }

    /// Takes out what is to be told of webhooks that the API server refused.
    pub(super) fn take_news(&mut self) -> Vec<WebhookChange> {
        self.refused.take_news()
    }

    /// Returns why the API server could not be told.
    pub(super) fn last_failure(&self) -> Option<&Arc<Failure>> {
        let of_disputes = self.disputes.values().find_map(|dispute| dispute.failure.as_ref());
        self.last_failure.as_ref().or(of_disputes)
    }

    /// Returns when it is tried again.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        if self.retry_at.is_some() || self.in_flight.is_some() {
            return self.retry_at;
        }
        self.disputes.values().filter_map(|dispute| dispute.mending.next()).min()
    }

    /// Returns whether nothing is under way.
    pub(super) fn is_at_rest(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Returns how many things are kept by name.
    pub(super) fn entries(&self) -> usize {
        let of_definitions = self.watch.known.len() + self.watch.told.len() + self.unwanted.len();
        of_definitions + self.disputes.len() + self.refused.entries()
    }
}
