//! What is announced about Charts and Repositories: that one is synced, or is not any more. Each once.

use std::sync::Arc;

use serde_json::Value;

use super::object::Object;
use crate::context::Context;
use crate::effect::{Announcement, Effect, ObjectReference};
use crate::hook::snapshot::Key;
use crate::name::Scope;
use crate::notice::Notice;
use crate::package::{ChartRepositorySpec, ChartSpec, RepositoryKey, RepositoryKind};

/// Announces what the status of a Chart says, if the one before did not say it.
pub(super) fn announce_chart(
    cx: &mut Context,
    name: &Arc<str>,
    object: &Object<ChartSpec>,
    was_synced: Option<bool>,
) {
    let (is_synced, message) = object.synced();
    if was_synced == Some(is_synced) {
        return;
    }
    let (reason, message) = if is_synced {
        let lines = object.status.get("resolved").and_then(Value::as_array).into_iter().flatten();
        let versions: Vec<&str> = lines.filter_map(|line| line.get("version")?.as_str()).collect();
        let kept =
            if versions.is_empty() { "no version is asked for".to_owned() } else { versions.join(", ") };
        ("ChartSynced", format!("Chart {name} is synced: {kept}"))
    } else {
        ("ChartFailed", format!("Chart {name} is not synced: {message}"))
    };
    announce(cx, RepositoryKind::Chart, (name, &object.uid), (!is_synced, reason, message));
}

/// Announces what the status of a Repository says, if the one before did not say it.
pub(super) fn announce_repository(
    cx: &mut Context,
    name: &Arc<str>,
    object: &Object<ChartRepositorySpec>,
    was_synced: Option<bool>,
) {
    let (is_synced, message) = object.synced();
    if was_synced == Some(is_synced) {
        return;
    }
    let (reason, message) = if is_synced {
        ("RepositorySynced", format!("Repository {name} is synced"))
    } else {
        ("RepositoryFailed", format!("Repository {name} is not synced: {message}"))
    };
    announce(cx, RepositoryKind::Repository, (name, &object.uid), (!is_synced, reason, message));
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
