//! The cells of pods: phase, readiness, restarts.

use jiff::Timestamp;
use serde_json::Value;

use super::age::since;
use super::text::{Cell, has_condition, number};
use crate::fields::{get, list, text};

pub(super) fn find(name: &str) -> Option<Cell> {
    Some(match name {
        "pod_gates" => gates,
        "pod_ip" => ip,
        "pod_ready" => |pod, _| {
            let progress = Progress::of(pod);
            Value::from(format!("{}/{}", progress.ready, progress.containers))
        },
        "pod_restarts" => restarts,
        "pod_status" => |pod, _| Value::from(Progress::of(pod).reason),
        _ => return None,
    })
}

/// The state of a pod as `kubectl get` shows it.
#[derive(Default)]
struct Progress {
    ready: usize,
    containers: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Clone, Default)]
struct Restarts {
    count: i64,
    last: String,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(number(status, "restartCount"));
        let finished = text(status, "lastState.terminated.finishedAt");
        if finished > self.last.as_str() {
            finished.clone_into(&mut self.last);
        }
    }
}

fn is_sidecar(pod: &Value, name: &str) -> bool {
    let containers = list(pod, "spec.initContainers");
    let found = containers.iter().find(|container| text(container, "name") == name);
    found.is_some_and(|container| text(container, "restartPolicy") == "Always")
}

impl Progress {
    fn of(pod: &Value) -> Progress {
        let phase = text(pod, "status.phase");
        let inits = list(pod, "spec.initContainers");
        let sidecars = inits.iter().filter(|container| text(container, "restartPolicy") == "Always");
        let mut progress = Progress {
            containers: list(pod, "spec.containers").len() + sidecars.count(),
            ..Progress::default()
        };
        progress.reason = match text(pod, "status.reason") {
            "" => phase.to_owned(),
            reason => reason.to_owned(),
        };
        let gated = |c: &Value| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated";
        if list(pod, "status.conditions").iter().any(gated) {
            "SchedulingGated".clone_into(&mut progress.reason);
        }
        let initializing = progress.initialize(pod);
        if !initializing || has_condition(pod, "Initialized") {
            progress.run(pod);
        }
        if !get(pod, "metadata.deletionTimestamp").is_null() {
            if text(pod, "status.reason") == "NodeLost" {
                "Unknown".clone_into(&mut progress.reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut progress.reason);
            }
        }
        progress
    }

    /// Looks at the init containers; returns whether they still run.
    fn initialize(&mut self, pod: &Value) -> bool {
        let mut sidecars = Restarts::default();
        let total = list(pod, "spec.initContainers").len();
        for (index, status) in list(pod, "status.initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let sidecar = is_sidecar(pod, text(status, "name"));
            if sidecar {
                sidecars.add(status);
            }
            let terminated = get(status, "state.terminated");
            let waiting = text(status, "state.waiting.reason");
            if !terminated.is_null() && number(terminated, "exitCode") == 0 {
                continue;
            }
            if sidecar && get(status, "started") == &Value::Bool(true) {
                self.ready += usize::from(get(status, "ready") == &Value::Bool(true));
                continue;
            }
            self.reason = if !terminated.is_null() {
                format!("Init:{}", end_of(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{total}")
            };
            return true;
        }
        // Once all have run, only restarts of those that keep running count.
        self.restarts = sidecars;
        false
    }

    fn run(&mut self, pod: &Value) {
        let mut running = false;
        for status in list(pod, "status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "state.waiting.reason");
            let terminated = get(status, "state.terminated");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if !terminated.is_null() {
                self.reason = end_of(terminated);
            } else if get(status, "ready") == &Value::Bool(true) && !get(status, "state.running").is_null() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let reason = if has_condition(pod, "Ready") { "Running" } else { "NotReady" };
            reason.clone_into(&mut self.reason);
        }
    }
}

fn end_of(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn restarts(pod: &Value, now: Timestamp) -> Value {
    let restarts = Progress::of(pod).restarts;
    if restarts.count == 0 || restarts.last.is_empty() {
        return Value::from(restarts.count.to_string());
    }
    Value::from(format!("{} ({} ago)", restarts.count, since(Some(&restarts.last), now)))
}

fn ip(pod: &Value, _: Timestamp) -> Value {
    let first = list(pod, "status.podIPs").first().map_or("", |ip| text(ip, "ip"));
    Value::from(if first.is_empty() { "<none>" } else { first })
}

fn gates(pod: &Value, _: Timestamp) -> Value {
    let gates = list(pod, "spec.readinessGates");
    if gates.is_empty() {
        return Value::from("<none>");
    }
    let open = gates.iter().filter(|gate| has_condition(pod, text(gate, "conditionType"))).count();
    Value::from(format!("{open}/{}", gates.len()))
}
