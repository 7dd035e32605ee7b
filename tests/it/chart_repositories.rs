//! Charts from repositories, end to end: objects are applied, and maps, packages and modules follow. As all scenarios, they run on
//! the API server in this process, and in `tests/cluster` on a real one.

use std::cell::RefCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::support::charts::{MAPS, World, alpha, beta, chart, condition};
use crate::support::program;
use crate::support::repository::{Reply, digest};
use crate::support::server::{self, get, ok};

/// Returns a megabyte that does not shrink much when it is packed.
fn noise(mut state: u64) -> Vec<u8> {
    let mut next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b'0' + u8::try_from((state >> 33) % 64).unwrap()
    };
    (0..1_000_000).map(&mut next).collect()
}

/// Returns the bytes of a package, put together from its parts.
async fn package(world: &World, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 1.. {
        let Some(part) = world.map(&format!("{name}-{number}")).await else { break };
        bytes.extend(STANDARD.decode(part["binaryData"]["part"].as_str().unwrap()).unwrap());
    }
    bytes
}

async fn b01_b02_a_repository_keeps_lists_of_versions_and_makes_charts() {
    let world = World::new().await;
    let url = world.repository.url("");
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("beta", "0.1.0", beta("0.1.0", &url, "~0.1"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": url})).await;
    let repository = world.synced("Repository", "corp").await;
    assert_eq!(repository["metadata"]["finalizers"], json!(["finalizer.repo.yaho.soer3n.dev"]));
    assert_eq!((&repository["status"]["synced"], &repository["status"]["charts"]), (&json!(true), &json!(0)));
    assert_eq!(world.maps().await, ["helm-corp-alpha-index", "helm-corp-beta-index"]);
    let index = world.map("helm-corp-alpha-index").await.unwrap();
    let labels = json!({"yaho.soer3n.dev/chart": "alpha", "yaho.soer3n.dev/repo": "corp", "yaho.soer3n.dev/type": "index"});
    assert_eq!(index["metadata"]["labels"], labels);
    assert_eq!(index["metadata"]["ownerReferences"][0]["uid"], repository["metadata"]["uid"]);
    let versions = STANDARD.decode(index["binaryData"]["versions"].as_str().unwrap()).unwrap();
    let versions: Value = serde_json::from_slice(&versions).unwrap();
    assert_eq!((&versions[0]["version"], &versions[0]["description"]), (&json!("0.1.0"), &Value::Null));

    world.apply("Repository", "corp", json!({"charts": [{"name": "alpha"}]})).await;
    let made = world.synced("Chart", "alpha-corp").await;
    assert_eq!(made["spec"]["createDeps"], true);
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], repository["metadata"]["uid"]);
    assert_eq!(world.maps().await, ["helm-corp-alpha-index", "helm-corp-beta-index"]);
    world.settled("Repository", "corp", |object| object["status"]["charts"] == 1).await;
    operator.stop().await;
}

async fn b03_b04_b05_b06_b07_versions_of_a_chart_are_kept_beside_each_other() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.1.1", alpha("0.1.1"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.synced("Repository", "corp").await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["0.1.1"]})).await;
    let mine = world.synced("Chart", "mine").await;
    let labels = json!({"yaho.soer3n.dev/chart": "alpha", "yaho.soer3n.dev/repo": "corp", "yaho.soer3n.dev/unmanaged": "true"});
    assert_eq!(mine["metadata"]["labels"], labels);
    assert_eq!(
        (&mine["status"]["versions"], &mine["status"]["dependencies"]),
        (&json!("synced"), &Value::Null)
    );
    assert_eq!(
        world.maps().await,
        [
            "helm-corp-alpha-index",
            "helm-crds-corp-alpha-0.1.1",
            "helm-default-corp-alpha-0.1.1",
            "helm-pkg-corp-alpha-0.1.1-1",
            "helm-tmpl-corp-alpha-0.1.1",
        ]
    );
    for (word, keys) in [("crds", json!([])), ("default", json!(["values"])), ("tmpl", json!(["shown.yaml"]))]
    {
        let map = world.map(&format!("helm-{word}-corp-alpha-0.1.1")).await.unwrap();
        let labels = json!({"yaho.soer3n.dev/chart": "alpha-0.1.1", "yaho.soer3n.dev/repo": "corp", "yaho.soer3n.dev/type": word});
        assert_eq!((&map["metadata"]["labels"], &map["immutable"]), (&labels, &json!(true)));
        assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], mine["metadata"]["uid"]);
        let data = if word == "default" { &map["data"] } else { &map["binaryData"] };
        let found: Vec<&String> = data.as_object().map(|data| data.keys().collect()).unwrap_or_default();
        assert_eq!(json!(found), keys, "{map}");
    }
    let default = world.map("helm-default-corp-alpha-0.1.1").await.unwrap();
    assert_eq!(default["data"]["values"], r#"{"says":"hello"}"#);
    assert_eq!(package(&world, "helm-pkg-corp-alpha-0.1.1").await, alpha("0.1.1"));
    world.settled("Repository", "corp", |object| object["status"]["charts"] == 1).await;

    world.apply("Chart", "mine", json!({"versions": ["0.1.1", "0.1.0"]})).await;
    world.synced("Chart", "mine").await;
    assert_eq!(world.maps().await.len(), 9);
    assert_eq!(
        world.map("helm-default-corp-alpha-0.1.1").await.unwrap()["metadata"]["uid"],
        default["metadata"]["uid"]
    );

    world.apply("Chart", "mine", json!({"versions": ["0.1.1", "9.9.9", "one"]})).await;
    let said = world.failed("Chart", "mine", "initChartFailed").await;
    assert!(said.contains("\"9.9.9\"") && said.contains("\"one\""), "{said}");
    assert_eq!(world.maps().await.len(), 9, "what exists stays");
    world.apply("Chart", "mine", json!({"versions": ["~0.1"]})).await;
    let mine = world.synced("Chart", "mine").await;
    let resolved = json!([{"constraint": "~0.1", "version": "0.1.1", "digest": format!("sha256:{}", digest(&alpha("0.1.1")))}]);
    assert_eq!(mine["status"]["resolved"], resolved);
    operator.stop().await;
}

async fn b08_a_chart_before_its_repository_is_synced_when_that_comes() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
    let said = world.failed("Chart", "mine", "initChartFailed").await;
    assert!(said.contains("there is no Repository \"corp\""), "{said}");
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.synced("Chart", "mine").await;
    world.apply("Chart", "typo", json!({"name": "alhpa", "repository": "corp", "versions": ["*"]})).await;
    let said = world.failed("Chart", "typo", "initChartFailed").await;
    assert!(said.contains("did you mean alpha?"), "{said}");
    operator.stop().await;
}

async fn b09_an_archive_that_can_not_be_used_is_a_condition_and_leaves_nothing() {
    let world = World::new().await;
    let good = alpha("0.1.0");
    world.publish(
        "",
        &[
            ("alpha", "0.1.0", good.clone()),
            ("text", "1.0.0", b"no archive".to_vec()),
            ("gone", "1.0.0", good.clone()),
        ],
    );
    world.repository.put("/gone-1.0.0.tgz", Reply::Status(404, Vec::new()));
    world.repository.put("/alpha-0.1.0.tgz", Reply::File(alpha("0.1.1")));
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    for (chart, says) in
        [("alpha", "the digest of the archive is sha256:"), ("text", "is no chart"), ("gone", "404")]
    {
        world.apply("Chart", chart, json!({"name": chart, "repository": "corp", "versions": ["*"]})).await;
        let said = world.failed("Chart", chart, "createConfigmapsFailed").await;
        assert!(said.contains(says), "{said}");
        if chart == "alpha" {
            let both = [alpha("0.1.1"), good.clone()].map(|packed| format!("sha256:{}", digest(&packed)));
            assert!(both.iter().all(|digest| said.contains(digest.as_str())), "{said}");
        }
    }
    let kept = world.maps().await;
    assert!(kept.iter().all(|name| name.ends_with("-index")), "{kept:?}");
    operator.stop().await;
}

async fn an_index_that_can_not_be_used_is_a_condition_and_the_maps_stay() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.synced("Repository", "corp").await;
    let bad = [
        (Reply::Status(404, Vec::new()), "404"),
        (Reply::Status(401, Vec::new()), "401"),
        (Reply::Page, "HTML"),
        (Reply::File(b"<html>".to_vec()), "HTML"),
        (Reply::File(b"a: [b".to_vec()), "not YAML"),
        (Reply::File(b"entries: 1".to_vec()), "no mapping of names"),
    ];
    for (number, (reply, says)) in bad.into_iter().enumerate() {
        world.repository.put(&format!("/index.yaml?{number}"), reply);
        world
            .apply("Repository", "corp", json!({"url": format!("{}?{number}", world.repository.url(""))}))
            .await;
        let is_so = |object: &Value| {
            let condition = condition(object);
            let is_new = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            is_new
                && condition["reason"] == "fetchIndexFailed"
                && condition["message"].as_str().unwrap().contains(says)
        };
        let object = world.settled("Repository", "corp", is_so).await;
        assert_eq!(object["status"]["synced"], false);
    }
    assert_eq!(world.maps().await, ["helm-corp-alpha-index"]);
    operator.stop().await;
}

async fn b11_b12_b13_what_a_chart_needs_is_kept_too() {
    let world = World::new().await;
    let [own, extra] = ["/own", "/extra"].map(|directory| world.repository.url(directory));
    world.publish("/own", &[("beta", "0.1.0", beta("0.1.0", &extra, "~0.1"))]);
    world.publish("/extra", &[("alpha", "0.1.1", alpha("0.1.1"))]);
    let operator = world.start().await;
    let repos = json!([{"name": "corp", "url": own}, {"name": "extra", "url": extra}]);
    world.apply("RepoGroup", "group", json!({"labelSelector": "corp-group", "repos": repos})).await;
    world.synced("Repository", "corp").await;
    let other = world.synced("Repository", "extra").await;
    assert_eq!(other["metadata"]["labels"]["yaho.soer3n.dev/repoGroup"], "corp-group");
    let spec = json!({"name": "beta", "repository": "corp", "versions": ["0.1.0"], "createDeps": false});
    world.apply("Chart", "mine", spec).await;
    world.synced("Chart", "mine").await;
    assert_eq!(world.object("Chart", "alpha-extra").await, Value::Null);
    world.apply("Chart", "mine", json!({"createDeps": true})).await;
    let child = world.synced("Chart", "alpha-extra").await;
    assert_eq!(child["spec"]["versions"], json!(["~0.1"]));
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], other["metadata"]["uid"]);
    assert_eq!(child["metadata"]["labels"]["yaho.soer3n.dev/unmanaged"], "true");
    let mine = world.synced("Chart", "mine").await;
    assert_eq!(mine["status"]["dependencies"], "synced");
    assert_eq!(mine["metadata"]["labels"]["yaho.soer3n.dev/repoGroup"], "corp-group");
    assert!(world.map("helm-default-extra-alpha-0.1.1").await.is_some());

    // What is not listed any more goes, with its Charts.
    world.apply("RepoGroup", "group", json!({"repos": [{"name": "corp", "url": own}]})).await;
    world.settled("Repository", "extra", Value::is_null).await;
    world.settled("Chart", "alpha-extra", Value::is_null).await;
    let said = world.failed("Chart", "mine", "createDepsFailed").await;
    assert!(said.contains("alpha"), "{said}");
    operator.stop().await;
}

async fn charts_that_need_each_other_are_named() {
    let world = World::new().await;
    let url = world.repository.url("");
    let needs = |name: &str, other: &str| {
        chart(
            name,
            "1.0.0",
            &format!("dependencies:\n- {{name: {other}, version: '*', repository: '{url}'}}\n"),
            &[],
        )
    };
    world.publish("", &[("a", "1.0.0", needs("a", "b")), ("b", "1.0.0", needs("b", "a"))]);
    let operator = world.start().await;
    let charts = json!([{"name": "a", "versions": ["*"]}]);
    world.apply("Repository", "corp", json!({"name": "corp", "url": url, "charts": charts})).await;
    let said = world.settled("Chart", "a-corp", |object| {
        let said = condition(object)["message"].as_str().unwrap_or_default();
        said.contains("a-corp → b-corp → a-corp")
    });
    assert_eq!(condition(&said.await)["reason"], "createDepsFailed");
    operator.stop().await;
}

async fn b15_credentials_come_from_a_secret_and_are_told_nowhere() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    let spec = json!({"name": "corp", "url": world.repository.url(""), "authSecret": "corp-auth"});
    world.apply("Repository", "corp", spec).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("Secret ops/corp-auth"), "{said}");
    let secret =
        json!({"metadata": {"name": "corp-auth"}, "stringData": {"user": "me", "password": "hunter2-word"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    world
        .apply(
            "Repository",
            "corp",
            json!({"sync": {"interval": "1h"}, "charts": [{"name": "alpha", "versions": ["*"]}]}),
        )
        .await;
    world.synced("Chart", "alpha-corp").await;
    let asked = world.repository.requests();
    let expected = format!("Basic {}", STANDARD.encode("me:hunter2-word"));
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked.headers["authorization"] == expected));
    let shown =
        format!("{}{}", world.object("Repository", "corp").await, world.object("Chart", "alpha-corp").await);
    assert!(!shown.contains("hunter2"), "{shown}");
    operator.stop().await;
}

async fn b16_what_is_odd_or_large_is_kept_whole() {
    let world = World::new().await;
    let [one, two, three] = [1, 2, 3].map(noise);
    let files: [(&str, &[u8]); 5] = [
        ("templates/a/b/c/deep.yaml", b"deep: true\n"),
        ("templates/odd name.yaml", b""),
        ("crds/1.yaml", &one),
        ("crds/2.yaml", &two),
        ("crds/3.yaml", &three),
    ];
    let packed = chart("Odd_Name", "1.0.0+3", "", &files);
    assert!(packed.len() > 1_800_000, "{}", packed.len());
    world.publish("", &[("Odd_Name", "1.0.0+3", packed.clone())]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world
        .apply("Chart", "odd", json!({"name": "Odd_Name", "repository": "corp", "versions": ["1.0.0+3"]}))
        .await;
    let list =
        || async { get(&world.cluster.server, MAPS).await.unwrap()["items"].as_array().unwrap().clone() };
    world.synced("Chart", "odd").await;
    let maps = list().await;
    let of = |word: &str| {
        let has = |map: &&Value| map["metadata"]["labels"]["yaho.soer3n.dev/type"] == word;
        maps.iter().filter(has).cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        of("tmpl")
            .iter()
            .filter(|map| map["metadata"]["labels"]["yaho.soer3n.dev/subname"] == "a__b__c")
            .count(),
        1
    );
    assert!(of("crds").len() >= 4, "3 MB fit no single object");
    let mut parts: Vec<&Value> = maps
        .iter()
        .filter(|map| !map["metadata"]["annotations"]["addon-operator.io/part"].is_null())
        .collect();
    parts.sort_by_key(|part| {
        part["metadata"]["annotations"]["addon-operator.io/part"].as_str().unwrap().parse::<u32>().unwrap()
    });
    let bytes: Vec<u8> = parts
        .iter()
        .flat_map(|part| STANDARD.decode(part["binaryData"]["part"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(digest(&bytes), digest(&packed));
    operator.stop().await;
}

async fn b17_an_archive_that_was_published_again_waits_for_a_person() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    let spec = json!({"name": "corp", "url": world.repository.url(""), "charts": [{"name": "alpha", "versions": ["0.1.0"]}]});
    world.apply("Repository", "corp", spec).await;
    world.synced("Chart", "alpha-corp").await;
    let other = chart("alpha", "0.1.0", "", &[("values.yaml", b"says: other\n")]);
    world.publish("", &[("alpha", "0.1.0", other.clone())]);
    world.apply("Repository", "corp", json!({"url": format!("{}/", world.repository.url(""))})).await;
    let has_changed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|condition| condition["type"] == "DigestChanged" && condition["status"] == "True")
    };
    world.settled("Chart", "alpha-corp", has_changed).await;
    assert_eq!(package(&world, "helm-pkg-corp-alpha-0.1.0").await, alpha("0.1.0"));
    world.annotate("Chart", "alpha-corp", json!({"addon-operator.io/reprocess": "1"})).await;
    world
        .settled("Chart", "alpha-corp", |object| object["status"]["reprocessed"] == 1 && !has_changed(object))
        .await;
    assert_eq!(package(&world, "helm-pkg-corp-alpha-0.1.0").await, other);
    let default = world.map("helm-default-corp-alpha-0.1.0").await.unwrap();
    assert_eq!(default["data"]["values"], r#"{"says":"other"}"#);
    operator.stop().await;
}

async fn b18_b21_a_module_is_held_until_its_chart_comes_and_needs_no_repository_afterwards() {
    let world = World::new().await;
    world.write_module("alpha", "~0.1");
    world.cluster.write("modules/050-plain/Chart.yaml", "name: plain\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
    world.cluster.write("modules/050-plain/templates/map.yaml", map);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\nplainEnabled: true\n");
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    // Nobody waits for it.
    world.cluster.settled("plain", |map| !map.is_null()).await;
    let port = operator.port.to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    let said = world.failed("Chart", "module-cache", "initChartFailed").await;
    assert!(said.contains("there is no Repository \"corp\""), "{said}");
    let held = world.object("Chart", "module-cache").await;
    assert_eq!(held["metadata"]["labels"]["addon-operator.io/module"], "cache");

    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    operator.stop().await;

    // The repository is down, and a newer version came before that.
    world.repository.put("/index.yaml", Reply::Status(503, Vec::new()));
    world.repository.put("/alpha-0.1.0.tgz", Reply::Status(503, Vec::new()));
    let operator = world.start().await;
    world.cluster.put("addon-operator", json!({"data": {"cache": "says: again\n"}})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "again").await;
    // Its Chart and its Repository are gone, and the package is still there.
    world.delete("Repository", "corp").await;
    world.settled("Repository", "corp", Value::is_null).await;
    operator.stop().await;
    let operator = world.start().await;
    world.cluster.put("addon-operator", json!({"data": {"cache": "says: still\n"}})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "still").await;
    operator.stop().await;
}

async fn a_module_stays_with_its_version_until_its_constraint_changes() {
    let world = World::new().await;
    world.write_module("alpha", "~0.1");
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.1.1", alpha("0.1.1"))]);
    world.apply("Repository", "corp", json!({"url": format!("{}/", world.repository.url(""))})).await;
    world
        .settled("Chart", "module-cache", |object| object["status"]["resolved"][0]["version"] == "0.1.1")
        .await;
    let shown = world.map("shown").await.unwrap();
    assert_eq!(shown["data"]["version"], "0.1.0");
    world.write_module("alpha", ">=0.1.1");
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.1").await;
    operator.stop().await;
}

async fn b14_what_belongs_to_a_chart_or_a_repository_goes_with_it() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
    world.synced("Chart", "mine").await;
    world.delete("Chart", "mine").await;
    for name in ["tmpl", "crds", "default"].map(|word| format!("helm-{word}-corp-alpha-0.1.0")) {
        world.cluster.settled(&name, Value::is_null).await;
    }
    world.cluster.settled("helm-pkg-corp-alpha-0.1.0-1", Value::is_null).await;
    assert_eq!(world.maps().await, ["helm-corp-alpha-index"]);
    world.delete("Repository", "corp").await;
    world.settled("Repository", "corp", Value::is_null).await;
    world.cluster.settled("helm-corp-alpha-index", Value::is_null).await;
    operator.stop().await;
}

async fn kinds_that_are_installed_later_are_noticed_and_a_restart_fetches_and_writes_nothing() {
    let world = World::without_kinds().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.install_kinds().await;
    let spec = json!({"name": "corp", "url": world.repository.url(""), "charts": [{"name": "alpha", "versions": ["*"]}]});
    world.apply("Repository", "corp", spec).await;
    world.synced("Chart", "alpha-corp").await;
    world.settled("Repository", "corp", |object| object["status"]["charts"] == 1).await;
    operator.stop().await;
    let versions = || async {
        let maps = get(&world.cluster.server, MAPS).await.unwrap();
        let mut all: Vec<Value> = maps["items"].as_array().unwrap().clone();
        all.extend([world.object("Repository", "corp").await, world.object("Chart", "alpha-corp").await]);
        all.iter().map(|object| object["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
    };
    let before = versions().await;
    world.repository.asked();
    let operator = world.start().await;
    let asked = RefCell::new(Vec::new());
    let is_asked = || {
        asked.borrow_mut().extend(world.repository.asked());
        !asked.borrow().is_empty()
    };
    server::until("a look at the index", is_asked).await;
    assert_eq!(*asked.borrow(), [("/index.yaml".to_owned(), 304)]);
    operator.stop().await;
    assert_eq!(versions().await, before);
}

scenarios! {
    b01_b02_a_repository_keeps_lists_of_versions_and_makes_charts,
    b03_b04_b05_b06_b07_versions_of_a_chart_are_kept_beside_each_other,
    b08_a_chart_before_its_repository_is_synced_when_that_comes,
    b09_an_archive_that_can_not_be_used_is_a_condition_and_leaves_nothing,
    an_index_that_can_not_be_used_is_a_condition_and_the_maps_stay,
    b11_b12_b13_what_a_chart_needs_is_kept_too,
    charts_that_need_each_other_are_named,
    b15_credentials_come_from_a_secret_and_are_told_nowhere,
    b16_what_is_odd_or_large_is_kept_whole,
    b17_an_archive_that_was_published_again_waits_for_a_person,
    b18_b21_a_module_is_held_until_its_chart_comes_and_needs_no_repository_afterwards,
    a_module_stays_with_its_version_until_its_constraint_changes,
    b14_what_belongs_to_a_chart_or_a_repository_goes_with_it,
    kinds_that_are_installed_later_are_noticed_and_a_restart_fetches_and_writes_nothing,
}
