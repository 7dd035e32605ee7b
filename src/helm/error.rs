//! Why a release could not be installed, upgraded, rendered or removed.

use std::fmt::Write as _;

use chart::record::EncodeRecordError;
use chart::render::RenderError;
use engine::{Failure, FailureKind};

use super::chart_files::OpenError;
use super::object::ObjectError;
use super::render_thread::RenderThreadError;
use crate::cluster::request::RequestError;
use crate::cluster::{ResolveError, is_of_quota};

/// Why a release could not be installed, upgraded, rendered or removed.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The chart can't be loaded.
    #[error("chart of module {module}: {source}")]
    Open {
        /// The name of the module whose chart it is.
        module: String,
        /// Why not.
        source: Box<OpenError>,
    },
    /// The archive of the chart can't be had.
    #[error("{0}")]
    Archive(Box<Failure>),
    /// The name can't be that of a release.
    #[error(transparent)]
    Name(#[from] chart::NameError),
    /// The chart does not render.
    #[error("{error}{excerpt}")]
    Render {
        /// What Helm would say.
        error: Box<RenderError>,
        /// The rendered lines around the place, if there are any.
        excerpt: String,
    },
    /// The render could not run, or panicked.
    #[error(transparent)]
    RenderThread(#[from] RenderThreadError),
    /// What was rendered is not made of objects.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Nobody knows the kind of an object.
    #[error(
        "{path}: {kind} {name}: {source}; the other modules go first, because one of them may bring the CRD"
    )]
    Kind {
        /// The path of the template that the object was rendered from.
        path: String,
        /// The kind of the object, such as `ConfigMap`.
        kind: String,
        /// The name of the object.
        name: String,
        /// What the cluster knows instead.
        source: ResolveError,
    },
    /// The kinds of the API server are not known.
    #[error("GET /apis: the kinds of the cluster are not known: {0}")]
    Kinds(String),
    /// The record can't be written.
    #[error(transparent)]
    Encode(#[from] EncodeRecordError),
    /// A record can't be read.
    #[error("revision {version} of release {release} can not be read: {problem}")]
    Record {
        /// The name of the release.
        release: String,
        /// The number of the revision, counted from 1.
        version: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// The API server did not answer, or refused.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The program of `--helm-backend=cli` failed.
    #[error("helm {what}: {problem}")]
    Command {
        /// Which command of it.
        what: &'static str,
        /// What it said, or what it did.
        problem: String,
    },
    /// The operator ends, or something newer takes its place.
    #[error(
        "it was ended before its time: the operator ends, or something newer takes its place; it is done again"
    )]
    Cancelled,
    /// Objects were refused; others were written.
    #[error("{}", .0.join("; "))]
    Objects(Vec<String>),
    /// CRDs are not there as they are to be; others are.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Crds(Vec<ReleaseError>),
    /// A hook failed.
    #[error("{event} hook {hook} failed: {problem}")]
    Hook {
        /// When it ran.
        event: &'static str,
        /// `Kind name`.
        hook: String,
        /// What went wrong.
        problem: String,
    },
    /// A file of CRDs can't be used.
    #[error("{path}: {problem}")]
    Crd {
        /// The path of the file, with that of its module.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A CRD did not come into force.
    #[error("CRD {name} is not established after {seconds} s")]
    NotEstablished {
        /// The name of the CRD: `widgets.example.com`.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
}

/// What the API server says where a right is missing.
const FORBIDDEN: &str = " is forbidden: ";

impl ReleaseError {
    /// Returns the error of an object whose kind was not found.
    pub(super) fn of_kind(path: &str, kind: &str, name: &str, source: ResolveError) -> Self {
        match source {
            ResolveError::Unknown(_) => {
                Self::Kind { path: path.to_owned(), kind: kind.to_owned(), name: name.to_owned(), source }
            }
            ResolveError::Cluster(error) => {
                Self::Kinds(Failure::of(FailureKind::Cluster, &error).to_string())
            }
        }
    }

    /// Returns whether a missing right is the reason.
    pub(super) fn is_refusal(&self) -> bool {
        if let Self::Crds(errors) = self {
            return errors.iter().any(Self::is_refusal);
        }
        let is_refused =
            matches!(self, Self::Request(error) if error.code() == 403 && !error.is_terminating());
        is_refused && !self.is_of_quota()
    }

    /// Returns whether a quota is the reason, which is used up.
    pub(super) fn is_of_quota(&self) -> bool {
        is_of_quota(&self.to_string())
    }

    /// Returns whether a missing right may be the reason.
    pub(super) fn may_be_a_refusal(&self) -> bool {
        match self {
            _ if self.is_of_quota() => false,
            Self::Request(_) | Self::Crds(_) => self.is_refusal(),
            // What it is made of has passed through others, but for the words of the API server.
            Self::Objects(_) | Self::Hook { .. } | Self::Render { .. } | Self::Command { .. } => {
                self.to_string().contains(FORBIDDEN)
            }
            Self::Archive(_)
            | Self::Open { .. }
            | Self::Name(_)
            | Self::RenderThread(_)
            | Self::Object(_)
            | Self::Kind { .. }
            | Self::Kinds(_)
            | Self::Encode(_)
            | Self::Record { .. }
            | Self::Cancelled
            | Self::Crd { .. }
            | Self::NotEstablished { .. } => false,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Archive(failure) => failure.kind,
            Self::Open { .. } | Self::Crd { .. } => FailureKind::Files,
            Self::Render { error, .. } => match **error {
                RenderError::Values(_) | RenderError::Schema(_) => FailureKind::Values,
                RenderError::NotInstallable(_)
                | RenderError::Missing(_)
                | RenderError::KubeVersion { .. }
                | RenderError::Parse(_)
                | RenderError::Execute { .. }
                | RenderError::Manifest(_) => FailureKind::Render,
            },
            Self::Object(_) => FailureKind::Render,
            Self::RenderThread(_) => FailureKind::Bug,
            Self::Request(error) if error.is_terminating() => FailureKind::Terminating,
            Self::Request(_) | Self::Kinds(_) => FailureKind::Cluster,
            Self::Crds(errors) => errors.first().map_or(FailureKind::Release, Self::kind),
            Self::Kind { .. } => FailureKind::MissingKind,
            Self::Cancelled => FailureKind::Cancelled,
            Self::Name(_)
            | Self::Encode(_)
            | Self::Record { .. }
            | Self::Objects(_)
            | Self::Hook { .. }
            | Self::Command { .. }
            | Self::NotEstablished { .. } => FailureKind::Release,
        }
    }

    /// Returns the failure for the engine, after `what` was tried.
    pub fn failure(&self, what: &str) -> Failure {
        let failure = Failure::new(self.kind(), format!("{what}: {self}"));
        if matches!(self, Self::Kind { .. }) {
            return failure.advise("enable the module that brings the CRD, or install it");
        }
        if matches!(self, Self::Request(error) if error.is_terminating() || error.is_without_namespace()) {
            return failure.advise("make the namespace of the release again, since the operator does not make it; it goes on by itself then");
        }
        failure
    }
}

impl From<Failure> for ReleaseError {
    fn from(failure: Failure) -> Self {
        Self::Archive(Box::new(failure))
    }
}

impl From<RenderError> for ReleaseError {
    fn from(error: RenderError) -> Self {
        let excerpt = match &error {
            RenderError::Manifest(error) => excerpt(&error.content),
            RenderError::NotInstallable(_)
            | RenderError::Missing(_)
            | RenderError::Values(_)
            | RenderError::Schema(_)
            | RenderError::KubeVersion { .. }
            | RenderError::Parse(_)
            | RenderError::Execute { .. } => String::new(),
        };
        Self::Render { error: Box::new(error), excerpt }
    }
}

/// Returns the rendered lines around the place where they stop being YAML.
fn excerpt(content: &str) -> String {
    const AROUND: usize = 2;
    let Err(error) = values::yaml::parse(content) else { return String::new() };
    let line = error.position().line;
    let first = line.saturating_sub(AROUND).max(1);
    let mut text = String::from("\nrendered as:");
    for (index, shown) in content.lines().enumerate().skip(first - 1).take(2 * AROUND + 1) {
        let mark = if index + 1 == line { '>' } else { ' ' };
        // Writing to a String can't fail.
        let _ = write!(text, "\n{mark} {:4} | {shown}", index + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_may_be_missing_only_where_the_api_server_says_so() {
        let refused = "configmaps \"a\" is forbidden: User \"x\" cannot get resource";
        let objects =
            |problem: &str| ReleaseError::Objects(vec!["ConfigMap a: 409".to_owned(), problem.to_owned()]);
        let hook = |problem: &str| {
            let (hook, problem) = ("Job a".to_owned(), problem.to_owned());
            ReleaseError::Hook { event: "pre-install", hook, problem }
        };
        let command = |problem: &str| ReleaseError::Command { what: "upgrade", problem: problem.to_owned() };
        for of in [&objects as &dyn Fn(&str) -> ReleaseError, &hook, &command] {
            assert!(of(refused).may_be_a_refusal());
            let full =
                of("secrets \"a\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=9");
            assert!(full.is_of_quota() && !full.may_be_a_refusal() && !of(refused).is_of_quota());
            assert!(!of("it did not end in time").may_be_a_refusal());
        }
    }

    #[test]
    fn the_lines_around_an_error_are_shown() {
        let shown = excerpt("kind: A\nspec:\n\tx: 1\nb: 2\nc: 3\nd: 4");
        assert_eq!(
            shown,
            "\nrendered as:\n     1 | kind: A\n     2 | spec:\n>    3 | \tx: 1\n     4 | b: 2\n     5 | c: 3"
        );
    }
}
