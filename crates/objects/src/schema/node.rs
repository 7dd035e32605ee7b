//! A schema as it is read: levels of rules that refer to one another.

use std::collections::BTreeMap;

use golang::regexp::Regexp;
use serde_json::Value;

/// A schema, compiled. References are indexes, so it may lead into itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub(super) dialect: Dialect,
    pub(super) nodes: Vec<Node>,
}

/// Whose rules a schema follows where the two validators in the field differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// go-openapi: the schemas of values.
    OpenApi,
    /// kube-apiserver: the structural schemas of custom resources.
    Structural,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(pub(super) usize);

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) regex: Regexp,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// What holds for properties, or items, that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Others {
    /// The schema is silent: they are valid, and unknown.
    #[default]
    Unspecified,
    Allowed,
    Forbidden,
    Schema(Id),
}

/// What holds for the items of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Items {
    #[default]
    Free,
    All(Id),
    Each(Vec<Id>),
}

/// What the presence of a property requires.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dependency {
    Properties(Vec<String>),
    Schema(Id),
}

/// A lower or upper limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The number.
    pub value: f64,
    /// Whether the number itself is out of bounds.
    pub exclusive: bool,
}

/// One level of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    /// Empty for any type.
    pub(super) types: Vec<String>,
    pub(super) nullable: bool,
    pub(super) default: Option<Value>,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) pattern_properties: Vec<(Pattern, Id)>,
    pub(super) other_properties: Others,
    pub(super) required: Vec<String>,
    pub(super) dependencies: BTreeMap<String, Dependency>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) items: Items,
    pub(super) other_items: Others,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<String>,
    pub(super) minimum: Option<Limit>,
    pub(super) maximum: Option<Limit>,
    pub(super) multiple_of: Option<f64>,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) not: Option<Id>,
    pub(super) extensions: Extensions,
}

/// The keywords `x-kubernetes-…` of structural schemas.
#[expect(clippy::struct_excessive_bools, reason = "they are independent keywords")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Extensions {
    pub(super) preserve_unknown_fields: bool,
    pub(super) int_or_string: bool,
    pub(super) embedded_resource: bool,
    pub(super) list_type: String,
    pub(super) list_map_keys: Vec<String>,
    /// The map is replaced as a whole.
    pub(super) atomic_map: bool,
}

impl Schema {
    pub(super) fn root(&self) -> Option<&Node> {
        self.nodes.first()
    }

    pub(super) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    /// Returns whether there may be objects inside of an object.
    pub(super) fn has_embedded(&self) -> bool {
        self.nodes.iter().any(|node| node.extensions.embedded_resource)
    }

    /// Returns the level of a property: its own, or that of properties that are not listed.
    pub(super) fn property(&self, node: &Node, name: &str) -> Option<&Node> {
        let listed = node.properties.get(name).copied();
        let others = if let Others::Schema(id) = node.other_properties { Some(id) } else { None };
        listed.or(others).and_then(|id| self.node(id))
    }

    /// Returns the level of the items of a list, where all have the same.
    pub(super) fn item(&self, node: &Node) -> Option<&Node> {
        if let Items::All(id) = node.items { self.node(id) } else { None }
    }
}

impl Node {
    pub(super) fn has_type(&self, value: &Value) -> bool {
        self.types.is_empty()
            || (value.is_null() && self.nullable)
            || self.types.iter().any(|name| match (name.as_str(), value) {
                ("null", Value::Null)
                | ("boolean", Value::Bool(_))
                | ("number", Value::Number(_))
                | ("string", Value::String(_))
                | ("array", Value::Array(_))
                | ("object", Value::Object(_)) => true,
                ("integer", Value::Number(number)) => {
                    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
                }
                _ => false,
            })
    }

    /// Returns whether unknown properties are kept as they are.
    pub(super) fn preserves(&self) -> bool {
        self.extensions.preserve_unknown_fields || self.other_properties == Others::Allowed
    }
}
