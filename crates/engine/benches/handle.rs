//! How long the engine thinks: 1,000 modules, 10,000 queued tasks.
//!
//! `cargo bench -p engine` prints percentiles of single events first, then what divan measures.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures and prints"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "effects without answer need none")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::Bencher;
use engine::hook::{HookKind, config};
use engine::snapshot::{Item, Key};
use engine::{
    Catalog, Config, CronLine, Effect, EnabledFlag, Engine, Event, Global, Hook, HookId, HookOutput, Module,
    ModuleName, MonitorId, ReleaseAction, ReleaseOutcome, Scope, Time,
};
use serde_json::json;

fn main() {
    percentiles();
    divan::main();
}

fn hook(scope: Scope, name: &str, text: &str) -> Arc<Hook> {
    let kind = if scope == Scope::Global { HookKind::Global } else { HookKind::Module };
    let spec = config::parse(name.into(), kind, &format!("{{configVersion: v1, {text}}}")).unwrap();
    Arc::new(Hook {
        id: HookId { scope, name: name.into() },
        path: name.into(),
        content: 1,
        launch: engine::Launch::default(),
        spec,
    })
}

fn module(number: u32) -> Arc<Module> {
    let name = format!("module-{number}");
    let scope = Scope::Module(ModuleName::from(name.as_str()));
    Arc::new(Module {
        name: ModuleName::from(name.as_str()),
        key: values::name::camel(&name).as_str().into(),
        chart_key: values::name::camel(&name).as_str().into(),
        order: number,
        namespace: None,
        path: "/modules".into(),
        content: 1,
        origin: engine::Origin::Files,
        enabled: Some(EnabledFlag { value: true, source: "values.yaml".into() }),
        enabled_script: None,
        static_values: Arc::new(json!({"replicas": 1, "image": {"tag": "1.2.3"}, "list": [1, 2, 3]})),
        schemas: Arc::default(),
        hooks: vec![
            hook(scope.clone(), "before.sh", "beforeHelm: 1"),
            hook(
                scope,
                "watch.sh",
                &format!(
                    "kubernetes: [{{name: pods, kind: Pod}}], schedule: [{{name: tick, crontab: '{} * * * *'}}]",
                    number % 60
                ),
            ),
        ],
        layout: engine::ValuesLayout::Section,
        plans: engine::Plans::default(),
        has_unread_hooks: false,
        has_chart: true,
        chart: None,
        package: None,
        version: None,
        settings: engine::ModuleSettings::default(),
        dependencies: engine::ChartDependencies::default(),
        crds: Vec::new(),
        broken: None,
    })
}

fn engine(modules: u32) -> Engine {
    let global = Global {
        hooks: vec![hook(Scope::Global, "all.sh", "beforeAll: 1, afterAll: 1")],
        ..Global::default()
    };
    let modules = (0..modules).map(module).collect();
    let catalog = Catalog {
        global: Arc::new(global),
        modules: Arc::new(modules),
        complete: true,
        warnings: Vec::new(),
    };
    Engine::new(Config::default(), catalog)
}

/// Returns the event that answers `effect` with success.
fn answer(effect: &Effect) -> Option<Event> {
    Some(match effect {
        Effect::RunHook { run, .. } => {
            Event::HookFinished { run: *run, outcome: Ok(HookOutput::default()), usage: None }
        }
        Effect::UpgradeRelease { run, .. } => {
            let outcome = ReleaseOutcome {
                action: ReleaseAction::Installed,
                revision: 1,
                checksum: 1,
                changed: None,
                taken_over: Vec::new(),
            };
            Event::ReleaseFinished { run: *run, outcome: Ok(outcome) }
        }
        Effect::ListReleases { run, .. } => Event::ReleasesListed { run: *run, outcome: Ok(Vec::new()) },
        Effect::StartMonitor { monitor, .. } => Event::Listed { lists: vec![(*monitor, Vec::new())] },
        _ => return None,
    })
}

/// Lets everything happen, and returns how long each event took.
fn converge(engine: &mut Engine, first: Event) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut events = vec![first];
    while let Some(event) = events.pop() {
        let begun = Instant::now();
        let effects = engine.handle(Time::START, event);
        times.push(begun.elapsed());
        events.extend(effects.iter().filter_map(answer));
    }
    times
}

/// An engine with 1,000 modules whose main queue holds 10,000 tasks behind a hook that runs.
fn crowded() -> Engine {
    let mut engine = engine(1_000);
    converge(&mut engine, Event::Started);
    for round in 0..10 {
        for minute in 0..60 {
            let _ = engine
                .handle(Time::START, Event::CronFired { line: CronLine::from(format!("{minute} * * * *")) });
        }
        let length: usize = engine.view().queues.iter().map(|queue| queue.tasks.len()).sum();
        assert_eq!(length, 1_000 * (round + 1));
    }
    engine
}

fn object(n: usize) -> Event {
    let item = Arc::new(Item::unfiltered(format!("{{\"n\":{n}}}").into_bytes().into(), true));
    Event::ObjectChanged {
        key: Key::new("ns", &format!("o{n}")),
        is_gone: false,
        items: vec![(MonitorId::new(1), item)],
    }
}

fn shown(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times.get((times.len() - 1) * percent / 100).unwrap();
    println!(
        "{what}: {} events, p50 {:?}, p99 {:?}, max {:?}, sum {:?}",
        times.len(),
        at(50),
        at(99),
        at(100),
        times.iter().sum::<Duration>()
    );
}

fn percentiles() {
    let mut engine = engine(1_000);
    shown("first converge of 1,000 modules", converge(&mut engine, Event::Started));
    let mut engine = crowded();
    let run = engine::RunId::new(u64::MAX);
    let stale = (0..1_000).map(|_| {
        let event = Event::HookFinished { run, outcome: Ok(HookOutput::default()), usage: None };
        let begun = Instant::now();
        let _ = engine.handle(Time::START, event);
        begun.elapsed()
    });
    shown("stale answers, 10,000 tasks queued", stale.collect());
    let running = engine
        .view()
        .queues
        .iter()
        .flat_map(|queue| &queue.tasks)
        .filter(|task| task.running.is_some())
        .count();
    assert_eq!(running, 1);
    let mut engine = crowded();
    let first = (1..).map(engine::RunId::new).find_map(|run| {
        let effects = engine.handle(
            Time::START,
            Event::HookFinished { run, outcome: Ok(HookOutput::default()), usage: None },
        );
        effects.iter().find_map(answer)
    });
    shown("answers, 10,000 tasks queued", converge(&mut engine, first.unwrap()));
    let mut engine = crowded();
    let drift = (0..1_000).map(|n| {
        let event = Event::ReleaseDrifted {
            module: ModuleName::from(format!("module-{n}")),
            drift: engine::Drift::Status("failed".into()),
        };
        let begun = Instant::now();
        let _ = engine.handle(Time::START, event);
        begun.elapsed()
    });
    shown("drifts, 10,000 tasks queued", drift.collect());
}

#[divan::bench(sample_count = 20)]
fn whole_converge_of_1000_modules(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| engine(1_000))
        .bench_local_values(|mut engine| converge(&mut engine, Event::Started).len());
}

#[divan::bench(sample_count = 20)]
fn one_object_for_1000_bindings_with_10000_tasks(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(crowded).bench_local_values(|mut engine| engine.handle(Time::START, object(1)).len());
}

#[divan::bench(sample_count = 20)]
fn picture_of_10000_tasks(bencher: Bencher<'_, '_>) {
    let engine = crowded();
    bencher.bench_local(|| engine.view().queues.len());
}
