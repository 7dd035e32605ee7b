//! Configurations with `configVersion: v1`. See docs/hooks.md#configuration-version-1.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::{Check, Compile, ConfigError, checked, passed};
use super::fields::Fields;
use super::report::{Path, Report};
use super::{admission, kubernetes, lifecycle, reconcile, schedule, settings};
use crate::hook::spec::{ConfigVersion, HookKind, HookSpec};
use crate::name::HookName;

/// Returns what a v1 configuration says.
///
/// A configuration without any binding is fine: its hook never runs.
pub(super) fn parse(
    name: HookName,
    kind: HookKind,
    map: &Map<String, Value>,
    text: &str,
    compile: Compile<'_>,
) -> Result<HookSpec, ConfigError> {
    let report = Report::default();
    let mut spec = HookSpec::empty(name, ConfigVersion::V1);
    let mut fields = Fields::new(map, Path::default(), &report);
    fields.string("configVersion");
    lifecycle::read(&mut fields, kind, &mut spec);
    settings::read(&mut fields);
    spec.schedules = schedule::read(&mut fields);
    spec.kubernetes = kubernetes::read(&mut fields);
    spec.reconciles = reconcile::read(&mut fields, &report);
    spec.validating = admission::read(&mut fields, "kubernetesValidating");
    spec.mutating = admission::read(&mut fields, "kubernetesMutating");
    spec.conversions = admission::read_conversions(&mut fields);
    fields.finish();
    passed(report, text)?;
    check(&mut spec, map, text, compile)?;
    include_groups(&mut spec);
    Ok(spec)
}

/// Checks the meaning, section by section; the first wrong section ends it.
fn check(
    spec: &mut HookSpec,
    map: &Map<String, Value>,
    text: &str,
    compile: Compile<'_>,
) -> Result<(), ConfigError> {
    let report = Report::default();
    spec.settings = settings::check(map, &report);
    passed(report, text)?;
    let sections: [Check<'_>; 8] = [
        &lifecycle::check,
        &|spec, report| kubernetes::check(spec, "kubernetes", report, compile),
        &kubernetes::check_includes,
        &schedule::check,
        &|spec, report| reconcile::check(spec, report, compile),
        &admission::check_validating,
        &admission::check_mutating,
        &admission::check_conversions,
    ];
    checked(spec, text, &sections)
}

/// Adds the members of each group to the snapshots of the bindings that name the group.
fn include_groups(spec: &mut HookSpec) {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for binding in &spec.kubernetes {
        if let Some(group) = &binding.group {
            groups.entry(group.clone()).or_default().push(binding.name.clone());
        }
    }
    let extend = |group: &Option<String>, included: &mut Vec<String>| {
        let members = group.as_ref().and_then(|group| groups.get(group)).cloned().unwrap_or_default();
        let missing: Vec<String> = members.into_iter().filter(|name| !included.contains(name)).collect();
        included.extend(unique(missing));
    };
    for binding in &mut spec.kubernetes {
        extend(&binding.group, &mut binding.include_snapshots_from);
    }
    for binding in &mut spec.schedules {
        extend(&binding.group, &mut binding.include_snapshots_from);
    }
    for binding in spec.validating.iter_mut().chain(&mut spec.mutating) {
        extend(&binding.group, &mut binding.include_snapshots_from);
    }
    for binding in &mut spec.conversions {
        extend(&binding.group, &mut binding.include_snapshots_from);
    }
}

/// Returns the names of a list without those that came before, order kept.
fn unique(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}
