//! What the user wrote into the ConfigMap and the Secret over it, key by key. See docs/modules.md#values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use redaction::Secrets;
use serde_json::Value;

use super::earlier_secrets::EarlierSecrets;
use super::maintenance::Maintenance;
use super::texts::ConfigTexts;
use crate::config_object::ConfigObject;
use crate::failure::Failure;
use crate::name::{ModuleName, RunId};
use crate::time::Time;

/// The ConfigMap and the Secret over it, as they were understood. A bad key keeps what it said before.
#[derive(Debug, Default)]
pub(super) struct ConfigMap {
    plain: ConfigTexts,
    secret: ConfigTexts,
    /// What is in force of the sections that the Secret has a part of.
    layers: BTreeMap<String, Layers>,
    /// What was in force before of the Secret.
    earlier: EarlierSecrets,
    /// The texts of both, until one of them changes.
    secrets: OnceLock<Arc<Secrets<'static>>>,
    pub(super) flags: BTreeMap<String, Flag>,
    pub(super) maintenance: BTreeMap<String, Maintenance>,
    /// What is wrong, by key, and since when.
    pub(super) problems: BTreeMap<(String, ConfigObject), Failure>,
    pub(super) problems_at: BTreeMap<(String, ConfigObject), Time>,
    /// Sections that had good content once; to be absent is good. The modules of others have to wait.
    pub(super) good: BTreeSet<String>,
    /// It was read once.
    pub(super) was_read: bool,
    pub(super) saves: BTreeMap<RunId, PendingSave>,
}

/// Whether a module is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Flag {
    pub(super) on: bool,
    /// Who says so.
    pub(super) object: ConfigObject,
}

/// The parts of a section, of which the second lies over the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    /// What the ConfigMap says.
    pub(super) plain: Option<Arc<Value>>,
    /// What the Secret says.
    pub(super) secret: Arc<Value>,
}

/// A write of a key that is in flight.
#[derive(Debug)]
pub(super) struct PendingSave {
    /// The object.
    pub(super) object: ConfigObject,
    /// The key.
    pub(super) key: String,
    /// What is written.
    pub(super) text: String,
    /// What that means.
    pub(super) value: Arc<Value>,
}

/// What a new version of the ConfigMap changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The global values differ.
    pub(crate) global: bool,
    /// The values or the maintenance of these modules differ.
    pub(crate) modules: BTreeSet<ModuleName>,
    /// It says something else about which modules are on.
    pub(super) flags: bool,
    /// Somebody wrote a key, which may say what it said before, or nothing to the operator.
    pub(super) is_edited: bool,
    /// The keys that led to it.
    pub(super) keys: Vec<String>,
}

impl Changes {
    /// Returns whether anything is other than before.
    pub(crate) fn any(&self) -> bool {
        self.global || self.flags || !self.modules.is_empty()
    }
}

impl ConfigMap {
    /// Returns what was read from one of the objects.
    pub(super) fn of(&self, object: ConfigObject) -> &ConfigTexts {
        match object {
            ConfigObject::ConfigMap => &self.plain,
            ConfigObject::Secret => &self.secret,
        }
    }

    /// Returns what was read from one of the objects, to be changed.
    pub(super) fn of_mut(&mut self, object: ConfigObject) -> &mut ConfigTexts {
        match object {
            ConfigObject::ConfigMap => &mut self.plain,
            ConfigObject::Secret => &mut self.secret,
        }
    }

    /// Returns the object whose text of a key counts where only one can: the Secret if it has the key.
    pub(super) fn holder(&self, key: &str) -> ConfigObject {
        match self.secret.text(key) {
            Some(_) => ConfigObject::Secret,
            None => ConfigObject::ConfigMap,
        }
    }

    /// Returns all that is wrong, each with the time since when it is so.
    pub(super) fn problems_since(&self) -> impl Iterator<Item = (ConfigObject, Failure, Time)> {
        let rejected = ConfigObject::ALL.into_iter().filter_map(|object| {
            let (failure, at) = self.of(object).rejected()?.clone();
            Some((object, failure, at))
        });
        let at = |key: &(String, ConfigObject)| self.problems_at.get(key).copied().unwrap_or_default();
        rejected.chain(self.problems.iter().map(move |(key, failure)| (key.1, failure.clone(), at(key))))
    }

    /// Returns what is wrong with a key of one of the objects.
    pub(super) fn problem(&self, key: &str) -> Option<(ConfigObject, &Failure)> {
        ConfigObject::ALL.into_iter().find_map(|object| {
            let failure = self.problems.get(&(key.to_owned(), object))?;
            Some((object, failure))
        })
    }

    /// Returns the same with the time since when it is so.
    pub(super) fn problem_since(&self, key: &str) -> Option<(ConfigObject, Failure, Time)> {
        let (object, failure) = self.problem(key)?;
        let at = self.problems_at.get(&(key.to_owned(), object)).copied().unwrap_or_default();
        Some((object, failure.clone(), at))
    }

    /// Takes sections for never good that are bad in a Secret that was read for the first time.
    pub(super) fn distrust_secret(&mut self) {
        for (key, object) in self.problems.keys() {
            if *object == ConfigObject::Secret {
                self.good.remove(key);
            }
        }
    }

    /// Records what is being written, so that it does not count as a change by somebody else.
    pub(super) fn save_began(&mut self, run: RunId, save: PendingSave) {
        self.saves.insert(run, save);
    }

    /// Returns whether `value` is what is being written into a key.
    pub(super) fn is_being_saved(&self, object: ConfigObject, key: &str, value: Option<&Value>) -> bool {
        let is_it = |save: &PendingSave| save.object == object && save.key == key;
        self.saves.values().any(|save| is_it(save) && Some(&*save.value) == value)
    }

    /// Records that an object has what we wrote, since `version`.
    pub(super) fn saved(&mut self, save: &PendingSave, version: &str) {
        self.of_mut(save.object).saved(&save.key, &save.text, version);
    }

    /// Returns the parts of a section, if the Secret has one.
    pub(super) fn layers(&self, key: &str) -> Option<&Layers> {
        self.layers.get(key)
    }

    /// Records the parts of a section that are in force from now on; `None` if the Secret has none.
    pub(super) fn set_layers(&mut self, key: &str, layers: Option<Layers>) {
        self.secrets = OnceLock::new();
        let secret = layers.as_ref().map(|layers| Arc::clone(&layers.secret));
        let before = match layers {
            Some(layers) => self.layers.insert(key.to_owned(), layers),
            None => self.layers.remove(key),
        };
        if let Some(before) = before.filter(|before| secret.as_ref() != Some(&before.secret)) {
            self.earlier.add(before.secret);
        }
    }

    /// Records what was written into the objects as what is in force of a section.
    pub(super) fn saved_layers(&mut self, key: &str, saved: &[(ConfigObject, Arc<Value>)]) {
        let Some(mut layers) = self.layers(key).cloned() else { return };
        for (object, value) in saved {
            match object {
                ConfigObject::ConfigMap => layers.plain = Some(Arc::clone(value)),
                ConfigObject::Secret => layers.secret = Arc::clone(value),
            }
        }
        self.set_layers(key, Some(layers));
    }

    /// Returns what the Secret says, and what it said before.
    pub(super) fn secrets(&self) -> Arc<Secrets<'static>> {
        let parts = || self.layers.values().map(|layers| &*layers.secret).chain(self.earlier.iter());
        let secrets = || Arc::new(Secrets::all_of(&parts().collect::<Vec<_>>()).into_owned());
        Arc::clone(self.secrets.get_or_init(secrets))
    }

    /// Records that a section is ours and good.
    pub(super) fn config_committed(&mut self, key: &str) {
        self.forget_problems(key);
        self.good.insert(key.to_owned());
    }

    fn forget_problems(&mut self, key: &str) {
        for object in ConfigObject::ALL {
            self.problems.remove(&(key.to_owned(), object));
        }
    }

    /// Forgets what was read about a module that is gone. If it comes back, what the objects say then counts.
    pub(super) fn forget_module(&mut self, key: &str) {
        self.flags.remove(key);
        self.maintenance.remove(key);
        self.good.remove(key);
        self.set_layers(key, None);
        for key in keys_of(key) {
            self.forget_texts(&key);
            self.forget_problems(&key);
        }
    }

    /// Forgets the texts of a key, so that they are read again.
    pub(super) fn forget_texts(&mut self, key: &str) {
        for object in ConfigObject::ALL {
            self.of_mut(object).forget(key);
        }
    }

    /// Records whether a key is good.
    pub(super) fn judge(&mut self, object: ConfigObject, key: &str, problem: Option<Failure>) {
        let place = (key.to_owned(), object);
        match problem {
            None => {
                self.problems.remove(&place);
                self.good.insert(key.to_owned());
            }
            Some(failure) => drop(self.problems.insert(place, failure)),
        }
    }

    /// Reads `<key>Enabled` of `object`. Returns whether a module is on for another reason, or not any more.
    pub(super) fn read_flag(&mut self, object: ConfigObject, section: &str, key: &str) -> bool {
        let text = self.of(object).text(key).map(|text| (text.trim().to_owned(), text.len()));
        let problem = match text {
            None => None,
            Some((flag, _)) if flag == "true" || flag == "false" => None,
            Some((_, length)) => {
                let what = format!("must be true or false, not {length} characters of something else");
                Some(object.bad_key(key, &what))
            }
        };
        let is_bad = problem.is_some();
        self.judge(object, key, problem);
        if is_bad || (object == ConfigObject::ConfigMap && self.holder(key) == ConfigObject::Secret) {
            return false;
        }
        let holder = self.holder(key);
        let word = self.of(holder).text(key).map(|text| text.trim());
        let flag = match word {
            Some("true") => Some(Flag { on: true, object: holder }),
            Some("false") => Some(Flag { on: false, object: holder }),
            // What the other object says can't be used, which was said when it was read.
            Some(_) => return false,
            None => None,
        };
        let was = match flag {
            Some(flag) => self.flags.insert(section.to_owned(), flag),
            None => self.flags.remove(section),
        };
        was != flag
    }

    /// Reads `<key>Maintenance` of `object`. Returns whether it says something else than before. One that `is_over` is none.
    pub(super) fn read_maintenance(
        &mut self,
        object: ConfigObject,
        (section, key): (&str, &str),
        is_over: impl Fn(Timestamp) -> bool,
    ) -> bool {
        let read = |text: Option<&str>| text.map_or(Ok(None), Maintenance::read);
        if let Err(what) = read(self.of(object).text(key).map(String::as_str)) {
            self.judge(object, key, Some(object.bad_key(key, &what)));
            return false;
        }
        self.judge(object, key, None);
        let holder = self.holder(key);
        // What the other object says can't be used, which was said when it was read.
        let Ok(maintenance) = read(self.of(holder).text(key).map(String::as_str)) else { return false };
        let maintenance = maintenance.filter(|it| !it.until.is_some_and(&is_over)).map(|it| Maintenance {
            // No output shows what the Secret says.
            reason: it.reason.filter(|_| holder == ConfigObject::ConfigMap),
            ..it
        });
        let was_on = self.maintenance.contains_key(section);
        let is_on = maintenance.is_some();
        match maintenance {
            Some(maintenance) => drop(self.maintenance.insert(section.to_owned(), maintenance)),
            None => drop(self.maintenance.remove(section)),
        }
        was_on != is_on
    }
}

/// Returns the keys that are about the module with the key `key`.
pub(super) fn keys_of(key: &str) -> [String; 3] {
    [format!("{key}Enabled"), format!("{key}Maintenance"), key.to_owned()]
}
