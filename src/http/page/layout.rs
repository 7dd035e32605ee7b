//! The frame of the page: head, style, security policy, header, navigation and footer.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::view::{ElectionView, View};
use sha2::{Digest, Sha256};

use super::html::Html;
use super::options::{CHOICES, PageOptions, ShowFailure};
use super::tables;
use crate::http::queue::span;
use crate::http::routes::PORT;

/// The style sheet. It is part of the page, and the policy allows no other.
const STYLE: &str = include_str!("style.css");

/// Returns the content security policy: nothing may be loaded, run or sent, and only this style applies.
pub(super) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    });
    &POLICY
}

/// Returns the page of an operator that does not answer.
pub(super) fn without_engine(options: PageOptions, state: &str) -> String {
    let mut page = Html::default();
    head(&mut page, options, "no answer");
    page.raw("<header><h1>addon-operator</h1><p class=\"warn\">").text(state).raw("</p>");
    refreshing(&mut page, options);
    page.raw("</header><main id=\"main\"><h2>Where to look</h2><p>The links below say more.</p></main>");
    foot(&mut page);
    page.finish()
}

/// Returns the page of a running operator.
pub(super) fn page(view: &View, options: PageOptions, show: ShowFailure<'_>) -> String {
    let problems = tables::problems(view);
    let mut page = Html::default();
    let title = match problems.len() {
        0 => state(view).to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    head(&mut page, options, &title);
    header(&mut page, view, options);
    navigation(&mut page, view);
    page.raw("<main id=\"main\">");
    tables::problem_list(&mut page, &problems, show);
    tables::modules(&mut page, view, show);
    tables::sources(&mut page, view, show);
    tables::charts(&mut page, view, show);
    tables::order(&mut page, view, options);
    tables::queues(&mut page, view, show);
    tables::watches(&mut page, view, show);
    tables::journal(&mut page, view, options, show);
    page.raw("</main>");
    foot(&mut page);
    page.finish()
}

fn head(page: &mut Html, options: PageOptions, title: &str) {
    page.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
    page.text(title).raw(" · addon-operator</title>");
    if let Some(seconds) = options.refresh {
        // Text browsers support only the element, all others use the header.
        page.raw("<noscript><meta http-equiv=\"refresh\" content=\"").number(seconds).raw("\"></noscript>");
    }
    page.raw("<style>")
        .raw(STYLE)
        .raw("</style></head><body><a class=\"skip\" href=\"#main\">Skip to the content</a>");
}

fn state(view: &View) -> &'static str {
    if view.election.as_ref().is_some_and(ElectionView::is_standby) && !view.is_ending {
        return "standby";
    }
    let converge = &view.converge;
    match (view.is_ending, converge.first_done, converge.tasks) {
        (true, _, _) => "ending",
        (false, false, _) => "first converge",
        (false, true, 0) => "ready",
        (false, true, _) => "converging",
    }
}

fn header(page: &mut Html, view: &View, options: PageOptions) {
    let converge = &view.converge;
    page.raw("<header><h1>addon-operator</h1><p>");
    match state(view) {
        "ready" => page.raw("<span class=\"good\">Ready</span>: all that was asked for is done."),
        "standby" => {
            let election = view.election.as_ref().map(engine::view::status::standby).unwrap_or_default();
            page.raw("<span class=\"soft\">Standby</span>: ").text(&election).raw(".")
        }
        "ending" => page.raw("<span class=\"warn\">Ending</span>: nothing new is begun."),
        "converging" => {
            page.raw("<span class=\"warn\">Converging</span>: ").count(converge.tasks).raw(" tasks to do.")
        }
        _ => page
            .raw("<span class=\"warn\">First converge</span>: ")
            .count(converge.tasks)
            .raw(" tasks to do."),
    };
    if let Some(ago) = converge.finished_ago {
        page.raw(" The last converge (").number(converge.generation).raw(") ended ");
        page.text(&span(ago.as_secs_f64())).raw(" ago.");
    }
    if let Some(cause) = &converge.cause {
        page.raw(" Because: ").text(cause).raw(".");
    }
    page.raw(" Up for ").text(&span(view.now.since_start().as_secs_f64())).raw(".</p>");
    refreshing(page, options);
    page.raw("</header>");
}

/// Writes how often the page loads again, with links to change that: not everybody reads fast.
fn refreshing(page: &mut Html, options: PageOptions) {
    page.raw("<p class=\"soft\">This page ");
    match options.refresh {
        Some(seconds) => {
            page.raw("loads itself again every ").number(seconds).raw(" s. ");
            PageOptions { refresh: None, ..options }.link(page, "Stop that");
        }
        None => {
            page.raw("stays as it is. Load it again every");
        }
    }
    for seconds in CHOICES.iter().filter(|seconds| options.refresh != Some(**seconds)) {
        page.raw(" · ");
        PageOptions { refresh: Some(*seconds), ..options }.link(page, &format!("{seconds} s"));
    }
    page.raw("</p>");
}

fn navigation(page: &mut Html, view: &View) {
    let tasks: usize = view.queues.iter().map(|queue| queue.tasks.len()).sum();
    page.raw("<nav aria-label=\"Sections of this page\"><ul>");
    let sources = (!view.sources.is_empty()).then_some(("#sources", "Module sources", view.sources.len()));
    let modules = std::iter::once(("#modules", "Modules", view.modules.len()));
    let charts = &view.charts.charts;
    let charts = (!charts.is_empty()).then_some(("#charts", "Charts", charts.len()));
    for (id, name, count) in modules.chain(sources).chain(charts).chain([
        ("#order", "Order", orders(view)),
        ("#queues", "Tasks in queues", tasks),
        ("#watches", "Watches", view.watches.len()),
        ("#journal", "Journal", view.journal.len()),
    ]) {
        page.raw("<li><a href=\"").raw(id).raw("\">").raw(name).raw(" (").count(count).raw(")</a></li>");
    }
    page.raw("</ul></nav>");
}

/// Returns how many order numbers there are.
fn orders(view: &View) -> usize {
    view.modules.iter().map(|module| module.order).collect::<BTreeSet<u32>>().len()
}

fn foot(page: &mut Html) {
    page.raw("<footer><nav aria-label=\"For programs\"><ul>");
    for route in PORT.iter().filter(|route| **route != "/") {
        page.raw("<li><a href=\"").raw(route).raw("\">").raw(route).raw("</a></li>");
    }
    page.raw("</ul></nav><p class=\"soft\">Values are not shown here: <code>addon-operator module values NAME</code> shows them to the owner of the operator.</p></footer></body></html>\n");
}
