//! Requests to a git server and its answers: which commit a reference is, and the pack of that commit.
//!
//! Version 2 of the protocol asks for the references that are wanted. A server that only knows version 0 lists all of them
//! in its first answer. Both are read as they come, and what is not wanted is not kept.

use super::object::ObjectId;
use super::packet::{Message, Packet, PacketError, Packets};

/// How much of what a server says is quoted, in characters.
const QUOTED: usize = 200;

/// Who asks.
const AGENT: &str = concat!("agent=addon-operator/", env!("CARGO_PKG_VERSION"));

/// Why an answer can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// It is no answer of a git server.
    #[error("the answer is not that of a git server (smart HTTP): the URL has to be that of the repository")]
    NoGit,
    /// A line is none.
    #[error("the answer is not that of a git server: {0}")]
    Packet(#[from] PacketError),
    /// Something is missing at its end.
    #[error("the answer broke off")]
    Short,
    /// The server refuses.
    #[error("the server says: {0}")]
    Refused(String),
    /// The repository has other names of objects.
    #[error(
        "the repository names its objects with {0}, only sha1 is supported: offer one that was made with sha1"
    )]
    Format(String),
}

/// Which commit is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// That of the default branch.
    Head,
    /// That of a branch or tag.
    Name(String),
    /// This one.
    Commit(ObjectId),
}

impl Reference {
    /// Reads the option `ref` of a URL: 40 hexadecimal digits are a commit.
    pub fn new(option: Option<&str>) -> Self {
        let Some(text) = option else { return Self::Head };
        match ObjectId::from_hex(text.as_bytes()) {
            Some(id) => Self::Commit(id),
            None => Self::Name(text.to_owned()),
        }
    }

    /// Returns the full names that are looked for; the first one that is there counts, as for `git clone --branch`.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Head => vec!["HEAD".to_owned()],
            Self::Name(name) if name.starts_with("refs/") => vec![name.clone()],
            Self::Name(name) => vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")],
            Self::Commit(_) => Vec::new(),
        }
    }
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Zero,
    Two,
}

/// What a server can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    version: Version,
    /// Whether it leaves history out.
    has_shallow: bool,
    has_offset_deltas: bool,
    names_format: bool,
}

impl Server {
    fn new(version: Version) -> Self {
        Self { version, has_shallow: false, has_offset_deltas: false, names_format: false }
    }

    /// Reports whether it speaks version 2, so that references can be asked for.
    pub fn has_version_2(&self) -> bool {
        self.version == Version::Two
    }

    /// Returns the request for the references that may be meant. Only for version 2.
    pub fn ask_references(&self, reference: &Reference) -> Vec<u8> {
        let mut message = self.command("ls-refs").delimiter().line("peel");
        for name in reference.names() {
            message = message.line(&format!("ref-prefix {name}"));
        }
        message.flush().into_bytes()
    }

    /// Returns the request for the pack with a commit and `depth` commits of its history.
    pub fn ask_pack(&self, commit: ObjectId, depth: u32) -> Vec<u8> {
        if self.has_version_2() {
            let mut message = self.command("fetch").delimiter().line("no-progress").line("ofs-delta");
            message = message.line(&format!("want {commit}"));
            if self.has_shallow {
                message = message.line(&format!("deepen {depth}"));
            }
            return message.line("done").flush().into_bytes();
        }
        let deltas = if self.has_offset_deltas { " ofs-delta" } else { "" };
        let shallow = if self.has_shallow { " shallow" } else { "" };
        let want = format!("want {commit} side-band-64k no-progress{deltas}{shallow} {AGENT}");
        let mut message = Message::default().line(&want);
        if self.has_shallow {
            message = message.line(&format!("deepen {depth}"));
        }
        message.flush().line("done").into_bytes()
    }

    fn command(&self, name: &str) -> Message {
        let message = Message::default().line(&format!("command={name}")).line(AGENT);
        if self.names_format { message.line("object-format=sha1") } else { message }
    }
}

/// References as a server lists them, of which those are kept that are wanted.
#[derive(Debug)]
pub struct Listing {
    packets: Packets,
    names: Vec<String>,
    found: Vec<Option<ObjectId>>,
    server: Option<Server>,
    is_ended: bool,
}

impl Listing {
    /// Returns one that looks for this.
    pub fn new(reference: &Reference) -> Self {
        let names = reference.names();
        let found = vec![None; names.len()];
        Self { packets: Packets::default(), names, found, server: None, is_ended: false }
    }

    /// Takes a part of the answer to `info/refs?service=git-upload-pack`.
    pub fn read_first(&mut self, part: &[u8]) -> Result<(), ProtocolError> {
        let mut packets = std::mem::take(&mut self.packets);
        let read = packets.read(part, |packet| self.first(packet));
        self.packets = packets;
        // The first line shows whether this is git at all. What else does is for its later ones.
        let is_git = self.server.is_some();
        read.map_err(|error| {
            if !is_git && matches!(error, ProtocolError::Packet(_)) { ProtocolError::NoGit } else { error }
        })
    }

    fn first(&mut self, packet: Packet<'_>) -> Result<(), ProtocolError> {
        let line = match packet {
            Packet::Data(line) => trimmed(line),
            Packet::Flush => {
                // One stands between the name of the service and the rest.
                self.is_ended = self.server.is_some();
                return Ok(());
            }
            Packet::Delimiter | Packet::End => return Err(ProtocolError::NoGit),
        };
        refusal(line)?;
        match &mut self.server {
            None if line.starts_with(b"# service=") => {}
            None if line == b"version 2" => {
                self.server = Some(Server::new(Version::Two));
            }
            None if line == b"version 1" => {}
            None => self.first_reference(line)?,
            Some(server) if server.has_version_2() => capability(server, line)?,
            Some(_) => self.note_line(line, None)?,
        }
        Ok(())
    }

    /// Reads the first line of version 0: a reference, and what the server can do.
    fn first_reference(&mut self, line: &[u8]) -> Result<(), ProtocolError> {
        let zero = line.iter().position(|byte| *byte == 0).ok_or(ProtocolError::NoGit)?;
        let (reference, abilities) = line.split_at_checked(zero).ok_or(ProtocolError::NoGit)?;
        let mut server = Server::new(Version::Zero);
        let mut has_bands = false;
        for ability in abilities.split(|byte| matches!(*byte, b' ' | 0)) {
            match ability {
                b"shallow" => server.has_shallow = true,
                b"ofs-delta" => server.has_offset_deltas = true,
                b"side-band-64k" => has_bands = true,
                _ => format(ability)?,
            }
        }
        if !has_bands {
            return Err(ProtocolError::NoGit);
        }
        self.server = Some(server);
        self.note_line(reference, None)
    }

    /// Takes a part of the answer to [`Server::ask_references`].
    pub fn read(&mut self, part: &[u8]) -> Result<(), ProtocolError> {
        let mut packets = std::mem::take(&mut self.packets);
        let read = packets.read(part, |packet| match packet {
            Packet::Data(line) => {
                let line = trimmed(line);
                refusal(line)?;
                let mut words = line.splitn(3, |byte| *byte == b' ');
                let (id, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let mut attributes = words.next().unwrap_or_default().split(|byte| *byte == b' ');
                let peeled = attributes.find_map(|attribute| attribute.strip_prefix(b"peeled:"));
                if id == b"unborn" { Ok(()) } else { self.note(id, name, peeled) }
            }
            Packet::Flush => {
                self.is_ended = true;
                Ok(())
            }
            Packet::Delimiter | Packet::End => Ok(()),
        });
        self.packets = packets;
        read
    }

    fn note_line(&mut self, line: &[u8], peeled: Option<&[u8]>) -> Result<(), ProtocolError> {
        if line.starts_with(b"shallow ") {
            return Ok(());
        }
        let space = line.iter().position(|byte| *byte == b' ').ok_or(ProtocolError::NoGit)?;
        let (id, name) = line.split_at_checked(space).ok_or(ProtocolError::NoGit)?;
        self.note(id, name.get(1..).unwrap_or_default(), peeled)
    }

    fn note(&mut self, id: &[u8], name: &[u8], peeled: Option<&[u8]>) -> Result<(), ProtocolError> {
        let id = ObjectId::from_hex(peeled.unwrap_or(id)).ok_or(ProtocolError::NoGit)?;
        // In version 0 the commit of a tag follows its own line.
        let name = name.strip_suffix(b"^{}").unwrap_or(name);
        for (wanted, found) in self.names.iter().zip(&mut self.found) {
            if wanted.as_bytes() == name {
                *found = Some(id);
            }
        }
        Ok(())
    }

    /// Ends the answer to `info/refs`. Returns what the server can do.
    pub fn end_first(&mut self) -> Result<Server, ProtocolError> {
        let server = self.server.clone().ok_or(ProtocolError::NoGit)?;
        self.end()?;
        Ok(server)
    }

    /// Ends an answer. Another one may follow.
    pub fn end(&mut self) -> Result<(), ProtocolError> {
        let is_whole = self.packets.is_complete() && self.is_ended;
        self.packets = Packets::default();
        self.is_ended = false;
        if is_whole { Ok(()) } else { Err(ProtocolError::Short) }
    }

    /// Returns the commit that was found.
    pub fn found(&self) -> Option<ObjectId> {
        self.found.iter().copied().flatten().next()
    }
}

/// Reads a line that says what a server of version 2 can do.
fn capability(server: &mut Server, line: &[u8]) -> Result<(), ProtocolError> {
    if let Some(features) = line.strip_prefix(b"fetch=") {
        server.has_shallow = features.split(|byte| *byte == b' ').any(|feature| feature == b"shallow");
    }
    server.names_format |= line.starts_with(b"object-format=");
    format(line)
}

fn format(ability: &[u8]) -> Result<(), ProtocolError> {
    match ability.strip_prefix(b"object-format=") {
        None | Some(b"sha1") => Ok(()),
        Some(other) => Err(ProtocolError::Format(quoted(other))),
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

fn refusal(line: &[u8]) -> Result<(), ProtocolError> {
    match line.strip_prefix(b"ERR ") {
        Some(text) => Err(ProtocolError::Refused(quoted(text))),
        None => Ok(()),
    }
}

fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let clean = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(QUOTED).collect()
}

/// Where an answer to [`Server::ask_pack`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Before,
    Pack,
    Behind,
}

/// The answer to [`Server::ask_pack`].
#[derive(Debug, Default)]
pub struct Answer {
    packets: Packets,
    section: Section,
}

impl Answer {
    /// Takes a part of the answer, and hands parts of the pack to `pack`.
    pub fn read<E: From<ProtocolError>>(
        &mut self,
        part: &[u8],
        mut pack: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let section = &mut self.section;
        let mut problem = None;
        let read = self.packets.read(part, |packet| {
            let step = step(section, packet)?;
            match step.map(&mut pack) {
                Some(Err(error)) => {
                    problem = Some(error);
                    Err(ProtocolError::Short)
                }
                Some(Ok(())) | None => Ok(()),
            }
        });
        match problem {
            Some(problem) => Err(problem),
            None => Ok(read?),
        }
    }

    /// Ends the answer.
    pub fn end(self) -> Result<(), ProtocolError> {
        let is_whole = self.packets.is_complete() && self.section == Section::Behind;
        if is_whole { Ok(()) } else { Err(ProtocolError::Short) }
    }
}

/// Returns the part of the pack that is in a line.
fn step<'p>(section: &mut Section, packet: Packet<'p>) -> Result<Option<&'p [u8]>, ProtocolError> {
    match (*section, packet) {
        (Section::Before, Packet::Data(line)) => {
            let line = trimmed(line);
            refusal(line)?;
            match line.split(|byte| *byte == b' ').next().unwrap_or_default() {
                b"packfile" | b"NAK" => *section = Section::Pack,
                b"shallow-info" | b"shallow" | b"unshallow" => {}
                _ => return Err(ProtocolError::NoGit),
            }
            Ok(None)
        }
        (Section::Pack, Packet::Data(line)) => match line.split_first() {
            Some((1, data)) => Ok(Some(data)),
            Some((2, _)) => Ok(None),
            Some((3, text)) => Err(ProtocolError::Refused(quoted(text))),
            _ => Err(ProtocolError::NoGit),
        },
        (Section::Pack, Packet::Flush) => {
            *section = Section::Behind;
            Ok(None)
        }
        (Section::Behind, Packet::Data(_)) => Err(ProtocolError::NoGit),
        (Section::Before | Section::Behind, Packet::Flush | Packet::Delimiter | Packet::End)
        | (Section::Pack, Packet::Delimiter | Packet::End) => Ok(None),
    }
}
