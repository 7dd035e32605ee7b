//! A long time with many modules, hooks and events, in a process of its own: nothing may grow.
//!
//! `SOAK_SECONDS=600 SOAK_OPERATOR=target/release/addon-operator cargo test --test it f_h5 -- --ignored --nocapture`

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::DEADLINE;
use crate::support::files::write;
use crate::support::server::send;

/// How many objects the hooks watch; each is watched by ten hooks.
const OBJECTS: usize = 50;

/// How many files may be open more than before: connections, and those of directories that wait for a run of a hook. Each has
/// eight, and there are as many as hooks ran at a time.
const FILES: usize = 100;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    memory: u64,
    peak: u64,
    files: usize,
    threads: usize,
    temporary: usize,
}

fn held(child: &Child, temporary: &Path) -> Held {
    let process = Path::new("/proc").join(child.id().to_string());
    let status = fs::read_to_string(process.join("status")).unwrap();
    let of = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    Held {
        memory: of("VmRSS:"),
        peak: of("VmHWM:"),
        files: fs::read_dir(process.join("fd")).unwrap().count(),
        threads: usize::try_from(of("Threads:")).unwrap(),
        temporary: walkdir::WalkDir::new(temporary).into_iter().flatten().filter(holds_anything).count(),
    }
}

/// Returns whether it is a file with content. Those that wait for the next run of a hook hold zeros.
fn holds_anything(entry: &walkdir::DirEntry) -> bool {
    let bytes = if entry.file_type().is_file() { fs::read(entry.path()) } else { return false };
    bytes.is_ok_and(|bytes| bytes.iter().any(|byte| *byte != 0))
}

/// An operator in a process of its own, and the API server that it works on.
struct Fixture {
    server: ApiServer,
    serving: Option<apiserver::Serving>,
    dir: tempfile::TempDir,
    child: Option<Child>,
    port: u16,
}

impl Fixture {
    async fn new() -> Self {
        let server = ApiServer::builder().seed(1).simulate(Duration::ZERO).build().unwrap();
        let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("kubeconfig"), serving.kubeconfig());
        for name in ["modules", "global-hooks", "tmp"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "addon-operator"}});
        send(&server, Method::POST, "/api/v1/namespaces", &namespace).await;
        Self { server, serving: Some(serving), dir, child: None, port: 0 }
    }

    fn hook(&self, path: &str, config: &Value) {
        let text = format!("#!/bin/bash\n[ \"$1\" = --config ] && echo '{config}'\nexit 0\n");
        write(&self.dir.path().join(path), &text);
    }

    async fn map(&self, name: &str, data: &str) {
        let path = "/api/v1/namespaces/default/configmaps";
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"is": data}});
        if send(&self.server, Method::PUT, &format!("{path}/{name}"), &object).await.0 == 404 {
            send(&self.server, Method::POST, path, &object).await;
        }
    }

    /// Starts the operator and waits until it is ready.
    #[expect(clippy::disallowed_methods, reason = "which program is measured is said from outside")]
    async fn start(&mut self) {
        let operator = std::env::var("SOAK_OPERATOR")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_addon-operator").to_owned());
        // A port that was free a moment ago.
        self.port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let dir = self.dir.path();
        let child = Command::new(operator)
            .arg("start")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("KUBECONFIG", dir.join("kubeconfig"))
            .env("MODULES_DIR", dir.join("modules"))
            .env("GLOBAL_HOOKS_DIR", dir.join("global-hooks"))
            .env("ADDON_OPERATOR_NAMESPACE", "addon-operator")
            .env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1")
            .env("ADDON_OPERATOR_LISTEN_PORT", self.port.to_string())
            .env("ADDON_OPERATOR_TMP_DIR", dir.join("tmp"))
            .current_dir(dir)
            .stdout(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        let begun = Instant::now();
        while !self.is_ready().await {
            assert!(begun.elapsed() < Duration::from_mins(3), "the operator does not become ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_ready(&self) -> bool {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await else {
            return false;
        };
        let request = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        stream.write_all(request).await.is_ok()
            && stream.read_to_string(&mut answer).await.is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }

    fn held(&self) -> Held {
        held(self.child.as_ref().unwrap(), &self.dir.path().join("tmp"))
    }

    /// Waits until no hook runs any more, and returns what is held then.
    async fn at_rest(&self) -> Held {
        let begun = Instant::now();
        loop {
            let held = self.held();
            if held.temporary == 0 {
                return held;
            }
            assert!(begun.elapsed() < DEADLINE, "files of hooks are left: {held:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if let Some(serving) = self.serving.take() {
            serving.shutdown().await;
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs an operator with so many modules of five hooks each, changes fifty objects a second for so long, and returns
/// what it held meanwhile, and at the end, after all hooks have ended.
async fn soak(modules: usize, seconds: u64) -> Vec<Held> {
    let mut world = Fixture::new().await;
    for object in 0..OBJECTS {
        world.map(&format!("object-{object}"), "0").await;
    }
    let mut values = String::new();
    for module in 0..modules {
        use std::fmt::Write as _;
        writeln!(values, "m{module:03}Enabled: true").unwrap();
        for hook in 0..5 {
            let number = module * 5 + hook;
            let watched = format!("object-{}", number % OBJECTS);
            let config = json!({"configVersion": "v1", "kubernetes": [{
                "name": "object", "apiVersion": "v1", "kind": "ConfigMap", "queue": format!("q{}", number % 10),
                "namespace": {"nameSelector": {"matchNames": ["default"]}},
                "nameSelector": {"matchNames": [watched]}, "jqFilter": ".data.is",
                "executeHookOnEvent": if number < OBJECTS { json!(["Added", "Modified", "Deleted"]) } else { json!([]) },
            }]});
            world.hook(&format!("modules/{module:03}-m{module:03}/hooks/hook-{hook}.sh"), &config);
        }
    }
    write(&world.dir.path().join("modules/values.yaml"), &values);
    world.start().await;
    let begun = Instant::now();
    let mut samples = Vec::new();
    let mut events = 0_usize;
    while begun.elapsed() < Duration::from_secs(seconds) {
        world.map(&format!("object-{}", events % OBJECTS), &events.to_string()).await;
        events += 1;
        let next = begun + Duration::from_millis(20) * u32::try_from(events).unwrap();
        tokio::time::sleep(next.saturating_duration_since(Instant::now())).await;
        if events.is_multiple_of(50 * (usize::try_from(seconds).unwrap() / 20).max(1)) {
            let held = world.held();
            eprintln!("{:4} s, {events} events: {held:?}", begun.elapsed().as_secs());
            samples.push(held);
        }
    }
    samples.push(world.at_rest().await);
    world.end().await;
    samples
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_h5_a_short_run_leaves_no_file_descriptor_or_thread_behind() {
    let samples = soak(4, 2).await;
    let (early, rest) = (samples.first().unwrap(), samples.last().unwrap());
    assert!(
        rest.files <= early.files + FILES && rest.threads <= early.threads + 8,
        "{early:?} then {rest:?}"
    );
    assert_eq!(rest.temporary, 0, "{rest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "half a minute; ten with SOAK_SECONDS=600"]
#[expect(clippy::disallowed_methods, reason = "how long it takes is said from outside")]
async fn f_h5_a_hundred_modules_with_five_hundred_hooks_and_fifty_events_a_second_do_not_grow() {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30_u64);
    let samples = soak(100, seconds).await;
    // The first quarter is for caches to fill.
    let quarter = samples.len() / 4;
    let (early, late) = (samples.get(quarter).unwrap(), samples.last().unwrap());
    assert!(late.memory < early.memory + early.memory / 10 + 2_048, "{early:?} then {late:?}");
    assert!(
        late.files <= early.files + FILES && late.threads <= early.threads + 8,
        "{early:?} then {late:?}"
    );
    assert_eq!(late.temporary, 0, "{late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a minute"]
async fn f_c10_the_first_list_of_fifty_thousand_objects_needs_little_more_than_what_is_kept() {
    let mut world = Fixture::new().await;
    let data = "x".repeat(500);
    for object in 0..50_000 {
        world.map(&format!("object-{object}"), &data).await;
    }
    let config = json!({"configVersion": "v1", "kubernetes": [{
        "name": "maps", "apiVersion": "v1", "kind": "ConfigMap", "executeHookOnSynchronization": false,
        "namespace": {"nameSelector": {"matchNames": ["default"]}},
    }]});
    world.hook("global-hooks/maps.sh", &config);
    world.start().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let held = world.held();
    eprintln!("{held:?}");
    world.end().await;
    // How much of a page the allocator has given back after five seconds differs by a tenth from run to run.
    assert!(held.peak * 10 <= held.memory * 15, "{held:?}");
}
