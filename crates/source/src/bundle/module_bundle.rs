//! Module bundles: a module's directory with `meta.yaml`.

use serde_json::Value;
use values::name::ModuleName;
use values::schema::Schemas;

use super::chart_bundle;
use super::crds;
use super::meta::read_yaml;
use super::problem::Findings;
use super::tree::{Files, MODULE_FILE, has_extension};

/// What makes a directory a module; one of them is enough.
const PARTS: [&str; 4] = ["Chart.yaml", "templates", "hooks", "crds"];

/// What makes a directory a chart.
const CHART: [&str; 2] = ["Chart.yaml", "templates"];

/// Extensions of files below `hooks/` that are no hooks. See docs/hooks.md#which-files-are-hooks.
const DATA: [&str; 4] = ["yaml", "json", "md", "txt"];

/// Returns what is wrong with the text of a `module.yaml`: what it may say is no matter of sources.
pub type CheckModuleFile = fn(&str) -> Result<(), String>;

/// Reports whether a file of a module is no part of its chart.
fn is_outside_of_chart(path: &str) -> bool {
    ["crds/", "docs/", "hooks/", "images/", "lib/", "openapi/"]
        .iter()
        .any(|directory| path.starts_with(directory))
        || matches!(path, "meta.yaml" | "values.yaml" | "enabled" | MODULE_FILE)
}

/// Checks a module. `name` is missing if `meta.yaml` does not say it.
pub(super) fn check(
    files: &Files<'_>,
    name: Option<&ModuleName>,
    module_file: CheckModuleFile,
    findings: &mut Findings,
) {
    let own = read_yaml(files, MODULE_FILE, findings);
    // What is no YAML is reported once.
    let text = files.bytes(MODULE_FILE).filter(|_| own.is_some());
    if let Some(Err(problem)) = text.and_then(|text| std::str::from_utf8(text).ok()).map(module_file) {
        findings.problem(MODULE_FILE, problem);
    }
    let names_chart = own.as_ref().and_then(|own| own.get("chart")).is_some();
    if !names_chart && !PARTS.iter().any(|part| files.has(part) || files.is_directory(part)) {
        findings.problem(
            "",
            "there is nothing to install: a chart bundle has chart/ and plans/, a module has Chart.yaml, templates/, hooks/ or crds/, \
             or module.yaml names its chart",
        );
    }
    if names_chart && let Some(own) = CHART.iter().find(|part| files.has(part) || files.is_directory(part)) {
        findings.problem(
            MODULE_FILE,
            format!("chart: the module has one of its own ({own}): remove one of them"),
        );
    }
    if files.has("Chart.yaml") {
        chart_bundle::check_loads(files, "", is_outside_of_chart, findings);
    }
    check_values(files, name, findings);
    check_schemas(files, findings);
    crds::check(files, "", findings);
    check_executables(files, findings);
}

/// The values of a module have its own section and its own flag: others would change other modules.
fn check_values(files: &Files<'_>, name: Option<&ModuleName>, findings: &mut Findings) {
    let path = "values.yaml";
    let sections = match read_yaml(files, path, findings) {
        None | Some(Value::Null) => return,
        Some(Value::Object(sections)) => sections,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            findings.problem(path, "the values have to be a mapping of keys to values");
            return;
        }
    };
    let Some(name) = name else { return };
    let (key, enabled) = (name.key(), name.enabled_key());
    for (found, value) in &sections {
        if *found == key {
            if !value.is_object() && !value.is_null() {
                findings.problem(path, format!("{key}: the section has to be a mapping"));
            }
        } else if *found == enabled {
            if !is_flag(value) {
                findings.problem(path, format!("{enabled}: it has to be true or false"));
            }
        } else {
            let found: String = found.chars().take(100).collect();
            findings.problem(
                path,
                format!(
                    "{found}: only {key} and {enabled} can be set here: move it below {key}, or remove it"
                ),
            );
        }
    }
}

/// Reports whether this is a boolean, or its text in any case.
fn is_flag(value: &Value) -> bool {
    let text = value.as_str().map(|text| text.trim().to_ascii_lowercase());
    value.is_boolean() || matches!(text.as_deref(), Some("true" | "false"))
}

fn check_schemas(files: &Files<'_>, findings: &mut Findings) {
    let (mut config, mut own) = (None, None);
    for (name, _, _) in files.below("openapi").filter(|(name, _, _)| has_extension(name, "yaml")) {
        let path = format!("openapi/{name}");
        // What is no YAML is reported once.
        let is_yaml = read_yaml(files, &path, findings).is_some();
        let text = files.bytes(&path).and_then(|bytes| std::str::from_utf8(bytes).ok()).filter(|_| is_yaml);
        let text = text.filter(|text| !text.trim().is_empty());
        match name {
            "config-values.yaml" => config = text,
            "values.yaml" => own = text,
            _ => {}
        }
    }
    let config = config.map(|text| ("openapi/config-values.yaml", text));
    let own = own.map(|text| ("openapi/values.yaml", text));
    if let Err(error) = Schemas::compile(config, own) {
        let text = error.to_string();
        let (path, message) = text.split_once(": ").unwrap_or(("openapi", &text));
        findings.problem(path, message);
    }
}

/// Hooks and the enabled script have to be executable: others are left out without a word that their author would see.
fn check_executables(files: &Files<'_>, findings: &mut Findings) {
    for (path, _, is_executable) in files.below("") {
        let is_run = path == "enabled" || path.strip_prefix("hooks/").is_some_and(is_hook);
        if is_run && !is_executable {
            findings.problem(
                path,
                "the file is not executable: try chmod +x, or move it to hooks/lib if nobody runs it",
            );
        }
    }
}

/// Reports whether the loader takes a file below `hooks/` for a hook.
fn is_hook(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let is_skipped = |directory: &str| {
        directory.starts_with('.')
            || directory.ends_with('~')
            || matches!(directory, "lib" | "venv" | "__pycache__")
    };
    let is_draft =
        name.starts_with('.') || name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'));
    !parts.into_iter().any(is_skipped)
        && !is_draft
        && !DATA.iter().any(|extension| has_extension(name, extension))
}
