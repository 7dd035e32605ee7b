//! Configurations of one namespace: their modules, where those are released, and what nobody may do by them.

use engine::view::{self, why};
use engine::{Command, CommandId, Config, Event, Failure, FailureKind, Notice, ReleaseAction, StoreError};
use serde_json::json;

use crate::build::{config as config_map, files, reread};
use crate::giving_way::wait;
use crate::random::{Random, live, seeds};
use crate::repositories::{addon, config, sourced, sourced_with, with_id};
use crate::world::World;

const URL: &str = "https://repo/index.yaml";

/// A world in which a repository offers the chart `web`, and the module of each of these keys is switched on.
fn offering(keys: &[&str]) -> World {
    let mut world = sourced(&files().module(10, "base"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    let flags: Vec<String> = keys.iter().map(|key| format!("{key}Enabled")).collect();
    let flags: Vec<(&str, &str)> = flags.iter().map(|flag| (flag.as_str(), "true")).collect();
    world.send_in(0, config_map(200, &flags));
    world.run_for(3_000);
    world
}

fn releases(world: &World) -> Vec<&str> {
    world.deployed.keys().map(String::as_str).collect()
}

#[test]
fn a07_one_id_in_the_cluster_and_in_two_namespaces_is_no_conflict() {
    let mut world = offering(&["web", "aWeb", "bWeb"]);
    for name in ["x", "a/x", "b/x"] {
        world.applies(name, &[URL]);
    }
    world.run_for(5_000);
    for (name, state) in [("x", "web Running"), ("a/x", "a-web Running"), ("b/x", "b-web Running")] {
        assert_eq!((world.phase(name).as_str(), world.problems(name)), ("Ready", Vec::new()), "{name}");
        assert_eq!(world.states(name), [state]);
    }
    assert_eq!(releases(&world), ["a/a-web", "b/b-web", "base", "web"]);
}

#[test]
fn what_goes_on_without_its_configuration_is_never_given_to_another_scope() {
    let mut world = offering(&["aWeb"]);
    let twin = Ok(vec![with_id(addon("a-web", "1.0.0", 4), "id-twin")]);
    world.bundle(4, "a-web", &[]);
    world.offers("two", twin);
    world.applies("x", &["two"]);
    world.run_for(3_000);
    assert_eq!(world.states("x"), ["a-web Running"]);
    // The index can't be read: the module goes on, and people of the namespace wait for its name.
    world.applies("x", &["gone"]);
    world.applies("a/x", &[URL]);
    let trace = world.run_for(8_000);
    assert_eq!((world.phase("x").as_str(), world.phase("a/x").as_str()), ("Failed", "Failed"), "{trace}");
    assert_eq!(world.states("x"), ["a-web Retained"]);
    assert!(!trace.contains("uninstall") && !releases(&world).contains(&"a/a-web"), "{trace}");
}

#[test]
fn a15_a_deletion_bumps_what_failed_in_its_namespace_only() {
    let mut world = offering(&[]);
    world.offers("two", Ok(vec![with_id(addon("twin", "2.0.0", 4), "id-web")]));
    for scope in ["", "a/", "b/"] {
        world.applies(&format!("{scope}x"), &[URL]);
        world.run_for(2_000);
        world.applies(&format!("{scope}y"), &["two"]);
        world.applies(&format!("{scope}z"), &["gone"]);
        world.run_for(2_000);
    }
    world.repositories.writes.clear();
    world.deletes("a/x");
    world.run_for(5_000);
    let bumps = world.repositories.writes.iter().filter(|write| write.contains("reprocessRequest"));
    let bumps: Vec<&str> = bumps.map(String::as_str).collect();
    assert_eq!(bumps, ["a/x a/y reprocessRequest 1", "a/x a/z reprocessRequest 1"]);
    assert_eq!((world.phase("a/y").as_str(), world.phase("b/y").as_str()), ("Ready", "Failed"));
    assert!(!world.repositories.objects.contains_key("a/x"));
}

#[test]
fn a29_what_would_act_with_the_operators_rights_is_refused_in_a_namespace() {
    let mut world = offering(&["web", "aWeb"]);
    let mut unsafe_one = addon("web", "1.0.0", 1);
    unsafe_one.privileged = vec!["enabled".to_owned(), "hooks/".to_owned()];
    world.offers(URL, Ok(vec![unsafe_one]));
    for name in ["x", "a/x"] {
        world.applies(name, &[URL]);
    }
    world.run_for(3_000);
    assert_eq!((world.phase("x").as_str(), world.phase("a/x").as_str()), ("Ready", "Failed"));
    let problem = &world.problems("a/x")[0];
    assert!(problem.starts_with("LoadingError: an AddonsConfiguration brings charts only"), "{problem}");
    assert!(problem.contains("enabled, hooks/"), "{problem}");
    assert_eq!(releases(&world), ["base", "web"]);
}

#[test]
fn a29_a_module_without_rights_says_so_and_holds_up_nobody() {
    let mut world = offering(&["aWeb"]);
    world.powerless.insert("a".to_owned());
    world.applies("a/x", &[URL]);
    world.run_for(30_000);
    assert_eq!((world.phase("a/x").as_str(), world.states("a/x")), ("Ready", vec!["a-web Error".to_owned()]));
    let view = world.view();
    let module = view.modules.iter().find(|module| module.name.as_str() == "a-web").unwrap();
    assert!(module.last_error.as_ref().unwrap().message.contains("forbidden"), "{:?}", module.last_error);
    assert_eq!(
        module.elsewhere.as_ref().unwrap().to_string(),
        "namespace a as its ServiceAccount addon-operator"
    );
    let status = world.status("a/x");
    assert_eq!(status["repositories"][0]["addons"][0]["module"]["message"], "secrets is forbidden");
    // Nobody who waits for the first converge hears of it.
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::Stuck { .. })), 0);
    // A converge goes past it, and so does one after a restart.
    world.restarts();
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    world.run_for(30_000);
    assert!(world.view().converge.first_done);
    // It is tried again, and runs as soon as it may.
    world.powerless.clear();
    world.run_for(10_000);
    assert_eq!(
        (world.states("a/x"), releases(&world)),
        (vec!["a-web Running".to_owned()], vec!["a/a-web", "base"])
    );
    // Its removal waits for rights that were taken away, and nobody waits for it.
    world.powerless.insert("a".to_owned());
    world.deletes("a/x");
    world.run_for(10_000);
    assert!(world.repositories.objects.contains_key("a/x"));
    world.send_in(0, config_map(201, &[("baseEnabled", "false")]));
    world.run_for(5_000);
    assert_eq!(releases(&world), ["a/a-web"]);
    world.powerless.clear();
    world.run_for(10_000);
    assert!(releases(&world).is_empty() && world.repositories.objects.is_empty());
}

#[test]
fn what_lacks_rights_is_tried_again_and_told_less_and_less_often() {
    let mut world = offering(&["aWeb"]);
    world.powerless.insert("a".to_owned());
    world.applies("a/x", &[URL]);
    world.run_for(600_000);
    let is_failure = |notice: &&Notice| matches!(notice, Notice::TaskFinished { failure: Some(_), .. });
    let is_told = |notice: &&Notice| matches!(notice, Notice::TaskFinished { is_old: false, .. });
    let failed = world.notices.iter().filter(is_failure).count();
    let told = world.notices.iter().filter(is_failure).filter(is_told).count();
    assert!(failed > 100 && (6..=8).contains(&told), "{told} of {failed}");
    // What the operator's own modules lack is its business each time.
    let mut world = World::new(&files().module(10, "web"));
    world.fails_releases("web", 20);
    world.run_for(60_000);
    let failures = world.notices.iter().filter(is_failure);
    assert!(failures.clone().count() > 5 && failures.clone().all(|notice| is_told(&notice)));
}

#[test]
fn a_configuration_that_released_nothing_is_deleted_without_any_right() {
    for (is_restarted, is_off) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = offering(&["aWeb"]);
        world.powerless.insert("a".to_owned());
        world.applies("a/x", &[URL]);
        world.run_for(20_000);
        assert_eq!(world.states("a/x"), ["a-web Error"]);
        let flags: &[(&str, &str)] = if is_off { &[] } else { &[("aWebEnabled", "true")] };
        if is_restarted {
            world.restarts();
        }
        world.send_in(0, config_map(201, flags));
        world.run_for(10_000);
        world.deletes("a/x");
        world.run_for(10_000);
        let case = (is_restarted, is_off);
        assert!(world.repositories.objects.is_empty(), "{case:?}: {:?}", world.status("a/x"));
        assert!(world.queue("main").is_empty() && !world.trace.contains("uninstall"), "{case:?}");
        assert!(world.repositories.registry.addons.is_empty(), "{case:?}");
    }
}

#[test]
fn a_name_that_goes_to_the_cluster_leaves_no_release_where_there_was_none() {
    let mut world = offering(&["aWeb"]);
    world.powerless.insert("a".to_owned());
    world.applies("a/x", &[URL]);
    world.run_for(10_000);
    world.bundle(4, "a-web", &[]);
    world.offers("two", Ok(vec![with_id(addon("a-web", "1.0.0", 4), "id-twin")]));
    world.applies("x", &["two"]);
    let trace = world.run_for(10_000);
    assert_eq!(
        (world.states("x"), releases(&world)),
        (vec!["a-web Running".to_owned()], vec!["a-web", "base"])
    );
    world.deletes("a/x");
    world.run_for(5_000);
    assert!(!world.repositories.objects.contains_key("a/x") && !trace.contains("uninstall a/"), "{trace}");
}

#[test]
fn a_release_of_a_namespace_is_on_record_before_it_is_begun() {
    let mut world = offering(&["aWeb"]);
    world.applies("a/x", &[URL]);
    let trace = world.run_for(5_000);
    let begun: Vec<usize> = trace.match_indices("upgrade a/a-web").map(|(at, _)| at).collect();
    assert!(begun.len() == 2 && trace[begun[0]..begun[1]].contains("bundles kept"), "{trace}");
    // Once it is, an upgrade is one step again, also after a restart and with another version.
    world.restarts();
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    world.run_for(5_000);
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
    world.edits("a/x", |spec| spec["reprocessRequest"] = json!(1));
    let trace = world.run_for(5_000);
    assert_eq!(trace.matches("upgrade a/a-web").count(), 1, "{trace}");
    // And what may be there is not given up without rights.
    world.powerless.insert("a".to_owned());
    world.restarts();
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    world.run_for(10_000);
    world.deletes("a/x");
    world.run_for(10_000);
    assert!(world.repositories.objects.contains_key("a/x"));
    assert!(world.repositories.faults.is_empty(), "{:?}", world.repositories.faults);
}

#[test]
fn a_release_that_can_not_be_recorded_is_not_begun_and_holds_up_nobody() {
    let mut world = offering(&[]);
    world.applies("a/x", &[URL]);
    world.run_for(5_000);
    let denied = || StoreError::Registry(Failure::new(FailureKind::Forbidden, "secrets is forbidden"));
    world.repositories.keeping.extend((0..3).map(|_| denied()));
    world.send_in(0, config_map(201, &[("aWebEnabled", "true")]));
    world.run_for(3_000);
    assert_eq!(releases(&world), ["base"], "{}", world.trace);
    let view = world.view();
    let mut tasks = view.queues.iter().flat_map(|queue| &queue.tasks);
    let why = tasks.find_map(|task| task.waits_for.clone());
    assert!(why.as_ref().is_some_and(|why| why.contains("the registry of module sources")), "{why:?}");
    world.send_in(0, config_map(202, &[("aWebEnabled", "true"), ("global", "new: 1")]));
    world.run_for(2_000);
    let view = world.view();
    let base = view.modules.iter().find(|module| module.name.as_str() == "base").unwrap();
    assert_eq!(base.revision, Some(2), "{}", world.trace);
    world.run_for(30_000);
    assert_eq!(releases(&world), ["a/a-web", "base"]);
    assert_eq!(world.states("a/x"), ["a-web Running"]);
}

#[test]
fn a_removal_that_fails_is_there_once_however_many_converges_there_are() {
    let mut world = offering(&["aWeb"]);
    world.applies("a/x", &[URL]);
    world.run_for(3_000);
    world.powerless.insert("a".to_owned());
    world.deletes("a/x");
    world.run_for(20_000);
    for id in 1..6 {
        world.send_in(0, Event::Commanded { id: CommandId::new(id), command: Command::Converge });
        world.run_for(20_000);
    }
    let queue = world.queue("namespace_queue_a");
    let removals = queue.iter().filter(|line| line.starts_with("ModuleDelete")).count();
    assert_eq!(removals, 1, "{queue:?}");
    world.powerless.clear();
    world.run_for(20_000);
    assert_eq!(releases(&world), ["base"]);
    assert!(!world.repositories.objects.contains_key("a/x"));
}

#[test]
fn a_module_without_rights_holds_up_no_module_that_runs_beside_it() {
    let config = Config { module_concurrency: 4, ..config() };
    let files = files().module(50, "beside").module(60, "behind");
    let mut world = sourced_with(&files, config);
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.powerless.insert("a".to_owned());
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    world.applies("a/x", &[URL]);
    world.run_for(10_000);
    assert_eq!(world.states("a/x"), ["a-web Error"]);
    // Everything runs again, the module of the namespace among others.
    world.send_in(0, config_map(201, &[("aWebEnabled", "true"), ("global", "new: 1")]));
    world.run_for(20_000);
    let view = world.view();
    let phases: Vec<_> = view.modules.iter().map(|module| (module.name.as_str(), module.revision)).collect();
    assert_eq!(phases, [("a-web", None), ("beside", Some(2)), ("behind", Some(2))]);
    world.powerless.clear();
    world.run_for(10_000);
    assert_eq!(world.states("a/x"), ["a-web Running"]);
}

#[test]
fn a_name_that_does_not_survive_is_a_loading_error_that_says_so() {
    let mut world = offering(&[]);
    world.applies("team-2/x", &[URL]);
    world.run_for(3_000);
    let problem = &world.problems("team-2/x")[0];
    assert!(problem.starts_with("LoadingError: ") && problem.contains("team-2-web"), "{problem}");
}

#[test]
fn a_composed_name_that_collides_is_a_conflict_and_both_are_named() {
    let mut world = offering(&[]);
    world.offers("cluster", Ok(vec![addon("a-web", "2.0.0", 4)]));
    world.applies("x", &["cluster"]);
    world.run_for(2_000);
    world.applies("a/x", &[URL]);
    world.run_for(2_000);
    let conflict = "ConflictWithAlreadyRegisteredAddon: its name is registered by ClusterAddonsConfiguration x: a-web:2.0.0 in cluster";
    assert_eq!(world.problems("a/x"), [conflict]);
    // Between two namespaces it is the first one's.
    let mut world = offering(&[]);
    world.offers("longer", Ok(vec![addon("b-web", "2.0.0", 4)]));
    world.applies("a/x", &["longer"]);
    world.run_for(2_000);
    world.applies("a-b/x", &[URL]);
    world.run_for(2_000);
    let conflict = "ConflictWithAlreadyRegisteredAddon: its name is registered by AddonsConfiguration a/x: a-b-web:2.0.0 in longer";
    assert_eq!(world.problems("a-b/x"), [conflict]);
    // A module of files.
    let mut world = sourced(&files().module(10, "a-web"));
    world.offers(URL, Ok(vec![addon("web", "1.0.0", 1)]));
    world.applies("a/x", &[URL]);
    world.run_for(2_000);
    assert!(world.problems("a/x")[0].contains("the built-in module /modules/010-a-web"));
}

#[test]
fn a_conflict_between_two_of_a_namespace_names_the_addon() {
    let mut world = offering(&[]);
    world.offers("two", Ok(vec![with_id(addon("twin", "2.0.0", 4), "id-web")]));
    world.applies("a/x", &["two"]);
    world.run_for(2_000);
    world.applies("a/y", &[URL]);
    world.run_for(2_000);
    let conflict = "ConflictWithAlreadyRegisteredAddon: its id is registered by AddonsConfiguration a/x: twin:2.0.0 in two";
    assert_eq!(world.problems("a/y"), [conflict]);
}

#[test]
fn a_bundle_never_switches_itself_on_in_a_namespace() {
    let mut world = offering(&[]);
    world.applies("a/x", &[URL]);
    world.edits("a/x", |spec| spec["autoEnable"] = json!(true));
    world.run_for(10_000);
    assert_eq!(
        (world.phase("a/x").as_str(), world.states("a/x")),
        ("Ready", vec!["a-web Registered".to_owned()])
    );
}

#[test]
fn a_restart_finds_the_releases_of_namespaces_and_removes_none() {
    let mut world = offering(&["aWeb"]);
    world.applies("a/x", &[URL]);
    world.run_for(3_000);
    world.restarts();
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    let trace = world.run_for(10_000);
    assert!(trace.contains("and in namespace a as its ServiceAccount addon-operator"), "{trace}");
    assert!(trace.contains("Unchanged") && !trace.contains("uninstall"), "{trace}");
    // Off while the operator was away: it is removed from where it is.
    world.restarts();
    world.send_in(0, config_map(201, &[]));
    world.run_for(10_000);
    assert_eq!(releases(&world), ["base"]);
}

#[test]
fn what_is_being_removed_is_not_forgotten_because_it_may_not_be_listed() {
    let mut world = offering(&["aWeb"]);
    world.applies("a/x", &[URL]);
    world.run_for(3_000);
    world.powerless.insert("a".to_owned());
    world.deletes("a/x");
    world.run_for(1_000);
    world.restarts();
    world.send_in(0, config_map(200, &[("aWebEnabled", "true")]));
    world.run_for(10_000);
    assert!(world.repositories.objects.contains_key("a/x") && releases(&world) == ["a/a-web", "base"]);
    world.powerless.clear();
    world.run_for(10_000);
    assert!(world.repositories.objects.is_empty() && releases(&world) == ["base"]);
}

/// Twenty minutes: how long a hook of a chart may take.
const HANGS: u64 = 1_200_000;

/// A world in which the first run of the module of a namespace does not come to an end.
fn hanging() -> World {
    hanging_run().0
}

/// Does the same. Returns also the attempt that goes on.
fn hanging_run() -> (World, engine::RunId) {
    let mut world = offering(&["aWeb", "aJob", "other"]);
    world.take("release a-web", HANGS);
    world.applies("a/x", &[URL]);
    let trace = world.run_for(3_000);
    assert_eq!(
        world.queue("namespace_queue_a"),
        ["ModuleRun:namespace_queue_a:a-web:doStartup:ReloadAllModules"]
    );
    let run = trace.rsplit("upgrade a/a-web #").next().unwrap();
    let number: String = run.chars().take_while(char::is_ascii_digit).collect();
    (world, engine::RunId::new(number.parse().unwrap()))
}

#[test]
fn a_run_of_a_namespace_that_does_not_end_holds_up_nobody() {
    let mut world = hanging();
    assert!(world.queue("main").is_empty(), "{:?}", world.queue("main"));
    assert!(world.view().converge.finished_ago.is_some());
    world.bundle(7, "other", &[]);
    world.offers("others", Ok(vec![addon("other", "1.0.0", 7)]));
    world.applies("x", &["others"]);
    world.run_for(3_000);
    assert_eq!((world.phase("x").as_str(), world.states("x")), ("Ready", vec!["other Running".to_owned()]));
    // Neither does it after a restart, nor does anybody get a second one of it.
    world.restarts();
    world.send_in(0, config_map(200, &[("aWebEnabled", "true"), ("otherEnabled", "true")]));
    world.run_for(5_000);
    assert!(world.view().converge.first_done && world.queue("main").is_empty());
    world.send_in(0, Event::Commanded { id: CommandId::new(1), command: Command::Converge });
    world.send_in(
        100,
        config_map(201, &[("aWebEnabled", "true"), ("otherEnabled", "true"), ("global", "new: 1")]),
    );
    world.run_for(5_000);
    assert!(world.queue("main").is_empty());
    assert_eq!(world.queue("namespace_queue_a").len(), 2, "{:?}", world.queue("namespace_queue_a"));
    world.run_for(HANGS);
    assert_eq!(world.states("a/x"), ["a-web Running"]);
    // The queue of a namespace is there as long as there is something in it.
    world.run_for(HANGS);
    assert!(world.view().queues.iter().all(|queue| queue.name.as_str() != "namespace_queue_a"));
}

/// A world in which that module has given way to another one of its namespace.
fn giving_way() -> World {
    let mut world = hanging();
    world.bundle(8, "job", &[]);
    world.offers("jobs", Ok(vec![addon("job", "1.0.0", 8)]));
    world.applies("a/y", &["jobs"]);
    wait(&mut world, 50_000);
    assert_eq!(world.states("a/y"), ["a-job Enabled"]);
    wait(&mut world, 15_000);
    assert_eq!(world.states("a/y"), ["a-job Running"]);
    assert!(!world.queue("namespace_queue_a/a-web").is_empty());
    world
}

#[test]
fn a_run_of_a_namespace_that_does_not_end_keeps_the_others_of_it_waiting_for_a_minute() {
    let mut world = giving_way();
    // What comes of it later follows it, and nobody waits for that either.
    let all = [("aWebEnabled", "true"), ("aJobEnabled", "true"), ("global", "new: 1")];
    world.send_in(0, config_map(201, &all));
    let trace = wait(&mut world, 5_000);
    assert!(trace.contains("upgrade a/a-job") && !trace.contains("upgrade a/a-web"), "{trace}");
    assert_eq!(world.queue("namespace_queue_a/a-web").len(), 2);
    world.take("release a-web", 50);
    let trace = wait(&mut world, HANGS);
    assert_eq!(world.states("a/x"), ["a-web Running"]);
    assert_eq!(trace.matches("upgrade a/a-web").count(), 1, "{trace}");
    let is_of_namespace = |queue: &view::QueueView| queue.name.is_of_namespace();
    assert!(!world.view().queues.iter().any(is_of_namespace));
}

#[test]
fn a_run_that_gave_way_ends_when_its_module_goes_or_its_name_is_that_of_another_one() {
    let mut world = giving_way();
    world.deletes("a/x");
    let trace = wait(&mut world, 3_000);
    assert_eq!(releases(&world), ["a/a-job", "base"], "{trace}");
    assert!(!world.repositories.objects.contains_key("a/x"));
    let mut world = giving_way();
    world.take("release a-web", 50);
    world.bundle(9, "a-web", &[]);
    world.offers("cluster", Ok(vec![with_id(addon("a-web", "2.0.0", 9), "id-twin")]));
    world.applies("x", &["cluster"]);
    let trace = wait(&mut world, 5_000);
    assert_eq!(
        (world.states("x"), releases(&world)),
        (vec!["a-web Running".to_owned()], vec!["a-web", "a/a-job", "base"]),
        "{trace}"
    );
    assert!(world.repositories.faults.is_empty(), "{:?}", world.repositories.faults);
}

#[test]
fn who_fails_comes_back_to_the_others_and_gives_way_again_at_once() {
    let mut world = giving_way();
    world.fails_releases("a-web", 3);
    // It is tried the third time, and takes as long as before.
    wait(&mut world, 2 * HANGS);
    let all = [("aWebEnabled", "true"), ("aJobEnabled", "true"), ("aJob", "new: 1")];
    world.send_in(0, config_map(201, &all));
    let trace = wait(&mut world, 2_000);
    assert!(trace.contains("upgrade a/a-job"), "{trace}");
    assert_eq!(world.states("a/x"), ["a-web Error"]);
    assert_eq!(world.queue("namespace_queue_a/a-web").len(), 1);
}

#[test]
fn no_more_than_eight_modules_of_a_namespace_give_way_at_a_time() {
    let names = ["ma", "mb", "mc", "md", "me", "mf", "mg", "mh", "mi", "mj"];
    let keys = names.map(|name| format!("a{}{}", name[..1].to_uppercase(), &name[1..]));
    let mut world = offering(&keys.each_ref().map(String::as_str));
    let addons = names.iter().zip(20..).map(|(name, number)| {
        world.bundle(number, name, &[]);
        world.take(&format!("release a-{name}"), HANGS);
        addon(name, "1.0.0", number)
    });
    let offer = Ok(addons.collect());
    world.offers("many", offer);
    world.applies("a/x", &["many"]);
    wait(&mut world, HANGS - 60_000);
    let busy = |world: &World| {
        let lengths = world.view().queues.into_iter().filter(|queue| queue.name.is_of_namespace());
        lengths.map(|queue| (queue.name.to_string(), queue.tasks.len())).collect::<Vec<_>>()
    };
    let queues = busy(&world);
    assert_eq!((queues.len(), &queues[0]), (9, &("namespace_queue_a".to_owned(), 2)), "{queues:?}");
    wait(&mut world, HANGS);
    assert_eq!(busy(&world), [("namespace_queue_a".to_owned(), 1)], "there was room for the ninth");
    wait(&mut world, 2 * HANGS);
    assert!(busy(&world).is_empty());
    assert!(world.states("a/x").iter().all(|state| state.ends_with(" Running")), "{:?}", world.states("a/x"));
}

#[test]
fn a_run_of_a_namespace_ends_when_its_module_is_withdrawn_or_switched_off() {
    let mut world = hanging();
    world.deletes("a/x");
    let trace = world.run_for(3_000);
    assert!(world.repositories.objects.is_empty() && releases(&world) == ["base"], "{trace}");
    let mut world = hanging();
    world.send_in(0, config_map(201, &[("aWebEnabled", "false")]));
    let trace = world.run_for(3_000);
    assert_eq!(releases(&world), ["base"], "{trace}");
    assert_eq!(world.states("a/x"), ["a-web Registered"]);
    assert!(!trace.contains("failed: ended by SIGTERM;"), "{trace}");
}

#[test]
fn a_run_of_a_namespace_begins_anew_with_another_bundle_or_other_values() {
    let mut world = hanging();
    world.take("release a-web", 50);
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
    world.edits("a/x", |spec| spec["reprocessRequest"] = json!(1));
    let trace = world.run_for(3_000);
    assert_eq!(world.states("a/x"), ["a-web Running"], "{trace}");
    assert_eq!(world.released("a/a-web"), Some(crate::repositories::digest(2)));
    let mut world = hanging();
    world.take("release a-web", 50);
    world.send_in(0, config_map(201, &[("aWebEnabled", "true"), ("aWeb", "image: there")]));
    let trace = world.run_for(3_000);
    assert_eq!(world.states("a/x"), ["a-web Running"], "{trace}");
}

#[test]
fn a_run_of_a_namespace_that_its_end_came_too_late_for_runs_again_with_the_bundle_of_now() {
    let mut world = hanging();
    world.cancels_late = true;
    world.take("release a-web", 50);
    world.bundle(2, "web", &[]);
    world.offers(URL, Ok(vec![addon("web", "1.1.0", 2)]));
    world.edits("a/x", |spec| spec["reprocessRequest"] = json!(1));
    world.run_for(HANGS + 10_000);
    assert_eq!(world.states("a/x"), ["a-web Running"]);
    assert_eq!(world.released("a/a-web"), Some(crate::repositories::digest(2)));
}

#[test]
fn what_a_release_waits_for_is_named() {
    let (mut world, run) = hanging_run();
    let what = "Job a/migrate (pre-install hook of its chart) to end";
    world.send_in(0, Event::ReleaseWaits { run, what: Some(what.to_owned()) });
    world.send_in(60_000, Event::TimerFired);
    world.run_for(60_000);
    let told = |world: &World| {
        let module = world.told(|view, format| why::module(view, "a-web", format).unwrap().text());
        let queue = world.told(|view, format| why::queue(view, "namespace_queue_a", format).unwrap().text());
        let status = world.told(view::status::text);
        [module, queue, status]
    };
    for text in told(&world) {
        assert!(text.contains(what) && text.contains("--helm-timeout"), "{text}");
    }
    world.send_in(0, Event::ReleaseWaits { run, what: None });
    world.run_for(100);
    assert!(told(&world).iter().all(|text| !text.contains(what)));
}

#[test]
fn what_a_removal_waits_for_is_named_by_its_configuration_that_is_being_deleted() {
    let mut world = offering(&["aWeb", "aJob", "other"]);
    world.applies("a/x", &[URL]);
    world.run_for(3_000);
    world.take("uninstall a-web", HANGS);
    world.deletes("a/x");
    let trace = world.run_for(3_000);
    let run = trace.rsplit("uninstall a/a-web #").next().unwrap();
    let number: String = run.chars().take_while(char::is_ascii_digit).collect();
    let run = engine::RunId::new(number.parse().unwrap());
    let what = "Job a/migrate (pre-delete hook of its chart) to end";
    let message = |world: &World| world.status("a/x")["conditions"][0]["message"].to_string();
    assert!(!message(&world).contains(what));
    world.send_in(0, Event::ReleaseWaits { run, what: Some(what.to_owned()) });
    world.run_for(1_000);
    assert!(message(&world).contains(&format!("a-web waits for {what}")), "{}", message(&world));
    let told = |world: &World| {
        let module = world.told(|view, format| why::module(view, "a-web", format).unwrap().text());
        [module, world.told(|view, format| why::source(view, "a/x", format).unwrap().text())]
    };
    for text in told(&world) {
        let is_useful = text.contains(what) && text.contains("look at that object and its Pods");
        assert!(is_useful && text.contains("skip-hooks=true") && !text.contains("offer it again"), "{text}");
    }
    // While nothing changes, nothing is written, however often it is told.
    let version = world.version("a/x");
    world.send_in(0, Event::ReleaseWaits { run, what: Some(what.to_owned()) });
    world.run_for(20_000);
    assert_eq!(world.version("a/x"), version);
    world.send_in(0, Event::ReleaseWaits { run, what: None });
    world.run_for(1_000);
    assert!(!message(&world).contains(what), "{}", message(&world));
    for text in told(&world) {
        assert!(!text.contains(what) && !text.contains("offer it again"), "{text}");
    }
}

/// A world with a module whose release is in the namespace that a test says, by the file `module.yaml`.
fn placed(namespace: Option<&str>) -> crate::build::Files {
    let namespace = namespace.map(Into::into);
    files().module(10, "web").with(|module| {
        module.namespace = namespace;
        module.content =
            module.namespace.as_ref().map_or(1, |name: &std::sync::Arc<str>| name.len() as u64 + 1);
    })
}

#[test]
fn a_release_that_moves_is_installed_where_it_belongs_and_then_removed_where_it_was() {
    let mut world = World::new(&placed(None));
    world.run_for(3_000);
    assert_eq!(releases(&world), ["web"]);
    for (namespace, expected, steps) in [
        (
            Some("one"),
            "one/web",
            ["forget release web", "upgrade one/web", "watch release one/web", "uninstall web"],
        ),
        (
            Some("three"),
            "three/web",
            ["forget release one/web", "upgrade three/web", "watch release three/web", "uninstall one/web"],
        ),
        (
            None,
            "web",
            ["forget release three/web", "upgrade web", "watch release web", "uninstall three/web"],
        ),
    ] {
        world.send_in(0, reread(&placed(namespace)));
        let trace = world.run_for(3_000);
        assert_eq!(releases(&world), [expected], "{trace}");
        let places: Vec<usize> = steps.iter().map(|step| trace.find(step).expect(step)).collect();
        assert!(places.is_sorted(), "{trace}");
    }
}

#[test]
fn a_release_stays_where_it_was_until_it_is_where_it_belongs() {
    let mut world = World::new(&placed(None));
    world.run_for(3_000);
    let failures = (0..3).map(|_| Err("no such namespace"));
    let mut world = failures.fold(world, |world, failure| world.release("web", failure));
    world.send_in(0, reread(&placed(Some("one"))));
    world.run_for(3_000);
    assert_eq!(releases(&world), ["web"]);
    world.run_for(20_000);
    assert_eq!(releases(&world), ["one/web"]);
    // Switched off in the middle of a move: it is removed from both places.
    let mut world = world.release("web", Err("no such namespace"));
    world.send_in(0, reread(&placed(Some("three"))));
    world.run_for(100);
    assert_eq!(releases(&world), ["one/web"]);
    world.send_in(0, config_map(201, &[("webEnabled", "false")]));
    world.run_for(10_000);
    assert!(releases(&world).is_empty(), "{}", world.trace);
}

#[test]
fn a_release_that_moved_while_the_operator_was_away_leaves_the_operators_namespace() {
    let mut world = World::new(&placed(Some("one"))).deployed("web");
    let trace = world.run_for(5_000);
    assert_eq!(releases(&world), ["one/web"], "{trace}");
    assert!(trace.find("upgrade one/web").unwrap() < trace.find("uninstall web").unwrap(), "{trace}");
    // What somebody else's namespace holds says nothing about modules that belong elsewhere.
    let mut world = World::new(&placed(Some("one")).module(20, "db")).deployed("db").deployed("one/db");
    world.run_for(5_000);
    assert_eq!(releases(&world), ["db", "one/db", "one/web"]);
    assert_eq!(
        world.noticed(|notice| matches!(
            notice,
            Notice::ReleaseRan { action: Some(ReleaseAction::Uninstalled), .. }
        )),
        0
    );
}

/// Random edits, deletions, restarts, faults, and rights that come and go, in the cluster and in two namespaces.
#[test]
fn whatever_happens_every_release_is_where_its_configuration_says() {
    live(seeds(200), life);
}

/// Asserts that modules of namespaces are in queues of their own only.
fn assert_alone(world: &World, seed: u64) {
    let is_of_namespace =
        |task: &view::TaskView| task.module.as_ref().is_some_and(|name| name.as_str().contains('-'));
    let queues = world.view().queues;
    let others = queues.iter().filter(|queue| !queue.name.as_str().starts_with("namespace_queue_"));
    assert!(!others.flat_map(|queue| &queue.tasks).any(is_of_namespace), "seed {seed}: {queues:?}");
}

fn life(seed: u64) {
    let mut random = Random(seed);
    let addons = ["web", "db"];
    let names = ["a", "b", "x/a", "x/b", "y/a"];
    let mut world = sourced(&files().module(10, "base"));
    for (n, name) in (1..).zip(addons) {
        world.bundle(n, name, &[]);
        world.offers(name, Ok(vec![addon(name, "1.0.0", n)]));
    }
    let flags = ["webEnabled", "dbEnabled", "xWebEnabled", "xDbEnabled", "yWebEnabled", "yDbEnabled"];
    let config = || config_map(200, &flags.map(|flag| (flag, "true")));
    world.send_in(0, config());
    world.run_for(1_000);
    for _ in 0..random.below(25) {
        assert_alone(&world, seed);
        let name = names[usize::try_from(random.below(5)).unwrap()];
        let url = addons[usize::try_from(random.below(2)).unwrap()];
        let object = world.repositories.objects.get(name);
        let is_there = object.is_some_and(|its| its["metadata"]["deletionTimestamp"].is_null());
        match random.below(9) {
            8 => {
                let module = ["x-web", "x-db", "y-web"][usize::try_from(random.below(3)).unwrap()];
                world.take(
                    &format!("release {module}"),
                    [50, 400_000][usize::try_from(random.below(2)).unwrap()],
                );
            }
            0 if is_there => world.deletes(name),
            1 => {
                world.restarts();
                world.send_in(1, config());
            }
            2 => world.patching.push_back(Err(Failure::new(FailureKind::Cluster, "500"))),
            3 => drop(world.powerless.insert("x".to_owned())),
            4 => world.powerless.clear(),
            _ if is_there || !world.repositories.objects.contains_key(name) => world.applies(name, &[url]),
            _ => {}
        }
        world.run_for([0, 15, 60, 2_000][usize::try_from(random.below(4)).unwrap()]);
    }
    world.patching.clear();
    world.powerless.clear();
    for module in ["x-web", "x-db", "y-web"] {
        world.take(&format!("release {module}"), 50);
    }
    // Long enough for every one that failed to be looked at again. What was forbidden at a start is looked for at the next.
    world.run_until(1_000_000);
    world.restarts();
    world.send_in(1, config());
    world.run_until(2_000_000);
    assert!(world.repositories.faults.is_empty(), "seed {seed}: {:?}", world.repositories.faults);
    assert!(world.queue("main").is_empty(), "seed {seed}");
    let (objects, registry) = (&world.repositories.objects, &world.repositories.registry);
    let place = |addon: &engine::RegisteredAddon| match &*addon.source.namespace {
        "" => addon.bundle.name.to_string(),
        namespace => format!("{namespace}/{}", addon.bundle.name),
    };
    let active = registry.addons.iter().filter(|addon| addon.is_active);
    let mut expected: Vec<String> = active.map(place).chain(["base".to_owned()]).collect();
    expected.sort();
    let marked = &world.repositories.marked;
    let deployed: Vec<_> = world.deployed.keys().cloned().collect();
    assert_eq!(deployed, expected, "seed {seed}: {objects:?} {marked:?}");
    for (scope, url) in ["", "x/", "y/"].into_iter().flat_map(|scope| addons.map(|url| (scope, url))) {
        let is_in = |name: &str| name.rfind('/').map_or("", |slash| &name[..=slash]) == scope;
        let in_scope = objects.iter().filter(|(name, _)| is_in(name)).map(|(_, object)| object);
        let owners: Vec<_> =
            in_scope.filter(|object| object["spec"]["repositories"][0]["url"] == url).collect();
        let ready = owners.iter().filter(|object| object["status"]["phase"] == "Ready").count();
        assert_eq!(ready, usize::from(!owners.is_empty()), "seed {seed}: {scope}{url} {objects:?}");
    }
}
