//! A `helm` program that renders, upgrades and removes releases: what it is started with, and what its end means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::ApplyMode;
use engine::hook::HookLimits;
use serde_json::Value;
use tokio::sync::oneshot;

use super::cancellation::Cancellation;
use super::error::ReleaseError;
use crate::process::{Exit, Finished, Program, RunError, Stream};

/// How much of what it prints is read at most.
const LONGEST_OUTPUT: usize = 64 << 20;

/// How long it may take to say which version it is.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take beside what hooks of charts may take.
const MARGIN: Duration = Duration::from_mins(5);

/// Why a `helm` program can't be used. The program exits with 2.
#[derive(Debug, thiserror::Error)]
pub enum HelmCommandError {
    /// It can't be started.
    #[error(
        "--helm-backend=cli: {0}; install Helm 3 or later, name it with --helm-bin, or leave --helm-backend=native"
    )]
    Start(#[from] RunError),
    /// It does not say which version it is.
    #[error("--helm-backend=cli: `{bin} version` {problem}; --helm-bin has to name Helm 3 or later")]
    Unknown {
        /// The program.
        bin: String,
        /// What it did.
        problem: String,
    },
    /// It is too old.
    #[error("--helm-backend=cli: {bin} is of version {version}; it has to be 3.8 or later")]
    Old {
        /// The program.
        bin: String,
        /// What it says of itself.
        version: String,
    },
}

/// How a `helm` program is started.
#[derive(Clone)]
pub struct HelmCommandOptions {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub bin: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Which cluster it talks to: `--kubeconfig`, `--kube-context`, `--kube-apiserver` with what belongs to them.
    pub access: Vec<OsString>,
    /// A private directory for charts and values, which lives as long as this.
    pub directory: Arc<dyn AsRef<Path> + Send + Sync>,
}

/// A `helm` program of a known version.
pub struct HelmCommand {
    options: HelmCommandOptions,
    version: (u32, u32),
}

/// What one start of it is about.
pub(super) struct HelmRun<'r> {
    pub(super) release: &'r str,
    pub(super) namespace: &'r str,
    /// The `ServiceAccount` as which it asks, if not as the operator.
    pub(super) user: Option<String>,
    /// How long one hook of the chart may take.
    pub(super) timeout: Duration,
    /// How the objects of the release are written.
    pub(super) mode: ApplyMode,
    pub(super) cancellation: &'r Cancellation,
}

impl HelmCommand {
    /// Returns the program, which was asked for its version.
    ///
    /// # Errors
    ///
    /// When there is none, or it is too old.
    pub async fn new(options: HelmCommandOptions) -> Result<Self, HelmCommandError> {
        let command = Self { options, version: (0, 0) };
        let arguments = ["version", "--template", "{{.Version}}"].map(OsString::from);
        let never = Cancellation::never();
        let (finished, text) = command.start(arguments.to_vec(), Some(VERSION_TIMEOUT), &never).await?;
        let bin = command.options.bin.display().to_string();
        let unknown = |problem: String| HelmCommandError::Unknown { bin: bin.clone(), problem };
        if finished.exit != Exit::Code(0) {
            return Err(unknown(format!("{}: {}", ended(finished.exit), finished.stderr.trim())));
        }
        let version = parse_version(&text).ok_or_else(|| unknown(format!("says {:?}", text.trim())))?;
        if version < (3, 8) {
            return Err(HelmCommandError::Old { bin, version: text.trim().to_owned() });
        }
        tracing::info!("releases are changed by {bin} {}", text.trim());
        Ok(Self { version, ..command })
    }

    /// Returns a directory for the files of one start, which is removed when it is dropped.
    pub(super) fn directory(&self) -> std::io::Result<tempfile::TempDir> {
        // It has the mode 0700.
        tempfile::Builder::new().prefix("helm-").tempdir_in((*self.options.directory).as_ref())
    }

    /// Renders a chart, and returns what is printed: objects and hooks.
    pub(super) async fn template(
        &self,
        run: &HelmRun<'_>,
        (chart, values): (&Path, &Path),
        is_upgrade: bool,
    ) -> Result<String, ReleaseError> {
        let mut arguments = words(&["template", run.release]);
        arguments.push(chart.into());
        arguments.extend([OsString::from("--values"), values.into()]);
        if self.version >= (3, 13) {
            // What templates ask of the cluster is answered.
            arguments.push("--dry-run=server".into());
        } else {
            arguments.push("--validate".into());
        }
        if is_upgrade {
            arguments.push("--is-upgrade".into());
        } else if self.version >= (3, 17) {
            arguments.push("--take-ownership".into());
        }
        self.run("template", run, arguments).await
    }

    /// Installs or upgrades a release.
    pub(super) async fn upgrade(
        &self,
        run: &HelmRun<'_>,
        files: (&Path, &Path),
        history_max: usize,
    ) -> Result<(), ReleaseError> {
        let arguments = self.upgrade_arguments(run, files, history_max)?;
        self.run("upgrade", run, arguments).await.map(drop)
    }

    /// Returns the notes of a chart, as an upgrade with these values would write them. Nothing is changed.
    pub(super) async fn notes(
        &self,
        run: &HelmRun<'_>,
        files: (&Path, &Path),
        history_max: usize,
    ) -> Result<String, ReleaseError> {
        let mut arguments = self.upgrade_arguments(run, files, history_max)?;
        arguments.push(if self.version >= (3, 13) { "--dry-run=server" } else { "--dry-run" }.into());
        arguments.extend(words(&["--output", "json"]));
        let text = self.run("upgrade", run, arguments).await?;
        let release: Value = serde_json::from_str(&text).map_err(|error| ReleaseError::Command {
            what: "upgrade --dry-run",
            // What it printed holds values.
            problem: format!(
                "it printed no release as JSON: line {}, column {}",
                error.line(),
                error.column()
            ),
        })?;
        Ok(release.pointer("/info/notes").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    fn upgrade_arguments(
        &self,
        run: &HelmRun<'_>,
        (chart, values): (&Path, &Path),
        history_max: usize,
    ) -> Result<Vec<OsString>, ReleaseError> {
        let mut arguments = words(&["upgrade", run.release]);
        arguments.push(chart.into());
        arguments.extend([OsString::from("--values"), values.into()]);
        let history = history_max.to_string();
        arguments.extend(words(&["--install", "--reset-values", "--skip-crds", "--history-max", &history]));
        arguments.extend(timeout(run));
        if self.version >= (3, 17) {
            arguments.push("--take-ownership".into());
        }
        match run.mode {
            ApplyMode::Server if self.version < (4, 0) => {
                let (major, minor) = self.version;
                let problem = format!(
                    "`apply: server` of module.yaml needs Helm 4, and {} is of version {major}.{minor}: name Helm 4 with --helm-bin, or leave that key out",
                    self.options.bin.display()
                );
                return Err(ReleaseError::Command { what: "upgrade", problem });
            }
            // Fields of others become what was rendered, as without a program.
            ApplyMode::Server => arguments.extend(words(&["--server-side=true", "--force-conflicts"])),
            // As Helm 3 does, and as the operator does without a program.
            ApplyMode::Client if self.version >= (4, 0) => arguments.push("--server-side=false".into()),
            ApplyMode::Client => {}
        }
        Ok(arguments)
    }

    /// Removes a release with its history.
    pub(super) async fn uninstall(&self, run: &HelmRun<'_>, has_hooks: bool) -> Result<(), ReleaseError> {
        let mut arguments = words(&["uninstall", run.release]);
        arguments.extend(timeout(run));
        if !has_hooks {
            arguments.push("--no-hooks".into());
        }
        self.run("uninstall", run, arguments).await.map(drop)
    }

    /// Runs a command of it and returns what it prints.
    async fn run(
        &self,
        what: &'static str,
        run: &HelmRun<'_>,
        mut arguments: Vec<OsString>,
    ) -> Result<String, ReleaseError> {
        let failed = |problem: String| ReleaseError::Command { what, problem };
        arguments.extend(words(&["--namespace", run.namespace]));
        arguments.extend(self.options.access.iter().cloned());
        if let Some(user) = &run.user {
            arguments.extend(words(&["--kube-as-user", user]));
        }
        // Each hook may take its time; what keeps on for so long does not come to an end.
        let hooks = if what == "template" { Duration::ZERO } else { run.timeout.saturating_mul(10) };
        let limit = hooks.saturating_add(MARGIN);
        let (finished, text) = self
            .start(arguments, Some(limit), run.cancellation)
            .await
            .map_err(|error| failed(error.to_string()))?;
        match finished.exit {
            Exit::Code(0) if text.len() >= LONGEST_OUTPUT => {
                Err(failed(format!("it printed more than {} MiB", LONGEST_OUTPUT >> 20)))
            }
            Exit::Code(0) => Ok(text),
            Exit::Cancelled => Err(ReleaseError::Cancelled),
            exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut(_) | Exit::Limited(_)) => {
                let said = finished.stderr.trim();
                let said = said.strip_prefix("Error: ").unwrap_or(said);
                Err(failed(if said.is_empty() { format!("it {}", ended(exit)) } else { said.to_owned() }))
            }
        }
    }

    /// Starts it, and returns how it ended with what it printed. With the end of the operator, all that it started ends.
    async fn start(
        &self,
        arguments: Vec<OsString>,
        timeout: Option<Duration>,
        cancellation: &Cancellation,
    ) -> Result<(Finished, String), RunError> {
        let program = Program {
            path: self.options.bin.clone(),
            args: arguments,
            environment: self.options.environment.clone().into(),
            timeout,
            mark: None,
            limits: HookLimits::default(),
            outputs: Vec::new(),
            chroot: None,
        };
        let output = Arc::new(Mutex::new(Vec::new()));
        let printed = Arc::clone(&output);
        let print = move |stream: Stream, bytes: &[u8]| {
            let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(stream, Stream::Stdout) && printed.len() < LONGEST_OUTPUT {
                printed.extend_from_slice(bytes);
            }
        };
        let (cancel, cancelled) = oneshot::channel();
        let mut running = std::pin::pin!(program.run(cancelled, print));
        let mut cancel = Some(cancel);
        let finished = loop {
            tokio::select! {
                biased;
                finished = &mut running => break finished?,
                () = cancellation.requested(), if cancel.is_some() => {
                    if let Some(cancel) = cancel.take() {
                        let _ = cancel.send(());
                    }
                }
            }
        };
        let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((finished, String::from_utf8_lossy(&output).into_owned()))
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn timeout(run: &HelmRun<'_>) -> Vec<OsString> {
    words(&["--timeout", &format!("{}s", run.timeout.as_secs().max(1))])
}

/// Returns how a program ended, in words.
fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with exit code {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
        Exit::TimedOut(after) => format!("did not end within {} s", after.as_secs()),
        Exit::Cancelled => "was ended".to_owned(),
        Exit::Limited(_) => "met a limit".to_owned(),
    }
}

/// Returns the first two numbers of a version like `v3.19.0+g3d8990f`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let text = text.trim();
    let mut numbers = text.strip_prefix('v').unwrap_or(text).split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_helm_says_them() {
        assert_eq!(parse_version("v3.19.0+g3d8990f\n"), Some((3, 19)));
        assert_eq!(parse_version("4.1.4"), Some((4, 1)));
        assert_eq!(parse_version("v2.17.0"), Some((2, 17)));
        assert_eq!(parse_version("Client: v2"), None);
        assert_eq!(parse_version(""), None);
    }
}
