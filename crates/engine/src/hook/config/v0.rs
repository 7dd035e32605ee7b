//! Configurations without `configVersion`. See docs/hooks.md#configuration-version-0.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::error::{Check, Compile, ConfigError, checked, passed};
use super::fields::Fields;
use super::report::{Path, Report};
use super::{kubernetes, lifecycle, schedule};
use crate::hook::selection::{FieldSelector, LabelRequirement, LabelSelector, Namespaces, Selection};
use crate::hook::spec::{
    ConfigVersion, HookKind, HookSpec, KubernetesBinding, MAIN_QUEUE, ScheduleBinding, WatchEvent,
};
use crate::name::HookName;

/// The section for objects.
const EVENTS: &str = "onKubernetesEvent";

/// Returns what a v0 configuration says.
///
/// Inside a section, properties that nobody knows are passed over, and null is as good as nothing.
pub(super) fn parse(
    name: HookName,
    kind: HookKind,
    map: &Map<String, Value>,
    text: &str,
    compile: Compile<'_>,
) -> Result<HookSpec, ConfigError> {
    let report = Report::default();
    let mut spec = HookSpec::empty(name, ConfigVersion::V0);
    let mut fields = Fields::new(map, Path::default(), &report);
    if map.is_empty() {
        report.note(
            fields.path(),
            "the configuration should have at least 1 properties; print one for --config, beginning with 'configVersion: v1'",
        );
    }
    lifecycle::read(&mut fields, kind, &mut spec);
    spec.schedules =
        fields.objects("schedule", 0).unwrap_or_default().into_iter().map(read_schedule).collect();
    spec.kubernetes = fields
        .objects(EVENTS, 0)
        .unwrap_or_default()
        .into_iter()
        .map(|item| read_event(item, &report))
        .collect();
    fields.finish();
    passed(report, text)?;
    let sections: [Check<'_>; 3] = [
        &lifecycle::check,
        &|spec, report| kubernetes::check(spec, EVENTS, report, compile),
        &schedule::check,
    ];
    checked(&spec, text, &sections)?;
    Ok(spec)
}

fn read_schedule(item: Fields<'_>) -> ScheduleBinding {
    let mut item = item.without_nulls();
    let mut text = |key| item.string(key).filter(|text| !text.is_empty());
    ScheduleBinding {
        name: text("name").unwrap_or_else(|| "schedule".to_owned()),
        crontab: text("crontab").unwrap_or_default().into(),
        queue: MAIN_QUEUE.into(),
        group: None,
        allow_failure: item.boolean("allowFailure").unwrap_or(false),
        include_snapshots_from: Vec::new(),
    }
}

fn read_event(item: Fields<'_>, report: &Report) -> KubernetesBinding {
    let mut item = item.without_nulls();
    let events = item.strings("event", 0).map(|words| {
        let event = |word: &String| {
            let found = WatchEvent::ALL.into_iter().find(|event| event.as_v0_str() == word);
            if found.is_none() {
                report.note(&item.path().key("event"), format!("event '{word}' is unsupported"));
            }
            found
        };
        words.iter().filter_map(event).collect::<BTreeSet<_>>()
    });
    let name = item.string("name").filter(|name| !name.is_empty());
    KubernetesBinding {
        name: name.unwrap_or_else(|| EVENTS.to_owned()),
        selection: Selection {
            api_version: String::new(),
            kind: item.string("kind").unwrap_or_default(),
            names: item.string("objectName").into_iter().filter(|name| !name.is_empty()).collect(),
            namespaces: read_namespaces(&mut item),
            labels: read_labels(&mut item, report),
            fields: FieldSelector::default(),
            only_metadata: false,
        },
        jq_filter: item.string("jqFilter").filter(|filter| !filter.is_empty()),
        // A context names the object's kind, which is read from the object.
        keep_full_objects: true,
        // Hooks of this age that do not say which events they want, want all.
        execute_on_events: events.unwrap_or_else(|| WatchEvent::ALL.into()),
        execute_on_synchronization: false,
        wait_for_synchronization: true,
        include_snapshots_from: Vec::new(),
        group: None,
        queue: MAIN_QUEUE.into(),
        allow_failure: item.boolean("allowFailure").unwrap_or(false),
    }
}

fn read_namespaces(item: &mut Fields<'_>) -> Namespaces {
    let Some(mut selector) = item.object("namespaceSelector") else { return Namespaces::All };
    let any = selector.boolean("any").unwrap_or(false);
    let names = selector.strings("matchNames", 0).unwrap_or_default();
    if any || names.is_empty() { Namespaces::All } else { Namespaces::Named(names.into_iter().collect()) }
}

fn read_labels(item: &mut Fields<'_>, report: &Report) -> LabelSelector {
    let Some(mut labels) = item.object("selector") else { return LabelSelector::default() };
    let mut match_expressions = Vec::new();
    for mut part in labels.objects("matchExpressions", 0).unwrap_or_default() {
        let operator = part.string("operator").unwrap_or_default();
        let Ok(operator) = operator.parse() else {
            let path = part.path().key("operator");
            report.note(
                &path,
                format!("selector is invalid: \"{operator}\" is not a valid label selector operator"),
            );
            continue;
        };
        match_expressions.push(LabelRequirement {
            key: part.string("key").unwrap_or_default(),
            operator,
            values: part.strings("values", 0).unwrap_or_default().into_iter().collect(),
        });
    }
    let match_labels = labels.texts("matchLabels").unwrap_or_default().into_iter().collect();
    LabelSelector { match_labels, match_expressions }
}
