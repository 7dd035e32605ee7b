//! Modules that name a chart: what is pinned on their releases, what they hold back, and what becomes of archives that are
//! published again.

use addon_operator::app::Outcome;
use http::Method;
use serde_json::{Value, json};

use crate::support::charts::{World, alpha, chart};
use crate::support::program;
use crate::support::repository::{Packed, digest};
use crate::support::server::{self, ok};

/// Returns the metadata of the record of the newest revision of a release.
async fn record(world: &World, name: &str) -> Value {
    let path = "/api/v1/namespaces/ops/secrets?labelSelector=owner%3Dhelm%2Cname%3D".to_owned() + name;
    let list = server::get(&world.cluster.server, &path).await.unwrap();
    let newest = list["items"].as_array().unwrap().iter().max_by_key(|secret| {
        secret["metadata"]["labels"]["version"].as_str().unwrap().parse::<u32>().unwrap()
    });
    newest.unwrap()["metadata"].clone()
}

async fn publish_corp(world: &World, charts: &[(&str, &str, Vec<u8>)]) {
    world.publish("", charts);
    // Another URL of the same place: it is looked at again at once.
    let slashes = world.object("Repository", "corp").await["spec"]["url"]
        .as_str()
        .map_or(0, |url| url.bytes().rev().take_while(|byte| *byte == b'/').count());
    let url = format!("{}{}", world.repository.url(""), if slashes == 0 { "/" } else { "" });
    world.apply("Repository", "corp", json!({"name": "corp", "url": url})).await;
}

async fn the_version_and_the_digest_are_on_the_release() {
    let world = World::new().await;
    world.write_module("alpha", "~0.1");
    let operator = world.start().await;
    publish_corp(&world, &[("alpha", "0.1.0", alpha("0.1.0"))]).await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    let first = digest(&alpha("0.1.0"));
    server::until_asked("the record", async || {
        record(&world, "cache").await["labels"]["status"] == "deployed"
    })
    .await;
    let found = record(&world, "cache").await;
    assert_eq!(found["labels"]["addon-operator.io/chart-version"], "0.1.0");
    assert_eq!(found["labels"]["addon-operator.io/package"], first[..40]);
    assert_eq!(found["annotations"]["addon-operator.io/package"], format!("corp/alpha 0.1.0 sha256:{first}"));
    let part = world.map("helm-pkg-corp-alpha-0.1.0-1").await.unwrap();
    assert_eq!(
        part["metadata"]["labels"]["addon-operator.io/package"],
        first[..40],
        "one selector finds both"
    );

    // The next version renders the same: no revision is made, and the mark moves.
    let same = chart("alpha", "0.1.1", "# another\n", &[("values.yaml", b"says: hello\n"), ("templates/shown.yaml",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {says: {{ .Values.says }}, version: '0.1.0'}\n")]);
    publish_corp(&world, &[("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.1.1", same)]).await;
    world.write_module("alpha", ">=0.1.1");
    server::until_asked("the mark", async || {
        record(&world, "cache").await["labels"]["addon-operator.io/chart-version"] == "0.1.1"
    })
    .await;
    assert_eq!(record(&world, "cache").await["labels"]["version"], "1");
    operator.stop().await;
}

async fn what_a_module_has_pinned_stays_when_its_archive_is_replaced() {
    let world = World::new().await;
    world.write_module("alpha", "0.1.0");
    let operator = world.start().await;
    publish_corp(&world, &[("alpha", "0.1.0", alpha("0.1.0"))]).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["0.1.0"]})).await;
    world.synced("Chart", "mine").await;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {says: other}\n";
    let other = chart("alpha", "0.1.0", "", &[("templates/shown.yaml", map.as_bytes())]);
    publish_corp(&world, &[("alpha", "0.1.0", other.clone())]).await;
    let has_changed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "DigestChanged")
    };
    world.settled("Chart", "mine", has_changed).await;
    world.annotate("Chart", "mine", json!({"addon-operator.io/reprocess": "1"})).await;
    world.settled("Chart", "mine", |object| object["status"]["reprocessed"] == 1).await;
    let part = world.map("helm-pkg-corp-alpha-0.1.0-1").await.unwrap();
    let label = |map: &Value| map["metadata"]["labels"]["addon-operator.io/package"].clone();
    assert_eq!(label(&part), digest(&other)[..40]);
    let owners = part["metadata"]["ownerReferences"].as_array().unwrap();
    assert!(owners.iter().all(|owner| owner["kind"] == "Chart"), "{part}");
    operator.stop().await;

    // The module is installed from what it has pinned.
    let operator = world.start().await;
    world.cluster.put("addon-operator", json!({"data": {"cache": "says: again\n"}})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "again").await;
    let aside = format!("helm-pkg-corp-alpha-0.1.0-{}-1", &digest(&alpha("0.1.0"))[..40]);
    let kept = world.map(&aside).await.unwrap();
    assert_eq!(kept["metadata"]["ownerReferences"][0]["name"], "addon-operator-charts");

    // Somebody says of its own Chart that the new archive is to be taken. The old one is what it would go back to.
    world.annotate("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "other").await;
    assert!(world.map(&aside).await.is_some());
    world.cluster.put("addon-operator", json!({"data": {"cacheEnabled": "false"}})).await;
    world.cluster.settled(&aside, Value::is_null).await;
    assert!(world.map("helm-pkg-corp-alpha-0.1.0-1").await.is_some(), "a Chart still wants it");
    operator.stop().await;
}

async fn a_held_module_holds_back_neither_main_nor_readyz_and_once_ends_with_1() {
    let world = World::new().await;
    world.write_module("alpha", "~0.1");
    let operator = world.start().await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let held = world.settled("Chart", "module-cache", |object| !object["status"].is_null()).await;
    assert_eq!(held["status"]["versions"], "notSynced");
    let queues = crate::support::in_process::ask_socket(&world.cluster, "/queue/list.text");
    assert!(queues.contains("- 'main' queue: empty."), "{queues}");
    let why = crate::support::in_process::ask_socket(&world.cluster, "/why/module/cache");
    assert!(why.contains("held"), "{why}");
    assert_eq!(operator.stop().await, Outcome::Done);
    assert_eq!(world.cluster.once().await, Outcome::NotConverged);
}

async fn a_bundle_of_a_source_may_name_its_chart() {
    let world = World::new().await;
    let meta = "id: id-cache\nname: cache\nversion: 1.0.0\ndescription: A test.\ndisplayName: Cache\n";
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file(
        "module.yaml",
        0o644,
        b"chart: {repository: corp, name: alpha, version: '*'}\nvaluesLayout: root\n",
    );
    packed.file("values.yaml", 0o644, b"cache: {says: bundled}\n");
    let bundle = packed.finish();
    let index = crate::support::repository::index(&[("cache", "1.0.0", bundle.clone())], true);
    world.repository.put("/sources/index.yaml", crate::support::repository::Reply::File(index));
    world.repository.put("/sources/cache-1.0.0.tgz", crate::support::repository::Reply::File(bundle));
    world.cluster.put("addon-operator", json!({"data": {"cacheEnabled": "true"}})).await;
    let operator = world.start().await;
    let object = |kind: &str, metadata: Value| {
        json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": kind, "metadata": metadata,
            "spec": {"repositories": [{"url": world.repository.url("/sources/index.yaml")}]},
        })
    };
    let cluster = object("ClusterAddonsConfiguration", json!({"name": "platform"}));
    let path = "/apis/addons.kyma-project.io/v1alpha1/clusteraddonsconfigurations";
    ok(&world.cluster.server, Method::POST, path, &cluster).await;
    publish_corp(&world, &[("alpha", "0.1.0", alpha("0.1.0"))]).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "bundled").await;
    let found = record(&world, "cache").await;
    assert_eq!(found["annotations"]["addon-operator.io/source"], "ClusterAddonsConfiguration platform");
    assert!(
        found["annotations"]["addon-operator.io/package"].as_str().unwrap().starts_with("corp/alpha 0.1.0")
    );

    // A namespace brings charts of its own alone: Repositories are read with the credentials of the operator.
    let guest = object("AddonsConfiguration", json!({"name": "team", "namespace": "ops"}));
    let path = "/apis/addons.kyma-project.io/v1alpha1/namespaces/ops/addonsconfigurations";
    ok(&world.cluster.server, Method::POST, path, &guest).await;
    let path = format!("{path}/team");
    server::until_asked("the status", async || {
        let object = server::get(&world.cluster.server, &path).await.unwrap();
        object["status"]["phase"] == "Failed"
            && object.to_string().contains("the bundle has chart in module.yaml")
    })
    .await;
    operator.stop().await;
}

/// Runs a command about charts. Returns its exit code and what it prints.
fn ask_about_charts(world: &World, arguments: &[&str]) -> (i32, String) {
    let socket = world.cluster.path("socket").to_string_lossy().into_owned();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_addon-operator"));
    let output =
        command.arg("chart").args(arguments).args(["--debug-unix-socket", &socket]).output().unwrap();
    let text = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned());
    (output.status.code().unwrap(), text.concat())
}

/// Returns an operator with a module that stays with 0.1.0 while 0.2.0 is there.
async fn outdated_module(world: &World) -> crate::support::in_process::Operator {
    world.write_module("alpha", "0.1.0");
    let operator = world.start().await;
    publish_corp(world, &[("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.2.0", alpha("0.2.0"))]).await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    world.synced("Chart", "module-cache").await;
    server::until_asked("the end of the revision", async || {
        record(world, "cache").await["labels"]["status"] == "deployed"
    })
    .await;
    operator
}

async fn people_see_what_is_kept_what_is_offered_and_what_is_newer() {
    let world = World::new().await;
    let operator = outdated_module(&world).await;
    let directory = world.cluster.path("pulled");
    std::fs::create_dir(&directory).unwrap();
    let chart = |arguments: &[&str]| ask_about_charts(&world, arguments);
    let words = |text: &str, line: usize| -> Vec<String> {
        text.lines().nth(line).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    let (code, list) = chart(&["list"]);
    assert_eq!(
        (code, words(&list, 1)),
        (
            0,
            ["module-cache", "corp/alpha", "synced", "0.1.0", "(0.1.0)", "0.2.0", "cache"]
                .map(str::to_owned)
                .into()
        )
    );
    let (_, outdated) = chart(&["outdated"]);
    assert_eq!(words(&outdated, 1), ["cache", "corp/alpha", "0.1.0", "0.1.0", "0.1.0", "0.2.0"]);
    let (_, versions) = chart(&["versions", "corp/alpha"]);
    assert_eq!(
        (words(&versions, 1), words(&versions, 2)),
        (vec!["0.2.0".to_owned()], vec!["0.1.0".to_owned(), "kept".to_owned()])
    );
    // As its author wrote it.
    assert_eq!(chart(&["values", "cache"]), (0, "# What it says.\nsays: hello\n".to_owned()));
    let (code, problem) = chart(&["values", "cache", "--version", "0.2.0"]);
    assert!(
        code == 1 && problem.contains("version 0.2.0 of chart alpha of Repository corp is not kept"),
        "{problem}"
    );

    let path = directory.to_string_lossy().into_owned();
    let (code, pulled) = chart(&["pull", "cache", "-d", &path]);
    assert!(code == 0 && pulled.contains(&digest(&alpha("0.1.0"))), "{pulled}");
    assert_eq!(std::fs::read(directory.join("alpha-0.1.0.tgz")).unwrap(), alpha("0.1.0"));
    let newer = ["pull", "corp/alpha", "--version", "0.2.0", "-d", &path];
    let (code, problem) = chart(&newer);
    assert!(code == 1 && problem.contains("version 0.2.0 of chart alpha"), "{problem}");
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["0.2.0"]})).await;
    world.synced("Chart", "mine").await;
    let (code, pulled) = chart(&newer);
    assert_eq!(code, 0, "{pulled}");
    assert_eq!(std::fs::read(directory.join("alpha-0.2.0.tgz")).unwrap(), alpha("0.2.0"));
    operator.stop().await;
}

async fn a_plan_shows_what_another_version_would_change_and_writes_nothing() {
    let world = World::new().await;
    let operator = outdated_module(&world).await;
    let chart = |arguments: &[&str]| ask_about_charts(&world, arguments);
    let before = world.maps().await;
    let revision = record(&world, "cache").await["resourceVersion"].clone();
    let (code, plan) = chart(&["plan", "cache", "--version", "0.2.0"]);
    assert!(
        code == 0 && plan.contains("0.1.0") && plan.contains("0.2.0") && plan.contains("shown"),
        "{plan}"
    );
    assert_eq!(chart(&["plan", "cache", "--version", "0.1.0"]), (0, "No diff found\n".to_owned()));
    assert!(chart(&["plan", "nobody"]).1.contains("there is no module \"nobody\""));
    assert!(chart(&["pull", "cahce"]).1.contains("did you mean cache?"));
    assert_eq!(world.maps().await, before);
    assert_eq!(record(&world, "cache").await["resourceVersion"], revision);

    let metrics = program::get(&operator.port.to_string(), "/metrics");
    for line in [
        "addon_operator_chart_repositories{synced=\"true\"} 1",
        "addon_operator_chart_versions{repository=\"corp\"} 1",
        "addon_operator_chart_fetch_seconds_count{outcome=\"fetched\",what=\"archive\"}",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let page = program::get(&operator.port.to_string(), "/");
    assert!(
        page.contains("<a href=\"#charts\">Charts (1)</a>") && page.contains("stays with 0.1.0"),
        "{page}"
    );
    operator.stop().await;
}

scenarios! {
    the_version_and_the_digest_are_on_the_release,
    what_a_module_has_pinned_stays_when_its_archive_is_replaced,
    a_held_module_holds_back_neither_main_nor_readyz_and_once_ends_with_1,
    a_bundle_of_a_source_may_name_its_chart,
    people_see_what_is_kept_what_is_offered_and_what_is_newer,
    a_plan_shows_what_another_version_would_change_and_writes_nothing,
}
