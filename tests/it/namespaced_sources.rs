//! Modules of one namespace, end to end: they have the rights of its `ServiceAccount`, and no others.

use addon_operator::app::Outcome;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::support::in_process::{Cluster, Operator};
use crate::support::pause::pause;
use crate::support::repository::{Packed, Reply, Repository, index};
use crate::support::server::{get, ok, settled};
use crate::support::source_cluster::install_kinds;

const GROUP: &str = "/apis/addons.kyma-project.io/v1alpha1";

/// Returns a chart `web` with one ConfigMap: in the namespace of its release, or in `elsewhere`.
fn web(elsewhere: Option<&str>) -> Vec<u8> {
    chart(elsewhere, &[])
}

/// Returns the same chart with more templates.
fn chart(elsewhere: Option<&str>, more: &[(&str, &str)]) -> Vec<u8> {
    let place = elsewhere.map(|namespace| format!(", namespace: {namespace}")).unwrap_or_default();
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web{place}}}\ndata: {{says: {{{{ .Values.web.says }}}}, in: {{{{ .Release.Namespace }}}}}}\n"
    );
    let mut packed = Packed::new();
    packed.file(
        "meta.yaml",
        0o644,
        b"id: id-web\nname: web\nversion: 1.0.0\ndescription: d\ndisplayName: D\n",
    );
    packed.file("Chart.yaml", 0o644, b"name: web\nversion: 0.1.0\n");
    packed.file("values.yaml", 0o644, b"web: {says: hello}\nwebEnabled: true\n");
    packed.file("templates/map.yaml", 0o644, map.as_bytes());
    for (name, text) in more {
        packed.file(&format!("templates/{name}.yaml"), 0o644, text.as_bytes());
    }
    packed.finish()
}

/// A cluster with the namespaces `a` and `b`, and a repository.
struct World {
    cluster: Cluster,
    repository: Repository,
    authority: String,
}

impl World {
    async fn new() -> Self {
        let cluster = Cluster::new().await;
        install_kinds(&cluster.server).await;
        for name in ["a", "b"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            ok(&cluster.server, Method::POST, "/api/v1/namespaces", &namespace).await;
        }
        let repository = Repository::tls(&["localhost"]).await;
        let authority = repository.write_authority(cluster.dir.path()).to_string_lossy().into_owned();
        Self { cluster, repository, authority }
    }

    async fn start(&self) -> Operator {
        let options =
            [("source-allow", "localhost"), ("source-ca", &*self.authority), ("source-relist", "1s")];
        self.cluster.start(&options).await
    }

    /// Lets the `ServiceAccount` of a namespace handle `ConfigMaps` and the records of releases there.
    async fn grant(&self, namespace: &str) {
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["*"]}]);
        let role = json!({"metadata": {"name": "modules"}, "rules": rules});
        ok(&self.cluster.server, Method::POST, &format!("{rbac}/roles"), &role).await;
        let binding = json!({
            "metadata": {"name": "modules"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "modules"},
            "subjects": [{"kind": "ServiceAccount", "name": "addon-operator", "namespace": namespace}],
        });
        ok(&self.cluster.server, Method::POST, &format!("{rbac}/rolebindings"), &binding).await;
    }

    async fn apply(&self, namespace: &str) {
        let (kind, path) = place(namespace);
        let object = json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": kind, "metadata": {"name": "x"},
            "spec": {"repositories": [{"url": self.repository.url("/index.yaml")}]},
        });
        ok(&self.cluster.server, Method::POST, &path, &object).await;
    }

    /// Has the configuration `x` of a namespace fetched again.
    async fn raise(&self, namespace: &str) {
        let path = format!("{}/x", place(namespace).1);
        let mut object = get(&self.cluster.server, &path).await.unwrap();
        let counter = object["spec"]["reprocessRequest"].as_i64().unwrap_or(0);
        object["spec"]["reprocessRequest"] = (counter + 1).into();
        ok(&self.cluster.server, Method::PUT, &path, &object).await;
    }

    async fn enable(&self, keys: &[&str]) {
        let flags = keys
            .iter()
            .map(|key| (format!("{key}Enabled"), json!("true")))
            .collect::<serde_json::Map<_, _>>();
        self.cluster.put("addon-operator", json!({"data": flags})).await;
    }

    /// Waits until the configuration `x` of a namespace `fits`; that of the cluster has none.
    async fn settled(&self, namespace: &str, fits: impl Fn(&Value) -> bool) {
        let (kind, _) = place(namespace);
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk("addons.kyma-project.io", "v1alpha1", kind));
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(self.cluster.client(), &resource)
        } else {
            Api::namespaced_with(self.cluster.client(), namespace, &resource)
        };
        let check = |object: Option<&DynamicObject>| fits(&serde_json::to_value(object).unwrap());
        let waiting = kube::runtime::wait::await_condition(api.clone(), "x", check);
        let is_settled = tokio::time::timeout(crate::support::DEADLINE, waiting).await.is_ok();
        assert!(is_settled, "it did not settle: {:?}", api.get("x").await);
    }

    async fn map(&self, namespace: &str, fits: impl Fn(&Value) -> bool) {
        let maps: Api<ConfigMap> = Api::namespaced(self.cluster.client(), namespace);
        settled(&maps, "web", fits).await;
    }
}

/// Returns the kind of configurations of a namespace, and the path of their collection.
fn place(namespace: &str) -> (&'static str, String) {
    if namespace.is_empty() {
        ("ClusterAddonsConfiguration", format!("{GROUP}/clusteraddonsconfigurations"))
    } else {
        ("AddonsConfiguration", format!("{GROUP}/namespaces/{namespace}/addonsconfigurations"))
    }
}

fn module(object: &Value) -> (String, String) {
    let path = "/status/repositories/0/addons/0/module";
    let text = |field: &str| object.pointer(&format!("{path}/{field}")).and_then(Value::as_str);
    (text("name").unwrap_or_default().to_owned(), text("state").unwrap_or_default().to_owned())
}

fn message(object: &Value) -> &str {
    let path = "/status/repositories/0/addons/0/module/message";
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn is_running(name: &'static str) -> impl Fn(&Value) -> bool {
    move |object| module(object) == (name.to_owned(), "Running".to_owned())
}

async fn a07_a29_a_chart_is_released_into_its_namespace_beside_that_of_the_cluster_and_removed() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web(None))]);
    world.grant("a").await;
    let operator = world.start().await;
    world.enable(&["web", "aWeb", "bWeb"]).await;
    for namespace in ["", "a", "b"] {
        world.apply(namespace).await;
    }
    world.settled("", is_running("web")).await;
    world.settled("a", is_running("a-web")).await;
    world.map("ops", |map| map["data"] == json!({"says": "hello", "in": "ops"})).await;
    world.map("a", |map| map["data"] == json!({"says": "hello", "in": "a"})).await;
    let record = "/api/v1/namespaces/a/secrets/sh.helm.release.v1.a-web.v1";
    let labels = get(&world.cluster.server, record).await.unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels["addon-operator.io/service-account"], "addon-operator");
    assert_eq!(labels["status"], "deployed");

    // Nobody gave the ServiceAccount of `b` anything: the status says what it lacks, and rights heal it.
    let is_forbidden = |object: &Value| {
        let (name, state) = module(object);
        name == "b-web"
            && state == "Error"
            && message(object).contains("system:serviceaccount:b:addon-operator")
            && message(object).contains("cannot list resource \"secrets\"")
    };
    world.settled("b", is_forbidden).await;
    world.grant("b").await;
    world.settled("b", is_running("b-web")).await;

    // What somebody deletes comes back, also after a restart, and a restart changes nothing.
    let path = "/api/v1/namespaces/a/configmaps/web";
    ok(&world.cluster.server, Method::DELETE, path, &Value::Null).await;
    world.map("a", |map| map["data"]["says"] == "hello").await;
    assert_eq!(operator.stop().await, Outcome::Done);
    let written = get(&world.cluster.server, record).await.unwrap()["metadata"]["resourceVersion"].clone();
    let operator = world.start().await;
    world.settled("a", is_running("a-web")).await;
    ok(&world.cluster.server, Method::DELETE, path, &Value::Null).await;
    world.map("a", |map| map["data"]["says"] == "hello").await;
    assert_eq!(get(&world.cluster.server, record).await.unwrap()["metadata"]["resourceVersion"], written);

    // Deleted: its release goes, the others stay.
    let (_, path) = place("a");
    ok(&world.cluster.server, Method::DELETE, &format!("{path}/x"), &Value::Null).await;
    world.settled("a", Value::is_null).await;
    world.map("a", Value::is_null).await;
    world.map("b", |map| map["data"]["in"] == "b").await;
    world.map("ops", |map| map["data"]["in"] == "ops").await;

    // A namespace goes with all that is in it, its roles first.
    ok(&world.cluster.server, Method::DELETE, "/api/v1/namespaces/b", &Value::Null).await;
    world.settled("b", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn what_released_nothing_is_deleted_without_any_right_also_after_a_restart() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web(None))]);
    let mut operator = world.start().await;
    world.enable(&["aWeb"]).await;
    let (_, path) = place("a");
    for is_restarted in [false, true] {
        // Nobody gave the account of the namespace a right.
        world.apply("a").await;
        world.settled("a", |object| message(object).contains("cannot list resource \"secrets\"")).await;
        if is_restarted {
            assert_eq!(operator.stop().await, Outcome::Done);
            operator = world.start().await;
        }
        ok(&world.cluster.server, Method::DELETE, &format!("{path}/x"), &Value::Null).await;
        world.settled("a", Value::is_null).await;
    }
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a29_a_chart_reaches_no_other_namespace() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web(Some("ops")))]);
    world.grant("a").await;
    let operator = world.start().await;
    world.enable(&["aWeb"]).await;
    world.apply("a").await;
    let is_refused = |object: &Value| {
        message(object).contains("is forbidden") && message(object).contains("in the namespace \"ops\"")
    };
    world.settled("a", is_refused).await;
    assert!(get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/web").await.is_none());
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a_chart_that_names_what_its_account_may_not_read_is_not_begun_and_can_be_deleted() {
    let world = World::new().await;
    let outside = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: outside, namespace: ops}\n";
    let hook = "apiVersion: v1\nkind: Pod\nmetadata: {name: ask, annotations: {helm.sh/hook: pre-delete}}\n";
    world.grant("a").await;
    let operator = world.start().await;
    world.enable(&["aWeb"]).await;
    for (name, text, refused) in [
        ("outside", outside, "cannot get resource \"configmaps\" in API group \"\" in the namespace \"ops\""),
        ("hook", hook, "cannot get resource \"pods\" in API group \"\" in the namespace \"a\""),
    ] {
        world.repository.publish(&[("web", "1.0.0", chart(None, &[(name, text)]))]);
        world.apply("a").await;
        world.settled("a", |object| message(object).contains(refused)).await;
        // Nothing is there of it, so that nothing has to be removed.
        assert!(get(&world.cluster.server, "/api/v1/namespaces/a/configmaps/web").await.is_none());
        let secrets = get(&world.cluster.server, "/api/v1/namespaces/a/secrets").await.unwrap();
        assert_eq!(secrets["items"], json!([]), "no record of a release");
        let (_, path) = place("a");
        ok(&world.cluster.server, Method::DELETE, &format!("{path}/x"), &Value::Null).await;
        world.settled("a", Value::is_null).await;
    }

    // What was deployed is never left behind: it waits for the rights that were taken away.
    world.repository.publish(&[("web", "1.0.0", web(None))]);
    world.apply("a").await;
    world.settled("a", is_running("a-web")).await;
    // A version that names more than may be read leaves the one that runs as it is.
    world.repository.publish(&[("web", "1.0.0", chart(None, &[("outside", outside)]))]);
    world.raise("a").await;
    world.settled("a", |object| message(object).contains("in the namespace \"ops\"")).await;
    let record = "/api/v1/namespaces/a/secrets/sh.helm.release.v1.a-web.v1";
    let labels = get(&world.cluster.server, record).await.unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels["status"], "deployed");
    assert!(get(&world.cluster.server, &record.replace(".v1.a-web.v1", ".v1.a-web.v2")).await.is_none());
    let (_, path) = place("a");
    ok(&world.cluster.server, Method::DELETE, &format!("{path}/x"), &Value::Null).await;
    world.settled("a", Value::is_null).await;
    world.map("a", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn a_configuration_of_the_cluster_takes_a_name_and_what_was_released_under_it_goes() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web(None))]);
    world.grant("a").await;
    let operator = world.start().await;
    world.enable(&["aWeb"]).await;
    world.apply("a").await;
    world.settled("a", is_running("a-web")).await;

    let (kind, path) = place("");
    let mut packed = Packed::new();
    let meta = b"id: id-of-cluster\nname: a-web\nversion: 1.0.0\ndescription: d\ndisplayName: D\n";
    packed.file("meta.yaml", 0o644, meta);
    packed.file("Chart.yaml", 0o644, b"name: a-web\nversion: 0.1.0\n");
    packed.file("templates/map.yaml", 0o644, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n");
    let bundle = [("a-web", "1.0.0", packed.finish())];
    world.repository.put("/cluster.yaml", Reply::File(index(&bundle, true)));
    world.repository.put("/a-web-1.0.0.tgz", Reply::File(bundle[0].2.clone()));
    let object = json!({
        "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": kind, "metadata": {"name": "x"},
        "spec": {"repositories": [{"url": world.repository.url("/cluster.yaml")}]},
    });
    ok(&world.cluster.server, Method::POST, &path, &object).await;
    world.settled("", is_running("a-web")).await;
    let conflict = |object: &Value| {
        let path = "/status/repositories/0/addons/0/message";
        let message = object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        object["status"]["phase"] == "Failed"
            && message.contains("registered by ClusterAddonsConfiguration x")
    };
    world.settled("a", conflict).await;
    world.map("a", Value::is_null).await;

    let (_, path) = place("a");
    ok(&world.cluster.server, Method::DELETE, &format!("{path}/x"), &Value::Null).await;
    world.settled("a", Value::is_null).await;
    world.settled("", is_running("a-web")).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

async fn an_end_that_waits_for_rights_says_so_in_the_status_and_in_an_event() {
    let world = World::new().await;
    world.repository.publish(&[("web", "1.0.0", web(None))]);
    world.grant("a").await;
    let operator = world.start().await;
    world.enable(&["aWeb"]).await;
    world.apply("a").await;
    world.settled("a", is_running("a-web")).await;
    let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings/modules";
    let bound = get(&world.cluster.server, binding).await.unwrap();
    ok(&world.cluster.server, Method::DELETE, binding, &Value::Null).await;
    let (_, path) = place("a");
    ok(&world.cluster.server, Method::DELETE, &format!("{path}/x"), &Value::Null).await;
    let says = |object: &Value| {
        let condition = &object["status"]["conditions"][0];
        let message = condition["message"].as_str().unwrap_or_default();
        condition["reason"] == "Deleting"
            && object["status"]["phase"] == "Pending"
            && message.contains("the removal of modules a-web")
            && message.contains("system:serviceaccount:a:addon-operator")
    };
    world.settled("a", says).await;
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(world.cluster.client(), "a");
    let is_told = || async {
        let told = events.list(&kube::api::ListParams::default()).await.unwrap().items;
        told.iter().any(|event| event.reason.as_deref() == Some("RemovalFailed"))
    };
    let begun = std::time::Instant::now();
    while !is_told().await {
        assert!(begun.elapsed() < crate::support::DEADLINE, "the Event did not come");
        pause().await;
    }
    let mut bound = bound;
    bound["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let collection = binding.trim_end_matches("/modules");
    ok(&world.cluster.server, Method::POST, collection, &bound).await;
    world.settled("a", Value::is_null).await;
    world.map("a", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

scenarios! {
    a07_a29_a_chart_is_released_into_its_namespace_beside_that_of_the_cluster_and_removed,
    what_released_nothing_is_deleted_without_any_right_also_after_a_restart,
    a29_a_chart_reaches_no_other_namespace,
    a_chart_that_names_what_its_account_may_not_read_is_not_begun_and_can_be_deleted,
    a_configuration_of_the_cluster_takes_a_name_and_what_was_released_under_it_goes,
    an_end_that_waits_for_rights_says_so_in_the_status_and_in_an_event,
}
