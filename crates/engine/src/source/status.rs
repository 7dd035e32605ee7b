//! The status of a configuration: what its object says, and what it is to say.
//!
//! It is long because each of its fields is read, written and compared here, and nowhere else.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::addon::{AddonReason, Bundle, RegisteredAddon, WithheldVersion};
use crate::name::ModuleName;

/// How many addons a status lists.
pub(super) const LINES: usize = 500;

/// The name of a line that says how many are not listed.
const MORE: &str = "more";

/// How many letters a message in a status has.
const MESSAGE: usize = 1_000;

/// The type of our condition.
const READY: &str = "Ready";

/// The type of our condition while nothing is done for an object.
const SUSPENDED: &str = "Suspended";

/// The reason of our condition while an object is being deleted.
const DELETING: &str = "Deleting";

/// What the status of an object says, but for times.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) phase: SourcePhase,
    pub(super) observed_generation: i64,
    /// How many of its modules are in force, of how many it offers or retains: `1/2`. A column of kubectl shows one field, and
    /// counts nothing.
    pub(super) modules: String,
    pub(super) repositories: Vec<RepositoryLine>,
    /// Why it is not ready, or what is missing in the list, in one line.
    #[serde(skip)]
    pub(super) message: String,
    /// Whether it says that the object is being deleted.
    #[serde(skip)]
    pub(super) is_deleting: bool,
    /// Whether it says that nothing is done for the object.
    #[serde(skip)]
    pub(super) is_suspended: bool,
}

/// How far a configuration is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, strum::IntoStaticStr)]
pub(super) enum SourcePhase {
    Pending,
    Ready,
    Failed,
    /// It was not looked at.
    #[default]
    #[serde(rename = "", other)]
    #[strum(to_string = "New")]
    None,
}

/// What became of a repository.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RepositoryLine {
    /// As it is in the spec.
    pub(super) url: String,
    pub(super) status: SourcePhase,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    pub(super) addons: Vec<AddonLine>,
}

/// What became of an addon.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AddonLine {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) digest: String,
    pub(super) status: SourcePhase,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) module: Option<ModuleLine>,
}

impl AddonLine {
    /// Returns for how many lines this one stands that are not listed; 0 for the line of an addon.
    pub(super) fn unlisted(&self) -> usize {
        let is_of_addon = self.name != MORE || !self.version.is_empty() || !self.digest.is_empty();
        let count = self.message.split(' ').next().filter(|_| !is_of_addon);
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

/// What the module of an addon is doing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct ModuleLine {
    pub(super) name: ModuleName,
    pub(super) state: ModuleLineState,
    /// Why its last run failed, for those who see nothing else of the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

/// What the module of an addon is doing, in one word.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, strum::IntoStaticStr)]
pub(super) enum ModuleLineState {
    /// It is on, and did not run yet.
    Enabled,
    /// Its last run failed.
    Error,
    /// It goes on although the addon is registered no more.
    Retained,
    /// It did not run with this version, and goes on with the one before.
    RolledBack,
    /// Its last run succeeded.
    Running,
    /// It goes on with another version, since this one may not come yet.
    Waiting,
    /// It is there, and off.
    #[default]
    #[serde(other)]
    Registered,
}

/// Our condition among those of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Conditions {
    /// What our condition says, and since when.
    pub(super) ready: Option<(String, String)>,
    /// Since when the object is suspended, if it is.
    pub(super) suspended: Option<String>,
    /// Those of others.
    pub(super) others: Vec<Value>,
}

/// The conditions of an object, as its status has them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ConditionList {
    conditions: Vec<Value>,
}

impl ModuleLine {
    /// Returns whether it is about a version beside the one that is the module.
    pub(super) fn is_other_version(&self) -> bool {
        self.state == ModuleLineState::Registered && !self.message.is_empty()
    }
}

impl ModuleLineState {
    /// Returns whether the module does its work: it runs, or goes on as it was.
    fn is_in_force(self) -> bool {
        matches!(self, Self::Retained | Self::Running)
    }

    /// Returns whether it is about a version that is not in force.
    pub(super) fn is_held_back(self) -> bool {
        matches!(self, Self::RolledBack | Self::Waiting)
    }
}

impl SourcePhase {
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Status {
    /// Returns whether the configuration was ready before anything else was said about it: while it is deleted it is pending.
    pub(super) fn was_ready(&self) -> bool {
        self.phase == SourcePhase::Ready || (self.is_deleting && self.phase == SourcePhase::Pending)
    }

    /// Returns what the status of an object says. What can't be read counts as nothing.
    pub(super) fn read<'j>(status: impl Deserializer<'j> + Copy) -> (Self, Conditions) {
        let mut read = Self::deserialize(status).unwrap_or_default();
        let said = ConditionList::deserialize(status).unwrap_or_default();
        let conditions = read.take_conditions(said.conditions);
        (read, conditions)
    }

    /// Takes in what the conditions of an object say. Returns them.
    pub(super) fn take_conditions(&mut self, said: Vec<Value>) -> Conditions {
        let mut conditions = Conditions::default();
        for condition in said {
            let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                READY => {
                    text("message").clone_into(&mut self.message);
                    self.is_deleting = text("reason") == DELETING;
                    conditions.ready =
                        Some((text("status").to_owned(), text("lastTransitionTime").to_owned()));
                }
                SUSPENDED => {
                    self.is_suspended = text("status") == "True";
                    conditions.suspended = Some(text("lastTransitionTime").to_owned());
                }
                _ => conditions.others.push(condition),
            }
        }
        conditions
    }

    /// Returns the conditions of an object with this status that had others `before`.
    pub(super) fn conditions(&self, before: &Conditions, now: &str) -> Vec<Value> {
        let is_ready = match self.phase {
            _ if self.is_deleting => "False",
            SourcePhase::Ready => "True",
            SourcePhase::Failed => "False",
            SourcePhase::None | SourcePhase::Pending => "Unknown",
        };
        let since = before.ready.as_ref().filter(|(was, _)| was == is_ready).map(|(_, since)| &**since);
        let mut all = before.others.clone();
        all.push(json!({
            "type": READY,
            "status": is_ready,
            "reason": if self.is_deleting { DELETING } else { self.phase.as_str() },
            "message": self.message,
            "observedGeneration": self.observed_generation,
            "lastTransitionTime": since.unwrap_or(now),
        }));
        if self.is_suspended {
            all.push(json!({
                "type": SUSPENDED,
                "status": "True",
                "reason": SUSPENDED,
                "message": "spec.suspend is true: nothing is fetched or changed until that is taken back",
                "observedGeneration": self.observed_generation,
                "lastTransitionTime": before.suspended.as_deref().unwrap_or(now),
            }));
        }
        all
    }

    /// Returns the merge patch that makes the status of an object this one. `processed_at` is the time of day when it was
    /// found, not when a module changed since then; `now` counts if that is empty.
    pub(super) fn patch(&self, conditions: &Conditions, processed_at: &str, now: &str) -> Value {
        let mut status = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = status.as_object_mut() {
            let time = if processed_at.is_empty() { now } else { processed_at };
            fields.insert("lastProcessedTime".to_owned(), time.into());
            fields.insert("conditions".to_owned(), self.conditions(conditions, now).into());
        }
        // The macro would copy it once more.
        Value::Object([("status".to_owned(), status)].into_iter().collect())
    }

    /// Iterates over the lines of all addons.
    pub(super) fn addons(&self) -> impl Iterator<Item = &AddonLine> {
        self.repositories.iter().flat_map(|repository| &repository.addons)
    }

    /// Iterates over the lines of all addons for changes.
    pub(super) fn addons_mut(&mut self) -> impl Iterator<Item = &mut AddonLine> {
        self.repositories.iter_mut().flat_map(|repository| &mut repository.addons)
    }

    /// Iterates over the modules that it tells of.
    pub(super) fn modules(&self) -> impl Iterator<Item = &ModuleName> {
        self.addons().filter_map(|addon| Some(&addon.module.as_ref()?.name))
    }

    /// Drops lines that are too many, those that are fine first, and shortens messages. The last line then says how many.
    pub(super) fn shorten(&mut self) {
        shorten(&mut self.message);
        for repository in &mut self.repositories {
            shorten(&mut repository.message);
            repository.addons.iter_mut().for_each(|addon| shorten(&mut addon.message));
        }
        let total = self.addons().count();
        if total <= LINES {
            return;
        }
        let is_failed = |addon: &AddonLine| addon.status == SourcePhase::Failed;
        let failed = self.addons().filter(|addon| is_failed(addon)).count();
        let (mut room_failed, mut room) = (failed.min(LINES), LINES.saturating_sub(failed));
        for repository in &mut self.repositories {
            repository.addons.retain(|addon| {
                let room = if is_failed(addon) { &mut room_failed } else { &mut room };
                let fits = *room > 0;
                *room = room.saturating_sub(1);
                fits
            });
        }
        let hidden = failed.saturating_sub(LINES);
        let summary = AddonLine {
            name: MORE.to_owned(),
            status: if hidden > 0 { SourcePhase::Failed } else { SourcePhase::Ready },
            message: format!("{} more addons are not listed, {hidden} of them failed", total - LINES),
            ..AddonLine::default()
        };
        if let Some(last) = self.repositories.last_mut() {
            last.addons.push(summary);
        }
    }
}

impl Status {
    /// Fills in what lines of registered addons lack. The `CustomResourceDefinition` may be one that knows fewer fields, or the status
    /// an older one: what does not stand there is as it is.
    pub(super) fn complete(&mut self, addons: &[RegisteredAddon]) {
        for RepositoryLine { url, addons: lines, .. } in &mut self.repositories {
            for line in lines.iter_mut().filter(|line| line.digest.is_empty() && line.reason.is_empty()) {
                let is_its = |addon: &&RegisteredAddon| {
                    addon.is_registered()
                        && *addon.url == **url
                        && (addon.name(), &*addon.bundle.version) == (&*line.name, &*line.version)
                };
                let Some(addon) = addons.iter().find(is_its) else { continue };
                line.digest = addon.bundle.digest.to_string();
                line.id.clone_from(&addon.bundle.id);
                if addon.is_active && line.module.is_none() {
                    let (name, state) = (addon.bundle.name.clone(), ModuleLineState::default());
                    line.module = Some(ModuleLine { name, state, message: String::new() });
                }
            }
        }
    }

    /// Says at the line of each version of a module whether that is in force, as `addons` say which are registered. `text` says
    /// why a version is held back. Versions in force that are in no line get one while there is room.
    pub(super) fn place_modules(
        &mut self,
        addons: &[RegisteredAddon],
        text: impl Fn(&RegisteredAddon, &WithheldVersion) -> String,
    ) {
        for line in self.addons_mut() {
            line.module.take_if(|module| module.state.is_held_back());
        }
        let (mut total, mut hidden) = (self.addons().count(), 0_usize);
        for addon in addons.iter().filter(|addon| addon.is_active && addon.is_registered()) {
            let (name, digest) = (&addon.bundle.name, addon.bundle.digest.as_str());
            let Some(held) = &addon.held_back else { continue };
            for line in self.addons_mut().filter(|line| line.digest != digest) {
                line.module.take_if(|module| module.name == *name);
            }
            let module = |state, message| Some(ModuleLine { name: name.clone(), state, message });
            let own = self.addons_mut().find(|line| line.digest == digest && line.name == addon.name());
            match own {
                Some(line) if line.module.is_none() => {
                    line.module = module(ModuleLineState::default(), String::new());
                }
                Some(_) => {}
                None if total >= LINES => hidden += 1,
                None => {
                    total += 1;
                    self.add_line(addon, held, module(ModuleLineState::default(), String::new()));
                }
            }
            let mut lines = self.addons_mut();
            let is_its =
                |line: &&mut AddonLine| line.digest == held.digest.as_str() && line.name == addon.name();
            if let Some(line) = lines.find(is_its) {
                let state = if held.is_rolled_back() {
                    ModuleLineState::RolledBack
                } else {
                    ModuleLineState::Waiting
                };
                let mut message = text(addon, held);
                shorten(&mut message);
                line.module = module(state, message);
            }
        }
        self.add_more(hidden, "more versions that are in force are not listed");
    }

    /// Says at the line of each version that is registered beside the one that is the module which that is, as `addons` say.
    pub(super) fn place_other_versions(&mut self, addons: &[RegisteredAddon]) {
        for addon in addons.iter().filter(|addon| !addon.is_active && addon.is_registered()) {
            let name = &addon.bundle.name;
            let of_name = |other: &&RegisteredAddon| other.is_active && other.bundle.name == *name;
            let message = match addons.iter().find(of_name) {
                Some(module) => format!("version {} is the module", module.bundle.version),
                None => "no version of it is the module".to_owned(),
            };
            let digest = addon.bundle.digest.as_str();
            let is_its = |line: &&mut AddonLine| line.digest == digest && line.name == addon.name();
            for line in self.addons_mut().filter(is_its).filter(|line| line.module.is_none()) {
                let (name, message) = (name.clone(), message.clone());
                line.module = Some(ModuleLine { name, state: ModuleLineState::Registered, message });
            }
        }
    }

    /// Adds how many lines there would be more, if there are any.
    fn add_more(&mut self, hidden: usize, what: &str) {
        if let Some(last) = self.repositories.last_mut().filter(|_| hidden > 0) {
            let message = format!("{hidden} {what}");
            last.addons.push(AddonLine { name: MORE.to_owned(), ..retained_line(message) });
        }
    }

    /// Adds the line of an addon that is in force and that its repository does not list any more, before that of the version
    /// which is held back.
    fn add_line(&mut self, addon: &RegisteredAddon, held: &WithheldVersion, module: Option<ModuleLine>) {
        let line = AddonLine {
            name: addon.name().to_owned(),
            version: addon.bundle.version.clone(),
            id: addon.bundle.id.clone(),
            digest: addon.bundle.digest.to_string(),
            status: SourcePhase::Ready,
            module,
            ..AddonLine::default()
        };
        let is_held = |line: &AddonLine| line.digest == held.digest.as_str() && line.name == addon.name();
        for repository in &mut self.repositories {
            if let Some(place) = repository.addons.iter().position(is_held) {
                return repository.addons.insert(place, line);
            }
        }
    }

    /// Adds that modules go on although their addons are registered no more: to the line of this version of the addon, or in
    /// one of its own. If there is no room for all, the last line says how many are not listed. With each addon comes whether
    /// its module is there: nothing goes on of a lost bundle but its release.
    pub(super) fn add_retained<'a>(&mut self, addons: impl Iterator<Item = (&'a RegisteredAddon, bool)>) {
        let (mut lines, mut hidden) = (self.addons().count(), 0_usize);
        // Nothing has failed where nothing else did.
        let is_ready = self.phase == SourcePhase::Ready;
        let status = if is_ready { SourcePhase::Ready } else { SourcePhase::Failed };
        for (addon, is_there) in addons {
            let state = if is_there { ModuleLineState::Retained } else { ModuleLineState::Error };
            let module = Some(ModuleLine { name: addon.bundle.name.clone(), state, message: String::new() });
            let (name, version) = (addon.name(), &addon.bundle.version);
            let is_its = |line: &AddonLine| line.name == name && line.version == *version;
            let own = self.repositories.iter().position(|repository| repository.url == addon.url);
            let mut lines_of = self.repositories.iter_mut().enumerate();
            let listed = lines_of.find_map(|(number, its)| {
                let is_own = own.is_none_or(|own| own == number);
                its.addons.iter_mut().find(|line| is_own && is_its(line) && line.module.is_none())
            });
            if let Some(line) = listed {
                line.module = module;
                continue;
            }
            if lines >= LINES {
                hidden += 1;
                continue;
            }
            if self.repositories.is_empty() {
                self.repositories.push(RepositoryLine {
                    url: addon.url.clone(),
                    status,
                    reason: AddonReason::UnregisteringError.as_str().to_owned(),
                    message: "the spec names no repository; modules of this one go on".to_owned(),
                    ..RepositoryLine::default()
                });
            }
            if let Some(repository) = self.repositories.get_mut(own.unwrap_or(0)) {
                let why = if addon.is_registered() {
                    "what is registered can't be changed now"
                } else if addon.is_held {
                    "its repository can't be fetched now"
                } else {
                    "it is not registered any more"
                };
                let fate = if is_there {
                    "its module goes on"
                } else {
                    "its bundle is lost, so its module is not there; if it has a release, that stays as it is"
                };
                lines += 1;
                repository.addons.push(AddonLine {
                    name: name.to_owned(),
                    version: version.clone(),
                    id: addon.bundle.id.clone(),
                    digest: addon.bundle.digest.to_string(),
                    module,
                    status,
                    ..retained_line(format!("{why}; {fate}"))
                });
            }
        }
        self.add_more(hidden, "more modules that go on are not listed");
    }

    /// Returns the status while bundles are fetched again that are lost.
    pub(super) fn without_bundles(&self, lost: &[&Bundle]) -> Self {
        let mut status = self.clone();
        let is_lost = |digest: &str| lost.iter().any(|bundle| bundle.digest.as_str() == digest);
        for line in status.addons_mut().filter(|line| is_lost(&line.digest)) {
            if let Some(module) = &mut line.module {
                module.state = ModuleLineState::Error;
            }
        }
        status.phase = SourcePhase::Pending;
        status.message = format!("{}; its repositories are fetched again", lost_text(lost));
        shorten(&mut status.message);
        status.count_modules();
        status
    }

    /// Returns the status while it is being deleted, and waits for `what`. `left` are the modules that are not removed yet, each
    /// with why that failed, if it did.
    pub(super) fn deleting(&self, what: &str, left: &BTreeMap<ModuleName, Option<String>>) -> Self {
        let mut status = self.clone();
        for module in status.addons_mut().filter_map(|line| line.module.as_mut()) {
            let error = left.get(&module.name).cloned().flatten();
            module.state = if error.is_some() { ModuleLineState::Error } else { ModuleLineState::Registered };
            module.message = error.unwrap_or_default();
            shorten(&mut module.message);
        }
        status.count_modules();
        status.hanging(what)
    }

    /// Returns the status while it is being deleted, and that does not begin because of `what`.
    pub(super) fn hanging(&self, what: &str) -> Self {
        let mut status = self.clone();
        if status.phase == SourcePhase::Ready {
            status.phase = SourcePhase::Pending;
        }
        status.is_deleting = true;
        what.clone_into(&mut status.message);
        shorten(&mut status.message);
        status
    }

    /// Counts the modules, and those of them that are in force.
    pub(super) fn count_modules(&mut self) {
        let modules = || self.addons().filter_map(|addon| addon.module.as_ref());
        let own = || modules().filter(|module| !module.is_other_version());
        let states = || own().map(|module| module.state).filter(|state| !state.is_held_back());
        let in_force = states().filter(|state| state.is_in_force()).count();
        self.modules = format!("{in_force}/{}", states().count());
    }

    /// Returns the status without what was added about modules that go on.
    pub(super) fn without_retained(&self) -> Self {
        let mut status = self.clone();
        let reason = AddonReason::UnregisteringError.as_str();
        status.repositories.retain(|repository| repository.reason != reason);
        for repository in &mut status.repositories {
            repository.addons.retain(|line| line.reason != reason);
            for line in &mut repository.addons {
                line.module
                    .take_if(|module| module.state == ModuleLineState::Retained || module.is_other_version());
            }
        }
        status
    }
}

/// Returns the line of an addon that is registered no more.
fn retained_line(message: String) -> AddonLine {
    AddonLine {
        status: SourcePhase::Failed,
        reason: AddonReason::UnregisteringError.as_str().to_owned(),
        message,
        ..AddonLine::default()
    }
}

/// Returns in words that bundles are lost.
pub(super) fn lost_text(lost: &[&Bundle]) -> String {
    let names: Vec<String> =
        lost.iter().map(|bundle| format!("{} {}", bundle.name, bundle.version)).collect();
    format!("these bundles are lost, and their releases stay as they are: {}", names.join(", "))
}

/// Cuts a message to what a status may hold.
pub(super) fn shorten(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addon::{Bundle, BundleKind, SourceKey};

    fn status(addons: usize, failed: usize) -> Status {
        let line = |n: usize| AddonLine {
            name: n.to_string(),
            status: if n < addons - failed { SourcePhase::Ready } else { SourcePhase::Failed },
            message: "x".repeat(MESSAGE + 5),
            ..AddonLine::default()
        };
        let repository =
            RepositoryLine { addons: (0..addons).map(line).collect(), ..RepositoryLine::default() };
        Status { phase: SourcePhase::Failed, repositories: vec![repository], ..Status::default() }
    }

    #[test]
    fn five_hundred_lines_are_listed_and_those_that_failed_go_first() {
        let mut many = status(700, 20);
        many.shorten();
        let failed = many.addons().filter(|addon| addon.status == SourcePhase::Failed).count();
        assert_eq!((many.addons().count(), failed), (LINES + 1, 20));
        let last = many.addons().last().unwrap();
        assert_eq!(last.message, "200 more addons are not listed, 0 of them failed");
        assert!(many.addons().all(|addon| addon.message.chars().count() <= MESSAGE + 1));
        let mut all = status(LINES, 1);
        all.shorten();
        assert_eq!(all.addons().count(), LINES);
    }

    #[test]
    fn modules_that_go_on_are_listed_while_there_is_room() {
        let retained: Vec<RegisteredAddon> = (0..700)
            .map(|n| RegisteredAddon {
                is_retained: true,
                ..RegisteredAddon::new(
                    SourceKey::cluster("a"),
                    String::new(),
                    Bundle {
                        id: format!("id-{n}"),
                        name: format!("m{n}").into(),
                        version: "1.0.0".to_owned(),
                        digest: format!("sha256:{n:064x}").parse().unwrap(),
                        order: 1,
                        kind: BundleKind::Module,
                        namespace: None,
                    },
                )
            })
            .collect();
        for (listed, expected) in [(0, 501), (400, 501), (700, 502)] {
            let mut status = status(listed, 0);
            status.shorten();
            let before = status.clone();
            status.add_retained(retained.iter().map(|addon| (addon, true)));
            status.count_modules();
            assert_eq!(status.modules, format!("{0}/{0}", LINES.saturating_sub(listed)));
            assert_eq!(status.addons().count(), expected, "{listed}");
            let hidden = 700 - LINES.saturating_sub(listed);
            let last = status.addons().last().unwrap();
            assert_eq!(last.message, format!("{hidden} more modules that go on are not listed"));
            assert_eq!(Status { modules: String::new(), ..status.without_retained() }, before);
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_and_keeps_the_conditions_of_others() {
        let mut status = status(2, 1);
        status.message = "1 of 2 addons failed".to_owned();
        let conditions = Conditions {
            ready: Some(("False".to_owned(), "then".to_owned())),
            suspended: Some("before".to_owned()),
            others: vec![json!({"type": "Audited"})],
        };
        status.is_suspended = true;
        let patch = status.patch(&conditions, "before", "now");
        assert_eq!(patch["status"]["lastProcessedTime"], "before");
        assert_eq!(status.patch(&conditions, "", "now")["status"]["lastProcessedTime"], "now");
        let (read, again) = Status::read(&patch["status"]);
        assert_eq!((read, again), (status, conditions));
    }

    #[test]
    fn a_status_of_others_counts_as_none() {
        assert_eq!(Status::read(&json!({"phase": 5})).0, Status::default());
        assert_eq!(Status::read(&json!({"phase": "Odd"})).0.phase, SourcePhase::None);
    }
}
