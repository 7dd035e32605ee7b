//! Fields of features that are off here, as they are in a new cluster: they are dropped, whoever sends them.

use serde_json::Value;

use crate::fields::each;
use crate::registry::Resource;

/// Group, resource and the places of such fields; a star stands for all items or entries.
const OFF: &[(&str, &str, &[&str])] = &[
    ("coordination.k8s.io", "leases", &["spec/strategy", "spec/preferredHolder"]),
    (
        "storage.k8s.io",
        "volumeattachments",
        &["status/attachError/errorCode", "status/detachError/errorCode"],
    ),
    ("resource.k8s.io", "deviceclasses", &["spec/extendedResourceName"]),
    (
        "resource.k8s.io",
        "resourceclaims",
        &[
            "spec/devices/requests/*/exactly/capacity",
            "spec/devices/requests/*/firstAvailable/*/capacity",
            "status/allocation/allocationTimestamp",
            "status/allocation/devices/results/*/bindingConditions",
            "status/allocation/devices/results/*/bindingFailureConditions",
            "status/allocation/devices/results/*/consumedCapacity",
            "status/allocation/devices/results/*/shareID",
            "status/devices/*/shareID",
        ],
    ),
    (
        "resource.k8s.io",
        "resourceclaimtemplates",
        &[
            "spec/spec/devices/requests/*/exactly/capacity",
            "spec/spec/devices/requests/*/firstAvailable/*/capacity",
        ],
    ),
    (
        "resource.k8s.io",
        "resourceslices",
        &[
            "spec/sharedCounters",
            "spec/perDeviceNodeSelection",
            "spec/devices/*/allNodes",
            "spec/devices/*/allowMultipleAllocations",
            "spec/devices/*/bindingConditions",
            "spec/devices/*/bindingFailureConditions",
            "spec/devices/*/bindsToNode",
            "spec/devices/*/capacity/*/requestPolicy",
            "spec/devices/*/consumesCounters",
            "spec/devices/*/nodeName",
            "spec/devices/*/nodeSelector",
            "spec/devices/*/taints",
        ],
    ),
];

/// Drops the fields of features that are off.
pub(super) fn close(resource: &Resource, object: &mut Value) {
    let of = OFF.iter().filter(|(group, plural, _)| resource.is(group, plural));
    for place in of.flat_map(|(_, _, places)| *places) {
        each(object, place, &mut |fields, name| {
            fields.remove(name);
        });
    }
}
