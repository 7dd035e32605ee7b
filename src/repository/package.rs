//! Versions of charts as they are kept: the archive byte for byte, and the maps that people can read.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::source::chart_repository::location;
use ::source::chart_repository::projection::{self, ChartMap, MapType};
use ::source::chunk;
use ::source::digest::Digest;
use ::source::registry::reference::is_registry;
use ::source::url::{BundleUrl, HttpUrl};
use chart::chart::Chart;
use chart::warnings::Warnings;
use engine::{
    Failure, FailureKind, Package, PackageDependency, RepositoryAccess, RepositoryKey, RepositoryKind,
    ResolvedVersion, StoreRequest, StoredPackage,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use objects::legal;

use super::config_maps::{
    CHART, DIGEST, OF_CHART, OF_REPOSITORY, OF_VERSION, PACKAGE, REPO, SUBNAME, TYPE, Wanted, owner, short,
};
use super::index::fetching;
use super::pins::is_held;
use super::repositories::Repositories;
use super::stop::{Stop, blocking};
use crate::remote::http::{Answer, Get};

/// The annotations with the number of a part, and with how many there are.
const PART: &str = "addon-operator.io/part";
const PARTS: &str = "addon-operator.io/parts";

/// The annotation with the names of files whose keys are others, as JSON.
const FILES: &str = "addon-operator.io/files";

/// The key of a part.
const PART_KEY: &str = "part";

/// The most bytes of a packed chart.
pub(super) const MOST_PACKED: u64 = 20 << 20;

/// The most parts of a package.
const MOST_PARTS: usize = 24;

/// How many letters are shown of a name or version that an archive has.
const MAX_SHOWN: usize = 80;

/// How often a version is kept that another Chart replaces at the same time.
const ATTEMPTS: usize = 3;

impl Repositories {
    pub(super) async fn package(&self, request: &StoreRequest) -> Result<StoredPackage, Stop> {
        // Another Chart may want the same version: it finds what the first one fetched.
        let turn = self.turn_of(request);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            if let Some(stored) = self.try_to_keep(request).await? {
                return Ok(stored);
            }
        }
        let text = format!("the package of {} is replaced again and again by others", request.chart);
        Err(Stop::Failed(Failure::new(FailureKind::Cluster, text)))
    }

    /// Keeps a version. Returns nothing, and has written nothing, if what is kept of it was replaced meanwhile.
    async fn try_to_keep(&self, request: &StoreRequest) -> Result<Option<StoredPackage>, Stop> {
        let base = self.base(&request.repository).await?;
        let wanted = request.version.digest.as_ref().and_then(|digest| Digest::parse(digest.as_str()).ok());
        let kept = self.kept(request).await?;
        let before = kept.as_ref().map(|(_, digest)| digest.clone());
        let (bytes, digest, republished) = match kept {
            Some((bytes, digest)) if !request.replaces => {
                let other = wanted.filter(|wanted| *wanted != digest);
                (bytes, digest, other)
            }
            Some((bytes, digest)) if wanted.as_ref() == Some(&digest) => (bytes, digest, None),
            Some(_) | None => {
                if let Some(wanted) = &wanted {
                    check_known(request, wanted)?;
                }
                let bytes = self.download(&base, request).await?;
                let digest = Digest::of(&bytes);
                if let Some(wanted) = wanted.filter(|wanted| *wanted != digest) {
                    return Err(Stop::Rejected(format!(
                        "the digest of the archive is {digest}, that of the index is {wanted}"
                    )));
                }
                check_known(request, &digest)?;
                (bytes, digest, None)
            }
        };
        let bytes = Arc::new(bytes);
        let (chart, maps) = self.load(Arc::clone(&bytes)).await?;
        // What is replaced may be pinned, and is neither pinned nor replaced by another Chart meanwhile.
        let _turn = self.pinning.lock().await;
        if self.kept(request).await?.map(|(_, digest)| digest) != before {
            return Ok(None);
        }
        if let Some(before) = before.filter(|before| *before != digest) {
            self.set_aside(request, &before).await?;
        }
        let parts = parts(request, &bytes, &digest);
        let mut may_be_pinned = false;
        for part in &parts {
            let known = self.maps.find(part).await?;
            may_be_pinned |= !known.as_ref().is_some_and(is_held);
            self.maps.ensure(part, known.as_ref()).await?;
        }
        // A part that was lost and is there again belongs to the pins as before.
        let package = package(request, &digest)?;
        if may_be_pinned && let Some((name, uid)) = self.pins_of(&package).await? {
            self.hold(&name, &uid, &package).await?;
        }
        if request.replaces {
            self.drop_parts_after(request, parts.len(), &digest).await?;
        }
        for map in &maps {
            let wanted = shown(request, map);
            let known = self.maps.find(&wanted).await?;
            self.maps.ensure(&wanted, known.as_ref()).await?;
        }
        Ok(Some(StoredPackage {
            digest: package.digest,
            republished: republished.as_ref().map(as_ours).transpose()?,
            differs: differs(request, &chart),
            dependencies: dependencies(chart),
        }))
    }

    /// Returns whether the default values of a version are kept.
    pub(super) async fn has_values(
        &self,
        repository: &RepositoryAccess,
        chart: &str,
        version: &str,
    ) -> Result<bool, Stop> {
        let version = ResolvedVersion { version: version.into(), ..ResolvedVersion::default() };
        let values = shown(&question(repository, chart, version), &projection::first(MapType::Default));
        Ok(self.maps.find(&values).await?.is_some())
    }

    /// Returns the archive of a version that is kept, if all of it is there.
    pub(super) async fn kept(&self, request: &StoreRequest) -> Result<Option<(Vec<u8>, Digest)>, Stop> {
        match self.kept_as_written(request).await? {
            None if request.known.is_some() => self.kept_as_known(request).await,
            kept => Ok(kept),
        }
    }

    /// Returns the archive that is known to be kept, if the parts have it, whatever is written about them.
    async fn kept_as_known(&self, request: &StoreRequest) -> Result<Option<(Vec<u8>, Digest)>, Stop> {
        let mut bytes = Vec::new();
        for number in 1..=MOST_PARTS {
            let Some(map) = self.maps.find(&part(request, number, BTreeMap::new(), &[])).await? else {
                break;
            };
            bytes.extend_from_slice(&read_part(map).0);
        }
        let found = Digest::of(&bytes);
        let is_known = request.known.as_ref().is_some_and(|known| known.as_str() == found.to_string());
        Ok(is_known.then_some((bytes, found)))
    }

    /// Returns the archive that the parts say they have.
    async fn kept_as_written(&self, request: &StoreRequest) -> Result<Option<(Vec<u8>, Digest)>, Stop> {
        let mut bytes = Vec::new();
        let (mut number, mut count, mut digest) = (0, 1, None);
        while number < count {
            number += 1;
            let Some(map) = self.maps.find(&part(request, number, BTreeMap::new(), &[])).await? else {
                return Ok(None);
            };
            let (data, parts, said) = read_part(map);
            if number == 1 {
                (count, digest) = (parts.min(MOST_PARTS), said);
            } else if digest != said {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
        }
        let found = Digest::of(&bytes);
        Ok((digest.as_deref() == Some(&found.to_string())).then_some((bytes, found)))
    }

    /// Keeps an archive that is replaced by another one for those modules that stay with it.
    async fn set_aside(&self, request: &StoreRequest, digest: &Digest) -> Result<(), Stop> {
        let Some((name, uid)) = self.pins_of(&package(request, digest)?).await? else { return Ok(()) };
        let mut number = 0;
        while let Some(map) = self.maps.find(&part(request, number + 1, BTreeMap::new(), &[])).await? {
            number += 1;
            let (data, parts, _) = read_part(map);
            let aside = aside(request, digest, (number, parts), &data, owner("ConfigMap", "v1", &name, &uid));
            let known = self.maps.find(&aside).await?;
            self.maps.ensure(&aside, known.as_ref()).await?;
            if number >= parts {
                break;
            }
        }
        self.disown(&uid, request).await
    }

    /// Removes the parts of an archive that had more of them than the one that took its place.
    async fn drop_parts_after(
        &self,
        request: &StoreRequest,
        count: usize,
        digest: &Digest,
    ) -> Result<(), Stop> {
        for number in count + 1..=MOST_PARTS {
            let part = part(request, number, BTreeMap::new(), &[]);
            let Some(map) = self.maps.find(&part).await? else { break };
            let name = map.metadata.name.clone().unwrap_or_default();
            if read_part(map).2.as_deref() != Some(&digest.to_string()) {
                self.maps.delete(&name).await?;
            }
        }
        Ok(())
    }

    /// Makes the parts of a version, which are replaced, no longer belong to the map of pins.
    async fn disown(&self, uid: &str, request: &StoreRequest) -> Result<(), Stop> {
        for number in 1..=MOST_PARTS {
            let part = part(request, number, BTreeMap::new(), &[]);
            let Some(map) = self.maps.find(&part).await? else { break };
            let mut owners = map.metadata.owner_references.unwrap_or_default();
            if owners.iter().any(|owner| owner.uid == uid) {
                owners.retain(|owner| owner.uid != uid);
                let (part, version) = (
                    map.metadata.name.unwrap_or_default(),
                    map.metadata.resource_version.unwrap_or_default(),
                );
                self.maps.set_owners(&part, &version, &owners).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn download(&self, base: &HttpUrl, request: &StoreRequest) -> Result<Vec<u8>, Stop> {
        if is_registry(&request.repository.url) {
            return self.pull(base, request).await;
        }
        let url = location::archive(base, &request.version.url, self.options.allowed.protocols);
        let url =
            url.map_err(|error| Stop::Rejected(format!("the URL of the archive can't be used: {error}")))?;
        let allowed = self.options.allowed.check_bundle(&BundleUrl::Http(url.clone()));
        allowed.map_err(|error| Stop::Rejected(format!("the archive: {error}")))?;
        let get = Get { url: &url, known: None, limit: MOST_PACKED };
        match self.observed("archive", self.http.get(get, Vec::new())).await {
            Ok(Answer::New(bytes, _)) => Ok(bytes),
            Ok(Answer::Unchanged) => {
                Err(Stop::Rejected("the server says that the archive did not change".to_owned()))
            }
            Err(error) => Err(fetching("the archive", &error)),
        }
    }

    async fn load(&self, bytes: Arc<Vec<u8>>) -> Result<(Chart, Vec<ChartMap>), Stop> {
        // It can't be closed.
        let _turn = self.turns.acquire().await;
        let loaded = blocking(move || {
            let chart = chart::load::from_archive(&bytes, &mut Warnings::default())
                .map_err(|error| Stop::Rejected(format!("the archive is no chart: {error}")))?;
            let maps = projection::maps(&chart).map_err(|error| Stop::Rejected(error.to_string()))?;
            Ok((chart, maps))
        });
        loaded.await?
    }

    /// Returns the archive of a package, by its digest.
    pub(super) async fn read_archive(&self, package: &Package) -> Result<Vec<u8>, Failure> {
        let lost = |problem: &str| {
            let Package { repository, chart, version, digest } = package;
            let text = format!(
                "the package of chart {chart} {version} of Repository {repository} ({digest}) {problem}"
            );
            Failure::new(FailureKind::Package, text)
                .advise("it is kept in ConfigMaps and written again as soon as its Repository can be reached")
        };
        let selector = format!("{PACKAGE}={}", short(package.digest.hex()));
        let listed = self.maps.list(&selector).await.map_err(|stop| match stop {
            Stop::Rejected(problem) => Failure::new(FailureKind::Package, problem),
            Stop::Failed(failure) => failure,
        })?;
        // The same archive may be kept for several versions.
        let mut sets: BTreeMap<String, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
        for map in listed {
            let annotations = map.metadata.annotations.clone().unwrap_or_default();
            let of = |name: &str| annotations.get(name).cloned().unwrap_or_default();
            let number = of(PART).parse().unwrap_or_default();
            let of = format!("{}\n{}\n{}", of(OF_REPOSITORY), of(OF_CHART), of(OF_VERSION));
            sets.entry(of).or_default().insert(number, read_part(map).0);
        }
        if sets.is_empty() {
            return Err(lost("is not there"));
        }
        let whole = sets.into_values().map(|parts| parts.into_values().collect::<Vec<_>>().concat());
        let is_it = |bytes: &Vec<u8>| Digest::of(bytes).to_string() == package.digest.as_str();
        let mut whole = whole.filter(is_it);
        whole.next().ok_or_else(|| lost("is not whole: somebody removed or changed a part"))
    }
}

/// Returns the package that a version has with the archive of this digest.
fn package(request: &StoreRequest, digest: &Digest) -> Result<Package, Stop> {
    Ok(Package {
        repository: Arc::clone(&request.repository.name),
        chart: Arc::clone(&request.chart),
        version: Arc::clone(&request.version.version),
        digest: as_ours(digest)?,
    })
}

/// Returns a digest as the engine has it.
pub(super) fn as_ours(digest: &Digest) -> Result<engine::Digest, Stop> {
    let defect = |error: engine::NotADigest| Stop::Failed(Failure::of(FailureKind::Bug, &error));
    digest.to_string().parse().map_err(defect)
}

fn read_part(map: ConfigMap) -> (Vec<u8>, usize, Option<String>) {
    let annotations = map.metadata.annotations.unwrap_or_default();
    let parts = annotations.get(PARTS).and_then(|count| count.parse().ok()).unwrap_or(1);
    let data = map.binary_data.unwrap_or_default().remove(PART_KEY).unwrap_or_default();
    (data.0, parts, annotations.get(DIGEST).cloned())
}

fn about(request: &StoreRequest) -> BTreeMap<String, String> {
    let annotation = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let about = [
        (OF_REPOSITORY, &*request.repository.name),
        (OF_CHART, &*request.chart),
        (OF_VERSION, &*request.version.version),
    ];
    about.map(annotation).into()
}

fn wanted(request: &StoreRequest, name: String) -> Wanted {
    let (chart, uid) = &request.owner;
    let identity = [&*request.repository.name, &*request.chart, &*request.version.version];
    Wanted {
        name,
        identity: identity.map(str::to_owned).into(),
        labels: BTreeMap::new(),
        annotations: about(request),
        data: BTreeMap::new(),
        binary: BTreeMap::new(),
        is_immutable: true,
        owner: owner(RepositoryKind::Chart.as_str(), RepositoryKey::API_VERSION, chart, uid),
    }
}

fn part(request: &StoreRequest, number: usize, labels: BTreeMap<String, String>, data: &[u8]) -> Wanted {
    let (repository, version) = (&request.repository.name, &request.version.version);
    let mut wanted = wanted(request, format!("helm-pkg-{repository}-{}-{version}-{number}", request.chart));
    wanted.labels = labels;
    wanted.annotations.insert(PART.to_owned(), number.to_string());
    wanted.binary.insert(PART_KEY.to_owned(), data.to_vec());
    wanted
}

/// Returns a part of an archive that another one replaced, and that belongs to the map of pins.
fn aside(
    request: &StoreRequest,
    digest: &Digest,
    (number, parts): (usize, usize),
    data: &[u8],
    owner: OwnerReference,
) -> Wanted {
    let (repository, version) = (&request.repository.name, &request.version.version);
    let label = short(digest.hex());
    let name = format!("helm-pkg-{repository}-{}-{version}-{label}-{number}", request.chart);
    let mut wanted = wanted(request, name);
    wanted.identity.extend([label.clone(), number.to_string()]);
    wanted.labels.insert(PACKAGE.to_owned(), label);
    let about = [(DIGEST, digest.to_string()), (PARTS, parts.to_string()), (PART, number.to_string())];
    wanted.annotations.extend(about.map(|(name, value)| (name.to_owned(), value)));
    wanted.binary.insert(PART_KEY.to_owned(), data.to_vec());
    Wanted { owner, ..wanted }
}

/// Returns an error if an archive is another one than that which was kept before, and may not take its place.
fn check_known(request: &StoreRequest, digest: &Digest) -> Result<(), Stop> {
    let known = request.known.as_ref().filter(|_| !request.replaces);
    let Some(known) = known.filter(|known| known.as_str() != digest.to_string()) else { return Ok(()) };
    Err(Stop::Rejected(format!(
        "what was kept of it is gone, and the repository has other bytes by now: {digest} instead of {known}; raise the annotation addon-operator.io/reprocess of the Chart to take them"
    )))
}

/// Returns what is asked about a version that nobody wants to be kept.
pub(super) fn question(repository: &RepositoryAccess, chart: &str, version: ResolvedVersion) -> StoreRequest {
    StoreRequest {
        repository: repository.clone(),
        chart: chart.into(),
        version,
        owner: ("".into(), String::new()),
        replaces: false,
        known: None,
    }
}

/// Returns a map that people can read.
fn shown(request: &StoreRequest, map: &ChartMap) -> Wanted {
    let (repository, chart, version) =
        (&*request.repository.name, &*request.chart, &*request.version.version);
    let mut wanted = wanted(request, map.text(repository, chart, version));
    let of = format!("{chart}-{version}");
    let label = |(name, value): (&str, &str)| (name.to_owned(), legal::label(value));
    wanted.labels = [(REPO, repository), (CHART, &*of), (TYPE, map.map_type.word())].map(label).into();
    if !map.directory.is_empty() {
        wanted.labels.insert(SUBNAME.to_owned(), legal::label(&map.directory));
    }
    if !map.renamed.is_empty() {
        let names = serde_json::to_string(&map.renamed).unwrap_or_default();
        wanted.annotations.insert(FILES.to_owned(), names);
    }
    match map.map_type {
        MapType::Default => {
            let text = |(key, value): (&String, &Vec<u8>)| {
                (key.clone(), String::from_utf8_lossy(value).into_owned())
            };
            wanted.data = map.data.iter().map(text).collect();
        }
        MapType::Crds | MapType::Templates => wanted.binary.clone_from(&map.data),
    }
    wanted
}

/// Returns what an archive says of itself, if the index says otherwise. It is taken all the same, as Helm takes it.
fn differs(request: &StoreRequest, chart: &Chart) -> Option<String> {
    let (name, version) = (&chart.metadata.name, &chart.metadata.version);
    let plain = |version: &str| version.trim_start_matches('v').to_owned();
    let wanted = &request.version.version;
    let is_same = **name == *request.chart && plain(version) == plain(wanted);
    let short = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
    (!is_same).then(|| {
        format!(
            "the index says that the archive is {} {wanted}, and its Chart.yaml that it is {} {}",
            request.chart,
            short(name),
            short(version)
        )
    })
}

/// Returns the charts of repositories that a chart needs with its default values.
fn dependencies(mut chart: Chart) -> Vec<PackageDependency> {
    let listed = chart.metadata.dependencies.clone();
    // What can't be decided is needed.
    let decided = chart::dependency::resolve(&mut chart, &serde_json::Map::new(), &mut Warnings::default());
    let is_used = |name: &str| chart.metadata.dependencies.iter().any(|kept| kept.name == name);
    let mut needed: Vec<PackageDependency> = listed
        .iter()
        .filter(|wanted| {
            let name = if wanted.alias.is_empty() { &wanted.name } else { &wanted.alias };
            decided.is_err() || is_used(name)
        })
        .filter_map(|wanted| PackageDependency::remote(&wanted.name, &wanted.version, &wanted.repository))
        .collect();
    needed.sort();
    needed.dedup();
    needed
}

fn parts(request: &StoreRequest, bytes: &[u8], digest: &Digest) -> Vec<Wanted> {
    let count = chunk::split(bytes).len();
    let labels = BTreeMap::from([(PACKAGE.to_owned(), short(digest.hex()))]);
    let annotations = [(DIGEST.to_owned(), digest.to_string()), (PARTS.to_owned(), count.to_string())];
    let one = |(place, data): (usize, &[u8])| {
        let mut wanted = part(request, place + 1, labels.clone(), data);
        wanted.annotations.extend(annotations.clone());
        wanted
    };
    chunk::split(bytes).enumerate().map(one).collect()
}
