//! The section `settings`: how often and how long a hook may run, and how it is tried again. See docs/hooks.md#configuration-version-1.

use std::time::Duration;

use serde_json::{Map, Value};

use super::fields::Fields;
use super::report::{Path, Report};
use crate::duration;
use crate::hook::limits::HookLimits;
use crate::hook::spec::Settings;
use crate::retry::RetryPolicy;

/// Checks the shape of the section.
pub(super) fn read(fields: &mut Fields<'_>) {
    let Some(mut section) = fields.object("settings") else { return };
    section.string("executionMinInterval");
    section.integer("executionBurst");
    section.string("timeout");
    if let Some(mut retry) = section.object("retry") {
        for key in ["delay", "max", "then"] {
            retry.string(key);
        }
        retry.integer("attempts");
        retry.finish();
    }
    if let Some(mut limits) = section.object("limits") {
        for key in ["memory", "cpu", "processes", "output"] {
            limits.quantity(key);
        }
        limits.boolean("strict");
        limits.finish();
    }
    section.finish();
}

/// Returns the meaning of the section of a configuration whose shape is right.
pub(super) fn check(map: &Map<String, Value>, report: &Report) -> Settings {
    let mut settings = Settings::default();
    let Some(Value::Object(section)) = map.get("settings") else { return settings };
    let path = Path::default().key("settings");
    let text = |key: &str| section.get(key).and_then(Value::as_str);
    let nanos = |key: &'static str, text: &str| {
        duration::parse_nanos(text)
            .inspect_err(|error| report.note(&path.key(key), format!("{key} is invalid: {error}")))
            .unwrap_or_default()
    };
    match text("executionMinInterval") {
        Some(text) => {
            settings.execution_min_interval = at_least_zero(nanos("executionMinInterval", text));
        }
        // A section with something else, as a deadline, does not limit how often the hook runs.
        None if ["timeout", "retry", "limits"].iter().any(|key| section.contains_key(*key))
            && !section.contains_key("executionBurst") => {}
        None => report.note(
            &path,
            "executionMinInterval is invalid: it is missing; write how much time must be between two runs, as 30s",
        ),
    }
    if let Some(burst) = section.get("executionBurst").and_then(Value::as_f64) {
        if burst > f64::from(i32::MAX) {
            report.note(
                &path.key("executionBurst"),
                format!("executionBurst is invalid: {burst} is more than {}", i32::MAX),
            );
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast keeps to the nearest number that fits, and zero or less means one"
        )]
        let burst = burst as u32;
        settings.execution_burst = burst.max(1);
    }
    if let Some(text) = text("timeout") {
        let nanos = nanos("timeout", text);
        if nanos <= 0 && duration::parse_nanos(text).is_ok() {
            report.note(&path.key("timeout"), format!("timeout is invalid: \"{text}\" is not positive"));
        }
        settings.timeout = Some(at_least_zero(nanos));
    }
    if let Some(Value::Object(retry)) = section.get("retry") {
        match RetryPolicy::read(retry) {
            Ok(retry) => settings.retry = retry,
            Err(error) => report.note(&path.key("retry"), format!("retry is invalid: {error}")),
        }
    }
    if let Some(Value::Object(limits)) = section.get("limits") {
        match HookLimits::read(limits) {
            Ok(limits) => settings.limits = limits,
            Err(error) => report.note(&path.key("limits"), format!("limits is invalid: {error}")),
        }
    }
    settings
}

fn at_least_zero(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
