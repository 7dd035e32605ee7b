//! One run of an enabled script.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Failure, FailureKind, Module, Scope, Usage, ValuesInput, Verdict};
use tokio::sync::oneshot;
use values::name::safe_name;

use super::error::ScratchError;
use super::input::{write_config_values, write_values};
use super::log::{Source, sink};
use super::output::read;
use super::run::{Hooks, exit_failure};
use super::run_files::{Layout, RunFiles};
use crate::process::{Program, Survivors};

/// An enabled script to run.
#[derive(Clone, Debug)]
pub struct ScriptRun {
    /// The module whose script it is.
    pub module: Arc<Module>,
    /// The values that it can read.
    pub values: ValuesInput,
    /// The time limit; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// How many bytes a script may write into each of its files.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The files of a script.
static LAYOUT: Layout =
    Layout { inputs: &["config-values.json", "values.json"], outputs: &["enabled-result", "enabled-reason"] };

impl Hooks {
    /// Runs an enabled script and returns its verdict and the resources it used. See docs/modules.md#enabled.
    pub async fn run_script(
        &self,
        run: ScriptRun,
        cancel: oneshot::Receiver<()>,
    ) -> (Result<Verdict, Failure>, Option<Usage>) {
        let Some(script) = &run.module.enabled_script else {
            return (Ok(Verdict { enabled: true, reason: None }), None);
        };
        let name = |mut failure: Failure| {
            failure.message =
                format!("enabled script {} of module {}: {}", script.path, run.module.name, failure.message);
            failure
        };
        let prepared = match self.prepare_script(&run) {
            Ok(prepared) => prepared,
            Err(error) => return (Err(name(Failure::of(FailureKind::Files, &error))), None),
        };
        let Prepared { files, variables, result, reason } = prepared;
        let mut environment = self.environment.clone();
        for (name, path) in variables {
            environment.set(name, path);
        }
        let program = Program {
            path: PathBuf::from(&*script.path),
            args: Vec::new(),
            environment,
            timeout: run.timeout,
            mark: Some("VALUES_PATH"),
            limits: engine::hook::HookLimits::default(),
            outputs: Vec::new(),
            chroot: self.chroot(run.module.name.as_str(), &run.module.path, &files),
        };
        let source = Source::Script(Scope::Module(run.module.name.clone()));
        if let Err(failure) = self.fence.check() {
            return (Err(failure), None);
        }
        let finished = program.run(cancel, sink(source, self.rules, &run.values)).await;
        let outcome = match &finished {
            Ok(finished) => exit_failure(finished).map_or_else(|| verdict(&result, &reason), Err),
            Err(error) => Err(Failure::of(FailureKind::Files, error)),
        };
        files.finish(finished.as_ref().map_or(Survivors::Some, |finished| finished.survivors));
        (outcome.map_err(name), finished.ok().map(|finished| finished.usage))
    }

    fn prepare_script(&self, run: &ScriptRun) -> Result<Prepared, ScratchError> {
        let mut files =
            self.scratch.run(&LAYOUT, || format!("{}.module", safe_name(run.module.name.as_str())))?;
        let config = files.input("config-values.json", |out| write_config_values(out, &run.values))?;
        let values = files.input("values.json", |out| write_values(out, &run.values))?;
        let (result, reason) = (files.output("enabled-result")?, files.output("enabled-reason")?);
        let variables = vec![
            ("CONFIG_VALUES_PATH", config),
            ("VALUES_PATH", values),
            ("MODULE_ENABLED_RESULT", result.clone()),
            ("MODULE_ENABLED_REASON", reason.clone()),
        ];
        Ok(Prepared { files, variables, result, reason })
    }
}

struct Prepared {
    files: RunFiles,
    variables: Vec<(&'static str, PathBuf)>,
    result: PathBuf,
    reason: PathBuf,
}

/// Reads what the script wrote: exactly `true` or `false`, white space aside.
fn verdict(result: &Path, reason: &Path) -> Result<Verdict, Failure> {
    let read = |path: &Path| {
        let bytes = read(path, LONGEST_ANSWER)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    match read(result)?.as_str() {
        "true" => Ok(Verdict { enabled: true, reason: None }),
        "false" => {
            Ok(Verdict { enabled: false, reason: Some(read(reason)?).filter(|reason| !reason.is_empty()) })
        }
        other => {
            // The mark says that it was cut, so that what is left of a value is masked, too.
            let cut = if other.chars().nth(40).is_some() { "…" } else { "" };
            let shown = other.chars().take(40).collect::<String>() + cut;
            let failure = Failure::new(FailureKind::HookOutput, format!("bad enabled result {shown:?}"));
            Err(failure.advise("the script should write true or false into the file $MODULE_ENABLED_RESULT"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn slip_12_a_result_that_is_no_file_or_has_no_end_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (result, reason) = (dir.path().join("result"), dir.path().join("reason"));
        fs::write(&reason, "because").unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &result, mode).unwrap();
        let failure = verdict(&result, &reason).unwrap_err().to_string();
        assert!(failure.contains("result is no regular file"), "{failure}");
        fs::remove_file(&result).unwrap();
        fs::File::create(&result).unwrap().set_len(1 << 40).unwrap();
        let failure = verdict(&result, &reason).unwrap_err().to_string();
        assert!(failure.contains("result has 1099511627776 bytes"), "{failure}");
        fs::write(&result, " false\n").unwrap();
        assert_eq!(verdict(&result, &reason).unwrap().reason.as_deref(), Some("because"));
    }
}
