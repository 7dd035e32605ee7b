//! What is kept: blobs, links and Secrets, over kills, changed files and an emptied directory.

use std::collections::BTreeSet;
use std::fs;
use std::slice::from_ref;
use std::sync::Arc;

use apiserver::FaultPlan;
use engine::{Bundle, Digest, FailureKind, Registry, SourceKey, StoreError};
use http::Method;
use serde_json::{Value, json};

use crate::support::pause::pause;
use crate::support::repository::{Packed, Reply, Repository, index, module};
use crate::support::server;
use crate::support::source::{SourceFixture, addons, bundle, key, registry, spec};

const SECRETS: &str = "/api/v1/namespaces/ops/secrets";

/// Publishes a module that says `says`, and fetches it.
async fn fetched(world: &SourceFixture, repository: &Repository, says: &str) -> Bundle {
    repository.publish(&[("web", "1.0.0", module("web", "1.0.0", says))]);
    let fetched = world.sources().fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    bundle(&fetched)
}

async fn secrets(world: &SourceFixture) -> Vec<String> {
    let list = server::ok(&world.server, Method::GET, SECRETS, &Value::Null).await;
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn says(world: &SourceFixture) -> String {
    fs::read_to_string(world.directory().join("active/001-web/hooks/run.sh")).unwrap_or_default()
}

#[tokio::test]
async fn a23_an_emptied_directory_is_filled_from_the_cluster_without_a_request_outside() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    // Longer than one Secret, and nothing that could be packed.
    let noise: Vec<u8> =
        (0_u32..600_000).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let text: String = noise.iter().map(|byte| char::from(b'!' + byte % 90)).collect();
    let web = fetched(&world, &repository, &text).await;
    let kept = registry(from_ref(&web));
    world.sources().keep(&kept, &[]).await.unwrap();
    let short = &web.digest.hex()[..20];
    let names = secrets(&world).await;
    assert!(names.len() > 3, "{names:?}");
    for name in [format!("addon-operator-bundle-{short}-1"), "addon-operator-sources".to_owned()] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    repository.requests();
    for changed in ["", "blobs"] {
        fs::remove_dir_all(world.directory().join(changed)).unwrap();
        let restored = world.sources().restore().await.unwrap();
        assert_eq!((restored.registry, restored.problems.len()), (kept.clone(), 0));
        assert!(says(&world).contains(&text));
    }
    assert_eq!(repository.asked(), []);
}

#[tokio::test]
async fn what_was_changed_on_the_disk_or_in_the_cluster_is_found() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let web = fetched(&world, &repository, "hello").await;
    world.sources().keep(&registry(from_ref(&web)), &[]).await.unwrap();
    let blob = world.directory().join("blobs").join(web.digest.hex());
    let hook = blob.join("bundle/hooks/run.sh");
    let changes: [&dyn Fn(); 4] = [
        &|| fs::write(&hook, "").unwrap(),
        &|| fs::remove_file(blob.join("tree")).unwrap(),
        &|| fs::write(blob.join("tree"), "").unwrap(),
        &|| fs::write(blob.join("bundle/more"), "").unwrap(),
    ];
    for change in changes {
        change();
        assert!(world.sources().restore().await.unwrap().problems.is_empty());
        assert!(says(&world).contains("hello"));
        assert!(!blob.join("bundle/more").exists());
    }
    // A Secret that says something else is no bundle; its module is not linked, and the start goes on.
    fs::remove_dir_all(world.directory().join("blobs")).unwrap();
    let name = format!("{SECRETS}/addon-operator-bundle-{}-1", &web.digest.hex()[..20]);
    server::ok(&world.server, Method::DELETE, &name, &Value::Null).await;
    let other = json!({"metadata": {"name": name.rsplit('/').next()}, "data": {"part": "eHh4"}});
    server::ok(&world.server, Method::POST, SECRETS, &other).await;
    let restored = world.sources().restore().await.unwrap();
    let [(digest, failure)] = restored.problems.as_slice() else { panic!("{restored:?}") };
    assert_eq!(*digest, web.digest);
    assert!(failure.message.contains("a part is missing, or was changed"), "{failure}");
    assert_eq!(world.count("active"), 0);
    // Fetched again, it is written again.
    let web = fetched(&world, &repository, "hello").await;
    world.sources().keep(&registry(&[web]), &[]).await.unwrap();
    fs::remove_dir_all(world.directory().join("blobs")).unwrap();
    assert!(world.sources().restore().await.unwrap().problems.is_empty());
}

#[tokio::test]
async fn a_kill_at_any_request_leaves_what_the_next_process_completes() {
    let repository = Repository::tls(&[]).await;
    let kept = async |request: u64| {
        let world = SourceFixture::new(&repository, &[]).await;
        let web = fetched(&world, &repository, "hello").await;
        world.server.faults().add(FaultPlan::any().nth(request).cut_answer());
        world.server.faults().add(FaultPlan::any().nth(request + 1).times(u64::MAX).cut());
        let is_done = world.sources().keep(&registry(from_ref(&web)), &[]).await.is_ok();
        world.server.faults().clear();
        // The registry never names what is not there.
        fs::remove_dir_all(world.directory()).unwrap();
        assert!(world.sources().restore().await.unwrap().problems.is_empty(), "{request}");
        let web = fetched(&world, &repository, "hello").await;
        let sources = world.sources();
        sources.restore().await.unwrap();
        sources.keep(&registry(from_ref(&web)), &[]).await.unwrap();
        drop(sources);
        fs::remove_dir_all(world.directory()).unwrap();
        assert!(world.sources().restore().await.unwrap().problems.is_empty(), "{request}");
        assert!(says(&world).contains("hello"));
        is_done
    };
    let mut requests = 1;
    while !kept(requests).await {
        requests += 1;
        assert!(requests < 20);
    }
    assert!(requests > 3, "{requests}");
}

#[tokio::test]
async fn the_registry_is_written_once_and_never_over_that_of_another_operator() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let web = fetched(&world, &repository, "hello").await;
    let sources = world.sources();
    sources.keep(&registry(from_ref(&web)), &[]).await.unwrap();
    let path = format!("{SECRETS}/addon-operator-sources");
    let version =
        async || server::get(&world.server, &path).await.unwrap()["metadata"]["resourceVersion"].clone();
    let before = version().await;
    sources.keep(&registry(from_ref(&web)), &[]).await.unwrap();
    assert_eq!(version().await, before, "nothing changed, so nothing is written");
    // A label is no reason to stop.
    server::ok(&world.server, Method::PATCH, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    sources.keep(&registry(&[]), &[]).await.unwrap();
    server::ok(&world.server, Method::PATCH, &path, &json!({"data": {"registry.json.gz": "eHh4"}})).await;
    let Err(StoreError::Registry(failure)) = sources.keep(&registry(&[web]), &[]).await else { panic!() };
    assert!(failure.message.contains("somebody else changed it"), "{failure}");
    let failure = world.sources_with(|options| options.directory.push("x")).restore().await.unwrap_err();
    assert!(failure.message.contains("addon-operator-sources"), "{failure}");
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let web = fetched(&world, &repository, "hello").await;
    world.server.faults().add(FaultPlan::on(Method::POST, SECRETS).times(u64::MAX).fail(403));
    let Err(StoreError::Bundles(problems)) = world.sources().keep(&registry(from_ref(&web)), &[]).await
    else {
        panic!()
    };
    let [(digest, failure)] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!(*digest, web.digest);
    let advice = failure.advice.clone().unwrap_or_default();
    assert!(advice.contains("the verb create on secrets in namespace ops"), "{advice}");
}

#[tokio::test]
async fn a_registry_that_may_not_be_written_lacks_a_right_and_says_which() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let web = fetched(&world, &repository, "hello").await;
    let sources = world.sources();
    sources.keep(&registry(from_ref(&web)), &[]).await.unwrap();
    let path = format!("{SECRETS}/addon-operator-sources");
    world.server.faults().add(FaultPlan::on(Method::PUT, &path).times(u64::MAX).fail(403));
    let Err(StoreError::Registry(failure)) = sources.keep(&registry(&[]), &[]).await else { panic!() };
    assert_eq!(failure.kind, FailureKind::Forbidden, "{failure}");
    let advice = failure.advice.clone().unwrap_or_default();
    assert!(advice.contains("the verb update on secrets in namespace ops"), "{advice}");
}

#[tokio::test]
async fn bundles_come_back_from_the_cluster_although_the_registry_is_gone() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let web = fetched(&world, &repository, "hello").await;
    let path = format!("{SECRETS}/addon-operator-sources");
    assert!(!world.sources().restore().await.unwrap().registry.is_written);
    world.sources().keep(&registry(from_ref(&web)), &[]).await.unwrap();
    assert!(world.sources().restore().await.unwrap().registry.is_written);
    server::ok(&world.server, Method::DELETE, &path, &Value::Null).await;
    fs::remove_dir_all(world.directory()).unwrap();
    let sources = world.sources();
    assert!(!sources.restore().await.unwrap().registry.is_written);
    let gone: Digest = format!("sha256:{}", "1".repeat(64)).parse().unwrap();
    let lost = sources.restore_bundles([web.digest.clone(), gone.clone()]).await;
    assert_eq!(lost.into_iter().map(|(digest, _)| digest).collect::<Vec<_>>(), [gone]);
    assert_eq!(world.count("blobs"), 1);
}

#[tokio::test]
async fn a_disk_that_takes_no_link_is_told_before_anything_is_registered() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let of = spec(&[repository.url("/index.yaml")]);
    repository.publish(&[("web", "1.0.0", module("web", "1.0.0", "hello"))]);
    let web = bundle(&sources.fetch(&key(), &of).await.unwrap());
    // What can't be replaced by a link.
    let in_the_way = world.directory().join("active/.next-001-web");
    fs::create_dir(&in_the_way).unwrap();
    fs::write(in_the_way.join("file"), "").unwrap();
    let Err(StoreError::Bundles(problems)) = sources.keep(&registry(from_ref(&web)), &[]).await else {
        panic!()
    };
    let [(digest, failure)] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!((digest, failure.kind), (&web.digest, engine::FailureKind::Storage));
    let begins = format!("the link to the bundle can't be kept in {}: ", world.directory().display());
    assert!(failure.message.starts_with(&begins) && failure.message.ends_with("--source-dir"), "{failure}");
    assert!(!secrets(&world).await.contains(&"addon-operator-sources".to_owned()), "nothing is registered");
    fs::remove_dir_all(&in_the_way).unwrap();
    sources.keep(&registry(from_ref(&web)), &[]).await.unwrap();
    assert!(in_the_way.is_symlink() && says(&world).is_empty(), "made, and not in force");
    sources.link(registry(from_ref(&web)).links(&BTreeSet::new())).await.unwrap();
    assert!(says(&world).contains("hello"));
    assert_eq!(world.count("active"), 1);
    // What came to nothing is cleared away with the next registration.
    std::os::unix::fs::symlink("nowhere", world.directory().join("active/.next-001-old")).unwrap();
    sources.keep(&registry(from_ref(&web)), &[]).await.unwrap();
    assert_eq!(world.count("active"), 1);
}

#[tokio::test]
async fn bundles_that_nobody_lists_go_and_those_of_a_fetch_in_flight_stay() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let of = spec(&[repository.url("/index.yaml")]);
    let mut bundles = Vec::new();
    for says in ["one", "two"] {
        repository.publish(&[("web", "1.0.0", module("web", "1.0.0", says))]);
        bundles.push(bundle(&sources.fetch(&key(), &of).await.unwrap()));
    }
    let [one, two] = bundles.as_slice() else { panic!() };
    sources.keep(&registry(from_ref(one)), &[]).await.unwrap();
    sources.link(registry(from_ref(one)).links(&BTreeSet::new())).await.unwrap();
    // The second one was fetched, and the engine did not say a word about it yet.
    sources.drop_bundles(&Registry::default(), from_ref(&one.digest)).await.unwrap();
    assert_eq!(world.count("blobs"), 2);
    sources.keep(&registry(from_ref(two)), &[]).await.unwrap();
    sources.drop_bundles(&Registry::default(), from_ref(&two.digest)).await.unwrap();
    assert_eq!(world.count("blobs"), 2, "a link leads to the first one");
    sources.link(registry(from_ref(two)).links(&BTreeSet::new())).await.unwrap();
    assert!(says(&world).contains("two"));
    assert_eq!(world.count("active"), 1);
    sources.drop_bundles(&Registry::default(), from_ref(&two.digest)).await.unwrap();
    assert_eq!(world.count("blobs"), 1);
    assert_eq!(secrets(&world).await.len(), 2);
    let missing = sources.link(registry(from_ref(one)).links(&BTreeSet::new())).await.unwrap_err();
    assert!(missing.message.contains("is not in"), "{missing}");
}

#[tokio::test]
async fn a_directory_of_others_or_in_use_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&[("web", "1.0.0", module("web", "1.0.0", "hello"))]);
    let of = spec(&[repository.url("/index.yaml")]);
    let first = world.sources();
    first.fetch(&key(), &of).await.unwrap();
    assert_eq!(fs::metadata(world.directory()).unwrap().permissions().mode() & 0o777, 0o700);
    let failure = world.sources().fetch(&key(), &of).await.unwrap_err();
    assert!(failure.message.contains("another operator uses"), "{failure}");
    let open = world.dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    symlink(&open, world.dir.path().join("link")).unwrap();
    for place in ["open/sources", "open/above/sources", "link"] {
        let sources = world.sources_with(|options| options.directory = world.dir.path().join(place));
        let failure = sources.fetch(&key(), &of).await.unwrap_err();
        assert!(failure.message.contains("won't use"), "{failure}");
    }
}

#[tokio::test]
async fn without_sources_nothing_is_made_and_one_request_is_sent() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    assert!(sources.restore().await.unwrap().registry.addons.is_empty());
    sources.link(Vec::new()).await.unwrap();
    assert!(!world.directory().exists());
    assert!(!sources.active().exists());
}

/// Returns a packed module of thousands of files.
fn large(name: &str) -> Vec<u8> {
    let meta = format!("{{id: id-{name}, name: {name}, version: 1.0.0, description: d, displayName: D}}");
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("hooks/run.sh", 0o755, b"#!/bin/sh\n");
    for number in 0..4_900 {
        packed.file(&format!("data/{number}"), 0o644, b"x");
    }
    packed.finish()
}

/// Returns how many files there are below a folder of the store directory.
fn files_below(world: &SourceFixture, folder: &str) -> usize {
    let walk = walkdir::WalkDir::new(world.directory().join(folder));
    walk.into_iter().flatten().filter(|entry| entry.file_type().is_file()).count()
}

/// Publishes four large bundles. Returns the URL of their index.
fn publish_large(repository: &Repository) -> String {
    let names = ["big-one", "big-two", "big-three", "big-four"];
    let bundles: Vec<_> = names.iter().map(|name| (*name, "1.0.0", large(name))).collect();
    for (name, version, packed) in &bundles {
        repository.put(&format!("/{name}-{version}.tgz"), Reply::File(packed.clone()));
    }
    repository.put("/big.yaml", Reply::File(index(&bundles, false)));
    repository.url("/big.yaml")
}

#[tokio::test]
async fn nobody_waits_while_the_files_of_another_configuration_are_written() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = Arc::new(world.sources());
    let big = publish_large(&repository);
    repository.publish(&[("web", "1.0.0", module("web", "1.0.0", "hello"))]);
    let other = {
        let sources = Arc::clone(&sources);
        tokio::spawn(async move { sources.fetch(&SourceKey::cluster("big"), &spec(&[big])).await })
    };
    // All were fetched, and one of them is being unpacked.
    while world.count("staging") < 4 || files_below(&world, "staging") < 50 {
        pause().await;
    }
    bundle(&sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap());
    assert!(world.count("blobs") < 4, "it waited for {} bundles of another", world.count("blobs") - 1);
    let all = other.await.unwrap().unwrap();
    assert!(addons(&all).iter().all(|addon| addon.outcome.is_ok()), "{all:?}");
    assert_eq!((world.count("blobs"), world.count("staging")), (5, 0));
}

#[tokio::test]
async fn nobody_waits_while_the_files_of_dropped_bundles_are_deleted() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let big = spec(&[publish_large(&repository)]);
    sources.fetch(&key(), &big).await.unwrap();
    sources.drop_bundles(&Registry::default(), &[]).await.unwrap();
    assert_eq!(world.count("blobs"), 4, "they were just fetched");
    sources.drop_bundles(&Registry::default(), &[]).await.unwrap();
    assert_eq!(world.count("blobs"), 0);
    assert!(files_below(&world, "") > 4_900, "somebody waited until the files were deleted");
    // The same bundles can be had again meanwhile.
    let all = sources.fetch(&key(), &big).await.unwrap();
    assert!(addons(&all).iter().all(|addon| addon.outcome.is_ok()), "{all:?}");
    while world.count("gone") > 0 {
        pause().await;
    }
    assert_eq!((world.count("blobs"), world.count("staging")), (4, 0));
}

#[tokio::test]
async fn what_a_kill_left_is_deleted_by_the_next_process() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    fetched(&world, &repository, "hello").await;
    for left in ["gone/1/bundle/file", "gone/2/file", "staging/blob-a/unpacked/file"] {
        let path = world.directory().join(left);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fetched(&world, &repository, "hello").await;
    assert_eq!(world.count("staging"), 0, "it is out of the way at once");
    while world.count("gone") > 0 {
        pause().await;
    }
    assert_eq!(world.count("blobs"), 1);
}
