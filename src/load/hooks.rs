//! Finds the hooks of a directory and runs them with `--config`. See docs/hooks.md#the-configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::hook::config;
use engine::hook::{HookKind, HookSpec};
use engine::{Failure, FailureKind, Hook, HookId, HookName, Launch, Scope};
use jq::Filter;
use tokio::sync::{Semaphore, oneshot};

use super::hash::hash;
use super::temporary_files::is_draft;
use crate::process::{Chroots, Exit, Program, Stream, Variables, python};
use crate::regular_file;

/// How many bytes a configuration may have.
const LONGEST_CONFIG: usize = 1024 * 1024;

/// How many bytes of an invalid configuration are quoted in the error.
const QUOTED: usize = 4 * 1024;

/// Runs hooks with `--config` and caches the answers.
#[derive(Debug)]
pub(super) struct Configurations {
    environment: Variables,
    timeout: Duration,
    /// Where hooks of modules are run, if not among all files.
    chroots: Option<Chroots>,
    at_once: Semaphore,
    // Valid answers, by path and content of the hook.
    known: Mutex<BTreeMap<(PathBuf, u64), Answer>>,
    /// Filters that were compiled successfully. Many hooks share the same ones.
    filters: Mutex<BTreeSet<String>>,
}

/// What a file said about its hooks.
#[derive(Clone, Debug)]
enum Answer {
    /// It is one hook.
    One(Box<HookSpec>),
    /// It is several, which are run by their index.
    Batch(Vec<HookSpec>),
}

/// An executable that may be a hook.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Its name inside the scope.
    pub(super) name: String,
    /// Its path.
    pub(super) path: PathBuf,
    /// The directory of hooks that it was found in.
    root: PathBuf,
    /// The directory of the virtual environment whose Python runs it.
    venv: Option<PathBuf>,
}

/// Returns the executables below `root` by path, and what was left out.
///
/// docs/hooks.md#which-files-are-hooks lists what is skipped.
///
/// # Errors
///
/// A directory that can't be read: an unknown content must not count as no hooks.
pub(super) fn candidates(root: &Path, prefix: &str) -> Result<(Vec<Candidate>, Vec<String>), Failure> {
    let mut found = Vec::new();
    let mut warnings = Vec::new();
    let is_hidden = |name: &str| name.starts_with('.');
    let walk = walkdir::WalkDir::new(root).sort_by_file_name().into_iter();
    let walk = walk.filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        let skipped = is_hidden(&name) || is_draft(&name) || matches!(&*name, "lib" | "venv");
        entry.depth() == 0 || !(entry.file_type().is_dir() && skipped)
    });
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            // The directory need not exist, and a file can be removed meanwhile.
            Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) => {
                continue;
            }
            Err(error) => {
                let message = format!("can't read the hooks in {}: {error}", root.display());
                return Err(Failure::new(FailureKind::Files, message));
            }
        };
        let name = entry.file_name().to_string_lossy();
        let extension = entry.path().extension().and_then(|extension| extension.to_str());
        let is_data = matches!(extension, Some("yaml" | "json" | "md" | "txt"));
        if entry.file_type().is_dir() || is_hidden(&name) || is_draft(&name) || is_data {
            continue;
        }
        let Ok(metadata) = fs::metadata(entry.path()) else {
            warnings.push(format!("{} is left out: it can't be read", entry.path().display()));
            continue;
        };
        if metadata.is_dir() {
            warnings.push(format!(
                "{} is left out: it is a link to a directory, which is not followed",
                entry.path().display()
            ));
        }
        if !metadata.is_file() {
            continue;
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            warnings.push(format!(
                "{}: no executable permissions, chmod +x is required to run this hook",
                entry.path().display()
            ));
            continue;
        }
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_string_lossy();
        let (name, path) = (format!("{prefix}{relative}"), entry.path().to_owned());
        found.push(Candidate { name, path, root: root.to_owned(), venv: None });
    }
    let venv = root.join("venv");
    if found.iter().any(is_python) {
        if python::interpreter(&venv).is_some() {
            found.iter_mut().filter(|candidate| is_python(candidate)).for_each(|candidate| {
                candidate.venv = Some(venv.clone());
            });
        } else if venv.is_dir() {
            warnings.push(format!(
                "{}: bin/python3 is missing or not executable; hooks in Python run as their first lines say",
                venv.display()
            ));
        }
    }
    // Sorted by the bytes of the whole path: `a-b/x` comes before `a/x`.
    found.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    warnings.extend(misplaced(&root.join("lib")));
    Ok((found, warnings))
}

/// Returns whether the Python of a virtual environment beside the hooks runs it, if there is one.
fn is_python(candidate: &Candidate) -> bool {
    candidate.path.extension().is_some_and(|extension| extension == "py")
}

/// Returns warnings about executables in a directory that holds no hooks.
fn misplaced(lib: &Path) -> Vec<String> {
    let files = walkdir::WalkDir::new(lib).sort_by_file_name().into_iter().flatten();
    let executables = files.filter(|entry| {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let mode = entry.metadata().map_or(0, |metadata| metadata.permissions().mode());
        entry.file_type().is_file() && !is_hidden && mode & 0o111 != 0
    });
    let warning = |entry: walkdir::DirEntry| {
        format!(
            "{}: file has executable permissions and is located in the ignored 'lib' directory",
            entry.path().display()
        )
    };
    executables.map(warning).collect()
}

/// Returns warnings about bindings that nobody asks for: webhooks are switched off.
pub(super) fn unserved(hooks: &[Arc<Hook>]) -> Vec<String> {
    let warning = |hook: &Arc<Hook>| {
        let spec = &hook.spec;
        let sections = [
            ("kubernetesValidating", spec.validating.is_empty()),
            ("kubernetesMutating", spec.mutating.is_empty()),
            ("kubernetesCustomResourceConversion", spec.conversions.is_empty()),
        ];
        let unserved: Vec<&str> =
            sections.into_iter().filter(|(_, empty)| !empty).map(|(section, _)| section).collect();
        let unserved = (!unserved.is_empty()).then(|| unserved.join(", "))?;
        Some(format!(
            "hook {} asks for {unserved}, but webhooks are switched off: nobody asks the hook; its other bindings work. \
             --admission-server-enabled switches them on",
            hook.id
        ))
    };
    hooks.iter().filter_map(warning).collect()
}

impl Configurations {
    /// Returns a loader that runs hooks with `environment`, those of modules below `chroots`, and ends those that take
    /// longer than `timeout`.
    pub(super) fn new(
        environment: Vec<(OsString, OsString)>,
        timeout: Duration,
        chroots: Option<Chroots>,
    ) -> Self {
        let at_once = Semaphore::new(2 * crate::config::processors());
        let environment = environment.into();
        Self { environment, timeout, chroots, at_once, known: Mutex::default(), filters: Mutex::default() }
    }

    /// Returns the hooks and those with an invalid configuration. All files are run at the same time.
    pub(super) async fn load(
        &self,
        scope: &Scope,
        found: Vec<Candidate>,
    ) -> (Vec<Arc<Hook>>, Vec<(HookName, Failure)>) {
        let files = found.into_iter().map(|candidate| async {
            let name = HookName::from(candidate.name.as_str());
            self.hooks(scope, candidate).await.map_err(|failure| (name, failure))
        });
        let (mut understood, mut broken) = (Vec::<Arc<Hook>>::new(), Vec::new());
        let mut names = BTreeSet::new();
        for outcome in futures::future::join_all(files).await {
            match outcome {
                Ok(hooks) => understood.extend(hooks),
                Err(failed) => broken.push(failed),
            }
        }
        // Files with several hooks name them, so two of them can name the same.
        understood.retain(|hook| {
            let is_new = names.insert(hook.id.name.clone());
            if !is_new {
                let message = format!("{}: another file has a hook {}, too", hook.path, hook.id.name);
                let failure = Failure::new(FailureKind::Files, message);
                broken.push((hook.id.name.clone(), failure.advise("rename the file or metadata.name")));
            }
            is_new
        });
        (understood, broken)
    }

    /// Returns whether all of these were asked before, as they are now.
    pub(super) fn knows_all(&self, candidates: &[Candidate]) -> bool {
        candidates.iter().all(|Candidate { path, .. }| {
            let key = regular_file::read(path).ok().map(|bytes| (path.clone(), hash(&bytes)));
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            key.is_some_and(|key| known.contains_key(&key))
        })
    }

    /// Returns the hooks of a file: mostly one.
    async fn hooks(&self, scope: &Scope, candidate: Candidate) -> Result<Vec<Arc<Hook>>, Failure> {
        let bytes = regular_file::read(&candidate.path).map_err(|error| {
            Failure::new(FailureKind::Files, format!("can't read {}: {error}", candidate.path.display()))
        })?;
        let key = (candidate.path.clone(), hash(&bytes));
        let content = key.1;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let answer = if let Some(answer) = known {
            answer
        } else {
            let is_script = bytes.starts_with(b"#!");
            drop(bytes);
            let answer = self.answer(scope, &candidate, is_script).await?;
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, answer.clone());
            answer
        };
        let venv = candidate.venv.as_ref().map(|venv| venv.to_string_lossy().into());
        let path: Arc<str> = candidate.path.to_string_lossy().into();
        let module = scope.module().and_then(|_| candidate.root.parent());
        let module: Option<Arc<str>> = module.map(|path| path.to_string_lossy().into());
        let hook = |spec: HookSpec, batch_index| {
            let id = HookId { scope: scope.clone(), name: spec.name.clone() };
            let launch = Launch { venv: venv.clone(), module: module.clone(), batch_index };
            Arc::new(Hook { id, path: Arc::clone(&path), content, launch, spec })
        };
        Ok(match answer {
            Answer::One(spec) => vec![hook(*spec, None)],
            Answer::Batch(specs) => {
                specs.into_iter().enumerate().map(|(index, spec)| hook(spec, Some(index))).collect()
            }
        })
    }

    /// Asks a file for its configuration.
    ///
    /// Only a file without extension can have several hooks. A script is asked for that only if it is no hook itself: as
    /// many look for `--config` only, and would do their work.
    async fn answer(&self, scope: &Scope, candidate: &Candidate, is_script: bool) -> Result<Answer, Failure> {
        let name = &candidate.name;
        let may_be_batch = candidate.path.extension().is_none();
        if may_be_batch
            && !is_script
            && let Some(specs) = self.batch(scope, candidate).await?
        {
            return Ok(Answer::Batch(specs));
        }
        let text = self.ask(scope, candidate, &["--config"]).await;
        let may_be_batch = may_be_batch
            && is_script
            && match &text {
                Ok(text) => !config::is_of_one_hook(text),
                Err(failure) => failure.kind == FailureKind::HookExit,
            };
        if may_be_batch && let Some(specs) = self.batch(scope, candidate).await? {
            return Ok(Answer::Batch(specs));
        }
        let text = text.map_err(|failure| describe(scope, name, "--config", failure))?;
        let compile = |filter: &str| self.compile(filter);
        let spec = config::parse_with(HookName::from(name.as_str()), kind(scope), &text, &compile);
        let spec = spec.map_err(|error| {
            let failure = with_printed(Failure::of(FailureKind::HookOutput, &error), &text);
            let failure = failure.advise("run it with --config and compare with docs/hooks.md");
            describe(scope, name, "--config", failure)
        })?;
        Ok(Answer::One(Box::new(spec)))
    }

    /// Returns the hooks of a file, if it says that it has several.
    ///
    /// # Errors
    ///
    /// If it says so, and what it says of them is wrong.
    async fn batch(&self, scope: &Scope, candidate: &Candidate) -> Result<Option<Vec<HookSpec>>, Failure> {
        // Both words are in use for the same.
        for word in ["config", "list"] {
            let Ok(text) = self.ask(scope, candidate, &["hook", word]).await else { continue };
            if !config::is_batch(&text) {
                continue;
            }
            let file = candidate.path.file_name().unwrap_or_default().to_string_lossy();
            let specs = config::parse_batch(&file, kind(scope), &text, &|filter| self.compile(filter));
            let specs = specs.map_err(|error| {
                let failure = Failure::of(FailureKind::HookOutput, &error);
                let advice = format!("run it with hook {word} and compare with docs/hooks.md");
                describe(scope, &candidate.name, &format!("hook {word}"), failure.advise(advice))
            })?;
            return Ok(Some(specs));
        }
        Ok(None)
    }

    /// Returns why a filter does not compile. One that compiled before is not compiled again.
    fn compile(&self, filter: &str) -> Result<(), String> {
        let mut good = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        if !good.contains(filter) {
            Filter::compile(filter).map_err(|error| error.to_string())?;
            good.insert(filter.to_owned());
        }
        Ok(())
    }

    /// Runs a file with arguments that ask for a configuration, and returns what it printed.
    async fn ask(&self, scope: &Scope, candidate: &Candidate, args: &[&str]) -> Result<String, Failure> {
        let path = &candidate.path;
        let Ok(_permit) = self.at_once.acquire().await else {
            return Err(Failure::new(FailureKind::Bug, "the limit of configuration calls is gone"));
        };
        let printed = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&printed);
        let mut program = Program {
            path: path.to_owned(),
            args: args.iter().map(OsString::from).collect(),
            environment: self.environment.clone(),
            timeout: Some(self.timeout),
            mark: None,
            limits: engine::hook::HookLimits::default(),
            outputs: Vec::new(),
            chroot: self.chroots.as_ref().zip(scope.module()).and_then(|(chroots, module)| {
                let chroot = chroots.of_module(module.as_str(), candidate.root.parent()?);
                Some(chroot.with_named_in(self.environment.iter()))
            }),
        };
        if let Some(venv) = &candidate.venv {
            program = program.run_by_python_of(venv);
        }
        let (_keep, cancel) = oneshot::channel();
        let finished = program
            .run(cancel, move |stream, bytes| {
                let mut text = sink.lock().unwrap_or_else(PoisonError::into_inner);
                if stream == Stream::Stdout && text.len() < LONGEST_CONFIG {
                    text.extend_from_slice(bytes);
                }
            })
            .await
            .map_err(|error| Failure::of(FailureKind::Files, &error))?;
        match finished.exit {
            Exit::Code(0) => {
                let text = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
                if text.len() >= LONGEST_CONFIG {
                    return Err(Failure::new(FailureKind::HookOutput, "it printed more than 1 MiB"));
                }
                String::from_utf8(text).map_err(|_| {
                    Failure::new(FailureKind::HookOutput, "it printed something that is not UTF-8")
                })
            }
            Exit::TimedOut(limit) => Err(Failure::new(
                FailureKind::HookTimeout,
                format!("it did not answer within {} s", limit.as_secs_f64()),
            )
            .advise(
                "does it check its first argument for --config? --hook-config-timeout changes the limit",
            )),
            exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::Cancelled | Exit::Limited(_)) => {
                let text = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
                let text = String::from_utf8_lossy(&text);
                let stderr = finished.stderr.trim();
                let said = if stderr.is_empty() { exit.to_string() } else { format!("{exit}: {stderr}") };
                let failure = Failure::new(FailureKind::HookExit, said);
                // What is no hook of several need not know the question.
                let is_asked = args.first() == Some(&"--config");
                Err(if is_asked { with_printed(failure, &text) } else { failure })
            }
        }
    }
}

/// Returns the failure with what the hook printed. It may be a value, so it is said nowhere else: failures are masked.
fn with_printed(mut failure: Failure, text: &str) -> Failure {
    if !text.trim().is_empty() {
        failure.chain.push(format!("it printed {}", beginning(text)));
    }
    failure
}

/// Returns the part of an invalid configuration that the error quotes.
fn beginning(text: &str) -> String {
    match text.get(..text.floor_char_boundary(QUOTED)) {
        Some(beginning) if beginning.len() < text.len() => format!("{beginning}…"),
        Some(_) | None => text.trim_end().to_owned(),
    }
}

fn kind(scope: &Scope) -> HookKind {
    match scope {
        Scope::Global => HookKind::Global,
        Scope::Module(_) => HookKind::Module,
    }
}

/// Says in a failure whose hook was asked, and with which arguments.
fn describe(scope: &Scope, name: &str, asked: &str, mut failure: Failure) -> Failure {
    let whose = match scope {
        Scope::Global => "global".to_owned(),
        Scope::Module(module) => format!("`{module}` module"),
    };
    let cause = std::mem::replace(&mut failure.message, format!("{whose} hook `{name}` {asked} invalid"));
    failure.chain.insert(0, cause);
    failure
}
