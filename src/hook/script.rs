//! One run of an enabled script.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Failure, FailureKind, Module, Scope, Usage, ValuesInput, Verdict};
use tokio::sync::oneshot;
use values::name::safe_name;

use super::input::{write_config_values, write_values};
use super::log::{Origin, sink};
use super::run::{Hooks, exit_failure};
use super::scratch::{RunFiles, ScratchError};
use crate::process::Program;

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

/// How many bytes of a script's result are read.
const LONGEST_ANSWER: usize = 64 * 1024;

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
        environment.extend(variables.into_iter().map(|(name, path)| (name.into(), path.into_os_string())));
        let program = Program {
            path: PathBuf::from(&*script.path),
            args: Vec::new(),
            environment,
            timeout: run.timeout,
        };
        let origin = Origin::of_script(&Scope::Module(run.module.name.clone()));
        let finished = program.run(cancel, sink(origin, self.rules, &run.values)).await;
        let outcome = match &finished {
            Ok(finished) => exit_failure(finished).map_or_else(|| verdict(&result, &reason), Err),
            Err(error) => Err(Failure::of(FailureKind::Files, error)),
        };
        drop(files);
        (outcome.map_err(name), finished.ok().map(|finished| finished.usage))
    }

    fn prepare_script(&self, run: &ScriptRun) -> Result<Prepared, ScratchError> {
        let files = self.scratch.run()?;
        let module = safe_name(run.module.name.as_str());
        let config = files.write(&format!("{module}.module-config-values.json"), |out| {
            write_config_values(out, &run.values)
        })?;
        let values =
            files.write(&format!("{module}.module-values.json"), |out| write_values(out, &run.values))?;
        let result = files.empty(&format!("{module}.module-enabled-result"))?;
        let reason = files.empty(&format!("{module}.module-enabled-reason"))?;
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
        let mut bytes = fs::read(path).unwrap_or_default();
        bytes.truncate(LONGEST_ANSWER);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    };
    match read(result).as_str() {
        "true" => Ok(Verdict { enabled: true, reason: None }),
        "false" => {
            Ok(Verdict { enabled: false, reason: Some(read(reason)).filter(|reason| !reason.is_empty()) })
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            let failure = Failure::new(FailureKind::HookOutput, format!("bad enabled result {shown:?}"));
            Err(failure.advise("the script should write true or false into the file $MODULE_ENABLED_RESULT"))
        }
    }
}
