//! Bundles in registries (`oci://`): tags as versions, what is asked, who may ask, and what a registry may do wrong.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{AddonReason, Approvals, Fetched, Include, RepositorySpec, SecretName, SourceSpec};
use http::Method;
use serde_json::{Value, json};

use crate::support::registry::{BUNDLE, Registry, bundle_manifest};
use crate::support::repository::{Reply, Repository, digest, module};
use crate::support::server;
use crate::support::source::{
    SourceFixture, addons, bundle, key, problem, repository_problem, spec, spec_of,
};

fn web(version: &str) -> Vec<u8> {
    module("web", version, "hello")
}

fn include(name: &str, version: &str, digest: Option<&str>) -> Include {
    let version = Some(version).filter(|version| !version.is_empty()).map(str::to_owned);
    Include { name: name.to_owned(), version, digest: digest.map(|digest| digest.parse().unwrap()) }
}

fn including(url: String, include: Vec<Include>) -> SourceSpec {
    spec_of(vec![RepositorySpec { url, secret: None, include }])
}

/// Returns what was chosen of each addon, or why it was not.
fn shown(fetched: &Fetched) -> Vec<String> {
    let show = |addon: &engine::FetchedAddon| match &addon.outcome {
        Ok(bundle) => format!("{} {} {}", addon.name, bundle.version, addon.is_chosen),
        Err(problem) => format!("{} {}: {}", addon.name, problem.reason.as_str(), problem.message),
    };
    addons(fetched).iter().map(show).collect()
}

fn paths(repository: &Repository) -> Vec<String> {
    repository.asked().into_iter().map(|(path, status)| format!("{status} {path}")).collect()
}

#[tokio::test]
async fn tags_are_versions_and_only_what_becomes_a_module_is_fetched() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    registry.tags("addons/web", &["1.0.0", "1.10.0_3", "1.9.0", "latest", "2.0.0-rc.1", "sha256-aa.sig"]);
    registry.tags("addons/db", &["0.1.0"]);
    registry.push_bundle("addons/web", "1.10.0_3", &web("1.10.0+3"));
    registry.push_bundle("addons/web", "1.9.0", &web("1.9.0"));
    registry.push_bundle("addons/db", "0.1.0", &module("db", "0.1.0", "hello"));
    let sources = world.sources();
    let both = vec![include("web", "", None), include("db", "", None)];
    let fetched = sources.fetch(&key(), &including(registry.url("/addons"), both)).await.unwrap();
    assert_eq!(shown(&fetched), ["db 0.1.0 true", "web 1.10.0+3 true"]);
    let mut manifests = paths(&repository);
    manifests.retain(|path| path.contains("/manifests/"));
    manifests.sort();
    assert_eq!(manifests, ["200 /v2/addons/db/manifests/0.1.0", "200 /v2/addons/web/manifests/1.10.0_3"]);
    // A URL without include names the repository of one bundle, and a version that is named needs no list.
    let fetched = sources.fetch(&key(), &spec(&[registry.url("/addons/web")])).await.unwrap();
    assert_eq!(shown(&fetched), ["web 1.10.0+3 true"]);
    repository.asked();
    let exact = including(registry.url("/addons"), vec![include("web", "1.9.0", None)]);
    assert_eq!(shown(&sources.fetch(&key(), &exact).await.unwrap()), ["web 1.9.0 true"]);
    assert!(paths(&repository).iter().all(|path| !path.contains("tags/list")));
    let missing = vec![include("web", "9.9.9", None), include("gone", "", None), include("Up", "", None)];
    let said = shown(&sources.fetch(&key(), &including(registry.url("/addons"), missing)).await.unwrap());
    assert!(said[0].contains("web FetchingError") && said[0].contains("404 Not Found"), "{said:?}");
    assert!(
        said[1].contains("versions can't be listed") && said[1].contains("has no addons/gone"),
        "{said:?}"
    );
    assert!(said[2].contains("can't be a name in a registry"), "{said:?}");
}

#[tokio::test]
async fn what_did_not_change_costs_one_small_request_and_a_tag_that_was_moved_is_noticed() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    registry.push_bundle("web", "1.0.0", &web("1.0.0"));
    let sources = world.sources();
    let of = including(registry.url(""), vec![include("web", "1.0.0", None)]);
    let first = sources.fetch(&key(), &of).await.unwrap();
    let blob = format!("200 /v2/web/blobs/sha256:{}", digest(&web("1.0.0")));
    assert_eq!(paths(&repository), ["200 /v2/web/manifests/1.0.0".to_owned(), blob]);
    assert_eq!(sources.fetch(&key(), &of).await.unwrap(), first);
    let asked = repository.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("HEAD", "/v2/web/manifests/1.0.0"));
    registry.push_bundle("web", "1.0.0", &module("web", "1.0.0", "goodbye"));
    assert_ne!(bundle(&sources.fetch(&key(), &of).await.unwrap()).digest, bundle(&first).digest);
    assert_eq!(paths(&repository).len(), 3);
    // A registry that says no digest costs the manifest, and never the bundle again.
    let text = bundle_manifest(&web("1.0.0")).to_string().into_bytes();
    repository
        .put("/v2/web/manifests/1.0.0", Reply::Typed("application/vnd.oci.image.manifest.v1+json", text));
    sources.fetch(&key(), &of).await.unwrap();
    repository.asked();
    sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(paths(&repository), ["200 /v2/web/manifests/1.0.0"; 2]);
}

#[tokio::test]
async fn a_digest_that_is_named_is_that_of_the_bundle_or_of_its_manifest() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    let manifest = registry.push_bundle("web", "1.0.0", &web("1.0.0"));
    let own = format!("sha256:{}", digest(&web("1.0.0")));
    let sources = world.sources();
    let pinned = |digest: &str| including(registry.url(""), vec![include("web", "1.0.0", Some(digest))]);
    for digest in [&manifest, &own] {
        let fetched = sources.fetch(&key(), &pinned(digest)).await.unwrap();
        assert_eq!(bundle(&fetched).digest.as_str(), own);
    }
    repository.asked();
    sources.fetch(&key(), &pinned(&own)).await.unwrap();
    assert_eq!(paths(&repository), Vec::<String>::new(), "it is here, and can be no other one");
    registry.push_bundle("web", "1.0.0", &module("web", "1.0.0", "moved"));
    drop(sources);
    let (reason, said) = problem(&world.sources().fetch(&key(), &pinned(&manifest)).await.unwrap());
    assert_eq!(reason, AddonReason::FetchingError);
    assert!(said.ends_with(&format!("{manifest} is expected")), "{said}");
}

#[tokio::test]
async fn a_look_at_what_did_not_change_costs_one_request_for_each_bundle() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    registry.tags("web", &["1.0.0", "1.1.0"]);
    registry.push_bundle("web", "1.1.0", &web("1.1.0"));
    registry.push_bundle("db", "0.1.0", &module("db", "0.1.0", "hello"));
    let sources = world.sources();
    let of = including(registry.url(""), vec![include("web", "^1", None), include("db", "0.1.0", None)]);
    let first = sources.fetch(&key(), &of).await.unwrap();
    repository.asked();
    for _ in 0..3 {
        assert_eq!(sources.refresh(&key(), &of).await.unwrap(), first);
        let mut asked = paths(&repository);
        asked.sort();
        assert_eq!(asked, ["200 /v2/db/manifests/0.1.0", "200 /v2/web/tags/list?n=1000"]);
    }
    // Another version is in the list. Other bytes under the same tag come when somebody asks for them.
    registry.push_bundle("web", "1.1.0", &module("web", "1.1.0", "moved"));
    assert_eq!(sources.refresh(&key(), &of).await.unwrap(), first);
    let moved = sources.fetch(&key(), &of).await.unwrap();
    assert_ne!(moved, first);
    registry.tags("web", &["1.0.0", "1.1.0", "1.2.0"]);
    registry.push_bundle("web", "1.2.0", &web("1.2.0"));
    assert_eq!(shown(&sources.refresh(&key(), &of).await.unwrap()), ["db 0.1.0 true", "web 1.2.0 true"]);
}

#[tokio::test]
async fn what_a_registry_wants_to_see_is_shown_at_once_the_next_time() {
    for kind in ["Basic", "Bearer"] {
        let repository = Repository::tls(&[]).await;
        let world = SourceFixture::new(&repository, &[]).await;
        let basic = format!("Basic {}", STANDARD.encode("joe:hunter2-word"));
        let (wanted, challenge) = if kind == "Basic" {
            (basic.clone(), "Basic realm=\"x\"".to_owned())
        } else {
            (
                "Bearer abc".to_owned(),
                format!("Bearer realm=\"{}\",service=\"reg\"", repository.url("/token")),
            )
        };
        let token = Reply::File(b"{\"token\":\"abc\",\"expires_in\":300}".to_vec());
        let path = "/token?service=reg&scope=repository%3Aweb%3Apull";
        repository.put(path, Reply::Guarded(basic, "Basic".to_owned(), Box::new(token)));
        let registry = Registry::guarded(&repository, &wanted, &challenge);
        registry.tags("web", &["1.0.0"]);
        registry.push_bundle("web", "1.0.0", &web("1.0.0"));
        let sources = world.sources();
        let of = spec(&[registry.url("/web").replace("oci://", "oci://joe:hunter2-word@")]);
        let first = sources.fetch(&key(), &of).await.unwrap();
        assert_eq!(shown(&first), ["web 1.0.0 true"]);
        assert_eq!(paths(&repository).iter().filter(|path| path.starts_with("401")).count(), 1, "{kind}");
        assert_eq!(sources.refresh(&key(), &of).await.unwrap(), first);
        assert_eq!(paths(&repository), ["200 /v2/web/tags/list?n=1000"], "{kind}");
        // Another user does not speak with what this one had.
        let other = spec(&[registry.url("/web").replace("oci://", "oci://joe:hunter3-word@")]);
        let (_, said) = repository_problem(&sources.fetch(&key(), &other).await.unwrap());
        assert!(said.contains("401"), "{kind}: {said}");
        // What is of no use any more is got anew.
        let registry = Registry::guarded(&repository, "Bearer def", &challenge);
        registry.tags("web", &["1.0.0"]);
        let fresh = Reply::File(b"{\"token\":\"def\"}".to_vec());
        repository.put(path, fresh);
        let asked = sources.refresh(&key(), &of).await.unwrap();
        assert_eq!(asked == first, kind == "Bearer", "{kind}");
    }
}

#[tokio::test]
async fn an_approved_version_below_the_highest_one_is_fetched_while_it_may_come() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let registry = Registry::open(&repository);
    registry.tags("web", &["1.0.0", "1.1.0", "1.2.0"]);
    let bundles = ["1.0.0", "1.1.0", "1.2.0"].map(|version| ("web", version, web(version)));
    for (_, version, packed) in &bundles {
        registry.push_bundle("web", version, packed);
    }
    repository.publish(&bundles);
    let include = vec![Include { name: "web".to_owned(), version: Some("1.x".to_owned()), digest: None }];
    let approved =
        |text: &str, running: &str| Approvals::parse(text, "").above([("web", running)].into_iter());
    for url in [registry.url(""), repository.url("/index.yaml")] {
        let of = spec_of(vec![RepositorySpec { url, secret: None, include: include.clone() }]);
        for (text, running, expected) in [
            ("", "1.0.0", vec!["web 1.2.0 true"]),
            ("1.1.0", "1.0.0", vec!["web 1.1.0 false", "web 1.2.0 true"]),
            ("web=1.1.0", "1.1.0", vec!["web 1.2.0 true"]),
            ("1.2.0,1.1.0", "1.0.0", vec!["web 1.2.0 true"]),
        ] {
            let fetched = sources.fetch_with(&key(), &of, (false, &approved(text, running))).await.unwrap();
            assert_eq!(shown(&fetched), expected, "{text} {running}");
        }
    }
}

#[tokio::test]
async fn each_of_several_wants_of_one_bundle_that_is_not_met_has_a_line_of_its_own() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    registry.tags("web", &["1.0.0", "1.2.0"]);
    registry.push_bundle("web", "1.2.0", &web("1.2.0"));
    let wants = ["9.0.0", ">=5", "not semver", "^1"].map(|version| include("web", version, None));
    let of = including(registry.url(""), wants.to_vec());
    let said = shown(&world.sources().fetch(&key(), &of).await.unwrap());
    let begin = [
        "web 1.2.0 true",
        "web FetchingError: the registry has no version 9.0.0 of web: correct",
        "web FetchingError: the registry has no version >=5 of web: correct",
        "web FetchingError: the version of web: \"not semver\" is neither a version nor a range",
    ];
    assert_eq!(said.len(), begin.len(), "{said:?}");
    for (said, begin) in said.iter().zip(begin) {
        assert!(said.starts_with(begin), "{said}");
    }
}

/// What is wrong with a manifest.
type Change = fn(&mut Value);

#[tokio::test]
async fn what_a_registry_does_wrong_is_told_in_one_line() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    let packed = web("1.0.0");
    let file = Reply::File(packed.clone());
    let list: Change = |it| it["mediaType"] = json!("application/vnd.oci.image.index.v1+json");
    let chart: Change =
        |it| it["layers"][0]["mediaType"] = json!("application/vnd.cncf.helm.chart.content.v1.tar+gzip");
    let docker: Change = |it| it["mediaType"] = json!("application/vnd.docker.distribution.manifest.v2+json");
    let twice: Change = |it| it["layers"].as_array_mut().unwrap().push(json!({"mediaType": BUNDLE}));
    let large: Change = |it| it["layers"][0]["size"] = json!(9 << 20);
    let more: Change = |it| it["layers"][0]["size"] = json!(7);
    let less: Change = |it| it["layers"][0]["size"] = json!(5000);
    let none: Change = |_| ();
    let sources = world.sources();
    let of = including(registry.url(""), vec![include("web", "1.0.0", None)]);
    for (change, reply, says) in [
        (list, file.clone(), "names a list of manifests"),
        (chart, file.clone(), "there are application/vnd.cncf.helm.chart.content.v1.tar+gzip"),
        (docker, file.clone(), "that of a bundle is \"application/vnd.oci.image.manifest.v1+json\""),
        (twice, file.clone(), "has 2 layers with the type"),
        (large, file.clone(), "the bundle has 9437184 bytes packed, the most are 8388608"),
        (more, file.clone(), "has more than the 7 bytes, and 7 according to the manifest"),
        (less, file, "bytes, and 5000 according to the manifest"),
        (none, Reply::File(web("1.0.1")), "is expected"),
        (none, Reply::Status(404, Vec::new()), "404"),
        (none, Reply::Page, "web page"),
    ] {
        let mut manifest = bundle_manifest(&packed);
        change(&mut manifest);
        registry.put_manifest("web", "1.0.0", &manifest);
        registry.put(&format!("web/blobs/sha256:{}", digest(&packed)), reply);
        let (reason, said) = problem(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(reason, AddonReason::FetchingError, "{said}");
        assert!(said.contains(says) && !said.contains('\n'), "{says}: {said}");
    }
    assert_eq!(world.count("blobs"), 0);
    // The answer says of itself that it is another one: the tag moved on the way.
    let headers = vec![("docker-content-digest", format!("sha256:{}", digest(b"other")))];
    let text = bundle_manifest(&packed).to_string().into_bytes();
    repository.put("/v2/web/manifests/1.0.0", Reply::With(headers, text));
    let (_, said) = problem(&sources.fetch(&key(), &of).await.unwrap());
    assert!(said.contains("the tag moved meanwhile"), "{said}");
    // It was listed, and is gone.
    registry.tags("gone", &["1.0.0"]);
    let (_, said) = problem(&sources.fetch(&key(), &spec(&[registry.url("/gone")])).await.unwrap());
    assert!(said.contains("it was deleted meanwhile"), "{said}");
}

#[tokio::test]
async fn a_registry_that_refuses_is_told_of_the_repository() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let registry = Registry::open(&repository);
    let sources = world.sources();
    let wait = |seconds: &str| Reply::Status(429, vec![("retry-after", seconds.to_owned())]);
    let basic = Reply::Status(401, vec![("www-authenticate", "Basic realm=\"x\"".to_owned())]);
    for (name, reply, says) in [
        (
            "forbidden",
            Reply::Status(403, Vec::new()),
            "403 Forbidden: nobody may read forbidden so; secretRef",
        ),
        ("login", basic, "401 Unauthorized: it wants user and password, write them into a Secret"),
        ("page", Reply::Page, "web page"),
        ("odd", Reply::File(b"[]".to_vec()), "no list of tags"),
        ("empty", Reply::File(b"{\"tags\":[\"latest\"]}".to_vec()), "has no tag that is a version"),
    ] {
        registry.put(&format!("{name}/tags/list?n=1000"), reply);
        let (reason, said) = repository_problem(
            &sources.fetch(&key(), &spec(&[registry.url(&format!("/{name}"))])).await.unwrap(),
        );
        assert_eq!(reason, "FetchingIndexError");
        assert!(said.contains(says) && !said.contains('\n'), "{says}: {said}");
    }
    for (url, says) in [
        (registry.url(""), "names a whole registry"),
        (registry.url("/web?x=1"), "has no query"),
        (registry.url("/Web"), "can't be a name in a registry"),
    ] {
        let (_, said) = repository_problem(&sources.fetch(&key(), &spec(&[url])).await.unwrap());
        assert!(said.contains(says), "{says}: {said}");
    }
    // A short pause is waited for. During a long one nobody asks.
    registry.push_bundle("web", "1.0.0", &web("1.0.0"));
    let tags = Reply::Typed("application/json", json!({"tags": ["1.0.0"]}).to_string().into_bytes());
    registry.put("web/tags/list?n=1000", Reply::First(Box::new(wait("0")), Box::new(tags)));
    let of = spec(&[registry.url("/web")]);
    assert_eq!(shown(&sources.fetch(&key(), &of).await.unwrap()), ["web 1.0.0 true"]);
    registry.put("web/tags/list?n=1000", wait("30"));
    repository.asked();
    for _ in 0..3 {
        let (_, said) = repository_problem(&sources.fetch(&key(), &of).await.unwrap());
        assert!(said.contains("wants to be left alone for a while (429 Too Many Requests)"), "{said}");
    }
    assert_eq!(paths(&repository), ["429 /v2/web/tags/list?n=1000"]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(paths(&repository).len(), 1, "then it is asked again");
}

#[tokio::test]
async fn who_may_read_comes_from_the_url_or_the_secret_and_is_shown_to_the_registry_only() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let basic = format!("Basic {}", STANDARD.encode("joe:hunter2-word"));
    let challenge = format!("Bearer realm=\"{}\",service=\"reg\"", repository.url("/token"));
    let registry = Registry::guarded(&repository, "Bearer abc", &challenge);
    let token = Reply::File(b"{\"token\":\"abc\"}".to_vec());
    let path = "/token?service=reg&scope=repository%3Aweb%3Apull";
    repository.put(path, Reply::Guarded(basic.clone(), "Basic".to_owned(), Box::new(token)));
    registry.tags("web", &["1.0.0"]);
    registry.push_bundle("web", "1.0.0", &web("1.0.0"));
    let host = format!("localhost:{}", repository.address.port());
    let config =
        |host: &str| json!({"auths": {host: {"auth": STANDARD.encode("joe:hunter2-word")}}}).to_string();
    for (name, data) in [
        ("plain", json!({"username": "joe", "password": "hunter2-word"})),
        ("docker", json!({".dockerconfigjson": config(&host)})),
        ("other", json!({".dockerconfigjson": config("b.example")})),
        ("odd", json!({"token": "x"})),
        ("wrong", json!({"username": "joe", "password": "hunter3-word"})),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        server::ok(&world.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    }
    let with = |url: String, secret: &str| {
        let secret = SecretName { namespace: "ops".to_owned(), name: secret.to_owned() };
        spec_of(vec![RepositorySpec { url, secret: Some(secret), include: Vec::new() }])
    };
    let templated = registry.url("/web").replace("oci://", "oci://{username}:{password}@");
    for of in
        [with(registry.url("/web"), "plain"), with(registry.url("/web"), "docker"), with(templated, "plain")]
    {
        let fetched = world.sources().fetch(&key(), &of).await.unwrap();
        assert_eq!(shown(&fetched), ["web 1.0.0 true"]);
    }
    for asked in repository.requests() {
        let wanted = if asked.path.starts_with("/token") { &*basic } else { "Bearer abc" };
        let shown = asked.headers.get("authorization").map(|shown| shown.to_str().unwrap().to_owned());
        assert!(shown.is_none_or(|shown| shown == wanted), "{}", asked.path);
    }
    for (secret, reason, says) in [
        ("other", "TemplatingURLError", "has nothing for localhost:"),
        ("odd", "TemplatingURLError", "neither .dockerconfigjson nor username"),
        ("gone", "TemplatingURLError", "there is no Secret ops/gone"),
        ("wrong", "FetchingIndexError", "it refuses the user and password of secretRef"),
    ] {
        let fetched = world.sources().fetch(&key(), &with(registry.url("/web"), secret)).await.unwrap();
        let (found, said) = repository_problem(&fetched);
        assert_eq!(found, reason, "{said}");
        assert!(said.contains(says) && !said.contains("hunter"), "{says}: {said}");
    }
}
