//! The tables of the page: problems, modules, queues, watches, the journal.

use std::sync::Arc;

use engine::view::{
    self, ChartView, Format, ModuleView, Problem, QueueView, SourceView, TaskView, View, WatchView, graph,
};
use engine::{Failure, Scope, TaskEnd};

use super::html::Html;
use super::options::{DRAWN, JOURNAL, PageOptions, ShowFailure};
use crate::http::explain::time_of_day;
use crate::http::queue::span;

/// How many problems are shown.
const PROBLEMS: usize = 100;

/// How many modules are in one table. Browsers lay out only the tables that are visible.
const PART: usize = 50;

/// How many Charts are shown.
const CHARTS: usize = 100;

/// How many module sources are shown.
const SOURCES: usize = 200;

/// How many tasks of a queue are shown.
const TASKS: usize = 200;

/// Returns the problems that need a person. Their texts may quote values.
pub(super) fn problems(picture: &View) -> Vec<Problem> {
    let telling = Format { show: &ToOwned::to_owned, at: &time_of_day };
    view::problems(picture, telling)
}

/// Returns a text that may quote values as a failure, so that it can be masked.
fn as_failure(text: &str) -> Failure {
    Failure::new(engine::FailureKind::Files, text)
}

/// Writes the problems, if there are any.
pub(super) fn problem_list(page: &mut Html, problems: &[Problem], show: ShowFailure<'_>) {
    if problems.is_empty() {
        return;
    }
    page.raw("<section id=\"problems\" aria-labelledby=\"problems-title\" class=\"problems\">");
    page.raw("<h2 id=\"problems-title\">Needs a look (").count(problems.len()).raw(")</h2><ul>");
    for problem in problems.iter().take(PROBLEMS) {
        let shown = |text: &str| show(&as_failure(text), problem.module.as_ref());
        page.raw("<li><span class=\"bad\">").text(&problem.about).raw("</span> ").text(&shown(&problem.what));
        if !problem.advice.is_empty() {
            page.raw("<small>What to do: ").coded(&shown(&problem.advice)).raw("</small>");
        }
        page.raw("</li>");
    }
    if problems.len() > PROBLEMS {
        page.raw("<li>and ").count(problems.len() - PROBLEMS).raw(" more; the log has all</li>");
    }
    page.raw("</ul></section>");
}

fn section(page: &mut Html, id: &'static str, title: &'static str) {
    // A table can be wider than the window. `tabindex` lets the keyboard scroll it.
    page.raw("<section id=\"").raw(id).raw("\" tabindex=\"0\" aria-labelledby=\"").raw(id);
    page.raw("-title\"><h2 id=\"");
    page.raw(id).raw("-title\">").raw(title).raw("</h2>");
}

fn headings(page: &mut Html, names: &[&'static str]) {
    page.raw("<thead><tr>");
    for name in names {
        page.raw("<th scope=\"col\">").raw(name).raw("</th>");
    }
    page.raw("</tr></thead><tbody>");
}

fn ago(page: &mut Html, since: std::time::Duration) {
    page.text(&span(since.as_secs_f64()));
}

/// Writes the tables of all modules.
pub(super) fn modules(page: &mut Html, view: &View, show: ShowFailure<'_>) {
    section(page, "modules", "Modules");
    if view.modules.is_empty() {
        page.raw("<p>There is none. --modules-dir says where they are.</p></section>");
        return;
    }
    let on = view.modules.iter().filter(|module| module.enabled == Some(true)).count();
    page.raw("<p class=\"soft\">").count(on).raw(" on, ").count(view.modules.len() - on);
    page.raw(" off, in the order in which they run</p>");
    for (position, part) in view.modules.chunks(PART).enumerate() {
        let first = position * PART + 1;
        page.raw("<div class=\"part\"><table><caption>Modules ").count(first).raw(" to ");
        page.count(first + part.len() - 1).raw(" of ").count(view.modules.len()).raw("</caption>");
        headings(page, &["Module", "State", "For", "On or off because", "Release", "Last error"]);
        for module in part {
            module_row(page, module, show);
        }
        page.raw("</tbody></table></div>");
    }
    page.raw("</section>");
}

fn module_row(page: &mut Html, module: &ModuleView, show: ShowFailure<'_>) {
    page.raw("<tr><th scope=\"row\">").text(module.name.as_str());
    if let Some(origin) = &module.origin {
        page.raw("<small>").text(&origin.version).raw(" of ").text(&origin.source.address());
        page.raw(if origin.is_retained { ", registered no more</small>" } else { "</small>" });
    }
    page.raw("</th><td class=\"short ");
    page.raw(match module.phase {
        "running" => "good",
        "failed" | "parked" | "orphaned" => "bad",
        "disabled" => "soft",
        _ => "warn",
    });
    page.raw("\">").raw(module.phase);
    if module.maintenance {
        page.raw("<small>in maintenance</small>");
    }
    page.raw("</td><td class=\"short\">");
    ago(page, module.since);
    page.raw("</td><td>");
    if module.enabled.is_none() {
        page.raw("nobody asked yet");
    } else {
        // A script can quote values in its reason.
        page.text(&show(&as_failure(&module.why), Some(&module.name)));
    }
    page.raw("</td><td>").raw(module.release);
    if let Some(revision) = module.revision {
        page.raw(", revision ").number(revision);
    }
    page.raw("</td><td>");
    if let Some(failure) = &module.last_error {
        page.text(&show(failure, Some(&module.name)));
    }
    if let Some(problem) = &module.config_problem {
        let note = format!("its key of the {} is broken, see above", problem.object);
        page.raw("<small>").text(&note).raw("</small>");
    }
    for (there, note) in [
        (module.broken_version.is_some(), "its new version is broken, see above"),
        (module.parked.is_some(), "its release is left alone, see above"),
    ] {
        if there {
            page.raw("<small>").raw(note).raw("</small>");
        }
    }
    page.raw("</td></tr>");
}

/// Writes the table of module sources, if there are any.
pub(super) fn sources(page: &mut Html, view: &View, show: ShowFailure<'_>) {
    if view.sources.is_empty() {
        return;
    }
    section(page, "sources", "Module sources");
    page.raw("<table><caption>Configurations of repositories, from which modules come</caption>");
    headings(page, &["Source", "State", "Modules", "Next", "Message"]);
    for source in view.sources.iter().take(SOURCES) {
        source_row(page, source, show);
    }
    page.raw("</tbody></table>");
    if view.sources.len() > SOURCES {
        page.raw("<p>and ").count(view.sources.len() - SOURCES);
        page.raw(" more; <a href=\"/status?format=json\">/status?format=json</a> has all</p>");
    }
    page.raw("</section>");
}

fn source_row(page: &mut Html, source: &SourceView, show: ShowFailure<'_>) {
    let phase = view::sources::phase(source);
    page.raw("<tr><th scope=\"row\">").text(&source.address()).raw("</th><td class=\"short ");
    page.raw(match phase {
        "Ready" => "good",
        "Failed" => "bad",
        _ => "warn",
    });
    page.raw("\">").raw(phase).raw("</td><td class=\"number\">").text(&source.modules);
    page.raw("</td><td class=\"short\">");
    let work = source.work.as_ref();
    if let Some(running) = work.and_then(|work| work.running) {
        page.raw("runs for ");
        ago(page, running);
    } else if let Some(reason) = work.and_then(|work| work.waits_for.as_ref()) {
        page.raw("waits: ").text(&show(&as_failure(reason), None));
    } else if let Some(next) = source.processed_in {
        page.raw("in ");
        ago(page, next);
    }
    page.raw("</td><td>").text(&show(&as_failure(&source.message), None)).raw("</td></tr>");
}

/// Writes the table of Charts, if there are any.
pub(super) fn charts(page: &mut Html, view: &View, show: ShowFailure<'_>) {
    let charts = &view.charts.charts;
    if charts.is_empty() {
        return;
    }
    section(page, "charts", "Charts");
    page.raw(
        "<table><caption>Charts from repositories that are kept, and the modules that name them</caption>",
    );
    headings(page, &["Chart", "State", "Versions", "Module", "Next", "Message"]);
    for chart in charts.iter().take(CHARTS) {
        chart_row(page, view, chart, show);
    }
    page.raw("</tbody></table>");
    if charts.len() > CHARTS {
        page.raw("<p>and ").count(charts.len() - CHARTS);
        page.raw(" more; <a href=\"/status?format=json\">/status?format=json</a> has all</p>");
    }
    page.raw("</section>");
}

fn chart_row(page: &mut Html, view: &View, chart: &ChartView, show: ShowFailure<'_>) {
    page.raw("<tr><th scope=\"row\">").text(&chart.name).raw("<small>");
    page.text(&chart.repository).raw("/").text(&chart.chart).raw("</small></th><td class=\"short ");
    let state = view::charts::state(chart.is_synced);
    page.raw(match state {
        "synced" => "good",
        "failed" => "bad",
        _ => "warn",
    });
    page.raw("\">").raw(state).raw("</td><td class=\"short\">");
    for (number, version) in chart.versions.iter().enumerate() {
        page.raw(if number == 0 { "" } else { ", " }).text(&version.version);
    }
    page.raw("</td><td class=\"short\">");
    if let Some(its) = view.charts.modules.iter().find(|its| its.chart == chart.name) {
        page.text(its.module.as_str());
        if let Some(pinned) = &its.pinned {
            page.raw("<small>stays with ").text(&pinned.version).raw("</small>");
        }
        if let Some(given_up) = &its.given_up {
            page.raw("<small class=\"bad\" title=\"").text(&its.how_to_try_again()).raw("\">went back from ");
            page.text(&given_up.version).raw(": ");
            page.text(&show(&as_failure(&given_up.error), Some(&its.module))).raw("</small>");
        }
    }
    page.raw("</td><td class=\"short\">");
    if let Some(next) = chart.next_in {
        page.raw("in ");
        ago(page, next);
    }
    page.raw("</td><td>").text(&show(&as_failure(&chart.message), None)).raw("</td></tr>");
}

/// Writes the drawing of the order in which modules run.
pub(super) fn order(page: &mut Html, view: &View, options: PageOptions) {
    section(page, "order", "Order");
    if view.modules.len() > DRAWN && !options.drawing {
        page.raw("<p>There are many modules. ");
        PageOptions { drawing: true, ..options }.link(page, "Draw them all");
        page.raw("</p></section>");
        return;
    }
    page.raw("<figure>").drawing(&graph::svg(view));
    page.raw("<figcaption class=\"soft\">Modules of one line have the same order number</figcaption></figure></section>");
}

/// Writes the tables of all queues with their tasks.
pub(super) fn queues(page: &mut Html, view: &View, show: ShowFailure<'_>) {
    section(page, "queues", "Queues");
    let (active, empty): (Vec<_>, Vec<_>) = view.queues.iter().partition(|queue| !queue.tasks.is_empty());
    for queue in &active {
        queue_table(page, queue, show);
    }
    if active.is_empty() {
        page.raw("<p>Nothing waits and nothing runs.</p>");
    }
    if !empty.is_empty() {
        page.raw("<p class=\"soft\">Empty: ");
        for (position, queue) in empty.iter().enumerate() {
            page.raw(if position == 0 { "" } else { ", " }).text(queue.name.as_str());
        }
        page.raw(".</p>");
    }
    page.raw("</section>");
}

fn queue_table(page: &mut Html, queue: &QueueView, show: ShowFailure<'_>) {
    page.raw("<h3>").text(queue.name.as_str()).raw("</h3><table><caption>");
    page.count(queue.tasks.len()).raw(if queue.tasks.len() == 1 { " task" } else { " tasks" });
    if !queue.status.is_empty() {
        page.raw(", ").text(&queue.status);
    }
    page.raw("</caption>");
    headings(page, &["Place", "Task", "Now", "Failures", "Because"]);
    for (position, task) in queue.tasks.iter().enumerate().take(TASKS) {
        page.raw("<tr><td class=\"number\">").count(position + 1).raw("</td>");
        task_cells(page, task, show);
        page.raw("</tr>");
    }
    page.raw("</tbody></table>");
    if queue.tasks.len() > TASKS {
        page.raw("<p>and ")
            .count(queue.tasks.len() - TASKS)
            .raw(" more; <a href=\"/queue\">/queue</a> has all</p>");
    }
}

fn task_cells(page: &mut Html, task: &TaskView, show: ShowFailure<'_>) {
    page.raw("<th scope=\"row\">").text(&task.description).raw("<small>task ");
    page.text(&task.id.to_string()).raw("</small></th><td>");
    if let Some(running) = task.running {
        page.raw("<span class=\"good\">runs for ");
        ago(page, running);
        page.raw("</span>");
    } else {
        page.raw("in the queue for ");
        ago(page, task.age);
    }
    if let Some(retry) = task.retry_in {
        page.raw("<small class=\"warn\">tried again in ");
        ago(page, retry);
        page.raw("</small>");
    }
    if let Some(reason) = &task.waits_for {
        page.raw("<small class=\"warn\">waits: ")
            .text(&show(&as_failure(reason), task.module.as_ref()))
            .raw("</small>");
    }
    page.raw("</td><td>");
    if task.failures > 0 {
        page.raw("<span class=\"bad\">").number(task.failures).raw("</span>");
    }
    if let Some(failure) = &task.last_failure {
        page.raw("<small>").text(&show(failure, task.module.as_ref())).raw("</small>");
    }
    page.raw("</td><td>").text(&task.cause).raw("</td>");
}

/// Writes the table of all watches.
pub(super) fn watches(page: &mut Html, view: &View, show: ShowFailure<'_>) {
    section(page, "watches", "Watches");
    if view.watches.is_empty() {
        page.raw("<p>No hook watches anything.</p></section>");
        return;
    }
    page.raw(
        "<table><caption>What hooks watch in the cluster; bindings that select alike share a watch</caption>",
    );
    headings(page, &["Kind", "State", "Objects", "For hooks"]);
    for watch in &view.watches {
        page.raw("<tr><th scope=\"row\">").text(&watch.kind).raw("</th><td>");
        watch_state(page, watch, show);
        page.raw("</td><td class=\"number\">").count(watch.objects).raw("</td><td>");
        for (position, (hook, binding)) in watch.bindings.iter().enumerate() {
            page.raw(if position == 0 { "" } else { ", " }).text(&hook.to_string());
            page.raw(" (").text(binding).raw(")");
        }
        page.raw("</td></tr>");
    }
    page.raw("</tbody></table></section>");
}

fn watch_state(page: &mut Html, watch: &WatchView, show: ShowFailure<'_>) {
    if let Some(kind) = &watch.missing_kind {
        page.raw("<span class=\"warn\">waits for kind ").text(kind).raw("</span>");
    } else if let Some(failure) = &watch.failure {
        page.raw("<span class=\"bad\">broken</span><small>").text(&show(failure, None)).raw("</small>");
    } else if watch.listed {
        page.raw("<span class=\"good\">live</span>");
    } else {
        page.raw("<span class=\"warn\">lists</span>");
    }
}

/// Writes the table of the last ends of tasks.
pub(super) fn journal(page: &mut Html, view: &View, options: PageOptions, show: ShowFailure<'_>) {
    section(page, "journal", "Journal");
    if view.journal.is_empty() {
        page.raw("<p>No task has ended yet.</p></section>");
        return;
    }
    let shown = if options.whole_journal { view.journal.len() } else { JOURNAL.min(view.journal.len()) };
    page.raw("<table><caption>The last ").count(shown).raw(" ends of tasks, the newest first</caption>");
    headings(page, &["Task", "Ended", "Took", "Outcome", "Because"]);
    for end in view.journal.iter().take(shown) {
        journal_row(page, view, end, show);
    }
    page.raw("</tbody></table>");
    if shown < view.journal.len() {
        page.raw("<p>");
        let all = format!("Show all {} that are remembered", view.journal.len());
        PageOptions { whole_journal: true, ..options }.link(page, &all);
        page.raw("</p>");
    }
    page.raw("</section>");
}

fn journal_row(page: &mut Html, view: &View, end: &TaskEnd, show: ShowFailure<'_>) {
    let task = &end.task;
    let module = match &task.scope {
        Scope::Global => None,
        Scope::Module(module) => Some(module),
    };
    page.raw("<tr><th scope=\"row\">").raw(task.kind.as_str());
    match (&task.hook, module) {
        (Some(hook), _) => page.raw(" ").text(&hook.to_string()),
        (None, Some(module)) => page.raw(" ").text(module.as_str()),
        (None, None) => page,
    };
    if let Some(binding) = &task.binding {
        page.raw(" (").text(binding).raw(")");
    }
    page.raw("<small>task ").text(&task.id.to_string()).raw(" in ").text(task.queue.as_str());
    page.raw("</small></th><td class=\"short\">");
    ago(page, view.now.since(end.at));
    page.raw(" ago</td><td class=\"short\">");
    ago(page, end.took);
    page.raw("</td><td>");
    match end.failure.as_ref().map(Arc::as_ref) {
        None => page.raw("<span class=\"good\">done</span>"),
        Some(failure) => {
            let text = show(failure, module);
            page.raw("<span class=\"bad\">failed</span><small>").text(&text).raw("</small>")
        }
    };
    page.raw("</td><td>").text(&task.cause.to_string()).raw("</td></tr>");
}
