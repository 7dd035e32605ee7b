//! `module.yaml`: what a module says about itself beside its chart. See docs/modules.md#moduleyaml.
//!
//! It is strict: a key that nobody knows is an error, since a typing error must not go unnoticed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    ChartReference, DriftMode, DriftSettings, Failure, FailureKind, IgnoreRule, MAX_IGNORE_RULES,
    MAX_IGNORED_PATHS, MAX_REQUIREMENTS, ModuleName, ModuleSettings, Requirement, ValuesLayout, VersionRange,
    duration,
};
use serde_json::{Map, Value};

use super::mapping::read_mapping;

/// The longest text about a chart.
const MAX_TEXT: usize = 253;

/// The name of the file.
const FILE: &str = "module.yaml";

/// All keys that there are.
const KEYS: [&str; 5] = ["chart", "drift", "namespace", "requires", "valuesLayout"];

/// All keys of the chart.
const CHART_KEYS: [&str; 5] = ["autoUpgrade", "minAge", "name", "repository", "version"];

/// All keys of a module that is required.
const REQUIREMENT_KEYS: [&str; 2] = ["module", "version"];

/// All keys of what is said about drift.
const DRIFT_KEYS: [&str; 2] = ["ignore", "mode"];

/// All keys of a rule that leaves fields to others.
const IGNORE_KEYS: [&str; 3] = ["kind", "name", "paths"];

/// What `module.yaml` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModuleFile {
    /// The namespace of the release.
    pub(super) namespace: Option<Arc<str>>,
    /// The chart of a repository that the module is.
    pub(super) chart: Option<Arc<ChartReference>>,
    /// How its values reach its chart.
    pub(super) layout: ValuesLayout,
    /// When it runs.
    pub(super) settings: ModuleSettings,
}

impl ModuleFile {
    /// Reads the file of the module in a directory. Without a file it says nothing.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(FILE);
        let wrong =
            |message: String| Failure::new(FailureKind::Files, format!("{}: {message}", path.display()));
        match read_mapping(&path).map_err(wrong)? {
            None => Ok(Self::default()),
            Some(fields) => Self::of(&fields).map_err(wrong),
        }
    }

    fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        check_keys(fields, "", &KEYS)?;
        Ok(Self {
            namespace: fields.get("namespace").map(namespace).transpose()?,
            chart: fields.get("chart").map(chart).transpose()?,
            layout: fields.get("valuesLayout").map(layout).transpose()?.unwrap_or_default(),
            settings: ModuleSettings {
                requires: fields.get("requires").map(requires).transpose()?.unwrap_or_default(),
                drift: fields.get("drift").map(drift).transpose()?.unwrap_or_default(),
            },
        })
    }
}

/// Refuses keys that nobody knows; `place` stands before them.
fn check_keys(fields: &Map<String, Value>, place: &str, keys: &[&'static str]) -> Result<(), String> {
    let Some(unknown) = fields.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    let shown: String = unknown.chars().take(100).collect();
    Err(match engine::view::nearest(&shown, keys.iter().copied()) {
        Some(near) => format!("{place}there is no key {shown:?}; did you mean {near}?"),
        None => format!("{place}there is no key {shown:?}; the keys are {}", keys.join(", ")),
    })
}

fn layout(value: &Value) -> Result<ValuesLayout, String> {
    match value.as_str() {
        Some("root") => Ok(ValuesLayout::Root),
        Some("section") => Ok(ValuesLayout::Section),
        Some(_) | None => Err("valuesLayout: should be root or section".to_owned()),
    }
}

fn chart(value: &Value) -> Result<Arc<ChartReference>, String> {
    let fields = value.as_object().ok_or("chart: should be a mapping with repository, name and version")?;
    check_keys(fields, "chart: ", &CHART_KEYS)?;
    let text = |name: &str| {
        let text = fields
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty() && text.len() <= MAX_TEXT);
        text.ok_or_else(|| format!("chart.{name}: should be a text of at most {MAX_TEXT} letters"))
    };
    let auto_upgrade = match fields.get("autoUpgrade") {
        None => false,
        Some(value) => value.as_bool().ok_or("chart.autoUpgrade: should be true or false")?,
    };
    let min_age = match fields.get("minAge") {
        None => Duration::ZERO,
        Some(value) => value
            .as_str()
            .and_then(|text| duration::parse(text).ok())
            .ok_or("chart.minAge: should be a duration such as 72h")?,
    };
    Ok(Arc::new(ChartReference {
        repository: text("repository")?.into(),
        name: text("name")?.into(),
        version: text("version")?.into(),
        auto_upgrade,
        min_age,
    }))
}

fn drift(value: &Value) -> Result<DriftSettings, String> {
    let mode = |value: &Value| match value.as_str() {
        Some("enforce") => Ok(DriftMode::Enforce),
        Some("off") => Ok(DriftMode::Off),
        Some("watch") => Ok(DriftMode::Watch),
        // YAML 1.1 reads `off` without quotes as a boolean.
        None if *value == Value::Bool(false) => Ok(DriftMode::Off),
        Some(_) | None => Err("should be watch, enforce or off".to_owned()),
    };
    let Some(fields) = value.as_object() else {
        let mode =
            mode(value).map_err(|error| format!("drift: {error}, or a mapping with mode and ignore"))?;
        return Ok(DriftSettings { mode, ignore: Vec::new() });
    };
    check_keys(fields, "drift: ", &DRIFT_KEYS)?;
    let mode = fields.get("mode").map(mode).transpose().map_err(|error| format!("drift.mode: {error}"))?;
    let items = match fields.get("ignore") {
        None => &[],
        Some(items) => items
            .as_array()
            .ok_or("drift.ignore: should be a list of mappings with kind and paths")?
            .as_slice(),
    };
    if items.len() > MAX_IGNORE_RULES {
        return Err(format!(
            "drift.ignore: has {} entries, at most {MAX_IGNORE_RULES} are allowed",
            items.len()
        ));
    }
    let rules =
        items.iter().enumerate().map(|(place, item)| ignore_rule(item, &format!("drift.ignore[{place}]")));
    Ok(DriftSettings { mode: mode.unwrap_or_default(), ignore: rules.collect::<Result<_, _>>()? })
}

fn ignore_rule(value: &Value, place: &str) -> Result<IgnoreRule, String> {
    let fields =
        value.as_object().ok_or_else(|| format!("{place}: should be a mapping with kind and paths"))?;
    check_keys(fields, &format!("{place}: "), &IGNORE_KEYS)?;
    let text = |key: &str| {
        let text = fields.get(key)?.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_TEXT);
        Some(text.ok_or_else(|| format!("{place}.{key}: should be a text of at most {MAX_TEXT} letters")))
    };
    let kind =
        text("kind").ok_or_else(|| format!("{place}.kind: should be a kind, such as Deployment"))??;
    let paths = fields.get("paths").and_then(Value::as_array).filter(|paths| !paths.is_empty());
    let paths = paths.ok_or_else(|| {
        format!("{place}.paths: should be a list of JSON pointers, such as [/spec/replicas]")
    })?;
    if paths.len() > MAX_IGNORED_PATHS {
        return Err(format!(
            "{place}.paths: has {} entries, at most {MAX_IGNORED_PATHS} are allowed",
            paths.len()
        ));
    }
    let pointer = |(index, path): (usize, &Value)| {
        let pointer =
            path.as_str().filter(|path| path.starts_with('/') && path.len() > 1 && path.len() <= MAX_TEXT);
        let pointer = pointer.map(Arc::from);
        pointer.ok_or_else(|| {
            format!("{place}.paths[{index}]: should be a JSON pointer, such as /spec/replicas")
        })
    };
    Ok(IgnoreRule {
        kind: kind.into(),
        name: text("name").transpose()?.map(Into::into),
        paths: paths.iter().enumerate().map(pointer).collect::<Result<_, _>>()?,
    })
}

fn requires(value: &Value) -> Result<Vec<Requirement>, String> {
    let items = value.as_array().ok_or("requires: should be a list of mappings with module and version")?;
    if items.len() > MAX_REQUIREMENTS {
        return Err(format!("requires: has {} entries, at most {MAX_REQUIREMENTS} are allowed", items.len()));
    }
    let mut requires: Vec<Requirement> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let read = requirement(item, &format!("requires[{place}]"))?;
        if requires.iter().any(|other| other.module == read.module) {
            return Err(format!("requires[{place}]: module {} is named twice", read.module));
        }
        requires.push(read);
    }
    Ok(requires)
}

fn requirement(value: &Value, place: &str) -> Result<Requirement, String> {
    let fields = value.as_object().ok_or_else(|| format!("{place}: should be a mapping with module"))?;
    check_keys(fields, &format!("{place}: "), &REQUIREMENT_KEYS)?;
    let module = fields.get("module").and_then(Value::as_str);
    let module = module.filter(|name| objects::names::label(name).is_empty()).ok_or_else(|| {
        format!(
            "{place}.module: should be the name of a module without its order number, such as cert-manager"
        )
    })?;
    let range = |value: &Value| {
        let text = value.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_TEXT);
        let text = text.ok_or_else(|| {
            format!("{place}.version: should be a constraint in quotes, such as \">=1.2 <2\"")
        })?;
        VersionRange::parse(text).map_err(|error| {
            format!("{place}.version: {error}; it should be a constraint such as \">=1.2 <2\"")
        })
    };
    let version = fields.get("version").map(range).transpose()?;
    Ok(Requirement { module: ModuleName::from(module), version })
}

fn namespace(value: &Value) -> Result<Arc<str>, String> {
    let wrong = || {
        "namespace: should be the name of a namespace: at most 63 small letters, digits and dashes between them"
            .to_owned()
    };
    let name = value.as_str().ok_or_else(wrong)?;
    if objects::names::label(name).is_empty() { Ok(name.into()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ModuleFile, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), text).unwrap();
        ModuleFile::read(directory.path()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_chart_of_a_repository_is_named_with_its_constraint() {
        let text = "chart: {repository: corp, name: redis, version: '~1.2', autoUpgrade: true, minAge: 72h}\nvaluesLayout: root";
        let file = read(text).unwrap();
        let chart = file.chart.unwrap();
        assert_eq!((&*chart.repository, &*chart.name, &*chart.version), ("corp", "redis", "~1.2"));
        assert_eq!((chart.auto_upgrade, chart.min_age), (true, Duration::from_hours(72)));
        assert_eq!(file.layout, ValuesLayout::Root);
    }

    #[test]
    fn the_modules_that_it_waits_for_are_named_with_their_versions_and_there_are_not_too_many() {
        let file = read("requires: [{module: db, version: '>=1.2 <2'}, {module: cert-manager}]").unwrap();
        let [db, certificates] = &*file.settings.requires else { panic!("{:?}", file.settings) };
        assert_eq!((db.module.as_str(), certificates.module.as_str()), ("db", "cert-manager"));
        assert!(db.version.as_ref().is_some_and(|version| version.accepts("1.3.0")));
        assert_eq!(certificates.version, None);
        let list = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("{{module: m{number}}}")).collect();
            format!("requires: [{}]", names.join(", "))
        };
        assert_eq!(read(&list(MAX_REQUIREMENTS)).unwrap().settings.requires.len(), MAX_REQUIREMENTS);
        let error = read(&list(MAX_REQUIREMENTS + 1)).unwrap_err();
        assert!(error.contains("requires: has 33 entries, at most 32 are allowed"), "{error}");
    }

    #[test]
    fn drift_is_put_right_but_for_fields_that_are_left_to_others() {
        let file =
            read("drift: {mode: enforce, ignore: [{kind: Deployment, name: web, paths: [/spec/replicas]}]}")
                .unwrap();
        let drift = file.settings.drift;
        assert_eq!(drift.mode, DriftMode::Enforce);
        assert!(drift.rules("Deployment", "web").any(|rule| rule.covers("/spec/replicas")));
        for (text, mode) in [
            ("drift: 'off'", DriftMode::Off),
            ("drift: off", DriftMode::Off),
            ("drift: {}", DriftMode::Watch),
        ] {
            assert_eq!(read(text).unwrap().settings.drift.mode, mode, "{text}");
        }
        let rules = |count: usize| {
            format!("drift: {{ignore: [{}]}}", vec!["{kind: A, paths: [/a]}"; count].join(", "))
        };
        assert_eq!(read(&rules(MAX_IGNORE_RULES)).unwrap().settings.drift.ignore.len(), MAX_IGNORE_RULES);
        assert!(read(&rules(MAX_IGNORE_RULES + 1)).unwrap_err().contains("drift.ignore: has 65 entries"));
        let paths = |count: usize| {
            format!("drift: {{ignore: [{{kind: A, paths: [{}]}}]}}", vec!["/a"; count].join(", "))
        };
        assert!(read(&paths(MAX_IGNORED_PATHS)).is_ok());
        assert!(read(&paths(MAX_IGNORED_PATHS + 1)).unwrap_err().contains("paths: has 65 entries"));
    }

    #[test]
    fn what_is_not_known_or_no_name_is_an_error_that_names_file_and_key() {
        let named = ModuleFile { namespace: Some("web-1".into()), ..ModuleFile::default() };
        assert_eq!(read("namespace: web-1"), Ok(named));
        for nothing in ["", "{}", "# c"] {
            assert_eq!(read(nothing), Ok(ModuleFile::default()), "{nothing:?}");
        }
        assert_eq!(ModuleFile::read(Path::new("/nowhere")), Ok(ModuleFile::default()));
        for (text, problem) in [
            ("namspace: web", r#"module.yaml: there is no key "namspace"; did you mean namespace?"#),
            (
                "colour: red",
                r#"module.yaml: there is no key "colour"; the keys are chart, drift, namespace, requires, valuesLayout"#,
            ),
            ("namespace: Web", "module.yaml: namespace: should be the name of a namespace"),
            ("namespace: a.b", "module.yaml: namespace: should be"),
            ("namespace: ''", "module.yaml: namespace: should be"),
            ("namespace: 7", "module.yaml: namespace: should be"),
            ("namespace:", "module.yaml: namespace: should be"),
            ("- a", "module.yaml: should be a mapping"),
            ("a: [b", "module.yaml: "),
            ("valuesLayout: top", "module.yaml: valuesLayout: should be root or section"),
            ("chart: web", "module.yaml: chart: should be a mapping"),
            ("chart: {repo: a}", r#"chart: there is no key "repo"; did you mean repository?"#),
            ("chart: {versions: a}", r#"chart: there is no key "versions"; did you mean version?"#),
            ("chart: {repository: a, name: b}", "module.yaml: chart.version: should be a text"),
            ("chart: {repository: a, name: b, version: 1.2}", "module.yaml: chart.version: should be a text"),
            ("drift: fix", "module.yaml: drift: should be watch, enforce or off"),
            ("drift: {mode: fix}", "module.yaml: drift.mode: should be watch, enforce or off"),
            ("drift: {moed: off}", r#"drift: there is no key "moed"; did you mean mode?"#),
            ("drift: {ignore: [x]}", "drift.ignore[0]: should be a mapping with kind and paths"),
            ("drift: {ignore: [{paths: [/a]}]}", "drift.ignore[0].kind: should be a kind"),
            ("drift: {ignore: [{kind: A}]}", "drift.ignore[0].paths: should be a list of JSON pointers"),
            (
                "drift: {ignore: [{kind: A, paths: [a]}]}",
                "drift.ignore[0].paths[0]: should be a JSON pointer",
            ),
            ("drift: {ignore: [{kind: A, name: 3, paths: [/a]}]}", "drift.ignore[0].name: should be a text"),
            ("requires: db", "module.yaml: requires: should be a list"),
            ("requires: [db]", "module.yaml: requires[0]: should be a mapping with module"),
            ("requires: [{}]", "module.yaml: requires[0].module: should be the name of a module"),
            ("requires: [{module: A_b}]", "requires[0].module: should be the name"),
            (
                "requires: [{module: a, verison: x}]",
                r#"requires[0]: there is no key "verison"; did you mean version?"#,
            ),
            ("requires: [{module: a}, {module: a}]", "requires[1]: module a is named twice"),
            (
                "requires: [{module: a, version: 1.2}]",
                "requires[0].version: should be a constraint in quotes",
            ),
            ("requires: [{module: a, version: 'a b'}]", "requires[0].version: improper constraint"),
            (
                "chart: {repository: a, name: b, version: '1', autoUpgrade: maybe}",
                "chart.autoUpgrade: should be",
            ),
            (
                "chart: {repository: a, name: b, version: '1', minAge: 3}",
                "chart.minAge: should be a duration",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
