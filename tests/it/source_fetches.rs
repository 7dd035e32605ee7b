//! Fetching from a real server: what it may send, where it may send on to, how much is asked and how little is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::source::allow::AllowedHost;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Include, RegisteredAddon, Registry, RepositorySpec, SecretName, SourceKey, SourceKind};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::repository::{Reply, Repository, identity, index, module};
use crate::support::server;
use crate::support::source::{
    Names, SourceFixture, addons, bundle, key, problem, repository_problem, spec, spec_of,
};

fn web() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    vec![("web", "1.0.0", module("web", "1.0.0", "hello"))]
}

#[tokio::test]
async fn what_did_not_change_costs_one_small_request() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let of = spec(&[repository.url("/index.yaml")]);
    repository.publish(&web());
    let first = sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(bundle(&first).name.as_str(), "web");
    let (index_path, web_path) = ("/index.yaml".to_owned(), "/web-1.0.0.tgz".to_owned());
    assert_eq!(repository.asked(), [(index_path.clone(), 200), (web_path.clone(), 200)]);
    assert_eq!(sources.fetch(&key(), &of).await.unwrap(), first);
    assert_eq!(repository.asked(), [(index_path.clone(), 304), (web_path.clone(), 304)]);
    // Who looks again without being asked takes an index that did not change at its word.
    assert_eq!(sources.refresh(&key(), &of).await.unwrap(), first);
    assert_eq!(repository.asked(), [(index_path.clone(), 304)]);
    // New bytes under the same version are seen.
    let changed = module("web", "1.0.0", "goodbye");
    repository.put(&web_path, Reply::File(changed.clone()));
    assert_ne!(bundle(&sources.fetch(&key(), &of).await.unwrap()).digest, bundle(&first).digest);
    assert_eq!(repository.asked(), [(index_path.clone(), 304), (web_path, 200)]);
    // With digests the index says enough, also to a new process.
    repository.put("/index.yaml", Reply::File(index(&[("web", "1.0.0", changed)], true)));
    sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(repository.asked(), [(index_path.clone(), 200)]);
    drop(sources);
    world.sources().fetch(&key(), &of).await.unwrap();
    assert_eq!(repository.asked(), [(index_path, 200)]);
}

#[tokio::test]
async fn a04_everything_is_tried_and_everything_is_told() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&web());
    let bundles = [
        ("db", "not-semver", Vec::new()),
        ("gone", "1.0.0", Vec::new()),
        ("other", "1.0.0", module("web", "1.0.0", "another name")),
        ("web", "1.1.0", module("web", "1.1.0", "hello")),
        ("web", "1.0.0", module("web", "1.0.0", "hello")),
        ("web", "2.0.0-rc.1", module("web", "2.0.0-rc.1", "hello")),
    ];
    repository.put("/more/index.yaml", Reply::File(index(&bundles, false)));
    for (name, version, packed) in &bundles {
        if *name != "gone" {
            repository.put(&format!("/more/{name}-{version}.tgz"), Reply::File(packed.clone()));
        }
    }
    let urls = ["", "/none.yaml", "/index.yaml", "/more/index.yaml"];
    let of = spec(&urls.map(|path| if path.is_empty() { String::new() } else { repository.url(path) }));
    let fetched = world.sources().fetch(&key(), &of).await.unwrap();
    let reasons: Vec<_> = fetched
        .repositories
        .iter()
        .map(|repository| {
            repository.outcome.as_ref().map_or_else(|problem| problem.reason.as_str(), |_| "Ready")
        })
        .collect();
    assert_eq!(reasons, ["EmptyURLError", "FetchingIndexError", "Ready", "Ready"]);
    let lines: Vec<_> = fetched.repositories[3]
        .outcome
        .as_ref()
        .unwrap()
        .iter()
        .map(|addon| {
            let reason = addon.outcome.as_ref().map_or_else(|problem| problem.reason.as_str(), |_| "Ready");
            (addon.name.as_str(), addon.version.as_str(), addon.is_chosen, reason)
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("db", "not-semver", false, "LoadingError"),
            ("gone", "1.0.0", true, "FetchingError"),
            ("other", "1.0.0", true, "LoadingError"),
            ("web", "1.0.0", false, "Ready"),
            ("web", "1.1.0", true, "Ready"),
            ("web", "2.0.0-rc.1", false, "Ready"),
        ]
    );
    // Of an index with much in it, what is wanted is asked for.
    repository.requests();
    let include = |name: &str, version: Option<&str>| Include {
        name: name.to_owned(),
        version: version.map(str::to_owned),
        digest: None,
    };
    let of = spec_of(vec![RepositorySpec {
        url: repository.url("/more/index.yaml"),
        secret: None,
        include: vec![include("other", None), include("none", None), include("web", Some("9.9.9"))],
    }]);
    let fetched =
        world.sources_with(|options| options.directory.push("second")).fetch(&key(), &of).await.unwrap();
    let missing: Vec<_> = addons(&fetched)
        .iter()
        .filter(|addon| addon.outcome.is_err())
        .map(|addon| addon.name.as_str())
        .collect();
    assert_eq!(missing, ["other", "none", "web"]);
}

#[tokio::test]
async fn what_is_no_index_is_told_in_one_plain_line() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let port = repository.address.port();
    let redirect = |to: &str| Reply::Status(302, vec![("location", to.to_owned())]);
    for (reply, says) in [
        (Reply::Status(404, Vec::new()), format!("localhost:{port} answered 404 Not Found")),
        (Reply::Page, "answered with a web page (HTML)".to_owned()),
        (Reply::File(b"\n<!DOCTYPE html>".to_vec()), "a page of HTML".to_owned()),
        (Reply::File(b"a: [".to_vec()), "the index is not YAML".to_owned()),
        (Reply::File(b"a: b".to_vec()), "no mapping of names".to_owned()),
        (Reply::Zeros(33 << 20), "is longer than 32 MiB".to_owned()),
        (Reply::Status(304, Vec::new()), "answered 304".to_owned()),
        (redirect("http://localhost/index.yaml"), "sends on to a URL that can't be used".to_owned()),
        (
            redirect(&format!("https://127.0.0.1:{port}/x")),
            "127.0.0.1, which is a loopback address".to_owned(),
        ),
        (redirect("https://169.254.169.254/latest"), "169.254.169.254, which is a link-local".to_owned()),
        (redirect("/index.yaml"), "sends on more than 5 times".to_owned()),
        (redirect("../a/./../index.yaml"), "sends on more than 5 times".to_owned()),
        (redirect("../%2e%2e/index.yaml"), "sends on to a URL that can't be used".to_owned()),
        (Reply::Status(302, Vec::new()), "it names none".to_owned()),
    ] {
        repository.put("/index.yaml", reply);
        let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
        let (reason, message) = repository_problem(&fetched);
        assert_eq!(reason, "FetchingIndexError");
        assert!(message.contains(&says) && !message.contains('\n'), "{says}: {message}");
    }
    for (url, says) in [
        (format!("https://127.0.0.1:{port}/index.yaml"), "--source-allow=127.0.0.1"),
        (format!("http://localhost:{port}/index.yaml"), "http"),
        (
            "git::https://localhost/x.git".to_owned(),
            "the path of the index file in the repository is missing",
        ),
        ("git::https://localhost/x.git//index.yaml?sshkey=x".to_owned(), "sshkey is not supported"),
        ("s3::https://localhost/index.yaml".to_owned(), "s3"),
        ("no url".to_owned(), "URL"),
    ] {
        let fetched = sources.fetch(&key(), &spec(&[url])).await.unwrap();
        let (reason, message) = repository_problem(&fetched);
        assert_eq!(reason, "FetchingIndexError");
        assert!(message.contains(says), "{says}: {message}");
    }
}

#[tokio::test]
async fn nobody_leads_to_the_api_server_by_a_name_an_address_or_a_redirect() {
    let repository = Repository::tls(&["sly.example"]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&web());
    // Another name for a public address of the API server. Nothing answers there, and nobody is asked.
    let names = Names(BTreeMap::from([("api.example", "192.0.2.1"), ("sly.example", "192.0.2.1")]));
    let sources = world.sources_with(|options| {
        options.trust.api_server = Some("api.example".to_owned());
        options.trust.lookup = Arc::new(names);
    });
    let sly = repository.url_at("sly.example", "/index.yaml");
    repository.put("/sent.yaml", Reply::Status(302, vec![("location", sly.clone())]));
    let literal = "https://192.0.2.1/index.yaml".to_owned();
    for url in [sly.clone(), literal, repository.url("/sent.yaml")] {
        let (reason, message) = repository_problem(&sources.fetch(&key(), &spec(&[url])).await.unwrap());
        assert_eq!(reason, "FetchingIndexError");
        let says = "192.0.2.1, which is an address of the API server; allow it with --source-allow=";
        assert!(message.contains(says), "{message}");
    }
    assert_eq!(repository.asked(), [("/sent.yaml".to_owned(), 302)]);
    // Who runs the operator may say that this host is asked all the same.
    drop(sources);
    let sources = world.sources_with(|options| {
        options.trust.api_server = Some("api.example".to_owned());
        options.trust.allowed.hosts.push(AllowedHost::parse("sly.example").unwrap());
    });
    bundle(&sources.fetch(&key(), &spec(&[sly])).await.unwrap());
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_told_in_words_of_ours() {
    let (authority, acceptor) = identity(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await;
            // No part of TLS says that this is the end.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nentries:\n").await;
            let _ = stream.flush().await;
        }
    });
    let world = SourceFixture::trusting(&authority, &[]).await;
    let url = format!("https://localhost:{}/index.yaml", address.port());
    let (_, said) = repository_problem(&world.sources().fetch(&key(), &spec(&[url])).await.unwrap());
    let expected = format!(
        "the answer of localhost:{} broke off: the connection was closed before it was whole",
        address.port()
    );
    assert!(said.ends_with(&expected), "{said}");
}

#[tokio::test]
async fn a_server_that_sends_a_byte_now_and_then_is_left() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.put("/index.yaml", Reply::Drip);
    let sources = world.sources_with(|options| options.timeout = Duration::from_secs(1));
    let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let (_, message) = repository_problem(&fetched);
    assert!(message.contains("took longer than 1 s (--source-timeout)"), "{message}");
}

#[tokio::test]
async fn a_server_whose_authority_nobody_named_is_not_trusted() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&web());
    let stranger = Repository::tls(&[]).await;
    let authorities = stranger.write_authority(&world.dir.path().join("."));
    let sources = world.sources_with(|options| options.trust.authorities = Some(authorities));
    let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let (_, message) = repository_problem(&fetched);
    assert!(message.contains("no TLS with localhost") && message.contains("--source-ca"), "{message}");
    assert_eq!(repository.asked(), []);
}

#[tokio::test]
async fn a19_credentials_reach_their_host_and_no_other_and_no_message() {
    let repository = Repository::tls(&["other.example"]).await;
    let world = SourceFixture::new(&repository, &["other.example"]).await;
    let sources = world.sources();
    let data = json!({"user": STANDARD.encode("joe\n"), "pass": STANDARD.encode("hunter 2")});
    let secret = json!({"metadata": {"name": "repo"}, "data": data});
    server::ok(&world.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    let port = repository.address.port();
    let of = |url: &str, namespace: &str, name: &str| {
        let secret = Some(SecretName { namespace: namespace.to_owned(), name: name.to_owned() });
        spec_of(vec![RepositorySpec { url: url.to_owned(), secret, include: Vec::new() }])
    };
    let url = format!("https://{{user}}:{{pass}}@localhost:{port}/index.yaml");
    repository.put("/web-1.0.0.tgz", Reply::Status(302, vec![("location", "/moved.tgz".to_owned())]));
    repository.put("/index.yaml", Reply::File(index(&web(), false)));
    let elsewhere = format!("https://other.example:{port}/there.tgz");
    repository.put("/moved.tgz", Reply::Status(302, vec![("location", elsewhere)]));
    repository.put("/there.tgz", Reply::File(web()[0].2.clone()));
    bundle(&sources.fetch(&key(), &of(&url, "ops", "repo")).await.unwrap());
    let expected = format!("Basic {}", STANDARD.encode("joe:hunter 2"));
    let sent: Vec<_> = repository
        .requests()
        .into_iter()
        .map(|asked| {
            (asked.path, asked.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()))
        })
        .collect();
    let with = |path: &str| (path.to_owned(), Some(expected.clone()));
    assert_eq!(
        sent,
        [with("/index.yaml"), with("/web-1.0.0.tgz"), with("/moved.tgz"), ("/there.tgz".to_owned(), None)]
    );
    let (templating, fetching) = ("TemplatingURLError", "FetchingIndexError");
    for (url, namespace, name, expected, says) in [
        (url.as_str(), "ops", "none", templating, "there is no Secret ops/none"),
        (url.as_str(), "default", "repo", templating, "--source-secret-namespaces"),
        (url.as_str(), "", "repo", templating, "secretRef needs a name and a namespace"),
        ("https://localhost/", "ops", "none", templating, "there is no Secret ops/none"),
        ("https://localhost/", "default", "repo", templating, "--source-secret-namespaces"),
        ("https://{token}@localhost/", "ops", "repo", templating, "has no key \"token\""),
        ("https://{token}:{pass}{path}@localhost/", "ops", "repo", templating, "no keys \"token\", \"path\""),
        ("{user}://{pass}", "ops", "repo", fetching, ""),
        ("https://localhost/{pass}/{user}", "ops", "repo", fetching, ""),
    ] {
        let fetched = sources.fetch(&key(), &of(url, namespace, name)).await.unwrap();
        let (reason, message) = repository_problem(&fetched);
        assert_eq!(reason, expected, "{url}: {message}");
        assert!(message.contains(says), "{says}: {message}");
        assert!(!message.contains("hunter"), "{message}");
    }
}

#[tokio::test]
async fn an_index_shows_nothing_of_the_secret_that_fills_its_url() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let data = json!({"token": STANDARD.encode("Hunter-Ab")});
    let secret = json!({"metadata": {"name": "repo"}, "data": data});
    server::ok(&world.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    let named = ("hunter-ab", "1.0.0", module("hunter-ab", "1.0.0", "hello"));
    // A part of a name is more often a team or a channel than a password.
    let partly = ("the-hunter-ab", "1.0.0", module("the-hunter-ab", "1.0.0", "hello"));
    let bundles = [named, partly, ("web", "1.0.0", web()[0].2.clone())];
    repository.publish(&bundles);
    for (name, version, packed) in &bundles {
        repository.put(&format!("/Hunter-Ab/{name}-{version}.tgz"), Reply::File(packed.clone()));
    }
    repository.put("/Hunter-Ab/index.yaml", Reply::File(index(&bundles, false)));
    let of = |url: String| {
        let secret = Some(SecretName { namespace: "ops".to_owned(), name: "repo".to_owned() });
        spec_of(vec![RepositorySpec { url, secret, include: Vec::new() }])
    };
    let sources = world.sources();
    let fetched = sources.fetch(&key(), &of(repository.url("/{token}/index.yaml"))).await.unwrap();
    let shown: Vec<_> = addons(&fetched)
        .iter()
        .map(|addon| (addon.name.as_str(), addon.version.as_str(), addon.outcome.is_ok()))
        .collect();
    assert_eq!(shown, [("***", "1.0.0", false), ("the-hunter-ab", "1.0.0", true), ("web", "1.0.0", true)]);
    let (_, message) = problem(&fetched);
    assert!(message.starts_with("its name or its version is a value of the Secret"), "{message}");
    // What the Secret says counts only where it is needed.
    let fetched = sources.fetch(&key(), &of(repository.url("/index.yaml"))).await.unwrap();
    assert!(addons(&fetched).iter().all(|addon| addon.outcome.is_ok()), "{fetched:?}");
    let fetched = sources.fetch(&key(), &of("https://{token}.invalid/".to_owned())).await.unwrap();
    let (_, message) = repository_problem(&fetched);
    assert!(!message.to_lowercase().contains("hunter"), "{message}");
}

#[tokio::test]
async fn a_configuration_of_a_namespace_reaches_secrets_of_that_namespace_only() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&web());
    server::ok(&world.server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "team"}}))
        .await;
    let secret = json!({"metadata": {"name": "repo"}, "data": {"file": STANDARD.encode("index.yaml")}});
    for namespace in ["ops", "team"] {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        server::ok(&world.server, Method::POST, &path, &secret).await;
    }
    // What configurations of the cluster may read counts for others nothing.
    let sources = world.sources();
    let of_team = SourceKey { kind: SourceKind::Namespaced, namespace: "team".into(), name: "x".into() };
    let of = |namespace: &str| {
        let secret = Some(SecretName { namespace: namespace.to_owned(), name: "repo".to_owned() });
        spec_of(vec![RepositorySpec { url: repository.url("/{file}"), secret, include: Vec::new() }])
    };
    bundle(&sources.fetch(&of_team, &of("team")).await.unwrap());
    repository.requests();
    let (reason, message) = repository_problem(&sources.fetch(&of_team, &of("ops")).await.unwrap());
    assert_eq!(reason, "TemplatingURLError");
    assert!(message.contains("names namespace ops; Secrets may be in team only"), "{message}");
    assert_eq!(repository.asked(), []);
}

#[tokio::test]
async fn nobody_in_a_namespace_has_a_bundle_of_others_by_its_digest() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let offer = |place: &str, with_digests| {
        repository.put(&format!("/{place}/index.yaml"), Reply::File(index(&web(), with_digests)));
        repository.url(&format!("/{place}/index.yaml"))
    };
    let (secret, own, included) = (offer("secret", true), offer("own", true), offer("included", false));
    let packed = web().remove(0).2;
    repository.put("/secret/web-1.0.0.tgz", Reply::File(packed.clone()));
    let theirs = bundle(&sources.fetch(&key(), &spec(&[secret])).await.unwrap());
    // Whoever knows the digest, which statuses show, may write an index with it.
    let of = |namespace: &str| SourceKey {
        kind: SourceKind::Namespaced,
        namespace: namespace.into(),
        name: "x".into(),
    };
    let include =
        vec![Include { name: "web".to_owned(), version: None, digest: Some(theirs.digest.clone()) }];
    let by_include = spec_of(vec![RepositorySpec { url: included, secret: None, include }]);
    let by_index = spec(&[own]);
    for wanted in [&by_index, &by_include] {
        let (reason, message) = problem(&sources.fetch(&of("team"), wanted).await.unwrap());
        assert_eq!(reason.as_str(), "FetchingError", "{message}");
        assert!(message.contains("404"), "{message}");
    }
    // Who has the bytes themselves has it, and they are asked for once.
    repository.put("/own/web-1.0.0.tgz", Reply::File(packed));
    assert_eq!(bundle(&sources.fetch(&of("team"), &by_index).await.unwrap()), theirs);
    repository.asked();
    let index_only = [("/own/index.yaml".to_owned(), 304)];
    sources.fetch(&of("team"), &by_index).await.unwrap();
    assert_eq!(repository.asked(), index_only);
    repository.put("/own/web-1.0.0.tgz", Reply::Status(404, Vec::new()));
    problem(&sources.fetch(&of("others"), &by_index).await.unwrap());
    // A restart knows whose it is.
    let addon = RegisteredAddon::new(of("team"), "https://repo/index.yaml".to_owned(), theirs.clone());
    let registry = Registry { addons: [addon].into_iter().collect(), is_written: true };
    sources.keep(&registry, &[]).await.unwrap();
    drop(sources);
    let sources = world.sources();
    sources.restore().await.unwrap();
    assert_eq!(bundle(&sources.fetch(&of("team"), &by_index).await.unwrap()), theirs);
    problem(&sources.fetch(&of("others"), &by_index).await.unwrap());
}

#[tokio::test]
async fn a_bundle_with_another_digest_is_refused() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.put("/index.yaml", Reply::File(index(&web(), true)));
    repository.put("/web-1.0.0.tgz", Reply::File(module("web", "1.0.0", "evil")));
    let fetched = world.sources().fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let (reason, message) = problem(&fetched);
    assert_eq!(reason.as_str(), "FetchingError");
    assert!(message.contains("the digest of the bundle is sha256:"), "{message}");
    assert_eq!(world.count("blobs"), 0);
}

#[tokio::test]
async fn what_is_included_by_its_digest_has_that_digest() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&web());
    let fetched = world.sources().fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let good = bundle(&fetched).digest;
    let other = format!("sha256:{:064x}", 7).parse().unwrap();
    for (digest, is_good) in [(good, true), (other, false)] {
        let include = Include { name: "web".to_owned(), version: None, digest: Some(digest) };
        let url = repository.url("/index.yaml");
        let of = spec_of(vec![RepositorySpec { url, secret: None, include: vec![include] }]);
        let fetched = world.sources().fetch(&key(), &of).await.unwrap();
        assert_eq!(addons(&fetched)[0].outcome.is_ok(), is_good);
    }
}

#[tokio::test]
async fn of_what_is_included_no_other_version_is_asked_for() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let versions: Vec<String> = (0..600).map(|n| format!("1.0.{n}")).chain(["2.0.0".to_owned()]).collect();
    let bundles: Vec<_> = versions.iter().map(|version| ("web", version.as_str(), Vec::new())).collect();
    repository.publish(&bundles);
    for version in ["1.0.7", "1.0.599"] {
        repository.put(&format!("/web-{version}.tgz"), Reply::File(module("web", version, "hello")));
    }
    repository.put("/web-2.0.0.tgz", Reply::Status(404, Vec::new()));
    repository.put("/index.yaml", Reply::File(index(&bundles, false)));
    for (version, taken) in [("1.0.7", "1.0.7"), ("^1", "1.0.599")] {
        let include =
            vec![Include { name: "web".to_owned(), version: Some(version.to_owned()), digest: None }];
        let url = repository.url("/index.yaml");
        let fetched =
            sources.fetch(&key(), &spec_of(vec![RepositorySpec { url, secret: None, include }])).await;
        let fetched = fetched.unwrap();
        assert_eq!((addons(&fetched).len(), bundle(&fetched).version.as_str()), (1, taken));
        let asked: Vec<String> = repository.asked().into_iter().map(|(path, _)| path).collect();
        assert_eq!(asked, ["/index.yaml".to_owned(), format!("/web-{taken}.tgz")]);
    }
    // All of them are too many, and none is asked for.
    let (_, said) =
        repository_problem(&sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap());
    assert!(said.contains("the index offers 601 bundles, 500 are taken"), "{said}");
    assert_eq!(repository.asked().len(), 1);
}

#[tokio::test]
async fn a27_a_host_that_hangs_delays_no_other() {
    let (slow, fast) = (Repository::plain().await, Repository::plain().await);
    let world = SourceFixture::new(&fast, &["slow.example"]).await;
    let sources = Arc::new(world.sources());
    let observed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&observed);
    sources.metrics().listen(move |seen| noted.lock().unwrap().push((seen.scheme, seen.outcome)));
    fast.publish(&web());
    let urls: Vec<String> =
        (0..20).map(|number| slow.url_at("slow.example", &format!("/{number}"))).collect();
    for number in 0..20 {
        slow.put(&format!("/{number}"), Reply::Gated(b"entries: {}".to_vec()));
    }
    let waiting = {
        let sources = Arc::clone(&sources);
        tokio::spawn(async move { sources.fetch(&key(), &spec(&urls)).await })
    };
    slow.busy(2).await;
    bundle(&sources.fetch(&key(), &spec(&[fast.url("/index.yaml")])).await.unwrap());
    assert_eq!(slow.in_flight(), 2, "two a host");
    slow.open_gate();
    let fetched = waiting.await.unwrap().unwrap();
    assert!(fetched.repositories.iter().all(|repository| repository.outcome == Ok(Vec::new())));
    assert_eq!(observed.lock().unwrap().len(), 22);
    assert!(observed.lock().unwrap().iter().all(|seen| *seen == ("http", "fetched")));
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_there_may_be() {
    let repository = Repository::plain().await;
    let hosts: Vec<String> = (0..6).map(|number| format!("host-{number}.example")).collect();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let world = SourceFixture::new(&repository, &names).await;
    let sources = world.sources_with(|options| {
        options.in_flight = 3;
        options.trust.lookup = Arc::new(Names::default());
    });
    repository.put("/index.yaml", Reply::Gated(b"entries: {}".to_vec()));
    let urls: Vec<String> = hosts.iter().map(|host| repository.url_at(host, "/index.yaml")).collect();
    let watched = repository.clone();
    let waiting = tokio::spawn(async move { sources.fetch(&key(), &spec(&urls)).await });
    watched.busy(3).await;
    tokio::task::yield_now().await;
    assert_eq!(watched.in_flight(), 3);
    watched.open_gate();
    waiting.await.unwrap().unwrap();
    assert_eq!(watched.asked().len(), 6);
}

#[tokio::test]
async fn what_the_disk_does_not_take_is_a_registering_error_that_says_what_to_do() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let of = spec(&[repository.url("/index.yaml")]);
    repository.publish(&web());
    sources.fetch(&key(), &of).await.unwrap();
    let directory = world.directory().display().to_string();
    // A folder that is a file takes nothing.
    let break_folder = |folder: &str| {
        let path = world.directory().join(folder);
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::write(&path, "").unwrap();
    };
    let told = async || {
        let fetched = sources.fetch(&key(), &of).await.unwrap();
        if let Err(problem) = &fetched.repositories[0].outcome {
            return (problem.reason.as_str(), problem.message.clone());
        }
        let (reason, message) = problem(&fetched);
        (reason.as_str(), message)
    };
    for folder in ["staging", "blobs"] {
        break_folder(folder);
        repository.publish(&[("web", "1.0.0", module("web", "1.0.0", folder))]);
        let (reason, message) = told().await;
        assert_eq!(reason, "RegisteringError");
        assert!(message.starts_with(&format!("the bundle can't be kept in {directory}: ")), "{message}");
        assert!(message.ends_with("--source-dir"), "{message}");
        assert_eq!(told().await.1, message, "the same each time");
        std::fs::remove_file(world.directory().join(folder)).unwrap();
        let fetched = sources.fetch(&key(), &of).await.unwrap();
        assert_eq!(bundle(&fetched).name.as_str(), "web", "it comes back by itself");
    }
}

#[tokio::test]
async fn a20_a_url_that_is_empty_plain_or_not_allowed_is_refused_and_nobody_is_asked() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    repository.publish(&web());
    let prefix = ::source::allow::Prefix::parse(&repository.url("/allowed/")).unwrap();
    let sources = world.sources_with(|options| options.trust.allowed.prefixes.push(prefix));
    let plain = repository.url("/index.yaml").replacen("https://", "http://", 1);
    for (url, expected, says) in [
        ("", "EmptyURLError", "spec.repositories[].url"),
        (plain.as_str(), "FetchingIndexError", "http:// is not supported"),
        (&repository.url("/index.yaml"), "FetchingIndexError", "--source-allow-prefix"),
    ] {
        let fetched = sources.fetch(&key(), &spec(&[url.to_owned()])).await.unwrap();
        let (reason, message) = repository_problem(&fetched);
        assert_eq!(reason, expected, "{url}: {message}");
        assert!(message.contains(says), "{url}: {message}");
    }
    assert_eq!(repository.asked(), []);
}
