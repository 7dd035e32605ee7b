//! Requests to a git server: what it can do, which commit a reference is, and the pack of a commit.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use ::source::git::{Answer, Listing, ObjectId, PackError, ProtocolError, Reference, Server};
use ::source::url::{GitUrl, HttpUrl};
use engine::Failure;
use thiserror::Error;

use crate::remote::http::{Exchange, HttpClient, HttpError, Sink, host};

/// The longest list of references, in bytes. A server of version 0 lists all that it has.
const LONGEST_LISTING: u64 = 16 << 20;

/// The longest answer with a pack, in bytes.
const LONGEST_PACK: u64 = 64 << 20;

/// How many commits are fetched if the URL does not say it.
const DEPTH: u32 = 1;

/// Where a service of git lies below its repository.
const REFERENCES: &str = "/info/refs";
const UPLOAD_PACK: &str = "/git-upload-pack";
const SERVICE: &str = "service=git-upload-pack";

/// Why a repository was not read.
#[derive(Debug, Error)]
pub(in crate::source) enum GitError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{host}: {problem}")]
    Protocol { host: String, problem: ProtocolError },
    #[error(
        "the repository has no branch or tag {0:?}: correct the option ref of the URL; a commit is named by all of its 40 digits"
    )]
    NoReference(String),
    #[error("the repository has no commit on its default branch: name a branch with the option ref")]
    Empty,
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("{0}")]
    Ours(Failure),
}

/// A server that answered before, and what it can do.
#[derive(Clone, Debug)]
pub(in crate::source) struct Remote {
    repository: HttpUrl,
    server: Server,
}

/// What reads an answer, and keeps what was wrong with it.
struct Reading<T> {
    into: T,
    problem: Option<ProtocolError>,
}

impl<T> Reading<T> {
    fn new(into: T) -> Self {
        Self { into, problem: None }
    }

    fn keep(&mut self, problem: ProtocolError) -> io::Error {
        self.problem = Some(problem);
        io::Error::other("the answer is of no use")
    }

    /// Returns what `exchange` came to: a problem of the answer is the cause of what HTTP says.
    fn outcome(&mut self, url: &HttpUrl, exchange: Result<HttpUrl, HttpError>) -> Result<HttpUrl, GitError> {
        match self.problem.take() {
            Some(problem) => Err(GitError::Protocol { host: host(url), problem }),
            None => Ok(exchange?),
        }
    }
}

struct First(Listing);

impl Sink for Reading<First> {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.into.0.read_first(part).map_err(|problem| self.keep(problem))
    }
}

impl Sink for Reading<Listing> {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.into.read(part).map_err(|problem| self.keep(problem))
    }
}

struct PackFile {
    answer: Answer,
    file: BufWriter<File>,
}

/// What ends the reading of an answer with a pack.
enum Stop {
    Protocol(ProtocolError),
    Disk(io::Error),
}

impl From<ProtocolError> for Stop {
    fn from(problem: ProtocolError) -> Self {
        Self::Protocol(problem)
    }
}

impl Sink for Reading<PackFile> {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        let PackFile { answer, file } = &mut self.into;
        match answer.read(part, |bytes| file.write_all(bytes).map_err(Stop::Disk)) {
            Ok(()) => Ok(()),
            Err(Stop::Disk(error)) => Err(error),
            Err(Stop::Protocol(problem)) => Err(self.keep(problem)),
        }
    }
}

impl Remote {
    /// Asks a server what it can do. Returns also the commit of the reference, if the server tells it at once.
    pub(super) async fn discover(
        http: &HttpClient,
        url: &GitUrl,
        reference: &Reference,
    ) -> Result<(Self, Option<ObjectId>), GitError> {
        let asked = url.repository().below(REFERENCES, Some(SERVICE));
        let exchange = Exchange { url: &asked, message: None, limit: LONGEST_LISTING };
        let mut reading = Reading::new(First(Listing::new(reference)));
        let answered = http.exchange(exchange, &mut reading).await;
        let answered = reading.outcome(&asked, answered)?;
        let mut listing = reading.into.0;
        let protocol = |problem| GitError::Protocol { host: host(&answered), problem };
        let server = listing.end_first().map_err(protocol)?;
        // A server may send on to where the repository is now; its other services are there, too.
        let repository =
            answered.above(REFERENCES).ok_or_else(|| HttpError::NoGit { host: host(&answered) })?;
        Ok((Self { repository, server }, listing.found()))
    }

    /// Reports whether references can be asked for.
    pub(super) fn has_version_2(&self) -> bool {
        self.server.has_version_2()
    }

    /// Returns the commit of a reference: one small request. Only for servers of version 2.
    pub(super) async fn resolve(
        &self,
        http: &HttpClient,
        reference: &Reference,
    ) -> Result<Option<ObjectId>, GitError> {
        let url = self.repository.below(UPLOAD_PACK, None);
        let message = Some(self.server.ask_references(reference));
        let mut reading = Reading::new(Listing::new(reference));
        let answered =
            http.exchange(Exchange { url: &url, message, limit: LONGEST_LISTING }, &mut reading).await;
        reading.outcome(&url, answered)?;
        let mut listing = reading.into;
        listing.end().map_err(|problem| GitError::Protocol { host: host(&url), problem })?;
        Ok(listing.found())
    }

    /// Fetches the pack of a commit into an empty file.
    pub(super) async fn fetch(
        &self,
        http: &HttpClient,
        commit: ObjectId,
        depth: Option<u32>,
        file: File,
    ) -> Result<File, GitError> {
        let url = self.repository.below(UPLOAD_PACK, None);
        let message = Some(self.server.ask_pack(commit, depth.unwrap_or(DEPTH)));
        let mut reading = Reading::new(PackFile { answer: Answer::default(), file: BufWriter::new(file) });
        let answered =
            http.exchange(Exchange { url: &url, message, limit: LONGEST_PACK }, &mut reading).await;
        reading.outcome(&url, answered)?;
        let PackFile { answer, file } = reading.into;
        answer.end().map_err(|problem| GitError::Protocol { host: host(&url), problem })?;
        let written = file.into_inner().map_err(io::IntoInnerError::into_error);
        Ok(written.map_err(PackError::Disk)?)
    }
}
