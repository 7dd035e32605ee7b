//! Follows whether the objects of a release are ready: looks at them when their watches show a change. No polling.

use std::sync::Arc;
use std::time::Duration;

use engine::{Event, ModuleName, RunId};
use tokio::sync::Notify;

use super::drift::{EventSink, shown};
use super::object_watch::ObjectWatch;
use crate::lasting_task::lasting;

/// How long after a change objects are looked at: changes often come together.
const PAUSE: Duration = Duration::from_millis(500);

/// How long until objects are looked at again of which one could not be read.
const AGAIN: Duration = Duration::from_secs(10);

/// How many objects are named that are not ready.
const NAMED: usize = 20;

impl ObjectWatch {
    /// Reports which objects of a release are not ready, until all of them are.
    pub(super) fn await_ready(&self, run: RunId, module: ModuleName, sink: EventSink) {
        let release = module.as_str().to_owned();
        let bell = Arc::new(Notify::new());
        let (this, rung) = (self.clone(), Arc::clone(&bell));
        let task = tokio::spawn(async move {
            lasting("a look at readiness", || {
                this.clone().follow_readiness(run, module.clone(), Arc::clone(&sink), Arc::clone(&rung))
            })
            .await;
        });
        let objects = self.tracked(&release);
        self.awaited().insert(release.clone(), task.abort_handle(), bell);
        // The task may have asked for the bell before there was one. Too many that ring it do no harm.
        self.awaited().set_objects(&release, &objects);
    }

    async fn follow_readiness(self, run: RunId, module: ModuleName, sink: EventSink, bell: Arc<Notify>) {
        let release = module.as_str().to_owned();
        let mut told = None;
        // Objects that were ready once are looked at again when all the others are.
        let mut is_whole = true;
        let mut objects = self.tracked(&release);
        loop {
            // First, so that no change is missed while they are looked at.
            self.awaited().set_objects(&release, &objects);
            let look = self.look_at_readiness(&objects).await;
            if look.unready.is_empty() && !look.has_failed {
                if is_whole {
                    break;
                }
                is_whole = true;
                objects = self.tracked(&release);
                continue;
            }
            let named = look.unready.iter().map(|(key, why)| format!("{}: {why}", shown(key)));
            let named: Vec<String> = named.take(NAMED).collect();
            if told.as_ref() != Some(&named) && !named.is_empty() {
                let unready = named.clone();
                sink(Event::ReadinessChanged { run, module: module.clone(), unready }).await;
                told = Some(named);
            }
            if look.has_failed {
                let _ = tokio::time::timeout(AGAIN, bell.notified()).await;
                objects = self.tracked(&release);
                is_whole = true;
            } else {
                objects.retain(|(key, _)| look.unready.iter().any(|(unready, _)| unready == key));
                is_whole = false;
                bell.notified().await;
            }
            tokio::time::sleep(PAUSE).await;
        }
        sink(Event::ReadinessChanged { run, module, unready: Vec::new() }).await;
        self.awaited().set_objects(&release, &[]);
    }
}
