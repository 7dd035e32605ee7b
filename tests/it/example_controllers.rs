//! The examples of controllers: what their tests say, and that hosted clusters are nothing but an example.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::files::{copied, copied_of, copy, root, tracked_below, write};

const EXAMPLE: &str = "examples/300-hypershift";
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const SMALL: &str = "examples/306-small-controllers";

/// Lives the life of hosted clusters whose name has `name` in it, on a cluster of its own.
fn live(name: &str) {
    let place = copied(EXAMPLE);
    pass(&place, &[EXAMPLE, "--only", name], "1 test, 0 failed");
}

/// Returns the scripts below a directory.
fn scripts(dir: &Path) -> Vec<&'static Path> {
    tracked_below(dir).filter(|path| path.extension().is_some_and(|end| end == "sh")).collect()
}

/// Runs tests of an example in a copy and checks how they end.
fn pass(place: &TempDir, arguments: &[&str], end: &str) {
    ends(Command::new(OPERATOR).arg("test").args(arguments).current_dir(place.path()), end);
}

fn ends(command: &mut Command, end: &str) {
    command.env_remove("BASH_ENV");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(end), "{text}");
}

#[test]
fn small_controllers_do_what_those_of_metacontroller_do() {
    pass(&copied(SMALL), &[SMALL], "5 tests, 0 failed");
    let scripts = scripts(&root().join(SMALL)).into_iter();
    let lines: Vec<usize> = scripts.map(|hook| fs::read_to_string(hook).unwrap().lines().count()).collect();
    assert!(lines.len() == 4 && lines.iter().all(|lines| *lines <= 60), "{lines:?}");
}

#[test]
fn the_functions_of_the_framework_do_the_same_with_jq_itself() {
    let dir = tempfile::tempdir().unwrap();
    let copied = dir.path().join("small");
    copy(&root().join(SMALL), &copied);
    let is_hook = |path: &&Path| path.extension().is_some_and(|end| end == "sh");
    for hook in tracked_below(&root().join(SMALL)).filter(is_hook) {
        let hook = copied.join(hook.strip_prefix(root().join(SMALL)).unwrap());
        let text = fs::read_to_string(&hook).unwrap();
        let without = "#!/usr/bin/env bash\nunset ADDON_OPERATOR_BINARY\n";
        fs::write(hook, text.replacen("#!/usr/bin/env bash\n", without, 1)).unwrap();
    }
    ends(Command::new(OPERATOR).arg("test").arg(copied).current_dir(dir.path()), "5 tests, 0 failed");
}

#[test]
fn slip_18b_a_hook_and_a_test_that_somebody_drops_into_an_example_are_not_run() {
    let repository = copied(SMALL);
    let git = |arguments: &[&str]| {
        let done = Command::new("git").arg("-C").arg(repository.path()).args(arguments).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q"]) || !git(&["add", "."]) {
        eprintln!("skipped: this machine has no git");
        return;
    }
    let hooks = repository.path().join(SMALL).join("modules/010-cat-set/hooks");
    fs::copy(hooks.join("cat-set.test.yaml"), hooks.join("mine.test.yaml")).unwrap();
    write(&hooks.join("mine.sh"), "#!/bin/bash\nexit 1\n");
    pass(&copied_of(repository.path(), SMALL), &[SMALL], "5 tests, 0 failed");
}

#[test]
fn c01_the_objects_of_a_cluster_come_in_the_order_of_its_flowchart() {
    live("c01");
}

#[test]
fn c02_without_initial_nodes_there_is_no_pool() {
    live("c02");
}

#[test]
fn c03_the_infrastructure_waits_for_its_control_plane() {
    live("c03");
}

#[test]
fn c04_a_control_plane_says_which_component_it_waits_for() {
    live("c04");
}

#[test]
fn c05_a_cluster_becomes_ready() {
    live("c05");
}

#[test]
fn c06_owners_are_those_of_the_resource_dependency_diagram() {
    live("c06");
}

#[test]
fn c07_another_release_rolls_the_control_plane_out() {
    live("c07");
}

#[test]
fn c08_pools_grow_and_change_their_machines() {
    live("c08");
}

#[test]
fn c09_a_pool_goes_when_its_last_machine_is_gone() {
    live("c09");
}

#[test]
fn c10_a_cluster_goes_in_order_and_a_machine_that_is_held_holds_up_all() {
    live("c10");
}

#[test]
fn c11_what_people_delete_or_edit_is_as_it_was() {
    live("c11");
}

#[test]
fn c13_a_cluster_that_is_stuck_holds_up_no_other_one() {
    live("c13");
}

#[test]
fn c14_nothing_is_written_for_a_cluster_that_is_paused() {
    live("c14");
}

#[test]
fn c16_without_the_simulation_there_are_no_machines() {
    live("c16");
}

#[test]
fn what_is_wrong_with_a_hosted_cluster_is_said_on_it() {
    live("what is wrong");
}

#[test]
fn of_two_clusters_with_one_infra_id_the_later_waits() {
    live("one infraID");
}

#[test]
fn a_namespace_that_somebody_deletes_comes_back() {
    live("a namespace that somebody deletes");
}

#[test]
fn a_cluster_may_be_deleted_in_the_middle_of_its_creation() {
    live("in the middle of its creation");
}

#[test]
fn fewer_than_no_machines_are_refused_and_a_pool_waits_for_its_cluster() {
    live("fewer than no machines");
}

#[test]
fn a_control_plane_that_is_edited_by_hand_is_as_its_cluster_says_again() {
    live("edited by hand");
}

#[test]
fn a_cluster_is_paused_until_a_time() {
    live("paused until a time");
}

#[test]
fn c18_each_controller_is_short_and_has_a_reconcile_binding() {
    let mut controllers = 0;
    for path in scripts(&root().join(EXAMPLE)) {
        let text = fs::read_to_string(path).unwrap();
        let is_controller = text.contains("\nreconcile:\n");
        let is_of_all = ["fleet.sh", "infra-ids.sh"].iter().any(|name| path.ends_with(name));
        assert!(is_controller || is_of_all, "{}", path.display());
        let lines = text.lines().count();
        assert!(lines <= 80, "{} has {lines} lines", path.display());
        controllers += 1;
    }
    assert_eq!(controllers, 10);
}

#[test]
fn the_product_knows_nothing_of_the_example() {
    let names = ["hypershift", "hostedcluster", "hostedcontrolplane", "externalinfracluster", "nodepool"];
    let parts = ["src", "crates", "modules", "global-hooks", "Dockerfile"];
    let dirs = parts.map(|part| root().join(part));
    let mut files = 0;
    for path in dirs.iter().flat_map(|dir| tracked_below(dir)) {
        files += 1;
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).to_lowercase();
        let found = names.iter().find(|name| text.contains(**name));
        assert_eq!(found, None, "{}", path.display());
    }
    assert!(files > 300, "{files}");
}
