//! Sources beside git itself: `git http-backend` behind nginx, with TLS and a password, and what `git clone` makes of it.
//!
//! They need git, nginx and fcgiwrap (Debian: `git nginx-light fcgiwrap`), so they are asked for: `.ci/run` does, or
//! `cargo test --test it git_peers -- --ignored`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engine::Bundle;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::nginx::Nginx;
use crate::support::peer::{Running, start};
use crate::support::server;
use crate::support::source::{SourceFixture, bundle, key, repository_problem, spec};

/// What has to be installed.
const INSTALL: &str = "git, nginx-light and fcgiwrap";

/// A server of git repositories on loopback.
struct GitServer {
    nginx: Nginx,
    _fcgiwrap: Running,
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    git_that_trusts(Path::new("/dev/null"), directory, arguments)
}

fn git_that_trusts(authority: &Path, directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.env("GIT_SSL_CAINFO", authority);
    command.args(arguments).current_dir(directory);
    // Neither the settings of a person nor the repository that the test runs in.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env_remove("GIT_DIR");
    for (name, value) in [("NAME", "A"), ("EMAIL", "a@example.com"), ("DATE", "2026-01-01T00:00:00Z")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().unwrap_or_else(|error| panic!("git: {error} (install git)"));
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl GitServer {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("repositories")).unwrap();
        let root = dir.path().display();
        let location = format!(
            "fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;\n\
             fastcgi_param GIT_HTTP_EXPORT_ALL 1; fastcgi_param GIT_PROJECT_ROOT {root}/repositories;\n\
             fastcgi_param PATH_INFO $uri; fastcgi_param GIT_PROTOCOL $http_git_protocol;\n\
             fastcgi_param REMOTE_USER $remote_user; fastcgi_param QUERY_STRING $query_string;\n\
             fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_TYPE $content_type;\n\
             fastcgi_param CONTENT_LENGTH $content_length; fastcgi_pass unix:{root}/fastcgi.sock;\n"
        );
        let socket = dir.path().join("fastcgi.sock");
        let fcgiwrap = start(INSTALL, "fcgiwrap", &["-c", "4", "-s", &format!("unix:{}", socket.display())]);
        server::until("fcgiwrap", || UnixStream::connect(&socket).is_ok()).await;
        Self { nginx: Nginx::start(INSTALL, dir, &location).await, _fcgiwrap: fcgiwrap }
    }

    /// Makes an empty repository. Returns a directory whose commits are pushed to it.
    fn repository(&self, name: &str) -> PathBuf {
        let (bare, work) =
            (self.nginx.dir.path().join("repositories").join(name), self.nginx.dir.path().join(name));
        git(self.nginx.dir.path(), &["init", "-q", "--bare", "-b", "main", &bare.display().to_string()]);
        git(self.nginx.dir.path(), &["init", "-q", "-b", "main", &work.display().to_string()]);
        git(&work, &["remote", "add", "origin", &bare.display().to_string()]);
        work
    }

    fn url(&self, name: &str) -> String {
        format!("https://joe:hunter2@localhost:{}/{name}", self.nginx.port)
    }

    /// Clones a repository as a person would. Returns the directory and how long it took.
    fn clone(&self, name: &str, reference: &str, into: &str) -> (PathBuf, Duration) {
        let path = self.nginx.dir.path().join(into);
        let (to, authority) = (path.display().to_string(), self.nginx.dir.path().join("authority.pem"));
        let begun = Instant::now();
        let url = self.url(name);
        let arguments = ["clone", "-q", "--depth", "1", "--branch", reference, &url, &to];
        git_that_trusts(&authority, self.nginx.dir.path(), &arguments);
        (path, begun.elapsed())
    }

    async fn world(&self) -> SourceFixture {
        SourceFixture::trusting(&self.nginx.authority, &[]).await
    }
}

/// What a directory has: modes, contents and targets of links by path.
fn tree(root: &Path) -> BTreeMap<String, (char, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(root).min_depth(1);
    let entries = entries.into_iter().map(Result::unwrap).filter(|entry| !entry.file_type().is_dir());
    let read = |entry: walkdir::DirEntry| {
        let path = entry.path().strip_prefix(root).unwrap().display().to_string();
        if entry.file_type().is_symlink() {
            return (path, ('l', fs::read_link(entry.path()).unwrap().display().to_string().into_bytes()));
        }
        let is_executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
        (path, (if is_executable { 'x' } else { 'f' }, fs::read(entry.path()).unwrap()))
    };
    entries.map(read).collect()
}

fn unpacked(world: &SourceFixture, bundle: &Bundle) -> PathBuf {
    world.directory().join("blobs").join(bundle.digest.hex()).join("bundle")
}

fn write(root: &Path, path: &str, content: &[u8], is_executable: bool) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(if is_executable { 0o755 } else { 0o644 })).unwrap();
}

/// Writes the index and the bundle of a module.
fn write_module(root: &Path, says: &str) {
    let meta = "id: id-web\nname: web\nversion: 1.0.0\ndescription: A test.\ndisplayName: Test\n";
    write(root, "stable/index.yaml", b"entries: {web: [{name: web, version: 1.0.0}]}\n", false);
    write(root, "stable/web-1.0.0/meta.yaml", meta.as_bytes(), false);
    write(root, "stable/web-1.0.0/hooks/run.sh", format!("#!/bin/sh\n# {says}\n").as_bytes(), true);
}

fn commit(work: &Path) -> String {
    git(work, &["add", "-A"]);
    git(work, &["commit", "-q", "-m", "a change"]);
    git(work, &["rev-parse", "HEAD"])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs git, nginx and fcgiwrap; .ci/run asks for it"]
async fn a21_references_of_all_kinds_lead_to_what_git_clone_has() {
    let peer = GitServer::new().await;
    let work = peer.repository("addons.git");
    let mut commits = BTreeMap::new();
    for says in ["one", "two", "three", "four"] {
        write_module(&work, says);
        commits.insert(says, commit(&work));
        match says {
            "one" => git(&work, &["tag", "light"]),
            "two" => git(&work, &["tag", "-a", "annotated", "-m", "a text"]),
            "three" => git(&work, &["branch", "team/x"]),
            _ => String::new(),
        };
    }
    git(&work, &["push", "-q", "--all", "origin"]);
    git(&work, &["push", "-q", "--tags", "origin"]);
    let world = peer.world().await;
    for (options, says) in [
        (String::new(), "four"),
        ("?ref=main".to_owned(), "four"),
        ("?ref=light".to_owned(), "one"),
        ("?ref=annotated&depth=2".to_owned(), "two"),
        ("?ref=team/x".to_owned(), "three"),
        (format!("?ref={}", commits["two"]), "two"),
        (format!("?ref={}&depth=3", commits["four"]), "four"),
    ] {
        let of = spec(&[format!("git::{}//stable/index.yaml{options}", peer.url("addons.git"))]);
        let found = bundle(&world.sources().fetch(&key(), &of).await.unwrap());
        let hook = fs::read_to_string(unpacked(&world, &found).join("hooks/run.sh")).unwrap();
        assert_eq!(hook, format!("#!/bin/sh\n# {says}\n"), "{options}");
    }
    for (reference, name) in [("main", "a"), ("light", "b"), ("annotated", "c"), ("team/x", "d")] {
        let (clone, _) = peer.clone("addons.git", reference, name);
        let of = spec(&[format!("git::{}//stable/index.yaml?ref={reference}", peer.url("addons.git"))]);
        let found = bundle(&world.sources().fetch(&key(), &of).await.unwrap());
        assert_eq!(tree(&unpacked(&world, &found)), tree(&clone.join("stable/web-1.0.0")), "{reference}");
    }
    for (url, says) in [
        (peer.url("none.git"), "answered 404"),
        (
            peer.url("addons.git").replace("hunter2", "wrong"),
            "answered 401 Unauthorized: it wants another user",
        ),
        (
            peer.url("addons.git").replace("joe:hunter2@", ""),
            "answered 401 Unauthorized: it wants another user",
        ),
    ] {
        let of = spec(&[format!("git::{url}//stable/index.yaml")]);
        let (_, message) = repository_problem(&world.sources().fetch(&key(), &of).await.unwrap());
        assert!(message.contains(says) && !message.contains("wrong"), "{message}");
    }
    let of = spec(&[format!("git::{}//stable/index.yaml?ref=none", peer.url("addons.git"))]);
    let (_, message) = repository_problem(&world.sources().fetch(&key(), &of).await.unwrap());
    assert!(message.contains("no branch or tag \"none\""), "{message}");
    let nobody = "0123456789012345678901234567890123456789";
    let of = spec(&[format!("git::{}//stable/index.yaml?ref={nobody}", peer.url("addons.git"))]);
    let (_, message) = repository_problem(&world.sources().fetch(&key(), &of).await.unwrap());
    assert!(message.contains("the server says: upload-pack: not our ref"), "{message}");
}

/// Fills a directory with files that are alike and files that are not, links among them.
fn fill(root: &Path, random: &mut StdRng) {
    let mut names = Vec::new();
    let text: String = (0..2_000).fold(String::new(), |mut text, number| {
        writeln!(text, "line {number} {}", number * 7919).unwrap();
        text
    });
    for number in 0..random.random_range(5..60) {
        let depth = random.random_range(0..4);
        let parts: Vec<String> = (0..depth).map(|_| format!("d{}/", random.random_range(0..4))).collect();
        let directory = parts.concat();
        let name = format!("{directory}{}{number}", ["a", "b.c", "ü ", "-"][random.random_range(0..4)]);
        let content = match random.random_range(0..4) {
            0 => Vec::new(),
            1 => (0..random.random_range(1..5_000)).map(|_| random.random()).collect(),
            _ => {
                // Alike, so that packs have deltas of them.
                let at = random.random_range(0..text.len());
                format!("{}{number}{}", &text[..at], &text[at..]).into_bytes()
            }
        };
        write(root, &name, &content, random.random_bool(0.3));
        names.push(name);
    }
    for number in 0..random.random_range(0..4) {
        let target = &names[random.random_range(0..names.len())];
        symlink(target, root.join(format!("link{number}"))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs git, nginx and fcgiwrap; .ci/run asks for it"]
async fn trees_of_random_repositories_equal_those_of_git_clone() {
    let peer = GitServer::new().await;
    let world = peer.world().await;
    for seed in 0..20 {
        let mut random = StdRng::seed_from_u64(seed);
        let name = format!("random-{seed}.git");
        let work = peer.repository(&name);
        for _ in 0..random.random_range(1..4) {
            write_module(&work, &random.random::<u32>().to_string());
            let bundle = work.join("stable/web-1.0.0");
            fs::remove_dir_all(bundle.join("files")).ok();
            fill(&bundle.join("files"), &mut random);
            commit(&work);
        }
        if random.random_bool(0.5) {
            git(&work, &["gc", "-q"]);
        }
        git(&work, &["push", "-q", "origin", "main"]);
        if random.random_bool(0.5) {
            git(
                &peer.nginx.dir.path().join("repositories").join(&name),
                &["repack", "-q", "-a", "-d", "-f", "--depth=20"],
            );
        }
        let of = spec(&[format!("git::{}//stable/index.yaml", peer.url(&name))]);
        let found = bundle(&world.sources().fetch(&key(), &of).await.unwrap());
        let (clone, _) = peer.clone(&name, "main", &format!("clone-{seed}"));
        assert_eq!(tree(&unpacked(&world, &found)), tree(&clone.join("stable/web-1.0.0")), "seed {seed}");
        // What an author packs is what the operator makes of the directory.
        let packed =
            addon_operator::source::pack(&clone.join("stable/web-1.0.0"), &clone.join("packed")).unwrap();
        assert_eq!(packed.digest.to_string(), found.digest.to_string(), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs git, nginx and fcgiwrap; .ci/run asks for it"]
async fn a_history_of_10000_commits_costs_nothing() {
    let peer = GitServer::new().await;
    let world = peer.world().await;
    let work = peer.repository("long.git");
    write_module(&work, "the first");
    for number in 0..400_u32 {
        let mut random = StdRng::seed_from_u64(number.into());
        let lines: Vec<String> =
            (0..400).map(|_| format!("{:x}\n", random.random::<u64>() >> (number % 40))).collect();
        let content = lines.concat();
        write(&work, &format!("other/{}/{number}.txt", number % 20), content.as_bytes(), false);
    }
    commit(&work);
    let mut history = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(&work)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = history.stdin.take().unwrap();
    for number in 0..10_000 {
        let text = format!("text {number}");
        let from = if number == 0 { "from refs/heads/main^0\n" } else { "" };
        write!(
            input,
            "commit refs/heads/main\ncommitter A <a@example.com> {number} +0000\ndata 1\nx\n{from}\
             M 100644 inline stable/changes.txt\ndata {}\n{text}\n",
            text.len()
        )
        .unwrap();
    }
    drop(input);
    assert!(history.wait().unwrap().success());
    git(&work, &["push", "-q", "origin", "main"]);
    let of = spec(&[format!("git::{}//stable/index.yaml", peer.url("long.git"))]);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..7 {
        let sources = world.sources_with(|options| options.directory.push(round.to_string()));
        let begun = Instant::now();
        bundle(&sources.fetch(&key(), &of).await.unwrap());
        ours.push(begun.elapsed());
        theirs.push(peer.clone("long.git", "main", &format!("clone-{round}")).1);
    }
    ours.sort_unstable();
    theirs.sort_unstable();
    println!("fetch {:?}, git clone --depth 1 {:?}", ours[3], theirs[3]);
    // Twenty times the floor of what is measured elsewhere: the history was not fetched.
    assert!(ours[3] < theirs[3] * 20, "{ours:?} {theirs:?}");
}
