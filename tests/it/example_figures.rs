//! How long hosted clusters take, and what ten thousand objects of a controller cost: docs/performance.md has the numbers.
//!
//! `FIGURES_OPERATOR=target/release/addon-operator cargo test --test it figures_ -- --ignored --nocapture --test-threads 1`

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::example_clusters::{CLUSTERS, CRDS, POOLS, World};
use crate::support::measured::Program;
use crate::support::server::get;

async fn is_ready(world: &World, name: &str, machines: u64) -> bool {
    let of = async |path: String| get(&world.cluster.server, &path).await.unwrap_or_default();
    of(format!("{CLUSTERS}/{name}")).await["status"]["ready"] == true
        && of(format!("{POOLS}/{name}")).await["status"]["nodeCount"] == machines
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time; docs/performance.md has the numbers"]
async fn figures_of_hosted_clusters() {
    let world = World::new().await;
    let program = Program::start(&world.cluster, &[]).await;
    world.create("first", json!({})).await;
    while !is_ready(&world, "first", 1).await {
        pause(20).await;
    }
    let mut took = Vec::new();
    for name in ["one", "two", "three"] {
        let begun = Instant::now();
        world.create(name, json!({"initialComputeReplicas": 2})).await;
        while !is_ready(&world, name, 2).await {
            pause(5).await;
        }
        let ready = begun.elapsed();
        let begun = Instant::now();
        world.delete(&format!("{CLUSTERS}/{name}")).await;
        world.gone(name).await;
        took.push((ready, begun.elapsed()));
    }
    println!("one cluster with two machines, ready and gone: {took:?}");
    let begun = Instant::now();
    let names: Vec<String> = (0..100).map(|number| format!("c{number}")).collect();
    for name in &names {
        world.create(name, json!({})).await;
    }
    for name in &names {
        while !is_ready(&world, name, 1).await {
            pause(20).await;
        }
    }
    println!(
        "100 clusters: {:?}, {} MiB, at most {} MiB",
        begun.elapsed(),
        program.kib("VmRSS:") >> 10,
        program.kib("VmHWM:") >> 10
    );
    pause(5_000).await;
    let counts = async || {
        let version = get(&world.cluster.server, "/api/v1/configmaps").await.unwrap();
        (
            program.metric("addon_operator_reconcile_seconds_count").await,
            program.metric("addon_operator_kubernetes_client_request_result_total").await,
            version["metadata"]["resourceVersion"].clone(),
        )
    };
    let (before, own) = (counts().await, program.own());
    pause(60_000).await;
    println!(
        "idle for 60 s: {before:?}, then {:?}, {:?} of a processor",
        counts().await,
        program.own().saturating_sub(own)
    );
    let (median, most) = changes(&world, &names).await;
    println!("a change in one of 100 reaches its object: median {median:?}, at most {most:?}");
}

/// Returns how long a change of one of many clusters takes to reach its control plane: the median, and the most.
async fn changes(world: &World, names: &[String]) -> (Duration, Duration) {
    let mut delays = Vec::new();
    for number in 0..20 {
        let name = &names[number * 5];
        let cidr = format!("10.{number}.0.0/16");
        let begun = Instant::now();
        world
            .patch(&format!("{CLUSTERS}/{name}"), json!({"spec": {"networking": {"serviceCIDR": cidr}}}))
            .await;
        let plane = format!(
            "/apis/hypershift.openshift.io/v1alpha1/namespaces/clusters-{name}/hostedcontrolplanes/{name}"
        );
        while get(&world.cluster.server, &plane).await.unwrap_or_default()["spec"]["serviceCIDR"] != cidr {
            pause(1).await;
        }
        delays.push(begun.elapsed());
        pause(500).await;
    }
    delays.sort();
    (delays[10], delays[19])
}

/// How many objects the controller that says nothing has.
const OBJECTS: u64 = 10_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time; docs/performance.md has the numbers"]
async fn figures_of_ten_thousand_objects() {
    let world = World::new().await;
    fs::remove_dir_all(world.cluster.path("modules")).unwrap();
    fs::create_dir(world.cluster.path("modules")).unwrap();
    world.cluster.write(
        "global-hooks/things.sh",
        "#!/bin/sh\n[ \"$1\" = --config ] && echo '{\"configVersion\": \"v1\", \"reconcile\": [{\"name\": \"thing\", \"apiVersion\": \"example.com/v1\", \"kind\": \"Thing\"}]}'\nexit 0\n",
    );
    world.post(CRDS, crate::support::server::crd()).await;
    world.settled(&format!("{CRDS}/things.example.com"), |crd| !crd["status"]["conditions"].is_null()).await;
    for number in 0..OBJECTS {
        let thing = json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": format!("t{number}"), "namespace": "ops"},
            "spec": {"text": "x".repeat(300)},
        });
        world.post("/apis/example.com/v1/namespaces/ops/things", thing).await;
    }
    let begun = Instant::now();
    let program = Program::start(&world.cluster, &[]).await;
    let done = async || program.metric("addon_operator_reconcile_seconds_count").await;
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    while done().await < OBJECTS as f64 {
        assert!(begun.elapsed() < Duration::from_mins(10), "{} are done", done().await);
        // Whoever asks for metrics makes a picture of all tasks: not more often than Prometheus would.
        pause(500).await;
    }
    let (took, own): (Duration, Duration) = (begun.elapsed(), program.own());
    let each = own.as_secs_f64() * 1_000.0 / f64::from(u32::try_from(OBJECTS).unwrap());
    println!(
        "{OBJECTS} objects: {took:?}, own share {own:?}, {each:.3} ms a key, at most {} MiB",
        program.kib("VmHWM:") >> 10
    );
}
