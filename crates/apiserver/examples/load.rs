//! Loads a server as real clients do, over TLS: `load KUBECONFIG [PODS] [CLIENTS]`.
//!
//! Prints creations and reads a second, and how long a watcher waits for a write. Pods have 3 KiB. Everything goes into a namespace
//! that is deleted at the end.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to the terminal")]

use std::error::Error;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, Namespace, Pod, PodSpec};
use kube::api::{Api, DeleteParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

type Failure = Box<dyn Error + Send + Sync>;

const NAMESPACE: &str = "load";

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(kubeconfig) = arguments.next() else {
        eprintln!("usage: load KUBECONFIG [PODS] [CLIENTS]");
        return std::process::ExitCode::from(2);
    };
    let mut number = |default: usize| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (pods, clients) = (number(5_000), number(8));
    let done = tokio::runtime::Runtime::new()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(load(&kubeconfig, pods, clients.max(1))));
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn connect(kubeconfig: &str) -> Result<Client, Failure> {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    Ok(Client::try_from(config)?)
}

async fn load(kubeconfig: &str, pods: usize, clients: usize) -> Result<(), Failure> {
    let namespaces: Api<Namespace> = Api::all(connect(kubeconfig).await?);
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    namespaces.create(&PostParams::default(), &namespace).await?;
    let each = pods / clients;
    let begun = Instant::now();
    let work = (0..clients).map(|client| create(kubeconfig.to_owned(), client, each));
    finish(work).await?;
    tell("creations of Pods", each * clients, begun.elapsed());
    let begun = Instant::now();
    let work = (0..clients).map(|client| read(kubeconfig.to_owned(), client, each));
    finish(work).await?;
    tell("reads of Pods", each * clients, begun.elapsed());
    let mut waits = waits(kubeconfig, 1_000).await?;
    waits.sort();
    let at = |part: usize| waits.get(waits.len() * part / 100).copied().unwrap_or_default();
    println!("a watcher hears of a write after {:?} (p50), {:?} (p99)", at(50), at(99));
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    Ok(())
}

/// Runs pieces of work at the same time.
async fn finish(
    work: impl Iterator<Item = impl Future<Output = Result<(), Failure>> + Send + 'static>,
) -> Result<(), Failure> {
    let tasks: Vec<_> = work.map(tokio::spawn).collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn tell(what: &str, count: usize, time: Duration) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    println!("{count} {what}: {:.0} a second", f64::from(count) / time.as_secs_f64());
}

fn pod(name: String) -> Pod {
    let variable =
        |n: usize| EnvVar { name: format!("VARIABLE_{n}"), value: Some("x".repeat(60)), ..EnvVar::default() };
    let container = Container {
        name: "c".to_owned(),
        image: Some("registry.example.com/team/image:v1".to_owned()),
        env: Some((0..24).map(variable).collect()),
        ..Container::default()
    };
    let mut pod = Pod::default();
    pod.metadata.name = Some(name);
    pod.spec = Some(PodSpec { containers: vec![container], ..PodSpec::default() });
    pod
}

async fn create(kubeconfig: String, client: usize, count: usize) -> Result<(), Failure> {
    let pods: Api<Pod> = Api::namespaced(connect(&kubeconfig).await?, NAMESPACE);
    for n in 0..count {
        pods.create(&PostParams::default(), &pod(format!("pod-{client}-{n}"))).await?;
    }
    Ok(())
}

async fn read(kubeconfig: String, client: usize, count: usize) -> Result<(), Failure> {
    let pods: Api<Pod> = Api::namespaced(connect(&kubeconfig).await?, NAMESPACE);
    for n in 0..count {
        pods.get(&format!("pod-{client}-{n}")).await?;
    }
    Ok(())
}

/// Returns how long a watcher waited for each of `count` writes, counted from before the write is sent.
async fn waits(kubeconfig: &str, count: usize) -> Result<Vec<Duration>, Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(connect(kubeconfig).await?, NAMESPACE);
    let watched: Api<ConfigMap> = Api::namespaced(connect(kubeconfig).await?, NAMESPACE);
    let events = watched.watch(&WatchParams::default(), "0").await?;
    let mut events = Box::pin(events);
    let mut waits = Vec::with_capacity(count);
    for n in 0..count {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{n}"));
        let begun = Instant::now();
        let options = PostParams::default();
        let write = maps.create(&options, &map);
        let heard = async {
            loop {
                match events.try_next().await? {
                    Some(WatchEvent::Added(seen)) if seen.metadata.name == map.metadata.name => {
                        return Ok::<_, Failure>(begun.elapsed());
                    }
                    Some(_) => {}
                    None => return Err("the watch ended".into()),
                }
            }
        };
        let (written, heard) = tokio::join!(write, heard);
        written?;
        waits.push(heard?);
    }
    Ok(waits)
}
