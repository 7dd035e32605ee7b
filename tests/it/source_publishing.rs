//! `source lint|pack|index`: what authors do, and that an operator and `tar` read what they get.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::program::Workspace;
use crate::support::repository::{Packed, Reply, Repository};
use crate::support::source::{SourceFixture, addons, key, spec};

const HOOK: &str = "#!/bin/sh\nexit 1\n";

fn meta(name: &str, version: &str) -> String {
    format!(
        "id: id-of-{name}\nname: {name}\nversion: {version}\ndescription: About {name}.\ndisplayName: The {name}\n"
    )
}

/// Writes a bundle below the directory `at`.
fn bundle(workspace: &Workspace, at: &str, name: &str, version: &str) {
    workspace.write(&format!("{at}/hooks/run.sh"), HOOK);
    workspace.write(&format!("{at}/meta.yaml"), &meta(name, version));
    workspace.write(&format!("{at}/docs/README"), "read me");
    symlink("docs/README", workspace.path().join(at).join("README")).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn tar(workspace: &Workspace, arguments: &[&str]) -> String {
    let output = Command::new("tar").args(arguments).current_dir(workspace.path()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_same_files_are_packed_to_the_same_bytes() {
    let workspace = Workspace::new();
    bundle(&workspace, "one", "web", "1.0.0");
    bundle(&workspace, "two", "web", "1.0.0");
    let two = workspace.path().join("two");
    // What differs from one checkout to the next: times, the umask, the order of creation, the history.
    fs::remove_file(two.join("meta.yaml")).unwrap();
    workspace.write("two/meta.yaml", &meta("web", "1.0.0"));
    workspace.write("two/.git/HEAD", "ref: refs/heads/main");
    fs::File::open(two.join("docs/README")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    set_mode(&two.join("meta.yaml"), 0o600);
    set_mode(&two.join("hooks/run.sh"), 0o700);
    set_mode(&two.join("docs"), 0o700);
    let (code, first) = workspace.ask(&["source", "pack", "one", "-d", "out/one"]);
    assert_eq!(code, 0, "{first}");
    let (code, second) = workspace.ask(&["source", "pack", "two", "-d", "out/two"]);
    assert_eq!(code, 0, "{second}");
    let packed = |from: &str| fs::read(workspace.path().join(from).join("web-1.0.0.tgz")).unwrap();
    assert_eq!(packed("out/one"), packed("out/two"));
    let digest = ::source::digest::Digest::of(&packed("out/one"));
    assert_eq!(first, format!("out/one/web-1.0.0.tgz {digest}\n"));
    assert_eq!(second, format!("out/two/web-1.0.0.tgz {digest}\n"));
}

#[test]
fn tar_reads_what_was_packed() {
    let workspace = Workspace::new();
    bundle(&workspace, "web", "web", "1.0.0");
    let deep = format!("web/files/{}/{}", "d".repeat(120), "f".repeat(120));
    workspace.write(&deep, "deep");
    set_mode(&workspace.path().join("web/hooks/run.sh"), 0o775);
    set_mode(&workspace.path().join("web/meta.yaml"), 0o664);
    let (code, text) = workspace.ask(&["source", "pack", "web", "-d", "out"]);
    assert_eq!(code, 0, "{text}");
    let listed = tar(&workspace, &["--numeric-owner", "--utc", "-tvzf", "out/web-1.0.0.tgz"]);
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let shown: Vec<String> = rows.iter().map(|row| format!("{} {}", row[0], row[5])).collect();
    let (directory, file) = (format!("files/{}/", "d".repeat(120)), "f".repeat(120));
    assert_eq!(
        shown,
        [
            "lrwxrwxrwx README".to_owned(),
            "drwxr-xr-x docs/".to_owned(),
            "-rw-r--r-- docs/README".to_owned(),
            "drwxr-xr-x files/".to_owned(),
            format!("drwxr-xr-x {directory}"),
            format!("-rw-r--r-- {directory}{file}"),
            "drwxr-xr-x hooks/".to_owned(),
            "-rwxr-xr-x hooks/run.sh".to_owned(),
            "-rw-r--r-- meta.yaml".to_owned(),
        ]
    );
    for row in &rows {
        assert_eq!((row[1], row[3]), ("0/0", "1980-01-01"), "{listed}");
    }
    fs::create_dir(workspace.path().join("unpacked")).unwrap();
    tar(&workspace, &["-xzf", "out/web-1.0.0.tgz", "-C", "unpacked"]);
    let difference =
        Command::new("diff").args(["-r", "web", "unpacked"]).current_dir(workspace.path()).output().unwrap();
    assert!(difference.status.success(), "{difference:?}");
}

#[tokio::test]
async fn an_operator_takes_what_was_packed_and_indexed() {
    let workspace = Workspace::new();
    for (at, name, version) in [
        ("a", "web", "1.9.0"),
        ("b", "web", "1.10.0"),
        ("c", "web", "2.0.0-rc.1"),
        ("d", "db", "1.0.0+build.3"),
    ] {
        bundle(&workspace, at, name, version);
    }
    let (code, text) = workspace.ask(&["source", "pack", "a", "b", "c", "d", "-d", "repo"]);
    assert_eq!(code, 0, "{text}");
    // What was there is replaced.
    workspace.write("repo/index.yaml", "entries: {old: [{version: 1.0.0}]}\n");
    assert_eq!(workspace.ask(&["source", "index", "repo"]), (0, "repo/index.yaml: 4 bundles\n".to_owned()));
    let written = fs::read(workspace.path().join("repo/index.yaml")).unwrap();
    let index: Value = values::yaml::parse(std::str::from_utf8(&written).unwrap()).unwrap();
    let versions: Vec<&str> = index["entries"]["web"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["2.0.0-rc.1", "1.10.0", "1.9.0"]);
    let first = &index["entries"]["web"][1];
    assert_eq!(first["name"], "The web");
    assert_eq!(first["description"], "About web.");
    assert_eq!(first["id"], "id-of-web");
    assert_eq!(first["urls"], serde_json::json!(["web-1.10.0.tgz"]));
    let packed = fs::read(workspace.path().join("repo/web-1.10.0.tgz")).unwrap();
    assert_eq!(first["digest"], ::source::digest::Digest::of(&packed).to_string());
    let repository = Repository::tls(&[]).await;
    for entry in fs::read_dir(workspace.path().join("repo")).unwrap() {
        let entry = entry.unwrap();
        let path = format!("/{}", entry.file_name().to_str().unwrap());
        repository.put(&path, Reply::File(fs::read(entry.path()).unwrap()));
    }
    let world = SourceFixture::new(&repository, &[]).await;
    let fetched = world.sources().fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let taken: Vec<String> = addons(&fetched)
        .iter()
        .map(|addon| format!("{} {}", addon.name, addon.outcome.as_ref().unwrap().version))
        .collect();
    assert_eq!(taken, ["db 1.0.0+build.3", "web 1.9.0", "web 1.10.0", "web 2.0.0-rc.1"]);
    // Once more: the same bytes.
    workspace.ask(&["source", "index", "repo"]);
    assert_eq!(fs::read(workspace.path().join("repo/index.yaml")).unwrap(), written);
}

#[test]
fn a26_all_problems_of_all_bundles_are_told_at_once() {
    let workspace = Workspace::new();
    bundle(&workspace, "good", "web", "1.0.0");
    workspace.write("bad/meta.yaml", "id: x\nname: web\nversion: latest\n");
    workspace.write("bad/values.yaml", "other: {}\n");
    workspace.write("bad/hooks/run.sh", "no shebang");
    workspace.write("bad/module.yaml", "namespace: Web\n");
    symlink("/etc/passwd", workspace.path().join("bad/outside")).unwrap();
    symlink("../good/meta.yaml", workspace.path().join("bad/up")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, workspace.path().join("bad/pipe"), rustix::fs::Mode::RWXU).unwrap();
    workspace.write("bad/setuid", "x");
    set_mode(&workspace.path().join("bad/setuid"), 0o4755);
    fs::write(workspace.path().join("bomb.tgz"), {
        let mut packed = Packed::new();
        packed.file("meta.yaml", 0o644, meta("web", "1.0.0").as_bytes());
        packed.entry(b'0', "zeros", "", 0o644, 10 << 30);
        packed.finish()
    })
    .unwrap();
    workspace.write("html.tgz", "<html>");
    let (code, text) = workspace.ask(&["source", "lint", "bad", "good", "bomb.tgz", "html.tgz", "not-there"]);
    assert_eq!(code, 1, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    for (number, says) in [
        "bad/hooks/run.sh: the file is not executable",
        "bad/meta.yaml: description: the field is required",
        "bad/meta.yaml: displayName: the field is required",
        "bad/meta.yaml: version: ",
        "bad/module.yaml: namespace: should be the name of a namespace",
        "bad/outside: the link \"outside\" does not lead to a file of the bundle",
        "bad/pipe: \"pipe\" is no file, no directory and no symbolic link",
        "bad/setuid: \"setuid\" has the setuid or setgid bit",
        "bad/up: the link \"up\" does not lead to a file of the bundle",
        "bad/values.yaml: other: only web and webEnabled can be set here",
        "good: web 1.0.0, a module",
        "bomb.tgz: the archive: the files have more than 64 MiB together",
        "html.tgz: the archive can't be read as .tar.gz",
        "not-there: can't be read: No such file",
    ]
    .iter()
    .enumerate()
    {
        assert!(lines[number].starts_with(says), "{says}\n{text}");
    }
    assert_eq!(lines.len(), 14, "{text}");
    assert_eq!(workspace.ask(&["source", "lint", "good"]).0, 0);
}

#[test]
fn no_code_of_a_bundle_is_run_by_who_checks_packs_or_lists_it() {
    let workspace = Workspace::new();
    bundle(&workspace, "web", "web", "1.0.0");
    let ran = workspace.path().join("ran");
    let code = format!("#!/bin/sh\ntouch {}\necho 'configVersion: v1'\n", ran.display());
    for file in ["web/hooks/run.sh", "web/enabled"] {
        workspace.write(file, &code);
        set_mode(&workspace.path().join(file), 0o755);
    }
    for arguments in [
        &["source", "lint", "web"][..],
        &["source", "pack", "web", "-d", "repo"],
        &["source", "lint", "repo/web-1.0.0.tgz"],
        &["source", "index", "repo"],
    ] {
        let (code, text) = workspace.ask(arguments);
        assert_eq!(code, 0, "{text}");
        assert!(!ran.exists(), "{arguments:?} ran code of the bundle");
    }
    // It would have been seen.
    assert!(Command::new(workspace.path().join("web/hooks/run.sh")).status().unwrap().success());
    assert!(ran.exists());
}

#[test]
fn nothing_is_written_about_what_is_wrong() {
    let workspace = Workspace::new();
    bundle(&workspace, "good", "web", "1.0.0");
    bundle(&workspace, "bad", "Web", "1.0.0");
    let (code, text) = workspace.ask(&["source", "pack", "bad", "good", "-d", "repo"]);
    assert_eq!(code, 1, "{text}");
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(workspace.path().join("repo"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(listed(), ["web-1.0.0.tgz"]);
    fs::copy(workspace.path().join("repo/web-1.0.0.tgz"), workspace.path().join("repo/web.tgz")).unwrap();
    workspace.write("repo/broken-1.0.0.tgz", "x");
    let (code, text) = workspace.ask(&["source", "index", "repo"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("repo/web.tgz: its name has to be web-1.0.0.tgz, as meta.yaml says"), "{text}");
    assert!(text.contains("repo/broken-1.0.0.tgz: the archive can't be read"), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_eq!(listed(), ["broken-1.0.0.tgz", "web-1.0.0.tgz", "web.tgz"]);
    // Of two that are one version the second takes the place of nothing.
    bundle(&workspace, "twin", "web", "1.0.0");
    workspace.write("twin/more.txt", "x");
    let before = fs::read(workspace.path().join("repo/web-1.0.0.tgz")).unwrap();
    let (code, text) = workspace.ask(&["source", "pack", "good", "twin", "-d", "repo"]);
    assert_eq!((code, text.matches("sha256:").count()), (1, 1), "{text}");
    assert!(text.contains("twin: it is web 1.0.0, and so is good: give one of them"), "{text}");
    assert_eq!(fs::read(workspace.path().join("repo/web-1.0.0.tgz")).unwrap(), before);
    let (code, text) = workspace.ask(&["source", "pack", "good", "-d", "good/out"]);
    assert_eq!((code, text.contains("it is inside the bundle")), (1, true), "{text}");
    fs::create_dir(workspace.path().join("empty")).unwrap();
    let (code, text) = workspace.ask(&["source", "index", "empty"]);
    assert_eq!((code, text.contains("there is no bundle")), (1, true), "{text}");
    for usage in [&["source"][..], &["source", "lint"], &["source", "pack", "good", "--what"]] {
        assert_eq!(workspace.ask(usage).0, 2, "{usage:?}");
    }
}

#[test]
fn what_is_too_large_is_told_before_it_is_published() {
    let workspace = Workspace::new();
    bundle(&workspace, "web", "web", "1.0.0");
    let large = workspace.path().join("web/large");
    fs::File::create(&large).unwrap().set_len(65 << 20).unwrap();
    let (code, text) = workspace.ask(&["source", "lint", "web"]);
    assert_eq!(code, 1);
    assert_eq!(text, "web: the files have more than 64 MiB together: remove what is not needed\n");
    // Bytes that can't be made smaller.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    fs::write(&large, std::iter::repeat_with(&mut next).take(9 << 20).collect::<Vec<u8>>()).unwrap();
    let (code, text) = workspace.ask(&["source", "lint", "web"]);
    assert_eq!(
        (code, text.as_str()),
        (1, "web: the archive is longer than 8 MiB: remove what is not needed\n")
    );
    fs::remove_file(&large).unwrap();
    fs::create_dir(&large).unwrap();
    for number in 0..5_000 {
        fs::write(large.join(number.to_string()), "").unwrap();
    }
    let (code, text) = workspace.ask(&["source", "lint", "web"]);
    assert_eq!(
        (code, text.as_str()),
        (1, "web: there are more than 5000 files and directories: remove what is not needed\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_to_a_registry_is_what_an_operator_fetches() {
    let workspace = Workspace::new();
    bundle(&workspace, "one", "web", "1.0.0+3");
    let (_, packed) = workspace.ask(&["source", "pack", "one"]);
    let repository = Repository::tls(&[]).await;
    repository.take_pushes();
    let ca = repository.write_authority(workspace.path()).display().to_string();
    let to = repository.url("/addons").replace("https://", "oci://");
    let push = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let all: Vec<&str> = arguments.iter().map(String::as_str).collect();
        tokio::task::block_in_place(|| {
            workspace.ask(&[["source", "push"].as_slice(), all.as_slice()].concat())
        })
    };
    let (code, first) = push(&["one", &to, "--ca", &ca]);
    assert_eq!(code, 0, "{first}");
    let digest = packed.trim().rsplit(' ').next().unwrap();
    let place = format!("{to}/web:1.0.0_3 {digest} sha256:");
    assert!(first.starts_with(&place) && first.lines().count() == 1, "{first}");
    // The archive that was packed gives the same, also where the path has the name of the bundle.
    let (code, second) = push(&["web-1.0.0+3.tgz", &format!("{to}/web"), "--ca", &ca]);
    assert_eq!((code, second), (0, first));
    let world = SourceFixture::new(&repository, &[]).await;
    let fetched = world.sources().fetch(&key(), &spec(&[format!("{to}/web")])).await.unwrap();
    let found = addons(&fetched)[0].outcome.clone().unwrap();
    assert_eq!((found.version.as_str(), found.digest.as_str()), ("1.0.0+3", digest));
    workspace.write("bad/meta.yaml", "name: bad\n");
    for (arguments, says) in [
        (vec!["bad", &to, "--ca", &ca], "bad/meta.yaml: "),
        (vec!["one", "https://a.example/x"], "is no place in a registry"),
        (vec!["one", &to, "--ca", "gone.pem"], "can't read gone.pem"),
        (vec!["one", &to], "no TLS with localhost"),
    ] {
        let (code, said) = push(&arguments);
        assert_ne!(code, 0, "{said}");
        assert!(said.contains(says), "{says}: {said}");
    }
    // Who may not is told what to do.
    let challenge = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
    let closed = Repository::tls(&[]).await;
    let ca = closed.write_authority(workspace.path()).display().to_string();
    bundle(&workspace, "two", "db", "1.0.0");
    let (_, packed) = workspace.ask(&["source", "pack", "two"]);
    let blob = packed.trim().rsplit(' ').next().unwrap();
    closed.put(&format!("/v2/db/blobs/{blob}"), Reply::Status(401, challenge));
    let (code, said) = push(&["two", &closed.url("").replace("https://", "oci://"), "--ca", &ca]);
    assert_ne!(code, 0);
    assert!(said.contains("give --username and --password-stdin, or --registry-config"), "{said}");
}
