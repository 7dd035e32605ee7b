//! What chart repositories have to do, by number, and the tests that show it.

use std::fs;
use std::path::Path;

use crate::support::files::{root, tracked_below};

/// Each behaviour: its number, what it is, and the tests that show all of it together.
const BEHAVIOURS: [(&str, &str, &[&str]); 22] = [
    (
        "b01",
        "a Repository that lists no charts keeps lists of versions and nothing else",
        &[
            "b01_b02_a_repository_keeps_lists_of_versions_and_makes_charts",
            "b01_wanted_charts_are_kept_with_the_highest_version_first",
            "of_too_many_charts_the_first_by_name_are_kept",
        ],
    ),
    (
        "b02",
        "a Chart with createDeps for each that is listed",
        &[
            "b01_b02_a_repository_gets_its_finalizer_its_index_and_the_charts_that_it_lists",
            "b02_only_the_index_maps_of_charts_that_are_listed_are_renewed",
        ],
    ),
    (
        "b03",
        "three immutable maps with labels and an owner",
        &[
            "b03_b04_b05_b06_b07_versions_of_a_chart_are_kept_beside_each_other",
            "b03_there_is_one_of_each_type_whatever_the_chart_has",
            "b03_b16_labels_and_annotations_say_what_a_map_is_of_and_nobody_can_change_it",
            "b01_b03_b11_the_columns_say_group_repository_and_what_is_synced",
        ],
    ),
    (
        "b04",
        "another version leaves them as they are",
        &["b03_b04_b05_b06_b07_versions_of_a_chart_are_kept_beside_each_other"],
    ),
    (
        "b05",
        "a Chart that a person made is labelled, counted and never deleted",
        &[
            "b03_b04_b05_b06_b07_versions_of_a_chart_are_kept_beside_each_other",
            "b05_a_chart_that_a_person_made_is_labelled_and_never_deleted",
        ],
    ),
    (
        "b06",
        "a constraint that takes nothing is named and hinders no other",
        &[
            "b03_b04_b05_b06_b07_versions_of_a_chart_are_kept_beside_each_other",
            "b06_b08_what_is_wrong_is_a_condition_and_hinders_nothing_else",
            "b06_a_constraint_that_takes_nothing_says_why",
        ],
    ),
    (
        "b07",
        "a constraint takes the version that Helm takes",
        &["b07_a_constraint_takes_what_helm_takes", "helm_still_takes_the_versions_that_were_recorded"],
    ),
    (
        "b08",
        "a Chart before its Repository",
        &["b08_a_chart_before_its_repository_is_synced_when_that_comes"],
    ),
    (
        "b09",
        "an archive that can't be used",
        &["b09_an_archive_that_can_not_be_used_is_a_condition_and_leaves_nothing"],
    ),
    (
        "b10",
        "a map that may not be written",
        &[
            "b10_a_map_that_may_not_be_written_is_a_condition_and_is_tried_again",
            "b10_default_values_that_can_not_be_looked_up_are_a_condition",
        ],
    ),
    (
        "b11",
        "what a chart needs is made and waited for",
        &["b11_b12_b13_what_a_chart_needs_is_kept_too", "b11_what_a_chart_needs_is_made_and_waited_for"],
    ),
    (
        "b12",
        "what a chart needs of another Repository, inside a group and outside",
        &[
            "b11_b12_b13_what_a_chart_needs_is_kept_too",
            "b12_what_stands_in_for_another_repository_stays_until_that_has_the_chart",
        ],
    ),
    (
        "b13",
        "what a group does not list any more goes",
        &[
            "b11_b12_b13_what_a_chart_needs_is_kept_too",
            "b13_a_group_makes_its_repositories_and_deletes_those_that_it_does_not_list_any_more",
        ],
    ),
    (
        "b14",
        "what belongs to a Chart or a Repository goes with it",
        &[
            "b14_what_belongs_to_a_chart_or_a_repository_goes_with_it",
            "b14_the_maps_of_a_version_belong_to_all_who_want_it_and_go_with_the_last",
        ],
    ),
    (
        "b15",
        "credentials reach their own server only, and nobody else",
        &[
            "b15_credentials_come_from_a_secret_and_are_told_nowhere",
            "b15_credentials_go_to_their_own_server_only",
            "b15_the_password_of_a_chart_repository_is_told_nowhere",
        ],
    ),
    (
        "b16",
        "what is odd or large is kept whole",
        &[
            "b16_what_is_odd_or_large_is_kept_whole",
            "b16_directories_long_files_and_odd_names_are_all_shown",
            "b16_what_is_not_legal_is_replaced_and_told_apart_by_a_hash",
        ],
    ),
    (
        "b17",
        "an archive that was published again waits for a person",
        &[
            "b17_an_archive_that_was_published_again_waits_for_a_person",
            "b17_an_archive_that_was_published_again_is_taken_when_a_person_says_so",
            "a_tag_that_is_pushed_again_waits_for_a_person",
        ],
    ),
    (
        "b18",
        "a module needs no repository once it is installed",
        &[
            "b18_b21_a_module_is_held_until_its_chart_comes_and_needs_no_repository_afterwards",
            "a_dependency_of_a_repository_is_waited_for_and_needs_it_no_more",
        ],
    ),
    (
        "b19",
        "charts of registries are kept as others are",
        &[
            "b19_a_module_is_installed_from_a_chart_of_a_registry",
            "b19_what_helm_pushed_to_a_real_registry_is_kept_and_told_when_it_is_pushed_again",
        ],
    ),
    (
        "b20",
        "the steps are told in their order",
        &[
            "b20_the_steps_of_a_chart_are_told_in_their_order",
            "b20_the_steps_of_a_chart_end_where_it_fails",
            "b20_each_step_of_a_version_may_be_the_one_at_which_it_fails",
            "b20_each_step_of_a_chart_is_a_line_at_debug",
        ],
    ),
    (
        "b21",
        "a module whose chart never came holds back nobody",
        &[
            "b18_b21_a_module_is_held_until_its_chart_is_there_and_holds_back_nobody",
            "a_held_module_holds_back_neither_main_nor_readyz_and_once_ends_with_1",
        ],
    ),
    (
        "kills",
        "a kill at any write changes no end",
        &[
            "a_kill_at_any_write_of_a_chart_with_dependencies_changes_no_end",
            "a_kill_at_any_read_of_a_chart_with_dependencies_changes_no_end",
            "a_kill_at_any_request_to_the_repository_changes_no_end",
            "a_kill_at_any_write_of_a_replaced_archive_changes_no_end",
            "a_kill_at_any_write_of_an_upgrade_changes_no_end",
            "a_kill_at_any_write_on_the_way_back_to_a_version_changes_no_end",
        ],
    ),
];

/// Adds all source files of this repository below a directory to a text.
fn read_all(directory: &Path, text: &mut String) {
    for path in tracked_below(directory).filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        text.push_str(&fs::read_to_string(path).unwrap());
    }
}

#[test]
fn each_behaviour_has_tests_that_show_it() {
    let mut text = String::new();
    for directory in
        ["tests/it", "crates/engine/tests", "crates/source/src", "crates/objects/src", "src/telemetry"]
    {
        read_all(&root().join(directory), &mut text);
    }
    let missing: Vec<String> = BEHAVIOURS
        .iter()
        .flat_map(|(id, what, tests)| tests.iter().map(move |test| (id, what, test)))
        .filter(|(.., test)| !text.contains(&format!("fn {test}()")))
        .map(|(id, what, test)| format!("{id} ({what}): there is no test {test}"))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
    for (id, what, tests) in BEHAVIOURS {
        let is_named = id == "kills" || tests.iter().any(|test| test.split('_').any(|word| word == id));
        assert!(is_named, "{id} ({what}): one of its tests bears the number");
    }
}
