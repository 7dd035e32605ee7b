//! One screen, the journal, the graph, and what the cluster is told.

use engine::view::{graph, journal, status, why};
use engine::{Drift, Failure, FailureKind, ReleaseAction};
use insta::assert_snapshot;

use crate::build::{Files, config, drifted, files, reread, watch_failed};
use crate::world::World;

fn three() -> Files {
    files()
        .global_hook("g.sh", "{kubernetes: [{name: pods, kind: Pod}]}")
        .module(10, "web")
        .hook("hooks/a.sh", "{beforeHelm: 1}")
        .module(20, "api")
        .module(20, "old")
        .off()
}

#[test]
fn a_calm_operator() {
    let world = World::new(&three()).object("Pod", "a").settled();
    assert_snapshot!(world.told(status::text), @r"
    Operator is ready; the last converge ended 0.0 s ago.

    Modules: 3, 2 on, 1 off
      NAME  PHASE     SINCE  RELEASE     NOTE
      web   running   0.0 s  revision 1
      api   running   0.0 s  revision 1
      old   disabled  0.1 s  unknown     nothing enables it

    Queues: 1, 0 tasks
      NAME  TASKS  STATE  FIRST TASK
      main  0      idle

    Watches: 1, 1 object

    Nothing needs attention.
    ");
}

#[test]
fn objects_of_a_release_that_others_changed_are_told_until_its_next_upgrade() {
    let changed = |name: &str| Drift::Changed(format!("ops/ConfigMap/{name}"));
    let mut world = World::new(&three())
        .release("web", Ok(ReleaseAction::Installed))
        .release("web", Ok(ReleaseAction::Unchanged))
        .release("web", Ok(ReleaseAction::Unchanged))
        .release("web", Ok(ReleaseAction::Upgraded))
        .settled();
    for name in ["b", "a"] {
        world.after(2, drifted("web", changed(name)));
    }
    let text = world.told(status::text);
    assert!(text.contains("2 objects changed by others, see below"), "{text}");
    let what = "somebody else changed ops/ConfigMap/a, ops/ConfigMap/b since its last upgrade";
    assert!(text.contains(&format!("! module web {what}")), "{text}");
    assert_eq!(
        world.told(status::data)["modules"][0]["changedObjects"],
        serde_json::json!(["ops/ConfigMap/a", "ops/ConfigMap/b"])
    );
    let answer = world.told(|view, format| why::module(view, "web", format)).unwrap();
    assert!(
        answer.facts.iter().any(|(name, fact)| (*name, fact.as_str()) == ("changed", what)),
        "{answer:?}"
    );
    world.after(2, drifted("web", Drift::Absent("ops/ConfigMap/a".to_owned())));
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn an_operator_whose_first_module_fails() {
    let world = World::new(&three()).fails("web/hooks/a.sh", 9).lived(8_000);
    assert_snapshot!(world.told(status::text), @r"
    Operator is not ready; a converge runs for 5.0 s, 3 tasks left (because: start → converge 1).

    Modules: 3, 2 on, 1 off
      NAME  PHASE     SINCE  RELEASE  NOTE
      web   failed    5.0 s  unknown  exit status 1
      api   starting  5.0 s  unknown
      old   disabled  5.0 s  unknown  nothing enables it

    Queues: 1, 3 tasks
      NAME  TASKS  STATE                                    FIRST TASK
      main  3      failing for 5.0 s, tried again in 5.0 s  t5 ModuleRun:main:web:doStartup:OperatorStartup

    Watches: 1, 0 objects

    Needs attention:
      ! module web fails for 5.0 s, in queue main 2 tasks wait behind it: exit status 1
          do: read in the log what the hook or script printed (task.id=t5), and correct it or what it needs; it is tried again by itself; more: `addon-operator why module web`
    ");
}

#[test]
fn many_modules_fit_one_screen_and_those_that_need_attention_come_first() {
    let mut files = files();
    for number in 0..1_000 {
        files = files.module(10, &format!("m{number}"));
    }
    files = files.module(20, "bad").hook("a.sh", "{beforeHelm: 1}");
    let mut world = World::new(&files).fails("bad/a.sh", 99);
    world.is_quiet = true;
    world.run_until(120_000);
    let screen = world.told(status::text);
    assert!(screen.lines().count() <= 40, "{screen}");
    assert!(screen.lines().nth(4).unwrap().trim_start().starts_with("bad "), "{screen}");
    let modules = world.told(status::data)["modules"].as_array().unwrap().len();
    assert_eq!(modules, 1_001, "as data all are there");
}

#[test]
fn what_to_do_about_a_filter_is_not_what_to_do_about_an_api_server() {
    for (kind, advice) in [
        (
            FailureKind::HookOutput,
            "  do: correct the jqFilter of the binding, or the object that it does not work on",
        ),
        (
            FailureKind::Cluster,
            "  do: look whether the API server answers and whether the operator may list and watch",
        ),
    ] {
        let mut world = World::new(&three()).settled();
        world.after(1, watch_failed(kind, "filter of object ns/x: cannot iterate over null"));
        let screen = world.told(status::text);
        assert!(screen.contains(advice), "{screen}");
    }
}

#[test]
fn the_journal_tells_ends_with_cause_length_and_outcome() {
    let world = World::new(&three()).fails("web/hooks/a.sh", 1).lived(6_000);
    assert_snapshot!(world.told(|view, format| journal::text(view, 0, format)), @r"
    0.010s  t1  main  GlobalHookEnableKubernetesBindings  0.0 s  done  because: start → bindings of hook g.sh
    0.020s  t4  main  GlobalHookRun global/g.sh (pods)  0.0 s  done  because: start → bindings of hook g.sh → Synchronization of pods
    0.020s  t2  main  GlobalHookWaitKubernetesSynchronization  0.0 s  done  because: start
    0.030s  t5  main  ModuleRun web  0.0 s  failed: exit status 1  because: start → converge 1 → module web
    5.090s  t5  main  ModuleRun web  0.0 s  done  because: start → converge 1 → module web
    5.140s  t6  main  ModuleRun api  0.0 s  done  because: start → converge 1 → module api
    5.140s  t3  main  ConvergeModules  0.0 s  done  because: start → converge 1
    5.145s  t7  main  DiscoverHelmReleases  0.0 s  done  because: start → converge 1
    ");
    let last = world.told(|view, format| journal::data(view, 0, format))["last"].as_u64().unwrap();
    let new = world.told(|view, format| journal::data(view, last - 1, format));
    assert_eq!(new["ends"].as_array().unwrap().len(), 1, "{new}");
    assert_eq!(world.told(|view, format| journal::text(view, last, format)), "");
}

#[test]
fn the_graph_shows_modules_in_their_order() {
    let world = World::new(&three()).settled();
    assert_snapshot!(graph::dot(&world.view()), @r##"
    digraph {
      graph [label="Module Scheduler's Graph", labelloc=t, rankdir=TB];
      node [shape=box, style="rounded,filled"];
      "order 10" [shape=plaintext, style=""];
      "web" [label="web\nrunning", fillcolor="#bfe3c0"];
      "order 10" -> "web";
      "order 20" [shape=plaintext, style=""];
      "api" [label="api\nrunning", fillcolor="#bfe3c0"];
      "order 20" -> "api";
      "old" [label="old\ndisabled", fillcolor="#e4e4e4"];
      "order 20" -> "old";
      "web" -> "order 20";
    }
    "##);
    let svg = graph::svg(&world.view());
    assert_snapshot!(svg, @r##"
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 482 184" width="482" height="184" role="img" aria-labelledby="graph-title graph-about" font-family="system-ui, sans-serif" font-size="14" color="#777">
    <title id="graph-title">Module Scheduler's Graph</title>
    <desc id="graph-about">3 modules, 2 on, in the order in which they run, from top to bottom</desc>
    <text x="0" y="27" fill="currentColor">order 10</text>
    <g><title>web: running</title><rect x="90" y="0" width="180" height="44" rx="6" fill="none" stroke="currentColor"/><rect x="90" y="0" width="6" height="44" rx="3" fill="#2e7d32"/><text x="104" y="18" fill="currentColor">web</text><text x="104" y="36" font-size="12" fill="currentColor">running</text></g>
    <path d="M180 48V86m-5 -6l5 6l5 -6" fill="none" stroke="currentColor"/>
    <text x="0" y="119" fill="currentColor">order 20</text>
    <g><title>api: running</title><rect x="90" y="92" width="180" height="44" rx="6" fill="none" stroke="currentColor"/><rect x="90" y="92" width="6" height="44" rx="3" fill="#2e7d32"/><text x="104" y="110" fill="currentColor">api</text><text x="104" y="128" font-size="12" fill="currentColor">running</text></g>
    <g><title>old: disabled</title><rect x="286" y="92" width="180" height="44" rx="6" fill="none" stroke="currentColor"/><rect x="286" y="92" width="6" height="44" rx="3" fill="#757575"/><text x="300" y="110" fill="currentColor">old</text><text x="300" y="128" font-size="12" fill="currentColor">disabled</text></g>
    </svg>
    "##);
}

#[test]
fn hostile_names_stay_text_in_the_graph() {
    let files = files().module(1, "a<script>\"&");
    let world = World::new(&files).settled();
    let svg = graph::svg(&world.view());
    assert!(svg.contains("a&lt;script&gt;&quot;&amp;") && !svg.contains("<script"), "{svg}");
    assert!(graph::dot(&world.view()).contains("\"a<script>\\\"&\""));
}

#[test]
fn the_cluster_is_told_what_modules_do() {
    let files = three();
    let mut world = World::new(&files).fails("web/hooks/a.sh", 2).settled();
    world.after(10, config(101, &[("apiEnabled", "false")]));
    let mut after = files.clone();
    after.modules.retain(|module| &*module.key != "web");
    world.after(10, reread(&after));
    let lines: Vec<String> = world
        .announcements
        .iter()
        .map(|told| {
            format!("{} {} {}", if told.warning { "Warning" } else { "Normal" }, told.reason, told.message)
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @r"
    Normal ModuleStarting module web is starting: modules/values.yaml says true
    Normal ModuleStarting module api is starting: modules/values.yaml says true
    Warning ModuleFailed module web is failed: exit status 1
    Normal ModuleRunning module web is running
    Normal ModuleRunning module api is running
    Normal ModuleDeleting module api is deleting
    Normal ModuleDisabled module api is disabled
    Warning ModuleOrphaned module web is orphaned: its directory is gone; its release stays until the next start or `module purge`
    ");
}

#[test]
fn a_module_that_fails_in_ever_new_words_does_not_flood_the_cluster() {
    let mut world = World::new(&three());
    for n in 0..100 {
        world = world
            .hook("web/hooks/a.sh", Err(Failure::new(FailureKind::HookExit, format!("exit status {n}"))));
    }
    world.run_until(500_000);
    let about = world.announcements.iter().filter(|told| told.module.as_str() == "web").count();
    assert_eq!(about, 10);
}
