//! Archives that nobody should unpack: each is refused with a plain line, nothing is written outside, the rest goes on.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::repository::{Packed, Reply, Repository, index, module};
use crate::support::source::{SourceFixture, addons, bundle, key, problem, spec};

const META: &[u8] = b"id: i\nname: bad\nversion: 1.0.0\ndescription: d\ndisplayName: D\n";

/// Returns an archive with `meta.yaml` and what `add` adds.
fn packed(add: impl FnOnce(&mut Packed)) -> Vec<u8> {
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, META);
    add(&mut packed);
    packed.finish()
}

/// Returns what unpacks to these bytes.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Returns an archive without its checksum and its length.
fn without_trailer(packed: &[u8]) -> Vec<u8> {
    packed[..packed.len() - 8].to_vec()
}

/// Returns an archive in which the byte at this place from its end is another one.
fn changed(mut packed: Vec<u8>, from_end: usize) -> Vec<u8> {
    let place = packed.len() - from_end;
    packed[place] ^= 1;
    packed
}

#[tokio::test]
async fn a25_archives_that_lead_elsewhere_are_refused_and_the_others_are_processed() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("is refused: names are relative", packed(|tar| tar.file("../x", 0o644, b"x"))),
        ("is refused: names are relative", packed(|tar| tar.file("/tmp/x", 0o644, b"x"))),
        ("is in the archive twice", packed(|tar| tar.file("meta.yaml", 0o644, b"x"))),
        (
            "does not lead to a file of the bundle",
            packed(|tar| tar.entry(b'2', "l", "/etc/passwd", 0o777, 0)),
        ),
        ("does not lead to a file of the bundle", packed(|tar| tar.entry(b'2', "l", "../../x", 0o777, 0))),
        (
            "lies below something that is no directory",
            packed(|tar| {
                tar.entry(b'2', "out", "..", 0o777, 0);
                tar.file("out/x", 0o644, b"x");
            }),
        ),
        ("is a hard link", packed(|tar| tar.entry(b'1', "l", "meta.yaml", 0o644, 0))),
        ("is no file, no directory", packed(|tar| tar.entry(b'3', "dev", "", 0o644, 0))),
        ("is no file, no directory", packed(|tar| tar.entry(b'6', "pipe", "", 0o644, 0))),
        ("has the setuid or setgid bit", packed(|tar| tar.file("run", 0o4755, b"x"))),
        (
            "a name that is too long",
            packed(|tar| {
                tar.entry(b'L', "././@LongLink", "", 0o644, 1 << 20);
                tar.bytes(&vec![b'a'; 1 << 20]);
            }),
        ),
        (
            "a size of its own",
            packed(|tar| {
                tar.entry(b'x', "PaxHeader", "", 0o644, 12);
                tar.bytes(b"12 size=999\n");
            }),
        ),
        ("can't be read as .tar.gz", b"no archive".to_vec()),
        ("can't be read as .tar.gz", packed(|_| {})[..40].to_vec()),
        // The checksum and the length behind it.
        ("can't be read as .tar.gz", without_trailer(&packed(|_| {}))),
        ("can't be read as .tar.gz", changed(packed(|_| {}), 8)),
        ("can't be read as .tar.gz", changed(packed(|_| {}), 1)),
        // A bomb behind the end of the archive.
        ("longer than 83 MiB when it is unpacked", [packed(|_| {}), gzip(&vec![0; 84 << 20])].concat()),
        ("meta.yaml", Packed::new().finish()),
        // What module.yaml may not say would fail at the head of `main` for ever.
        (
            r#"module.yaml: there is no key "nmespace"; did you mean namespace?"#,
            packed(|tar| tar.file("module.yaml", 0o644, b"nmespace: web")),
        ),
        (
            "module.yaml: namespace: should be the name of a namespace",
            packed(|tar| tar.file("module.yaml", 0o644, b"namespace: a/b")),
        ),
    ];
    for (says, packed) in cases {
        let bundles = [("bad", "1.0.0", packed), ("good", "1.0.0", module("good", "1.0.0", "hello"))];
        repository.publish(&bundles);
        let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
        let (reason, message) = problem(&fetched);
        assert_eq!(reason.as_str(), "LoadingError", "{message}");
        assert!(message.contains(says), "{says}: {message}");
        addons(&fetched)[1].outcome.as_ref().unwrap();
    }
    let around: Vec<_> =
        std::fs::read_dir(world.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(around.len(), 2, "the certificate and the store directory: {around:?}");
    assert_eq!(world.count("blobs"), 1);
    assert_eq!(world.count("staging"), 0);
}

#[tokio::test]
async fn all_names_that_are_refused_are_told_at_once() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let bad = |count: usize| {
        packed(|tar| {
            tar.file("../x", 0o644, b"x");
            tar.entry(b'1', "hard", "meta.yaml", 0o644, 0);
            tar.entry(b'2', "stray", "nowhere", 0o777, 0);
            tar.file("run", 0o4755, b"x");
            tar.entry(b'2', "to-run", "run", 0o777, 0);
            (0..count).for_each(|number| tar.file(&format!("/{number}"), 0o644, b""));
        })
    };
    repository.publish(&[("bad", "1.0.0", bad(0)), ("worse", "1.0.0", bad(100))]);
    let fetched = world.sources().fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let (_, message) = problem(&fetched);
    for part in
        ["the name \"../x\" is refused", "\"hard\" is a hard link", "the link \"stray\" does not lead"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    // A link to what is refused is no problem of its own.
    assert_eq!((message.matches("\"run\"").count(), message.contains("to-run")), (1, false), "{message}");
    let problem = addons(&fetched)[1].outcome.clone().unwrap_err();
    assert!(problem.message.len() < 4096, "{}", problem.message);
    assert_eq!((world.count("blobs"), world.count("staging")), (0, 0));
}

#[tokio::test]
async fn a25_a_bomb_ends_when_it_is_as_long_as_a_bundle_may_be() {
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    // An entry that says so, many that say so together, and bytes that nobody announced.
    let honest = packed(|tar| tar.entry(b'0', "zeros", "", 0o644, 10 << 30));
    let many = packed(|tar| {
        for number in 0..70 {
            tar.file(&format!("zeros-{number}"), 0o644, &vec![0; 1 << 20]);
        }
    });
    let names = packed(|tar| {
        for number in 0..5_001 {
            tar.file(&format!("f-{number}"), 0o644, b"");
        }
    });
    let comments = packed(|tar| {
        for _ in 0..1_600 {
            tar.entry(b'g', "pax_global_header", "", 0o644, 64 << 10);
            tar.bytes(&vec![b' '; 64 << 10]);
        }
    });
    for (says, packed) in [
        ("more than 64 MiB together", honest),
        ("more than 64 MiB together", many),
        ("more than 5000 files", names),
        ("longer than 83 MiB when it is unpacked", comments),
    ] {
        assert!(packed.len() < 8 << 20);
        repository.publish(&[("bad", "1.0.0", packed)]);
        let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
        let (reason, message) = problem(&fetched);
        assert_eq!(reason.as_str(), "LoadingError");
        assert!(message.contains(says), "{says}: {message}");
    }
    // What is too long as it is packed is not taken to its end.
    repository.put("/index.yaml", Reply::File(index(&[("bad", "1.0.0", Vec::new())], false)));
    repository.put("/bad-1.0.0.tgz", Reply::Zeros(9 << 20));
    let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
    let (reason, message) = problem(&fetched);
    assert_eq!(reason.as_str(), "FetchingError");
    assert!(message.contains("is longer than 8 MiB"), "{message}");
    assert_eq!((world.count("blobs"), world.count("staging")), (0, 0));
}

#[tokio::test]
async fn an_archive_may_have_a_directory_around_everything_or_none() {
    use std::os::unix::fs::PermissionsExt as _;
    let repository = Repository::tls(&[]).await;
    let world = SourceFixture::new(&repository, &[]).await;
    let sources = world.sources();
    for top in ["", "./", "bad-1.0.0/"] {
        let mut tar = Packed::new();
        tar.file(&format!("{top}hooks/run.sh"), 0o775, b"#!/bin/sh\necho 'configVersion: v1'\n");
        tar.file(&format!("{top}meta.yaml"), 0o666, META);
        tar.entry(b'2', &format!("{top}link"), "meta.yaml", 0o777, 0);
        repository.publish(&[("bad", "1.0.0", tar.finish())]);
        let fetched = sources.fetch(&key(), &spec(&[repository.url("/index.yaml")])).await.unwrap();
        let blob = world.directory().join("blobs").join(bundle(&fetched).digest.hex()).join("bundle");
        let mode = |name: &str| std::fs::metadata(blob.join(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("hooks/run.sh"), mode("meta.yaml")), (0o755, 0o644));
        assert_eq!(std::fs::read(blob.join("link")).unwrap(), META);
        assert_eq!(std::fs::read_dir(&blob).unwrap().count(), 3);
    }
}
