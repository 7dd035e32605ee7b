//! The state of everything on one screen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::format::{Format, columns, count, cut, one_line, span};
use super::problems::problems;
use super::{
    ElectionView, ModuleOriginView, ModuleView, QueueView, RequirementView, View, WatchView, sources,
};
use crate::event::{TakenFrom, TakenObject, UnwatchedKind};
use crate::notice::TaskType;

/// How many modules one screen has room for.
const MODULES: usize = 20;
/// How many queues one screen has room for.
const QUEUES: usize = 8;
/// How many letters of an error a row has room for.
const ERROR: usize = 60;
/// How many letters of the state of a queue a row has room for.
pub const QUEUE_STATE: usize = 120;

/// Returns whether the operator is ready and what it is doing, in one line.
pub fn headline(view: &View) -> String {
    let converge = &view.converge;
    if view.is_ending {
        return "the operator is ending".to_owned();
    }
    if let Some(election) = view.election.as_ref().filter(|election| election.is_standby()) {
        return standby(election);
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

/// Returns whom an operator waits for that does not lead, in one line.
pub fn standby(election: &ElectionView) -> String {
    let free = election.free_in.map(|time| format!(", which may be taken in {}", span(time)));
    let free = free.unwrap_or_default();
    match &election.holder {
        Some(holder) => format!("standby of {holder}; it waits for Lease {}{free}", election.lease),
        None => format!("standby of nobody; it waits for Lease {}{free}", election.lease),
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
    let mut data = json!({
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
    });
    if let (Some(fields), Some(election)) = (data.as_object_mut(), &view.election) {
        let role: &str = election.role.into();
        let data = json!({
            "role": role,
            "lease": election.lease,
            "identity": election.identity,
            "holder": election.holder,
            "actsForSeconds": election.acts_for.map(|time| time.as_secs_f64()),
            "otherOperator": election.rival,
        });
        fields.insert("election".to_owned(), data);
    }
    if let Some(fields) = data.as_object_mut().filter(|_| !view.sources.is_empty()) {
        fields.insert("sources".to_owned(), sources::list(view, format));
    }
    data
}

fn broken_watches(view: &View) -> (usize, usize) {
    let missing = view.watches.iter().filter(|watch| watch.missing_kind.is_some()).count();
    let broken = |watch: &&WatchView| watch.missing_kind.is_none() && watch.failure.is_some();
    (missing, view.watches.iter().filter(broken).count() + view.broken_own_watches.len())
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
        ("maintenance".to_owned(), module.maintenance.is_some().into()),
    ]);
    if let Some(maintenance) = &module.maintenance {
        data.insert("maintenanceReason".to_owned(), maintenance.reason.clone().into());
        data.insert("maintenanceUntil".to_owned(), maintenance.until.clone().into());
    }
    if let Some(error) = &module.last_error {
        data.insert("lastError".to_owned(), format.failure(error).into());
    }
    if let Some(why) = &module.parked {
        data.insert("parked".to_owned(), (format.show)(why).into());
    }
    if let Some(why) = &module.held {
        data.insert("held".to_owned(), (format.show)(why).into());
    }
    waiting_data(module, format, &mut data);
    if let Some(package) = &module.package {
        let chart = json!({
            "repository": &*package.repository,
            "name": &*package.chart,
            "version": &*package.version,
            "digest": package.digest.as_str(),
        });
        data.insert("chart".to_owned(), chart);
    }
    if !module.changed_objects.is_empty() {
        data.insert("changedObjects".to_owned(), json!(module.changed_objects));
    }
    if let Some((object, why)) = &module.unmended {
        data.insert("unmended".to_owned(), json!({"object": object, "why": format.failure(why)}));
    }
    if !module.taken_objects.is_empty() {
        let taken = |TakenObject { object, from }: &TakenObject| match from {
            TakenFrom::Release(release) => json!({"object": object, "release": release}),
            TakenFrom::Writer { manager, field } => {
                json!({"object": object, "manager": manager, "field": field})
            }
        };
        data.insert("takenObjects".to_owned(), module.taken_objects.iter().map(taken).collect());
    }
    if !module.unwatched_kinds.is_empty() {
        let kind = |unwatched: &UnwatchedKind| json!({"kind": unwatched.kind, "why": unwatched.why});
        data.insert("unwatchedKinds".to_owned(), module.unwatched_kinds.iter().map(kind).collect());
    }
    if let Some(broken) = &module.broken_version {
        data.insert("brokenVersion".to_owned(), format.failure(broken).into());
    }
    if let Some(ModuleOriginView { source, url, version, digest, is_retained, held_back }) = &module.origin {
        let origin = json!({
            "source": source.address(),
            "url": url,
            "version": version,
            "digest": digest.to_string(),
            "retained": is_retained,
            "heldBack": held_back,
        });
        data.insert("origin".to_owned(), origin);
    }
    if let Some(problem) = &module.config_problem {
        data.insert("configProblem".to_owned(), format.failure(&problem.failure).into());
    }
    data.into()
}

/// Adds what a module waits for, and who waits for it.
fn waiting_data(module: &ModuleView, format: Format<'_>, data: &mut Map<String, Value>) {
    if let Some(why) = &module.waits {
        data.insert("waits".to_owned(), (format.show)(why).into());
    }
    if let Some(readiness) = &module.readiness {
        let unready: Vec<String> = readiness.unready.iter().map(|unready| (format.show)(unready)).collect();
        data.insert("readiness".to_owned(), json!({"state": readiness.state(), "unready": unready}));
    }
    if !module.requires.is_empty() {
        let required = |required: &RequirementView| json!({"module": required.module.as_str(), "version": required.version, "missing": required.lack});
        data.insert("requires".to_owned(), module.requires.iter().map(required).collect());
    }
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
    if head.kind == TaskType::AddonsReconcile {
        // No source waits for another one.
        let running = queue.tasks.iter().filter(|task| task.running.is_some()).count();
        return format!("{running} at work, {} wait", queue.tasks.len() - running);
    }
    let since = head.blocked_for.map(span).unwrap_or_default();
    if let Some(running) = head.running {
        let again = if head.failures > 0 { format!(", failing for {since}") } else { String::new() };
        let waits = head.waits_for.as_ref().map(|what| format!(", waits for {}", (format.show)(what)));
        format!("works for {}{again}{}", span(running), waits.unwrap_or_default())
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
    text.push_str(&sources_text(view));
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

/// Returns how many module sources there are in which phase; nothing if there is none.
fn sources_text(view: &View) -> String {
    let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
    for source in &view.sources {
        *phases.entry(sources::phase(source)).or_default() += 1;
    }
    if phases.is_empty() {
        return String::new();
    }
    let counts: Vec<String> = phases.into_iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    format!("\nModule sources: {} (`addon-operator source list`)\n", counts.join(", "))
}

/// Modules in the order in which they matter to who looks.
fn by_need(module: &ModuleView) -> u8 {
    match module.phase {
        "failed" => 0,
        "held" | "parked" | "orphaned" | "waiting" => 1,
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
    } else if let Some(why) = &module.held {
        short(&(format.show)(why))
    } else if let Some(why) = &module.waits {
        short(&(format.show)(why))
    } else if let Some(readiness) = module.readiness.as_ref().filter(|readiness| readiness.is_late) {
        let first = readiness.unready.first().map(|unready| (format.show)(unready)).unwrap_or_default();
        short(&format!("objects are not ready in time: {first}"))
    } else if module.parked.is_some() {
        "its release is left alone, see below".to_owned()
    } else if module.broken_version.is_some() {
        "its new version is broken, see below".to_owned()
    } else if let Some(problem) = &module.config_problem {
        let maintenance = if module.maintenance.is_some() { "in maintenance; " } else { "" };
        format!("{maintenance}its key of the {} is broken, see below", problem.object)
    } else if let Some(maintenance) = &module.maintenance {
        short(&maintenance.told())
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
        Some(last) => match &last.source {
            super::Source::Static => format!("{} says no", last.by),
            super::Source::Dynamic => format!("global hook {} says no", last.by),
            super::Source::Config(object) => format!("{object} key {} says no", last.by),
            super::Source::Script => "its enabled script says no".to_owned(),
            super::Source::Withdrawn(_) => format!("{} does not bring it any more", last.by),
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
            cut(&queue_state(queue, format), QUEUE_STATE),
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

/// Returns the beginning of a text, on one line.
fn short(text: &str) -> String {
    cut(text, ERROR)
}
