//! What is answered to "why", one test for each kind of answer.

use engine::view::{Format, status, why};
use engine::{Config, Event, Failure, FailureKind, View};
use insta::assert_snapshot;

use crate::build::{Files, config, drifted, files, patches, reread, watch_failed};
use crate::world::World;

fn asked(world: &World, ask: impl Fn(&View, Format<'_>) -> Result<why::Answer, why::Unknown>) -> String {
    world.told(ask).map_or_else(|unknown| unknown.to_string(), |answer| answer.text())
}

fn why_module(world: &World, name: &str) -> String {
    asked(world, |view, format| why::module(view, name, format))
}

fn why_queue(world: &World, name: &str) -> String {
    asked(world, |view, format| why::queue(view, name, format))
}

fn why_task(world: &World, id: &str) -> String {
    asked(world, |view, format| why::task(view, id, format))
}

fn web() -> Files {
    files().global_hook("decide.sh", "{beforeAll: 1}").module(10, "web").hook("hooks/a.sh", "{beforeHelm: 1}")
}

/// What a global hook says about a module.
fn says(on: bool) -> engine::HookOutput {
    patches(&serde_json::json!([{"op": "add", "path": "/webEnabled", "value": on}]))
}

#[test]
fn a_module_that_nothing_enables() {
    let world = World::new(&files().module(10, "web").off()).settled();
    assert_snapshot!(why_module(&world, "web"), @r#"
    Module web is off: nothing enables it.

      phase:    disabled for 0.0 s
      release:  unknown

    What to do:
      - `addon-operator module enable web` writes webEnabled: "true" into ConfigMap ops/addon-operator
      - or set webEnabled: true in values.yaml of the modules directory
    "#);
}

#[test]
fn a_module_that_a_file_switches_off() {
    let files = files().module(10, "web").with(|module| module.enabled.as_mut().unwrap().value = false);
    assert_snapshot!(why_module(&World::new(&files).settled(), "web"), @r#"
    Module web is off: modules/values.yaml says so, and nothing after it says otherwise.

    Who said what, the last one wins:
      1.  modules/values.yaml  no

      phase:    disabled for 0.0 s
      release:  unknown

    What to do:
      - `addon-operator module enable web` writes webEnabled: "true" into ConfigMap ops/addon-operator
    "#);
}

#[test]
fn a_module_that_a_global_hook_switches_off() {
    let world = World::new(&web()).hook("global/decide.sh", Ok(says(false))).settled();
    assert_snapshot!(why_module(&world, "web"), @r#"
    Module web is off: global hook decide.sh said so at 0.010s (0.0 s ago).

    Who said what, the last one wins:
      1.  modules/values.yaml    yes
      2.  global hook decide.sh  no   at 0.010s  it ran because: start → converge 1 → beforeAll hook decide.sh

      phase:    disabled for 0.0 s
      release:  unknown

    What to do:
      - look at what the hook decide.sh decides by
      - `addon-operator module enable web` writes webEnabled: "true" into ConfigMap ops/addon-operator, which has more weight than a hook
    "#);
}

#[test]
fn a_module_that_the_config_map_switches_off() {
    let world = World::new(&web())
        .configured(&[("webEnabled", "false")])
        .hook("global/decide.sh", Ok(says(true)))
        .settled();
    assert_snapshot!(why_module(&world, "web"), @r#"
    Module web is off: key webEnabled of ConfigMap ops/addon-operator says so.

    Who said what, the last one wins:
      1.  modules/values.yaml                          yes
      2.  global hook decide.sh                        yes  at 0.010s  it ran because: start → converge 1 → beforeAll hook decide.sh
      3.  ConfigMap ops/addon-operator key webEnabled  no

      phase:    disabled for 0.0 s
      release:  unknown

    What to do:
      - `addon-operator module enable web` sets that key to "true"
    "#);
}

#[test]
fn a_module_whose_script_says_no_with_its_reason() {
    let world = World::new(&web().script())
        .configured(&[("webEnabled", "true")])
        .hook("global/decide.sh", Ok(says(true)))
        .refuses("web", "needs ingress")
        .settled();
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is off: its enabled script said no at 0.020s (0.0 s ago), because: needs ingress.

    Who said what, the last one wins:
      1.  modules/values.yaml                          yes
      2.  global hook decide.sh                        yes  at 0.010s  it ran because: start → converge 1 → beforeAll hook decide.sh
      3.  ConfigMap ops/addon-operator key webEnabled  yes
      4.  enabled script                               no   at 0.020s  needs ingress

      phase:    disabled for 0.0 s
      release:  unknown

    What to do:
      - the script has the last word: look at what /modules/010-web/enabled asks for; it runs again when its values or the modules before it change
    ");
}

#[test]
fn a_module_that_runs() {
    assert_snapshot!(why_module(&World::new(&web()).settled(), "web"), @r"
    Module web is on and its last run succeeded.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    running for 0.0 s
      release:  deployed, revision 1
    ");
}

#[test]
fn a_module_before_the_first_discovery() {
    let world = World::new(&web()).takes("global/decide.sh", 60_000).lived(1_000);
    assert_snapshot!(why_module(&world, "web"), @r"
    Whether module web is on is not known yet: no discovery of modules was completed.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    disabled for 0.0 s
      release:  unknown

    What to do:
      - `addon-operator why queue main` shows what the discovery waits for
    ");
}

#[test]
fn a_module_that_waits_for_its_turn() {
    let world = World::new(&web().module(20, "late")).takes("web/hooks/a.sh", 60_000).lived(1_000);
    assert_snapshot!(why_module(&world, "late"), @r"
    Module late is on and waits for its turn in queue main.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    starting for 0.0 s
      release:  unknown
      task:     t4 ModuleRun is number 2 in queue main

    What to do:
      - `addon-operator why queue main` shows what is before it
    ");
}

#[test]
fn a_module_whose_hook_fails() {
    let world = World::new(&web()).fails("web/hooks/a.sh", 3).lived(8_000);
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is on, but its last run failed: exit status 1.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    failed for 5.0 s
      release:  unknown
      task:     t3 ModuleRun is the first in queue main, failed 2 times, tried again in 5.0 s

    What to do:
      - read in the log what the hook or script printed (task.id=t3), and correct it or what it needs; it is tried again by itself
      - `addon-operator module run web` tries it at once
    ");
}

#[test]
fn a_module_whose_release_fails() {
    let world = World::new(&web())
        .release("web", Err("helm upgrade failed: Service \"web\" is immutable"))
        .lived(3_000);
    assert_snapshot!(why_module(&world, "web"), @r#"
    Module web is on, but its last run failed: helm upgrade failed: Service "web" is immutable.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    failed for 0.0 s
      release:  failed
      task:     t3 ModuleRun is the first in queue main, failed once, tried again in 5.0 s

    What to do:
      - `addon-operator module history web` shows the revisions; correct the chart or the objects that are in its way
      - `addon-operator module run web` tries it at once
    "#);
}

#[test]
fn a_module_that_waits_for_a_kind() {
    let files = files().module(10, "web").hook("hooks/a.sh", "{kubernetes: [{name: things, kind: Thing}]}");
    let world = World::new(&files).without_kind("Thing").lived(60_000);
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is on, but waits: kind Thing does not exist yet.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    starting for 0.0 s
      release:  unknown
      task:     t2 ModuleRun is set aside in queue main, waits for 0.0 s: kind Thing does not exist yet

    What to do:
      - install the CustomResourceDefinition of Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself
    ");
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main waits: kind Thing does not exist yet.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      task:           t2 ModuleRun:main:web:doStartup:OperatorStartup
      blocked since:  0.010s (0.0 s ago)
      watch:          waits for kind Thing, which does not exist
      set aside:      2 tasks; all others pass

    What to do:
      - install the CustomResourceDefinition of Thing, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself
    ");
}

#[test]
fn what_a_module_waits_for_is_told_and_not_what_failed_before_it_came_that_far() {
    let files = files()
        .module(10, "web")
        .hook("hooks/a.sh", "{onStartup: 1, kubernetes: [{name: things, kind: Thing}]}");
    let failure = Failure::new(FailureKind::HookExit, "exited with 7");
    let mut world = World::new(&files)
        .without_kind("Thing")
        .hook("web/hooks/a.sh", Err(failure.clone()))
        .hook("web/hooks/a.sh", Err(failure))
        .lived(6_000);
    let text = world.told(status::text);
    assert!(text.contains("web   failed") && text.contains("exited with 7"), "{text}");
    world.run_until(60_000);
    let text = world.told(status::text);
    assert!(text.contains("web   starting") && !text.contains("exited with 7"), "{text}");
    assert!(text.contains("kind Thing, which does not exist"), "{text}");
    let answer = why_module(&world, "web");
    assert!(answer.contains("Module web is on, but waits: kind Thing does not exist yet."), "{answer}");
    let task = world.view().queues[0].tasks[0].clone();
    assert_eq!((task.failures, task.last_failure), (0, None));
    world.kind_appears("Thing");
    world.run();
    let told: Vec<&str> = world.announcements.iter().map(|told| &*told.message).collect();
    assert!(told.contains(&"module web runs again after it had failed"), "{told:?}");
    assert!(world.told(status::text).contains("web   running"));
}

#[test]
fn a_module_whose_config_map_key_is_broken() {
    let mut world = World::new(&web()).configured(&[("web", "a: 1")]).settled();
    world.after(10, config(101, &[("web", "a: [")]));
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is on and its last run succeeded.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:      running for 0.0 s
      release:    deployed, revision 1
      ConfigMap:  ConfigMap key web: bad yaml at key 'web': line 2, column 1: did not find expected node content while parsing a flow node; what was good before stays in force

    What to do:
      - the last good values stay in force; correct the text of this key
    ");
}

#[test]
fn a_module_whose_new_version_is_broken() {
    let files = web();
    let mut world = World::new(&files).settled();
    let mut after = files.clone();
    after.modules[0].broken =
        Some(Failure::new(FailureKind::Files, "hooks/a.sh answers --config with garbage"));
    after.modules[0].content = 2;
    world.after(10, reread(&after));
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is on and its last run succeeded.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:        running for 0.0 s
      release:      deployed, revision 1
      new version:  is broken, the old one stays in force: hooks/a.sh answers --config with garbage

    What to do:
      - correct the files in /modules/010-web; they are read again by themselves
    ");
}

#[test]
fn a_module_whose_files_were_broken_from_the_beginning_has_no_old_version() {
    let mut files = web();
    files.modules[0].broken = Some(Failure::new(FailureKind::Files, "module.yaml: unknown key charts"));
    let mut world = World::new(&files);
    world.run_for(2_000);
    let told = why_module(&world, "web");
    assert!(
        told.contains("its files:") && told.contains("and it has none from before: module.yaml"),
        "{told}"
    );
    assert!(!told.contains("the old one"), "{told}");
}

#[test]
fn of_a_module_that_never_began_nothing_stays_when_its_directory_is_gone() {
    let mut files = web();
    files.modules[0].broken = Some(Failure::new(FailureKind::Files, "module.yaml: unknown key charts"));
    let mut world = World::new(&files);
    world.run_for(2_000);
    let mut after = files.clone();
    after.modules.clear();
    // Whether it had a release before this start is not known yet: it blocked the first converge.
    world.after(10, reread(&after));
    assert!(world.view().modules.is_empty(), "{:?}", world.view().modules);
    let mut world = World::new(&files).deployed("web");
    world.run_for(2_000);
    world.after(10, reread(&after));
    assert_eq!(world.view().modules[0].phase, "orphaned", "its release is there");
}

#[test]
fn a_module_without_a_chart_leaves_no_release_when_its_directory_is_gone() {
    let files = web().with(|module| module.has_chart = false);
    let mut world = World::new(&files).settled();
    let mut after = files.clone();
    after.modules.clear();
    world.after(10, reread(&after));
    let told = [why_module(&world, "web"), world.told(engine::view::status::text)];
    for told in told {
        assert!(told.contains("what its hooks did stays") && !told.contains("release stays"), "{told}");
    }
}

#[test]
fn a_module_whose_directory_is_gone() {
    let files = web();
    let mut world = World::new(&files).settled();
    let mut after = files.clone();
    after.modules.clear();
    world.after(10, reread(&after));
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is orphaned: its directory is gone, its hooks stopped, its release stays.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    orphaned for 0.0 s
      release:  deployed, revision 1

    What to do:
      - put /modules/010-web back to take it up again
      - `addon-operator module purge web` removes its release
    ");
    let status = engine::view::status::text(
        &world.view(),
        Format { show: &|text| text.to_owned(), at: &|_| String::new() },
    );
    assert!(status.contains("its directory is gone, see below"), "{status}");
    let (id, command) = (engine::CommandId::new(1), engine::Command::RunModule("web".into()));
    let trace = world.after(10, Event::Commanded { id, command });
    assert!(trace.contains("module web is orphaned: its directory is gone"), "{trace}");
}

#[test]
fn a_module_that_is_parked() {
    let mut world = World::new(&web());
    for _ in 0..4 {
        world = world.release("web", Ok(engine::ReleaseAction::Upgraded));
    }
    world.run();
    for n in 0..4 {
        world.send_in(n * 1_000, drifted("web", engine::Drift::Absent("ops/ConfigMap/web".into())));
        world.run();
    }
    assert_snapshot!(why_module(&world, "web"), @r"
    Module web is on and parked: its release was upgraded 3 times within 15 minutes with the same result, each time because of: release web drifted: ops/ConfigMap/web is gone; its release is left alone until its values or its chart change, or `module resume web`.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:    parked for 3.0 s
      release:  deployed, revision 4

    What to do:
      - `addon-operator module render web --diff` shows what the chart changes each time
      - correct the chart, then `addon-operator module resume web`
    ");
}

#[test]
fn a_module_while_the_discovery_fails() {
    let world = World::new(&web().module(20, "late").script())
        .script("late", Err("enabled: exit status 1"))
        .lived(2_000);
    assert_snapshot!(why_module(&world, "web"), @r"
    Whether module web is on is not known yet: no discovery of modules was completed.

    Who said what, the last one wins:
      1.  modules/values.yaml  yes

      phase:      disabled for 0.0 s
      release:    unknown
      discovery:  fails, so that nothing new is decided: enabled script of module late: enabled: exit status 1

    What to do:
      - `addon-operator why queue main` shows what the discovery waits for
    ");
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main is blocked: its first task failed once.

    Because:
      1.  start
      2.  converge 1

      task:            t1 ConvergeModules:main:::Operator-Startup
      blocked since:   0.020s (0.0 s ago)
      error:           enabled script of module late: enabled: exit status 1
      tried again in:  5.0 s

    What to do:
      - read in the log what the hook or script printed (task.id=t1), and correct it or what it needs; it is tried again by itself
    ");
}

#[test]
fn a_module_that_is_not_there() {
    let world = World::new(&web()).settled();
    assert_snapshot!(why_module(&world, "wbe"), @"there is no module wbe; did you mean web?");
    assert_snapshot!(why_module(&world, "prometheus"), @"there is no module prometheus; `addon-operator status` shows the names");
}

#[test]
fn a_queue_that_is_blocked_by_a_failure() {
    let world = World::new(&web().module(20, "late")).fails("web/hooks/a.sh", 9).lived(12_000);
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main is blocked: its first task failed 3 times.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      task:            t3 ModuleRun:main:web:doStartup:OperatorStartup
      blocked since:   0.020s (10 s ago)
      error:           exit status 1
      tried again in:  5.0 s
      behind it:       2 tasks

    Behind it:
      t4 ModuleRun:main:late:doStartup:OperatorStartup (because: start → converge 1 → module late)
      t1 ConvergeModules:main:::Operator-Startup (because: start → converge 1)

    What to do:
      - read in the log what the hook or script printed (task.id=t3), and correct it or what it needs; it is tried again by itself
      - `addon-operator module run web` tries it at once
    ");
}

#[test]
fn a_queue_whose_first_task_runs() {
    let world = World::new(&web()).takes("web/hooks/a.sh", 60_000).lived(5_000);
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main works: its first task runs for 0.0 s.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      task:           t3 ModuleRun:main:web:doStartup:OperatorStartup
      running since:  0.010s (0.0 s ago)
      behind it:      1 task

    Behind it:
      t1 ConvergeModules:main:::Operator-Startup (because: start → converge 1)

    What to do:
      - nothing, unless it takes too long: settings.timeout of a hook or --hook-timeout ends one that hangs
    ");
}

#[test]
fn a_queue_that_waits_for_the_first_list() {
    let files = files().global_hook("g.sh", "{kubernetes: [{name: pods, kind: Secret}]}").module(10, "web");
    let mut world = World::new(&files);
    world.never_lists("Secret");
    world.run_until(1_000);
    world.send_in(0, watch_failed(FailureKind::Cluster, "secrets is forbidden"));
    world.run_until(3_000);
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main waits: the first list of Secret for hook global/g.sh.

    Because:
      1.  start
      2.  bindings of hook g.sh

      task:           t1 GlobalHookEnableKubernetesBindings:main::g.sh:Operator-Startup
      blocked since:  0.000s (0.0 s ago)
      behind it:      2 tasks

    Behind it:
      t2 GlobalHookWaitKubernetesSynchronization:main:::Operator-Startup (because: start)
      t3 ConvergeModules:main:::Operator-Startup (because: start → converge 1)

    What to do:
      - look whether the API server answers and whether the operator may list and watch that kind (RBAC); the task goes on by itself
    ");
}

#[test]
fn a_queue_that_waits_for_modules_that_run_together() {
    let files = files().module(10, "one").hook("a.sh", "{beforeHelm: 1}").module(10, "two");
    let settings = Config { module_concurrency: 2, ..Config::default() };
    let world = World::with_config(&files, settings).takes("one/a.sh", 60_000).lived(2_000);
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main waits: modules one.

    Because:
      1.  start
      2.  converge 1

      task:           t2 ParallelModuleRun:main:Parallel run for one:OperatorStartup
      blocked since:  0.050s (0.0 s ago)
      behind it:      1 task

    Behind it:
      t1 ConvergeModules:main:::Operator-Startup (because: start → converge 1)

    What to do:
      - look at those modules: `addon-operator why module NAME`
    ");
}

#[test]
fn a_queue_that_is_empty_and_one_that_is_not_there() {
    let world = World::new(&web()).settled();
    assert_snapshot!(why_queue(&world, "main"), @r"
    Queue main is empty: nothing waits.

      last converge:  ended 0.0 s ago
    ");
    assert_snapshot!(why_queue(&world, "mian"), @"there is no queue mian; did you mean main?");
}

#[test]
fn a_task_that_waits_in_a_queue() {
    let world = World::new(&web().module(20, "late")).fails("web/hooks/a.sh", 9).lived(12_000);
    let view = world.view();
    let ids: Vec<String> = view.queues[0].tasks.iter().map(|task| task.id.to_string()).collect();
    assert_snapshot!(why_task(&world, &ids[0]), @r"
    Task t3 (ModuleRun) exists because of: start; it failed 3 times.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      line:            ModuleRun:main:web:doStartup:OperatorStartup
      queue:           main, place 1
      error:           exit status 1
      tried again in:  5.0 s

    What to do:
      - read in the log what the hook or script printed (task.id=t3), and correct it or what it needs; it is tried again by itself
    ");
    assert_snapshot!(why_task(&world, &ids[1]), @r"
    Task t4 (ModuleRun) exists because of: start; it waits for 1 before it.

    Because:
      1.  start
      2.  converge 1
      3.  module late

      line:   ModuleRun:main:late:doStartup:OperatorStartup
      queue:  main, place 2

    What to do:
      - `addon-operator why queue main` shows what is before it
    ");
}

#[test]
fn a_task_that_has_ended() {
    let mut world = World::new(&web()).settled();
    world.after(10, config(101, &[("web", "a: 1")]));
    let view = world.view();
    let end = view.journal.iter().find(|end| end.task.kind == engine::TaskType::ModuleRun).unwrap();
    assert_snapshot!(why_task(&world, &end.task.id.to_string()), @r"
    Task t6 (ModuleRun of module web) existed because of: ConfigMap ops/addon-operator key web rv 101; it succeeded.

    Because:
      1.  ConfigMap ops/addon-operator key web rv 101
      2.  converge 2
      3.  module web

      queue:  main
      ended:  0.145s (0.0 s ago), took 0.0 s
    ");
}

#[test]
fn a_task_that_failed_and_then_succeeded() {
    let world = World::new(&web()).fails("web/hooks/a.sh", 2).settled();
    let view = world.view();
    let end = view.journal.iter().find(|end| end.task.kind == engine::TaskType::ModuleRun).unwrap();
    assert_snapshot!(why_task(&world, &end.task.id.number().to_string()), @r"
    Task t3 (ModuleRun of module web) existed because of: start; it succeeded.

    Because:
      1.  start
      2.  converge 1
      3.  module web

      queue:     main
      ended:     10.090s (0.0 s ago), took 0.0 s
      attempts:  3
    ");
}

#[test]
fn a_task_that_is_not_known() {
    let world = World::new(&web()).settled();
    assert_snapshot!(why_task(&world, "t999"), @"there is no task t999; it never was, was merged into another one or dropped by a new converge, or ended more than a thousand tasks ago; `addon-operator journal` shows those that ended");
    assert_snapshot!(why_task(&world, "web"), @"there is no task web; a task has a number like t12, as `queue list -o json`, `journal` and the log (task.id) show it");
}

#[test]
fn f_e7_answers_and_announcements_quote_no_values() {
    let secret = "hunter22-hunter22";
    let world = World::new(&web())
        .configured(&[("web", "password: hunter22-hunter22")])
        .hook("web/hooks/a.sh", Err(Failure::new(FailureKind::HookExit, format!("exit status 1: {secret}"))))
        .lived(2_000);
    let view = world.view();
    let inspection = world.engine.inspect();
    let values: Vec<_> = inspection.modules.values().map(|scope| &*scope.values).collect();
    let show = |text: &str| engine::view::masked_text(text, &values);
    let format = Format { show: &show, at: &|_| String::new() };
    let answers = [why::module(&view, "web", format), why::queue(&view, "main", format)];
    for answer in answers {
        let shown = answer.unwrap().data().to_string();
        assert!(shown.contains("******") && !shown.contains(secret), "{shown}");
    }
    let status = engine::view::status::data(&view, format).to_string();
    assert!(status.contains("******") && !status.contains(secret), "{status}");
    let journal = engine::view::journal::text(&view, 0, format);
    assert!(journal.contains("******") && !journal.contains(secret), "{journal}");
    let told = format!("{:?}", world.announcements);
    assert!(told.contains("ModuleFailed") && told.contains("******") && !told.contains(secret), "{told}");
}

#[test]
fn data_and_text_say_the_same() {
    let world = World::new(&web()).hook("global/decide.sh", Ok(says(false))).settled();
    let view = world.view();
    let format = Format { show: &|text| text.to_owned(), at: &|_| "now".to_owned() };
    let answer = why::module(&view, "web", format).unwrap();
    assert_snapshot!(values::yaml::emit(&answer.data()), @r#"
    about: module
    advice:
    - look at what the hook decide.sh decides by
    - '`addon-operator module enable web` writes webEnabled: "true" into ConfigMap ops/addon-operator,
      which has more weight than a hook'
    chain:
    - says: true
      what: modules/values.yaml
    - at: now
      reason: 'it ran because: start → converge 1 → beforeAll hook decide.sh'
      says: false
      secondsAgo: 0.005
      what: global hook decide.sh
    facts:
      phase: disabled for 0.0 s
      release: unknown
    name: web
    state: "off"
    verdict: 'module web is off: global hook decide.sh said so at now (0.0 s ago)'
    "#);
}

#[test]
fn a_flag_that_a_hook_repeats_keeps_its_time() {
    let mut world = World::new(&web()).hook("global/decide.sh", Ok(says(false))).settled();
    let first = world.now;
    world = world.hook("global/decide.sh", Ok(says(false)));
    world.after(60_000, config(101, &[("global", "a: 1")]));
    let view = world.view();
    assert!(view.modules[0].opinions[1].ago.unwrap() >= view.now.since(first));
}
