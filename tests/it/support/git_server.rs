//! A git repository in the making, and what a server answers that has it.

use std::collections::BTreeMap;

use ::source::git::packet::Message;
use ::source::git::{Kind, ObjectId};

use super::packs::{PackBuilder, commit, tree};
use super::repository::{Reply, Repository};

/// Files of a directory: mode and content by path.
pub(crate) type Files = BTreeMap<String, (&'static str, Vec<u8>)>;

/// What a server knows of a repository.
#[derive(Clone, Default)]
pub(crate) struct GitRepository {
    /// The references, with what tags name.
    pub(crate) references: BTreeMap<String, (ObjectId, Option<ObjectId>)>,
    /// The packs of commits.
    pub(crate) packs: BTreeMap<ObjectId, Vec<u8>>,
    /// What the server refuses everything with.
    pub(crate) refusal: Option<String>,
    /// Whether it only speaks version 0.
    pub(crate) is_old: bool,
}

impl GitRepository {
    /// Adds a commit with these files, to which the references lead.
    pub(crate) fn commit(&mut self, files: &Files, references: &[&str]) -> ObjectId {
        let mut pack = PackBuilder::default();
        let top = write_tree(&mut pack, files, "");
        let id = pack.object(Kind::Commit, &commit(top));
        self.packs.insert(id, pack.finish());
        for name in references {
            self.references.insert((*name).to_owned(), (id, None));
        }
        id
    }

    /// Serves it at a path.
    pub(crate) fn serve(&self, server: &Repository, path: &str) {
        server.put(&format!("{path}/info/refs?service=git-upload-pack"), Reply::Git(self.clone()));
        server.put(&format!("{path}/git-upload-pack"), Reply::Git(self.clone()));
    }

    /// Returns the answer to a message, or to the first question.
    pub(crate) fn answer(&self, asked: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(asked);
        if let Some(refusal) = self.refusal.as_ref().filter(|_| !asked.is_empty()) {
            return Message::default().line(&format!("ERR {refusal}")).flush().into_bytes();
        }
        if asked.is_empty() {
            return if self.is_old { self.list() } else { capabilities() };
        }
        if text.contains("command=ls-refs") {
            let is_asked = |name: &str| text.contains(&format!("ref-prefix {name}\n"));
            let its = self.references.iter().filter(|(name, _)| is_asked(name));
            let lines = its.map(|(name, (id, peeled))| {
                let peeled = peeled.map(|peeled| format!(" peeled:{peeled}")).unwrap_or_default();
                format!("{id} {name}{peeled}")
            });
            return lines.fold(Message::default(), |message, line| message.line(&line)).flush().into_bytes();
        }
        let wanted =
            text.split_once("want ").and_then(|(_, rest)| ObjectId::from_hex(rest.as_bytes().get(..40)?));
        let Some(pack) = wanted.and_then(|wanted| self.packs.get(&wanted)) else {
            return Message::default().line("ERR upload-pack: not our ref").flush().into_bytes();
        };
        let head = if self.is_old { "NAK" } else { "packfile" };
        let mut answer = Message::default().line(head).into_bytes();
        answer.extend(banded(pack));
        answer
    }

    fn list(&self) -> Vec<u8> {
        let mut answer = Message::default().line("# service=git-upload-pack").flush().into_bytes();
        let mut message = Message::default();
        for (number, (name, (id, peeled))) in self.references.iter().enumerate() {
            let abilities = if number == 0 { "\0side-band-64k ofs-delta shallow" } else { "" };
            message = message.line(&format!("{id} {name}{abilities}"));
            if let Some(peeled) = peeled {
                message = message.line(&format!("{peeled} {name}^{{}}"));
            }
        }
        answer.extend(message.flush().into_bytes());
        answer
    }
}

fn capabilities() -> Vec<u8> {
    let lines = ["version 2", "agent=git/test", "ls-refs=unborn", "fetch=shallow", "object-format=sha1"];
    lines.iter().fold(Message::default(), |message, line| message.line(line)).flush().into_bytes()
}

/// Returns a pack in lines of the first band, and their end.
pub(crate) fn banded(pack: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    for part in pack.chunks(60_000) {
        answer.extend_from_slice(format!("{:04x}\u{1}", part.len() + 5).as_bytes());
        answer.extend_from_slice(part);
    }
    answer.extend_from_slice(b"0000");
    answer
}

/// Adds the tree of the files below a directory, and everything in it.
fn write_tree(pack: &mut PackBuilder, files: &Files, above: &str) -> ObjectId {
    let mut names: BTreeMap<String, (&str, ObjectId)> = BTreeMap::new();
    for (path, (mode, content)) in files {
        let Some(rest) = path.strip_prefix(above) else { continue };
        match rest.split_once('/') {
            Some((name, _)) if !names.contains_key(&format!("{name}/")) => {
                let below = write_tree(pack, files, &format!("{above}{name}/"));
                names.insert(format!("{name}/"), ("40000", below));
            }
            Some(_) => {}
            None if *mode == "160000" => {
                names.insert(rest.to_owned(), (mode, ObjectId::new([7; 20])));
            }
            None => {
                names.insert(rest.to_owned(), (mode, pack.object(Kind::Blob, content)));
            }
        }
    }
    let entries: Vec<_> =
        names.iter().map(|(name, (mode, id))| (*mode, name.trim_end_matches('/'), *id)).collect();
    pack.object(Kind::Tree, &tree(&entries))
}

/// Returns the files of a module in a directory, whose hook says `says`.
pub(crate) fn module(directory: &str, name: &str, version: &str, says: &str) -> Files {
    let meta =
        format!("id: id-{name}\nname: {name}\nversion: {version}\ndescription: A test.\ndisplayName: Test\n");
    let hook = format!("#!/bin/sh\n# {says}\necho 'configVersion: v1'\n");
    let file = |path: &str, mode, text: String| (format!("{directory}/{path}"), (mode, text.into_bytes()));
    Files::from([
        file("meta.yaml", "100644", meta),
        file("hooks/run.sh", "100755", hook),
        file("hooks/again.sh", "120000", "run.sh".to_owned()),
    ])
}

/// Returns an index with these names and versions.
pub(crate) fn index(path: &str, bundles: &[(&str, &str)]) -> Files {
    let bundles: Vec<_> = bundles.iter().map(|(name, version)| (*name, *version, Vec::new())).collect();
    Files::from([(path.to_owned(), ("100644", super::repository::index(&bundles, false)))])
}
