//! Charts of modules that need charts of repositories: they come from the catalogue, and the module is installed with them.

use serde_json::{Value, json};

use crate::support::charts::{World, alpha};
use crate::support::program;
use crate::support::repository::Reply;
use crate::support::server;

/// Writes a module whose own chart needs `alpha`.
fn write_module(world: &World, version: &str, repository: &str) {
    let chart = format!(
        "apiVersion: v2\nname: cache\nversion: 0.1.0\ndependencies:\n- {{name: alpha, version: '{version}', repository: '{repository}'}}\n"
    );
    world.cluster.write("modules/040-cache/Chart.yaml", &chart);
    world.cluster.write("modules/040-cache/values.yaml", "cache: {alpha: {says: mine}}\n");
    world.cluster.write("modules/040-cache/module.yaml", "valuesLayout: root\n");
    let own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n";
    world.cluster.write("modules/040-cache/templates/own.yaml", own);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
}

async fn a_dependency_of_a_repository_is_waited_for_and_needs_it_no_more() {
    let world = World::new().await;
    let url = world.repository.url("");
    write_module(&world, "~0.1", &url);
    world.repository.put("/index.yaml", Reply::Status(503, Vec::new()));
    world.apply("Repository", "corp", json!({"name": "corp", "url": url})).await;
    let operator = world.start().await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let why = || crate::support::in_process::ask_socket(&world.cluster, "/why/module/cache");
    server::until("the reason", || why().contains("Chart module-cache.alpha: ") && why().contains("503"))
        .await;
    assert!(world.map("own").await.is_none(), "{}", why());

    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    let is_it = |map: &Value| map["data"]["says"] == "mine" && map["data"]["version"] == "0.1.0";
    world.cluster.settled("shown", is_it).await;
    world.cluster.settled("own", |_| true).await;
    let pins = world.map("addon-operator-charts").await.unwrap();
    assert!(pins["data"]["cache.alpha"].as_str().unwrap().contains("0.1.0"), "{pins}");
    operator.stop().await;

    // The repository is away.
    for path in ["/index.yaml", "/alpha-0.1.0.tgz"] {
        world.repository.put(path, Reply::Status(503, Vec::new()));
    }
    let operator = world.start().await;
    world.cluster.put("addon-operator", json!({"data": {"cache": "alpha: {says: again}\n"}})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "again").await;
    operator.stop().await;
}

async fn a_dependency_may_name_its_repository_and_a_lock_its_version() {
    let world = World::new().await;
    write_module(&world, "~0.1", "catalog://corp");
    let lock = "dependencies:\n- {name: alpha, version: 0.1.1, repository: 'catalog://corp'}\n";
    world.cluster.write("modules/040-cache/Chart.lock", lock);
    let all = ["0.1.0", "0.1.1", "0.1.2"].map(|version| ("alpha", version, alpha(version)));
    world.publish("", &all);
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    let operator = world.start().await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.1").await;
    operator.stop().await;
}

scenarios! {
    a_dependency_of_a_repository_is_waited_for_and_needs_it_no_more,
    a_dependency_may_name_its_repository_and_a_lock_its_version,
}
