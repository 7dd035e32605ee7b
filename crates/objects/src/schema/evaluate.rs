//! Holding a value against a schema.
//!
//! Both dialects decide the same, but for what stands in their two ways through a level: the order of what is found, and
//! whether a wrong type ends the matter.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::correlation::Correlated;
use super::duplicates::duplicates;
use super::finding::{Finding, Step, Words};
use super::format;
use super::node::{Dependency, Dialect, Id, Items, Node, Others, Schema};

/// How deeply schema and value are followed into one another.
const MAX_DEPTH: usize = 256;

/// How many levels of the schema are held against a value: alternatives that
/// lead into themselves multiply.
const MAX_STEPS: usize = 500_000;

impl Schema {
    /// Returns how `value` breaks the schema, in the words of `words`.
    pub fn validate<W: Words>(&self, value: &Value, words: &W) -> Vec<W::Message> {
        let mut evaluation = Evaluation::new(self, words);
        if let Some(root) = self.root() {
            evaluation.level(root, value);
            if evaluation.steps > MAX_STEPS {
                evaluation.report(value, &Finding::TooManySteps);
            }
            if self.dialect == Dialect::Structural {
                evaluation.add(duplicates(self, value, words));
            }
        }
        evaluation.found
    }

    /// Returns how a new version of a custom object breaks its schema, but for what was wrong before and has not changed.
    pub(super) fn validate_change<W: Words>(
        &self,
        (old, new): (&Value, &Value),
        words: &W,
    ) -> Vec<W::Message> {
        let mut evaluation = Evaluation::new(self, words);
        if let Some(root) = self.root() {
            evaluation.change = Some(Correlated::new(self, root, (old, new)));
            evaluation.level(root, new);
            evaluation.forget_unchanged(0);
        }
        evaluation.found
    }

    /// Like [`Schema::validate_change`], for a change of the status: the schema of the status alone counts, and paths begin in it.
    pub(super) fn validate_status_change<W: Words>(
        &self,
        (old, new): (&Value, &Value),
        words: &W,
    ) -> Vec<W::Message> {
        let mut evaluation = Evaluation::new(self, words);
        let Some(root) = self.root() else { return evaluation.found };
        if let (Some(id), Some(status)) = (root.properties.get("status"), new.get("status")) {
            evaluation.change = Correlated::new(self, root, (old, new)).property("status");
            evaluation.at(*id, status);
            evaluation.forget_unchanged(0);
        }
        evaluation.found
    }

    /// Returns the items that come again in a new version of a custom object, if none did before.
    pub(super) fn new_duplicates<W: Words>(
        &self,
        (old, new): (&Value, &Value),
        words: &W,
    ) -> Vec<W::Message> {
        let found = duplicates(self, new, words);
        // What was before is looked at only where it makes a difference.
        if found.is_empty() || duplicates(self, old, words).is_empty() { found } else { Vec::new() }
    }
}

struct Evaluation<'a, W: Words> {
    schema: &'a Schema,
    words: &'a W,
    /// The whole value and what it was, where what has not changed may be wrong.
    change: Option<Correlated<'a>>,
    /// Where the value is that is looked at.
    path: Vec<Step<'a>>,
    depth: usize,
    steps: usize,
    found: Vec<W::Message>,
}

impl<'a, W: Words> Evaluation<'a, W> {
    fn new(schema: &'a Schema, words: &'a W) -> Self {
        Self { schema, words, change: None, path: Vec::new(), depth: 0, steps: 0, found: Vec::new() }
    }

    fn report(&mut self, value: &Value, finding: &Finding<'_>) {
        if self.found.len() < W::MOST {
            self.words.report(&mut self.found, &self.path, value, finding);
        }
    }

    /// Adds what was found separately.
    fn add(&mut self, found: Vec<W::Message>) {
        let room = W::MOST.saturating_sub(self.found.len());
        self.found.extend(found.into_iter().take(room));
    }

    fn is_structural(&self) -> bool {
        self.schema.dialect == Dialect::Structural
    }

    /// Holds `value` against another level.
    fn at(&mut self, id: Id, value: &'a Value) {
        // A structural schema has no references: it ends, and only ends there.
        if !self.is_structural() {
            if self.depth >= MAX_DEPTH {
                self.report(value, &Finding::TooDeep);
                return;
            }
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return;
            }
        }
        if let Some(node) = self.schema.node(id) {
            self.depth += 1;
            self.level(node, value);
            self.depth -= 1;
        }
    }

    /// Holds a part of the value against another level.
    fn below(&mut self, step: Step<'a>, id: Id, value: &'a Value) {
        self.path.push(step);
        self.part(id, value);
        self.path.pop();
    }

    /// Holds the part of the value at the path against its level.
    fn part(&mut self, id: Id, value: &'a Value) {
        let before = self.found.len();
        self.at(id, value);
        self.forget_unchanged(before);
    }

    /// Drops what was found since there was so much, if the value at the path is as it was.
    fn forget_unchanged(&mut self, before: usize) {
        let Some(change) = self.change.filter(|_| self.found.len() > before) else { return };
        // Nobody sees in which version an object was before.
        if let Some(Step::Property("apiVersion" | "kind")) = self.path.first() {
            return;
        }
        if change.at(&self.path).is_some_and(Correlated::is_same) {
            self.found.truncate(before);
        }
    }

    /// Returns how `value` breaks another level, separate from what was found.
    fn separately(&mut self, id: Id, value: &'a Value) -> Vec<W::Message> {
        let found = std::mem::take(&mut self.found);
        self.at(id, value);
        std::mem::replace(&mut self.found, found)
    }

    fn level(&mut self, node: &'a Node, value: &'a Value) {
        match self.schema.dialect {
            Dialect::OpenApi => {
                if !node.has_type(value) {
                    self.report(value, &Finding::Type(node.types.join(",")));
                }
                if !value.is_null() {
                    self.combinations(node, value);
                    self.scalar_or_list(node, value);
                }
                self.choices(node, value);
                if let Value::Object(map) = value {
                    self.sizes(node, value, map.len());
                    self.entries(node, map);
                    self.required(node, value, map);
                    self.dependencies(node, value, map);
                }
            }
            Dialect::Structural => {
                let may_be_null = node.nullable || node.types.is_empty();
                let has_type = if value.is_null() { may_be_null } else { node.has_type(value) };
                if !has_type {
                    self.report(value, &Finding::Type(node.types.join(",")));
                }
                if value.is_null() {
                    // Of null nothing else counts: one that may be null has to be among the choices, too.
                    self.choices(node, value);
                }
                if value.is_null() || !has_type {
                    return;
                }
                if let Value::Object(map) = value {
                    self.required(node, value, map);
                    self.entries(node, map);
                    self.sizes(node, value, map.len());
                }
                self.scalar_or_list(node, value);
                self.choices(node, value);
                self.combinations(node, value);
            }
        }
    }

    fn choices(&mut self, node: &Node, value: &Value) {
        let Some(choices) = &node.choices else {
            return;
        };
        let is_same_number = |choice: &Value| choice.is_number() && choice.as_f64() == value.as_f64();
        let is_listed =
            choices.contains(value) || (self.is_structural() && choices.iter().any(is_same_number));
        if !is_listed {
            self.report(value, &Finding::Enum(choices));
        }
    }

    fn combinations(&mut self, node: &'a Node, value: &'a Value) {
        // Alternatives hold or not, whatever of the value has changed.
        let change = self.change.take();
        if !node.any_of.is_empty() {
            let (valid, best) = self.alternatives(&node.any_of, value);
            if valid == 0 {
                self.report(value, &Finding::AnyOf);
                self.add(best);
            }
        }
        if !node.one_of.is_empty() {
            let (valid, best) = self.alternatives(&node.one_of, value);
            if valid != 1 {
                self.report(value, &Finding::OneOf(valid));
                if valid == 0 {
                    self.add(best);
                }
            }
        }
        let mut failed = 0;
        for id in &node.all_of {
            let before = self.found.len();
            self.at(*id, value);
            failed += usize::from(self.found.len() > before);
        }
        if failed > 0 {
            self.report(value, &Finding::AllOf { none_fits: failed == node.all_of.len() });
        }
        if let Some(not) = node.not
            && self.separately(not, value).is_empty()
        {
            self.report(value, &Finding::Not);
        }
        self.change = change;
    }

    /// Returns how many of the schemas `value` fits, and how it breaks the one that comes closest: for go-openapi the
    /// first of the right type, for kube-apiserver the first with the fewest findings.
    fn alternatives(&mut self, ids: &[Id], value: &'a Value) -> (usize, Vec<W::Message>) {
        let mut valid = 0;
        let mut best: Option<(usize, Vec<W::Message>)> = None;
        for id in ids {
            let found = self.separately(*id, value);
            if found.is_empty() {
                valid += 1;
                continue;
            }
            let distance = if self.is_structural() {
                found.len()
            } else {
                usize::from(!self.schema.node(*id).is_some_and(|node| node.has_type(value)))
            };
            if best.as_ref().is_none_or(|(least, _)| distance < *least) {
                best = Some((distance, found));
            }
        }
        (valid, best.map(|(_, found)| found).unwrap_or_default())
    }

    fn scalar_or_list(&mut self, node: &'a Node, value: &'a Value) {
        match value {
            Value::String(text) => self.string(node, value, text),
            Value::Number(number) => self.number(node, value, number.as_f64().unwrap_or(0.0)),
            Value::Array(items) => self.list(node, value, items),
            Value::Object(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn string(&mut self, node: &Node, value: &Value, text: &str) {
        let length = text.chars().count() as u64;
        let size = if let Some(most) = node.max_length.filter(|most| length > *most) {
            Some(Finding::MaxLength(most))
        } else {
            node.min_length.filter(|least| length < *least).map(Finding::MinLength)
        };
        if let Some(size) = size {
            self.report(value, &size);
            if self.is_structural() {
                return;
            }
        } else if let Some(pattern) = &node.pattern
            && !pattern.regex.is_match(text)
        {
            self.report(value, &Finding::Pattern(&pattern.text));
        }
        if let Some(format) = &node.format
            && !format::fits(format, text)
        {
            self.report(value, &Finding::Format(format));
        }
    }

    fn number(&mut self, node: &Node, value: &Value, number: f64) {
        if let Some(factor) = node.multiple_of
            && !self.is_multiple(number, factor)
        {
            self.report(value, &Finding::MultipleOf(factor));
        }
        let maximum =
            node.maximum.filter(|limit| number > limit.value || (limit.exclusive && number >= limit.value));
        let minimum =
            node.minimum.filter(|limit| number < limit.value || (limit.exclusive && number <= limit.value));
        let mut findings = [maximum.map(Finding::Maximum), minimum.map(Finding::Minimum)];
        if self.is_structural() {
            findings.reverse();
        }
        for finding in findings.iter().flatten() {
            self.report(value, finding);
        }
    }

    /// Returns whether `number` is a multiple of `factor`, up to rounding.
    fn is_multiple(&self, number: f64, factor: f64) -> bool {
        match self.schema.dialect {
            Dialect::OpenApi => {
                factor > 0.0 && is_whole(if factor < 1.0 { 1.0 / factor * number } else { number / factor })
            }
            Dialect::Structural => {
                let quotient = number / factor;
                let rest = (quotient - quotient.round()).abs();
                rest <= 1e-9 || rest.is_nan()
            }
        }
    }

    fn list(&mut self, node: &'a Node, value: &'a Value, items: &'a [Value]) {
        match &node.items {
            Items::Free => {}
            Items::All(id) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(Step::Item(index), *id, item);
                }
            }
            Items::Each(ids) => {
                for (index, (id, item)) in ids.iter().zip(items).enumerate() {
                    self.below(Step::Position(index), *id, item);
                }
                match node.other_items {
                    Others::Forbidden if items.len() > ids.len() => {
                        self.report(value, &Finding::AdditionalItems);
                    }
                    Others::Unspecified | Others::Allowed | Others::Forbidden => {}
                    Others::Schema(id) => {
                        for (index, item) in items.iter().enumerate().skip(ids.len()) {
                            self.below(Step::Position(index), id, item);
                        }
                    }
                }
            }
        }
        let count = items.len() as u64;
        if let Some(least) = node.min_items.filter(|least| count < *least) {
            self.report(value, &Finding::MinItems(least));
        }
        if let Some(most) = node.max_items.filter(|most| count > *most) {
            self.report(value, &Finding::MaxItems(most));
        }
        if node.unique_items {
            let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
            if distinct.len() < items.len() {
                self.report(value, &Finding::UniqueItems);
            }
        }
    }

    fn sizes(&mut self, node: &Node, value: &Value, count: usize) {
        let count = count as u64;
        if let Some(least) = node.min_properties.filter(|least| count < *least) {
            self.report(value, &Finding::MinProperties(least));
        }
        if let Some(most) = node.max_properties.filter(|most| count > *most) {
            self.report(value, &Finding::MaxProperties(most));
        }
    }

    fn required(&mut self, node: &'a Node, value: &Value, map: &Map<String, Value>) {
        for name in node.required.iter().filter(|name| !map.contains_key(*name)) {
            self.path.push(Step::Property(name));
            self.report(value, &Finding::Required);
            self.path.pop();
        }
    }

    fn dependencies(&mut self, node: &'a Node, value: &'a Value, map: &Map<String, Value>) {
        let asked = node.dependencies.iter().filter(|(name, _)| map.contains_key(*name));
        for (_, dependency) in asked {
            match dependency {
                Dependency::Properties(names) => {
                    for name in names.iter().filter(|name| !map.contains_key(*name)) {
                        self.report(value, &Finding::Dependency(name));
                    }
                }
                Dependency::Schema(id) => self.at(*id, value),
            }
        }
    }

    /// Holds the entries of a map against the rules for their names.
    fn entries(&mut self, node: &'a Node, map: &'a Map<String, Value>) {
        for (name, value) in map {
            self.path.push(Step::Property(name));
            let mut is_known = false;
            if let Some(id) = node.properties.get(name) {
                is_known = true;
                self.part(*id, value);
            }
            for (pattern, id) in &node.pattern_properties {
                if pattern.regex.is_match(name) {
                    is_known = true;
                    self.at(*id, value);
                }
            }
            match node.other_properties {
                _ if is_known => {}
                Others::Unspecified | Others::Allowed => {}
                Others::Forbidden => self.report(value, &Finding::Forbidden),
                Others::Schema(id) => self.part(id, value),
            }
            self.path.pop();
        }
    }
}

/// Returns whether go-openapi takes a quotient for a whole number.
///
/// It looks at what stands behind the point, as a share of the number: a little above a whole number is good, a little below is
/// not, and half a billion and more may have any fraction. Neither are numbers whole that JSON cannot tell apart.
fn is_whole(quotient: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !(-LARGEST..=LARGEST).contains(&quotient) {
        return false;
    }
    let whole = quotient.trunc();
    let behind = quotient - whole;
    behind == 0.0 || (whole > 0.0 && behind / (quotient + whole) < 1e-9)
}
