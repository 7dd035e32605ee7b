//! Objects of releases that others change, of modules that want them put right.

use engine::{Drift, DriftMode, Event, Notice, ReleaseAction, view::status, view::why};

use crate::build::{Files, drifted, files};
use crate::world::{World, failure};

const OBJECT: &str = "ops/ConfigMap/web";

const MINUTE: u64 = 60_000;

fn web(mode: DriftMode) -> Files {
    files().module(10, "web").hook("before.sh", "beforeHelm: 1").with(|module| {
        module.settings.drift.mode = mode;
    })
}

fn changed(writer: &str) -> Event {
    let (object, place) = (OBJECT.to_owned(), "/data/k".to_owned());
    drifted("web", Drift::Changed { object, place, writer: Some(writer.to_owned()) })
}

/// A life in which an object is put right.
pub(crate) fn tour() {
    World::new(&web(DriftMode::Enforce)).settled().after(10, changed("kubectl-edit"));
}

fn mends(trace: &str) -> usize {
    trace.lines().filter(|line| line.contains(" mend ")).count()
}

#[test]
fn a_changed_object_is_put_right_without_a_run_or_a_revision_and_that_is_told() {
    let mut world = World::new(&web(DriftMode::Enforce)).settled();
    let trace = world.after(10, changed("kubectl-edit"));
    assert!(trace.contains("mend ops/ConfigMap/web of web #"), "{trace}");
    assert!(mends(&trace) == 1 && !trace.contains("run hook") && !trace.contains("upgrade"), "{trace}");
    let told = |notice: &Notice| match notice {
        Notice::ReleaseDrifted { what, .. } => {
            what == "ops/ConfigMap/web was changed by kubectl-edit at /data/k; it is put right"
        }
        Notice::ObjectMended { object, .. } => object == OBJECT,
        _ => false,
    };
    assert_eq!(world.noticed(told), 2);
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn without_enforce_it_is_told_and_with_off_nothing_is_watched() {
    let mut world = World::new(&web(DriftMode::Watch)).settled();
    let trace = world.after(10, changed("kubectl-edit"));
    assert_eq!(mends(&trace), 0, "{trace}");
    assert!(world.told(status::text).contains("ops/ConfigMap/web at /data/k by kubectl-edit"));
    let trace = World::new(&web(DriftMode::Off)).run();
    assert!(trace.contains("upgrade web") && !trace.contains("watch release"), "{trace}");
}

#[test]
fn who_changes_it_again_and_again_wins_for_an_hour_and_is_named() {
    let mut world = World::new(&web(DriftMode::Enforce)).settled();
    let mut count = 0;
    for _ in 0..10 {
        count += mends(&world.after(MINUTE, changed("argocd-controller")));
    }
    assert_eq!(count, 2, "the third change in an hour is left alone");
    let quarrel = |notice: &Notice| matches!(notice, Notice::ReleaseDrifted { what, .. } if what.contains("by argocd-controller again and again, now at /data/k; it is put right once an hour only"));
    assert_eq!(world.noticed(quarrel), 1);
    let text = world.told(status::text);
    assert!(text.contains("ops/ConfigMap/web at /data/k by argocd-controller, 3 times"), "{text}");
    assert!(text.contains("it is put right once an hour only"), "{text}");
    let trace = world.run_for(62 * MINUTE);
    assert_eq!(mends(&trace), 1, "once an hour: {trace}");
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn each_writer_of_a_quarrel_is_named() {
    let mut world = World::new(&web(DriftMode::Enforce)).settled();
    for writer in ["kubectl-annotate", "kubectl-label", "kubectl-annotate", "kubectl-patch"] {
        world.after(MINUTE, changed(writer));
    }
    let all = "kubectl-label, kubectl-annotate and kubectl-patch";
    let text = world.told(status::text);
    // The fourth is no news, as the object differed still.
    assert!(text.contains(&format!("ops/ConfigMap/web at /data/k by {all}, 3 times")), "{text}");
    let quarrel = "is changed by kubectl-label and kubectl-annotate again and again";
    let told =
        |notice: &Notice| matches!(notice, Notice::ReleaseDrifted { what, .. } if what.contains(quarrel));
    assert_eq!(world.noticed(told), 1);
    // What somebody did before an hour of peace is another story.
    world.run_for(125 * MINUTE);
    world.after(MINUTE, changed("helm"));
    assert!(!format!("{:?}", world.view().modules[0].changed_objects).contains("kubectl"));
}

#[test]
fn a_mend_that_fails_is_told_once_and_comes_again_and_holds_up_nothing() {
    let mut world = World::new(&web(DriftMode::Enforce)).settled();
    for _ in 0..3 {
        world.mends.push_back(Err(failure("the webhook says no")));
    }
    let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("ops/ConfigMap/web was changed by kubectl-edit and can't be put right: the webhook says no"));
    world.send_in(10, changed("kubectl-edit"));
    let trace = world.run_for(4_000);
    assert_eq!(mends(&trace), 1, "{trace}");
    let text = world.told(status::text);
    assert!(text.contains("ops/ConfigMap/web at /data/k by kubectl-edit"), "{text}");
    assert!(text.contains("since its last upgrade; ops/ConfigMap/web: the webhook says no"), "{text}");
    assert!(text.contains("the mend is tried again, at the latest after 5 minutes"), "{text}");
    let why = world.told(|view, format| why::module(view, "web", format).unwrap().text());
    assert!(why.contains("ops/ConfigMap/web: the webhook says no"), "{why}");
    let trace = world.run();
    assert_eq!(mends(&trace), 3, "after 5, 10 and 20 seconds: {trace}");
    assert_eq!(world.noticed(told), 1);
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn what_is_changed_between_the_write_of_a_mend_and_its_answer_differs_still() {
    let restored = || drifted("web", Drift::Restored(OBJECT.to_owned()));
    for quarrels in [false, true] {
        let mut world = World::new(&web(DriftMode::Enforce)).settled();
        if quarrels {
            world.after(10, changed("hpa"));
        }
        world.send_in(10, changed("hpa"));
        // The answer comes 5 ms behind the mend.
        world.send_in(12, restored());
        world.send_in(13, changed("hpa"));
        let trace = world.run_for(MINUTE);
        let text = world.told(status::text);
        if quarrels {
            assert_eq!(mends(&trace), 1, "{trace}");
            assert!(text.contains("ops/ConfigMap/web at /data/k by hpa"), "{text}");
            let trace = world.run_for(62 * MINUTE);
            assert_eq!(mends(&trace), 1, "after an hour: {trace}");
        } else {
            assert_eq!(mends(&trace), 2, "{trace}");
        }
        let text = world.told(status::text);
        assert!(text.contains("Nothing needs attention"), "{text}");
    }
}

#[test]
fn a_mend_waits_for_a_run_of_its_module_that_writes_the_object_anyway() {
    let mut world =
        World::new(&web(DriftMode::Enforce)).release("web", Ok(ReleaseAction::Installed)).settled();
    world = world.release("web", Ok(ReleaseAction::Upgraded));
    world.send_in(10, crate::build::config(101, &[("web", "x: 1")]));
    let trace = world.after(15, changed("kubectl-edit"));
    assert!(trace.contains("upgrade web"), "{trace}");
    assert_eq!(mends(&world.run_for(MINUTE)), 0, "the upgrade wrote it");
}

#[test]
fn in_maintenance_nothing_is_put_right_and_afterwards_it_is() {
    let maintenance = |revision, text| crate::build::config(revision, &[("webMaintenance", text)]);
    // Before the run that says so in the release, too.
    let mut world = World::new(&web(DriftMode::Enforce)).settled();
    world.send_in(10, maintenance(101, "NoResourceReconciliation"));
    let trace = world.after(15, changed("kubectl-edit"));
    assert_eq!(mends(&trace), 0, "{trace}");
    assert!(trace.contains("upgrade web") && trace.contains("in maintenance"), "{trace}");
    // The release changes with it, and is not watched any more.
    world = world.release("web", Ok(ReleaseAction::Upgraded));
    world.after(10, maintenance(102, ""));
    world = world.release("web", Ok(ReleaseAction::Upgraded));
    let trace = world.after(10, maintenance(103, "NoResourceReconciliation"));
    assert!(trace.contains("forget release web"), "{trace}");
    let trace = world.after(10, changed("kubectl-edit"));
    assert_eq!(mends(&trace), 0, "{trace}");
    let promised = |notice: &Notice| matches!(notice, Notice::ReleaseDrifted { what, .. } if what.contains("it is put right"));
    assert_eq!(world.noticed(promised), 0);
    world = world.release("web", Ok(ReleaseAction::Upgraded));
    let trace = world.after(10, maintenance(104, ""));
    assert!(trace.contains("watch release web"), "{trace}");
    assert_eq!(mends(&world.after(10, changed("kubectl-edit"))), 1);
}

#[test]
fn a_module_that_begins_to_enforce_puts_right_what_differs_already() {
    let files = web(DriftMode::Watch);
    let mut world = World::new(&files).settled();
    world.after(10, changed("kubectl-edit"));
    let mut catalog = web(DriftMode::Enforce).catalog();
    for module in std::sync::Arc::make_mut(&mut catalog.modules) {
        std::sync::Arc::make_mut(module).content = 2;
    }
    let trace = world.after(10, Event::CatalogChanged { catalog });
    assert!(trace.contains("watch release web") && mends(&trace) == 1, "{trace}");
    let trace = world.after(10, Event::CatalogChanged { catalog: web(DriftMode::Off).catalog() });
    assert!(trace.contains("forget release web"), "{trace}");
}
