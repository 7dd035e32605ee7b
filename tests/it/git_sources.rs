//! Sources in git repositories: what is asked, what is read, and what a server may not send.

use std::sync::{Arc, Mutex};

use ::source::git::ObjectId;
use ::source::git::packet::Message;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{AddonReason, Bundle};

use crate::support::git_server::{Files, GitRepository, banded, index, module};
use crate::support::repository::{Reply, Repository, digest};
use crate::support::source::{SourceFixture, addons, bundle, key, problem, repository_problem, spec};

/// Returns a repository with one module, and its commit.
fn published(says: &str) -> (GitRepository, ObjectId) {
    let mut files = index("stable/index.yaml", &[("web", "1.0.0")]);
    files.extend(module("stable/web-1.0.0", "web", "1.0.0", says));
    let mut git = GitRepository::default();
    let commit = git.commit(&files, &["HEAD", "refs/heads/main"]);
    (git, commit)
}

fn url(repository: &Repository, rest: &str) -> String {
    format!("git::{}", repository.url(&format!("/o/r.git//stable/index.yaml{rest}")))
}

fn files_of(world: &SourceFixture, bundle: &Bundle) -> Vec<String> {
    let root = world.directory().join("blobs").join(bundle.digest.hex()).join("bundle");
    let mut found: Vec<String> = walkdir::WalkDir::new(&root)
        .min_depth(1)
        .into_iter()
        .map(|entry| entry.unwrap().path().strip_prefix(&root).unwrap().display().to_string())
        .collect();
    found.sort();
    found
}

const FIRST: &str = "/o/r.git/info/refs?service=git-upload-pack";
const REFERENCES: &str = "/o/r.git/git-upload-pack command=ls-refs";
const PACK: &str = "/o/r.git/git-upload-pack command=fetch";

fn asked(repository: &Repository) -> Vec<String> {
    repository.asked().into_iter().map(|(path, _)| path).collect()
}

#[tokio::test]
async fn a21_what_did_not_change_costs_one_small_request() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let observed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&observed);
    sources.metrics().listen(move |seen| noted.lock().unwrap().push((seen.scheme, seen.outcome)));
    let (git, _) = published("hello");
    git.serve(&repository, "/o/r.git");
    let of = spec(&[url(&repository, "")]);
    let first = sources.fetch(&key(), &of).await.unwrap();
    let known = bundle(&first);
    assert_eq!(files_of(&world, &known), ["hooks", "hooks/again.sh", "hooks/run.sh", "meta.yaml"]);
    assert_eq!(asked(&repository), [FIRST, REFERENCES, PACK]);
    assert_eq!(sources.fetch(&key(), &of).await.unwrap(), first);
    assert_eq!(asked(&repository), [REFERENCES]);
    let seen = std::mem::take(&mut *observed.lock().unwrap());
    assert_eq!(seen, [("git", "fetched"), ("git", "fetched"), ("git", "unchanged")]);
    // A10: another commit under the same reference, and the same version in it.
    let (git, _) = published("goodbye");
    git.serve(&repository, "/o/r.git");
    let changed = bundle(&sources.fetch(&key(), &of).await.unwrap());
    assert_ne!(changed.digest, known.digest);
    assert_eq!(asked(&repository), [REFERENCES, PACK]);
    // The same tree has the same digest, for another operator, too.
    published("hello").0.serve(&repository, "/o/r.git");
    let elsewhere = world.sources_with(|options| options.directory.push("second"));
    assert_eq!(bundle(&elsewhere.fetch(&key(), &of).await.unwrap()).digest, known.digest);
}

#[tokio::test]
async fn a21_a_reference_is_a_branch_a_tag_or_a_commit() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let (mut git, first) = published("one");
    let more = |says: &str| {
        let mut files = index("stable/index.yaml", &[("web", "1.0.0")]);
        files.extend(module("stable/web-1.0.0", "web", "1.0.0", says));
        files
    };
    let second = git.commit(&more("two"), &["refs/heads/next", "refs/heads/team/x"]);
    let third = git.commit(&more("three"), &["refs/tags/v3"]);
    git.references.insert("refs/tags/v1".to_owned(), (ObjectId::new([9; 20]), Some(first)));
    git.serve(&repository, "/o/r.git");
    let mut digests = Vec::new();
    for (number, options) in [
        String::new(),
        "?ref=main".to_owned(),
        "?ref=v1".to_owned(),
        format!("?ref={first}&depth=5"),
        "?ref=next".to_owned(),
        "?ref=team%2Fx".to_owned(),
        format!("?ref={second}"),
        "?ref=v3&depth=1".to_owned(),
        "?ref=refs/tags/v3".to_owned(),
        format!("?ref={third}"),
    ]
    .iter()
    .enumerate()
    {
        let sources = world.sources_with(|options| options.directory.push(number.to_string()));
        let fetched = sources.fetch(&key(), &spec(&[url(&repository, options)])).await.unwrap();
        digests.push(bundle(&fetched).digest.clone());
    }
    let [one, two, three] = [&digests[0], &digests[4], &digests[7]].map(Clone::clone);
    assert_eq!(digests[..4], [one.clone(), one.clone(), one.clone(), one.clone()]);
    assert_eq!(digests[4..7], [two.clone(), two.clone(), two.clone()]);
    assert_eq!(digests[7..], [three.clone(), three.clone(), three]);
    assert_ne!(one, two);
    repository.asked();
    // A commit is what it is: it is asked for once.
    let sources = world.sources();
    let of = spec(&[url(&repository, &format!("?ref={first}"))]);
    sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(asked(&repository), [FIRST, PACK]);
    sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(asked(&repository), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_speaks_version_0_only_is_understood() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let (mut git, commit) = published("hello");
    git.is_old = true;
    git.references.insert("refs/tags/v1".to_owned(), (ObjectId::new([9; 20]), Some(commit)));
    git.serve(&repository, "/o/r.git");
    let sources = world.sources();
    for options in ["", "?ref=v1"] {
        let of = spec(&[url(&repository, options)]);
        bundle(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(asked(&repository), [FIRST.to_owned(), "/o/r.git/git-upload-pack want".to_owned()]);
        bundle(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(asked(&repository), [FIRST]);
    }
}

#[tokio::test]
async fn repositories_of_one_pass_share_what_is_fetched_and_many_bundles_cost_no_more() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let names: Vec<String> = (1..=30).map(|number| format!("web{}", "x".repeat(number))).collect();
    let lines: Vec<_> = names.iter().map(|name| (name.as_str(), "1.0.0")).collect();
    let mut files = index("stable/index.yaml", &lines);
    files.extend(index("other.yaml", &[("db", "1.0.0")]));
    files.extend(module("db-1.0.0", "db", "1.0.0", "hello"));
    for name in &names {
        files.extend(module(&format!("stable/{name}-1.0.0"), name, "1.0.0", "hello"));
    }
    let mut git = GitRepository::default();
    git.commit(&files, &["HEAD"]);
    git.serve(&repository, "/o/r.git");
    let sources = world.sources();
    let other = format!("git::{}", repository.url("/o/r.git//other.yaml"));
    let of = spec(&[url(&repository, ""), other]);
    let fetched = sources.fetch(&key(), &of).await.unwrap();
    assert_eq!(addons(&fetched).iter().filter(|addon| addon.outcome.is_ok()).count(), 30);
    assert_eq!(asked(&repository), [FIRST, REFERENCES, PACK]);
    assert_eq!(sources.fetch(&key(), &of).await.unwrap(), fetched);
    assert_eq!(asked(&repository), [REFERENCES]);
    assert_eq!(world.count("staging"), 0);
}

#[tokio::test]
async fn a_bundle_may_be_an_archive_in_the_repository_and_have_a_digest() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let packed = crate::support::repository::module("web", "1.0.0", "hello");
    let with = |expected: &str| {
        let text = format!(
            "entries: {{web: [{{version: 1.0.0, urls: [packed/web.tgz], digest: 'sha256:{expected}'}}]}}"
        );
        let mut git = GitRepository::default();
        let files = Files::from([
            ("stable/index.yaml".to_owned(), ("100644", text.into_bytes())),
            ("stable/packed/web.tgz".to_owned(), ("100644", packed.clone())),
        ]);
        git.commit(&files, &["HEAD"]);
        git.serve(&repository, "/o/r.git");
    };
    let sources = world.sources();
    with(&digest(&packed));
    let fetched = sources.fetch(&key(), &spec(&[url(&repository, "")])).await.unwrap();
    assert_eq!(bundle(&fetched).digest.hex(), digest(&packed));
    with(&digest(b"something else"));
    let fetched = sources.fetch(&key(), &spec(&[url(&repository, "")])).await.unwrap();
    let (reason, message) = problem(&fetched);
    assert_eq!(reason, AddonReason::FetchingError);
    assert!(message.contains("the digest of the bundle is sha256:"), "{message}");
}

#[tokio::test]
async fn the_digest_of_an_entry_is_that_of_the_archive_which_its_directory_becomes() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let (git, _) = published("hello");
    git.serve(&repository, "/o/r.git");
    let of = spec(&[url(&repository, "")]);
    let known = bundle(&world.sources().fetch(&key(), &of).await.unwrap()).digest;
    let with = |digest: &str| {
        let text = format!("apiVersion: v1\nentries:\n  web:\n  - {{version: 1.0.0, digest: {digest}}}\n");
        let mut files = module("stable/web-1.0.0", "web", "1.0.0", "hello");
        files.insert("stable/index.yaml".to_owned(), ("100644", text.into_bytes()));
        let mut git = GitRepository::default();
        git.commit(&files, &["HEAD"]);
        git.serve(&repository, "/o/r.git");
    };
    for directory in ["second", "third"] {
        // Also by an operator that has not seen it yet.
        let sources = world.sources_with(|options| options.directory.push(directory));
        with(known.as_str());
        assert_eq!(bundle(&sources.fetch(&key(), &of).await.unwrap()).digest, known);
        with(&format!("sha256:{}", digest(b"something else")));
        let (reason, message) = problem(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(reason, AddonReason::FetchingError);
        assert!(message.contains("the digest of the bundle is sha256:"), "{message}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_repository_is_one_plain_line() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let port = repository.address.port();
    let (git, _) = published("hello");
    let advertisement = "application/x-git-upload-pack-advertisement";
    let result = "application/x-git-upload-pack-result";
    let first = "/o/r.git/info/refs?service=git-upload-pack";
    let service = "/o/r.git/git-upload-pack";
    let refused = Reply::Typed(result, Message::default().line("ERR access denied").flush().into_bytes());
    let redirect = |to: &str| Reply::Status(302, vec![("location", to.to_owned())]);
    for (options, path, reply, says) in [
        ("?ref=none", "", None, "no branch or tag \"none\"".to_owned()),
        ("?ref=abcdef1", "", None, "all of its 40 digits".to_owned()),
        ("?ref=0123456789012345678901234567890123456789", "", None, "upload-pack: not our ref".to_owned()),
        (
            "",
            first,
            Some(Reply::Status(401, Vec::new())),
            format!("localhost:{port} answered 401 Unauthorized: it wants another user"),
        ),
        ("", first, Some(Reply::Status(403, Vec::new())), "403 Forbidden: it wants another user".to_owned()),
        ("", first, Some(Reply::Status(404, Vec::new())), format!("localhost:{port} answered 404 Not Found")),
        ("", first, Some(Reply::Page), "is no git server at this URL".to_owned()),
        (
            "",
            first,
            Some(Reply::Typed("text/plain", b"1111\trefs/heads/main\n".to_vec())),
            "is no git server at this URL".to_owned(),
        ),
        (
            "",
            first,
            Some(Reply::Typed(advertisement, b"1111\trefs/heads/main\n".to_vec())),
            "not that of a git server".to_owned(),
        ),
        (
            "",
            first,
            Some(redirect("http://localhost/o/r.git/info/refs?service=git-upload-pack")),
            "sends on to a URL that can't be used".to_owned(),
        ),
        (
            "",
            first,
            Some(redirect("https://169.254.169.254/o/r.git/info/refs")),
            "which is a link-local".to_owned(),
        ),
        ("", first, Some(redirect("/elsewhere")), "answered 404".to_owned()),
        ("", service, Some(redirect("/elsewhere")), "sends a message of git on to another URL".to_owned()),
        ("", service, Some(refused), "the server says: access denied".to_owned()),
        ("", service, Some(Reply::Zeros(1 << 20)), "is no git server at this URL".to_owned()),
        ("", service, Some(Reply::Typed(result, vec![b'0'; 17 << 20])), "is longer than 16 MiB".to_owned()),
    ] {
        git.serve(&repository, "/o/r.git");
        if let Some(reply) = reply {
            repository.put(path, reply);
        }
        let sources = world.sources();
        let fetched = sources.fetch(&key(), &spec(&[url(&repository, options)])).await.unwrap();
        let (reason, message) = repository_problem(&fetched);
        assert_eq!(reason, "FetchingIndexError");
        assert!(message.contains(&says) && !message.contains('\n'), "{says}: {message}");
    }
}

#[tokio::test]
async fn a_pack_that_is_none_is_told_and_nothing_of_it_is_left() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let (git, commit) = published("hello");
    let result = "application/x-git-upload-pack-result";
    let pack = &git.packs[&commit];
    let packed = |pack: &[u8]| {
        let mut answer = Message::default().line("packfile").into_bytes();
        answer.extend(banded(pack));
        Reply::Typed(result, answer)
    };
    let mut changed = pack.clone();
    changed[100] ^= 1;
    let mut many = pack.clone();
    many[8..12].copy_from_slice(&[0xff; 4]);
    // The commit is named, so the service is asked for the pack only.
    let long = banded(&vec![0; 65 << 20]);
    let long = [Message::default().line("packfile").into_bytes(), long].concat();
    for (reply, says) in [
        (packed(&pack[..pack.len() - 30]), "the pack of the server is damaged"),
        (packed(&changed), "the pack of the server is damaged"),
        (packed(&many), "more than 100000 files"),
        (packed(b"no pack"), "the pack of the server is damaged"),
        (Reply::Typed(result, long), "is longer than 64 MiB"),
        (Reply::Typed(result, Vec::new()), "the answer broke off"),
        (Reply::Typed(result, b"0003".to_vec()), "not that of a git server"),
    ] {
        git.serve(&repository, "/o/r.git");
        repository.put("/o/r.git/git-upload-pack", reply);
        let of = spec(&[url(&repository, &format!("?ref={commit}"))]);
        let fetched = world.sources().fetch(&key(), &of).await.unwrap();
        let (_, message) = repository_problem(&fetched);
        assert!(message.contains(says) && !message.contains('\n'), "{says}: {message}");
    }
    assert_eq!(world.count("staging") + world.count("blobs"), 0, "something is left");
}

#[tokio::test]
async fn paths_that_are_not_there_and_bundles_that_no_archive_may_be_are_named() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let mut files = index(
        "stable/index.yaml",
        &[("web", "1.0.0"), ("gone", "1.0.0"), ("out", "1.0.0"), ("sub", "1.0.0")],
    );
    files.extend(module("stable/web-1.0.0", "web", "1.0.0", "hello"));
    files.extend(module("stable/out-1.0.0", "out", "1.0.0", "hello"));
    files.insert("stable/out-1.0.0/passwd".to_owned(), ("120000", b"/etc/passwd".to_vec()));
    files.insert("stable/sub-1.0.0/hooks".to_owned(), ("160000", Vec::new()));
    files.insert("stable/web-1.0.0/charts".to_owned(), ("160000", Vec::new()));
    files.insert("stable/link.yaml".to_owned(), ("120000", b"index.yaml".to_vec()));
    let mut git = GitRepository::default();
    git.commit(&files, &["HEAD"]);
    git.serve(&repository, "/o/r.git");
    let sources = world.sources();
    for _ in 0..2 {
        let fetched = sources.fetch(&key(), &spec(&[url(&repository, "")])).await.unwrap();
        let said: Vec<(String, &str, String)> = addons(&fetched)
            .iter()
            .map(|addon| match &addon.outcome {
                Ok(_) => (addon.name.clone(), "Ready", String::new()),
                Err(problem) => (addon.name.clone(), problem.reason.as_str(), problem.message.clone()),
            })
            .collect();
        let expected = [
            ("gone", "FetchingError", "\"stable/gone-1.0.0\" is not in the repository at this commit"),
            ("out", "LoadingError", "the link \"passwd\" does not lead to a file of the bundle"),
            ("sub", "LoadingError", "hooks: it is a submodule, which is not fetched"),
            ("web", "Ready", ""),
        ];
        for ((name, reason, message), expected) in said.iter().zip(expected) {
            assert_eq!((name.as_str(), *reason), (expected.0, expected.1), "{message}");
            assert!(message.contains(expected.2), "{message}");
        }
    }
    // What is wrong with a commit stays wrong: it is fetched once.
    assert_eq!(asked(&repository), [FIRST, REFERENCES, PACK, REFERENCES]);
    for (path, says) in [
        ("stable/none.yaml", "\"stable/none.yaml\" is not in the repository at this commit"),
        ("stable", "\"stable\" is a directory: name the index file in it"),
        ("stable/link.yaml", "is a symbolic link"),
        ("stable/web-1.0.0/meta.yaml", "the index has no mapping"),
    ] {
        let of = spec(&[format!("git::{}", repository.url(&format!("/o/r.git//{path}")))]);
        let (reason, message) = repository_problem(&sources.fetch(&key(), &of).await.unwrap());
        assert_eq!(reason, "FetchingIndexError");
        assert!(message.contains(says), "{says}: {message}");
    }
}

#[tokio::test]
async fn a19_credentials_go_with_every_request_to_their_host_and_to_no_other() {
    let repository = Repository::tls(&["other.example"]).await;
    let world = SourceFixture::new(&repository, &["other.example"]).await;
    let (git, _) = published("hello");
    git.serve(&repository, "/o/r.git");
    git.serve(&repository, "/moved/r.git");
    let port = repository.address.port();
    let of = spec(&[format!("git::https://joe:hunter2@localhost:{port}/o/r.git//stable/index.yaml")]);
    // Some servers answer nobody else.
    let is_git = |agent: &http::HeaderValue| agent.as_bytes().starts_with(b"git/");
    let sent = |repository: &Repository| -> Vec<(String, bool)> {
        let expected = format!("Basic {}", STANDARD.encode("joe:hunter2"));
        let mut sent = Vec::new();
        for asked in repository.requests() {
            let found = asked.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
            assert!(found.as_ref().is_none_or(|found| *found == expected));
            assert!(asked.headers.get("user-agent").is_some_and(is_git));
            sent.push((asked.path, found.is_some()));
        }
        sent
    };
    bundle(&world.sources().fetch(&key(), &of).await.unwrap());
    assert!(sent(&repository).iter().all(|(_, has)| *has));
    // The first answer may send on; what follows goes there at once, on another host without credentials.
    for (host, has) in [("localhost", true), ("other.example", false)] {
        let there = format!("https://{host}:{port}/moved/r.git/info/refs?service=git-upload-pack");
        repository.put(FIRST, Reply::Status(301, vec![("location", there)]));
        let sources = world.sources_with(|options| options.directory.push(host));
        bundle(&sources.fetch(&key(), &of).await.unwrap());
        let moved = |path: &str| path.replace("/o/", "/moved/");
        let expected =
            [(FIRST.to_owned(), true), (moved(FIRST), has), (moved(REFERENCES), has), (moved(PACK), has)];
        assert_eq!(sent(&repository), expected);
    }
    repository.put(FIRST, Reply::Status(401, Vec::new()));
    let (_, message) = repository_problem(&world.sources().fetch(&key(), &of).await.unwrap());
    assert!(!message.contains("hunter2") && !message.contains("joe"), "{message}");
}

#[tokio::test]
async fn a27_servers_that_hang_delay_no_other_repository() {
    let (slow, fast) = (Repository::plain().await, Repository::plain().await);
    let hosts: Vec<String> = (0..6).map(|number| format!("slow-{number}.example")).collect();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let world = SourceFixture::new(&fast, &names).await;
    let sources = Arc::new(world.sources());
    let (git, commit) = published("hello");
    git.serve(&fast, "/o/r.git");
    git.serve(&slow, "/o/r.git");
    slow.put("/o/r.git/git-upload-pack", Reply::Gated(Vec::new()));
    let path = format!("/o/r.git//stable/index.yaml?ref={commit}");
    let of = spec(&names.iter().map(|host| format!("git::{}", slow.url_at(host, &path))).collect::<Vec<_>>());
    let waiting = {
        let sources = Arc::clone(&sources);
        tokio::spawn(async move { sources.fetch(&key(), &of).await })
    };
    slow.busy(6).await;
    bundle(&sources.fetch(&key(), &spec(&[url(&fast, "")])).await.unwrap());
    assert_eq!(slow.in_flight(), 6);
    slow.open_gate();
    let fetched = waiting.await.unwrap().unwrap();
    assert!(fetched.repositories.iter().all(|repository| repository.outcome.is_err()));
}

#[tokio::test]
async fn git_over_plain_http_is_for_development() {
    let repository = Repository::plain().await;
    let world = SourceFixture::new(&repository, &[]).await;
    published("hello").0.serve(&repository, "/o/r.git");
    bundle(&world.sources().fetch(&key(), &spec(&[url(&repository, "")])).await.unwrap());
    let strict = world.sources_with(|options| options.trust.allowed.protocols.has_http = false);
    let (_, message) =
        repository_problem(&strict.fetch(&key(), &spec(&[url(&repository, "")])).await.unwrap());
    assert!(message.contains("--source-develop allows http"), "{message}");
}
