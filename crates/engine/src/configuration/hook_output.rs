//! What a hook wrote, and how it takes effect: all of it or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use values::Section;

use crate::catalog::Hook;
use crate::cause::Cause;
use crate::converge::discovery::DynamicFlag;
use crate::effect::{ConfigText, Effect};
use crate::engine::Engine;
use crate::event::{HookOutput, Usage};
use crate::failure::{Failure, FailureKind};
use crate::module::hook_run::HookReport;
use crate::name::{QueueName, RunId, Scope};
use crate::notice::{HookEnd, Notice};
use crate::task::Task;
use crate::task::in_flight::{HookStage, HookWork, Running, Work};

/// The output of a hook, judged; some of it may have taken effect.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What the hook wrote.
    output: HookOutput,
    /// What its process used.
    usage: Option<Usage>,
    /// Its changes of objects are carried out.
    patched: bool,
    /// The ConfigMap is written, with this text of its key.
    saved: Option<Arc<serde_json::Value>>,
}

impl Engine {
    /// Takes in that a hook process ended.
    pub(crate) fn hook_finished(
        &mut self,
        run: RunId,
        outcome: Result<HookOutput, Failure>,
        usage: Option<Usage>,
    ) {
        let Some((queue, running)) = self.finish_run(run) else { return };
        let Running { task, work, .. } = running;
        let Work::Hook(work) = work else {
            return self.fail(&queue, task, mismatch("a hook"));
        };
        if outcome.as_ref().is_err_and(Failure::is_cancelled) {
            return self.stopped(&queue, task);
        }
        let prepared = outcome.and_then(|output| {
            if output.failed.is_none() {
                self.judged(&work.hook, &output)?;
            }
            Ok(Prepared { output, usage, patched: false, saved: None })
        });
        match prepared {
            Ok(prepared) => self.carry_out(&queue, task, work, prepared),
            Err(failure) => self.hook_failed(&queue, task, &work, failure, usage),
        }
    }

    /// Takes in that the changes of objects that a hook asked for were carried out, or not.
    pub(crate) fn objects_patched(&mut self, run: RunId, outcome: Result<(), Failure>) {
        let Some((queue, Running { task, work, .. })) = self.finish_run(run) else { return };
        let Work::Hook(mut work) = work else {
            return self.fail(&queue, task, mismatch("changes of objects"));
        };
        let HookStage::Patching(mut prepared) = std::mem::replace(&mut work.stage, HookStage::Process) else {
            return self.fail(&queue, task, mismatch("changes of objects"));
        };
        match outcome {
            Ok(()) => {
                prepared.patched = true;
                self.carry_out(&queue, task, work, prepared);
            }
            Err(failure) => {
                let failure = match prepared.output.failed.take() {
                    Some(mut first) => {
                        first.chain.push(format!("and what it wrote all the same was not done: {failure}"));
                        first
                    }
                    None => failure,
                };
                self.hook_failed(&queue, task, &work, failure, prepared.usage);
            }
        }
    }

    /// Takes in that the ConfigMap was written for a hook, or not.
    pub(crate) fn hook_config_saved(&mut self, run: RunId, outcome: Result<String, Failure>) {
        let Some((queue, Running { task, work, .. })) = self.finish_run(run) else {
            self.user.save_ended(run);
            return;
        };
        let pending = self.user.save_ended(run);
        let Work::Hook(mut work) = work else {
            return self.fail(&queue, task, mismatch("a change of the ConfigMap"));
        };
        let HookStage::Saving(mut prepared) = std::mem::replace(&mut work.stage, HookStage::Process) else {
            return self.fail(&queue, task, mismatch("a change of the ConfigMap"));
        };
        match (outcome, pending) {
            (Ok(version), Some(pending)) => {
                prepared.saved = Some(Arc::clone(&pending.value));
                self.user.saved(pending, &version);
                self.carry_out(&queue, task, work, prepared);
            }
            (Ok(_), None) => self.fail(&queue, task, mismatch("a change of the ConfigMap")),
            (Err(mut failure), _) => {
                note_done(&mut failure, prepared.patched, false);
                self.hook_failed(&queue, task, &work, failure, prepared.usage);
            }
        }
    }

    /// Does the next step of what a hook asked for; the last one commits its values.
    fn carry_out(&mut self, queue: &QueueName, task: Task, mut work: Box<HookWork>, mut prepared: Prepared) {
        if !prepared.patched && !prepared.output.object_patches.is_empty() {
            let run = self.next_run();
            let patches = prepared.output.object_patches.as_slice().into();
            let effect = Effect::PatchObjects { run, hook: work.hook.id.clone(), patches };
            work.stage = HookStage::Patching(prepared);
            return self.begin(queue, task, run, Work::Hook(work), effect);
        }
        if let Some(failure) = prepared.output.failed.take() {
            return self.hook_failed(queue, task, &work, failure, prepared.usage);
        }
        // The values may have changed while objects were patched, so all is judged once more.
        let section = match self.judged(&work.hook, &prepared.output) {
            Ok(section) => section,
            Err(mut failure) => {
                note_done(&mut failure, prepared.patched, prepared.saved.is_some());
                return self.hook_failed(queue, task, &work, failure, prepared.usage);
            }
        };
        let scope = work.hook.id.scope.clone();
        let config = section.config_or_null();
        let is_changed = !prepared.output.config_patch.operations().is_empty()
            && self.section(&scope).is_some_and(|now| now.config_or_null() != config);
        let is_saved = prepared.saved.as_ref().is_some_and(|saved| **saved == *config);
        if is_changed && !is_saved {
            let run = self.next_run();
            let key = section.key().to_owned();
            let text = values::yaml::emit_v3(&config);
            self.user.save_began(run, key.clone(), text.clone(), config);
            let effect = Effect::SaveConfigValues { run, key, text: Some(ConfigText(text)) };
            work.stage = HookStage::Saving(prepared);
            return self.begin(queue, task, run, Work::Hook(work), effect);
        }
        self.commit(queue, task, &work, &prepared, section);
    }

    fn commit(
        &mut self,
        queue: &QueueName,
        task: Task,
        work: &HookWork,
        prepared: &Prepared,
        section: Section,
    ) {
        let scope = &work.hook.id.scope;
        let changed = self.section(scope).is_some_and(|now| !Arc::ptr_eq(now.result(), section.result()));
        if prepared.saved.is_some() {
            self.user.config_committed(section.key(), section.config_or_null());
        }
        self.set_section(scope, section);
        let flags_changed =
            *scope == Scope::Global && self.set_dynamic_flags(&work.hook, &prepared.output, &task.cause);
        if !prepared.output.metrics.is_empty() {
            let operations = prepared.output.metrics.as_slice().into();
            self.notify(Notice::MetricsExported { hook: work.hook.id.clone(), operations });
        }
        self.hook_ran(queue, work, &task, prepared.usage, HookEnd::Success);
        self.hook_succeeded(queue, task, work, HookReport { changed, flags_changed });
    }

    /// Returns the section of the hook's scope as it will be, or why the output can't be used.
    fn judged(&self, hook: &Hook, output: &HookOutput) -> Result<Section, Failure> {
        let section = self.section(&hook.id.scope).ok_or_else(|| {
            Failure::new(FailureKind::Bug, format!("hook {} ran, but its module is gone", hook.id))
        })?;
        if let Some(problem) =
            self.user.problem(section.key()).filter(|_| !output.config_patch.operations().is_empty())
        {
            let message = format!(
                "{} changes the configuration, but what is there can't be used: {problem}",
                described(hook)
            );
            return Err(Failure::new(FailureKind::Values, message).advise(
                "it is not overwritten; correct the key of the ConfigMap, the hook runs again by itself",
            ));
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

    /// Takes in what a global hook says about modules. Returns whether that is something new.
    fn set_dynamic_flags(&mut self, hook: &Hook, output: &HookOutput, cause: &Cause) -> bool {
        let mut flags: BTreeMap<&String, &Option<bool>> = output.config_patch.enabled().iter().collect();
        flags.extend(output.values_patch.enabled());
        let mut is_new = false;
        for (key, flag) in flags {
            let Some(name) = self.module_by_key(key) else {
                let message = format!(
                    "{} sets {key}Enabled, but there is no module with the key {key}",
                    described(hook)
                );
                self.notify(Notice::Warned { scope: Scope::Global, message });
                continue;
            };
            let known = self.dynamic_flags.get(&name);
            is_new |= known.map(|known| known.on) != *flag;
            match flag {
                // To say the same again is nothing new.
                Some(on) if known.is_some_and(|known| known.on == *on && known.hook == hook.id) => {}
                Some(on) => {
                    let (hook, since, cause) = (hook.id.clone(), self.now, cause.clone());
                    self.dynamic_flags.insert(name, DynamicFlag { on: *on, hook, since, cause });
                }
                None => drop(self.dynamic_flags.remove(&name)),
            }
        }
        is_new
    }
}

/// Returns the hook in the words of a message.
pub(crate) fn described(hook: &Hook) -> String {
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
        failure.chain.push("its change of the ConfigMap was written before".to_owned());
    }
}

/// Returns the failure of an answer that belongs to another question.
pub(crate) fn mismatch(what: &str) -> Failure {
    Failure::new(FailureKind::Bug, format!("the answer was about {what}, but something else was asked"))
        .advise("report this together with the log of the last minute")
}
