//! Drafts of JSON Schema, and where each has schemas within schemas.

use serde_json::{Map, Value};

/// A draft; a later one is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    Nineteen,
    /// The one of schemas that do not say.
    #[default]
    Twenty,
}

/// How schemas stand in the value of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Items,
    Members,
}

/// Keywords that hold schemas, and the first draft that has them.
const HOLDERS: &[(&str, Shape, Draft)] = &[
    ("definitions", Shape::Members, Draft::Four),
    ("not", Shape::One, Draft::Four),
    ("allOf", Shape::Items, Draft::Four),
    ("anyOf", Shape::Items, Draft::Four),
    ("oneOf", Shape::Items, Draft::Four),
    ("properties", Shape::Members, Draft::Four),
    ("additionalProperties", Shape::One, Draft::Four),
    ("patternProperties", Shape::Members, Draft::Four),
    ("items", Shape::One, Draft::Four),
    ("items", Shape::Items, Draft::Four),
    ("additionalItems", Shape::One, Draft::Four),
    ("dependencies", Shape::Members, Draft::Four),
    ("propertyNames", Shape::One, Draft::Six),
    ("contains", Shape::One, Draft::Six),
    ("if", Shape::One, Draft::Seven),
    ("then", Shape::One, Draft::Seven),
    ("else", Shape::One, Draft::Seven),
    ("$defs", Shape::Members, Draft::Nineteen),
    ("dependentSchemas", Shape::Members, Draft::Nineteen),
    ("unevaluatedProperties", Shape::One, Draft::Nineteen),
    ("unevaluatedItems", Shape::One, Draft::Nineteen),
    ("contentSchema", Shape::One, Draft::Nineteen),
    ("prefixItems", Shape::Items, Draft::Twenty),
];

impl Draft {
    /// Returns the draft that a `$schema` names.
    pub(super) fn named(url: &str) -> Option<Self> {
        let url = url.strip_suffix('#').unwrap_or(url);
        let name = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or(url);
        match name.strip_prefix("json-schema.org/")? {
            "schema" | "draft/2020-12/schema" => Some(Self::Twenty),
            "draft/2019-09/schema" => Some(Self::Nineteen),
            "draft-07/schema" => Some(Self::Seven),
            "draft-06/schema" => Some(Self::Six),
            "draft-04/schema" => Some(Self::Four),
            _ => None,
        }
    }

    /// Returns the address of the schema of schemas.
    pub(super) fn url(self) -> &'static str {
        match self {
            Self::Four => "http://json-schema.org/draft-04/schema",
            Self::Six => "http://json-schema.org/draft-06/schema",
            Self::Seven => "http://json-schema.org/draft-07/schema",
            Self::Nineteen => "https://json-schema.org/draft/2019-09/schema",
            Self::Twenty => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// Returns the keyword that names a schema.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::Four { "id" } else { "$id" }
    }

    /// Returns the name that a schema gives itself, without a fragment.
    pub(super) fn id_of(self, schema: &Map<String, Value>) -> Option<&str> {
        if self < Self::Nineteen && schema.contains_key("$ref") {
            return None;
        }
        let id = schema.get(self.id_keyword())?.as_str()?;
        Some(id.split('#').next().unwrap_or_default()).filter(|id| !id.is_empty())
    }

    /// Returns the schemas in `schema`: keyword, name or index below it if there is one, value.
    pub(super) fn inner(self, schema: &Map<String, Value>) -> Vec<(&'static str, Option<String>, &Value)> {
        let mut inner = Vec::new();
        for (keyword, shape, since) in HOLDERS {
            let Some(value) = schema.get(*keyword).filter(|_| self >= *since) else { continue };
            match (shape, value) {
                (Shape::One, _) => inner.push((*keyword, None, value)),
                (Shape::Items, Value::Array(items)) => {
                    inner.extend(
                        items.iter().enumerate().map(|(i, item)| (*keyword, Some(i.to_string()), item)),
                    );
                }
                (Shape::Members, Value::Object(members)) => {
                    inner.extend(members.iter().map(|(name, one)| (*keyword, Some(name.clone()), one)));
                }
                (Shape::Items | Shape::Members, _) => {}
            }
        }
        inner
    }
}
