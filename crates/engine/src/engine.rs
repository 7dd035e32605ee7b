//! The state machine that ties everything together: it routes events, tasks and what they lead to.
//!
//! It is long because every event and every kind of task comes through here, once each: what has to happen in several
//! machines stands in one place. What happens in one machine stands there.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::addon::{Digest, Fetched, PlannedChange, Registry, SourceKey, SourcePlan, SourceSpec};
use crate::binding::Bindings;
use crate::broker::{Broker, Standing};
use crate::catalog::{Catalog, Module};
use crate::cause::Cause;
use crate::command;
use crate::config::Config;
use crate::config_object::ConfigObject;
use crate::configuration::{Carried, Configuration, SourcedChange, mismatch};
use crate::context::Context;
use crate::controller::{Controllers, Followed};
use crate::converge::{self, Converges};
use crate::effect::{Abort, Effect, ValuesInput};
use crate::election::{Candidate, Turn};
use crate::event::{
    ConfigData, Event, HookOutput, OwnedReleases, ReleaseAction, ReleaseOutcome, Restored, Usage, Verdict,
};
use crate::failure::{Failure, FailureKind};
use crate::hook::Lifecycle;
use crate::hook::snapshot::Objects;
use crate::inspection::{Inspection, ScopeInspection};
use crate::module::{self, Lower, Modules, PlannedInput, Reloaded};
use crate::name::{ModuleName, MonitorId, QueueName, RunId, Scope};
use crate::notice::{HookEnd, Notice};
use crate::package::Pins;
use crate::queue::{End, Finished, Next, Queues, Reason};
use crate::release_target::ReleaseTarget;
use crate::repository::Repositories;
use crate::retry::{LastResort, RetryPolicy};
use crate::source::Sources;
use crate::task::{
    Answer, DeleteStage, HookInFlight, HookStage, ModulePurge, RunStage, Running, Task, TaskKind, Trigger,
};
use crate::time::Time;
use crate::view::{ConvergeView, ElectionView, Footprint, View};
use crate::webhook::{Answered, Response, Stage, WebhookStage, Webhooks};

/// Decides what the operator does next.
pub struct Engine {
    config: Arc<Config>,
    configuration: Configuration,
    queues: Queues,
    bindings: Bindings,
    modules: Modules,
    controllers: Controllers,
    converges: Converges,
    sources: Sources,
    repositories: Repositories,
    webhooks: Webhooks,
    broker: Broker,
    candidate: Candidate,
    life: Life,
    /// Whether it has begun to act.
    has_started: bool,
    /// What was registered when this operator began.
    known: Arc<Registry>,
    /// How far it is with reading that again, as it leads now.
    restoration: Restoration,
    /// When the processes that still run are ended.
    cancels_at: Option<Time>,
    cx: Context,
}

/// Where the operator is in its life.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    /// Nothing happened yet.
    New,
    /// Another operator acts; it waits to take over.
    Standby,
    /// It works.
    Running,
    /// It begins nothing new.
    Draining,
    /// It is at rest for ever.
    Stopped,
    /// It is not allowed to do anything any more.
    Aborted,
}

/// What an operator reads again that was a standby and leads now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Restoration {
    /// Nothing is read.
    None,
    /// It is read.
    InFlight(RunId),
    /// It failed, and is tried again then.
    Due(Time),
}

// Nearly everything in it can hold secrets.
impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("now", &self.cx.now).field("life", &self.life).finish_non_exhaustive()
    }
}

impl Engine {
    /// Creates an engine that has seen no event yet, and that no source registered anything with.
    pub fn new(config: Config, catalog: Catalog) -> Self {
        Self::with_registry(config, catalog, &Registry::default(), &BTreeSet::new())
    }

    /// Creates an engine that has seen no event yet. The catalog has the modules that are registered already, as far as their
    /// bundles are there; `lost` are those that are not.
    pub fn with_registry(
        config: Config,
        catalog: Catalog,
        registry: &Registry,
        lost: &BTreeSet<Digest>,
    ) -> Self {
        Self::restored(config, catalog, (registry, lost), Pins::new())
    }

    /// Creates an engine as [`with_registry`](Self::with_registry), whose modules stay with the packages that are pinned.
    pub fn restored(
        config: Config,
        catalog: Catalog,
        (registry, lost): (&Registry, &BTreeSet<Digest>),
        pins: Pins,
    ) -> Self {
        let config = Arc::new(config);
        let mut engine = Self {
            configuration: Configuration::new(Arc::clone(&config), &catalog.global),
            queues: Queues::new(Arc::clone(&config)),
            bindings: Bindings::default(),
            modules: Modules::new(Arc::clone(&config)),
            controllers: Controllers::new(Arc::clone(&config)),
            converges: Converges::new(Arc::clone(&config)),
            sources: Sources::new(Arc::clone(&config), registry.clone()),
            repositories: Repositories::new(Arc::clone(&config), pins),
            webhooks: Webhooks::new(Arc::clone(&config)),
            broker: Broker::new(Arc::clone(&config)),
            candidate: Candidate::new(Arc::clone(&config)),
            config,
            life: Life::New,
            has_started: false,
            known: Arc::new(registry.clone()),
            restoration: Restoration::None,
            cancels_at: None,
            cx: Context::default(),
        };
        engine.configuration.set_sourced(registry);
        engine.configuration.set_all_unreleased(engine.sources.unreleased());
        engine.load(catalog);
        engine.sources.doubt(&engine.modules, lost);
        engine
    }

    /// Handles `event`, which happened at `now`, and returns what to do about it.
    ///
    /// `now` must not go backwards between calls. What is due at `now` happens first.
    pub fn handle(&mut self, now: Time, event: Event) -> Vec<Effect> {
        self.cx.now = self.cx.now.max(now);
        // Before all else: whatever happened, it is not ours to answer any more.
        if self.candidate.is_too_late(self.cx.now) {
            let turn = self.candidate.abort();
            self.take_turn(Some(turn));
        }
        if self.life == Life::Aborted {
            return self.cx.out.take();
        }
        self.queues.wake_due(self.cx.now);
        self.end_maintenance();
        self.modules.check_readiness(&mut self.cx, &self.configuration);
        module::look_at_late_lists(&mut self.split().2);
        self.route(event);
        self.settle();
        self.configuration.redact(&mut self.cx);
        self.cx.out.take()
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each event")]
    fn route(&mut self, event: Event) {
        let Self {
            queues,
            configuration,
            bindings,
            modules,
            controllers,
            sources,
            repositories,
            webhooks,
            broker,
            candidate,
            cx,
            ..
        } = self;
        let mut lower = Lower { cx, queues, configuration, bindings };
        match event {
            Event::Started => self.begin(),
            Event::BrokerAsked { id, request } => {
                let standing = match self.life {
                    Life::Running => Standing::Leading,
                    Life::Standby => Standing::Standby,
                    Life::New | Life::Draining | Life::Stopped | Life::Aborted => Standing::Away,
                };
                broker.asked((sources, modules), &mut lower, (id, &request), standing);
            }
            Event::BrokersRegistered { run, outcome } => broker.registered(lower.cx, run, outcome),
            Event::BundlesDropped { run, outcome } => sources.dropped(lower.cx, run, outcome),
            Event::BundlesKept { run, outcome } => sources.kept(run, outcome),
            Event::BundlesRestored { run, lost } => sources.bundles_restored(run, lost),
            Event::CatalogChanged { catalog } => self.catalog_changed(catalog),
            Event::CatalogRejected { failure } => {
                modules.catalog_rejected(lower.cx, lower.configuration, failure);
            }
            Event::ChartMapsLost { maps } => repositories.maps_lost(&maps),
            Event::ChartResolved { run, outcome } => repositories.chart_resolved(run, outcome),
            Event::Commanded { id, .. } if self.life == Life::Standby => {
                let holder = candidate.view(lower.cx.now).and_then(|view| view.holder);
                let outcome = Err(ElectionView::refusal(holder.as_deref()));
                lower.cx.push(Effect::AnswerCommand { id, outcome });
            }
            Event::Commanded { id, command } => {
                let may_work = self.life == Life::Running;
                let Self { converges, .. } = self;
                command::carry_out((converges, modules, sources), &mut lower, (id, command), may_work);
            }
            Event::CommandAbandoned { id } => modules.abandon_tests(lower.cx, id),
            Event::ConfigChanged { object, version, data } => self.config_changed(object, &version, data),
            Event::ConfigRejected { object, failure } => {
                lower.configuration.config_object_rejected(lower.cx, object, failure);
            }
            Event::ConfigSaved { run, outcome } => self.config_saved(run, outcome),
            Event::CrdsEnsured { run, outcome } => self.crds_ensured(run, outcome),
            Event::CredentialsWritten { run, outcome } => self.credentials_written(run, outcome),
            Event::CronFired { line } => {
                if self.life == Life::Running && self.converges.is_first_done() {
                    let (_, modules, mut lower) = self.split();
                    modules.schedule_due(&mut lower, &line);
                }
            }
            Event::HookFinished { run, outcome, usage } if controllers.awaits(run) => {
                controllers.hook_finished(&mut lower, run, outcome, usage);
            }
            Event::HookFinished { run, outcome, usage } => self.hook_finished(run, outcome, usage),
            Event::IndexFetched { run, outcome } => repositories.index_fetched(run, outcome),
            Event::InstancesKept { run, outcome } => broker.kept(sources, lower.cx, run, outcome),
            Event::InstancesRead { run, outcome } => broker.read(lower.cx, run, outcome),
            Event::KeyRequested { kind, key } => controllers.requested(lower.cx, &kind, &key),
            Event::KindAppeared { monitor } if controllers.owns(monitor) => {
                controllers.kind_appeared(monitor);
            }
            Event::KindAppeared { monitor } => module::kind_appeared(&mut lower, monitor),
            // Only children are put where they belong by us.
            Event::KindIsClusterWide { monitor } => controllers.kind_is_cluster_wide(monitor),
            Event::KindVanished { monitor, kind } if sources.owns(monitor) => {
                sources.kind_vanished(lower.cx, kind);
                // A watch of what does not exist is no broken watch.
                modules.own_watch_changed(&mut lower, sources.watch_of(monitor), None);
            }
            Event::KindVanished { monitor, kind } if controllers.owns(monitor) => {
                controllers.kind_vanished(lower.cx, monitor, kind);
                modules.own_watch_changed(&mut lower, controllers.watch_of(monitor), None);
            }
            Event::KindVanished { monitor, .. } if repositories.owns(monitor) => {
                modules.own_watch_changed(&mut lower, repositories.watch_of(monitor), None);
            }
            Event::KindVanished { monitor, kind } => modules.kind_vanished(&mut lower, monitor, kind),
            Event::LeaseRead { run, outcome } => {
                let turn = candidate.lease_read(lower.cx, run, outcome);
                self.take_turn(turn);
            }
            Event::LeaseWritten { run, outcome } => {
                let turn = candidate.lease_written(lower.cx, run, outcome);
                self.take_turn(turn);
            }
            Event::Listed { lists } => self.listed(lists),
            Event::MemoryChanged { used, limit } => lower.queues.memory_changed(used, limit),
            Event::ModuleLoaded { run, outcome } => self.module_loaded(run, outcome),
            Event::ModulesLoaded { run, outcome } => self.modules_loaded(run, outcome),
            Event::NamespaceListed { monitor, namespace, objects } if controllers.owns(monitor) => {
                controllers.namespace_listed(lower.cx, monitor, &namespace, objects);
            }
            Event::NamespaceListed { monitor, namespace, objects } => {
                modules.namespace_listed(lower.cx, lower.bindings, monitor, &namespace, objects);
            }
            Event::ObjectChanged { key, is_gone, mut items } => {
                controllers.object_changed(lower.cx, &key, is_gone, &mut items);
                if let Some((_, item)) = items.iter().find(|(monitor, _)| sources.owns(*monitor)) {
                    sources.object_changed(lower.cx, &key, is_gone, item);
                }
                for (monitor, item) in &items {
                    if webhooks.owns(*monitor) {
                        webhooks.object_changed(*monitor, &key, is_gone, item);
                    }
                }
                if let Some((monitor, item)) = items.iter().find(|(monitor, _)| repositories.owns(*monitor)) {
                    repositories.object_changed(*monitor, &key, is_gone, item);
                }
                let lease = items.iter().find(|(monitor, _)| candidate.owns(*monitor));
                let turn = lease.and_then(|(_, item)| candidate.lease_changed(lower.cx, is_gone, item));
                modules.object_changed(&mut lower, &key, is_gone, items);
                self.take_turn(turn);
            }
            Event::ObjectMended { run, outcome } => {
                modules.object_mended(lower.cx, lower.configuration, run, outcome);
            }
            Event::ObjectsPatched { run, outcome } if sources.awaits(run) => {
                sources.patched(lower.cx, run, outcome);
            }
            Event::ObjectsPatched { run, outcome } if controllers.awaits(run) => {
                controllers.patched(run, outcome);
            }
            Event::ObjectsPatched { run, outcome } if repositories.awaits(run) => {
                repositories.patched(run, outcome);
            }
            Event::ObjectsPatched { run, outcome } => self.objects_patched(run, outcome),
            Event::OwnWatchChanged { watch, failure } => {
                modules.own_watch_changed(&mut lower, watch, failure);
            }
            Event::PackagePinned { run, outcome } => repositories.package_pinned(run, outcome),
            Event::PackageStored { run, outcome } => repositories.package_stored(run, outcome),
            Event::ReadinessChanged { run, module, unready } => {
                modules.readiness_changed(run, &module, unready);
            }
            Event::ReleaseDrifted { module, drift } => {
                modules.release_drifted(&mut lower, &module, drift);
            }
            Event::ReleaseFinished { run, outcome } if sources.awaits(run) => {
                sources.release_removed(run, outcome.map(|_| ()));
                lower.queues.wake(|reason| *reason == Reason::EarlierRun);
            }
            Event::ReleaseFinished { run, outcome } => self.release_finished(run, outcome),
            Event::ReleaseTested { run, outcome } => modules.tests_ended(lower.cx, run, outcome),
            Event::ReleaseUnwatched { module, kinds } => modules.release_unwatched(lower.cx, &module, kinds),
            Event::ReleaseWaits { run, what } => {
                if let Some(module) = lower.queues.run_waits(lower.cx, run, what.clone()) {
                    modules.removal_waits(&module, what);
                }
            }
            Event::ReleasesListed { run, outcome } => self.releases_listed(run, outcome),
            Event::ReviewAbandoned { id } => webhooks.abandoned(lower.cx, id),
            Event::ReviewRequested { id, webhook, review, timeout } => {
                let may_work = matches!(self.life, Life::Running | Life::Standby);
                webhooks.requested(lower.cx, (id, webhook), &review, timeout, may_work);
            }
            Event::RepositoryKindsServed => repositories.watch(&mut lower),
            Event::Restored { run, outcome } => self.begin_restored(run, outcome),
            Event::ScriptFinished { run, outcome, usage } => self.script_finished(run, outcome, usage),
            Event::ShutdownRequested => self.shut_down(),
            Event::SourceFetched { run, outcome } => sources.fetched(run, outcome),
            Event::SourceKindsServed => sources.watch(&mut lower),
            Event::TimerFired => {}
            Event::WatchFailed { monitor, failure } if candidate.owns(monitor) => {
                modules.own_watch_changed(&mut lower, candidate.watch_title(), Some(failure.clone()));
                candidate.watch_failed(lower.cx, failure);
            }
            Event::WatchRestored { monitor } if candidate.owns(monitor) => {
                modules.own_watch_changed(&mut lower, candidate.watch_title(), None);
            }
            Event::WatchFailed { monitor, failure } if webhooks.owns(monitor) => {
                modules.own_watch_changed(&mut lower, webhooks.watch_title(monitor), Some(failure));
            }
            Event::WatchRestored { monitor } if webhooks.owns(monitor) => {
                modules.own_watch_changed(&mut lower, webhooks.watch_title(monitor), None);
            }
            Event::WebhookCertificateKept { outcome } => webhooks.certificate_kept(&mut lower, outcome),
            Event::WebhookCertificateRenewed { certificate } => {
                webhooks.certificate_renewed(lower.cx, certificate);
            }
            Event::WebhooksRegistered { run, outcome, refusals, versions } => {
                webhooks.registered(lower.cx, run, (outcome, &refusals, &versions));
            }
            Event::WebhooksServed { run, outcome } => webhooks.served(lower.cx, run, outcome),
            Event::WatchFailed { monitor, failure } if sources.owns(monitor) => {
                modules.own_watch_changed(&mut lower, sources.watch_of(monitor), Some(failure));
            }
            Event::WatchRestored { monitor } if sources.owns(monitor) => {
                modules.own_watch_changed(&mut lower, sources.watch_of(monitor), None);
            }
            Event::WatchFailed { monitor, failure } if controllers.owns(monitor) => {
                if controllers.watch_failed(monitor, &failure) {
                    modules.own_watch_changed(&mut lower, controllers.watch_of(monitor), Some(failure));
                }
            }
            Event::WatchRestored { monitor } if controllers.owns(monitor) => {
                modules.own_watch_changed(&mut lower, controllers.watch_of(monitor), None);
            }
            Event::WatchFailed { monitor, failure } if repositories.owns(monitor) => {
                modules.own_watch_changed(&mut lower, repositories.watch_of(monitor), Some(failure));
            }
            Event::WatchRestored { monitor } if repositories.owns(monitor) => {
                modules.own_watch_changed(&mut lower, repositories.watch_of(monitor), None);
            }
            Event::WatchFailed { monitor, failure } => {
                modules.watch_failed(&mut lower, monitor, failure);
            }
            Event::WatchRestored { monitor } => modules.watch_restored(&mut lower, monitor),
        }
    }

    /// Runs the modules whose maintenance ends now by itself.
    fn end_maintenance(&mut self) {
        let ended = self.configuration.end_maintenance(self.cx.now);
        if self.life != Life::Running || !self.converges.has_begun() {
            return;
        }
        for name in ended {
            let cause = Cause::outside(format!("the maintenance of module {name} ends"));
            let (_, modules, mut lower) = self.split();
            modules.queue_run(&mut lower, &name, Trigger::MaintenanceEnded, &cause);
        }
    }

    /// Returns when to send [`Event::TimerFired`], if nothing happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        match self.life {
            Life::New | Life::Standby | Life::Running => {
                let of_sources = self.sources.next_wakeup();
                self.queues
                    .next_wakeup()
                    .into_iter()
                    .chain(self.bindings.next_wakeup())
                    .chain(self.configuration.next_wakeup())
                    .chain(self.modules.next_wakeup())
                    .chain(self.converges.next_wakeup())
                    .chain(self.controllers.next_wakeup())
                    .chain(self.modules.next_mend())
                    .chain(self.modules.next_question())
                    .chain(of_sources)
                    .chain(self.repositories.next_wakeup())
                    .chain(self.webhooks.next_wakeup())
                    .chain(self.broker.next_wakeup())
                    .chain(self.candidate.next_wakeup())
                    .chain(if let Restoration::Due(at) = self.restoration { Some(at) } else { None })
                    .min()
            }
            Life::Draining => {
                let of_election = self.candidate.next_wakeup();
                self.cancels_at.into_iter().chain(self.webhooks.next_wakeup()).chain(of_election).min()
            }
            Life::Stopped | Life::Aborted => None,
        }
    }

    /// Moves every queue on until each head waits for something, and reports what changed.
    fn settle(&mut self) {
        loop {
            if self.life == Life::Running {
                while let Some(queue) = self.queues.pop_dirty() {
                    self.step(&queue);
                }
            }
            let (converges, modules, mut lower) = self.split();
            converges.check_end(modules, &mut lower);
            self.queues.wake_one_slot();
            if self.life == Life::Running {
                self.advance_sources();
                self.advance_controllers();
                self.advance_repositories();
                let (_, modules, mut lower) = self.split();
                modules.look_at_requirements(&mut lower);
                modules.advance_mends(lower.cx, lower.configuration, lower.queues);
                modules.advance_tests(lower.cx, lower.configuration, lower.queues);
                self.advance_broker();
            }
            if self.life != Life::Running || !self.queues.has_dirty() {
                break;
            }
        }
        if self.converges.is_first_done() && self.life == Life::Running {
            self.bindings.set_schedules(&mut self.cx);
        }
        self.queues.report_lengths(&mut self.cx);
        let may_ask = self.life == Life::Running;
        let (converges, modules, mut lower) = self.split();
        converges.check_ready(modules, &mut lower);
        converges.check_cleaned_up(&mut lower);
        if may_ask {
            converges.ask_ahead(modules, &mut lower);
        }
        if matches!(self.life, Life::Running | Life::Standby) {
            self.ask_unread_hooks();
        }
        self.advance_webhooks();
        self.cancel_late_runs();
        let is_running = self.queues.in_flight().next().is_some() || self.converges.has_scripts_ahead();
        let at_rest = !is_running
            && !self.configuration.is_saving()
            && self.sources.is_at_rest()
            && self.controllers.is_at_rest()
            && self.modules.has_no_mends()
            && self.modules.has_no_tests()
            && self.repositories.is_at_rest()
            && self.webhooks.is_at_rest()
            && self.broker.is_at_rest();
        if self.life == Life::Aborted {
            return;
        }
        // The Lease is given back last: whoever takes it then finds nobody at work.
        if matches!(self.restoration, Restoration::Due(at) if at <= self.cx.now) && self.life == Life::Standby
        {
            self.restore();
        }
        let is_ending = self.life == Life::Draining;
        self.candidate.advance(&mut self.cx, (is_ending, is_ending && at_rest));
        if self.life == Life::Draining && at_rest && self.candidate.is_at_rest() {
            self.life = Life::Stopped;
            self.cx.push(Effect::Exit);
        }
    }

    /// Lets the broker carry on what platforms asked for.
    fn advance_broker(&mut self) {
        let is_converged = self.converges.is_first_done();
        let Self { queues, configuration, bindings, modules, sources, broker, cx, .. } = self;
        broker.advance((sources, modules), &mut Lower { cx, queues, configuration, bindings }, is_converged);
    }

    /// Has hooks say what they want that the API server may ask for.
    fn ask_unread_hooks(&mut self) {
        let Self { queues, configuration, bindings, modules, sources, cx, .. } = self;
        let mut lower = Lower { cx, queues, configuration, bindings };
        modules.ask_unread_hooks(&mut lower, |name| !sources.has_uncounted_start(name));
    }

    /// Lets webhooks follow what is in service.
    fn advance_webhooks(&mut self) {
        let stage = match self.life {
            Life::New | Life::Stopped | Life::Aborted => return,
            Life::Standby => WebhookStage::Standby,
            Life::Running if self.converges.is_first_done() => WebhookStage::Ready,
            Life::Running => WebhookStage::Starting,
            Life::Draining if self.has_started => WebhookStage::Ending,
            Life::Draining => WebhookStage::Leaving,
        };
        let Self { queues, configuration, bindings, modules, webhooks, cx, .. } = self;
        let mut lower = Lower { cx, queues, configuration, bindings };
        webhooks.advance(modules, &mut lower, stage);
        for news in webhooks.take_news() {
            modules.webhook_changed(&mut lower, &news.hook, (news.is_warning, &news.message));
        }
    }

    /// Goes on with a review whose hook has ended.
    fn review_hook_finished(
        &mut self,
        answered: Answered,
        outcome: Result<HookOutput, Failure>,
        usage: Option<Usage>,
    ) {
        let mut response = Response::default();
        let carried = match outcome {
            Err(failure) => Carried::Failed(failure, usage),
            Ok(mut output) => {
                response = self.webhooks.take_response(&answered, &mut output);
                let cause = Cause::outside("the API server asks");
                self.configuration.hook_wrote(&mut self.cx, &answered.hook, output, usage, &cause)
            }
        };
        self.review_went_on(answered, response, carried);
    }

    /// Does what follows a step of the output of a hook that the API server asked.
    fn review_went_on(&mut self, answered: Answered, response: Response, carried: Carried) {
        let Self { webhooks, cx, .. } = self;
        match carried {
            Carried::Patching(prepared, run, effect) => {
                cx.push(effect);
                webhooks.patching(run, answered, prepared, response);
            }
            Carried::Saving(prepared, run, effect) => {
                cx.push(effect);
                webhooks.saving(run, answered, prepared, response);
            }
            Carried::Failed(failure, usage) => {
                module::report_review(cx, &answered.hook.id, answered.binding(), usage, HookEnd::Error);
                let scope = &answered.hook.id.scope;
                let failure = self.configuration.told(failure, scope.module(), None);
                webhooks.failed(cx, answered, failure);
            }
            Carried::Done { usage, changed, flags_changed } => {
                let id = answered.hook.id.clone();
                module::report_review(cx, &id, answered.binding(), usage, HookEnd::Success);
                webhooks.succeeded(cx, answered, response);
                let cause = Cause::outside("the API server asks").then(format!("hook {id}"));
                let (converges, modules, mut lower) = self.split();
                if flags_changed {
                    converges.flags_changed(modules, &mut lower, &cause);
                }
                if changed {
                    let trigger = match id.scope {
                        Scope::Global => Trigger::KubernetesChangedGlobalValues,
                        Scope::Module(_) => Trigger::KubernetesChangedModuleValues,
                    };
                    self.values_changed(&id.scope, trigger, &cause);
                }
            }
        }
    }

    /// Returns the converges, the modules, and all that is below them together.
    fn split(&mut self) -> (&mut Converges, &mut Modules, Lower<'_>) {
        let Self { queues, configuration, bindings, modules, converges, cx, .. } = self;
        (converges, modules, Lower { cx, queues, configuration, bindings })
    }

    /// Moves a queue on until its head waits for something.
    fn step(&mut self, queue: &QueueName) {
        while let Some(mut task) = self.queues.take_ready(queue, self.cx.now) {
            if let Some(place) = self.other_home(&task).or_else(|| self.own_queue(&task)) {
                self.queues.move_to(task.begun_anew(), &place);
                continue;
            }
            let next = self.advance(&mut task);
            if !self.apply(task, next) {
                break;
            }
        }
        self.queues.give_way(&mut self.cx, queue);
    }

    /// Returns the queue that a task of a module belongs to, if that is another one: the name of the module went from a configuration
    /// of a namespace to one of the cluster, or back.
    fn other_home(&self, task: &Task) -> Option<QueueName> {
        let queue = &task.head.queue;
        let is_of_module = task.hook_run().is_none() && task.module().is_some();
        if !is_of_module || !queue.removes_modules() {
            return None;
        }
        let wanted = module::queue_of(&self.configuration, &task.kind);
        (wanted != *queue && queue.home() != Some(&wanted)).then_some(wanted)
    }

    /// Returns the queue in which an earlier task of the module goes on that gave way to the others: this one follows it.
    fn own_queue(&self, task: &Task) -> Option<QueueName> {
        let module = task.module().filter(|_| task.hook_run().is_none())?;
        self.queues.own_queue(&task.head.queue, module)
    }

    /// Does the next step of a task.
    fn advance(&mut self, task: &mut Task) -> Next {
        if let TaskKind::ModuleRun(run) = &task.kind
            && self.sources.removes_release(&run.module)
        {
            // What it installs would go with what is being removed.
            return Next::Wait(Reason::EarlierRun);
        }
        if let TaskKind::ModuleRun(run) = &task.kind
            && (self.sources.records_release(&run.module)
                || matches!(run.stage, RunStage::Begin)
                    && self.sources.holds_back(&self.modules, &run.module))
        {
            return Next::Wait(Reason::Registry);
        }
        let (converges, modules, mut lower) = self.split();
        let Task { head, kind } = task;
        match kind {
            TaskKind::AddonsCommit => self.sources.advance_commit(&mut self.cx),
            TaskKind::ConvergeModules(converge) => converges.advance(modules, &mut lower, head, converge),
            TaskKind::DiscoverHelmReleases => {
                let (run, targets) = (lower.cx.ids.run(), modules.release_targets(lower.configuration));
                Next::Run(run, Answer::Task, Box::new(Effect::ListReleases { run, targets }))
            }
            TaskKind::GlobalHookEnableKubernetesBindings(hook) => {
                modules.advance_enable(&mut lower, head, hook)
            }
            TaskKind::GlobalHookWaitKubernetesSynchronization => {
                modules.advance_wait(lower.bindings, lower.queues)
            }
            TaskKind::HookRun(run) => modules.advance_hook(&mut lower, head, run),
            TaskKind::ModuleDelete(delete) => modules.advance_delete(&mut lower, head, delete),
            TaskKind::ModuleEnsureCrds(name) => modules.advance_crds(lower.cx, name),
            TaskKind::ModulePurge(purge) => {
                let ModulePurge { release, target } = purge.clone();
                let run = lower.cx.ids.run();
                Next::Run(run, Answer::Task, Box::new(Effect::UninstallRelease { run, release, target }))
            }
            TaskKind::ModuleRun(run) => modules.advance_run(&mut lower, head, run),
            TaskKind::ParallelModuleRun(parallel) => {
                converges.advance_parallel(lower.cx, modules, lower.queues, head, parallel)
            }
        }
    }

    /// Carries out what a task does next. Returns whether its queue may go on.
    fn apply(&mut self, task: Task, next: Next) -> bool {
        match next {
            Next::Aside(reason) => self.wait(task, &reason, true),
            Next::Done | Next::Gone => self.end(task, None),
            Next::Fail(failure) => self.fail(task, failure),
            Next::First(tasks) => {
                let queue = task.head.queue.clone();
                self.queues.resume(task);
                self.queues.put(&mut self.cx, &queue, End::Front, tasks);
            }
            Next::Join(run, answer, values) => {
                self.queues.join(&mut self.cx, task, run, answer, values);
                return false;
            }
            Next::Run(run, answer, effect) => {
                self.queues.start(&mut self.cx, task, run, answer, *effect);
                return false;
            }
            Next::Then(tasks) => {
                // A run that follows up on this one is part of it, for those who wait for the module.
                let is_last = !tasks.iter().any(|next| next.module_run().is_some());
                let queue = task.head.queue.clone();
                self.end_attempt(task, None, is_last);
                self.queues.put(&mut self.cx, &queue, End::Front, tasks);
            }
            Next::Wait(reason) => {
                let is_aside = reason.stands_aside();
                self.wait(task, &reason, is_aside);
                return is_aside;
            }
        }
        true
    }

    /// Makes a task wait for `reason`. If it `is_aside`, the others of its queue pass it.
    fn wait(&mut self, mut task: Task, reason: &Reason, is_aside: bool) {
        if task.module_run().is_some_and(|run| self.modules.is_past_failure(&run.module)) {
            task.head.forget_failures();
        }
        if is_aside {
            // Nobody waits for it meanwhile.
            (task.head.begun_at, task.head.holds_since) = (None, task.head.failing_since);
        }
        let module = task.module().cloned();
        if let Some(info) = self.queues.wait(&mut self.cx, task, reason.clone(), is_aside) {
            let secrets = self.configuration.secrets(module.as_ref());
            let shown = secrets.hide(&reason.to_string()).into_owned();
            self.converges.task_waits(&mut self.cx, &info, &shown, reason.patience());
        }
    }

    /// Ends a task. `allowed` is the failure that counts as success.
    fn end(&mut self, task: Task, allowed: Option<Failure>) {
        self.end_attempt(task, allowed, true);
    }

    fn end_attempt(&mut self, mut task: Task, allowed: Option<Failure>, is_last: bool) {
        let read = task.head.read.take();
        let allowed = allowed.map(|failure| self.configuration.told(failure, task.module(), read.as_ref()));
        let task = self.queues.end(&mut self.cx, task, allowed);
        let scope = match &task.kind {
            TaskKind::ModuleRun(run) => Scope::Module(run.module.clone()),
            TaskKind::ConvergeModules(_) => Scope::Global,
            TaskKind::AddonsCommit
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::HookRun(_)
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ParallelModuleRun(_) => return,
        };
        let Self { queues, configuration, bindings, modules, controllers, cx, .. } = self;
        controllers.values_may_differ(modules, &mut Lower { cx, queues, configuration, bindings }, &scope);
        if let TaskKind::ModuleRun(run) = &task.kind {
            self.converges.run_succeeded(self.cx.now, &run.module);
            if is_last && !task.head.queue.is_main() {
                converge::member_ended(&mut self.queues, &run.module, task.head.generation, None);
            }
        }
    }

    /// Makes a task that failed wait for its next attempt.
    fn fail(&mut self, mut task: Task, failure: Failure) {
        let read = task.head.read.take();
        let failure = self.configuration.told(failure, task.module(), read.as_ref());
        let shown = self.configuration.shown(&failure).to_string();
        if failure.kind == FailureKind::Package
            && let Some(name) = task.module().cloned()
            && self.modules.lose_package(&name, &failure.message)
        {
            // Nothing in `main` waits for what is in no package.
            let Self { queues, configuration, bindings, modules, repositories, cx, .. } = self;
            let mut lower = Lower { cx, queues, configuration, bindings };
            repositories.package_lost(modules, &mut lower, &name, &shown);
            return self.end(task, Some(failure));
        }
        let is_guest = task.module().is_some_and(|module| self.configuration.namespace_of(module).is_some());
        let policy = self.modules.retry_policy(&task);
        let Some(mut task) = self.unless_given_up(task, &failure, &policy, read.as_ref()) else { return };
        let delay = self.queues.fail(&mut self.cx, &mut task, &failure, (&policy, is_guest));
        if !is_guest {
            self.converges.task_failed(&mut self.cx, &task, &shown);
        }
        let Self { queues, configuration, modules, broker, cx, .. } = self;
        if let TaskKind::ConvergeModules(converge) = &mut task.kind {
            if converge.restart_discovery() {
                cx.notify(Notice::DiscoveryFailed { failure: failure.clone() });
            }
        } else if let TaskKind::ModuleRun(run) = &mut task.kind {
            modules.run_failed(cx, configuration, run, &failure);
            run.stage = RunStage::Begin;
            broker.run_failed(&run.module);
            if !task.head.queue.is_main() {
                converge::member_ended(queues, &run.module, task.head.generation, Some(&failure));
            }
        } else if let TaskKind::ModuleDelete(delete) = &mut task.kind {
            delete.stage = DeleteStage::Begin;
            modules.attempt_failed(&delete.module, &failure);
        } else if let TaskKind::ModuleEnsureCrds(name) = &task.kind {
            modules.attempt_failed(name, &failure);
            modules.step_failed(name);
        } else if let Some(name) = task.module().filter(|name| modules.is_synchronizing(name)) {
            modules.step_failed(name);
        }
        self.queues.retry_later(self.cx.now, task, failure, delay, is_guest);
    }

    /// Returns a task that failed if it is tried again. Otherwise does what its files say about that.
    ///
    /// The attempt had `read` these values last.
    fn unless_given_up(
        &mut self,
        mut task: Task,
        failure: &Failure,
        policy: &RetryPolicy,
        read: Option<&ValuesInput>,
    ) -> Option<Task> {
        let Some(resort) = policy.ends_after(task.head.failures.saturating_add(1)) else { return Some(task) };
        let shown = self.configuration.shown(failure).to_string();
        match (&task.kind, resort) {
            (TaskKind::ModuleRun(run), _) => {
                let (run, name) = (run.clone(), run.module.clone());
                self.queues.give_up(&mut self.cx, &mut task, failure);
                self.converges.task_failed(&mut self.cx, &task, &shown);
                let Self { queues, configuration, modules, cx, .. } = self;
                modules.run_failed(cx, configuration, &run, failure);
                if resort == LastResort::Park {
                    modules.park_runs(cx, configuration, &run, (task.head.failures, failure), read);
                }
                if !task.head.queue.is_main() {
                    converge::member_ended(queues, &name, task.head.generation, None);
                }
                None
            }
            (TaskKind::HookRun(run), LastResort::Skip) => {
                let (_, modules, mut lower) = self.split();
                modules.go_live(&mut lower, &run.synchronizes, &task.head.cause);
                self.end(task, Some(failure.clone()));
                None
            }
            // Where all modules wait for a run, it is tried again for ever.
            (TaskKind::HookRun(run), LastResort::Park)
                if !run.is_synchronization() && task.head.generation.is_none() =>
            {
                self.queues.give_up(&mut self.cx, &mut task, failure);
                let why = format!("it failed {} times, the last time because: {shown}", task.head.failures);
                task.head.failures = 0;
                task.head.last_failure = Some(Arc::new(failure.clone()));
                if self.queues.is_repaired_since_begun(&task) {
                    self.queues.resume(task);
                    return None;
                }
                self.wait(task, &Reason::Parked(why), true);
                None
            }
            _ => Some(task),
        }
    }

    /// Returns what waits for the answer to `run`. An answer that is not wanted leads to nothing.
    fn finish(&mut self, run: RunId) -> Option<Running> {
        match self.queues.finish(run) {
            Finished::Awaited(running) => {
                if running.task.head.queue.home().is_some() {
                    self.queues.wake(|reason| *reason == Reason::EarlierRun);
                }
                Some(*running)
            }
            Finished::Dropped => {
                self.queues.wake(|reason| *reason == Reason::EarlierRun);
                None
            }
            Finished::Unknown => None,
        }
    }

    fn load(&mut self, catalog: Catalog) {
        let (_, modules, mut lower) = self.split();
        modules.load(&mut lower, catalog);
        let Self { queues, configuration, bindings, modules, repositories, cx, .. } = self;
        repositories.hand_out_pins(modules, &mut Lower { cx, queues, configuration, bindings });
    }

    /// Starts, or waits until this operator may.
    fn begin(&mut self) {
        if self.life != Life::New {
            return;
        }
        self.candidate.start(&mut self.cx, &mut self.bindings);
        if self.candidate.is_decisive() {
            self.life = Life::Standby;
        } else {
            self.start();
        }
    }

    /// Follows what the election says, if it says something.
    fn take_turn(&mut self, turn: Option<Turn>) {
        match turn {
            Some(Turn::Elected) if self.life == Life::Standby => self.restore(),
            Some(Turn::Elected) | None => {}
            Some(Turn::Abort(abort)) => self.abort(abort),
        }
    }

    /// Reads again what another operator may have changed, if that can be.
    fn restore(&mut self) {
        let is_named = self.modules.in_order().any(|module| module.spec().names_charts());
        let has_pins = self.config.chart_workers > 0 && (self.config.are_repository_kinds_served || is_named);
        if self.config.source_workers == 0 && !has_pins {
            return self.start();
        }
        let (run, known) = (self.cx.ids.run(), Arc::clone(&self.known));
        self.restoration = Restoration::InFlight(run);
        self.cx.push(Effect::Restore { run, known, has_pins });
    }

    /// Begins with what is kept in the cluster.
    fn begin_restored(&mut self, run: RunId, outcome: Result<Box<Restored>, Failure>) {
        if self.restoration != Restoration::InFlight(run) || self.life != Life::Standby {
            return;
        }
        let Restored { registry, lost, pins, catalog } = match outcome {
            Ok(restored) => *restored,
            Err(failure) => {
                self.restoration = Restoration::Due(self.cx.now + self.config.retry_delay);
                let message = format!(
                    "this replica leads, and begins when it knows which modules there are: {failure}; it is tried again"
                );
                return self.cx.notify(Notice::ElectionChanged { message, warning: true });
            }
        };
        self.restoration = Restoration::None;
        self.sources = Sources::new(Arc::clone(&self.config), registry.clone());
        self.repositories = Repositories::new(Arc::clone(&self.config), pins);
        self.broker = Broker::new(Arc::clone(&self.config));
        self.configuration.set_sourced(&registry);
        self.configuration.set_all_unreleased(self.sources.unreleased());
        if let Some(catalog) = catalog {
            self.load(catalog);
        }
        self.sources.doubt(&self.modules, &lost);
        self.start();
    }

    /// Ends at once. Nothing that was decided before in this turn is begun.
    fn abort(&mut self, abort: Abort) {
        self.life = Life::Aborted;
        self.cx.out.take();
        self.cx.push(Effect::Abort(abort));
    }

    /// Queues what happens once, and the first converge.
    fn start(&mut self) {
        if self.life != Life::New && self.life != Life::Standby {
            return;
        }
        self.life = Life::Running;
        self.has_started = true;
        let (converges, modules, lower) = self.split();
        lower.configuration.assume_config_map(lower.cx);
        let cause = Cause::start();
        let mut tasks = modules.start(lower.cx, &cause);
        tasks.push(converges.first(lower.cx, &cause));
        lower.queues.put(lower.cx, &QueueName::main(), End::Back, tasks);
        let Self { queues, configuration, bindings, sources, repositories, cx, .. } = self;
        let mut lower = Lower { cx, queues, configuration, bindings };
        sources.start(&mut lower);
        repositories.start(&mut lower);
    }

    /// Hands the lists of watches to who watches.
    fn listed(&mut self, lists: Vec<(MonitorId, Objects)>) {
        let mut others = Vec::new();
        for (monitor, objects) in lists {
            let watch = if self.candidate.owns(monitor) {
                let turn = self.candidate.listed(&mut self.cx, &objects);
                self.take_turn(turn);
                self.candidate.watch_title()
            } else if self.webhooks.owns(monitor) {
                self.webhooks.listed(monitor, objects);
                self.webhooks.watch_title(monitor)
            } else if self.sources.owns(monitor) {
                self.sources.listed(&mut self.cx, monitor, objects);
                self.sources.watch_of(monitor)
            } else if self.repositories.owns(monitor) {
                self.repositories.listed(monitor, &objects);
                self.repositories.watch_of(monitor)
            } else if self.controllers.owns(monitor) {
                self.controllers.listed(&mut self.cx, monitor, objects);
                self.controllers.watch_of(monitor)
            } else {
                others.push((monitor, objects));
                continue;
            };
            let (_, modules, mut lower) = self.split();
            modules.own_watch_changed(&mut lower, watch, None);
        }
        let (_, modules, mut lower) = self.split();
        modules.listed(&mut lower, others);
    }

    /// Lets work on module sources go on.
    fn advance_sources(&mut self) {
        let Self { queues, configuration, bindings, modules, converges, sources, webhooks, cx, .. } = self;
        if converges.is_first_done() {
            sources.converged();
        }
        let changed = modules.take_changed();
        sources.modules_changed(modules, &changed);
        let replaced = modules.take_replaced_hooks();
        sources.hooks_replaced(modules, queues, &replaced);
        let are_asked = webhooks.runs_replaced_hooks(modules);
        sources.advance(modules, &mut Lower { cx, queues, configuration, bindings }, are_asked);
    }

    /// Lets controllers go on, and follows up on what their hooks wrote beside objects.
    fn advance_controllers(&mut self) {
        let Self { queues, configuration, bindings, modules, converges, controllers, cx, .. } = self;
        let is_converged = converges.is_first_done();
        controllers.advance(modules, &mut Lower { cx, queues, configuration, bindings }, is_converged);
        for Followed { scope, values_changed, flags_changed, cause } in self.controllers.take_followed() {
            if flags_changed {
                let (converges, modules, mut lower) = self.split();
                converges.flags_changed(modules, &mut lower, &cause);
            }
            if values_changed {
                self.values_changed(&scope, Trigger::of_objects(&scope), &cause);
            }
        }
    }

    /// Lets work on chart repositories go on. Modules whose package is another one now run.
    fn advance_repositories(&mut self) {
        let Self { queues, configuration, bindings, modules, repositories, cx, .. } = self;
        let repackaged = repositories.advance(modules, &mut Lower { cx, queues, configuration, bindings });
        if repackaged.is_empty() || !self.converges.has_begun() {
            return;
        }
        let (converges, _, lower) = self.split();
        let cause = Cause::outside("chart");
        converges.look_again(lower.cx, lower.queues, repackaged, Trigger::ChartResolved, &cause);
    }

    /// Puts the modules of bundles into force as they were loaded. A failure blocks nothing: it is tried again later.
    fn modules_loaded(&mut self, run: RunId, outcome: Result<Catalog, Failure>) {
        let Some(Running { task, .. }) = self.finish(run) else { return };
        let catalog = match outcome {
            Ok(catalog) => catalog,
            Err(failure) => {
                self.sources.not_loaded(self.cx.now);
                return self.end(task, Some(failure));
            }
        };
        let Some(commit) = self.sources.loaded(&self.modules, &self.queues) else {
            return self.end(task, None);
        };
        let SourcedChange { is_other, withdrawn } = self.configuration.set_sourced(&commit.registry);
        let cause = task.head.cause.clone();
        self.end(task, None);
        let outdated = self.queues.in_flight().filter(|running| self.other_home(&running.task).is_some());
        let outdated: Vec<ModuleName> =
            outdated.filter_map(|running| running.task.module().cloned()).collect();
        for name in outdated {
            self.queues.end_attempts(&mut self.cx, &name, |_| true);
        }
        let mut reloaded = self.reload(catalog, &cause);
        self.modules.withdraw(&self.configuration, withdrawn.iter());
        reloaded.modules.extend(withdrawn);
        // Modules that are as they were do not run, unless others are switched on or off.
        self.run_reloaded(reloaded, is_other, (Trigger::AddonsChanged, Trigger::AddonsChanged), &cause);
        let Self { queues, configuration, bindings, modules, sources, cx, .. } = self;
        for (name, target) in sources.displaced() {
            modules.give_up_place(cx, &name, &target);
        }
        sources.committed(modules, &Lower { cx, queues, configuration, bindings }, &commit);
    }

    fn catalog_changed(&mut self, catalog: Catalog) {
        if self.life == Life::New || self.life == Life::Standby {
            return self.load(catalog);
        }
        let triggers = (Trigger::FilesChanged, Trigger::FilesChangedModules);
        let cause = Cause::outside("files changed");
        let mut reloaded = self.reload(catalog, &cause);
        reloaded.everything |= reloaded.others;
        self.run_reloaded(reloaded, false, triggers, &cause);
        let Self { sources, modules, cx, .. } = self;
        sources.files_changed(modules, cx);
    }

    /// Puts files into force as they are now.
    fn reload(&mut self, catalog: Catalog, cause: &Cause) -> Reloaded {
        let is_converged = self.converges.is_first_done();
        let (_, modules, mut lower) = self.split();
        let reloaded = modules.reload(&mut lower, catalog, is_converged, cause);
        for queue in lower.queues.names().iter().filter(|queue| queue.removes_modules()) {
            lower.queues.cancel_backoff(queue);
        }
        end_attempts(&mut lower, &reloaded.modules);
        lower.queues.wake(|reason| matches!(reason, Reason::BrokenVersion(_) | Reason::List(_)));
        lower.queues.take_back(|_| true);
        lower.queues.somebody_repaired();
        self.controllers.look_again();
        reloaded
    }

    /// Queues what has to run because files are others now, or because others say what is on (`is_other`).
    fn run_reloaded(
        &mut self,
        reloaded: Reloaded,
        is_other: bool,
        (all, some): (Trigger, Trigger),
        cause: &Cause,
    ) {
        let (converges, _, mut lower) = self.split();
        if !converges.has_begun() {
            return;
        }
        if reloaded.everything {
            converges.restart(&mut lower, all, false, cause);
        } else if is_other || reloaded.others || !reloaded.modules.is_empty() {
            converges.look_again(lower.cx, lower.queues, reloaded.modules, some, cause);
        }
    }

    fn config_changed(&mut self, object: ConfigObject, version: &str, data: Option<Arc<ConfigData>>) {
        let (converges, _, mut lower) = self.split();
        let read = lower.configuration.config_object_changed(lower.cx, object, version, data);
        let Some((changes, cause)) = read else { return };
        // Whatever failed may be repaired now, also by a key that says what it said before.
        for queue in lower.queues.names() {
            if queue.runs_modules() {
                lower.queues.cancel_backoff(&queue);
            }
        }
        lower.queues.somebody_repaired();
        end_attempts(&mut lower, &changes.modules);
        if !changes.any() || !converges.has_begun() {
            return;
        }
        if changes.global {
            converges.restart(&mut lower, Trigger::ConfigMapChanged, false, &cause);
        } else {
            let trigger = Trigger::ConfigMapChangedModules;
            converges.look_again(lower.cx, lower.queues, changes.modules, trigger, &cause);
        }
    }

    fn config_saved(&mut self, run: RunId, outcome: Result<String, Failure>) {
        let Some(outcome) = self.configuration.answer_save(&mut self.cx, run, outcome) else { return };
        if let Some(mut answered) = self.webhooks.finish(run) {
            if let Stage::Saving(saving) = std::mem::replace(&mut answered.stage, Stage::Process) {
                let ((prepared, response), cause) = (*saving, Cause::outside("the API server asks"));
                let carried = self.configuration.hook_saved(
                    &mut self.cx,
                    run,
                    &answered.hook,
                    prepared,
                    outcome,
                    &cause,
                );
                self.review_went_on(answered, response, carried);
            }
            return;
        }
        if self.broker.awaits(run) {
            return self.broker.saved(&self.cx, run, outcome.map(drop));
        }
        if self.controllers.awaits(run) {
            if !self.controllers.saved(run, outcome) {
                self.configuration.forget_save(run);
            }
            return;
        }
        match self.finish(run).map(|running| (running.task, running.answer)) {
            Some((task, Answer::Hook(mut hook))) => {
                match std::mem::replace(&mut hook.stage, HookStage::Process) {
                    HookStage::Saving(prepared) => {
                        let (cx, cause) = (&mut self.cx, &task.head.cause);
                        let carried =
                            self.configuration.hook_saved(cx, run, &hook.hook, prepared, outcome, cause);
                        return self.hook_went_on(task, hook, carried);
                    }
                    HookStage::Process | HookStage::Patching(_) => {
                        self.fail(task, mismatch("a change of the ConfigMap"));
                    }
                }
            }
            Some((task, _)) => self.fail(task, mismatch("a change of the ConfigMap")),
            None => {}
        }
        self.configuration.forget_save(run);
    }

    fn crds_ensured(&mut self, run: RunId, outcome: Result<(), Failure>) {
        let Some(Running { task, .. }) = self.finish(run) else { return };
        if let Err(failure) = outcome {
            return self.fail(task, failure);
        }
        if let Some(module) = task.module() {
            self.modules.crds_ensured(module);
        }
        self.end(task, None);
    }

    fn credentials_written(&mut self, run: RunId, outcome: Result<(), Failure>) {
        let Some(Running { mut task, answer, .. }) = self.finish(run) else { return };
        let (Answer::Credentials { wanted }, TaskKind::ModuleRun(of)) = (answer, &mut task.kind) else {
            return self.fail(task, mismatch("the credentials of a release"));
        };
        if let Err(failure) = outcome {
            let words = format!(
                "the release is deployed, but its credentials are not in Secret {}-binding",
                of.module
            );
            return self.fail(task, failure.prefaced(&words));
        }
        self.modules.credentials_written(&of.module, wanted);
        of.stage = self.modules.after_release(&self.configuration, &of.module);
        self.queues.resume(task);
    }

    fn hook_finished(&mut self, run: RunId, outcome: Result<HookOutput, Failure>, usage: Option<Usage>) {
        if let Some(answered) = self.webhooks.finish(run) {
            return self.review_hook_finished(answered, outcome, usage);
        }
        let Some(Running { task, answer, .. }) = self.finish(run) else { return };
        let Answer::Hook(hook) = answer else { return self.fail(task, mismatch("a hook")) };
        let carried = match outcome {
            Err(failure) if failure.is_cancelled() => {
                return self.queues.stop(&mut self.cx, task, self.life == Life::Draining);
            }
            Err(failure) => Carried::Failed(failure, usage),
            Ok(output) => {
                let (cx, cause) = (&mut self.cx, &task.head.cause);
                self.configuration.hook_wrote(cx, &hook.hook, output, usage, cause)
            }
        };
        self.hook_went_on(task, hook, carried);
    }

    fn objects_patched(&mut self, run: RunId, outcome: Result<(), Failure>) {
        if let Some(mut answered) = self.webhooks.finish(run) {
            if let Stage::Patching(patching) = std::mem::replace(&mut answered.stage, Stage::Process) {
                let ((prepared, response), cause) = (*patching, Cause::outside("the API server asks"));
                let cx = &mut self.cx;
                let carried =
                    self.configuration.objects_patched(cx, &answered.hook, prepared, outcome, &cause);
                self.review_went_on(answered, response, carried);
            }
            return;
        }
        let Some(Running { task, answer, .. }) = self.finish(run) else { return };
        if let Answer::Hook(mut hook) = answer
            && let HookStage::Patching(prepared) = std::mem::replace(&mut hook.stage, HookStage::Process)
        {
            let (cx, cause) = (&mut self.cx, &task.head.cause);
            let carried = self.configuration.objects_patched(cx, &hook.hook, prepared, outcome, cause);
            return self.hook_went_on(task, hook, carried);
        }
        self.fail(task, mismatch("changes of objects"));
    }

    /// Does what follows a step of a hook's output.
    fn hook_went_on(&mut self, task: Task, mut hook: Box<HookInFlight>, carried: Carried) {
        match carried {
            Carried::Patching(prepared, run, effect) => {
                hook.stage = HookStage::Patching(prepared);
                self.queues.start(&mut self.cx, task, run, Answer::Hook(hook), effect);
            }
            Carried::Saving(prepared, run, effect) => {
                hook.stage = HookStage::Saving(prepared);
                self.queues.start(&mut self.cx, task, run, Answer::Hook(hook), effect);
            }
            Carried::Failed(failure, usage) => match task.hook_run().filter(|run| run.allow_failure) {
                None => {
                    module::report_run(&mut self.cx, &task, &hook, usage, HookEnd::Error);
                    self.fail(task, failure);
                }
                Some(run) => {
                    let (_, modules, mut lower) = self.split();
                    module::report_run(lower.cx, &task, &hook, usage, HookEnd::AllowedError);
                    modules.go_live(&mut lower, &run.synchronizes, &task.head.cause);
                    self.end(task, Some(failure));
                }
            },
            Carried::Done { usage, changed, flags_changed } => {
                module::report_run(&mut self.cx, &task, &hook, usage, HookEnd::Success);
                self.hook_succeeded(task, &hook, changed, flags_changed);
            }
        }
    }

    /// Goes on with the task of a hook whose output took effect. `changed` says whether values differ.
    fn hook_succeeded(&mut self, mut task: Task, hook: &HookInFlight, changed: bool, flags_changed: bool) {
        let (converges, modules, mut lower) = self.split();
        let because = |task: &Cause| task.then(format!("hook {}", hook.hook.id));
        if flags_changed {
            converges.flags_changed(modules, &mut lower, &because(&task.head.cause));
        }
        if let TaskKind::HookRun(run) = &task.kind {
            modules.go_live(&mut lower, &run.synchronizes, &task.head.cause);
            let scope = &hook.hook.id.scope;
            let point = hook.binding_type.lifecycle();
            // What a hook for all modules does after its time has come for them in another converge.
            let is_late = |point: &Lifecycle| {
                !converge::is_at(lower.queues, task.head.generation, *point) && *scope == Scope::Global
            };
            let late = point.filter(|point| point.is_of_converge()).filter(is_late);
            let reaction = run.contexts.iter().find_map(|context| Trigger::reaction(context, scope));
            let reaction = reaction.or(late.map(|_| Trigger::KubernetesChangedGlobalValues));
            let follows = reaction.filter(|_| changed).map(|trigger| (trigger, because(&task.head.cause)));
            self.end(task, None);
            if let Some((trigger, cause)) = follows {
                self.values_changed(scope, trigger, &cause);
            }
            return;
        }
        if let TaskKind::ModuleDelete(delete) = &mut task.kind {
            delete.hook_done();
        } else if let TaskKind::ModuleRun(run) = &mut task.kind {
            modules.run_hook_done(run, &hook.hook, hook.binding_type.lifecycle());
        }
        self.queues.resume(task);
    }

    /// Queues what follows when an event or a schedule made a hook change values.
    fn values_changed(&mut self, scope: &Scope, trigger: Trigger, cause: &Cause) {
        let (converges, modules, mut lower) = self.split();
        match scope {
            Scope::Global => converges.append(lower.cx, lower.queues, trigger, cause),
            Scope::Module(name) => modules.queue_run(&mut lower, name, trigger, cause),
        }
    }

    fn module_loaded(&mut self, run: RunId, outcome: Result<Arc<Module>, Failure>) {
        if self.modules.asks_hooks_in(run) {
            let (_, modules, mut lower) = self.split();
            return modules.hooks_answered(&mut lower, run, outcome);
        }
        let Some(Running { task, .. }) = self.finish(run) else { return };
        let (_, modules, mut lower) = self.split();
        let is_removal = matches!(task.kind, TaskKind::ModuleDelete(_));
        match outcome.and_then(|module| modules.adopt_loaded(&mut lower, &module)) {
            Ok(()) => self.queues.resume(task),
            Err(failure) if is_removal => {
                // Whoever wants it gone does not wait for hooks that can't be read.
                let scope = task.module().cloned().map_or(Scope::Global, Scope::Module);
                let has_others = self.modules.hooks_of(&scope).is_some_and(|hooks| !hooks.is_empty());
                let which = if has_others { "with the hooks of its version before, as" } else { "without" };
                let message = format!("it is removed {which} its hooks, which can't be read: {failure}");
                self.cx.notify(Notice::Warned { scope, message });
                self.queues.resume(task);
            }
            Err(failure) => self.fail(task, failure),
        }
    }

    fn release_finished(&mut self, run: RunId, outcome: Result<ReleaseOutcome, Failure>) {
        if self.queues.running(run).is_some_and(|running| self.other_home(&running.task).is_some()) {
            // It was the release of whoever had the name then, who has it removed. What has the name now begins anew.
            if let Some(Running { task, .. }) = self.finish(run) {
                self.queues.resume(task);
            }
            return;
        }
        if let Some(running) = self.queues.running(run)
            && let Answer::Release(module) = &running.answer
        {
            self.modules.release_ran(&mut self.cx, &self.configuration, module, running, &outcome);
        }
        let Some(Running { mut task, .. }) = self.finish(run) else { return };
        match (&mut task.kind, outcome) {
            (kind, Err(failure)) if failure.is_cancelled() => {
                if let TaskKind::ModuleRun(run) = kind {
                    // What ended it may be another bundle.
                    run.stage = RunStage::Begin;
                }
                self.queues.stop(&mut self.cx, task, self.life == Life::Draining);
            }
            (TaskKind::ModulePurge(purge), Ok(_)) => {
                self.modules.release_purged(&mut self.cx, &mut self.configuration, purge);
                self.end(task, None);
            }
            (TaskKind::ModulePurge(ModulePurge { release, .. }), Err(failure)) => {
                // The reference operator tries it once; it comes back at the next start.
                let message = format!(
                    "release {release} was not removed: {failure}; it is tried again at the next start"
                );
                self.cx.notify(Notice::Warned { scope: Scope::Global, message });
                let shown = self.configuration.shown(&failure).to_string();
                self.converges.release_stays(&mut self.cx, release, &shown);
                self.end(task, Some(failure));
            }
            (TaskKind::ModuleRun(run), Err(failure)) if run.is_leaving() => {
                // The module runs where it belongs; what is left elsewhere is no reason to hold anybody up.
                let message = format!(
                    "its release stays where it was before, too: {failure}; its next run tries again"
                );
                self.cx.notify(Notice::Warned { scope: Scope::Module(run.module.clone()), message });
                run.stage = module::after_helm(&self.configuration, &run.module);
                self.queues.resume(task);
            }
            (_, Err(failure)) => self.fail(task, failure),
            (TaskKind::ModuleRun(run), Ok(ReleaseOutcome { action: ReleaseAction::Unrecorded, .. })) => {
                self.sources.release_due(&run.module);
                self.queues.resume(task);
            }
            (kind, Ok(_)) => {
                if let TaskKind::ModuleRun(run) = kind {
                    run.stage = if run.is_leaving() {
                        self.modules.after_release(&self.configuration, &run.module)
                    } else {
                        RunStage::Credentials
                    };
                } else if let TaskKind::ModuleDelete(delete) = kind
                    && !self.modules.is_somewhere(&delete.module)
                {
                    delete.stage = DeleteStage::Finalize(None);
                }
                self.queues.resume(task);
            }
        }
    }

    fn releases_listed(&mut self, run: RunId, outcome: Result<Vec<OwnedReleases>, Failure>) {
        let Some(Running { task, .. }) = self.finish(run) else { return };
        match outcome {
            Err(failure) => self.fail(task, failure),
            Ok(lists) if let TaskKind::ModuleDelete(delete) = &task.kind => {
                self.modules.release_seen(&self.configuration, &delete.module, lists);
                self.queues.resume(task);
            }
            Ok(lists) => {
                self.sources.releases_listed();
                let tasks = self.modules.removals(&mut self.cx, &self.configuration, &task.head, lists);
                self.modules.forget_orphans_without_release(&mut self.cx, &mut self.configuration);
                self.end(task, None);
                self.queues.put_each(&mut self.cx, End::Front, tasks);
            }
        }
    }

    fn script_finished(&mut self, run: RunId, outcome: Result<Verdict, Failure>, usage: Option<Usage>) {
        let (converges, modules, mut lower) = self.split();
        let Some((outcome, usage)) = converges.script_finished(modules, &mut lower, run, outcome, usage)
        else {
            return;
        };
        let Some(Running { task, answer, .. }) = self.finish(run) else { return };
        let Answer::Script(script) = answer else {
            return self.fail(task, mismatch("an enabled script"));
        };
        if outcome.as_ref().is_err_and(Failure::is_cancelled) {
            return self.queues.stop(&mut self.cx, task, true);
        }
        let end = if outcome.is_ok() { HookEnd::Success } else { HookEnd::Error };
        converge::report_script(&mut self.cx, &script.module, task.head.cause.is_of_start(), usage, end);
        match outcome {
            Ok(verdict) => {
                let (_, modules, lower) = self.split();
                converge::record_answer(modules, &lower, run, *script, verdict);
                self.queues.resume(task);
            }
            Err(mut failure) => {
                // What it said before that counts no more.
                self.modules.forget_script(&script.module);
                failure.message = format!("enabled script of module {}: {}", script.module, failure.message);
                self.fail(task, failure);
            }
        }
    }

    /// Begins nothing new. What runs may finish, for a while.
    fn shut_down(&mut self) {
        if matches!(self.life, Life::New | Life::Standby | Life::Running) {
            self.life = Life::Draining;
            self.cancels_at = Some(self.cx.now + self.config.shutdown_grace());
            self.converges.end_scripts_ahead(&mut self.cx);
            self.sources.end(&mut self.cx);
            self.repositories.end(&mut self.cx);
            self.broker.end(&mut self.cx);
            self.modules.end_tests(&mut self.cx);
        }
    }

    /// Ends the processes and changes of releases that still run when their time is over.
    fn cancel_late_runs(&mut self) {
        if self.cancels_at.is_none_or(|at| at > self.cx.now) {
            return;
        }
        self.cancels_at = None;
        self.webhooks.cancel_late_runs(&mut self.cx);
        for running in self.queues.in_flight().filter(|running| running.answer.can_be_cancelled()) {
            self.cx.push(Effect::CancelRun { run: running.run });
        }
        self.controllers.cancel(&mut self.cx);
    }

    /// Returns a picture for people: queues, modules, watches, last failures.
    ///
    /// Ages and waits are those at the last event; [`Engine::view_at`] counts on.
    pub fn view(&self) -> View {
        self.view_at(self.cx.now)
    }

    /// Returns the picture as it is at `now`.
    pub fn view_at(&self, now: Time) -> View {
        View { journal: self.queues.ends(), ..self.view_of(usize::MAX, now) }
    }

    /// Returns the picture as it is at `now` with no more than the first task of each queue, and without a journal. Metrics tell
    /// nothing of the others, and there may be tens of thousands.
    pub fn heads_at(&self, now: Time) -> View {
        self.view_of(1, now)
    }

    /// Returns the picture with at most so many tasks of each queue, and without a journal.
    fn view_of(&self, most_tasks: usize, now: Time) -> View {
        let now = now.max(self.cx.now);
        View {
            now,
            queues: {
                let mut queues = self.queues.views(most_tasks, now);
                self.sources.add_queue_view(&mut queues, most_tasks, now);
                self.controllers.add_queue_views(&mut queues, most_tasks, now);
                self.repositories.add_queue_view(&mut queues, most_tasks, now);
                self.webhooks.add_queue_view(&mut queues, now);
                self.modules.add_tests_view(&mut queues, now);
                queues
            },
            sources: self.sources.views(now),
            charts: self.repositories.view(now),
            global_hooks: self.modules.global_hook_names(),
            modules: {
                let mut modules = self.modules.views(&self.configuration, now);
                self.sources.add_origins(&mut modules, now);
                modules
            },
            watches: {
                let mut watches = self.bindings.views(now, |key| self.modules.binding_name(key));
                self.controllers.add_watch_views(&mut watches, now);
                watches
            },
            broken_own_watches: self.bindings.broken_own_watches(now),
            webhooks: self.webhooks.view(now),
            converge: self.converge_view(now),
            config_problems: self.configuration.problem_views(now),
            file_problems: self.modules.file_problems(),
            warnings: self.modules.warnings().to_vec(),
            remarks: self.controllers.remarks(now),
            journal: Vec::new(),
            processes: self.queues.processes(),
            short_memory: self.queues.short_memory(),
            stale_answers: self.queues.stale_answers(),
            config_map: format!("{}/{}", self.config.namespace, self.config.config_map),
            config_secret: format!("{}/{}", self.config.namespace, self.config.config_secret),
            extenders: self.configuration.extenders().clone(),
            secrets: self.configuration.config_secrets(),
            election: self.candidate.view(now),
            is_ending: matches!(self.life, Life::Draining | Life::Stopped | Life::Aborted),
        }
    }

    /// Returns how far converges are. Cheap.
    pub fn converge_view(&self, now: Time) -> ConvergeView {
        let standby = self.candidate.view(now).filter(|_| self.life == Life::Standby);
        ConvergeView {
            standby_of: standby.map(|standby| standby.holder),
            ..self.converges.view(&self.queues, now)
        }
    }

    /// Returns all values and snapshots. They share their content with the engine.
    pub fn inspect(&self) -> Inspection {
        let scope = |name: &ModuleName| self.inspect_scope(&Scope::Module(name.clone()));
        let place = |name: &ModuleName| self.modules.release_place(&self.configuration, name);
        Inspection {
            global: self.inspect_scope(&Scope::Global).unwrap_or_default(),
            modules: self.modules.names().filter_map(|name| Some((name.clone(), scope(name)?))).collect(),
            places: self.modules.names().map(|name| (name.clone(), place(name))).collect(),
            targets: self.modules.release_targets(&self.configuration),
            secrets: self.configuration.config_secrets(),
        }
    }

    /// Returns the values and snapshots of one scope, if it exists.
    pub fn inspect_scope(&self, scope: &Scope) -> Option<ScopeInspection> {
        let (section, hooks) = (self.configuration.section(scope)?, self.modules.hooks_of(scope)?);
        let secret = self.configuration.secret_part(section.key()).cloned();
        Some(ScopeInspection::new(section, secret, hooks, &self.bindings))
    }

    /// Returns a module and where its release belongs, with the values that its chart would be rendered with now.
    pub fn chart_input(&self, name: &ModuleName) -> Option<((Arc<Module>, ReleaseTarget), ValuesInput)> {
        self.modules.chart_input(&self.configuration, name)
    }

    /// Returns what a configuration of module sources would bring about with this spec, when this was fetched for it. `approved`
    /// is its annotation with the versions that may come; that of its object counts if there is none.
    pub fn source_plan(
        &self,
        now: Time,
        (key, approved): (&SourceKey, Option<&str>),
        spec: &SourceSpec,
        fetched: Fetched,
    ) -> SourcePlan {
        let mut plan = self.sources.plan(&self.modules, now, (key, approved), spec, fetched);
        for module in plan.modules.iter_mut().filter(|module| module.change == PlannedChange::Come) {
            module.is_on = self.configuration.is_switched_on(&module.name);
        }
        plan
    }

    /// Returns a module that a configuration of sources would bring, or put in the place of one of its name, with what its chart
    /// would be rendered with then.
    ///
    /// # Errors
    ///
    /// If the values do not fit it.
    pub fn planned_input(&self, source: &SourceKey, module: &Arc<Module>) -> PlannedInput {
        self.modules.planned_input(&self.configuration, source, module)
    }

    /// Returns how much the engine holds.
    pub fn footprint(&self) -> Footprint {
        let mut footprint = Footprint {
            entries: self.configuration.entries()
                + self.sources.entries()
                + self.repositories.entries()
                + self.webhooks.entries()
                + self.broker.entries()
                + self.candidate.entries(),
            looked_at: self.sources.looked_at() + self.modules.looked_at(),
            ..Footprint::default()
        };
        self.queues.count_in(&mut footprint);
        self.bindings.count_in(&mut footprint);
        let (objects, entries) = self.controllers.sizes();
        footprint.objects += objects;
        footprint.entries += entries;
        footprint
    }
}

/// Ends what is in flight of the releases of those of `modules` that namespaces brought: something of them is another now, which may
/// be the way out of an attempt that does not come to an end.
fn end_attempts(lower: &mut Lower<'_>, modules: &BTreeSet<ModuleName>) {
    for name in modules {
        lower.queues.end_attempts(lower.cx, name, |task| task.module_run().is_some());
    }
}
