//! Writes of the ConfigMap that users edit at the same time.

use std::sync::{Arc, Mutex};

use addon_operator::cluster::Discovery;
use addon_operator::config::Parameters;
use addon_operator::driver;
use addon_operator::kube::ConfigSource;
use apiserver::{ApiServer, FaultPlan};
use engine::{Basis, ConfigObject, ConfigText};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::support::in_process::Cluster;
use crate::support::measured::{Program, kib_of};
use crate::support::program::Workspace;
use crate::support::server;
use crate::support::watching::noting;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = "/api/v1/namespaces/default/configmaps/settings";

struct Fixture {
    server: ApiServer,
    source: ConfigSource,
}

impl Fixture {
    async fn new(data: Value) -> Self {
        let server = ApiServer::builder().seed(1).build().unwrap();
        let map = json!({"metadata": {"name": "settings"}, "data": data});
        server::ok(&server, Method::POST, MAPS, &map).await;
        let source = ConfigSource::new(
            ConfigObject::ConfigMap,
            Client::new(server.service(), "default"),
            "default",
            "settings",
        );
        Self { server, source }
    }

    async fn save(&self, text: Option<&str>, basis: &Basis) -> Result<String, String> {
        self.source.save("web", text, basis).await.map_err(|failure| failure.to_string())
    }

    async fn edit(&self, data: Value) {
        server::ok(&self.server, Method::PATCH, MAP, &json!({"data": data})).await;
    }

    async fn data(&self) -> Value {
        server::get(&self.server, MAP).await.map(|map| map["data"].clone()).unwrap_or_default()
    }
}

fn made_from(text: &str) -> Basis {
    Basis::Text(Some(ConfigText(text.to_owned())))
}

#[tokio::test]
async fn slip_18_what_a_user_wrote_meanwhile_is_not_undone() {
    let world = Fixture::new(json!({"web": "a: 1", "other": "x"})).await;
    world.save(Some("a: 2"), &made_from("a: 1")).await.unwrap();
    world.edit(json!({"web": "a: users", "other": "y"})).await;
    let error = world.save(Some("a: 3"), &made_from("a: 2")).await.unwrap_err();
    assert!(
        error.starts_with("can't write key web of ConfigMap default/settings: somebody else changed"),
        "{error}"
    );
    assert!(!error.contains("users"), "{error}");
    assert_eq!(world.data().await, json!({"web": "a: users", "other": "y"}));
    // A command of a person holds, whatever the key says.
    world.save(Some("true"), &Basis::Nothing).await.unwrap();
    assert_eq!(world.data().await, json!({"web": "true", "other": "y"}));
    world.edit(json!({"web": null})).await;
    world.save(Some("a: 4"), &made_from("true")).await.unwrap_err();
    world.save(Some("a: 4"), &Basis::Text(None)).await.unwrap();
    world.save(None, &made_from("a: 4")).await.unwrap();
    assert_eq!(world.data().await, json!({"other": "y"}));
}

#[tokio::test]
async fn slip_18_a_change_between_reading_and_writing_is_seen() {
    let world = Fixture::new(json!({"web": "a: 1"})).await;
    // The first read is answered, and the write that follows is held up until the user has written.
    let held = FaultPlan::on(Method::PATCH, MAP).times(1).fail(409);
    world.server.faults().add(held);
    world.save(Some("a: 2"), &made_from("a: 1")).await.unwrap();
    assert_eq!(world.data().await, json!({"web": "a: 2"}));
    // Twenty writers of keys of their own, at the same time.
    let writers = (0..20).map(|n| {
        let source = world.source.clone();
        async move {
            let (key, basis) = (format!("k{n}"), Basis::Text(None));
            // Each gives up after some tries and comes back, as the engine does.
            while source.save(&key, Some("v"), &basis).await.is_err() {}
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(world.data().await.as_object().unwrap().len(), 21);
}

#[tokio::test]
async fn slip_18_nothing_is_written_when_the_key_says_so_already() {
    let world = Fixture::new(json!({"web": "a: 1"})).await;
    let version =
        |map: Option<Value>| map.unwrap()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let before = version(server::get(&world.server, MAP).await);
    let saved = world.save(Some("a: 1"), &made_from("a: 0")).await.unwrap();
    assert_eq!(
        (saved.as_str(), version(server::get(&world.server, MAP).await)),
        (before.as_str(), before.clone())
    );
    server::ok(&world.server, Method::DELETE, MAP, &Value::Null).await;
    assert_eq!(world.save(None, &Basis::Nothing).await.unwrap(), "");
    world.save(Some("a: 1"), &Basis::Text(None)).await.unwrap();
    assert_eq!(world.data().await, json!({"web": "a: 1"}));
}

#[tokio::test]
async fn a_write_that_fits_what_is_known_is_one_request() {
    let mut world = Fixture::new(json!({"web": "a: 1"})).await;
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    world.source =
        ConfigSource::new(ConfigObject::ConfigMap, noting(&world.server, &paths), "default", "settings");
    let asked = || std::mem::take(&mut *paths.lock().unwrap()).len();
    world.source.read().await.unwrap();
    assert_eq!(asked(), 1);
    for (text, was) in [("a: 2", "a: 1"), ("a: 3", "a: 2"), ("a: 4", "a: 3")] {
        world.save(Some(text), &made_from(was)).await.unwrap();
        assert_eq!(asked(), 1, "the write alone");
    }
    // What somebody else changed is found by the write that the API server refuses, and by one question more.
    world.edit(json!({"other": "x"})).await;
    world.save(Some("a: 5"), &made_from("a: 4")).await.unwrap();
    assert_eq!(asked(), 3);
    // That nothing has to be written is not believed without a question.
    world.edit(json!({"web": "a: users"})).await;
    world.save(Some("a: 5"), &Basis::Nothing).await.unwrap();
    assert_eq!((asked(), world.data().await), (2, json!({"web": "a: 5", "other": "x"})));
}

#[tokio::test]
async fn what_the_watch_shows_later_than_our_write_is_not_believed() {
    let mut world = Fixture::new(json!({"web": "a: 1"})).await;
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let client = noting(&world.server, &paths);
    world.source = ConfigSource::new(ConfigObject::ConfigMap, client.clone(), "default", "settings");
    let (inbox, _questions, mut channels) = driver::channels();
    let reports = Discovery::new(client).watch_reports();
    let parameters = Parameters::new(tracing::Level::INFO, |_| {});
    tokio::spawn(world.source.feed(&reports).follow(inbox, parameters));
    channels.next_event().await.unwrap();
    let writes = |paths: &Arc<Mutex<Vec<String>>>| {
        let paths = std::mem::take(&mut *paths.lock().unwrap());
        paths.iter().filter(|path| path.contains("/configmaps/settings")).count()
    };
    // The watch has shown the ConfigMap, so even the first write needs no question.
    for round in 1..20 {
        world.save(Some(&format!("a: {}", round + 1)), &made_from(&format!("a: {round}"))).await.unwrap();
    }
    assert_eq!(writes(&paths), 19);
    // All of them are seen, late.
    for _ in 1..20 {
        channels.next_event().await.unwrap();
    }
    world.save(Some("a: last"), &made_from("a: 20")).await.unwrap();
    assert_eq!(writes(&paths), 1);
}

/// How much more than at rest the program may hold at any time, in KiB, whatever a key says.
const MOST_ABOVE_IDLE: u64 = 100 << 10;

/// About as many empty lists as a key may have: a few more are refused.
const MOST_ITEMS: usize = 170_000;

/// A module that shows which edit of its values is in force.
const EDITED: [(&str, &str); 3] = [
    ("modules/001-web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
    (
        "modules/001-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {edit: '{{ .Values.web.edit }}'}\n",
    ),
    ("modules/values.yaml", "webEnabled: true\nweb: {edit: '0'}\n"),
];

/// Returns what the key says in an edit.
fn longest(edit: usize) -> String {
    format!("a: [{}]\nedit: '{edit}'\n", "[],".repeat(MOST_ITEMS))
}

#[tokio::test(flavor = "multi_thread")]
async fn slip_05_edits_of_the_largest_list_that_a_key_may_have_take_little_memory_of_the_system() {
    let cluster = Cluster::new().await;
    for (path, text) in EDITED {
        cluster.write(path, text);
    }
    let socket = cluster.path("socket").display().to_string();
    let program = Program::start(&cluster, &[("DEBUG_UNIX_SOCKET", &socket)]).await;
    cluster.settled("web", |map| map["data"]["edit"] == "0").await;
    let idle = program.kib("VmRSS:");
    for edit in 1..=4 {
        cluster.put("addon-operator", json!({"data": {"web": longest(edit)}})).await;
        let edit = edit.to_string();
        cluster.settled("web", |map| map["data"]["edit"] == *edit).await;
    }
    let above = program.kib("VmHWM:").saturating_sub(idle);
    assert!(above <= MOST_ABOVE_IDLE, "{above} KiB above the {idle} KiB at rest");
}

/// Returns the maps of configuration in the cluster that `dev` has.
async fn maps_of(world: &Workspace) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::read_from(world.path().join(".addon-operator/kubeconfig")).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Api::namespaced(Client::try_from(config).unwrap(), "addon-operator")
}

#[tokio::test(flavor = "multi_thread")]
async fn slip_05_the_same_edits_take_little_memory_of_dev_which_has_its_cluster_in_the_same_process() {
    let world = Workspace::new();
    for (path, text) in EDITED {
        world.write(path, text);
    }
    let (running, _) = tokio::task::block_in_place(|| world.ready());
    let maps = maps_of(&world).await;
    let take_in = async |text: String, edit: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": {"web": text}});
        let by = PatchParams::apply("a-person").force();
        maps.patch("addon-operator", &by, &Patch::Apply(&map)).await.unwrap();
        server::settled(&maps, "web", |map| map["data"]["edit"] == *edit).await;
    };
    // The code that edits run is mapped by the first of them.
    take_in("edit: 'small'\n".to_owned(), "small").await;
    let idle = kib_of(running.pid(), "VmRSS:");
    for edit in 1..=4 {
        take_in(longest(edit), &edit.to_string()).await;
    }
    let above = kib_of(running.pid(), "VmHWM:").saturating_sub(idle);
    assert!(above <= MOST_ABOVE_IDLE, "{above} KiB above the {idle} KiB at rest");
}
