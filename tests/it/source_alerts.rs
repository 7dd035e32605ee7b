//! The alerts about module sources fire on the metrics of an operator whose repository is down, and on none before.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use serde_json::json;

use crate::module_sources::{SOURCES, World, phase};
use crate::support::program::get;
use crate::support::repository::{Reply, module};
use crate::support::server::{ok, until};

/// Returns what each alert about sources selects: the name of a series, and a label that it has.
fn selectors() -> BTreeMap<String, (String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/monitoring/alerts.yaml");
    let alerts = values::yaml::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let selector = Regex::new(r#"(addon_operator_[a-z_]+)\{([a-z]+="[A-Za-z]+")\}"#).unwrap();
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    let of_sources = rules.iter().filter(|rule| {
        ["AddonOperatorSourceFailed", "AddonOperatorSourceUnreachable"]
            .contains(&rule["alert"].as_str().unwrap())
    });
    let selected = of_sources.map(|rule| {
        let found = selector.captures(rule["expr"].as_str().unwrap()).unwrap();
        (rule["alert"].as_str().unwrap().to_owned(), (found[1].to_owned(), found[2].to_owned()))
    });
    selected.collect()
}

/// Returns the sum of the series that an alert selects.
fn sum(metrics: &str, (name, label): &(String, String)) -> f64 {
    let series = metrics.lines().filter(|line| {
        line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('{') && rest.contains(label))
    });
    series.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_about_sources_fire_while_a_repository_is_down() {
    let selectors = selectors();
    assert_eq!(selectors.len(), 2);
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", module("web", "1.0.0", "one"))]);
    let mut options = world.options().to_vec();
    options.push(("source-retry", "1s"));
    let operator = world.cluster.start(&options).await;
    let metrics = || get(&operator.port.to_string(), "/metrics");
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world.settled("platform", |object| phase(object) == "Ready").await;
    for (alert, selector) in &selectors {
        assert!(sum(&metrics(), selector) < 1.0, "{alert}");
    }
    world.repository.put("/index.yaml", Reply::Status(503, Vec::new()));
    let raise = json!({"spec": {"reprocessRequest": 1}});
    ok(&world.cluster.server, http::Method::PATCH, &format!("{SOURCES}/platform"), &raise).await;
    world.settled("platform", |object| phase(object) == "Failed").await;
    let failed = &selectors["AddonOperatorSourceFailed"];
    until("a source that is counted as failed", || sum(&metrics(), failed) > 0.0).await;
    // It grows as long as the repository is asked in vain: `increase` sees it.
    let unreachable = &selectors["AddonOperatorSourceUnreachable"];
    until("a request that is counted as failed", || sum(&metrics(), unreachable) > 0.0).await;
    let before = sum(&metrics(), unreachable);
    until("the next attempt", || sum(&metrics(), unreachable) > before).await;
    operator.stop().await;
}
