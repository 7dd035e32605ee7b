//! Whether the objects of a release are ready: looked at when their watches show a change.

use std::sync::Arc;

use engine::{Event, ModuleName, RunId};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::support::DEADLINE;
use crate::support::release::{NAMESPACE, ReleaseFixture, files, watched};

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  \
selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
spec: {containers: [{name: web, image: web}]}\n";

async fn next(events: &mut UnboundedReceiver<Event>) -> Vec<String> {
    let event = tokio::time::timeout(DEADLINE, events.recv()).await.unwrap().unwrap();
    let Event::ReadinessChanged { run, module, unready } = event else { unreachable!("{event:?}") };
    assert_eq!((run, module.as_str()), (RunId::new(7), "web"));
    unready
}

#[tokio::test]
async fn objects_are_told_until_all_of_them_are_ready_and_nobody_polls() {
    let mut chart = files();
    chart.push(("templates/deployment.yaml", DEPLOYMENT));
    let world = ReleaseFixture::new(&chart);
    let helm = world.helm();
    world.upgraded(&helm).await;
    let _drift = watched(&helm);
    let (sender, mut events) = unbounded_channel();
    helm.await_readiness_by(
        RunId::new(7),
        ModuleName::from("web"),
        Arc::new(move |event| {
            let _ = sender.send(event);
            Box::pin(async {})
        }),
    );
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web");
    let web = format!("{NAMESPACE}/Deployment/web");
    // The controllers of the server bring the Pods up, one step after the other.
    let mut told = Vec::new();
    while told.last().is_none_or(|unready: &Vec<String>| !unready.is_empty()) {
        told.push(next(&mut events).await);
    }
    let of_others = |unready: &Vec<String>| unready.iter().any(|it| !it.starts_with(&format!("{web}: ")));
    assert!(!told.iter().any(of_others), "{told:?}");
    let object = world.get(&path).await.unwrap();
    assert_eq!(object["status"]["availableReplicas"], 2, "{told:?}");
    let reads = world
        .requests()
        .iter()
        .filter(|request| request.starts_with("GET ") && request.ends_with(&path))
        .count();
    assert!((1..=2 * told.len() + 8).contains(&reads), "it was read {reads} times: {told:?}");
}
