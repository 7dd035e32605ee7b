//! Finds, loads and runs tests in parallel, and prints the results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use anyhow::Context;
use engine::Catalog;
use regex::Regex;

use super::case::{self, Case};
use super::check::Mismatch;
use super::report::{Paint, TestResult, junit};
use super::selection::Selection;
use super::target::{Target, test_files};
use super::test_file::{Test, TestFile};
use super::update::updated;
use crate::app;
use crate::config::{Environment, OptionSources, Settings, processors};
use crate::dev;
use crate::load::{LoadOptions, Loader};
use crate::regular_file;

/// The options of `test`.
#[derive(Clone, Debug)]
pub struct Tests {
    /// Test files, and directories with test files.
    pub paths: Vec<PathBuf>,
    /// Runs only tests whose file and name contain this; `*` is any text.
    pub only: Option<String>,
    /// Whether wrong expectations are updated in the files.
    pub update: bool,
    /// The file for the results in the format of `JUnit`.
    pub junit: Option<PathBuf>,
    /// How many tests run at the same time; 0 for two on each processor.
    pub jobs: usize,
    /// The environment of hooks.
    pub environment: Environment,
}

/// How a run of tests ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// All tests passed.
    Passed,
    /// Some tests failed.
    Failed,
    /// Some files are invalid, or there is no test.
    Unusable,
}

/// A test that will run.
struct Job {
    file: usize,
    test: Arc<Test>,
    selection: Result<Selection, String>,
    loader: Arc<Loader>,
    settings: Settings,
    environment: Environment,
}

/// What is loaded: for a target, and for modules beside it; an empty name stands for the global hooks.
type LoadKey = (Target, BTreeSet<String>);

/// What is loaded once for all tests of a target.
type Loaded = (Arc<Loader>, Result<Catalog, String>, Settings);

/// Runs the tests and prints the results to standard output.
///
/// # Errors
///
/// Errors are those of the system: no temporary directory, a report that can't be written.
pub fn run(tests: &Tests) -> anyhow::Result<Outcome> {
    let paint = Paint { is_on: io::stdout().is_terminal() };
    let paths = test_files(&tests.paths).map_err(anyhow::Error::msg)?;
    let mut files = Vec::new();
    let mut broken = Vec::new();
    for path in &paths {
        match TestFile::read(path) {
            Ok(file) => files.push(file),
            Err(lines) => {
                say(&format!("{}\n", paint.bad(&lines.join("\n"))));
                broken.push((path.as_path(), lines.join("\n")));
            }
        }
    }
    let root = tempfile::Builder::new().prefix("addon-operator-test-").tempdir()?;
    let root_path = std::fs::canonicalize(root.path())?;
    let jobs = Planner::new(tests, root_path.clone())?.jobs(&files)?;
    if jobs.is_empty() && broken.is_empty() {
        say("no test was found: write one into a file NAME.test.yaml beside a hook (see docs/testing.md)\n");
        return Ok(Outcome::Unusable);
    }
    let ended = run_all(&jobs, &files, tests, &root_path, paint);
    let failed: Vec<&TestResult> = ended.iter().filter(|ended| !ended.mismatches.is_empty()).collect();
    if tests.update {
        update(&files, &ended)?;
    }
    if let Some(path) = &tests.junit {
        let named = ended.iter().filter_map(|ended| Some((files.get(ended.file)?.path.as_path(), ended)));
        regular_file::write(path, &junit(named, &broken))
            .with_context(|| format!("--junit: can't write {}", path.display()))?;
    }
    say(&paint.summary(ended.len(), failed.len()));
    Ok(match (broken.is_empty(), failed.is_empty()) {
        (false, _) => Outcome::Unusable,
        (true, true) => Outcome::Passed,
        (true, false) => Outcome::Failed,
    })
}

fn say(text: &str) {
    // A reader that has gone needs no more output.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Runs all tests and prints the results in the order of the files.
fn run_all(jobs: &[Job], files: &[TestFile], tests: &Tests, root: &Path, paint: Paint) -> Vec<TestResult> {
    let workers = if tests.jobs == 0 { 2 * processors() } else { tests.jobs };
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((position, job)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|position| Some((position, jobs.get(position)?)))
                {
                    let _ = sender.send((position, ended(job, root)));
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut all: Vec<TestResult> = Vec::new();
        for (position, result) in results {
            waiting.insert(position, result);
            while let Some(result) = waiting.remove(&all.len()) {
                let path = files.get(result.file).map(|file| file.path.as_path());
                say(&paint.result(path.unwrap_or(Path::new("")), &result));
                all.push(result);
            }
        }
        all
    })
}

fn ended(job: &Job, root: &Path) -> TestResult {
    let begun = std::time::Instant::now();
    let outcome = match &job.selection {
        Ok(selection) => case::run(Case {
            test: &job.test,
            selection,
            loader: &job.loader,
            settings: &job.settings,
            environment: &job.environment,
            root,
        }),
        Err(message) => case::Outcome::impossible(&job.test.pointer, message.clone()),
    };
    TestResult {
        file: job.file,
        name: job.test.name.clone(),
        mismatches: outcome.mismatches,
        lines: outcome.lines,
        took: begun.elapsed(),
        hooks_took: outcome.hooks_took,
    }
}

/// Updates the files with wrong expectations.
fn update(files: &[TestFile], ended: &[TestResult]) -> anyhow::Result<()> {
    for (position, file) in files.iter().enumerate() {
        let mismatches: Vec<Mismatch> = ended
            .iter()
            .filter(|ended| ended.file == position)
            .flat_map(|ended| ended.mismatches.iter().cloned())
            .collect();
        let text = updated(&file.text, &mismatches);
        if text != file.text {
            std::fs::write(&file.path, text)
                .with_context(|| format!("can't write {}", file.path.display()))?;
            say(&format!("{} is updated\n", file.path.display()));
        }
    }
    Ok(())
}

/// Loads the files of tests and prepares jobs.
struct Planner {
    only: Option<Regex>,
    environment: Environment,
    root: PathBuf,
    loaded: Mutex<BTreeMap<LoadKey, Arc<Loaded>>>,
    runtime: tokio::runtime::Runtime,
}

impl Planner {
    fn new(tests: &Tests, root: PathBuf) -> anyhow::Result<Self> {
        let only = tests.only.as_ref().map(|only| regex::escape(only).replace(r"\*", ".*"));
        let kubeconfig = root.join("none");
        let environment = dev::hook_environment(&tests.environment, &root, &kubeconfig);
        let environment = dev::with_framework(environment, Path::new("/"), &root.join("shell"))?;
        Ok(Self {
            only: only.map(|only| Regex::new(&only)).transpose()?,
            environment,
            root,
            loaded: Mutex::default(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Returns the chosen tests of all files.
    fn jobs(&self, files: &[TestFile]) -> anyhow::Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for (position, file) in files.iter().enumerate() {
            let chosen = file.tests.iter().filter(|test| {
                let title = format!("{} {}", file.path.display(), test.name);
                self.only.as_ref().is_none_or(|only| only.is_match(&title))
            });
            for test in chosen {
                jobs.push(self.job(position, &file.path, test)?);
            }
        }
        Ok(jobs)
    }

    fn job(&self, file: usize, path: &Path, test: &Arc<Test>) -> anyhow::Result<Job> {
        let found = Target::of(path);
        let about = found.clone().unwrap_or_else(|_| Target::All(self.root.clone()));
        let files = self.loaded(&about, test)?;
        let (loader, catalog, settings) = &*files;
        let selection = found.and_then(|target| {
            let catalog = catalog.as_ref().map_err(Clone::clone)?;
            Selection::of(catalog, &target, path, test)
        });
        Ok(Job {
            file,
            test: Arc::clone(test),
            selection,
            loader: Arc::clone(loader),
            settings: settings.clone(),
            environment: self.environment.clone(),
        })
    }

    /// Returns the files that the tests of a target need. They are loaded once.
    fn loaded(&self, target: &Target, test: &Test) -> anyhow::Result<Arc<Loaded>> {
        let others: BTreeSet<String> = test.setup.modules.iter().cloned().collect();
        let with_global_hooks =
            !test.setup.global_hooks.is_empty() || !matches!(target, Target::Module { .. });
        let key =
            (target.clone(), others.iter().cloned().chain(with_global_hooks.then(String::new)).collect());
        let mut known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = known.get(&key) {
            return Ok(Arc::clone(loaded));
        }
        let own = self.root.join(format!("loaded-{}", known.len()));
        let (modules, global) = linked(target, &others, with_global_hooks, &own)?;
        let settings = settings_for(&modules, &global)?;
        let options = app::load_options(&settings, app::variables(&self.environment), None);
        let loader = Arc::new(Loader::new(LoadOptions { bundles_dir: None, ..options }));
        let catalog = self.runtime.block_on(loader.load()).map_err(|error| error.to_string());
        let files = Arc::new((loader, catalog, settings));
        known.insert(key, Arc::clone(&files));
        Ok(files)
    }
}

/// Returns the settings of an operator with these directories.
fn settings_for(modules: &Path, global: &Path) -> anyhow::Result<Settings> {
    let flags = [
        ("modules-dir", modules.to_string_lossy().into_owned()),
        ("global-hooks-dir", global.to_string_lossy().into_owned()),
        ("namespace", dev::NAMESPACE.to_owned()),
        // A failed task is not tried again during a test.
        ("retry-delay", "24h".to_owned()),
        // Processes that run at the end of a test are ended at once.
        ("shutdown-timeout", "0s".to_owned()),
        // The API server is in this process. Nothing listens without a hook that is asked.
        ("admission-server-enabled", "true".to_owned()),
        ("admission-server-listen-address", "127.0.0.1".to_owned()),
        ("admission-server-listen-port", "0".to_owned()),
        ("webhook-url", "https://127.0.0.1:0".to_owned()),
        // Tests check what a hook prints, and their values are no secrets.
        ("log-hook-values", "true".to_owned()),
    ];
    let flags = flags.into_iter().map(|(flag, text)| (flag.to_owned(), text)).collect();
    // Variables that configure an operator do not apply to its tests.
    Ok(Settings::new(&OptionSources::new(flags, Environment::default()))?)
}

/// Returns the directories to load. They have links only to what a test needs, so that other broken modules do not matter.
fn linked(
    target: &Target,
    others: &BTreeSet<String>,
    with_global_hooks: bool,
    own: &Path,
) -> io::Result<(PathBuf, PathBuf)> {
    let (modules, global) = (own.join("modules"), own.join("global-hooks"));
    for dir in [&modules, &global] {
        std::fs::create_dir_all(dir)?;
    }
    let real_modules = target.modules_dir();
    let chosen = match target {
        Target::Module { dir, .. } => {
            let is_other = |path: &Path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                others.iter().any(|other| name == *other || name.ends_with(&format!("-{other}")))
            };
            let real = real_modules.as_deref().unwrap_or(dir);
            let children = std::fs::read_dir(real)?.flatten().map(|child| child.path());
            let is_needed = |path: &PathBuf| {
                path == dir || path.file_name().is_some_and(|name| name == "values.yaml") || is_other(path)
            };
            for child in children.filter(is_needed) {
                symlink(&child, modules.join(child.file_name().unwrap_or_default()))?;
            }
            modules
        }
        Target::Global(_) | Target::All(_) => real_modules.unwrap_or(modules),
    };
    let Some(real_global) = target.global_dir() else { return Ok((chosen, global)) };
    if with_global_hooks {
        return Ok((chosen, real_global));
    }
    if real_global.join("openapi").is_dir() {
        symlink(real_global.join("openapi"), global.join("openapi"))?;
    }
    Ok((chosen, global))
}
