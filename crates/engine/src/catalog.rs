//! What the operator was given to run: global hooks and modules.
//!
//! A catalog is immutable. A changed file leads to a new catalog that shares
//! every part that did not change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use values::preset::Presets;
use values::schema::Schemas;

use crate::addon::Digest;
use crate::failure::{Failure, FailureKind};
use crate::hook::HookSpec;
use crate::module_settings::ModuleSettings;
use crate::name::{HookId, HookName, ModuleName};
use crate::package::{ChartDependencies, ChartReference, Package};

/// Everything found below the global hooks directory and the modules directories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Global hooks, values and schemas.
    pub global: Arc<Global>,
    /// Modules by order, then name. The loader holds the list as well: who replaces it does not take the time to drop thousands.
    pub modules: Arc<Vec<Arc<Module>>>,
    /// Whether every modules directory could be read and holds at least one module.
    ///
    /// Nothing is purged otherwise: a module may only seem to be gone.
    pub complete: bool,
    /// What was skipped, and why: duplicates, hooks without execute bit, unknown files.
    pub warnings: Vec<String>,
}

impl Catalog {
    /// Returns the catalog in which no two hooks have one finalizer on one kind: each would let objects go that the other one
    /// is not done with. The later hook can't be used, nor the module that it belongs to.
    #[must_use]
    pub fn with_one_hook_for_each_finalizer(mut self) -> Self {
        let mut known: Vec<Arc<Hook>> = Vec::new();
        let reconciles = |hook: &&Arc<Hook>| !hook.spec.reconciles.is_empty();
        let mut broken = Vec::new();
        for hook in self.global.hooks.iter().filter(reconciles) {
            match clash(&known, hook) {
                Some(failure) => broken.push(BrokenPart { hook: Some(hook.id.name.clone()), failure }),
                None => known.push(Arc::clone(hook)),
            }
        }
        if !broken.is_empty() {
            let global = Arc::make_mut(&mut self.global);
            global.hooks.retain(|hook| !broken.iter().any(|part| part.hook.as_ref() == Some(&hook.id.name)));
            global.broken.append(&mut broken);
        }
        for module in Arc::make_mut(&mut self.modules).iter_mut().filter(|module| module.broken.is_none()) {
            let before = known.len();
            let mut find = |hook: &Arc<Hook>| {
                let failure = clash(&known, hook);
                known.push(Arc::clone(hook));
                failure
            };
            let failure = module.hooks.iter().filter(reconciles).find_map(&mut find);
            if failure.is_some() {
                known.truncate(before);
                Arc::make_mut(module).broken = failure;
            }
        }
        self
    }
}

/// Returns why a hook can't be used beside others: it has the finalizer of one of them for the same kind.
pub(crate) fn clash<'h>(others: impl IntoIterator<Item = &'h Arc<Hook>>, hook: &Hook) -> Option<Failure> {
    let shares = |other: &&Arc<Hook>| {
        let mut bindings = other.spec.reconciles.iter();
        bindings.any(|one| hook.spec.reconciles.iter().any(|binding| binding.shares_finalizer_with(one)))
    };
    let other = others.into_iter().find(shares)?;
    let message = format!("hook {} has the same finalizer for the same kind as hook {}", hook.id, other.id);
    let failure = Failure::new(FailureKind::Files, message);
    Some(failure.advise("give each reconcile binding a finalizer of its own"))
}

/// What belongs to no module.
#[derive(Clone, Default, PartialEq)]
pub struct Global {
    /// Global hooks in order of their path.
    pub hooks: Vec<Arc<Hook>>,
    /// The `global` sections of all `values.yaml`, merged; an object.
    pub static_values: Arc<Value>,
    /// The schemas of the `global` section.
    pub schemas: Arc<Schemas>,
    /// What of it can't be used, if anything. The other fields hold what can.
    pub broken: Vec<BrokenPart>,
}

/// A global hook that can't be used, or the global schemas.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokenPart {
    /// The hook; `None` for the schemas.
    pub hook: Option<HookName>,
    /// Why.
    pub failure: Failure,
}

impl Module {
    /// Returns the module as it is when it is installed from this package. Its content is another one with each package.
    #[must_use]
    pub fn installed_from(&self, package: &Arc<Package>) -> Self {
        let before = self.package.as_ref().map(|package| beginning(package)).unwrap_or_default();
        let content = self.content ^ before ^ beginning(package);
        Self { package: Some(Arc::clone(package)), content, ..self.clone() }
    }

    /// Returns the version of what it is installed from: its package, its bundle or its own chart.
    pub fn version(&self) -> Option<&str> {
        let package = self.package.as_ref().map(|package| &*package.version);
        package.or(self.version.as_deref())
    }

    /// Returns the module as it is with these packages for the charts that its own chart needs. Its content is another one with
    /// others.
    #[must_use]
    pub fn supplied_with(&self, packages: Vec<Arc<Package>>) -> Self {
        let hash = |packages: &[Arc<Package>]| {
            let places = packages.iter().zip(1_u32..);
            places.fold(0, |hash, (package, place)| hash ^ beginning(package).rotate_left(place))
        };
        let content = self.content ^ hash(&self.dependencies.packages) ^ hash(&packages);
        let dependencies = ChartDependencies { packages, ..self.dependencies.clone() };
        Self { content, dependencies, ..self.clone() }
    }

    /// Returns whether it names charts of repositories, or may do so.
    pub fn names_charts(&self) -> bool {
        self.chart.is_some() || !self.dependencies.named.is_empty()
    }
}

/// Returns the beginning of the digest of a package, as a number.
fn beginning(package: &Package) -> u64 {
    let digits = package.digest.hex().get(..16);
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

/// A chart, its hooks and its values.
#[derive(Clone, PartialEq)]
pub struct Module {
    /// The module's name.
    pub name: ModuleName,
    /// The key of its section in values and in the ConfigMap: `certManager`.
    pub key: Arc<str>,
    /// The key under which its chart reads that section: the same, but for a module of an `AddonsConfiguration`, whose chart
    /// does not know the namespace that its name begins with.
    pub chart_key: Arc<str>,
    /// The number before its name; modules run by order, then name.
    pub order: u32,
    /// The namespace of its release, if its files name one. It does not count for a module of an `AddonsConfiguration`.
    pub namespace: Option<Arc<str>>,
    /// The directory it was loaded from, symbolic links resolved.
    pub path: Arc<str>,
    /// A hash of all its files; differs when any of them differs.
    pub content: u64,
    /// Where its files come from.
    pub origin: Origin,
    /// The last `<key>Enabled` of the static values, and the file it stands in.
    pub enabled: Option<EnabledFlag>,
    /// The `enabled` script, if there is one that can be executed.
    pub enabled_script: Option<Script>,
    /// The static values of its section; an object.
    pub static_values: Arc<Value>,
    /// The schemas of its section.
    pub schemas: Arc<Schemas>,
    /// How its values reach its chart.
    pub layout: ValuesLayout,
    /// Its plans, if it comes from a chart bundle.
    pub plans: Plans,
    /// Its hooks in order of their path.
    pub hooks: Vec<Arc<Hook>>,
    /// Whether it has hooks that nobody has asked for their configuration yet: code of a bundle does not run before the
    /// module is switched on.
    pub has_unread_hooks: bool,
    /// Whether it is a chart: `Chart.yaml` or `templates/` exists, or it names one.
    pub has_chart: bool,
    /// The chart that it names, if it does not bring its own.
    pub chart: Option<Arc<ChartReference>>,
    /// What that came to. The loader leaves it empty: it is not in the files.
    pub package: Option<Arc<Package>>,
    /// The version of its bundle, or else of its own chart. That of a package does not stand here.
    pub version: Option<Arc<str>>,
    /// What it says about when it runs.
    pub settings: ModuleSettings,
    /// The charts that its own chart needs and does not hold.
    pub dependencies: ChartDependencies,
    /// The files of its CRDs.
    pub crds: Vec<Arc<str>>,
    /// Why it can't be used as it is, if so. Its other fields hold what could be read.
    pub broken: Option<Failure>,
}

/// How the values of a module reach its chart.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ValuesLayout {
    /// Behind the key of the module, beside `global`: `.Values.certManager.replicas`.
    #[default]
    Section,
    /// At the root, as charts read them that know nothing of modules: `.Values.replicas`.
    Root,
}

/// The plans of a module, of which its section picks one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plans {
    /// What each presets.
    pub presets: Arc<Presets>,
    /// The template of the credentials of each that has some: its file, by the name of the plan.
    pub credentials: BTreeMap<Arc<str>, Arc<str>>,
    /// What its bundle says to platforms, if it comes from a bundle.
    pub offer: Option<Arc<Offer>>,
}

/// What a bundle says of itself to platforms that ask the broker, as its `meta.yaml` has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// One sentence.
    pub description: Arc<str>,
    /// Words by which it is found.
    pub tags: Vec<Arc<str>>,
    /// What it asks of platforms.
    pub requires: Vec<Arc<str>>,
    /// What people see, in the words of the Open Service Broker API; an object.
    pub metadata: Arc<Value>,
    /// What its plans say of themselves.
    pub plans: Vec<OfferedPlan>,
}

/// What a plan says of itself to platforms.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedPlan {
    /// Its id.
    pub id: Arc<str>,
    /// The name that picks it.
    pub name: Arc<str>,
    /// One sentence.
    pub description: Arc<str>,
    /// The name for people.
    pub display_name: Arc<str>,
    /// Whether it costs nothing, if it says so.
    pub free: Option<bool>,
}

/// Where the files of a module come from. The loader knows: it follows the link of a bundle.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Origin {
    /// A modules directory.
    #[default]
    Files,
    /// The store directory.
    Bundle {
        /// The bundle that is unpacked there.
        digest: Digest,
        /// What the bundle's own `values.yaml` says about `<key>Enabled`. It is not in [`enabled`] of the module, which
        /// holds what files outside of the bundle say: remote code does not switch itself on.
        ///
        /// [`enabled`]: Module::enabled
        enabled: Option<EnabledFlag>,
    },
}

/// A static `<key>Enabled` flag.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EnabledFlag {
    /// What it says.
    pub value: bool,
    /// The file that says so.
    pub source: Arc<str>,
}

/// An executable that answers one question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Script {
    /// Where it is.
    pub path: Arc<str>,
    /// A hash of its content.
    pub content: u64,
}

/// A hook: an executable and the bindings it asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// Whose hook it is, and its name.
    pub id: HookId,
    /// Where its executable is.
    pub path: Arc<str>,
    /// A hash of its executable.
    pub content: u64,
    /// How its executable is started.
    pub launch: Launch,
    /// What its `--config` said.
    pub spec: HookSpec,
}

/// How the executable of a hook is started.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Launch {
    /// The directory of the virtual environment whose Python runs it; `None` if it runs by itself.
    pub venv: Option<Arc<str>>,
    /// The directory of its module; `None` for a global hook.
    pub module: Option<Arc<str>>,
    /// Its index among the hooks of its file, if that has several: `hook run INDEX` runs it.
    pub batch_index: Option<usize>,
}

impl Catalog {
    /// Returns the catalog with the modules of an earlier one in the place of those that equal them: who compares both looks at
    /// what differs only.
    #[must_use]
    pub fn sharing(mut self, earlier: &[Arc<Module>]) -> Self {
        let earlier: BTreeMap<&ModuleName, &Arc<Module>> =
            earlier.iter().map(|module| (&module.name, module)).collect();
        for module in Arc::make_mut(&mut self.modules) {
            if let Some(known) = earlier.get(&module.name).filter(|known| **known == module) {
                *module = Arc::clone(known);
            }
        }
        self
    }

    /// Returns the module named `name`.
    pub fn module(&self, name: &ModuleName) -> Option<&Arc<Module>> {
        self.modules.iter().find(|module| module.name == *name)
    }
}

impl Origin {
    /// Returns the bundle of the module, if it comes from one.
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            Self::Files => None,
            Self::Bundle { digest, .. } => Some(digest),
        }
    }
}

// Values can hold secrets: `Debug` names parts, never their content.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.name)
            .field("order", &self.order)
            .field("hooks", &self.hooks)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}
