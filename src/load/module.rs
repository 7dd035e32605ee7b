//! The files of one module: values, schemas, scripts, chart and CRDs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use engine::{
    ChartDependencies, Digest, EnabledFlag, Failure, FailureKind, Module, ModuleFile, ModuleName,
    ModuleSettings, Origin, Plans, Script, ValuesLayout,
};
use serde_json::{Map, Value};
use values::merge::merge;
use values::schema::Schemas;

use super::chart_bundle::{self, BundledChart};
use super::dependencies;
use super::error::LoadError;
use super::hash::{hash, hash_directory};
use super::hooks::{Candidate, candidates};
use super::mapping::read_mapping;
use super::module_dirs::Entry;
use super::offer;
use super::options::LoadOptions;
use crate::regular_file;

/// The sections of `values.yaml` by key.
type Sections = BTreeMap<String, Value>;

/// The content of `values.yaml` in the modules directories. See docs/modules.md#values.
#[derive(Debug, Default)]
pub(super) struct SharedValues {
    /// The `global` sections, merged.
    pub(super) global: Map<String, Value>,
    /// The other sections, by directory.
    sections: Vec<Sections>,
    /// `<key>Enabled` by key, the last directory wins.
    enabled: BTreeMap<String, EnabledFlag>,
}

impl SharedValues {
    /// Reads `values.yaml` of each modules directory.
    pub(super) fn read(options: &LoadOptions) -> Result<Self, LoadError> {
        let mut shared = Self::default();
        for dir in &options.modules_dirs {
            let path = dir.join("values.yaml");
            let wrong = |message: String| LoadError::Values { path: path.clone(), message };
            let mut sections = Sections::new();
            match read_mapping(&path) {
                Ok(Some(mapping)) => sections.extend(mapping),
                Ok(None) if options.strict => {
                    return Err(wrong("the file is missing, and strict checks are on".to_owned()));
                }
                Ok(None) => {}
                Err(message) => return Err(wrong(message)),
            }
            match sections.remove("global") {
                None | Some(Value::Null) => {}
                Some(Value::Object(global)) => {
                    let mut merged = Value::Object(std::mem::take(&mut shared.global));
                    merge(&mut merged, &Value::Object(global)).map_err(|error| wrong(error.to_string()))?;
                    if let Value::Object(merged) = merged {
                        shared.global = merged;
                    }
                }
                Some(_) => return Err(wrong("the section global should be a mapping".to_owned())),
            }
            for (key, value) in &sections {
                if key.ends_with("Enabled") {
                    let value = flag(key, value).map_err(wrong)?;
                    let source = path.to_string_lossy().into();
                    shared.enabled.insert(key.clone(), EnabledFlag { value, source });
                }
            }
            shared.sections.push(sections);
        }
        Ok(shared)
    }
}

/// Returns the value of `<key>Enabled`: a boolean, or its text in any case.
fn flag(key: &str, value: &Value) -> Result<bool, String> {
    let text = match value {
        Value::Bool(value) => return Ok(*value),
        Value::String(text) => text.trim().to_ascii_lowercase(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    match text.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{key} should be true or false")),
    }
}

fn two_charts(path: &Path) -> Failure {
    files(format!(
        "{}: it names a chart, and the module has one of its own (Chart.yaml or templates/): remove one of them",
        path.join("module.yaml").display()
    ))
}

/// Reads a module. Returns it with the candidates for its hooks and with warnings about files that were left out.
pub(super) fn read(
    entry: &Entry,
    shared: &SharedValues,
    options: &LoadOptions,
) -> (Module, Vec<Candidate>, Vec<String>) {
    let path = &entry.path;
    if let Some(digest) = entry.bundle.as_ref().filter(|_| chart_bundle::is_chart_bundle(path)) {
        return (chart_module(entry, digest, shared, options), Vec::new(), Vec::new());
    }
    let key: Arc<str> = values::name::camel(&entry.name).into();
    let (hooks, mut warnings, unreadable) = match candidates(&path.join("hooks"), "hooks/") {
        Ok((hooks, warnings)) => (hooks, warnings, None),
        Err(failure) => (Vec::new(), Vec::new(), Some(failure)),
    };
    let mut module = Module {
        name: ModuleName::from(entry.name.as_str()),
        key: Arc::clone(&key),
        chart_key: Arc::clone(&key),
        order: entry.order,
        namespace: None,
        path: path.to_string_lossy().into(),
        content: 0,
        origin: Origin::Files,
        enabled: shared.enabled.get(&format!("{key}Enabled")).cloned(),
        enabled_script: enabled_script(path, &mut warnings),
        static_values: Arc::new(Value::Object(Map::new())),
        schemas: Arc::default(),
        layout: ValuesLayout::Section,
        plans: Plans::default(),
        hooks: Vec::new(),
        has_unread_hooks: false,
        has_chart: path.join("Chart.yaml").is_file() || path.join("templates").is_dir(),
        chart: None,
        package: None,
        version: version(path),
        settings: ModuleSettings::default(),
        dependencies: ChartDependencies::default(),
        crds: crds(path, &options.crd_filters),
        broken: None,
    };
    let outside = entry.dir_index.and_then(|index| shared.sections.get(index)?.get(&*key));
    // A bundle need not have values, whatever is asked of files.
    let strict = options.strict && entry.bundle.is_none();
    // The author of a bundle knows its name, and not that of the namespace in front of it.
    let named = entry.bundle.as_ref().map_or(Ok(None), |_| bundle_key(path));
    if let Ok(Some(own_key)) = &named {
        module.chart_key = Arc::clone(own_key);
    }
    let (own, broken) = match named.and_then(|_| own_values(path, &module.chart_key, strict)) {
        Ok(own) => (own, None),
        Err(failure) => (OwnValues::default(), Some(failure)),
    };
    match &entry.bundle {
        // Remote code does not switch itself on: the engine knows whether it may.
        Some(digest) => {
            module.origin = Origin::Bundle { digest: digest.clone(), enabled: own.enabled };
            module.plans.offer = offer::read(path);
        }
        None => module.enabled = own.enabled.or(module.enabled),
    }
    let result = broken.map_or(Ok(()), Err).and_then(|()| {
        let file = module_file(path)?;
        (module.namespace, module.layout, module.settings) = (file.namespace, file.layout, file.settings);
        if file.chart.is_some() && module.has_chart {
            return Err(two_charts(path));
        }
        module.has_chart |= file.chart.is_some();
        module.dependencies.named = dependencies::named(path).map_err(files)?;
        module.chart = file.chart;
        module.static_values = Arc::new(static_values(path, &key, outside, own.section.as_ref())?);
        module.schemas = schemas(path)?;
        Ok(())
    });
    module.broken = result.err().or(unreadable);
    warnings.extend(rule_warnings(&module.schemas));
    // The values of the modules directory are no file of the module, but a change of them changes the module.
    let outside = outside.map(Value::to_string).unwrap_or_default();
    module.content = hash_directory(path) ^ hash(format!("{outside}{:?}", module.enabled).as_bytes());
    (module, hooks, warnings)
}

/// Reads `module.yaml`. Without it a module says nothing about itself.
fn module_file(path: &Path) -> Result<ModuleFile, Failure> {
    let path = path.join("module.yaml");
    let wrong = |message| Failure::new(FailureKind::Files, format!("{}: {message}", path.display()));
    match regular_file::read_text(&path) {
        Ok(text) => ModuleFile::parse(&text).map_err(wrong),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ModuleFile::default()),
        Err(error) => Err(wrong(format!("can't be read: {error}"))),
    }
}

/// Returns the module that a chart bundle is. Nothing in it is run, and its values are those of its chart and its plans.
fn chart_module(entry: &Entry, digest: &Digest, shared: &SharedValues, options: &LoadOptions) -> Module {
    let key: Arc<str> = values::name::camel(&entry.name).into();
    let (chart, broken) = match chart_bundle::read(&entry.path) {
        Ok(BundledChart { path, plans }) => (Some((path, plans)), None),
        Err(failure) => (None, Some(failure)),
    };
    let (path, plans) = chart.unwrap_or_else(|| (entry.path.clone(), Plans::default()));
    Module {
        name: ModuleName::from(entry.name.as_str()),
        order: entry.order,
        path: path.to_string_lossy().into(),
        // The plans lie beside the chart.
        content: hash_directory(&entry.path),
        origin: Origin::Bundle { digest: digest.clone(), enabled: None },
        enabled: shared.enabled.get(&format!("{key}Enabled")).cloned(),
        enabled_script: None,
        static_values: Arc::new(Value::Object(Map::new())),
        schemas: Arc::default(),
        layout: ValuesLayout::Root,
        plans,
        hooks: Vec::new(),
        has_unread_hooks: false,
        has_chart: true,
        chart: None,
        package: None,
        version: version(&entry.path),
        settings: ModuleSettings::default(),
        dependencies: engine::ChartDependencies::default(),
        crds: crds(&path, &options.crd_filters),
        broken,
        namespace: None,
        chart_key: Arc::clone(&key),
        key,
    }
}

fn files(message: String) -> Failure {
    Failure::new(FailureKind::Values, message).advise("correct the file that the message names")
}

/// Returns the version of a bundle or, without one, of the chart. What is wrong with these files is told where they are used.
fn version(path: &Path) -> Option<Arc<str>> {
    let read = |name: &str| {
        let fields = read_mapping(&path.join(name)).ok().flatten()?;
        match fields.get("version")? {
            Value::String(text) => Some(Arc::from(text.as_str())),
            Value::Number(number) => Some(number.to_string().into()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    };
    read("meta.yaml").or_else(|| read("Chart.yaml"))
}

/// Returns the key that a bundle's own files use: that of the name in its `meta.yaml`.
fn bundle_key(path: &Path) -> Result<Option<Arc<str>>, Failure> {
    let path = path.join("meta.yaml");
    let meta = read_mapping(&path).map_err(|message| files(format!("{}: {message}", path.display())))?;
    let name = meta.as_ref().and_then(|meta| meta.get("name")).and_then(Value::as_str);
    Ok(name.map(|name| values::name::camel(name).into()))
}

/// The content of a module's own `values.yaml`.
#[derive(Default)]
struct OwnValues {
    section: Option<Value>,
    enabled: Option<EnabledFlag>,
}

fn own_values(path: &Path, key: &str, strict: bool) -> Result<OwnValues, Failure> {
    let path = path.join("values.yaml");
    let wrong = |message: String| files(format!("{}: {message}", path.display()));
    let Some(mut mapping) = read_mapping(&path).map_err(wrong)? else {
        if strict {
            return Err(wrong("the file is missing, and strict checks are on".to_owned()));
        }
        return Ok(OwnValues::default());
    };
    let name = format!("{key}Enabled");
    let source = path.to_string_lossy().into();
    let enabled = match mapping.remove(&name) {
        None => None,
        Some(value) => Some(EnabledFlag { value: flag(&name, &value).map_err(wrong)?, source }),
    };
    Ok(OwnValues { section: mapping.remove(key), enabled })
}

fn static_values(
    path: &Path,
    key: &str,
    outside: Option<&Value>,
    own: Option<&Value>,
) -> Result<Value, Failure> {
    let mut merged = Value::Object(Map::new());
    // One with nothing behind it says nothing.
    for section in [outside, own].into_iter().flatten().filter(|section| !section.is_null()) {
        if !section.is_object() {
            let message =
                format!("{}: the section {key} should be a mapping", path.join("values.yaml").display());
            return Err(files(message));
        }
        merge(&mut merged, section).map_err(|error| {
            files(format!("{}: section {key}: {error}", path.join("values.yaml").display()))
        })?;
    }
    Ok(merged)
}

/// Reads the schemas below `dir`.
pub(super) fn schemas(dir: &Path) -> Result<Arc<Schemas>, Failure> {
    let read = |name: &str| -> Result<Option<(String, String)>, Failure> {
        let path = dir.join("openapi").join(name);
        match regular_file::read_text(&path) {
            Ok(text) if text.trim().is_empty() => Ok(None),
            Ok(text) => Ok(Some((path.to_string_lossy().into_owned(), text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(files(format!("{}: can't be read: {error}", path.display()))),
        }
    };
    let (config, own) = (read("config-values.yaml")?, read("values.yaml")?);
    let schemas = Schemas::compile(config.as_ref().map(borrow), own.as_ref().map(borrow));
    let schemas = schemas.map_err(|error| files(error.to_string()))?;
    Ok(Arc::new(schemas))
}

/// Returns what is wrong with rules in CEL of schemas that are in force otherwise.
pub(super) fn rule_warnings(schemas: &Schemas) -> impl Iterator<Item = String> {
    let told = |problem: &String| format!("a rule in CEL can't be evaluated: {problem}");
    schemas.rule_problems().iter().map(told)
}

fn borrow(file: &(String, String)) -> (&str, &str) {
    (&file.0, &file.1)
}

fn enabled_script(path: &Path, warnings: &mut Vec<String>) -> Option<Script> {
    let path = path.join("enabled");
    let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    if metadata.permissions().mode() & 0o111 == 0 {
        warnings.push(format!("{} is left out: it is not executable, try chmod +x", path.display()));
        return None;
    }
    let content = regular_file::read(&path).map(|bytes| hash(&bytes)).unwrap_or_default();
    Some(Script { path: path.to_string_lossy().into(), content })
}

/// Returns the files of a module's CRDs by path, without those that begin with one of `filters`.
fn crds(path: &Path, filters: &[String]) -> Vec<Arc<str>> {
    let is_crd = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.extension().is_some_and(|extension| extension == "yaml")
            && !filters.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    let walk = walkdir::WalkDir::new(path.join("crds")).sort_by_file_name().into_iter().flatten();
    walk.filter(|entry| !entry.file_type().is_dir() && is_crd(entry.path()))
        .map(|entry| entry.path().to_string_lossy().into())
        .collect()
}
