//! Every metric has a value in some run.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use apiserver::FaultPlan;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use regex::Regex;
use serde_json::json;

use crate::support::DEADLINE;
use crate::support::files::root;
use crate::support::in_process::Cluster;
use crate::support::pause::pause_thread;
use crate::support::program::{get, hook};
use crate::support::server;

/// What the reference operator exports and we do, without the prefix.
const METRICS: &[&str] = &[
    "live_ticks",
    "binding_count",
    "config_values_errors_total",
    "modules_discover_errors_total",
    "module_delete_errors_total",
    "module_run_seconds",
    "module_run_errors_total",
    "modules_absent_resources_total",
    "mm_module_info",
    "mm_module_maintenance",
    "module_hook_run_seconds",
    "module_hook_run_user_cpu_seconds",
    "module_hook_run_sys_cpu_seconds",
    "module_hook_run_max_rss_bytes",
    "module_hook_allowed_errors_total",
    "module_hook_errors_total",
    "module_hook_success_total",
    "global_hook_run_seconds",
    "global_hook_run_user_cpu_seconds",
    "global_hook_run_sys_cpu_seconds",
    "global_hook_run_max_rss_bytes",
    "global_hook_allowed_errors_total",
    "global_hook_errors_total",
    "global_hook_success_total",
    "convergence_seconds",
    "convergence_total",
    "module_helm_seconds",
    "helm_operation_seconds",
    "task_wait_in_queue_seconds_total",
    "tasks_queue_length",
    "tasks_queue_head_info",
    "tasks_queue_action_duration_seconds",
    "kube_snapshot_objects",
    "kube_jq_filter_duration_seconds",
    "kube_event_duration_seconds",
    "kubernetes_client_watch_errors_total",
    "kubernetes_client_request_latency_seconds",
    "kubernetes_client_request_result_total",
    "kubernetes_client_rate_limiter_latency_seconds",
];

/// Asks until a metric has a value; notes all that have one.
fn wait_for(seen: &mut BTreeSet<String>, port: u16, metric: &str) {
    let begun = Instant::now();
    while !seen.contains(&format!("addon_operator_{metric}")) {
        assert!(begun.elapsed() < DEADLINE, "{metric} gets no value; with values are {seen:#?}");
        pause_thread();
        seen.extend(with_values(&get(&port.to_string(), "/metrics")));
    }
}

/// Returns the names of the series whose value is not 0; those of histograms also without their endings.
fn with_values(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with(|char: char| char.is_ascii_alphabetic())) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        if value.parse::<f64>().is_ok_and(|value| value != 0.0) {
            let name = series.split('{').next().unwrap_or_default();
            let ends = ["_bucket", "_sum", "_count"];
            names.extend(ends.iter().filter_map(|end| name.strip_suffix(end)).map(str::to_owned));
            names.insert(name.to_owned());
        }
    }
    names
}

/// Fails the first time only.
fn once(name: &str) -> String {
    format!("if ! [ -e \"$WORLD/{name}\" ]; then touch \"$WORLD/{name}\"; exit 1; fi")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_gets_a_value_in_some_run() {
    let world = Cluster::new().await;
    world.write_web();
    world.write(
        "modules/010-web/enabled",
        &format!("#!/bin/sh\n{}\necho true > \"$MODULE_ENABLED_RESULT\"\n", once("enabled")),
    );
    world.write("modules/010-web/hooks/run.sh", &hook("\"beforeHelm\":1", &once("run")));
    world.write("modules/010-web/hooks/delete.sh", &hook("\"afterDeleteHelm\":1", &once("delete")));
    let watches = |allow: bool| {
        format!(
            "\"kubernetes\":[{{\"name\":\"items\",\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"jqFilter\":\".data\",\
             \"labelSelector\":{{\"matchLabels\":{{\"item\":\"yes\"}}}},\"allowFailure\":{allow}}}]"
        )
    };
    let events = |name: &str| format!("grep -q Event \"$BINDING_CONTEXT_PATH\" || exit 0\n{}", once(name));
    world.write("modules/010-web/hooks/allowed.sh", &hook(&watches(true), &events("allowed")));
    world.write("modules/010-web/hooks/watch.sh", &hook(&watches(false), &events("watch")));
    world.write("global-hooks/allowed.sh", &hook(&watches(true), &events("global-allowed")));
    let patch = "{\"operation\":\"CreateOrUpdate\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\
                 \"metadata\":{\"name\":\"patched\",\"namespace\":\"ops\"}}}";
    let patches = format!("{}\necho '{patch}' > \"$KUBERNETES_PATCH_PATH\"", events("global"));
    world.write("global-hooks/watch.sh", &hook(&watches(false), &patches));
    let operator = world.start(&[]).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), "ops");
    let is_there = |map: &serde_json::Value| !map.is_null();
    let mut seen = BTreeSet::new();
    // The enabled script fails first, so that a head waits for its next try.
    wait_for(&mut seen, operator.port, "tasks_queue_head_info");
    world.settled("web", is_there).await;
    world.put("item", json!({"metadata": {"labels": {"item": "yes"}}, "data": {"a": "b"}})).await;
    world.settled("patched", is_there).await;
    // An object of the release goes and comes back.
    maps.delete("web", &DeleteParams::default()).await.unwrap();
    wait_for(&mut seen, operator.port, "modules_absent_resources_total");
    world.settled("web", is_there).await;
    // A watch breaks, and its next list, too.
    world.server.faults().add(FaultPlan::on(Method::GET, "/api/v1/configmaps").times(9).fail(500));
    world.server.faults().drop_watches();
    wait_for(&mut seen, operator.port, "kubernetes_client_watch_errors_total");
    world.server.faults().clear();
    // A key that can't be read, a module in maintenance, and one that goes.
    for (config, metric) in [
        (json!({"data": {"web": "{"}}), "config_values_errors_total"),
        (json!({"data": {"webMaintenance": "NoResourceReconciliation"}}), "mm_module_maintenance"),
        (json!({"data": {"webEnabled": "false"}}), "module_delete_errors_total"),
    ] {
        world.put("addon-operator", config).await;
        wait_for(&mut seen, operator.port, metric);
    }
    for metric in METRICS {
        wait_for(&mut seen, operator.port, metric);
    }
    operator.stop().await;
    let text = "object_patcher_kubernetes_client_request_result_total";
    assert!(seen.contains(text), "{seen:?}");
}

/// Returns the names of the alerts that compare one series with a number and would fire with these metrics.
fn firing(scraped: &str) -> BTreeSet<String> {
    let alerts = fs::read_to_string(root().join("examples/monitoring/alerts.yaml")).unwrap();
    let alerts = values::yaml::parse(&alerts).unwrap();
    let simple = Regex::new(r"^([a-z_]+)(?:\{([^}]*)\})? > ([0-9]+)$").unwrap();
    let mut firing = BTreeSet::new();
    for rule in alerts["groups"][0]["rules"].as_array().unwrap() {
        let Some(parts) = simple.captures(rule["expr"].as_str().unwrap()) else { continue };
        let limit: f64 = parts[3].parse().unwrap();
        let label = parts.get(2).map_or("", |label| label.as_str());
        let is_over = scraped.lines().any(|line| {
            let Some((series, value)) = line.rsplit_once(' ') else { return false };
            series.split('{').next() == Some(&parts[1])
                && series.contains(label)
                && value.parse::<f64>().is_ok_and(|value| value > limit)
        });
        if is_over {
            firing.insert(rule["alert"].as_str().unwrap().to_owned());
        }
    }
    firing
}

/// Asks until the metrics are as wanted, and returns them.
fn scraped(port: u16, are_right: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let text = get(&port.to_string(), "/metrics");
        if are_right(&text) {
            return text;
        }
        assert!(begun.elapsed() < DEADLINE, "{text}");
        pause_thread();
    }
}

const OWN: &str =
    "addon_operator_watches_broken{kind=\"ConfigMap ops/addon-operator\",reason=\"failure\"} 1\n";

const OF_RELEASE: &str =
    "addon_operator_module_unwatched_kinds{kind=\"ConfigMap in ops\",module=\"web\"} 1\n";

#[tokio::test(flavor = "multi_thread")]
async fn slip_02_slip_08_what_a_role_does_not_let_the_operator_watch_has_a_metric_and_an_alert() {
    let world = Cluster::new().await;
    world.write_web();
    // It may list ConfigMaps in its namespace and watch none, nor list those of the cluster.
    for paths in ["/api/v1/configmaps", "/api/v1/namespaces/ops/configmaps?*watch=true*"] {
        world.server.faults().add(FaultPlan::on(Method::GET, paths).times(u64::MAX).fail(403));
    }
    let operator = world.start(&[]).await;
    let port = operator.port;
    let text = scraped(port, |text| text.contains(OWN) && text.contains(OF_RELEASE));
    assert!(server::get(&world.server, "/api/v1/namespaces/ops/configmaps/web").await.is_some());
    let (own, release) = ("AddonOperatorWatchBroken".to_owned(), "AddonOperatorReleaseNotWatched".to_owned());
    let fire = firing(&text);
    assert!(fire.contains(&own) && fire.contains(&release), "{fire:?}");
    assert!(get(&port.to_string(), "/healthz").starts_with("HTTP/1.1 200"));
    // The role is mended.
    world.server.faults().clear();
    let over = |text: &str| !text.contains("watches_broken{") && !text.contains("unwatched_kinds{");
    let fire = firing(&scraped(port, over));
    assert!(!fire.contains(&own) && !fire.contains(&release), "{fire:?}");
    operator.stop().await;
}
