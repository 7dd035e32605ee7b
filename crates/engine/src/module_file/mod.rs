//! `module.yaml`: what a module says about itself beside its chart. See docs/modules.md#moduleyaml.
//!
//! It is strict: a key that nobody knows, or that is there twice, is an error, since a typing error must not go unnoticed.

mod drift;
mod fields;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use values::yaml;

use crate::{
    ApplyMode, ChartReference, MAX_REQUIREMENTS, ModuleName, ModuleSettings, ReadinessPolicy, ReadinessWait,
    Requirement, RetryPolicy, ValuesLayout, VersionRange, duration,
};
use drift::drift_settings;
use fields::{MAX_TEXT, check_keys};

/// All keys that there are.
const KEYS: [&str; 8] =
    ["apply", "chart", "drift", "namespace", "readiness", "requires", "retry", "valuesLayout"];

/// All keys of the chart.
const CHART_KEYS: [&str; 5] = ["autoUpgrade", "minAge", "name", "repository", "version"];

/// All keys of the readiness.
const READINESS_KEYS: [&str; 2] = ["timeout", "wait"];

/// The shortest and the longest time that objects have to become ready.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// All keys of a module that is required.
const REQUIREMENT_KEYS: [&str; 2] = ["module", "version"];

/// What `module.yaml` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleFile {
    /// The namespace of the release.
    pub namespace: Option<Arc<str>>,
    /// The chart of a repository that the module is.
    pub chart: Option<Arc<ChartReference>>,
    /// How its values reach its chart.
    pub layout: ValuesLayout,
    /// When it runs.
    pub settings: ModuleSettings,
}

impl ModuleFile {
    /// Reads the text of the file. An empty one says nothing.
    ///
    /// # Errors
    ///
    /// What is wrong, with its place: a line and a column, or a key.
    pub fn parse(text: &str) -> Result<Self, String> {
        match yaml::parse_only(text, usize::MAX).map_err(|error| error.to_string())? {
            Value::Null => Ok(Self::default()),
            Value::Object(fields) => Self::of(&fields),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err("should be a mapping of keys to values".to_owned())
            }
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
                drift: fields.get("drift").map(drift_settings).transpose()?.unwrap_or_default(),
                readiness: fields.get("readiness").map(readiness).transpose()?.unwrap_or_default(),
                retry: fields.get("retry").map(retry).transpose()?.unwrap_or_default(),
                apply: fields.get("apply").map(apply).transpose()?.unwrap_or_default(),
            },
        })
    }
}

fn apply(value: &Value) -> Result<ApplyMode, String> {
    match value.as_str() {
        Some("client") => Ok(ApplyMode::Client),
        Some("server") => Ok(ApplyMode::Server),
        Some(_) | None => Err("apply: should be client or server".to_owned()),
    }
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

fn readiness(value: &Value) -> Result<ReadinessPolicy, String> {
    let fields = value.as_object().ok_or("readiness: should be a mapping with wait and timeout")?;
    check_keys(fields, "readiness: ", &READINESS_KEYS)?;
    let wait = match fields.get("wait").and_then(Value::as_str) {
        Some("objects") => ReadinessWait::Objects,
        Some("none") => ReadinessWait::None,
        Some(_) | None => return Err("readiness.wait: should be objects or none".to_owned()),
    };
    let timeout = match fields.get("timeout") {
        None => ReadinessPolicy::default().timeout,
        Some(value) => {
            let time = value.as_str().and_then(|text| duration::parse(text).ok());
            let time = time.filter(|time| (MIN_TIMEOUT..=MAX_TIMEOUT).contains(time));
            time.ok_or("readiness.timeout: should be a duration from 1s to 24h, such as 5m")?
        }
    };
    Ok(ReadinessPolicy { wait, timeout })
}

fn retry(value: &Value) -> Result<RetryPolicy, String> {
    let fields = value.as_object().ok_or("retry: should be a mapping with delay, max, attempts and then")?;
    RetryPolicy::read(fields).map_err(|error| format!("retry: {error}"))
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
        ModuleFile::parse(text)
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
    fn objects_are_written_by_the_client_unless_the_server_is_named() {
        for (text, mode) in [
            ("", ApplyMode::Client),
            ("apply: client", ApplyMode::Client),
            ("apply: server", ApplyMode::Server),
        ] {
            assert_eq!(read(text).unwrap().settings.apply, mode, "{text:?}");
        }
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
    fn a_second_document_is_an_error() {
        let error = read("namespace: a\n---\nnamespace: b\n").unwrap_err();
        assert!(error.contains("line 2, column 1: a second document begins here"), "{error}");
        assert_eq!(read("namespace: a\n---\n# nothing\n").unwrap().namespace, Some("a".into()));
    }

    #[test]
    fn what_is_not_known_or_no_name_is_an_error_that_names_file_and_key() {
        let named = ModuleFile { namespace: Some("web-1".into()), ..ModuleFile::default() };
        assert_eq!(read("namespace: web-1"), Ok(named));
        for nothing in ["", "{}", "# c"] {
            assert_eq!(read(nothing), Ok(ModuleFile::default()), "{nothing:?}");
        }
        for (text, problem) in [
            ("namspace: web", r#"there is no key "namspace"; did you mean namespace?"#),
            (
                "colour: red",
                r#"there is no key "colour"; the keys are apply, chart, drift, namespace, readiness, requires, retry, valuesLayout"#,
            ),
            ("aply: server", r#"there is no key "aply"; did you mean apply?"#),
            ("apply: serverside", "apply: should be client or server"),
            ("apply: true", "apply: should be client or server"),
            ("apply: {mode: server}", "apply: should be client or server"),
            ("namespace: Web", "namespace: should be the name of a namespace"),
            ("namespace: a.b", "namespace: should be"),
            ("namespace: ''", "namespace: should be"),
            ("namespace: 7", "namespace: should be"),
            ("namespace:", "namespace: should be"),
            ("- a", "should be a mapping"),
            ("a: [b", ""),
            ("valuesLayout: top", "valuesLayout: should be root or section"),
            ("chart: web", "chart: should be a mapping"),
            (
                "chart: {repository: a, name: b, version: '1'}\nchart: {repository: c, name: b, version: '1'}",
                "line 2, column 1: key \"chart\" is already set at line 1, remove one of them",
            ),
            ("chart: {name: a, name: b}", "key \"name\" is already set at line 1"),
            ("chart: {repo: a}", r#"chart: there is no key "repo"; did you mean repository?"#),
            ("chart: {versions: a}", r#"chart: there is no key "versions"; did you mean version?"#),
            ("chart: {repository: a, name: b}", "chart.version: should be a text"),
            ("chart: {repository: a, name: b, version: 1.2}", "chart.version: should be a text"),
            ("readiness: objects", "readiness: should be a mapping"),
            ("readiness: {timeout: 5m}", "readiness.wait: should be objects or none"),
            ("readiness: {wait: pods}", "readiness.wait: should be objects or none"),
            (
                "readiness: {wait: objects, timeout: 25h}",
                "readiness.timeout: should be a duration from 1s to 24h",
            ),
            ("readiness: {wait: objects, time: 5m}", "readiness: there is no key"),
            ("retry: 5s", "retry: should be a mapping"),
            ("retry: {then: skip}", "retry: attempts: is missing"),
            ("requires: db", "requires: should be a list"),
            ("requires: [db]", "requires[0]: should be a mapping with module"),
            ("requires: [{}]", "requires[0].module: should be the name of a module"),
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
