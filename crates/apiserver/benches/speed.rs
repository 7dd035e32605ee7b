//! How fast the server is, asked in process.
#![expect(clippy::unwrap_used, reason = "a benchmark that fails has nothing to measure")]

use std::time::Duration;

use apiserver::{ApiServer, Endpoint};
use axum::body::Body;
use divan::counter::ItemsCount;
use http::{Method, Request};
use http_body_util::BodyExt;
use tokio::runtime::Runtime;
use tower::ServiceExt;

fn main() {
    divan::main();
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A pod of about 3 KiB.
fn pod(name: &str) -> String {
    let variables: Vec<String> =
        (0..24).map(|n| format!(r#"{{"name":"VARIABLE_{n}","value":"{}"}}"#, "x".repeat(60))).collect();
    format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{"app":"web","tier":"front"}}}},"spec":{{"containers":[{{"name":"c","image":"registry.example.com/team/image:v1","env":[{}]}}]}}}}"#,
        variables.join(",")
    )
}

async fn send(service: Endpoint, method: Method, path: &str, body: String) -> usize {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("user-agent", "bench")
        .body(Body::from(body))
        .unwrap();
    let answer = service.oneshot(request).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let mut size = 0;
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        size += frame.unwrap().data_ref().map_or(0, bytes::Bytes::len);
    }
    size
}

fn filled(runtime: &Runtime, pods: usize) -> ApiServer {
    let server = ApiServer::builder().build().unwrap();
    runtime.block_on(async {
        for n in 0..pods {
            send(server.service(), Method::POST, PODS, pod(&format!("pod-{n:05}"))).await;
        }
    });
    server
}

#[divan::bench(sample_count = 20)]
fn start(bencher: divan::Bencher) {
    bencher.bench(|| ApiServer::builder().build().unwrap());
}

#[divan::bench(sample_count = 10)]
fn create_1000_config_maps(bencher: divan::Bencher) {
    let runtime = runtime();
    bencher
        .counter(ItemsCount::new(1_000_usize))
        .with_inputs(|| ApiServer::builder().build().unwrap())
        .bench_values(|server| runtime.block_on(create_config_maps(&server)));
}

/// As [`create_1000_config_maps`], with a state file.
#[divan::bench(sample_count = 10)]
fn create_1000_config_maps_that_are_kept(bencher: divan::Bencher) {
    let runtime = runtime();
    bencher
        .counter(ItemsCount::new(1_000_usize))
        .with_inputs(|| {
            let directory = tempfile::tempdir().unwrap();
            (ApiServer::builder().state(directory.path().join("state")).build().unwrap(), directory)
        })
        .bench_values(|(server, directory)| {
            runtime.block_on(create_config_maps(&server));
            (server, directory)
        });
}

async fn create_config_maps(server: &ApiServer) {
    for n in 0..1_000 {
        let body = format!(r#"{{"metadata":{{"name":"map-{n}"}},"data":{{"key":"value"}}}}"#);
        send(server.service(), Method::POST, "/api/v1/namespaces/default/configmaps", body).await;
    }
}

#[divan::bench(sample_count = 10, args = [1, 2])]
fn create_1000_pods_of_3_kib_by_clients(bencher: divan::Bencher, clients: usize) {
    let runtime = runtime();
    bencher
        .counter(ItemsCount::new(1_000_usize))
        .with_inputs(|| (ApiServer::builder().build().unwrap(), bodies(1_000)))
        .bench_values(|(server, bodies)| {
            let clients = bodies.chunks(bodies.len().div_ceil(clients)).map(|bodies| {
                let (service, bodies) = (server.service(), bodies.to_vec());
                runtime.spawn(async move {
                    for body in bodies {
                        send(service.clone(), Method::POST, PODS, body).await;
                    }
                })
            });
            let clients: Vec<_> = clients.collect();
            runtime.block_on(async {
                for client in clients {
                    client.await.unwrap();
                }
            });
            server
        });
}

fn bodies(count: usize) -> Vec<String> {
    (0..count).map(|n| pod(&format!("pod-{n:05}"))).collect()
}

#[divan::bench(sample_count = 10)]
fn get_1000(bencher: divan::Bencher) {
    let runtime = runtime();
    let server = filled(&runtime, 1);
    bencher.counter(ItemsCount::new(1_000_usize)).bench(|| {
        runtime.block_on(async {
            for _ in 0..1_000 {
                send(server.service(), Method::GET, &format!("{PODS}/pod-00000"), String::new()).await;
            }
        });
    });
}

#[divan::bench(sample_count = 20)]
fn list_10000_pods(bencher: divan::Bencher) {
    let runtime = runtime();
    let server = filled(&runtime, 10_000);
    bencher.bench(|| runtime.block_on(send(server.service(), Method::GET, PODS, String::new())));
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn write_until_a_watcher_hears_of_it(bencher: divan::Bencher) {
    let runtime = runtime();
    let server = ApiServer::builder().build().unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let (heard, told) = std::sync::mpsc::channel();
    let service = server.service();
    runtime.spawn(async move {
        let request = Request::builder().uri(format!("{maps}?watch=1")).body(Body::empty()).unwrap();
        let mut body = service.oneshot(request).await.unwrap().into_body();
        while let Some(Ok(frame)) = body.frame().await {
            let _ = frame;
            if heard.send(()).is_err() {
                return;
            }
        }
    });
    std::thread::sleep(Duration::from_millis(100));
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let body = format!(r#"{{"metadata":{{"name":"map-{n}"}}}}"#);
        runtime.block_on(send(server.service(), Method::POST, maps, body));
        told.recv().unwrap();
    });
}
