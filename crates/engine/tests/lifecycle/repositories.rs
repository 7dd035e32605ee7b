//! A pretend outside for module sources: objects of configurations, repositories, the store and what is kept in the cluster.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use engine::object_patch::{ObjectPatch, Operation};
use engine::snapshot::{Item, Key};
use engine::{
    AddonProblem, AddonReason, Bundle, BundleKind, Catalog, Config, Digest, Effect, Engine, Event, Failure,
    FailureKind, Fetched, FetchedAddon, FetchedRepository, Module, ModuleLink, Origin, OwnedRelease,
    Registry, ReleaseTarget, RepositoryProblem, RepositoryReason, RunId, SourceKey, SourceSpec, StoreError,
    Time,
};
use serde_json::{Value, json};

use crate::build::Files;
use crate::world::World;

pub(crate) const KIND: &str = "ClusterAddonsConfiguration";

/// The kind of objects whose name here is `namespace/name`.
pub(crate) const NAMESPACED: &str = "AddonsConfiguration";

/// What a repository offers, by URL.
pub(crate) type Offer = Result<Vec<FetchedAddon>, RepositoryProblem>;

#[derive(Default)]
pub(crate) struct Repositories {
    pub(crate) files: Files,
    pub(crate) objects: BTreeMap<String, Value>,
    version: u64,
    pub(crate) offers: BTreeMap<String, Offer>,
    /// Whether nobody has asked the hooks of bundles for their configuration.
    has_unread_hooks: bool,
    /// The bundles whose hooks were asked by this process, if that counts.
    asked: Option<BTreeSet<Digest>>,
    /// What each bundle is as a module.
    pub(crate) bundles: BTreeMap<Digest, Module>,
    /// The bundles in the store directory.
    pub(crate) stored: BTreeSet<Digest>,
    pub(crate) registry: Registry,
    /// What was registered, one after the other, and when it was decided.
    pub(crate) registered: Vec<(Time, Registry)>,
    pub(crate) marked: BTreeSet<String>,
    pub(crate) fetches: usize,
    /// The bundles that the last write of the registry left in Secrets.
    pub(crate) in_secrets: BTreeSet<Digest>,
    /// How long fetching a configuration takes, in milliseconds.
    pub(crate) takes: BTreeMap<String, u64>,
    pub(crate) keeping: VecDeque<StoreError>,
    pub(crate) loading: VecDeque<Failure>,
    /// Bundles that were fetched and may not be used, such as those that nobody signed.
    pub(crate) refused: BTreeSet<u64>,
    /// Each write of an object: which, and what.
    pub(crate) writes: Vec<String>,
    /// Ids that were owned twice, and modules that were forgotten too early.
    pub(crate) faults: Vec<String>,
    /// The modules of bundles with a hook `end.sh` that were released, and whose hook has not come to its end since.
    pub(crate) owed: BTreeSet<String>,
    /// The runs of these hooks.
    ends: BTreeMap<RunId, String>,
    /// The modules that were loaded last.
    loaded: RefCell<Arc<Vec<Arc<Module>>>>,
}

pub(crate) fn config() -> Config {
    Config { namespace: "ops".to_owned(), source_workers: 4, ..Config::default() }
}

/// Returns how an object is called here.
fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Returns the digest that a number stands for.
pub(crate) fn digest(number: u64) -> Digest {
    format!("sha256:{number:064x}").parse().unwrap()
}

/// Returns an addon of a repository: its id is its name unless given, its digest a number.
pub(crate) fn addon(name: &str, version: &str, number: u64) -> FetchedAddon {
    let bundle = Bundle {
        id: format!("id-{name}"),
        name: name.into(),
        version: version.to_owned(),
        digest: digest(number),
        order: 50,
        kind: BundleKind::Module,
        namespace: None,
    };
    let (name, version) = (name.to_owned(), version.to_owned());
    FetchedAddon { name, version, is_chosen: true, privileged: Vec::new(), outcome: Ok(bundle) }
}

/// Returns the addon with another id.
pub(crate) fn with_id(mut addon: FetchedAddon, id: &str) -> FetchedAddon {
    if let Ok(bundle) = &mut addon.outcome {
        id.clone_into(&mut bundle.id);
    }
    addon
}

/// Returns the addon as one that failed.
pub(crate) fn broken(mut addon: FetchedAddon, reason: AddonReason) -> FetchedAddon {
    addon.outcome = Err(AddonProblem { reason, message: "it can't be used".to_owned() });
    addon
}

pub(crate) fn unreachable_index() -> Offer {
    let message = "the server answered 404".to_owned();
    Err(RepositoryProblem { reason: RepositoryReason::FetchingIndexError, message })
}

/// A world in which sources are looked after.
pub(crate) fn sourced(files: &Files) -> World {
    sourced_with(files, config())
}

pub(crate) fn sourced_with(files: &Files, config: Config) -> World {
    let mut world = World::with_config(files, config);
    world.repositories.files = files.clone();
    world
}

impl World {
    /// Makes a repository offer this from now on.
    pub(crate) fn offers(&mut self, url: &str, offer: Offer) {
        self.repositories.offers.insert(url.to_owned(), offer);
    }

    /// Says what the bundle of an addon is as a module: an enabled chart with these hooks.
    pub(crate) fn bundle(&mut self, number: u64, name: &str, hooks: &[(&str, &str)]) {
        let mut files = crate::build::files().module(50, name).off();
        for (hook, config) in hooks {
            files = files.hook(hook, config);
        }
        let mut module = files.modules.remove(0);
        module.content = number;
        for hook in &mut module.hooks {
            Arc::make_mut(hook).content = number;
        }
        module.origin = Origin::Bundle { digest: digest(number), enabled: None };
        self.repositories.bundles.insert(digest(number), module);
    }

    /// Lets the module of a bundle require another one.
    pub(crate) fn bundle_requires(&mut self, number: u64, other: &str) {
        let module = self.repositories.bundles.get_mut(&digest(number)).unwrap();
        module.settings.requires = vec![engine::Requirement { module: other.into(), version: None }];
    }

    /// Lets the module of a bundle have a file with CRDs; one that is named `broken.yaml` can't be used.
    pub(crate) fn bundle_defines(&mut self, number: u64, file: &str) {
        self.repositories.bundles.get_mut(&digest(number)).unwrap().crds = vec![file.into()];
    }

    /// Applies a configuration with these repositories.
    pub(crate) fn applies(&mut self, name: &str, urls: &[&str]) {
        let list: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
        self.edits(name, |spec| spec["repositories"] = json!(list));
    }

    /// Edits the spec of a configuration, which is created if it is not there.
    pub(crate) fn edits(&mut self, name: &str, edit: impl FnOnce(&mut Value)) {
        let new = || json!({"metadata": {"name": name, "uid": format!("uid-of-{name}"), "generation": 0}, "spec": {"repositories": []}});
        let mut object = self.repositories.objects.get(name).cloned().unwrap_or_else(new);
        edit(&mut object["spec"]);
        object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap() + 1);
        self.stores(name, object);
    }

    /// Writes an annotation of a configuration as a person does.
    pub(crate) fn annotates(&mut self, name: &str, annotation: &str, value: &str) {
        let mut object = self.repositories.objects[name].clone();
        object["metadata"]["annotations"][annotation] = json!(value);
        self.stores(name, object);
    }

    /// Deletes a configuration as a person does.
    pub(crate) fn deletes(&mut self, name: &str) {
        let mut object = self.repositories.objects[name].clone();
        object["metadata"]["deletionTimestamp"] = json!("now");
        object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap() + 1);
        self.stores(name, object);
    }

    /// Writes the status of a configuration as somebody else does.
    pub(crate) fn meddles(&mut self, name: &str) {
        let mut object = self.repositories.objects[name].clone();
        object["status"]["phase"] = json!("Odd");
        self.stores(name, object);
    }

    /// Edits the status of a configuration as somebody else does.
    pub(crate) fn forges(&mut self, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut object = self.repositories.objects[name].clone();
        edit(&mut object["status"]);
        self.stores(name, object);
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.repositories.objects.get(name).map_or(Value::Null, |object| object["status"].clone())
    }

    pub(crate) fn phase(&self, name: &str) -> String {
        self.status(name)["phase"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn version(&self, name: &str) -> String {
        self.repositories.objects[name]["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    /// Returns all reasons and messages in a status.
    pub(crate) fn problems(&self, name: &str) -> Vec<String> {
        let mut problems = Vec::new();
        for repository in self.status(name)["repositories"].as_array().into_iter().flatten() {
            for line in
                std::iter::once(repository).chain(repository["addons"].as_array().into_iter().flatten())
            {
                if let Some(reason) = line["reason"].as_str() {
                    problems.push(format!("{reason}: {}", line["message"].as_str().unwrap()));
                }
            }
        }
        problems
    }

    /// Returns the states of modules in a status.
    pub(crate) fn states(&self, name: &str) -> Vec<String> {
        let status = self.status(name);
        let lines = status["repositories"].as_array().into_iter().flatten();
        let lines = lines.flat_map(|line| line["addons"].as_array().into_iter().flatten());
        let modules = lines.map(|line| &line["module"]).filter(|module| !module.is_null());
        modules
            .map(|its| format!("{} {}", its["name"].as_str().unwrap(), its["state"].as_str().unwrap()))
            .collect()
    }

    pub(crate) fn stores(&mut self, name: &str, mut object: Value) {
        if self.repositories.objects.get(name) == Some(&object) {
            return;
        }
        self.repositories.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.repositories.version.to_string());
        let is_gone = !object["metadata"]["deletionTimestamp"].is_null()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        let item = Item::unfiltered(object.to_string().into_bytes().into(), true);
        let (kind, key) = match name.split_once('/') {
            Some((namespace, name)) => (NAMESPACED, Key::new(namespace, name)),
            None => (KIND, Key::new("", name)),
        };
        if is_gone {
            self.repositories.objects.remove(name);
        } else {
            self.repositories.objects.insert(name.to_owned(), object);
        }
        self.watched(kind, key, is_gone, &Arc::new(item));
    }

    /// Changes the object of a configuration, as the API server does.
    pub(crate) fn patch_source(&mut self, run: RunId, source: &SourceKey, patches: &[ObjectPatch]) {
        let outcome = match self.patching.pop_front() {
            Some(Err(failure)) => Err(failure),
            Some(Ok(())) | None => patches.iter().try_for_each(|patch| self.patch_one(source, patch)),
        };
        self.in_flight.insert(run, None);
        self.send_in(5, Event::ObjectsPatched { run, outcome });
    }

    fn patch_one(&mut self, source: &SourceKey, patch: &ObjectPatch) -> Result<(), Failure> {
        let name = &full_name(&patch.target.namespace, &patch.target.name);
        let Some(mut object) = self.repositories.objects.get(name).cloned() else {
            assert!(patch.ignore_missing_object || patch.target.subresource.is_none());
            return Ok(());
        };
        let what = match &patch.operation {
            Operation::MergePatch { patch } => {
                object["status"] = patch["status"].clone();
                format!("status {}", patch["status"]["phase"].as_str().unwrap())
            }
            Operation::JsonPatch { patch } => {
                let mut what = String::new();
                for step in patch.as_array().unwrap() {
                    let field = step["path"].as_str().unwrap();
                    if step["op"] == "test" {
                        if object.pointer(field) != Some(&step["value"]) {
                            return Err(Failure::new(FailureKind::Cluster, "the object was changed"));
                        }
                        continue;
                    }
                    let (parent, field) = field.rsplit_once('/').unwrap();
                    what = format!("{field} {}", step["value"]);
                    object.pointer_mut(parent).unwrap()[field] = step["value"].clone();
                    if parent == "/spec" {
                        let generation = object["metadata"]["generation"].as_i64().unwrap();
                        object["metadata"]["generation"] = json!(generation + 1);
                    }
                }
                what
            }
            _ => panic!("sources do not do this: {patch}"),
        };
        assert_eq!(self.monitors.values().filter(|kind| *kind == KIND).count(), 1);
        let author = full_name(&source.namespace, &source.name);
        self.repositories.writes.push(format!("{author} {name} {what}"));
        self.stores(name, object);
        Ok(())
    }

    pub(crate) fn fetch_source(&mut self, run: RunId, source: &SourceKey, spec: &SourceSpec) {
        self.in_flight.insert(run, None);
        self.repositories.fetches += 1;
        let fetched = spec.repositories.iter().map(|repository| {
            let offer = self.repositories.offers.get(&repository.url).cloned();
            FetchedRepository { outcome: offer.unwrap_or_else(unreachable_index) }
        });
        let fetched = Fetched { repositories: fetched.collect() };
        for addon in fetched.repositories.iter().flat_map(|its| its.outcome.iter().flatten()) {
            self.repositories.stored.extend(addon.outcome.iter().map(|bundle| bundle.digest.clone()));
        }
        let outcome = Ok(fetched);
        let name = full_name(&source.namespace, &source.name);
        let takes = self.repositories.takes.get(&name).copied().unwrap_or(20);
        self.send_in(takes, Event::SourceFetched { run, outcome });
    }

    pub(crate) fn keep_bundles(&mut self, run: RunId, registry: &Registry, lost: &[Digest]) {
        self.in_flight.insert(run, None);
        let mut outcome = self.repositories.keeping.pop_front().map_or(Ok(()), Err);
        let digests: BTreeSet<Digest> = registry.digests();
        let is_missing =
            |digest: &&Digest| !self.repositories.stored.contains(digest) && !lost.contains(digest);
        let missing = digests.iter().filter(is_missing);
        let missing: Vec<_> = missing
            .map(|digest| (digest.clone(), Failure::new(FailureKind::Files, "the bundle is not there")))
            .collect();
        if outcome.is_ok() && !missing.is_empty() {
            outcome = Err(StoreError::Bundles(missing));
        }
        if outcome.is_ok() {
            self.repositories.registry = registry.clone();
            self.repositories.registered.push((self.now, registry.clone()));
            self.repositories.in_secrets =
                digests.iter().filter(|digest| !lost.contains(digest)).cloned().collect();
            self.note_owners();
            self.note_forgotten();
        }
        let takes = self.takes_for("keep bundles", 10);
        self.send_in(takes, Event::BundlesKept { run, outcome });
    }

    /// No id is owned twice, and no module.
    fn note_owners(&mut self) {
        let (mut ids, mut modules) = (BTreeMap::new(), BTreeMap::new());
        for addon in self.repositories.registry.addons.iter() {
            let owner = &addon.source;
            let id = (addon.bundle.id.clone(), owner.namespace.clone());
            if addon.is_registered() && ids.insert(id, owner).is_some_and(|other| other != owner) {
                self.repositories.faults.push(format!("id {} is owned twice", addon.bundle.id));
            }
            if addon.is_active && modules.insert(addon.bundle.name.clone(), owner).is_some() {
                self.repositories.faults.push(format!("module {} is there twice", addon.bundle.name));
            }
        }
    }

    /// No module is forgotten before its last hook has come to its end.
    fn note_forgotten(&mut self) {
        let has = |name: &str| {
            let mut addons = self.repositories.registry.addons.iter();
            addons
                .any(|addon| (addon.is_active || addon.is_displaced()) && addon.bundle.name.as_str() == name)
        };
        let forgotten: Vec<String> =
            self.repositories.owed.iter().filter(|name| !has(name)).cloned().collect();
        for name in forgotten {
            self.repositories.faults.push(format!("module {name} is forgotten before its last hook"));
            self.repositories.owed.remove(&name);
        }
    }

    /// Notes that a hook of a removal came to its end.
    pub(crate) fn note_end(&mut self, event: &Event) {
        if let Event::HookFinished { run, outcome, .. } = event
            && let Some(module) = self.repositories.ends.remove(run)
            && outcome.is_ok()
        {
            self.repositories.owed.remove(&module);
        }
    }

    pub(crate) fn load_modules(&mut self, run: RunId, links: &[ModuleLink]) {
        self.in_flight.insert(run, None);
        let is_stored = |link: &ModuleLink| self.repositories.stored.contains(&link.digest);
        let outcome = match self.repositories.loading.pop_front() {
            Some(failure) => Err(failure),
            None if !links.iter().all(is_stored) => {
                Err(Failure::new(FailureKind::Files, "a bundle is not in the store"))
            }
            None => Ok(self.repositories.catalog(links)),
        };
        self.send_in(10, Event::ModulesLoaded { run, outcome });
    }

    pub(crate) fn drop_bundles(&mut self, run: RunId, keep: &[Digest]) {
        self.in_flight.insert(run, None);
        self.repositories.stored.retain(|digest| keep.contains(digest));
        self.repositories.in_secrets.retain(|digest| keep.contains(digest));
        self.send_in(5, Event::BundlesDropped { run, outcome: Ok(()) });
    }

    pub(crate) fn restore_bundles(&mut self, run: RunId, digests: &[Digest]) {
        self.in_flight.insert(run, None);
        let (there, lost): (BTreeSet<Digest>, BTreeSet<Digest>) =
            digests.iter().cloned().partition(|digest| self.repositories.in_secrets.contains(digest));
        self.repositories.stored.extend(there);
        self.send_in(5, Event::BundlesRestored { run, lost });
    }

    pub(crate) fn owned_releases(&self, target: &ReleaseTarget) -> Vec<OwnedRelease> {
        let owned = |place: &String| {
            let name = place.split('/').next_back().unwrap();
            let is_sourced = self.repositories.marked.contains(name);
            (self.place(name, target) == *place).then(|| OwnedRelease { name: name.into(), is_sourced })
        };
        self.deployed.keys().filter_map(owned).collect()
    }

    pub(crate) fn mark(&mut self, effect: &Effect) {
        if let Effect::RunHook { run, hook, .. } = effect
            && let Some(module) = hook.id.scope.module()
            && hook.id.name.as_str() == "end.sh"
        {
            self.repositories.ends.insert(*run, module.to_string());
        }
        let Effect::UpgradeRelease { module, source, .. } = effect else { return };
        let name = module.name.to_string();
        if source.is_some() {
            self.repositories.marked.insert(name.clone());
        }
        if source.is_some() && module.hooks.iter().any(|hook| hook.id.name.as_str() == "end.sh") {
            self.repositories.owed.insert(name);
        } else {
            self.repositories.owed.remove(&name);
        }
    }

    /// The operator ends at once and starts again.
    pub(crate) fn restarts(&mut self) {
        let catalog = self.repositories.catalog(&self.repositories.registry.links(&BTreeSet::new()));
        let registry = self.repositories.registry.clone();
        let config = Config { started_at: "2024-05-01T10:00:00Z".parse().unwrap(), ..config() };
        let digests = registry.digests().into_iter();
        let lost = digests.filter(|digest| !self.repositories.stored.contains(digest)).collect();
        self.engine = Engine::with_registry(config, catalog, &registry, &lost);
        self.repositories.ends.clear();
        self.forgets_everything();
        self.send_in(0, Event::Started);
    }

    /// Does the same with these flags in the `ConfigMap`, which a new process reads before anything else.
    pub(crate) fn restarts_flagged(&mut self, flags: &[(&str, &str)]) {
        self.restarts();
        self.forgets_everything();
        self.take_in(crate::build::config(200, flags));
        self.send_in(0, Event::Started);
    }

    /// Lets hooks of bundles be unread until they are asked, as they are outside of tests.
    pub(crate) fn asks_hooks(&mut self) {
        self.repositories.asked = Some(BTreeSet::new());
    }

    /// The operator is killed and starts again with another configuration. It has asked no hooks so far.
    pub(crate) fn is_killed(&mut self, config: Config) {
        self.repositories.asked = self.repositories.asked.take().map(|_| BTreeSet::new());
        let catalog = self.repositories.catalog(&self.repositories.registry.links(&BTreeSet::new()));
        self.engine = Engine::with_registry(config, catalog, &self.repositories.registry, &BTreeSet::new());
        self.forgets_everything();
    }

    /// Returns the module of a bundle whose hooks are asked now, if that is how they are read.
    pub(crate) fn asks_bundle(&mut self, name: &str) -> Option<Arc<Module>> {
        let links = self.repositories.registry.links(&BTreeSet::new());
        let link = links.into_iter().find(|link| link.name.as_str() == name)?;
        self.repositories.asked.as_mut()?.insert(link.digest.clone());
        self.repositories.module(&link).map(Arc::new)
    }

    /// Changes the files of modules while the operator runs.
    pub(crate) fn rereads(&mut self, files: &Files) {
        self.repositories.files = files.clone();
        let catalog = self.repositories.catalog(&self.repositories.registry.links(&BTreeSet::new()));
        self.send_in(0, Event::CatalogChanged { catalog });
    }

    /// Removes the finalizers of a configuration as a person does.
    pub(crate) fn unfinalizes(&mut self, name: &str) {
        let mut object = self.repositories.objects[name].clone();
        object["metadata"]["finalizers"] = json!([]);
        self.stores(name, object);
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.repositories.objects[name]["metadata"]["finalizers"] == json!(["addons.kyma-project.io"])
    }

    /// Loses a bundle, in the cluster and on the disk, if it is there.
    pub(crate) fn loses(&mut self, number: u64) {
        if let Some(module) = self.repositories.bundles.get(&digest(number)) {
            // It is removed without its hooks, unless its bundle comes back.
            self.repositories.owed.remove(module.name.as_str());
        }
        self.repositories.stored.remove(&digest(number));
        self.repositories.in_secrets.remove(&digest(number));
    }

    /// Loses what is registered, and the store directory. The bundles in Secrets are whole.
    pub(crate) fn loses_registry(&mut self) {
        self.repositories.registry = Registry::default();
        self.repositories.stored.clear();
    }

    /// Puts a registry into the cluster, with its bundles.
    pub(crate) fn holds_registry(&mut self, registry: Registry) {
        let digests = registry.digests();
        self.repositories.in_secrets.extend(digests.iter().cloned());
        self.repositories.stored.extend(digests);
        self.repositories.registry = registry;
    }

    /// Restarts, and nobody has asked the hooks of bundles for their configuration yet, as in a new process.
    pub(crate) fn restarts_unread(&mut self) {
        let catalog = self.repositories.catalog(&self.repositories.registry.links(&BTreeSet::new()));
        for module in catalog.modules.iter().filter(|module| module.origin.digest().is_some()) {
            self.loads.entry(module.name.to_string()).or_default().push_back(Arc::clone(module));
        }
        self.repositories.has_unread_hooks = true;
        self.restarts();
    }
}

impl Repositories {
    /// Returns the module that a link leads to.
    fn module(&self, link: &ModuleLink) -> Option<Module> {
        let module = self.bundles.get(&link.digest)?.clone();
        let key = values::name::camel(link.name.as_str()).as_str().into();
        let is_unasked = self.asked.as_ref().is_some_and(|asked| !asked.contains(&link.digest));
        let has_unread_hooks = self.has_unread_hooks || (is_unasked && !module.hooks.is_empty());
        let hooks = if has_unread_hooks { Vec::new() } else { module.hooks };
        Some(Module { name: link.name.clone(), key, hooks, has_unread_hooks, ..module })
    }

    fn catalog(&self, links: &[ModuleLink]) -> Catalog {
        let mut files = self.files.clone();
        // Of two with one name the loader takes that of files.
        let is_built_in = |link: &ModuleLink| files.modules.iter().any(|module| module.name == link.name);
        let free: Vec<&ModuleLink> = links.iter().filter(|link| !is_built_in(link)).collect();
        let stored = free.into_iter().filter(|link| self.stored.contains(&link.digest));
        files.modules.extend(stored.filter_map(|link| self.module(link)));
        let catalog = files.catalog().sharing(&self.loaded.borrow());
        self.loaded.borrow_mut().clone_from(&catalog.modules);
        catalog
    }
}

/// Returns the modules that the loader is to find.
pub(crate) fn links(registry: &Registry, lost: &[Digest]) -> Vec<ModuleLink> {
    registry.links(&lost.iter().cloned().collect())
}

/// Returns the bundles that stay.
pub(crate) fn kept(registry: &Registry, others: &[Digest]) -> Vec<Digest> {
    let registered = registry.addons.iter().flat_map(engine::RegisteredAddon::digests);
    registered.chain(others).cloned().collect::<BTreeSet<Digest>>().into_iter().collect()
}
