//! Rules in schemas of custom resources: `x-kubernetes-validations`.
//!
//! `definition` says what is wrong with the rules of a schema; `Rules` are checked against objects.

mod definition;
mod field_path;
mod rule;

pub use definition::{Problem, ProblemKind, problems};

use std::collections::BTreeMap;

use serde_json::Value as Json;

use self::rule::{Rule, Verdict};
use crate::declared::Declared;
use crate::schema::{declared, properties, value};

/// The keyword of rules.
pub(crate) const KEYWORD: &str = "x-kubernetes-validations";

/// How much the rules of one object may cost together.
const BUDGET: u64 = 10_000_000;

/// What people are told when the budget is spent.
const OVER: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// How many levels of a schema are looked at.
const MAX_DEPTH: usize = 400;

/// The rules of one level of a schema, and of the levels below it.
#[derive(Debug)]
pub struct Rules {
    own: Vec<Rule>,
    schema: Json,
    is_root: bool,
    properties: BTreeMap<String, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
    all_of: Vec<Rules>,
}

/// How an object breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The path of the field, for example `spec.replicas`; empty for the object itself.
    pub field: String,
    /// The reason that the rule gives: `FieldValueInvalid`, `-Required`, `-Forbidden` or `-Duplicate`.
    pub reason: &'static str,
    /// What stands for the value in messages: the type of its schema.
    pub shown: String,
    /// What people are told.
    pub detail: String,
    /// Whether the value was like this before, so that people are warned only.
    pub is_warning: bool,
}

/// What may be compared with what was before.
#[derive(Clone, Copy, Default)]
struct Correlation<'a> {
    /// The value, and what it was.
    own: Option<(&'a Json, &'a Json)>,
    /// The nearest value around it that can be compared.
    around: Option<(&'a Json, &'a Json)>,
}

impl<'a> Correlation<'a> {
    /// Returns whether nothing has changed here.
    fn is_same(self) -> bool {
        self.own.or(self.around).is_some_and(|(new, old)| new == old)
    }

    fn below(self, new: &'a Json, old: Option<&'a Json>) -> Self {
        if self.own.is_none() {
            return self;
        }
        Self { own: old.map(|old| (new, old)), around: self.own }
    }
}

/// What one check has found, and what it may still cost.
struct Check {
    found: Vec<Broken>,
    budget: u64,
    is_over: bool,
}

impl Rules {
    /// Reads the rules of a schema; `None` if it has none. Rules that do not compile break every object.
    pub fn of(schema: &Json) -> Option<Self> {
        let root = declared(schema, true);
        Self::within(schema, schema, true, root.as_ref(), MAX_DEPTH)
    }

    /// Reads the rules that `rules` has for values of `schema`: another one for the parts of `allOf`.
    fn within(
        rules: &Json,
        schema: &Json,
        is_root: bool,
        declared: Option<&Declared>,
        depth: usize,
    ) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let list = rules.get(KEYWORD).and_then(Json::as_array);
        let own = declared.map(|declared| {
            let named = declared.clone().named("selfType");
            list.into_iter().flatten().map(|rule| Rule::read(rule, schema, &named)).collect()
        });
        let part = |field: &str| {
            let (rules, schema) = (rules.get(field)?, schema.get(field)?);
            let element = declared?.element.as_deref();
            let is_embedded = is_embedded(schema);
            Self::within(rules, schema, is_embedded, element, depth).map(Box::new)
        };
        let below = properties(rules).filter_map(|(name, rules)| {
            let schema = schema.get("properties")?.get(name)?;
            let is_embedded = is_embedded(schema);
            let field = match crate::escape(name) {
                Some(name) => declared?.fields.get(&name).cloned(),
                None => crate::schema::declared(schema, is_embedded),
            };
            let rules = Self::within(rules, schema, is_embedded, Some(&field?), depth)?;
            Some((name.clone(), rules))
        });
        let all_of = rules.get("allOf").and_then(Json::as_array).into_iter().flatten();
        let found = Self {
            own: own.unwrap_or_default(),
            schema: schema.clone(),
            is_root,
            properties: below.collect(),
            values: part("additionalProperties"),
            items: part("items"),
            all_of: all_of
                .filter_map(|rules| Self::within(rules, schema, is_root, declared, depth))
                .collect(),
        };
        let is_empty = found.own.is_empty()
            && found.properties.is_empty()
            && found.values.is_none()
            && found.items.is_none()
            && found.all_of.is_empty();
        (!is_empty).then_some(found)
    }

    /// Returns how an object breaks the rules. `old` is the object before.
    pub fn check(&self, object: &Json, old: Option<&Json>) -> Vec<Broken> {
        let mut check = Check { found: Vec::new(), budget: BUDGET, is_over: false };
        let correlation = Correlation { own: old.map(|old| (object, old)), around: None };
        self.visit(&mut check, "", object, old, correlation);
        check.found
    }

    fn visit<'a>(
        &self,
        check: &mut Check,
        path: &str,
        object: &'a Json,
        old: Option<&'a Json>,
        correlation: Correlation<'a>,
    ) {
        if object.is_null() || check.is_over {
            return;
        }
        self.judge(check, path, object, old.filter(|old| !old.is_null()), correlation);
        for rules in &self.all_of {
            let around = Correlation { own: None, around: correlation.around };
            rules.visit(check, path, object, old, around);
        }
        match object {
            Json::Object(fields) => {
                let before = old.and_then(Json::as_object);
                for (name, value) in fields {
                    let old = before.and_then(|before| before.get(name));
                    // Neither says what version an object had before.
                    let is_type =
                        correlation.around.is_none() && matches!(name.as_str(), "apiVersion" | "kind");
                    let below = if is_type { Correlation::default() } else { correlation.below(value, old) };
                    if let Some(rules) = &self.values {
                        rules.visit(check, &format!("{path}[{name}]"), value, old, below);
                    }
                    if let Some(rules) = self.properties.get(name) {
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        rules.visit(check, &path, value, old, below);
                    }
                }
            }
            Json::Array(items) => {
                let Some(rules) = &self.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = old.and_then(|old| counterpart(&self.schema, item, old));
                    rules.visit(check, &format!("{path}[{index}]"), item, old, correlation.below(item, old));
                }
            }
            _ => {}
        }
    }

    fn judge(
        &self,
        check: &mut Check,
        path: &str,
        object: &Json,
        old: Option<&Json>,
        correlation: Correlation<'_>,
    ) {
        if self.own.is_empty() {
            return;
        }
        let shown = match self.schema.get("type").and_then(Json::as_str) {
            None if self.is_root => "object",
            of => of.unwrap_or_default(),
        };
        let own = value(object, &self.schema, self.is_root);
        let before = old.map(|old| value(old, &self.schema, self.is_root));
        let broken = |field: String, reason: &'static str, detail: String, is_warning: bool| Broken {
            field,
            reason,
            shown: shown.to_owned(),
            detail,
            is_warning,
        };
        if check.budget == 0 {
            check.is_over = true;
            check.found.push(broken(path.to_owned(), "FieldValueInvalid", OVER.to_owned(), false));
            return;
        }
        for rule in &self.own {
            let verdict = rule.judge(&own, before.as_ref(), &mut check.budget);
            match verdict {
                Verdict::Holds => {}
                Verdict::Fails(detail) => {
                    check.found.push(broken(path.to_owned(), "FieldValueInvalid", detail, false));
                }
                Verdict::Ends(detail) => {
                    let detail = detail.unwrap_or_else(|| OVER.to_owned());
                    check.found.push(broken(path.to_owned(), "FieldValueInvalid", detail, false));
                    check.is_over = true;
                    return;
                }
                Verdict::Broken { detail, ends } => {
                    let is_warning = !rule.uses_old && correlation.is_same();
                    check.found.push(broken(rule.field(path), rule.reason, detail, is_warning));
                    if ends {
                        check.is_over = true;
                        return;
                    }
                }
            }
        }
    }
}

fn is_embedded(schema: &Json) -> bool {
    schema.get("x-kubernetes-embedded-resource") == Some(&Json::Bool(true))
}

/// Returns what an item of a list was before, if items of the list have an identity.
fn counterpart<'a>(schema: &Json, item: &Json, old: &'a Json) -> Option<&'a Json> {
    if schema.get("x-kubernetes-list-type")?.as_str()? != "map" {
        return None;
    }
    let keys = schema.get("x-kubernetes-list-map-keys")?.as_array()?;
    let is_same =
        |other: &&Json| keys.iter().filter_map(Json::as_str).all(|key| other.get(key) == item.get(key));
    old.as_array()?.iter().find(is_same)
}
