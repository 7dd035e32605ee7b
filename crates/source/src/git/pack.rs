//! Packs: many objects in one stream, some of them as what differs from another one.
//!
//! All objects are unpacked one behind the other into a [`Spool`], each once: a delta reads its base from there. So a long
//! chain of deltas costs no more than a short one, and what is in memory does not grow with what a server sends.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};
use sha1_checked::{Digest as _, Sha1};

use super::delta::{self, Instruction};
use super::object::{Kind, ObjectId};

/// The most objects of a pack.
pub const MAX_OBJECTS: u32 = 100_000;

/// The most bytes of one object.
pub const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// The most bytes of all objects together, with the deltas that they were made of.
pub const MAX_UNPACKED_BYTES: u64 = 256 << 20;

/// The most bytes that are read again to apply deltas. A pack with many deltas of large objects needs a tenth.
const MAX_WORK: u64 = 4 << 30;

/// How much of the spool is in memory at a time, for each of two readers.
const WINDOW: usize = 256 << 10;

/// How much is inflated at a time.
const STEP: usize = 64 << 10;

/// Where unpacked objects are kept, one behind the other.
pub trait Spool {
    /// Adds bytes behind all that were added before.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Reads bytes that were added: `into` is filled from `at` on.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

impl Spool for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let from = self.get(start..start.saturating_add(into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a pack can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is no pack, or not what was sent.
    #[error("the pack of the server is damaged: {0}")]
    Damaged(&'static str),
    /// Too many objects.
    #[error("the repository has more than {MAX_OBJECTS} files and directories at this commit")]
    Objects,
    /// A large object.
    #[error("a file of the repository has more than {} MiB", MAX_OBJECT_BYTES >> 20)]
    Object,
    /// Too many bytes.
    #[error("the files of the repository have more than {} MiB together", MAX_UNPACKED_BYTES >> 20)]
    Bytes,
    /// Too much work.
    #[error("the pack of the server is made so that to unpack it takes too long")]
    Work,
    /// An object that was made to have the name of another one.
    #[error("an object of the repository was made to have the SHA-1 of another one: nothing of it is used")]
    Collision,
    /// The pack can't be read, or what was unpacked can't be kept.
    #[error("can't unpack what the server sent: {0}")]
    Disk(#[from] io::Error),
}

impl PackError {
    /// Returns whether our own disk is to blame, and not the pack.
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Disk(_))
    }
}

const SHORT: PackError = PackError::Damaged("it breaks off");

/// One for both: which of them shows first depends on how many bytes came at once.
const WRONG_SIZE: PackError = PackError::Damaged("an object can't be inflated to the size that it says");

/// One object, or the delta that it will be made of.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: ObjectId,
    /// Where it begins in the pack.
    packed_at: u32,
    /// Where it is in the spool.
    at: u32,
    size: u32,
    /// Nothing while it is a delta.
    kind: Option<Kind>,
}

/// What a delta is made from: an object at a place in the pack, or one with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    At(u32),
    Id(ObjectId),
}

/// An object that was found.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// How many bytes it has.
    pub size: u64,
    at: u64,
}

/// The objects of a pack, by their names.
#[derive(Debug)]
pub struct Objects<S> {
    spool: S,
    /// Sorted by their names.
    entries: Vec<Entry>,
}

impl<S: Spool> Objects<S> {
    /// Unpacks all objects of a pack into an empty spool.
    pub fn unpack(pack: impl BufRead, spool: S) -> Result<Self, PackError> {
        let mut unpacker = Unpacker::new(pack, spool);
        unpacker.read()?;
        unpacker.apply_waiting()?;
        let Unpacker { spool, mut entries, .. } = unpacker;
        entries.sort_unstable_by_key(|entry| entry.id);
        Ok(Self { spool, entries })
    }

    /// Returns the object with this name.
    pub fn find(&self, id: ObjectId) -> Option<Object> {
        let index = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        let entry = self.entries.get(index)?;
        Some(Object { kind: entry.kind?, size: entry.size.into(), at: entry.at.into() })
    }

    /// Returns what reads an object.
    pub fn reader(&self, object: Object) -> Reader<'_, S> {
        Reader { spool: &self.spool, at: object.at, left: object.size }
    }

    /// Returns all bytes of an object. The caller has looked at its size.
    pub fn read(&self, object: Object) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(object.size).unwrap_or_default()];
        self.spool.read_at(object.at, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns how many objects there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }
}

/// Reads one object.
#[derive(Debug)]
pub struct Reader<'o, S> {
    spool: &'o S,
    at: u64,
    left: u64,
}

impl<S: Spool> Read for Reader<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        self.spool.read_at(self.at, into.get_mut(..count).unwrap_or_default())?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// A pack that is read: what was read is counted, and is part of its digest.
struct Input<R> {
    inner: R,
    digest: Sha1,
    at: u64,
}

impl<R: BufRead> Input<R> {
    fn consume(&mut self, count: usize) -> Result<(), PackError> {
        // What was there a moment ago is there still: nothing was consumed in between.
        let read = self.inner.fill_buf()?.get(..count).ok_or(SHORT)?;
        self.digest.update(read);
        self.inner.consume(count);
        self.at += count as u64;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, PackError> {
        let byte = *self.inner.fill_buf()?.first().ok_or(SHORT)?;
        self.consume(1)?;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PackError> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    /// Reads the digest at the end, which is not part of itself.
    fn end(self) -> Result<(), PackError> {
        let Self { mut inner, digest, .. } = self;
        let mut rest = Vec::new();
        inner.by_ref().take(ObjectId::BYTES as u64 + 1).read_to_end(&mut rest)?;
        if rest.len() > ObjectId::BYTES {
            return Err(PackError::Damaged("something follows it"));
        }
        let is_whole = digest.try_finalize().hash().as_slice() == rest;
        if is_whole { Ok(()) } else { Err(PackError::Damaged("its digest is another one, or it breaks off")) }
    }
}

/// A part of the spool in memory.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns what there is from `at` on, at least a byte and nothing behind `end`.
    fn get<S: Spool>(&mut self, spool: &S, work: &mut u64, at: u64, end: u64) -> Result<&[u8], PackError> {
        let is_inside = at >= self.at && at - self.at < self.bytes.len() as u64;
        if !is_inside {
            let count = usize::try_from(end.saturating_sub(at)).unwrap_or(WINDOW).min(WINDOW);
            *work = work.checked_sub(count as u64).ok_or(PackError::Work)?;
            self.bytes.resize(count, 0);
            self.at = at;
            spool.read_at(at, &mut self.bytes)?;
        }
        let start = usize::try_from(at - self.at).unwrap_or_default();
        let count = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(start..).unwrap_or_default();
        bytes.get(..count.min(bytes.len())).filter(|bytes| !bytes.is_empty()).ok_or(SHORT)
    }
}

/// The instructions of a delta in the spool.
struct Code<'c> {
    window: &'c mut Window,
    at: u64,
    end: u64,
}

impl Code<'_> {
    fn byte<S: Spool>(&mut self, spool: &S, work: &mut u64) -> Result<u8, PackError> {
        let byte = *self.window.get(spool, work, self.at, self.end)?.first().ok_or(SHORT)?;
        self.at += 1;
        Ok(byte)
    }

    fn number<S: Spool>(&mut self, spool: &S, work: &mut u64) -> Result<u64, PackError> {
        let (mut number, mut shift) = (0, 0);
        while delta::extend(&mut number, &mut shift, self.byte(spool, work)?).ok_or(WRONG_DELTA)? {}
        Ok(number)
    }
}

const WRONG_DELTA: PackError = PackError::Damaged("a delta does not fit its base");

struct Unpacker<R, S> {
    pack: Option<Input<R>>,
    inflate: Decompress,
    step: Vec<u8>,
    spool: S,
    /// How much is in the spool.
    written: u64,
    /// In the order of the pack.
    entries: Vec<Entry>,
    /// Deltas whose base was not there yet.
    waiting: BTreeMap<Base, Vec<usize>>,
    bases: Window,
    codes: Window,
    /// How much may be read again.
    work: u64,
}

impl<R: BufRead, S: Spool> Unpacker<R, S> {
    fn new(pack: R, spool: S) -> Self {
        Self {
            pack: Some(Input { inner: pack, digest: digest(), at: 0 }),
            inflate: Decompress::new(true),
            step: vec![0; STEP],
            spool,
            written: 0,
            entries: Vec::new(),
            waiting: BTreeMap::new(),
            bases: Window::default(),
            codes: Window::default(),
            work: MAX_WORK,
        }
    }

    /// Reads the pack from its beginning to its end.
    fn read(&mut self) -> Result<(), PackError> {
        let mut pack = self.pack.take().ok_or(SHORT)?;
        if pack.array()? != *b"PACK" {
            return Err(PackError::Damaged("it is none"));
        }
        if !matches!(u32::from_be_bytes(pack.array()?), 2 | 3) {
            return Err(PackError::Damaged("it has a version that nobody knows"));
        }
        let count = u32::from_be_bytes(pack.array()?);
        if count > MAX_OBJECTS {
            return Err(PackError::Objects);
        }
        for _ in 0..count {
            self.read_object(&mut pack)?;
        }
        pack.end()
    }

    fn read_object(&mut self, pack: &mut Input<R>) -> Result<(), PackError> {
        let packed_at = u32::try_from(pack.at).map_err(|_| PackError::Bytes)?;
        let first = pack.byte()?;
        let (mut size, mut shift) = (u64::from(first & 0x0f), 4);
        let mut has_more = first & 0x80 != 0;
        while has_more {
            has_more = delta::extend(&mut size, &mut shift, pack.byte()?)
                .ok_or(PackError::Damaged("a size is no number"))?;
        }
        let base = match first >> 4 & 7 {
            1 => return self.read_whole(pack, packed_at, Kind::Commit, size),
            2 => return self.read_whole(pack, packed_at, Kind::Tree, size),
            3 => return self.read_whole(pack, packed_at, Kind::Blob, size),
            4 => return self.read_whole(pack, packed_at, Kind::Tag, size),
            6 => Base::At(base_offset(pack, packed_at)?),
            7 => Base::Id(ObjectId::new(pack.array()?)),
            _ => return Err(PackError::Damaged("an object has a kind that nobody knows")),
        };
        let at = self.inflate(pack, size, None)?;
        let index = self.entries.len();
        self.entries.push(entry(ObjectId::new([0; ObjectId::BYTES]), packed_at, at, size, None)?);
        let known = match base {
            Base::At(at) => {
                let found = self.entries.binary_search_by_key(&at, |entry| entry.packed_at);
                let found = found.map_err(|_| PackError::Damaged("a delta has no base"))?;
                self.entries.get(found).is_some_and(|base| base.kind.is_some()).then_some(found)
            }
            Base::Id(_) => None,
        };
        if let Some(base) = known {
            return self.apply(index, base);
        }
        self.waiting.entry(base).or_default().push(index);
        Ok(())
    }

    fn read_whole(
        &mut self,
        pack: &mut Input<R>,
        packed_at: u32,
        kind: Kind,
        size: u64,
    ) -> Result<(), PackError> {
        let mut digest = begin(kind, size);
        let at = self.inflate(pack, size, Some(&mut digest))?;
        self.entries.push(entry(name(digest)?, packed_at, at, size, Some(kind))?);
        Ok(())
    }

    /// Checks that there is room for an object. Returns where it will begin.
    fn room(&self, size: u64) -> Result<u64, PackError> {
        if size > MAX_OBJECT_BYTES {
            return Err(PackError::Object);
        }
        if self.written + size > MAX_UNPACKED_BYTES { Err(PackError::Bytes) } else { Ok(self.written) }
    }

    /// Inflates `size` bytes into the spool. Returns where they are.
    fn inflate(
        &mut self,
        pack: &mut Input<R>,
        size: u64,
        mut digest: Option<&mut Sha1>,
    ) -> Result<u64, PackError> {
        let at = self.room(size)?;
        self.inflate.reset(true);
        let mut left = size;
        loop {
            let input = pack.inner.fill_buf()?;
            let (read, wrote) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(input, &mut self.step, FlushDecompress::None);
            let status = status.map_err(|_| WRONG_SIZE)?;
            let read = usize::try_from(self.inflate.total_in() - read).unwrap_or_default();
            let wrote = usize::try_from(self.inflate.total_out() - wrote).unwrap_or_default();
            pack.consume(read)?;
            left = left.checked_sub(wrote as u64).ok_or(WRONG_SIZE)?;
            let bytes = self.step.get(..wrote).unwrap_or_default();
            if let Some(digest) = &mut digest {
                digest.update(bytes);
            }
            self.spool.append(bytes)?;
            match status {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError if read == 0 && wrote == 0 => return Err(SHORT),
                Status::Ok | Status::BufError => {}
            }
        }
        self.written += size;
        if left == 0 { Ok(at) } else { Err(WRONG_SIZE) }
    }

    /// Makes an object of a delta and its base.
    fn apply(&mut self, index: usize, base: usize) -> Result<(), PackError> {
        let of = |index: usize| self.entries.get(index).copied().ok_or(WRONG_DELTA);
        let (delta, base) = (of(index)?, of(base)?);
        let kind = base.kind.ok_or(WRONG_DELTA)?;
        let Self { spool, bases, codes, work, .. } = self;
        let (base_at, base_size) = (u64::from(base.at), u64::from(base.size));
        let end = u64::from(delta.at) + u64::from(delta.size);
        let mut code = Code { window: codes, at: delta.at.into(), end };
        if code.number(spool, work)? != base_size {
            return Err(WRONG_DELTA);
        }
        let size = code.number(spool, work)?;
        if size > MAX_OBJECT_BYTES {
            return Err(PackError::Object);
        }
        let at = self.written;
        if at + size > MAX_UNPACKED_BYTES {
            return Err(PackError::Bytes);
        }
        let mut digest = begin(kind, size);
        let mut left = size;
        while code.at < end {
            let first = code.byte(spool, work)?;
            let instruction = delta::instruction(first, || code.byte(spool, work))?;
            let (mut from, count, end) = match instruction.ok_or(WRONG_DELTA)? {
                Instruction::Copy { from, count } => {
                    let stop = from.checked_add(count).filter(|stop| *stop <= base_size);
                    (base_at + from, count, base_at + stop.ok_or(WRONG_DELTA)?)
                }
                Instruction::Insert { count } => {
                    let from = code.at;
                    code.at += count;
                    (from, count, Some(code.at).filter(|at| *at <= end).ok_or(WRONG_DELTA)?)
                }
            };
            left = left.checked_sub(count).ok_or(WRONG_DELTA)?;
            let is_copy = matches!(instruction, Some(Instruction::Copy { .. }));
            while from < end {
                let window = if is_copy { &mut *bases } else { &mut *code.window };
                let bytes = window.get(spool, work, from, end)?;
                digest.update(bytes);
                spool.append(bytes)?;
                from += bytes.len() as u64;
            }
        }
        if left != 0 {
            return Err(WRONG_DELTA);
        }
        self.written += size;
        let made = entry(name(digest)?, delta.packed_at, at, size, Some(kind))?;
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = made;
        }
        Ok(())
    }

    /// Applies the deltas whose bases came behind them, or are named.
    fn apply_waiting(&mut self) -> Result<(), PackError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let is_made = |(index, entry): (usize, &Entry)| entry.kind.is_some().then_some(index);
        let mut made: Vec<usize> = self.entries.iter().enumerate().filter_map(is_made).collect();
        while let Some(base) = made.pop() {
            let Some(entry) = self.entries.get(base) else { continue };
            for key in [Base::At(entry.packed_at), Base::Id(entry.id)] {
                for index in self.waiting.remove(&key).unwrap_or_default() {
                    self.apply(index, base)?;
                    made.push(index);
                }
            }
        }
        if self.waiting.is_empty() { Ok(()) } else { Err(PackError::Damaged("a delta has no base")) }
    }
}

/// Reads how far before a delta its base is. Returns where that is.
fn base_offset(pack: &mut Input<impl BufRead>, packed_at: u32) -> Result<u32, PackError> {
    let wrong = PackError::Damaged("a delta has no base");
    let mut byte = pack.byte()?;
    let mut distance = u32::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = pack.byte()?;
        let Some(next) = distance.checked_add(1).and_then(|next| next.checked_mul(128)) else {
            return Err(wrong);
        };
        distance = next | u32::from(byte & 0x7f);
    }
    packed_at.checked_sub(distance).filter(|at| *at < packed_at).ok_or(wrong)
}

fn entry(id: ObjectId, packed_at: u32, at: u64, size: u64, kind: Option<Kind>) -> Result<Entry, PackError> {
    let number = |number: u64| u32::try_from(number).map_err(|_| PackError::Bytes);
    Ok(Entry { id, packed_at, at: number(at)?, size: number(size)?, kind })
}

/// Returns a digest that is compared with what was sent. Whether somebody made it so does not matter there.
fn digest() -> Sha1 {
    Sha1::builder().detect_collision(false).build()
}

/// Returns the digest of an object with its first bytes.
fn begin(kind: Kind, size: u64) -> Sha1 {
    let mut digest = Sha1::new();
    digest.update(format!("{} {size}\0", kind.word()));
    digest
}

fn name(digest: Sha1) -> Result<ObjectId, PackError> {
    let found = digest.try_finalize();
    if found.has_collision() { Err(PackError::Collision) } else { Ok(ObjectId::new((*found.hash()).into())) }
}
