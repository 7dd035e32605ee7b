//! What a `kubernetes` binding watches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The objects that a watch is about.
///
/// Bindings whose selections are equal share one watch, whatever their filters, names and queues.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Selection {
    /// `v1`, `apps/v1`, or empty for the preferred version.
    pub api_version: String,
    /// The kind as written: a kind in any case, a plural or a short name.
    pub kind: String,
    /// The names of the objects. Empty means all.
    pub names: BTreeSet<String>,
    /// The namespaces of the objects.
    pub namespaces: Namespaces,
    /// The labels of the objects.
    pub labels: LabelSelector,
    /// The fields of the objects.
    pub fields: FieldSelector,
    /// Whether their metadata is all that is read of them.
    pub only_metadata: bool,
}

impl Selection {
    /// Returns the selection without what objects may lose: labels, fields, and the labels of their namespace. All that was ever
    /// selected is among these.
    pub(crate) fn ever(&self) -> Self {
        let namespaces = match &self.namespaces {
            Namespaces::Named(names) => Namespaces::Named(names.clone()),
            Namespaces::All | Namespaces::Labelled(_) => Namespaces::All,
        };
        let (labels, fields) = (LabelSelector::default(), FieldSelector::default());
        Self { namespaces, labels, fields, ..self.clone() }
    }
}

/// A watch together with what is made of each object that it sees.
///
/// Bindings with equal ones share the resulting snapshot; monitors with equal selections share one watch.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct MonitorSpec {
    /// What is watched.
    pub selection: Selection,
    /// The jq program whose result is compared and shown.
    pub jq_filter: Option<String>,
    /// Whether items keep the object itself.
    pub keep_objects: bool,
}

/// The namespaces that a watch is about.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Namespaces {
    /// All namespaces, and objects that are in none.
    #[default]
    All,
    /// These namespaces, whether they exist or not.
    Named(BTreeSet<String>),
    /// All namespaces with these labels, as they come, change and go.
    Labelled(LabelSelector),
}

/// A label selector of Kubernetes. The empty one matches everything.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct LabelSelector {
    /// Labels with exactly these values.
    pub match_labels: BTreeMap<String, String>,
    /// More conditions; all must hold.
    pub match_expressions: Vec<LabelRequirement>,
}

/// One condition on a label.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// How the label's value is compared.
    pub operator: LabelOperator,
    /// The values that it is compared with.
    pub values: BTreeSet<String>,
}

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, strum::EnumString, strum::IntoStaticStr, Eq, Ord, PartialEq, PartialOrd)]
pub enum LabelOperator {
    /// The label is absent.
    DoesNotExist,
    /// The label is there.
    Exists,
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
}

/// A field selector. The empty one matches everything.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct FieldSelector {
    /// Conditions; all must hold.
    pub match_expressions: Vec<FieldRequirement>,
}

/// One condition on a field.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct FieldRequirement {
    /// The field, as `status.phase`.
    pub field: String,
    /// Whether the field has the value; otherwise it has another.
    pub is_equal: bool,
    /// The value that it is compared with.
    pub value: String,
}

impl LabelSelector {
    /// Returns whether the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Returns whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.matches(labels.get(&requirement.key)))
    }
}

impl LabelRequirement {
    fn matches(&self, value: Option<&String>) -> bool {
        match self.operator {
            LabelOperator::DoesNotExist => value.is_none(),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::In => value.is_some_and(|value| self.values.contains(value)),
            LabelOperator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
        }
    }
}

/// Writes the selector as the `labelSelector` parameter of a request; requirements are sorted by key.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<(&str, String)> =
            self.match_labels.iter().map(|(key, value)| (key.as_str(), format!("{key}={value}"))).collect();
        parts.extend(self.match_expressions.iter().map(|part| (part.key.as_str(), part.to_string())));
        parts.sort_by_key(|(key, _)| *key);
        let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
        f.write_str(&texts.join(","))
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = || self.values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match self.operator {
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::Exists => write!(f, "{key}"),
            LabelOperator::In => write!(f, "{key} in ({})", values()),
            LabelOperator::NotIn => write!(f, "{key} notin ({})", values()),
        }
    }
}

impl FieldSelector {
    /// Returns whether the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_expressions.is_empty()
    }
}

/// Writes the selector as the `fieldSelector` parameter of a request.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.match_expressions.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

/// Escapes `\`, `,` and `=` in the value, as the API server reads them.
impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        write!(f, "{}{}{value}", self.field, if self.is_equal { "=" } else { "!=" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(key: &str, operator: LabelOperator, values: &[&str]) -> LabelRequirement {
        LabelRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_label_selector_is_written_in_the_order_of_its_keys() {
        let selector = LabelSelector {
            match_labels: [("tier".to_owned(), String::new()), ("app".to_owned(), "web".to_owned())].into(),
            match_expressions: vec![
                requirement("zone", LabelOperator::NotIn, &["c", "b"]),
                requirement("b", LabelOperator::In, &["y", "x"]),
                requirement("c", LabelOperator::Exists, &[]),
                requirement("d", LabelOperator::DoesNotExist, &[]),
            ],
        };
        assert_eq!(selector.to_string(), "app=web,b in (x,y),c,!d,tier=,zone notin (b,c)");
        assert_eq!(LabelSelector::default().to_string(), "");
    }

    #[test]
    fn a_label_selector_matches_what_kubernetes_matches() {
        let labels: BTreeMap<String, String> = [("app".to_owned(), "web".to_owned())].into();
        let cases = [
            (requirement("app", LabelOperator::In, &["web", "db"]), true),
            (requirement("app", LabelOperator::In, &["db"]), false),
            (requirement("tier", LabelOperator::In, &["db"]), false),
            (requirement("tier", LabelOperator::NotIn, &["db"]), true),
            (requirement("app", LabelOperator::NotIn, &["web"]), false),
            (requirement("app", LabelOperator::Exists, &[]), true),
            (requirement("app", LabelOperator::DoesNotExist, &[]), false),
            (requirement("tier", LabelOperator::DoesNotExist, &[]), true),
        ];
        for (requirement, expected) in cases {
            let text = requirement.to_string();
            let selector = LabelSelector { match_expressions: vec![requirement], ..LabelSelector::default() };
            assert_eq!(selector.matches(&labels), expected, "{text}");
        }
        let selector = LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() };
        assert!(selector.matches(&labels));
        assert!(!selector.matches(&BTreeMap::new()));
    }

    #[test]
    fn a_field_selector_escapes_what_would_end_a_value() {
        let part = |field: &str, is_equal, value: &str| FieldRequirement {
            field: field.into(),
            is_equal,
            value: value.into(),
        };
        let selector = FieldSelector {
            match_expressions: vec![
                part("status.phase", true, "Running"),
                part("metadata.name", false, "a,b=c\\"),
            ],
        };
        assert_eq!(selector.to_string(), r"status.phase=Running,metadata.name!=a\,b\=c\\");
    }
}
