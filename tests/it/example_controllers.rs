//! The examples of controllers: what their tests say, and that hosted clusters are nothing but an example.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::files::{LONG_EXAMPLE, copied, copied_of, copy, root, tracked_below, write};

const EXAMPLE: &str = LONG_EXAMPLE;
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const SMALL: &str = "examples/306-small-controllers";

/// Lives the life of hosted clusters whose name has `name` in it, on a cluster of its own.
fn live(name: &str) {
    let place = copied(EXAMPLE);
    pass(&place, &[EXAMPLE, "--only", name], "1 test, 0 failed");
}

/// Makes a test of each life: its name, and what the name of the life in the file of the example has in it.
macro_rules! lives {
    ($($test:ident = $name:literal,)+) => {
        const LIVES: &[&str] = &[$($name),+];

        $(
            #[test]
            fn $test() {
                live($name);
            }
        )+
    };
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
fn the_table_beside_metacontroller_has_the_lines_that_there_are() {
    let document = fs::read_to_string(root().join("docs/hooks.md")).unwrap();
    let mut rows = 0;
    for row in document.lines().filter(|line| line.starts_with("| [") && line.contains(SMALL)) {
        let (_, path) = row.split_once("](../").unwrap();
        let (path, _) = path.split_once(')').unwrap();
        let lines = fs::read_to_string(root().join(path)).unwrap().lines().count();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[3], lines.to_string(), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 4);
}

#[test]
fn the_functions_of_the_framework_do_the_same_with_jq_itself() {
    for (example, arguments, end) in
        [(SMALL, &[][..], "5 tests, 0 failed"), (EXAMPLE, &["--only", "c05"][..], "1 test, 0 failed")]
    {
        let dir = tempfile::tempdir().unwrap();
        let copied = dir.path().join("copy");
        copy(&root().join(example), &copied);
        for hook in scripts(&root().join(example)) {
            let hook = copied.join(hook.strip_prefix(root().join(example)).unwrap());
            let text = fs::read_to_string(&hook).unwrap();
            let without = "#!/usr/bin/env bash\nunset ADDON_OPERATOR_BINARY\n";
            fs::write(hook, text.replacen("#!/usr/bin/env bash\n", without, 1)).unwrap();
        }
        ends(Command::new(OPERATOR).arg("test").arg(copied).args(arguments).current_dir(dir.path()), end);
    }
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

lives! {
    c01_the_objects_of_a_cluster_come_in_the_order_of_its_flowchart = "c01",
    c02_without_initial_nodes_there_is_no_pool = "c02",
    c03_the_infrastructure_waits_for_its_control_plane = "c03",
    c04_a_control_plane_says_which_component_it_waits_for = "c04",
    c05_a_cluster_becomes_ready = "c05",
    c06_owners_are_those_of_the_resource_dependency_diagram = "c06",
    c07_another_release_rolls_the_control_plane_out = "c07 another release",
    c07_what_follows_its_cluster_is_kept_in_step_and_what_is_made_once_is_left_alone = "c07 what follows",
    c07_a_control_plane_of_another_release_than_its_operator_is_left_alone = "c07 a control plane of another release",
    c08_pools_grow_and_change_their_machines = "c08",
    c09_a_pool_goes_when_its_last_machine_is_gone = "c09",
    c10_a_cluster_goes_in_order_and_a_machine_that_is_held_holds_up_all = "c10",
    c11_what_people_delete_or_edit_is_as_it_was = "c11",
    c13_a_cluster_that_is_stuck_holds_up_no_other_one = "c13",
    c14_nothing_is_written_for_a_cluster_that_is_paused = "c14",
    c16_without_the_simulation_there_are_no_machines = "c16 without the simulation",
    c16_a_module_is_off_where_what_it_needs_is_off = "c16 where the module",
    what_is_wrong_with_a_hosted_cluster_is_said_on_it = "what is wrong",
    of_two_clusters_with_one_infra_id_the_later_waits = "one infraID",
    of_two_clusters_with_one_namespace_the_later_waits = "one namespace of a control plane",
    a_cluster_whose_namespace_is_somebody_elses_waits_until_that_is_gone = "whose namespace is somebody",
    a_namespace_that_somebody_deletes_comes_back = "a namespace that somebody deletes",
    a_cluster_may_be_deleted_in_the_middle_of_its_creation = "in the middle of its creation",
    an_infra_id_that_is_no_name_is_refused = "an infraID that is no name",
    fewer_than_no_machines_are_refused_and_a_pool_waits_for_its_cluster = "fewer than no machines",
    a_control_plane_that_is_edited_by_hand_is_as_its_cluster_says_again = "edited by hand",
    a_cluster_is_paused_until_a_time = "paused until a time",
    a_time_of_a_pause_that_nobody_can_read_is_told = "a time of a pause",
    a_pool_of_another_namespace_is_none_of_a_cluster = "a pool in another namespace",
}

#[test]
fn each_life_in_the_file_of_the_example_has_a_test_of_its_own() {
    let text = fs::read_to_string(root().join(EXAMPLE).join("hypershift.test.yaml")).unwrap();
    let lives: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("- name: ")).collect();
    assert!(lives.len() > 20, "{lives:?}");
    let tests = |life: &&&str| LIVES.iter().filter(|name| life.contains(**name)).count();
    let others: Vec<&&str> = lives.iter().filter(|life| tests(life) != 1).collect();
    assert_eq!(others, Vec::<&&str>::new(), "no test, or several");
}

/// Returns the lines of bash and jq of a hook, with those of the libraries that it includes: not its configuration, which is YAML, and
/// not comments.
fn program(hook: &Path) -> Vec<String> {
    let text = fs::read_to_string(hook).unwrap();
    let (before, rest) = text.split_once("<<'CONFIG'\n").unwrap();
    let (_, behind) = rest.split_once("\nCONFIG\n").unwrap();
    let mut all = format!("{before}\n{behind}");
    let module = hook.parent().unwrap().parent().unwrap();
    let is_library = |word: &&str| Path::new(word).extension().is_some_and(|end| end == "jq");
    for word in behind.split(['"', '/']).filter(is_library) {
        all += &fs::read_to_string(module.join("lib").join(word)).unwrap();
    }
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    all.lines().filter(is_code).map(str::to_owned).collect()
}

#[test]
fn c18_each_controller_is_short_and_has_a_reconcile_binding() {
    let (mut controllers, mut included) = (0, 0);
    for path in scripts(&root().join(EXAMPLE)) {
        let text = fs::read_to_string(path).unwrap();
        let is_controller = text.contains("\nreconcile:\n");
        let is_of_all = ["fleet.sh", "infra-ids.sh"].iter().any(|name| path.ends_with(name));
        assert!(is_controller || is_of_all, "{}", path.display());
        // The configuration counts once, where one reads it, and what a hook includes counts as its own.
        let (file, program) = (text.lines().count(), program(path));
        assert!(file <= 80 && program.len() <= 80, "{}: {file}, {}", path.display(), program.len());
        let long = program.iter().find(|line| line.chars().count() > 160);
        assert_eq!(long, None, "{}", path.display());
        controllers += 1;
        included +=
            program.iter().filter(|line| line.contains("def within(") || line.contains("def runs(")).count();
    }
    assert_eq!(controllers, 10);
    assert_eq!(included, 2, "the libraries are counted");
}

#[test]
fn the_website_controller_has_half_the_lines_that_it_had_without_the_binding() {
    const BEFORE: usize = 63;
    let hook = root().join("examples/303-website-controller/modules/010-websites/hooks/websites.sh");
    let lines = fs::read_to_string(hook).unwrap().lines().count();
    assert!(2 * lines <= BEFORE, "{lines}");
}

/// The life of a pool of the platform that the README adds.
const METAL: &str = "timeout: 60s
tests:
- name: a pool of metal
  steps:
  - apply:
    - {apiVersion: hypershift.openshift.io/v1alpha1, kind: HostedCluster, metadata: {name: demo, namespace: clusters}, spec: {release: {image: \"registry.local/release:1.0\"}, infraID: demo-x1}}
    - {apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, metadata: {name: metal, namespace: clusters}, spec: {clusterName: demo, nodeCount: 1, platform: {metal: {cores: 8}}}}
    - {apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, metadata: {name: other, namespace: clusters}, spec: {clusterName: demo, nodeCount: 1}}
    expect:
      objects:
      - {apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, metadata: {name: metal, namespace: clusters}, status: {nodeCount: 1, conditions: [{type: Ready, status: \"True\"}]}}
      - {apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, metadata: {name: other, namespace: clusters}, status: {nodeCount: 1, conditions: [{type: Ready, status: \"True\"}]}}
      - {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: MetalMachine, metadata: {name: METAL-0, namespace: clusters-demo}}
      absent:
      - {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: SimMachine, name: METAL-0, namespace: clusters-demo}
  - delete:
    - {apiVersion: hypershift.openshift.io/v1alpha1, kind: HostedCluster, name: demo, namespace: clusters}
    expect:
      absent:
      - {kind: Namespace, name: clusters-demo}
";

#[test]
fn a_platform_is_added_as_the_readme_says() {
    let place = copied(EXAMPLE);
    let modules = place.path().join(EXAMPLE).join("modules");
    let change = |file: &str, old: &str, new: &str| {
        let path = modules.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(old).count(), 1, "{file}: {old}");
        fs::write(path, text.replace(old, new)).unwrap();
    };
    // 1. The kinds.
    for name in ["simmachinetemplate", "simmachine"] {
        let crds = modules.join("010-hypershift-crds/crds");
        let text = fs::read_to_string(crds.join(format!("{name}.yaml"))).unwrap();
        let text = text.replace("SimMachine", "MetalMachine").replace("simmachine", "metalmachine");
        fs::write(crds.join(format!("{}.yaml", name.replace("sim", "metal"))), text).unwrap();
    }
    // 2. The template.
    let of = |kind: &str| format!("  - {{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: {kind}");
    let pools = "020-hypershift-operator/hooks/node-pool.sh";
    let (sim, metal) = (of("SimMachineTemplate"), of("MetalMachineTemplate"));
    change(pools, &sim, &format!("{metal}}}\n{sim}"));
    change(
        pools,
        "\"SimMachineTemplate\" as $kind",
        "(if $object.spec.platform.metal then \"MetalMachineTemplate\" else \"SimMachineTemplate\" end) as $kind",
    );
    // 3. The machine.
    let (sim, metal) = (of("SimMachine}"), of("MetalMachine}"));
    change("040-capi-sim/hooks/machine.sh", &sim, &format!("{sim}\n{metal}"));
    // 4. The owner, and the rights.
    let templates = "  - name: templates\n    apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4\n    kind: SimMachineTemplate\n    \
        parentLabel: cluster.x-k8s.io/cluster-name\n    jqFilter: .metadata.ownerReferences\n";
    let more = templates.replace("templates\n", "metal\n").replace("Sim", "Metal");
    change("040-capi-sim/hooks/cluster.sh", templates, &format!("{templates}{more}"));
    change(
        "020-hypershift-operator/templates/access.yaml",
        "[simmachinetemplates, simmachines]",
        "[simmachinetemplates, simmachines, metalmachinetemplates, metalmachines]",
    );
    // 5. The life. The name of the set has a hash of that of the pool.
    let set = "demo-x1-demo-metal-3715a2af";
    fs::write(place.path().join(EXAMPLE).join("metal.test.yaml"), METAL.replace("METAL", set)).unwrap();
    pass(&place, &[EXAMPLE, "--only", "a pool of metal"], "1 test, 0 failed");
}

#[test]
fn the_product_knows_nothing_of_the_example() {
    let names = ["hypershift", "hostedcluster", "hostedcontrolplane", "externalinfracluster", "nodepool"];
    let parts = ["src", "crates", "modules", "global-hooks", ".ci/image-root", "Dockerfile"];
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
