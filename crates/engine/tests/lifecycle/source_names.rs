//! Names of modules belong to the cluster first: a configuration of a namespace gives way, and removes what it released itself.

use engine::Notice;

use crate::build::{config as config_map, files};
use crate::random::{Random, live, seeds};
use crate::repositories::{addon, sourced, with_id};
use crate::world::World;

const FLAGS: [(&str, &str); 1] = [("aWebEnabled", "true")];
const CONFLICT: &str = "ConflictWithAlreadyRegisteredAddon: its name is registered by ClusterAddonsConfiguration x: a-web:2.0.0 in cluster";

/// A world in which namespace `a` has the module `a-web`, and `cluster` offers one of this name.
fn tenant() -> World {
    let mut world = offering();
    world.applies("a/x", &["tenant"]);
    world.run_for(3_000);
    assert_eq!(
        (world.states("a/x"), releases(&world)),
        (vec!["a-web Running".to_owned()], vec!["a/a-web", "base"])
    );
    world
}

fn offering() -> World {
    let mut world = sourced(&files().module(10, "base"));
    world.offers("tenant", Ok(vec![addon("web", "1.0.0", 1)]));
    world.bundle(1, "web", &[]);
    world.offers("cluster", Ok(vec![with_id(addon("a-web", "2.0.0", 2), "id-2")]));
    world.bundle(2, "a-web", &[]);
    world.send_in(0, config_map(200, &FLAGS));
    world.run_for(3_000);
    world
}

fn releases(world: &World) -> Vec<&str> {
    world.deployed.keys().map(String::as_str).collect()
}

#[test]
fn a_configuration_of_the_cluster_takes_a_name_from_a_namespace() {
    let mut world = tenant();
    world.applies("x", &["cluster"]);
    let trace = world.run_for(5_000);
    assert_eq!((world.phase("x").as_str(), world.states("x")), ("Ready", vec!["a-web Running".to_owned()]));
    assert_eq!((world.phase("a/x").as_str(), world.problems("a/x")), ("Failed", vec![CONFLICT.to_owned()]));
    assert_eq!(releases(&world), ["a-web", "base"], "{trace}");
    assert!(trace.contains("forget release a/a-web") && trace.contains("uninstall a/a-web"), "{trace}");
    assert!(world.repositories.registry.addons.iter().all(|addon| addon.source.namespace.is_empty()));
    // It is given back when the configuration goes.
    world.deletes("x");
    world.run_for(5_000);
    assert_eq!(
        (world.states("a/x"), releases(&world)),
        (vec!["a-web Running".to_owned()], vec!["a/a-web", "base"])
    );
    assert!(world.repositories.faults.is_empty(), "{:?}", world.repositories.faults);
}

#[test]
fn a_namespace_without_rights_keeps_no_name_and_its_release_goes_when_it_may() {
    let mut world = tenant();
    world.powerless.insert("a".to_owned());
    world.applies("x", &["cluster"]);
    world.run_for(20_000);
    assert_eq!(
        (world.states("x"), world.problems("a/x")),
        (vec!["a-web Running".to_owned()], vec![CONFLICT.to_owned()])
    );
    assert_eq!(releases(&world), ["a-web", "a/a-web", "base"]);
    // A restart forgets nothing of it, and neither does the end of the configuration.
    world.restarts();
    world.send_in(0, config_map(200, &FLAGS));
    world.run_for(20_000);
    world.deletes("a/x");
    world.run_for(20_000);
    assert_eq!(releases(&world), ["a-web", "a/a-web", "base"]);
    let message = world.status("a/x")["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("removal of modules a-web") && message.contains("forbidden"), "{message}");
    world.powerless.clear();
    world.run_for(60_000);
    assert_eq!(releases(&world), ["a-web", "base"]);
    assert!(!world.repositories.objects.contains_key("a/x"));
    assert_eq!(world.states("x"), ["a-web Running"]);
}

#[test]
fn a_built_in_module_takes_a_name_from_a_namespace_also_over_a_restart() {
    let built_in = files().module(10, "base").module(20, "a-web");
    for is_restarted in [false, true] {
        let mut world = tenant();
        if is_restarted {
            world.repositories.files = built_in.clone();
            world.restarts();
            world.send_in(0, config_map(200, &FLAGS));
        } else {
            world.rereads(&built_in);
        }
        let trace = world.run_for(10_000);
        let problems = world.problems("a/x");
        assert!(problems[0].contains("the built-in module /modules/020-a-web"), "{problems:?} {trace}");
        assert_eq!(
            (world.phase("a/x").as_str(), releases(&world)),
            ("Failed", vec!["a-web", "base"]),
            "{trace}"
        );
        assert!(world.states("a/x").is_empty(), "nothing of the other module is shown");
        assert!(world.repositories.registry.addons.is_empty());
    }
}

#[test]
fn a_run_of_the_old_module_ends_before_its_release_is_removed() {
    let mut world = tenant();
    world.send_in(0, config_map(201, &[("aWebEnabled", "true"), ("aWeb", "new: 1")]));
    world.applies("x", &["cluster"]);
    world.run_for(10_000);
    assert_eq!(
        (world.states("x"), releases(&world)),
        (vec!["a-web Running".to_owned()], vec!["a-web", "base"])
    );
    let failed = |notice: &Notice| matches!(notice, Notice::TaskFinished { failure: Some(_), .. });
    assert_eq!(world.noticed(failed), 0);
}

#[test]
fn who_lost_a_name_fails_also_if_the_operator_ends_before_that_is_told() {
    for delay in (0..300).step_by(5) {
        let mut world = tenant();
        world.applies("x", &["cluster"]);
        world.run_for(delay);
        world.restarts();
        world.send_in(0, config_map(200, &FLAGS));
        let trace = world.run_for(20_000);
        let phases = (world.phase("x"), world.phase("a/x"));
        assert_eq!(phases, ("Ready".to_owned(), "Failed".to_owned()), "{delay}: {trace}");
        assert_eq!(world.problems("a/x"), [CONFLICT], "{delay}");
        assert_eq!(releases(&world), ["a-web", "base"], "{delay}: {trace}");
    }
}

#[test]
fn a_release_that_somebody_has_again_is_not_forgotten_before_its_module_is_there() {
    for delay in (0..300).step_by(5) {
        let mut world = tenant();
        world.powerless.insert("a".to_owned());
        world.applies("x", &["cluster"]);
        world.run_for(20_000);
        assert_eq!(releases(&world), ["a-web", "a/a-web", "base"]);
        // It gets its name back, and its object goes without us, with what is to be done about it.
        world.deletes("x");
        world.run_for(delay);
        world.unfinalizes("a/x");
        world.deletes("a/x");
        world.run_for(2_000);
        world.powerless.clear();
        let trace = world.run_for(60_000);
        let is_known = !world.repositories.registry.addons.is_empty();
        assert_eq!(releases(&world).contains(&"a/a-web"), is_known, "{delay}: {trace}");
        world.send_in(0, config_map(201, &[]));
        let trace = world.run_for(60_000);
        assert_eq!(releases(&world), ["base"], "{delay}: {trace}");
        assert!(world.repositories.registry.addons.is_empty(), "{delay}");
    }
}

#[test]
fn what_is_registered_no_more_when_its_module_comes_leaves_no_release() {
    for delay in 0..60 {
        let mut world = offering();
        world.applies("a/x", &["tenant"]);
        world.run_for(delay);
        world.unfinalizes("a/x");
        world.deletes("a/x");
        world.run_for(5_000);
        let is_known = !world.repositories.registry.addons.is_empty();
        assert_eq!(releases(&world).contains(&"a/a-web"), is_known, "{delay}");
        // One that comes again runs.
        world.applies("a/x", &["tenant"]);
        let trace = world.run_for(5_000);
        assert_eq!(world.states("a/x"), ["a-web Running"], "{delay}: {trace}");
        assert_eq!(releases(&world), ["a/a-web", "base"], "{delay}");
        world.deletes("a/x");
        world.run_for(5_000);
        assert_eq!(releases(&world), ["base"], "{delay}");
    }
}

/// The seeds of lives that ended as they should not.
const FAILED_ONCE: [u64; 4] = [100_241, 101_621, 104_894, 106_005];

/// Random edits, deletions, restarts, faults, and rights that come and go, with one name that two want.
#[test]
fn whatever_happens_a_name_is_that_of_the_cluster_while_it_wants_it() {
    live(FAILED_ONCE.into_iter().chain(seeds(200)), life);
}

fn life(seed: u64) {
    let mut random = Random(seed);
    let mut world = offering();
    for _ in 0..random.below(25) {
        let (name, url) = [("x", "cluster"), ("a/x", "tenant")][usize::try_from(random.below(2)).unwrap()];
        let object = world.repositories.objects.get(name);
        let is_there = object.is_some_and(|its| its["metadata"]["deletionTimestamp"].is_null());
        match random.below(9) {
            0 | 1 if is_there => world.deletes(name),
            2 => {
                world.restarts();
                world.send_in(1, config_map(200, &FLAGS));
            }
            3 => drop(world.powerless.insert("a".to_owned())),
            4 => world.powerless.clear(),
            5 if is_there => world.unfinalizes(name),
            _ if is_there || !world.repositories.objects.contains_key(name) => world.applies(name, &[url]),
            _ => {}
        }
        world.run_for([0, 15, 60, 2_000][usize::try_from(random.below(4)).unwrap()]);
    }
    world.powerless.clear();
    world.run_until(2_000_000);
    world.restarts();
    world.send_in(1, config_map(200, &FLAGS));
    world.run_until(4_000_000);
    let is_there = |name: &str| world.repositories.objects.contains_key(name);
    let ready = |name: &str| world.phase(name) == "Ready";
    assert!(world.repositories.faults.is_empty(), "seed {seed}: {:?}", world.repositories.faults);
    assert!(world.queue("main").is_empty(), "seed {seed}");
    assert_eq!(ready("x"), is_there("x"), "seed {seed}: {:?}", world.repositories.objects);
    let vacant = !world.repositories.registry.addons.iter().any(|addon| addon.source.namespace.is_empty());
    assert_eq!(ready("a/x"), is_there("a/x") && vacant, "seed {seed}: {:?}", world.repositories.objects);
    let expected: &[&str] = if !vacant {
        &["a-web", "base"]
    } else if world.repositories.registry.addons.is_empty() {
        &["base"]
    } else {
        &["a/a-web", "base"]
    };
    assert_eq!(releases(&world), expected, "seed {seed}: {:?}", world.repositories.registry);
}
