//! Counts that every event, every effect and every type of task occurs in some life.

use std::collections::BTreeSet;
use std::sync::Mutex;

use engine::hook::WatchEvent;
use engine::{
    Command, CommandId, Config, CronLine, Drift, Effect, Event, Failure, FailureKind, MonitorId, Notice,
    ReviewId,
};
use serde_json::json;

use crate::build::{config, configures, files};
use crate::world::World;

static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

const EVENTS: [&str; 25] = [
    "Started",
    "CatalogChanged",
    "CatalogRejected",
    "Commanded",
    "ConfigChanged",
    "ConfigRejected",
    "ConfigSaved",
    "CrdsEnsured",
    "CronFired",
    "HookFinished",
    "KindAppeared",
    "KindVanished",
    "Listed",
    "ModuleLoaded",
    "NamespaceListed",
    "ObjectChanged",
    "ObjectsPatched",
    "ReleaseDrifted",
    "ReleaseFinished",
    "ReleasesListed",
    "ReviewRequested",
    "ScriptFinished",
    "ShutdownRequested",
    "TimerFired",
    "WatchFailed",
];

const EFFECTS: [&str; 20] = [
    "Announce",
    "AnswerCommand",
    "AnswerReview",
    "CancelRun",
    "EnsureCrds",
    "Exit",
    "ForgetRelease",
    "ListReleases",
    "LoadModule",
    "Notify",
    "PatchObjects",
    "RunEnabledScript",
    "RunHook",
    "SaveConfigValues",
    "SetSchedules",
    "StartMonitor",
    "StopMonitor",
    "UninstallRelease",
    "UpgradeRelease",
    "WatchRelease",
];

const TASKS: [&str; 11] = [
    "ConvergeModules",
    "DiscoverHelmReleases",
    "GlobalHookEnableKubernetesBindings",
    "GlobalHookRun",
    "GlobalHookWaitKubernetesSynchronization",
    "ModuleDelete",
    "ModuleEnsureCRDs",
    "ModuleHookRun",
    "ModulePurge",
    "ModuleRun",
    "ParallelModuleRun",
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
    see(match event {
        Event::Started => "Started",
        Event::CatalogChanged { .. } => "CatalogChanged",
        Event::CatalogRejected { .. } => "CatalogRejected",
        Event::Commanded { .. } => "Commanded",
        Event::ConfigChanged { .. } => "ConfigChanged",
        Event::ConfigRejected { .. } => "ConfigRejected",
        Event::ConfigSaved { .. } => "ConfigSaved",
        Event::CrdsEnsured { .. } => "CrdsEnsured",
        Event::CronFired { .. } => "CronFired",
        Event::HookFinished { .. } => "HookFinished",
        Event::KindAppeared { .. } => "KindAppeared",
        Event::KindVanished { .. } => "KindVanished",
        Event::Listed { .. } => "Listed",
        Event::ModuleLoaded { .. } => "ModuleLoaded",
        Event::NamespaceListed { .. } => "NamespaceListed",
        Event::ObjectChanged { .. } => "ObjectChanged",
        Event::ObjectsPatched { .. } => "ObjectsPatched",
        Event::ReleaseDrifted { .. } => "ReleaseDrifted",
        Event::ReleaseFinished { .. } => "ReleaseFinished",
        Event::ReleasesListed { .. } => "ReleasesListed",
        Event::ReviewRequested { .. } => "ReviewRequested",
        Event::ScriptFinished { .. } => "ScriptFinished",
        Event::ShutdownRequested => "ShutdownRequested",
        Event::TimerFired => "TimerFired",
        Event::WatchFailed { .. } => "WatchFailed",
    });
}

pub(crate) fn saw_effect(effect: &Effect) {
    see(match effect {
        Effect::Announce(_) => "Announce",
        Effect::AnswerCommand { .. } => "AnswerCommand",
        Effect::AnswerReview { .. } => "AnswerReview",
        Effect::CancelRun { .. } => "CancelRun",
        Effect::EnsureCrds { .. } => "EnsureCrds",
        Effect::Exit => "Exit",
        Effect::ForgetRelease { .. } => "ForgetRelease",
        Effect::ListReleases { .. } => "ListReleases",
        Effect::LoadModule { .. } => "LoadModule",
        Effect::Notify(notice) => {
            match notice {
                Notice::TaskStarted { task, .. } | Notice::TaskQueued { task } => see(task.kind.as_str()),
                Notice::TaskWaits { reason, .. } => {
                    for begin in REASONS.iter().filter(|begin| reason.starts_with(**begin)) {
                        see(begin);
                    }
                }
                _ => {}
            }
            "Notify"
        }
        Effect::PatchObjects { .. } => "PatchObjects",
        Effect::RunEnabledScript { .. } => "RunEnabledScript",
        Effect::RunHook { .. } => "RunHook",
        Effect::SaveConfigValues { .. } => "SaveConfigValues",
        Effect::SetSchedules { .. } => "SetSchedules",
        Effect::StartMonitor { .. } => "StartMonitor",
        Effect::StopMonitor { .. } => "StopMonitor",
        Effect::UninstallRelease { .. } => "UninstallRelease",
        Effect::UpgradeRelease { .. } => "UpgradeRelease",
        Effect::WatchRelease { .. } => "WatchRelease",
    });
}

/// One life with as much in it as possible.
fn tour() {
    let tick = "schedule: [{name: tick, crontab: '* * * * *', queue: side}]";
    let before = files()
        .global_hook("g.sh", "{onStartup: 1, kubernetes: [{name: pods, kind: Pod}, {name: nodes, kind: Node, queue: side}]}")
        .global_hook("rare.sh", "{settings: {executionMinInterval: 1m}, schedule: [{name: tick, crontab: '* * * * *'}]}")
        .module(10, "a")
        .hook("a.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing}, {name: slow, kind: Node, queue: side}]}")
        .module(10, "b")
        .hook("b.sh", tick)
        .script()
        .module(20, "crds")
        .with(|module| module.crds = vec!["crds/x.yaml".into()])
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
        .fails("a/a.sh", 1);
    world.run();
    world.kind_appears("Thing");
    world.run();
    for n in 0..3 {
        world.send_in(n, Event::CronFired { line: CronLine::from("* * * * *") });
    }
    world.run();
    let monitor = MonitorId::new(1);
    world.send_in(0, Event::WatchFailed { monitor, failure: Failure::new(FailureKind::Cluster, "x") });
    world.send_in(0, Event::NamespaceListed { monitor, namespace: "n".into(), objects: Vec::new() });
    world.send_in(1, Event::ConfigRejected { failure: Failure::new(FailureKind::Cluster, "x") });
    world.send_in(2, Event::ReleaseDrifted { module: "a".into(), drift: Drift::Status("failed".into()) });
    world.send_in(
        3,
        Event::ReviewRequested { id: ReviewId::new(1), webhook: "w".into(), review: json!(null).into() },
    );
    world.send_in(4, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    let at = world.later(0);
    world =
        world.change(at + 5, "Pod", WatchEvent::Added, "x").at(at + 300, config(200, &[("global", "a: 1")]));
    world.run();
    let at = world.later(0);
    world = world.at(at + 1, config(201, &[("global", "a: 1"), ("aEnabled", "false")]));
    world.run();
    let mut after = before.clone();
    after.modules[1].broken = Some(Failure::new(FailureKind::Files, "garbage"));
    after.modules[1].content = 2;
    world.send_in(0, Event::CatalogRejected { failure: Failure::new(FailureKind::Files, "x") });
    world.send_in(0, Event::CatalogChanged { catalog: after.catalog() });
    world.send_in(1, Event::CronFired { line: CronLine::from("* * * * *") });
    world.run();
    // A converge that begins anew while a module of a wave is being upgraded waits for that.
    let at = world.later(0);
    let mut world = World::with_config(
        &files().module(1, "x").module(1, "y"),
        Config { module_concurrency: 2, ..Config::default() },
    );
    let _ = at;
    world = world
        .release("x", Ok(engine::ReleaseAction::Installed))
        .takes("x", 10)
        .at(20, config(300, &[("global", "a: 2"), ("yEnabled", "false")]));
    world.send_in(25, Event::Commanded { id: CommandId::new(2), command: Command::Converge });
    world.run();
    // The end in the middle of a hook.
    let mut world =
        World::new(&files().global_hook("slow.sh", "onStartup: 1")).takes("global/slow.sh", 9_000);
    world.send_in(100, Event::ShutdownRequested);
    world.run();
}

#[test]
fn every_event_effect_task_and_reason_occurs_in_some_life() {
    tour();
    let seen = SEEN.lock().unwrap().clone();
    let all = EVENTS.iter().chain(&EFFECTS).chain(&TASKS).chain(&REASONS);
    let missing: Vec<&&str> = all.filter(|name| !seen.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
