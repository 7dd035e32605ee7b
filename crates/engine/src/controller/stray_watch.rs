//! The watch of objects that left the selection of a binding: it is there as long as it is needed.

use std::sync::Arc;

use super::single::Controller;
use super::strays::{Strays, may_stray};
use super::watch::{About, Watch};
use crate::context::Context;
use crate::effect::Effect;
use crate::hook::snapshot::Key;
use crate::hook::{MonitorSpec, Selection};
use crate::name::MonitorId;

impl Controller {
    /// Opens the watch of objects that left the selection, or closes it. Returns which one is to be forgotten, and which one is new.
    pub(super) fn settle_strays(
        &mut self,
        cx: &mut Context,
        monitor: impl FnOnce() -> MonitorId,
    ) -> (Option<MonitorId>, Option<MonitorId>) {
        if self.is_retired || !std::mem::take(&mut self.straying.is_due) || !may_stray(&self.binding) {
            return (None, None);
        }
        let (has_any, is_whole) = match &self.straying.strays {
            // At first their metadata says whether there are any.
            None => (self.straying.has_lost, self.is_listed()),
            Some(strays) if strays.watch.is_known() && self.is_listed() => {
                let is_stray = |key: &Key| !self.selects(key);
                (strays.watch.snapshot.iter().any(|(key, _)| is_stray(key)), true)
            }
            Some(_) => return (None, None),
        };
        self.straying.has_lost = false;
        if has_any && self.straying.strays.as_ref().is_some_and(|strays| strays.is_whole) {
            return (None, None);
        }
        let old = self.straying.strays.take().map(|strays| strays.watch.monitor);
        if let Some(monitor) = old {
            cx.push(Effect::StopMonitor { monitor });
        }
        let new = has_any.then(|| {
            let monitor = monitor();
            let selection = Selection { only_metadata: !is_whole, ..self.binding.parent.ever() };
            let spec = Arc::new(MonitorSpec { selection, jq_filter: None, keep_objects: true });
            cx.push(Effect::StartMonitor { monitor, spec });
            let name = format!("{} that left the selection", self.id.kind);
            let watch = Watch::new(monitor, name.into(), About::Nobody);
            self.straying.strays = Some(Strays { watch, is_whole });
            monitor
        });
        (old, new)
    }
}
