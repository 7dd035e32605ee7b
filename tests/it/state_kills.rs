//! The API server with a state file, killed while clients write: what it answered is there when it starts again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::Request;
use kube::{Client, Error};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::support::outage::connected;
use crate::support::program::{Running, Workspace};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What clients know of their objects: the value, or that it is gone.
type Known = BTreeMap<String, Option<String>>;

/// What clients know when their server has been killed.
#[derive(Default)]
struct Answered {
    known: Known,
    /// What was asked for and not answered.
    asked: Known,
}

/// A server whose cluster is in a file.
struct Server {
    process: Running,
    kubeconfig: PathBuf,
}

impl Server {
    fn start(world: &Workspace, limit: Option<u32>) -> Self {
        let kubeconfig = world.path().join("kubeconfig");
        let _ = std::fs::remove_file(&kubeconfig);
        let mut command = world.command(&[
            "apiserver",
            "--listen",
            "127.0.0.1:0",
            "--kubeconfig-out",
            "kubeconfig",
            "--state",
            "state",
        ]);
        if let Some(blocks) = limit {
            let program = command.get_program().to_owned();
            let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            let mut limited = std::process::Command::new("bash");
            // Who heeds the signal would end; without it, a write is refused as on a full disk.
            limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "bash"]);
            limited.arg(program).args(arguments).current_dir(world.path());
            command = limited;
        }
        let mut process = Running::start(command);
        process.wait_for_file(&kubeconfig);
        Self { process, kubeconfig }
    }

    async fn client(&self) -> Client {
        connected(self.kubeconfig.clone()).await
    }

    /// Ends it with SIGKILL, and waits until it is gone.
    fn kill(self) {
        drop(self.process);
    }
}

fn request(method: &str, path: &str, body: &Value) -> Request<Vec<u8>> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    request.body(if method == "GET" { Vec::new() } else { body.to_string().into_bytes() }).unwrap()
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Writes objects of its own until the server is gone, and tells the revision of each answer.
async fn write(
    client: Client,
    owner: usize,
    mut known: Known,
    seed: u64,
    told: UnboundedSender<u64>,
) -> Answered {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        let name = format!("c{owner}-{}", random.random_range(0..8));
        let path = format!("{MAPS}/{name}");
        let value = format!(
            "{}{}",
            random.random::<u32>(),
            "x".repeat([0, 10, 5_000, 60_000][random.random_range(0..4)])
        );
        let data = json!({"metadata": {"name": name}, "data": {"v": value}});
        let exists = known.get(&name).is_some_and(Option::is_some);
        let (asked, request) = if !exists {
            (Some(value), request("POST", MAPS, &data))
        } else if random.random_bool(0.3) {
            (None, request("DELETE", &path, &json!({})))
        } else {
            (Some(value), request("PATCH", &path, &data))
        };
        match client.request::<Value>(request).await {
            Ok(answer) => {
                // A deletion is answered with a status, which has no revision.
                let _ = told.send(asked.as_ref().map_or(0, |_| revision(&answer)));
                known.insert(name, asked);
            }
            Err(Error::Api(status)) => panic!("{name}: {status:?}"),
            Err(_) => return Answered { known, asked: [(name, asked)].into() },
        }
    }
}

/// Waits for so many answers; returns the largest revision of all that came.
async fn answers(told: &mut UnboundedReceiver<u64>, count: usize) -> u64 {
    let mut largest = 0;
    for _ in 0..count {
        largest = largest.max(told.recv().await.unwrap());
    }
    largest
}

/// Returns the revision of the list, and what is in it.
async fn listed(client: &Client) -> (u64, Known) {
    let list = client.request::<Value>(request("GET", MAPS, &Value::Null)).await.unwrap();
    let values = list["items"].as_array().unwrap().iter().filter_map(|item| {
        let value = item["data"]["v"].as_str()?;
        Some((item["metadata"]["name"].as_str().unwrap().to_owned(), Some(value.to_owned())))
    });
    (revision(&list), values.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn slip_38_what_an_api_server_answered_before_it_was_killed_is_there_when_it_starts_again() {
    let world = Workspace::new();
    let mut random = StdRng::seed_from_u64(19);
    let (mut answered, mut largest) = (Answered::default(), 0);
    for round in 0..8 {
        let server = Server::start(&world, None);
        let client = server.client().await;
        let (now, found) = listed(&client).await;
        assert!(now >= largest, "round {round}: the revision is {now}, {largest} was answered");
        for (name, value) in &answered.known {
            let value_now = found.get(name).cloned().flatten();
            let is_asked = answered.asked.get(name).is_some_and(|asked| *asked == value_now);
            assert!(value_now == *value || is_asked, "round {round}: {name} has another value");
        }
        for name in found.keys() {
            assert!(
                answered.known.contains_key(name) || answered.asked.contains_key(name),
                "round {round}: {name}"
            );
        }
        let (sender, mut told) = unbounded_channel();
        let mut clients = JoinSet::new();
        for owner in 0..4 {
            let own = format!("c{owner}-");
            let known = found.iter().filter(|(name, _)| name.starts_with(&own));
            let known = known.map(|(name, value)| (name.clone(), value.clone())).collect();
            clients.spawn(write(server.client().await, owner, known, random.random(), sender.clone()));
        }
        drop(sender);
        largest = largest.max(answers(&mut told, random.random_range(1..400)).await);
        server.kill();
        answered = Answered::default();
        while let Some(ended) = clients.join_next().await {
            let ended = ended.unwrap();
            answered.known.extend(ended.known);
            answered.asked.extend(ended.asked);
        }
        while let Some(revision) = told.recv().await {
            largest = largest.max(revision);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slip_38_a_change_that_a_full_disk_has_no_room_for_is_refused_and_what_was_answered_is_kept() {
    let world = Workspace::new();
    // 2 MiB for each file.
    let server = Server::start(&world, Some(2_048));
    let client = server.client().await;
    let value = "x".repeat(100_000);
    let (mut known, mut refused) = (Known::new(), None);
    for number in 0..100 {
        let name = format!("c0-{number}");
        let map = json!({"metadata": {"name": name}, "data": {"v": value}});
        match client.request::<Value>(request("POST", MAPS, &map)).await {
            Ok(_) => drop(known.insert(name, Some(value.clone()))),
            Err(Error::Api(status)) => {
                refused = Some((name, status));
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let (name, status) = refused.unwrap();
    assert_eq!(status.code, 500, "{status:?}");
    assert!(status.message.contains("write the state file state.log: File too large"), "{status:?}");
    let (before, found) = listed(&client).await;
    assert!(!found.contains_key(&name));
    assert_eq!(found, known);
    server.kill();
    let server = Server::start(&world, None);
    assert_eq!(listed(&server.client().await).await, (before, known));
}
