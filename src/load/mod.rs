//! Files become a catalog: modules, hooks, values and schemas.

mod hash;
mod hooks;
mod module;
mod module_dirs;
mod temporary_files;
mod walk;
mod watch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::{BrokenPart, Catalog, Failure, FailureKind, Global, Module, ModuleName, Scope};
use serde_json::Value;
use thiserror::Error;

use hooks::Configurations;
use module::SharedValues;
use module_dirs::Entry;
pub use watch::{Watched, watch};

/// Where files are and how they are read.
#[derive(Clone, Debug)]
pub struct Places {
    /// The directories with modules.
    pub modules_dirs: Vec<PathBuf>,
    /// The directory with global hooks.
    pub global_hooks_dir: PathBuf,
    /// The order of modules without number.
    pub unnumbered_order: u32,
    /// Files in `crds/` that begin so are no CRDs.
    pub crd_filters: Vec<String>,
    /// Whether a missing `values.yaml` is an error.
    pub strict: bool,
    /// The environment of hooks.
    pub environment: Vec<(OsString, OsString)>,
    /// How long a hook may take for `--config`.
    pub config_timeout: Duration,
}

/// Why nothing can be loaded at all. At start the program exits with 2.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The global hooks or their schemas can't be used.
    #[error("{0}")]
    Global(Failure),
    /// A directory has a name that no module can have.
    #[error("{path}: {message}")]
    Name {
        /// The directory.
        path: PathBuf,
        /// What is wrong with the name, and which would do.
        message: String,
    },
    /// A directory or file can't be read.
    #[error("can't read {path}: {source}")]
    Unreadable {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of all modules does not say what it should.
    #[error("{path}: {message}")]
    Values {
        /// The file.
        path: PathBuf,
        /// Where and what.
        message: String,
    },
}

/// Reads files and remembers what hooks answered.
#[derive(Debug)]
pub struct Loader {
    places: Places,
    configurations: Configurations,
}

impl Loader {
    /// Returns a loader for `places`.
    pub fn new(places: Places) -> Self {
        let configurations = Configurations::new(places.environment.clone(), places.config_timeout);
        Self { places, configurations }
    }

    /// Returns the directories whose files make the catalog.
    pub fn directories(&self) -> Vec<PathBuf> {
        let mut dirs = self.places.modules_dirs.clone();
        dirs.push(self.places.global_hooks_dir.clone());
        dirs
    }

    /// Returns the catalog of all files as they are at the start.
    ///
    /// A module that can't be used is in it as broken, with the reason. A global hook that can't be used refuses the start.
    pub async fn load(&self) -> Result<Catalog, LoadError> {
        let catalog = self.reload().await?;
        match catalog.global.broken.first() {
            Some(part) => Err(LoadError::Global(part.failure.clone())),
            None => Ok(catalog),
        }
    }

    /// Returns the catalog of all files as they are now. Global hooks that can't be used are in it as broken.
    pub async fn reload(&self) -> Result<Catalog, LoadError> {
        let found = module_dirs::entries(&self.places.modules_dirs, self.places.unnumbered_order)?;
        let shared = SharedValues::read(&self.places)?;
        let mut warnings = found.warnings;
        let (global, modules) = tokio::join!(self.global(&shared), self.modules(&found.modules, &shared));
        let (global, global_warnings) = global?;
        warnings.extend(global_warnings);
        let mut loaded = Vec::with_capacity(modules.len());
        for (module, module_warnings) in modules {
            loaded.push(Arc::new(module));
            warnings.extend(module_warnings);
        }
        loaded.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        let complete = (0..self.places.modules_dirs.len())
            .all(|place| found.modules.iter().any(|entry| entry.place == place))
            && !self.places.modules_dirs.is_empty();
        Ok(Catalog { global: Arc::new(global), modules: loaded, complete, warnings })
    }

    /// Returns one module as its files are now.
    pub async fn load_module(&self, name: &ModuleName) -> Result<Arc<Module>, Failure> {
        let failed = |error: LoadError| Failure::of(FailureKind::Files, &error);
        let found =
            module_dirs::entries(&self.places.modules_dirs, self.places.unnumbered_order).map_err(failed)?;
        let shared = SharedValues::read(&self.places).map_err(failed)?;
        let entry = found.modules.iter().find(|entry| entry.name == name.as_str());
        let entry = entry.ok_or_else(|| {
            Failure::new(FailureKind::Files, format!("the directory of module {name} is gone"))
        })?;
        let (module, _) = self.module(entry, &shared).await;
        Ok(Arc::new(module))
    }

    async fn modules(&self, entries: &[Entry], shared: &SharedValues) -> Vec<(Module, Vec<String>)> {
        futures::future::join_all(entries.iter().map(|entry| self.module(entry, shared))).await
    }

    async fn module(&self, entry: &Entry, shared: &SharedValues) -> (Module, Vec<String>) {
        let (mut module, candidates, mut warnings) = module::read(entry, shared, &self.places);
        let scope = Scope::Module(module.name.clone());
        let (hooks, broken) = self.configurations.load(&scope, candidates).await;
        match broken.into_iter().next() {
            None => {
                warnings.extend(hooks::unserved(&hooks));
                module.hooks = hooks;
            }
            Some((_, failure)) => module.broken = module.broken.or(Some(failure)),
        }
        (module, warnings)
    }

    async fn global(&self, shared: &SharedValues) -> Result<(Global, Vec<String>), LoadError> {
        let dir = &self.places.global_hooks_dir;
        std::fs::read_dir(dir).map_err(|source| LoadError::Unreadable { path: dir.clone(), source })?;
        let nested = dir.join("hooks");
        let (root, prefix) = if nested.is_dir() { (&nested, "hooks/") } else { (dir, "") };
        let (mut candidates, mut warnings) = hooks::candidates(root, prefix).map_err(LoadError::Global)?;
        candidates.retain(|candidate| !candidate.path.starts_with(dir.join("openapi")));
        let (hooks, broken) = self.configurations.load(&Scope::Global, candidates).await;
        warnings.extend(hooks::unserved(&hooks));
        let part = |(hook, failure)| BrokenPart { hook: Some(hook), failure };
        let mut broken: Vec<BrokenPart> = broken.into_iter().map(part).collect();
        let schemas = module::schemas(dir).unwrap_or_else(|failure| {
            broken.push(BrokenPart { hook: None, failure });
            Arc::default()
        });
        let static_values = Arc::new(Value::Object(shared.global.clone()));
        Ok((Global { hooks, static_values, schemas, broken }, warnings))
    }
}

/// The sections of `values.yaml` by key.
type Sections = BTreeMap<String, Value>;
