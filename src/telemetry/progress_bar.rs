//! The progress of a converge as a bar at the bottom of a terminal.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use engine::{ModuleName, Notice};
use indicatif::{ProgressBar, ProgressStyle};

/// The bar, once it is open. A process has one terminal, and so one bar.
static BAR: OnceLock<Bar> = OnceLock::new();

/// How many changes wait for a terminal that is stopped before changes are left out.
const WAITING: usize = 1024;

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);

/// A bar is drawn by a thread of its own: a terminal that is stopped must not stop the operator.
struct Bar {
    shown: ProgressBar,
    phases: Mutex<Phases>,
    changes: SyncSender<Change>,
}

/// What changes of the bar.
struct Change {
    done: u64,
    all: u64,
    message: String,
    /// Whether a converge begins; `false` if one ends.
    begins: Option<bool>,
}

/// The phase of each module that is on.
#[derive(Debug, Default)]
struct Phases(BTreeMap<ModuleName, &'static str>);

/// Shows progress from now on, on standard error.
pub fn open() {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {bar:24} {pos}/{len} modules  {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_message("the operator starts");
    // Drawn at once: a start may be over before the first tick.
    bar.tick();
    bar.enable_steady_tick(TICK);
    let (changes, drawn) = sync_channel(WAITING);
    let shown = bar.clone();
    let draw = move || drawn.iter().for_each(|change| draw(&shown, change));
    if std::thread::Builder::new().name("progress".to_owned()).spawn(draw).is_ok() {
        let _ = BAR.set(Bar { shown: bar, phases: Mutex::default(), changes });
    }
}

fn draw(bar: &ProgressBar, change: Change) {
    bar.set_length(change.all);
    bar.set_position(change.done);
    bar.set_message(change.message);
    match change.begins {
        Some(false) => {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
        Some(true) => {
            bar.reset();
            bar.enable_steady_tick(TICK);
        }
        None => {}
    }
}

/// Hides the bar while `work` writes to the terminal.
pub(super) fn aside(work: impl FnOnce()) {
    match BAR.get() {
        Some(bar) => bar.shown.suspend(work),
        None => work(),
    }
}

/// Updates the bar after a notice.
#[expect(clippy::wildcard_enum_match_arm, reason = "most notices are not about how far converges are")]
pub(super) fn take(notice: &Notice) {
    let Some(bar) = BAR.get() else { return };
    let mut phases = bar.phases.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(message) = phases.take(notice) else { return };
    let (done, all) = phases.count();
    let begins = match notice {
        Notice::ConvergeFinished { .. } => Some(false),
        Notice::ConvergeStarted { .. } => Some(true),
        _ => None,
    };
    let _ = bar.changes.try_send(Change { done, all, message, begins });
}

impl Phases {
    /// Updates the phases after a notice. Returns the new message next to the bar, if there is one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most notices are not about how far modules are")]
    fn take(&mut self, notice: &Notice) -> Option<String> {
        match notice {
            Notice::ConvergeStarted { .. } => Some("finding out which modules are on".to_owned()),
            Notice::ModulesDiscovered { modules } => {
                let on = modules.iter().filter(|(_, on)| *on).map(|(name, _)| name.clone());
                let before = std::mem::take(&mut self.0);
                self.0 =
                    on.map(|name| (name.clone(), before.get(&name).copied().unwrap_or("starting"))).collect();
                Some(format!("{} modules are on", self.0.len()))
            }
            Notice::ModuleChanged { module, phase, .. } => {
                if let Some(known) = self.0.get_mut(module) {
                    *known = phase;
                }
                Some(format!("module {module} is {phase}"))
            }
            Notice::ConvergeFinished { .. } => Some("ready".to_owned()),
            _ => None,
        }
    }

    /// Returns how many modules run, and how many there are.
    fn count(&self) -> (u64, u64) {
        let done = self.0.values().filter(|phase| matches!(**phase, "running" | "parked")).count();
        (u64::try_from(done).unwrap_or_default(), u64::try_from(self.0.len()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_run_are_counted() {
        let mut phases = Phases::default();
        let modules = [("web", true), ("api", true), ("old", false)];
        let modules: Vec<_> = modules.map(|(name, on)| (ModuleName::from(name), on)).into();
        phases.take(&Notice::ModulesDiscovered { modules: modules.into() });
        assert_eq!(phases.count(), (0, 2));
        let changed = |phase| Notice::ModuleChanged { module: "web".into(), phase, reason: None };
        assert_eq!(phases.take(&changed("running")).as_deref(), Some("module web is running"));
        assert_eq!(phases.count(), (1, 2));
        phases.take(&changed("failed"));
        assert_eq!(phases.count(), (0, 2));
    }
}
