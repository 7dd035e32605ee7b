//! What the user wrote into the ConfigMap, key by key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use values::Section;

use crate::cause::Cause;
use crate::engine::Engine;
use crate::event::ConfigData;
use crate::failure::{Failure, FailureKind};
use crate::name::{ModuleName, QueueName, RunId, Scope};
use crate::notice::Notice;
use crate::time::Time;

/// The values of `<key>Maintenance` that switch maintenance on.
const MAINTENANCE: [&str; 2] = ["NoResourceReconciliation", "noresourcereconciliation"];

/// The ConfigMap as it was understood. A bad key keeps what it said before.
#[derive(Debug, Default)]
pub(crate) struct UserConfig {
    /// The text of each key as it was taken in.
    seen: BTreeMap<String, String>,
    /// The last data, for modules that come later.
    data: Option<Arc<ConfigData>>,
    flags: BTreeMap<String, bool>,
    maintenance: BTreeSet<String>,
    /// What is wrong, by key.
    problems: BTreeMap<String, Failure>,
    /// Since when.
    problems_at: BTreeMap<String, Time>,
    /// Sections that had good content once; to be absent is good. The modules of others have to wait.
    good: BTreeSet<String>,
    /// Why the ConfigMap could not be read at all.
    rejected: Option<(Failure, Time)>,
    unknown: BTreeSet<String>,
    /// It was read once.
    was_read: bool,
    saves: BTreeMap<RunId, PendingSave>,
    /// The version that our last write of a key made.
    saved_versions: BTreeMap<String, u64>,
}

/// A write of the ConfigMap that is in flight.
#[derive(Debug)]
pub(crate) struct PendingSave {
    /// The key.
    key: String,
    /// What is written.
    text: String,
    /// What that means.
    pub(crate) value: Arc<Value>,
}

/// What a new version of the ConfigMap changed.
#[derive(Debug, Default)]
struct Changes {
    global: bool,
    modules: BTreeSet<ModuleName>,
    flags: bool,
    keys: Vec<String>,
}

impl UserConfig {
    /// Returns what the ConfigMap says about `<key>Enabled`.
    pub(crate) fn enabled_flag(&self, key: &str) -> Option<bool> {
        self.flags.get(key).copied()
    }

    /// Returns whether the module with this key is in maintenance.
    pub(crate) fn is_in_maintenance(&self, key: &str) -> bool {
        self.maintenance.contains(key)
    }

    /// Returns why a section can't be used that never had good content.
    pub(crate) fn blocking_problem(&self, key: &str) -> Option<&Failure> {
        self.problems.get(key).filter(|_| !self.good.contains(key))
    }

    /// Returns what is wrong with a key.
    pub(crate) fn problem(&self, key: &str) -> Option<&Failure> {
        self.problems.get(key)
    }

    /// Returns what is wrong with the keys of a module: its section, whether it is on, its maintenance.
    pub(crate) fn module_problem(&self, key: &str) -> Option<&Failure> {
        let keys = [key.to_owned(), format!("{key}Enabled"), format!("{key}Maintenance")];
        keys.iter().find_map(|key| self.problems.get(key))
    }

    /// Returns all that is wrong, by key.
    pub(crate) fn problems(&self) -> Vec<Failure> {
        self.problems_since().map(|(failure, _)| failure).collect()
    }

    /// Returns the same, each with the time since when it is so.
    pub(crate) fn problems_since(&self) -> impl Iterator<Item = (Failure, Time)> {
        let at = |key: &String| self.problems_at.get(key).copied().unwrap_or_default();
        let of_keys = self.problems.iter().map(move |(key, failure)| (failure.clone(), at(key)));
        self.rejected.iter().cloned().chain(of_keys)
    }

    /// Remembers what is being written, so that it is not taken for somebody else's change.
    pub(crate) fn save_began(&mut self, run: RunId, key: String, text: String, value: Arc<Value>) {
        self.saves.insert(run, PendingSave { key, text, value });
    }

    /// Forgets what was being written.
    pub(crate) fn save_ended(&mut self, run: RunId) -> Option<PendingSave> {
        self.saves.remove(&run)
    }

    /// Takes in that the ConfigMap has what we wrote, since `version`.
    pub(crate) fn saved(&mut self, save: PendingSave, version: &str) {
        if let Ok(version) = version.parse() {
            self.saved_versions.insert(save.key.clone(), version);
        }
        if let Some(data) = &mut self.data {
            Arc::make_mut(data).0.insert(save.key.clone(), save.text.clone());
        }
        self.seen.insert(save.key, save.text);
    }

    /// Takes in that a section of the ConfigMap is ours and good.
    pub(crate) fn config_committed(&mut self, key: &str, _config: Arc<Value>) {
        self.problems.remove(key);
        self.problems_at.remove(key);
        self.good.insert(key.to_owned());
    }

    /// Returns whether the text of `key` is worth reading.
    fn is_news(&self, key: &str, text: Option<&String>, version: Option<u64>) -> bool {
        let is_stale =
            matches!((version, self.saved_versions.get(key)), (Some(now), Some(saved)) if now < *saved);
        !is_stale && self.seen.get(key) != text
    }

    fn see(&mut self, key: &str, text: Option<&String>) {
        match text {
            Some(text) => self.seen.insert(key.to_owned(), text.clone()),
            None => self.seen.remove(key),
        };
    }

    /// Records whether a key is good.
    fn judge(&mut self, key: &str, problem: Option<Failure>) {
        match problem {
            None => {
                self.problems.remove(key);
                self.good.insert(key.to_owned());
            }
            Some(failure) => {
                self.problems.insert(key.to_owned(), failure);
            }
        }
    }
}

impl Engine {
    /// Takes in a new version of the ConfigMap.
    pub(crate) fn config_changed(&mut self, version: &str, data: Option<Arc<ConfigData>>) {
        let was_rejected = self.user.rejected.take().is_some();
        let data = data.unwrap_or_default();
        if !was_rejected && self.user.data.as_ref() == Some(&data) {
            // A watch that is opened says what was read before; nothing failed because of it.
            return;
        }
        self.user.data = Some(Arc::clone(&data));
        let problems = self.user.problems.clone();
        let changes = self.read_config(&data, version.parse().ok());
        self.tell_config();
        let is_repaired = problems != self.user.problems;
        self.react_to_config(&changes, is_repaired, &format!(" rv {version}"));
    }

    /// Takes in that the ConfigMap could not be read: what it said before stays in force.
    pub(crate) fn config_rejected(&mut self, failure: Failure) {
        let since = self.user.rejected.take().map_or(self.now, |(_, since)| since);
        self.user.rejected = Some((failure, since));
        self.tell_config();
    }

    /// Reads the ConfigMap once more for modules that are new or whose files changed.
    pub(crate) fn reread_config(&mut self, names: &BTreeSet<ModuleName>) {
        let Some(data) = self.user.data.clone() else { return };
        for name in names {
            let Some(module) = self.modules.get(name) else { continue };
            let key = module.spec.key.to_string();
            if !data.0.contains_key(&key) {
                self.user.good.insert(key.clone());
            }
            for key in [format!("{key}Enabled"), format!("{key}Maintenance"), key] {
                self.user.seen.remove(&key);
            }
        }
        let _ = self.read_config(&data, None);
        self.tell_config();
    }

    /// Takes no ConfigMap for an empty one, so that whatever it says first is a change.
    pub(crate) fn assume_config(&mut self) {
        if !self.user.was_read {
            let _ = self.read_config(&ConfigData::default(), None);
        }
    }

    fn tell_config(&mut self) {
        let now = self.now;
        let UserConfig { problems, problems_at, .. } = &mut self.user;
        problems_at.retain(|key, _| problems.contains_key(key));
        for key in problems.keys() {
            problems_at.entry(key.clone()).or_insert(now);
        }
        let problems = self.user.problems();
        self.notify(Notice::ConfigChecked { problems });
    }

    /// Takes in every key whose text is new.
    fn read_config(&mut self, data: &ConfigData, version: Option<u64>) -> Changes {
        let mut changes = Changes::default();
        let seen: BTreeSet<String> = self.user.seen.keys().chain(data.0.keys()).cloned().collect();
        let mut unknown = BTreeSet::new();
        if !std::mem::replace(&mut self.user.was_read, true) {
            let sections = self.keys.keys().map(|key| &**key).chain([values::name::GLOBAL]);
            self.user.good = sections.filter(|key| !data.0.contains_key(*key)).map(str::to_owned).collect();
        }
        for key in seen {
            let text = data.0.get(&key);
            let owner = self.owner_of(&key);
            if matches!(owner, Owner::Unknown) && text.is_some() {
                unknown.insert(key.clone());
            }
            if !self.user.is_news(&key, text, version) {
                continue;
            }
            match owner {
                Owner::Section(scope) => self.read_section(&scope, &key, text, &mut changes),
                Owner::Enabled(section) => {
                    self.user.see(&key, text);
                    if self.read_flag(&section, &key, text) {
                        changes.flags = true;
                        changes.keys.push(key);
                    }
                }
                Owner::Maintenance(section, name) => {
                    self.user.see(&key, text);
                    if self.read_maintenance(&section, &key, text) {
                        changes.modules.insert(name);
                        changes.keys.push(key);
                    }
                }
                Owner::Unknown => self.user.see(&key, text),
            }
        }
        if !unknown.is_empty() && unknown != self.user.unknown {
            let names: Vec<&str> = unknown.iter().map(String::as_str).collect();
            let message = format!(
                "ConfigMap {}/{} has values for unknown modules: {}; they are ignored",
                self.config.namespace,
                self.config.config_map,
                names.join(", ")
            );
            self.notify(Notice::Warned { scope: Scope::Global, message });
        }
        self.user.unknown = unknown;
        changes
    }

    fn read_section(&mut self, scope: &Scope, key: &str, text: Option<&String>, changes: &mut Changes) {
        let Some(section) = self.section(scope).cloned() else { return };
        let value = match parsed_section(key, text) {
            Ok(Parsed::Section(value)) => value,
            Ok(Parsed::Flag(on)) => {
                // An old spelling: the section itself says whether the module is on.
                self.user.see(key, text);
                self.user.judge(key, None);
                let message =
                    format!("ConfigMap key {key} is a plain {on}; write {key}Enabled: \"{on}\" instead");
                self.notify(Notice::Warned { scope: scope.clone(), message });
                if self.user.flags.insert(key.to_owned(), on) != Some(on) {
                    changes.flags = true;
                    changes.keys.push(key.to_owned());
                }
                return;
            }
            Err(failure) => {
                self.user.see(key, text);
                return self.user.judge(key, Some(failure));
            }
        };
        let is_own =
            self.user.saves.values().any(|save| save.key == key && Some(&*save.value) == value.as_ref());
        self.user.see(key, text);
        if is_own {
            return;
        }
        if section.config().map(|config| &**config) == value.as_ref() {
            return self.user.judge(key, None);
        }
        match configured(&section, value) {
            Err(failure) => self.user.judge(key, Some(failure)),
            Ok(section) => {
                self.user.judge(key, None);
                self.set_section(scope, section);
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

    fn read_flag(&mut self, section: &str, key: &str, text: Option<&String>) -> bool {
        match text.map(|text| (text.trim(), text)) {
            None => {
                self.user.judge(key, None);
                self.user.flags.remove(section).is_some()
            }
            Some((flag @ ("true" | "false"), _)) => {
                self.user.judge(key, None);
                let on = flag == "true";
                self.user.flags.insert(section.to_owned(), on) != Some(on)
            }
            Some((_, text)) => {
                let failure = bad_key(
                    key,
                    &format!("must be true or false, not {} characters of something else", text.len()),
                );
                self.user.judge(key, Some(failure));
                false
            }
        }
    }

    fn read_maintenance(&mut self, section: &str, key: &str, text: Option<&String>) -> bool {
        match text.map(|text| text.trim()) {
            None | Some("") => {
                self.user.judge(key, None);
                self.user.maintenance.remove(section)
            }
            Some(word) if MAINTENANCE.contains(&word) => {
                self.user.judge(key, None);
                self.user.maintenance.insert(section.to_owned())
            }
            Some(_) => {
                let failure = bad_key(
                    key,
                    &format!("must be {} or empty", MAINTENANCE.first().copied().unwrap_or_default()),
                );
                self.user.judge(key, Some(failure));
                false
            }
        }
    }

    /// Does what a changed configuration asks for.
    fn react_to_config(&mut self, changes: &Changes, is_repaired: bool, version: &str) {
        let is_change = changes.global || changes.flags || !changes.modules.is_empty();
        if !is_change && !is_repaired {
            return;
        }
        // Whatever failed may be repaired now, also by a key that says what it said before.
        for queue in self.queues.names() {
            if queue.is_main() || queue.as_str().starts_with("parallel_queue_") {
                self.queues.cancel_backoff(&queue);
            }
        }
        if !is_change || !self.converge.has_begun {
            return;
        }
        let place = format!("ConfigMap {}/{}", self.config.namespace, self.config.config_map);
        let cause = Cause::outside(format!("{place} key {}{version}", changes.keys.join(", ")));
        if changes.global {
            self.restart_converge("ReloadAll-After-KubeConfigChange", "ReloadAllModules", false, &cause);
        } else {
            self.look_again(
                changes.modules.clone(),
                "KubeConfig-Changed-Modules",
                "ReloadAllModules",
                &cause,
            );
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

    /// Lets the first tasks of `main` be tried at once.
    pub(crate) fn cancel_main_backoff(&mut self) {
        self.queues.cancel_backoff(&QueueName::main());
    }
}

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
    let value = values::yaml::parse(text).map_err(|error| {
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

fn bad_key(key: &str, what: &str) -> Failure {
    Failure::new(FailureKind::Values, format!("ConfigMap key {key}: {what}"))
}
