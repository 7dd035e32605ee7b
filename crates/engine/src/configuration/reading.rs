//! Reading the ConfigMap: each key whose text is new is judged, and what is good takes effect.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use values::Section;

use super::Configuration;
use super::config_map::{Changes, ConfigMap, bad_key, keys_of};
use super::redaction::without;
use crate::cause::Cause;
use crate::context::Context;
use crate::event::ConfigData;
use crate::failure::Failure;
use crate::name::{ModuleName, Scope};
use crate::notice::Notice;
use crate::time::Time;
use crate::view::ConfigProblem;

impl Configuration {
    /// Returns whether the module with this key is in maintenance.
    pub(crate) fn is_in_maintenance(&self, key: &str) -> bool {
        self.config_map.maintenance.contains(key)
    }

    /// Returns why a section can't be used that never had good content.
    pub(crate) fn blocking_problem(&self, key: &str) -> Option<&Failure> {
        self.config_map.problems.get(key).filter(|_| !self.config_map.good.contains(key))
    }

    /// Returns what is wrong with the keys of a module: its section, whether it is on, its maintenance.
    pub(crate) fn module_problem(&self, key: &str) -> Option<&Failure> {
        let keys = [key.to_owned(), format!("{key}Enabled"), format!("{key}Maintenance")];
        keys.iter().find_map(|key| self.config_map.problems.get(key))
    }

    /// Returns a picture of all that is wrong with the ConfigMap.
    pub(crate) fn problem_views(&self, now: Time) -> Vec<ConfigProblem> {
        let view = |(failure, at): (Failure, Time)| ConfigProblem { failure, since: now.since(at) };
        self.config_map.problems_since().map(view).collect()
    }

    /// Reads a new version of the ConfigMap. Returns what it changed and why, if something may go on that failed before.
    pub(crate) fn config_map_changed(
        &mut self,
        cx: &mut Context,
        version: &str,
        data: Option<Arc<ConfigData>>,
    ) -> Option<(Changes, Cause)> {
        let was_rejected = self.config_map.rejected.take().is_some();
        let data = data.unwrap_or_default();
        if !was_rejected && self.config_map.data.as_ref() == Some(&data) {
            // A watch that is opened says what was read before; nothing failed because of it.
            return None;
        }
        self.config_map.data = Some(Arc::clone(&data));
        let problems = self.config_map.problems.clone();
        let changes = self.read_config_map(cx, &data, version.parse().ok());
        self.report_problems(cx);
        let is_repaired = problems != self.config_map.problems;
        let cause = Cause::outside(format!("{} key {} rv {version}", self.place(), changes.keys.join(", ")));
        (changes.any() || is_repaired).then_some((changes, cause))
    }

    /// Records that the ConfigMap could not be read: what it said before stays in force.
    pub(crate) fn config_map_rejected(&mut self, cx: &mut Context, failure: Failure) {
        let failure = self.told(failure, None, None);
        let since = self.config_map.rejected.take().map_or(cx.now, |(_, since)| since);
        self.config_map.rejected = Some((failure, since));
        self.report_problems(cx);
    }

    /// Reads the ConfigMap once more for modules that are new or whose files changed.
    pub(crate) fn reread_config_map<'n>(
        &mut self,
        cx: &mut Context,
        names: impl IntoIterator<Item = &'n ModuleName>,
    ) {
        let Some(data) = self.config_map.data.clone() else { return };
        for name in names {
            let Some(section) = self.sections.get(name) else { continue };
            let key = section.key().to_owned();
            if !data.0.contains_key(&key) {
                self.config_map.good.insert(key.clone());
            }
            for key in keys_of(&key) {
                self.config_map.seen.remove(&key);
            }
        }
        let _ = self.read_config_map(cx, &data, None);
        self.report_problems(cx);
    }

    /// Reads an empty ConfigMap if none was read, so that whatever it says first is a change.
    pub(crate) fn assume_config_map(&mut self, cx: &mut Context) {
        if !self.config_map.was_read {
            let _ = self.read_config_map(cx, &ConfigData::default(), None);
        }
    }

    fn report_problems(&mut self, cx: &mut Context) {
        let now = cx.now;
        let ConfigMap { problems, problems_at, .. } = &mut self.config_map;
        problems_at.retain(|key, _| problems.contains_key(key));
        for key in problems.keys() {
            problems_at.entry(key.clone()).or_insert(now);
        }
        let problems = self.config_map.problems_since().map(|(failure, _)| failure).collect();
        cx.notify(Notice::ConfigChecked { problems });
    }

    /// Reads every key whose text is new.
    fn read_config_map(&mut self, cx: &mut Context, data: &ConfigData, version: Option<u64>) -> Changes {
        let mut changes = Changes::default();
        let seen: BTreeSet<String> = self.config_map.seen.keys().chain(data.0.keys()).cloned().collect();
        let mut unknown = BTreeSet::new();
        if !std::mem::replace(&mut self.config_map.was_read, true) {
            let sections = self.keys.keys().map(|key| &**key).chain([values::name::GLOBAL]);
            self.config_map.good =
                sections.filter(|key| !data.0.contains_key(*key)).map(str::to_owned).collect();
        }
        for key in seen {
            let text = data.0.get(&key);
            let owner = self.owner_of(&key);
            if matches!(owner, Owner::Unknown) && text.is_some() {
                unknown.insert(key.clone());
            }
            if !self.config_map.is_new(&key, text, version) {
                continue;
            }
            match owner {
                Owner::Section(scope) => self.read_section(cx, &scope, &key, text, &mut changes),
                Owner::Enabled(section) => {
                    self.config_map.see(&key, text);
                    if self.config_map.read_flag(&section, &key, text) {
                        changes.flags = true;
                        changes.keys.push(key);
                    }
                }
                Owner::Maintenance(section, name) => {
                    self.config_map.see(&key, text);
                    if self.config_map.read_maintenance(&section, &key, text) {
                        changes.modules.insert(name);
                        changes.keys.push(key);
                    }
                }
                Owner::Unknown => self.config_map.see(&key, text),
            }
        }
        if !unknown.is_empty() && unknown != self.config_map.unknown {
            let names: Vec<&str> = unknown.iter().map(String::as_str).collect();
            let message = format!(
                "{} has values for unknown modules: {}; they are ignored",
                self.place(),
                names.join(", ")
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        self.config_map.unknown = unknown;
        changes
    }

    fn read_section(
        &mut self,
        cx: &mut Context,
        scope: &Scope,
        key: &str,
        text: Option<&String>,
        changes: &mut Changes,
    ) {
        let Some(section) = self.section(scope).cloned() else { return };
        let value = match parsed_section(key, text) {
            Ok(Parsed::Section(value)) => value,
            Ok(Parsed::Flag(on)) => {
                // An old spelling: the section itself says whether the module is on.
                self.config_map.see(key, text);
                self.config_map.judge(key, None);
                let message =
                    format!("ConfigMap key {key} is a plain {on}; write {key}Enabled: \"{on}\" instead");
                cx.notify(Notice::Warned { scope: scope.clone(), message });
                if self.config_map.flags.insert(key.to_owned(), on) != Some(on) {
                    changes.flags = true;
                    changes.keys.push(key.to_owned());
                }
                return;
            }
            Err(failure) => {
                self.config_map.see(key, text);
                // What is no value yet can be one that was mistyped.
                let text = Value::from(text.cloned().unwrap_or_default());
                let failure = without(&[&text], self.told(failure, scope.module(), None));
                return self.config_map.judge(key, Some(failure));
            }
        };
        let is_own = self
            .config_map
            .saves
            .values()
            .any(|save| save.key == key && Some(&*save.value) == value.as_ref());
        self.config_map.see(key, text);
        if is_own {
            return;
        }
        if section.config().map(|config| &**config) == value.as_ref() {
            return self.config_map.judge(key, None);
        }
        let wanted = value.clone().unwrap_or_default();
        match configured(&section, value) {
            Err(failure) => {
                let failure = without(&[&wanted], self.told(failure, scope.module(), None));
                self.config_map.judge(key, Some(failure));
            }
            Ok(section) => {
                self.config_map.judge(key, None);
                self.set_section(cx, scope, section);
                changes.keys.push(key.to_owned());
                match scope {
                    Scope::Global => changes.global = true,
                    Scope::Module(name) => {
                        changes.modules.insert(name.clone());
                    }
                }
            }
        }
    }

    /// Returns what a key of the ConfigMap is about.
    fn owner_of(&self, key: &str) -> Owner {
        if key == values::name::GLOBAL {
            return Owner::Section(Scope::Global);
        }
        if let Some(section) = key.strip_suffix("Enabled")
            && self.keys.contains_key(section)
        {
            return Owner::Enabled(section.to_owned());
        }
        if let Some(section) = key.strip_suffix("Maintenance")
            && let Some(name) = self.keys.get(section)
        {
            return Owner::Maintenance(section.to_owned(), name.clone());
        }
        self.keys.get(key).map_or(Owner::Unknown, |name| Owner::Section(Scope::Module(name.clone())))
    }
}

/// How much memory the values of one key may take, in bytes.
///
/// A few copies of it exist at a time: as configured and as laid over the other layers, before and after an edit, and in
/// what charts are rendered with. A key has a megabyte of text at most; written for people, that stays below.
const MAX_SECTION: usize = 24 << 20;

/// What a key of the ConfigMap is about.
enum Owner {
    Enabled(String),
    Maintenance(String, ModuleName),
    Section(Scope),
    Unknown,
}

/// What the text of a section says.
enum Parsed {
    Flag(bool),
    Section(Option<Value>),
}

fn parsed_section(key: &str, text: Option<&String>) -> Result<Parsed, Failure> {
    let Some(text) = text else { return Ok(Parsed::Section(None)) };
    let value = values::yaml::parse_within(text, MAX_SECTION).map_err(|error| {
        bad_key(key, &format!("bad yaml at key '{key}': {error}"))
            .advise("the last good values stay in force; correct the text of this key")
    })?;
    match value {
        Value::Null if text.trim().is_empty() => {
            Ok(Parsed::Section(Some(Value::Object(serde_json::Map::new()))))
        }
        Value::Bool(on) if key != values::name::GLOBAL => Ok(Parsed::Flag(on)),
        Value::String(word) if key != values::name::GLOBAL && (word == "true" || word == "false") => {
            Ok(Parsed::Flag(word == "true"))
        }
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => Ok(Parsed::Section(Some(value))),
    }
}

/// Returns the section with `value` as what the user configured, or why that can't be.
fn configured(section: &Section, value: Option<Value>) -> Result<Section, Failure> {
    let wrong = |error: &values::SectionError| {
        bad_key(section.key(), &error.to_string())
            .advise("the last good values stay in force; correct this key of the ConfigMap")
    };
    let is_empty =
        value.as_ref().is_none_or(|value| value.as_object().is_some_and(serde_json::Map::is_empty));
    if let Some(value) = value.as_ref().filter(|_| !is_empty) {
        section.validate_config(value).map_err(|error| wrong(&error))?;
    }
    section.with_config(value).map_err(|error| wrong(&error))
}
