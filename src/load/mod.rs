//! Loads the catalog from files: modules, hooks, values and schemas.

mod chart_bundle;
mod dependencies;
mod error;
mod hash;
mod hooks;
mod mapping;
mod module;
mod module_dirs;
mod offer;
mod options;
mod temporary_files;
mod walk;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::{BrokenPart, Bundle, Catalog, Failure, FailureKind, Global, Module, ModuleName, Scope};
use serde_json::Value;

pub use error::LoadError;
use hooks::Configurations;
use module::SharedValues;
use module_dirs::{Entries, Entry};
pub use options::LoadOptions;
pub use watch::{FileWatch, watch};

/// Which hooks are asked for their configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asking {
    /// Those that were not asked before.
    All,
    /// None: if one was not asked before, the hooks of its module stay unread.
    Known,
}

/// Loads catalogs and caches the configurations of hooks.
#[derive(Debug)]
pub struct Loader {
    options: LoadOptions,
    configurations: Configurations,
    /// The modules that were loaded last: those that did not change are handed out again. With them those that were loaded
    /// before: the engine puts the last ones into their place, and they are dropped here.
    last: Mutex<[Arc<Vec<Arc<Module>>>; 2]>,
}

impl Loader {
    /// Returns a loader for `options`.
    pub fn new(options: LoadOptions) -> Self {
        let configurations =
            Configurations::new(options.environment.clone(), options.config_timeout, options.chroots.clone());
        Self { options, configurations, last: Mutex::default() }
    }

    /// Returns the directories with the files of the catalog.
    pub fn directories(&self) -> Vec<PathBuf> {
        let mut dirs = self.options.modules_dirs.clone();
        dirs.push(self.options.global_hooks_dir.clone());
        dirs
    }

    /// Checks that all directories with files of the catalog can be read.
    fn check(&self) -> Result<(), LoadError> {
        self.directories().iter().try_for_each(|dir| self.options.check(dir))
    }

    /// Returns the catalog for the start of the operator.
    ///
    /// An invalid module is marked as broken with the reason. An invalid global hook is an error.
    pub async fn load(&self) -> Result<Catalog, LoadError> {
        let catalog = self.reload().await?;
        match catalog.global.broken.first() {
            Some(part) => Err(LoadError::Global(part.failure.clone())),
            None => Ok(catalog),
        }
    }

    /// Returns the catalog of the current files. Invalid global hooks are marked as broken, too.
    pub async fn reload(&self) -> Result<Catalog, LoadError> {
        let found = self.entries()?;
        let shared = SharedValues::read(&self.options)?;
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
        let complete = (0..self.options.modules_dirs.len())
            .all(|dir_index| found.modules.iter().any(|entry| entry.dir_index == Some(dir_index)))
            && !self.options.modules_dirs.is_empty();
        let catalog = Catalog { global: Arc::new(global), modules: Arc::new(loaded), complete, warnings };
        let mut lists = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let [last, before] = &mut *lists;
        let catalog = catalog.with_one_hook_for_each_finalizer().sharing(last);
        *before = std::mem::replace(last, Arc::clone(&catalog.modules));
        Ok(catalog)
    }

    /// Returns one module from its current files.
    pub async fn load_module(&self, name: &ModuleName) -> Result<Arc<Module>, Failure> {
        let failed = |error: LoadError| Failure::of(FailureKind::Files, &error);
        let found = self.entries().map_err(failed)?;
        let shared = SharedValues::read(&self.options).map_err(failed)?;
        let entry = found.modules.iter().find(|entry| entry.name == name.as_str());
        let entry = entry.ok_or_else(|| {
            Failure::new(FailureKind::Files, format!("the directory of module {name} is gone"))
        })?;
        let (module, _) = self.module(entry, &shared, Asking::All).await;
        Ok(Arc::new(module))
    }

    /// Returns the module that the bundle of a module source in a directory is. Its hooks stay unread: nothing of it is run.
    ///
    /// # Errors
    ///
    /// When what modules share can't be read, or the module can't be used.
    pub async fn load_bundle(&self, bundle: &Bundle, path: PathBuf) -> Result<Arc<Module>, Failure> {
        let failed = |error: LoadError| Failure::of(FailureKind::Files, &error);
        let shared = SharedValues::read(&self.options).map_err(failed)?;
        let entry = Entry {
            name: bundle.name.to_string(),
            order: bundle.order,
            path,
            dir_index: None,
            bundle: Some(bundle.digest.clone()),
        };
        let (module, _) = self.module(&entry, &shared, Asking::Known).await;
        match module.broken.clone() {
            Some(failure) => Err(failure),
            None => Ok(Arc::new(module)),
        }
    }

    fn entries(&self) -> Result<Entries, LoadError> {
        let LoadOptions { modules_dirs, bundles_dir, unnumbered_order, .. } = &self.options;
        module_dirs::entries(modules_dirs, bundles_dir.as_deref(), *unnumbered_order)
    }

    async fn modules(&self, entries: &[Entry], shared: &SharedValues) -> Vec<(Module, Vec<String>)> {
        // Code of bundles does not run before somebody has switched it on: then the module is loaded alone.
        let asking = |entry: &Entry| if entry.bundle.is_some() { Asking::Known } else { Asking::All };
        futures::future::join_all(entries.iter().map(|entry| self.module(entry, shared, asking(entry)))).await
    }

    async fn module(&self, entry: &Entry, shared: &SharedValues, asking: Asking) -> (Module, Vec<String>) {
        let (mut module, candidates, mut warnings) = module::read(entry, shared, &self.options);
        let scope = Scope::Module(module.name.clone());
        if asking == Asking::Known && !self.configurations.knows_all(&candidates) {
            module.has_unread_hooks = true;
            return (module, warnings);
        }
        let (hooks, broken) = self.configurations.load(&scope, candidates).await;
        match broken.into_iter().next() {
            None => {
                if !self.options.serves_webhooks {
                    warnings.extend(hooks::unserved(&hooks));
                }
                module.hooks = hooks;
            }
            Some((_, failure)) => module.broken = module.broken.or(Some(failure)),
        }
        (module, warnings)
    }

    async fn global(&self, shared: &SharedValues) -> Result<(Global, Vec<String>), LoadError> {
        let dir = &self.options.global_hooks_dir;
        self.options.check(dir)?;
        let nested = dir.join("hooks");
        let (root, prefix) = if nested.is_dir() { (&nested, "hooks/") } else { (dir, "") };
        let (mut candidates, mut warnings) = hooks::candidates(root, prefix).map_err(LoadError::Global)?;
        candidates.retain(|candidate| !candidate.path.starts_with(dir.join("openapi")));
        let (hooks, broken) = self.configurations.load(&Scope::Global, candidates).await;
        if !self.options.serves_webhooks {
            warnings.extend(hooks::unserved(&hooks));
        }
        let part = |(hook, failure)| BrokenPart { hook: Some(hook), failure };
        let mut broken: Vec<BrokenPart> = broken.into_iter().map(part).collect();
        let schemas = module::schemas(dir).unwrap_or_else(|failure| {
            broken.push(BrokenPart { hook: None, failure });
            Arc::default()
        });
        warnings.extend(module::rule_warnings(&schemas));
        let static_values = Arc::new(Value::Object(shared.global.clone()));
        Ok((Global { hooks, static_values, schemas, broken }, warnings))
    }
}
