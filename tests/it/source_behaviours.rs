//! What configurations of sources do to one another, and what stays of their modules: the operator on an API server in this
//! process, and in `tests/cluster` on a real one. The names of tests are those of the behaviours in the specification.

use std::sync::{Arc, Mutex};

use addon_operator::app::{self, Outcome};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::in_process::{Operator, ask_socket, observed};
use crate::support::pause::pause;
use crate::support::program;
use crate::support::repository::{Packed, Reply, Repository, index};
use crate::support::server::{get, ok, send, until, until_asked};
use crate::support::source_cluster::{SOURCES, World, phase, state};

const RECORDS: &str = "/api/v1/namespaces/ops/secrets/sh.helm.release.v1";

/// An addon of an index: its name and its id.
type Addon<'a> = (&'a str, &'a str);

/// Returns a module of one ConfigMap. With `hook` it has one, which runs `onStartup` and `afterDeleteHelm`.
fn module(name: &str, id: &str, hook: Option<&str>) -> Vec<u8> {
    let meta = format!("id: {id}\nname: {name}\nversion: 1.0.0\ndescription: A test.\ndisplayName: Test\n");
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, format!("name: {name}\nversion: 0.1.0\n").as_bytes());
    packed.file("templates/map.yaml", 0o644, map.as_bytes());
    if let Some(what) = hook {
        let hook = format!(
            "#!/bin/bash\nif [[ \"${{1:-}}\" == --config ]]; then \
             echo '{{\"configVersion\":\"v1\",\"onStartup\":1,\"afterDeleteHelm\":1}}'; exit; fi\n{what}\n"
        );
        packed.file("hooks/run.sh", 0o755, hook.as_bytes());
    }
    packed.finish()
}

/// Publishes an index with these addons in a directory of its own, and returns its URL.
fn offer(world: &World, place: &str, addons: &[Addon<'_>]) -> String {
    let bundles: Vec<(&str, &str, Vec<u8>)> =
        addons.iter().map(|(name, id)| (*name, "1.0.0", module(name, id, None))).collect();
    world.repository.put(&format!("/{place}/index.yaml"), Reply::File(index(&bundles, false)));
    for (name, version, packed) in bundles {
        world.repository.put(&format!("/{place}/{name}-{version}.tgz"), Reply::File(packed));
    }
    world.repository.url(&format!("/{place}/index.yaml"))
}

async fn edit(world: &World, name: &str, spec: Value) {
    ok(&world.cluster.server, Method::PATCH, &format!("{SOURCES}/{name}"), &json!({ "spec": spec })).await;
}

async fn delete(world: &World, name: &str) {
    ok(&world.cluster.server, Method::DELETE, &format!("{SOURCES}/{name}"), &Value::Null).await;
}

/// Waits until a configuration was processed as it is and came to this phase.
async fn comes_to(world: &World, name: &str, expected: &str) -> Value {
    let is_current = |object: &Value| {
        phase(object) == expected
            && object["status"]["observedGeneration"] == object["metadata"]["generation"]
    };
    world.settled(name, is_current).await;
    world.object(name).await
}

async fn comes_to_state(world: &World, name: &str, expected: &str) {
    world.settled(name, |object| state(object) == expected).await;
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

fn counter(object: &Value) -> i64 {
    object["spec"]["reprocessRequest"].as_i64().unwrap_or_default()
}

/// Returns the reason and the message of each addon, or `Ready`.
fn addons(object: &Value) -> Vec<(String, String)> {
    let repositories = object["status"]["repositories"].as_array().into_iter().flatten();
    let lines = repositories.flat_map(|repository| repository["addons"].as_array().into_iter().flatten());
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    lines
        .map(|line| match text(line, "reason") {
            reason if reason.is_empty() => (text(line, "status"), String::new()),
            reason => (reason, text(line, "message")),
        })
        .collect()
}

/// Returns whether there is this revision of the release of a module.
async fn has_revision(world: &World, name: &str, number: u32) -> bool {
    get(&world.cluster.server, &format!("{RECORDS}.{name}.v{number}")).await.is_some()
}

async fn a05_a06_a08_a28_a_conflict_names_the_other_side_and_leaves_it_alone() {
    let world = World::new().await;
    world.cluster.write("modules/010-base/Chart.yaml", "name: base\nversion: 0.1.0\n");
    world.cluster.write("modules/010-base/templates/map.yaml", "");
    let operator = world.start().await;
    world.apply("first", &[offer(&world, "a", &[("web", "one")])]).await;
    let first = comes_to(&world, "first", "Ready").await;

    // Another name with the same id, beside an addon that is fine.
    world.apply("second", &[offer(&world, "b", &[("db", "two"), ("other", "one")])]).await;
    let second = comes_to(&world, "second", "Failed").await;
    let [(ready, _), (reason, message)] = addons(&second).try_into().unwrap();
    assert_eq!((ready.as_str(), reason.as_str()), ("Ready", "ConflictWithAlreadyRegisteredAddon"));
    assert!(
        message.contains("ClusterAddonsConfiguration first") && message.contains("web:1.0.0"),
        "{message}"
    );
    assert_eq!(version(&world.object("first").await), version(&first));

    // What a failed one lists as fine is free.
    world.apply("third", &[offer(&world, "c", &[("db", "two")])]).await;
    comes_to(&world, "third", "Ready").await;

    world.apply("fourth", &[offer(&world, "d", &[("base", "four")])]).await;
    let fourth = addons(&comes_to(&world, "fourth", "Failed").await);
    assert_eq!(fourth[0].0, "ConflictWithAlreadyRegisteredAddon");
    assert!(fourth[0].1.contains("built-in module") && fourth[0].1.contains("010-base"), "{fourth:?}");

    // Two of one configuration: each names the other, with the same words each time.
    let urls = [offer(&world, "e", &[("log", "five")]), offer(&world, "f", &[("trace", "five")])];
    world.apply("fifth", &urls).await;
    let before = addons(&comes_to(&world, "fifth", "Failed").await);
    for (line, other) in before.iter().zip(["trace:1.0.0", "log:1.0.0"]) {
        assert_eq!(line.0, "ConflictInSpecifiedRepositories");
        assert!(line.1.contains(other), "{line:?}");
    }
    for round in 1..=10 {
        edit(&world, "fifth", json!({"reprocessRequest": round})).await;
        assert_eq!(addons(&comes_to(&world, "fifth", "Failed").await), before);
    }
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a14_a16_a_deletion_removes_then_raises_the_counters_of_all_that_failed_then_goes() {
    let world = World::new().await;
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let client = observed(&world.cluster.server, "ops", move |request| {
        if request.method() != Method::GET {
            noted.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
        }
    });
    let (shutdown, ended) = watch::channel(false);
    // Those that failed are not looked at again meanwhile.
    let [allow, authority, _] = world.options();
    let options = [allow, authority, ("source-relist", "1h")];
    let running = tokio::spawn(app::run(world.cluster.around(client, false, ended, &options), drop));
    let operator = Operator { port: 0, shutdown, running };
    world.enable("web", true).await;
    let web = offer(&world, "a", &[("web", "one")]);
    world.apply("one", std::slice::from_ref(&web)).await;
    comes_to_state(&world, "one", "Running").await;
    world.apply("two", &[web]).await;
    world.apply("four", &[world.repository.url("/gone.yaml")]).await;
    world.apply("five", &[offer(&world, "b", &[("db", "two")])]).await;
    world.apply("six", &[world.repository.url("/gone.yaml")]).await;
    for (name, expected) in [("two", "Failed"), ("four", "Failed"), ("five", "Ready"), ("six", "Failed")] {
        comes_to(&world, name, expected).await;
    }

    // One that failed and holds nothing goes without a trace.
    let before = [world.object("two").await, world.object("four").await];
    delete(&world, "six").await;
    world.settled("six", Value::is_null).await;
    assert_eq!([world.object("two").await, world.object("four").await], before);
    assert!(has_revision(&world, "web", 1).await);

    let five = world.object("five").await;
    asked.lock().unwrap().clear();
    delete(&world, "one").await;
    world.settled("one", Value::is_null).await;
    comes_to_state(&world, "two", "Running").await;
    for name in ["two", "four"] {
        assert_eq!(counter(&world.object(name).await), 1, "{name}");
    }
    assert_eq!(version(&world.object("five").await), version(&five));
    let asked = asked.lock().unwrap().clone();
    let place = |what: String| {
        asked.iter().position(|request| *request == what).unwrap_or_else(|| panic!("no {what}: {asked:?}"))
    };
    let removed = place(format!("DELETE {RECORDS}.web.v1"));
    let raised = ["two", "four"].map(|name| place(format!("PATCH {SOURCES}/{name}")));
    let gone = place(format!("PATCH {SOURCES}/one"));
    assert!(raised.iter().all(|raised| removed < *raised && *raised < gone), "{asked:?}");
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a15_a_deletion_raises_the_counters_of_its_namespace_only() {
    let world = World::new().await;
    let server = &world.cluster.server;
    let place = |namespace: &str| {
        format!("/apis/addons.kyma-project.io/v1alpha1/namespaces/{namespace}/addonsconfigurations")
    };
    let object = |name: &str, url: &str| {
        json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "AddonsConfiguration",
            "metadata": {"name": name}, "spec": {"repositories": [{"url": url}]},
        })
    };
    let gone = world.repository.url("/gone.yaml");
    let good = offer(&world, "a", &[("web", "one")]);
    for namespace in ["red", "blue"] {
        ok(server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        ok(server, Method::POST, &place(namespace), &object("good", &good)).await;
        ok(server, Method::POST, &place(namespace), &object("bad", &gone)).await;
    }
    world.apply("bad", &[gone]).await;
    let operator = world.start().await;
    comes_to(&world, "bad", "Failed").await;
    let at = async |namespace: &str, name: &str| get(server, &format!("{}/{name}", place(namespace))).await;
    for namespace in ["red", "blue"] {
        let is_done = async || {
            let [good, bad] = [at(namespace, "good").await.unwrap(), at(namespace, "bad").await.unwrap()];
            phase(&good) == "Ready" && phase(&bad) == "Failed"
        };
        until_asked("both are processed", is_done).await;
    }
    ok(server, Method::DELETE, &format!("{}/good", place("red")), &Value::Null).await;
    until_asked("the end", async || at("red", "good").await.is_none()).await;
    assert_eq!(counter(&at("red", "bad").await.unwrap()), 1);
    assert_eq!(counter(&at("blue", "bad").await.unwrap()), 0);
    assert_eq!(counter(&world.object("bad").await), 0);
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a11_a13_an_update_keeps_what_is_on_both_sides_and_an_outage_costs_no_write() {
    let world = World::new().await;
    let options = [world.options().as_slice(), &[("source-retry", "100ms")]].concat();
    let operator = world.cluster.start(&options).await;
    world.cluster.put("addon-operator", json!({"data": {"webEnabled": "true", "dbEnabled": "true"}})).await;
    world.apply("platform", &[offer(&world, "a", &[("db", "two"), ("web", "one")])]).await;
    world.settled("platform", |object| object["status"]["modules"] == "2/2").await;

    edit(&world, "platform", json!({"repositories": [{"url": offer(&world, "b", &[("web", "one")])}]})).await;
    let updated = comes_to(&world, "platform", "Ready").await;
    assert_eq!(addons(&updated).len(), 1, "{updated}");
    world.cluster.settled("db", Value::is_null).await;
    comes_to_state(&world, "platform", "Running").await;
    // The record of a release goes after its objects.
    until_asked("the end of the release", async || !has_revision(&world, "db", 1).await).await;
    assert!(has_revision(&world, "web", 1).await && !has_revision(&world, "web", 2).await);

    // The repository is down: the modules go on, and the object is written once.
    world.repository.put("/b/index.yaml", Reply::Status(503, Vec::new()));
    edit(&world, "platform", json!({"reprocessRequest": 1})).await;
    let down = comes_to(&world, "platform", "Failed").await;
    assert_eq!(down["status"]["repositories"][0]["reason"], "FetchingIndexError");
    world.repository.asked();
    let mut asked = 0;
    while asked < 3 {
        asked += world.repository.asked().len();
        pause().await;
    }
    assert_eq!(version(&world.object("platform").await), version(&down));
    offer(&world, "b", &[("web", "one")]);
    comes_to(&world, "platform", "Ready").await;
    comes_to_state(&world, "platform", "Running").await;
    assert!(!has_revision(&world, "web", 2).await);
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a17_a31_a_bad_edit_frees_the_ids_and_a_deletion_without_an_operator_is_made_up_for() {
    let world = World::new().await;
    let operator = world.start().await;
    world.enable("web", true).await;
    let good = offer(&world, "a", &[("web", "one")]);
    let bad = json!([{"url": world.repository.url("/bad/index.yaml")}]);
    world.repository.put("/bad/index.yaml", Reply::File(index(&[("web", "1.0.0", Vec::new())], false)));
    world.repository.put("/bad/web-1.0.0.tgz", Reply::File(b"no archive".to_vec()));
    world.apply("one", std::slice::from_ref(&good)).await;
    comes_to_state(&world, "one", "Running").await;

    edit(&world, "one", json!({ "repositories": bad })).await;
    comes_to(&world, "one", "Failed").await;
    comes_to_state(&world, "one", "Retained").await;
    // Another one takes the module over where it is.
    world.apply("two", &[good]).await;
    comes_to_state(&world, "two", "Running").await;
    assert!(has_revision(&world, "web", 1).await && !has_revision(&world, "web", 2).await);
    edit(&world, "two", json!({"repositories": bad, "failurePolicy": "Remove"})).await;
    comes_to(&world, "two", "Failed").await;
    world.cluster.settled("web", Value::is_null).await;
    edit(&world, "two", json!({"repositories": [{"url": offer(&world, "a", &[("web", "one")])}]})).await;
    comes_to_state(&world, "two", "Running").await;
    assert_eq!(operator.stop().await, Outcome::Done);

    delete(&world, "two").await;
    assert!(world.object("two").await["metadata"]["deletionTimestamp"].is_string());
    let operator = world.start().await;
    world.settled("two", Value::is_null).await;
    world.cluster.settled("web", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a34_a_better_bundle_comes_in_front_of_the_module_that_fails_and_two_may_swap_their_addons() {
    let world = World::new().await;
    let operator = world.start().await;
    world.cluster.put("addon-operator", json!({"data": {"webEnabled": "true", "dbEnabled": "true"}})).await;
    let broken = module("web", "one", Some("echo tried >>\"$WORLD/tried\"; exit 1"));
    let web = offer(&world, "a", &[("web", "one")]);
    world.repository.put("/a/web-1.0.0.tgz", Reply::File(broken));
    world.apply("one", std::slice::from_ref(&web)).await;
    until("attempts", || world.lines("tried").len() > 3).await;
    // Nothing behind it in the queue would ever be its turn.
    offer(&world, "a", &[("web", "one")]);
    edit(&world, "one", json!({"reprocessRequest": 1})).await;
    comes_to_state(&world, "one", "Running").await;

    let db = offer(&world, "b", &[("db", "two")]);
    world.apply("two", std::slice::from_ref(&db)).await;
    comes_to_state(&world, "two", "Running").await;
    let revision = if has_revision(&world, "web", 2).await { 2 } else { 1 };
    edit(&world, "one", json!({"repositories": [{"url": db}]})).await;
    edit(&world, "two", json!({"repositories": [{"url": web}]})).await;
    for (name, module) in [("one", "db"), ("two", "web")] {
        let runs = |object: &Value| {
            let line = &object["status"]["repositories"][0]["addons"][0];
            phase(object) == "Ready" && line["name"] == module && state(object) == "Running"
        };
        world.settled(name, runs).await;
    }
    assert!(has_revision(&world, "db", 1).await && !has_revision(&world, "db", 2).await);
    assert!(!has_revision(&world, "web", revision + 1).await);
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a34_a_commit_stands_in_the_queue_behind_what_runs_and_in_front_of_all_the_rest() {
    let world = World::new().await;
    world.cluster.write("modules/900-base/Chart.yaml", "name: base\nversion: 0.1.0\n");
    world.cluster.write("modules/900-base/templates/map.yaml", "");
    let gate = world.cluster.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    let operator = world.start().await;
    world.cluster.put("addon-operator", json!({"data": {"webEnabled": "true", "baseEnabled": "true"}})).await;
    let web = offer(&world, "a", &[("web", "one")]);
    let waits = "echo ran >>\"$WORLD/ran\"; [[ ! -p $WORLD/gate ]] || read -r _ <\"$WORLD/gate\"; exit 1";
    world.repository.put("/a/web-1.0.0.tgz", Reply::File(module("web", "one", Some(waits))));
    world.apply("one", std::slice::from_ref(&web)).await;
    until("the hook", || !world.lines("ran").is_empty()).await;
    // More work behind it: what the ConfigMap says now.
    let data = json!({"data": {"webEnabled": "true", "baseEnabled": "true", "base": "size: 1"}});
    world.cluster.put("addon-operator", data).await;
    offer(&world, "a", &[("web", "one")]);
    edit(&world, "one", json!({"reprocessRequest": 1})).await;

    let port = operator.port.to_string();
    let tasks = || {
        let text = program::get(&port, "/queue");
        let main = text.split("Queue '").find(|queue| queue.starts_with("main'")).unwrap_or_default();
        let is_task = |line: &&str| line.trim_start().starts_with(|first: char| first.is_ascii_digit());
        main.lines().filter(is_task).map(str::to_owned).collect::<Vec<String>>()
    };
    let place = |tasks: &[String], what: &str| tasks.iter().position(|line| line.contains(what));
    until("the commit", || place(&tasks(), "AddonsCommit").is_some()).await;
    let queued = tasks();
    assert_eq!(place(&queued, "AddonsCommit"), Some(1), "{queued:?}");
    assert!(queued[0].contains("web") && queued.len() > 2, "{queued:?}");

    // The run ends as it began, and its failure holds up nothing.
    let end = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    std::fs::remove_file(&gate).unwrap();
    drop(end);
    comes_to_state(&world, "one", "Running").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a20_a25_a26_what_is_refused_is_told_and_all_the_rest_is_processed() {
    let world = World::new().await;
    let allowed = world.repository.url("/a/");
    let options = [world.options().as_slice(), &[("source-allow-prefix", &*allowed)]].concat();
    let operator = world.cluster.start(&options).await;
    let good = offer(&world, "a", &[("bomb", "one"), ("climbs", "two"), ("web", "three")]);
    let packed = |add: &dyn Fn(&mut Packed)| {
        let mut packed = Packed::new();
        let meta = "id: x\nname: x\nversion: 1.0.0\ndescription: A test.\ndisplayName: X\n";
        packed.file("meta.yaml", 0o644, meta.as_bytes());
        add(&mut packed);
        Reply::File(packed.finish())
    };
    let bomb = packed(&|tar| tar.entry(b'0', "zeros", "", 0o644, 10 << 30));
    world.repository.put("/a/bomb-1.0.0.tgz", bomb);
    let climbs = packed(&|tar| tar.file("../climbs", 0o644, b"x"));
    world.repository.put("/a/climbs-1.0.0.tgz", climbs);
    let unread = index(&[("db", "not-semver", Vec::new())], false);
    world.repository.put("/a/versions.yaml", Reply::File(unread));
    let urls = [
        good.clone(),
        world.repository.url("/a/versions.yaml"),
        String::new(),
        good.replacen("https://", "http://", 1),
        offer(&world, "b", &[("log", "five")]),
    ];
    world.apply("platform", &urls).await;
    let object = comes_to(&world, "platform", "Failed").await;
    let told = addons(&object);
    let refused = |(reason, message): &(String, String), says: &str| {
        assert!(reason == "LoadingError" && message.contains(says), "{says}: {object}");
    };
    let [bomb, climbs, web, unread] = told.as_slice() else { panic!("{object}") };
    refused(bomb, "more than 64 MiB");
    refused(climbs, "names are relative");
    assert_eq!(web.0, "Ready");
    refused(unread, "not a semantic version");
    let repository = |number: usize| {
        let line = &object["status"]["repositories"][number];
        (line["reason"].as_str().unwrap_or_default(), line["message"].as_str().unwrap_or_default())
    };
    assert_eq!(repository(2).0, "EmptyURLError");
    for (number, says) in [(3, "http:// is not supported"), (4, "--source-allow-prefix")] {
        let (reason, message) = repository(number);
        assert!(reason == "FetchingIndexError" && message.contains(says), "{says}: {object}");
    }
    assert!(!world.cluster.path("climbs").exists() && !world.cluster.path("sources/climbs").exists());
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a19_credentials_of_a_secret_are_sent_and_shown_nowhere() {
    let world = World::new().await;
    let operator = world.start().await;
    let good = offer(&world, "a", &[("web", "one")]);
    world.apply("platform", std::slice::from_ref(&good)).await;
    let secret =
        json!({"metadata": {"name": "repo"}, "stringData": {"user": "joe", "pass": "hunter2hunter2"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    let named = json!({"name": "repo", "namespace": "ops"});
    let filled = good.replacen("https://", "https://{user}:{pass}@", 1);
    let keyless = good.replacen("https://", "https://{token}@", 1);
    for (spec, expected, says) in [
        (json!({"url": filled, "secretRef": named}), "", ""),
        (json!({"url": keyless, "secretRef": named}), "TemplatingURLError", "no key \"token\""),
        (json!({"url": filled}), "TemplatingURLError", "has no secretRef"),
    ] {
        edit(&world, "platform", json!({ "repositories": [spec] })).await;
        let phase = if expected.is_empty() { "Ready" } else { "Failed" };
        let object = comes_to(&world, "platform", phase).await;
        let line = &object["status"]["repositories"][0];
        assert_eq!(line["reason"].as_str().unwrap_or_default(), expected, "{object}");
        assert!(line["message"].as_str().unwrap_or_default().contains(says), "{object}");
        assert_eq!(line["url"], spec["url"]);
        let events = get(&world.cluster.server, "/api/v1/namespaces/default/events").await.unwrap();
        let mut shown = vec![object.to_string(), events.to_string()];
        let port = operator.port.to_string();
        shown.extend(["/queue", "/status", "/metrics", "/"].map(|path| program::get(&port, path)));
        shown.push(ask_socket(&world.cluster, "/queue"));
        assert!(shown.iter().all(|text| !text.contains("hunter2")), "{shown:?}");
    }
    let asked = world.repository.requests();
    let expected = format!("Basic {}", STANDARD.encode("joe:hunter2hunter2"));
    assert!(asked.iter().any(|asked| asked.headers.get("authorization").is_some_and(|its| *its == expected)));
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a33_without_the_kinds_nothing_of_them_is_watched() {
    let world = World::without_kinds().await;
    let watched: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&watched);
    let client = observed(&world.cluster.server, "ops", move |request| {
        noted.lock().unwrap().push(request.uri().to_string());
    });
    let (shutdown, ended) = watch::channel(false);
    world.cluster.write("modules/010-base/Chart.yaml", "name: base\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\n";
    world.cluster.write("modules/010-base/templates/map.yaml", map);
    let running = tokio::spawn(app::run(world.cluster.around(client, false, ended, &world.options()), drop));
    world.enable("base", true).await;
    world.cluster.settled("base", |map| !map.is_null()).await;
    assert_eq!(send(&world.cluster.server, Method::GET, SOURCES, &Value::Null).await.0, 404);
    assert_eq!(Operator { port: 0, shutdown, running }.stop().await, Outcome::Done);
    let watched = watched.lock().unwrap();
    let of_group = watched.iter().filter(|uri| uri.contains("addons.kyma-project.io/v1alpha1/"));
    assert_eq!(of_group.collect::<Vec<_>>(), Vec::<&String>::new());
}

async fn a27_of_fifty_repositories_ten_that_hang_delay_nobody() {
    let world = World::new().await;
    let options = [world.options().as_slice(), &[("source-develop", "true")]].concat();
    let operator = world.cluster.start(&options).await;
    // Each that hangs is a server of its own.
    let mut slow = Vec::new();
    for number in 0..10 {
        let repository = Repository::plain().await;
        repository.put("/index.yaml", Reply::Gated(b"entries: {}".to_vec()));
        world.apply(&format!("slow-{number}"), &[repository.url("/index.yaml")]).await;
        repository.busy(1).await;
        slow.push(repository);
    }
    for number in 0..40 {
        let letters = [number / 26, number % 26].map(|letter| char::from(b'a' + letter));
        let name = format!("module-{}{}", letters[0], letters[1]);
        world.apply(&format!("fast-{number}"), &[offer(&world, &name, &[(&name, &name)])]).await;
    }
    for number in 0..40 {
        comes_to(&world, &format!("fast-{number}"), "Ready").await;
    }
    for (number, repository) in slow.iter().enumerate() {
        assert_eq!(phase(&world.object(&format!("slow-{number}")).await), "Pending");
        repository.open_gate();
    }
    for number in 0..10 {
        comes_to(&world, &format!("slow-{number}"), "Ready").await;
    }
    assert_eq!(operator.stop().await, Outcome::Done);
}

scenarios! {
    a05_a06_a08_a28_a_conflict_names_the_other_side_and_leaves_it_alone,
    a14_a16_a_deletion_removes_then_raises_the_counters_of_all_that_failed_then_goes,
    a15_a_deletion_raises_the_counters_of_its_namespace_only,
    a11_a13_an_update_keeps_what_is_on_both_sides_and_an_outage_costs_no_write,
    a17_a31_a_bad_edit_frees_the_ids_and_a_deletion_without_an_operator_is_made_up_for,
    a34_a_better_bundle_comes_in_front_of_the_module_that_fails_and_two_may_swap_their_addons,
    a34_a_commit_stands_in_the_queue_behind_what_runs_and_in_front_of_all_the_rest,
    a20_a25_a26_what_is_refused_is_told_and_all_the_rest_is_processed,
    a19_credentials_of_a_secret_are_sent_and_shown_nowhere,
    a33_without_the_kinds_nothing_of_them_is_watched,
    a27_of_fifty_repositories_ten_that_hang_delay_nobody,
}
