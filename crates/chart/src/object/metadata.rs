//! `.Chart`: what `Chart.yaml` says.

use std::rc::Rc;

use crate::metadata::{DEPENDENCY_FIELDS, Dependency, METADATA_FIELDS, Maintainer, Metadata};
use crate::value::{List, ListType, Map, MapType, Object, Type, Value};

/// `[]*chart.Maintainer`
static MAINTAINERS: ListType = ListType::unnamed("[]*chart.Maintainer", Type::Named("*chart.Maintainer"));

/// `[]*chart.Dependency`
static DEPENDENCIES: ListType = ListType::unnamed("[]*chart.Dependency", Type::Named("*chart.Dependency"));

/// `.Chart`: the metadata and whether the chart is the outermost.
pub(crate) struct ChartObject {
    pub(crate) metadata: Rc<Metadata>,
    pub(crate) is_root: bool,
}

impl Object for ChartObject {
    fn type_name(&self) -> &'static str {
        "struct { chart.Metadata; IsRoot bool }"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let metadata = Value::object(MetadataObject(Rc::clone(&self.metadata)));
        vec![("Metadata", metadata), ("IsRoot", self.is_root.into())]
    }

    fn embedded(&self) -> &'static [&'static str] {
        &["Metadata"]
    }

    fn field(&self, name: &str) -> Option<Value> {
        let Metadata { name: own, version, app_version, .. } = &*self.metadata;
        match name {
            "IsRoot" => Some(self.is_root.into()),
            "Metadata" => Some(Value::object(MetadataObject(Rc::clone(&self.metadata)))),
            // Nearly all that charts ask for, without building the rest.
            "Name" => Some(own.as_str().into()),
            "Version" => Some(version.as_str().into()),
            "AppVersion" => Some(app_version.as_str().into()),
            _ => {
                embedded(&self.metadata).into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
            }
        }
    }

    fn json_members(&self) -> Option<Vec<(&'static str, Value)>> {
        let mut members = json_of(&self.metadata);
        members.push(("IsRoot", self.is_root.into()));
        Some(members)
    }
}

/// `chart.Metadata`
struct MetadataObject(Rc<Metadata>);

impl Object for MetadataObject {
    fn type_name(&self) -> &'static str {
        "chart.Metadata"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        embedded(&self.0)
    }

    fn json_members(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(json_of(&self.0))
    }
}

/// Returns the fields of `metadata` as Go's struct has them.
fn embedded(metadata: &Metadata) -> Vec<(&'static str, Value)> {
    vec![
        ("Name", metadata.name.as_str().into()),
        ("Home", metadata.home.as_str().into()),
        ("Sources", texts(&metadata.sources)),
        ("Version", metadata.version.as_str().into()),
        ("Description", metadata.description.as_str().into()),
        ("Keywords", texts(&metadata.keywords)),
        ("Maintainers", objects(&MAINTAINERS, &metadata.maintainers)),
        ("Icon", metadata.icon.as_str().into()),
        ("APIVersion", metadata.api_version.as_str().into()),
        ("Condition", metadata.condition.as_str().into()),
        ("Tags", metadata.tags.as_str().into()),
        ("AppVersion", metadata.app_version.as_str().into()),
        ("Deprecated", metadata.deprecated.into()),
        ("Annotations", text_map(&metadata.annotations)),
        ("KubeVersion", metadata.kube_version.as_str().into()),
        ("Dependencies", objects(&DEPENDENCIES, &metadata.dependencies)),
        ("Type", metadata.kind.as_str().into()),
    ]
}

/// Returns what JSON shows of `metadata`: all that is not empty.
fn json_of(metadata: &Metadata) -> Vec<(&'static str, Value)> {
    let members = METADATA_FIELDS.into_iter().zip(embedded(metadata));
    members.map(|(name, (_, value))| (name, value)).filter(|(_, value)| value.truth()).collect()
}

impl Object for Maintainer {
    fn type_name(&self) -> &'static str {
        "*chart.Maintainer"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Name", self.name.as_str().into()),
            ("Email", self.email.as_str().into()),
            ("URL", self.url.as_str().into()),
        ]
    }

    fn json_members(&self) -> Option<Vec<(&'static str, Value)>> {
        let members = ["name", "email", "url"].into_iter().zip(self.fields());
        Some(members.map(|(name, (_, value))| (name, value)).filter(|(_, value)| value.truth()).collect())
    }
}

impl Object for Dependency {
    fn type_name(&self) -> &'static str {
        "*chart.Dependency"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let imports = self.import_values.iter().map(Value::from_json).collect();
        vec![
            ("Name", self.name.as_str().into()),
            ("Version", self.version.as_str().into()),
            ("Repository", self.repository.as_str().into()),
            ("Condition", self.condition.as_str().into()),
            ("Tags", texts(&self.tags)),
            ("Enabled", self.enabled.into()),
            ("ImportValues", Value::list(imports)),
            ("Alias", self.alias.as_str().into()),
        ]
    }

    fn json_members(&self) -> Option<Vec<(&'static str, Value)>> {
        let always = |name: &str| matches!(name, "name" | "repository");
        let members =
            DEPENDENCY_FIELDS.into_iter().zip(self.fields()).map(|(name, (_, value))| (name, value));
        Some(members.filter(|(name, value)| always(name) || value.truth()).collect())
    }
}

fn texts(texts: &[String]) -> Value {
    if texts.is_empty() {
        return Value::List(List::nil(&ListType::STRINGS));
    }
    Value::strings(texts.iter().map(String::as_str))
}

fn text_map(entries: &std::collections::BTreeMap<String, String>) -> Value {
    if entries.is_empty() {
        return Value::Map(Map::nil(&MapType::STRINGS));
    }
    let entries = entries.iter().map(|(key, value)| (Rc::from(key.as_str()), value.as_str().into()));
    Value::Map(Map::of(&MapType::STRINGS, entries.collect()))
}

fn objects<T: Object + Clone>(class: &'static ListType, items: &[T]) -> Value {
    if items.is_empty() {
        return Value::List(List::nil(class));
    }
    Value::List(List::of(class, items.iter().map(|item| Value::object(item.clone())).collect()))
}
