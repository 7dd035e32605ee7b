//! All tests of a run: found, loaded, run beside each other, told.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use anyhow::Context;
use engine::Catalog;
use regex::Regex;

use super::case::{self, Case};
use super::check::Mismatch;
use super::report::{Paint, junit};
use super::selection::Subject;
use super::target::{Place, test_files};
use super::test_file::{Test, TestFile};
use super::update::rewritten;
use crate::app;
use crate::config::{Environment, Given, Settings, processors};
use crate::dev;
use crate::load::Loader;

/// What `test` was asked for.
#[derive(Clone, Debug)]
pub struct Tests {
    /// Files, and directories with test files.
    pub paths: Vec<PathBuf>,
    /// Which tests run: those whose file and name contain this; `*` is any text.
    pub only: Option<String>,
    /// Whether expectations are rewritten as they should have been.
    pub update: bool,
    /// Where the results are written in the format of `JUnit`.
    pub junit: Option<PathBuf>,
    /// How many tests run at the same time; 0 for two on each processor.
    pub jobs: usize,
    /// The environment of hooks.
    pub environment: Environment,
}

/// How a run of tests ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// All are as they should be.
    Passed,
    /// Some are not.
    Failed,
    /// Some files can't be used, or there is no test.
    Unusable,
}

/// A test that will run.
struct Job {
    file: usize,
    test: Arc<Test>,
    subject: Result<Subject, String>,
    loader: Arc<Loader>,
    settings: Settings,
    environment: Environment,
}

/// How a test ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) file: usize,
    pub(super) name: String,
    pub(super) mismatches: Vec<Mismatch>,
    pub(super) lines: Vec<String>,
    pub(super) took: Duration,
    pub(super) hooks_took: Duration,
}

/// What is loaded: for a place, and for modules beside it; an empty name stands for the global hooks.
type Needed = (Place, BTreeSet<String>);

/// What is loaded once for all tests of a place.
type Loaded = (Arc<Loader>, Result<Catalog, String>, Settings);

/// Runs the tests and writes what came of them to standard output.
///
/// # Errors
///
/// An error is one of this machine: no directory for files, a report that can't be written.
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
    let jobs = Bench::new(tests, root_path.clone())?.jobs(&files)?;
    if jobs.is_empty() && broken.is_empty() {
        say("no test was found: write one into a file NAME.test.yaml beside a hook (see docs/testing.md)\n");
        return Ok(Outcome::Unusable);
    }
    let ended = run_all(&jobs, &files, tests, &root_path, paint);
    let failed: Vec<&Ended> = ended.iter().filter(|ended| !ended.mismatches.is_empty()).collect();
    if tests.update {
        update(&files, &ended)?;
    }
    if let Some(path) = &tests.junit {
        let named = ended.iter().filter_map(|ended| Some((files.get(ended.file)?.path.as_path(), ended)));
        std::fs::write(path, junit(named, &broken))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    say(&paint.summary(ended.len(), failed.len()));
    Ok(match (broken.is_empty(), failed.is_empty()) {
        (false, _) => Outcome::Unusable,
        (true, true) => Outcome::Passed,
        (true, false) => Outcome::Failed,
    })
}

fn say(text: &str) {
    // A reader that has gone away needs nothing more.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Runs all tests and tells each in the order in which they stand.
fn run_all(jobs: &[Job], files: &[TestFile], tests: &Tests, root: &Path, paint: Paint) -> Vec<Ended> {
    let workers = if tests.jobs == 0 { 2 * processors() } else { tests.jobs };
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((place, job)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|place| Some((place, jobs.get(place)?)))
                {
                    let _ = sender.send((place, ended(job, root)));
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut all: Vec<Ended> = Vec::new();
        for (place, result) in results {
            waiting.insert(place, result);
            while let Some(result) = waiting.remove(&all.len()) {
                let path = files.get(result.file).map(|file| file.path.as_path());
                say(&paint.result(path.unwrap_or(Path::new("")), &result));
                all.push(result);
            }
        }
        all
    })
}

fn ended(job: &Job, root: &Path) -> Ended {
    let begun = std::time::Instant::now();
    let outcome = match &job.subject {
        Ok(subject) => case::run(Case {
            test: &job.test,
            subject,
            loader: &job.loader,
            settings: &job.settings,
            environment: &job.environment,
            root,
        }),
        Err(message) => case::Outcome::impossible(&job.test.pointer, message.clone()),
    };
    Ended {
        file: job.file,
        name: job.test.name.clone(),
        mismatches: outcome.mismatches,
        lines: outcome.lines,
        took: begun.elapsed(),
        hooks_took: outcome.hooks_took,
    }
}

/// Writes files anew whose expectations were wrong.
fn update(files: &[TestFile], ended: &[Ended]) -> anyhow::Result<()> {
    for (place, file) in files.iter().enumerate() {
        let mismatches: Vec<Mismatch> = ended
            .iter()
            .filter(|ended| ended.file == place)
            .flat_map(|ended| ended.mismatches.iter().cloned())
            .collect();
        let text = rewritten(&file.text, &mismatches);
        if text != file.text {
            std::fs::write(&file.path, text)
                .with_context(|| format!("can't write {}", file.path.display()))?;
            say(&format!("{} is updated\n", file.path.display()));
        }
    }
    Ok(())
}

/// Prepares tests.
struct Bench {
    only: Option<Regex>,
    environment: Environment,
    root: PathBuf,
    loaded: Mutex<BTreeMap<Needed, Arc<Loaded>>>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
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
        for (place, file) in files.iter().enumerate() {
            let chosen = file.tests.iter().filter(|test| {
                let title = format!("{} {}", file.path.display(), test.name);
                self.only.as_ref().is_none_or(|only| only.is_match(&title))
            });
            for test in chosen {
                jobs.push(self.job(place, &file.path, test)?);
            }
        }
        Ok(jobs)
    }

    fn job(&self, file: usize, path: &Path, test: &Arc<Test>) -> anyhow::Result<Job> {
        let found = Place::of(path);
        let about = found.clone().unwrap_or_else(|_| Place::All(self.root.clone()));
        let files = self.loaded(&about, test)?;
        let (loader, catalog, settings) = &*files;
        let subject = found.and_then(|place| {
            let catalog = catalog.as_ref().map_err(Clone::clone)?;
            Subject::of(catalog, &place, path, test)
        });
        Ok(Job {
            file,
            test: Arc::clone(test),
            subject,
            loader: Arc::clone(loader),
            settings: settings.clone(),
            environment: self.environment.clone(),
        })
    }

    /// Returns what the tests of a place need, read once.
    fn loaded(&self, place: &Place, test: &Test) -> anyhow::Result<Arc<Loaded>> {
        let others: BTreeSet<String> = test.modules.iter().cloned().collect();
        let with_global_hooks = !test.global_hooks.is_empty() || !matches!(place, Place::Module { .. });
        let key =
            (place.clone(), others.iter().cloned().chain(with_global_hooks.then(String::new)).collect());
        let mut known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = known.get(&key) {
            return Ok(Arc::clone(loaded));
        }
        let own = self.root.join(format!("loaded-{}", known.len()));
        let (modules, global) = linked(place, &others, with_global_hooks, &own)?;
        let settings = settings_for(&modules, &global)?;
        let loader = Arc::new(Loader::new(app::places(&settings, app::variables(&self.environment))));
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
        // What failed is not tried again while a test looks at it.
        ("retry-delay", "24h".to_owned()),
        // What still runs at the end of a test is ended at once.
        ("shutdown-timeout", "0s".to_owned()),
        // A test is about what a hook prints, and its values are no secrets.
        ("log-hook-values", "true".to_owned()),
    ];
    let flags = flags.into_iter().map(|(flag, text)| (flag.to_owned(), text)).collect();
    // The variables that set up an operator are not meant for its tests.
    Ok(Settings::new(&Given::new(flags, Environment::default()))?)
}

/// Returns the directories that are loaded: links to what a test needs, so that broken neighbours do not matter.
fn linked(
    place: &Place,
    others: &BTreeSet<String>,
    with_global_hooks: bool,
    own: &Path,
) -> io::Result<(PathBuf, PathBuf)> {
    let (modules, global) = (own.join("modules"), own.join("global-hooks"));
    for dir in [&modules, &global] {
        std::fs::create_dir_all(dir)?;
    }
    let real_modules = place.modules_dir();
    let chosen = match place {
        Place::Module { dir, .. } => {
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
        Place::Global(_) | Place::All(_) => real_modules.unwrap_or(modules),
    };
    let Some(real_global) = place.global_dir() else { return Ok((chosen, global)) };
    if with_global_hooks {
        return Ok((chosen, real_global));
    }
    if real_global.join("openapi").is_dir() {
        symlink(real_global.join("openapi"), global.join("openapi"))?;
    }
    Ok((chosen, global))
}
