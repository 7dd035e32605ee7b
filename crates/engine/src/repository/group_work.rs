//! The work on a `RepoGroup`: its Repositories.

use std::collections::BTreeSet;
use std::sync::Arc;

use objects::legal;
use serde_json::{Map, Value, json};

use super::group::{Group, Written};
use super::known::Repository;
use super::object::{GROUP, Object, REPO, condition, owner, status_change, without_nulls};
use super::patches::Change;
use super::repositories::Repositories;
use super::work::RepositoryAnswer;
use crate::context::Context;
use crate::package::{ChartRepositorySpec, RepoGroupSpec, RepositoryKey, RepositoryKind};
use crate::reconcile::Step;
use crate::time::Time;

/// The first thing that is not as it should be.
enum Todo {
    Nothing,
    Change(Change, Written),
}

impl Repositories {
    pub(super) fn observe_group(&mut self, name: &Arc<str>, json: Option<&[u8]>) {
        match json.map(|json| Object::read(json, RepoGroupSpec::read)) {
            Some(object) => self.groups.entry(Arc::clone(name)).or_default().object = Some(object),
            None => drop(self.groups.remove(name)),
        }
    }

    /// Asks for the work on the groups with this name in labels.
    pub(super) fn wake_groups(&mut self, label: &str) {
        let has_label = |group: &Group| {
            let spec = group.object.as_ref().and_then(|object| object.spec.as_ref().ok());
            spec.is_some_and(|spec| legal::label(&spec.label_selector) == label)
        };
        let names: Vec<Arc<str>> = self
            .groups
            .iter()
            .filter(|(_, group)| has_label(group))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in names {
            self.wake(RepositoryKind::RepoGroup, &name);
        }
    }

    pub(super) fn group_has_work(&self, name: &Arc<str>) -> bool {
        !matches!(self.group_todo(name, Time::default()), Todo::Nothing)
    }

    pub(super) fn advance_group(&mut self, cx: &mut Context, name: &Arc<str>) -> Step {
        if let Some(group) = self.groups.get_mut(name) {
            match (group.writing.take(), group.answer.take()) {
                (Some(Written::Repository(repository)), Some(RepositoryAnswer::Patched(Ok(())))) => {
                    group.applied.insert(repository);
                }
                (Some(Written::Status(status)), Some(RepositoryAnswer::Patched(Ok(())))) => {
                    group.object.as_mut().into_iter().for_each(|object| object.status.clone_from(&status));
                }
                (_, answer) => {
                    if let Some(failure) = answer.and_then(RepositoryAnswer::failure) {
                        return Step::Failed(failure);
                    }
                }
            }
        }
        let todo = self.group_todo(name, cx.now);
        let Some(group) = self.groups.get_mut(name) else { return Step::Done };
        match todo {
            Todo::Nothing => {
                group.applied.clear();
                Step::Done
            }
            Todo::Change(change, written) => {
                group.writing = Some(written);
                change.begin(cx, &RepositoryKey { kind: RepositoryKind::RepoGroup, name: Arc::clone(name) })
            }
        }
    }

    /// Returns the first thing about a group that is not as it should be.
    fn group_todo(&self, name: &Arc<str>, now: Time) -> Todo {
        let Some(group) = self.groups.get(name) else { return Todo::Nothing };
        let Some(object) = group.object.as_ref().filter(|object| !object.is_deleting) else {
            return Todo::Nothing;
        };
        let mut taken = Vec::new();
        let problem = match &object.spec {
            Err(problem) => problem.clone(),
            Ok(spec) => {
                if let Some((repository, change)) =
                    self.repository_to_write(name, group, object, spec, &mut taken)
                {
                    return Todo::Change(change, Written::Repository(repository));
                }
                taken.join("; ")
            }
        };
        let mut status = Map::new();
        status.insert("synced".to_owned(), problem.is_empty().into());
        status.insert("observedGeneration".to_owned(), object.generation.into());
        let reason = if problem.is_empty() { "install" } else { "createRepositoriesFailed" };
        status.insert("conditions".to_owned(), vec![condition(problem.is_empty(), reason, &problem)].into());
        match status_change(&object.status, &status, &self.config.time_of_day(now)) {
            None => Todo::Nothing,
            Some(change) => {
                let key = RepositoryKey { kind: RepositoryKind::RepoGroup, name: Arc::clone(name) };
                let written = Written::Status(without_nulls(&change));
                Todo::Change(Change::status(key, &change), written)
            }
        }
    }

    /// Returns the next Repository that has to be made, changed or deleted because of what a group lists. `taken` gets what is
    /// wrong with those that belong to somebody else.
    fn repository_to_write(
        &self,
        name: &Arc<str>,
        group: &Group,
        object: &Object<RepoGroupSpec>,
        spec: &RepoGroupSpec,
        taken: &mut Vec<String>,
    ) -> Option<(Arc<str>, Change)> {
        let key_of = |repository: &Arc<str>| RepositoryKey {
            kind: RepositoryKind::Repository,
            name: Arc::clone(repository),
        };
        let label = legal::label(&spec.label_selector);
        let mut listed = BTreeSet::new();
        for wanted in &spec.repos {
            let given = wanted.get("name").and_then(Value::as_str).unwrap_or_default();
            let repository: Arc<str> = legal::object(given).into();
            listed.insert(Arc::clone(&repository));
            if group.applied.contains(&repository) {
                continue;
            }
            let known = self.repositories.get(&repository).and_then(|known| known.object.as_ref());
            if known.is_some_and(|known| !known.owners.contains(&object.uid)) {
                taken.push(format!(
                    "Repository {repository} is there already, and does not belong to this group"
                ));
                continue;
            }
            let labels = [(REPO.to_owned(), legal::label(given)), (GROUP.to_owned(), label.clone())].into();
            let is_so = known.is_some_and(|known| {
                let wanted = ChartRepositorySpec::read(wanted);
                known.has_labels(&labels) && known.spec == wanted
            });
            if !is_so && known.is_none_or(|known| !known.is_deleting) {
                let mut fields = wanted.clone();
                if let (Some(fields), true) = (fields.as_object_mut(), known.is_some()) {
                    // What is not in the list any more is not in the Repository either.
                    for field in ["authSecret", "charts", "sync"] {
                        fields.entry(field).or_insert(Value::Null);
                    }
                    // A merge goes into objects, so that what their fields were would stay.
                    if let Some(Value::Object(sync)) = fields.get_mut("sync") {
                        for field in ["enabled", "interval"] {
                            sync.entry(field).or_insert(Value::Null);
                        }
                    }
                }
                let made = json!({
                    "metadata": {
                        "labels": labels,
                        "ownerReferences": [owner(RepositoryKind::RepoGroup, name, &object.uid)],
                    },
                    "spec": fields,
                });
                return Some((Arc::clone(&repository), Change::apply(key_of(&repository), made)));
            }
        }
        let is_left = |(repository, known): &(&Arc<str>, &Repository)| {
            let known = known.object.as_ref().filter(|known| !known.is_deleting);
            known.is_some_and(|known| known.owners.contains(&object.uid))
                && !listed.contains(*repository)
                && !group.applied.contains(*repository)
        };
        let (repository, _) = self.repositories.iter().find(is_left)?;
        Some((Arc::clone(repository), Change::delete(key_of(repository))))
    }
}
