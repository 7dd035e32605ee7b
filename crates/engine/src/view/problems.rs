//! What a person should look at, and what to do about it.
//!
//! It is long because each problem stands here once, with its advice.

use std::collections::BTreeMap;
use std::time::Duration;

use super::format::{Format, span, why_module, why_queue, why_source};
use super::why::advice;
use super::{
    DriftView, ElectionRole, ElectionView, ModuleView, QueueView, RequirementView, SourceView, TaskView,
    UnservedWebhook, View, WatchView, WebhookStreakView,
};
use crate::addon::SourceKey;
use crate::event::{TakenFrom, TakenObject, UnwatchedKind};
use crate::failure::Failure;
use crate::memory::ShortMemory;
use crate::name::ModuleName;
use crate::notice::TaskType;

/// How many warnings about files are told.
const WARNINGS: usize = 20;
/// How many changed objects of a module are named.
const CHANGED: usize = 5;
/// How many objects of a controller are named.
const OBJECTS: usize = 5;
/// How what is missing of a module ends that is parked.
pub(crate) const PARKED: &str = "which is parked";
/// What to do about a broken watch.
pub(super) const OPENED_AGAIN: &str = "look whether the API server answers and whether the operator may list and watch it (RBAC); it is opened again by itself";

/// What to do about webhooks that are not registered.
const REGISTERED_AGAIN: &str =
    "look whether the API server answers and what it refuses; they are registered again by themselves";

/// What is wrong with a certificate of webhooks whose Secret can't be read, written or watched.
pub(crate) const NOT_FOLLOWED: &str = "can't be followed in its Secret, and replicas may show different ones";

/// What to do about that.
const FOLLOWED_AGAIN: &str = "look whether the API server answers and what it refuses; it is tried again each minute, and what is shown stays";

/// How long a hook of a chart runs until that is told of.
const LONG_HOOK: Duration = Duration::from_secs(30);

/// How long before its end a certificate of webhooks is told of. One of our own is renewed months before.
const LAST_DAYS: Duration = Duration::from_hours(7 * 24);

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
    problems.extend(view.short_memory.map(memory_problem));
    problems.extend(view.election.iter().filter_map(|election| election_problem(election, format)));
    for queue in &view.queues {
        problems.extend(queue_problem(queue, format));
        problems.extend(queue.tasks.first().and_then(|head| long_hook_problem(head, format)));
        problems.extend(object_problems(queue, format));
        problems.extend(queue.tasks.iter().filter_map(|task| parked_problem(task, format)));
    }
    problems.extend(remark_problems(view, format));
    for module in &view.modules {
        problems.extend(module_problem(view, module, format));
    }
    problems.extend(view.sources.iter().filter_map(|source| source_problem(source, format)));
    problems.extend(view.modules.iter().filter_map(|module| ownerless_problem(view, module)));
    problems.extend(chart_problems(view, format));
    problems.extend(view.modules.iter().filter_map(|module| changed_problem(module, format)));
    problems.extend(view.modules.iter().filter_map(taken_problem));
    problems.extend(unwatched_problems(view));
    for problem in &view.config_problems {
        let advice = problem.failure.advice.clone();
        let key = format!("{} key", problem.object);
        let what = format.failure(&problem.failure).replacen(&key, "key", 1);
        problems.push(Problem {
            about: view.place(problem.object),
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
    problems.extend(view.broken_own_watches.iter().map(|watch| Problem {
        about: format!("watch of {}", watch.name),
        what: format!(
            "is broken for {}, its changes are not seen: {}",
            span(watch.broken_for),
            format.failure(&watch.failure)
        ),
        advice: watch.failure.advice.clone().unwrap_or_else(|| OPENED_AGAIN.to_owned()),
        module: None,
    }));
    problems.extend(webhook_problems(view, format));
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

/// Returns which chart repositories and Charts are not synced, and which modules went back to the version before.
fn chart_problems(view: &View, format: Format<'_>) -> Vec<Problem> {
    let repositories = view.charts.repositories.iter().filter(|it| it.is_synced == Some(false));
    let repositories =
        repositories.map(|it| (format!("Repository {}", it.access.name), &it.message, it.next_in));
    let charts = view.charts.charts.iter().filter(|it| it.is_synced == Some(false));
    let charts = charts.map(|it| (format!("Chart {}", it.name), &it.message, it.next_in));
    let problem = |(about, message, next_in): (String, &String, Option<Duration>)| Problem {
        about,
        what: format!("is not synced: {}", (format.show)(message)),
        advice: match next_in {
            Some(left) => format!("correct what it says; it is looked at again in {}", span(left)),
            None => "correct what it says; it is looked at again by itself".to_owned(),
        },
        module: None,
    };
    let went_back = view.charts.modules.iter().filter_map(|its| {
        let given_up = its.given_up.as_ref()?;
        let pinned = its.pinned.as_ref().map(|pinned| &*pinned.version).unwrap_or_default();
        Some(Problem {
            about: format!("module {}", its.module),
            what: format!(
                "went back from version {} of its chart to {pinned}: {}",
                given_up.version,
                (format.show)(&given_up.error)
            ),
            advice: its.how_to_try_again(),
            module: Some(its.module.clone()),
        })
    });
    repositories.chain(charts).map(problem).chain(went_back).collect()
}

/// Returns what is wrong with webhooks.
fn webhook_problems(view: &View, format: Format<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(view.webhooks.failure.iter().map(|failure| Problem {
        about: "webhooks".to_owned(),
        what: format!("are not registered as hooks want them: {}", format.failure(failure)),
        advice: failure.advice.clone().unwrap_or_else(|| REGISTERED_AGAIN.to_owned()),
        module: None,
    }));
    problems.extend(view.webhooks.unserved.iter().map(|UnservedWebhook { hook, what, advice }| Problem {
        about: format!("hook {hook}"),
        what: what.clone(),
        advice: (*advice).to_owned(),
        module: hook.scope.module().cloned(),
    }));
    problems.extend(view.webhooks.streaks.iter().map(|streak| webhook_problem(streak, format)));
    problems.extend(view.webhooks.certificate_failure.iter().map(|failure| Problem {
        about: "certificate of webhooks".to_owned(),
        what: format!("{NOT_FOLLOWED}: {}", format.failure(failure)),
        advice: failure.advice.clone().unwrap_or_else(|| FOLLOWED_AGAIN.to_owned()),
        module: None,
    }));
    let ends_in = view.webhooks.certificate_ends_in;
    problems.extend(ends_in.filter(|left| *left < LAST_DAYS).map(certificate_problem));
    problems
}

fn certificate_problem(left: Duration) -> Problem {
    Problem {
        about: "certificate of webhooks".to_owned(),
        what: if left.is_zero() {
            "is not valid any more: no webhook is asked".to_owned()
        } else {
            format!("is valid for {} only", span(left))
        },
        advice: "write a new one into --admission-server-certs-dir; one of the operator's own is renewed by itself, and the log says why that fails".to_owned(),
        module: None,
    }
}

fn webhook_problem(streak: &WebhookStreakView, format: Format<'_>) -> Problem {
    let WebhookStreakView { webhook, hook, count, since, failure, is_conversion } = streak;
    let since = span(*since);
    let (what, advice) = if let Some(failure) = failure {
        let meanwhile = if *is_conversion {
            "requests for objects that would be converted fail meanwhile"
        } else {
            "the failure policy says what becomes of requests meanwhile"
        };
        let usual = || format!("correct hook {hook}, the log has its output; {meanwhile}");
        let count = if *count == 1 { "once".to_owned() } else { format!("{count} times in a row") };
        let what = format!("has no answer for {since}, {count}: {}", format.failure(failure));
        (what, failure.advice.clone().unwrap_or_else(usual))
    } else {
        let what = format!("denies everything for {since}, {count} requests in a row");
        (what, format!("look whether hook {hook} means that; `start --uninstall-webhooks` lets writes go on"))
    };
    Problem { about: format!("webhook {webhook}"), what, advice, module: hook.scope.module().cloned() }
}

fn memory_problem(memory: ShortMemory) -> Problem {
    let mib = |bytes: u64| bytes >> 20;
    Problem {
        about: "memory".to_owned(),
        what: format!(
            "is short: {} of {} MiB are used, hooks run one at a time",
            mib(memory.used),
            mib(memory.limit)
        ),
        advice: "give the container more memory, or let fewer hooks run at a time (--max-hooks)".to_owned(),
        module: None,
    }
}

/// Returns what is wrong with who may act.
fn election_problem(election: &ElectionView, format: Format<'_>) -> Option<Problem> {
    let (what, advice) = if let Some(rival) = &election.rival {
        let advice = "end one of them, or start both with --ha; `--single-instance=off` looks for none";
        (
            format!("names {rival}, which is at work in this namespace, too: both run all hooks"),
            advice.to_owned(),
        )
    } else {
        let failure = election.failure.as_ref()?;
        let effect = match (election.role, election.is_decisive, election.acts_for) {
            (ElectionRole::Leader, true, Some(time)) => format!("this replica leads for {} more", span(time)),
            (ElectionRole::Standby, ..) => "this replica can't lead".to_owned(),
            (ElectionRole::Alone | ElectionRole::Leader, ..) => {
                "another operator would not be seen".to_owned()
            }
        };
        let usual = "look whether the API server answers; it is tried again by itself";
        let advice = failure.advice.clone().unwrap_or_else(|| usual.to_owned());
        (format!("can't be used, so that {effect}: {}", format.failure(failure)), advice)
    };
    Some(Problem { about: format!("Lease {}", election.lease), what, advice, module: None })
}

/// Returns what is wrong with a run of a hook that is not tried again by itself.
fn parked_problem(task: &TaskView, format: Format<'_>) -> Option<Problem> {
    let hook = task.hook.as_ref().filter(|_| task.is_aside && task.last_failure.is_some())?;
    let why = task.waits_for.as_ref()?;
    let since = task.blocked_for.map(span).unwrap_or_default();
    Some(Problem {
        about: format!("hook {hook}"),
        what: format!("is parked for {since}, and its events wait: {}", (format.show)(why)),
        advice: task.wait_advice.clone()?,
        module: task.module.clone(),
    })
}

/// Returns what is wrong with the objects of a controller. They do not wait for each other, so each may be another problem.
fn object_problems(queue: &QueueView, format: Format<'_>) -> Vec<Problem> {
    let is_failing = |task: &&TaskView| task.kind == TaskType::ReconcileRun && task.last_failure.is_some();
    let failing: Vec<&TaskView> = queue.tasks.iter().filter(is_failing).collect();
    let prefix = format!("{}:{}:", TaskType::ReconcileRun, queue.name);
    let told = failing.iter().take(OBJECTS).filter_map(|task| {
        let failure = task.last_failure.as_ref()?;
        let since = task.blocked_for.map(span).unwrap_or_default();
        Some(Problem {
            about: task.description.strip_prefix(&prefix).unwrap_or(&task.description).to_owned(),
            what: format!("is not as its controller says for {since}: {}", format.failure(failure)),
            advice: format!("{}; more: {}", advice::about(failure, task), why_queue(&queue.name)),
            module: task.module.clone(),
        })
    });
    let more = failing.len().saturating_sub(OBJECTS);
    let more = (more > 0).then(|| Problem {
        about: format!("queue {}", queue.name),
        what: format!("has {more} more objects that fail"),
        advice: format!("more: {}", why_queue(&queue.name)),
        module: None,
    });
    told.chain(more).collect()
}

/// Returns what people should know about objects whose controllers do not fail.
fn remark_problems(view: &View, format: Format<'_>) -> Vec<Problem> {
    let told = view.remarks.iter().take(OBJECTS).map(|remark| Problem {
        about: remark.about.clone(),
        what: (format.show)(&remark.what),
        advice: remark.advice.clone(),
        module: remark.module.clone(),
    });
    let more = view.remarks.len().saturating_sub(OBJECTS);
    let more = (more > 0).then(|| Problem {
        about: "objects of controllers".to_owned(),
        what: format!("{more} more have something to tell"),
        advice: "the log and the Events on them say what".to_owned(),
        module: None,
    });
    told.chain(more).collect()
}

fn queue_problem(queue: &QueueView, format: Format<'_>) -> Option<Problem> {
    let head = queue.tasks.first()?;
    // The run of a module is told of with the module.
    // So is the work on a module source with that, and on an object with its controller.
    let is_told =
        head.kind.is_module_run() || matches!(head.kind, TaskType::AddonsReconcile | TaskType::ReconcileRun);
    let is_parked = head.is_aside && head.hook.is_some() && head.waits_for.is_some();
    let failure = head.last_failure.as_ref().filter(|_| !is_told && !is_parked)?;
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

/// Returns what the work on a release waits for, when that takes long.
fn long_hook_problem(head: &TaskView, format: Format<'_>) -> Option<Problem> {
    let what = head.waits_for.as_ref().filter(|_| head.running.is_some())?;
    let since = head.blocked_for.filter(|since| *since >= LONG_HOOK)?;
    let module = head.module.as_ref()?;
    Some(Problem {
        about: format!("module {module}"),
        what: format!("waits for {} for {}", (format.show)(what), span(since)),
        advice: format!("{}; more: {}", head.wait_advice.clone().unwrap_or_default(), why_module(module)),
        module: Some(module.clone()),
    })
}

/// Returns how many tasks wait behind the first.
fn behind(queue: &QueueView) -> String {
    match queue.behind_head().count() {
        0 => "nothing waits behind it".to_owned(),
        1 => "1 task waits behind it".to_owned(),
        length => format!("{length} tasks wait behind it"),
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
        if let Some(error) = &module.last_error {
            let advice = advice::about_given_up(error, name);
            return told(what, format!("{advice}; `addon-operator module resume {name}` runs it again"));
        }
        let advice = format!(
            "`addon-operator module render {name} --diff` shows what its chart changes each time; correct it, then `addon-operator module resume {name}`"
        );
        return told(what, advice);
    }
    if module.phase == "orphaned" {
        let what = format!("is orphaned for {since}: its directory is gone, {}", left_behind(module));
        return told(what, format!("put its directory back, or `addon-operator module purge {name}`"));
    }
    if let Some(broken) = &module.broken_version {
        let what = if module.has_old_version {
            "its new version is broken, the old one stays in force"
        } else {
            "its files are broken, and it has none from before"
        };
        let what = format!("{what}: {}", format.failure(broken));
        return told(what, "correct its files; they are read again by themselves".to_owned());
    }
    if let Some((what, advice)) = missing(module).or_else(|| late(module, format)) {
        return told(what, format!("{advice}; more: {}", why_module(name)));
    }
    if let Some(failure) = module.unanswered.as_ref().filter(|_| module.phase != "failed") {
        return told(
            format!("has hooks that can't be asked what they want: {}", format.failure(failure)),
            format!("{}; more: {}", way_out_of_silence(failure), why_module(name)),
        );
    }
    let error = module.last_error.as_ref().filter(|_| module.phase == "failed")?;
    let blocked = view.queues.iter().find(|queue| {
        queue
            .tasks
            .first()
            .is_some_and(|head| head.kind.is_module_run() && head.module.as_ref() == Some(name))
    });
    let failed = format.failure(error);
    let (what, advice) = if let Some((queue, head)) =
        blocked.and_then(|queue| Some((queue, queue.tasks.first()?)))
    {
        (
            format!("fails for {since}, in queue {} {}: {failed}", queue.name, behind(queue)),
            advice::about(error, head),
        )
    } else {
        let advice = if is_queued(view, name) {
            advice::about_module(error, name)
        } else {
            let advice = advice::about_given_up(error, name);
            format!(
                "{advice}; it is given up until its values or files change, or `addon-operator module run {name}`"
            )
        };
        (format!("its last run failed, {since} ago: {failed}"), advice)
    };
    told(what, format!("{advice}; more: {}", why_module(name)))
}

/// Returns what to do about hooks that do not say what they want.
pub(super) fn way_out_of_silence(failure: &Failure) -> String {
    let usual = "correct the hook in its bundle and publish that; hooks are asked again by themselves";
    failure.advice.clone().unwrap_or_else(|| usual.to_owned())
}

/// Returns whether a run of a module waits in a queue or is under way.
pub(super) fn is_queued(view: &View, name: &ModuleName) -> bool {
    let mut tasks = view.queues.iter().flat_map(|queue| &queue.tasks);
    tasks.any(|task| task.kind.is_module_run() && task.module.as_ref() == Some(name))
}

/// Returns what is left of a module whose directory is gone.
pub(super) fn left_behind(module: &ModuleView) -> &'static str {
    match module.release {
        "absent" | "no chart" => "what its hooks did stays",
        _ => "its release stays",
    }
}

/// Returns what a module requires that no run of another one brings, with what to do about it.
fn missing(module: &ModuleView) -> Option<(String, String)> {
    if module.enabled != Some(true) {
        return None;
    }
    let missing: Vec<&RequirementView> =
        module.requires.iter().filter(|required| required.needs_help).collect();
    let lacks: Vec<&str> = missing.iter().filter_map(|required| required.lack.as_deref()).collect();
    let advice = missing.iter().find_map(|required| bring(module, required))?;
    let lacks = lacks.join(", and ");
    let what = match &module.waits {
        Some(_) => format!("waits for {}: it requires {lacks}", span(module.since)),
        None => format!("runs on, and requires {lacks}; after a start of the operator it would not run"),
    };
    Some((what, advice))
}

/// Returns which objects of a module are not ready in time, with what to do about it.
fn late(module: &ModuleView, format: Format<'_>) -> Option<(String, String)> {
    let readiness = module.readiness.as_ref().filter(|readiness| readiness.is_late)?;
    let unready = readiness.unready.iter().take(CHANGED).map(|unready| (format.show)(unready));
    let unready: Vec<String> = unready.collect();
    let since = readiness.awaited_for.map(span).unwrap_or_default();
    let what = format!("its objects are not ready for {since}: {}", unready.join("; "));
    let advice = "`kubectl describe` shows why; modules that require it wait, unless readiness in its module.yaml says otherwise";
    Some((what, advice.to_owned()))
}

/// Returns what brings a module that another one requires, if it is missing.
pub(super) fn bring(module: &ModuleView, required: &RequirementView) -> Option<String> {
    let (lack, other) = (required.lack.as_ref()?, &required.module);
    if !required.needs_help {
        return Some(format!("look at module {other}: {}", why_module(other)));
    }
    Some(if lack.ends_with("which is off") {
        format!("switch it on: `addon-operator module enable {other}`")
    } else if lack.ends_with(PARKED) {
        format!("{} says why; when that is mended, `addon-operator module resume {other}`", why_module(other))
    } else if required.version.is_some() && lack.contains("version") {
        format!("bring module {other} in a version that does")
    } else if lack.contains("circle") || lack.contains("itself") {
        format!("take one of them out of requires in {}/module.yaml", module.path)
    } else {
        format!("bring module {other}, or take it out of requires in {}/module.yaml", module.path)
    })
}

/// Returns what is wrong with a configuration of module sources.
fn source_problem(source: &SourceView, format: Format<'_>) -> Option<Problem> {
    let failure = source.work.as_ref().and_then(|work| Some((work, work.last_failure.as_ref()?)));
    let what = if let Some((work, failure)) = failure {
        let since = work.blocked_for.map(span).unwrap_or_default();
        format!("the work on it fails for {since}: {}", format.failure(failure))
    } else if source.is_left_alone {
        "is left alone: somebody else writes its status, too".to_owned()
    } else if source.phase == "Failed" && !source.is_deleting {
        let next = source.processed_in.map(|time| format!(" (tried again in {})", span(time)));
        format!("is failed: {}{}", (format.show)(&source.message), next.unwrap_or_default())
    } else {
        return None;
    };
    Some(Problem {
        about: source.key.to_string(),
        what,
        advice: format!("{} says what to do", why_source(&source.key)),
        module: None,
    })
}

fn ownerless_problem(view: &View, module: &ModuleView) -> Option<Problem> {
    let source = ownerless(view, module)?;
    Some(Problem {
        about: format!("module {}", module.name),
        what: format!("goes on although {source} is gone, and nobody brings it"),
        advice: way_out_of_ownerless(module, source),
        module: None,
    })
}

/// Returns the configuration that brought a module which goes on, if that is gone.
pub(super) fn ownerless<'v>(view: &View, module: &'v ModuleView) -> Option<&'v SourceKey> {
    let origin =
        module.origin.as_ref().filter(|origin| origin.is_retained && module.enabled == Some(true))?;
    let is_there = view.sources.iter().any(|its| its.key == origin.source);
    (!is_there).then_some(&origin.source)
}

/// Returns what ends that a module goes on whose configuration is gone.
pub(super) fn way_out_of_ownerless(module: &ModuleView, source: &SourceKey) -> String {
    format!(
        "`addon-operator module disable {}` has it removed, and so has {source} if it is applied again and deleted",
        module.name
    )
}

/// Returns whether a configuration is being deleted: it offers nothing any more.
pub(super) fn is_going(view: &View, source: &SourceKey) -> bool {
    view.sources.iter().any(|its| its.is_deleting && its.key == *source)
}

/// Returns what the removal of a module waits for, and what to do about that.
pub(super) fn removal_wait<'v>(view: &'v View, name: &ModuleName) -> Option<(&'v str, Option<&'v String>)> {
    let tasks = view.queues.iter().flat_map(|queue| &queue.tasks);
    let mut its = tasks.filter(|task| task.running.is_some() && task.module.as_ref() == Some(name));
    its.find_map(|task| Some((task.waits_for.as_deref()?, task.wait_advice.as_ref())))
}

/// Returns what ends that the removal of a module fails again and again.
pub(super) fn way_out_of_removal(view: &View, name: &ModuleName, source: &SourceKey) -> String {
    let who = if is_going(view, source) {
        "any other configuration".to_owned()
    } else {
        format!("{source} or any other configuration")
    };
    format!(
        "its removal is tried again by itself; if it can't succeed, let {who} offer a bundle {name} \
         with which it does: that takes the module over"
    )
}

fn changed_problem(module: &ModuleView, format: Format<'_>) -> Option<Problem> {
    let (what, advice) = changed(module, format)?;
    Some(Problem { about: format!("module {}", module.name), what, advice, module: None })
}

fn taken_problem(module: &ModuleView) -> Option<Problem> {
    let (what, advice) = taken(module)?;
    Some(Problem { about: format!("module {}", module.name), what, advice, module: None })
}

/// Returns what a module took over from others, and what to do about it.
pub(super) fn taken(module: &ModuleView) -> Option<(String, String)> {
    let (first, rest) = module.taken_objects.split_at(module.taken_objects.len().min(CHANGED));
    if first.is_empty() {
        return None;
    }
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    let name = |TakenObject { object, from }: &TakenObject| match from {
        TakenFrom::Release(release) => format!("{object} of release {release}"),
        TakenFrom::Writer { manager, field } => format!("field {field} of {object} from {manager}"),
    };
    let named: Vec<String> = first.iter().map(name).collect();
    let what = format!("took over {}{more}", named.join(", "));
    let is_of_release = |taken: &TakenObject| matches!(taken.from, TakenFrom::Release(_));
    let of_releases = "take the object out of one of the two charts, or uninstall the other release, which keeps what it lost";
    let of_writers = "take the field out of the chart, or have the other writer leave it alone";
    let advice = match (first.iter().any(is_of_release), first.iter().all(is_of_release)) {
        (_, true) => of_releases.to_owned(),
        (true, false) => format!("{of_releases}; {of_writers}"),
        (false, false) => of_writers.to_owned(),
    };
    Some((what, format!("{advice}; the next upgrade that takes over nothing ends this")))
}

/// Returns the kinds that can't be watched for releases, each once with the modules that have objects of it.
fn unwatched_problems(view: &View) -> Vec<Problem> {
    let mut kinds: BTreeMap<(&UnwatchedKind, String), Vec<&ModuleName>> = BTreeMap::new();
    for module in &view.modules {
        for kind in &module.unwatched_kinds {
            kinds.entry((kind, unwatched_advice(module))).or_default().push(&module.name);
        }
    }
    let problem = |((unwatched, advice), modules): ((&UnwatchedKind, String), Vec<&ModuleName>)| {
        let (first, rest) = modules.split_at(modules.len().min(CHANGED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let names: Vec<&str> = first.iter().map(|name| name.as_str()).collect();
        Problem {
            about: format!("releases: kind {}", unwatched.kind),
            what: format!("is not watched for {}{more}: {}", names.join(", "), unwatched.why),
            advice,
            module: None,
        }
    };
    kinds.into_iter().map(problem).collect()
}

/// Returns what to do about a kind that can't be watched for a module: whose right is missing.
pub(super) fn unwatched_advice(module: &ModuleView) -> String {
    let guest = module.elsewhere.as_ref().and_then(|place| Some((&place.namespace, place.account.as_ref()?)));
    let grant = match guest {
        Some((namespace, account)) => {
            format!("grant ServiceAccount {namespace}/{account} list and watch of that kind in its namespace")
        }
        None => "grant the operator's ServiceAccount list and watch of that kind, in the cluster or in the namespaces of its releases".to_owned(),
    };
    format!("{grant}; until then what is deleted comes back with the next run of its module only")
}

/// Returns what others changed of the release of a module, and what to do about it.
pub(super) fn changed(module: &ModuleView, format: Format<'_>) -> Option<(String, String)> {
    let (first, rest) = module.changed_objects.split_at(module.changed_objects.len().min(CHANGED));
    if first.is_empty() {
        return None;
    }
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    let what = format!("somebody else changed {}{more} since its last upgrade", first.join(", "));
    let (what, until) = match (&module.unmended, module.drift) {
        (Some((object, why)), _) => {
            let usual = "the mend is tried again, at the latest after 5 minutes".to_owned();
            (format!("{what}; {object}: {}", format.failure(why)), why.advice.clone().unwrap_or(usual))
        }
        (None, DriftView::Stays) => (what, "it stays until the next upgrade, so find who writes it".to_owned()),
        (None, DriftView::Mended) => (what, "it is put right within seconds".to_owned()),
        (None, DriftView::Quarrel) => (
            what,
            "it is put right once an hour only, so find who writes it, or leave the field to them with drift.ignore in module.yaml".to_owned(),
        ),
    };
    let advice = format!("`addon-operator module render {} --diff` shows what differs; {until}", module.name);
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
        let advice = format!(
            "install the CustomResourceDefinition of {kind}, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`)"
        );
        return Some(Problem { about, what, advice, module: None });
    }
    let failure = watch.failure.as_ref()?;
    let what = format!("is broken for {since}, hooks {hooks} see no changes: {}", format.failure(failure));
    let advice = failure.advice.clone().unwrap_or_else(|| OPENED_AGAIN.to_owned());
    Some(Problem { about, what, advice, module: None })
}
