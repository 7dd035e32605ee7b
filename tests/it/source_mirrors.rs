//! Places without a network: `source mirror` copies a source, and `--source-mirror` has the operator ask the copy.

use std::fs;
use std::path::Path;

use ::source::mirror::{Mirror, Mirrors};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{AddonReason, Include, RepositorySpec, SecretName, SourceSpec, Verification};
use http::Method;
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};

use crate::support::program::Workspace;
use crate::support::registry::Registry;
use crate::support::repository::{Reply, Repository, module};
use crate::support::server;
use crate::support::source::{
    SourceFixture, addons, bundle, key, problem, repository_problem, spec, spec_of,
};

fn mirrors(from: &str, to: &str) -> Mirrors {
    Mirrors::new(vec![Mirror::parse(&format!("{from}={to}")).unwrap()])
}

fn ask(workspace: &Workspace, arguments: &[&str]) -> (i32, String) {
    tokio::task::block_in_place(|| workspace.ask(arguments))
}

/// Serves the files below a directory as any web server does: nothing is known of them but their bytes.
fn serve(mirror: &Repository, root: &Path, below: &str) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let name = entry.unwrap().file_name();
        let path = if below.is_empty() {
            name.to_string_lossy().into_owned()
        } else {
            format!("{below}/{}", name.display())
        };
        if root.join(&path).is_dir() {
            serve(mirror, root, &path);
        } else {
            let query = if path.ends_with("tags/list") { "?n=1000" } else { "" };
            mirror.put(&format!("/{path}{query}"), Reply::File(fs::read(root.join(&path)).unwrap()));
        }
    }
}

fn verified(spec: SourceSpec, key: &KeyPair) -> SourceSpec {
    let verify = Verification { public_keys: vec![key.public_key_pem()], secret: None };
    SourceSpec { verify: Some(verify), ..spec }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_mirrored_into_a_directory_is_all_that_is_asked() {
    let workspace = Workspace::new();
    let (origin, mirror) = (Repository::tls(&[]).await, Repository::plain().await);
    let own = KeyPair::generate().unwrap();
    let (web, db) = (module("web", "1.0.0", "hello"), module("db", "2.0.0", "hello"));
    origin.publish(&[("web", "1.0.0", web.clone()), ("db", "2.0.0", db.clone())]);
    origin.put("/web-1.0.0.tgz.sig", Reply::File(own.sign(&web).unwrap()));
    origin.put("/db-2.0.0.tgz.sig", Reply::File(own.sign(&db).unwrap()));
    let ca = origin.write_authority(workspace.path()).display().to_string();
    let from = origin.url("/index.yaml");
    let (code, said) = ask(&workspace, &["source", "mirror", &from, "copy", "--ca", &ca]);
    assert_eq!(code, 0, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("copy/db-2.0.0.tgz sha256:") && lines[0].ends_with(", with its signature"),
        "{said}"
    );
    serve(&mirror, &workspace.path().join("copy"), "");
    origin.asked();
    let world = SourceFixture::trusting("", &[]).await;
    let sources =
        || world.sources_with(|options| options.mirrors = mirrors(&origin.url("/"), &mirror.url("/")));
    let of = verified(spec(&[from]), &own);
    let fetched = sources().fetch(&key(), &of).await.unwrap();
    assert_eq!(addons(&fetched).len(), 2);
    assert!(addons(&fetched).iter().all(|addon| addon.outcome.is_ok()), "{fetched:?}");
    assert_eq!(origin.asked(), [], "nothing is asked of the source itself");
    // A mirror that is filled by half says so, with what stands in.
    mirror.put("/web-1.0.0.tgz", Reply::Status(404, Vec::new()));
    mirror.put("/db-2.0.0.tgz.sig", Reply::Status(404, Vec::new()));
    fs::remove_dir_all(world.directory()).unwrap();
    let fetched = sources().fetch(&key(), &of).await.unwrap();
    let said = |number: usize| addons(&fetched)[number].outcome.clone().unwrap_err();
    let (db, web) = (said(0), said(1));
    assert_eq!((db.reason, web.reason), (AddonReason::LoadingError, AddonReason::FetchingError));
    assert!(db.message.contains("has no db-2.0.0.tgz.sig"), "{}", db.message);
    let stands = format!(
        "404 Not Found; {} stands in for it (--source-mirror): fill it with",
        mirror.url("/index.yaml")
    );
    assert!(web.message.contains(&stands), "{}", web.message);
    mirror.put("/index.yaml", Reply::Status(404, Vec::new()));
    let (_, said) = repository_problem(&sources().fetch(&key(), &of).await.unwrap());
    assert!(said.contains(&stands), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_is_mirrored_into_another_one_or_into_files_with_its_signatures() {
    let workspace = Workspace::new();
    let (origin, other, files) =
        (Repository::tls(&[]).await, Repository::tls(&[]).await, Repository::plain().await);
    let registry = Registry::open(&origin);
    let own = KeyPair::generate().unwrap();
    registry.tags("team/web", &["1.0.0", "1.1.0", "latest"]);
    for version in ["1.0.0", "1.1.0"] {
        let manifest = registry.push_bundle("team/web", version, &module("web", version, "hello"));
        registry.sign("team/web", &manifest, &manifest, &own);
    }
    registry.put(
        &format!("team/web/blobs/sha256:{}", crate::support::repository::digest(b"{}")),
        Reply::File(b"{}".to_vec()),
    );
    other.take_pushes();
    let authorities = format!("{}{}", origin.authority, other.authority);
    fs::write(workspace.path().join("ca.pem"), authorities).unwrap();
    let from = registry.url("/team");
    let to = other.url("/copy").replace("https://", "oci://");
    let (code, said) =
        ask(&workspace, &["source", "mirror", &from, &to, "--include", "web@1.1.0", "--ca", "ca.pem"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with(&format!("{to}/web:1.1.0 sha256:")) && said.lines().count() == 1, "{said}");
    let (code, said) =
        ask(&workspace, &["source", "mirror", &from, "files", "--include", "web", "--ca", "ca.pem"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(said.matches(", with its signature").count(), 2, "{said}");
    serve(&files, &workspace.path().join("files"), "");
    origin.asked();
    let include = vec![Include { name: "web".to_owned(), version: Some("1.1.0".to_owned()), digest: None }];
    let exact = spec_of(vec![RepositorySpec { url: from.clone(), secret: None, include: include.clone() }]);
    let world = SourceFixture::new(&other, &[]).await;
    let sources = world.sources_with(|options| options.mirrors = mirrors(&from, &to));
    let fetched = sources.fetch(&key(), &verified(exact.clone(), &own)).await.unwrap();
    assert_eq!(bundle(&fetched).version, "1.1.0");
    let elsewhere = SourceFixture::trusting("", &[]).await;
    let to = files.url("").replace("http://", "oci://");
    let sources = elsewhere.sources_with(|options| options.mirrors = mirrors(&from, &to));
    let all = spec(&[format!("{from}/web")]);
    let fetched = sources.fetch(&key(), &verified(all, &own)).await.unwrap();
    assert_eq!(bundle(&fetched).version, "1.1.0");
    assert_eq!(origin.asked(), []);
    let gone = vec![Include { version: Some("9.0.0".to_owned()), ..include[0].clone() }];
    let gone = spec_of(vec![RepositorySpec { url: from, secret: None, include: gone }]);
    let (_, said) = problem(&sources.fetch(&key(), &gone).await.unwrap());
    assert!(said.contains("stands in for it (--source-mirror)"), "{said}");
}

#[tokio::test]
async fn a_mirror_that_wants_to_know_who_asks_is_not_to_be_filled() {
    let (origin, other) = (Repository::tls(&[]).await, Repository::tls(&[]).await);
    let basic = format!("Basic {}", STANDARD.encode("reader:hunter2"));
    let registry = Registry::guarded(&other, &basic, "Basic realm=x");
    registry.tags("copy/web", &["1.0.0"]);
    registry.push_bundle("copy/web", "1.0.0", &module("web", "1.0.0", "hello"));
    let world = SourceFixture::new(&other, &[]).await;
    let from = Registry::open(&origin).url("/team");
    let sources = world.sources_with(|options| options.mirrors = mirrors(&from, &registry.url("/copy")));
    let host = format!("localhost:{}", other.address.port());
    let config = |word: &str| {
        let auth = STANDARD.encode(format!("reader:{word}"));
        json!({".dockerconfigjson": json!({"auths": {host.clone(): {"auth": auth}}}).to_string()})
    };
    let login = json!({"username": "reader", "password": "hunter2"});
    let secrets: [(&str, Value); 3] =
        [("login", login), ("docker", config("hunter2")), ("wrong", config("hunter3"))];
    for (name, data) in secrets {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        server::ok(&world.server, Method::POST, "/api/v1/namespaces/ops/secrets", &secret).await;
    }
    let named = |name: &str| {
        let secret = Some(SecretName { namespace: "ops".to_owned(), name: name.to_owned() });
        spec_of(vec![RepositorySpec { url: format!("{from}/web"), secret, include: Vec::new() }])
    };
    for (name, says) in [
        ("login", "as a mirror it is shown only those that a .dockerconfigjson has for its host"),
        ("wrong", "it refuses the user and password of the .dockerconfigjson of secretRef"),
    ] {
        let (_, said) = repository_problem(&sources.fetch(&key(), &named(name)).await.unwrap());
        assert!(said.contains(&host) && said.contains("401 Unauthorized") && said.contains(says), "{said}");
        assert!(said.ends_with("/web stands in for it (--source-mirror)"), "{said}");
    }
    assert_eq!(bundle(&sources.fetch(&key(), &named("docker")).await.unwrap()).version, "1.0.0");
    drop(sources);
    // One of files is shown nobody, so it has to let everybody read.
    let to = other.url("/files/");
    let sources = world.sources_with(|options| options.mirrors = mirrors(&origin.url("/"), &to));
    for status in [401, 403] {
        other.put("/files/index.yaml", Reply::Status(status, Vec::new()));
        let of = spec(&[origin.url("/index.yaml")]);
        let (_, said) = repository_problem(&sources.fetch(&key(), &of).await.unwrap());
        assert!(said.contains("is not shown the user and password of the source"), "{said}");
        assert!(!said.contains("fill it"), "{said}");
    }
    assert_eq!(origin.asked(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_mirrored_says_so_and_no_index_is_written() {
    let workspace = Workspace::new();
    let origin = Repository::tls(&[]).await;
    origin.publish(&[("web", "1.0.0", module("web", "1.0.0", "hello")), ("db", "2.0.0", Vec::new())]);
    origin.put("/db-2.0.0.tgz", Reply::Status(404, Vec::new()));
    let ca = origin.write_authority(workspace.path()).display().to_string();
    let from = origin.url("/index.yaml");
    for (arguments, says) in [
        (vec![&*from, "copy", "--ca", &ca], "db 2.0.0: localhost:"),
        (
            vec![&*from, "copy", "--ca", &ca, "--include", "web", "--include", "gone"],
            "gone: the source does not offer it",
        ),
        (
            vec![&*from, "oci://localhost:1/x", "--ca", &ca],
            "only what is in a registry goes into another one",
        ),
        (vec!["git::https://localhost/a.git//i", "copy"], "git clone --mirror"),
        (vec!["ftp://localhost/a", "copy"], "is not supported"),
    ] {
        let arguments = [["source", "mirror"].as_slice(), arguments.as_slice()].concat();
        let (code, said) = ask(&workspace, &arguments);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(says), "{says}: {said}");
        assert!(!workspace.path().join("copy/index.yaml").exists());
    }
}
