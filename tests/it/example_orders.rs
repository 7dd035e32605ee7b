//! The order in which the writes of a hosted cluster come, as the API server sees them: that of the flowcharts, also when a write is
//! refused, and what is still there when something is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use addon_operator::app;
use addon_operator::cluster::connect_in_process;
use apiserver::{ApiServer, FaultPlan};
use http::Method;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::example_clusters::{CLUSTERS, POOLS, World};
use crate::support::rights::Request;
use crate::support::server::get;

/// What is looked at before each deletion, and before a finalizer goes.
const LISTS: [(&str, &str); 7] = [
    ("HostedCluster", "/apis/hypershift.openshift.io/v1alpha1/hostedclusters"),
    ("NodePool", "/apis/hypershift.openshift.io/v1alpha1/nodepools"),
    ("HostedControlPlane", "/apis/hypershift.openshift.io/v1alpha1/hostedcontrolplanes"),
    ("Cluster", "/apis/cluster.x-k8s.io/v1alpha4/clusters"),
    ("MachineSet", "/apis/cluster.x-k8s.io/v1alpha4/machinesets"),
    ("Machine", "/apis/cluster.x-k8s.io/v1alpha4/machines"),
    ("Namespace", "/api/v1/namespaces"),
];

/// A write that was done.
#[derive(Clone, Debug)]
struct Write {
    /// `patch deployments/etcd`; a status has its own resource.
    what: String,
    /// What was there before it, by kind: names, and of machines their template. Only before a deletion and before finalizers go.
    before: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Write {
    fn had(&self, kind: &str) -> bool {
        self.before.get(kind).is_some_and(|names| !names.is_empty())
    }
}

async fn living(server: &ApiServer) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for (kind, path) in LISTS {
        let list = get(server, path).await.unwrap_or_default();
        let name = |object: &Value| {
            let name = match kind {
                "Machine" => &object["spec"]["infrastructureRef"]["name"],
                _ => &object["metadata"]["name"],
            };
            name.as_str().unwrap_or_default().to_owned()
        };
        let mut names: BTreeSet<String> = list["items"].as_array().into_iter().flatten().map(name).collect();
        names.retain(|name| kind != "Namespace" || name.starts_with("clusters-"));
        all.insert(kind, names);
    }
    all
}

/// A write that has no answer yet; also a client that goes away ends it.
struct UnderWay(watch::Sender<usize>);

impl UnderWay {
    fn begin(of: watch::Sender<usize>) -> Self {
        of.send_modify(|writes| *writes += 1);
        Self(of)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|writes| *writes -= 1);
    }
}

/// An operator whose writes are noted.
struct Noted {
    world: World,
    writes: Arc<Mutex<Vec<Write>>>,
    /// How many writes have no answer yet.
    under_way: watch::Sender<usize>,
    shutdown: watch::Sender<bool>,
    running: tokio::task::JoinHandle<anyhow::Result<app::Outcome>>,
}

impl Noted {
    async fn start() -> Self {
        let world = World::new().await;
        let writes: Arc<Mutex<Vec<Write>>> = Arc::default();
        let under_way = watch::Sender::new(0);
        let (server, sink) = (world.cluster.server.clone(), (Arc::clone(&writes), under_way.clone()));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (server, (sink, under_way)) = (server.clone(), sink.clone());
            async move {
                let what = Request::of_client(&request, "ops").and_then(|asked| {
                    let part = |name: &str| asked.text(name).to_owned();
                    let verb = part("verb");
                    let of = match part("subresource") {
                        of if of.is_empty() => part("resource"),
                        of => format!("{}.{of}", part("resource")),
                    };
                    let writes = ["create", "patch", "update", "delete"].contains(&verb.as_str());
                    (writes && of != "events" && of != "leases")
                        .then(|| format!("{verb} {of}/{}", part("name")))
                });
                let Some(what) = what else { return server.service().oneshot(request).await };
                let _counted = UnderWay::begin(under_way);
                let ends = what.starts_with("delete ") || what.starts_with("patch hostedclusters/");
                let before = if ends { living(&server).await } else { BTreeMap::new() };
                let answer = server.service().oneshot(request).await;
                if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                    sink.lock().unwrap().push(Write { what, before });
                }
                answer
            }
        });
        let client = connect_in_process(service, "ops");
        let (shutdown, ended) = watch::channel(false);
        let running = tokio::spawn(app::run(
            world.cluster.around(client, false, ended, &[("retry-delay", "100ms")]),
            drop,
        ));
        Self { world, writes, under_way, shutdown, running }
    }

    /// Returns all writes so far. A write is noted when its answer comes, and what it did may be seen before that: so this waits until
    /// no answer is missing.
    async fn all(&self) -> Vec<Write> {
        self.under_way.subscribe().wait_for(|writes| *writes == 0).await.unwrap();
        self.writes.lock().unwrap().clone()
    }

    async fn come_in_order(&self, whats: &[&str]) {
        let all: Vec<String> = self.all().await.into_iter().map(|write| write.what).collect();
        // Of each the first one.
        let place = |what: &&str| {
            let place = all.iter().position(|write| write.starts_with(*what));
            place.unwrap_or_else(|| panic!("no {what} among {all:#?}"))
        };
        let places: Vec<usize> = whats.iter().map(place).collect();
        assert!(places.is_sorted(), "{whats:?} come at {places:?} of {all:#?}");
    }

    /// Returns the write before which something was there that it ends.
    async fn the(&self, what: &str) -> Write {
        let found = self.all().await.into_iter().find(|write| write.what.starts_with(what));
        found.unwrap_or_else(|| panic!("no {what}"))
    }

    /// Returns the last of these writes, which comes behind another one.
    async fn last(&self, what: &str, behind: &str) -> Write {
        let all = self.all().await;
        let before = all.iter().take_while(|write| !write.what.starts_with(behind)).count();
        let found = all.into_iter().skip(before).rfind(|write| write.what == what);
        found.unwrap_or_else(|| panic!("no {what} behind {behind}"))
    }

    async fn stop(self) {
        self.shutdown.send_replace(true);
        self.running.await.unwrap().unwrap();
    }
}

/// What the flowchart of a hosted cluster makes, in its order.
const RECIPE: [&str; 9] = [
    "patch namespaces/clusters-demo",
    "patch secrets/pull-secret",
    "patch deployments/control-plane-operator",
    "patch deployments/cluster-api",
    "patch deployments/capi-provider",
    "patch clusters/demo",
    "patch hostedcontrolplanes/demo",
    "patch externalinfraclusters/demo",
    "patch nodepools/demo",
];

async fn with_a_secret(world: &World) {
    let secret =
        json!({"metadata": {"name": "pull", "namespace": "clusters"}, "data": {".dockerconfigjson": "e30="}});
    world.post("/api/v1/namespaces/clusters/secrets", secret).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c01_c10_the_writes_of_a_life_come_in_the_order_of_the_flowcharts() {
    let noted = Noted::start().await;
    with_a_secret(&noted.world).await;
    noted.world.create("demo", json!({"pullSecret": {"name": "pull"}})).await;
    noted.world.ready("demo").await;
    noted.come_in_order(&RECIPE).await;
    // The finalizer is there before anything is made.
    noted.come_in_order(&["patch hostedclusters/demo", RECIPE[0]]).await;
    noted
        .come_in_order(&[
            "patch deployments/etcd",
            "patch deployments/kube-apiserver",
            "patch deployments/kube-controller-manager",
            "patch deployments/kube-scheduler",
            "patch deployments/hosted-cluster-config-operator",
        ])
        .await;
    // The set of machines comes before the template that it names.
    noted.come_in_order(&["patch machinesets/", "patch simmachinetemplates/"]).await;
    noted.writes.lock().unwrap().clear();
    noted.world.delete(&format!("{CLUSTERS}/demo")).await;
    noted.world.gone("demo").await;
    let pool = noted.the("delete nodepools/demo").await;
    assert!(pool.had("Cluster") && pool.had("HostedControlPlane"), "{pool:#?}");
    let template = noted.the("delete simmachinetemplates/").await;
    assert!(template.had("MachineSet") && template.had("NodePool"), "{template:#?}");
    let capi = noted.the("delete clusters/demo").await;
    assert!(!capi.had("NodePool") && !capi.had("Machine") && capi.had("HostedControlPlane"), "{capi:#?}");
    for operator in ["capi-provider", "cluster-api", "control-plane-operator"] {
        let deployment = noted.the(&format!("delete deployments/{operator}")).await;
        assert!(!deployment.had("Cluster") && !deployment.had("HostedControlPlane"), "{deployment:#?}");
    }
    let space = noted.the("delete namespaces/clusters-demo").await;
    assert!(!space.had("Cluster") && !space.had("HostedControlPlane"), "{space:#?}");
    // The last of all is the finalizer of the cluster.
    let last = noted.last("patch hostedclusters/demo", "delete namespaces/clusters-demo").await;
    assert!(!last.had("Namespace") && last.had("HostedCluster"), "{last:#?}");
    noted.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c01_nothing_behind_a_write_that_is_refused_is_made_before_it() {
    let noted = Noted::start().await;
    with_a_secret(&noted.world).await;
    // Each of these is refused when it comes for the first time.
    for path in ["*/deployments/cluster-api", "*/clusters/demo", "*/externalinfraclusters/demo"] {
        noted.world.cluster.server.faults().add(FaultPlan::on(Method::PATCH, path).nth(1).fail(500));
    }
    noted.world.create("demo", json!({"pullSecret": {"name": "pull"}})).await;
    noted.world.ready("demo").await;
    noted.come_in_order(&RECIPE).await;
    noted.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c08_a_template_comes_behind_its_set_and_goes_when_no_machine_is_of_it() {
    let noted = Noted::start().await;
    noted.world.create("demo", json!({})).await;
    noted.world.ready("demo").await;
    let old = noted.the("patch simmachinetemplates/").await.what.replace("patch ", "");
    noted.writes.lock().unwrap().clear();
    let change = json!({"spec": {"platform": {"aws": {"instanceType": "large"}}}});
    noted.world.patch(&format!("{POOLS}/demo"), change).await;
    let list = "/apis/infrastructure.cluster.x-k8s.io/v1alpha4/namespaces/clusters-demo/simmachinetemplates";
    let is_alone = |list: &Value| {
        let all = list["items"].as_array().into_iter().flatten();
        let names: Vec<&str> = all.filter_map(|one| one["metadata"]["name"].as_str()).collect();
        names.len() == 1 && !old.ends_with(names[0])
    };
    noted.world.settled(list, is_alone).await;
    noted.come_in_order(&["patch machinesets/", "patch simmachinetemplates/"]).await;
    noted.come_in_order(&["patch machinesets/", "delete machines/"]).await;
    let gone = noted.the(&format!("delete {old}")).await;
    let name = old.split_once('/').unwrap().1;
    assert!(gone.had("Machine") && !gone.before["Machine"].contains(name), "{gone:#?}");
    noted.stop().await;
}
