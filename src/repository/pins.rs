//! Which packages modules stay with: one `ConfigMap`, which owns the packages that it names.

use std::collections::BTreeMap;

use engine::{Failure, FailureKind, ModuleName, Package, Pin, Pins};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

use super::config_maps::{DIGEST, PACKAGE, is_about, owner, short};
use super::repositories::Repositories;
use super::stop::Stop;

fn failed(stop: Stop) -> Failure {
    match stop {
        Stop::Rejected(problem) => Failure::new(FailureKind::Cluster, problem),
        Stop::Failed(failure) => failure,
    }
}

/// Returns the packages that stay.
fn pinned(data: &BTreeMap<String, String>) -> Vec<Package> {
    let pins = data.values().filter_map(|text| serde_json::from_str::<Pin>(text).ok());
    pins.flat_map(|pin| std::iter::once(pin.package).chain(pin.previous)).collect()
}

/// Returns whether a map of ours is a part of a package. The same archive may be kept for other Repositories and versions, too.
fn is_part(metadata: &ObjectMeta, package: &Package) -> bool {
    let Package { repository, chart, version, digest } = package;
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(PACKAGE));
    let said = metadata.annotations.as_ref().and_then(|all| all.get(DIGEST));
    let is_its = label.is_some_and(|label| *label == short(digest.hex()))
        || said.is_some_and(|said| said == digest.as_str());
    is_its && is_about(metadata, [repository, chart, version].map(|text| Some(&**text)))
}

/// Returns whether a map belongs to a map of pins.
pub(super) fn is_held(map: &ConfigMap) -> bool {
    map.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "ConfigMap")
}

impl Repositories {
    fn pins_name(&self) -> String {
        format!("{}-charts", self.options.config_map)
    }

    pub(super) async fn read_pins(&self) -> Result<Pins, Failure> {
        let map = self.maps.get(&self.pins_name()).await.map_err(failed)?;
        let mut pins = Pins::new();
        for (module, text) in map.and_then(|map| map.data).unwrap_or_default() {
            match serde_json::from_str(&text) {
                Ok(pin) => drop(pins.insert(ModuleName::from(module), pin)),
                Err(error) => {
                    tracing::warn!(module, "ConfigMap {}: the pin can't be read: {error}", self.pins_name());
                }
            }
        }
        Ok(pins)
    }

    /// Returns the name and the identity of the map of pins, if one of them names this package.
    pub(super) async fn pins_of(&self, package: &Package) -> Result<Option<(String, String)>, Stop> {
        let name = self.pins_name();
        let Some(map) = self.maps.get(&name).await? else { return Ok(None) };
        let is_pinned = pinned(&map.data.unwrap_or_default()).contains(package);
        Ok(is_pinned.then(|| (name, map.metadata.uid.unwrap_or_default())))
    }

    /// Writes a pin. Packages belong to the map before it names them, and until it names them no more.
    pub(super) async fn write_pin(&self, module: &ModuleName, pin: Option<&Pin>) -> Result<(), Failure> {
        let _turn = self.pinning.lock().await;
        let name = self.pins_name();
        let known = self.maps.get(&name).await.map_err(failed)?;
        let map = match (known, pin) {
            (Some(map), _) => map,
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                self.maps.put(&ConfigMap { metadata, ..ConfigMap::default() }).await.map_err(failed)?
            }
        };
        let uid = map.metadata.uid.clone().unwrap_or_default();
        let mut data = map.data.clone().unwrap_or_default();
        match pin {
            Some(pin) => {
                let held = self.hold(&name, &uid, &pin.package).await.map_err(failed)?;
                let before =
                    data.get(module.as_str()).and_then(|text| serde_json::from_str::<Pin>(text).ok());
                if held == 0 && before.is_none_or(|before| before.package.digest != pin.package.digest) {
                    // Another archive took its place since it was found.
                    let Package { chart, version, .. } = &pin.package;
                    let text = format!("the package of chart {chart} {version} for module {module} is gone");
                    return Err(Failure::new(FailureKind::Files, text).advise("it is looked for again"));
                }
                let text =
                    serde_json::to_string(pin).map_err(|error| Failure::of(FailureKind::Bug, &error))?;
                data.insert(module.to_string(), text);
            }
            None => drop(data.remove(module.as_str())),
        }
        let stays = pinned(&data);
        let map = ConfigMap { data: Some(data), ..map };
        self.maps.put(&map).await.map_err(failed)?;
        self.let_go(&uid, &stays).await.map_err(failed)
    }

    /// Makes the parts of a package belong to the map of pins. Returns how many there are.
    pub(super) async fn hold(&self, name: &str, uid: &str, package: &Package) -> Result<usize, Stop> {
        let own = owner("ConfigMap", "v1", name, uid);
        let parts = self.maps.metadata(&format!("{PACKAGE}={}", short(package.digest.hex()))).await?;
        let parts: Vec<_> = parts.into_iter().filter(|part| is_part(&part.metadata, package)).collect();
        let count = parts.len();
        for part in parts {
            let metadata = part.metadata;
            let mut owners = metadata.owner_references.unwrap_or_default();
            if owners.iter().any(|owner| owner.uid == uid) {
                continue;
            }
            let controller = Some(!owners.iter().any(|owner| owner.controller == Some(true)));
            owners.push(k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
                controller,
                ..own.clone()
            });
            let (part, version) =
                (metadata.name.unwrap_or_default(), metadata.resource_version.unwrap_or_default());
            self.maps.set_owners(&part, &version, &owners).await?;
        }
        Ok(count)
    }

    /// Gives up the packages that no pin names. One that nobody else owns goes.
    async fn let_go(&self, uid: &str, stays: &[Package]) -> Result<(), Stop> {
        for part in self.maps.metadata(PACKAGE).await? {
            let metadata = part.metadata;
            let is_pinned = stays.iter().any(|stays| is_part(&metadata, stays));
            let mut owners = metadata.owner_references.unwrap_or_default();
            if is_pinned || !owners.iter().any(|owner| owner.uid == uid) {
                continue;
            }
            owners.retain(|owner| owner.uid != uid);
            let (part, version) =
                (metadata.name.unwrap_or_default(), metadata.resource_version.unwrap_or_default());
            if owners.is_empty() {
                self.maps.delete(&part).await?;
            } else {
                self.maps.set_owners(&part, &version, &owners).await?;
            }
        }
        Ok(())
    }
}
