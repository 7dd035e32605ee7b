//! Which version of a module is in force: the one that its repository offers, or the one before it.
//!
//! ```text
//!            window, approval                 it ran
//! offered ──────────────────────▶ on trial ──────────▶ in force
//!    │ not now                       │ three runs failed
//!    └──▶ the one before it ◀────────┘
//! ```
//!
//! The bundle before a version on trial is kept, so that going back asks no repository.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::registration::Change;
use super::sources::Sources;
use crate::addon::{
    Approval, Approvals, Bundle, HoldReason, RegisteredAddon, SourceKey, SourceSpec, WithheldVersion,
    is_higher,
};
use crate::context::Context;
use crate::module::{BundleRuns, Modules};
use crate::name::ModuleName;
use crate::notice::Notice;
use crate::time::Time;

/// With how many failed runs a version is given up, if there is one before it with which its module ran.
const GIVEN_UP: u32 = 3;

/// What a version on trial has shown.
enum Verdict {
    /// Its module ran with it.
    Good,
    /// It is given up.
    Bad,
    /// That is not known yet.
    Open,
}

impl Sources {
    /// Decides for each module of `addons`, which are to be registered, whether its version is the one that is offered, a lower one
    /// that is approved, or stays the one that it has.
    pub(super) fn choose_versions(
        &self,
        modules: &Modules,
        now: Time,
        (key, approvals): (&SourceKey, &Approvals),
        spec: &SourceSpec,
        addons: &mut Vec<RegisteredAddon>,
    ) {
        for addon in addons.iter_mut() {
            addon.is_unproven = addon.is_active;
        }
        for old in self.registration.of(key).iter().filter(|addon| addon.is_active && !addon.is_withdrawn) {
            let is_its =
                |addon: &&mut RegisteredAddon| addon.is_active && addon.bundle.name == old.bundle.name;
            let Some(offered) = addons.iter_mut().find(is_its) else { continue };
            // What was given up is known as long as the counter says what it said then, whatever comes in between.
            offered.given_up = old.given_up_at(spec.reprocess_request);
            if offered.bundle.digest == old.bundle.digest {
                offered.previous.clone_from(&old.previous);
                (offered.is_unproven, offered.starts) = (old.is_unproven, old.starts);
                continue;
            }
            let (offered, why) =
                (offered.clone(), self.hold_reason(approvals, spec, now, old, &offered.bundle));
            // One that was approved is not lost because a higher one came meanwhile.
            let is_overtaken = why.as_ref().is_some_and(HoldReason::is_for_approval);
            let instead = addons.iter().filter(|addon| is_overtaken && is_between(old, addon, &offered));
            let instead = instead.filter(|addon| {
                let why = self.hold_reason(approvals, spec, now, old, &addon.bundle);
                why.is_none_or(|why| matches!(why, HoldReason::Waiting { for_approval: false, .. }))
            });
            let instead =
                instead.max_by(|a, b| by_version(&a.bundle, &b.bundle)).map(|addon| addon.bundle.clone());
            let withheld = |bundle: &Bundle, why| {
                let (version, digest) = (bundle.version.clone(), bundle.digest.clone());
                WithheldVersion { version, digest, why }
            };
            let (new, held_back) = match (instead, why) {
                (Some(instead), Some(why)) => (instead, Some(withheld(&offered.bundle, why))),
                (None | Some(_), _) => (offered.bundle.clone(), None),
            };
            let why = self.hold_reason(approvals, spec, now, old, &new);
            for addon in addons.iter_mut().filter(|addon| addon.bundle.name == old.bundle.name) {
                addon.is_active = addon.bundle.digest == new.digest;
                addon.is_unproven = false;
            }
            match why {
                Some(why) if self.can_stay(key, old) => {
                    for addon in addons.iter_mut().filter(|addon| addon.bundle.name == old.bundle.name) {
                        (addon.is_active, addon.given_up) = (false, Vec::new());
                    }
                    let stays = RegisteredAddon {
                        is_active: true,
                        is_retained: false,
                        is_held: false,
                        auto_enable: offered.auto_enable,
                        given_up: offered.given_up,
                        held_back: Some(withheld(&new, why)),
                        ..old.clone()
                    };
                    // It may be offered still, as one of the versions that are no modules.
                    let is_same = |addon: &RegisteredAddon| {
                        addon.bundle.digest == old.bundle.digest && addon.bundle.name == old.bundle.name
                    };
                    addons.retain(|addon| !is_same(addon));
                    addons.push(stays);
                }
                Some(_) | None => {
                    let previous = self.last_good(modules, old);
                    let is_new = |addon: &&mut RegisteredAddon| {
                        addon.bundle.digest == new.digest && addon.bundle.name == old.bundle.name
                    };
                    for addon in addons.iter_mut().filter(is_new) {
                        addon.previous.clone_from(&previous);
                        addon.is_unproven = previous.is_none();
                        addon.given_up.clone_from(&offered.given_up);
                        addon.held_back.clone_from(&held_back);
                    }
                }
            }
        }
    }

    /// Returns why a version does not replace the one that a module has, if it does not.
    fn hold_reason(
        &self,
        approvals: &Approvals,
        spec: &SourceSpec,
        now: Time,
        old: &RegisteredAddon,
        new: &Bundle,
    ) -> Option<HoldReason> {
        let reprocess_request = spec.reprocess_request;
        if old.given_up_at(reprocess_request).iter().any(|its| its.digest == new.digest) {
            return Some(HoldReason::RolledBack { reprocess_request });
        }
        let (running, version) = (&old.bundle.version, &new.version);
        let is_approved = || approvals.has(old.name(), running, version, Some(&new.digest));
        let for_approval = spec.approval == Approval::Manual && !is_approved();
        let (at, zone) = (self.config.timestamp(now), &self.config.time_zone);
        let is_open = spec.windows.is_empty() || spec.windows.iter().any(|window| window.is_open(at, zone));
        (for_approval || !is_open).then_some(HoldReason::Waiting { for_approval, for_window: !is_open })
    }

    /// Returns whether the bundle that a module has can stay in force: it is there, and nobody else has its id by now.
    fn can_stay(&self, key: &SourceKey, old: &RegisteredAddon) -> bool {
        let has_id = |other: &RegisteredAddon| {
            let is_other = other.source != *key && other.source.shares_scope_with(key);
            is_other && other.holds_id() && other.bundle.id == old.bundle.id
        };
        !self.is_lost(old) && !self.registration.of_rivals(std::iter::once(&old.bundle)).any(has_id)
    }

    /// Returns the bundle to which a module goes back that gets another one than `old` now.
    fn last_good(&self, modules: &Modules, old: &RegisteredAddon) -> Option<Bundle> {
        let runs = modules.bundle_runs(&old.bundle.name).filter(|runs| runs.digest == old.bundle.digest);
        let has_run = !old.is_on_trial() || runs.is_some_and(|runs| runs.is_good);
        let good = if has_run { Some(old.bundle.clone()) } else { old.previous.clone() };
        good.filter(|bundle| !self.lost.contains(&bundle.digest))
    }

    /// Ends the trials of versions of some configurations in `change` that have shown whether they are good.
    pub(super) fn end_trials(&self, modules: &Modules, change: &mut Change, keys: &BTreeSet<SourceKey>) {
        if self.commits.wanted() != self.commits.in_force() {
            return;
        }
        self.registration.end_trials(change, keys, |addon| match self.verdict(modules, addon) {
            Verdict::Open => None,
            Verdict::Good => Some(None),
            Verdict::Bad => {
                let source = self.known.get(&addon.source).and_then(|source| source.object.as_ref());
                let reprocess_request = source.map_or(0, |object| object.spec.reprocess_request);
                Some(Some(HoldReason::RolledBack { reprocess_request }))
            }
        });
    }

    /// Returns the configurations with versions that were on trial when this operator began, and are about to run here: whatever ended
    /// the operator before may have been one of them.
    pub(super) fn uncounted_starts(&self, modules: &Modules) -> BTreeSet<SourceKey> {
        let has_some = |key: &&SourceKey| {
            self.registration.of(key).iter().any(|addon| self.is_uncounted(modules, addon))
        };
        self.tried_before.keys().filter(has_some).cloned().collect()
    }

    fn is_uncounted(&self, modules: &Modules, addon: &RegisteredAddon) -> bool {
        let tried = self.tried_before.get(&addon.source);
        addon.is_active
            && addon.is_on_trial()
            && tried.is_some_and(|digests| digests.contains(&addon.bundle.digest))
            && modules.is_on(&addon.bundle.name)
    }

    /// Returns whether it is still to be written down that this operator begins with a version of a module that was on trial before it:
    /// until then nothing of that version is run that need not be.
    pub(crate) fn has_uncounted_start(&self, name: &ModuleName) -> bool {
        let addon = self.registration.source_of(name).and_then(|key| self.registration.of_module(key, name));
        addon.is_some_and(|addon| {
            let tried = self.tried_before.get(&addon.source);
            addon.is_on_trial() && tried.is_some_and(|digests| digests.contains(&addon.bundle.digest))
        })
    }

    /// Counts in `change` that this operator begins with versions that were on trial before it.
    pub(super) fn count_starts(&self, modules: &Modules, change: &mut Change) {
        for key in self.uncounted_starts(modules) {
            self.registration.count_starts(change, &key, |addon| self.is_uncounted(modules, addon));
        }
    }

    /// Records that starts were counted in `change`.
    pub(super) fn starts_counted(&mut self, change: &Change) {
        for (key, addons) in change.iter() {
            let Some(tried) = self.tried_before.get_mut(key) else { continue };
            for addon in addons.iter().filter(|addon| addon.is_active) {
                let before = self.registration.of_module(key, &addon.bundle.name);
                let is_counted = before.is_some_and(|before| {
                    before.bundle.digest == addon.bundle.digest && before.starts != addon.starts
                });
                if is_counted && tried.remove(&addon.bundle.digest) {
                    self.sweep.want_of_tried(key);
                }
            }
            if tried.is_empty() {
                self.tried_before.remove(key);
            }
        }
    }

    /// Returns whether a version on trial has shown whether it is good.
    pub(super) fn is_tried(&self, modules: &Modules, addon: &RegisteredAddon) -> bool {
        !matches!(self.verdict(modules, addon), Verdict::Open)
    }

    fn verdict(&self, modules: &Modules, addon: &RegisteredAddon) -> Verdict {
        if addon.is_withdrawn || !addon.is_on_trial() {
            return Verdict::Open;
        }
        let Some(runs) = modules.bundle_runs(&addon.bundle.name) else { return Verdict::Open };
        let BundleRuns { digest, failures, is_good, is_unusable } = runs;
        let is_it = digest == addon.bundle.digest;
        let failed = failures.saturating_add(addon.starts);
        let is_bad = if is_it { failed >= GIVEN_UP && !is_good } else { is_unusable };
        // What is lost can't come back.
        let can_go_back =
            addon.previous.as_ref().is_some_and(|previous| !self.lost.contains(&previous.digest));
        match (is_it && is_good, is_bad && can_go_back) {
            (true, _) => Verdict::Good,
            (false, true) => Verdict::Bad,
            (false, false) => Verdict::Open,
        }
    }

    /// Tells which modules go back with `change` to the version before.
    pub(super) fn announce_rollbacks(&self, cx: &mut Context, change: &Change) {
        let addons = change.iter().flat_map(|(_, addons)| addons);
        for addon in addons.filter(|addon| addon.is_active) {
            let Some(held) = addon.held_back.as_ref().filter(|held| held.is_rolled_back()) else { continue };
            let before = self.registration.of_module(&addon.source, &addon.bundle.name);
            if before.is_none_or(|before| before.bundle.digest != held.digest) {
                continue;
            }
            let (module, from, to) = (&addon.bundle.name, &held.version, &addon.bundle.version);
            let message = format!(
                "module {module} did not run with version {from} after {GIVEN_UP} attempts, and goes back to {to}"
            );
            cx.notify(Notice::ModuleRolledBack { module: module.clone(), message: message.clone() });
            self.announce(cx, &addon.source, (true, "RolledBack"), message);
        }
    }

    /// Returns why a version is held back, for people.
    pub(super) fn held_text(&self, now: Time, addon: &RegisteredAddon, held: &WithheldVersion) -> String {
        let (version, runs) = (&held.version, &addon.bundle.version);
        let HoldReason::Waiting { for_approval, for_window } = held.why else {
            // A look at a registry sees other versions, and not always other bytes under the same tag.
            let again = if addon.url.starts_with("oci://") {
                "it is tried again when spec.reprocessRequest is raised, and other versions come as before"
            } else {
                "it is tried again when other bytes are published, or spec.reprocessRequest is raised"
            };
            return format!(
                "{GIVEN_UP} runs failed with version {version}, so {runs} is in force again; {again}"
            );
        };
        let mut what = Vec::new();
        if for_approval {
            let value = if version == runs { held.digest.as_str() } else { version };
            what.push(format!("approval: annotate the object with {}={value}", SourceKey::APPROVED));
        }
        if for_window {
            let opens = self.next_window(now, &addon.source);
            let opens = opens.map(|at| format!(" which opens at {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")));
            what.push(format!(
                "a window{}",
                opens.as_deref().unwrap_or(" that never opens: see spec.windows")
            ));
        }
        format!("version {version} waits for {}; {runs} is in force", what.join(", and for "))
    }

    /// Returns when the next window of a configuration opens.
    fn next_window(&self, now: Time, key: &SourceKey) -> Option<jiff::Timestamp> {
        let object = self.known.get(key)?.object.as_ref()?;
        let (at, zone) = (self.config.timestamp(now), &self.config.time_zone);
        object.spec.windows.iter().filter_map(|window| window.opens_after(at, zone)).min()
    }

    /// Returns how long until versions of a configuration may come that wait for a window.
    pub(super) fn until_window(&self, now: Time, key: &SourceKey) -> Option<std::time::Duration> {
        let waits =
            |addon: &RegisteredAddon| addon.held_back.as_ref().is_some_and(WithheldVersion::waits_for_window);
        if !self.registration.of(key).iter().any(waits) {
            return None;
        }
        let left = self.next_window(now, key)?.duration_since(self.config.timestamp(now));
        std::time::Duration::try_from(left).ok()
    }

    /// Returns whether versions of a configuration wait for something that may have come.
    pub(super) fn has_waiting(&self, key: &SourceKey) -> bool {
        let waits = |held: &WithheldVersion| held.waits_for_approval() || held.waits_for_window();
        self.registration.of(key).iter().any(|addon| addon.held_back.as_ref().is_some_and(waits))
    }
}

/// Returns whether an addon is a version of the one that is offered, and between that and the one in force.
fn is_between(old: &RegisteredAddon, addon: &RegisteredAddon, offered: &RegisteredAddon) -> bool {
    let is_of_it = addon.bundle.name == offered.bundle.name && addon.url == offered.url;
    let version = |addon: &RegisteredAddon| addon.bundle.version.clone();
    is_of_it && is_higher(&version(addon), &version(old)) && is_higher(&version(offered), &version(addon))
}

/// Returns the order of the versions of two bundles.
fn by_version(a: &Bundle, b: &Bundle) -> Ordering {
    match (is_higher(&a.version, &b.version), is_higher(&b.version, &a.version)) {
        (true, _) => Ordering::Greater,
        (_, true) => Ordering::Less,
        (false, false) => Ordering::Equal,
    }
}
