//! One screen, the journal, the graph, and what the cluster is told.

use engine::view::{graph, journal, status, why};
use engine::{
    Command, CommandId, Drift, Event, Failure, FailureKind, Notice, ReleaseAction, TakenFrom, UnwatchedKind,
};
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
fn slip_07_objects_of_a_release_that_others_changed_are_told_until_its_next_upgrade_and_run_nothing() {
    let changed = |name: &str| Drift::Changed {
        object: format!("ops/ConfigMap/{name}"),
        place: "/data/k".to_owned(),
        writer: None,
    };
    let mut world = World::new(&three())
        .release("web", Ok(ReleaseAction::Installed))
        .release("web", Ok(ReleaseAction::Upgraded))
        .settled();
    for name in ["c", "b", "a", "a"] {
        let trace = world.after(2, drifted("web", changed(name)));
        assert_eq!(trace.lines().count(), 1, "it runs nothing: {trace}");
    }
    world.after(2, drifted("web", Drift::Restored("ops/ConfigMap/c".to_owned())));
    let text = world.told(status::text);
    assert!(text.contains("2 objects changed by others, see below"), "{text}");
    let what =
        "somebody else changed ops/ConfigMap/a at /data/k, ops/ConfigMap/b at /data/k since its last upgrade";
    assert!(text.contains(&format!("! module web {what}")), "{text}");
    assert_eq!(
        world.told(status::data)["modules"][0]["changedObjects"],
        serde_json::json!(["ops/ConfigMap/a at /data/k", "ops/ConfigMap/b at /data/k"])
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
fn slip_07_a_quarrel_over_an_object_is_told_a_few_times() {
    let mut world = World::new(&three()).settled();
    let object = "ops/ConfigMap/a".to_owned();
    for _ in 0..50 {
        let drift = Drift::Changed { object: object.clone(), place: "/data/k".to_owned(), writer: None };
        world.send_in(2_000, drifted("web", drift));
        world.send_in(4_000, drifted("web", Drift::Restored(object.clone())));
        world.run();
    }
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::ReleaseDrifted { .. })), 3);
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn slip_08_kinds_of_a_release_that_can_not_be_watched_are_told_once_with_their_modules() {
    let unwatched = |module: &str, why: Option<&str>| Event::ReleaseUnwatched {
        module: module.into(),
        kinds: why
            .map(|why| UnwatchedKind { kind: "Deployment in ops".to_owned(), why: why.to_owned() })
            .into_iter()
            .collect(),
    };
    let mut world = World::new(&three()).settled();
    for module in ["web", "api"] {
        world.after(2, unwatched(module, Some("deployments.apps is forbidden")));
        world.after(2, unwatched(module, Some("deployments.apps is forbidden")));
    }
    let text = world.told(status::text);
    let what =
        "! releases: kind Deployment in ops is not watched for web, api: deployments.apps is forbidden";
    assert_eq!(text.matches(what).count(), 1, "{text}");
    let answer = world.told(|view, format| why::module(view, "web", format)).unwrap();
    let fact = "Deployment in ops of its release: deployments.apps is forbidden";
    assert!(answer.facts.iter().any(|(name, told)| (*name, told.as_str()) == ("not watched", fact)));
    assert!(answer.advice.iter().any(|advice| advice.contains("list and watch")), "{answer:?}");
    let warned = world.noticed(|notice| matches!(notice, Notice::Warned { .. }));
    assert_eq!(warned, 2, "once for each module");
    for module in ["web", "api"] {
        world.after(2, unwatched(module, None));
    }
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn slip_23_what_a_module_took_over_from_another_release_is_announced_and_told_until_that_is_gone() {
    let mut world = World::new(&three()).taking_over("web", "ConfigMap ops/a", "ops/old").settled();
    let text = world.told(status::text);
    assert!(text.contains("! module web took over ConfigMap ops/a of release ops/old"), "{text}");
    let announced =
        world.announcements.iter().find(|announced| announced.reason == "ObjectsTakenOver").unwrap();
    assert!(announced.warning && announced.message.contains("ConfigMap ops/a of release ops/old"));
    let answer = world.told(|view, format| why::module(view, "web", format)).unwrap();
    assert!(answer.facts.iter().any(|(name, _)| *name == "taken over"), "{answer:?}");
    // The other release was that of a module that was renamed.
    let command = Command::PurgeModule("old".into());
    world.after(1, Event::Commanded { id: CommandId::new(1), command });
    assert!(world.told(status::text).contains("Nothing needs attention"));
}

#[test]
fn a_field_that_a_module_took_over_from_another_writer_is_announced_and_told() {
    let from = TakenFrom::Writer { manager: "argocd".to_owned(), field: ".spec.replicas".to_owned() };
    let mut world = World::new(&three()).taking_over_from("web", "Deployment ops/a", from).settled();
    let text = world.told(status::text);
    assert!(
        text.contains("! module web took over field .spec.replicas of Deployment ops/a from argocd"),
        "{text}"
    );
    assert!(text.contains("do: take the field out of the chart"), "{text}");
    let announced =
        world.announcements.iter().find(|announced| announced.reason == "ObjectsTakenOver").unwrap();
    let said = "field .spec.replicas of Deployment ops/a from argocd; one of the two should not write it";
    assert!(announced.warning && announced.message.contains(said), "{}", announced.message);
    // A release that goes has nothing to do with it.
    let command = Command::PurgeModule("argocd".into());
    world.after(1, Event::Commanded { id: CommandId::new(1), command });
    assert!(world.told(status::text).contains("took over field"));
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

/// Returns the Events that were written since the last call.
fn events(world: &mut World) -> Vec<String> {
    let told = std::mem::take(&mut world.announcements).into_iter().map(|told| {
        format!("{} {} {}", if told.warning { "Warning" } else { "Normal" }, told.reason, told.message)
    });
    told.collect()
}

#[test]
fn slip_15_a_start_that_changes_nothing_writes_no_event() {
    let mut world = World::new(&three())
        .deployed("web")
        .deployed("api")
        .release("web", Ok(ReleaseAction::Unchanged))
        .release("api", Ok(ReleaseAction::Unchanged))
        .settled();
    assert_eq!(events(&mut world), Vec::<String>::new());
    world.after(10, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    assert_eq!(events(&mut world), Vec::<String>::new(), "nor does a converge that changes nothing");
}

#[test]
fn slip_15_events_tell_changes_that_mean_something_and_one_sums_up_a_converge() {
    let files = three();
    let mut world = World::new(&files).fails("web/hooks/a.sh", 2).settled();
    assert_snapshot!(events(&mut world).join("\n"), @r"
    Warning ModuleFailed module web failed: exit status 1
    Normal ModuleRecovered module web runs again after it had failed
    Normal ConvergeFinished converge 1 ended after 10.2 s, modules: 2 installed, 1 failed, 1 recovered; because: start
    ");
    world.after(10, config(101, &[("apiEnabled", "false")]));
    world.after(10, config(102, &[("apiEnabled", "true")]));
    assert_snapshot!(events(&mut world).join("\n"), @r"
    Normal ModuleDisabled module api is switched off and removed: modules/values.yaml says true, then ConfigMap key apiEnabled says false
    Normal ConvergeFinished converge 2 ended after 0.1 s, modules: 1 switched off; because: ConfigMap ops/addon-operator key apiEnabled rv 101
    Normal ModuleEnabled module api is switched on: modules/values.yaml says true, then ConfigMap key apiEnabled says true
    Normal ConvergeFinished converge 3 ended after 0.1 s, modules: 1 installed, 1 switched on; because: ConfigMap ops/addon-operator key apiEnabled rv 102
    ");
    world.after(10, config(103, &[("apiEnabled", "true"), ("api", "size: 2")]));
    assert_snapshot!(events(&mut world).join("\n"), @r"
    Normal ModuleUpgraded module api was upgraded: revision 2 of its release is deployed
    ");
    let mut after = files.clone();
    after.modules.retain(|module| &*module.key != "web");
    world.after(10, reread(&after));
    assert_snapshot!(events(&mut world).join("\n"), @r"
    Warning ModuleOrphaned module web is orphaned: its directory is gone; its release stays until the next start or `module purge`
    Normal ConvergeFinished converge 5 ended after 0.1 s, modules: 1 orphaned; because: files changed
    ");
}

#[test]
fn slip_15_a_module_that_is_parked_and_goes_on_is_told() {
    let mut world = World::new(&three());
    for _ in 0..4 {
        world = world.release_that_changes("api", "ops/Secret/x");
    }
    world.run();
    world.announcements.clear();
    for _ in 0..3 {
        world.after(1_000, drifted("api", Drift::Absent("ops/Secret/x".to_owned())));
    }
    let command = Command::ResumeModule("api".into());
    world.after(10, Event::Commanded { id: CommandId::new(1), command });
    let reasons: Vec<&str> = world.announcements.iter().map(|told| told.reason).collect();
    assert_eq!(
        reasons,
        [
            "ModuleUpgraded",
            "ModuleUpgraded",
            "ModuleUpgraded",
            "ModuleParked",
            "ModuleResumed",
            "ModuleUpgraded"
        ]
    );
}

#[test]
fn slip_15_a_thousand_modules_that_are_installed_have_one_event() {
    let mut files = files();
    for number in 0..1_000 {
        files = files.module(10, &format!("m{number}"));
    }
    let mut world = World::new(&files);
    world.is_quiet = true;
    world.run();
    let told = events(&mut world);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told.last().unwrap().contains("modules: 1000 installed"), "{told:?}");
}

#[test]
fn a_module_that_fails_in_ever_new_words_does_not_flood_the_cluster() {
    let mut world = World::new(&three());
    for n in 0..100 {
        world = world
            .hook("web/hooks/a.sh", Err(Failure::new(FailureKind::HookExit, format!("exit status {n}"))));
    }
    world.run_until(500_000);
    let about = world.announcements.iter().filter(|told| told.module == Some("web".into())).count();
    assert_eq!(about, 10);
}
