//! What must hold for everything that a git server sends.
//!
//! The first byte of an input says what the rest is: a pack that is taken as it is, a pack whose digest is made good (nobody
//! gets far without), or answers of the protocol.

use std::collections::BTreeSet;
use std::io::BufReader;

use sha1_checked::{Digest as _, Sha1};
use source::archive_path::{MAX_DEPTH, MAX_ENTRIES, MAX_PATH};
use source::git::pack::MAX_OBJECTS;
use source::git::packet::{PacketError, Packets};
use source::git::tree::{Below, Found, TreeError, find, root, walk};
use source::git::{Answer, Listing, ObjectId, Objects, ProtocolError, Reference, Server};

/// What stands between the parts of an input about the protocol.
const SEPARATOR: u8 = 0xff;

/// Unpacks a pack, or reads answers.
pub(crate) fn run(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b'p', pack)) => read_pack(pack),
        Some((b's', body)) => {
            let digest = Sha1::digest(&body[body.len().min(ObjectId::BYTES)..]);
            read_pack(&[body, digest.as_slice()].concat());
        }
        Some((_, answers)) => read_answers(answers),
        None => {}
    }
}

/// Unpacks a pack behind the name of the commit that is looked for. It is the same however it comes, and no path leads
/// elsewhere.
fn read_pack(bytes: &[u8]) {
    let Some((id, pack)) = bytes.split_first_chunk() else { return };
    let whole = Objects::unpack(pack, Vec::new());
    let torn = Objects::unpack(BufReader::with_capacity(1, pack), Vec::new());
    let (objects, other) = match (whole, torn) {
        (Ok(objects), Ok(other)) => (objects, other),
        (Err(one), Err(other)) => return assert_eq!(one.to_string(), other.to_string()),
        (one, other) => panic!("{one:?} at once, {other:?} in parts"),
    };
    assert_eq!(objects.count(), other.count());
    assert!(u32::try_from(objects.count()).is_ok_and(|count| count <= MAX_OBJECTS));
    let Ok(tree) = root(&objects, ObjectId::new(*id)) else { return };
    let mut paths = BTreeSet::new();
    let walked = walk(&objects, tree, &mut |path, below| {
        assert!(path.len() <= MAX_PATH && path.split('/').count() <= MAX_DEPTH, "{path:?}");
        let is_bad = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
        assert!(!path.split('/').any(is_bad), "{path:?}");
        if let Some((above, _)) = path.rsplit_once('/') {
            assert!(paths.contains(above), "{path:?} comes before its directory");
        }
        assert!(paths.insert(path.to_owned()), "{path:?} is there twice");
        match (below, find(&objects, tree, path)) {
            (Below::File { object, .. }, Ok(Found::File(found))) => {
                assert_eq!(objects.read(object)?, objects.read(found)?, "{path:?}");
            }
            (Below::Directory, Ok(Found::Directory(_))) | (Below::Link { .. } | Below::Submodule, Err(_)) => {
            }
            (below, found) => panic!("{path:?}: {below:?} and {found:?}"),
        }
        Ok::<_, TreeError>(())
    });
    assert!(walked.is_err() || paths.len() <= MAX_ENTRIES);
}

/// Reads a reference, the two answers of a listing and the answer with a pack. Each says the same however it comes, and
/// nothing of it gets into what is sent but as a line of its own.
fn read_answers(bytes: &[u8]) {
    let mut parts = bytes.splitn(4, |byte| *byte == SEPARATOR);
    let mut next = || parts.next().unwrap_or_default();
    let (reference, first, second, pack) = (next(), next(), next(), next());
    let reference = std::str::from_utf8(reference).ok().filter(|text| !text.is_empty());
    let reference = Reference::new(reference.filter(|text| !text.contains(['\n', '\0'])));
    let listed = listed(&reference, first, second, usize::MAX);
    assert_eq!(listed, self::listed(&reference, first, second, 1));
    let unpacked = packed(pack, usize::MAX);
    assert_eq!(unpacked, packed(pack, 1));
    assert!(unpacked.is_ok_and(|found| found.len() <= pack.len()) || packed(pack, 1).is_err());
    let Ok((server, found)) = listed else { return };
    let mut sent = vec![server.ask_references(&reference)];
    sent.extend(found.map(|id| server.ask_pack(id, 1)));
    for message in sent {
        let (mut packets, mut lines) = (Packets::default(), 0);
        let read = packets.read(&message, |_| {
            lines += 1;
            Ok::<_, PacketError>(())
        });
        assert!(read.is_ok() && packets.is_complete() && lines > 0, "{}", String::from_utf8_lossy(&message));
    }
}

fn listed(
    reference: &Reference,
    first: &[u8],
    second: &[u8],
    size: usize,
) -> Result<(Server, Option<ObjectId>), ProtocolError> {
    let mut listing = Listing::new(reference);
    first.chunks(size).try_for_each(|part| listing.read_first(part))?;
    let server = listing.end_first()?;
    if server.has_version_2() {
        second.chunks(size).try_for_each(|part| listing.read(part))?;
        listing.end()?;
    }
    Ok((server, listing.found()))
}

fn packed(answer: &[u8], size: usize) -> Result<Vec<u8>, ProtocolError> {
    let (mut reader, mut pack) = (Answer::default(), Vec::new());
    for part in answer.chunks(size) {
        reader.read(part, |bytes| {
            pack.extend_from_slice(bytes);
            Ok::<_, ProtocolError>(())
        })?;
    }
    reader.end().map(|()| pack)
}
