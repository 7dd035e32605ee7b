//! Collections of objects, and lists of them page by page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::request::{Cause, PATIENCE, RequestError, Requests, encode_query};

/// How many objects the first page of a list has.
const FIRST_PAGE: usize = 100;

/// How large further pages shall be, in bytes, and how many objects they may have.
const PAGE_BYTES: usize = 512 * 1024;
const LARGE_PAGE_BYTES: usize = 4 << 20;
const SMALLEST_PAGE: usize = 10;
const LARGEST_PAGE: usize = 1_000;

/// How many objects a page has of which only the metadata is read.
const METADATA_PAGE: usize = 1_000;

/// The objects behind one path that selectors leave over.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    /// `/api/v1/namespaces/web/pods`.
    path: String,
    /// The selectors, encoded, each behind `&`.
    selectors: String,
    /// Whether only the metadata of the objects is asked for.
    metadata_only: bool,
    /// Whether a single object may be as large as a page.
    of_large: bool,
}

impl Collection {
    /// Returns all objects behind `path`.
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), selectors: String::new(), metadata_only: false, of_large: false }
    }

    /// Returns those with these labels; an empty selector leaves all over.
    #[must_use]
    pub(crate) fn with_labels(self, selector: &str) -> Self {
        self.select("labelSelector", selector)
    }

    /// Returns those with these fields; an empty selector leaves all over.
    #[must_use]
    pub(crate) fn with_fields(self, selector: &str) -> Self {
        self.select("fieldSelector", selector)
    }

    /// Returns the same objects, but for everything beside their metadata.
    #[must_use]
    pub(crate) fn metadata_only(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// Returns the same objects, of which each may be large: the first page has few, and further ones are longer.
    #[must_use]
    pub(crate) fn of_large(self) -> Self {
        Self { of_large: true, ..self }
    }

    fn select(mut self, parameter: &str, selector: &str) -> Self {
        if !selector.is_empty() {
            // Writing to a String can't fail.
            let _ = write!(self.selectors, "&{parameter}={}", encode_query(selector));
        }
        self
    }

    /// Returns the path of a watch behind `version`, which the API server ends after `seconds`.
    pub(crate) fn watch_path(&self, version: &str, seconds: u64) -> String {
        let version = encode_query(version);
        format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}{}",
            self.path, self.selectors
        )
    }

    /// Returns how many seconds the API server keeps a watch open.
    ///
    /// Hooks wait for whole objects, so a dead connection is found within a minute. Metadata only wakes a check that
    /// may be late: of these watches there is one for each kind of all charts, so they are opened seldom.
    pub(crate) fn watch_seconds(&self) -> u64 {
        if self.metadata_only { 290 } else { 50 }
    }

    /// Returns the form in which a watch sends objects.
    pub(crate) fn watch_accept(&self) -> &'static str {
        if self.metadata_only {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        }
    }

    fn list_accept(&self) -> &'static str {
        if self.metadata_only {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        }
    }

    /// Begins to read all objects. Each page may take `patience` to begin, and again to come to its end.
    pub(crate) fn pages(&self, requests: &Requests, patience: Duration) -> Pages {
        let (first, page_bytes) =
            if self.of_large { (SMALLEST_PAGE, LARGE_PAGE_BYTES) } else { (FIRST_PAGE, PAGE_BYTES) };
        Pages {
            limit: if self.metadata_only { METADATA_PAGE } else { first },
            page_bytes,
            collection: self.clone(),
            requests: requests.clone(),
            patience,
            next: Some(String::new()),
            version: String::new(),
        }
    }
}

/// Returns whether a request with this query is a watch, which has no end.
pub(super) fn is_watch(query: &str) -> bool {
    query.contains("watch=true")
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default, rename = "resourceVersion")]
    version: String,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// A list that is read page by page.
pub(crate) struct Pages {
    collection: Collection,
    requests: Requests,
    patience: Duration,
    /// The token of the next page, empty for the first; `None` behind the last.
    next: Option<String>,
    limit: usize,
    page_bytes: usize,
    version: String,
}

impl Pages {
    /// Returns the objects of the next page as JSON; `None` behind the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Bytes>>, RequestError> {
        let Some(token) = self.next.take() else { return Ok(None) };
        let token = if token.is_empty() { token } else { format!("&continue={}", encode_query(&token)) };
        let Collection { path, selectors, .. } = &self.collection;
        let path = format!("{path}?limit={}{selectors}{token}", self.limit);
        let unreadable = |problem: String| RequestError::new("GET", &path, Cause::Unreadable(problem));
        let response = self.requests.open(&path, self.collection.list_accept(), self.patience).await?;
        let bytes = tokio::time::timeout(self.patience, response.into_body().collect()).await;
        let bytes = bytes.map_err(|_| unreadable("the list did not come to its end".to_owned()))?;
        let bytes = bytes.map_err(|error| unreadable(error.to_string()))?.to_bytes();
        let page: RawPage<'_> =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let items = page.items.unwrap_or_default();
        let items: Vec<Bytes> =
            items.into_iter().map(|item| bytes.slice_ref(item.get().as_bytes())).collect();
        if !self.collection.metadata_only {
            let size = bytes.len().checked_div(items.len()).unwrap_or(0).max(1);
            self.limit = (self.page_bytes / size).clamp(SMALLEST_PAGE, LARGEST_PAGE);
        }
        self.version = page.metadata.version;
        self.next = page.metadata.next.filter(|next| !next.is_empty());
        Ok(Some(items))
    }

    /// Returns the version of the list, behind which to watch.
    pub(crate) fn into_version(self) -> String {
        self.version
    }
}

/// An object of which only the metadata was asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct MetadataOnly {
    pub(crate) metadata: Metadata,
}

/// What metadata is read for. The rest, such as who owns which field, is far larger.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    /// Which write of the object this is.
    #[serde(default, rename = "resourceVersion")]
    pub(crate) resource_version: String,
    pub(crate) namespace: Option<String>,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

fn null_as_empty<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// An object of which it is asked which one it is.
#[derive(Deserialize)]
struct Identified {
    metadata: Identity,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    uid: String,
}

impl Requests {
    /// Returns the `uid` of the object with this name behind `path`, if there is one. It is listed, not read.
    pub(crate) async fn uid_of(&self, path: &str, name: &str) -> Result<Option<String>, RequestError> {
        let named = Collection::new(path).with_fields(&format!("metadata.name={name}")).metadata_only();
        let mut pages = named.pages(self, PATIENCE);
        while let Some(page) = pages.next().await? {
            if let Some(item) = page.first() {
                let item: Identified = serde_json::from_slice(item)
                    .map_err(|error| RequestError::new("GET", path, Cause::Unreadable(error.to_string())))?;
                return Ok(Some(item.metadata.uid));
            }
        }
        Ok(None)
    }

    /// Returns the metadata of all objects behind `path` that `selector` fits.
    pub(crate) async fn list_metadata(
        &self,
        path: &str,
        selector: &str,
    ) -> Result<Vec<Metadata>, RequestError> {
        let mut pages = Collection::new(path).with_labels(selector).metadata_only().pages(self, PATIENCE);
        let mut items = Vec::new();
        while let Some(page) = pages.next().await? {
            for item in page {
                let item: MetadataOnly = serde_json::from_slice(&item)
                    .map_err(|error| RequestError::new("GET", path, Cause::Unreadable(error.to_string())))?;
                items.push(item.metadata);
            }
        }
        Ok(items)
    }
}
