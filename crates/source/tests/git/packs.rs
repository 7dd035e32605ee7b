//! Packs in the making, honest and not. Names, sizes and counts are written as a test gives them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1_checked::{Digest as _, Sha1};
use source::git::{Kind, ObjectId};

/// Returns the name of an object.
pub(crate) fn id(kind: Kind, bytes: &[u8]) -> ObjectId {
    let mut digest = Sha1::new();
    digest.update(format!("{} {}\0", kind.word(), bytes.len()));
    digest.update(bytes);
    ObjectId::new(digest.finalize().into())
}

/// Returns the object of a directory with these entries: mode, name and object.
pub(crate) fn tree(entries: &[(&str, &str, ObjectId)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        bytes.extend_from_slice(id.as_bytes());
    }
    bytes
}

/// Returns a commit.
pub(crate) fn commit(tree: ObjectId) -> Vec<u8> {
    let person = "A <a@example.com> 0 +0000";
    format!("tree {tree}\nauthor {person}\ncommitter {person}\n\nA test.\n").into_bytes()
}

/// Returns a number as deltas have it: seven bits at a time, the lowest first.
pub(crate) fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        bytes.push(if number == 0 { byte } else { byte | 0x80 });
        if number == 0 {
            return bytes;
        }
    }
}

/// Returns the instruction that copies.
pub(crate) fn copy(from: u32, count: u32) -> Vec<u8> {
    let mut bytes = vec![0xff];
    bytes.extend_from_slice(&from.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes()[..3]);
    bytes
}

/// Returns a delta.
pub(crate) fn delta(base: u64, size: u64, instructions: &[Vec<u8>]) -> Vec<u8> {
    [number(base), number(size), instructions.concat()].concat()
}

/// A pack.
#[derive(Default)]
pub(crate) struct PackBuilder {
    objects: Vec<u8>,
    count: u32,
}

impl PackBuilder {
    /// Returns where the next object will begin.
    pub(crate) fn at(&self) -> u64 {
        12 + self.objects.len() as u64
    }

    /// Adds an object. Returns its name.
    pub(crate) fn object(&mut self, kind: Kind, bytes: &[u8]) -> ObjectId {
        let code = match kind {
            Kind::Commit => 1,
            Kind::Tree => 2,
            Kind::Blob => 3,
            Kind::Tag => 4,
        };
        self.raw(code, bytes.len() as u64, &[], &deflated(bytes));
        id(kind, bytes)
    }

    /// Adds a delta whose base is so many bytes before it.
    pub(crate) fn delta_at(&mut self, distance: u64, delta: &[u8]) {
        let mut bytes = vec![(distance & 0x7f) as u8];
        let mut rest = distance >> 7;
        while rest > 0 {
            rest -= 1;
            bytes.insert(0, (rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.raw(6, delta.len() as u64, &bytes, &deflated(delta));
    }

    /// Adds a delta whose base has this name.
    pub(crate) fn delta_of(&mut self, base: ObjectId, delta: &[u8]) {
        self.raw(7, delta.len() as u64, base.as_bytes(), &deflated(delta));
    }

    /// Adds whatever this is.
    pub(crate) fn raw(&mut self, code: u8, size: u64, base: &[u8], packed: &[u8]) {
        let mut first = code << 4 | (size & 0x0f) as u8;
        let rest = size >> 4;
        if rest > 0 {
            first |= 0x80;
        }
        self.objects.push(first);
        if rest > 0 {
            self.objects.extend(number(rest));
        }
        self.objects.extend_from_slice(base);
        self.objects.extend_from_slice(packed);
        self.count += 1;
    }

    /// Returns the pack.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.finish_with(self.count)
    }

    /// Returns the pack, which says that it has so many objects.
    pub(crate) fn finish_with(&self, count: u32) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&count.to_be_bytes());
        pack.extend_from_slice(&self.objects);
        let digest = Sha1::digest(&pack);
        pack.extend_from_slice(&digest);
        pack
    }
}

/// Returns bytes as packs have them.
pub(crate) fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
