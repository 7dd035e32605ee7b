//! Runs a hook: writes its files, runs the process, reads its output. See docs/hooks.md#environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::hook::{HookLimits, RunContexts};
use engine::{Failure, FailureKind, Hook, HookId, HookOutput, Launch, RunLabels, Scope, Usage, ValuesInput};
use tokio::sync::oneshot;
use tokio::task::JoinError;
use values::name::safe_name;
use values::patch::Root;

use super::error::ScratchError;
use super::input::{write_config_values, write_values};
use super::log::{LogRules, Source, sink};
use super::output::{OutputFiles, ResponseFiles, Written};
use super::run_files::{Layout, RunFiles};
use super::scratch::Scratch;
use crate::fence::Fence;
use crate::process::{Chroot, Chroots, Exit, Finished, MetLimit, Program, Survivors, Variables};

/// From how many bytes on files are written and read on a blocking thread: that many take about a
/// millisecond.
const LARGE: usize = 1 << 20;

/// The files of a hook.
static LAYOUT: Layout = Layout {
    inputs: &["binding-context.json", "config-values.json", "values.json"],
    outputs: &[
        "hook-config-values.json-patch",
        "hook-values.json-patch",
        "hook-metrics.json",
        "object-patch",
    ],
};

/// The files of a hook that the API server may ask.
static WEBHOOK_LAYOUT: Layout = Layout {
    inputs: LAYOUT.inputs,
    outputs: &[
        "hook-config-values.json-patch",
        "hook-values.json-patch",
        "hook-metrics.json",
        "object-patch",
        "admission-response.json",
        "conversion-response.json",
    ],
};

/// The files of a hook that says what should be.
static RECONCILE_LAYOUT: Layout = Layout {
    inputs: LAYOUT.inputs,
    outputs: &[
        "hook-config-values.json-patch",
        "hook-values.json-patch",
        "hook-metrics.json",
        "object-patch",
        "reconcile-result.json",
    ],
};

/// Runs hooks and scripts.
#[derive(Debug)]
pub struct Hooks {
    pub(super) scratch: Arc<Scratch>,
    pub(super) environment: Variables,
    pub(super) rules: LogRules,
    pub(super) fence: Fence,
    /// What a hook may use at most that does not say so itself.
    limits: HookLimits,
    /// Where hooks and scripts of modules are run, if not among all files.
    pub(super) chroots: Option<Chroots>,
}

/// A hook to run, with all that it gets.
#[derive(Clone, Debug)]
pub struct HookRun {
    /// The hook.
    pub hook: Arc<Hook>,
    /// Its binding contexts with snapshots.
    pub contexts: RunContexts,
    /// The values that it can read.
    pub values: ValuesInput,
    /// The time limit; `None` for no limit.
    pub timeout: Option<Duration>,
    /// The fields of its log lines.
    pub labels: RunLabels,
}

impl Hooks {
    /// Returns a runner whose processes see `environment` and whose files are in `scratch`.
    ///
    /// `rules` are the options for their log lines.
    pub fn new(scratch: Arc<Scratch>, environment: Vec<(OsString, OsString)>, rules: LogRules) -> Self {
        Self {
            scratch,
            environment: environment.into(),
            rules,
            fence: Fence::none(),
            limits: HookLimits::default(),
            chroots: None,
        }
    }

    /// Returns the runner with what says until when it may start anything.
    #[must_use]
    pub fn behind(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// Returns the runner whose hooks may use this at most, as far as they do not say so themselves.
    #[must_use]
    pub fn limited(self, limits: HookLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the runner whose hooks and scripts of modules see only the files of `chroots`, if there are any.
    #[must_use]
    pub fn below(self, chroots: Option<Chroots>) -> Self {
        Self { chroots, ..self }
    }

    /// Returns what a program of a module sees that has its files in `files`.
    pub(super) fn chroot(&self, module: &str, path: &str, files: &RunFiles) -> Option<Chroot> {
        let chroot = self.chroots.as_ref()?.of_module(module, Path::new(path));
        let chroot = chroot.with_named_in(self.environment.iter());
        // Beside the files are those of other runs, which may be of other modules.
        let above = self.scratch.path().parent().unwrap_or(self.scratch.path());
        Some(chroot.with_alone(files.directory(), above))
    }

    /// Runs a hook and returns what it wrote, checked, and what it used.
    ///
    /// What it wrote is not applied yet. What its files held is gone.
    pub async fn run(
        &self,
        run: HookRun,
        cancel: oneshot::Receiver<()>,
    ) -> (Result<HookOutput, Failure>, Option<Usage>) {
        let id = &run.hook.id;
        let is_large = run.contexts.len_bytes() >= LARGE;
        let prepared = if is_large {
            let (scratch, run) = (Arc::clone(&self.scratch), run.clone());
            blocking(move || prepare(&scratch, &run)).await
        } else {
            prepare(&self.scratch, &run)
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return (Err(Failure::of(FailureKind::Files, &error)), None),
        };
        let Prepared { mut files, variables, outputs } = prepared;
        let mut environment = self.environment.clone();
        for (name, path) in variables {
            environment.set(name, path);
        }
        let path = PathBuf::from(&*run.hook.path);
        if let Some(dir) = path.parent() {
            environment.set("HOOK_DIR", dir);
        }
        let limits = run.hook.spec.settings.limits.or(self.limits);
        let program = Program {
            path,
            args: Vec::new(),
            environment,
            timeout: run.timeout,
            mark: Some("VALUES_PATH"),
            outputs: limits.output.map(|_| outputs.paths().map(Path::to_owned).collect()).unwrap_or_default(),
            limits,
            chroot: run.hook.launch.module.as_deref().and_then(|path| {
                let module = run.hook.id.scope.module()?;
                self.chroot(module.as_str(), path, &files)
            }),
        };
        let program = launched(program, &run.hook);
        if let Err(failure) = self.fence.check() {
            return (Err(failure), None);
        }
        let sink = sink(Source::Hook(Arc::clone(&run.hook), run.labels.clone()), self.rules, &run.values);
        let finished = program.run(cancel, sink).await;
        let root = match &run.values.module {
            Some(module) => Root::Module(module.key.to_string()),
            None => Root::Global,
        };
        let id = id.clone();
        let failed = match &finished {
            Ok(finished) => exit_failure(finished),
            Err(error) => Some(Failure::of(FailureKind::Files, error)),
        };
        let survivors = finished.as_ref().map_or(Survivors::Some, |finished| finished.survivors);
        // Most runs write nothing: then nothing is looked at by its name.
        let is_silent = files.are_outputs_untouched(survivors);
        let written = if is_silent { Written::NOTHING } else { outputs.written() };
        let is_large = is_large || written.bytes >= LARGE as u64;
        let read = move || {
            let outcome = failed.map_or_else(|| outputs.read(&root, written), Err);
            let outcome = outcome.map_err(|failure| name_hook(&id, failure));
            let outcome = outcome.or_else(|failure| with_survivors(failure, &outputs));
            // Removing large files takes time, too.
            files.finish(survivors);
            outcome
        };
        let outcome = if is_large { blocking(read).await } else { read() };
        (outcome, finished.ok().map(|finished| finished.usage))
    }
}

/// Returns the program as the file of its hook asks to be started.
fn launched(mut program: Program, hook: &Hook) -> Program {
    let Launch { venv, module: _, batch_index } = &hook.launch;
    if let Some(index) = batch_index {
        program.args = vec!["hook".into(), "run".into(), index.to_string().into()];
        let module = hook.id.scope.module().map(ToString::to_string).unwrap_or_default();
        program.environment.set("MODULE_NAME", module);
    }
    match venv {
        Some(venv) => program.run_by_python_of(Path::new(&**venv)),
        None => program,
    }
}

/// Runs blocking work on a thread for such work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // This happens only while the whole program ends.
        Err(Err(_)) => std::future::pending().await,
    }
}

/// Writes the files of a run.
fn prepare(scratch: &Scratch, run: &HookRun) -> Result<Prepared, ScratchError> {
    let reconciles = run.contexts.is_reconciliation();
    let has_webhooks = !reconciles && run.hook.spec.has_webhooks();
    let layout = match (reconciles, has_webhooks) {
        (true, _) => &RECONCILE_LAYOUT,
        (false, true) => &WEBHOOK_LAYOUT,
        (false, false) => &LAYOUT,
    };
    let mut files = scratch.run(layout, || {
        let (kind, module) = (kind(&run.hook.id), run.hook.id.scope.module());
        let scope = module.map_or_else(|| kind.to_owned(), |module| safe_name(module.as_str()));
        format!("{scope}.{kind}-hook-{}", safe_name(run.hook.id.name.as_str()))
    })?;
    let context = files.input("binding-context.json", |out| run.contexts.write(out))?;
    let config = files.input("config-values.json", |out| write_config_values(out, &run.values))?;
    let values = files.input("values.json", |out| write_values(out, &run.values))?;
    let outputs = OutputFiles {
        config_patch: files.output("hook-config-values.json-patch")?,
        values_patch: files.output("hook-values.json-patch")?,
        metrics: files.output("hook-metrics.json")?,
        object_patches: files.output("object-patch")?,
        responses: if has_webhooks {
            let (admission, conversion) = ("admission-response.json", "conversion-response.json");
            Some(ResponseFiles { admission: files.output(admission)?, conversion: files.output(conversion)? })
        } else {
            None
        },
        reconcile: reconciles.then(|| files.output("reconcile-result.json")).transpose()?,
    };
    let mut variables = vec![
        ("BINDING_CONTEXT_PATH", context),
        ("CONFIG_VALUES_PATH", config),
        ("VALUES_PATH", values),
        ("CONFIG_VALUES_JSON_PATCH_PATH", outputs.config_patch.clone()),
        ("VALUES_JSON_PATCH_PATH", outputs.values_patch.clone()),
        ("METRICS_PATH", outputs.metrics.clone()),
        ("KUBERNETES_PATCH_PATH", outputs.object_patches.clone()),
    ];
    if let Some(ResponseFiles { admission, conversion }) = &outputs.responses {
        variables.push(("VALIDATING_RESPONSE_PATH", admission.clone()));
        variables.push(("ADMISSION_RESPONSE_PATH", admission.clone()));
        variables.push(("CONVERSION_RESPONSE_PATH", conversion.clone()));
    }
    variables.extend(outputs.reconcile.iter().map(|path| ("RECONCILE_RESULT_PATH", path.clone())));
    Ok(Prepared { files, variables, outputs })
}

struct Prepared {
    files: RunFiles,
    variables: Vec<(&'static str, PathBuf)>,
    outputs: OutputFiles,
}

/// Returns the object patches of a failed hook that are marked to be applied all the same.
fn with_survivors(failure: Failure, outputs: &OutputFiles) -> Result<HookOutput, Failure> {
    // A hook that was killed may have written only half of its output.
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
    let stderr = finished.stderr.trim();
    let text = |exit: &Exit| if stderr.is_empty() { format!("cmd run: {exit}") } else { stderr.to_owned() };
    match &finished.exit {
        Exit::Code(0) => None,
        exit @ Exit::TimedOut(_) => {
            let failure = Failure::new(FailureKind::HookTimeout, exit.to_string());
            Some(failure.advise("settings.timeout in its configuration or --hook-timeout set the limit"))
        }
        Exit::Limited(met) => Some(limit_failure(met, stderr)),
        exit @ Exit::Cancelled => Some(Failure::new(FailureKind::Cancelled, exit.to_string())),
        exit @ (Exit::Code(_) | Exit::Signal(_)) => {
            let mut failure = Failure::new(FailureKind::HookExit, text(exit));
            if !stderr.is_empty() {
                failure.chain.push(exit.to_string());
            }
            Some(failure)
        }
    }
}

/// Returns the failure of a hook that met a limit, and printed this.
fn limit_failure(met: &MetLimit, stderr: &str) -> Failure {
    let mut failure = Failure::new(FailureKind::HookLimit, met.to_string());
    if !stderr.is_empty() {
        failure.chain.push(stderr.to_owned());
    }
    let key = met.kind.key();
    failure.advise(format!("correct what it needs so much for; settings.limits.{key} in its configuration or --hook-limits gives it more"))
}

fn name_hook(id: &HookId, mut failure: Failure) -> Failure {
    failure.message = format!("{} hook '{}' failed: {}", kind(id), id.name, failure.message);
    failure
}

/// Returns the word for the scope of a hook.
fn kind(id: &HookId) -> &'static str {
    match &id.scope {
        Scope::Global => "global",
        Scope::Module(_) => "module",
    }
}
