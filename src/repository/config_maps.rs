//! The `ConfigMaps` with what is kept of charts.

use std::collections::BTreeMap;

use ::source::digest::Digest;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use objects::legal;
use serde_json::json;

use super::stop::Stop;
use crate::cluster::is_already_there;

/// Who we are when maps are written.
const MANAGER: &str = "addon-operator";

/// The labels of maps that people can read.
pub(super) const CHART: &str = "yaho.soer3n.dev/chart";
pub(super) const REPO: &str = "yaho.soer3n.dev/repo";
pub(super) const TYPE: &str = "yaho.soer3n.dev/type";
pub(super) const SUBNAME: &str = "yaho.soer3n.dev/subname";

/// The annotations that say what a map is about, as the index writes it.
pub(super) const OF_REPOSITORY: &str = "addon-operator.io/repository";
pub(super) const OF_CHART: &str = "addon-operator.io/chart";
pub(super) const OF_VERSION: &str = "addon-operator.io/version";

/// The label of the parts of packages: the beginning of the digest.
pub(super) const PACKAGE: &str = "addon-operator.io/package";

/// The annotation with the digest of the archive.
pub(super) const DIGEST: &str = "addon-operator.io/digest";

/// The annotation with the digest of what a map holds, so that a change by hand is seen.
pub(super) const CONTENT: &str = "addon-operator.io/content";

/// The key of the versions.
pub(super) const VERSIONS: &str = "versions";

/// A map as it has to be.
pub(super) struct Wanted {
    /// Its name before it is made legal.
    pub(super) name: String,
    /// What tells it apart from others whose names come to the same.
    pub(super) identity: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Texts, for people.
    pub(super) data: BTreeMap<String, String>,
    pub(super) binary: BTreeMap<String, Vec<u8>>,
    pub(super) is_immutable: bool,
    pub(super) owner: OwnerReference,
}

/// The maps of one namespace.
pub(super) struct ConfigMaps {
    api: Api<ConfigMap>,
    namespace: String,
}

/// Returns the reference to an object that owns a map.
pub(super) fn owner(kind: &str, api_version: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// How much of a digest is in a label.
const SHORT: usize = 40;

/// Returns a digest as labels of packages have it.
pub(super) fn short(hex: &str) -> String {
    hex.chars().take(SHORT).collect()
}

/// Returns whether the versions in an index map are those that were written into it.
pub(super) fn is_as_written(map: &ConfigMap) -> bool {
    let versions = map.binary_data.as_ref().and_then(|data| data.get(VERSIONS));
    let content = versions.map(|versions| Digest::of(&versions.0).to_string());
    let said = map.metadata.annotations.as_ref().and_then(|annotations| annotations.get(CONTENT));
    content.is_some() && said == content.as_ref()
}

/// Returns whether a map is about this: a repository, a chart and a version. What somebody took away from a map of ours says nothing.
pub(super) fn is_about(map: &ObjectMeta, of: [Option<&str>; 3]) -> bool {
    let labels = map.labels.as_ref();
    let is_ours = labels.is_some_and(|labels| [TYPE, PACKAGE].iter().any(|name| labels.contains_key(*name)));
    [OF_REPOSITORY, OF_CHART, OF_VERSION].iter().zip(of).all(|(name, of)| {
        let said = map.annotations.as_ref().and_then(|all| all.get(*name)).map(String::as_str);
        said == of || (said.is_none() && is_ours)
    })
}

impl Wanted {
    /// Returns the names that the map may have, the usual one first.
    fn names(&self) -> [String; 2] {
        let identity: Vec<&str> = self.identity.iter().map(String::as_str).collect();
        [legal::object(&self.name), legal::told_apart(&self.name, &identity)]
    }

    /// Returns whether a map is about the same as this one.
    fn is_about(&self, map: &ConfigMap) -> bool {
        let of = |name: &str| self.annotations.get(name).map(String::as_str);
        is_about(&map.metadata, [of(OF_REPOSITORY), of(OF_CHART), of(OF_VERSION)])
    }

    fn has_data_of(&self, map: &ConfigMap) -> bool {
        let binary = map.binary_data.iter().flatten().map(|(key, value)| (key, &value.0));
        map.data.clone().unwrap_or_default() == self.data
            && binary.eq(self.binary.iter())
            && map.immutable.unwrap_or_default() == self.is_immutable
    }

    fn object(&self, name: &str, owners: Vec<OwnerReference>) -> ConfigMap {
        let binary = self.binary.iter().map(|(key, value)| (key.clone(), ByteString(value.clone())));
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(self.labels.clone()),
                annotations: Some(self.annotations.clone()),
                owner_references: Some(owners),
                ..ObjectMeta::default()
            },
            data: Some(self.data.clone()).filter(|data| !data.is_empty()),
            binary_data: Some(binary.collect::<BTreeMap<_, _>>()).filter(|data| !data.is_empty()),
            immutable: self.is_immutable.then_some(true),
        }
    }
}

impl ConfigMaps {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    fn place(&self, name: &str) -> String {
        format!("ConfigMap {}/{name}", self.namespace)
    }

    /// Returns a map; `None` if there is none.
    pub(super) async fn get(&self, name: &str) -> Result<Option<ConfigMap>, Stop> {
        let what = || format!("can't read {}", self.place(name));
        self.api.get_opt(name).await.map_err(|error| Stop::of(&what(), &error))
    }

    /// Returns the maps with these labels, without their data.
    pub(super) async fn metadata(&self, selector: &str) -> Result<Vec<PartialObjectMeta<ConfigMap>>, Stop> {
        let listed = self.api.list_metadata(&ListParams::default().labels(selector)).await;
        let what = format!("can't list the ConfigMaps with charts in {}", self.namespace);
        Ok(listed.map_err(|error| Stop::of(&what, &error))?.items)
    }

    /// Returns the maps with these labels.
    pub(super) async fn list(&self, selector: &str) -> Result<Vec<ConfigMap>, Stop> {
        let listed = self.api.list(&ListParams::default().labels(selector)).await;
        let what = format!("can't list the ConfigMaps with charts in {}", self.namespace);
        Ok(listed.map_err(|error| Stop::of(&what, &error))?.items)
    }

    /// Returns the map that is about what `wanted` is about; `None` if there is none.
    pub(super) async fn find(&self, wanted: &Wanted) -> Result<Option<ConfigMap>, Stop> {
        for name in wanted.names() {
            match self.get(&name).await? {
                Some(map) if wanted.is_about(&map) => return Ok(Some(map)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Makes a map as it has to be; `known` is it as it is. Returns whether something was written, and which write of it is there.
    pub(super) async fn ensure(
        &self,
        wanted: &Wanted,
        known: Option<&ConfigMap>,
    ) -> Result<(bool, String), Stop> {
        let Some(map) = known else { return self.create(wanted).await.map(|version| (true, version)) };
        let name = map.metadata.name.clone().unwrap_or_default();
        let what = || format!("can't write {}", self.place(&name));
        let version = map.metadata.resource_version.clone().unwrap_or_default();
        let mut owners = map.metadata.owner_references.clone().unwrap_or_default();
        let is_owned = owners.iter().any(|owner| owner.uid == wanted.owner.uid);
        if !is_owned {
            let has_controller = owners.iter().any(|owner| owner.controller == Some(true));
            let controller = Some(!has_controller);
            owners.push(OwnerReference { controller, ..wanted.owner.clone() });
        }
        let labels = map.metadata.labels.clone().unwrap_or_default();
        let annotations = map.metadata.annotations.clone().unwrap_or_default();
        let has_all = |own: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>| {
            wanted.iter().all(|(key, value)| own.get(key) == Some(value))
        };
        let is_described = has_all(&labels, &wanted.labels) && has_all(&annotations, &wanted.annotations);
        if wanted.has_data_of(map) {
            if is_owned && is_described {
                return Ok((false, version));
            }
            let patch = json!({"metadata": {
                "resourceVersion": version, "labels": wanted.labels, "annotations": wanted.annotations, "ownerReferences": owners,
            }});
            let written = self.api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            let written = written.map_err(|error| Stop::of(&what(), &error))?;
            return Ok((true, written.metadata.resource_version.unwrap_or_default()));
        }
        if map.immutable == Some(true) || wanted.is_immutable {
            self.delete(&name).await?;
            let object = wanted.object(&name, owners);
            let written = self.api.create(&params(), &object).await;
            let written = written.map_err(|error| Stop::of(&what(), &error))?;
            return Ok((true, written.metadata.resource_version.unwrap_or_default()));
        }
        let mut object = wanted.object(&name, owners);
        object.metadata.resource_version = Some(version);
        let written = self.api.replace(&name, &params(), &object).await;
        let written = written.map_err(|error| Stop::of(&what(), &error))?;
        Ok((true, written.metadata.resource_version.unwrap_or_default()))
    }

    /// Creates a map. If something else has its name, it gets another one.
    async fn create(&self, wanted: &Wanted) -> Result<String, Stop> {
        let mut refused = Stop::Rejected(String::new());
        for name in wanted.names() {
            let object = wanted.object(&name, vec![wanted.owner.clone()]);
            match self.api.create(&params(), &object).await {
                Ok(written) => return Ok(written.metadata.resource_version.unwrap_or_default()),
                Err(error) => {
                    let is_taken = is_already_there(&error);
                    refused = Stop::of(&format!("can't write {}", self.place(&name)), &error);
                    if !is_taken {
                        return Err(refused);
                    }
                }
            }
        }
        Err(refused)
    }

    /// Deletes a map, if it is there.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Stop> {
        match self.api.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(error) if crate::cluster::is_not_found(&error) => Ok(()),
            Err(error) => Err(Stop::of(&format!("can't delete {}", self.place(name)), &error)),
        }
    }

    /// Sets the owners of a map, which has to be the one that was seen.
    pub(super) async fn set_owners(
        &self,
        name: &str,
        version: &str,
        owners: &[OwnerReference],
    ) -> Result<(), Stop> {
        let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
        let written = self.api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let what = || format!("can't write {}", self.place(name));
        written.map(drop).map_err(|error| Stop::of(&what(), &error))
    }

    /// Writes a map over the one that was seen, or creates it. Returns it as it is then.
    pub(super) async fn put(&self, map: &ConfigMap) -> Result<ConfigMap, Stop> {
        let name = map.metadata.name.clone().unwrap_or_default();
        let written = match map.metadata.resource_version {
            None => self.api.create(&params(), map).await,
            Some(_) => self.api.replace(&name, &params(), map).await,
        };
        written.map_err(|error| Stop::of(&format!("can't write {}", self.place(&name)), &error))
    }
}

fn params() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}
