//! One run of `template` without a process.

use std::path::Path;

use chart::environment::FixedEnvironment;
use chart::load::{self, Tree};
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, Request, parse_ahead, unparsed};
use chart::render_cache::{Cache, render};
use chart::template::Limits;
use chart::template_output::TemplateOutput;
use chart::value_flags::ValueFlags;
use chart::warnings::Warnings;
use serde_json::Value;

/// The flags of a run.
pub(crate) struct Case {
    release: Release,
    flags: ValueFlags,
    kube_version: String,
    api_versions: Vec<String>,
    validate: bool,
    output: TemplateOutput,
}

/// What a run prints.
pub(crate) enum Outcome {
    Text(String),
    Error(String),
}

impl Case {
    pub(crate) fn read(directory: &Path) -> Self {
        Self::from_json(
            &serde_json::from_slice(&std::fs::read(directory.join("case.json")).unwrap()).unwrap(),
        )
    }

    pub(crate) fn from_json(case: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let list = case.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            list.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        let text =
            |key: &str, default: &str| case.get(key).and_then(Value::as_str).unwrap_or(default).to_owned();
        let flag = |key: &str| case.get(key).and_then(Value::as_bool).unwrap_or(false);
        Self {
            release: Release {
                name: text("release", "rel"),
                namespace: text("namespace", "ns"),
                revision: 1,
                is_upgrade: flag("is_upgrade"),
            },
            flags: ValueFlags {
                files: texts("values"),
                set_json: texts("set_json"),
                set: texts("set"),
                set_string: texts("set_string"),
                set_file: texts("set_file"),
                set_literal: texts("set_literal"),
            },
            kube_version: text("kube_version", "1.31.2"),
            api_versions: texts("api_versions")
                .iter()
                .flat_map(|list| list.split(','))
                .map(str::to_owned)
                .collect(),
            validate: !flag("skip_schema_validation"),
            output: TemplateOutput {
                crds: flag("include_crds"),
                no_hooks: flag("no_hooks"),
                skip_tests: flag("skip_tests"),
                only: texts("show_only"),
            },
        }
    }

    /// Renders the chart in `tree`; files of flags are looked for in `directory`.
    ///
    /// The lines of warnings are returned with what it prints.
    pub(crate) fn run(&self, directory: &Path, tree: &Tree, cache: &mut Cache) -> (Outcome, Vec<String>) {
        let mut warnings = Warnings::default();
        let outcome = match self.output(directory, tree, cache, &mut warnings) {
            Ok(text) => Outcome::Text(text),
            Err(text) => Outcome::Error(format!("Error: {text}")),
        };
        (outcome, warnings.lines().collect())
    }

    fn output(
        &self,
        directory: &Path,
        tree: &Tree,
        cache: &mut Cache,
        warnings: &mut Warnings,
    ) -> Result<String, String> {
        let mut read = |path: &str| {
            std::fs::read(directory.join(path)).map_err(|_| format!("open {path}: no such file or directory"))
        };
        let values = self.flags.merged(&mut read).map_err(|error| error.to_string())?;
        let chart = load::from_directory(tree, warnings).map_err(|error| error.to_string())?;
        chart::release_name(&self.release.name).map_err(|error| error.to_string())?;
        let kube_version = KubeVersion::parse(&self.kube_version).unwrap();
        let mut capabilities = Capabilities::without_cluster(kube_version);
        capabilities.api_versions.extend(self.api_versions.iter().cloned());
        let request = Request {
            values: &values,
            release: &self.release,
            capabilities: &capabilities,
            limits: Limits::default(),
            validate: self.validate,
        };
        let rendered = render(&chart, &request, cache, &mut environment(), warnings).map_err(|error| {
            let hint = "\n\nUse --debug flag to render out invalid YAML";
            if error.is_late() { format!("{error}{hint}") } else { error.to_string() }
        })?;
        self.output.of(&rendered).map_err(|error| error.to_string())
    }

    /// Renders the chart in `tree` and returns its notes.
    pub(crate) fn notes(&self, tree: &Tree) -> Result<String, String> {
        let chart =
            load::from_directory(tree, &mut Warnings::default()).map_err(|error| error.to_string())?;
        let capabilities = Capabilities::without_cluster(KubeVersion::parse(&self.kube_version).unwrap());
        let request = Request {
            values: &serde_json::Map::new(),
            release: &self.release,
            capabilities: &capabilities,
            limits: Limits::default(),
            validate: true,
        };
        let rendered =
            render(&chart, &request, &mut Cache::default(), &mut environment(), &mut Warnings::default());
        rendered.map(|rendered| rendered.notes).map_err(|error| error.to_string())
    }
}

/// Returns a environment in which it is 2026.
fn environment() -> FixedEnvironment {
    FixedEnvironment { now: "2026-11-21T12:00:00+00:00[UTC]".parse().unwrap(), ..FixedEnvironment::default() }
}

/// Returns what is known of a chart whose templates were parsed before its render, if it can be loaded.
pub(crate) fn parsed_ahead(tree: &Tree) -> Cache {
    let mut cache = Cache::default();
    if let Ok(chart) = load::from_directory(tree, &mut Warnings::default()) {
        cache.extend(parse_ahead(&unparsed(&chart)));
    }
    cache
}

/// Returns the files below a directory.
pub(crate) fn tree(directory: &Path) -> Tree {
    let mut tree = Tree::new();
    collect(directory, "", &mut tree);
    tree
}

fn collect(directory: &Path, prefix: &str, tree: &mut Tree) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), tree);
        } else {
            tree.insert(name, std::fs::read(entry.path()).unwrap().into());
        }
    }
}
