//! Why a module is on or off, and what it is doing.

use std::fmt::Write as _;
use std::time::Duration;

use super::advice;
use super::{Answer, Unknown, opinions, unknown_module};
use crate::config_object::ConfigObject;
use crate::failure::Failure;
use crate::notice::TaskType;
use crate::view::format::{Format, span, times, why_queue, why_source};
use crate::view::problems;
use crate::view::status::standby;
use crate::view::{ModuleOriginView, ModuleView, QueueView, TaskView, UnservedWebhook, View, WatchView};

/// Returns why the module `name` is on or off, and what it is doing.
pub fn module(view: &View, name: &str, format: Format<'_>) -> Result<Answer, Unknown> {
    let module = view.modules.iter().find(|module| module.name.as_str() == name);
    let Some(module) = module else { return Err(unknown_module(view, name)) };
    let mut answer = Answer {
        about: "module",
        name: name.to_owned(),
        state: "unknown",
        chain: opinions::chain(view, module, format),
        ..Answer::default()
    };
    // Nothing that a module does waits for its tests.
    let (tests, tasks): (Vec<_>, Vec<_>) =
        tasks_of(view, module).into_iter().partition(|(_, _, task)| task.kind == TaskType::ModuleTest);
    judge(view, module, &tasks, format, &mut answer);
    origin(view, module, &mut answer);
    named_chart(view, module, format, &mut answer);
    needed_charts(view, module, format, &mut answer);
    facts(view, module, format, &mut answer);
    required(module, format, &mut answer);
    for (queue, place, task) in tasks.into_iter().chain(tests) {
        answer.facts.push(("task", place_of(queue, place, task, format)));
    }
    Ok(answer)
}

/// Returns the tasks that are about the module, with their queue and their place in it.
fn tasks_of<'v>(view: &'v View, module: &ModuleView) -> Vec<(&'v QueueView, usize, &'v TaskView)> {
    let in_queue =
        |queue: &'v QueueView| queue.tasks.iter().enumerate().map(move |(place, task)| (queue, place, task));
    let all = view.queues.iter().flat_map(in_queue);
    all.filter(|(_, _, task)| task.module.as_ref() == Some(&module.name)).collect()
}

fn place_of(queue: &QueueView, place: usize, task: &TaskView, format: Format<'_>) -> String {
    let mut text = format!("{} {}", task.id, task.kind);
    if let Some(hook) = &task.hook {
        let _ = write!(text, " {}", hook.name);
    }
    let _ = match (place, task.running) {
        (_, Some(running)) => write!(text, " runs in queue {} for {}", queue.name, span(running)),
        (_, None) if task.is_aside => write!(text, " is set aside in queue {}", queue.name),
        (0, None) => write!(text, " is the first in queue {}", queue.name),
        (place, None) => write!(text, " is number {} in queue {}", place + 1, queue.name),
    };
    if let Some(reason) = &task.waits_for {
        let since = span(task.blocked_for.unwrap_or_default());
        let _ = write!(text, ", waits for {since}: {}", (format.show)(reason));
    }
    if task.failures > 0 {
        let _ = write!(text, ", failed {}", times(task.failures));
    }
    if let Some(retry) = task.retry_in {
        let _ = write!(text, ", tried again in {}", span(retry));
    }
    text
}

fn judge(
    view: &View,
    module: &ModuleView,
    tasks: &[(&QueueView, usize, &TaskView)],
    format: Format<'_>,
    answer: &mut Answer,
) {
    let name = &module.name;
    if module.phase == "orphaned" {
        answer.state = "orphaned";
        let left = problems::left_behind(module);
        answer.verdict =
            format!("module {name} is orphaned: its directory is gone, its hooks stopped, {left}");
        answer.advice.push(format!("put {} back to take it up again", module.path));
        answer.advice.push(format!("`addon-operator module purge {name}` removes its release"));
        return;
    }
    match (module.enabled, view.election.as_ref().filter(|election| election.is_standby())) {
        (None, Some(election)) => {
            answer.state = "standby";
            answer.verdict =
                format!("this replica is a {}; what module {name} does is known there", standby(election));
            answer
                .advice
                .push(format!("ask the one that leads: `addon-operator why module {name}` in its Pod"));
        }
        (None, None) => {
            answer.state = "unknown";
            answer.verdict = format!(
                "whether module {name} is on is not known yet: no discovery of modules was completed"
            );
            answer.advice.push(format!("{} shows what the discovery waits for", why_queue(&"main".into())));
        }
        (Some(false), _) => opinions::off(view, module, format, answer),
        (Some(true), _) => on(module, tasks, format, answer),
    }
}

fn parked(module: &ModuleView, why: &str, format: Format<'_>, answer: &mut Answer) {
    let name = &module.name;
    answer.state = "parked";
    answer.verdict = format!("module {name} is on and parked: {}", (format.show)(why));
    if let Some(error) = &module.last_error {
        answer.advice.push(advice::about_given_up(error, name));
        answer.advice.push(format!("then `addon-operator module resume {name}`, if nothing of it changed"));
        return;
    }
    answer
        .advice
        .push(format!("`addon-operator module render {name} --diff` shows what the chart changes each time"));
    answer.advice.push(format!("correct the chart, then `addon-operator module resume {name}`"));
}

fn on(
    module: &ModuleView,
    tasks: &[(&QueueView, usize, &TaskView)],
    format: Format<'_>,
    answer: &mut Answer,
) {
    let name = &module.name;
    let first = tasks.first();
    if let Some(why) = &module.held {
        answer.state = "held";
        answer.verdict =
            format!("module {name} is on, and held until its chart is there: {}", (format.show)(why));
        answer.advice.push(format!("`kubectl describe chart.yaho.soer3n.dev module-{name}` shows its Chart"));
        return;
    }
    if let Some(why) = &module.waits {
        answer.state = "waiting";
        answer.verdict = format!("module {name} is on, and waits: {}", (format.show)(why));
        answer.advice.extend(module.requires.iter().filter_map(|required| problems::bring(module, required)));
        answer.advice.push("nothing else: it runs by itself when all of them are there".to_owned());
        return;
    }
    if let Some(why) = &module.parked {
        return parked(module, why, format, answer);
    }
    if let Some((_, _, task)) = first
        && let Some(reason) = task.waits_for.as_ref()
    {
        answer.state = "waiting";
        answer.verdict = format!("module {name} is on, but waits: {}", (format.show)(reason));
        answer.advice.extend(task.wait_advice.clone());
        return;
    }
    if module.phase == "failed"
        && let Some(error) = &module.last_error
    {
        answer.state = "failing";
        answer.verdict = format!("module {name} is on, but its last run failed: {}", format.failure(error));
        let run = tasks.iter().find(|(_, _, task)| task.kind.is_module_run());
        answer.advice.push(match run {
            Some((_, _, task)) => advice::about(error, task),
            None => advice::about_given_up(error, name),
        });
        answer.advice.push(match run {
            Some(_) => format!("`addon-operator module run {name}` tries it at once"),
            None => format!(
                "it is given up until its values or files change: `addon-operator module run {name}` tries it at once"
            ),
        });
        return;
    }
    answer.state = if module.phase == "running" { "running" } else { "starting" };
    answer.verdict = match (module.phase, first) {
        ("running", _) => format!("module {name} is on and its last run succeeded"),
        (_, Some((queue, place, task))) if *place > 0 && !task.is_aside => {
            answer.advice.push(format!("{} shows what is before it", why_queue(&queue.name)));
            format!("module {name} is on and waits for its turn in queue {}", queue.name)
        }
        (_, Some(_)) => format!("module {name} is on and is being run"),
        (_, None) => format!("module {name} is on and is {}", module.phase),
    };
    let failing = tasks.iter().find(|(_, _, task)| task.failures > 0);
    if let Some((queue, _, task)) = failing
        && let Some(error) = &task.last_failure
    {
        answer.state = "failing";
        let failing = format!(", but a task of it fails in queue {}: {}", queue.name, format.failure(error));
        answer.verdict.push_str(&failing);
        answer.advice.push(advice::about(error, task));
    }
}

/// Returns the broken watches that hooks of the module see the cluster by: kind, reason, and for how long.
fn broken_watches<'v>(
    view: &'v View,
    module: &'v ModuleView,
) -> impl Iterator<Item = (&'v str, &'v Failure, Duration)> {
    let is_of =
        |watch: &&WatchView| watch.bindings.iter().any(|(hook, _)| hook.scope.module() == Some(&module.name));
    let watches = view.watches.iter().filter(is_of).filter(|watch| watch.missing_kind.is_none());
    watches.filter_map(|watch| {
        Some((watch.kind.as_str(), watch.failure.as_deref()?, watch.broken_for.unwrap_or_default()))
    })
}

/// Returns the webhooks of the module that nobody asks.
fn unserved<'v>(view: &'v View, module: &'v ModuleView) -> impl Iterator<Item = &'v UnservedWebhook> {
    view.webhooks.unserved.iter().filter(move |unserved| unserved.hook.scope.module() == Some(&module.name))
}

/// Tells which modules it requires, and what is missing of them, and whether its own objects are ready.
fn required(module: &ModuleView, format: Format<'_>, answer: &mut Answer) {
    if let Some(readiness) = &module.readiness {
        let since = readiness.awaited_for.map(|time| format!(" for {}", span(time))).unwrap_or_default();
        answer.facts.push(("objects", format!("{}{since}", readiness.state())));
        for unready in &readiness.unready {
            answer.facts.push(("not ready", (format.show)(unready)));
        }
    }
    for required in &module.requires {
        let version = required.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let there = || format!("module {}{version}, which is there", required.module);
        answer.facts.push(("requires", required.lack.clone().unwrap_or_else(there)));
    }
}

/// Tells which module source brought the module, if one did.
fn origin(view: &View, module: &ModuleView, answer: &mut Answer) {
    let Some(ModuleOriginView { source, url, version, digest, is_retained, held_back }) = &module.origin
    else {
        return;
    };
    let mut told = format!("version {version} of {source}, {url}, {digest}");
    if *is_retained {
        told.push_str(", registered no more: it goes on as it is");
        answer.advice.push(if problems::ownerless(view, module).is_none() {
            format!("{} shows why its source does not bring it any more", why_source(source))
        } else {
            let way_out = problems::way_out_of_ownerless(module, source);
            format!("{source} is gone, and nobody brings it: {way_out}")
        });
    }
    answer.facts.push(("source", told));
    if let Some(why) = held_back {
        answer.facts.push(("another version", why.clone()));
    }
}

/// Tells which versions of other charts the chart of a module is installed with.
fn needed_charts(view: &View, module: &ModuleView, format: Format<'_>, answer: &mut Answer) {
    let prefix = format!("{}.", module.name);
    for its in view.charts.modules.iter().filter(|its| its.module.as_str().starts_with(&prefix)) {
        let what = format!("{}/{}, {}", its.repository, its.name, its.constraint);
        let told = if let Some(pinned) = &its.pinned {
            format!("{what}: version {}, {}", pinned.version, pinned.digest)
        } else {
            let mut charts = view.charts.charts.iter();
            let said = charts.find(|chart| chart.name == its.chart).map(|chart| chart.message.as_str());
            let why = said.filter(|said| !said.is_empty()).unwrap_or("it is not there yet");
            format!("{what}: {}", (format.show)(why))
        };
        answer.facts.push(("needs chart", told));
    }
}

/// Tells from which chart a module is installed, and why it stays with that version.
fn named_chart(view: &View, module: &ModuleView, format: Format<'_>, answer: &mut Answer) {
    let Some(its) = view.charts.modules.iter().find(|its| its.module == module.name) else { return };
    let mut told = format!("{}/{}, {}", its.repository, its.name, its.constraint);
    if its.auto_upgrade {
        told.push_str(", follows newer versions");
    }
    answer.facts.push(("chart", told));
    if let Some(pinned) = &its.pinned {
        answer.facts.push(("pinned", format!("version {}, {}", pinned.version, pinned.digest)));
    }
    if let Some(previous) = &its.previous {
        answer.facts.push(("goes back to", format!("version {}, if runs fail", previous.version)));
    }
    if let Some(rejected) = &its.rejected {
        let told = its.given_up.as_ref().map_or_else(
            || rejected.clone(),
            |given_up| {
                format!("version {}, {rejected}: {}", given_up.version, (format.show)(&given_up.error))
            },
        );
        answer.facts.push(("went back from", told));
        answer.advice.push(its.how_to_try_again());
    }
    // One that is held says that anyway.
    if let Some(lost) = its.lost.as_ref().filter(|_| module.phase != "held") {
        answer.facts.push(("package", (format.show)(lost)));
    }
    let pinned = its.pinned.as_ref().map(|pinned| &*pinned.version);
    if let (Some(fits), Some(pinned)) = (&its.fits, pinned)
        && fits != pinned
        && !its.is_newer(fits)
    {
        let told = format!("no newer version: {fits} fits, and the module stays with {pinned}");
        answer.facts.push(("offered", told));
    } else if let (Some(fits), Some(pinned)) = (&its.fits, pinned)
        && fits != pinned
    {
        answer.facts.push(("waits", format!("version {fits} fits, and the module stays with {pinned}")));
        let plan = format!(
            "`addon-operator chart plan {} --version {fits}` shows what it would change",
            module.name
        );
        answer.advice.push(plan);
        if !its.auto_upgrade {
            let upgrade = format!(
                "another chart.version in {}/module.yaml has it taken, or chart.autoUpgrade: true",
                module.path
            );
            answer.advice.push(upgrade);
        }
    }
    let chart = view.charts.charts.iter().find(|chart| chart.name == its.chart);
    if let Some(chart) = chart.filter(|chart| chart.is_synced == Some(false)) {
        let again = chart.next_in.map(|next| format!(", tried again in {}", span(next))).unwrap_or_default();
        answer.facts.push(("its Chart", format!("{}: {}{again}", chart.name, (format.show)(&chart.message))));
    }
}

fn advise(view: &View, module: &ModuleView, format: Format<'_>, answer: &mut Answer) {
    if let Some(problem) = &module.config_problem {
        let usual = || format!("correct that key of the {}; it is taken up by itself", problem.object);
        answer.advice.push(problem.failure.advice.clone().unwrap_or_else(usual));
    }
    if module.broken_version.is_some() {
        answer
            .advice
            .push(format!("correct the files in {}; they are read again by themselves", module.path));
    }
    answer.advice.extend(module.unanswered.as_deref().map(problems::way_out_of_silence));
    if let Some((_, failure, _)) = broken_watches(view, module).next() {
        answer.advice.push(failure.advice.clone().unwrap_or_else(|| problems::OPENED_AGAIN.to_owned()));
    }
    answer.advice.extend(unserved(view, module).map(|unserved| unserved.advice.to_owned()));
    for (_, advice) in problems::changed(module, format).iter().chain(&problems::taken(module)) {
        answer.advice.push(advice.clone());
    }
    if !module.unwatched_kinds.is_empty() {
        answer.advice.push(problems::unwatched_advice(module));
    }
}

fn facts(view: &View, module: &ModuleView, format: Format<'_>, answer: &mut Answer) {
    advise(view, module, format, answer);
    let (changed, taken) = (problems::changed(module, format), problems::taken(module));
    let mut fact = |name: &'static str, text: String| answer.facts.push((name, text));
    fact("phase", format!("{} for {}", module.phase, span(module.since)));
    let release = match module.revision {
        Some(revision) => format!("{}, revision {revision}", module.release),
        None => module.release.to_owned(),
    };
    let place = module.elsewhere.as_ref().map(|place| format!(", in {place}")).unwrap_or_default();
    fact("release", release + &place);
    if module.has_secret_values {
        let place = |object| format!("{} key {}", view.place(object), module.key);
        let (plain, secret) = (place(ConfigObject::ConfigMap), place(ConfigObject::Secret));
        fact("values", format!("what {secret} says lies over {plain}"));
    }
    if let Some((what, _)) = changed {
        fact("changed", what);
    }
    if let Some((what, _)) = taken {
        fact("taken over", what);
    }
    for unwatched in &module.unwatched_kinds {
        fact("not watched", format!("{} of its release: {}", unwatched.kind, unwatched.why));
    }
    if let Some(maintenance) = &module.maintenance {
        let told = maintenance.told();
        fact("maintenance", format!("{}Maintenance is set, its release is left alone; {told}", module.key));
    }
    if module.phase != "failed"
        && let Some(error) = &module.last_error
    {
        fact("last error", format.failure(error));
    }
    if let Some(failure) = &module.unanswered {
        fact("hooks", format!("can't be asked what they want: {}", format.failure(failure)));
    }
    for (kind, failure, since) in broken_watches(view, module) {
        let text = format!("of {kind} is broken for {}: {}", span(since), format.failure(failure));
        fact("watch", text);
    }
    for unserved in unserved(view, module) {
        fact("webhook", unserved.what.clone());
    }
    if let Some(problem) = &module.config_problem {
        let text = format!("{}; what was good before stays in force", format.failure(&problem.failure));
        fact(problem.object.kind(), text);
    }
    if let Some(broken) = &module.broken_version {
        if module.has_old_version {
            fact("new version", format!("is broken, the old one stays in force: {}", format.failure(broken)));
        } else {
            fact("its files", format!("are broken, and it has none from before: {}", format.failure(broken)));
        }
    }
    let discovery = view
        .queues
        .iter()
        .filter_map(|queue| queue.tasks.first())
        .find(|task| task.kind == TaskType::ConvergeModules && task.failures > 0);
    if let Some(failure) = discovery.and_then(|task| task.last_failure.as_ref()) {
        fact("discovery", format!("fails, so that nothing new is decided: {}", format.failure(failure)));
    }
}
