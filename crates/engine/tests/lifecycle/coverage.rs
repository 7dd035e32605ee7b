//! Counts that every event, every effect and every type of task occurs in some life.

use std::collections::BTreeSet;
use std::sync::Mutex;

use engine::hook::WatchEvent;
use engine::{
    Command, CommandId, Config, ConfigObject, Drift, Effect, Event, Failure, FailureKind, MonitorId, Notice,
    ReviewId, RunId,
};
use serde_json::json;

use crate::build::{TICK_IN_SIDE, config, configures, cron, drifted, files, reread, watch_failed};
use crate::world::World;

static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Lists all variants of a type, and names the one of a value. A variant that is missing does not compile.
macro_rules! variants {
    ($all:ident, $name:ident, $of:ident: $($variant:ident),+ $(,)?) => {
        const $all: &[&str] = &[$(stringify!($variant)),+];

        fn $name(value: &$of) -> &'static str {
            match value {
                $($of::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}

variants! { EVENTS, event_name, Event:
    Started, BrokerAsked, BrokersRegistered, BundlesDropped, BundlesKept, BundlesRestored, CatalogChanged, CatalogRejected, ChartMapsLost, ChartResolved, CommandAbandoned, Commanded, ConfigChanged, ConfigRejected, ConfigSaved,
    CredentialsWritten, CrdsEnsured, CronFired, HookFinished, IndexFetched, InstancesKept, InstancesRead, KeyRequested, KindAppeared, KindIsClusterWide, KindVanished, LeaseRead, LeaseWritten, Listed, MemoryChanged, ModuleLoaded, ModulesLoaded,
    NamespaceListed, ObjectChanged, ObjectMended, ObjectsPatched, OwnWatchChanged, PackagePinned, PackageStored, ReadinessChanged, ReleaseDrifted, ReleaseFinished, ReleasesListed,
    ReleaseTested, ReleaseUnwatched, ReleaseWaits, RepositoryKindsServed, Restored, ReviewAbandoned, ReviewRequested, ScriptFinished, ShutdownRequested, SourceFetched, SourceKindsServed,
    TimerFired, WatchFailed, WatchRestored, WebhookCertificateKept, WebhookCertificateRenewed, WebhooksRegistered, WebhooksServed,
}

variants! { EFFECTS, effect_name, Effect:
    Abort, Announce, AnswerBroker, AnswerCommand, AnswerReview, AwaitReadiness, AwaitRepositoryKinds, AwaitSourceKinds, CancelRun, DropBundles, EnsureCrds, Exit, FetchIndex, FetchSource, ForgetRelease,
    KeepBundles, KeepInstances, ListReleases, ReadInstances, RegisterBrokers,
    LoadModule, LoadModules, MendObject, Notify, PatchObjects, PinPackage, ReadLease, RegisterWebhooks, ResolveChart, Restore, RestoreBundles, RunEnabledScript, RunHook, SaveConfigValues,
    ServeWebhooks, SetSchedules,
    StartMonitor, StopMonitor, StorePackage, TestRelease, UninstallRelease, UpgradeRelease, WatchChartMaps, WatchRelease, WriteCredentials, WriteLease,
}

const TASKS: [&str; 18] = [
    "AddonsCommit",
    "AddonsReconcile",
    "ChartReconcile",
    "ConvergeModules",
    "DiscoverHelmReleases",
    "GlobalHookEnableKubernetesBindings",
    "GlobalHookRun",
    "GlobalHookWaitKubernetesSynchronization",
    "ModuleDelete",
    "ModuleEnsureCRDs",
    "ModuleHookRun",
    "ModulePurge",
    "ModuleReload",
    "ModuleRun",
    "ParallelModuleRun",
    "ReconcileRun",
    "RepoGroupReconcile",
    "RepositoryReconcile",
];

/// What tasks wait for: the beginning of each reason.
const REASONS: [&str; 8] = [
    "its new version is broken",
    "an earlier run of the module",
    "kind ",
    "the first list of",
    "modules ",
    "executionMinInterval",
    "a free place",
    "Synchronization of",
];

fn see(name: &'static str) {
    SEEN.lock().unwrap().insert(name);
}

pub(crate) fn saw_event(event: &Event) {
    see(event_name(event));
}

pub(crate) fn saw_effect(effect: &Effect) {
    see(effect_name(effect));
    match effect {
        Effect::Notify(Notice::TaskStarted { task, .. } | Notice::TaskQueued { task }) => {
            see(task.kind.as_str());
        }
        Effect::Notify(Notice::TaskWaits { reason, .. }) => {
            for begin in REASONS.iter().filter(|begin| reason.starts_with(**begin)) {
                see(begin);
            }
        }
        _ => {}
    }
}

/// One life with as much in it as possible.
#[expect(clippy::too_many_lines, reason = "one life with everything in it")]
fn tour() {
    let before = files()
        .global_hook("g.sh", "{onStartup: 1, kubernetes: [{name: pods, kind: Pod}, {name: nodes, kind: Node, queue: side}]}")
        .global_hook("rare.sh", "{settings: {executionMinInterval: 1m}, schedule: [{name: tick, crontab: '* * * * *'}]}")
        .module(10, "a")
        .hook("a.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing}, {name: slow, kind: Node, queue: side}]}")
        .module(10, "b")
        .hook("b.sh", TICK_IN_SIDE)
        .script()
        .module(20, "crds")
        .with(|module| module.crds = vec!["crds/x.yaml".into()])
        .readiness(60)
        .module(30, "late")
        .with(|module| module.broken = Some(Failure::new(FailureKind::Files, "garbage")));
    let mut good = before.modules[3].clone();
    good.broken = None;
    let settings = Config { module_concurrency: 2, max_hooks: 1, ..Config::default() };
    let mut world = World::with_config(&before, settings)
        .without_kind("Thing")
        .deployed("stranger")
        .loads(good)
        .hook("b/b.sh", Ok(crate::hooks::creates(configures("/b/x", &json!(2)))))
        .takes("global/g.sh", 50)
        .fails("a/a.sh", 1)
        .settled();
    world.kind_appears("Thing");
    world.run();
    for n in 0..3 {
        world.send_in(n, cron("* * * * *"));
    }
    world.run();
    let monitor = MonitorId::new(1);
    world.send_in(0, watch_failed(FailureKind::Cluster, "x"));
    world.send_in(0, Event::WatchRestored { monitor });
    world.send_in(0, Event::OwnWatchChanged { watch: "CRDs".to_owned(), failure: None });
    world.send_in(0, Event::NamespaceListed { monitor, namespace: "n".into(), objects: Vec::new() });
    world.send_in(
        1,
        Event::ConfigRejected {
            object: ConfigObject::ConfigMap,
            failure: Failure::new(FailureKind::Cluster, "x"),
        },
    );
    world.send_in(2, drifted("a", Drift::Status("failed".into())));
    world.send_in(2, Event::ReadinessChanged { run: RunId::new(1), module: "a".into(), unready: Vec::new() });
    world.send_in(2, Event::ReleaseUnwatched { module: "a".into(), kinds: Vec::new() });
    world.send_in(2, Event::ReleaseWaits { run: RunId::new(1), what: None });
    let review = json!(null).into();
    let requested =
        Event::ReviewRequested { id: ReviewId::new(1), webhook: "w".into(), review, timeout: None };
    world.send_in(3, requested);
    world.send_in(4, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    world.send_in(4, Event::MemoryChanged { used: 1, limit: 2 });
    world = world.change(5, "Pod", WatchEvent::Added, "x").at(300, config(200, &[("global", "a: 1")]));
    world.run();
    world.after(1, config(201, &[("global", "a: 1"), ("aEnabled", "false")]));
    let mut after = before.clone();
    after.modules[1].broken = Some(Failure::new(FailureKind::Files, "garbage"));
    after.modules[1].content = 2;
    world.send_in(0, Event::CatalogRejected { failure: Failure::new(FailureKind::Files, "x") });
    world.send_in(0, reread(&after));
    world.after(1, cron("* * * * *"));
    // A converge that begins anew while a module of a wave is being upgraded waits for that.
    let mut world = World::with_config(
        &files().module(1, "x").module(1, "y"),
        Config { module_concurrency: 2, ..Config::default() },
    );
    world = world
        .release("x", Ok(engine::ReleaseAction::Installed))
        .takes("x", 10)
        .at(20, config(300, &[("global", "a: 2"), ("yEnabled", "false")]));
    world.after(25, Event::Commanded { id: CommandId::new(2), command: Command::Converge });
    crate::sources::tour();
    crate::plans::tour();
    crate::webhooks::tour();
    crate::broker::tour();
    crate::controllers::tour();
    crate::charts::tour();
    crate::election::tour();
    crate::chart_tests::tour();
    crate::drift::tour();
    // The end in the middle of a hook.
    let mut world =
        World::new(&files().global_hook("slow.sh", "onStartup: 1")).takes("global/slow.sh", 9_000);
    world.after(100, Event::ShutdownRequested);
}

#[test]
fn every_event_effect_task_and_reason_occurs_in_some_life() {
    tour();
    let seen = SEEN.lock().unwrap().clone();
    let all = EVENTS.iter().chain(EFFECTS).chain(&TASKS).chain(&REASONS);
    let missing: Vec<&&str> = all.filter(|name| !seen.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
