//! Modules that wait for others: `requires` in their files.

use std::time::Duration;

use engine::view::{status, why};
use engine::{
    Command, CommandId, Config, Event, Notice, OnModuleFailure, ReadinessPolicy, ReadinessWait, Requirement,
    RunId, VersionRange,
};
use serde_json::json;

use crate::build::{Files, config, files, reread};
use crate::repositories::{addon, sourced};
use crate::world::World;

impl Files {
    /// Lets the last module require others, each `name` or `name range`.
    pub(crate) fn requires(self, others: &[&str]) -> Self {
        self.with(|module| {
            let requirement = |text: &&str| {
                let (name, range) = text.split_once(' ').unwrap_or((text, ""));
                let version = (!range.is_empty()).then(|| VersionRange::parse(range).unwrap());
                Requirement { module: name.into(), version }
            };
            module.settings.requires = others.iter().map(requirement).collect();
        })
    }

    /// Lets those that require the last module wait until its objects are ready, which are late after some seconds.
    pub(crate) fn readiness(self, seconds: u64) -> Self {
        let timeout = Duration::from_secs(seconds);
        self.with(move |module| {
            module.settings.readiness = ReadinessPolicy { wait: ReadinessWait::Objects, timeout };
        })
    }

    /// Gives the last module a version.
    fn version(self, version: &str) -> Self {
        self.with(|module| module.version = Some(version.into()))
    }
}

/// `app` comes first by its number, and requires `db`.
fn app_and_db(range: &str) -> Files {
    files().module(10, "app").requires(&[format!("db {range}").trim()]).module(20, "db").module(30, "web")
}

fn phases(world: &World) -> Vec<String> {
    let modules = world.view().modules;
    modules.iter().map(|module| format!("{} {}", module.name, module.phase)).collect()
}

fn why_app(world: &World) -> String {
    world.told(|view, format| why::module(view, "app", format).unwrap().text())
}

/// Returns the modules in the order in which their releases were changed.
fn upgrades(trace: &str) -> Vec<&str> {
    trace.lines().filter_map(|line| line.split_once("upgrade ")?.1.split(' ').next()).collect()
}

#[test]
fn a_module_waits_for_one_behind_it_holds_back_nobody_and_runs_by_itself() {
    let mut world = World::new(&app_and_db(""));
    let trace = world.run();
    assert_eq!(upgrades(&trace), ["db", "web", "app"], "{trace}");
    assert_eq!(phases(&world), ["app running", "db running", "web running"]);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::Ready)), 1);
}

#[test]
fn the_name_of_a_directory_in_the_place_of_a_module_is_told_with_the_name() {
    let mut world = World::new(&files().module(10, "db").module(30, "app").requires(&["10-db"]));
    world.run();
    let why = why_app(&world);
    assert!(why.contains("module 10-db, which does not exist; the name of the module is db"), "{why}");
}

#[test]
fn a_module_that_is_missing_is_told_of_and_the_other_one_runs_when_it_comes() {
    let mut world = World::new(&files().module(10, "app").requires(&["db"]).module(30, "web"));
    let trace = world.run();
    assert_eq!(upgrades(&trace), ["web"]);
    assert_eq!(phases(&world), ["app waiting", "web running"]);
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::Ready)), 1, "nobody waits for it");
    assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()));
    let told = world.told(status::text);
    assert!(
        told.contains(": it requires module db, which does not exist\n      do: bring module db"),
        "{told}"
    );
    let why = why_app(&world);
    assert!(why.contains("app is on, and waits: it requires module db, which does not exist"), "{why}");
    let data = world.told(status::data);
    let app = &data["modules"][0];
    assert_eq!(app["waits"], json!("it requires module db, which does not exist"));
    assert_eq!(
        app["requires"],
        json!([{"module": "db", "version": null, "missing": "module db, which does not exist"}])
    );
    let run = Event::Commanded { id: CommandId::new(1), command: Command::RunModule("app".into()) };
    let refused = world.after(10, run);
    assert!(refused.contains("module app waits: it requires module db, which does not exist"), "{refused}");
    let trace = world.after(10, reread(&app_and_db("")));
    assert_eq!(upgrades(&trace).last(), Some(&"app"), "{trace}");
    assert_eq!(upgrades(&trace).iter().filter(|name| **name == "app").count(), 1, "{trace}");
    assert_eq!(phases(&world), ["app running", "db running", "web running"]);
}

#[test]
fn a_module_that_is_off_keeps_others_from_beginning_and_stops_nobody_who_runs() {
    let mut world = World::new(&app_and_db("")).configured(&[("dbEnabled", "false")]);
    let trace = world.run();
    assert_eq!((upgrades(&trace), phases(&world)[0].as_str()), (vec!["web"], "app waiting"));
    assert!(!trace.contains("crds"), "nothing of it is installed: {trace}");
    let why = why_app(&world);
    assert!(why.contains("it requires module db, which is off") && why.contains("module enable db"), "{why}");
    world.after(10, config(200, &[]));
    assert_eq!(phases(&world), ["app running", "db running", "web running"]);
    let trace = world.after(10, config(300, &[("dbEnabled", "false")]));
    assert!(trace.contains("uninstall db") && !trace.contains("uninstall app"), "{trace}");
    assert_eq!(phases(&world)[0], "app running");
    let told = world.told(status::text);
    assert!(told.contains("! module app runs on, and requires module db, which is off"), "{told}");
    let trace = world.after(10, config(400, &[("dbEnabled", "false"), ("app", "x: 1")]));
    assert_eq!(upgrades(&trace), ["app"], "it runs on as it is");
    let quiet = world.after(10, config(500, &[("app", "x: 1")]));
    assert!(upgrades(&quiet).contains(&"db"), "{quiet}");
    assert!(!world.told(status::text).contains("runs on, and requires"));
}

#[test]
fn a_version_that_does_not_do_is_told_and_the_next_one_ends_the_wait() {
    let with = |version: &str| {
        let files = files().module(10, "app").requires(&["db >=2"]).module(20, "db");
        if version.is_empty() { files } else { files.version(version) }
    };
    let mut world = World::new(&with("1.4.0")).settled();
    assert!(
        why_app(&world).contains("it requires module db, >=2, and its version is 1.4.0"),
        "{}",
        why_app(&world)
    );
    world.after(10, reread(&with("")));
    assert!(why_app(&world).contains("module db, >=2, and it has no version"), "{}", why_app(&world));
    world.after(10, reread(&with("2.1.0").with(|module| module.content = 2)));
    assert_eq!(phases(&world), ["app running", "db running"]);
    world.after(10, reread(&with("1.0.0").with(|module| module.content = 3)));
    assert_eq!(phases(&world), ["app running", "db running"], "what runs is not stopped");
    assert!(
        world.told(status::text).contains("runs on, and requires module db, >=2, and its version is 1.0.0")
    );
}

#[test]
fn new_files_wait_for_what_they_require_while_the_old_ones_go_on() {
    let mut world = World::new(&app_and_db("").hook("tick.sh", "beforeHelm: 1")).settled();
    let mut new = app_and_db(">=2");
    new.modules[0].content = 2;
    let trace = world.after(10, reread(&new));
    assert_eq!(
        (upgrades(&trace).contains(&"app"), phases(&world)[0].as_str()),
        (false, "app waiting"),
        "{trace}"
    );
    new.modules[1].content = 2;
    new.modules[1].version = Some("2.0.0".into());
    let trace = world.after(10, reread(&new));
    assert_eq!(upgrades(&trace), ["db", "app"], "{trace}");
    assert_eq!(phases(&world)[0], "app running");
}

#[test]
fn modules_in_a_circle_wait_and_are_told_which_circle_until_it_is_cut() {
    let circle = || {
        files()
            .module(10, "app")
            .requires(&["db"])
            .module(20, "db")
            .requires(&["store"])
            .module(25, "store")
            .requires(&["app"])
            .module(30, "own")
            .requires(&["own"])
            .module(40, "web")
    };
    let mut world = World::new(&circle()).settled();
    assert_eq!(phases(&world), ["app waiting", "db waiting", "store waiting", "own waiting", "web running"]);
    let why = why_app(&world);
    assert!(
        why.contains(
            "it requires module db, which requires store, which requires app: none of a circle can run first"
        ),
        "{why}"
    );
    let own = world.told(|view, format| why::module(view, "own", format).unwrap().text());
    assert!(own.contains("it requires module own, which is itself: it can never run"), "{own}");
    let mut cut = circle();
    cut.modules[2].settings.requires.clear();
    cut.modules[2].content = 2;
    let trace = world.after(10, reread(&cut));
    assert_eq!(upgrades(&trace), ["store", "db", "app"], "{trace}");
    assert_eq!(phases(&world)[3], "own waiting");
}

#[test]
fn one_that_fails_is_waited_for_until_it_succeeds() {
    let files = files().module(10, "db").module(20, "app").requires(&["db"]).module(30, "web");
    let pass = Config { on_module_failure: OnModuleFailure::Pass, ..Config::default() };
    let mut world = World::with_config(&files, pass).release("db", Err("refused"));
    let trace = world.run_until(3_000);
    assert_eq!((upgrades(&trace), phases(&world)[1].as_str()), (vec!["db", "web"], "app waiting"), "{trace}");
    assert!(why_app(&world).contains("it requires module db, whose run failed"), "{}", why_app(&world));
    let trace = world.run();
    assert_eq!(upgrades(&trace), ["db", "app"], "{trace}");
}

#[test]
fn modules_of_one_number_that_run_at_a_time_wait_for_each_other_alone() {
    let files = files().module(10, "app").requires(&["db"]).module(10, "db").module(20, "web");
    let config = Config { module_concurrency: 2, ..Config::default() };
    let mut world = World::with_config(&files, config);
    let trace = world.run();
    assert_eq!(phases(&world), ["app running", "db running", "web running"], "{trace}");
    let order = upgrades(&trace);
    assert_eq!((order.len(), order[0], order.last()), (3, "db", Some(&"app")), "{trace}");
}

#[test]
fn one_that_is_switched_off_while_it_waits_leaves_nothing_behind() {
    let files = files().module(10, "app").requires(&["db"]);
    let mut world = World::new(&files).settled();
    let trace = world.after(10, config(200, &[("appEnabled", "false")]));
    assert!(!trace.contains("uninstall"), "{trace}");
    assert_eq!(phases(&world), ["app disabled"]);
    world.after(10, config(300, &[]));
    assert_eq!(phases(&world), ["app waiting"]);
    world.after(10, reread(&crate::build::files().module(20, "web")));
    assert_eq!(phases(&world), ["web running"], "nothing of it ever ran, so it is no orphan");
}

#[test]
fn a_module_of_a_namespace_means_its_neighbour() {
    let mut world = sourced(&files().module(10, "base"));
    world.offers("https://repo/index.yaml", Ok(vec![addon("web", "1.0.0", 1), addon("db", "1.0.0", 2)]));
    world.bundle(1, "web", &[]);
    world.bundle(2, "db", &[]);
    world.bundle_requires(1, "db");
    world.send_in(0, config(200, &[("aWebEnabled", "true")]));
    world.applies("a/x", &["https://repo/index.yaml"]);
    world.run_for(8_000);
    let why = world.told(|view, format| why::module(view, "a-web", format).unwrap().text());
    assert!(why.contains("it requires module a-db, which is off"), "{why}");
    world.send_in(0, config(300, &[("aWebEnabled", "true"), ("aDbEnabled", "true")]));
    world.run_for(8_000);
    assert!(phases(&world).contains(&"a-web running".to_owned()), "{:?}", phases(&world));
}

/// Returns the question about the objects of a module that was asked last.
fn question(trace: &str, module: &str) -> RunId {
    let asked = format!("await objects of {module} #");
    let number = trace.lines().rev().find_map(|line| line.split_once(&asked)?.1.parse().ok());
    RunId::new(number.unwrap_or_else(|| panic!("nobody asked: {trace}")))
}

fn objects(run: RunId, module: &str, unready: &[&str]) -> Event {
    let unready = unready.iter().map(|text| (*text).to_owned()).collect();
    Event::ReadinessChanged { run, module: module.into(), unready }
}

#[test]
fn who_requires_a_module_waits_until_its_objects_are_ready_and_nobody_else_does() {
    let files =
        || files().module(10, "db").readiness(60).module(20, "app").requires(&["db"]).module(30, "web");
    let mut world = World::new(&files());
    let trace = world.run_until(10_000);
    assert_eq!(upgrades(&trace), ["db", "web"], "{trace}");
    assert_eq!(phases(&world), ["db running", "app waiting", "web running"]);
    assert!(why_app(&world).contains("whose objects are not ready: nobody has looked at them yet"));
    let run = question(&trace, "db");
    let one = "ns/StatefulSet/db: 0 of 1 replicas are ready";
    world.send_in(10, objects(run, "db", &[one]));
    world.run_until(20_000);
    assert!(why_app(&world).contains(&format!("it requires module db, whose objects are not ready: {one}")));
    assert!(!world.told(status::text).contains("Needs attention"), "it may take its time");
    // An answer to an older question says nothing of these.
    world.send_in(10, objects(RunId::new(1), "db", &[]));
    world.run_until(30_000);
    assert_eq!(phases(&world)[1], "app waiting");
    // Its time is over: people are told, and nobody stops to wait.
    world.run_until(100_000);
    let told = world.told(status::text);
    assert!(told.contains("! module db its objects are not ready for") && told.contains(one), "{told}");
    let late = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("its objects are not ready after"));
    assert_eq!(world.noticed(late), 1);
    assert_eq!(
        world.told(status::data)["modules"][0]["readiness"],
        json!({"state": "late", "unready": [one]})
    );
    let trace = world.after(10, objects(run, "db", &[]));
    assert_eq!(upgrades(&trace), ["app"], "{trace}");
    assert!(!world.told(status::text).contains("Needs attention"));
    // The next upgrade asks again, and what ran is not stopped by it.
    let trace = world.after(10, config(200, &[("db", "x: 1")]));
    assert_eq!((upgrades(&trace), phases(&world)[1].as_str()), (vec!["db"], "app running"), "{trace}");
    assert_ne!(question(&trace, "db"), run);
    let mut plain = files();
    plain.modules[0].settings.readiness = ReadinessPolicy::default();
    plain.modules[0].content = 2;
    world.after(10, reread(&plain));
    assert_eq!(world.view().modules[0].readiness, None, "nobody asks any more");
}

#[test]
fn objects_that_never_become_ready_keep_no_converge_from_its_end() {
    let files = files().module(10, "db").readiness(60).module(20, "app").requires(&["db"]);
    let mut world = World::new(&files).settled();
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::Ready)), 1);
    assert!(world.view().queues.iter().all(|queue| queue.tasks.is_empty()));
    let trace = world.after(10, config(200, &[("dbEnabled", "false")]));
    assert!(trace.contains("uninstall db"), "{trace}");
    assert_eq!(
        (world.view().modules[0].readiness.clone(), phases(&world)[1].as_str()),
        (None, "app waiting")
    );
    assert!(why_app(&world).contains("it requires module db, which is off"));
}

#[test]
fn a_module_that_requires_one_that_is_parked_says_so_and_how_that_ends() {
    let park = |module: &mut engine::Module| {
        let (delay, then) = (Some(Duration::from_secs(1)), engine::LastResort::Park);
        module.settings.retry = engine::RetryPolicy { delay, max: None, attempts: Some(2), then };
    };
    let files = files()
        .module(10, "db")
        .hook("before.sh", "beforeHelm: 1")
        .with(park)
        .module(20, "app")
        .requires(&["db"]);
    let mut world = World::new(&files).fails("db/before.sh", 2).settled();
    assert_eq!(phases(&world), ["db parked", "app waiting"]);
    let why = why_app(&world);
    assert!(why.contains("it requires module db, which is parked"), "{why}");
    assert!(why.contains("`addon-operator module resume db`"), "{why}");
    let told = world.told(status::text);
    assert!(told.contains("! module app waits for") && told.contains("module resume db"), "{told}");
    let resume = Command::ResumeModule("db".into());
    world.after(10, Event::Commanded { id: CommandId::new(1), command: resume });
    assert_eq!(phases(&world), ["db running", "app running"]);
}
