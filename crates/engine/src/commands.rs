//! What people and programs ask for.

use std::collections::BTreeSet;

use crate::cause::Cause;
use crate::effect::{ConfigText, Effect};
use crate::engine::{Engine, Life};
use crate::event::Command;
use crate::failure::{Failure, FailureKind};
use crate::module::Phase;
use crate::module::delete::ModuleDelete;
use crate::name::{CommandId, ModuleName, QueueName, ReleaseName, RunId};
use crate::queue::queues::Place;
use crate::task::TaskKind;

impl Engine {
    /// Does what was asked, or says why not.
    pub(crate) fn commanded(&mut self, id: CommandId, command: Command) {
        let outcome = if self.life == Life::Running {
            match command {
                Command::Converge => Ok(Some(self.command_converge())),
                Command::PurgeModule(name) => self.command_purge(&name).map(Some),
                Command::ResumeModule(name) => self.command_resume(&name).map(Some),
                Command::RunModule(name) => self.command_run(&name).map(Some),
                Command::SetEnabled(name, on) => self.command_set_enabled(id, &name, on).map(|()| None),
            }
        } else {
            Err(Failure::new(FailureKind::Cluster, "the operator is starting or ending")
                .advise("try again later"))
        };
        match outcome {
            Ok(Some(message)) => self.out.push(Effect::AnswerCommand { id, outcome: Ok(message) }),
            // The answer follows when the ConfigMap is written.
            Ok(None) => {}
            Err(failure) => self.out.push(Effect::AnswerCommand { id, outcome: Err(failure) }),
        }
    }

    fn command_converge(&mut self) -> String {
        let cause = Cause::outside("command converge");
        if self.converge.has_begun {
            self.restart_converge("Command-Converge", "ReloadAllModules", true, &cause);
        } else {
            self.cancel_main_backoff();
        }
        format!("converge {} is queued", self.converge.generation)
    }

    fn command_run(&mut self, name: &ModuleName) -> Result<String, Failure> {
        if !self.modules.get(name).is_some_and(crate::module::ModuleState::is_on) {
            return Err(self.why_off(name));
        }
        if let Some(module) = self.modules.get_mut(name) {
            module.script = None;
        }
        let cause = Cause::outside(format!("command module run {name}"));
        self.cancel_main_backoff();
        self.look_again(BTreeSet::from([name.clone()]), "Command-Module-Run", "ReloadAllModules", &cause);
        Ok(format!("a run of module {name} is queued"))
    }

    fn command_resume(&mut self, name: &ModuleName) -> Result<String, Failure> {
        let Some(module) = self.modules.get_mut(name) else { return Err(self.why_off(name)) };
        if module.parked.take().is_none() {
            let message = format!("module {name} is not parked, it is {}", module.phase.as_str());
            return Err(Failure::new(FailureKind::Values, message)
                .advise(format!("`addon-operator module run {name}` runs it")));
        }
        module.upgrades.clear();
        let cause = Cause::outside(format!("command module resume {name}"));
        self.set_phase(name, Phase::Starting, Some("resumed by command".to_owned()));
        self.queue_module_run(name, Place::Back, "Command-Module-Resume", &cause);
        Ok(format!("module {name} goes on; a run of it is queued"))
    }

    fn command_purge(&mut self, name: &ModuleName) -> Result<String, Failure> {
        let cause = Cause::outside(format!("command module purge {name}"));
        let release = ReleaseName::from(name.as_str());
        if self.config.ignore_release.as_ref() == Some(&release) {
            let message = format!("release {name} is the operator's own (HELM_IGNORE_RELEASE)");
            return Err(Failure::new(FailureKind::Release, message));
        }
        let kind = match self.modules.get(name) {
            Some(module) if module.is_on() => {
                let message = format!("module {name} is enabled, its release is in use");
                return Err(Failure::new(FailureKind::Release, message)
                    .advise(format!("`addon-operator module disable {name}` removes it with its hooks")));
            }
            Some(module) if module.phase != Phase::Orphaned => {
                TaskKind::ModuleDelete(ModuleDelete::new(name.clone()))
            }
            Some(_) | None => TaskKind::ModulePurge(release),
        };
        let task = self.new_task(kind, "Command-Module-Purge", cause, None);
        self.put_back(&QueueName::main(), vec![task]);
        Ok(format!("the removal of release {name} is queued"))
    }

    fn command_set_enabled(&mut self, id: CommandId, name: &ModuleName, on: bool) -> Result<(), Failure> {
        let Some(module) = self.modules.get(name).filter(|_| self.knows(name)) else {
            return Err(self.why_off(name));
        };
        let key = format!("{}Enabled", module.spec.key);
        let word = if on { "enabled" } else { "disabled" };
        let message = format!(
            "module {name} is {word} by key {key} of ConfigMap {}/{}",
            self.config.namespace, self.config.config_map
        );
        let run = self.next_run();
        self.command_saves.insert(run, (id, message));
        self.out.push(Effect::SaveConfigValues { run, key, text: Some(ConfigText(on.to_string())) });
        Ok(())
    }

    /// Takes in that the ConfigMap was written, or not.
    pub(crate) fn config_saved(&mut self, run: RunId, outcome: Result<String, Failure>) {
        match self.command_saves.remove(&run) {
            Some((id, message)) => {
                // What was written comes back as a change of the ConfigMap, and takes effect then.
                self.out.push(Effect::AnswerCommand { id, outcome: outcome.map(|_| message) });
            }
            None => self.hook_config_saved(run, outcome),
        }
    }
}
