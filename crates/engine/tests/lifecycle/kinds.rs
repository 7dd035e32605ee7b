//! Kinds that do not exist yet: whoever waits for one lets those go first that may bring it.

use engine::hook::WatchEvent::Added;
use engine::{Command, CommandId, Config, Event, FailureKind, Notice};
use serde_json::json;

use crate::build::{Files, TICK, config, cron, files, reread, sets};
use crate::random::{Random, live, seeds};
use crate::world::World;

fn is_ready(world: &World) -> bool {
    world.engine.converge_view(world.now).first_done
}

/// Asserts that nothing waits any more.
fn assert_at_rest(world: &World) {
    for queue in &world.view().queues {
        assert!(queue.tasks.is_empty(), "queue {} is stuck: {:#?}", queue.name, queue.tasks);
    }
    assert!(is_ready(world), "{:?}", world.view().converge);
}

/// Returns the places of texts in a trace, which have to be there.
fn places<const N: usize>(trace: &str, texts: [&str; N]) -> [usize; N] {
    texts.map(|text| trace.find(text).unwrap_or_else(|| panic!("{text} is not in {trace}")))
}

#[test]
fn slip_01_a_global_hook_with_a_missing_kind_among_its_bindings_lets_the_modules_go_first() {
    let files = files()
        .global_hook("both.sh", "kubernetes: [{name: pods, kind: Pod}, {name: things, kind: Thing}]")
        .module(10, "web");
    let mut world = World::new(&files).without_kind("Thing");
    let trace = world.run();
    assert!(trace.contains("upgrade web") && !trace.contains("run hook"), "{trace}");
    assert!(!is_ready(&world));
    world.kind_appears("Thing");
    let trace = world.run();
    let [pods, things] = places(&trace, ["[pods Synchronization]", "[things Synchronization]"]);
    assert!(pods < things, "the order of the configuration is kept: {trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_kind_that_comes_while_others_are_waited_for_is_seen_before_the_modules() {
    let files = files()
        .global_hook("late.sh", "kubernetes: [{name: things, kind: Thing}]")
        .global_hook("slow.sh", "kubernetes: [{name: pods, kind: Pod, queue: side}]")
        .module(10, "web");
    let mut world = World::new(&files).without_kind("Thing").takes("global/slow.sh", 5_000);
    world.run_until(1_000);
    world.kind_appears("Thing");
    let trace = world.run();
    let [late, web] = places(&trace, ["[things Synchronization]", "upgrade web"]);
    assert!(late < web, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_hook_before_all_modules_runs_when_a_module_has_brought_its_kind() {
    let files = files()
        .global_hook("all.sh", "{beforeAll: 1, kubernetes: [{name: things, kind: Thing}]}")
        .module(10, "user")
        .module(20, "crds");
    let mut world = World::new(&files)
        .brings("crds", "Thing")
        .hook("global/all.sh", Ok(engine::HookOutput::default()))
        .hook("global/all.sh", Ok(sets("/global/things", &json!(1))))
        .showing_values();
    let trace = world.run();
    let [first, sync, all, again] = places(
        &trace,
        ["upgrade user #1 {} {}", "[things Synchronization]", "[beforeAll]", r#"{"things":1} {}"#],
    );
    assert!(first < sync && sync < all && all < again, "{trace}");
    assert!(trace.matches("upgrade user").count() == 2, "the values are new to the modules: {trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_hook_before_all_modules_that_waits_is_shown_and_the_operator_is_not_ready() {
    let files = files()
        .global_hook(
            "all.sh",
            "{beforeAll: 1, kubernetes: [{name: things, kind: Thing, queue: side, waitForSynchronization: false}]}",
        )
        .global_hook("tick.sh", TICK)
        .module(10, "web");
    let mut world = World::new(&files).without_kind("Thing").settled();
    let main = &world.view().queues[0];
    assert_eq!(main.tasks[0].waits_for.as_deref(), Some("kind Thing does not exist yet"));
    assert!(!is_ready(&world));
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::ReadinessWaits { .. })), 1);
    let trace = world.after(10, cron("* * * * *"));
    assert!(trace.contains("[tick Schedule]"), "the first converge is through: {trace}");
    for n in 0..3 {
        world.after(10, Event::Commanded { id: CommandId::new(n), command: Command::Converge });
    }
    assert_eq!(world.queue("main").len(), 1, "it waits once, whatever came meanwhile");
    world.kind_appears("Thing");
    world.run();
    assert_at_rest(&world);
}

#[test]
fn slip_01_the_operator_is_not_ready_before_a_hook_before_all_modules_has_run_that_waited_for_its_kind() {
    let files = files()
        .global_hook("all.sh", "{beforeAll: 1, kubernetes: [{name: things, kind: Thing}]}")
        .module(10, "web");
    let failed = || Err(engine::Failure::new(engine::FailureKind::HookExit, "exit code 1"));
    let mut world = World::new(&files)
        .without_kind("Thing")
        .hook("global/all.sh", Ok(engine::HookOutput::default()))
        .hook("global/all.sh", failed())
        .hook("global/all.sh", failed());
    let trace = world.run();
    assert!(trace.contains("upgrade web") && !is_ready(&world), "{trace}");
    world.kind_appears("Thing");
    let trace = world.run_until(7_000);
    assert!(trace.contains("[beforeAll]") && !is_ready(&world), "{trace}");
    world.run();
    assert_at_rest(&world);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::Ready)), 1);
}

#[test]
fn slip_01_a_snapshot_of_a_missing_kind_holds_back_its_hook_alone() {
    let files = files()
        .global_hook(
            "g.sh",
            "kubernetes: [{name: pods, kind: Pod, includeSnapshotsFrom: [things]}, \
             {name: things, kind: Thing, queue: side, waitForSynchronization: false}]",
        )
        .module(10, "a")
        .hook(
            "a.sh",
            "{afterHelm: 1, kubernetes: [{name: things, kind: Thing, queue: side, waitForSynchronization: false}]}",
        )
        .module(20, "crds");
    let mut world = World::new(&files).brings("crds", "Thing");
    let trace = world.run();
    let [crds, after] = places(&trace, ["upgrade crds", "[afterHelm]"]);
    assert!(crds < after, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_global_hook_that_may_not_list_a_kind_lets_the_modules_go_first_and_heals_with_the_right() {
    let files = files()
        .global_hook(
            "both.sh",
            "{beforeAll: 1, kubernetes: [{name: pods, kind: Pod}, {name: keys, kind: Secret}]}",
        )
        .module(10, "web");
    let mut world = World::new(&files).without_right("Secret");
    let trace = world.run();
    assert!(trace.contains("upgrade web") && !trace.contains("run hook"), "{trace}");
    assert!(!is_ready(&world));
    let told = |notice: &Notice| matches!(notice, Notice::ReadinessWaits { reason, .. } if reason == "the right to list and watch kind Secret");
    assert_eq!(world.noticed(told), 1);
    let status = world.told(engine::view::status::text);
    assert!(status.contains("! watch of Secret is broken"), "{status}");
    world.kind_appears("Secret");
    let trace = world.run();
    let [pods, keys, all] =
        places(&trace, ["[pods Synchronization]", "[keys Synchronization]", "[beforeAll]"]);
    assert!(pods < keys && keys < all, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_module_that_may_not_list_a_kind_goes_behind_the_one_that_grants_the_right() {
    let files = files()
        .module(10, "user")
        .hook("u.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing}]}")
        .module(20, "roles")
        .module(30, "last");
    let mut world = World::new(&files).grants("roles", "Thing");
    let trace = world.run();
    let [roles, sync, user] = places(&trace, ["upgrade roles", "[things Synchronization]", "upgrade user"]);
    assert!(roles < sync && sync < user, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_right_that_comes_a_moment_after_the_operator_is_waited_for() {
    let files = files().global_hook("g.sh", "kubernetes: [{name: things, kind: Thing}]").module(10, "web");
    let mut world = World::new(&files).without_right("Thing");
    world.run_until(4_000);
    world.kind_appears("Thing");
    let trace = world.run();
    let [sync, web] = places(&trace, ["[things Synchronization]", "upgrade web"]);
    assert!(sync < web, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_right_that_others_wait_for_in_vain_is_not_waited_for_once_more() {
    let files = files()
        .global_hook(
            "g.sh",
            "kubernetes: [{name: things, kind: Thing, queue: side, waitForSynchronization: false}]",
        )
        .global_hook("slow.sh", "kubernetes: [{name: pods, kind: Pod}]")
        .module(10, "late")
        .hook("l.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing, jqFilter: .spec}]}")
        .module(20, "web");
    let mut world = World::new(&files).without_right("Thing").takes("global/slow.sh", 20_000);
    let trace = world.run_until(21_000);
    assert!(trace.contains("upgrade web"), "its right is missing for 20 s already: {trace}");
    world.kind_appears("Thing");
    world.run();
    assert_at_rest(&world);
}

#[test]
fn slip_01_a_global_hook_whose_first_list_fails_or_hangs_lets_the_modules_go_first_and_heals() {
    for failure in [Some(FailureKind::Cluster), Some(FailureKind::HookOutput), None] {
        let files = files()
            .global_hook("g.sh", "{beforeAll: 1, kubernetes: [{name: things, kind: Thing}]}")
            .module(10, "web");
        let mut world = World::new(&files).failing_to_list("Thing", failure);
        let seconds = if failure.is_some() { 5 } else { 60 };
        let trace = world.run_until(seconds * 1_000 - 100);
        assert!(!trace.contains("upgrade web"), "{failure:?}: {trace}");
        let trace = world.run();
        assert!(trace.contains("upgrade web") && !trace.contains("run hook"), "{failure:?}: {trace}");
        assert!(!is_ready(&world));
        let reason = "the first list of kind Thing, which does not come";
        let told =
            |notice: &Notice| matches!(notice, Notice::ReadinessWaits { reason: its, .. } if its == reason);
        assert_eq!(world.noticed(told), 1, "{failure:?}");
        world.kind_appears("Thing");
        let trace = world.run();
        let [things, all] = places(&trace, ["[things Synchronization]", "[beforeAll]"]);
        assert!(things < all, "{failure:?}: {trace}");
        assert_at_rest(&world);
    }
}

#[test]
fn slip_01_a_module_whose_first_list_fails_or_hangs_goes_behind_the_one_that_mends_it() {
    for failure in [Some(FailureKind::Cluster), None] {
        for point in ["beforeHelm", "afterHelm"] {
            let hook = format!(
                "{{{point}: 1, kubernetes: [{{name: pods, kind: Pod}}, {{name: things, kind: Thing}}]}}"
            );
            let files = files()
                .module(10, "user")
                .hook("u.sh", &hook)
                .module(20, "converter")
                .hook("c.sh", "{beforeHelm: 1, kubernetes: [{name: pods, kind: Pod}]}")
                .module(30, "last");
            let mut world = World::new(&files).mends("converter", "Thing", failure);
            let trace = world.run();
            let [converter, sync, user] =
                places(&trace, ["upgrade converter", "[things Synchronization]", "upgrade user"]);
            assert!(converter < sync && sync < user, "{failure:?}: {trace}");
            assert_at_rest(&world);
        }
    }
}

#[test]
fn slip_01_a_list_that_fails_for_a_moment_changes_no_order() {
    for failure in [Some(FailureKind::Cluster), None] {
        let files = files()
            .global_hook("g.sh", "kubernetes: [{name: things, kind: Thing}]")
            .module(10, "user")
            .hook("u.sh", "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing, jqFilter: .spec}]}")
            .module(20, "web");
        let mut world = World::new(&files).failing_to_list("Thing", failure);
        world.run_until(4_000);
        world.kind_appears("Thing");
        let trace = world.run();
        let [global, user, web] = places(&trace, ["run hook global/g.sh", "upgrade user", "upgrade web"]);
        assert!(global < user && user < web, "{failure:?}: {trace}");
        assert_at_rest(&world);
    }
}

#[test]
fn slip_01_a_filter_that_fails_on_the_first_list_does_not_hasten_the_lists_of_others() {
    let files = files()
        .global_hook(
            "a.sh",
            "kubernetes: [{name: pods, kind: Pod, jqFilter: .a, queue: side, waitForSynchronization: false}]",
        )
        .global_hook("slow.sh", "kubernetes: [{name: secrets, kind: Secret}]")
        .module(10, "user")
        .hook("u.sh", "{beforeHelm: 1, kubernetes: [{name: pods, kind: Pod}]}")
        .module(20, "web");
    let mut world = World::new(&files).takes("global/slow.sh", 10_000);
    world.never_lists("Pod");
    world.run_until(1_000);
    world.send_in(0, crate::build::watch_failed(FailureKind::HookOutput, "the filter failed"));
    let trace = world.run_until(30_000);
    assert!(!trace.contains("upgrade web"), "the list of the other one may come yet: {trace}");
    let trace = world.run();
    assert!(trace.contains("upgrade web"), "{trace}");
}

#[test]
fn slip_01_what_a_hook_waits_for_in_vain_is_given_up_after_the_modules() {
    let cases = [
        (None, 0, 5),
        (Some(Some(FailureKind::Forbidden)), 5, 75),
        (Some(Some(FailureKind::Cluster)), 5, 75),
        (Some(None), 60, 75),
    ];
    for (list, through, patience) in cases {
        let world = World::new(&waiting_hook());
        let mut world = match list {
            None => world.without_kind("Thing"),
            Some(failure) => world.failing_to_list("Thing", failure),
        };
        let is_stuck = |world: &World| world.noticed(|notice| matches!(notice, Notice::Stuck { .. })) > 0;
        world.run_until((through + patience) * 1_000 - 500);
        assert!(!is_stuck(&world), "a module may have brought it a moment ago");
        world.run();
        assert!(is_stuck(&world));
    }
}

fn waiting_hook() -> Files {
    files().global_hook("g.sh", "kubernetes: [{name: things, kind: Thing}]").module(10, "web")
}

#[test]
fn slip_01_a_run_that_waits_for_a_kind_does_not_hold_back_a_run_of_no_converge() {
    let files = files()
        .module(10, "user")
        .module(20, "crds")
        .hook("w.sh", "kubernetes: [{name: pods, kind: Pod, queue: side}]");
    for charts in [true, false] {
        // The kind comes with values that an event leads to, long after the converge has got stuck.
        let mut world = if charts {
            World::new(&files).needs("user", "Thing").without_kind("Thing")
        } else {
            let hook = "{beforeHelm: 1, kubernetes: [{name: things, kind: Thing}]}";
            let mut files = files.clone();
            let with_hook = crate::build::files().module(10, "user").hook("u.sh", hook);
            files.modules[0] = with_hook.modules[0].clone();
            World::new(&files).without_kind("Thing")
        };
        world = world
            .hook("crds/w.sh", Ok(engine::HookOutput::default()))
            .hook("crds/w.sh", Ok(sets("/crds/more", &json!(1))))
            .change(1_003, "Pod", Added, "x");
        world.run_until(1_000);
        let before = world.deployed["crds"].0;
        world = world.brings("crds", "Thing");
        world.run();
        assert_eq!(world.deployed["crds"].0, before + 1, "charts: {charts}");
        assert_at_rest(&world);
    }
}

#[test]
fn slip_01_a_wave_of_modules_that_all_lack_a_kind_lets_later_waves_go() {
    let files = files()
        .module(10, "a")
        .hook("a.sh", "{kubernetes: [{name: things, kind: Thing}]}")
        .module(10, "b")
        .module(20, "crds")
        .module(20, "other");
    let parallel = Config { module_concurrency: 2, ..Config::default() };
    let mut world = World::with_config(&files, parallel).brings("crds", "Thing").needs("b", "Thing");
    let trace = world.run();
    let [crds, a] = places(&trace, ["upgrade crds", "upgrade a"]);
    assert!(crds < a, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_hooks_after_all_modules_run_after_those_that_waited_for_a_kind() {
    let files = files()
        .global_hook("last.sh", "afterAll: 1")
        .module(10, "user")
        .hook("u.sh", "kubernetes: [{name: things, kind: Thing}]")
        .module(20, "crds");
    let mut world = World::new(&files).brings("crds", "Thing");
    let trace = world.run();
    let [crds, user, last] = places(&trace, ["upgrade crds", "upgrade user", "[afterAll]"]);
    assert!(crds < user && user < last, "{trace}");
    assert_eq!(trace.matches("[afterAll]").count(), 1, "{trace}");
    assert_at_rest(&world);
}

#[test]
fn slip_01_runs_of_a_hook_that_wait_for_a_kind_keep_their_order_and_become_one() {
    let files = files().global_hook(
        "g.sh",
        "{schedule: [{name: tick, crontab: '* * * * *', includeSnapshotsFrom: [things]}, {name: tock, crontab: '1 * * * *'}], \
         kubernetes: [{name: things, kind: Thing, queue: side, waitForSynchronization: false}]}",
    );
    let mut world = World::new(&files).without_kind("Thing").settled();
    for line in ["* * * * *", "1 * * * *", "* * * * *"] {
        let trace = world.after(100, cron(line));
        assert!(!trace.contains("run hook"), "a later run does not overtake an earlier one: {trace}");
    }
    assert_eq!(world.queue("main").len(), 1);
    world.kind_appears("Thing");
    let trace = world.run();
    assert!(trace.contains("[tick Schedule, tock Schedule, tick Schedule]"), "{trace}");
    assert_at_rest(&world);
}

#[test]
fn schedules_that_are_due_while_a_kind_is_missing_wait_in_bounded_memory() {
    let files = files().global_hook(
        "g.sh",
        "{schedule: [{name: tick, crontab: '* * * * *', includeSnapshotsFrom: [things]}, {name: tock, crontab: '1 * * * *'}], \
         kubernetes: [{name: things, kind: Thing, queue: side, waitForSynchronization: false}]}",
    );
    let mut world = World::new(&files).without_kind("Thing").settled();
    world.is_quiet = true;
    for _ in 0..3_000 {
        world.send_in(1, cron("* * * * *"));
        world.send_in(1, cron("1 * * * *"));
        world.run_for(1);
    }
    let held = world.engine.footprint();
    assert!(held.tasks <= 3 && held.contexts < 3_000, "{held:?}");
    world.is_quiet = false;
    world.kind_appears("Thing");
    let trace = world.run();
    assert!(trace.contains("tick Schedule, tock Schedule"), "{trace}");
    assert_at_rest(&world);
}

/// The kinds that modules bring.
const KINDS: [&str; 4] = ["Ant", "Bee", "Cat", "Dog"];
const MODULES: [&str; 5] = ["ma", "mb", "mc", "md", "me"];

/// A catalog in which something can bring every kind before whoever needs it, and who brings which kind.
struct Dependencies {
    files: Files,
    brings: Vec<(&'static str, &'static str)>,
    needs: Vec<(&'static str, &'static str)>,
    hooks: Vec<String>,
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[usize::try_from(random.below(from.len() as u64)).unwrap()]
}

/// Returns the bindings of a hook: some of Pods, some of `kinds`, in any queue.
fn bindings(random: &mut Random, kinds: &[&str]) -> Vec<String> {
    let mut bindings: Vec<String> = Vec::new();
    for n in 0..random.below(4) {
        let kind = if kinds.is_empty() || random.below(3) == 0 { "Pod" } else { pick(random, kinds) };
        let queue = pick(random, &["main", "main", "side", "own"]);
        let waits = if random.below(2) == 0 { "" } else { ", waitForSynchronization: false" };
        let group = if random.below(4) == 0 { ", group: g" } else { "" };
        let include = if n > 0 && random.below(3) == 0 { ", includeSnapshotsFrom: [b0]" } else { "" };
        let filter = if random.below(3) == 0 { ", jqFilter: .a" } else { "" };
        let silent = if random.below(6) == 0 { ", executeHookOnSynchronization: false" } else { "" };
        bindings.push(format!(
            "{{name: b{n}, kind: {kind}, queue: {queue}{waits}{group}{include}{filter}{silent}}}"
        ));
    }
    if random.below(2) == 0 {
        bindings.reverse();
    }
    bindings
}

fn hook_config(random: &mut Random, points: &[&str], kinds: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for point in points {
        if random.below(3) == 0 {
            parts.push(format!("{point}: {}", random.below(3)));
        }
    }
    let bindings = bindings(random, kinds);
    if random.below(3) == 0 {
        let include = if bindings.is_empty() { "" } else { ", includeSnapshotsFrom: [b0]" };
        let queue = pick(random, &["main", "side"]);
        parts.push(format!("schedule: [{{name: tick, crontab: '1 * * * *', queue: {queue}{include}}}]"));
    }
    if !bindings.is_empty() {
        parts.push(format!("kubernetes: [{}]", bindings.join(", ")));
    }
    if parts.is_empty() {
        parts.push("onStartup: 1".to_owned());
    }
    format!("{{{}}}", parts.join(", "))
}

fn dependencies(random: &mut Random) -> Dependencies {
    // A module brings kinds for those of a higher rank; the order in which they run says nothing about it.
    let ranks: Vec<u64> = MODULES.iter().map(|_| random.below(100)).collect();
    let brings: Vec<(&str, &str)> = KINDS.iter().map(|kind| (pick(random, &MODULES), *kind)).collect();
    let rank = |module: &str| ranks[MODULES.iter().position(|name| *name == module).unwrap()];
    let mut made =
        Dependencies { files: files(), brings: brings.clone(), needs: Vec::new(), hooks: Vec::new() };
    for n in 0..random.below(4) {
        let name = format!("g{n}.sh");
        let text = hook_config(random, &["onStartup", "beforeAll", "afterAll"], &KINDS);
        made.files = made.files.global_hook(&name, &text);
        made.hooks.push(format!("global/{name}"));
    }
    for module in MODULES {
        let of_lower = |(by, _): &&(&str, &str)| rank(by) < rank(module);
        let kinds: Vec<&str> = brings.iter().filter(of_lower).map(|(_, kind)| *kind).collect();
        made.files = made.files.module(pick(random, &[10, 10, 20, 30]), module);
        for n in 0..random.below(3) {
            let name = format!("h{n}.sh");
            let text = hook_config(random, &["onStartup", "beforeHelm", "afterHelm"], &kinds);
            made.files = made.files.hook(&name, &text);
            made.hooks.push(format!("{module}/{name}"));
        }
        if !kinds.is_empty() && random.below(3) == 0 {
            made.needs.push((module, pick(random, &kinds)));
        }
    }
    made
}

/// Lets things happen that change values, flags and files; at the end everything is on again.
fn disturbed(random: &mut Random, made: &Dependencies, mut world: World) -> World {
    let mut at = 0;
    for n in 0..random.below(12) {
        at += random.below(400);
        let event = match random.below(6) {
            0 => config(1_000 + n, &[("global", &format!("x: {n}"))]),
            1 => config(1_000 + n, &[(&format!("{}Enabled", pick(random, &MODULES)), "false")]),
            2 => cron("1 * * * *"),
            3 => Event::Commanded { id: CommandId::new(n), command: Command::Converge },
            4 => {
                let mut files = made.files.clone();
                files.modules[0].content = 2 + n;
                reread(&files)
            }
            _ => {
                world = world.change(at, "Pod", Added, &format!("p{n}"));
                continue;
            }
        };
        world = world.at(at, event);
    }
    world.at(at + 1, config(9_000, &[]))
}

/// How long a hook runs that outlasts a life.
const FOR_EVER: u64 = 10_000_000;

/// Lives a life; if `sleeps`, hooks that sleep in queues of their own have taken every place before the first module runs.
fn life(seed: u64, sleeps: bool) -> (Dependencies, World) {
    let mut random = Random(seed);
    let mut made = dependencies(&mut random);
    let settings = Config {
        module_concurrency: 1 + usize::try_from(random.below(3)).unwrap(),
        max_hooks: 1 + usize::try_from(random.below(3)).unwrap(),
        ..Config::default()
    };
    let sleepers = if sleeps { settings.max_hooks } else { 0 };
    for n in 0..sleepers {
        let binding = format!("{{name: b, kind: Pod, queue: sleeps{n}, waitForSynchronization: false}}");
        made.files = made.files.global_hook(&format!("a{n}.sh"), &format!("kubernetes: [{binding}]"));
    }
    let mut world = World::with_config(&made.files, settings);
    world.is_quiet = true;
    for n in 0..sleepers {
        world = world.takes(&format!("global/a{n}.sh"), FOR_EVER);
    }
    for (module, kind) in &made.brings {
        world = match random.below(6) {
            0 => world.grants(module, kind),
            1 => world.mends(module, kind, Some(FailureKind::Cluster)),
            2 => world.mends(module, kind, None),
            _ => world.brings(module, kind),
        };
    }
    for (module, kind) in &made.needs {
        world = world.needs(module, kind);
    }
    for hook in &made.hooks {
        let key = hook.split('/').next().unwrap();
        // So that what was found out about a kind is old when the next one asks for it.
        if random.below(3) == 0 {
            world = world.takes(hook, random.below(20_000));
        }
        for n in 0..random.below(3) {
            world = match random.below(4) {
                0 => world.fails(hook, 1),
                1 => world.hook(hook, Ok(sets(&format!("/{key}/v"), &json!(n)))),
                _ => world.hook(hook, Ok(engine::HookOutput::default())),
            };
        }
    }
    if random.below(2) == 0 {
        world = disturbed(&mut random, &made, world);
    }
    (made, world)
}

fn check(seed: u64) {
    let (made, mut world) = life(seed, false);
    world.run_until(1_800_000);
    let view = world.view();
    for queue in &view.queues {
        assert!(queue.tasks.is_empty(), "seed {seed}: queue {} is stuck: {:#?}", queue.name, queue.tasks);
    }
    assert!(is_ready(&world), "seed {seed}: {:?}", view.converge);
    for module in &view.modules {
        assert!(["running", "parked"].contains(&module.phase), "seed {seed}: {module:#?}");
    }
    for watch in &view.watches {
        assert!(watch.listed, "seed {seed}: {watch:?}");
    }
    let synchronises =
        |hook: &&engine::Hook| hook.spec.kubernetes.iter().any(|binding| binding.execute_on_synchronization);
    let of_modules = made.files.modules.iter().flat_map(|module| &module.hooks);
    for hook in made.files.global.hooks.iter().chain(of_modules).map(AsRef::as_ref).filter(synchronises) {
        let ran = |notice: &Notice| matches!(notice, Notice::HookRan { hook: its, binding: "kubernetes", .. } if *its == hook.id);
        assert!(world.noticed(ran) > 0, "seed {seed}: hook {} never saw its objects", hook.id);
    }
    assert!(world.steps < 5_000, "seed {seed}: {} events", world.steps);
}

#[test]
fn slip_01_whatever_the_order_nothing_waits_for_what_stands_behind_it() {
    live(seeds(300), check);
}

#[test]
fn slip_11_whatever_the_order_main_waits_for_nobody_elses_place() {
    live(seeds(300), |seed| {
        let (_, mut world) = life(seed, true);
        world.run_until(1_800_000);
        let view = world.view();
        for queue in &view.queues {
            let head = queue.tasks.first();
            let is_of_modules = queue.name.is_main() || queue.name.is_parallel();
            let has_no_place = head
                .is_some_and(|head| head.waits_for.as_ref().is_some_and(|what| what.contains("--max-hooks")));
            let is_right = head.is_none() || (!is_of_modules && has_no_place);
            let sleeps = queue.name.as_str().starts_with("sleeps");
            assert!(sleeps || is_right, "seed {seed}: queue {} is stuck: {:#?}", queue.name, queue.tasks);
        }
        assert!(is_ready(&world), "seed {seed}: {:?}", view.converge);
        for module in &view.modules {
            assert!(["running", "parked"].contains(&module.phase), "seed {seed}: {module:#?}");
        }
    });
}
