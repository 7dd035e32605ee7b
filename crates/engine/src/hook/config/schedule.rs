//! The section `schedule`. See docs/hooks.md#schedules.

use super::fields::Fields;
use super::kubernetes::problem_of_includes;
use super::report::{Path, Report};
use crate::cron;
use crate::hook::spec::{HookSpec, MAIN_QUEUE, ScheduleBinding};

/// Reads the section of a v1 configuration.
pub(super) fn read(fields: &mut Fields<'_>) -> Vec<ScheduleBinding> {
    let items = fields.objects("schedule", 1).unwrap_or_default();
    items.into_iter().map(read_one).collect()
}

fn read_one(mut item: Fields<'_>) -> ScheduleBinding {
    item.require(&["crontab"]);
    let mut text = |key| item.string(key).filter(|text| !text.is_empty());
    let binding = ScheduleBinding {
        crontab: text("crontab").unwrap_or_default().into(),
        name: text("name").unwrap_or_else(|| "schedule".to_owned()),
        queue: text("queue").unwrap_or_else(|| MAIN_QUEUE.to_owned()).into(),
        group: text("group"),
        allow_failure: item.boolean("allowFailure").unwrap_or(false),
        include_snapshots_from: item.strings("includeSnapshotsFrom", 1).unwrap_or_default(),
    };
    item.finish();
    binding
}

/// Notes what is wrong with the meaning of the section.
pub(super) fn check(spec: &HookSpec, report: &Report) {
    let section = Path::default().key("schedule");
    for (index, binding) in spec.schedules.iter().enumerate() {
        let path = section.item(index);
        let note = |key: &str, problem: String| {
            report.note(&path.key(key), format!("invalid schedule config [{index}]: {problem}"));
        };
        if let Err(error) = cron::Schedule::parse(binding.crontab.as_str()) {
            note("crontab", format!("crontab is invalid: {error}"));
        }
        if let Some(problem) = problem_of_includes(spec, &binding.include_snapshots_from) {
            note("includeSnapshotsFrom", format!("includeSnapshotsFrom is invalid: {problem}"));
        }
    }
}
