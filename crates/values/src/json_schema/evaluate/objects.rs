//! Keywords about objects.

use serde_json::{Map, Value};

use super::{Segment, Visit};
use crate::json_schema::draft::Draft;
use crate::json_schema::finding::Finding;
use crate::json_schema::message;
use crate::json_schema::node::{Needs, Rest};

impl<'v> Visit<'_, 'v> {
    pub(super) fn check_object(&mut self, members: &'v Map<String, Value>) {
        let objects = &self.node.objects;
        if let Some(least) = objects.least.filter(|least| message::is_less(members.len(), *least)) {
            self.report(|| message::count("minProperties", members.len(), least));
        }
        if let Some(most) = objects.most.filter(|most| message::is_more(members.len(), *most)) {
            self.report(|| message::count("maxProperties", members.len(), most));
        }
        let missing = missing(members, &objects.required);
        if !missing.is_empty() {
            self.report(|| message::required(&missing));
        }
        if self.is_over() {
            return;
        }
        for (name, needs) in &objects.dependencies {
            match needs {
                Needs::Schema(id) if members.contains_key(name) => self.check_same(*id),
                Needs::Names(names) => self.check_dependent(members, name, names),
                Needs::Schema(_) => {}
            }
        }
        self.check_members(members);
        if let Some(id) = objects.names {
            for name in members.keys() {
                self.check_name(id, name);
            }
        }
        for (name, id) in &objects.dependent_schemas {
            if members.contains_key(name) {
                self.check_same(*id);
            }
        }
        for (name, names) in &objects.dependent_names {
            self.check_dependent(members, name, names);
        }
    }

    fn check_dependent(&mut self, members: &Map<String, Value>, name: &str, names: &[String]) {
        if !members.contains_key(name) {
            return;
        }
        let missing = missing(members, names);
        if !missing.is_empty() {
            self.report(|| message::dependent(name, &missing));
        }
    }

    fn check_members(&mut self, members: &'v Map<String, Value>) {
        let objects = &self.node.objects;
        let mut additional: Vec<&str> = Vec::new();
        for (name, value) in members {
            if self.is_over() {
                return;
            }
            let mut evaluated = false;
            if let Some(id) = objects.properties.get(name) {
                evaluated = true;
                self.check_part(*id, value, Segment::Name(name));
            }
            for (pattern, id) in &objects.patterns {
                if pattern.is_match(name) {
                    evaluated = true;
                    self.check_part(*id, value, Segment::Name(name));
                }
            }
            match objects.additional.filter(|_| !evaluated) {
                Some(Rest::Plain(false)) => additional.push(name),
                Some(Rest::Schema(id)) => self.check_part(id, value, Segment::Name(name)),
                Some(Rest::Plain(true)) | None => {}
            }
            if evaluated {
                self.unevaluated.members.remove(name.as_str());
            }
        }
        if !additional.is_empty() {
            self.report(|| message::additional(&additional));
        }
    }

    /// A name is checked as a value of its own, which stands nowhere.
    fn check_name(&mut self, id: usize, name: &str) {
        let value = Value::String(name.to_owned());
        let start = super::Path { parent: None, segment: Segment::Start };
        if let Err(finding) = self.evaluation.enter(id, &value, &start, Some(self.scope)) {
            let finding = if self.quick {
                Finding::any()
            } else {
                Finding::new(String::new(), message::property_name(name), finding.members())
            };
            self.found.push(finding);
        }
    }

    pub(super) fn check_unevaluated(&mut self) {
        if self.node.draft < Draft::Nineteen {
            return;
        }
        if let (Value::Object(members), Some(id)) = (self.value, self.node.objects.unevaluated) {
            for name in std::mem::take(&mut self.unevaluated.members) {
                if let Some(value) = members.get(name) {
                    self.check_part(id, value, Segment::Name(name));
                }
            }
        }
        if let (Value::Array(items), Some(id)) = (self.value, self.node.arrays.unevaluated) {
            for index in std::mem::take(&mut self.unevaluated.items) {
                if let Some(value) = items.get(index) {
                    self.check_part(id, value, Segment::Index(index));
                }
            }
        }
    }
}

fn missing<'n>(members: &Map<String, Value>, names: &'n [String]) -> Vec<&'n str> {
    names.iter().filter(|name| !members.contains_key(*name)).map(String::as_str).collect()
}
