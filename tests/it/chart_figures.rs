//! What chart repositories cost: docs/performance.md has the numbers.
//!
//! `FIGURES_OPERATOR=target/release/addon-operator cargo test --test it chart_figures -- --ignored --nocapture --test-threads 1`

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::charts::{World, chart, condition};
use crate::support::measured::Program;
use crate::support::repository::Reply;
use crate::support::server;

/// How long a figure is repeated that is measured in milliseconds.
const RUNS: u32 = 100;

/// Returns an index of about so many bytes, as large public repositories have them: 150 versions of each chart, with texts that
/// nobody here reads.
fn index(bytes: usize) -> Vec<u8> {
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    let mut number = 0;
    while text.len() < bytes {
        let name = format!("chart-{number:04}");
        number += 1;
        let _ = writeln!(text, "  {name}:");
        for version in (0..150).rev() {
            let version = format!("{}.{}.0", version / 10, version % 10);
            let digest = crate::support::repository::digest(format!("{name} {version}").as_bytes());
            let _ = write!(
                text,
                "  - annotations:\n      category: Infrastructure\n      licenses: Apache-2.0\n    apiVersion: v2\n    appVersion: {version}\n    \
                 created: \"2024-05-01T10:32:50.123Z\"\n    dependencies:\n    - name: common\n      repository: oci://registry.example/charts\n      \
                 tags:\n      - common\n      version: 2.x.x\n    description: {name} is a component that does what people want, with a description of the usual length.\n    \
                 digest: {digest}\n    home: https://example.com/{name}\n    icon: https://example.com/assets/stacks/{name}/img/{name}-stack-220x234.png\n    \
                 keywords:\n    - {name}\n    - infrastructure\n    - http\n    maintainers:\n    - name: Somebody\n      url: https://github.com/example/charts\n    \
                 name: {name}\n    sources:\n    - https://github.com/example/charts/tree/main/example/{name}\n    urls:\n    - {name}-{version}.tgz\n    \
                 version: {version}\n"
            );
        }
    }
    text.into_bytes()
}

async fn started(world: &World) -> Program {
    let socket = world.cluster.path("socket").display().to_string();
    let options = world.options().map(|(name, text)| {
        (format!("ADDON_OPERATOR_{}", name.replace('-', "_").to_uppercase()), text.to_owned())
    });
    let mut options: Vec<(&str, &str)> = options.iter().map(|(name, text)| (&**name, &**text)).collect();
    options.push(("DEBUG_UNIX_SOCKET", &socket));
    let program = Program::start(&world.cluster, &options).await;
    server::until_asked("the operator", async || program.metric("addon_operator_live_ticks").await > 0.0)
        .await;
    program
}

/// Applies a Repository, and returns how long it takes until it is synced with so many Charts.
async fn synced(world: &World, charts: &Value, count: usize) -> Duration {
    let begun = Instant::now();
    let spec = json!({"name": "corp", "url": world.repository.url(""), "charts": charts});
    world.apply("Repository", "corp", spec).await;
    loop {
        let repository = world.object("Repository", "corp").await;
        let is_synced = condition(&repository)["status"] == "True"
            && repository["status"]["observedGeneration"] == repository["metadata"]["generation"];
        if is_synced && repository["status"]["charts"] == count {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_mins(5), "{repository}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time and memory; docs/performance.md has the numbers"]
async fn figures_of_large_indexes() {
    for (megabytes, seconds) in [(26, 3), (60, 7)] {
        for is_open in [false, true] {
            let world = World::new().await;
            let index = index(megabytes * 1_000_000);
            world.repository.put("/index.yaml", Reply::With(vec![("etag", "\"x\"".to_owned())], index));
            let program = started(&world).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            let idle = program.kib("VmRSS:");
            let charts = if is_open { json!([]) } else { json!([{"name": "chart-0001"}]) };
            let took = synced(&world, &charts, usize::from(!is_open)).await;
            let fetched = program.metric("addon_operator_chart_fetch_seconds_sum").await;
            let peak = program.kib("VmHWM:").saturating_sub(idle);
            let kept = if is_open { "the lists of all charts" } else { "one chart" };
            println!(
                "index of {megabytes} MB, {kept}: {took:?} (the request {fetched:.2} s), {peak} KiB above idle ({idle} KiB)"
            );
            assert!(took < Duration::from_secs(seconds), "{took:?}");
            assert!(peak < 24 << 10, "{peak} KiB");
        }
    }
}

/// Publishes charts, and a module of each kind: one that names a chart, and one that holds the same files. Returns what lists
/// the charts.
fn publish(world: &World, count: usize) -> Vec<Value> {
    let charts: Vec<String> = (0..count).map(|number| format!("c{number:03}")).collect();
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: b}\n";
    let pack = |name: &String| {
        let files: [(&str, &[u8]); 2] =
            [("values.yaml", b"a: 1\n"), ("templates/map.yaml", template.as_bytes())];
        chart(name, "1.0.0", "", &files)
    };
    let all: Vec<_> = charts.iter().map(|name| (&**name, "1.0.0", pack(name))).collect();
    world.publish("", &all);
    let module = "chart: {repository: corp, name: c000, version: '1'}\n";
    world.cluster.write("modules/040-named/module.yaml", module);
    world.cluster.write("modules/050-held/Chart.yaml", "apiVersion: v2\nname: held\nversion: 1.0.0\n");
    world.cluster.write("modules/050-held/values.yaml", "a: 1\n");
    world.cluster.write("modules/050-held/templates/map.yaml", template);
    world.cluster.write("modules/values.yaml", "namedEnabled: true\nheldEnabled: true\n");
    charts.iter().map(|name| json!({"name": name, "versions": ["1.0.0"]})).collect()
}

/// Has a module run, as `addon-operator module run` does.
fn run(world: &World, module: &str) {
    let mut stream = UnixStream::connect(world.cluster.path("socket")).unwrap();
    write!(
        stream,
        "POST /module/{module}/run HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Returns how long the runs of a module took so far, in seconds, and how many there were.
async fn runs(program: &Program, module: &str) -> (f64, f64) {
    let of = format!("module=\"{module}\"");
    let sum = program.metric_of("addon_operator_module_run_seconds_sum", &of).await;
    (sum, program.metric_of("addon_operator_module_run_seconds_count", &of).await)
}

/// Returns how long an unchanged run of each module takes, in milliseconds. They take turns: what else the machine does hits both.
async fn unchanged_runs<const MODULES: usize>(
    world: &World,
    program: &Program,
    modules: [&str; MODULES],
) -> [f64; MODULES] {
    let mut before = [(0.0, 0.0); MODULES];
    for (before, module) in before.iter_mut().zip(modules) {
        *before = runs(program, module).await;
    }
    for number in 1..=RUNS {
        for (before, module) in before.iter().zip(modules) {
            run(world, module);
            let is_done = async || runs(program, module).await.1 >= before.1 + f64::from(number);
            server::until_asked("the run", is_done).await;
        }
    }
    let mut each = [0.0; MODULES];
    for ((each, before), module) in each.iter_mut().zip(before).zip(modules) {
        let after = runs(program, module).await;
        *each = (after.0 - before.0) * 1_000.0 / (after.1 - before.1);
    }
    each
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time; docs/performance.md has the numbers"]
async fn figures_of_a_hundred_charts() {
    let world = World::new().await;
    let listed = publish(&world, 100);
    let program = started(&world).await;
    let begun = Instant::now();
    // The module has a Chart of its own.
    synced(&world, &json!(listed), 101).await;
    for number in 0..100 {
        world.synced("Chart", &format!("c{number:03}-corp")).await;
    }
    let took = begun.elapsed();
    println!("100 Charts with one version: {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");

    world.cluster.settled("named", |map| !map.is_null()).await;
    let [of_catalogue, of_directory] = unchanged_runs(&world, &program, ["named", "held"]).await;
    println!("an unchanged run: {of_catalogue:.2} ms from a package, {of_directory:.2} ms from a directory");
    assert!(of_catalogue < of_directory + 0.2, "{of_catalogue} {of_directory}");

    // Events are written at leisure.
    let count = async || program.metric("addon_operator_kubernetes_client_request_result_total").await;
    let mut requests = count().await;
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let now = count().await;
        if now - requests < 2.0 {
            break;
        }
        requests = now;
        assert!(begun.elapsed() < Duration::from_mins(5), "{requests} requests, and no end");
    }
    println!("it rests {:?} after the first apply, {requests} requests", begun.elapsed());
    world.repository.asked();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let asked = world.repository.asked();
    println!(
        "idle for 30 s: {} requests to the repository, {} to the API server",
        asked.len(),
        count().await - requests
    );
    assert!(asked.is_empty(), "{asked:?}");
}
