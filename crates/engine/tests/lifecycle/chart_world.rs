//! A pretend outside for chart repositories: objects, indexes, and what is kept of charts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::object_patch::{ObjectPatch, Operation};
use engine::snapshot::{Item, Key};
use engine::{
    ChartConfigMap, Config, Digest, Engine, Event, Failure, FailureKind, FetchedIndex, IndexRequest,
    IndexValidator, Module, ModuleName, PackageDependency, Pin, Pins, ResolveRequest, ResolvedChart,
    ResolvedVersion, RunId, StoreRequest, StoredPackage, Time, Unresolved, VersionStep, WantedVersion,
};
use serde_json::{Value, json};

use crate::build::Files;
use crate::repositories::digest;
use crate::world::World;

/// A version that a repository offers.
#[derive(Clone)]
pub(crate) struct Offered {
    pub(crate) chart: String,
    pub(crate) version: String,
    pub(crate) digest: u64,
    /// The charts that it needs: name, a constraint behind a space unless any version will do, and URL.
    pub(crate) needs: Vec<(String, String)>,
}

#[derive(Default)]
pub(crate) struct Charts {
    files: Files,
    pub(crate) objects: BTreeMap<(String, String), Value>,
    version: u64,
    /// What is at each URL; nothing if it can't be fetched.
    pub(crate) repositories: BTreeMap<String, Vec<Offered>>,
    /// What is kept of indexes, by the name of the Repository.
    pub(crate) indexes: BTreeMap<String, Vec<Offered>>,
    /// What is kept of versions: repository, chart and version.
    pub(crate) stored: BTreeMap<(String, String, String), u64>,
    pub(crate) pins: Pins,
    /// The packages that somebody removed, by the number of their digest.
    pub(crate) lost: BTreeSet<u64>,
    /// The Charts that versions belong to.
    owners: BTreeMap<(String, String, String), BTreeSet<String>>,
    /// The archives whose place others took while they were pinned.
    aside: BTreeSet<u64>,
    /// The archives whose place others took. Who kept them hears of it a little later.
    replaced: BTreeSet<u64>,
    /// What must not be, and was.
    pub(crate) wrongs: Vec<String>,
    /// When versions were published of which the index says that.
    pub(crate) published: BTreeMap<String, String>,
    /// How many charts each index has, if not all of them are kept.
    pub(crate) truncated: Option<usize>,
    /// The archives that can't be fetched.
    pub(crate) broken: BTreeSet<String>,
    /// The charts of which a registry tells no versions.
    pub(crate) refused: BTreeSet<String>,
    /// What is wrong at a step with each version that a constraint takes.
    pub(crate) unresolved: Option<(VersionStep, &'static str)>,
    /// How many indexes were fetched and archives downloaded.
    pub(crate) fetches: usize,
    /// What is said of archives that are not what the index says, and of names in it that can't be used.
    pub(crate) differs: Option<String>,
    pub(crate) left_out: BTreeSet<String>,
    /// When each index was fetched.
    pub(crate) fetched_at: Vec<Time>,
    /// How many of them asked only whether it is another one.
    pub(crate) conditional: usize,
    pub(crate) downloads: usize,
    /// How many times pins were written.
    pub(crate) pin_writes: usize,
    /// Each write of an object: which, and what.
    pub(crate) writes: Vec<String>,
    /// How long the answer to a write takes; five milliseconds if nothing is said.
    pub(crate) answers_in: Option<u64>,
    /// Of how many writes the answer is lost.
    pub(crate) loses: usize,
}

impl Offered {
    fn dependencies(&self) -> Vec<PackageDependency> {
        let needs = self.needs.iter().map(|(name, repository)| {
            let (name, version) = name.split_once(' ').unwrap_or((name, "*"));
            PackageDependency {
                name: name.into(),
                version: version.to_owned(),
                repository: repository.clone(),
            }
        });
        needs.collect()
    }
}

pub(crate) fn offered(chart: &str, version: &str, digest: u64) -> Offered {
    Offered { chart: chart.to_owned(), version: version.to_owned(), digest, needs: Vec::new() }
}

pub(crate) fn config() -> Config {
    Config { namespace: "ops".to_owned(), chart_workers: 2, ..Config::default() }
}

/// A world in which chart repositories are looked after.
pub(crate) fn charted(files: &Files) -> World {
    charted_with(files, config())
}

pub(crate) fn charted_with(files: &Files, config: Config) -> World {
    let mut world = World::with_config(files, config);
    world.charts.files = files.clone();
    world
}

impl Charts {
    /// Returns whether an archive is there.
    pub(crate) fn has(&self, wanted: &Digest) -> bool {
        let mut kept = self.stored.values().chain(&self.aside).filter(|number| !self.lost.contains(number));
        kept.any(|number| digest(*number) == *wanted)
    }

    fn is_pinned(&self, number: u64) -> bool {
        let packages = self.pins.values().flat_map(|pin| std::iter::once(&pin.package).chain(&pin.previous));
        packages.into_iter().any(|package| package.digest == digest(number))
    }

    /// Removes what belonged to a Chart only, and what nobody pinned any more.
    fn forgets_owner(&mut self, chart: &str) {
        for owners in self.owners.values_mut() {
            owners.remove(chart);
        }
        self.collects();
    }

    fn collects(&mut self) {
        let is_wanted = |key: &(String, String, String), number: u64| {
            self.owners.get(key).is_some_and(|owners| !owners.is_empty()) || self.is_pinned(number)
        };
        let gone: Vec<_> = self
            .stored
            .iter()
            .filter(|(key, number)| !is_wanted(key, **number))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.stored.remove(&key);
            self.owners.remove(&key);
        }
        self.aside = self.aside.iter().copied().filter(|number| self.is_pinned(*number)).collect();
    }

    /// Returns what a registry tells of the charts that are asked for. What it does not tell stays as it was.
    fn tags(&mut self, request: &IndexRequest, offered: &[Offered]) -> FetchedIndex {
        let kept = self.indexes.entry(request.repository.name.to_string()).or_default();
        let mut index = FetchedIndex::default();
        for chart in &request.charts {
            let of_chart = |its: &&Offered| *its.chart == **chart;
            let now: Vec<Offered> = offered.iter().filter(of_chart).cloned().collect();
            if now.is_empty() || self.refused.contains(&**chart) {
                index.refused.push((Arc::clone(chart), "it answered 403 Forbidden".to_owned()));
                continue;
            }
            let told =
                |all: &[Offered]| all.iter().map(|its| (its.version.clone(), its.digest)).collect::<Vec<_>>();
            let before: Vec<Offered> = kept.iter().filter(of_chart).cloned().collect();
            if told(&before) != told(&now) {
                index.changed.insert(chart.to_string());
            }
            kept.retain(|its| *its.chart != **chart);
            kept.extend(now);
        }
        index
    }

    /// Checks what a Chart says of itself.
    fn checks(&mut self, name: &str, object: &Value) {
        let lines = object["status"]["resolved"].as_array().cloned().unwrap_or_default();
        let is_new = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let wanted = object["spec"]["versions"].as_array().map(Vec::len).unwrap_or_default();
        if is_new && object["status"]["conditions"][0]["status"] == "True" && lines.len() != wanted {
            self.wrongs.push(format!("Chart {name} says that it is synced with {} of {wanted}", lines.len()));
        }
        for line in lines {
            let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
            let is_there = self.stored.values().chain(&self.lost).chain(&self.aside).chain(&self.replaced);
            if !is_there.into_iter().any(|number| digest(*number).as_str() == text("digest")) {
                self.wrongs.push(format!("Chart {name} says that {} is kept", text("version")));
            }
        }
    }

    /// Returns why the package of a module can't be read, if somebody removed it.
    pub(crate) fn lost_package(&self, module: &Module) -> Option<Failure> {
        let mut packages = module.package.iter().chain(&module.dependencies.packages);
        let is_lost = |digest_of: &Digest| self.lost.iter().any(|number| digest(*number) == *digest_of);
        let lost = packages.find(|package| is_lost(&package.digest))?;
        Some(Failure::new(FailureKind::Package, format!("the package is not there ({})", lost.digest)))
    }
}

impl World {
    /// Somebody removes the maps of a version. Nobody tells that if `is_unseen`.
    pub(crate) fn loses_version(&mut self, chart: &str, version: &str, is_unseen: bool) {
        self.loses_version_of(("corp", chart, version), is_unseen);
    }

    /// The same for a version of any Repository.
    pub(crate) fn loses_version_of(
        &mut self,
        (repository, chart, version): (&str, &str, &str),
        is_unseen: bool,
    ) {
        let key = (repository.to_owned(), chart.to_owned(), version.to_owned());
        let number = self.charts.stored.remove(&key).unwrap();
        self.charts.lost.insert(number);
        let map = ChartConfigMap {
            repository: repository.into(),
            chart: chart.into(),
            version: Some(version.into()),
            digest: Some(digest(number)),
        };
        if !is_unseen {
            self.send_in(0, Event::ChartMapsLost { maps: vec![map] });
        }
    }

    /// Applies an object, as a person does.
    pub(crate) fn applies_chart(&mut self, kind: &str, name: &str, spec: Value) {
        let key = (kind.to_owned(), name.to_owned());
        let new = || json!({"metadata": {"name": name, "uid": format!("uid-of-{name}"), "generation": 0}});
        let mut object = self.charts.objects.get(&key).cloned().unwrap_or_else(new);
        object["spec"] = spec;
        raise(&mut object);
        self.stores_chart(kind, name, object);
    }

    pub(crate) fn annotates_chart(&mut self, kind: &str, name: &str, annotations: Value) {
        let mut object = self.chart_object(kind, name);
        object["metadata"]["annotations"] = annotations;
        self.stores_chart(kind, name, object);
    }

    pub(crate) fn deletes_chart(&mut self, kind: &str, name: &str) {
        let mut object = self.chart_object(kind, name);
        object["metadata"]["deletionTimestamp"] = json!("now");
        raise(&mut object);
        self.stores_chart(kind, name, object);
    }

    pub(crate) fn chart_object(&self, kind: &str, name: &str) -> Value {
        self.charts.objects.get(&(kind.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// Returns the reason and the message of the condition of an object.
    pub(crate) fn condition(&self, kind: &str, name: &str) -> (String, String) {
        let object = self.chart_object(kind, name);
        let condition = &object["status"]["conditions"][0];
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    fn stores_chart(&mut self, kind: &str, name: &str, mut object: Value) {
        let key = (kind.to_owned(), name.to_owned());
        if self.charts.objects.get(&key) == Some(&object) {
            return;
        }
        self.charts.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.charts.version.to_string());
        let is_gone = !object["metadata"]["deletionTimestamp"].is_null()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        let item = Item::unfiltered(object.to_string().into_bytes().into(), true);
        if is_gone {
            self.charts.objects.remove(&key);
            if kind == "Chart" {
                self.charts.forgets_owner(name);
            }
            let uid = object["metadata"]["uid"].clone();
            self.watched(kind, Key::new("", name), true, &Arc::new(item));
            return self.collects_garbage(&uid);
        }
        self.charts.objects.insert(key, object);
        self.watched(kind, Key::new("", name), false, &Arc::new(item));
    }

    /// Deletes what only that object owned.
    fn collects_garbage(&mut self, uid: &Value) {
        let is_owned = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"] == *uid;
        let left: Vec<_> = self
            .charts
            .objects
            .iter()
            .filter(|(_, object)| is_owned(object))
            .map(|(key, _)| key.clone())
            .collect();
        for (kind, name) in left {
            self.deletes_chart(&kind, &name);
        }
    }

    /// Changes an object, as the API server does.
    pub(crate) fn patch_chart(&mut self, run: RunId, patches: &[ObjectPatch]) {
        let mut outcome = self.patching.pop_front().unwrap_or(Ok(()));
        if patches.iter().any(|patch| self.is_stale(patch)) {
            outcome = Err(Failure::new(FailureKind::Conflict, "it is another one by now"));
        }
        if outcome.is_ok() {
            for patch in patches {
                self.patch_chart_object(patch);
            }
        }
        if self.charts.loses > 0 {
            self.charts.loses -= 1;
            outcome = Err(Failure::new(FailureKind::Cluster, "the connection was cut"));
        }
        self.in_flight.insert(run, None);
        self.send_in(self.charts.answers_in.unwrap_or(5), Event::ObjectsPatched { run, outcome });
    }

    /// Returns whether a patch is for an object as it was before.
    fn is_stale(&self, patch: &ObjectPatch) -> bool {
        let Operation::JsonPatch { patch: change } = &patch.operation else { return false };
        let key = (patch.target.kind.clone(), patch.target.name.clone());
        let known = self.charts.objects.get(&key);
        known.is_some_and(|known| known["metadata"]["resourceVersion"] != change[0]["value"])
    }

    fn patch_chart_object(&mut self, patch: &ObjectPatch) {
        let (kind, name) = (patch.target.kind.clone(), patch.target.name.clone());
        let known = self.charts.objects.get(&(kind.clone(), name.clone())).cloned();
        let is_status = patch.target.subresource.is_some();
        self.charts.writes.push(format!("{kind} {name}{}", if is_status { " status" } else { "" }));
        let Some(mut object) = known else {
            if let Operation::Create { object, .. } = &patch.operation {
                let mut made = object.clone();
                made["metadata"]["uid"] = json!(format!("uid-of-{name}"));
                made["metadata"]["generation"] = json!(1);
                self.stores_chart(&kind, &name, made);
            }
            return;
        };
        match &patch.operation {
            Operation::MergePatch { patch: change } if is_status => {
                let before = object["status"].clone();
                object["status"] = before;
                merge(&mut object["status"], &change["status"]);
                if kind == "Chart" {
                    self.charts.checks(&name, &object);
                }
            }
            Operation::MergePatch { patch: change } | Operation::Create { object: change, .. } => {
                let before = object["spec"].clone();
                merge(&mut object, change);
                if object["spec"] != before {
                    raise(&mut object);
                }
            }
            Operation::JsonPatch { patch } => {
                object["metadata"]["finalizers"] = patch[1]["value"].clone();
            }
            Operation::Delete(_) => {
                self.deletes_chart(&kind, &name);
                return;
            }
            Operation::Apply { .. }
            | Operation::ApplyChild { .. }
            | Operation::TryCreate { .. }
            | Operation::Jq { .. } => {
                panic!("nobody does this here: {patch}")
            }
        }
        self.stores_chart(&kind, &name, object);
    }

    pub(crate) fn fetch_index(&mut self, run: RunId, request: &IndexRequest) {
        self.in_flight.insert(run, None);
        self.charts.fetches += 1;
        self.charts.fetched_at.push(self.now);
        self.charts.conditional += usize::from(request.known.is_some());
        let name = request.repository.name.to_string();
        let is_registry = request.repository.url.starts_with("oci://");
        let outcome = match self.charts.repositories.get(&request.repository.url).cloned() {
            None => Err("the index can't be fetched: 404".to_owned()),
            Some(_) if is_registry && request.charts.is_empty() => Err("spec.charts is empty".to_owned()),
            Some(offered) if is_registry => Ok(self.charts.tags(request, &offered)),
            Some(offered) => {
                let listed =
                    |offered: &Offered| request.is_open || request.charts.contains(offered.chart.as_str());
                let stamps = offered.iter().map(|its| format!("{}{}{}", its.chart, its.version, its.digest));
                let stamp = stamps.collect::<Vec<_>>().join(";");
                let is_there = self.charts.indexes.get(&name).is_some_and(|there| {
                    let names: BTreeSet<&String> = there.iter().map(|its| &its.chart).collect();
                    let mut wanted = request.charts.difference(&request.absent);
                    names.len() >= request.kept && wanted.all(|chart| names.contains(&chart.to_string()))
                });
                let is_unchanged =
                    is_there && request.known.as_ref().is_some_and(|known| known.etag == stamp);
                let kept: Vec<Offered> = offered.iter().filter(|its| listed(its)).cloned().collect();
                let names: BTreeSet<&String> = kept.iter().map(|its| &its.chart).collect();
                let count = names.len();
                let changed = kept.iter().map(|its| its.chart.clone()).filter(|_| !is_unchanged).collect();
                if !is_unchanged {
                    self.charts.indexes.insert(name, kept);
                }
                let is_missing = |chart: &&Arc<str>| !offered.iter().any(|its| its.chart == ***chart);
                let near = offered.first().map(|its| its.chart.clone());
                let missing = request.charts.iter().filter(is_missing);
                let missing = missing.map(|chart| (Arc::clone(chart), near.clone())).collect();
                Ok(FetchedIndex {
                    refused: Vec::new(),
                    validator: IndexValidator { etag: stamp, modified: String::new() },
                    is_unchanged,
                    kept: if is_unchanged { 0 } else { count },
                    changed,
                    missing,
                    truncated: self.charts.truncated.filter(|_| !is_unchanged && request.is_open),
                    left_out: if is_unchanged { BTreeSet::new() } else { self.charts.left_out.clone() },
                })
            }
        };
        self.send_in(20, Event::IndexFetched { run, outcome: Ok(outcome) });
    }

    pub(crate) fn resolve_chart(&mut self, run: RunId, request: &ResolveRequest) {
        self.in_flight.insert(run, None);
        let index = self.charts.indexes.get(&*request.repository.name).cloned().unwrap_or_default();
        let mut entries: Vec<&Offered> = index.iter().filter(|its| its.chart == *request.chart).collect();
        entries.sort_by(|a, b| b.version.cmp(&a.version));
        let outcome = if entries.is_empty() {
            Err(format!("there is no chart {}", request.chart))
        } else {
            let published = &self.charts.published;
            let is_young = |its: &Offered, wanted: &WantedVersion| {
                wanted.not_after.as_ref().is_some_and(|limit| published.get(&its.version) > Some(limit))
            };
            let fits =
                |its: &Offered, constraint: &str| constraint == "*" || its.version.starts_with(constraint);
            let next_published = request.versions.iter().flat_map(|wanted| {
                let young =
                    entries.iter().filter(|its| fits(its, &wanted.constraint) && is_young(its, wanted));
                young.filter_map(|its| published.get(&its.version)).cloned()
            });
            let next_published = next_published.min();
            let find = |wanted: &WantedVersion| {
                let constraint = &wanted.constraint;
                let found = entries.iter().find(|its| fits(its, constraint) && !is_young(its, wanted));
                let key = |its: &Offered| {
                    (request.repository.name.to_string(), its.chart.clone(), its.version.clone())
                };
                let version = |its: &&Offered| ResolvedVersion {
                    version: its.version.as_str().into(),
                    url: format!("{}-{}.tgz", its.chart, its.version),
                    digest: Some(digest(its.digest)),
                    has_values: self.charts.stored.contains_key(&key(its)),
                    dependencies: its.dependencies(),
                    ..ResolvedVersion::default()
                };
                let not = |step, problem: String| Err(Unresolved { step, problem });
                match (found, self.charts.unresolved) {
                    (None, _) => not(VersionStep::Parse, format!("nothing fits {constraint}")),
                    (Some(_), Some((step, problem))) => not(step, problem.to_owned()),
                    (Some(found), None) => Ok(version(found)),
                }
            };
            let versions = request.versions.iter().map(find).collect();
            Ok(ResolvedChart {
                next_published,
                versions,
                highest: entries.first().map(|its| its.version.clone()),
            })
        };
        self.send_in(5, Event::ChartResolved { run, outcome: Ok(outcome) });
    }

    pub(crate) fn store_package(&mut self, run: RunId, request: &StoreRequest) {
        self.in_flight.insert(run, None);
        let repository = request.repository.name.to_string();
        let (chart, version) = (request.chart.to_string(), request.version.version.to_string());
        let key = (repository, chart.clone(), version.clone());
        let offered = self.charts.repositories.get(&request.repository.url).into_iter().flatten();
        let mut offered = offered.filter(|its| its.chart == chart && its.version == version);
        let offered = offered.rfind(|its| !self.charts.broken.contains(&its.chart)).cloned();
        let kept = self.charts.stored.get(&key).copied().filter(|_| !request.replaces);
        let before = self.charts.stored.get(&key).copied();
        let mut replaced = None;
        let outcome = match (kept, &offered) {
            (None, None) => Err("the archive can't be fetched: 404".to_owned()),
            (Some(kept), _) => {
                Ok((kept, request.version.digest.clone().filter(|wanted| *wanted != digest(kept))))
            }
            (None, Some(offered)) if request.version.digest.clone() != Some(digest(offered.digest)) => {
                Err(format!("the digest of the archive is {}", digest(offered.digest)))
            }
            (None, Some(offered)) => {
                self.charts.downloads += 1;
                self.charts.lost.remove(&offered.digest);
                self.charts.stored.insert(key.clone(), offered.digest);
                let before = before.filter(|before| *before != offered.digest);
                self.charts.aside.extend(before);
                self.charts.replaced.extend(before);
                replaced = before;
                Ok((offered.digest, None))
            }
        };
        if let Some(before) = replaced {
            // The watch of the maps sees that they are others.
            let map = ChartConfigMap {
                repository: Arc::clone(&request.repository.name),
                chart: Arc::clone(&request.chart),
                version: Some(Arc::clone(&request.version.version)),
                digest: Some(digest(before)),
            };
            self.send_in(25, Event::ChartMapsLost { maps: vec![map] });
        }
        if outcome.is_ok() {
            self.charts.owners.entry(key).or_default().insert(request.owner.0.to_string());
            self.charts.collects();
        }
        let dependencies = offered.map(|its| its.dependencies()).unwrap_or_default();
        let differs = self.charts.differs.clone();
        let stored = |(kept, republished): (u64, Option<Digest>)| StoredPackage {
            digest: digest(kept),
            republished,
            differs: differs.clone(),
            dependencies,
        };
        self.send_in(20, Event::PackageStored { run, outcome: Ok(outcome.map(stored)) });
    }

    pub(crate) fn pin_package(&mut self, run: RunId, module: ModuleName, pin: Option<Pin>) {
        self.in_flight.insert(run, None);
        self.charts.pin_writes += 1;
        let outcome = if let Some(pin) = pin {
            let known = self.charts.pins.get(&module).map(|known| &known.package.digest);
            if known != Some(&pin.package.digest) && !self.charts.has(&pin.package.digest) {
                Err(Failure::new(FailureKind::Files, "the package is gone"))
            } else {
                self.charts.pins.insert(module, pin);
                Ok(())
            }
        } else {
            self.charts.pins.remove(&module);
            Ok(())
        };
        self.charts.collects();
        self.send_in(5, Event::PackagePinned { run, outcome });
    }

    /// The files of modules are others.
    pub(crate) fn rereads_charted(&mut self, files: &Files) {
        self.charts.files = files.clone();
        self.send_in(0, crate::build::reread(files));
    }

    /// The operator ends at once, and another one starts with other files.
    pub(crate) fn restarts_with(&mut self, files: &Files) {
        self.charts.files = files.clone();
        self.restarts_charted();
    }

    /// The operator ends at once and starts again.
    pub(crate) fn restarts_charted(&mut self) {
        let config = Config { started_at: "2024-05-01T10:00:00Z".parse().unwrap(), ..config() };
        let catalog = self.charts.files.catalog();
        self.engine = Engine::restored(
            config,
            catalog,
            (&engine::Registry::default(), &BTreeSet::new()),
            self.charts.pins.clone(),
        );
        self.forgets_everything();
        self.send_in(0, Event::Started);
    }
}

fn raise(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    object["metadata"]["generation"] = json!(generation + 1);
}

/// Applies a merge patch.
fn merge(value: &mut Value, change: &Value) {
    let Value::Object(fields) = change else { return value.clone_from(change) };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, change) in fields {
        if change.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut value[name], change);
        }
    }
}
