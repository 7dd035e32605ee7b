//! Indexes of repositories, and the maps with what is kept of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use ::source::chart_repository::index::{ChartIndex, Extent, IndexError, ListStore, Wanted as WantedCharts};
use ::source::chart_repository::location;
use ::source::digest::Digest;
use ::source::registry::reference::is_registry;
use engine::{
    Failure, FailureKind, FetchedIndex, IndexRequest, IndexValidator, RepositoryKey, RepositoryKind,
};
use objects::legal;

use super::config_maps::{
    CHART, CONTENT, OF_CHART, OF_REPOSITORY, REPO, TYPE, VERSIONS, Wanted, is_as_written, owner,
};
use super::repositories::Repositories;
use super::stop::{Stop, blocking};
use crate::remote::http::{Answer, Get, HttpError, Sink, Validator};

/// Takes what is read once into a file without a name. A kill leaves nothing of it.
pub(super) struct Spool {
    directory: PathBuf,
    file: Option<File>,
    /// How many bytes it has.
    length: u64,
}

impl Spool {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, file: None, length: 0 }
    }

    /// Returns what was put there.
    fn at(&mut self, extent: Extent) -> io::Result<Vec<u8>> {
        let mut list = vec![0; extent.length];
        let Some(file) = &mut self.file else { return Ok(list) };
        file.seek(SeekFrom::Start(extent.start))?;
        file.read_exact(&mut list)?;
        Ok(list)
    }

    fn into_reader(self) -> io::Result<Option<File>> {
        let Some(mut file) = self.file else { return Ok(None) };
        file.rewind()?;
        Ok(Some(file))
    }
}

impl Sink for Spool {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                fs::create_dir_all(&self.directory)?;
                none.insert(tempfile::tempfile_in(&self.directory)?)
            }
        };
        file.write_all(part)?;
        self.length += u64::try_from(part.len()).map_err(io::Error::other)?;
        Ok(())
    }
}

impl ListStore for Spool {
    fn append(&mut self, list: &[u8]) -> io::Result<u64> {
        let start = self.length;
        self.write(list)?;
        Ok(start)
    }
}

/// Returns what an error of our own disk comes to.
fn ours(error: &io::Error) -> Stop {
    Stop::Failed(Failure::of(FailureKind::Files, error))
}

/// Returns what an error of a request to a repository comes to.
pub(super) fn fetching(what: &str, error: &HttpError) -> Stop {
    if error.is_ours() {
        return Stop::Failed(Failure::of(FailureKind::Files, error));
    }
    Stop::Rejected(format!("{what} can't be fetched: {error}"))
}

impl Repositories {
    pub(super) async fn index(&self, request: &IndexRequest) -> Result<FetchedIndex, Stop> {
        let repository = &request.repository;
        if is_registry(&repository.url) {
            return self.tags(request).await;
        }
        let base = self.base(repository).await?;
        let url = location::index(&repository.url, self.options.allowed.protocols);
        let url = url.map_err(|error| Stop::Rejected(format!("spec.url: {error}")))?;
        let url = match base.credentials() {
            Some(credentials) => url.with_credentials(credentials.user(), credentials.password()),
            None => url,
        };
        let is_kept = request.known.is_some() && self.is_kept(request).await?;
        let known = request.known.as_ref().filter(|_| is_kept);
        let validator = known.map(|known| Validator::of_texts(&known.etag, &known.modified));
        let get = Get { url: &url, known: validator.as_ref(), limit: self.options.index_bytes };
        let spool = Spool::new(self.options.directory.clone());
        let (spool, validator) = match self.observed("index", self.http.get(get, spool)).await {
            Err(error) => return Err(fetching("the index", &error)),
            Ok(Answer::Unchanged) => {
                let validator = known.cloned().unwrap_or_default();
                return Ok(FetchedIndex { validator, is_unchanged: true, ..FetchedIndex::default() });
            }
            Ok(Answer::New(spool, validator)) => (spool, validator),
        };
        let [etag, modified] = validator.texts();
        let (index, mut kept) = self.read_index(spool, request).await?;
        let mut changed = BTreeSet::new();
        for (chart, extent) in &index.charts {
            let versions = kept.at(*extent).map_err(|error| ours(&error))?;
            if self.keep_index(request, chart, &versions).await? {
                changed.insert(chart.clone());
            }
        }
        let missing = request.charts.iter().filter(|chart| !index.charts.contains_key(&***chart));
        let near = |chart: &str| {
            engine::view::nearest(chart, index.names.iter().map(String::as_str)).map(str::to_owned)
        };
        Ok(FetchedIndex {
            validator: IndexValidator { etag, modified },
            is_unchanged: false,
            kept: index.charts.len(),
            missing: missing.map(|chart| (chart.clone(), near(chart))).collect(),
            changed,
            refused: Vec::new(),
            truncated: index.is_truncated.then_some(index.offered),
            left_out: index.left_out,
        })
    }

    /// Returns what an index has, and what is kept of its charts, which is put aside: it may be much.
    async fn read_index(&self, spool: Spool, request: &IndexRequest) -> Result<(ChartIndex, Spool), Stop> {
        let first = if request.is_open { self.options.index_max } else { 0 };
        let named = request.charts.iter().map(ToString::to_string).collect();
        let (wanted, most) = (WantedCharts { named, first }, self.options.index_bytes);
        // It can't be closed.
        let _turn = self.turns.acquire().await;
        let mut kept = Spool::new(self.options.directory.clone());
        let read = blocking(move || {
            let file = spool.into_reader().map_err(|error| ours(&error))?;
            let index = match file {
                Some(file) => ChartIndex::read(file, most, wanted, &mut kept),
                None => ChartIndex::read(io::empty(), most, wanted, &mut kept),
            };
            match index {
                Ok(index) => Ok((index, kept)),
                Err(error @ IndexError::Store(_)) => {
                    Err(Stop::Failed(Failure::of(FailureKind::Files, &error)))
                }
                Err(error) => Err(Stop::Rejected(error.to_string())),
            }
        });
        read.await?
    }

    /// Makes the map of a chart say these versions. Returns whether it said others.
    pub(super) async fn keep_index(
        &self,
        request: &IndexRequest,
        chart: &str,
        versions: &[u8],
    ) -> Result<bool, Stop> {
        let wanted = index_map(request, chart, versions);
        let known = self.maps.find(&wanted).await?;
        let (is_written, version) = self.maps.ensure(&wanted, known.as_ref()).await?;
        let name = known.and_then(|map| map.metadata.name).unwrap_or_else(|| legal::object(&wanted.name));
        self.verified.set(&name, &version);
        Ok(is_written)
    }

    /// Returns whether all that was kept of an index is there, as it was written.
    async fn is_kept(&self, request: &IndexRequest) -> Result<bool, Stop> {
        let selector = format!("{REPO}={},{TYPE}=index", legal::label(&request.repository.name));
        let mut there = BTreeSet::new();
        for map in self.maps.metadata(&selector).await? {
            let annotations = map.metadata.annotations.unwrap_or_default();
            if annotations.get(OF_REPOSITORY).map(String::as_str) != Some(&*request.repository.name) {
                continue;
            }
            let is_owned = map
                .metadata
                .owner_references
                .iter()
                .flatten()
                .any(|owner| owner.uid == request.repository.uid);
            let (name, version) =
                (map.metadata.name.unwrap_or_default(), map.metadata.resource_version.unwrap_or_default());
            if !is_owned {
                return Ok(false);
            }
            if !self.verified.has(&name, &version) {
                let Some(map) = self.maps.get(&name).await? else { return Ok(false) };
                if !is_as_written(&map) {
                    return Ok(false);
                }
                self.verified.set(&name, &map.metadata.resource_version.unwrap_or_default());
            }
            there.extend(annotations.get(OF_CHART).cloned());
        }
        Ok(!there.is_empty()
            && there.len() >= request.kept
            && request.charts.difference(&request.absent).all(|chart| there.contains(&**chart)))
    }
}

fn index_map(request: &IndexRequest, chart: &str, versions: &[u8]) -> Wanted {
    let repository = &request.repository;
    let label = |(name, value): (&str, &str)| (name.to_owned(), legal::label(value));
    let annotation = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let content = Digest::of(versions).to_string();
    Wanted {
        name: format!("helm-{}-{chart}-index", repository.name),
        identity: vec![repository.name.to_string(), chart.to_owned()],
        labels: [(REPO, &*repository.name), (CHART, chart), (TYPE, "index")].map(label).into(),
        annotations: [(OF_REPOSITORY, &*repository.name), (OF_CHART, chart), (CONTENT, &content)]
            .map(annotation)
            .into(),
        data: BTreeMap::new(),
        binary: [(VERSIONS.to_owned(), versions.to_vec())].into(),
        is_immutable: false,
        owner: owner(
            RepositoryKind::Repository.as_str(),
            RepositoryKey::API_VERSION,
            &repository.name,
            &repository.uid,
        ),
    }
}
