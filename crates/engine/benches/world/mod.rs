//! Configurations of module sources with ten addons each, and what answers the engine at once. What each event costs is measured
//! by a gauge, which is read before and behind it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use engine::object_patch::Operation;
use engine::snapshot::{Item, Key};
use engine::{
    Bundle, BundleKind, Catalog, Config, Digest, Effect, Engine, Event, Fetched, FetchedAddon,
    FetchedRepository, Global, Module, ModuleLink, MonitorId, Origin, RegisteredAddon, Registry,
    RepositoryProblem, RepositoryReason, SourceKey, SourceSpec, Time,
};
use serde_json::{Value, json};

/// How many addons a source has.
pub(crate) const ADDONS: usize = 10;

/// What one event cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Whether it was a catalog of modules that was loaded.
    pub(crate) is_catalog: bool,
    /// By how much the gauge rose.
    pub(crate) amount: u64,
}

/// What answers the engine at once.
pub(crate) struct World {
    pub(crate) engine: Engine,
    gauge: fn() -> u64,
    monitor: MonitorId,
    objects: BTreeMap<String, Value>,
    /// How often the first bundle of a source changed.
    pub(crate) editions: BTreeMap<usize, usize>,
    /// How many addons sources have that do not have ten.
    pub(crate) sizes: BTreeMap<usize, usize>,
    modules: BTreeMap<ModuleLink, Arc<Module>>,
    /// The lists that were loaded last, which the loader holds, too.
    lists: [Arc<Vec<Arc<Module>>>; 2],
    events: VecDeque<Event>,
    version: usize,
    /// Whether no repository can be reached.
    pub(crate) is_down: bool,
    /// What the events cost so far.
    pub(crate) costs: Vec<Cost>,
}

impl World {
    /// Returns a world without sources.
    pub(crate) fn new(gauge: fn() -> u64) -> Self {
        Self::restored(gauge, 0)
    }

    /// Returns a world whose operator begins with so many sources, all of whose modules are registered.
    pub(crate) fn restored(gauge: fn() -> u64, sources: usize) -> Self {
        let registered = |source: usize| (0..ADDONS).map(move |number| registered(source, number));
        let registry = Registry { addons: (0..sources).flat_map(registered).collect(), is_written: true };
        let mut modules = BTreeMap::new();
        let list = loaded(&mut modules, &registry);
        let config = Config {
            namespace: "ops".to_owned(),
            source_workers: 4,
            are_source_kinds_served: true,
            ..Config::default()
        };
        let engine = Engine::with_registry(config, catalog(Arc::clone(&list)), &registry, &BTreeSet::new());
        let mut world = Self {
            engine,
            gauge,
            monitor: MonitorId::new(0),
            objects: BTreeMap::new(),
            editions: BTreeMap::new(),
            sizes: BTreeMap::new(),
            modules,
            lists: [list, Arc::default()],
            events: [Event::Started].into(),
            version: 0,
            is_down: false,
            costs: Vec::new(),
        };
        for source in 0..sources {
            let name = name(source);
            let mut object = new(source);
            object["metadata"]["finalizers"] = json!(["addons.kyma-project.io"]);
            object["status"] = json!({"phase": "Ready", "observedGeneration": 0});
            world.objects.insert(name, object);
        }
        world.rest();
        world
    }

    /// Lets everything happen that the waiting events lead to.
    pub(crate) fn rest(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let is_catalog = matches!(event, Event::ModulesLoaded { .. });
            let before = (self.gauge)();
            let effects = self.engine.handle(Time::START, event);
            self.costs.push(Cost { is_catalog, amount: (self.gauge)() - before });
            for effect in &effects {
                self.answer(effect);
            }
        }
    }

    /// Returns the phases of the sources.
    pub(crate) fn phases(&self) -> BTreeSet<&str> {
        self.objects.values().filter_map(|object| object["status"]["phase"].as_str()).collect()
    }

    /// Applies a source, or raises its counter.
    pub(crate) fn apply(&mut self, source: usize) {
        let name = name(source);
        let mut object = self.objects.remove(&name).unwrap_or_else(|| new(source));
        for field in ["/metadata/generation", "/spec/reprocessRequest"] {
            let counter = object.pointer_mut(field).unwrap();
            *counter = json!(counter.as_i64().unwrap() + 1);
        }
        self.store(name, object);
    }

    fn store(&mut self, name: String, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let items = vec![(self.monitor, item(&object))];
        self.events.push_back(Event::ObjectChanged { key: Key::new("", &name), is_gone: false, items });
        self.objects.insert(name, object);
    }

    fn answer(&mut self, effect: &Effect) {
        let event = match effect {
            Effect::StartMonitor { monitor, spec } => {
                let mut objects = Vec::new();
                if spec.selection.kind == "ClusterAddonsConfiguration" {
                    self.monitor = *monitor;
                    objects.extend(self.objects.iter().map(|(name, its)| (Key::new("", name), item(its))));
                }
                Event::Listed { lists: vec![(*monitor, objects)] }
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
                let modules = loaded(&mut self.modules, registry);
                let [last, before] = &mut self.lists;
                *before = std::mem::replace(last, Arc::clone(&modules));
                Event::ModulesLoaded { run: *run, outcome: Ok(catalog(modules)) }
            }
            _ => return,
        };
        self.events.push_back(event);
    }

    fn fetched(&self, spec: &SourceSpec) -> Fetched {
        let source: usize = spec.repositories.first().unwrap().url.parse().unwrap();
        let edition = self.editions.get(&source).copied().unwrap_or_default();
        let addon = |number: usize| {
            let bundle = bundle(source, number, if number == 0 { edition } else { 0 });
            let (name, version) = (bundle.name.to_string(), bundle.version.clone());
            FetchedAddon { name, version, is_chosen: true, privileged: Vec::new(), outcome: Ok(bundle) }
        };
        let outcome = if self.is_down {
            let (reason, message) = (RepositoryReason::FetchingIndexError, "it can't be reached".to_owned());
            Err(RepositoryProblem { reason, message })
        } else {
            Ok((0..self.sizes.get(&source).copied().unwrap_or(ADDONS)).map(addon).collect())
        };
        let repository = FetchedRepository { outcome };
        Fetched { repositories: vec![repository] }
    }
}

fn name(source: usize) -> String {
    format!("source-{source}")
}

fn new(source: usize) -> Value {
    json!({
        "metadata": {"name": name(source), "uid": name(source), "generation": 0},
        "spec": {"repositories": [{"url": source.to_string()}], "reprocessRequest": 0},
    })
}

fn item(object: &Value) -> Arc<Item> {
    Arc::new(Item::unfiltered(object.to_string().into_bytes().into(), true))
}

fn bundle(source: usize, number: usize, edition: usize) -> Bundle {
    let (name, number) =
        (format!("module-{}", letters(source * 2 * ADDONS + number)), source * 2 * ADDONS + number);
    Bundle {
        id: format!("3b1f6f0e-{name}"),
        name: name.as_str().into(),
        version: "1.0.0".to_owned(),
        digest: digest(number, edition),
        order: 1,
        kind: BundleKind::Module,
        namespace: None,
    }
}

fn registered(source: usize, number: usize) -> RegisteredAddon {
    RegisteredAddon::new(SourceKey::cluster(&name(source)), source.to_string(), bundle(source, number, 0))
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

/// Returns the modules of a registry. Those that were loaded before are handed out again.
fn loaded(modules: &mut BTreeMap<ModuleLink, Arc<Module>>, registry: &Registry) -> Arc<Vec<Arc<Module>>> {
    let links = registry.links(&BTreeSet::new());
    let modules = links.iter().map(|link| {
        let new = || Arc::new(module(link));
        Arc::clone(modules.entry(link.clone()).or_insert_with(new))
    });
    Arc::new(modules.collect())
}

fn catalog(modules: Arc<Vec<Arc<Module>>>) -> Catalog {
    let global = Arc::new(Global::default());
    Catalog { global, modules, complete: true, warnings: Vec::new() }
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
