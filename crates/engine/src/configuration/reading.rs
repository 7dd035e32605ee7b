//! Reading the ConfigMap and the Secret over it: each key whose text is new is judged, and what is good takes effect.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use values::Section;
use values::patch::Root;

use super::Configuration;
use super::config_map::{Changes, ConfigMap, Flag, Layers};
use super::redaction::without;
use super::sections::section;
use crate::catalog::Module;
use crate::cause::Cause;
use crate::config_object::ConfigObject;
use crate::context::Context;
use crate::event::ConfigData;
use crate::failure::{Failure, FailureKind};
use crate::name::{ModuleName, Scope};
use crate::notice::Notice;
use crate::time::Time;
use crate::view::{ConfigProblem, MaintenanceView};

impl Configuration {
    /// Returns whether the module with this key is in maintenance.
    pub(crate) fn is_in_maintenance(&self, key: &str) -> bool {
        self.config_map.maintenance.contains_key(key)
    }

    /// Returns whether values of the section with this key come from the Secret over the `ConfigMap`.
    pub(crate) fn has_secret_values(&self, key: &str) -> bool {
        self.config_map.layers(key).is_some()
    }

    /// Returns a picture of the maintenance of the module with this key, if it is in one.
    pub(crate) fn maintenance_view(&self, key: &str, now: Time) -> Option<MaintenanceView> {
        let maintenance = self.config_map.maintenance.get(key)?;
        Some(MaintenanceView {
            reason: maintenance.reason.clone(),
            until: maintenance.until.map(|until| until.to_string()),
            ends_in: maintenance.until.map(|until| self.config.time_at(until).since(now)),
        })
    }

    /// Returns when the next maintenance ends by itself.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let ends = self.config_map.maintenance.values().filter_map(|maintenance| maintenance.until);
        ends.min().map(|until| self.config.time_at(until))
    }

    /// Ends the maintenance of modules whose time is over. Returns them.
    pub(crate) fn end_maintenance(&mut self, now: Time) -> Vec<ModuleName> {
        if self.next_wakeup().is_none_or(|at| at > now) {
            return Vec::new();
        }
        let config = Arc::clone(&self.config);
        let mut ended = Vec::new();
        self.config_map.maintenance.retain(|key, maintenance| {
            let is_over = maintenance.until.is_some_and(|until| config.time_at(until) <= now);
            if is_over {
                ended.extend(self.keys.get(key.as_str()).cloned());
            }
            !is_over
        });
        ended
    }

    /// Returns the text of a key of one of the objects, as it was read last.
    pub(crate) fn text_of(&self, object: ConfigObject, key: &str) -> Option<&str> {
        self.config_map.of(object).data()?.0.get(key).map(String::as_str)
    }

    /// Checks what a module might be configured with: against the schemas of its files, and of the plan that is picked.
    ///
    /// # Errors
    ///
    /// What does not fit, in words that can quote it.
    pub(crate) fn check_config(&self, name: &ModuleName, config: &Value) -> Result<(), String> {
        let Some(section) = self.sections.get(name) else { return Ok(()) };
        section.validate_config(config).map_err(|error| error.to_string())
    }

    /// Returns why a section can't be used that never had good content.
    pub(crate) fn blocking_problem(&self, key: &str) -> Option<&Failure> {
        let (_, failure) = self.config_map.problem(key).filter(|_| !self.config_map.good.contains(key))?;
        Some(failure)
    }

    /// Returns what is wrong with the keys of a module: its section, whether it is on, its maintenance.
    pub(crate) fn module_problem(&self, key: &str, now: Time) -> Option<ConfigProblem> {
        let keys = [key.to_owned(), format!("{key}Enabled"), format!("{key}Maintenance")];
        let (object, failure, at) = keys.iter().find_map(|key| self.config_map.problem_since(key))?;
        Some(ConfigProblem { object, failure, since: now.since(at) })
    }

    /// Returns a picture of all that is wrong with the ConfigMap and the Secret over it.
    pub(crate) fn problem_views(&self, now: Time) -> Vec<ConfigProblem> {
        let problems = self.config_map.problems_since();
        problems
            .map(|(object, failure, at)| ConfigProblem { object, failure, since: now.since(at) })
            .collect()
    }

    /// Reads a new version of the ConfigMap or of the Secret over it. Returns what it changed and why, if something may
    /// go on that failed before.
    pub(crate) fn config_object_changed(
        &mut self,
        cx: &mut Context,
        object: ConfigObject,
        version: &str,
        data: Option<Arc<ConfigData>>,
    ) -> Option<(Changes, Cause)> {
        let data = data.unwrap_or_default();
        let is_first_secret = object == ConfigObject::Secret && self.config_map.of(object).data().is_none();
        if !self.config_map.of_mut(object).take(&data) || (is_first_secret && data.0.is_empty()) {
            // A watch that is opened says what was read before; nothing failed because of it.
            return None;
        }
        let problems = self.config_map.problems.clone();
        let keys = self.config_map.of(object).keys(&data);
        let changes = self.read_config_object(cx, object, (&data, version.parse().ok()), keys);
        if is_first_secret {
            self.config_map.distrust_secret();
        }
        self.report_problems(cx);
        let is_repaired = problems != self.config_map.problems;
        let place = self.place(object);
        let cause = Cause::outside(format!("{place} key {} rv {version}", changes.keys.join(", ")));
        (changes.any() || changes.is_edited || is_repaired).then_some((changes, cause))
    }

    /// Records that an object could not be read: what it said before stays in force.
    pub(crate) fn config_object_rejected(
        &mut self,
        cx: &mut Context,
        object: ConfigObject,
        failure: Failure,
    ) {
        let failure = self.told(failure, None, None);
        self.config_map.of_mut(object).reject(failure, cx.now);
        self.report_problems(cx);
    }

    /// Reads an empty ConfigMap if none was read, so that whatever it says first is a change.
    pub(crate) fn assume_config_map(&mut self, cx: &mut Context) {
        if !self.config_map.was_read {
            let nothing = (&ConfigData::default(), None);
            let _ = self.read_config_object(cx, ConfigObject::ConfigMap, nothing, BTreeSet::new());
        }
    }

    pub(super) fn report_problems(&mut self, cx: &mut Context) {
        let now = cx.now;
        let ConfigMap { problems, problems_at, .. } = &mut self.config_map;
        problems_at.retain(|key, _| problems.contains_key(key));
        for key in problems.keys() {
            problems_at.entry(key.clone()).or_insert(now);
        }
        let problems =
            self.config_map.problems_since().map(|(object, failure, _)| (object, failure)).collect();
        cx.notify(Notice::ConfigChecked { problems });
    }

    /// Reads those of `keys` of an object whose text is new.
    pub(super) fn read_config_object(
        &mut self,
        cx: &mut Context,
        object: ConfigObject,
        (data, version): (&ConfigData, Option<u64>),
        keys: BTreeSet<String>,
    ) -> Changes {
        let mut changes = Changes::default();
        let mut has_news = false;
        if !std::mem::replace(&mut self.config_map.was_read, true) {
            let sections = self.keys.keys().map(|key| &**key).chain([values::name::GLOBAL]);
            self.config_map.good =
                sections.filter(|key| !data.0.contains_key(*key)).map(str::to_owned).collect();
        }
        for key in keys {
            let text = data.0.get(&key);
            let owner = self.owner_of(&key);
            let is_unknown = matches!(owner, Owner::Unknown) && text.is_some();
            has_news |= self.config_map.of_mut(object).set_unknown(&key, is_unknown);
            if !self.config_map.of(object).is_new(&key, text, version) {
                continue;
            }
            self.config_map.of_mut(object).see(&key, text);
            match owner {
                Owner::Section(scope) => self.read_section(cx, &scope, (object, &key), &mut changes),
                Owner::Enabled(section, name) => {
                    if self.config_map.read_flag(object, &section, &key) {
                        self.undecided.add(&name);
                        changes.flags = true;
                        changes.keys.push(key);
                    }
                }
                Owner::Maintenance(section, name) => {
                    let is_over = |until| self.config.time_at(until) <= cx.now;
                    if self.config_map.read_maintenance(object, (&section, &key), is_over) {
                        changes.modules.insert(name);
                        changes.keys.push(key);
                    }
                }
                // Hooks can read it, whatever it says.
                Owner::Unknown => changes.is_edited = true,
            }
        }
        let unknown = self.config_map.of(object).unknown();
        if has_news && !unknown.is_empty() {
            let names = unknown.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message = format!(
                "{} has values for unknown modules: {names}; they count once there are such",
                self.place(object)
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        changes
    }

    /// Reads the section of `scope`, of which `object` has another text in `key`.
    fn read_section(
        &mut self,
        cx: &mut Context,
        scope: &Scope,
        (object, key): (ConfigObject, &str),
        changes: &mut Changes,
    ) {
        let Some(section) = self.section(scope).cloned() else { return };
        let value = match parsed_section(object, key, self.config_map.of(object).text(key)) {
            Ok(Parsed::Section(value)) => value.map(Arc::new),
            Ok(Parsed::Flag(on)) => {
                // An old spelling: the section itself says whether the module is on.
                self.config_map.judge(object, key, None);
                let message =
                    format!("{object} key {key} is a plain {on}; write {key}Enabled: \"{on}\" instead");
                cx.notify(Notice::Warned { scope: scope.clone(), message });
                let flag = Flag { on, object };
                if self.config_map.flags.insert(key.to_owned(), flag) != Some(flag) {
                    self.undecided.add_all();
                    changes.flags = true;
                    changes.keys.push(key.to_owned());
                }
                return;
            }
            Err(failure) => {
                // What is no value yet can be one that was mistyped.
                let text = Value::from(self.config_map.of(object).text(key).cloned().unwrap_or_default());
                let failure = without(&[&text], self.told(failure, scope.module(), None));
                return self.config_map.judge(object, key, Some(failure));
            }
        };
        if self.config_map.is_being_saved(object, key, value.as_deref()) {
            return;
        }
        changes.is_edited = true;
        let wanted = value.clone().unwrap_or_default();
        let (section, other_is_good) = match self.with_layer(&section, object, value) {
            Ok(taken) => taken,
            Err(failure) => {
                let failure = without(&[&wanted], self.told(failure, scope.module(), None));
                return self.config_map.judge(object, key, Some(failure));
            }
        };
        self.config_map.judge(object, key, None);
        if other_is_good {
            self.config_map.judge(object.other(), key, None);
        }
        let Some(section) = section else { return };
        self.set_section(cx, scope, section);
        changes.keys.push(key.to_owned());
        match scope {
            Scope::Global => changes.global = true,
            Scope::Module(name) => {
                changes.modules.insert(name.clone());
            }
        }
    }

    /// Returns the section that a module would have if it came: the values of its files, and what people wrote before it is there.
    ///
    /// # Errors
    ///
    /// If they do not fit together.
    pub(super) fn section_to_come(&self, new: &Module) -> Result<Section, Failure> {
        let unfit = |error: &values::SectionError| Failure::of(FailureKind::Values, error);
        let root = Root::Module(new.key.to_string());
        let section = section(root, &new.static_values, &new.schemas);
        let mut section =
            section.with_presets(Arc::clone(&new.plans.presets)).map_err(|error| unfit(&error))?;
        let mut config = Value::Object(serde_json::Map::new());
        for object in ConfigObject::ALL {
            let text = self.config_map.of(object).text(&new.key);
            if let Parsed::Section(Some(value)) = parsed_section(object, &new.key, text)? {
                values::merge::merge(&mut config, &value)
                    .map_err(|error| object.bad_key(&new.key, &error.to_string()))?;
            }
        }
        if let Some(taken) = configured(&section, ConfigObject::ConfigMap, Some(Arc::new(config)))? {
            section = taken;
        }
        Ok(section)
    }

    /// Returns whether people switched a module on before it is there.
    pub(crate) fn is_switched_on(&self, name: &ModuleName) -> bool {
        let key = format!("{}Enabled", values::name::camel(name.as_str()));
        let said = ConfigObject::ALL.map(|object| self.text_of(object, &key));
        // What the Secret says counts more, and comes last.
        said.into_iter().flatten().next_back().is_some_and(|text| text.trim() == "true")
    }

    /// Lays a new value of one object and that of the other one over another, and records both if they are good together.
    ///
    /// Returns the section if it differs, and whether the present text of the other object is part of it. If the two are
    /// not good together, the other object's last good value is taken.
    fn with_layer(
        &mut self,
        section: &Section,
        object: ConfigObject,
        value: Option<Arc<Value>>,
    ) -> Result<(Option<Section>, bool), Failure> {
        let (key, other) = (section.key(), object.other());
        let layers = self.config_map.layers(key).cloned();
        let in_force = match other {
            ConfigObject::ConfigMap => {
                layers.map_or_else(|| section.config().cloned(), |layers| layers.plain)
            }
            ConfigObject::Secret => layers.map(|layers| layers.secret),
        };
        let is_bad = self.config_map.problems.contains_key(&(key.to_owned(), other));
        let text = self.config_map.of(other).text(key).filter(|_| is_bad);
        if let Some(text) = text
            && let Ok(Parsed::Section(Some(now))) = parsed_section(other, key, Some(text))
            && let Ok(taken) = self.laid(section, object, value.clone(), Some(Arc::new(now)))
        {
            return Ok((taken, true));
        }
        self.laid(section, object, value, in_force).map(|taken| (taken, false))
    }

    /// Records the values of both objects as those of a section. Returns it if it differs.
    fn laid(
        &mut self,
        section: &Section,
        object: ConfigObject,
        value: Option<Arc<Value>>,
        other: Option<Arc<Value>>,
    ) -> Result<Option<Section>, Failure> {
        let (plain, secret) = match object {
            ConfigObject::ConfigMap => (value, other),
            ConfigObject::Secret => (other, value),
        };
        let key = section.key();
        let Some(secret) = secret else {
            let taken = configured(section, object, plain)?;
            self.config_map.set_layers(key, None);
            return Ok(taken);
        };
        let mut config = plain.as_deref().cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        values::merge::merge(&mut config, &secret).map_err(|error| {
            object
                .bad_key(key, &error.to_string())
                .advise("the last good values stay in force; nest the values of this key less deeply")
        })?;
        let taken = configured(section, object, Some(Arc::new(config)))?;
        self.config_map.set_layers(key, Some(Layers { plain, secret }));
        Ok(taken)
    }

    /// Returns what a key of the ConfigMap is about.
    fn owner_of(&self, key: &str) -> Owner {
        if key == values::name::GLOBAL {
            return Owner::Section(Scope::Global);
        }
        if let Some(section) = key.strip_suffix("Enabled")
            && let Some(name) = self.keys.get(section)
        {
            return Owner::Enabled(section.to_owned(), name.clone());
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
const MAX_SECTION: usize = 16 << 20;

/// What a key of the ConfigMap is about.
enum Owner {
    Enabled(String, ModuleName),
    Maintenance(String, ModuleName),
    Section(Scope),
    Unknown,
}

/// What the text of a section says.
enum Parsed {
    Flag(bool),
    Section(Option<Value>),
}

fn parsed_section(object: ConfigObject, key: &str, text: Option<&String>) -> Result<Parsed, Failure> {
    let Some(text) = text else { return Ok(Parsed::Section(None)) };
    let value = values::yaml::parse_within(text, MAX_SECTION).map_err(|error| {
        object
            .bad_key(key, &format!("bad yaml at key '{key}': {error}"))
            .advise("the last good values stay in force; correct the text of this key")
    })?;
    // A plain `true` for fooEnabled is about foo, even where there is a module foo-enabled, and nobody knows foo yet.
    let is_switch = key != values::name::GLOBAL && values::name::flagged_key(key).is_none();
    match value {
        Value::Null if text.trim().is_empty() => {
            Ok(Parsed::Section(Some(Value::Object(serde_json::Map::new()))))
        }
        Value::Bool(on) if is_switch => Ok(Parsed::Flag(on)),
        Value::String(word) if is_switch && (word == "true" || word == "false") => {
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

/// Returns the section with `value` as what the user configured if it differs, or why that can't be.
fn configured(
    section: &Section,
    object: ConfigObject,
    value: Option<Arc<Value>>,
) -> Result<Option<Section>, Failure> {
    if section.config() == value.as_ref() {
        return Ok(None);
    }
    let wrong = |error: &values::SectionError| {
        object
            .bad_key(section.key(), &error.to_string())
            .advise(format!("the last good values stay in force; correct this key of the {object}"))
    };
    let is_empty =
        value.as_ref().is_none_or(|value| value.as_object().is_some_and(serde_json::Map::is_empty));
    if let Some(value) = value.as_ref().filter(|_| !is_empty) {
        section.validate_config(value).map_err(|error| wrong(&error))?;
    }
    section.with_config(value).map(Some).map_err(|error| wrong(&error))
}
