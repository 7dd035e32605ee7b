//! What is announced about Charts: that one is synced, or is not any more. Each once.

use std::sync::Arc;

use serde_json::Value;

use super::object::Object;
use crate::context::Context;
use crate::effect::{Announcement, Effect, ObjectReference};
use crate::hook::snapshot::Key;
use crate::package::{ChartSpec, RepositoryKey, RepositoryKind};

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
    let object = Some(ObjectReference {
        api_version: RepositoryKey::API_VERSION.to_owned(),
        kind: RepositoryKind::Chart.as_str().to_owned(),
        key: Key::new("", name),
        uid: object.uid.clone(),
    });
    let warning = !is_synced;
    cx.push(Effect::Announce(Announcement { module: None, source: None, object, warning, reason, message }));
}
