//! Configurations that wait until others are ready: `spec.dependsOn`.

use std::collections::BTreeSet;

use super::known::{Source, work_key};
use super::known_sources::Role;
use super::sources::Sources;
use crate::addon::{SourceKey, SourceKind};
use crate::cause::Cause;
use crate::context::Context;

impl Sources {
    /// Looks whether a configuration has to wait for others before its object is processed, and records for what.
    ///
    /// What is in force already does not wait: only an object that was not processed as it is now.
    pub(super) fn waits_for_others(&mut self, key: &SourceKey) -> bool {
        let what = self.unmet_dependencies(key);
        let Some(source) = self.known.get(key) else { return false };
        if source.waits_for == what || !self.knows_dependencies(key) {
            // What was not listed yet is no news.
            return what.is_some();
        }
        let Some(source) = self.known.get_mut(key) else { return false };
        source.waits_for = what;
        source.waits_for.is_some()
    }

    /// Returns whether all objects are known of the kinds that a configuration depends on.
    fn knows_dependencies(&self, key: &SourceKey) -> bool {
        let object = self.known.get(key).and_then(|source| source.object.as_ref());
        let mut wanted = object.into_iter().flat_map(|object| &object.spec.depends_on);
        wanted.all(|wanted| self.watches.is_listed(wanted.kind))
    }

    /// Has those looked at again that may wait for configurations of a kind, since all of them are known now.
    pub(super) fn wake_dependents_of_kind(&mut self, cx: &mut Context, kind: SourceKind) {
        let waits = |source: &Source| {
            let object = source.object.as_ref().filter(|_| !source.is_decided());
            object.is_some_and(|object| object.spec.depends_on.iter().any(|wanted| wanted.kind == kind))
        };
        self.wake_where(cx, waits);
    }

    /// Has those that depend on others looked at again, as far as `waits` holds for them.
    fn wake_where(&mut self, cx: &mut Context, waits: impl Fn(&Source) -> bool) {
        let dependents = self.known.in_role(Role::Dependent).filter(|(_, source)| waits(source));
        let keys: Vec<SourceKey> = dependents.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.reconciles.request(cx, &work_key(&key), &Cause::outside("another source"));
        }
    }

    fn unmet_dependencies(&self, key: &SourceKey) -> Option<String> {
        let source = self.known.get(key).filter(|source| !source.is_decided())?;
        let object = source.object.as_ref()?;
        let mut told = Vec::new();
        for wanted in &object.spec.depends_on {
            let known = self.known.get(wanted).filter(|known| known.object.is_some());
            if wanted != key && known.is_some_and(Source::is_ready) {
                continue;
            }
            told.push(match known {
                _ if self.leads_back(wanted, key) => {
                    format!(
                        "{wanted}, which waits for it in a circle: remove one of these from spec.dependsOn"
                    )
                }
                None => format!("{wanted}, which is not there"),
                Some(known) => format!("{wanted}, which is {}", known.state()),
            });
        }
        (!told.is_empty()).then(|| told.join("; and for "))
    }

    /// Returns whether a configuration depends on `key`, at whatever distance.
    fn leads_back(&self, from: &SourceKey, key: &SourceKey) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            if at == key {
                return true;
            }
            if seen.insert(at) {
                let object = self.known.get(at).and_then(|known| known.object.as_ref());
                next.extend(object.iter().flat_map(|object| &object.spec.depends_on));
            }
        }
        false
    }

    /// Has those looked at again that wait for a configuration, or may wait for another thing by now.
    pub(super) fn wake_dependents(&mut self, cx: &mut Context, key: &SourceKey) {
        let waits = |source: &Source| {
            let object = source.object.as_ref().filter(|_| source.waits_for.is_some());
            object.is_some_and(|object| object.spec.depends_on.contains(key))
        };
        self.wake_where(cx, waits);
    }
}
