//! What is written about charts beside what the operator that these kinds come from wrote on a real API server, as data.
//!
//! Three things are meant otherwise here: a failed Chart says `False`, `dependencies` is there with `createDeps` only, and the archive
//! is kept, too.

use serde_json::{Value, json};

use crate::support::charts::{MAPS, World, alpha, chart, condition};
use crate::support::server::{self, get};

/// Returns the maps with charts without the archives, as the recording has them.
async fn maps(world: &World) -> Vec<Value> {
    let list = get(&world.cluster.server, MAPS).await.unwrap();
    let mut maps: Vec<Value> = list["items"].as_array().unwrap().iter().filter_map(shown).collect();
    maps.sort_by_key(|map| map["name"].as_str().unwrap().to_owned());
    maps
}

fn shown(map: &Value) -> Option<Value> {
    let metadata = &map["metadata"];
    let name = metadata["name"].as_str()?;
    let is_meant = name.starts_with("helm-") && !name.starts_with("helm-pkg-");
    let keys = |field: &str| {
        map[field].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<Vec<String>>()
    };
    let keys = [keys("data"), keys("binaryData")].concat();
    let owner = |owner: &Value| json!({"kind": owner["kind"], "name": owner["name"], "controller": owner["controller"]});
    let owners: Vec<Value> = metadata["ownerReferences"].as_array()?.iter().map(owner).collect();
    let is_immutable = map["immutable"].as_bool().unwrap_or_default();
    is_meant.then(|| {
        json!({"name": name, "labels": metadata["labels"], "immutable": is_immutable, "owners": owners, "keys": keys})
    })
}

/// Waits until an object is as it was recorded.
async fn is_as_recorded(world: &World, place: &str, recorded: &Value) {
    let (kind, name) = (recorded["kind"].as_str().unwrap(), recorded["name"].as_str().unwrap());
    let is_failure = recorded["reason"] == "initChartFailed";
    let fits = |object: &Value| {
        let status = &object["status"];
        let has_deps = object["spec"]["createDeps"] == true;
        let fields = recorded["status"].as_object().unwrap().iter();
        let mut fields = fields.filter(|(name, _)| has_deps || *name != "dependencies");
        status["observedGeneration"] == object["metadata"]["generation"]
            && condition(object)["reason"] == recorded["reason"]
            && condition(object)["status"] == if is_failure { "False" } else { "True" }
            && fields.all(|(name, value)| status[name] == *value)
            && object["spec"]["versions"] == recorded["versions"]
    };
    let object = world.settled(kind, name, fits).await;
    let metadata = &object["metadata"];
    let labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    assert_eq!(json!(labels), recorded["labels"], "{place}: {kind} {name}");
    let finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    assert_eq!(json!(finalizers), recorded["finalizers"], "{place}: {kind} {name}");
    let owner = |owner: &Value| json!({"kind": owner["kind"], "name": owner["name"]});
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten().map(owner);
    assert_eq!(json!(owners.collect::<Vec<_>>()), recorded["owners"], "{place}: {kind} {name}");
}

async fn b03_b06_b11_b14_maps_labels_owners_and_states_are_those_that_were_recorded() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("data/chart_catalogue.json")).unwrap();
    assert_eq!(recorded.len(), 2);
    for scenario in recorded {
        let world = World::new().await;
        let url = world.repository.url("");
        let shown = ("templates/shown.yaml", b"kind: ConfigMap\n".as_slice());
        let crds = ("crds/things.yaml", b"kind: CustomResourceDefinition\n".as_slice());
        let things = chart("alpha", "0.1.1", "", &[shown, crds]);
        let more = format!("dependencies:\n- {{name: alpha, version: 0.1.1, repository: '{url}'}}\n");
        let needing = chart("beta", "0.1.0", &more, &[shown]);
        let all =
            [("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.1.1", things), ("beta", "0.1.0", needing)];
        world.publish("", &all);
        let operator = world.start().await;
        for step in scenario["steps"].as_array().unwrap() {
            let place = format!("{}, {}", scenario["scenario"], step["step"]);
            for applied in step["applied"].as_array().unwrap() {
                let name = applied["name"].as_str().unwrap();
                if let Some(kind) = applied["delete"].as_str() {
                    world.delete(kind, name).await;
                    continue;
                }
                let text = applied["spec"].to_string().replace("http://REPO", &url);
                let spec = serde_json::from_str(&text).unwrap();
                world.apply(applied["kind"].as_str().unwrap(), name, spec).await;
            }
            for object in step["objects"].as_array().unwrap() {
                is_as_recorded(&world, &place, object).await;
            }
            server::until_asked(&place, async || json!(maps(&world).await) == step["maps"]).await;
        }
        operator.stop().await;
    }
}

scenarios! {
    b03_b06_b11_b14_maps_labels_owners_and_states_are_those_that_were_recorded,
}
