//! The broker, end to end: a platform with a password, instances in the cluster, and the objects of Service Catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use addon_operator::app;
use apiserver::ApiServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::BrokerRegistration;
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::chart_bundles::{BIND, cache};
use crate::module_sources::{SOURCES, World, phase};
use crate::support::in_process::{Operator, ask_socket, observed};
use crate::support::program;
use crate::support::rights::{Request, manifests};
use crate::support::server::{get, ok, send, until_asked};

const CATALOG: &str = "/apis/servicecatalog.k8s.io/v1beta1";
const SECRETS: &str = "/api/v1/namespaces/ops/secrets";

/// A platform: where the broker is, and how it proves who it is.
pub(crate) struct Platform {
    pub(crate) port: u16,
    authorization: String,
}

impl Platform {
    fn new(port: u16, pair: &str) -> Self {
        Self { port, authorization: format!("Basic {}", STANDARD.encode(pair)) }
    }

    /// Sends these bytes, and returns the whole answer.
    async fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    /// Sends a call with these lines in its head, and returns the status, the head and the body.
    async fn call(&self, method: &str, path: &str, lines: &str, body: &str) -> (u16, String, Value) {
        let Self { authorization, .. } = self;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Authorization: {authorization}\r\n{lines}\r\n"
        );
        let answer = self.send(&format!("{head}{body}")).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), serde_json::from_str(body).unwrap_or_default())
    }

    /// Sends a call of version 2.14, and returns the status and the body.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, body) = self.call(method, path, "X-Broker-API-Version: 2.14\r\n", &body).await;
        (status, body)
    }

    /// Asks until the last operation of an instance has ended, and returns the last answer.
    async fn ended(&self, path: &str) -> (u16, Value) {
        let path = format!("{path}/last_operation");
        until_asked("the end of the operation", async || {
            let (status, body) = self.ask("GET", &path, &Value::Null).await;
            (status, &body["state"]) != (200, &json!("in progress"))
        })
        .await;
        self.ask("GET", &path, &Value::Null).await
    }
}

/// Returns the definition of a kind of Service Catalog.
fn definition(kind: &str, scope: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.servicecatalog.k8s.io")},
        "spec": {
            "group": "servicecatalog.k8s.io", "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Returns a configuration of a namespace without addons.
fn namespaced() -> Value {
    json!({
        "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "AddonsConfiguration", "metadata": {"name": "x"},
        "spec": {"repositories": []},
    })
}

fn password(name: &str, pair: (&str, &str)) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "stringData": {"username": pair.0, "password": pair.1}})
}

/// A cluster with Service Catalog and with a configuration whose addon is `cache`, a repository, and the broker's password.
pub(crate) async fn world() -> World {
    let world = World::new().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (kind, scope) in [("ClusterServiceBroker", "Cluster"), ("ServiceBroker", "Namespaced")] {
        ok(&world.cluster.server, Method::POST, definitions, &definition(kind, scope)).await;
    }
    let secret = password("addon-operator-broker", ("platform", "a long password"));
    ok(&world.cluster.server, Method::POST, SECRETS, &secret).await;
    world.repository.publish(&[("cache", "1.0.0", cache(BIND))]);
    world.apply("platform", &[world.repository.url("/index.yaml")]).await;
    world
}

/// How the operator is started.
fn options(world: &World) -> Vec<(&str, &str)> {
    let mut options = world.options().to_vec();
    options.extend([("osb-listen", "127.0.0.1:0"), ("osb-url", "http://127.0.0.1:0")]);
    options
}

/// Starts an operator, and returns it with a platform that knows the password.
pub(crate) async fn start(world: &World) -> (Operator, Platform) {
    let before = broker(world).await;
    let operator = world.cluster.start(&options(world)).await;
    let platform = platform(world, before).await;
    (operator, platform)
}

/// Returns a platform that knows the password, of the operator that runs. `before` is the broker of the one before.
async fn platform(world: &World, before: Option<Value>) -> Platform {
    world.settled("platform", |object| phase(object) == "Ready").await;
    // Where it listens is in the object that it made.
    until_asked("the broker of the cluster", async || {
        let url = |broker: &Value| broker["spec"]["url"].clone();
        let now = broker(world).await;
        now.is_some() && now.as_ref().map(url) != before.as_ref().map(url)
    })
    .await;
    let url = broker(world).await.unwrap()["spec"]["url"].as_str().unwrap().to_owned();
    let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/cluster")).unwrap();
    Platform::new(port.parse().unwrap(), "platform:a long password")
}

async fn broker(world: &World) -> Option<Value> {
    get(&world.cluster.server, &format!("{CATALOG}/clusterservicebrokers/addon-operator-ops")).await
}

/// Returns what stands for a catalog without services (FNV-1a).
fn offer_of_nothing() -> String {
    let text = json!({"services": []}).to_string();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

const INSTANCE: &str = "/cluster/v2/service_instances/8d1c7a2e-0000-4000-8000-000000000001";

fn wanted(plan: &str, parameters: &Value) -> Value {
    json!({
        "service_id": "id-cache", "plan_id": format!("id-{plan}"), "parameters": parameters,
        "organization_guid": "o", "space_guid": "s", "context": {"platform": "kubernetes", "namespace": "shop"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a32_a_platform_finds_makes_binds_and_removes_an_instance_over_a_restart() {
    let world = world().await;
    let (operator, platform) = start(&world).await;
    let (status, catalog) = platform.ask("GET", "/cluster/v2/catalog", &Value::Null).await;
    let service = &catalog["services"][0];
    assert_eq!((status, &service["id"], &service["name"]), (200, &json!("id-cache"), &json!("cache")));
    assert_eq!(service["metadata"]["displayName"], "Cache");
    let plans: Vec<&Value> = service["plans"].as_array().unwrap().iter().map(|plan| &plan["id"]).collect();
    assert_eq!(plans, ["id-big", "id-micro"]);
    let schema = &service["plans"][0]["schemas"]["service_instance"]["create"]["parameters"];
    assert_eq!(schema["properties"]["size"]["type"], "integer");

    // The instance is the module with its plan, and the parameters are nowhere but in Secrets.
    let body = wanted("big", &json!({"size": 12, "said": {"own": "hunter4hunter4"}}));
    let path = format!("{INSTANCE}?accepts_incomplete=true");
    assert_eq!(platform.ask("PUT", &path, &body).await, (202, json!({"operation": "provision"})));
    let (status, state) = platform.ended(INSTANCE).await;
    assert_eq!((status, &state["state"]), (200, &json!("succeeded")), "{state}");
    let map = get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/addon-operator").await.unwrap();
    assert_eq!(map["data"], json!({"cache": "plan: big\n", "cacheEnabled": "true"}));
    for path in ["/", "/queue", "/status", "/metrics"] {
        let page = program::get(&operator.port.to_string(), path);
        assert!(!page.contains("hunter4"), "{path} shows a parameter");
    }
    assert!(!ask_socket(&world.cluster, "/module/cache/values.json").contains("hunter4"));
    let metrics = program::get(&operator.port.to_string(), "/metrics");
    for line in [
        "addon_operator_broker_instances_total{module=\"cache\",stage=\"provisioned\"} 1\n",
        "addon_operator_broker_request_seconds_count{code=\"202\",method=\"PUT\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }

    let binding = format!("{INSTANCE}/service_bindings/b1");
    let (status, bound) = platform.ask("PUT", &binding, &wanted("big", &json!({}))).await;
    let credentials = &bound["credentials"];
    assert_eq!((status, &credentials["PASSWORD"]), (201, &json!("hunter2hunter2")));
    assert_eq!(
        (&credentials["URI"], &credentials["size"]),
        (&json!("cache://cache-redis.ops/12"), &json!("12"))
    );

    // Another operator goes on with it.
    operator.stop().await;
    let (operator, platform) = start(&world).await;
    assert_eq!(platform.ended(INSTANCE).await.1["state"], "succeeded");
    assert_eq!(platform.ask("PUT", &path, &body).await, (200, json!({})));
    assert_eq!(platform.ask("GET", &binding, &Value::Null).await, (200, bound));
    let ids = "service_id=id-cache&plan_id=id-big";
    assert_eq!(platform.ask("DELETE", &format!("{binding}?{ids}"), &Value::Null).await, (200, json!({})));
    let removal = format!("{path}&{ids}");
    assert_eq!(platform.ask("DELETE", &removal, &Value::Null).await.0, 202);
    assert_eq!(platform.ended(INSTANCE).await.0, 410);
    assert_eq!(platform.ask("DELETE", &removal, &Value::Null).await.0, 410);
    let map = get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/addon-operator").await.unwrap();
    assert_eq!(map["data"], json!({"cacheEnabled": "false"}));
    let secret = get(&world.cluster.server, &format!("{SECRETS}/addon-operator")).await.unwrap();
    assert!(secret["data"].as_object().is_none_or(serde_json::Map::is_empty), "{secret}");
    assert!(get(&world.cluster.server, &format!("{SECRETS}/cache-binding")).await.is_none());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_know_the_password_and_what_is_no_call_reaches_nothing() {
    let world = world().await;
    let (operator, platform) = start(&world).await;
    let version = "X-Broker-API-Version: 2.13\r\n";
    for pair in
        ["platform:a long passwor", "platform:", "other:a long password", ":", "platform:A long password"]
    {
        let stranger = Platform::new(platform.port, pair);
        let (status, head, body) = stranger.call("GET", "/cluster/v2/catalog", version, "").await;
        assert_eq!((status, &body["error"]), (401, &json!("Unauthorized")), "{pair}");
        assert!(head.contains("www-authenticate: basic"), "{head}");
    }
    let bare = format!("GET /cluster/v2/catalog HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{version}\r\n");
    assert!(platform.send(&bare).await.starts_with("HTTP/1.1 401 "));
    let (status, head, body) =
        platform.call("GET", "/cluster/v2/catalog", "X-Broker-API-Request-Identity: r-1\r\n", "").await;
    assert_eq!((status, &body["error"]), (412, &json!("PreconditionFailed")));
    assert!(
        head.contains("x-broker-api-request-identity: r-1") && head.contains("application/json"),
        "{head}"
    );
    let large = "x".repeat(300 << 10);
    let put = format!("{INSTANCE}?accepts_incomplete=true");
    for (body, expected) in [("{", 400), ("", 400), (&*large, 413)] {
        let (status, _, answer) = platform.call("PUT", &put, version, body).await;
        assert_eq!((status, &answer["error"]), (expected, &json!("BadRequest")), "{} bytes", body.len());
    }
    // A Secret of a namespace opens that namespace, and nothing else.
    let namespaces = "/api/v1/namespaces";
    for name in ["team", "rest"] {
        ok(&world.cluster.server, Method::POST, namespaces, &json!({"metadata": {"name": name}})).await;
    }
    let secret = password("addon-operator-broker", ("team", "of team"));
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/team/secrets", &secret).await;
    let team = Platform::new(platform.port, "team:of team");
    for (path, status) in [
        ("/ns/team/v2/catalog", 200),
        ("/ns/rest/v2/catalog", 401),
        ("/cluster/v2/catalog", 401),
        ("/ns/ops/v2/catalog", 401),
    ] {
        assert_eq!(team.ask("GET", path, &Value::Null).await.0, status, "{path}");
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_catalog_has_a_broker_for_the_cluster_and_for_each_namespace_until_the_last_configuration_is_gone()
 {
    let world = world().await;
    let server = &world.cluster.server;
    ok(server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
    let (operator, _) = start(&world).await;
    let first = broker(&world).await.unwrap();
    let secret = json!({"namespace": "ops", "name": "addon-operator-broker"});
    assert_eq!(first["spec"]["authInfo"]["basic"]["secretRef"], secret);
    let relists = async || broker(&world).await.unwrap()["spec"]["relistRequests"].as_i64().unwrap();
    // The first object may have been made before the addon was registered: the offer is told anew then.
    until_asked("the offer of the addon", async || {
        let hash = |broker: &Value| broker["metadata"]["annotations"]["addon-operator.io/offer"].clone();
        hash(&broker(&world).await.unwrap()) != json!(offer_of_nothing())
    })
    .await;

    // Another offer is told once: the counter goes up by one.
    let before = relists().await;
    let sources = "/apis/addons.kyma-project.io/v1alpha1/namespaces/team/addonsconfigurations";
    ok(server, Method::POST, sources, &namespaced()).await;
    let of_team = format!("{CATALOG}/namespaces/team/servicebrokers/addon-operator-ops");
    until_asked("the broker of the namespace", async || get(server, &of_team).await.is_some()).await;
    let team = get(server, &of_team).await.unwrap();
    assert_eq!(
        (&team["spec"]["relistRequests"], team["spec"]["url"].as_str().unwrap().ends_with("/ns/team")),
        (&json!(1), true)
    );
    assert_eq!(team["spec"]["authInfo"]["basic"]["secretRef"], json!({"name": "addon-operator-broker"}));
    assert_eq!(relists().await, before, "the cluster is offered the same");
    let mut object = world.object("platform").await;
    object["spec"]["repositories"] = json!([]);
    ok(server, Method::PUT, &format!("{SOURCES}/platform"), &object).await;
    until_asked("another offer", async || relists().await == before + 1).await;

    assert_eq!(send(server, Method::DELETE, &format!("{SOURCES}/platform"), &Value::Null).await.0, 200);
    until_asked("the end of the broker of the cluster", async || broker(&world).await.is_none()).await;
    assert_eq!(send(server, Method::DELETE, &format!("{sources}/x"), &Value::Null).await.0, 200);
    until_asked("the end of that of the namespace", async || get(server, &of_team).await.is_none()).await;
    operator.stop().await;
}

#[tokio::test]
async fn an_object_of_service_catalog_that_others_change_is_written_five_times_at_most() {
    let server = ApiServer::builder().seed(1).build().unwrap();
    for namespace in ["ops", "team"] {
        ok(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
    }
    for (kind, scope) in [("ClusterServiceBroker", "Cluster"), ("ServiceBroker", "Namespaced")] {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        ok(&server, Method::POST, definitions, &definition(kind, scope)).await;
    }
    // Somebody writes each time between the look and the write, as long as this says.
    let (others, writes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (left, counted, behind) = (Arc::clone(&others), Arc::clone(&writes), server.clone());
    let network = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, left, counted) = (behind.clone(), Arc::clone(&left), Arc::clone(&counted));
        async move {
            if request.method() == Method::PATCH {
                counted.fetch_add(1, Ordering::Relaxed);
                let path = request.uri().path().to_owned();
                let is_first = |left: usize| left.checked_sub(1);
                if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_first).is_ok() {
                    let mut theirs = get(&server, &path).await.unwrap();
                    let before = theirs["spec"]["relistRequests"].as_i64().unwrap();
                    theirs["spec"]["relistRequests"] = json!(before + 10);
                    ok(&server, Method::PUT, &path, &theirs).await;
                }
            }
            server.service().oneshot(request).await
        }
    });
    let options = addon_operator::broker::Options {
        address: "127.0.0.1:0".to_owned(),
        namespace: "ops".to_owned(),
        config_map: "addon-operator".to_owned(),
        secret: "addon-operator-broker".to_owned(),
        url: "http://127.0.0.1:0".to_owned(),
    };
    let broker = addon_operator::broker::Broker::bind(Client::new(network, "ops"), options).await.unwrap();
    let registration = |offer: &str| BrokerRegistration {
        cluster: Some(offer.to_owned()),
        namespaces: BTreeMap::from([("team".into(), offer.to_owned())]),
    };
    broker.register(&registration("one")).await.unwrap();
    let relists = async || {
        let path = format!("{CATALOG}/clusterservicebrokers/addon-operator-ops");
        get(&server, &path).await.unwrap()["spec"]["relistRequests"].as_i64().unwrap()
    };
    assert_eq!((relists().await, writes.load(Ordering::Relaxed)), (1, 0));
    // Four conflicts of the first object: nothing of what others wrote is lost.
    others.store(4, Ordering::Relaxed);
    broker.register(&registration("two")).await.unwrap();
    assert_eq!((relists().await, writes.swap(0, Ordering::Relaxed)), (42, 6));
    others.store(5, Ordering::Relaxed);
    let failure = broker.register(&registration("three")).await.unwrap_err();
    assert_eq!((relists().await, writes.swap(0, Ordering::Relaxed)), (92, 5), "{failure}");
    // The next attempt begins anew.
    broker.register(&registration("three")).await.unwrap();
    assert_eq!((relists().await, writes.load(Ordering::Relaxed)), (93, 2));
}

/// Returns how many sockets of a process listen.
fn listening(pid: u32) -> usize {
    let sockets: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap());
    let fields = tables
        .iter()
        .flat_map(|table| table.lines())
        .map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let is_listening = |fields: &Vec<&str>| {
        fields.get(3) == Some(&"0A") && fields.get(9).is_some_and(|inode| sockets.contains(*inode))
    };
    fields.filter(is_listening).count()
}

#[test]
fn nobody_listens_for_platforms_unless_that_is_asked_for() {
    let count = |more: &[&str]| {
        let workspace = program::Workspace::new();
        let mut running = workspace.dev(more);
        running.wait("Operator is ready now");
        listening(running.pid())
    };
    assert_eq!(count(&["--osb-listen", "127.0.0.1:0"]), count(&[]) + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_calls_at_once_for_one_instance_one_is_carried_out_and_nothing_is_half_done() {
    let world = world().await;
    let (operator, platform) = start(&world).await;
    let path = format!("{INSTANCE}?accepts_incomplete=true");
    let (big, micro) = (wanted("big", &json!({"size": 3})), wanted("micro", &json!({})));
    let (one, other) = tokio::join!(platform.ask("PUT", &path, &big), platform.ask("PUT", &path, &micro));
    let (done, refused, plan) =
        if one.0 == 202 { (one, other, "plan: big\n") } else { (other, one, "plan: micro\n") };
    assert_eq!(done.0, 202, "{done:?}");
    assert!(
        matches!(
            (refused.0, refused.1["error"].as_str()),
            (422, Some("ConcurrencyError")) | (409, Some("Conflict"))
        ),
        "{refused:?}"
    );
    assert_eq!(platform.ended(INSTANCE).await.1["state"], "succeeded");
    let map = get(&world.cluster.server, "/api/v1/namespaces/ops/configmaps/addon-operator").await.unwrap();
    assert_eq!(map["data"], json!({"cache": plan, "cacheEnabled": "true"}));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_their_turn_while_thirty_two_are_being_read() {
    let world = world().await;
    let (operator, platform) = start(&world).await;
    let Platform { port, authorization } = &platform;
    let mut slow = Vec::new();
    for number in 0..32 {
        let mut stream = TcpStream::connect(("127.0.0.1", *port)).await.unwrap();
        let head = format!(
            "PUT /cluster/v2/service_instances/s{number} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\
             Authorization: {authorization}\r\nX-Broker-API-Version: 2.17\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let catalog = || platform.ask("GET", "/cluster/v2/catalog", &Value::Null);
    // Until the last of them has its place, others are answered.
    let moment = std::time::Duration::from_millis(200);
    until_asked("a call that waits", async || tokio::time::timeout(moment, catalog()).await.is_err()).await;
    let waiting = catalog();
    let ending = async {
        let mut stream = slow.remove(0);
        stream.write_all(b"}").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let ((status, _), answer) = tokio::join!(waiting, ending);
    assert_eq!(status, 200);
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_of_the_installation_are_enough_for_the_broker() {
    let world = world().await;
    let server = &world.cluster.server;
    ok(server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
    let secret = password("addon-operator-broker", ("team", "of team"));
    ok(server, Method::POST, "/api/v1/namespaces/team/secrets", &secret).await;
    let sources = "/apis/addons.kyma-project.io/v1alpha1/namespaces/team/addonsconfigurations";
    ok(server, Method::POST, sources, &namespaced()).await;

    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let (shutdown, ended) = watch::channel(false);
    let sink = Arc::clone(&seen);
    let client = observed(server, "ops", move |request| {
        sink.lock().unwrap().extend(Request::of_client(request, "ops"));
    });
    let options = options(&world);
    let around = world.cluster.around(client, false, ended, &options);
    let running = tokio::spawn(app::run(around, drop));
    let platform = platform(&world, None).await;
    let team = Platform::new(platform.port, "team:of team");
    assert_eq!(team.ask("GET", "/ns/team/v2/catalog", &Value::Null).await.0, 200);
    let path = format!("{INSTANCE}?accepts_incomplete=true");
    assert_eq!(platform.ask("PUT", &path, &wanted("big", &json!({"size": 3}))).await.0, 202);
    assert_eq!(platform.ended(INSTANCE).await.1["state"], "succeeded");
    let binding = format!("{INSTANCE}/service_bindings/b1");
    assert_eq!(platform.ask("PUT", &binding, &wanted("big", &json!({}))).await.0, 201);
    let removal = format!("{path}&service_id=id-cache&plan_id=id-big");
    assert_eq!(platform.ask("DELETE", &removal, &Value::Null).await.0, 202);
    assert_eq!(platform.ended(INSTANCE).await.0, 410);
    for path in [format!("{SOURCES}/platform"), format!("{sources}/x")] {
        assert_eq!(send(server, Method::DELETE, &path, &Value::Null).await.0, 200);
    }
    until_asked("the end of the broker of the cluster", async || broker(&world).await.is_none()).await;
    let of_team = format!("{CATALOG}/namespaces/team/servicebrokers/addon-operator-ops");
    until_asked("the end of that of the namespace", async || get(server, &of_team).await.is_none()).await;
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();

    let seen = seen.lock().unwrap();
    let about = |verb: &str, resource: &str, name: &str| {
        seen.iter().any(|request| {
            ["verb", "resource", "name"].map(|field| request.text(field)) == [verb, resource, name]
        })
    };
    for (verb, resource, name) in [
        ("get", "secrets", "addon-operator-broker"),
        ("patch", "secrets", "addon-operator-broker-instances"),
        ("get", "secrets", "cache-binding"),
        ("list", "servicebrokers", ""),
        ("create", "servicebrokers", ""),
        ("create", "clusterservicebrokers", ""),
        ("patch", "clusterservicebrokers", "addon-operator-ops"),
        ("delete", "servicebrokers", "addon-operator-ops"),
        ("delete", "clusterservicebrokers", "addon-operator-ops"),
    ] {
        assert!(about(verb, resource, name), "nobody did this: {verb} {resource} {name}");
    }
    let manifests = manifests();
    // What charts install is made and watched with the rights of modules.
    let of_broker = |request: &&Request| {
        let is_kept = matches!(request.text("resource"), "secrets" | "configmaps");
        request.text("group") == "servicecatalog.k8s.io"
            || (is_kept && !request.text("query").contains("heritage"))
    };
    let refused: BTreeSet<String> = seen
        .iter()
        .filter(of_broker)
        .filter(|request| !request.is_allowed(&manifests))
        .map(ToString::to_string)
        .collect();
    assert_eq!(refused, BTreeSet::new(), "the roles do not allow this");
}
