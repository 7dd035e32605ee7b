//! `Chart.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::decode::{DecodeError, FieldPath, fields};
use crate::semver::Version;

/// What `Chart.yaml` says about a chart; fields in the order in which Helm writes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name; that of a dependency with an alias is the alias.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address of the project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// Addresses of the source code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The semantic version of the chart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words to search for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Who looks after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// The address of a picture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// `v1` or `v2`.
    #[serde(rename = "apiVersion", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The condition under which the chart is used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Tags under which the chart is used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// The version of what the chart installs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// Whether it should not be used any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Anything else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The versions of Kubernetes that it works with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// The charts that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// Whether there is a list of them, be it an empty one. Helm then goes on to what the charts below list.
    #[serde(skip)]
    pub has_dependency_list: bool,
    /// `application` or `library`; empty means the former.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// Somebody who looks after a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Maintainer {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address for mail.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// The address of a page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dependency {
    /// The name; after enabling was decided, the alias if there is one.
    pub name: String,
    /// The versions that fit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Paths of values, with commas between; the first that is a boolean decides.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Tags that switch it on or off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What conditions and tags decided.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
    /// Which of its values the parent takes over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub import_values: Vec<Value>,
    /// The name under which it is used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alias: String,
}

/// Why `Chart.yaml` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("validation: {0}")]
pub struct ValidationError(String);

/// The names of the fields in YAML and JSON, in the order of [`Metadata`].
pub(crate) const METADATA_FIELDS: [&str; 17] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
];

impl Metadata {
    /// Reads the fields that `value` has; the others stay as they are.
    pub fn decode(&mut self, value: &Value) -> Result<(), DecodeError> {
        let top = FieldPath { owner: "Metadata", path: "" };
        fields(value, top, "chart.Metadata", &METADATA_FIELDS, |name, value| {
            let place = FieldPath { owner: "Metadata", path: name };
            match name {
                "name" => place.text(value, &mut self.name),
                "home" => place.text(value, &mut self.home),
                "sources" => place.texts(value, &mut self.sources),
                "version" => place.text(value, &mut self.version),
                "description" => place.text(value, &mut self.description),
                "keywords" => place.texts(value, &mut self.keywords),
                "maintainers" => {
                    self.maintainers = place
                        .list(value, "[]*chart.Maintainer")?
                        .iter()
                        .map(Maintainer::decode)
                        .collect::<Result<_, _>>()?;
                    Ok(())
                }
                "icon" => place.text(value, &mut self.icon),
                "apiVersion" => place.text(value, &mut self.api_version),
                "condition" => place.text(value, &mut self.condition),
                "tags" => place.text(value, &mut self.tags),
                "appVersion" => place.text(value, &mut self.app_version),
                "deprecated" => place.bool(value, &mut self.deprecated),
                "annotations" => place.text_map(value, &mut self.annotations),
                "kubeVersion" => place.text(value, &mut self.kube_version),
                "dependencies" => {
                    self.has_dependency_list = !value.is_null();
                    self.dependencies = place
                        .list(value, "[]*chart.Dependency")?
                        .iter()
                        .map(Dependency::decode)
                        .collect::<Result<_, _>>()?;
                    Ok(())
                }
                _ => place.text(value, &mut self.kind),
            }
        })
    }

    /// Cleans the texts and checks what Helm demands of every chart.
    pub fn validate(&mut self) -> Result<(), ValidationError> {
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(text);
        }
        self.sources.iter_mut().chain(&mut self.keywords).for_each(sanitize);
        if self.api_version.is_empty() {
            return invalid("chart.metadata.apiVersion is required");
        }
        if self.name.is_empty() {
            return invalid("chart.metadata.name is required");
        }
        if self.name.contains('/') || self.name == "." {
            return invalid(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return invalid("chart.metadata.version is required");
        }
        if Version::parse(&self.version).is_err() || !self.version.chars().all(is_printable) {
            return invalid(format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return invalid("chart.metadata.type must be application or library");
        }
        for maintainer in &mut self.maintainers {
            maintainer.validate()?;
        }
        let mut names = BTreeSet::new();
        for dependency in &mut self.dependencies {
            dependency.validate()?;
            let name = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if !names.insert(name.clone()) {
                return invalid(format!("more than one dependency with name or alias {name:?}"));
            }
        }
        Ok(())
    }
}

impl Maintainer {
    /// Null entries are kept as empty ones, which `validate` recognises by their missing name.
    fn decode(value: &Value) -> Result<Self, DecodeError> {
        let mut maintainer = Self::default();
        if value.is_null() {
            NULL_ENTRY.clone_into(&mut maintainer.name);
        }
        let top = FieldPath { owner: "Metadata", path: "maintainers" };
        fields(value, top, "chart.Maintainer", &["name", "email", "url"], |name, value| {
            let path = format!("maintainers.{name}");
            let place = FieldPath { owner: "Maintainer", path: &path };
            match name {
                "name" => place.text(value, &mut maintainer.name),
                "email" => place.text(value, &mut maintainer.email),
                _ => place.text(value, &mut maintainer.url),
            }
        })?;
        Ok(maintainer)
    }

    fn validate(&mut self) -> Result<(), ValidationError> {
        if self.name == NULL_ENTRY {
            return invalid("maintainers must not contain empty or null nodes");
        }
        for text in [&mut self.name, &mut self.email, &mut self.url] {
            sanitize(text);
        }
        Ok(())
    }
}

/// The name of an entry that is null; no text of a file can be it after cleaning.
const NULL_ENTRY: &str = "\u{0}null";

/// The names of the fields in YAML and JSON, in the order of [`Dependency`].
pub(crate) const DEPENDENCY_FIELDS: [&str; 8] =
    ["name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"];

impl Dependency {
    fn decode(value: &Value) -> Result<Self, DecodeError> {
        let mut dependency = Self::default();
        if value.is_null() {
            NULL_ENTRY.clone_into(&mut dependency.name);
        }
        let top = FieldPath { owner: "Metadata", path: "dependencies" };
        fields(value, top, "chart.Dependency", &DEPENDENCY_FIELDS, |name, value| {
            let path = format!("dependencies.{name}");
            let place = FieldPath { owner: "Dependency", path: &path };
            match name {
                "name" => place.text(value, &mut dependency.name),
                "version" => place.text(value, &mut dependency.version),
                "repository" => place.text(value, &mut dependency.repository),
                "condition" => place.text(value, &mut dependency.condition),
                "tags" => place.texts(value, &mut dependency.tags),
                "enabled" => place.bool(value, &mut dependency.enabled),
                "import-values" => {
                    dependency.import_values = place.list(value, "[]interface {}")?.to_vec();
                    Ok(())
                }
                _ => place.text(value, &mut dependency.alias),
            }
        })?;
        Ok(dependency)
    }

    fn validate(&mut self) -> Result<(), ValidationError> {
        if self.name == NULL_ENTRY {
            return invalid("dependencies must not contain empty or null nodes");
        }
        for text in [&mut self.name, &mut self.version, &mut self.repository, &mut self.condition] {
            sanitize(text);
        }
        self.tags.iter_mut().for_each(sanitize);
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !self.alias.chars().all(allowed) {
            return invalid(format!("dependency {:?} has disallowed characters in the alias", self.name));
        }
        Ok(())
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, ValidationError> {
    Err(ValidationError(message.into()))
}

/// Makes every white space a space and drops what can't be printed.
fn sanitize(text: &mut String) {
    if text.chars().all(is_printable) {
        return;
    }
    *text = text
        .chars()
        .filter_map(|c| if c.is_whitespace() { Some(' ') } else { is_printable(c).then_some(c) })
        .collect();
}

/// Reports whether Go prints `c`: letters, marks, numbers, punctuation, symbols and the space.
fn is_printable(c: char) -> bool {
    let invisible = matches!(
        u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb | 0xe0000..
    );
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value) -> String {
        let mut metadata = Metadata::default();
        if let Err(error) = metadata.decode(value) {
            return error.to_string();
        }
        match metadata.validate() {
            Ok(()) => format!("{} {}", metadata.name, metadata.version),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn charts_are_refused_with_helms_messages() {
        let valid = json!({"apiVersion": "v2", "name": "n", "version": "1.0.0"});
        for (change, expected) in [
            (json!({}), "n 1.0.0"),
            (json!({"name": "a/b"}), "validation: chart.metadata.name \"a/b\" is invalid"),
            (json!({"Name": "upper"}), "n 1.0.0"),
            (json!({"name": 5}), "5 1.0.0"),
            (json!({"name": false}), "false 1.0.0"),
            (json!({"version": 1.5}), "n 1.5"),
            (json!({"version": ""}), "validation: chart.metadata.version is required"),
            (json!({"maintainers": [null]}), "validation: maintainers must not contain empty or null nodes"),
            (
                json!({"dependencies": [null]}),
                "validation: dependencies must not contain empty or null nodes",
            ),
            (
                json!({"dependencies": [{"name": "a"}, {"name": "b", "alias": "a"}]}),
                "validation: more than one dependency with name or alias \"a\"",
            ),
            (
                json!({"dependencies": [{"name": "a", "alias": "b c"}]}),
                "validation: dependency \"a\" has disallowed characters in the alias",
            ),
            (
                json!({"deprecated": "yes"}),
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go struct field Metadata.deprecated of type bool",
            ),
            (
                json!({"name": {}}),
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go struct field Metadata.name of type string",
            ),
        ] {
            let mut value = valid.clone();
            value.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            assert_eq!(check(&value), expected, "{change}");
        }
    }
}
