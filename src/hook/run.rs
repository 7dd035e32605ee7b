//! One run of a hook: files out, process, files in.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::hook::RunContexts;
use engine::{Failure, FailureKind, Hook, HookOutput, RunLabels, Scope, Usage, ValuesInput};
use tokio::sync::oneshot;
use values::name::safe_name;
use values::patch::Root;

use super::input::{write_config_values, write_values};
use super::log::{Origin, sink};
use super::output::OutputFiles;
use super::scratch::{RunFiles, Scratch, ScratchError};
use crate::process::{Exit, Finished, Program, RunError};

/// Runs hooks and scripts.
#[derive(Debug)]
pub struct Hooks {
    pub(super) scratch: Arc<Scratch>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) merge_json: bool,
}

/// A hook to run, with all that it gets.
#[derive(Clone, Debug)]
pub struct HookRun {
    /// The hook.
    pub hook: Arc<Hook>,
    /// Why it runs, and the snapshots it is shown.
    pub contexts: RunContexts,
    /// What it reads as values.
    pub values: ValuesInput,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// What its log lines carry.
    pub labels: RunLabels,
}

impl Hooks {
    /// Returns a runner whose processes see `environment` and whose files are in `scratch`.
    ///
    /// With `merge_json` each JSON object that a hook prints becomes a log line of its own.
    pub fn new(scratch: Arc<Scratch>, environment: Vec<(OsString, OsString)>, merge_json: bool) -> Self {
        Self { scratch, environment, merge_json }
    }

    /// Runs a hook and returns what it wrote, checked, and what it used.
    ///
    /// Nothing that it wrote has taken effect. Its files are gone afterwards.
    pub async fn run(
        &self,
        run: HookRun,
        cancel: oneshot::Receiver<()>,
    ) -> (Result<HookOutput, Failure>, Option<Usage>) {
        let id = &run.hook.id;
        let prepared = match self.prepare(&run) {
            Ok(prepared) => prepared,
            Err(error) => return (Err(unwritable(&error)), None),
        };
        let Prepared { files, variables, outputs } = prepared;
        let mut environment = self.environment.clone();
        environment.extend(variables.into_iter().map(|(name, path)| (name.into(), path.into_os_string())));
        let path = PathBuf::from(&*run.hook.path);
        if let Some(dir) = path.parent() {
            environment.push(("HOOK_DIR".into(), dir.into()));
        }
        let program = Program { path, args: Vec::new(), environment, timeout: run.timeout };
        let finished = program.run(cancel, sink(Origin::of_hook(id, &run.labels), self.merge_json)).await;
        let name = |failure| name_hook(&id.scope, id.name.as_str(), failure);
        let root = match &run.values.module {
            Some(module) => Root::Module(module.key.to_string()),
            None => Root::Global,
        };
        let outcome = match &finished {
            Ok(finished) => match exit_failure(finished) {
                None => outputs.read(&root).map_err(name),
                Some(failure) => Err(name(failure)),
            },
            Err(error) => Err(name(not_started(error))),
        };
        let outcome = outcome.or_else(|failure| with_survivors(failure, &outputs));
        drop(files);
        (outcome, finished.ok().map(|finished| finished.usage))
    }

    fn prepare(&self, run: &HookRun) -> Result<Prepared, ScratchError> {
        let files = self.scratch.run()?;
        let scope = match &run.hook.id.scope {
            Scope::Global => "global".to_owned(),
            Scope::Module(module) => safe_name(module.as_str()),
        };
        let hook = safe_name(run.hook.id.name.as_str());
        let kind = match &run.hook.id.scope {
            Scope::Global => "global",
            Scope::Module(_) => "module",
        };
        let context = files.write(&format!("{scope}.{kind}-hook-{hook}-binding-context.json"), |out| {
            run.contexts.write(out)
        })?;
        let config = files.write(&format!("{scope}.{kind}-config-values.json"), |out| {
            write_config_values(out, &run.values)
        })?;
        let values =
            files.write(&format!("{scope}.{kind}-values.json"), |out| write_values(out, &run.values))?;
        let outputs = OutputFiles {
            config_patch: files.empty(&format!("{hook}.{kind}-hook-config-values.json-patch"))?,
            values_patch: files.empty(&format!("{hook}.{kind}-hook-values.json-patch"))?,
            metrics: files.empty(&format!("{hook}.{kind}-hook-metrics.json"))?,
            object_patches: files.empty(&format!("{hook}-object-patch"))?,
        };
        let variables = vec![
            ("BINDING_CONTEXT_PATH", context),
            ("CONFIG_VALUES_PATH", config),
            ("VALUES_PATH", values),
            ("CONFIG_VALUES_JSON_PATCH_PATH", outputs.config_patch.clone()),
            ("VALUES_JSON_PATCH_PATH", outputs.values_patch.clone()),
            ("METRICS_PATH", outputs.metrics.clone()),
            ("KUBERNETES_PATCH_PATH", outputs.object_patches.clone()),
        ];
        Ok(Prepared { files, variables, outputs })
    }
}

struct Prepared {
    files: RunFiles,
    variables: Vec<(&'static str, PathBuf)>,
    outputs: OutputFiles,
}

/// Returns what a failed hook wrote that is carried out all the same: patches of a status that say so.
fn with_survivors(failure: Failure, outputs: &OutputFiles) -> Result<HookOutput, Failure> {
    // What a hook that was ended had written so far may be half of what it wanted.
    if failure.kind != FailureKind::HookExit {
        return Err(failure);
    }
    let object_patches = outputs.surviving_patches();
    if object_patches.is_empty() {
        return Err(failure);
    }
    Ok(HookOutput { failed: Some(failure), object_patches, ..HookOutput::default() })
}

/// Returns why a process that has ended did not succeed.
pub(super) fn exit_failure(finished: &Finished) -> Option<Failure> {
    let said = finished.stderr.trim();
    let text = |exit: &Exit| if said.is_empty() { format!("cmd run: {exit}") } else { said.to_owned() };
    match &finished.exit {
        Exit::Code(0) => None,
        exit @ Exit::TimedOut(_) => {
            let failure = Failure::new(FailureKind::HookTimeout, exit.to_string());
            Some(failure.advise("settings.timeout in its configuration or --hook-timeout set the limit"))
        }
        exit @ Exit::Cancelled => Some(Failure::new(FailureKind::Cancelled, exit.to_string())),
        exit @ (Exit::Code(_) | Exit::Signal(_)) => {
            let mut failure = Failure::new(FailureKind::HookExit, text(exit));
            if !said.is_empty() {
                failure.chain.push(exit.to_string());
            }
            Some(failure)
        }
    }
}

pub(super) fn not_started(error: &RunError) -> Failure {
    Failure::of(FailureKind::Files, error)
}

pub(super) fn unwritable(error: &ScratchError) -> Failure {
    Failure::of(FailureKind::Files, error)
}

fn name_hook(scope: &Scope, name: &str, mut failure: Failure) -> Failure {
    let kind = match scope {
        Scope::Global => "global",
        Scope::Module(_) => "module",
    };
    failure.message = format!("{kind} hook '{name}' failed: {}", failure.message);
    failure
}
