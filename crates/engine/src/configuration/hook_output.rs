//! What a hook wrote, and how it takes effect: all of it or nothing. See docs/hooks.md#what-a-hook-writes.

use std::sync::Arc;

use serde_json::Value;
use values::Section;
use values::patch::{Operation, Patch};

use super::Configuration;
use super::config_map::{Layers, PendingSave};
use super::redaction::without;
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::config_object::{ConfigObject, ConfigText};
use crate::context::Context;
use crate::effect::{Effect, PatchAuthor};
use crate::event::{HookOutput, Usage};
use crate::failure::{Failure, FailureKind};
use crate::name::{RunId, Scope};
use crate::notice::Notice;

/// The output of a hook, judged; some of it may have taken effect.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What the hook wrote.
    output: HookOutput,
    /// What its process used.
    usage: Option<Usage>,
    /// Its changes of objects are carried out.
    patched: bool,
    /// The objects that are written, with the value of the section's key in each.
    saved: Vec<(ConfigObject, Arc<Value>)>,
}

/// What the output of a hook led to so far.
#[derive(Debug)]
pub(crate) enum Carried {
    /// All of it took effect.
    Done {
        /// What the process used.
        usage: Option<Usage>,
        /// Whether the values of the hook's scope differ.
        changed: bool,
        /// Whether the hook said something new about which modules are on.
        flags_changed: bool,
    },
    /// It can't be used, or what it asked for failed.
    Failed(Failure, Option<Usage>),
    /// Its changes of objects are carried out next.
    Patching(Prepared, RunId, Effect),
    /// Its change of the ConfigMap is written next.
    Saving(Prepared, RunId, Effect),
}

impl Configuration {
    /// Returns what a section is in each of the objects, to be `config` together: those that differ from now, the ConfigMap
    /// first. All of it is for the ConfigMap where the Secret has no part.
    fn parts(&self, key: &str, config: &Arc<Value>) -> Vec<(ConfigObject, Arc<Value>)> {
        let Some(Layers { plain, secret }) = self.config_map.layers(key) else {
            return vec![(ConfigObject::ConfigMap, Arc::clone(config))];
        };
        let (below, above) = values::overlay::split(config, plain.as_deref(), secret);
        let below = below.filter(|below| Some(below) != plain.as_deref());
        let below = below.map(|below| (ConfigObject::ConfigMap, Arc::new(below)));
        let above = (above != **secret).then(|| (ConfigObject::Secret, Arc::new(above)));
        above.into_iter().chain(below).collect()
    }

    /// Judges what a hook wrote and begins to carry it out.
    pub(crate) fn hook_wrote(
        &mut self,
        cx: &mut Context,
        hook: &Hook,
        output: HookOutput,
        usage: Option<Usage>,
        cause: &Cause,
    ) -> Carried {
        if output.is_silent() && self.section(&hook.id.scope).is_some() {
            return Carried::Done { usage, changed: false, flags_changed: false };
        }
        if output.failed.is_none()
            && let Err(failure) = self.judged(hook, &output)
        {
            return Carried::Failed(without_output(&output, failure), usage);
        }
        self.carry_out(cx, hook, Prepared { output, usage, patched: false, saved: Vec::new() }, cause)
    }

    /// Goes on when the changes of objects that a hook asked for were carried out, or not.
    pub(crate) fn objects_patched(
        &mut self,
        cx: &mut Context,
        hook: &Hook,
        mut prepared: Prepared,
        outcome: Result<(), Failure>,
        cause: &Cause,
    ) -> Carried {
        let Err(failure) = outcome else {
            prepared.patched = true;
            return self.carry_out(cx, hook, prepared, cause);
        };
        let failure = match prepared.output.failed.take() {
            Some(mut first) => {
                first.chain.push(format!("and what it wrote all the same was not done: {failure}"));
                first
            }
            None => failure,
        };
        Carried::Failed(without_output(&prepared.output, failure), prepared.usage)
    }

    /// Forgets a write of the ConfigMap for a hook whose answer is not wanted any more.
    pub(crate) fn forget_save(&mut self, run: RunId) {
        self.config_map.saves.remove(&run);
    }

    /// Goes on when the ConfigMap was written for a hook, or not.
    pub(crate) fn hook_saved(
        &mut self,
        cx: &mut Context,
        run: RunId,
        hook: &Hook,
        mut prepared: Prepared,
        outcome: Result<String, Failure>,
        cause: &Cause,
    ) -> Carried {
        match (outcome, self.config_map.saves.remove(&run)) {
            (Ok(version), Some(pending)) => {
                self.config_map.saved(&pending, &version);
                prepared.saved.push((pending.object, pending.value));
                self.carry_out(cx, hook, prepared, cause)
            }
            (Ok(_), None) => Carried::Failed(mismatch("a change of the ConfigMap"), prepared.usage),
            (Err(mut failure), _) => {
                note_done(&mut failure, prepared.patched, !prepared.saved.is_empty());
                Carried::Failed(without_output(&prepared.output, failure), prepared.usage)
            }
        }
    }

    /// Does the next step of what a hook asked for; the last one commits its values.
    fn carry_out(&mut self, cx: &mut Context, hook: &Hook, mut prepared: Prepared, cause: &Cause) -> Carried {
        let usage = prepared.usage;
        if !prepared.patched && !prepared.output.object_patches.is_empty() {
            let run = cx.ids.run();
            let patches = prepared.output.object_patches.as_slice().into();
            return Carried::Patching(
                prepared,
                run,
                Effect::PatchObjects { run, author: PatchAuthor::Hook(hook.id.clone()), patches },
            );
        }
        if let Some(failure) = prepared.output.failed.take() {
            return Carried::Failed(without_output(&prepared.output, failure), usage);
        }
        // The values may have changed while objects were patched, so all is judged once more.
        let section = match self.judged(hook, &prepared.output) {
            Ok(section) => section,
            Err(mut failure) => {
                note_done(&mut failure, prepared.patched, !prepared.saved.is_empty());
                return Carried::Failed(without_output(&prepared.output, failure), usage);
            }
        };
        let scope = &hook.id.scope;
        let config = section.config_or_null();
        let is_changed = !prepared.output.config_patch.operations().is_empty()
            && self.section(scope).is_some_and(|now| now.config_or_null() != config);
        let parts = if is_changed { self.parts(section.key(), &config) } else { Vec::new() };
        if let Some((object, value)) = parts.into_iter().find(|part| !prepared.saved.contains(part)) {
            let run = cx.ids.run();
            let key = section.key().to_owned();
            let text = values::yaml::emit_v3(&value);
            let basis = self.config_map.of(object).basis(&key);
            self.config_map
                .save_began(run, PendingSave { object, key: key.clone(), text: text.clone(), value });
            let effect = Effect::SaveConfigValues { run, object, key, text: Some(ConfigText(text)), basis };
            return Carried::Saving(prepared, run, effect);
        }
        let changed = self.section(scope).is_some_and(|now| !Arc::ptr_eq(now.result(), section.result()));
        if !prepared.saved.is_empty() {
            self.config_map.saved_layers(section.key(), &prepared.saved);
            self.config_map.config_committed(section.key());
        }
        self.set_section(cx, scope, section);
        let flags_changed =
            *scope == Scope::Global && self.set_dynamic_flags(cx, hook, &prepared.output, cause);
        if !prepared.output.metrics.is_empty() {
            let operations = prepared.output.metrics.as_slice().into();
            let unquotable = self.unquotable(scope.module());
            cx.notify(Notice::MetricsExported { hook: hook.id.clone(), operations, unquotable });
        }
        Carried::Done { usage, changed, flags_changed }
    }

    /// Returns the section of the hook's scope as it will be, or why the output can't be used.
    fn judged(&self, hook: &Hook, output: &HookOutput) -> Result<Section, Failure> {
        let section = self.section(&hook.id.scope).ok_or_else(|| {
            Failure::new(FailureKind::Bug, format!("hook {} ran, but its module is gone", hook.id))
        })?;
        if let Some((object, problem)) =
            self.config_map.problem(section.key()).filter(|_| !output.config_patch.operations().is_empty())
        {
            let message = format!(
                "{} changes the configuration, but what is there can't be used: {problem}",
                described(hook)
            );
            return Err(Failure::new(FailureKind::Values, message).advise(format!(
                "it is not overwritten; correct the key of the {object}, the hook runs again by itself"
            )));
        }
        let wrong = |file: &str, error: &values::SectionError| {
            Failure::new(
                FailureKind::HookOutput,
                format!("{} wrote {file} that can't be used: {error}", described(hook)),
            )
            .advise("nothing of what the hook wrote took effect; correct the hook, it runs again by itself")
        };
        let section = section
            .with_config_patch(&output.config_patch)
            .map_err(|e| wrong("a config values patch", &e))?;
        section.with_values_patch(&output.values_patch).map_err(|e| wrong("a values patch", &e))
    }
}

/// Returns a failure with what everybody may read of it: not the values that the hook wanted to set.
fn without_output(output: &HookOutput, failure: Failure) -> Failure {
    let operations = [&output.values_patch, &output.config_patch].into_iter().flat_map(Patch::operations);
    let values: Vec<&Value> = operations.filter_map(Operation::value).collect();
    without(&values, failure)
}

/// Returns the hook in the words of a message.
pub(super) fn described(hook: &Hook) -> String {
    match &hook.id.scope {
        Scope::Global => format!("global hook '{}'", hook.id.name),
        Scope::Module(module) => format!("hook '{}' of module {module}", hook.id.name),
    }
}

fn note_done(failure: &mut Failure, patched: bool, saved: bool) {
    if patched {
        failure.chain.push("its changes of objects were carried out before".to_owned());
    }
    if saved {
        failure.chain.push("another part of its change of the configuration was written before".to_owned());
    }
}

/// Returns the failure of an answer that belongs to another question.
pub(crate) fn mismatch(what: &str) -> Failure {
    Failure::new(FailureKind::Bug, format!("the answer was about {what}, but something else was asked"))
        .advise("report this together with the log of the last minute")
}
