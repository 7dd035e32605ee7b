//! Charts from registries (`oci://`), end to end: tags become versions, and layers become packages and modules.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::support::charts::{MAPS, World, alpha, condition};
use crate::support::registry::{ARCHIVE, Registry, manifest};
use crate::support::repository::{Asked, Reply, Repository, digest};
use crate::support::server::{get, ok};

async fn b19_a_module_is_installed_from_a_chart_of_a_registry() {
    let world = World::new().await;
    let module = "chart: {repository: corp, name: alpha, version: '~0.1'}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", module);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    let registry = Registry::open(&world.repository);
    registry.tags("charts/alpha", &["0.1.0", "0.1.1_3", "latest", "0.2.0-rc.1"]);
    registry.push("charts/alpha", "0.1.1_3", &alpha("0.1.1+3"));
    let operator = world.start().await;
    let charts = json!([{"name": "alpha", "versions": ["~0.1"]}]);
    let spec = json!({"name": "corp", "url": registry.url("/charts"), "charts": charts});
    world.apply("Repository", "corp", spec).await;
    world.synced("Repository", "corp").await;
    let chart = world.synced("Chart", "alpha-corp").await;
    let digest = format!("sha256:{}", digest(&alpha("0.1.1+3")));
    let resolved = json!([{"constraint": "~0.1", "version": "0.1.1+3", "digest": digest}]);
    assert_eq!(chart["status"]["resolved"], resolved);
    let list = get(&world.cluster.server, MAPS).await.unwrap();
    for word in ["crds", "default", "tmpl"] {
        let labels = json!({"yaho.soer3n.dev/chart": "alpha-0.1.1_3", "yaho.soer3n.dev/repo": "corp", "yaho.soer3n.dev/type": word});
        let mut its = list["items"].as_array().unwrap().iter();
        let map = its.find(|map| map["metadata"]["labels"] == labels).unwrap();
        assert_eq!(map["immutable"], true, "{word}");
        let owners = map["metadata"]["ownerReferences"].as_array().unwrap();
        assert!(owners.iter().any(|owner| owner["uid"] == chart["metadata"]["uid"]), "{word}: {map}");
    }
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.1+3").await;
    let index = world.map("helm-corp-alpha-index").await.unwrap();
    let versions = STANDARD.decode(index["binaryData"]["versions"].as_str().unwrap()).unwrap();
    let versions: Value = serde_json::from_slice(&versions).unwrap();
    assert_eq!(versions.as_array().unwrap().len(), 3);
    assert_eq!(versions[1]["urls"], json!([format!("{}:0.1.1_3", registry.url("/charts/alpha"))]));
    // Only the version that is wanted is asked for.
    let asked = world.repository.asked();
    let manifests: Vec<_> = asked.iter().filter(|(path, _)| path.contains("/manifests/")).collect();
    assert!(
        !manifests.is_empty() && manifests.iter().all(|(path, _)| path.ends_with("/0.1.1_3")),
        "{asked:?}"
    );
    operator.stop().await;
}

/// Applies a Repository that lists `alpha`.
async fn apply(world: &World, url: &str, more: Value) {
    let charts = json!([{"name": "alpha", "versions": ["0.1.0"]}]);
    let mut spec = json!({"name": "corp", "url": url, "charts": charts});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.apply("Repository", "corp", spec).await;
}

/// Writes a Secret with a user and a password, and returns the header that they come to.
async fn write_secret(world: &World) -> String {
    let secret =
        json!({"metadata": {"name": "auth"}, "stringData": {"user": "me", "password": "hunter2-word"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    format!("Basic {}", STANDARD.encode("me:hunter2-word"))
}

/// What is wrong with a manifest.
type Change = fn(&mut Value);

async fn what_is_no_chart_in_a_registry_is_told_and_nothing_is_kept() {
    let foreign = |manifest: &mut Value| {
        manifest["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
    };
    let list =
        |manifest: &mut Value| manifest["mediaType"] = json!("application/vnd.oci.image.index.v1+json");
    let none = |manifest: &mut Value| manifest["layers"][0]["mediaType"] = json!("application/tar");
    let large = |manifest: &mut Value| manifest["layers"][0]["size"] = json!(21 << 20);
    let twice =
        |manifest: &mut Value| manifest["layers"].as_array_mut().unwrap().push(json!({"mediaType": ARCHIVE}));
    let changes: [(Change, &str); 5] = [
        (foreign, "names no chart"),
        (list, "list of manifests"),
        (none, "no layer with the type"),
        (large, "the most are 20971520"),
        (twice, "2 layers"),
    ];
    let packed = alpha("0.1.0");
    let world = World::new().await;
    let registry = Registry::open(&world.repository);
    registry.tags("alpha", &["0.1.0"]);
    let operator = world.start().await;
    let reasons = changes.into_iter().map(|(change, says)| {
        let mut manifest = manifest(&packed);
        change(&mut manifest);
        (manifest, Reply::File(packed.clone()), says)
    });
    let blobs = [
        (Reply::File(alpha("0.1.1")), "the digest of the archive is"),
        (Reply::Zeros(21 << 20), "longer than 20 MiB"),
        (Reply::Status(404, Vec::new()), "404"),
        (Reply::Page, "web page"),
    ];
    let blobs = blobs.into_iter().map(|(reply, says)| (manifest(&packed), reply, says));
    for (number, (manifest, reply, says)) in reasons.chain(blobs).enumerate() {
        registry.put_manifest("alpha", "0.1.0", &manifest);
        registry.put(&format!("alpha/blobs/sha256:{}", digest(&packed)), reply);
        let name = format!("corp-{number}");
        let charts = json!([{"name": "alpha", "versions": ["0.1.0"]}]);
        world
            .apply("Repository", &name, json!({"name": name, "url": registry.url(""), "charts": charts}))
            .await;
        let said = world.failed("Chart", &format!("alpha-{name}"), "createConfigmapsFailed").await;
        assert!(said.contains(says), "{said}");
    }
    assert!(world.maps().await.iter().all(|name| name.ends_with("-index")));
    operator.stop().await;
}

async fn a_registry_that_refuses_is_told_and_hinders_no_other_chart() {
    let world = World::new().await;
    let registry = Registry::open(&world.repository);
    registry.tags("alpha", &["0.1.0"]);
    registry.push("alpha", "0.1.0", &alpha("0.1.0"));
    let next = vec![("link", "<https://b.example/v2/x>; rel=\"next\"".to_owned())];
    for (name, reply) in [
        ("forbidden", Reply::Status(403, Vec::new())),
        ("login", Reply::Status(401, vec![("www-authenticate", "Basic realm=\"x\"".to_owned())])),
        ("busy", Reply::Status(429, vec![("retry-after", "0".to_owned())])),
        ("page", Reply::Page),
        ("odd", Reply::File(b"[]".to_vec())),
        ("far", Reply::With(next, b"{\"tags\":[]}".to_vec())),
    ] {
        registry.put(&format!("{name}/tags/list?n=1000"), reply);
    }
    let operator = world.start().await;
    let url = registry.url("");
    world.apply("Repository", "corp", json!({"name": "corp", "url": url})).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("spec.charts is empty"), "{said}");
    let names = ["alpha", "forbidden", "login", "busy", "page", "odd", "far", "gone", "Upper"];
    let charts: Vec<Value> = names.iter().map(|name| json!({"name": name, "versions": ["*"]})).collect();
    world.apply("Repository", "corp", json!({ "charts": charts })).await;
    world.synced("Chart", "alpha-corp").await;
    let is_told =
        |object: &Value| condition(object)["message"].as_str().unwrap_or_default().contains("chart gone");
    let object = world.settled("Repository", "corp", is_told).await;
    let said = condition(&object)["message"].as_str().unwrap();
    for part in [
        "chart forbidden: localhost:",
        "answered 403 Forbidden: nobody may read forbidden so",
        "answered 401 Unauthorized: it wants user and password",
        "(429 Too Many Requests)",
        "web page",
        "no list of tags",
        "not on the same server",
        "answered 404 Not Found: it has no gone",
        "\"Upper\" can't be a name in a registry",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(object["status"]["synced"], false);
    operator.stop().await;
}

async fn a_token_is_had_with_the_password_and_goes_to_the_registry_only() {
    let world = World::new().await;
    let basic = write_secret(&world).await;
    let challenge = format!("Bearer realm=\"{}\",service=\"reg\"", world.repository.url("/token"));
    let registry = Registry::guarded(&world.repository, "Bearer abc", &challenge);
    let token = Reply::File(b"{\"token\":\"abc\"}".to_vec());
    let token = Reply::Guarded(basic.clone(), "Basic".to_owned(), Box::new(token));
    let path = "/token?service=reg&scope=repository%3Aalpha%3Apull";
    world.repository.put(path, token);
    let next = vec![("link", "</v2/alpha/tags/list?n=1000&last=x>; rel=\"next\"".to_owned())];
    let page = Reply::With(next, b"{\"tags\":[\"0.0.9\"]}".to_vec());
    let busy = Reply::Status(429, vec![("retry-after", "0".to_owned())]);
    let page = Reply::Guarded("Bearer abc".to_owned(), challenge.clone(), Box::new(page));
    world.repository.put("/v2/alpha/tags/list?n=1000", Reply::First(Box::new(busy), Box::new(page)));
    registry.put("alpha/tags/list?n=1000&last=x", Reply::File(b"{\"tags\":[\"0.1.0\"]}".to_vec()));
    registry.push("alpha", "0.1.0", &alpha("0.1.0"));
    let operator = world.start().await;
    apply(&world, &registry.url(""), json!({"authSecret": "auth"})).await;
    world.synced("Chart", "alpha-corp").await;
    for asked in world.repository.requests() {
        let shown = asked.headers.get("authorization").map(|shown| shown.to_str().unwrap().to_owned());
        let wanted = if asked.path.starts_with("/token") { &*basic } else { "Bearer abc" };
        assert!(shown.is_none_or(|shown| shown == wanted), "{}", asked.path);
    }
    let object = world.object("Repository", "corp").await.to_string();
    assert!(!object.contains("hunter2") && !object.contains("abc"), "{object}");
    operator.stop().await;
}

async fn a_token_may_come_from_another_server_which_gets_the_password_over_tls_only() {
    let world = World::new().await;
    let basic = write_secret(&world).await;
    let issuer = Repository::tls(&["localhost"]).await;
    let plain = Repository::plain().await;
    let both = world.cluster.path("both.pem").display().to_string();
    let authorities = format!("{}{}", world.repository.authority, issuer.authority);
    world.cluster.write("both.pem", &authorities);
    let path = "/token?service=reg&scope=repository%3Aalpha%3Apull";
    let token = || Reply::File(b"{\"token\":\"abc\"}".to_vec());
    issuer.put(path, Reply::Guarded(basic.clone(), "Basic".to_owned(), Box::new(token())));
    plain.put(path, token());
    let operator = world.cluster.start(&[("source-allow", "localhost"), ("source-ca", &both)]).await;
    let challenge =
        |issuer: &Repository| format!("Bearer realm=\"{}\",service=\"reg\"", issuer.url("/token"));
    let registry = Registry::guarded(&world.repository, "Bearer abc", &challenge(&plain));
    registry.tags("alpha", &["0.1.0"]);
    registry.push("alpha", "0.1.0", &alpha("0.1.0"));
    apply(&world, &registry.url(""), json!({"authSecret": "auth"})).await;
    world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(plain.requests().is_empty(), "a server without TLS is not asked");

    let registry = Registry::guarded(&world.repository, "Bearer abc", &challenge(&issuer));
    registry.tags("alpha", &["0.1.0"]);
    registry.push("alpha", "0.1.0", &alpha("0.1.0"));
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    world.synced("Chart", "alpha-corp").await;
    let shown = |asked: &Asked| asked.headers.get("authorization").cloned();
    let asked = issuer.requests();
    assert!(!asked.is_empty() && asked.iter().all(|asked| shown(asked).is_some_and(|shown| shown == basic)));
    let registry = world.repository.requests();
    assert!(
        registry.iter().filter_map(shown).all(|shown| shown == "Bearer abc"),
        "only the token goes there"
    );
    operator.stop().await;
}

async fn a_tag_that_is_pushed_again_waits_for_a_person() {
    let world = World::new().await;
    let registry = Registry::open(&world.repository);
    registry.tags("alpha", &["0.1.0", "0.2.0"]);
    registry.push("alpha", "0.1.0", &alpha("0.1.0"));
    let operator = world.start().await;
    apply(&world, &registry.url(""), json!({})).await;
    world.synced("Chart", "alpha-corp").await;
    let look = async |number: &str| {
        world.repository.asked();
        world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": number})).await;
    };
    let other = alpha("0.1.0-other");
    registry.push("alpha", "0.1.0", &other);
    look("1").await;
    let changed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().find(|condition| condition["type"] == "DigestChanged").cloned()
    };
    let told = world.settled("Chart", "alpha-corp", |object| changed(object).is_some()).await;
    let said = changed(&told).unwrap()["message"].to_string();
    for digest in [digest(&alpha("0.1.0")), digest(&other)] {
        assert!(said.contains(&digest), "{said}");
    }
    let asked = world.repository.asked();
    assert!(
        asked.iter().all(|(path, _)| !path.contains("/blobs/") && !path.ends_with("/0.2.0")),
        "{asked:?}"
    );
    let part = world.map("helm-pkg-corp-alpha-0.1.0-1").await.unwrap();
    let of = |part: &Value| part["metadata"]["annotations"]["addon-operator.io/digest"].clone();
    assert_eq!(of(&part), format!("sha256:{}", digest(&alpha("0.1.0"))));
    world.annotate("Chart", "alpha-corp", json!({"addon-operator.io/reprocess": "1"})).await;
    let taken = format!("sha256:{}", digest(&other));
    world.cluster.settled("helm-pkg-corp-alpha-0.1.0-1", |part| of(part) == *taken).await;
    world.settled("Chart", "alpha-corp", |object| changed(object).is_none()).await;
    operator.stop().await;
}

async fn a_version_of_a_registry_is_as_old_as_its_manifest_says() {
    let world = World::new().await;
    let module = "chart: {repository: corp, name: alpha, version: '~0.1', minAge: 72h}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", module);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    let registry = Registry::open(&world.repository);
    registry.tags("alpha", &["0.1.0", "0.1.1", "0.1.2"]);
    let now = jiff::Timestamp::now().to_string();
    for (tag, created) in [("0.1.0", Some("2024-01-01T00:00:00Z")), ("0.1.1", Some(&*now)), ("0.1.2", None)] {
        let packed = alpha(tag);
        registry.push("alpha", tag, &packed);
        let mut manifest = manifest(&packed);
        manifest["annotations"] = json!({"org.opencontainers.image.created": created});
        registry.put_manifest("alpha", tag, &manifest);
    }
    let operator = world.start().await;
    world
        .apply(
            "Repository",
            "corp",
            json!({"name": "corp", "url": registry.url(""), "charts": [{"name": "alpha"}]}),
        )
        .await;
    world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.0").await;
    let chart = world.synced("Chart", "module-cache").await;
    assert_eq!(chart["status"]["resolved"][0]["version"], "0.1.0");
    operator.stop().await;
}

async fn a_registry_that_wants_an_hour_of_rest_gets_it() {
    let world = World::new().await;
    let registry = Registry::open(&world.repository);
    let busy = Reply::Status(429, vec![("retry-after", "3600".to_owned())]);
    registry.put("alpha/tags/list?n=1000", busy);
    let operator = world.start().await;
    apply(&world, &registry.url(""), json!({})).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("wants to be left alone for a while (429 Too Many Requests)"), "{said}");
    // Whoever asks for it at once is told the same, and the registry hears nothing.
    registry.tags("alpha", &["0.1.0"]);
    let before = world.object("Repository", "corp").await["metadata"]["resourceVersion"].clone();
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
    world.failed("Chart", "mine", "initChartFailed").await;
    let asked = world.repository.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_ne!(world.object("Repository", "corp").await["metadata"]["resourceVersion"], before);
    operator.stop().await;
}

async fn a_registry_that_hangs_delays_no_other_repository() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let slow = Repository::tls(&["localhost"]).await;
    let registry = Registry::open(&slow);
    let authority = format!("{}{}", world.repository.authority, slow.authority);
    let file = world.cluster.path("both.pem");
    std::fs::write(&file, authority).unwrap();
    let file = file.display().to_string();
    let operator = world.cluster.start(&[("source-allow", "localhost"), ("source-ca", &file)]).await;
    registry.put("alpha/tags/list?n=1000", Reply::Gated(Vec::new()));
    for name in ["one", "two", "three"] {
        let spec =
            json!({"name": name, "url": registry.url(""), "charts": [{"name": "alpha", "versions": ["*"]}]});
        world.apply("Repository", name, spec).await;
    }
    slow.busy(2).await;
    let spec = json!({"name": "corp", "url": world.repository.url(""), "charts": [{"name": "alpha", "versions": ["*"]}]});
    world.apply("Repository", "corp", spec).await;
    world.synced("Chart", "alpha-corp").await;
    assert!(slow.in_flight() > 0, "it hangs still");
    slow.open_gate();
    operator.stop().await;
}

async fn a_registry_without_tls_is_asked_while_developing_only() {
    let world = World::new().await;
    let plain = Repository::plain().await;
    let registry = Registry::open(&plain);
    registry.tags("alpha", &["0.1.0"]);
    registry.push("alpha", "0.1.0", &alpha("0.1.0"));
    let operator = world.start().await;
    apply(&world, &registry.url(""), json!({})).await;
    world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert_eq!(plain.asked(), []);
    operator.stop().await;
    let mut options = world.options().to_vec();
    options.push(("source-develop", "true"));
    let operator = world.cluster.start(&options).await;
    world.synced("Chart", "alpha-corp").await;
    operator.stop().await;
}

scenarios! {
    b19_a_module_is_installed_from_a_chart_of_a_registry,
    what_is_no_chart_in_a_registry_is_told_and_nothing_is_kept,
    a_registry_that_refuses_is_told_and_hinders_no_other_chart,
    a_token_is_had_with_the_password_and_goes_to_the_registry_only,
    a_token_may_come_from_another_server_which_gets_the_password_over_tls_only,
    a_tag_that_is_pushed_again_waits_for_a_person,
    a_version_of_a_registry_is_as_old_as_its_manifest_says,
    a_registry_that_wants_an_hour_of_rest_gets_it,
    a_registry_that_hangs_delays_no_other_repository,
    a_registry_without_tls_is_asked_while_developing_only,
}
