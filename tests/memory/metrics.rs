//! The metrics of a thousand modules: what they hold, and what a scrape needs.

use std::time::Duration;

use addon_operator::telemetry::Telemetry;
use engine::{Cause, HookEnd, HookId, Notice, ReleaseAction, Scope, TaskId, TaskInfo, TaskType, Usage};

use crate::{alone, counting, grown_by};

/// How many modules there are.
const MODULES: usize = 1_000;

/// What the metrics of a module with two hooks may hold. The vectors of the library held 18 KiB.
const EACH: usize = 6 << 10;

/// What a scrape may need, whatever the length of its text.
const SCRAPE: usize = 512 << 10;

/// Counts the first run of a module with a hook before its release and one behind it.
fn run_module(telemetry: &Telemetry, name: &str) {
    let scope = Scope::Module(name.into());
    let usage = Usage {
        took: Duration::from_millis(3),
        user: Duration::from_millis(1),
        system: Duration::from_millis(1),
        max_rss: 4 << 20,
    };
    let task = TaskInfo {
        id: TaskId::new(1),
        queue: "main".into(),
        kind: TaskType::ModuleRun,
        scope: scope.clone(),
        hook: None,
        binding: None,
        cause: Cause::start(),
    };
    let took = Duration::from_millis(30);
    telemetry.take(Notice::TaskStarted { task: task.clone(), waited: took });
    for (hook, binding) in [("hooks/before", "beforeHelm"), ("hooks/after", "afterHelm")] {
        telemetry.take(Notice::HookRan {
            hook: HookId { scope: scope.clone(), name: hook.into() },
            binding,
            queue: "main".into(),
            usage: Some(usage),
            outcome: HookEnd::Success,
            is_task: false,
            startup: true,
        });
    }
    let action = Some(ReleaseAction::Installed);
    telemetry.take(Notice::ReleaseRan { module: name.into(), action, took, startup: true });
    telemetry.take(Notice::TaskFinished {
        task,
        took,
        failure: None,
        retry: None,
        allowed: false,
        is_old: false,
    });
}

#[test]
fn the_metrics_of_a_module_hold_its_labels_and_numbers_and_a_scrape_only_what_it_sends() {
    let _alone = alone();
    let telemetry = Telemetry::new("addon_operator_").unwrap();
    run_module(&telemetry, "first");
    let before = counting::live();
    for number in 0..MODULES {
        run_module(&telemetry, &format!("module-{number:04}"));
    }
    let each = (counting::live() - before) / MODULES;
    assert!(each < EACH, "{each} bytes for each module");
    let mut length = 0;
    let grown = grown_by(async {
        length = telemetry.metrics(None).map(|piece| piece.len()).sum();
    });
    assert!(length > 10 << 20, "{length} bytes of text");
    assert!(grown < SCRAPE, "{grown} bytes were held at most for {length} bytes of text");
}
