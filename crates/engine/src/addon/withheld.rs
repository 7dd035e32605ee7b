//! A version that its repository offers, and that does not replace the one which runs.

use serde::{Deserialize, Serialize};

use super::Digest;

/// A version that does not replace the one which runs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WithheldVersion {
    /// The version.
    pub version: String,
    /// The digest of its bundle.
    pub digest: Digest,
    /// Why it does not come.
    pub why: HoldReason,
}

/// A bundle with which a module did not run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenUpBundle {
    /// Its digest.
    pub digest: Digest,
    /// What the counter of the spec said then: a higher one has it tried again.
    pub reprocess_request: i64,
}

/// Why a version does not replace the one which runs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum HoldReason {
    /// Its module did not run with it, so the version before it came back.
    RolledBack {
        /// What the counter of the spec said then: a higher one has it tried again.
        reprocess_request: i64,
    },
    /// It may come later.
    Waiting {
        /// Whether somebody has to approve it.
        for_approval: bool,
        /// Whether no window is open.
        for_window: bool,
    },
}

impl HoldReason {
    /// Returns whether somebody has to approve the version.
    pub(crate) fn is_for_approval(&self) -> bool {
        matches!(self, Self::Waiting { for_approval: true, .. })
    }
}

impl WithheldVersion {
    /// Returns whether the version came already, and went.
    pub fn is_rolled_back(&self) -> bool {
        matches!(self.why, HoldReason::RolledBack { .. })
    }

    /// Returns the bundle that was given up, if that is why.
    pub(crate) fn given_up(&self) -> Option<GivenUpBundle> {
        let HoldReason::RolledBack { reprocess_request } = self.why else { return None };
        Some(GivenUpBundle { digest: self.digest.clone(), reprocess_request })
    }

    /// Returns whether it waits for an approval.
    pub fn waits_for_approval(&self) -> bool {
        self.why.is_for_approval()
    }

    /// Returns whether it waits for a window.
    pub fn waits_for_window(&self) -> bool {
        matches!(self.why, HoldReason::Waiting { for_window: true, .. })
    }
}
