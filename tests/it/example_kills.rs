//! Hosted clusters with an operator that is killed before or after each of its writes: the end is that of a life without kills.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use apiserver::ApiServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::example_clusters::{CLUSTERS, World};
use crate::support::DEADLINE;
use crate::support::kills::{Moment, killed, lives};
use crate::support::pause::long_pause;
use crate::support::server::get;

/// How many writes a part of a life takes at most.
const AT_MOST: usize = 200;

/// What the operator is at when it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Create,
    Delete,
}

impl Work {
    async fn is_done(self, world: &World) {
        match self {
            Self::Create => world.ready("demo").await,
            Self::Delete => world.gone("demo").await,
        }
    }
}

/// The state of a cluster at the beginning of some work, from which lives begin again and again, and what comes of it.
struct Beginning {
    work: Work,
    dir: TempDir,
    end: BTreeMap<String, Value>,
}

impl Beginning {
    async fn of(work: Work) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = World::on(ApiServer::builder().state(dir.path().join("state")));
        for name in ["ops", "clusters"] {
            world.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        }
        let operator = world.cluster.start(&[]).await;
        world.kinds().await;
        if work == Work::Delete {
            world.begin("demo", json!({})).await;
            world.ready("demo").await;
        }
        operator.stop().await;
        match work {
            Work::Create => world.begin("demo", json!({})).await,
            Work::Delete => world.delete(&format!("{CLUSTERS}/demo")).await,
        }
        world.cluster.server.shutdown().await.unwrap();
        let beginning = Self { work, dir, end: BTreeMap::new() };
        let (world, _copy) = beginning.again();
        let operator = world.cluster.start(&[]).await;
        work.is_done(&world).await;
        let end = at_rest(&world, operator.port).await;
        operator.stop().await;
        Self { end, ..beginning }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Returns a cluster of its own in this state, and where it is kept.
    fn again(&self) -> (World, TempDir) {
        let copy = tempfile::tempdir().unwrap();
        let state = copy.path().join("state");
        std::fs::copy(self.state(), &state).unwrap();
        (World::on(ApiServer::builder().state(state)), copy)
    }

    /// Lives on with a kill at this write, and another operator after it. Returns whether it came to that.
    async fn struck(&self, (number, moment): (usize, Moment)) -> bool {
        let (world, _copy) = self.again();
        let done = async || self.work.is_done(&world).await;
        let is_struck = killed(&world.cluster, &[], (number, moment), done).await;
        if is_struck {
            let operator = world.cluster.start(&[]).await;
            self.ends(&world, &format!("killed {moment:?} write {number}")).await;
            operator.stop().await;
        }
        is_struck
    }

    /// Waits until the work is done and all is as after a life without kills.
    async fn ends(&self, world: &World, what: &str) {
        self.work.is_done(world).await;
        let begun = Instant::now();
        let mut end = picture(world).await;
        while end != self.end {
            assert!(begun.elapsed() < DEADLINE, "{}", self.difference(&end, what));
            long_pause().await;
            end = picture(world).await;
        }
    }

    fn difference(&self, end: &BTreeMap<String, Value>, what: &str) -> String {
        let names = end.keys().chain(self.end.keys());
        let other = names.filter(|name| end.get(*name) != self.end.get(*name));
        let other: BTreeMap<&String, _> =
            other.map(|name| (name, (self.end.get(name), end.get(name)))).collect();
        format!("{:?}, {what}: expected, found: {other:#?}", self.work)
    }

    /// Kills around each write, each time in a life of its own, to the last one that there is. Returns how many there were.
    async fn walk(&self) -> usize {
        let mut kills = 0;
        for moment in [Moment::Before, Moment::After] {
            kills += lives(moment, async |number| {
                assert!(number < AT_MOST, "{:?} takes more writes than expected", self.work);
                self.struck((number, moment)).await
            })
            .await;
        }
        kills
    }
}

/// Returns all that people and controllers wrote of the cluster and its parts, without what is another one each time.
async fn picture(world: &World) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for collection in [
        "/apis/hypershift.openshift.io/v1alpha1/hostedclusters",
        "/apis/hypershift.openshift.io/v1alpha1/nodepools",
        "/apis/hypershift.openshift.io/v1alpha1/hostedcontrolplanes",
        "/apis/hypershift.openshift.io/v1alpha1/externalinfraclusters",
        "/apis/cluster.x-k8s.io/v1alpha4/clusters",
        "/apis/cluster.x-k8s.io/v1alpha4/machinesets",
        "/apis/cluster.x-k8s.io/v1alpha4/machines",
        "/apis/infrastructure.cluster.x-k8s.io/v1alpha4/simmachinetemplates",
        "/apis/infrastructure.cluster.x-k8s.io/v1alpha4/simmachines",
        "/apis/apps/v1/deployments",
        "/api/v1/namespaces",
        "/api/v1/services",
        "/api/v1/configmaps",
        "/api/v1/secrets",
    ] {
        let list = get(&world.cluster.server, collection).await.unwrap_or_default();
        for mut object in list["items"].as_array().cloned().unwrap_or_default() {
            let metadata = &object["metadata"];
            let (namespace, name) = (metadata["namespace"].as_str().unwrap_or_default(), &metadata["name"]);
            if namespace == "ops" {
                continue;
            }
            let key = format!("{collection} {namespace}/{}", name.as_str().unwrap());
            without(&mut object);
            all.insert(key, object);
        }
    }
    all
}

/// Removes what the API server makes up, and times.
fn without(value: &mut Value) {
    const OTHER: [&str; 13] = [
        "uid",
        "resourceVersion",
        "generation",
        "observedGeneration",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "lastUpdateTime",
        "startedTime",
        "completionTime",
        "clusterIP",
        "clusterIPs",
        // It has the identity of the owner in it.
        "addon-operator.io/applied",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OTHER.contains(&name.as_str()));
            fields.values_mut().for_each(without);
        }
        Value::Array(items) => items.iter_mut().for_each(without),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the picture when no queue has a task any more.
async fn at_rest(world: &World, port: u16) -> BTreeMap<String, Value> {
    let begun = Instant::now();
    loop {
        let before = picture(world).await;
        if world.is_idle(port).await && picture(world).await == before {
            return before;
        }
        assert!(begun.elapsed() < DEADLINE, "there is always something to do");
        long_pause().await;
    }
}

/// Lives on one cluster with a kill at each of these writes, a new operator after each, then to the end of the work. Returns how many
/// kills there were.
async fn struck_again_and_again(
    beginning: &Beginning,
    moment: Moment,
    numbers: impl IntoIterator<Item = usize>,
) -> usize {
    let (world, _copy) = beginning.again();
    let mut kills = 0;
    for number in numbers {
        let done = async || beginning.work.is_done(&world).await;
        if !killed(&world.cluster, &[], (number, moment), done).await {
            break;
        }
        kills += 1;
    }
    let operator = world.cluster.start(&[]).await;
    beginning.ends(&world, &format!("{moment:?}, {kills} kills")).await;
    operator.stop().await;
    kills
}

#[tokio::test(flavor = "multi_thread")]
async fn c12_a_life_goes_on_under_kills_that_come_later_each_time() {
    for (work, moment) in [(Work::Create, Moment::After), (Work::Delete, Moment::Before)] {
        let beginning = Beginning::of(work).await;
        let kills = struck_again_and_again(&beginning, moment, (1..).step_by(11)).await;
        assert!(kills >= 2, "{work:?} {moment:?}: {kills} kills");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a life for each write takes minutes"]
async fn c12_a_kill_at_any_write_of_a_life_changes_no_end() {
    for work in [Work::Create, Work::Delete] {
        let beginning = Beginning::of(work).await;
        let begun = Instant::now();
        let kills = beginning.walk().await;
        println!("{work:?}: {kills} lives with a kill, {:?}", begun.elapsed());
        assert!(kills >= 10, "{work:?}: only {kills} writes were hit");
    }
}
