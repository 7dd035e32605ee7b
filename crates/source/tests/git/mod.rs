//! What git servers send: packs that git itself made, and packs that nobody should send.
//!
//! `ofs.pack` and `ref.pack` were made by git 2.39 (`git pack-objects`) of one commit and a tag; their deltas name their bases
//! by a distance and by a name.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod packs;
mod protocol;

use std::io::BufReader;

use packs::{PackBuilder, commit, copy, deflated, delta, id, tree};
use source::archive_path::{EntryError, MAX_DEPTH, MAX_ENTRIES};
use source::git::pack::{MAX_OBJECT_BYTES, MAX_OBJECTS, MAX_UNPACKED_BYTES};
use source::git::tree::{Below, Found, TreeError, find, root, walk};
use source::git::{Kind, ObjectId, Objects, PackError};

const RECORDED: [&[u8]; 2] = [include_bytes!("ofs.pack"), include_bytes!("ref.pack")];
const COMMIT: &str = "c23b3f065b396f21f0d60ba3b2a23ed6f861d5ca";
const TAG: &str = "7ab6f638f95e09968e72a4c01b980377feb12ad1";

type Unpacked = Objects<Vec<u8>>;

fn unpack(pack: &[u8]) -> Result<Unpacked, PackError> {
    Objects::unpack(pack, Vec::new())
}

fn named(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).unwrap()
}

/// Returns a line for everything below a directory.
fn listed(objects: &Unpacked, tree: ObjectId) -> Result<Vec<String>, TreeError> {
    let mut lines = Vec::new();
    walk(objects, tree, &mut |path, below| {
        lines.push(match below {
            Below::Directory => format!("{path}/"),
            Below::File { object, is_executable } => {
                let text = String::from_utf8(objects.read(object)?).unwrap();
                format!("{path}{} {text:?}", if is_executable { " +x" } else { "" })
            }
            Below::Link { target } => format!("{path} -> {target}"),
            Below::Submodule => format!("{path} @"),
        });
        Ok::<_, TreeError>(())
    })?;
    Ok(lines)
}

/// Returns what a pack is refused with.
fn refused(pack: &PackBuilder) -> String {
    unpack(&pack.finish()).unwrap_err().to_string()
}

#[test]
fn packs_of_git_are_read() {
    for pack in RECORDED {
        let objects = unpack(pack).unwrap();
        assert_eq!(objects.count(), 14);
        let tree = root(&objects, named(COMMIT)).unwrap();
        assert_eq!(root(&objects, named(TAG)).unwrap(), tree);
        let Found::File(index) = find(&objects, tree, "addons/index.yaml").unwrap() else { panic!() };
        assert_eq!(objects.read(index).unwrap(), b"entries: {}\n");
        for (path, lines) in [("addons/numbers", 1..=400), ("addons/numbers2", 1..=400)] {
            let Found::File(file) = find(&objects, tree, path).unwrap() else { panic!() };
            let mut text: Vec<String> = lines.map(|number| format!("{number}\n")).collect();
            if path == "addons/numbers2" {
                text.insert(200, "x\n".to_owned());
            }
            assert_eq!(objects.read(file).unwrap(), text.concat().into_bytes(), "{path}");
        }
        let Found::Directory(bundle) = find(&objects, tree, "addons/web-1.0.0").unwrap() else { panic!() };
        assert_eq!(
            listed(&objects, bundle).unwrap(),
            [
                "a/",
                "a/x \"x\"",
                "a.b \"a\"",
                "hooks/",
                "hooks/link -> run.sh",
                "hooks/run.sh +x \"#!/bin/sh\\n\""
            ]
        );
    }
}

#[test]
fn a_pack_that_was_changed_or_cut_anywhere_is_refused() {
    for pack in RECORDED {
        for at in 0..pack.len() {
            unpack(&pack[..at]).unwrap_err();
            for bit in [0x01, 0x80] {
                let mut changed = pack.to_vec();
                changed[at] ^= bit;
                unpack(&changed).unwrap_err();
            }
        }
        let longer = [pack, b"x"].concat();
        assert!(unpack(&longer).unwrap_err().to_string().contains("something follows it"));
    }
}

#[test]
fn a_damaged_pack_is_refused_with_the_same_words_however_it_comes() {
    let recorded = RECORDED.iter().flat_map(|pack| {
        let changed = |(at, bit): (usize, u8)| {
            let mut bytes = pack.to_vec();
            bytes[at] ^= bit;
            bytes
        };
        (0..pack.len()).flat_map(|at| [(at, 0x01), (at, 0x80)]).map(changed)
    });
    // Three bytes where two are said to be, and a block behind them that nobody can read.
    let mut long = PackBuilder::default();
    long.raw(3, 2, &[], b"\x78\x01\x00\x03\x00\xfc\xffone\x07");
    for pack in recorded.chain([long.finish()]) {
        let said = unpack(&pack).unwrap_err().to_string();
        for count in [1, 7, 100] {
            let parts = BufReader::with_capacity(count, pack.as_slice());
            assert_eq!(Objects::unpack(parts, Vec::new()).unwrap_err().to_string(), said, "{count} at once");
        }
    }
}

#[test]
fn a_delta_bomb_ends_where_the_limit_is() {
    // Each object is sixteen times the one before it. The pack has a few hundred bytes.
    let mut pack = PackBuilder::default();
    let (mut size, mut at) = (1_usize << 20, pack.at());
    pack.object(Kind::Blob, &vec![0; size]);
    for _ in 0..3 {
        let (distance, larger) = (pack.at() - at, size * 16);
        at = pack.at();
        pack.delta_at(distance, &delta(size as u64, larger as u64, &vec![copy(0, 0x10_0000); larger >> 20]));
        size = larger;
    }
    assert!(refused(&pack).contains("more than 64 MiB"), "{}", refused(&pack));
    // Many that are each as large as they may be.
    let mut pack = PackBuilder::default();
    let base = pack.object(Kind::Blob, &vec![0; 1 << 20]);
    for _ in 0..=MAX_UNPACKED_BYTES / MAX_OBJECT_BYTES {
        pack.delta_of(base, &delta(1 << 20, MAX_OBJECT_BYTES, &vec![copy(0, 0x10_0000); 64]));
    }
    assert!(refused(&pack).contains("more than 256 MiB together"), "{}", refused(&pack));
}

#[test]
fn a_long_chain_costs_no_more_than_a_short_one() {
    let mut pack = PackBuilder::default();
    let mut text = vec![b'a'; 1000];
    let mut at = pack.at();
    pack.object(Kind::Blob, &text);
    for number in 0..20_000_u32 {
        let distance = pack.at() - at;
        at = pack.at();
        pack.delta_at(distance, &delta(1000, 1000, &[copy(0, 996), vec![4], number.to_be_bytes().to_vec()]));
        text[996..].copy_from_slice(&number.to_be_bytes());
    }
    let objects = unpack(&pack.finish()).unwrap();
    assert_eq!(objects.count(), 20_001);
    let last = objects.find(id(Kind::Blob, &text)).unwrap();
    assert_eq!(objects.read(last).unwrap(), text);
}

#[test]
fn bases_may_come_behind_their_deltas() {
    let (first, second) = (b"one two".to_vec(), b"one two three".to_vec());
    let mut pack = PackBuilder::default();
    let at = pack.at();
    let more = [copy(0, 7), [vec![6], b" three".to_vec()].concat()];
    pack.delta_of(id(Kind::Blob, &first), &delta(7, 13, &more));
    let distance = pack.at() - at;
    pack.delta_at(distance, &delta(13, 3, &[copy(0, 3)]));
    pack.object(Kind::Blob, &first);
    let objects = unpack(&pack.finish()).unwrap();
    for text in [first, second, b"one".to_vec()] {
        assert_eq!(objects.read(objects.find(id(Kind::Blob, &text)).unwrap()).unwrap(), text);
    }
}

#[test]
fn deltas_without_a_base_and_in_a_circle_are_refused() {
    let (one, two) = (id(Kind::Blob, b"one"), id(Kind::Blob, b"two"));
    let mut circle = PackBuilder::default();
    circle.delta_of(two, &delta(3, 3, &[copy(0, 3)]));
    circle.delta_of(one, &delta(3, 3, &[copy(0, 3)]));
    let mut none = PackBuilder::default();
    none.delta_of(one, &delta(3, 3, &[copy(0, 3)]));
    let mut itself = PackBuilder::default();
    itself.delta_at(0, &delta(3, 3, &[copy(0, 3)]));
    let mut before = PackBuilder::default();
    before.delta_at(100, &delta(3, 3, &[copy(0, 3)]));
    let mut between = PackBuilder::default();
    between.object(Kind::Blob, b"one");
    between.delta_at(1, &delta(3, 3, &[copy(0, 3)]));
    for pack in [circle, none, itself, before, between] {
        assert!(refused(&pack).contains("a delta has no base"), "{}", refused(&pack));
    }
}

#[test]
fn instructions_that_lead_outside_are_refused() {
    for bad in [
        delta(4, 3, &[copy(0, 3)]),
        delta(3, 4, &[copy(0, 3)]),
        delta(3, 2, &[copy(0, 3)]),
        delta(3, 4, &[copy(0, 4)]),
        delta(3, 3, &[copy(1, 3)]),
        delta(3, 3, &[copy(u32::MAX, 3)]),
        delta(3, 3, &[vec![3, b'a']]),
        delta(3, 3, &[vec![0], copy(0, 3)]),
        vec![0xff; 20],
        vec![3, 3, 0xff],
        vec![3],
        Vec::new(),
    ] {
        let mut pack = PackBuilder::default();
        let base = pack.object(Kind::Blob, b"one");
        pack.delta_of(base, &bad);
        let said = refused(&pack);
        assert!(said.starts_with("the pack of the server is damaged"), "{said}");
    }
}

#[test]
fn counts_and_sizes_that_lie_are_refused_before_they_cost_anything() {
    let mut pack = PackBuilder::default();
    pack.object(Kind::Blob, b"one");
    let many = unpack(&pack.finish_with(u32::MAX)).unwrap_err().to_string();
    assert!(many.contains("more than 100000 files"), "{many}");
    let some = unpack(&pack.finish_with(MAX_OBJECTS)).unwrap_err().to_string();
    assert!(some.contains("damaged"), "{some}");
    for (code, size, says) in [
        (3, MAX_OBJECT_BYTES + 1, "more than 64 MiB"),
        (3, u64::MAX >> 4, "more than 64 MiB"),
        (3, 2, "can't be inflated to the size"),
        (3, 4, "can't be inflated to the size"),
        (0, 3, "a kind that nobody knows"),
        (5, 3, "a kind that nobody knows"),
    ] {
        let mut pack = PackBuilder::default();
        pack.raw(code, size, &[], &deflated(b"one"));
        assert!(refused(&pack).contains(says), "{code} {size}: {}", refused(&pack));
    }
    // More zeros than the size says.
    let mut pack = PackBuilder::default();
    pack.raw(3, 10, &[], &deflated(&vec![0; 30 << 20]));
    assert!(refused(&pack).contains("can't be inflated to the size"));
}

/// Returns the objects of a commit whose tree has these entries, and the tree.
fn commit_of(pack: &mut PackBuilder, entries: &[(&str, &str, ObjectId)]) -> (ObjectId, ObjectId) {
    let tree = pack.object(Kind::Tree, &tree(entries));
    (pack.object(Kind::Commit, &commit(tree)), tree)
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let long = "x".repeat(256);
    for (name, mode, says) in [
        ("..", "100644", "the name \"..\" is refused"),
        (".", "40000", "is refused"),
        ("", "100644", "is refused"),
        ("a/b", "100644", "is refused"),
        (&long, "100644", "is refused"),
        (".git", "40000", "a name that git keeps for itself"),
        (".GIT", "100644", "a name that git keeps for itself"),
        ("a", "100000", "is damaged"),
        ("a", "120777", "is damaged"),
    ] {
        let mut pack = PackBuilder::default();
        let file = pack.object(Kind::Blob, b"x");
        let (_, tree) = commit_of(&mut pack, &[(mode, name, file)]);
        let said = listed(&unpack(&pack.finish()).unwrap(), tree).unwrap_err().to_string();
        assert!(said.contains(says), "{name}: {said}");
    }
}

#[test]
fn trees_of_any_depth_and_width_end_where_the_limit_is() {
    // Ten levels with ten names each for the same directory: a hundred bytes a level, 10^10 paths.
    let mut pack = PackBuilder::default();
    let mut at = pack.object(Kind::Tree, &tree(&[]));
    let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    for _ in 0..10 {
        let entries: Vec<_> = names.iter().map(|name| ("40000", name.as_str(), at)).collect();
        at = pack.object(Kind::Tree, &tree(&entries));
    }
    let wide = listed(&unpack(&pack.finish()).unwrap(), at).unwrap_err();
    assert!(matches!(wide, TreeError::Entry(EntryError::Entries)), "{wide}");
    // Submodules count, too.
    let mut pack = PackBuilder::default();
    let names: Vec<String> = (0..=MAX_ENTRIES).map(|number| number.to_string()).collect();
    let entries: Vec<_> = names.iter().map(|name| ("160000", name.as_str(), at)).collect();
    let many = pack.object(Kind::Tree, &tree(&entries));
    let few = pack.object(Kind::Tree, &tree(&entries[1..]));
    let objects = unpack(&pack.finish()).unwrap();
    assert!(matches!(listed(&objects, many), Err(TreeError::Entry(EntryError::Entries))));
    assert_eq!(listed(&objects, few).unwrap().len(), MAX_ENTRIES);
    let mut pack = PackBuilder::default();
    let mut at = pack.object(Kind::Tree, &tree(&[]));
    for _ in 0..=MAX_DEPTH {
        at = pack.object(Kind::Tree, &tree(&[("40000", "d", at)]));
    }
    let deep = listed(&unpack(&pack.finish()).unwrap(), at).unwrap_err();
    assert!(matches!(deep, TreeError::Entry(EntryError::Name(_))), "{deep}");
}

#[test]
fn what_is_missing_or_something_else_is_named() {
    let gone = named(COMMIT);
    let mut pack = PackBuilder::default();
    let file = pack.object(Kind::Blob, b"x");
    let (commit, top) = commit_of(
        &mut pack,
        &[
            ("100644", "file", file),
            ("120000", "link", file),
            ("160000", "module", gone),
            ("100644", "none", gone),
            ("40000", "wrong", file),
        ],
    );
    let tag = pack.object(Kind::Tag, format!("object {commit}\ntype commit\n").as_bytes());
    let of_file = pack.object(Kind::Tag, format!("object {file}\ntype blob\n").as_bytes());
    let broken = pack.object(Kind::Commit, b"tree x\n");
    let objects = unpack(&pack.finish()).unwrap();
    assert_eq!(root(&objects, tag).unwrap(), top);
    for (id, says) in [
        (gone, "the server left out the object c23b3f"),
        (of_file, "names no commit"),
        (file, "names no commit"),
        (broken, "is damaged"),
    ] {
        let said = root(&objects, id).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
    for (path, says) in [
        ("nothing", "\"nothing\" is not in the repository"),
        ("file/x", "\"file/x\" is not in the repository"),
        ("link", "\"link\" is a symbolic link"),
        ("link/x", "is a symbolic link"),
        ("module/x", "is a submodule"),
        ("none", "the server left out the object"),
        ("wrong/x", "is damaged"),
    ] {
        let said = find(&objects, top, path).unwrap_err().to_string();
        assert!(said.contains(says), "{path}: {said}");
    }
}
