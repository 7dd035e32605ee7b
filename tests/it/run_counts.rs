//! What a run of a hook costs that can be counted: threads that are woken, reads and writes, and pipes.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use crate::support::in_process::Cluster;
use crate::support::measured::Program;
use crate::support::server::{ok, until};

/// A controller of `ConfigMap`s that has nothing to say.
const HOOK: &str = r#"#!/bin/sh
[ "$1" = --config ] && exec echo '{"configVersion": "v1", "reconcile": [{"name": "map", "apiVersion": "v1", "kind": "ConfigMap", "namespace": {"nameSelector": {"matchNames": ["things"]}}}]}'
echo run >> "$RUNS"
"#;

/// How many runs are counted.
const RUNS: u32 = 100;

async fn make(world: &Cluster, numbers: Range<u32>) {
    for number in numbers {
        let map = json!({"metadata": {"name": format!("map-{number}")}, "data": {"text": "x".repeat(300)}});
        ok(&world.server, Method::POST, "/api/v1/namespaces/things/configmaps", &map).await;
    }
}

/// Waits until so many runs have begun.
async fn ran(file: &Path, runs: u32) {
    let begun = || fs::read_to_string(file).unwrap_or_default().lines().count();
    until("all runs", || u32::try_from(begun()) == Ok(runs)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_hook_wakes_no_other_thread_and_reads_and_writes_little() {
    let world = Cluster::new().await;
    let namespace: Value = json!({"metadata": {"name": "things"}});
    ok(&world.server, Method::POST, "/api/v1/namespaces", &namespace).await;
    world.write("global-hooks/things.sh", HOOK);
    make(&world, 0..1).await;
    // Not in a directory that the operator watches.
    let elsewhere = tempfile::tempdir().unwrap();
    let runs = elsewhere.path().join("runs");
    let program = Program::start(&world, &[("RUNS", runs.to_str().unwrap())]).await;
    ran(&runs, 1).await;
    // Listed and run while the operator starts. These come as changes.
    let (woken, calls) = (program.woken(), program.reads_and_writes());
    make(&world, 1..RUNS + 1).await;
    ran(&runs, RUNS + 1).await;
    // A thread that ended takes its count with it.
    let woken = program.woken().saturating_sub(woken);
    let calls = program.reads_and_writes() - calls;
    // What was begun at the start may end meanwhile.
    assert!(woken < u64::from(RUNS), "other threads were woken {woken} times");
    // Three inputs are written, and overwritten behind it. On a busy machine output is read as it comes, and the memory is looked at
    // more often.
    assert!(calls < u64::from(RUNS) * 30, "{calls} reads and writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_hook_prints_to_the_pipes_of_the_one_before() {
    let world = Cluster::new().await;
    let namespace: Value = json!({"metadata": {"name": "things"}});
    ok(&world.server, Method::POST, "/api/v1/namespaces", &namespace).await;
    let line = "echo run >> \"$RUNS\"";
    assert!(HOOK.contains(line));
    world.write("global-hooks/things.sh", &HOOK.replace(line, "exec readlink /proc/self/fd/2 >> \"$RUNS\""));
    make(&world, 0..20).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let runs = elsewhere.path().join("runs");
    let socket = elsewhere.path().join("socket");
    let more = [("RUNS", runs.to_str().unwrap()), ("DEBUG_UNIX_SOCKET", socket.to_str().unwrap())];
    let _program = Program::start(&world, &more).await;
    ran(&runs, 20).await;
    let text = fs::read_to_string(&runs).unwrap();
    // Nothing lives between them that could hold the pipes. The call for its configuration had two.
    let pipes: BTreeSet<&str> = text.lines().collect();
    assert!(pipes.iter().all(|pipe| pipe.starts_with("pipe:")) && pipes.len() <= 4, "{pipes:?}");
}
