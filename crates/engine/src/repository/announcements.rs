//! What is announced about Charts and Repositories: that one is synced, or is not any more. Each once.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::object::Object;
use crate::context::Context;
use crate::effect::{Announcement, Effect, ObjectReference};
use crate::hook::snapshot::Key;
use crate::name::Scope;
use crate::notice::Notice;
use crate::package::{ChartRepositorySpec, ChartSpec, RepositoryKey, RepositoryKind};

/// What was announced of an object last.
///
/// The status is no record of that: a watch shows what was written before the answer comes, or what was there before that.
#[derive(Debug, Default)]
pub(super) struct Announced {
    uid: Option<String>,
    is_synced: Option<bool>,
    /// Whether nobody knows if the last status was written.
    is_in_doubt: bool,
}

impl Announced {
    /// Takes in an object as a watch shows it. What it says when it is seen first was announced by an operator before this one.
    pub(super) fn see(&mut self, uid: &str, says_synced: Option<bool>) {
        if self.uid.as_deref() != Some(uid) {
            *self = Self { uid: Some(uid.to_owned()), is_synced: says_synced, is_in_doubt: false };
        }
    }

    /// Records that the answer to the write of a status is lost.
    pub(super) const fn doubt(&mut self) {
        self.is_in_doubt = true;
    }

    /// Returns whether a status that is as it should be may have to be announced still.
    pub(super) const fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// Records that this is announced now. Returns whether it was not before.
    fn is_news(&mut self, is_synced: bool) -> bool {
        self.is_in_doubt = false;
        self.is_synced.replace(is_synced) != Some(is_synced)
    }
}

/// Announces what the status of a Chart says, if that was not announced before.
pub(super) fn announce_chart(
    cx: &mut Context,
    name: &Arc<str>,
    object: &Object<ChartSpec>,
    announced: &mut Announced,
) {
    let (is_synced, message) = object.synced();
    if !announced.is_news(is_synced) {
        return;
    }
    let (reason, message) = if is_synced {
        let lines = object.status.get("resolved").and_then(Value::as_array).into_iter().flatten();
        let versions: Vec<&str> = lines.filter_map(|line| line.get("version")?.as_str()).collect();
        let kept =
            if versions.is_empty() { "no version is asked for".to_owned() } else { versions.join(", ") };
        let but = if message.is_empty() { String::new() } else { format!("; {message}") };
        ("ChartSynced", format!("Chart {name} is synced: {kept}{but}"))
    } else {
        ("ChartFailed", format!("Chart {name} is not synced: {message}"))
    };
    announce(cx, RepositoryKind::Chart, (name, &object.uid), (!is_synced, reason, message));
}

/// Announces what the status of a Repository says, if that was not announced before.
pub(super) fn announce_repository(
    cx: &mut Context,
    name: &Arc<str>,
    object: &Object<ChartRepositorySpec>,
    announced: &mut Announced,
) {
    let (is_synced, message) = object.synced();
    if !announced.is_news(is_synced) {
        return;
    }
    let (reason, message) = if is_synced {
        ("RepositorySynced", format!("Repository {name} is synced"))
    } else {
        ("RepositoryFailed", format!("Repository {name} is not synced: {message}"))
    };
    announce(cx, RepositoryKind::Repository, (name, &object.uid), (!is_synced, reason, message));
}

/// Announces that charts or versions of an index are left out because of their names.
pub(super) fn announce_left_out(
    cx: &mut Context,
    name: &Arc<str>,
    object: &Object<ChartRepositorySpec>,
    left_out: &BTreeSet<String>,
) {
    let names = left_out.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let message = format!(
        "Repository {name}: of its index is left out, because of the names: {names}; names of charts have at most 250 letters, digits, -, _ and . and no dot at the beginning, versions at most 128"
    );
    announce(cx, RepositoryKind::Repository, (name, &object.uid), (true, "ChartsLeftOut", message));
}

/// Announces something on an object. A warning is in the log, too.
fn announce(
    cx: &mut Context,
    kind: RepositoryKind,
    (name, uid): (&Arc<str>, &str),
    (warning, reason, message): (bool, &'static str, String),
) {
    let object = Some(ObjectReference {
        api_version: RepositoryKey::API_VERSION.to_owned(),
        kind: kind.as_str().to_owned(),
        key: Key::new("", name),
        uid: uid.to_owned(),
    });
    if warning {
        cx.notify(Notice::Warned { scope: Scope::Global, message: message.clone() });
    }
    cx.push(Effect::Announce(Announcement { module: None, source: None, object, warning, reason, message }));
}
