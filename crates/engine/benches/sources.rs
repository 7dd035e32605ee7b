//! How long the engine thinks about module sources: 1,000 configurations with 10 addons each.
//!
//! `cargo bench -p engine --bench sources` prints percentiles of single events. Of the events of 1,000 passes, 99 in 100 have to
//! take 200 µs at most. Catalogs of 10,000 modules that the loader hands over are told apart: each is a commit of what changed.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures and prints"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "effects without answer need none")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::object_patch::Operation;
use engine::snapshot::{Item, Key};
use engine::{
    Bundle, BundleKind, Catalog, Config, Digest, Effect, Engine, Event, Fetched, FetchedAddon,
    FetchedRepository, Global, Module, ModuleLink, MonitorId, Origin, Registry, RepositoryProblem,
    RepositoryReason, SourceSpec, Time,
};
use serde_json::{Value, json};

const SOURCES: usize = 1_000;
const ADDONS: usize = 10;

fn main() {
    let mut world = World::new();
    world.shown("first pass of 1,000 sources", |world| {
        for source in 0..SOURCES {
            world.apply(source);
        }
    });
    world.shown("1,000 sources are fetched again, and nothing changed", |world| {
        for source in 0..SOURCES {
            world.apply(source);
        }
    });
    world.shown("one bundle of each of 100 sources changes", |world| {
        for source in (0..SOURCES).step_by(10) {
            world.editions.insert(source, 1);
            world.apply(source);
        }
    });
    world.shown("one bundle of each of 100 sources changes, one source after the other", |world| {
        for source in (0..SOURCES).step_by(10) {
            world.editions.insert(source, 2);
            world.apply(source);
            world.rest();
        }
    });
    world.phase = "Failed";
    world.shown("no repository can be reached, and modules that are off are forgotten", |world| {
        world.is_down = true;
        for source in 0..SOURCES {
            world.apply(source);
        }
    });
}

/// What answers the engine at once.
struct World {
    engine: Engine,
    monitor: MonitorId,
    objects: BTreeMap<String, Value>,
    /// How often the first bundle of a source changed.
    editions: BTreeMap<usize, usize>,
    modules: BTreeMap<ModuleLink, Arc<Module>>,
    /// The lists that were loaded last, which the loader holds, too.
    lists: [Arc<Vec<Arc<Module>>>; 2],
    events: VecDeque<Event>,
    version: usize,
    /// Whether no repository can be reached.
    is_down: bool,
    /// The phase that all sources come to.
    phase: &'static str,
    times: Vec<(bool, Duration)>,
}

impl World {
    fn new() -> Self {
        let config = Config { namespace: "ops".to_owned(), source_workers: 4, ..Config::default() };
        let engine =
            Engine::with_registry(config, catalog(Vec::new()), &Registry::default(), &BTreeSet::new());
        let mut world = Self {
            engine,
            monitor: MonitorId::new(0),
            objects: BTreeMap::new(),
            editions: BTreeMap::new(),
            modules: BTreeMap::new(),
            lists: Default::default(),
            events: [Event::Started].into(),
            version: 0,
            is_down: false,
            phase: "Ready",
            times: Vec::new(),
        };
        world.rest();
        world
    }

    /// Lets everything happen that `change` leads to, and prints how long single events took.
    fn shown(&mut self, what: &str, change: impl FnOnce(&mut Self)) {
        self.times.clear();
        change(self);
        self.rest();
        assert!(self.objects.values().all(|object| object["status"]["phase"] == self.phase));
        let kinds = [(None, ""), (Some(false), ", without catalogs"), (Some(true), ", catalogs of modules")];
        for (kind, which) in kinds {
            let is_of_kind =
                |(is_catalog, _): &&(bool, Duration)| kind.is_none_or(|kind| kind == *is_catalog);
            let mut times: Vec<Duration> =
                self.times.iter().filter(is_of_kind).map(|(_, time)| *time).collect();
            times.sort();
            let Some(last) = times.len().checked_sub(1) else { continue };
            let at = |percent: usize| times.get(last * percent / 100).unwrap();
            println!(
                "{what}{which}: {} events, p50 {:?}, p99 {:?}, max {:?}, sum {:?}",
                times.len(),
                at(50),
                at(99),
                at(100),
                times.iter().sum::<Duration>()
            );
        }
    }

    fn rest(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let is_catalog = matches!(event, Event::ModulesLoaded { .. });
            let begun = Instant::now();
            let effects = self.engine.handle(Time::START, event);
            self.times.push((is_catalog, begun.elapsed()));
            for effect in &effects {
                self.answer(effect);
            }
        }
    }

    /// Applies a source, or raises its counter.
    fn apply(&mut self, source: usize) {
        let name = format!("source-{source}");
        let new = json!({
            "metadata": {"name": name, "uid": name, "generation": 0},
            "spec": {"repositories": [{"url": source.to_string()}], "reprocessRequest": 0},
        });
        let mut object = self.objects.remove(&name).unwrap_or(new);
        for field in ["/metadata/generation", "/spec/reprocessRequest"] {
            let counter = object.pointer_mut(field).unwrap();
            *counter = json!(counter.as_i64().unwrap() + 1);
        }
        self.store(name, object);
    }

    fn store(&mut self, name: String, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let item = Arc::new(Item::unfiltered(object.to_string().into_bytes().into(), true));
        let items = vec![(self.monitor, item)];
        self.events.push_back(Event::ObjectChanged { key: Key::new("", &name), is_gone: false, items });
        self.objects.insert(name, object);
    }

    fn answer(&mut self, effect: &Effect) {
        let event = match effect {
            Effect::StartMonitor { monitor, spec } => {
                if spec.selection.kind == "ClusterAddonsConfiguration" {
                    self.monitor = *monitor;
                }
                Event::Listed { lists: vec![(*monitor, Vec::new())] }
            }
            Effect::ListReleases { run, .. } => Event::ReleasesListed { run: *run, outcome: Ok(Vec::new()) },
            Effect::PatchObjects { run, patches, .. } => {
                for patch in patches.iter() {
                    let mut object = self.objects[&patch.target.name].clone();
                    match &patch.operation {
                        Operation::MergePatch { patch } => object["status"] = patch["status"].clone(),
                        Operation::JsonPatch { patch } => {
                            object["metadata"]["finalizers"] = patch[1]["value"].clone();
                        }
                        _ => {}
                    }
                    self.store(patch.target.name.clone(), object);
                }
                Event::ObjectsPatched { run: *run, outcome: Ok(()) }
            }
            Effect::FetchSource { run, spec, .. } => {
                Event::SourceFetched { run: *run, outcome: Ok(self.fetched(spec)) }
            }
            Effect::KeepBundles { run, .. } => Event::BundlesKept { run: *run, outcome: Ok(()) },
            Effect::DropBundles { run, .. } => Event::BundlesDropped { run: *run, outcome: Ok(()) },
            Effect::LoadModules { run, registry, .. } => {
                let links = registry.links(&BTreeSet::new());
                let modules = links.iter().map(|link| {
                    let new = || Arc::new(module(link));
                    Arc::clone(self.modules.entry(link.clone()).or_insert_with(new))
                });
                let catalog = catalog(modules.collect());
                let [last, before] = &mut self.lists;
                *before = std::mem::replace(last, Arc::clone(&catalog.modules));
                Event::ModulesLoaded { run: *run, outcome: Ok(catalog) }
            }
            _ => return,
        };
        self.events.push_back(event);
    }

    fn fetched(&self, spec: &SourceSpec) -> Fetched {
        let source: usize = spec.repositories.first().unwrap().url.parse().unwrap();
        let edition = self.editions.get(&source).copied().unwrap_or_default();
        let addon = |number: usize| {
            let name = format!("module-{}", letters(source * ADDONS + number));
            let edition = if number == 0 { edition } else { 0 };
            let bundle = Bundle {
                id: format!("3b1f6f0e-{name}"),
                name: name.as_str().into(),
                version: "1.0.0".to_owned(),
                digest: digest(source * ADDONS + number, edition),
                order: 1,
                kind: BundleKind::Module,
                namespace: None,
            };
            let version = bundle.version.clone();
            FetchedAddon { name, version, is_chosen: true, privileged: Vec::new(), outcome: Ok(bundle) }
        };
        let outcome = if self.is_down {
            let (reason, message) = (RepositoryReason::FetchingIndexError, "it can't be reached".to_owned());
            Err(RepositoryProblem { reason, message })
        } else {
            Ok((0..ADDONS).map(addon).collect())
        };
        let repository = FetchedRepository { outcome };
        Fetched { repositories: vec![repository] }
    }
}

/// Returns a name that survives as a key of values.
fn letters(mut number: usize) -> String {
    let mut text = String::new();
    for _ in 0..4 {
        text.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
        number /= 26;
    }
    text
}

fn digest(number: usize, edition: usize) -> Digest {
    format!("sha256:{edition:08x}{number:056x}").parse().unwrap()
}

fn catalog(modules: Vec<Arc<Module>>) -> Catalog {
    let global = Arc::new(Global::default());
    Catalog { global, modules: Arc::new(modules), complete: true, warnings: Vec::new() }
}

/// Returns the module of a bundle: a chart that nobody switched on.
fn module(link: &ModuleLink) -> Module {
    let key = values::name::camel(link.name.as_str());
    Module {
        name: link.name.clone(),
        key: key.as_str().into(),
        chart_key: key.as_str().into(),
        order: link.order,
        namespace: None,
        path: "/sources".into(),
        content: 1,
        origin: Origin::Bundle { digest: link.digest.clone(), enabled: None },
        enabled: None,
        enabled_script: None,
        static_values: Arc::new(
            json!({"image": format!("registry.example/{}:1.0.0", link.name), "replicas": 1}),
        ),
        schemas: Arc::default(),
        hooks: Vec::new(),
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
    }
}
