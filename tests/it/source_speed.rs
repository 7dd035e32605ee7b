//! How fast module sources are: a hundred modules of ten sources, in an operator that is a process of its own.
//!
//! `SOURCES_OPERATOR=target/release/addon-operator cargo test --test it source_speed -- --ignored --nocapture`

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use addon_operator::source::crds;
use apiserver::{ApiServer, Serving};
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::module_sources::{SOURCES, phase};
use crate::support::files::write;
use crate::support::program::Running;
use crate::support::repository::{Packed, Reply, Repository, index};
use crate::support::server::{get, ok, until, until_asked};

const SOURCES_COUNT: usize = 10;
const MODULES_OF_EACH: usize = 10;

/// The limits of docs/performance.md.
const ALL_READY: Duration = Duration::from_secs(5);
const NEW_CODE: Duration = Duration::from_secs(1);
const RESTART_ABOVE_FILES: Duration = Duration::from_millis(500);

/// An operator in a process of its own, the API server that it works on, and a repository.
struct World {
    server: ApiServer,
    _serving: Serving,
    repository: Repository,
    dir: tempfile::TempDir,
    operator: Option<Running>,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::builder().build().unwrap();
        let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        let repository = Repository::tls(&["localhost"]).await;
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("kubeconfig"), serving.kubeconfig());
        repository.write_authority(dir.path());
        for name in ["modules", "global-hooks", "tmp"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}});
        ok(&server, Method::POST, "/api/v1/namespaces", &namespace).await;
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for crd in crds().unwrap() {
            ok(&server, Method::POST, definitions, &crd).await;
        }
        Self { server, _serving: serving, repository, dir, operator: None }
    }

    /// Starts the operator, and waits until it is ready. Returns how long that took.
    #[expect(clippy::disallowed_methods, reason = "which program is measured is said from outside")]
    fn start(&mut self) -> Duration {
        let operator = std::env::var("SOURCES_OPERATOR")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_addon-operator").to_owned());
        let dir = self.dir.path();
        let authority = self.repository.write_authority(dir);
        let mut command = Command::new(operator);
        command
            .arg("start")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("WORLD", dir)
            .env("KUBECONFIG", dir.join("kubeconfig"))
            .env("MODULES_DIR", dir.join("modules"))
            .env("GLOBAL_HOOKS_DIR", dir.join("global-hooks"))
            .env("ADDON_OPERATOR_NAMESPACE", "ops")
            .env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1")
            .env("ADDON_OPERATOR_LISTEN_PORT", "0")
            .env("ADDON_OPERATOR_TMP_DIR", dir.join("tmp"))
            // Two operators run at a time, and each has a socket of its own.
            .env("DEBUG_UNIX_SOCKET", dir.join("socket"))
            .env("ADDON_OPERATOR_SOURCE_DIR", dir.join("sources"))
            .env("ADDON_OPERATOR_SOURCE_ALLOW", "localhost")
            .env("ADDON_OPERATOR_SOURCE_CA", authority)
            .current_dir(dir)
            .stderr(Stdio::null());
        let begun = Instant::now();
        let mut running = Running::start(command);
        // Who asks again and again takes time from what is measured.
        tokio::task::block_in_place(|| running.wait("Operator is ready now"));
        self.operator = Some(running);
        begun.elapsed()
    }

    /// Kills the operator, and starts it again. Returns how long it took until it was ready.
    fn restart(&mut self) -> Duration {
        self.operator = None;
        self.start()
    }

    /// Publishes the modules of a source, whose hooks say `says`, below `/NUMBER/`.
    fn publish(&self, number: usize, says: &str) {
        let packed = |place: usize| (name(number * MODULES_OF_EACH + place), module(number, place, says));
        let bundles: Vec<(String, Vec<u8>)> = (0..MODULES_OF_EACH).map(packed).collect();
        let lines: Vec<(&str, &str, Vec<u8>)> =
            bundles.iter().map(|(name, packed)| (&**name, "1.0.0", packed.clone())).collect();
        self.repository.put(&format!("/{number}/index.yaml"), Reply::File(index(&lines, false)));
        for (name, packed) in bundles {
            self.repository.put(&format!("/{number}/{name}-1.0.0.tgz"), Reply::File(packed));
        }
    }

    async fn apply(&self, number: usize) {
        self.apply_with(number, &json!({})).await;
    }

    /// Applies a source with more in its spec than its repository.
    async fn apply_with(&self, number: usize, more: &Value) {
        let url = self.repository.url(&format!("/{number}/index.yaml"));
        let mut object = json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "ClusterAddonsConfiguration",
            "metadata": {"name": format!("source-{number}")}, "spec": {"repositories": [{"url": url}]},
        });
        object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ok(&self.server, Method::POST, SOURCES, &object).await;
    }

    /// Returns whether all sources fit.
    async fn all(&self, fits: impl Fn(&Value) -> bool) -> bool {
        let list = get(&self.server, SOURCES).await.unwrap();
        let items = list["items"].as_array().unwrap();
        items.len() == SOURCES_COUNT && items.iter().all(fits)
    }

    /// Switches all modules on.
    async fn enable(&self) {
        let flags = (0..SOURCES_COUNT * MODULES_OF_EACH).map(|number| (flag(number), json!("true")));
        let data: serde_json::Map<String, Value> = flags.collect();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data});
        ok(&self.server, Method::POST, "/api/v1/namespaces/ops/configmaps", &map).await;
    }
}

/// Returns a name that survives as a key of values.
fn name(number: usize) -> String {
    let letters = number.to_string().bytes().map(|digit| char::from(b'a' + digit - b'0')).collect::<String>();
    format!("module-{letters}")
}

fn flag(number: usize) -> String {
    format!("{}Enabled", values::name::camel(&name(number)))
}

const CHART: &str = "name: module\nversion: 0.1.0\n";

fn template(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// Returns a packed module: a chart with one object. The first of each source has a hook.
fn module(source: usize, place: usize, says: &str) -> Vec<u8> {
    let name = name(source * MODULES_OF_EACH + place);
    let meta =
        format!("id: id-{name}\nname: {name}\nversion: 1.0.0\ndescription: A test.\ndisplayName: Test\n");
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, CHART.as_bytes());
    packed.file("templates/map.yaml", 0o644, template(&name).as_bytes());
    if place == 0 {
        let hook = format!(
            "#!/bin/bash\nif [[ \"${{1:-}}\" == --config ]]; then echo '{{\"configVersion\":\"v1\",\"onStartup\":1}}'; exit; fi\n\
             echo \"{says}\" >>\"$WORLD/ran-{source}\"\n"
        );
        packed.file("hooks/tell.sh", 0o755, hook.as_bytes());
    }
    packed.finish()
}

/// Writes as many modules as files.
fn write_modules(dir: &Path) {
    let mut values = String::new();
    for number in 0..SOURCES_COUNT * MODULES_OF_EACH {
        let (name, module) = (name(number), dir.join(format!("modules/{number:03}-{}", name(number))));
        write(&module.join("Chart.yaml"), CHART);
        write(&module.join("templates/map.yaml"), &template(&name));
        values.extend([flag(number).as_str(), ": true\n"]);
    }
    write(&dir.join("modules/values.yaml"), &values);
}

fn is_running(object: &Value) -> bool {
    object["status"]["modules"] == format!("{MODULES_OF_EACH}/{MODULES_OF_EACH}") && phase(object) == "Ready"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures"]
async fn a_hundred_modules_of_ten_sources_are_there_in_time() {
    let mut world = World::new().await;
    world.start();
    (0..SOURCES_COUNT).for_each(|number| world.publish(number, "0"));

    let begun = Instant::now();
    for number in 0..SOURCES_COUNT {
        world.apply(number).await;
    }
    until_asked("sources that are ready", async || world.all(|object| phase(object) == "Ready").await).await;
    let ready = begun.elapsed();
    eprintln!("100 addons of 10 sources over TLS are registered: {ready:?}");

    let begun = Instant::now();
    world.enable().await;
    until_asked("modules that run", async || world.all(is_running).await).await;
    eprintln!("all of them run after one edit: {:?}", begun.elapsed());

    let mut slowest = Duration::ZERO;
    for round in 1..=5 {
        let says = round.to_string();
        world.publish(0, &says);
        let begun = Instant::now();
        let raise = json!({"spec": {"reprocessRequest": round}});
        ok(&world.server, Method::PATCH, &format!("{SOURCES}/source-0"), &raise).await;
        let ran = world.dir.path().join("ran-0");
        until("the new code", || {
            fs::read_to_string(&ran).is_ok_and(|text| text.lines().last() == Some(&says))
        })
        .await;
        slowest = slowest.max(begun.elapsed());
        eprintln!("a counter was raised, and the new code of a hook has run: {:?}", begun.elapsed());
    }
    until_asked("modules that run", async || world.all(is_running).await).await;

    let mut files = World::new().await;
    write_modules(files.dir.path());
    files.start();
    world.repository.asked();
    let (mut of_files, mut of_sources) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        of_files.push(files.restart());
        of_sources.push(world.restart());
    }
    let asked = world.repository.asked();
    eprintln!("restart until it is ready: from files {of_files:?}, from sources {of_sources:?}");
    assert_eq!(asked, [], "a restart asked the repository");

    assert!(ready <= ALL_READY, "{ready:?}");
    assert!(slowest <= NEW_CODE, "{slowest:?}");
    let best = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    assert!(best(&of_sources) <= best(&of_files) + RESTART_ABOVE_FILES, "{of_files:?}, {of_sources:?}");
}

/// How many sources look every minute, and how many rounds of that are measured.
const LOOKING: usize = 50;
const ROUNDS: u64 = 4;

/// Returns how long a process has had a processor, all its threads together.
fn processor_time(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ran = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(ran.sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures, for five minutes"]
async fn fifty_sources_that_look_every_minute_cost_little() {
    let mut world = World::new().await;
    world.start();
    for number in 0..LOOKING {
        let (name, packed) = (name(number * MODULES_OF_EACH + 1), module(number, 1, "0"));
        let line = [(&*name, "1.0.0", packed.clone())];
        world.repository.put(&format!("/{number}/index.yaml"), Reply::File(index(&line, false)));
        world.repository.put(&format!("/{number}/{name}-1.0.0.tgz"), Reply::File(packed));
        world.apply_with(number, &json!({"updateInterval": "1m"})).await;
    }
    until_asked("sources that are ready", async || {
        let list = get(&world.server, SOURCES).await.unwrap();
        let items = list["items"].as_array().unwrap();
        items.len() == LOOKING && items.iter().all(|object| phase(object) == "Ready")
    })
    .await;
    let pid = world.operator.as_ref().unwrap().pid();
    let mut looks = 0;
    let mut round = async || {
        let end = looks + LOOKING;
        while looks < end {
            tokio::time::sleep(Duration::from_secs(1)).await;
            looks += world.repository.asked().len();
        }
    };
    round().await;
    let (begun, before) = (Instant::now(), processor_time(pid));
    for _ in 0..ROUNDS {
        round().await;
    }
    let (took, ran) = (begun.elapsed(), processor_time(pid).saturating_sub(before));
    let (share, minutes) = (ran.as_secs_f64() / took.as_secs_f64() * 100.0, took.as_secs_f64() / 60.0);
    eprintln!(
        "{LOOKING} sources that look every minute: {share:.3} % of a processor, {ROUNDS} rounds in {minutes:.2} min"
    );
    // A source is asked once a minute at most: a round is no shorter.
    assert!(took + Duration::from_secs(30) > Duration::from_mins(ROUNDS), "{minutes}");
    assert!(share <= 0.1, "{share}");
}

/// How long the version before may take to answer again after the third failure of the one that failed.
const BACK: Duration = Duration::from_secs(30);

/// Returns a version of a module that tells in a file that it ran, or that it failed.
fn version(version: &str, is_good: bool) -> Vec<u8> {
    let meta =
        format!("id: id-web\nname: web\nversion: {version}\ndescription: A test.\ndisplayName: Test\n");
    let hook = format!(
        "#!/bin/bash\nif [[ \"${{1:-}}\" == --config ]]; then echo '{{\"configVersion\":\"v1\",\"beforeHelm\":1}}'; exit; fi\n\
         echo {version} >>\"$WORLD/ran\"\nexit {}\n",
        u8::from(!is_good)
    );
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, CHART.as_bytes());
    packed.file("templates/map.yaml", 0o644, template("web").as_bytes());
    packed.file("hooks/tell.sh", 0o755, hook.as_bytes());
    packed.finish()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures"]
async fn a_version_that_fails_makes_way_in_time() {
    let mut world = World::new().await;
    world.start();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": {"webEnabled": "true"}});
    ok(&world.server, Method::POST, "/api/v1/namespaces/ops/configmaps", &map).await;
    let publish = |of: &str, is_good: bool| {
        let packed = version(of, is_good);
        world.repository.put("/0/index.yaml", Reply::File(index(&[("web", of, packed.clone())], false)));
        world.repository.put(&format!("/0/web-{of}.tgz"), Reply::File(packed));
    };
    let ran = world.dir.path().join("ran");
    let runs = || fs::read_to_string(&ran).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    publish("1.0.0", true);
    world.apply(0).await;
    until("the first version", || runs() == ["1.0.0"]).await;
    // Only what has run to its end is gone back to.
    let source = format!("{SOURCES}/source-0");
    until_asked("its end", async || get(&world.server, &source).await.unwrap()["status"]["modules"] == "1/1")
        .await;
    let (mut slowest, mut from) = (Duration::ZERO, 1);
    for round in 1..=3 {
        publish(&format!("1.{round}.0"), false);
        let raise = json!({"spec": {"reprocessRequest": round}});
        ok(&world.server, Method::PATCH, &format!("{SOURCES}/source-0"), &raise).await;
        until("the third failure", || runs().len() >= from + 3).await;
        let begun = Instant::now();
        until("the version before", || runs().len() > from + 3).await;
        let took = begun.elapsed();
        assert_eq!(runs().last().unwrap(), "1.0.0", "{:?}", runs());
        eprintln!("the version before answers again after the third failure: {took:?}");
        (slowest, from) = (slowest.max(took), runs().len());
    }
    assert!(slowest <= BACK, "{slowest:?}");
}
