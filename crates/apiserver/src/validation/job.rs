//! Validation of jobs, and of what makes them at certain times.

use objects::names;
use serde_json::Value;

use super::container::not_negative;
use super::errors::{Report, at, item};
use super::job_status::read_indexes;
use super::metadata;
use super::workload::{matching_labels, pod_template};
use crate::fields::{flag, get, has, int, list, map, text};

pub(super) fn job(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let manual = flag(spec, "manualSelector");
    if manual && !has(spec, "selector") {
        report.required("spec.selector", "");
    }
    metadata::selector(get(spec, "selector"), "spec.selector", report);
    if !manual {
        generated_selector(object, report);
        generated_labels(object, report);
    }
    let selector = get(spec, "selector");
    if manual || !selector.is_null() {
        matching_labels(object, selector, report);
    }
    job_spec(spec, "spec", report);
}

/// The selector of a job is generated unless the job has `manualSelector`.
fn generated_selector(object: &Value, report: &mut Report) {
    let (selector, uid) = (get(object, "spec.selector"), text(object, "metadata.uid"));
    let own = map(selector, "matchLabels");
    let expected =
        own.len() == 1 && own.get("batch.kubernetes.io/controller-uid").is_some_and(|value| value == uid);
    if has(object, "spec.selector") && !expected && !uid.is_empty() {
        report.invalid("spec.selector", selector.clone(), "`selector` not auto-generated");
    }
}

/// The labels that servers put on the pods of a job carry its name.
fn generated_labels(object: &Value, report: &mut Report) {
    let name = text(object, "metadata.name");
    for label in ["job-name", "batch.kubernetes.io/job-name"] {
        if has(object, "spec.template.metadata.labels")
            && map(object, "spec.template.metadata.labels").contains_key(label)
        {
            report.invalid_all("spec.template.labels", name, names::label_value(name));
        }
    }
}

/// The name of who manages a job instead of this cluster may have this many bytes.
const MAX_MANAGER: usize = 63;

fn job_spec(spec: &Value, path: &str, report: &mut Report) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "maxFailedIndexes",
        "backoffLimitPerIndex",
    ] {
        not_negative(spec, field, path, report);
    }
    if let Some(manager) = get(spec, "managedBy").as_str() {
        report.domain_path(&at(path, "managedBy"), manager);
        if manager.len() > MAX_MANAGER {
            report.too_long(&at(path, "managedBy"), MAX_MANAGER);
        }
    }
    let mode = text(spec, "completionMode");
    report.one_of_or_empty(&at(path, "completionMode"), mode, &["NonIndexed", "Indexed"]);
    if mode == "Indexed" && !has(spec, "completions") {
        report.required(&at(path, "completions"), "when completion mode is Indexed");
    }
    if mode != "Indexed" {
        if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
            report.required(&at(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
        }
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(limit) = int(spec, field) {
                report.invalid(&at(path, field), limit, "requires indexed completion mode");
            }
        }
    }
    if has(spec, "successPolicy") {
        success_policy(spec, &at(path, "successPolicy"), report);
    }
    let replacement = text(spec, "podReplacementPolicy");
    // With a policy for failures, pods that end are not replaced before they have failed.
    let all =
        if has(spec, "podFailurePolicy") { &["Failed"][..] } else { &["Failed", "TerminatingOrFailed"] };
    report.one_of_or_empty(&at(path, "podReplacementPolicy"), replacement, all);
    let place = at(path, "template");
    pod_template(get(spec, "template"), &place, report);
    if !matches!(text(spec, "template.spec.restartPolicy"), "OnFailure" | "Never") {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        report.required(&at(&place, "spec.restartPolicy"), detail);
    }
}

/// Checks when a job counts as done before all of its pods are.
fn success_policy(spec: &Value, path: &str, report: &mut Report) {
    const MOST: usize = 20;
    let rules = list(spec, "successPolicy.rules");
    if text(spec, "completionMode") != "Indexed" {
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| {
                let (indexes, count) = (get(rule, "succeededIndexes"), get(rule, "succeededCount"));
                format!("{{\"SucceededIndexes\":{indexes},\"SucceededCount\":{count}}}")
            })
            .collect();
        let shown = format!("{{\"Rules\":[{}]}}", shown.join(","));
        return report.invalid_shown(path, &shown, "requires indexed completion mode");
    }
    let path = at(path, "rules");
    if rules.is_empty() {
        report.required(&path, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > MOST {
        report.too_many(&path, rules.len(), MOST);
    }
    for (index, rule) in rules.iter().enumerate() {
        success_rule(rule, int(spec, "completions").unwrap_or_default(), &item(&path, index), report);
    }
}

fn success_rule(rule: &Value, completions: i64, path: &str, report: &mut Report) {
    const LONGEST: usize = 64 * 1024;
    let (indexes, count) = (get(rule, "succeededIndexes").as_str(), int(rule, "succeededCount"));
    if indexes.is_none() && count.is_none() {
        report.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut named = 0;
    if let Some(indexes) = indexes {
        let path = at(path, "succeededIndexes");
        if indexes.len() > LONGEST {
            report.too_long(&path, LONGEST);
        }
        match read_indexes(indexes, completions) {
            Ok(ranges) => named = ranges.iter().map(|(first, last)| last - first + 1).sum(),
            Err(why) => report.invalid(&path, indexes, &format!("error parsing succeededIndexes: {why}")),
        }
    }
    let Some(count) = count else { return };
    not_negative(rule, "succeededCount", path, report);
    let path = at(path, "succeededCount");
    if count > completions {
        let detail =
            format!("must be less than or equal to {completions} (the number of specified completions)");
        report.invalid(&path, count, &detail);
    }
    if indexes.is_some() && count > named {
        let detail = format!(
            "must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
        );
        report.invalid(&path, count, &detail);
    }
}

pub(super) fn cron_job(object: &Value, report: &mut Report) {
    const TEMPLATE: &str = "spec.jobTemplate.spec";
    let spec = get(object, "spec");
    schedule(text(spec, "schedule"), report);
    not_negative(spec, "startingDeadlineSeconds", "spec", report);
    if let Some(zone) = get(spec, "timeZone").as_str() {
        if zone.is_empty() {
            report.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string");
        } else if zone.eq_ignore_ascii_case("local") {
            let detail =
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
            report.invalid("spec.timeZone", zone, detail);
        } else if !jiff::tz::TimeZone::get(zone).is_ok_and(|found| found.iana_name() == Some(zone)) {
            report.invalid("spec.timeZone", zone, &format!("unknown time zone {zone}"));
        }
    }
    let policy = text(spec, "concurrencyPolicy");
    report.one_of("spec.concurrencyPolicy", policy, &["Allow", "Forbid", "Replace"]);
    if flag(spec, "jobTemplate.spec.manualSelector") {
        report.unsupported(&at(TEMPLATE, "manualSelector"), true, &["nil", "false"]);
    }
    job_spec(get(spec, "jobTemplate.spec"), TEMPLATE, report);
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(spec, field, "spec", report);
    }
    let name = text(object, "metadata.name");
    if name.len() > 52 {
        report.invalid("metadata.name", name, "must be no more than 52 characters");
    }
}

fn schedule(line: &str, report: &mut Report) {
    const PATH: &str = "spec.schedule";
    if line.is_empty() {
        return report.required(PATH, "");
    }
    if line.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        return report.invalid(PATH, line, detail);
    }
    if line.starts_with('@') {
        let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
        if !known.contains(&line) && !line.starts_with("@every ") {
            report.invalid(PATH, line, &format!("unrecognized descriptor: {line}"));
        }
        return;
    }
    let fields: Vec<&str> = line.split_whitespace().collect();
    if fields.len() != 5 {
        let listed = fields.join(" ");
        let detail = format!("expected exactly 5 fields, found {}: [{listed}]", fields.len());
        return report.invalid(PATH, line, &detail);
    }
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    for (field, (least, most)) in fields.iter().zip(bounds) {
        for part in field.split(',') {
            if let Some(detail) = range_error(part, least, most) {
                return report.invalid(PATH, line, &detail);
            }
        }
    }
}

/// Returns what is wrong with a part of a schedule.
fn range_error(part: &str, least: u32, most: u32) -> Option<String> {
    let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
    if step.is_some_and(|step| step.parse::<u32>().ok().is_none_or(|step| step == 0)) {
        return Some(format!(
            "failed to parse int from {}: strconv.Atoi: parsing {:?}: invalid syntax",
            step.unwrap_or_default(),
            step.unwrap_or_default()
        ));
    }
    if matches!(range, "*" | "?") {
        return None;
    }
    let names = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun", "mon",
        "tue", "wed", "thu", "fri", "sat",
    ];
    let (start, end) = range.split_once('-').unwrap_or((range, range));
    for value in [start, end] {
        if names.contains(&value.to_lowercase().as_str()) {
            return None;
        }
        if value.parse::<u32>().is_err() {
            return Some(format!(
                "failed to parse int from {value}: strconv.Atoi: parsing {value:?}: invalid syntax"
            ));
        }
    }
    let (first, until) = (start.parse::<u32>().ok()?, end.parse::<u32>().ok()?);
    if first < least {
        return Some(format!("beginning of range ({first}) below minimum ({least}): {part}"));
    }
    if until > most {
        return Some(format!("end of range ({until}) above maximum ({most}): {part}"));
    }
    (first > until).then(|| format!("beginning of range ({first}) beyond end of range ({until}): {part}"))
}
