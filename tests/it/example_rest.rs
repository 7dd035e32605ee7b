//! Whose hooks run while a hosted cluster is made and goes: only its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use crate::example_clusters::{CLUSTERS, World};
use crate::support::DEADLINE;
use crate::support::pause::long_pause;

/// Has each run of a hook leave what it was shown in the folder `shown`.
fn traced(world: &World) -> PathBuf {
    const KEEP: &str = r#"
if [[ -n "${BINDING_CONTEXT_PATH:-}" ]]; then cp "$BINDING_CONTEXT_PATH" "$WORLD/shown/$(basename "$0").$$.$RANDOM"; fi
"#;
    let shown = world.cluster.path("shown");
    fs::create_dir(&shown).unwrap();
    for module in fs::read_dir(world.cluster.path("modules")).unwrap() {
        let Ok(hooks) = fs::read_dir(module.unwrap().path().join("hooks")) else { continue };
        for hook in hooks {
            let hook = hook.unwrap().path();
            let text = fs::read_to_string(&hook).unwrap();
            let (first, rest) = text.split_once('\n').unwrap();
            fs::write(&hook, format!("{first}{KEEP}{rest}")).unwrap();
        }
    }
    shown
}

/// Returns the objects of which hooks were shown something since the last call: `Kind namespace/name`.
fn taken(shown: &PathBuf) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for file in fs::read_dir(shown).unwrap() {
        let path = file.unwrap().path();
        let contexts: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        for context in contexts.as_array().unwrap() {
            // What looks at all clusters is shown no object.
            if !context["object"].is_null() {
                let text = |field: &str| context.pointer(field).and_then(Value::as_str).unwrap_or_default();
                let (kind, space) = (text("/object/kind"), text("/object/metadata/namespace"));
                all.insert(format!("{kind} {space}/{}", text("/object/metadata/name")));
            }
        }
    }
    all
}

async fn rests(world: &World, port: u16) {
    let begun = Instant::now();
    while !world.is_idle(port).await {
        assert!(begun.elapsed() < DEADLINE, "there is always something to do");
        long_pause().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cluster_rests_while_another_one_is_made_changes_and_goes() {
    let world = World::new().await;
    let shown = traced(&world);
    let operator = world.cluster.start(&[]).await;
    world.create("one", json!({})).await;
    world.ready("one").await;
    rests(&world, operator.port).await;
    let is_of = |object: &String, name: &str| {
        object.contains(&format!(" clusters/{name}")) || object.contains(&format!(" clusters-{name}/"))
    };
    let first = taken(&shown);
    for kind in
        ["HostedCluster", "NodePool", "HostedControlPlane", "ExternalInfraCluster", "MachineSet", "Machine"]
    {
        let is_shown =
            first.iter().any(|object| object.starts_with(&format!("{kind} ")) && is_of(object, "one"));
        assert!(is_shown, "{kind}: {first:#?}");
    }
    world.create("two", json!({})).await;
    world.ready("two").await;
    world
        .patch(
            &format!("{CLUSTERS}/two"),
            json!({"spec": {"release": {"image": "registry.local/release:1.1"}}}),
        )
        .await;
    world
        .settled(&format!("{CLUSTERS}/two"), |two| {
            two["status"]["version"]["history"][0]["state"] == "Completed"
                && two["status"]["version"]["history"][0]["version"] == "1.1"
        })
        .await;
    world.delete(&format!("{CLUSTERS}/two")).await;
    world.gone("two").await;
    rests(&world, operator.port).await;
    let later = taken(&shown);
    let disturbed: Vec<&String> = later.iter().filter(|object| is_of(object, "one")).collect();
    assert!(disturbed.is_empty(), "{disturbed:#?} ran, too");
    assert!(later.iter().filter(|object| is_of(object, "two")).count() >= 6, "{later:#?}");
    operator.stop().await;
}
