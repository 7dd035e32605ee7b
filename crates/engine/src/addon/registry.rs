//! The addons that are registered. It is kept in the cluster, so that a restart knows it without asking anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::{Bundle, Digest, GivenUpBundle, ModuleLink, SourceKey, WithheldVersion};
use crate::shared_list::SharedList;

/// The version of the format that is written.
const VERSION: u32 = 1;

/// How many addons are read. It keeps a text that is not ours from taking all memory.
const MAX_ADDONS: usize = 100_000;

/// What is registered, sorted by source, name and version.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Registry {
    /// The addons.
    pub addons: RegisteredAddons,
    /// Whether it was ever written to the cluster. One that is not there says nothing: it may be lost.
    pub is_written: bool,
}

/// The addons of one source.
type AddonList = Arc<Vec<RegisteredAddon>>;

/// Registered addons, sorted by source, name and version. Those of one source are shared: of thousands, a pass changes a few.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RegisteredAddons {
    /// Those of each source, none of them empty.
    sources: SharedList<AddonList>,
}

impl RegisteredAddons {
    /// Returns these addons with those of some sources replaced. Each list has those of its source, sorted.
    pub(crate) fn with(&self, others: &BTreeMap<SourceKey, Arc<Vec<RegisteredAddon>>>) -> Self {
        let others = others
            .iter()
            .map(|(key, addons)| (key, Some(addons).filter(|addons| !addons.is_empty()).map(Arc::clone)));
        Self { sources: self.sources.with(others, |addons, key| source_of(addons).cmp(&Some(*key))) }
    }

    /// Returns the lists of those sources whose addons are others in `new`: those of here, and those of there.
    pub(crate) fn differing<'a>(&'a self, new: &'a Self) -> (Vec<&'a AddonList>, Vec<&'a AddonList>) {
        self.sources.differing(&new.sources, |a, b| source_of(a).cmp(&source_of(b)), Arc::ptr_eq)
    }

    /// Iterates over all addons in their order.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredAddon> {
        self.sources.iter().flat_map(|addons| addons.iter())
    }

    /// Iterates over the addons of each source.
    pub(crate) fn by_source(&self) -> impl Iterator<Item = &Arc<Vec<RegisteredAddon>>> {
        self.sources.iter()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.sources.iter().map(|addons| addons.len()).sum()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

fn source_of(addons: &AddonList) -> Option<&SourceKey> {
    addons.first().map(|addon| &addon.source)
}

impl FromIterator<RegisteredAddon> for RegisteredAddons {
    fn from_iter<I: IntoIterator<Item = RegisteredAddon>>(addons: I) -> Self {
        let mut addons: Vec<RegisteredAddon> = addons.into_iter().collect();
        sort(&mut addons);
        let mut sources: Vec<Vec<RegisteredAddon>> = Vec::new();
        for addon in addons {
            let of_last = sources.last_mut().filter(|last| {
                let first: Option<&RegisteredAddon> = last.first();
                first.is_some_and(|first| first.source == addon.source)
            });
            match of_last {
                Some(last) => last.push(addon),
                None => sources.push(vec![addon]),
            }
        }
        Self { sources: sources.into_iter().map(Arc::new).collect() }
    }
}

impl Serialize for RegisteredAddons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Puts addons in their order.
pub(crate) fn sort(addons: &mut [RegisteredAddon]) {
    addons.sort_by(|a, b| a.place().cmp(&b.place()));
}

/// An addon that is registered.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and the format names it")]
pub struct RegisteredAddon {
    /// The configuration that registered it.
    pub source: SourceKey,
    /// The URL of its repository as the configuration has it, placeholders and all.
    pub url: String,
    /// Its bundle.
    pub bundle: Bundle,
    /// Whether it is the version that is a module.
    pub is_active: bool,
    /// Whether its module goes on although it is registered no more: its id and its name are free, unless they are held.
    #[serde(default)]
    pub is_retained: bool,
    /// Whether it keeps its id and its name while its module goes on: its repository can't be fetched, and may offer it still.
    #[serde(default)]
    pub is_held: bool,
    /// Whether its module is being switched off and removed. It is here until that is done.
    #[serde(default)]
    pub is_withdrawn: bool,
    /// Whether its module was never on, as far as is known, when it was withdrawn: unless there is a release of it, no hook runs at its
    /// end, also if another operator sees to that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_never_on: bool,
    /// Whether what the bundle says about `<key>Enabled` counts.
    #[serde(default)]
    pub auto_enable: bool,
    /// The bundle before it with which its module ran. It is here until the module has run with this one, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Bundle>,
    /// Whether its module has not run with it yet, and nothing is there to go back to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unproven: bool,
    /// Whether nothing of its module was released, as far as it is one of a namespace: that is on record before its first revision is
    /// written. Without it there may be a release.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unreleased: bool,
    /// Whether whoever had its name in its scope before left a release, which was to be removed: it is that of its module now, also if
    /// this one never runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherits_release: bool,
    /// The namespaces where a release of its module was before it was to go to that of its bundle, and may still be; none of a name is
    /// the operator's own. They are here until nothing is left there, over restarts too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub left_namespaces: BTreeSet<Option<Arc<str>>>,
    /// How many operators began while it was on trial already: something ended those before them. Each counts as a run that failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub starts: u32,
    /// The version that its repository offers instead, and that does not come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<WithheldVersion>,
    /// The bundles with which its module did not run, and that the one in force came back for, with what the counter of the spec said
    /// then; the last one at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUpBundle>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why a text is no registry.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// It is no JSON, or something in it has another type.
    #[error("the registry of module sources can't be read: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It was written by a later version.
    #[error("the registry of module sources has version {0}, this operator reads {VERSION}; use a newer one")]
    Version(u32),
    /// It is too long.
    #[error("the registry of module sources has {0} addons, {MAX_ADDONS} are read")]
    TooLong(usize),
}

/// How many bundles are remembered with which a module did not run.
const MAX_GIVEN_UP: usize = 20;

#[derive(Deserialize, Serialize)]
struct Document<A> {
    version: u32,
    addons: A,
}

impl Registry {
    /// Returns the registry as JSON.
    ///
    /// # Errors
    ///
    /// None that is known of: everything in it is text, numbers and flags.
    pub fn to_json(&self) -> Result<Vec<u8>, RegistryError> {
        Ok(serde_json::to_vec(&Document { version: VERSION, addons: &self.addons })?)
    }

    /// Returns the registry that [`Registry::to_json`] wrote.
    ///
    /// # Errors
    ///
    /// If it is something else, or too new. Who starts must not go on as if nothing were registered.
    pub fn from_json(text: &[u8]) -> Result<Self, RegistryError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let Head { version } = serde_json::from_slice(text)?;
        if version != VERSION {
            return Err(RegistryError::Version(version));
        }
        let Document { addons, .. } = serde_json::from_slice::<Document<Vec<RegisteredAddon>>>(text)?;
        if addons.len() > MAX_ADDONS {
            return Err(RegistryError::TooLong(addons.len()));
        }
        Ok(Self { addons: addons.into_iter().collect(), is_written: true })
    }

    /// Returns the digests of all bundles that are kept.
    pub fn digests(&self) -> BTreeSet<Digest> {
        self.addons.iter().flat_map(RegisteredAddon::digests).cloned().collect()
    }

    /// Returns the modules that the loader is to find, by order, then name: none of bundles that are `lost`.
    pub fn links(&self, lost: &BTreeSet<Digest>) -> Vec<ModuleLink> {
        let link = |addon: &RegisteredAddon| ModuleLink {
            order: addon.bundle.order,
            name: addon.bundle.name.clone(),
            digest: addon.bundle.digest.clone(),
        };
        let is_there = |addon: &&RegisteredAddon| addon.is_active && !lost.contains(&addon.bundle.digest);
        let mut links: Vec<_> = self.addons.iter().filter(is_there).map(link).collect();
        links.sort();
        links
    }
}

impl RegisteredAddon {
    /// Returns an addon that is the module of its name, and was registered just now.
    pub fn new(source: SourceKey, url: String, bundle: Bundle) -> Self {
        Self {
            source,
            url,
            bundle,
            is_active: true,
            is_retained: false,
            is_held: false,
            is_withdrawn: false,
            was_never_on: false,
            auto_enable: false,
            previous: None,
            is_unproven: false,
            is_unreleased: false,
            inherits_release: false,
            left_namespaces: BTreeSet::new(),
            starts: 0,
            held_back: None,
            given_up: Vec::new(),
        }
    }

    /// Returns the bundles with which its module did not run while the counter of the spec said this.
    pub(crate) fn given_up_at(&self, counter: i64) -> Vec<GivenUpBundle> {
        let held = self.held_back.as_ref().and_then(WithheldVersion::given_up);
        let held = held.filter(|held| !self.given_up.contains(held));
        let mut all: Vec<GivenUpBundle> = self.given_up.iter().cloned().chain(held).collect();
        all.retain(|its| its.reprocess_request == counter);
        all.drain(..all.len().saturating_sub(MAX_GIVEN_UP));
        all
    }

    /// Returns what addons are sorted by.
    pub(crate) fn place(&self) -> impl Ord + '_ {
        (&self.source, self.bundle.name.as_str(), &self.bundle.version, &self.bundle.digest)
    }

    /// Iterates over the digests of the bundles that are kept for it.
    pub fn digests(&self) -> impl Iterator<Item = &Digest> {
        std::iter::once(&self.bundle).chain(&self.previous).map(|bundle| &bundle.digest)
    }

    /// Iterates over the namespaces where a release of its module may be as it is one of the cluster: that of its bundle, and those that
    /// it is to leave.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Option<Arc<str>>> {
        std::iter::once(&self.bundle.namespace).chain(&self.left_namespaces)
    }

    /// Returns whether its configuration brings it.
    pub fn is_registered(&self) -> bool {
        !self.is_retained && !self.is_withdrawn
    }

    /// Returns whether its module has not run with it yet.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.is_unproven || self.previous.is_some()
    }

    /// Returns whether its id and its name are taken.
    pub fn holds_id(&self) -> bool {
        self.is_registered() || self.is_held
    }

    /// Returns its name in the index of its repository: that of its module has the namespace of the configuration in front.
    pub fn name(&self) -> &str {
        let (name, namespace) = (self.bundle.name.as_str(), &*self.source.namespace);
        let own = name.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('-'));
        own.filter(|_| !namespace.is_empty()).unwrap_or(name)
    }

    /// Returns whether its module is not there any more, so that its name is free, and its release is still to be removed.
    pub fn is_displaced(&self) -> bool {
        self.is_withdrawn && !self.is_active
    }
}

#[cfg(test)]
mod tests {
    use super::super::BundleKind;
    use super::*;

    fn addon(source: &str, name: &str, version: &str) -> RegisteredAddon {
        RegisteredAddon {
            is_active: version != "1.0.0",
            ..RegisteredAddon::new(
                SourceKey::cluster(source),
                "https://{key}@repo/index.yaml".to_owned(),
                Bundle {
                    id: format!("id-{name}"),
                    name: name.into(),
                    version: version.to_owned(),
                    digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
                    order: 100,
                    kind: BundleKind::Module,
                    namespace: None,
                },
            )
        }
    }

    #[test]
    fn what_is_written_is_read_again_in_its_order() {
        let addons = [addon("b", "web", "1.0.0"), addon("a", "db", "2.0.0"), addon("b", "db", "1.0.0")];
        let registry = Registry { addons: addons.into_iter().collect(), is_written: true };
        let text = registry.to_json().unwrap();
        assert_eq!(Registry::from_json(&text).unwrap(), registry);
        let order: Vec<_> =
            registry.addons.iter().map(|its| format!("{} {}", its.source.name, its.name())).collect();
        assert_eq!(
            (order, registry.addons.len()),
            (vec!["a db".to_owned(), "b db".to_owned(), "b web".to_owned()], 3)
        );
        let names: Vec<_> =
            registry.links(&BTreeSet::new()).into_iter().map(|link| link.name.to_string()).collect();
        assert_eq!(names, ["db"]);
        let kept: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let source = serde_json::json!({"kind": "ClusterAddonsConfiguration", "namespace": "", "name": "b"});
        assert_eq!((&kept["version"], &kept["addons"][1]["source"]), (&1.into(), &source));
    }

    #[test]
    fn what_is_no_registry_is_not_taken_for_an_empty_one() {
        for text in ["", "{}", r#"{"version":2,"addons":[]}"#, r#"{"version":1,"addons":[{}]}"#] {
            assert!(Registry::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
