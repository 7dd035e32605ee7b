//! The state of everything on one screen.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::format::{Format, columns, count, span, why_module, why_queue};
use super::why::advice;
use super::{ModuleView, QueueView, View, WatchView};
use crate::name::ModuleName;
use crate::notice::TaskType;

/// How many modules one screen has room for.
const MODULES: usize = 20;
/// How many queues one screen has room for.
const QUEUES: usize = 8;
/// How many warnings about files are told.
const WARNINGS: usize = 20;
/// How many changed objects of a module are named.
const CHANGED: usize = 5;
/// How many letters of an error a row has room for.
const ERROR: usize = 60;

/// Something that needs a person, or soon may.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// What it is about: `module web`, `queue main`, `ConfigMap`.
    pub about: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub advice: String,
    /// The module whose values it may quote; `None` for any.
    pub module: Option<ModuleName>,
}

/// Returns all that is wrong, the worst first.
pub fn problems(view: &View, format: Format<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for queue in &view.queues {
        problems.extend(queue_problem(queue, format));
    }
    for module in &view.modules {
        problems.extend(module_problem(view, module, format));
    }
    problems.extend(view.modules.iter().filter_map(changed_problem));
    for problem in &view.config_problems {
        let advice = problem.failure.advice.clone();
        let what = format.failure(&problem.failure).replacen("ConfigMap key", "key", 1);
        problems.push(Problem {
            about: format!("ConfigMap {}", view.config_map),
            what: format!("is wrong for {}: {what}", span(problem.since)),
            advice: advice
                .unwrap_or_else(|| "correct that key; what was good before stays in force".to_owned()),
            module: None,
        });
    }
    for failure in &view.file_problems {
        let usual = "correct the file that is named; it is read again by itself";
        problems.push(Problem {
            about: "files".to_owned(),
            what: format!("changed files are not in force: {}", format.failure(failure)),
            advice: failure.advice.clone().unwrap_or_else(|| usual.to_owned()),
            module: None,
        });
    }
    problems.extend(view.watches.iter().filter_map(|watch| watch_problem(watch, format)));
    let more = view.warnings.len().saturating_sub(WARNINGS);
    let more = (more > 0).then(|| format!("{more} more; the log has all"));
    let warnings = view.warnings.iter().take(WARNINGS).map(|warning| (format.show)(warning)).chain(more);
    problems.extend(warnings.map(|what| Problem {
        about: "files:".to_owned(),
        what,
        advice: "correct that; all else goes on meanwhile".to_owned(),
        module: None,
    }));
    problems
}

fn queue_problem(queue: &QueueView, format: Format<'_>) -> Option<Problem> {
    let head = queue.tasks.first()?;
    // The run of a module is told of with the module.
    let failure = head.last_failure.as_ref().filter(|_| head.kind != TaskType::ModuleRun)?;
    let behind = behind(queue);
    let since = head.blocked_for.map(span).unwrap_or_default();
    let hook = head.hook.as_ref().map(|hook| format!(" {hook}")).unwrap_or_default();
    let failed = format.failure(failure);
    Some(Problem {
        about: format!("queue {}", queue.name),
        what: format!("{} {}{hook} fails for {since}, {behind}: {failed}", head.id, head.kind),
        advice: format!("{}; more: {}", advice::about(failure, head), why_queue(&queue.name)),
        module: head.module.clone(),
    })
}

/// Returns how many tasks wait behind the first.
fn behind(queue: &QueueView) -> String {
    match queue.tasks.len() {
        0 | 1 => "nothing waits behind it".to_owned(),
        2 => "1 task waits behind it".to_owned(),
        length => format!("{} tasks wait behind it", length - 1),
    }
}

fn module_problem(view: &View, module: &ModuleView, format: Format<'_>) -> Option<Problem> {
    let name = &module.name;
    let since = span(module.since);
    let told = |what: String, advice: String| {
        Some(Problem { about: format!("module {name}"), what, advice, module: Some(name.clone()) })
    };
    if let Some(why) = &module.parked {
        let what = format!("is parked for {since}: {}", (format.show)(why));
        let advice = format!(
            "`addon-operator module render {name} --diff` shows what its chart changes each time; correct it, then `addon-operator module resume {name}`"
        );
        return told(what, advice);
    }
    if module.phase == "orphaned" {
        let what = format!("is orphaned for {since}: its directory is gone, its release stays");
        return told(what, format!("put its directory back, or `addon-operator module purge {name}`"));
    }
    if let Some(broken) = &module.broken_version {
        let what =
            format!("its new version is broken, the old one stays in force: {}", format.failure(broken));
        return told(what, "correct its files; they are read again by themselves".to_owned());
    }
    let error = module.last_error.as_ref().filter(|_| module.phase == "failed")?;
    let blocked = view.queues.iter().find(|queue| {
        queue
            .tasks
            .first()
            .is_some_and(|head| head.kind == TaskType::ModuleRun && head.module.as_ref() == Some(name))
    });
    let failed = format.failure(error);
    let (what, advice) = match blocked.and_then(|queue| Some((queue, queue.tasks.first()?))) {
        Some((queue, head)) => (
            format!("fails for {since}, in queue {} {}: {failed}", queue.name, behind(queue)),
            advice::about(error, head),
        ),
        None => (format!("its last run failed, {since} ago: {failed}"), advice::about_module(error, name)),
    };
    told(what, format!("{advice}; more: {}", why_module(name)))
}

fn changed_problem(module: &ModuleView) -> Option<Problem> {
    let (what, advice) = changed(module)?;
    Some(Problem { about: format!("module {}", module.name), what, advice, module: None })
}

/// Returns what others changed of the release of a module, and what to do about it.
pub(super) fn changed(module: &ModuleView) -> Option<(String, String)> {
    let (first, rest) = module.changed_objects.split_at(module.changed_objects.len().min(CHANGED));
    if first.is_empty() {
        return None;
    }
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    let what = format!("somebody else changed {}{more} since its last upgrade", first.join(", "));
    let advice = format!(
        "`addon-operator module render {} --diff` shows what differs; it stays until the next upgrade, so find who writes it",
        module.name
    );
    Some((what, advice))
}

fn watch_problem(watch: &WatchView, format: Format<'_>) -> Option<Problem> {
    let about = format!("watch of {}", watch.kind);
    let hooks: Vec<String> =
        watch.bindings.iter().map(|(hook, binding)| format!("{hook} ({binding})")).collect();
    let hooks = hooks.join(", ");
    let since = watch.broken_for.map(span).unwrap_or_default();
    if let Some(kind) = &watch.missing_kind {
        let what =
            format!("waits for {since} for kind {kind}, which does not exist; hooks {hooks} can't run");
        let advice =
            format!("install the CustomResourceDefinition of {kind}, or switch the module on that brings it");
        return Some(Problem { about, what, advice, module: None });
    }
    let failure = watch.failure.as_ref()?;
    let what = format!("is broken for {since}, hooks {hooks} see no changes: {}", format.failure(failure));
    let usual = "look whether the API server answers and whether the operator may list and watch it (RBAC); it is opened again by itself";
    let advice = failure.advice.clone().unwrap_or_else(|| usual.to_owned());
    Some(Problem { about, what, advice, module: None })
}

/// Returns whether the operator is ready and what it is doing, in one line.
pub fn headline(view: &View) -> String {
    let converge = &view.converge;
    if view.is_ending {
        return "the operator is ending".to_owned();
    }
    let ready = if converge.first_done { "ready" } else { "not ready" };
    match (converge.began_ago, converge.finished_ago) {
        (Some(began), _) => {
            let cause = converge.cause.clone().unwrap_or_default();
            let tasks = count(converge.tasks, "task");
            format!("{ready}; a converge runs for {}, {tasks} left (because: {cause})", span(began))
        }
        (None, Some(finished)) => {
            format!("{ready}; the last converge ended {} ago", span(finished))
        }
        (None, None) => format!("{ready}; nothing was converged yet"),
    }
}

/// Returns everything as data.
pub fn data(view: &View, format: Format<'_>) -> Value {
    let converge = &view.converge;
    let problems: Vec<Value> = problems(view, format)
        .into_iter()
        .map(|problem| json!({"about": problem.about, "what": problem.what, "advice": problem.advice}))
        .collect();
    let (missing, failed) = broken_watches(view);
    json!({
        "headline": headline(view),
        "ready": converge.first_done,
        "converge": {
            "generation": converge.generation,
            "tasks": converge.tasks,
            "runningSeconds": converge.began_ago.map(|ago| ago.as_secs_f64()),
            "endedSecondsAgo": converge.finished_ago.map(|ago| ago.as_secs_f64()),
            "cause": converge.cause,
        },
        "modules": view.modules.iter().map(|module| module_data(module, format)).collect::<Vec<_>>(),
        "queues": view.queues.iter().map(|queue| queue_data(queue, format)).collect::<Vec<_>>(),
        "watches": {
            "total": view.watches.len(),
            "objects": view.watches.iter().map(|watch| watch.objects).sum::<usize>(),
            "waitingForKind": missing,
            "broken": failed,
        },
        "problems": problems,
    })
}

fn broken_watches(view: &View) -> (usize, usize) {
    let missing = view.watches.iter().filter(|watch| watch.missing_kind.is_some()).count();
    let broken = |watch: &&WatchView| watch.missing_kind.is_none() && watch.failure.is_some();
    (missing, view.watches.iter().filter(broken).count())
}

fn module_data(module: &ModuleView, format: Format<'_>) -> Value {
    let mut data = Map::from_iter([
        ("name".to_owned(), Value::from(module.name.as_str())),
        ("order".to_owned(), module.order.into()),
        ("enabled".to_owned(), module.enabled.into()),
        ("phase".to_owned(), module.phase.into()),
        ("sinceSeconds".to_owned(), json!(module.since.as_secs_f64())),
        ("release".to_owned(), module.release.into()),
        ("revision".to_owned(), module.revision.into()),
        ("maintenance".to_owned(), module.maintenance.into()),
    ]);
    if let Some(error) = &module.last_error {
        data.insert("lastError".to_owned(), format.failure(error).into());
    }
    if let Some(why) = &module.parked {
        data.insert("parked".to_owned(), (format.show)(why).into());
    }
    if !module.changed_objects.is_empty() {
        data.insert("changedObjects".to_owned(), json!(module.changed_objects));
    }
    if let Some(broken) = &module.broken_version {
        data.insert("brokenVersion".to_owned(), format.failure(broken).into());
    }
    if let Some(problem) = &module.config_problem {
        data.insert("configProblem".to_owned(), format.failure(problem).into());
    }
    data.into()
}

fn queue_data(queue: &QueueView, format: Format<'_>) -> Value {
    json!({
        "name": queue.name.as_str(),
        "tasks": queue.tasks.len(),
        "state": queue_state(queue, format),
        "head": queue.tasks.first().map(|task| format!("{} {}", task.id, task.description)),
    })
}

/// Returns what a queue is doing, in few words.
fn queue_state(queue: &QueueView, format: Format<'_>) -> String {
    let Some(head) = queue.tasks.first() else { return "idle".to_owned() };
    let since = head.blocked_for.map(span).unwrap_or_default();
    if let Some(running) = head.running {
        let again = if head.failures > 0 { format!(", failing for {since}") } else { String::new() };
        format!("works for {}{again}", span(running))
    } else if let Some(reason) = &head.waits_for {
        format!("waits for {since}: {}", (format.show)(reason))
    } else if head.failures > 0 {
        let retry = head.retry_in.map(|retry| format!(", tried again in {}", span(retry)));
        format!("failing for {since}{}", retry.unwrap_or_default())
    } else {
        "ready".to_owned()
    }
}

/// Returns one screen for people, in plain lines.
pub fn text(view: &View, format: Format<'_>) -> String {
    let mut text = format!("Operator is {}.\n\n", headline(view));
    text.push_str(&modules_text(view, format));
    text.push('\n');
    text.push_str(&queues_text(view, format));
    let (missing, failed) = broken_watches(view);
    let objects: usize = view.watches.iter().map(|watch| watch.objects).sum();
    let _ = write!(text, "\nWatches: {}, {}", view.watches.len(), count(objects, "object"));
    if missing + failed > 0 {
        let _ = write!(text, ", {missing} for kinds that do not exist, {failed} broken");
    }
    text.push('\n');
    let problems = problems(view, format);
    if problems.is_empty() {
        text.push_str("\nNothing needs attention.\n");
        return text;
    }
    text.push_str("\nNeeds attention:\n");
    for problem in problems {
        let what = one_line(&problem.what);
        let _ = writeln!(text, "  ! {} {what}\n      do: {}", problem.about, problem.advice);
    }
    text
}

/// Modules in the order in which they matter to who looks.
fn by_need(module: &ModuleView) -> u8 {
    match module.phase {
        "failed" => 0,
        "parked" | "orphaned" => 1,
        _ if module.broken_version.is_some() || module.config_problem.is_some() => 2,
        "starting" | "deleting" => 3,
        "running" => 4,
        _ => 5,
    }
}

fn modules_text(view: &View, format: Format<'_>) -> String {
    let on = view.modules.iter().filter(|module| module.enabled == Some(true)).count();
    let mut text = format!("Modules: {}, {on} on, {} off\n", view.modules.len(), view.modules.len() - on);
    let mut modules: Vec<&ModuleView> = view.modules.iter().collect();
    if modules.len() > MODULES {
        modules.sort_by_key(|module| by_need(module));
    }
    let rows: Vec<Vec<String>> =
        modules.iter().take(MODULES).map(|module| module_row(module, format)).collect();
    text.push_str(&columns(&["NAME", "PHASE", "SINCE", "RELEASE", "NOTE"], &rows, "  "));
    if modules.len() > MODULES {
        let rest = modules.len() - MODULES;
        let fine = modules.iter().skip(MODULES).all(|module| by_need(module) > 3);
        let note = if fine { ", all of them running or off" } else { "" };
        let _ = writeln!(text, "  … and {rest} more{note}: `addon-operator status -o json` shows all");
    }
    text
}

fn module_row(module: &ModuleView, format: Format<'_>) -> Vec<String> {
    let note = if let Some(error) = &module.last_error {
        short(&format.failure(error))
    } else if module.parked.is_some() {
        "its release is left alone, see below".to_owned()
    } else if module.broken_version.is_some() {
        "its new version is broken, see below".to_owned()
    } else if module.config_problem.is_some() {
        "its key of the ConfigMap is broken, see below".to_owned()
    } else if module.maintenance {
        "in maintenance".to_owned()
    } else if module.phase == "orphaned" {
        "its directory is gone, see below".to_owned()
    } else if !module.changed_objects.is_empty() {
        format!("{} changed by others, see below", count(module.changed_objects.len(), "object"))
    } else if module.enabled == Some(false) {
        short(&why_off(module))
    } else {
        String::new()
    };
    let release = match module.revision {
        Some(revision) => format!("revision {revision}"),
        None => module.release.to_owned(),
    };
    vec![module.name.to_string(), module.phase.to_owned(), span(module.since), release, note]
}

fn why_off(module: &ModuleView) -> String {
    match module.opinions.last() {
        None => "nothing enables it".to_owned(),
        Some(last) => match last.source {
            super::Source::Static => format!("{} says no", last.by),
            super::Source::Dynamic => format!("global hook {} says no", last.by),
            super::Source::ConfigMap => format!("ConfigMap key {} says no", last.by),
            super::Source::Script => "its enabled script says no".to_owned(),
        },
    }
}

fn queues_text(view: &View, format: Format<'_>) -> String {
    let tasks: usize = view.queues.iter().map(|queue| queue.tasks.len()).sum();
    let mut text = format!("Queues: {}, {}\n", view.queues.len(), count(tasks, "task"));
    let busy: Vec<&QueueView> =
        view.queues.iter().filter(|queue| !queue.tasks.is_empty() || queue.name.is_main()).collect();
    let row = |queue: &&QueueView| {
        let head = queue.tasks.first();
        let head = head.map(|task| format!("{} {}", task.id, task.description)).unwrap_or_default();
        vec![
            queue.name.to_string(),
            queue.tasks.len().to_string(),
            one_line(&queue_state(queue, format)),
            head,
        ]
    };
    let rows: Vec<Vec<String>> = busy.iter().take(QUEUES).map(row).collect();
    text.push_str(&columns(&["NAME", "TASKS", "STATE", "FIRST TASK"], &rows, "  "));
    if busy.len() > QUEUES {
        let _ = writeln!(
            text,
            "  … and {} more with tasks: `addon-operator queue list` shows all",
            busy.len() - QUEUES
        );
    }
    text
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" … ")
}

/// Returns the beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = one_line(text);
    if line.chars().count() <= ERROR {
        return line;
    }
    let mut short: String = line.chars().take(ERROR - 1).collect();
    short.push('…');
    short
}
