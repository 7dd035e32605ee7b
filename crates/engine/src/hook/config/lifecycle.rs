//! The points of a lifecycle at which a hook runs.

use strum::VariantArray;

use super::fields::Fields;
use super::report::{Path, Report};
use crate::hook::spec::{HookKind, HookSpec, Lifecycle, Order};

/// Reads the lifecycle points that a hook of this kind may ask for.
pub(super) fn read(fields: &mut Fields<'_>, kind: HookKind, spec: &mut HookSpec) {
    for point in Lifecycle::VARIANTS.iter().filter(|point| point.is_open_to(kind)) {
        if let Some(order) = fields.integer(point.as_str()) {
            spec.lifecycle.insert(*point, Order(order));
        }
    }
}

/// Notes orders that are negative where that is not allowed.
pub(super) fn check(spec: &HookSpec, report: &Report) {
    for (point, Order(order)) in &spec.lifecycle {
        if *order < 0 && *point != Lifecycle::OnStartup {
            let path = Path::default().key(point.as_str());
            report.note(&path, format!("invalid {point} config: order must not be negative: {order}"));
        }
    }
}
