//! Packs of git servers: what is in memory does not grow with what they send.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;

use source::git::pack::{MAX_OBJECT_BYTES, MAX_OBJECTS, MAX_UNPACKED_BYTES};
use source::git::{Kind, Objects, PackError, Spool};

use crate::packs::{PackBuilder, copy, delta, id};
use crate::{alone, counting};

/// What a fetch may add to the memory of the operator, in bytes.
const MOST: usize = 24 << 20;

struct Disk {
    file: File,
    written: u64,
}

impl Spool for Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.written)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }
}

/// Unpacks a pack from a file into a file. Returns by how many bytes the process grew at most, and what came of it.
fn unpack(pack: PackBuilder) -> (usize, Result<usize, PackError>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&pack.finish()).unwrap();
    drop(pack);
    let disk = Disk { file: tempfile::tempfile().unwrap(), written: 0 };
    let before = counting::live();
    counting::begin_peak();
    let outcome =
        Objects::unpack(BufReader::new(file.reopen().unwrap()), disk).map(|objects| objects.count());
    (counting::peak() - before, outcome)
}

#[test]
fn the_objects_of_a_pack_are_not_in_memory() {
    let _alone = alone();
    let many = |name: &str| {
        let mut pack = PackBuilder::default();
        match name {
            "as many objects as there may be" => {
                for number in 0..MAX_OBJECTS {
                    pack.object(Kind::Blob, &number.to_be_bytes());
                }
            }
            "deltas that all wait for their bases" => {
                for number in 0..MAX_OBJECTS / 2 {
                    let base = id(Kind::Blob, &number.to_be_bytes());
                    pack.delta_of(base, &delta(4, 8, &[copy(0, 4), copy(0, 4)]));
                }
                for number in 0..MAX_OBJECTS / 2 {
                    pack.object(Kind::Blob, &number.to_be_bytes());
                }
            }
            "a large object" => {
                pack.object(Kind::Blob, &vec![0; MAX_OBJECT_BYTES.try_into().unwrap()]);
            }
            _ => {
                let base = pack.object(Kind::Blob, &vec![0; 1 << 20]);
                for _ in 0..=MAX_UNPACKED_BYTES / MAX_OBJECT_BYTES {
                    pack.delta_of(base, &delta(1 << 20, MAX_OBJECT_BYTES, &vec![copy(0, 0x10_0000); 64]));
                }
            }
        }
        unpack(pack)
    };
    for (name, is_read) in [
        ("as many objects as there may be", true),
        ("deltas that all wait for their bases", true),
        ("a large object", true),
        ("a bomb", false),
    ] {
        let (grown, outcome) = many(name);
        println!("{name}: {} KiB", grown >> 10);
        assert_eq!(outcome.is_ok(), is_read, "{name}: {outcome:?}");
        assert!(grown < MOST, "{name}: {grown}");
    }
}
