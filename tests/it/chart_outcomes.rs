//! Charts from repositories, end to end: what people and programs see of what is held, refused, limited and left out.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::{Value, json};

use crate::support::charts::{World, alpha, chart, condition};
use crate::support::files::root;
use crate::support::in_process::ask_socket;
use crate::support::program;
use crate::support::repository::{Packed, Reply, Repository, digest};
use crate::support::server::{self, get, ok};

const SECRETS: &str = "/api/v1/namespaces/ops/secrets";

/// A hook that keeps the values that it sees.
const SEE: &str = r#"#!/bin/bash
if [[ $1 == --config ]]; then echo '{"configVersion": "v1", "afterHelm": 1}'; else cat "$VALUES_PATH" > "$WORLD/seen"; fi
"#;

fn corp(world: &World, charts: &Value) -> Value {
    json!({"name": "corp", "url": world.repository.url(""), "charts": charts})
}

/// Returns whether the alert about held modules fires on these metrics.
fn is_alerted(metrics: &str) -> bool {
    let alerts = std::fs::read_to_string(root().join("examples/monitoring/alerts.yaml")).unwrap();
    let alerts = values::yaml::parse(&alerts).unwrap();
    let mut rules = alerts["groups"][0]["rules"].as_array().unwrap().iter();
    let rule = rules.find(|rule| rule["alert"] == "AddonOperatorModuleHeld").unwrap();
    let (selector, value) = rule["expr"].as_str().unwrap().split_once(" == ").unwrap();
    let (name, labels) = selector.strip_suffix('}').unwrap().split_once('{').unwrap();
    metrics.lines().any(|line| {
        let series = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('{')?.rsplit_once("} "));
        series.is_some_and(|(all, is)| all.contains(labels) && is == value)
    })
}

async fn b21_a_held_module_is_among_the_enabled_ones_and_in_the_metrics() {
    let world = World::new().await;
    world.write_module("alpha", "*");
    world.cluster.write("modules/050-plain/Chart.yaml", "name: plain\nversion: 0.1.0\n");
    world.cluster.write("modules/050-plain/hooks/see.sh", SEE);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\nplainEnabled: true\n");
    let operator = world.start().await;
    world.failed("Chart", "module-cache", "initChartFailed").await;
    let port = operator.port.to_string();
    let metrics = || program::get(&port, "/metrics");
    let held = |value: u8| format!("addon_operator_module_phase{{module=\"cache\",phase=\"held\"}} {value}");
    server::until("the metric", || metrics().contains(&held(1))).await;
    assert!(is_alerted(&metrics()));
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let listed = ask_socket(&world.cluster, "/module/list.json");
    assert!(listed.contains(r#""cache""#) && listed.contains("enabledModules"), "{listed}");
    let seen = std::fs::read_to_string(world.cluster.path("seen")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["global"]["enabledModules"], json!(["cache", "plain"]), "hooks see it");

    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    server::until("the end of that", || !metrics().contains(&held(1))).await;
    assert!(!is_alerted(&metrics()));
    operator.stop().await;
}

async fn b15_a_wrong_password_is_told_and_a_corrected_one_is_taken() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let index = json!({"entries": {"alpha": [{"version": "0.1.0", "urls": ["alpha-0.1.0.tgz"]}]}});
    let right = format!("Basic {}", base64("me:right-word"));
    let index = Box::new(Reply::File(index.to_string().into_bytes()));
    world.repository.put("/index.yaml", Reply::Guarded(right, "Basic realm=\"x\"".to_owned(), index));
    let secret = |password: &str| json!({"metadata": {"name": "auth"}, "stringData": {"user": "me", "password": password}});
    ok(&world.cluster.server, Method::POST, SECRETS, &secret("wrong-word")).await;
    let operator = world.start().await;
    let mut spec = corp(&world, &json!([{"name": "alpha", "versions": ["*"]}]));
    spec["authSecret"] = json!("auth");
    world.apply("Repository", "corp", spec).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("401") && !said.contains("word"), "{said}");
    ok(&world.cluster.server, Method::PATCH, &format!("{SECRETS}/auth"), &secret("right-word")).await;
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    world.synced("Chart", "alpha-corp").await;
    operator.stop().await;
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

async fn b15_credentials_go_to_no_other_server_that_an_index_names() {
    let world = World::new().await;
    let [own, other] = [Repository::plain().await, Repository::plain().await];
    let packed = alpha("0.1.0");
    let urls = [other.url("/alpha-0.1.0.tgz")];
    let index =
        json!({"entries": {"alpha": [{"version": "0.1.0", "urls": urls, "digest": digest(&packed)}]}});
    own.put("/index.yaml", Reply::File(index.to_string().into_bytes()));
    other.put("/alpha-0.1.0.tgz", Reply::File(packed));
    let secret =
        json!({"metadata": {"name": "auth"}, "stringData": {"user": "me", "password": "hunter2-word"}});
    ok(&world.cluster.server, Method::POST, SECRETS, &secret).await;
    let operator = world.cluster.start(&[&world.options()[..], &[("source-develop", "true")]].concat()).await;
    let charts = json!([{"name": "alpha", "versions": ["*"]}]);
    let spec = json!({"name": "corp", "url": own.url(""), "authSecret": "auth", "charts": charts});
    world.apply("Repository", "corp", spec).await;
    world.synced("Chart", "alpha-corp").await;
    let shows = |asked: &crate::support::repository::Asked| asked.headers.contains_key("authorization");
    assert!(own.requests().iter().all(shows));
    let asked = other.requests();
    assert!(!asked.is_empty() && !asked.iter().any(shows), "{asked:?}");
    operator.stop().await;
}

/// Returns a file that unpacks to so many zeros, and is short.
fn zeros(name: &str, files: usize, size: usize) -> Vec<u8> {
    let mut packed = Packed::new();
    packed.file(&format!("{name}/Chart.yaml"), 0o644, format!("name: {name}\nversion: 1.0.0\n").as_bytes());
    let content = vec![0; size];
    for number in 0..files {
        packed.file(&format!("{name}/files/{number}"), 0o644, &content);
    }
    packed.finish()
}

async fn b09_archives_that_are_too_much_are_refused_and_leave_nothing() {
    let world = World::new().await;
    let mut endless = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..300 {
        endless.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let all = [
        ("long", "1.0.0", Vec::new()),
        ("bomb", "1.0.0", zeros("bomb", 26, 4 << 20)),
        ("many", "1.0.0", zeros("many", 50_001, 0)),
        ("zeros", "1.0.0", endless.finish().unwrap()),
    ];
    world.publish("", &all);
    world.repository.put("/long-1.0.0.tgz", Reply::Zeros(21 << 20));
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    let limits = [
        ("long", "is longer than 20 MiB"),
        ("bomb", "104857600"),
        ("many", "50000"),
        ("zeros", "is no chart"),
    ];
    for (name, _) in limits {
        world.apply("Chart", name, json!({"name": name, "repository": "corp", "versions": ["*"]})).await;
    }
    for (name, says) in limits {
        let said = world.failed("Chart", name, "createConfigmapsFailed").await;
        assert!(said.contains(says), "{name}: {said}");
    }
    let kept = world.maps().await;
    assert!(kept.iter().all(|name| name.ends_with("-index")), "{kept:?}");
    operator.stop().await;
}

async fn b11_charts_are_made_for_what_is_switched_on_by_conditions_tags_and_aliases() {
    let world = World::new().await;
    let url = world.repository.url("");
    let needed =
        |name: &str, more: &str| format!("- {{name: {name}, version: '*', repository: '{url}', {more}}}\n");
    let dependencies = [
        needed("unwanted", "condition: unwanted.enabled"),
        needed("tagged", "tags: [rare]"),
        needed("both", "'condition': 'none.here,both.enabled', tags: [rare]"),
        needed("renamed", "alias: other, condition: other.enabled"),
        needed("renamed-off", "alias: another, condition: another.enabled"),
    ];
    let more = format!("dependencies:\n{}", dependencies.concat());
    let values = "unwanted: {enabled: false}\ntags: {rare: false}\nboth: {enabled: true}\nother: {enabled: true}\nanother: {enabled: false}\n";
    let parent = chart("parent", "1.0.0", &more, &[("values.yaml", values.as_bytes())]);
    let mut all = vec![("parent", "1.0.0", parent)];
    all.extend(
        ["unwanted", "tagged", "both", "renamed", "renamed-off"]
            .map(|name| (name, "1.0.0", chart(name, "1.0.0", "", &[]))),
    );
    world.publish("", &all);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    let spec = json!({"name": "parent", "repository": "corp", "versions": ["*"], "createDeps": true});
    world.apply("Chart", "mine", spec).await;
    let mine = world.synced("Chart", "mine").await;
    assert_eq!(mine["status"]["dependencies"], "synced");
    for (name, is_there) in
        [("both", true), ("renamed", true), ("unwanted", false), ("tagged", false), ("renamed-off", false)]
    {
        let made = world.object("Chart", &format!("{name}-corp")).await;
        assert_eq!(!made.is_null(), is_there, "{name}: {made}");
    }
    operator.stop().await;
}

async fn the_crds_of_a_chart_in_an_archive_are_there_before_its_objects() {
    let world = World::new().await;
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.io}\nspec:\n  group: example.io\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets, singular: widget}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";
    let widget = "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: one}\n";
    let files: [(&str, &[u8]); 2] =
        [("crds/widgets.yaml", crd.as_bytes()), ("templates/widget.yaml", widget.as_bytes())];
    world.write_module("gadget", "*");
    world.publish("", &[("gadget", "1.0.0", chart("gadget", "1.0.0", "", &files))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    let path = "/apis/example.io/v1/namespaces/ops/widgets/one";
    server::until_asked("the object", async || get(&world.cluster.server, path).await.is_some()).await;
    operator.stop().await;
}

async fn a_plan_shows_the_crds_that_a_version_brings() {
    let world = World::new().await;
    let crd = |plural: &str, more: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.io}}\nspec:\n  group: example.io\n  scope: Namespaced\n  names: {{kind: {plural}, plural: {plural}, singular: {plural}}}\n  versions:\n  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object{more}}}}}}}\n"
        )
    };
    let (old, new) = (crd("bolts", ""), crd("bolts", ", properties: {size: {type: integer}}"));
    let nuts = crd("nuts", "");
    let packed = |version: &'static str, bolts: &str, more: &[(&str, &[u8])]| {
        let files = [&[("crds/bolts.yaml", bolts.as_bytes())], more].concat();
        ("gadget", version, chart("gadget", version, "", &files))
    };
    world.write_module("gadget", "1.0.0");
    world.publish(
        "",
        &[packed("1.0.0", &old, &[]), packed("1.1.0", &new, &[("crds/nuts.yaml", nuts.as_bytes())])],
    );
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let bolts = format!("{crds}/bolts.example.io");
    // The API server writes its own status behind the write of the operator.
    let is_established = |crd: Option<Value>| {
        let conditions =
            crd.and_then(|crd| crd.pointer("/status/conditions").and_then(Value::as_array).cloned());
        let mut all = conditions.into_iter().flatten();
        all.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    };
    server::until_asked("the first", async || is_established(get(&world.cluster.server, &bolts).await)).await;
    world.synced("Chart", "module-cache").await;
    let before = get(&world.cluster.server, &bolts).await;
    let plan =
        |version: &str| ask_socket(&world.cluster, &format!("/chart/plan?name=cache&version={version}"));
    let same = tokio::task::block_in_place(|| plan("1.0.0"));
    assert!(same.ends_with("No diff found"), "{same}");
    let other = tokio::task::block_in_place(|| plan("1.1.0"));
    assert!(!other.contains("listKind"), "what the API server fills in is no difference: {other}");
    for part in [
        "--- live/CustomResourceDefinition/bolts.example.io",
        "+          size:",
        "+++ rendered/CustomResourceDefinition/nuts.example.io",
        "+  name: nuts.example.io",
    ] {
        assert!(other.contains(part), "{part}: {other}");
    }
    assert_eq!(get(&world.cluster.server, &bolts).await, before);
    assert_eq!(
        get(&world.cluster.server, &format!("{crds}/nuts.example.io")).await,
        None,
        "nothing is written"
    );
    operator.stop().await;
}

async fn b06_one_bad_constraint_hinders_no_good_one() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.2.0", alpha("0.2.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    let spec = json!({"name": "alpha", "repository": "corp", "versions": ["not one", "0.1.0", "9"]});
    world.apply("Chart", "mine", spec).await;
    let said = world.failed("Chart", "mine", "initChartFailed").await;
    assert!(said.contains("\"not one\"") && said.contains("\"9\""), "{said}");
    let has_one = |object: &Value| {
        object["status"]["resolved"]
            == json!([{
                "constraint": "0.1.0", "version": "0.1.0", "digest": format!("sha256:{}", digest(&alpha("0.1.0"))),
            }])
    };
    let mine = world.settled("Chart", "mine", has_one).await;
    assert_eq!(mine["status"]["versions"], "notSynced");
    let maps = world.maps().await;
    assert!(maps.contains(&"helm-tmpl-corp-alpha-0.1.0".to_owned()), "{maps:?}");
    assert!(!maps.iter().any(|name| name.contains("0.2.0")), "{maps:?}");
    operator.stop().await;
}

async fn an_archive_that_several_charts_want_is_fetched_once() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    world.repository.put("/alpha-0.1.0.tgz", Reply::Gated(alpha("0.1.0")));
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    world.synced("Repository", "corp").await;
    let names = ["one", "two", "three"];
    for name in names {
        let spec = json!({"name": "alpha", "repository": "corp", "versions": ["0.1.0", "*"]});
        world.apply("Chart", name, spec).await;
    }
    world.repository.busy(1).await;
    let port = operator.port.to_string();
    let is_at_work = |name: &str| {
        let queue = program::get(&port, "/queue?format=json");
        let body = queue.split("\r\n\r\n").nth(1).unwrap_or_default();
        let read: Value = serde_json::from_str(body).unwrap_or_default();
        read.to_string().contains(&format!("Chart {name}"))
    };
    server::until("all of them", || names.iter().all(|name| is_at_work(name))).await;
    world.repository.open_gate();
    for name in names {
        world.synced("Chart", name).await;
    }
    let asked = world.repository.requests();
    assert_eq!(asked.iter().filter(|asked| asked.path == "/alpha-0.1.0.tgz").count(), 1, "{asked:?}");
    operator.stop().await;
}

async fn b16_charts_with_long_names_are_kept_and_those_that_say_something_else_are_told() {
    let world = World::new().await;
    let long = format!("n{}", "ame".repeat(40));
    let other = chart("beta", "2.0.0", "", &[]);
    // A name in an archive is short.
    let mut packed = Packed::new();
    packed.file("long/Chart.yaml", 0o644, format!("name: {long}\nversion: 1.0.0\n").as_bytes());
    world.publish("", &[(&long, "1.0.0", packed.finish()), ("alpha", "v1.0.0", other)]);
    let operator = world.start().await;
    let charts = json!([{"name": long, "versions": ["*"]}, {"name": "alpha", "versions": ["*"]}]);
    world.apply("Repository", "corp", corp(&world, &charts)).await;
    let kept = world.synced("Chart", &format!("{long}-corp")).await;
    let label = kept["metadata"]["labels"]["yaho.soer3n.dev/chart"].as_str().unwrap();
    assert!(label.len() <= 63 && long.starts_with(&label[..50]), "{label}");
    assert!(world.map(&format!("helm-default-corp-{long}-1.0.0")).await.is_some());
    let told = world.synced("Chart", "alpha-corp").await;
    let said = condition(&told)["message"].as_str().unwrap();
    assert_eq!(
        said,
        "the index says that the archive is alpha v1.0.0, and its Chart.yaml that it is beta 2.0.0"
    );
    operator.stop().await;
}

/// Returns the reasons of the Events about an object of this kind, in the order of their names.
async fn reasons(world: &World, namespace: &str, (kind, name): (&str, &str)) -> Vec<String> {
    let list = get(&world.cluster.server, &format!("/api/v1/namespaces/{namespace}/events")).await;
    let events = list.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
    let is_about = |event: &&Value| {
        [&event["involvedObject"]["kind"], &event["involvedObject"]["name"]] == [&json!(kind), &json!(name)]
    };
    let about = events.iter().filter(is_about);
    about.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn what_becomes_of_charts_is_told_by_events_about_them() {
    let world = World::new().await;
    let follows =
        "chart: {repository: corp, name: alpha, version: '~0.1', autoUpgrade: true}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", follows);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    let operator = world.start().await;
    let about = |kind: &'static str, name: &'static str, reason: &'static str| {
        let world = &world;
        async move {
            let is_told =
                async || reasons(world, "default", (kind, name)).await.iter().any(|told| told == reason);
            server::until_asked(reason, is_told).await;
        }
    };
    world.failed("Chart", "module-cache", "initChartFailed").await;
    about("Chart", "module-cache", "ChartFailed").await;
    world.apply("Repository", "corp", corp(&world, &json!([]))).await;
    about("Repository", "corp", "RepositoryFailed").await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    about("Repository", "corp", "RepositorySynced").await;
    about("Chart", "module-cache", "ChartSynced").await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    let pinned = async || {
        let pins = world.map("addon-operator-charts").await.unwrap_or_default();
        pins["data"]["cache"].as_str().is_some_and(|pin| pin.contains("\"isGood\":true"))
    };
    server::until_asked("the pin", pinned).await;
    // The next version can't be installed.
    let broken = ("templates/shown.yaml", b"{{ fail \"it can't be installed\" }}".as_slice());
    let all =
        [("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.1.1", chart("alpha", "0.1.1", "", &[broken]))];
    world.publish("", &all);
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "2"})).await;
    let told = async || {
        let list = get(&world.cluster.server, "/api/v1/namespaces/ops/events").await.unwrap_or_default();
        let text = list.to_string();
        text.contains("ChartUpgraded") && text.contains("ChartRolledBack")
    };
    server::until_asked("the upgrade and the way back", told).await;
    operator.stop().await;
}

async fn the_index_map_of_a_chart_outside_of_the_list_outlives_the_chart() {
    let world = World::new().await;
    let beta = chart("beta", "0.1.0", "", &[]);
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("beta", "0.1.0", beta)]);
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([{"name": "alpha", "versions": ["*"]}]))).await;
    world.apply("Chart", "mine", json!({"name": "beta", "repository": "corp", "versions": ["*"]})).await;
    let mine = world.synced("Chart", "mine").await;
    world.synced("Chart", "alpha-corp").await;
    world.delete("Chart", "mine").await;
    world.cluster.settled("helm-default-corp-beta-0.1.0", Value::is_null).await;
    world.settled("Repository", "corp", |object| object["status"]["charts"] == 1).await;
    let map = world.map("helm-corp-beta-index").await.unwrap();
    let owners = map["metadata"]["ownerReferences"].as_array().unwrap();
    assert!(owners.iter().all(|owner| owner["uid"] != mine["metadata"]["uid"]), "{map}");
    operator.stop().await;
}

async fn the_status_of_a_chart_says_of_what_type_it_is_and_that_it_is_deprecated() {
    let world = World::new().await;
    let packed = alpha("0.1.0");
    world.publish("", &[("alpha", "0.1.0", packed.clone())]);
    let entry = json!({"version": "0.1.0", "urls": ["alpha-0.1.0.tgz"], "digest": digest(&packed), "type": "library", "deprecated": true});
    let index = json!({"entries": {"alpha": [entry]}}).to_string();
    world.repository.put("/index.yaml", Reply::File(index.into_bytes()));
    let operator = world.start().await;
    world.apply("Repository", "corp", corp(&world, &json!([{"name": "alpha", "versions": ["*"]}]))).await;
    let status = world.synced("Chart", "alpha-corp").await["status"].clone();
    assert_eq!([&status["type"], &status["deprecated"]], [&json!("library"), &json!(true)]);
    operator.stop().await;
}

scenarios! {
    b21_a_held_module_is_among_the_enabled_ones_and_in_the_metrics,
    b15_a_wrong_password_is_told_and_a_corrected_one_is_taken,
    b15_credentials_go_to_no_other_server_that_an_index_names,
    b09_archives_that_are_too_much_are_refused_and_leave_nothing,
    b11_charts_are_made_for_what_is_switched_on_by_conditions_tags_and_aliases,
    the_crds_of_a_chart_in_an_archive_are_there_before_its_objects,
    a_plan_shows_the_crds_that_a_version_brings,
    b06_one_bad_constraint_hinders_no_good_one,
    an_archive_that_several_charts_want_is_fetched_once,
    b16_charts_with_long_names_are_kept_and_those_that_say_something_else_are_told,
    what_becomes_of_charts_is_told_by_events_about_them,
    the_index_map_of_a_chart_outside_of_the_list_outlives_the_chart,
    the_status_of_a_chart_says_of_what_type_it_is_and_that_it_is_deprecated,
}
