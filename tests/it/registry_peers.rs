//! Sources beside a registry that we did not write (Debian: `docker-registry`), with TLS and a password: pushed to by `source push`
//! and by another client, mirrored, and fetched from.
//!
//! They are asked for: `.ci/run` does, or `cargo test --test it registry_peers -- --ignored`. The other client is the Python package
//! `oras`, in the directory that `ORAS_PYTHON` names.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engine::{AddonReason, Include, RepositorySpec, SecretName, SourceSpec};
use http::Method;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;

use crate::source_signatures::{serve, signed_by, text};
use crate::support::docker_registry::DockerRegistry;
use crate::support::program::Workspace;
use crate::support::registry::{BUNDLE, Registry};
use crate::support::repository::{Packed, Repository, module};
use crate::support::server;
use crate::support::source::{SourceFixture, bundle, key, problem, repository_problem, spec, spec_of};

/// What the other client does: it knows nothing of bundles.
const PUSH: &str = "
import sys, oras.client
host, target, file = sys.argv[1:]
client = oras.client.OrasClient(hostname=host, auth_backend='basic')
client.auth.set_basic_auth('joe', 'hunter2')
client.push(target=host + '/' + target, files=[file], disable_path_validation=True, quiet=True)
";

/// Returns a fixture that trusts a registry, with a Secret of who may use it.
async fn world(registry: &DockerRegistry) -> SourceFixture {
    let world = SourceFixture::trusting(&registry.authority, &[]).await;
    let data = json!({".dockerconfigjson": registry.docker_config()});
    let secret = json!({"metadata": {"name": "registry"}, "stringData": data});
    server::ok(&world.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    world
}

fn of(url: String, include: Vec<Include>) -> SourceSpec {
    let secret = Some(SecretName { namespace: "ops".to_owned(), name: "registry".to_owned() });
    spec_of(vec![RepositorySpec { url, secret, include }])
}

fn any(name: &str) -> Include {
    Include { name: name.to_owned(), version: None, digest: None }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker-registry"]
async fn what_is_pushed_to_a_real_registry_is_fetched_from_it() {
    let registry = DockerRegistry::new().await;
    let workspace = Workspace::new();
    let (ca, config) = (registry.file("authority.pem"), registry.file("config.json"));
    registry.docker_config();
    fs::write(workspace.path().join("web.tgz"), module("web", "1.0.0+3", "hello")).unwrap();
    let to = registry.url("/addons");
    let ask = |arguments: &[&str]| tokio::task::block_in_place(|| workspace.ask(arguments));
    let push = ["source", "push", "web.tgz", &to, "--ca", &ca];
    let (code, said) = ask(&push);
    assert_ne!(code, 0);
    assert!(said.contains("401 Unauthorized: it wants user and password"), "{said}");
    let known = [push.as_slice(), &["--registry-config", &config]].concat();
    for _ in 0..2 {
        let (code, said) = ask(&known);
        assert_eq!(code, 0, "{said}");
        assert!(said.starts_with(&format!("{to}/web:1.0.0_3 sha256:")), "{said}");
    }
    let world = world(&registry).await;
    let fetched = world.sources().fetch(&key(), &of(to.clone(), vec![any("web")])).await.unwrap();
    assert_eq!(bundle(&fetched).version, "1.0.0+3");
    let (_, said) =
        repository_problem(&world.sources().fetch(&key(), &spec(&[format!("{to}/web")])).await.unwrap());
    assert!(said.contains("name that in secretRef"), "{said}");
    // The same registry has the mirror, below another path.
    let copy = registry.url("/copy");
    let mirror =
        ["source", "mirror", &to, &copy, "--include", "web", "--ca", &ca, "--registry-config", &config];
    let (code, said) = ask(&mirror);
    assert_eq!(code, 0, "{said}");
    let fetched = world.sources().fetch(&key(), &of(format!("{copy}/web"), Vec::new())).await.unwrap();
    assert_eq!(bundle(&fetched).version, "1.0.0+3");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker-registry and the Python package oras"]
async fn what_another_client_pushed_is_a_bundle_if_it_has_the_type() {
    #[expect(clippy::disallowed_methods, reason = "where the other client is, is said from outside")]
    let oras = std::env::var_os("ORAS_PYTHON");
    let Some(oras) = oras else {
        eprintln!("skipped: ORAS_PYTHON names no directory with the Python package oras");
        return;
    };
    let registry = DockerRegistry::new().await;
    let packed = registry.dir.path().join("web-1.0.0.tgz");
    fs::write(&packed, module("web", "1.0.0", "hello")).unwrap();
    let file = format!("{}:{BUNDLE}", packed.display());
    let mut command = Command::new("python3");
    command.args(["-c", PUSH, &format!("localhost:{}", registry.port), "addons/web:1.0.0", &file]);
    command.env("PYTHONPATH", oras).env("REQUESTS_CA_BUNDLE", registry.file("authority.pem"));
    command.env("HOME", registry.dir.path()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let world = world(&registry).await;
    let fetched =
        world.sources().fetch(&key(), &of(registry.url("/addons"), vec![any("web")])).await.unwrap();
    assert_eq!(bundle(&fetched).name.as_str(), "web");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker-registry"]
async fn what_cosign_signed_is_accepted_from_a_real_registry_into_which_it_was_mirrored() {
    for is_new in [false, true] {
        let (registry, origin) = (DockerRegistry::new().await, Repository::tls(&[]).await);
        serve(&origin, is_new, false);
        let workspace = Workspace::new();
        registry.docker_config();
        let both = format!("{}{}", registry.authority, origin.authority);
        fs::write(workspace.path().join("ca.pem"), both).unwrap();
        let (from, to) = (Registry::open(&origin).url(""), registry.url("/copy"));
        let config = registry.file("config.json");
        let mirror = [
            "source",
            "mirror",
            &from,
            &to,
            "--include",
            "web",
            "--ca",
            "ca.pem",
            "--registry-config",
            &config,
        ];
        let (code, said) = tokio::task::block_in_place(|| workspace.ask(&mirror));
        assert!(
            code == 0 && said.contains("/copy/web:1.0.0") && said.contains(", with its signature"),
            "{said}"
        );
        let world = world(&registry).await;
        let of = of(to, vec![any("web")]);
        let stranger = signed_by(of.clone(), &[text("cosign/p384.pub")]);
        let (reason, said) = problem(&world.sources().fetch(&key(), &stranger).await.unwrap());
        assert_eq!(reason, AddonReason::LoadingError);
        assert!(said.contains("none of its signatures is of a key of spec.verify"), "{said}");
        let own = signed_by(of, &[text("cosign/p256.pub")]);
        assert_eq!(bundle(&world.sources().fetch(&key(), &own).await.unwrap()).version, "1.0.0");
    }
}

/// Returns the middle one of three measurements.
fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker-registry and curl, and measures"]
async fn a_pull_of_five_mebibytes_takes_about_as_long_as_curl_needs() {
    let registry = DockerRegistry::new().await;
    registry.docker_config();
    let workspace = Workspace::new();
    let mut noise = vec![0; 5 << 20];
    StdRng::seed_from_u64(1).fill_bytes(&mut noise);
    let mut packed = Packed::new();
    let meta = "id: id-web\nname: web\nversion: 1.0.0\ndescription: A test.\ndisplayName: Test\n";
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("hooks/run.sh", 0o755, b"#!/bin/sh\n");
    packed.file("noise", 0o644, &noise);
    fs::write(workspace.path().join("web.tgz"), packed.finish()).unwrap();
    let (ca, config) = (registry.file("authority.pem"), registry.file("config.json"));
    let to = registry.url("");
    let push = ["source", "push", "web.tgz", &to, "--ca", &ca, "--registry-config", &config];
    let (code, said) = tokio::task::block_in_place(|| workspace.ask(&push));
    assert_eq!(code, 0, "{said}");
    let digest = said.split(' ').nth(1).unwrap().to_owned();
    let blob = format!("https://localhost:{}/v2/web/blobs/{digest}", registry.port);
    let (mut pulls, mut curls) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let world = world(&registry).await;
        let sources = world.sources();
        let begun = Instant::now();
        bundle(&sources.fetch(&key(), &of(registry.url("/web"), Vec::new())).await.unwrap());
        pulls.push(begun.elapsed());
        let mut curl = Command::new("curl");
        curl.args(["-sSf", "-u", "joe:hunter2", "--cacert", &ca, "-o", &registry.file("blob"), &blob]);
        let begun = Instant::now();
        let status = tokio::task::spawn_blocking(move || curl.status()).await.unwrap().unwrap();
        curls.push(begun.elapsed());
        assert!(status.success());
    }
    let (pull, curl) = (middle(pulls), middle(curls));
    // This build is not optimised, and other tests may run: it says how long it took, and fails only if something is badly wrong.
    println!("pull and check of 5 MiB: {pull:?}, curl of the blob: {curl:?}");
    assert!(pull < curl * 100 + Duration::from_secs(5), "{pull:?} {curl:?}");
}
