//! `meta.yaml` of bundles and of plans.

use ::chart::semver::Version;
use ::chart::{MAX_RELEASE_NAME, release_name};
use serde_json::{Map, Value};
use values::name::{GLOBAL, ModuleName};
use values::yaml;

use super::descriptor::{Bundle, Kind, META, Plan};
use super::problem::Findings;
use super::tree::Files;
use crate::index::{MAX_ID, MAX_NAME, MAX_VERSION};

/// The most memory that the tree of one YAML file may take, in bytes.
pub(super) const MAX_TREE_BYTES: usize = 12 << 20;

/// The most bytes of a text for people.
const MAX_TEXT: usize = 16 << 10;

/// The greatest order of a module.
const MAX_WEIGHT: u64 = (1 << 31) - 1;

/// What `meta.yaml` of a bundle says. Fields are missing where a problem was found.
pub(super) struct Meta {
    id: Option<String>,
    pub(super) name: Option<ModuleName>,
    version: Option<Version>,
    display_name: Option<String>,
    description: Option<String>,
    weight: Option<u32>,
    pub(super) is_bindable: bool,
}

impl Meta {
    pub(super) fn into_bundle(self, kind: Kind, chart: Option<String>, plans: Vec<Plan>) -> Option<Bundle> {
        Some(Bundle {
            id: self.id?,
            name: self.name?,
            version: self.version?,
            display_name: self.display_name?,
            description: self.description?,
            kind,
            weight: self.weight,
            chart,
            plans,
            namespace: None,
            privileged: Vec::new(),
        })
    }
}

/// Reads `meta.yaml`; nothing if there is no mapping in it.
pub(super) fn read_bundle(files: &Files<'_>, findings: &mut Findings) -> Option<Meta> {
    let mut fields = Fields::read(files, META, "id, name, version, description and displayName", findings)?;
    let id = fields.required("id", MAX_ID);
    let name = fields.required("name", MAX_NAME);
    let version = fields.version();
    let description = fields.required("description", MAX_TEXT);
    let display_name = fields.required("displayName", MAX_TEXT);
    for name in
        ["tags", "providerDisplayName", "longDescription", "documentationURL", "supportURL", "imageURL"]
    {
        fields.text(name, MAX_TEXT);
    }
    let is_bindable = fields.bool("bindable").unwrap_or_default();
    for name in ["provisionOnlyOnce", "bindingsRetrievable", "planUpdatable"] {
        fields.bool(name);
    }
    fields.texts("labels");
    fields.texts("requires");
    let weight = fields.weight();
    let name = name.and_then(|name| match module_name(&name) {
        Ok(module) => Some(module),
        Err(problem) => {
            fields.problem("name", &problem);
            None
        }
    });
    let version = version.and_then(|text| match Version::parse(&text) {
        Ok(version) => Some(version),
        Err(error) => {
            fields.problem("version", &format!("{error}: write a semantic version, such as 1.2.3"));
            None
        }
    });
    Some(Meta { id, name, version, display_name, description, weight, is_bindable })
}

/// Returns the name of the module that a bundle becomes, or why it can't be one.
fn module_name(name: &str) -> Result<ModuleName, String> {
    if name == GLOBAL {
        return Err("the values of the module would be the global ones: use another name".to_owned());
    }
    let module = ModuleName::new(name).map_err(|error| error.to_string())?;
    if let Some(other) = module.flagged_key() {
        return Err(format!(
            "its key in the ConfigMap would be {}, which says something about a module with the key {other}: use a name that \
             ends in another word",
            module.key()
        ));
    }
    if release_name(name).is_err() {
        return Err(format!(
            "the release of the module has that name, too, and no such name is possible: use at most {MAX_RELEASE_NAME} lower-case letters, digits and dashes"
        ));
    }
    Ok(module)
}

/// Reads `meta.yaml` of the plan in `directory`. `is_bindable` is what the bundle says for plans that say nothing.
pub(super) fn read_plan(
    files: &Files<'_>,
    directory: &str,
    is_bindable: bool,
    findings: &mut Findings,
) -> Option<Plan> {
    let path = format!("{directory}/{META}");
    let mut fields = Fields::read(files, &path, "id, name, description and displayName", findings)?;
    let id = fields.required("id", MAX_ID);
    let name = fields.required("name", MAX_NAME);
    fields.required("description", MAX_TEXT);
    fields.required("displayName", MAX_TEXT);
    let is_bindable = fields.bool("bindable").unwrap_or(is_bindable);
    fields.bool("free");
    if is_bindable && !files.has(&format!("{directory}/bind.yaml")) {
        let message = "the plan is bindable, and there is no such file: add it, or say bindable: false in the plan's meta.yaml";
        findings.problem(format!("{directory}/bind.yaml"), message);
    }
    Some(Plan { directory: directory.to_owned(), id: id?, name: name?, is_bindable })
}

/// Reads a file that is one document of YAML; nothing, and a problem, if it is none.
pub(super) fn read_yaml(files: &Files<'_>, path: &str, findings: &mut Findings) -> Option<Value> {
    read_yaml_within(files, path, MAX_TREE_BYTES, findings)
}

/// Reads a file that is one document of YAML, without a key that is there twice, whose tree may take so much memory.
pub(super) fn read_yaml_within(
    files: &Files<'_>,
    path: &str,
    most: usize,
    findings: &mut Findings,
) -> Option<Value> {
    let text = match std::str::from_utf8(files.bytes(path)?) {
        Ok(text) => text,
        Err(error) => {
            findings.problem(
                path,
                format!("byte {} is no UTF-8: write the file as UTF-8", error.valid_up_to() + 1),
            );
            return None;
        }
    };
    match yaml::parse_only(text, most) {
        Ok(value) => Some(value),
        Err(error) => {
            findings.problem(path, error.to_string());
            None
        }
    }
}

/// The fields of a mapping, and where to put what is wrong with them.
struct Fields<'f> {
    path: &'f str,
    values: Map<String, Value>,
    findings: &'f mut Findings,
}

impl<'f> Fields<'f> {
    /// Reads a file that has to have the fields `required`.
    fn read(files: &Files<'_>, path: &'f str, required: &str, findings: &'f mut Findings) -> Option<Self> {
        if !files.has(path) {
            findings.problem(path, format!("the file is missing: add it with {required}"));
            return None;
        }
        match read_yaml(files, path, findings)? {
            Value::Object(values) => Some(Self { path, values, findings }),
            Value::Null => {
                findings.problem(path, format!("the file is empty: write {required}"));
                None
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                findings.problem(path, "the file has to be a mapping of names to values");
                None
            }
        }
    }

    fn problem(&mut self, field: &str, message: &str) {
        self.findings.problem(self.path, format!("{field}: {message}"));
    }

    /// Returns a text, and reports that it is missing. Empty texts are missing ones.
    fn required(&mut self, name: &str, most: usize) -> Option<String> {
        let count = self.findings.problems.len();
        let text = self.text(name, most);
        if text.is_none() && self.findings.problems.len() == count {
            self.problem(name, "the field is required, and missing or empty");
        }
        text
    }

    /// Returns the version. YAML takes 1.10 for the number 1.1, which is another version.
    fn version(&mut self) -> Option<String> {
        if let Some(Value::Number(number)) = self.values.get("version").filter(|value| value.is_f64()) {
            let message = format!("it is read as the number {number}: write the version in quotes");
            self.problem("version", &message);
            return None;
        }
        self.required("version", MAX_VERSION)
    }

    /// Returns a text, if it is there. Numbers and booleans are texts, as they are for Go's reader.
    fn text(&mut self, name: &str, most: usize) -> Option<String> {
        let text = match self.values.get(name)? {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => {
                // YAML has many words for these, and what was written is not known any more.
                let message =
                    format!("{name}: it is a word for {value}, and read as that: write a text in quotes");
                self.findings.warning(self.path, message);
                value.to_string()
            }
            Value::Array(_) | Value::Object(_) => {
                self.problem(name, "it has to be a text");
                return None;
            }
        };
        if text.len() > most {
            self.problem(name, &format!("it is longer than {most} bytes"));
            return None;
        }
        Some(text).filter(|text| !text.is_empty())
    }

    fn bool(&mut self, name: &str) -> Option<bool> {
        match self.values.get(name)? {
            Value::Null => None,
            Value::Bool(value) => Some(*value),
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.problem(name, "it has to be true or false");
                None
            }
        }
    }

    /// Checks that this is a list or a mapping of scalars.
    fn texts(&mut self, name: &str) {
        let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
        let (is_good, expected) = match (self.values.get(name), name) {
            (None | Some(Value::Null), _) => return,
            (Some(Value::Object(entries)), "labels") => (entries.values().all(is_scalar), "mapping"),
            (Some(_), "labels") => (false, "mapping"),
            (Some(Value::Array(items)), _) => (items.iter().all(is_scalar), "list"),
            (Some(_), _) => (false, "list"),
        };
        if !is_good {
            self.problem(name, &format!("it has to be a {expected} of texts"));
        }
    }

    fn weight(&mut self) -> Option<u32> {
        let value = self.values.get("weight").filter(|value| !value.is_null())?;
        let weight = value.as_u64().filter(|weight| *weight <= MAX_WEIGHT);
        let weight = weight.and_then(|weight| u32::try_from(weight).ok());
        if weight.is_none() {
            self.problem("weight", &format!("it has to be a whole number from 0 to {MAX_WEIGHT}"));
        }
        weight
    }
}
