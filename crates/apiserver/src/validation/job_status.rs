//! Validation of what a job says of itself: an end is an end, and counts do not go back.

use std::collections::BTreeSet;

use serde_json::Value;

use super::errors::{Report, at, item};
use super::status::number;
use crate::fields::{flag, get, has, int, list, text};

/// Checks what a job says of itself, and that it does not take back what it said.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    uncounted(get(new, "status.uncountedTerminatedPods"), report);
    let is = |object: &Value, kind: &str| {
        list(object, "status.conditions")
            .iter()
            .any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
    };
    let (complete, failed) = (is(new, "Complete"), is(new, "Failed"));
    let mut conditions = |wrong: bool, detail: &str| {
        if wrong {
            report.invalid_omitted("status.conditions", detail);
        }
    };
    conditions(complete && failed, "cannot set Complete=True and Failed=true conditions");
    let target = is(new, "FailureTarget");
    conditions(complete && target, "cannot set Complete=True and FailureTarget=true conditions");
    conditions(
        failed && !target,
        "cannot set Failed=True condition without the FailureTarget=true condition",
    );
    conditions(
        complete && !is(new, "SuccessCriteriaMet"),
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    );
    let met = is(new, "SuccessCriteriaMet");
    conditions(met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    conditions(met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    for kind in ["Failed", "Complete", "FailureTarget"] {
        let taken_back = is(old, kind) && !is(new, kind);
        conditions(taken_back, &format!("cannot disable the terminal {kind}=True condition"));
    }
    let met = "SuccessCriteriaMet";
    conditions(is(old, met) && !is(new, met), "cannot disable the SuccessCriteriaMet=True condition");
    conditions(
        is(old, "Complete") && !is(old, met) && is(new, met),
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
    );
    times(new, old, (complete, failed), report);
    numbers(new, old, complete || failed, report);
}

fn uncounted(pods: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for field in ["succeeded", "failed"] {
        for (index, uid) in list(pods, field).iter().filter_map(Value::as_str).enumerate() {
            let path = item(&format!("status.uncountedTerminatedPods.{field}"), index);
            if uid.is_empty() {
                report.invalid(&path, uid, "must not be empty");
            } else if !seen.insert(uid) {
                report.duplicate(&path, uid);
            }
        }
    }
}

fn times(new: &Value, old: &Value, (complete, failed): (bool, bool), report: &mut Report) {
    const END: &str = "status.completionTime";
    let time = |object: &Value, path: &str| text(object, path).parse::<jiff::Timestamp>().ok();
    let end = text(new, END);
    if end.is_empty() && complete {
        report.required(END, "completionTime is required for Complete jobs");
    }
    if !end.is_empty() && !complete {
        report.invalid(END, end, "cannot set completionTime when there is no Complete=True condition");
    }
    if let (Some(start), Some(ended)) = (time(new, "status.startTime"), time(new, END))
        && ended < start
    {
        report.invalid(END, end, "must be equal to or after `startTime`");
    }
    let was = text(old, END);
    if !end.is_empty() && !was.is_empty() && end != was {
        report.invalid(END, end, "field is immutable");
    }
    if (complete || failed) && !has(new, "status.startTime") {
        report.required("status.startTime", "startTime is required for finished job");
    }
    let started = text(old, "status.startTime");
    if !started.is_empty() && started != text(new, "status.startTime") && !flag(new, "spec.suspend") {
        report.required("status.startTime", "startTime cannot be removed for unsuspended job");
    }
}

fn numbers(new: &Value, old: &Value, finished: bool, report: &mut Report) {
    let status = get(new, "status");
    let (active, ready) = (number(status, "active"), number(status, "ready"));
    if finished && active > 0 {
        report.invalid("status.active", active, "active>0 is invalid for finished job");
    }
    let uncounted = get(status, "uncountedTerminatedPods");
    if finished && (!list(uncounted, "succeeded").is_empty() || !list(uncounted, "failed").is_empty()) {
        let path = "status.uncountedTerminatedPods";
        report.invalid(path, uncounted.clone(), "must be empty for finished job");
    }
    let ends = number(status, "terminating");
    if finished && ends > 0 {
        report.invalid("status.terminating", ends, "terminating>0 is invalid for finished job");
    }
    if ready > active {
        report.invalid("status.ready", ready, "cannot set more ready pods than active");
    }
    for field in ["failed", "succeeded"] {
        if number(status, field) < number(get(old, "status"), field) {
            let detail = format!("cannot decrease the {field} counter");
            report.invalid(&at("status", field), number(status, field), &detail);
        }
    }
    indexes(new, old, report);
}

/// Checks the lists of indexes that have completed and failed, where one of them changes.
fn indexes(new: &Value, old: &Value, report: &mut Report) {
    let status = get(new, "status");
    let indexes = |field: &str| text(status, field).to_owned();
    let changed = |field: &str| get(status, field) != get(get(old, "status"), field);
    let completed = indexes("completedIndexes");
    if changed("completedIndexes") && !completed.is_empty() {
        if let Some(completions) = int(new, "spec.completions")
            && let Err(why) = read_indexes(&completed, completions)
        {
            let detail = format!("error parsing completedIndexes: {why}");
            report.invalid("status.completedIndexes", completed.as_str(), &detail);
        }
        if text(new, "spec.completionMode") != "Indexed" {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            report.invalid("status.completedIndexes", completed.as_str(), detail);
        }
    }
    if changed("failedIndexes") && has(status, "failedIndexes") && !has(new, "spec.backoffLimitPerIndex") {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        report.invalid("status.failedIndexes", indexes("failedIndexes"), detail);
    }
    let (failed, Some(completions)) = (indexes("failedIndexes"), int(new, "spec.completions")) else {
        return;
    };
    let mut wrong = |detail: String| report.invalid("status.failedIndexes", failed.as_str(), &detail);
    let read = read_indexes(&failed, completions);
    if changed("failedIndexes")
        && has(new, "spec.backoffLimitPerIndex")
        && let Err(why) = &read
    {
        wrong(format!("error parsing failedIndexes: {why}"));
    }
    if (changed("failedIndexes") || changed("completedIndexes"))
        && let (Ok(failed), Ok(completed)) = (read, read_indexes(&completed, completions))
        && let Some(index) = first_common(&failed, &completed)
    {
        wrong(format!("failedIndexes and completedIndexes overlap at index: {index}"));
    }
}

/// Returns the first index that is in both of two ordered lists of ranges.
fn first_common(one: &[(i64, i64)], other: &[(i64, i64)]) -> Option<i64> {
    let common = |(first, last): (i64, i64)| {
        let begins = other.iter().map(move |(begin, end)| (first.max(*begin), last.min(*end)));
        begins.filter(|(begin, end)| begin <= end).map(|(begin, _)| begin).next()
    };
    one.iter().copied().find_map(common)
}

/// Reads the ranges of `1,3-5`; returns what is wrong with it.
pub(super) fn read_indexes(text: &str, completions: i64) -> Result<Vec<(i64, i64)>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut ranges = Vec::new();
    let read = |text: &str| {
        let index: i64 =
            text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= completions { Err(format!("too large index: {text:?}")) } else { Ok(index) }
    };
    let mut last = None;
    for part in text.split(',') {
        let (first, end) = part.split_once('-').unwrap_or((part, ""));
        if end.contains('-') {
            return Err(format!(
                "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        let first = read(first)?;
        let end = if part.contains('-') { read(end)? } else { first };
        if part.contains('-') && first >= end {
            return Err(format!("non-increasing order, previous: {first}, current: {end}"));
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        last = Some(end);
        ranges.push((first, end));
    }
    Ok(ranges)
}
