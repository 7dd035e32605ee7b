//! Replicas as processes, on one API server: who leads, who takes over, and that no two run hooks at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use addon_operator::config::Environment;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::support::measured::Program;
use crate::support::outage::connected;
use crate::support::pause::pause_thread;
use crate::support::program::{Running, Workspace, get, hook};
use crate::support::{DEADLINE, in_process};
use crate::webhook_listener::{Asked, review};

/// What a run writes into the trace that all replicas append to: who it is, and when it begins and ends. A hook that is killed
/// writes no end, so that each run says with every line that it is there.
const TRACED: &str =
    r#"for turn in 1 2 3 4; do echo "$WHO $$ $(cut -d' ' -f1 /proc/uptime)" >> "$TRACE"; sleep 0.1; done"#;

/// How long a Lease lasts here, how long a leader acts, and how often it renews.
const LEASE: Duration = Duration::from_secs(3);
const TIMES: [(&str, &str); 3] = [
    ("ADDON_OPERATOR_HA_LEASE_DURATION", "3s"),
    ("ADDON_OPERATOR_HA_RENEW_DEADLINE", "2s"),
    ("ADDON_OPERATOR_HA_RETRY_PERIOD", "500ms"),
];

/// An API server, and files that all replicas have.
struct Cluster {
    world: Workspace,
    _server: Running,
    client: Client,
}

impl Cluster {
    async fn new() -> Self {
        let world = Workspace::new();
        world.write("global-hooks/traced.sh", &hook("\"schedule\":[{\"crontab\":\"* * * * * *\"}]", TRACED));
        let arguments = ["apiserver", "--listen", "127.0.0.1:0", "--kubeconfig-out", "kubeconfig"];
        let mut server = Running::start(world.command(&arguments));
        let kubeconfig = world.path().join("kubeconfig");
        server.wait_for_file(&kubeconfig);
        let client = connected(kubeconfig).await;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.patch("ops", &PatchParams::apply("test"), &Patch::Apply(&namespace)).await.unwrap();
        Self { world, _server: server, client }
    }

    fn trace_path(&self) -> PathBuf {
        self.world.path().join("trace")
    }

    /// Starts an operator. `more` are variables of its environment.
    fn operator(&self, who: &str, more: &[(&str, &str)]) -> Running {
        let path = |name: &str| self.world.path().join(name);
        let mut command: Command = self.world.command(&["start"]);
        command
            .env("KUBE_CONFIG", path("kubeconfig"))
            .env("ADDON_OPERATOR_NAMESPACE", "ops")
            .env("ADDON_OPERATOR_POD", who)
            .env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1")
            .env("ADDON_OPERATOR_LISTEN_PORT", "0")
            .env("ADDON_OPERATOR_TMP_DIR", path(&format!("tmp-{who}")))
            .env("ADDON_OPERATOR_SOURCE_DIR", path(&format!("sources-{who}")))
            .env("DEBUG_UNIX_SOCKET", path(&format!("socket-{who}")))
            .env("LOG_TYPE", "text")
            .env("WHO", who)
            .env("TRACE", self.trace_path())
            .envs(more.iter().copied());
        Running::start(command)
    }

    fn replica(&self, who: &str) -> Running {
        self.operator(who, &[&TIMES[..], &[("ADDON_OPERATOR_HA", "true")]].concat())
    }

    /// Starts a replica that leads, and one that waits.
    fn two(&self) -> (Running, Running) {
        let mut leader = self.replica("a");
        leader.wait("leads from now on");
        leader.wait("Operator is ready now");
        let mut standby = self.replica("b");
        standby.wait("this replica is a standby of a.127-0-0-1.ops.pod");
        self.wait_for_run("a");
        (leader, standby)
    }

    fn trace(&self) -> Vec<(String, String, f64)> {
        let text = fs::read_to_string(self.trace_path()).unwrap_or_default();
        let line = |line: &str| {
            let mut parts = line.split(' ');
            let mut next = || parts.next().map(str::to_owned);
            Some((next()?, next()?, next()?.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    }

    /// Waits until a run of `who` begins after now.
    fn wait_for_run(&self, who: &str) {
        let count = || self.trace().iter().filter(|(by, ..)| by == who).count();
        let (before, begun) = (count(), Instant::now());
        while count() == before {
            assert!(begun.elapsed() < DEADLINE, "no run of {who}; the trace is {:?}", self.trace());
            pause_thread();
        }
    }

    /// Checks that no run was there while another replica's was.
    fn assert_alone(&self) {
        let mut runs: BTreeMap<(String, String), (f64, f64)> = BTreeMap::new();
        for (who, pid, at) in self.trace() {
            let run = runs.entry((who, pid)).or_insert((at, at));
            run.1 = at;
        }
        let mut runs: Vec<_> = runs.into_iter().collect();
        runs.sort_by(|(_, (from, _)), (_, (since, _))| from.total_cmp(since));
        let mut latest: Option<(&str, f64)> = None;
        for ((who, _), (from, to)) in &runs {
            if let Some((other, until)) = latest {
                assert!(who == other || until < *from, "{who} ran {from}..{to}, {other} until {until}");
            }
            latest = Some((who.as_str(), latest.map_or(*to, |(_, until)| until.max(*to))));
        }
        let replicas: BTreeSet<&String> = runs.iter().map(|((who, _), _)| who).collect();
        assert!(replicas.len() > 1, "{runs:?}");
    }

    fn lease(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), "ops")
    }
}

const NAME: &str = "addon-operator-leader-election";

/// A configuration of module sources that nobody applied.
const SOURCE: &str = "apiVersion: addons.kyma-project.io/v1alpha1\nkind: ClusterAddonsConfiguration\n\
    metadata: {name: a}\nspec: {repositories: [{url: 'https://localhost/index.yaml'}]}\n";

/// A line of the log for each run that has ended.
const RAN: &str = "GlobalHookRun global/traced.sh";

fn signal(running: &Running, name: &str) {
    Command::new("kill").args([&format!("-{name}"), &running.pid().to_string()]).status().unwrap();
}

fn port(running: &Running) -> String {
    let line = running.seen().iter().find(|line| line.contains("listening on")).unwrap();
    line.rsplit(':').next().unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h1_a_standby_is_ready_and_takes_over_within_two_seconds_of_a_graceful_end() {
    let cluster = Cluster::new().await;
    let (leader, mut standby) = cluster.two();
    let port = port(&standby);
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200"));
    let ready = get(&port, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("waiting for acquiring the lock"), "{ready}");
    for path in ["/queue", "/status"] {
        let text = get(&port, path);
        assert!(text.contains("standby of a.127-0-0-1.ops.pod"), "{path}: {text}");
    }
    assert!(get(&port, "/metrics").contains("addon_operator_leader 0\n"));
    std::fs::write(cluster.world.dir.path().join("a.yaml"), SOURCE).unwrap();
    for command in [
        &["converge"] as &[&str],
        &["source", "list"],
        &["source", "list", "-o", "json"],
        &["source", "sync", "a"],
        &["source", "pause", "a"],
        &["source", "plan", "a.yaml"],
        &["why", "source", "a"],
    ] {
        let (code, text) = cluster.world.ask(&[command, &["--debug-unix-socket", "socket-b"]].concat());
        assert!(code != 0 && text.contains("this replica is a standby of a."), "{command:?}: {text}");
    }
    assert_eq!(leader.stop(), 0);
    let ended = Instant::now();
    standby.wait("leads from now on");
    assert!(ended.elapsed() < Duration::from_secs(2), "{:?}", ended.elapsed());
    println!("take-over after a graceful end: {:?}", ended.elapsed());
    cluster.wait_for_run("b");
    assert!(get(&port, "/metrics").contains("addon_operator_leader 1\n"));
    assert_eq!(standby.stop(), 0);
    cluster.assert_alone();
    let lease = cluster.lease().get(NAME).await.unwrap().spec.unwrap();
    assert_eq!((lease.holder_identity, lease.lease_transitions), (None, Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h1_a_leader_that_is_killed_is_replaced_after_its_lease_and_its_hooks_have_ended() {
    let cluster = Cluster::new().await;
    // A run of it goes on for as long as nobody ends it.
    let endless =
        r#"while true; do echo "$WHO $$ $(cut -d' ' -f1 /proc/uptime)" >> "$TRACE"; sleep 0.05; done"#;
    cluster
        .world
        .write("global-hooks/traced.sh", &hook("\"schedule\":[{\"crontab\":\"* * * * * *\"}]", endless));
    let (leader, mut standby) = cluster.two();
    signal(&leader, "KILL");
    let killed = Instant::now();
    standby.wait("leads from now on");
    let took = killed.elapsed();
    println!("take-over after SIGKILL: {took:?}");
    assert!(took < LEASE + Duration::from_secs(2), "{took:?}");
    cluster.wait_for_run("b");
    assert_eq!(standby.stop(), 0);
    cluster.assert_alone();
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h1_a_leader_that_is_stopped_and_let_go_again_runs_nothing() {
    let cluster = Cluster::new().await;
    let endless =
        r#"while true; do echo "$WHO $$ $(cut -d' ' -f1 /proc/uptime)" >> "$TRACE"; sleep 0.05; done"#;
    cluster
        .world
        .write("global-hooks/traced.sh", &hook("\"schedule\":[{\"crontab\":\"* * * * * *\"}]", endless));
    let (leader, mut standby) = cluster.two();
    signal(&leader, "STOP");
    let stopped = Instant::now();
    standby.wait("leads from now on");
    println!("take-over after SIGSTOP: {:?}", stopped.elapsed());
    assert!(stopped.elapsed() < LEASE + Duration::from_secs(2), "{:?}", stopped.elapsed());
    cluster.wait_for_run("b");
    signal(&leader, "CONT");
    for _ in 0..3 {
        cluster.wait_for_run("b");
    }
    drop(leader);
    assert_eq!(standby.stop(), 0);
    cluster.assert_alone();
}

/// Has the Lease change hands so many times between two processes, in each of five ways in turn.
async fn flips(count: usize) {
    let cluster = Cluster::new().await;
    let (mut leader, mut standby) = cluster.two();
    let mut names = ["a".to_owned(), "b".to_owned()];
    for flip in 0..count {
        let mut old = Some(leader);
        match flip % 5 {
            0 => assert_eq!(old.take().map(Running::stop), Some(0)),
            1 => {
                // Somebody takes the Lease away: the leader ends by itself, as in the reference operator.
                let theft = json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}});
                cluster.lease().patch(NAME, &PatchParams::default(), &Patch::Merge(theft)).await.unwrap();
                let mut robbed = old.take().unwrap();
                robbed.wait("Restarting because the leadership was handed over");
                assert_eq!(robbed.end().0, 0);
            }
            2 => signal(old.as_ref().unwrap(), "KILL"),
            3 => {
                // A Lease that somebody deletes is made again, and the leader stays.
                cluster.lease().delete(NAME, &DeleteParams::default()).await.unwrap();
                let mut stays = old.take().unwrap();
                stays.wait(RAN);
                assert_eq!(stays.stop(), 0);
            }
            _ => signal(old.as_ref().unwrap(), "STOP"),
        }
        standby.wait("leads from now on");
        standby.wait(RAN);
        if let Some(old) = old.filter(|_| flip % 5 == 4) {
            // It is let go again while the other one is at work.
            signal(&old, "CONT");
            standby.wait(RAN);
        }
        let next = format!("r{flip}");
        let mut replica = cluster.replica(&next);
        replica.wait(&format!("this replica is a standby of {}.", names[1]));
        leader = std::mem::replace(&mut standby, replica);
        leader.forget_seen();
        names = [std::mem::take(&mut names[1]), next];
    }
    assert_eq!(standby.stop(), 0);
    assert_eq!(leader.stop(), 0);
    cluster.assert_alone();
    eprintln!("{count} flips, {} lines of {} replicas", cluster.trace().len(), count + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h1_the_lease_changes_hands_in_each_way_and_there_are_never_two_hook_runs_at_once() {
    flips(5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half an hour; FLIPS says how often the Lease changes hands"]
async fn f_h1_a_thousand_flips_of_two_processes_and_never_two_hook_runs_at_once() {
    let given = Environment::of_process().text("FLIPS").map(|text| text.parse().unwrap());
    flips(given.unwrap_or(1_000)).await;
}

/// A webhook whose hook lets everything be written, and makes a ConfigMap beside.
const ALLOWS: &str = r#""kubernetesValidating":[{"name":"maps.example.com","rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]"#;
const ANSWERS: &str = r#"echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
echo '{"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-'$WHO'", "namespace": "ops"}}}' > "$KUBERNETES_PATCH_PATH""#;

#[tokio::test(flavor = "multi_thread")]
async fn f_h1_webhooks_are_served_by_every_replica_and_throughout_a_take_over() {
    let cluster = Cluster::new().await;
    cluster.world.write("global-hooks/allow.sh", &hook(ALLOWS, ANSWERS));
    let own = [
        ("ADDON_OPERATOR_HA", "true"),
        ("ADDON_OPERATOR_ADMISSION_SERVER_ENABLED", "true"),
        ("ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_ADDRESS", "127.0.0.1"),
        ("ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT", "0"),
        ("ADDON_OPERATOR_WEBHOOK_URL", "https://127.0.0.1:0"),
    ];
    let start = |who: &str| {
        let mut replica = cluster.operator(who, &[&TIMES[..], &own].concat());
        let line = replica.wait("webhooks are answered on ");
        let port: u16 = line.rsplit(':').next().unwrap().trim().parse().unwrap();
        (replica, port)
    };
    // Which of two lines comes first is not said.
    let says = |replica: &mut Running, text: &str| {
        if !replica.seen().iter().any(|line| line.contains(text)) {
            replica.wait(text);
        }
    };
    let (mut leader, leads_on) = start("a");
    says(&mut leader, "Operator is ready now");
    let (mut standby, waits_on) = start("b");
    says(&mut standby, "this replica is a standby of a.127-0-0-1.ops.pod");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let registered = async |port: u16| {
        let wanted = format!("https://127.0.0.1:{port}");
        let told = |found: Option<&ValidatingWebhookConfiguration>| {
            let webhooks = found.and_then(|found| found.webhooks.as_ref());
            let url = webhooks.and_then(|webhooks| webhooks[0].client_config.url.as_deref());
            url.is_some_and(|url| url.starts_with(&wanted))
        };
        let waiting = await_condition(configurations.clone(), "addon-operator-ops", told);
        let found = tokio::time::timeout(DEADLINE, waiting).await.unwrap().unwrap().unwrap();
        found.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap().0
    };
    // Both show the certificate that the leader tells the API server of.
    let trusted = registered(leads_on).await;
    let at = |port: u16| Asked { port, trusted: trusted.clone(), own: None };
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "ops");
    let ask = async |port: u16| {
        let (status, answer) = at(port).post("/validate/maps.example.com", &review("x")).await.unwrap();
        assert!(status == 200 && answer.contains("\"allowed\":true"), "{status} {answer}");
    };
    ask(waits_on).await;
    assert!(maps.get_opt("by-b").await.unwrap().is_none(), "a standby writes nothing");
    ask(leads_on).await;
    assert!(maps.get_opt("by-a").await.unwrap().is_some(), "the leader does what its hook asks for");
    let (done, mut is_done) = tokio::sync::watch::channel(false);
    let (asked, other) = (at(waits_on), tokio::task::spawn_blocking(move || leader.stop()));
    let throughout = tokio::spawn(async move {
        let mut count = 0;
        while !*is_done.borrow_and_update() {
            let (status, answer) = asked.post("/validate/maps.example.com", &review("x")).await.unwrap();
            assert!(status == 200 && answer.contains("\"allowed\":true"), "{status} {answer}");
            count += 1;
        }
        count
    });
    standby.wait("leads from now on");
    assert_eq!(registered(waits_on).await, trusted, "the certificate is the same");
    done.send_replace(true);
    assert!(throughout.await.unwrap() > 0);
    assert_eq!(other.await.unwrap(), 0);
    ask(waits_on).await;
    assert!(maps.get_opt("by-b").await.unwrap().is_some(), "now it leads");
    assert_eq!(standby.stop(), 0);
}

/// Two versions of a product beside each other, as in the middle of a roll-out: each would undo what the other writes.
#[tokio::test(flavor = "multi_thread")]
async fn f_h4_of_two_replicas_with_different_files_one_owns_the_release_and_the_other_follows() {
    let cluster = Cluster::new().await;
    for (who, k) in [("a", "old"), ("b", "new")] {
        let module = format!("modules-{who}/010-web");
        let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{k: {k}}}\n");
        cluster.world.write(&format!("modules-{who}/values.yaml"), "webEnabled: true\n");
        cluster.world.write(&format!("{module}/Chart.yaml"), "name: web\nversion: 0.1.0\n");
        cluster.world.write(&format!("{module}/templates/map.yaml"), &map);
    }
    let start = |who: &str| {
        let modules = cluster.world.path().join(format!("modules-{who}"));
        let own = [("ADDON_OPERATOR_HA", "true"), ("MODULES_DIR", modules.to_str().unwrap())];
        cluster.operator(who, &[&TIMES[..], &own].concat())
    };
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "ops");
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), "ops");
    let written = async || {
        let map = maps.get("web").await.unwrap();
        let records = secrets.list(&ListParams::default().labels("owner=helm,name=web")).await.unwrap();
        (map.data.unwrap()["k"].clone(), map.metadata.resource_version.unwrap(), records.items.len())
    };
    let mut leader = start("a");
    leader.wait("Operator is ready now");
    let (k, version, records) = written().await;
    assert_eq!((k.as_str(), records), ("old", 1));
    let mut standby = start("b");
    standby.wait("this replica is a standby of a.127-0-0-1.ops.pod");
    // Both live on, and renew and ask for the Lease more than once.
    for _ in 0..3 {
        cluster.wait_for_run("a");
    }
    assert_eq!(written().await, ("old".to_owned(), version, 1));
    assert_eq!(leader.stop(), 0);
    standby.wait("leads from now on");
    standby.wait("Operator is ready now");
    let (k, version, records) = written().await;
    assert_eq!((k.as_str(), records), ("new", 2));
    // The one that led comes back with its old files, and leaves them there.
    let mut back = start("a");
    back.wait("this replica is a standby of b.127-0-0-1.ops.pod");
    for _ in 0..3 {
        cluster.wait_for_run("b");
    }
    assert_eq!(written().await, ("new".to_owned(), version, 2));
    assert_eq!(back.stop(), 0);
    assert_eq!(standby.stop(), 0);
    cluster.assert_alone();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_operators_by_mistake_are_seen_or_refused() {
    let cluster = Cluster::new().await;
    let mut first = cluster.operator("a", &TIMES);
    first.wait("Operator is ready now");
    let mut second = cluster.operator("b", &TIMES);
    second.wait("another operator is at work in namespace ops: a_");
    let status = get(&port(&second), "/status");
    assert!(status.contains("both run all hooks"), "{status}");
    assert!(get(&port(&second), "/metrics").contains("addon_operator_other_operators 1\n"));
    let refusing =
        cluster.operator("c", &[&TIMES[..], &[("ADDON_OPERATOR_SINGLE_INSTANCE", "refuse")]].concat());
    let (code, lines) = refusing.end();
    assert_eq!(code, 1, "{lines:?}");
    assert_eq!(second.stop(), 0);
    assert_eq!(first.stop(), 0);
    let lease: Value = serde_json::to_value(cluster.lease().get(NAME).await.unwrap()).unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], Value::Null, "{lease}");
}

/// Run it with `FIGURES_OPERATOR=target/release/addon-operator`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures memory; docs/performance.md has the numbers"]
async fn a_standby_that_is_probed_and_scraped_takes_25_mib_at_most() {
    let world = in_process::Cluster::new().await;
    let samples = ["modules", "global-hooks"].map(|dir| format!("{}/{dir}", env!("CARGO_MANIFEST_DIR")));
    let sockets = tempfile::tempdir().unwrap();
    let replica = async |name: &str| {
        let socket = sockets.path().join(name).to_string_lossy().into_owned();
        let variables = [
            ("ADDON_OPERATOR_HA", "true"),
            ("ADDON_OPERATOR_POD", name),
            ("DEBUG_UNIX_SOCKET", &socket),
            ("MODULES_DIR", &samples[0]),
            ("GLOBAL_HOOKS_DIR", &samples[1]),
        ];
        Program::start(&world, &variables).await
    };
    let leads = async |program: &Program, is: f64| {
        while (program.metric("addon_operator_leader ").await - is).abs() > 0.5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let leader = replica("a").await;
    leads(&leader, 1.0).await;
    let standby = replica("b").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    leads(&standby, 0.0).await;
    let mut seen = Vec::new();
    // Each time as Prometheus and the kubelet ask, for many of the retry periods after which it gives back.
    for _ in 0..32 {
        standby.metric("addon_operator").await;
        seen.push(standby.kib("VmRSS:"));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let (own, last) = (standby.kib("RssAnon:"), seen.split_off(16));
    println!("KiB of a standby, its own {own}: {seen:?}, then {last:?}");
    assert!(last.iter().all(|kib| *kib <= 25 << 10), "{last:?}");
}
