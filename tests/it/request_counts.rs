//! What a hundred modules cost the API server, by verb.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use addon_operator::app::{self, Outcome};
use addon_operator::cluster::connect_in_process;
use http::Request;
use kube::client::Body;
use tokio::sync::{mpsc, watch};
use tower::ServiceExt as _;

use crate::support::in_process::Cluster;
use crate::support::{DEADLINE, program, server};

const MODULES: usize = 100;

/// How many requests of a restart may read, watches among them. The ConfigMap and the Secret with
/// values cost two each, also when they are not there: a list and the watch behind it.
const READS: usize = 21;

/// How many there are when nothing has changed: the first list of all records says whose releases there are, too.
const READS_UNCHANGED: usize = 20;

/// The requests about the Lease. Their number is the same however many modules there are.
const LEASE: [&str; 3] =
    ["GET addon-operator-leader-election", "PUT addon-operator-leader-election", "POST leases"];

/// The chart that the figures of the documents are of: three objects of three kinds.
const CHART: &str = "apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME}
data: {message: hello}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: app}]}
";

fn write_modules(world: &Cluster) {
    let mut enabled = String::new();
    for number in 0..MODULES {
        let name = format!("app{number:04}");
        let module = format!("modules/{:03}-{name}", number + 10);
        let _ = writeln!(enabled, "{name}Enabled: true");
        world.write(&format!("{module}/Chart.yaml"), &format!("name: {name}\nversion: 0.1.0\n"));
        world.write(&format!("{module}/templates/all.yaml"), &CHART.replace("NAME", &name));
    }
    world.write("modules/values.yaml", &enabled);
}

/// Returns in short what a request is.
fn kind_of(request: &Request<Body>) -> String {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let verb = match request.method().as_str() {
        "GET" if query.contains("watch=true") => "WATCH",
        "GET" if query.contains("limit=") => "LIST",
        other => other,
    };
    let is_ours = query.contains("addon-operator.io%2Fowner") && verb == "LIST";
    let place = path.rsplit('/').find(|part| !part.starts_with("app0") && !part.starts_with("sh.helm"));
    format!("{verb} {}{}", place.unwrap_or_default(), if is_ours { " of ours" } else { "" })
}

/// Starts an operator, ends it when it has looked for releases that nobody needs, which comes last, and returns its
/// requests by kind.
async fn started(world: &Cluster) -> BTreeMap<String, usize> {
    let (shutdown, ended) = watch::channel(false);
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let counted = Arc::clone(&counts);
    let service = world.server.service().map_request(move |request: Request<Body>| {
        *counted.lock().unwrap().entry(kind_of(&request)).or_default() += 1;
        request
    });
    let client = connect_in_process(service, "ops");
    let (told, mut listening) = mpsc::unbounded_channel();
    let around = world.around(client, false, ended, &[]);
    let running = tokio::spawn(app::run(around, move |address| told.send(address).unwrap_or(())));
    let port = listening.recv().await.unwrap().port().to_string();
    server::until("the first converge", || program::get(&port, "/readyz").starts_with("HTTP/1.1 200")).await;
    // Not only begun: its end is in the journal.
    server::until("the last task of the start", || {
        program::get(&port, "/journal").contains("DiscoverHelmReleases")
    })
    .await;
    shutdown.send_replace(true);
    let outcome = tokio::time::timeout(DEADLINE, running).await.unwrap().unwrap().unwrap();
    assert_eq!(outcome, Outcome::Done);
    // An operator without replicas takes the Lease at its start, and gives it back at its end.
    let mut counts = std::mem::take(&mut *counts.lock().unwrap());
    let leases: Vec<usize> = LEASE.iter().filter_map(|kind| counts.remove(*kind)).collect();
    // On a slow machine it is renewed meanwhile.
    assert!(leases.iter().sum::<usize>() >= 3, "read, taken, given back: {leases:?}");
    counts
}

fn count(counts: &BTreeMap<String, usize>, verbs: &[&str]) -> usize {
    let is_one = |kind: &str| verbs.iter().any(|verb| kind.starts_with(verb));
    counts.iter().filter(|(kind, _)| is_one(kind)).map(|(_, count)| count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_modules_cost_five_writes_each_and_a_restart_20_reads() {
    let world = Cluster::new().await;
    write_modules(&world);
    let mut first = started(&world).await;
    first.remove("POST events");
    assert_eq!(count(&first, &["POST"]), 4 * MODULES, "a record and three objects each: {first:#?}");
    assert_eq!(count(&first, &["PATCH"]), MODULES, "each record is ended: {first:#?}");
    assert_eq!(count(&first, &["PUT", "DELETE"]), 0, "{first:#?}");
    assert!(count(&first, &["GET", "LIST", "WATCH"]) <= READS, "{first:#?}");
    let again = started(&world).await;
    assert_eq!(count(&again, &["POST", "PATCH", "PUT", "DELETE"]), 0, "{again:#?}");
    assert!(count(&again, &["GET", "LIST", "WATCH"]) <= READS_UNCHANGED, "{again:#?}");
}
