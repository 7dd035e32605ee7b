//! Charts from repositories under kills: before and after every write, at every read, and at every request to the repository. The
//! end is the same, and nothing is left behind.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::charts::{MAPS, World, alpha, beta, chart};
use crate::support::kills::{Beginning, Moment, killed, lives};
use crate::support::repository::{Reply, Repository};
use crate::support::server::{self, get};

/// How many writes, or reads, a part of a life takes at most.
const AT_MOST: usize = 200;

/// The moments around a write.
const WRITES: [Moment; 2] = [Moment::Before, Moment::After];

/// What the operator is at when it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// A Repository with a Chart that needs another one, and a module that names that.
    Add,
    /// An archive takes the place of one that the module has pinned.
    Replace,
    /// The module follows a newer version.
    Upgrade,
    /// It follows one that can't be installed, and goes back to the one before.
    GoBack,
}

impl Work {
    /// Returns whether the module is installed before it begins.
    fn has_installed(self) -> bool {
        self != Self::Add
    }

    fn constraint(self) -> &'static str {
        match self {
            Self::Add | Self::Replace => "version: '0.1.0'",
            Self::Upgrade | Self::GoBack => "version: '~0.1', autoUpgrade: true",
        }
    }

    /// Returns the version that comes later, if one does.
    fn newer(self) -> Option<Vec<u8>> {
        let broken = ("templates/shown.yaml", b"{{ fail \"it can't be installed\" }}".as_slice());
        match self {
            Self::Add | Self::Replace => None,
            Self::Upgrade => Some(alpha("0.1.1")),
            Self::GoBack => Some(chart("alpha", "0.1.1", "", &[("values.yaml", b"says: hello\n"), broken])),
        }
    }
}

/// Returns an archive of the same version with other bytes.
fn published_again() -> Vec<u8> {
    chart("alpha", "0.1.0", "", &[("values.yaml", b"says: other\n")])
}

fn publish(world: &World, alpha: Vec<u8>, newer: Option<Vec<u8>>) {
    let url = world.repository.url("");
    let mut all = vec![("alpha", "0.1.0", alpha), ("beta", "0.1.0", beta("0.1.0", &url, "0.1.0"))];
    all.extend(newer.map(|newer| ("alpha", "0.1.1", newer)));
    world.publish("", &all);
}

/// Returns what the module stays with.
async fn pin(world: &World) -> Value {
    let pins = world.map("addon-operator-charts").await.unwrap_or_default();
    pins["data"]["cache"].as_str().map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default()
}

async fn begin(world: &World, work: Work) {
    let url = world.repository.url("");
    match work {
        Work::Add => {
            publish(world, alpha("0.1.0"), None);
            let spec = json!({"name": "corp", "url": url, "charts": [{"name": "beta", "versions": ["*"]}]});
            world.apply("Repository", "corp", spec).await;
        }
        Work::Replace => {
            world.annotate("Chart", "alpha-corp", json!({"addon-operator.io/reprocess": "1"})).await;
        }
        Work::Upgrade | Work::GoBack => {
            publish(world, alpha("0.1.0"), work.newer());
            world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
        }
    }
}

async fn done(world: &World, work: Work) {
    match work {
        Work::Add => {
            for name in ["alpha-corp", "beta-corp", "module-cache"] {
                world.synced("Chart", name).await;
            }
            world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
            world.settled("Repository", "corp", |object| object["status"]["charts"] == 3).await;
        }
        Work::Replace => {
            let new = crate::support::repository::digest(&published_again());
            let has_it = |object: &Value| {
                object["status"]["reprocessed"] == 1
                    && object["status"]["resolved"][0]["digest"] == format!("sha256:{new}")
            };
            world.settled("Chart", "alpha-corp", has_it).await;
        }
        Work::Upgrade => {
            world.cluster.settled("shown", |map| map["data"]["version"] == "0.1.1").await;
            let is_done = |pin: &Value| pin["isGood"] == true && pin["previous"]["version"] == "0.1.0";
            server::until_asked("the pin", async || is_done(&pin(world).await)).await;
        }
        Work::GoBack => {
            let is_done =
                |pin: &Value| pin["package"]["version"] == "0.1.0" && pin["givenUp"]["version"] == "0.1.1";
            server::until_asked("the way back", async || is_done(&pin(world).await)).await;
        }
    }
}

/// Returns the names of the maps with charts. Each belongs to objects that are there.
async fn maps(world: &World, place: &str) -> Vec<String> {
    let mut owners = BTreeSet::new();
    for (kind, name) in
        [("Repository", "corp"), ("Chart", "alpha-corp"), ("Chart", "beta-corp"), ("Chart", "module-cache")]
    {
        owners.insert(world.object(kind, name).await["metadata"]["uid"].to_string());
    }
    let pins = world.map("addon-operator-charts").await.unwrap();
    owners.insert(pins["metadata"]["uid"].to_string());
    let list = get(&world.cluster.server, MAPS).await.unwrap();
    let all = list["items"].as_array().unwrap();
    for map in all.iter().filter(|map| map["metadata"]["name"].as_str().unwrap().starts_with("helm-")) {
        let of = map["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let is_owned = !of.is_empty() && of.iter().all(|owner| owners.contains(&owner["uid"].to_string()));
        assert!(is_owned, "{place}: {}: {of:?}", map["metadata"]["name"]);
    }
    world.maps().await
}

/// Writes the module and returns the cluster as it is when `work` begins.
async fn beginning(work: Work) -> Beginning {
    let world = World::on(Beginning::cluster().await, Repository::tls(&["localhost"]).await);
    world.install_kinds().await;
    let chart = format!("chart: {{repository: corp, name: alpha, {}}}", work.constraint());
    world.cluster.write("modules/040-cache/module.yaml", &format!("{chart}\nvaluesLayout: root\n"));
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    if work.has_installed() {
        let operator = world.start().await;
        begin(&world, Work::Add).await;
        done(&world, Work::Add).await;
        server::until_asked("the pin", async || pin(&world).await["isGood"] == true).await;
        if work == Work::Replace {
            publish(&world, published_again(), None);
            // Another URL of the same place: its index is looked at again at once.
            world.apply("Repository", "corp", json!({"url": format!("{}/", world.repository.url(""))})).await;
            let is_told = |object: &Value| object["status"]["conditions"][1]["type"] == "DigestChanged";
            world.settled("Chart", "alpha-corp", is_told).await;
            world.settled("Chart", "module-cache", is_told).await;
        }
        operator.stop().await;
    }
    begin(&world, work).await;
    Beginning::of(world.cluster, world.repository).await
}

/// Does `work` with a kill at the request of this number. Returns the cluster that is left, and whether there was such a request.
async fn struck(beginning: &Beginning, work: Work, at: (usize, Moment)) -> (World, bool) {
    let (cluster, repository) = beginning.again();
    let world = World::on(cluster, repository);
    let is_struck = killed(&world.cluster, &world.options(), at, async || done(&world, work).await).await;
    (world, is_struck)
}

/// Does the rest of `work`, and returns the maps.
async fn ends(world: &World, work: Work, place: &str) -> Vec<String> {
    let operator = world.start().await;
    done(world, work).await;
    // The module is installed from what it has pinned, whatever became of the archive.
    world.cluster.put("addon-operator", json!({"data": {"cache": "says: again\n"}})).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "again").await;
    operator.stop().await;
    maps(world, place).await
}

/// Returns the maps after a kill that comes when the work is done.
async fn struck_at_the_end(beginning: &Beginning, work: Work) -> Vec<String> {
    let (world, _) = struck(beginning, work, (AT_MOST * 10, Moment::Before)).await;
    ends(&world, work, &format!("{work:?}, killed when it is done")).await
}

/// Kills the operator at these moments of the work, each time in a life of its own.
async fn struck_everywhere(work: Work, moments: &[Moment]) {
    let beginning = beginning(work).await;
    let expected = struck_at_the_end(&beginning, work).await;
    for moment in moments {
        let requests = lives(*moment, async |number| {
            assert!(number < AT_MOST, "{work:?} takes more requests than expected");
            let (world, is_struck) = struck(&beginning, work, (number, *moment)).await;
            if is_struck {
                let place = format!("{work:?}, killed {moment:?} request {number}");
                assert_eq!(ends(&world, work, &place).await, expected, "{place}");
            }
            is_struck
        })
        .await;
        assert!(requests >= 2, "{work:?}, {moment:?}: only {requests} requests were hit");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_a_chart_with_dependencies_changes_no_end() {
    struck_everywhere(Work::Add, &WRITES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_read_of_a_chart_with_dependencies_changes_no_end() {
    struck_everywhere(Work::Add, &[Moment::Reading]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_request_to_the_repository_changes_no_end() {
    let expected = struck_at_the_end(&beginning(Work::Add).await, Work::Add).await;
    for (path, others) in [("/index.yaml", 0), ("/alpha-0.1.0.tgz", 2), ("/beta-0.1.0.tgz", 2)] {
        let world = World::new().await;
        let chart = format!("chart: {{repository: corp, name: alpha, {}}}", Work::Add.constraint());
        world.cluster.write("modules/040-cache/module.yaml", &format!("{chart}\nvaluesLayout: root\n"));
        world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
        begin(&world, Work::Add).await;
        // The others are answered, and this one is not.
        world.repository.put(path, Reply::Gated(Vec::new()));
        let answered = AtomicUsize::new(0);
        let hangs = || {
            answered.fetch_add(world.repository.requests().len(), Ordering::SeqCst);
            answered.load(Ordering::SeqCst) >= others && world.repository.in_flight() > 0
        };
        let at = (AT_MOST * 10, Moment::Before);
        let asked = async || server::until("the request", hangs).await;
        assert!(!killed(&world.cluster, &world.options(), at, asked).await, "{path}");
        publish(&world, alpha("0.1.0"), None);
        let operator = world.start().await;
        done(&world, Work::Add).await;
        server::until_asked("the pin", async || pin(&world).await["isGood"] == true).await;
        operator.stop().await;
        assert_eq!(maps(&world, path).await, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_an_upgrade_changes_no_end() {
    struck_everywhere(Work::Upgrade, &WRITES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_on_the_way_back_to_a_version_changes_no_end() {
    struck_everywhere(Work::GoBack, &WRITES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_write_of_a_replaced_archive_changes_no_end() {
    struck_everywhere(Work::Replace, &WRITES).await;
}
