//! Answers of servers, in whatever parts they come.

use source::git::packet::{MAX_PACKET, Message};
use source::git::{Answer, Listing, ObjectId, ProtocolError, Reference, Server};

const ONE: &str = "1111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222";
const THREE: &str = "3333333333333333333333333333333333333333";

fn message(lines: &[&str]) -> Vec<u8> {
    lines.iter().fold(Message::default(), |message, line| message.line(line)).flush().into_bytes()
}

fn capabilities(lines: &[&str]) -> Vec<u8> {
    message(&[&["version 2", "agent=git/2.39", "ls-refs=unborn", "fetch=shallow filter"], lines].concat())
}

/// Reads both answers byte by byte and at once, which has to be the same.
fn list(
    reference: Option<&str>,
    first: &[u8],
    second: &[u8],
) -> Result<(Server, Option<String>), ProtocolError> {
    let reference = Reference::new(reference);
    let read = |size: usize| {
        let mut listing = Listing::new(&reference);
        first.chunks(size).try_for_each(|part| listing.read_first(part))?;
        let server = listing.end_first()?;
        if server.has_version_2() {
            second.chunks(size).try_for_each(|part| listing.read(part))?;
            listing.end()?;
        }
        Ok((server, listing.found().map(|id| id.to_string())))
    };
    let whole = read(usize::MAX);
    assert_eq!(whole, read(1));
    whole
}

fn found(reference: Option<&str>, lines: &[String]) -> Option<String> {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    list(reference, &capabilities(&[]), &message(&lines)).unwrap().1
}

#[test]
fn references_are_found_as_git_clone_finds_them() {
    let lines = [
        format!("{ONE} HEAD symref-target:refs/heads/main"),
        format!("{TWO} refs/heads/v1"),
        format!("{TWO} refs/heads/v1-more"),
        format!("{THREE} refs/tags/v1"),
        format!("{ONE} refs/tags/v2 peeled:{THREE}"),
        format!("{ONE} refs/tags/v3"),
    ];
    for (reference, expected) in [
        (None, Some(ONE)),
        (Some("v1"), Some(TWO)),
        (Some("refs/tags/v1"), Some(THREE)),
        (Some("v2"), Some(THREE)),
        (Some("v3"), Some(ONE)),
        (Some("v"), None),
    ] {
        assert_eq!(found(reference, &lines).as_deref(), expected, "{reference:?}");
    }
    assert_eq!(found(None, &["unborn HEAD symref-target:refs/heads/main".to_owned()]), None);
    assert_eq!(Reference::new(Some(ONE)), Reference::Commit(ObjectId::from_hex(ONE.as_bytes()).unwrap()));
    assert_eq!(Reference::new(Some("1111111")), Reference::Name("1111111".to_owned()));
}

#[test]
fn a_server_of_version_0_lists_everything_at_once() {
    let abilities = "multi_ack side-band-64k ofs-delta shallow object-format=sha1 agent=git/2";
    let mut first = message(&["# service=git-upload-pack"]);
    first.extend(message(&[
        &format!("{ONE} HEAD\0{abilities}"),
        &format!("{ONE} refs/heads/main"),
        &format!("{TWO} refs/tags/v1"),
        &format!("{THREE} refs/tags/v1^{{}}"),
    ]));
    for (reference, expected) in
        [(None, Some(ONE)), (Some("main"), Some(ONE)), (Some("v1"), Some(THREE)), (Some("x"), None)]
    {
        let (server, id) = list(reference, &first, &[]).unwrap();
        assert!(!server.has_version_2());
        assert_eq!(id.as_deref(), expected, "{reference:?}");
        let commit = ObjectId::from_hex(THREE.as_bytes()).unwrap();
        let asked = String::from_utf8(server.ask_pack(commit, 3)).unwrap();
        let lines: Vec<&str> = asked.lines().collect();
        assert!(lines[0].ends_with(concat!(
            "want 3333333333333333333333333333333333333333 side-band-64k no-progress ofs-delta shallow agent=addon-operator/",
            env!("CARGO_PKG_VERSION")
        )));
        assert_eq!(lines[1..], ["000ddeepen 3", "00000009done"]);
    }
}

#[test]
fn only_what_is_wanted_is_asked_for() {
    let (server, _) = list(None, &capabilities(&["object-format=sha1"]), &message(&[])).unwrap();
    let asked = String::from_utf8(server.ask_references(&Reference::new(Some("v1")))).unwrap();
    assert!(asked.starts_with("0014command=ls-refs\n") && asked.ends_with("0000"), "{asked}");
    assert!(asked.contains("object-format=sha1\n00010009peel\n001dref-prefix refs/heads/v1\n"), "{asked}");
    assert!(asked.contains("ref-prefix refs/tags/v1\n"), "{asked}");
    let commit = ObjectId::from_hex(ONE.as_bytes()).unwrap();
    let asked = String::from_utf8(server.ask_pack(commit, 1)).unwrap();
    assert!(asked.contains(&format!("want {ONE}\n")) && asked.contains("deepen 1\n"), "{asked}");
}

#[test]
fn what_is_no_git_server_is_told() {
    for (first, expected) in [
        (b"<!DOCTYPE html>".to_vec(), ProtocolError::NoGit),
        (b"1111111111111111111111111111111111111111\trefs/heads/main\n".to_vec(), ProtocolError::NoGit),
        (Vec::new(), ProtocolError::NoGit),
        (b"000".to_vec(), ProtocolError::NoGit),
        (b"0000".to_vec(), ProtocolError::NoGit),
        (
            message(&["ERR no such\u{1b} repository"]),
            ProtocolError::Refused("no such  repository".to_owned()),
        ),
        (message(&[&format!("ERR {}", "x".repeat(500))]), ProtocolError::Refused("x".repeat(200))),
        (capabilities(&["object-format=sha256"]), ProtocolError::Format("sha256".to_owned())),
        (capabilities(&[])[..40].to_vec(), ProtocolError::Short),
        ([capabilities(&[]), b"zzzz".to_vec()].concat(), source::git::packet::PacketError.into()),
        (
            [capabilities(&[]), format!("{:04x}", MAX_PACKET + 1).into_bytes()].concat(),
            source::git::packet::PacketError.into(),
        ),
        (message(&[&format!("{ONE} HEAD\0no bands")]), ProtocolError::NoGit),
    ] {
        let said = list(None, &first, &[]);
        assert_eq!(said, Err(expected), "{}", String::from_utf8_lossy(&first));
    }
}

/// Returns the pack in an answer, which is read byte by byte and at once.
fn pack(answer: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let read = |size: usize| {
        let (mut reader, mut pack) = (Answer::default(), Vec::new());
        for part in answer.chunks(size) {
            reader.read(part, |bytes| {
                pack.extend_from_slice(bytes);
                Ok::<_, ProtocolError>(())
            })?;
        }
        reader.end()?;
        Ok(pack)
    };
    let whole = read(usize::MAX);
    assert_eq!(whole, read(1));
    whole
}

#[test]
fn the_pack_of_an_answer_is_what_its_first_band_has() {
    let shallow = format!("shallow {ONE}");
    let version_2 = Message::default().line("shallow-info").line(&shallow).delimiter().into_bytes();
    let [one, two, three] = ["\u{1}PA", "\u{2}50 %", "\u{1}CK"];
    let band = message(&[one, two, three]);
    let expected = b"PA\nCK\n".to_vec();
    let head = Message::default().line("packfile").into_bytes();
    assert_eq!(pack(&[version_2, head.clone(), band.clone()].concat()), Ok(expected.clone()));
    let version_0 =
        [message(&[&shallow]), Message::default().line("NAK").into_bytes(), band.clone()].concat();
    assert_eq!(pack(&version_0), Ok(expected));
    for (answer, expected) in [
        (
            message(&["ERR upload-pack: not our ref"]),
            ProtocolError::Refused("upload-pack: not our ref".to_owned()),
        ),
        (
            [head.clone(), message(&["\u{3}out of memory"])].concat(),
            ProtocolError::Refused("out of memory".to_owned()),
        ),
        ([head.clone(), message(&["\u{4}x"])].concat(), ProtocolError::NoGit),
        ([head.clone(), band.clone(), message(&["x"])].concat(), ProtocolError::NoGit),
        ([head.clone(), band[..20].to_vec()].concat(), ProtocolError::Short),
        (head, ProtocolError::Short),
        (b"0000".to_vec(), ProtocolError::Short),
        (message(&["hello"]), ProtocolError::NoGit),
    ] {
        assert_eq!(pack(&answer), Err(expected), "{}", String::from_utf8_lossy(&answer));
    }
}
