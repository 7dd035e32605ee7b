//! Modules that wait for others: what `requires` in their files asks for, and what of it is not there.
//!
//! ```text
//! its turn comes ─▶ something is missing? ─no─▶ runs
//!                        │yes
//!                        ▼
//!                   Waiting, no task ─── it comes ──▶ a run of it goes behind all of `main`
//! ```
//!
//! A module is not held back from a run of files that ran before: who switches off what others require does not
//! stop those. They run on, and people are told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::task_queue::queue_of;
use super::{Lower, ModuleState, Modules, Phase};
use crate::cause::Cause;
use crate::configuration::Configuration;
use crate::failure::{Failure, FailureKind};
use crate::module_settings::Requirement;
use crate::name::ModuleName;
use crate::queue::End;
use crate::task::{Task, TaskKind, Trigger};
use crate::view::{PARKED, RequirementView};

/// Something that a module requires and that is not there.
struct Lack {
    what: String,
    /// Whether a person has to do something: no run of another module brings it.
    needs_help: bool,
}

impl Modules {
    /// Returns why a module does not run as its files are now, if others are missing.
    pub(super) fn waits_for(&self, configuration: &Configuration, name: &ModuleName) -> Option<String> {
        let module = self.states.get(name).filter(|module| module.ran != Some(module.spec.content))?;
        let lacks: Vec<String> = self.lacks(configuration, module).map(|lack| lack.what).collect();
        (!lacks.is_empty()).then(|| format!("it requires {}", lacks.join(", and ")))
    }

    /// Lets modules wait, before tasks are made for them, that require what no run of a module brings.
    pub(crate) fn hold_back(&mut self, lower: &mut Lower<'_>) {
        let is_new = |module: &&ModuleState| {
            module.can_run()
                && !module.spec.settings.requires.is_empty()
                && module.ran != Some(module.spec.content)
        };
        let is_stuck =
            |module: &&ModuleState| self.lacks(lower.configuration, module).any(|lack| lack.needs_help);
        let stuck: Vec<ModuleName> =
            self.in_order().filter(is_new).filter(is_stuck).map(|module| module.spec.name.clone()).collect();
        for name in stuck {
            let why = self.waits_for(lower.configuration, &name);
            self.set_phase(lower.cx, lower.configuration, &name, Phase::Waiting, why);
        }
    }

    /// Queues the modules that have now what they waited for, behind everything in `main`.
    pub(crate) fn look_at_requirements(&mut self, lower: &mut Lower<'_>) {
        if !std::mem::take(&mut self.waits.is_changed) {
            return;
        }
        for name in self.waits.waiting.clone() {
            if !self.states.get(&name).is_some_and(|module| module.phase == Phase::Waiting && module.is_on())
            {
                self.waits.waiting.remove(&name);
                continue;
            }
            if let Some(why) = self.waits_for(lower.configuration, &name) {
                self.set_phase(lower.cx, lower.configuration, &name, Phase::Waiting, Some(why));
                continue;
            }
            let why = Some("what it requires is there".to_owned());
            self.set_phase(lower.cx, lower.configuration, &name, Phase::Starting, why);
            self.queue_freed(lower, &name);
        }
    }

    /// Returns why a module can't be run by a command, if it waits for others.
    pub(crate) fn why_waiting(&self, name: &ModuleName) -> Option<Failure> {
        let module = self.states.get(name).filter(|module| module.phase == Phase::Waiting)?;
        let why = module.reason.as_deref().unwrap_or("it requires others");
        let failure = Failure::new(FailureKind::Values, format!("module {name} waits: {why}"));
        Some(failure.advise(format!("`addon-operator why module {name}` says what brings them")))
    }

    /// Queues a run of a module that waited, with its CRDs before it.
    fn queue_freed(&self, lower: &mut Lower<'_>, name: &ModuleName) {
        let Some(module) = self.states.get(name).filter(|module| module.can_run()) else { return };
        if lower.queues.is_pending(name) {
            return;
        }
        let trigger = Trigger::RequirementsMet;
        let cause = Cause::outside(format!("what module {name} requires is there"));
        let crds = module.needs_crds().then(|| TaskKind::ModuleEnsureCrds(name.clone()));
        let run = TaskKind::ModuleRun(module.next_run());
        let (queue, kinds) = (queue_of(lower.configuration, &run), crds.into_iter().chain([run]));
        let tasks =
            kinds.map(|kind| Task::new(lower.cx, &queue, kind, trigger, cause.clone(), None)).collect();
        lower.queues.put(lower.cx, &queue, End::Back, tasks);
    }

    /// Returns pictures of what a module requires.
    pub(super) fn requirement_views(
        &self,
        configuration: &Configuration,
        module: &ModuleState,
    ) -> Vec<RequirementView> {
        let requires = module.spec.settings.requires.iter();
        let view = |required: &Requirement| {
            let lack = self.lack(configuration, module, required);
            RequirementView {
                module: self.required(configuration, module, required),
                version: required.version.as_ref().map(ToString::to_string),
                needs_help: lack.as_ref().is_some_and(|lack| lack.needs_help),
                lack: lack.map(|lack| lack.what),
            }
        };
        requires.map(view).collect()
    }

    /// Returns what a module requires and does not have.
    fn lacks<'m>(
        &'m self,
        configuration: &'m Configuration,
        module: &'m ModuleState,
    ) -> impl Iterator<Item = Lack> + 'm {
        let requires = module.spec.settings.requires.iter();
        requires.filter_map(|required| self.lack(configuration, module, required))
    }

    fn lack(
        &self,
        configuration: &Configuration,
        module: &ModuleState,
        required: &Requirement,
    ) -> Option<Lack> {
        let name = self.required(configuration, module, required);
        let help = |what: String| Some(Lack { what: format!("module {name}, {what}"), needs_help: true });
        let time = |what: &str| Some(Lack { what: format!("module {name}, {what}"), needs_help: false });
        if let Some(circle) =
            self.waits.circles.get(&module.spec.name).filter(|circle| circle.first() == Some(&name))
        {
            let [_, rest @ ..] = &**circle else { return None };
            let way: Vec<String> = rest.iter().map(|next| format!("which requires {next}")).collect();
            return match &*way {
                [] => help("which is itself: it can never run".to_owned()),
                way => help(format!("{}: none of a circle can run first", way.join(", "))),
            };
        }
        let Some(other) = self.states.get(&name) else {
            let is_named = |bare: &ModuleName| self.states.contains_key(bare);
            let bare = without_number(name.as_str()).map(ModuleName::from).filter(is_named);
            let hint = bare.map(|bare| format!("; the name of the module is {bare}")).unwrap_or_default();
            return help(format!("which does not exist{hint}"));
        };
        if other.phase == Phase::Orphaned {
            return help("whose directory is gone".to_owned());
        }
        if other.is_decided() && !other.is_on() {
            return help("which is off".to_owned());
        }
        if let Some(range) = &required.version {
            match other.spec.version() {
                Some(version) if range.accepts(version) => {}
                Some(version) => return help(format!("{range}, and its version is {version}")),
                // Its chart may still have to come.
                None if other.is_held() => {}
                None => return help(format!("{range}, and it has no version: its Chart.yaml gives it one")),
            }
        }
        match other.phase {
            _ if other.ran == Some(other.spec.content) => {
                let unready = Self::unready(other)?;
                time(&format!("whose objects are not ready: {unready}"))
            }
            Phase::Held | Phase::Waiting => time("which waits itself"),
            Phase::Failed => time("whose run failed"),
            Phase::Parked => help(PARKED.to_owned()),
            Phase::Deleting | Phase::Disabled | Phase::Orphaned | Phase::Running | Phase::Starting => {
                time("which did not run yet as it is now")
            }
        }
    }

    /// Returns which module is meant. A module of a namespace means its neighbour, if there is one of that name.
    fn required(
        &self,
        configuration: &Configuration,
        module: &ModuleState,
        required: &Requirement,
    ) -> ModuleName {
        let namespace = configuration.namespace_of(&module.spec.name);
        let neighbour =
            namespace.map(|namespace| ModuleName::from(format!("{namespace}-{}", required.module)));
        neighbour.filter(|name| self.states.contains_key(name)).unwrap_or_else(|| required.module.clone())
    }

    /// Finds out which modules require themselves, over others or not.
    pub(super) fn find_circles(&mut self, configuration: &Configuration) {
        let edges = |module: &ModuleState| -> Vec<ModuleName> {
            let requires = module.spec.settings.requires.iter();
            requires.map(|required| self.required(configuration, module, required)).collect()
        };
        let graph = self.files.requiring().filter_map(|name| self.states.get(name));
        let graph = graph.map(|module| (module.spec.name.clone(), edges(module))).collect();
        self.waits.circles = circles(graph);
        self.waits.is_changed = true;
    }
}

/// Returns the name of a module in that of its directory, which begins with an order number.
fn without_number(name: &str) -> Option<&str> {
    let rest = name.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.strip_prefix('-').filter(|_| rest.len() < name.len())
}

/// Returns the shortest way from each name back to itself, for those that have one. It ends with the name.
fn circles(mut graph: BTreeMap<ModuleName, Vec<ModuleName>>) -> BTreeMap<ModuleName, Vec<ModuleName>> {
    // Who requires nobody that is left is in no circle. That leaves few, and nearly always none.
    loop {
        let known: BTreeSet<ModuleName> = graph.keys().cloned().collect();
        graph.retain(|_, next| {
            next.retain(|name| known.contains(name));
            !next.is_empty()
        });
        if graph.len() == known.len() {
            break;
        }
    }
    graph.keys().filter_map(|name| Some((name.clone(), way_back(&graph, name)?))).collect()
}

/// Returns the shortest way from a name to itself, without its beginning.
fn way_back(graph: &BTreeMap<ModuleName, Vec<ModuleName>>, start: &ModuleName) -> Option<Vec<ModuleName>> {
    let mut before: BTreeMap<&ModuleName, &ModuleName> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(name) = open.pop_front() {
        for next in graph.get(name).into_iter().flatten() {
            if before.contains_key(next) {
                continue;
            }
            before.insert(next, name);
            if next == start {
                let mut way = vec![start.clone()];
                let mut at = name;
                while at != start {
                    way.push(at.clone());
                    at = before.get(at)?;
                }
                way.reverse();
                return Some(way);
            }
            open.push_back(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> BTreeMap<ModuleName, Vec<ModuleName>> {
        let names = |names: &[&str]| names.iter().map(|name| ModuleName::from(*name)).collect();
        edges.iter().map(|(name, next)| (ModuleName::from(*name), names(next))).collect()
    }

    #[test]
    fn a_circle_is_the_shortest_way_back_and_who_leads_to_one_is_in_none() {
        let found = circles(graph(&[
            ("a", &["b", "long"]),
            ("b", &["a", "z"]),
            ("long", &["b"]),
            ("leads", &["a", "z"]),
            ("own", &["own"]),
            ("z", &["y"]),
        ]));
        let found: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|(name, way)| (name.as_str(), way.iter().map(ModuleName::as_str).collect()))
            .collect();
        let expected = [
            ("a", vec!["b", "a"]),
            ("b", vec!["a", "b"]),
            ("long", vec!["b", "a", "long"]),
            ("own", vec!["own"]),
        ];
        assert_eq!(found, expected);
    }
}
