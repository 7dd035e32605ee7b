//! Chart repositories: from an object to what is kept, and from a module that names a chart to its release.

use std::sync::Arc;
use std::time::Duration;

use engine::view::{Format, charts, why};
use engine::{
    ChartConfigMap, ChartDependency, ChartReference, Command, CommandId, Config, Event, Failure, FailureKind,
    Notice, VersionStep,
};
use serde_json::{Value, json};

use crate::build::{Files, config as config_map, files};
use crate::chart_world::{Offered, charted, charted_with, config, offered};
use crate::repositories::digest;
use crate::world::World;

pub(crate) const URL: &str = "https://corp/charts";

/// Returns a module `cache` that names a chart of `corp`.
pub(crate) fn cache(version: &str, auto_upgrade: bool) -> Files {
    let reference = ChartReference {
        repository: "corp".into(),
        name: "alpha".into(),
        version: version.into(),
        auto_upgrade,
        min_age: Duration::ZERO,
    };
    files()
        .module(10, "base")
        .module(20, "cache")
        .with(move |module| module.chart = Some(Arc::new(reference.clone())))
}

fn corp(world: &mut World, charts: &Value) {
    world.applies_chart("Repository", "corp", json!({"name": "corp", "url": URL, "charts": charts}));
}

fn offers(world: &mut World, all: &[Offered]) {
    world.charts.repositories.insert(URL.to_owned(), all.to_vec());
}

fn needs(chart: &str, other: &str) -> Offered {
    Offered { needs: vec![(other.to_owned(), URL.to_owned())], ..offered(chart, "1.0", 1) }
}

/// Lets time pass, also if nothing happens.
fn passes(world: &mut World, milliseconds: u64) {
    world.send_in(milliseconds, Event::TimerFired);
    world.run_for(milliseconds);
}

pub(crate) fn phase(world: &World, name: &str) -> &'static str {
    let view = world.engine.view();
    view.modules.iter().find(|module| module.name.as_str() == name).unwrap().phase
}

/// One life with a module that names a chart, and with all kinds of objects.
pub(crate) fn tour() {
    let mut world = charted(&cache("*", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    world.run_for(1_000);
    let repos = json!([{"name": "corp", "url": URL}]);
    world.applies_chart("RepoGroup", "group", json!({"labelSelector": "group", "repos": repos}));
    world.run_for(3_000);
    assert_eq!(phase(&world, "cache"), "running");
    world.send_in(0, Event::ChartMapsLost { maps: Vec::new() });
    world.run_for(100);
    let mut world = charted_with(&files(), Config { are_repository_kinds_served: false, ..config() });
    world.run_for(100);
    world.send_in(0, Event::RepositoryKindsServed);
    world.run_for(100);
}

#[test]
fn b01_b02_a_repository_gets_its_finalizer_its_index_and_the_charts_that_it_lists() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("beta", "1.0", 2)]);
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    assert_eq!(world.charts.indexes["corp"].len(), 2);
    let object = world.chart_object("Repository", "corp");
    assert_eq!((&object["status"]["synced"], &object["status"]["charts"]), (&json!(true), &json!(0)));
    assert_eq!(object["metadata"]["finalizers"], json!(["finalizer.repo.yaho.soer3n.dev"]));
    corp(&mut world, &json!([{"name": "alpha", "versions": ["*"]}]));
    world.run_for(1_000);
    let chart = world.chart_object("Chart", "alpha-corp");
    assert_eq!(
        chart["spec"],
        json!({"name": "alpha", "repository": "corp", "versions": ["*"], "createDeps": true})
    );
    assert_eq!(chart["status"]["versions"], "synced");
    assert_eq!(world.chart_object("Repository", "corp")["status"]["charts"], 1);
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Chart", "alpha-corp"), Value::Null, "it is not listed any more");
}

#[test]
fn b05_a_chart_that_a_person_made_is_labelled_and_never_deleted() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("beta", "1.0", 2)]);
    corp(&mut world, &json!([{"name": "beta"}]));
    let spec = json!({"name": "alpha", "repository": "corp", "versions": ["*"]});
    world.applies_chart("Chart", "alpha-corp", spec.clone());
    world.run_for(1_000);
    let chart = world.chart_object("Chart", "alpha-corp");
    let labels = json!({"yaho.soer3n.dev/chart": "alpha", "yaho.soer3n.dev/repo": "corp", "yaho.soer3n.dev/unmanaged": "true"});
    assert_eq!((&chart["metadata"]["labels"], &chart["spec"]), (&labels, &spec));
    assert_eq!(chart["status"]["versions"], "synced", "its index is kept although it is not listed");
    // Its name is taken: what is listed gets another one.
    corp(&mut world, &json!([{"name": "alpha"}]));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Chart", "alpha-corp")["spec"], spec);
    assert_eq!(world.charts.objects.keys().filter(|(kind, _)| kind == "Chart").count(), 2);
    corp(&mut world, &json!([{"name": "beta"}]));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Chart", "alpha-corp")["spec"], spec);
}

#[test]
fn b06_b08_what_is_wrong_is_a_condition_and_hinders_nothing_else() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    world.applies_chart(
        "Chart",
        "mine",
        json!({"name": "alpha", "repository": "corp", "versions": ["1", "9"]}),
    );
    world.run_for(1_000);
    let (reason, message) = world.condition("Chart", "mine");
    assert!(reason == "initChartFailed" && message.contains("there is no Repository"), "{message}");
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    assert_eq!(world.condition("Chart", "mine"), ("initChartFailed".to_owned(), "nothing fits 9".to_owned()));
    assert_eq!(world.charts.stored.len(), 1, "the good one is kept");
    world.charts.broken.insert("alpha".to_owned());
    world.charts.stored.clear();
    world.applies_chart("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["1"]}));
    world.run_for(1_000);
    assert_eq!(world.condition("Chart", "mine").0, "createConfigmapsFailed");
    let before = world.charts.writes.len();
    world.run_for(100_000);
    assert_eq!(world.charts.writes.len(), before, "the same message is not written again");
    world.charts.broken.clear();
    world.run_for(3_600_000);
    assert_eq!(world.condition("Chart", "mine").0, "success");
}

#[test]
fn an_index_is_looked_at_again_and_a_repository_that_fails_ever_more_rarely() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    let writes = world.charts.writes.len();
    world.run_for(1_510_000);
    assert_eq!(
        (world.charts.fetches, world.charts.writes.len()),
        (6, writes),
        "every 5 minutes, and nothing is written"
    );
    world.charts.repositories.clear();
    world.run_for(310_000);
    assert_eq!(world.condition("Repository", "corp").0, "fetchIndexFailed");
    let before = world.charts.fetches;
    world.run_for(36_000_000);
    let tries = world.charts.fetches - before;
    assert!((12..20).contains(&tries), "{tries} in 10 h");
    world.applies_chart(
        "Repository",
        "corp",
        json!({"name": "corp", "url": URL, "sync": {"enabled": false}}),
    );
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    world.run_for(3_600_000);
    let before = world.charts.fetches;
    world.run_for(3_600_000);
    assert_eq!(world.charts.fetches, before);
}

#[test]
fn b11_what_a_chart_needs_is_made_and_waited_for() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1), needs("beta", "alpha")]);
    corp(&mut world, &json!([]));
    let spec =
        |create: bool| json!({"name": "beta", "repository": "corp", "versions": ["*"], "createDeps": create});
    world.applies_chart("Chart", "mine", spec(false));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Chart", "mine")["status"]["dependencies"], Value::Null);
    world.charts.broken.insert("alpha".to_owned());
    world.applies_chart("Chart", "mine", spec(true));
    world.run_for(1_000);
    let (reason, message) = world.condition("Chart", "mine");
    assert!(reason == "createDepsFailed" && message.contains("404"), "{reason}: {message}");
    let child = world.chart_object("Chart", "alpha-corp");
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], "uid-of-corp");
    world.charts.broken.clear();
    world.run_for(100_000);
    let mine = world.chart_object("Chart", "mine");
    assert_eq!(
        (&mine["status"]["dependencies"], &mine["status"]["versions"]),
        (&json!("synced"), &json!("synced"))
    );
    // A Repository that lists it keeps what others need of it.
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Chart", "alpha-corp")["spec"]["versions"], json!(["1", "*"]));
    assert!(
        world.chart_object("Chart", "alpha-corp")["metadata"]["labels"]["yaho.soer3n.dev/unmanaged"]
            .is_null()
    );
}

#[test]
fn charts_that_need_each_other_are_named_and_the_work_ends() {
    let mut world = charted(&files());
    offers(&mut world, &[needs("a", "b"), needs("b", "a")]);
    corp(&mut world, &json!([{"name": "a", "versions": ["*"]}]));
    world.run_for(2_000);
    let (reason, message) = world.condition("Chart", "a-corp");
    assert!(reason == "createDepsFailed" && message.contains("a-corp → b-corp → a-corp"), "{message}");
    let before = world.charts.writes.len();
    world.run_for(200_000);
    assert_eq!(world.charts.writes.len(), before);
}

#[test]
fn b13_a_group_makes_its_repositories_and_deletes_those_that_it_does_not_list_any_more() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    let one = json!({"name": "corp", "url": URL, "charts": [{"name": "alpha", "versions": ["*"]}]});
    let two = json!({"name": "extra", "url": "https://extra"});
    world.applies_chart("RepoGroup", "group", json!({"labelSelector": "g", "repos": [one, two]}));
    world.run_for(1_000);
    assert_eq!(
        world.chart_object("Repository", "corp")["metadata"]["labels"]["yaho.soer3n.dev/repoGroup"],
        "g"
    );
    assert_eq!(
        world.chart_object("Chart", "alpha-corp")["metadata"]["labels"]["yaho.soer3n.dev/repoGroup"],
        "g"
    );
    assert_eq!(world.condition("Repository", "extra").0, "fetchIndexFailed");
    world.applies_chart("RepoGroup", "group", json!({"labelSelector": "g", "repos": [two]}));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Repository", "corp"), Value::Null);
    assert_eq!(world.chart_object("Chart", "alpha-corp"), Value::Null);
    assert_ne!(world.chart_object("Repository", "extra"), Value::Null);
    world.applies_chart("Repository", "mine", json!({"name": "mine", "url": URL}));
    world.run_for(1_000);
    let taken = json!({"name": "mine", "url": "https://other"});
    world.applies_chart("RepoGroup", "group", json!({"labelSelector": "g", "repos": [taken]}));
    world.run_for(1_000);
    assert_eq!(world.chart_object("Repository", "mine")["spec"]["url"], URL);
    assert!(world.condition("RepoGroup", "group").1.contains("does not belong to this group"));
}

#[test]
fn b17_an_archive_that_was_published_again_is_taken_when_a_person_says_so() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["*"]}]));
    world.run_for(1_000);
    offers(&mut world, &[offered("alpha", "1.0", 2)]);
    world.run_for(400_000);
    let conditions = world.chart_object("Chart", "alpha-corp")["status"]["conditions"].clone();
    assert_eq!((&conditions[1]["type"], &conditions[1]["status"]), (&json!("DigestChanged"), &json!("True")));
    assert_eq!(world.charts.stored.values().copied().collect::<Vec<_>>(), [1]);
    world.annotates_chart("Chart", "alpha-corp", json!({"addon-operator.io/reprocess": "1"}));
    world.run_for(1_000);
    let status = world.chart_object("Chart", "alpha-corp")["status"].clone();
    assert_eq!((&status["reprocessed"], &status["conditions"][1]), (&json!(1), &Value::Null));
    assert_eq!(world.charts.stored.values().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_module_keeps_what_it_has_pinned_until_its_own_chart_is_told_to_take_what_was_published_again() {
    let mut world = charted(&cache("1.0", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1.0"]}]));
    world.run_for(2_000);
    let first = world.charts.pins["cache"].clone();
    offers(&mut world, &[offered("alpha", "1.0", 2)]);
    world.run_for(400_000);
    world.annotates_chart("Chart", "alpha-corp", json!({"addon-operator.io/reprocess": "1"}));
    world.run_for(400_000);
    assert_eq!(world.charts.stored.values().copied().collect::<Vec<_>>(), [2]);
    assert_eq!(world.charts.pins["cache"], first);
    world.annotates_chart("Chart", "module-cache", json!({"addon-operator.io/reprocess": "3"}));
    world.run_for(2_000);
    let second = world.charts.pins["cache"].clone();
    assert_eq!((&second.package.version, second.reprocessed), (&first.package.version, 3));
    assert_eq!(second.previous.as_ref(), Some(&first.package));
    assert_ne!(second.package.digest, first.package.digest);
    assert_eq!(phase(&world, "cache"), "running");
}

fn why_module(world: &World) -> String {
    let format = Format { show: &str::to_owned, at: &|_| String::new() };
    let answer = why::module(&world.engine.view(), "cache", format).unwrap();
    answer.text()
}

#[test]
fn what_is_kept_pinned_and_newer_is_shown() {
    let mut world = charted(&cache("1", false));
    world.run_for(2_000);
    let text = why_module(&world);
    assert!(text.contains("there is no Repository \"corp\"") && text.contains("tried again in"), "{text}");
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    let view = world.engine.view();
    assert_eq!(view.charts.repositories[0].is_synced, Some(true));
    assert_eq!(view.charts.charts[0].versions[0].version, "1.0");
    assert!(!view.charts.modules[0].is_outdated());
    assert!(charts::outdated_text(&view).starts_with("Every module"));
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2), offered("alpha", "2.0", 3)]);
    world.run_for(400_000);
    let view = world.engine.view();
    let its = &view.charts.modules[0];
    assert_eq!((its.fits.as_deref(), its.highest.as_deref()), (Some("1.1"), Some("2.0")));
    let text = charts::outdated_text(&view);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["cache", "corp/alpha", "1", "1.0", "1.1", "2.0"]);
    let text = why_module(&world);
    for part in
        ["version 1.1 fits, and the module stays with 1.0", "chart plan cache --version 1.1", "pinned"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (name, version) in [("cache", Some("1.0")), ("module-cache", Some("1.1")), ("corp/other", None)] {
        let meant = charts::find(&view, name).unwrap();
        assert_eq!((&*meant.repository, meant.version.as_deref()), ("corp", version), "{name}");
    }
    assert!(charts::find(&view, "cahce").unwrap_err().to_string().contains("cache"));
    // Of several that are kept it is the highest.
    world.applies_chart(
        "Chart",
        "mine",
        json!({"name": "alpha", "repository": "corp", "versions": ["1.0", "2", "1.1"]}),
    );
    world.run_for(2_000);
    let view = world.engine.view();
    for name in ["mine", "corp/alpha"] {
        assert_eq!(charts::find(&view, name).unwrap().version.as_deref(), Some("2.0"), "{name}");
    }
}

#[test]
fn a_chart_announces_once_that_it_is_synced_or_not_any_more() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
    world.run_for(400_000);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1", "9"]}]));
    world.run_for(4_000_000);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
    world.run_for(2_000);
    let told: Vec<(&str, bool, String)> = world
        .announcements
        .iter()
        .map(|told| (told.reason, told.warning, told.object.as_ref().unwrap().key.name.to_string()))
        .collect();
    let about = |reason, warning| (reason, warning, "alpha-corp".to_owned());
    let first = ("RepositorySynced", false, "corp".to_owned());
    let charts = [about("ChartSynced", false), about("ChartFailed", true), about("ChartSynced", false)];
    assert_eq!((&told[0], &told[1..]), (&first, &charts[..]));
    assert_eq!(world.announcements[1].message, "Chart alpha-corp is synced: 1.0");
    assert!(world.announcements[2].message.contains("nothing fits 9"));
}

#[test]
fn what_is_announced_does_not_hang_on_when_an_answer_comes_or_whether_it_does() {
    for (answers_in, loses) in [(1, 0), (5, 0), (40, 0), (400, 0), (5, 1), (5, 3), (40, 5)] {
        let mut world = charted(&files());
        (world.charts.answers_in, world.charts.loses) = (Some(answers_in), loses);
        offers(&mut world, &[offered("alpha", "1.0", 1)]);
        corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
        world.run_for(400_000);
        world.charts.loses = loses;
        corp(&mut world, &json!([{"name": "alpha", "versions": ["1", "9"]}]));
        world.run_for(4_000_000);
        world.charts.loses = loses;
        corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
        world.run_for(400_000);
        let told: Vec<&str> = world.announcements.iter().map(|told| told.reason).collect();
        let (of_charts, others): (Vec<&str>, Vec<&str>) =
            told.into_iter().partition(|reason| reason.starts_with("Chart"));
        let all = ["ChartSynced", "ChartFailed", "ChartSynced"];
        assert_eq!(of_charts, all, "answers in {answers_in} ms, and {loses} are lost");
        assert_eq!(others, ["RepositorySynced"], "answers in {answers_in} ms, and {loses} are lost");
    }
}

#[test]
fn a_repository_that_fails_is_told_where_people_look() {
    let mut world = charted(&files());
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
    world.run_for(100_000);
    let told: Vec<&str> = world.announcements.iter().map(|told| told.reason).collect();
    assert_eq!(told.iter().filter(|reason| **reason == "RepositoryFailed").count(), 1, "{told:?}");
    let warned = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.starts_with("Repository corp is not synced: the index can't be fetched"));
    assert_eq!(world.noticed(warned), 1, "the log has it once");
    let status = world.told(engine::view::status::text);
    assert!(status.contains("! Repository corp is not synced: the index can't be fetched: 404"), "{status}");
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    world.run_for(4_000_000);
    let status = world.told(engine::view::status::text);
    assert!(!status.contains("is not synced"), "{status}");
}

#[test]
fn b18_b21_a_module_is_held_until_its_chart_is_there_and_holds_back_nobody() {
    let mut world = charted(&cache("*", false));
    let trace = world.run_for(2_000);
    assert!(world.deployed.keys().eq(["base"]), "{trace}");
    assert_eq!((phase(&world, "cache"), phase(&world, "base")), ("held", "running"));
    assert!(world.noticed(|notice| matches!(notice, Notice::Ready)) == 1, "nobody waits for it");
    assert!(
        world
            .engine
            .view()
            .queues
            .iter()
            .all(|queue| queue.name.as_str() != "main" || queue.tasks.is_empty())
    );
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    assert!(world.deployed.keys().eq(["base", "cache"]));
    assert_eq!(phase(&world, "cache"), "running");
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");

    // The repository is down, and so is everything that was known.
    world.charts.repositories.clear();
    world.restarts_charted();
    let before = (world.charts.downloads, world.charts.pins.clone());
    let trace = world.run_for(2_000);
    assert_eq!(phase(&world, "cache"), "running");
    assert!(!trace.contains("pin "), "{trace}");
    assert_eq!((world.charts.downloads, world.charts.pins.clone()), before);
}

#[test]
fn a_release_whose_module_is_held_goes_when_that_is_switched_off() {
    let mut world = charted(&cache("*", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(3_000);
    assert!(world.deployed.keys().eq(["base", "cache"]));
    // Its pin is lost, and so is all that is known of charts.
    world.charts.pins.clear();
    world.charts.repositories.clear();
    world.charts.objects.clear();
    world.charts.indexes.clear();
    world.charts.stored.clear();
    world.restarts_charted();
    world.run_for(3_000);
    assert_eq!(phase(&world, "cache"), "held");
    world.send_in(0, crate::build::config(300, &[("cacheEnabled", "false")]));
    let trace = world.run_for(5_000);
    assert!(world.deployed.keys().eq(["base"]), "{trace}");
}

#[test]
fn a_module_moves_when_its_constraint_changes_or_when_it_follows() {
    for (auto_upgrade, moves_to) in [(false, "1.0"), (true, "1.1")] {
        let mut world = charted(&cache("1", auto_upgrade));
        offers(&mut world, &[offered("alpha", "1.0", 1)]);
        corp(&mut world, &json!([]));
        world.run_for(2_000);
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
        world.run_for(400_000);
        let pin = &world.charts.pins["cache"];
        assert_eq!(&*pin.package.version, moves_to);
        assert_eq!(pin.previous.as_ref().map(|package| &*package.version), auto_upgrade.then_some("1.0"));
        let changed = cache("1.1", auto_upgrade);
        world.send_in(0, crate::build::reread(&changed));
        world.run_for(2_000);
        let pin = &world.charts.pins["cache"];
        assert_eq!((&*pin.package.version, &*pin.constraint), ("1.1", "1.1"));
        assert_eq!(phase(&world, "cache"), "running");
    }
}

#[test]
fn a_module_that_is_switched_off_gives_its_chart_up_when_its_release_is_gone() {
    let mut world = charted(&cache("*", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    world.send_in(0, config_map(200, &[("cacheEnabled", "false")]));
    world.run_for(2_000);
    assert!(world.deployed.keys().eq(["base"]));
    assert_eq!(world.chart_object("Chart", "module-cache"), Value::Null);
    assert!(world.charts.pins.is_empty());
    world.send_in(0, config_map(201, &[("cacheEnabled", "true")]));
    world.run_for(2_000);
    assert!(world.deployed.keys().eq(["base", "cache"]));
}

/// Returns the modules for which something is kept: Charts by their labels, and pins.
fn kept_for_modules(world: &World) -> (Vec<String>, Vec<String>) {
    let label = |object: &Value| {
        let label = &object["metadata"]["labels"]["addon-operator.io/module"];
        label.as_str().map(str::to_owned)
    };
    let charts = world.charts.objects.values().filter_map(label).collect();
    (charts, world.charts.pins.keys().map(ToString::to_string).collect())
}

fn purges(world: &mut World, name: &str) {
    let command = Command::PurgeModule(name.into());
    world.send_in(0, Event::Commanded { id: CommandId::new(1), command });
    world.run_for(2_000);
}

#[test]
fn what_is_kept_for_a_module_goes_with_its_directory_and_its_release() {
    let none = (Vec::new(), Vec::new());
    let has = |name: &str| (vec![name.to_owned()], vec![name.to_owned()]);
    for (files_of, name) in [(cache("*", false), "cache"), (needing("1", URL), "cache.alpha")] {
        for is_purged in [true, false] {
            let mut world = charted(&files_of);
            offers(&mut world, &[offered("alpha", "1.0", 1)]);
            corp(&mut world, &json!([]));
            world.run_for(3_000);
            assert_eq!(kept_for_modules(&world), has(name));
            world.rereads_charted(&files().module(10, "base"));
            world.run_for(3_000);
            assert!(
                world.deployed.contains_key("cache"),
                "it stays until the next start, or until it is purged"
            );
            assert_eq!(kept_for_modules(&world), has(name), "its directory may come back");
            if is_purged {
                purges(&mut world, "cache");
            } else {
                world.restarts_charted();
                assert_eq!(kept_for_modules(&world), has(name));
                world.run_for(5_000);
            }
            assert!(world.deployed.keys().eq(["base"]));
            assert_eq!(kept_for_modules(&world), none, "{name}, purged: {is_purged}");
            assert!(world.charts.stored.is_empty(), "nobody needs the package");
            // It comes back as a new one.
            world.rereads_charted(&files_of);
            world.run_for(100_000);
            assert_eq!((phase(&world, "cache"), kept_for_modules(&world)), ("running", has(name)));
        }
    }
}

#[test]
fn what_is_kept_for_a_module_that_never_ran_goes_with_its_directory() {
    let others = files().module(10, "base");
    // There is no Repository.
    let mut world = charted(&cache("*", false));
    world.run_for(2_000);
    assert_eq!(kept_for_modules(&world).0, ["cache"]);
    world.rereads_charted(&others);
    world.run_for(2_000);
    assert_eq!(kept_for_modules(&world).0, [""; 0]);
    let mut world = charted(&cache("*", false));
    world.run_for(2_000);
    world.restarts_with(&others);
    world.run_for(5_000);
    assert_eq!(kept_for_modules(&world).0, [""; 0], "while nobody looked");
    // An operator of another namespace has such a module.
    let mut world = charted(&cache("*", false));
    world.run_for(2_000);
    world.annotates_chart("Chart", "module-cache", json!({"addon-operator.io/operator-namespace": "other"}));
    world.restarts_with(&others);
    world.run_for(5_000);
    assert_eq!(kept_for_modules(&world).0, ["cache"]);
}

#[test]
fn what_is_kept_for_a_module_stays_while_it_only_seems_to_be_gone() {
    let mut world = charted(&cache("*", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(3_000);
    let before = kept_for_modules(&world);
    // A directory of modules can't be read.
    world.restarts_with(&Files { is_incomplete: true, ..files().module(10, "base") });
    world.run_for(5_000);
    assert_eq!(kept_for_modules(&world), before);
    let unreadable = Failure::new(FailureKind::Files, "module.yaml: there is no key");
    let broken =
        files().module(10, "base").module(20, "cache").with(|module| module.broken = Some(unreadable));
    world.restarts_with(&broken);
    world.run_for(5_000);
    assert_eq!(kept_for_modules(&world), before);
    world.restarts_with(&cache("*", false));
    world.run_for(5_000);
    assert_eq!((phase(&world, "cache"), kept_for_modules(&world)), ("running", before));
}

#[test]
fn a_module_that_names_a_chart_no_more_gives_up_what_it_has() {
    let own = files().module(10, "base").module(20, "cache");
    for restarts in [false, true] {
        let mut world = charted(&cache("*", false));
        offers(&mut world, &[offered("alpha", "1.0", 1)]);
        corp(&mut world, &json!([]));
        world.run_for(3_000);
        if restarts {
            world.restarts_with(&own);
        } else {
            world.rereads_charted(&own);
        }
        world.run_for(5_000);
        assert_eq!((phase(&world, "cache"), kept_for_modules(&world)), ("running", (Vec::new(), Vec::new())));
    }
}

#[test]
fn without_the_kinds_nothing_is_watched_and_a_module_says_what_it_waits_for() {
    let settings = Config { are_repository_kinds_served: false, ..config() };
    let mut world = charted_with(&cache("*", false), settings);
    let trace = world.run_for(2_000);
    assert!(!trace.contains("Repository") && trace.contains("await kinds of charts"), "{trace}");
    assert_eq!(phase(&world, "cache"), "held");
    let why = |notice: &Notice| matches!(notice, Notice::ModuleChanged { phase: "held", reason: Some(reason), .. } if reason.contains("apply the CRDs"));
    assert_eq!(world.noticed(why), 1);
}

#[test]
fn a_write_that_fails_is_tried_again() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    for _ in 0..3 {
        world.patching.push_back(Err(Failure::new(FailureKind::Cluster, "conflict")));
    }
    corp(&mut world, &json!([{"name": "alpha", "versions": ["*"]}]));
    world.run_for(60_000);
    assert_eq!(world.condition("Chart", "alpha-corp").0, "success");
}

#[test]
fn three_failed_runs_bring_the_version_back_with_which_the_module_ran() {
    let mut world = charted(&cache("1", true));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    let mut world = (0..3).fold(world, |world, _| world.release("cache", Err("it does not start")));
    world.run_for(400_000);
    let pin = &world.charts.pins["cache"];
    assert_eq!((&*pin.package.version, &pin.previous), ("1.0", &None));
    assert_eq!(phase(&world, "cache"), "running");
    let told = |reason: &str| world.announcements.iter().filter(|told| told.reason == reason).count();
    assert_eq!((told("ChartUpgraded"), told("ChartRolledBack")), (1, 1));
    let given_up = pin.given_up.clone().unwrap();
    assert_eq!((&*given_up.version, given_up.error.contains("it does not start")), ("1.1", true));
    let status = world.told(engine::view::status::text);
    for text in [status, why_module(&world)] {
        for part in ["1.1", "it does not start", "addon-operator.io/reprocess of Chart module-cache"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let told = world.announcements.iter().find(|told| told.reason == "ChartRolledBack").unwrap();
    assert!(
        told.message.contains("runs failed with version 1.1: ") && told.message.contains("does not start")
    );
    // A person has it tried again.
    world.annotates_chart("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"}));
    let mut world = (0..3).fold(world, |world, _| world.release("cache", Err("it does not start")));
    world.run_for(1_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.1");
    world.run_for(400_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");
    // It is not taken again, but what comes after it is.
    world.run_for(400_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.2", 3)]);
    world.run_for(400_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.2");
}

#[test]
fn a_restart_forgets_not_with_which_versions_a_module_ran() {
    let mut world = charted(&cache("1.0", false));
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    assert!(world.charts.pins["cache"].is_good);
    // Another image has another constraint, and nothing can be released for a while.
    world.restarts_with(&cache("1.1", false));
    world.fails_releases("cache", 100);
    world.run_for(400_000);
    let pin = &world.charts.pins["cache"];
    assert_eq!((&*pin.package.version, pin.given_up.is_some()), ("1.0", true));
    world.fails_releases("cache", 0);
    world.annotates_chart("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"}));
    world.run_for(400_000);
    let pin = &world.charts.pins["cache"];
    assert_eq!((&*pin.package.version, pin.is_good, pin.previous.is_some()), ("1.1", true, true));
    // A version that ran is not given up, however often it fails after a restart.
    world.restarts_charted();
    world.fails_releases("cache", 100);
    world.run_for(400_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.1");
    world.fails_releases("cache", 0);
    world.run_for(400_000);
    let writes = world.charts.pin_writes;
    world.restarts_charted();
    world.run_for(400_000);
    assert_eq!((world.charts.pin_writes, phase(&world, "cache")), (writes, "running"));
}

#[test]
fn what_somebody_removes_of_a_chart_is_written_again_at_once() {
    let mut world = charted(&cache("1", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    world.run_for(400_000);
    for version in ["1.0", "1.1"] {
        let before = world.charts.downloads;
        world.loses_version("alpha", version, false);
        world.run_for(1_000);
        let kept = ("corp".to_owned(), "alpha".to_owned(), version.to_owned());
        assert!(world.charts.stored.contains_key(&kept), "{version}: pinned is 1.0, and found is 1.1");
        assert_eq!(world.charts.downloads, before + 1);
    }
    assert_eq!(phase(&world, "cache"), "running");
    let fetches = world.charts.fetches;
    let map = |chart: &str| ChartConfigMap {
        repository: "corp".into(),
        chart: chart.into(),
        version: None,
        digest: None,
    };
    world.send_in(0, Event::ChartMapsLost { maps: vec![map("alpha")] });
    world.run_for(1_000);
    assert_eq!(world.charts.fetches, fetches + 1, "the list of versions is written again");
    let writes = world.charts.writes.len();
    world.run_for(1_000);
    assert_eq!((world.charts.fetches, world.charts.writes.len()), (fetches + 1, writes));
}

#[test]
fn a_module_whose_package_is_lost_is_held_and_goes_on_when_it_is_there_again() {
    for is_restarted in [true, false] {
        let mut world = charted(&cache("1", false));
        offers(&mut world, &[offered("alpha", "1.0", 1)]);
        corp(&mut world, &json!([]));
        world.run_for(2_000);
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
        world.run_for(400_000);
        world.charts.repositories.clear();
        world.loses_version("alpha", "1.0", true);
        if is_restarted {
            world.restarts_charted();
        } else {
            world.send_in(0, config_map(200, &[("cache", "a: 1")]));
        }
        world.run_for(10_000);
        assert_eq!((phase(&world, "cache"), phase(&world, "base")), ("held", "running"));
        let view = world.engine.view();
        let is_empty =
            view.queues.iter().all(|queue| queue.name.as_str() != "main" || queue.tasks.is_empty());
        assert!(is_empty, "nothing waits in main");
        if is_restarted {
            assert!(world.noticed(|notice| matches!(notice, Notice::Ready)) == 2, "readyz is as without it");
        }
        let text = why_module(&world);
        for part in
            ["the package of version 1.0 is lost", "Chart module-cache: the archive can't be fetched: 404"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(world.deployed.contains_key("cache"), "its release is left as it is");
        assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
        world.run_for(100_000);
        assert_eq!(phase(&world, "cache"), "running");
        assert!(world.charts.lost.is_empty());
    }
}

#[test]
fn a_package_that_was_published_again_and_is_lost_is_said_to_be_so() {
    let mut world = charted(&cache("1.0", false));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    offers(&mut world, &[offered("alpha", "1.0", 2)]);
    world.run_for(400_000);
    world.loses_version("alpha", "1.0", false);
    world.send_in(0, config_map(200, &[("cache", "a: 1")]));
    world.run_for(10_000);
    assert_eq!(phase(&world, "cache"), "held");
    let text = why_module(&world);
    assert!(
        text.contains("another archive under this version") && text.contains("Chart module-cache"),
        "{text}"
    );
    world.annotates_chart("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"}));
    world.run_for(10_000);
    assert_eq!(phase(&world, "cache"), "running");
}

#[test]
fn what_a_module_goes_back_to_is_fetched_again_if_it_is_lost() {
    let mut world = charted(&cache("1", true));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    let mut world = (0..3).fold(world, |world, _| world.release("cache", Err("it does not start")));
    world.loses_version("alpha", "1.0", false);
    world.run_for(400_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");
    assert_eq!(phase(&world, "cache"), "running");
    assert!(world.charts.lost.is_empty());
}

#[test]
fn a_chart_that_its_repository_has_not_is_not_synced_also_without_a_version() {
    for charts in [json!([]), json!([{"name": "beta"}])] {
        let mut world = charted(&files());
        offers(&mut world, &[offered("beta", "1.0", 1)]);
        corp(&mut world, &charts);
        world.run_for(1_000);
        world.applies_chart("Chart", "mine", json!({"name": "alpha", "repository": "corp"}));
        world.run_for(1_000);
        let (reason, message) = world.condition("Chart", "mine");
        assert!(reason == "initChartFailed" && message.contains("no chart"), "{reason}: {message}");
        if charts != json!([]) {
            assert!(message.contains("did you mean beta?"), "{message}");
            let told = world.announcements.iter().filter(|told| told.message.contains("Chart mine"));
            assert_eq!(told.map(|told| told.reason).collect::<Vec<_>>(), ["ChartFailed"]);
        }
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("beta", "1.0", 1)]);
        world.run_for(400_000);
        assert_eq!(world.condition("Chart", "mine").0, "success");
    }
    // Nothing is known of one that is away.
    let mut world = charted(&files());
    corp(&mut world, &json!([{"name": "alpha"}]));
    world.run_for(1_000);
    let (reason, message) = world.condition("Chart", "alpha-corp");
    assert!(reason == "initChartFailed" && message.contains("404"), "{reason}: {message}");
}

#[test]
fn a_shorter_interval_and_a_raised_number_count_at_once() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    let with = |interval: &str| json!({"name": "corp", "url": URL, "sync": {"interval": interval}});
    world.applies_chart("Repository", "corp", with("1h"));
    passes(&mut world, 60_000);
    assert_eq!(world.charts.fetches, 1);
    world.applies_chart("Repository", "corp", with("2m"));
    passes(&mut world, 50_000);
    assert_eq!(world.charts.fetches, 1, "two minutes after the last look");
    passes(&mut world, 20_000);
    assert_eq!(world.charts.fetches, 2);
    world.applies_chart("Repository", "corp", with("1h"));
    passes(&mut world, 600_000);
    assert_eq!(world.charts.fetches, 2);
    world.applies_chart("Repository", "corp", with("5m"));
    passes(&mut world, 1_000);
    assert_eq!(world.charts.fetches, 3, "it is due already");
    let conditional = world.charts.conditional;
    world.annotates_chart("Repository", "corp", json!({"addon-operator.io/reprocess": "1"}));
    passes(&mut world, 1_000);
    assert_eq!(
        (world.charts.fetches, world.charts.conditional),
        (4, conditional),
        "fetched, not asked whether"
    );
    passes(&mut world, 10_000);
    assert_eq!(world.charts.fetches, 4);
    let off = json!({"name": "corp", "url": URL, "sync": {"enabled": false}});
    world.applies_chart("Repository", "corp", off);
    passes(&mut world, 4_000_000);
    assert_eq!(world.charts.fetches, 4);
}

/// Returns a module `cache` whose own chart needs another one.
fn needing(version: &str, repository: &str) -> Files {
    let wanted =
        ChartDependency { name: "alpha".into(), version: version.into(), repository: repository.into() };
    let set = move |module: &mut engine::Module| module.dependencies.named = vec![wanted.clone()];
    files().module(10, "base").module(20, "cache").with(set)
}

fn supplied(world: &World) -> Option<String> {
    let pin = world.charts.pins.get("cache.alpha")?;
    Some(pin.package.version.to_string())
}

#[test]
fn what_the_chart_of_a_module_needs_comes_from_the_catalogue() {
    for repository in [URL, "https://corp/charts/", "catalog://corp"] {
        let mut world = charted(&needing("1", repository));
        corp(&mut world, &json!([]));
        let trace = world.run_for(2_000);
        assert!(world.deployed.keys().eq(["base"]), "{repository}: {trace}");
        assert_eq!(phase(&world, "cache"), "held");
        assert!(why_module(&world).contains("Chart module-cache.alpha: "), "{}", why_module(&world));
        assert_eq!(world.noticed(|notice| matches!(notice, Notice::Ready)), 1);
        offers(&mut world, &[offered("alpha", "1.0", 1)]);
        world.run_for(100_000);
        assert_eq!((phase(&world, "cache"), supplied(&world)), ("running", Some("1.0".to_owned())));
        // It stays with its version, also over a restart without its repository.
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
        world.run_for(400_000);
        assert_eq!(supplied(&world).as_deref(), Some("1.0"));
        world.charts.repositories.clear();
        let before = world.charts.downloads;
        world.restarts_charted();
        world.run_for(2_000);
        assert_eq!((phase(&world, "cache"), world.charts.downloads), ("running", before));
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
        world.rereads_charted(&needing("1.1", repository));
        world.run_for(4_000_000);
        assert_eq!((phase(&world, "cache"), supplied(&world)), ("running", Some("1.1".to_owned())));
        // Somebody removes it while nobody can fetch it.
        world.charts.repositories.clear();
        world.loses_version("alpha", "1.1", true);
        world.restarts_charted();
        world.run_for(5_000);
        assert_eq!((phase(&world, "cache"), phase(&world, "base")), ("held", "running"));
        offers(&mut world, &[offered("alpha", "1.1", 2)]);
        world.run_for(100_000);
        assert_eq!(phase(&world, "cache"), "running");
        // It is needed no more.
        world.rereads_charted(&files().module(10, "base").module(20, "cache"));
        world.run_for(2_000);
        assert_eq!((phase(&world, "cache"), supplied(&world)), ("running", None));
        assert_eq!(world.chart_object("Chart", "module-cache.alpha"), Value::Null);
    }
}

#[test]
fn what_no_repository_has_holds_nobody_until_one_has_it() {
    let mut world = charted(&needing("1", URL));
    world.run_for(2_000);
    assert_eq!(phase(&world, "cache"), "running", "its chart says what it lacks");
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    assert_eq!((phase(&world, "cache"), supplied(&world)), ("running", Some("1.0".to_owned())));
    let settings = Config { are_repository_kinds_served: false, ..config() };
    let mut world = charted_with(&needing("1", URL), settings);
    world.run_for(2_000);
    assert_eq!(phase(&world, "cache"), "running");
    let settings = Config { are_repository_kinds_served: false, ..config() };
    let mut world = charted_with(&needing("1", "catalog://corp"), settings);
    world.run_for(2_000);
    assert_eq!(phase(&world, "cache"), "held");
    assert!(why_module(&world).contains("apply the CRDs"), "{}", why_module(&world));
}

#[test]
fn b20_the_steps_of_a_chart_are_told_in_their_order() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1), needs("beta", "alpha")]);
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    let spec = json!({"name": "beta", "repository": "corp", "versions": ["*"], "createDeps": true});
    world.applies_chart("Chart", "mine", spec);
    world.run_for(1_000);
    let told = world.notices.iter().filter_map(|notice| match notice {
        Notice::ChartStepped { object, step } if object == "Chart mine" => Some(step.as_str()),
        _ => None,
    });
    let mut told: Vec<&str> = told.collect();
    // Labels are written first, and the status again when what it needs is there.
    told.dedup();
    let expected = [
        "metadata",
        "index",
        "version *: parse: 1.0",
        "version *: repository",
        "version *: url",
        "version *: values: they are not kept yet",
        "version *: dependencies: alpha * of Repository corp",
        "write 1.0: download",
        "write 1.0: load",
        "write 1.0: maps",
        "dependents: Chart alpha-corp",
        "status",
    ];
    assert_eq!(told, expected);
}

#[test]
fn b20_the_steps_of_a_chart_end_where_it_fails() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    let spec = json!({"name": "alpha", "repository": "corp", "versions": ["1", "7"]});
    world.applies_chart("Chart", "mine", spec);
    world.run_for(1_000);
    let told = |world: &World| {
        let told = world.notices.iter().filter_map(|notice| match notice {
            Notice::ChartStepped { object, step } if object == "Chart mine" => Some(step.clone()),
            _ => None,
        });
        let mut told: Vec<String> = told.collect();
        told.dedup();
        told
    };
    let lacks = told(&world);
    let repository = "version 7: repository: there is none named corp";
    assert_eq!(lacks[lacks.len() - 3..], ["version 7: parse", repository, "status"], "{lacks:?}");
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    let told = told(&world);
    assert!(told.iter().any(|step| step == "version 7: parse: nothing fits 7"), "{told:?}");
    assert!(!told.iter().any(|step| step.starts_with("version 7: url")), "{told:?}");
    assert_eq!(
        told[told.len() - 4..],
        ["write 1.0: download", "write 1.0: load", "write 1.0: maps", "status"]
    );
}

#[test]
fn b20_each_step_of_a_version_may_be_the_one_at_which_it_fails() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(1_000);
    let steps = VersionStep::ALL.map(VersionStep::as_str);
    for (place, step) in VersionStep::ALL.into_iter().enumerate() {
        world.charts.unresolved = Some((step, "it is so"));
        let name = format!("mine-{place}");
        let spec = json!({"name": "alpha", "repository": "corp", "versions": ["1", "*"]});
        world.applies_chart("Chart", &name, spec);
        world.run_for(1_000);
        let object = format!("Chart {name}");
        let told = world.notices.iter().filter_map(|notice| match notice {
            Notice::ChartStepped { object: of, step } if *of == object => step.strip_prefix("version *: "),
            _ => None,
        });
        let told: Vec<&str> = told.collect();
        let mut expected: Vec<String> = steps[..=place].iter().map(|step| (*step).to_owned()).collect();
        expected[place].push_str(": it is so");
        assert_eq!(told, expected);
        assert!(world.charts.stored.is_empty(), "nothing is written");
        let said = world.condition("Chart", &name);
        assert_eq!(said, ("initChartFailed".to_owned(), "it is so".to_owned()), "once for both");
    }
    world.charts.unresolved = None;
    passes(&mut world, 100_000);
    assert_eq!(world.condition("Chart", "mine-4").0, "success");
    // What is kept is found when it is looked at again.
    world.annotates_chart("Chart", "mine-4", json!({"addon-operator.io/reprocess": "1"}));
    world.run_for(1_000);
    let is_found = |notice: &Notice| matches!(notice, Notice::ChartStepped { object, step } if object == "Chart mine-4" && step == "version *: values: they are kept");
    assert!(world.noticed(is_found) > 0);
}

#[test]
fn an_index_that_fails_is_left_alone_whoever_asks_for_another_chart_of_it() {
    let mut world = charted(&files());
    let spec = |charts: Value| json!({"name": "corp", "url": "https://dead", "charts": charts});
    world.applies_chart("Repository", "corp", spec(json!([])));
    passes(&mut world, 2_000);
    assert_eq!(world.charts.fetches, 1);
    for number in 0..10 {
        let chart = json!({"name": format!("alpha-{number}"), "repository": "corp", "versions": ["1"]});
        world.applies_chart("Chart", &format!("mine-{number}"), chart);
        passes(&mut world, 1_000);
    }
    assert_eq!(world.charts.fetches, 1);
    let (reason, message) = world.condition("Chart", "mine-9");
    assert_eq!(reason, "initChartFailed");
    assert!(message.contains("Repository corp: the index can't be fetched"), "{message}");
    passes(&mut world, 25_000);
    assert_eq!(world.charts.fetches, 2, "it is tried again when it is time");
    world.applies_chart("Repository", "corp", spec(json!([{"name": "alpha-0", "versions": ["1"]}])));
    passes(&mut world, 1_000);
    assert_eq!(world.charts.fetches, 3, "and when what it says is changed");
}

#[test]
fn b13_the_charts_of_a_circle_can_be_deleted_one_after_the_other() {
    let mut world = charted(&files());
    offers(&mut world, &[needs("mine", "xx"), needs("xx", "yy"), needs("yy", "xx")]);
    corp(&mut world, &json!([]));
    let spec = json!({"name": "mine", "repository": "corp", "versions": ["*"], "createDeps": true});
    world.applies_chart("Chart", "mine", spec);
    world.run_for(2_000);
    for name in ["xx-corp", "yy-corp"] {
        let (reason, message) = world.condition("Chart", name);
        assert!(reason == "createDepsFailed" && message.contains("in a circle"), "{name}: {message}");
    }
    for name in ["mine", "xx-corp", "yy-corp"] {
        world.deletes_chart("Chart", name);
        world.run_for(100);
    }
    passes(&mut world, 10_000);
    for name in ["mine", "xx-corp", "yy-corp"] {
        assert_eq!(world.chart_object("Chart", name), Value::Null, "{name}");
    }
}

#[test]
fn b13_a_circle_of_charts_heals_when_its_index_does() {
    let mut world = charted(&files());
    offers(&mut world, &[needs("xx", "yy"), needs("yy", "xx")]);
    corp(&mut world, &json!([{"name": "xx", "versions": ["*"]}]));
    world.run_for(2_000);
    assert_eq!(world.condition("Chart", "xx-corp").0, "createDepsFailed");
    world.deletes_chart("Chart", "yy-corp");
    let yy = offered("yy", "2.0", 4);
    offers(&mut world, &[needs("xx", "yy"), needs("yy", "xx"), yy]);
    passes(&mut world, 400_000);
    assert_eq!(world.condition("Chart", "yy-corp").0, "success");
    assert_eq!(world.condition("Chart", "xx-corp").0, "success");
}

#[test]
fn b12_a_dependency_whose_url_no_repository_has_says_so() {
    let mut world = charted(&files());
    let needed = ("alpha".to_owned(), "https://me:word@elsewhere/charts".to_owned());
    offers(&mut world, &[Offered { needs: vec![needed], ..offered("beta", "1.0", 1) }]);
    corp(&mut world, &json!([]));
    let spec = json!({"name": "beta", "repository": "corp", "versions": ["*"], "createDeps": true});
    world.applies_chart("Chart", "mine", spec);
    world.run_for(2_000);
    let (reason, message) = world.condition("Chart", "mine");
    assert_eq!(reason, "createDepsFailed");
    let expected =
        ["alpha: no Repository has the URL https://", "elsewhere/charts, create one", "Chart alpha-corp"];
    assert!(expected.iter().all(|part| message.contains(part)) && !message.contains("word"), "{message}");
    // As soon as there is one, the chart comes from there.
    world
        .charts
        .repositories
        .insert("https://me:word@elsewhere/charts".to_owned(), vec![offered("alpha", "1.0", 2)]);
    let url = "https://me:word@elsewhere/charts";
    world.applies_chart("Repository", "other", json!({"name": "other", "url": url}));
    passes(&mut world, 60_000);
    assert_eq!(world.condition("Chart", "alpha-other").0, "success");
    assert_eq!(world.condition("Chart", "mine").0, "success");
    assert_eq!(world.chart_object("Chart", "alpha-corp"), Value::Null, "nobody needs it any more");
}

const ELSEWHERE: &str = "https://elsewhere/charts";

/// Returns a world in which `beta` of `corp` needs `alpha` of a URL that no Repository has, so that `corp` has to do.
fn standing_in() -> World {
    let mut world = charted(&files());
    let needed = |chart: &str| (chart.to_owned(), ELSEWHERE.to_owned());
    let beta = Offered { needs: vec![needed("alpha")], ..offered("beta", "1.0", 1) };
    offers(&mut world, &[beta, offered("alpha", "1.0", 3)]);
    world.charts.repositories.insert(ELSEWHERE.to_owned(), vec![offered("alpha", "1.0", 2)]);
    corp(&mut world, &json!([]));
    let spec = json!({"name": "beta", "repository": "corp", "versions": ["*"], "createDeps": true});
    world.applies_chart("Chart", "mine", spec);
    world.run_for(2_000);
    assert_eq!(world.condition("Chart", "mine").0, "success");
    let made = world.chart_object("Chart", "alpha-corp");
    assert_eq!(made["metadata"]["annotations"]["addon-operator.io/stands-in-for"], ELSEWHERE);
    world
}

#[test]
fn b12_what_stands_in_for_another_repository_stays_until_that_has_the_chart() {
    for restarts in [false, true] {
        let mut world = standing_in();
        let found = world.charts.repositories.remove(ELSEWHERE).unwrap();
        world.applies_chart("Repository", "other", json!({"name": "other", "url": ELSEWHERE}));
        passes(&mut world, 5_000);
        assert_eq!(world.condition("Chart", "alpha-other").0, "initChartFailed");
        assert_eq!(world.condition("Chart", "alpha-corp").0, "success", "it is all that there is");
        if restarts {
            world.restarts_charted();
        }
        world.charts.repositories.insert(ELSEWHERE.to_owned(), found);
        passes(&mut world, 100_000);
        assert_eq!(world.condition("Chart", "alpha-other").0, "success");
        assert_eq!(world.chart_object("Chart", "alpha-corp"), Value::Null);
        assert_eq!(world.condition("Chart", "mine").0, "success");
        let before = world.charts.writes.len();
        passes(&mut world, 100_000);
        assert_eq!(world.charts.writes.len(), before);
    }
}

#[test]
fn b12_what_stands_in_and_is_wanted_for_itself_stays() {
    type Want = fn(&mut World);
    let wants: [Want; 3] = [
        // A person keeps it.
        |world| {
            world.annotates_chart("Chart", "alpha-corp", json!({"addon-operator.io/stands-in-for": null}));
        },
        // Its own Repository lists it.
        |world| corp(world, &json!([{"name": "alpha", "versions": ["*"]}])),
        // Another chart needs it from there.
        |world| {
            let mut all = world.charts.repositories[URL].clone();
            all.push(needs("gamma", "alpha"));
            offers(world, &all);
            corp(world, &json!([]));
            world.annotates_chart("Repository", "corp", json!({"addon-operator.io/reprocess": "1"}));
            let spec = json!({"name": "gamma", "repository": "corp", "versions": ["*"], "createDeps": true});
            world.applies_chart("Chart", "gamma", spec);
        },
    ];
    for want in wants {
        let mut world = standing_in();
        want(&mut world);
        passes(&mut world, 5_000);
        world.applies_chart("Repository", "other", json!({"name": "other", "url": ELSEWHERE}));
        passes(&mut world, 100_000);
        assert_eq!(world.condition("Chart", "alpha-other").0, "success");
        assert_eq!(world.condition("Chart", "alpha-corp").0, "success");
        world.restarts_charted();
        passes(&mut world, 100_000);
        assert_eq!(world.condition("Chart", "alpha-corp").0, "success");
    }
}

#[test]
fn what_is_wrong_far_below_is_told_where_it_is_and_not_by_all_above_it() {
    const COUNT: usize = 30;
    let mut world = charted(&files());
    let name = |number: usize| format!("c{number:03}");
    let all: Vec<Offered> = (0..COUNT).map(|number| needs(&name(number), &name(number + 1))).collect();
    let last = offered(&name(COUNT), "1.0", 1);
    offers(&mut world, &[&all[..], &[last]].concat());
    world.charts.broken.insert(name(COUNT));
    corp(&mut world, &json!([{"name": "c000", "versions": ["*"]}]));
    passes(&mut world, 20_000);
    let message =
        |world: &World, number: usize| world.condition("Chart", &format!("{}-corp", name(number))).1;
    assert!(message(&world, COUNT - 1).contains("404"));
    for number in 0..COUNT - 1 {
        let below = name(number + 1);
        let expected = format!("{below}: Chart {below}-corp: charts that it needs are not synced");
        assert_eq!(message(&world, number), expected);
    }
    let statuses = world.charts.writes.iter().filter(|write| write.ends_with(" status")).count();
    assert!(statuses < COUNT * 6, "{statuses} writes of {COUNT} statuses");
    world.charts.broken.clear();
    passes(&mut world, 100_000);
    assert_eq!(world.condition("Chart", "c000-corp").0, "success");
}

#[test]
fn charts_that_need_many_others_are_worked_off_and_their_circle_is_found() {
    // Each needs the two behind it, so that there are more ways than could be gone one by one.
    const COUNT: usize = 40;
    let mut world = charted(&files());
    let name = |number: usize| format!("c{number:03}");
    let mut all: Vec<Offered> = (0..COUNT)
        .map(|number| {
            let behind = (number + 1..COUNT).take(2).map(|other| (name(other), URL.to_owned()));
            Offered {
                needs: behind.collect(),
                ..offered(&name(number), "1.0", u64::try_from(number).unwrap() + 1)
            }
        })
        .collect();
    offers(&mut world, &all);
    corp(&mut world, &json!([{"name": "c000", "versions": ["*"]}]));
    passes(&mut world, 100_000);
    for number in 0..COUNT {
        assert_eq!(world.condition("Chart", &format!("{}-corp", name(number))).0, "success", "{number}");
    }
    // The last one needs the first.
    let last = all.last_mut().unwrap();
    last.version = "2.0".to_owned();
    last.needs.push((name(0), URL.to_owned()));
    offers(&mut world, &all);
    world.annotates_chart("Repository", "corp", json!({"addon-operator.io/reprocess": "1"}));
    passes(&mut world, 400_000);
    let (reason, message) = world.condition("Chart", "c000-corp");
    assert!(reason == "createDepsFailed" && message.contains("in a circle: c000-corp → "), "{message}");
    assert!(message.contains("c039-corp → c000-corp"), "{message}");
}

#[test]
fn a_module_whose_chart_has_come_waits_for_its_turn_and_is_held_no_more() {
    // The module before it is being installed for a minute.
    let mut world = charted(&cache("1", false)).takes("release base", 60_000);
    corp(&mut world, &json!([]));
    passes(&mut world, 2_000);
    assert_eq!(phase(&world, "cache"), "held");
    let why = why_module(&world);
    assert!(why.contains("held until its chart is there: Chart module-cache: "), "{why}");
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
    passes(&mut world, 3_000);
    let why = why_module(&world);
    assert_eq!(phase(&world, "cache"), "starting", "{why}");
    assert!(why.contains("pinned") && !why.contains("held") && !why.contains("not synced"), "{why}");
    passes(&mut world, 60_000);
    assert_eq!(phase(&world, "cache"), "running");
}

#[test]
fn why_tells_which_charts_a_module_is_installed_with() {
    let mut world = charted(&needing("1", "catalog://corp"));
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    let why = why_module(&world);
    assert!(why.contains("needs chart") && why.contains("corp/alpha, 1: "), "{why}");
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["1"]}]));
    world.run_for(2_000);
    let why = why_module(&world);
    let pinned = format!("corp/alpha, 1: version 1.0, {}", digest(1));
    assert!(why.contains(&pinned), "{why}");
}

#[test]
fn an_archive_that_is_something_else_than_the_index_says_is_taken_and_told() {
    let mut world = charted(&files());
    world.charts.differs = Some("its Chart.yaml that it is beta 2.0".to_owned());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([{"name": "alpha", "versions": ["*"]}]));
    world.run_for(2_000);
    let told = ("success".to_owned(), "its Chart.yaml that it is beta 2.0".to_owned());
    assert_eq!(world.condition("Chart", "alpha-corp"), told);
    let is_event =
        |its: &&engine::Announcement| its.reason == "ChartSynced" && its.message.ends_with("beta 2.0");
    assert_eq!(world.announcements.iter().filter(is_event).count(), 1);
}

#[test]
fn names_of_an_index_that_can_not_be_used_are_told_once() {
    let mut world = charted(&files());
    world.charts.left_out = ["../x".to_owned()].into();
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    passes(&mut world, 2_000_000);
    let told = |world: &World| {
        let events = world.announcements.iter().filter(|its| its.reason == "ChartsLeftOut");
        events.map(|its| (its.warning, its.message.contains("\"../x\""))).collect::<Vec<_>>()
    };
    assert_eq!(told(&world), [(true, true)]);
    world.charts.left_out.insert("y z".to_owned());
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    passes(&mut world, 400_000);
    assert_eq!(told(&world).len(), 2);
    assert_eq!(world.condition("Repository", "corp").0, "install");
}

#[test]
fn of_a_long_error_of_a_version_that_was_given_up_the_beginning_is_kept() {
    let mut world = charted(&cache("1", true));
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    let error = "\u{fc}".repeat(2_000);
    let mut world = (0..3).fold(world, |world, _| world.release("cache", Err(&error)));
    world.run_for(400_000);
    let given_up = world.charts.pins["cache"].given_up.clone().unwrap();
    assert_eq!(given_up.error.chars().count(), 500);
    assert!(given_up.error.ends_with('\u{fc}'), "{}", given_up.error);
}

#[test]
fn what_fails_is_tried_again_after_30_seconds_growing_to_an_hour() {
    let mut world = charted(&files());
    world.applies_chart("Repository", "corp", json!({"name": "corp", "url": "https://dead"}));
    passes(&mut world, 20_000_000);
    let times = &world.charts.fetched_at;
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    assert_eq!(waits[..9], [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
    let writes = world.charts.writes.len();
    passes(&mut world, 20_000_000);
    assert_eq!(world.charts.writes.len(), writes, "nothing is written while the message is the same");
}

#[test]
fn work_on_charts_is_shown_in_as_many_queues_as_are_worked_on_at_a_time() {
    let mut world = charted(&files());
    for number in 0..8 {
        let spec = json!({"name": "alpha", "repository": "corp", "versions": ["1"]});
        world.applies_chart("Chart", &format!("mine-{number}"), spec);
    }
    world.run_for(2_000);
    let names = ["chart-1", "chart-2"];
    let lengths = names.map(|name| world.queue(name).len());
    assert!(lengths.iter().all(|length| *length > 0) && lengths.iter().sum::<usize>() >= 8, "{lengths:?}");
    let told = |name: &str| {
        let mut lengths = world.notices.iter().filter_map(|notice| match notice {
            Notice::QueueChanged { queue, length } if queue.as_str() == name => Some(*length),
            _ => None,
        });
        lengths.next_back()
    };
    assert_eq!(names.map(told), lengths.map(Some));
    assert!(world.queue(names[0]).iter().all(|task| task.contains("ChartReconcile:chart-1:Chart mine-")));
}

#[test]
fn a_version_that_the_index_lost_is_kept_and_what_is_lower_is_not_called_newer() {
    let mut world = charted(&cache("1", false));
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    corp(&mut world, &json!([]));
    world.run_for(3_000);
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    world.annotates_chart("Repository", "corp", json!({"addon-operator.io/reprocess": "1"}));
    world.run_for(3_000);
    let why = why_module(&world);
    assert!(why.contains("no newer version: 1.0 fits, and the module stays with 1.1"), "{why}");
    assert!(!why.contains("chart plan"), "{why}");
    assert!(!world.view().charts.modules[0].is_outdated());
    // Somebody removes it, and it can't be had any more. Its release is left alone, and people are told.
    world.loses_version("alpha", "1.1", false);
    passes(&mut world, 3_000);
    let why = why_module(&world);
    assert_eq!(phase(&world, "cache"), "running");
    assert!(why.contains("the package of version 1.1 is lost") && why.contains("nothing fits 1.1"), "{why}");
}

#[test]
fn the_work_on_what_is_gone_waits_in_no_queue() {
    let mut world = charted(&files());
    let spec = json!({"name": "alpha", "repository": "corp", "versions": ["1"]});
    world.applies_chart("Chart", "mine", spec);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    let length =
        |world: &World| ["chart-1", "chart-2"].map(|name| world.queue(name).len()).iter().sum::<usize>();
    assert_eq!(length(&world), 2, "both are tried again");
    world.deletes_chart("Chart", "mine");
    world.deletes_chart("Repository", "corp");
    world.run_for(2_000);
    assert_eq!(length(&world), 0);
}

#[test]
fn a_chart_that_is_listed_twice_has_the_versions_of_both_entries() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "2.0", 2)]);
    let twice =
        [json!({"name": "alpha", "versions": ["1"]}), json!({"name": "alpha", "versions": ["2", "1"]})];
    corp(&mut world, &json!(twice));
    world.run_for(2_000);
    assert_eq!(world.chart_object("Chart", "alpha-corp")["spec"]["versions"], json!(["1", "2"]));
    assert_eq!(world.condition("Chart", "alpha-corp").0, "success");
    let before = world.charts.writes.len();
    assert!(before < 10, "{:?}", world.charts.writes);
    world.run_for(60_000);
    assert_eq!(world.charts.writes.len(), before);
}

#[test]
fn a_group_with_two_repositories_of_one_name_is_refused_and_changes_nothing() {
    let hashed = objects::legal::object("Corp");
    for (first, second) in [("corp", "corp"), ("Corp", hashed.as_str())] {
        let mut world = charted(&files());
        let repos = json!([{"name": first, "url": URL}, {"name": second, "url": "https://other"}]);
        world.applies_chart("RepoGroup", "group", json!({"labelSelector": "g", "repos": repos}));
        world.run_for(2_000);
        let (reason, message) = world.condition("RepoGroup", "group");
        assert_eq!(reason, "createRepositoriesFailed");
        let named = [format!("spec.repos[0].name {first:?}"), format!("spec.repos[1].name {second:?}")];
        assert!(named.iter().all(|name| message.contains(name.as_str())), "{message}");
        assert_eq!(world.charts.writes, ["RepoGroup group status"]);
        world.run_for(60_000);
        assert_eq!(world.charts.writes.len(), 1);
    }
}

#[test]
fn what_a_group_does_not_say_any_more_of_a_repository_goes_also_inside_of_a_field() {
    let mut world = charted(&files());
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    let with =
        |sync: Value| json!({"labelSelector": "g", "repos": [{"name": "corp", "url": URL, "sync": sync}]});
    world.applies_chart("RepoGroup", "group", with(json!({"enabled": true, "interval": "1h"})));
    world.run_for(2_000);
    assert_eq!(world.chart_object("Repository", "corp")["spec"]["sync"]["interval"], "1h");
    world.applies_chart("RepoGroup", "group", with(json!({"enabled": true})));
    world.run_for(2_000);
    assert_eq!(world.chart_object("Repository", "corp")["spec"]["sync"], json!({"enabled": true}));
    assert_eq!(world.condition("RepoGroup", "group").0, "install");
    let before = world.charts.writes.len();
    world.run_for(10_000);
    assert_eq!(world.charts.writes.len(), before);
}

#[test]
fn a_version_that_was_too_new_is_taken_when_it_is_old_enough() {
    let files = cache("1", true).with(|module| {
        let named = module.chart.as_deref().unwrap().clone();
        module.chart = Some(Arc::new(ChartReference { min_age: Duration::from_hours(72), ..named }));
    });
    let mut world = charted(&files);
    world.charts.published = [("1.0", "1969-12-01T00:00:00Z"), ("1.1", "1969-12-31T00:00:00Z")]
        .map(|(v, at)| (v.to_owned(), at.to_owned()))
        .into();
    offers(&mut world, &[offered("alpha", "1.0", 1), offered("alpha", "1.1", 2)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");
    // 72 hours after it was published: two days after the start.
    passes(&mut world, 2 * 86_400_000 - 60_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.0");
    let steps =
        world.noticed(|notice| matches!(notice, Notice::ChartStepped { step, .. } if step == "index"));
    passes(&mut world, 120_000);
    assert_eq!(&*world.charts.pins["cache"].package.version, "1.1");
    assert_eq!(phase(&world, "cache"), "running");
    let again =
        world.noticed(|notice| matches!(notice, Notice::ChartStepped { step, .. } if step == "index"));
    assert_eq!(again - steps, 1, "it is looked at when it is time, and not before");
}

#[test]
fn versions_of_two_charts_that_need_each_other_are_a_circle_only_if_they_go_round() {
    let version = |chart: &str, version: &str, digest, needs: &str| {
        let needs = Some(needs).filter(|needs| !needs.is_empty());
        let needs = needs.map(|needs| (needs.to_owned(), URL.to_owned())).into_iter().collect();
        Offered { needs, ..offered(chart, version, digest) }
    };
    for (last, reason) in [("", "success"), ("yy 1", "createDepsFailed")] {
        let mut world = charted(&files());
        let all = [
            version("xx", "1.0.0", 1, last),
            version("xx", "2.0.0", 2, "yy 1"),
            version("yy", "1.0.0", 3, "xx 1"),
        ];
        offers(&mut world, &all);
        corp(&mut world, &json!([{"name": "xx", "versions": ["2"]}]));
        world.run_for(200_000);
        for chart in ["xx-corp", "yy-corp"] {
            let (said, message) = world.condition("Chart", chart);
            assert_eq!(said, reason, "{chart}: {message}");
        }
        let before = world.charts.writes.len();
        world.run_for(4_000_000);
        assert_eq!(world.charts.writes.len(), before);
    }
}

#[test]
fn a_chart_that_is_wanted_after_a_restart_has_its_index_fetched_also_without_sync() {
    for versions in [json!(["1"]), json!([])] {
        let mut world = charted(&files());
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("beta", "1.0", 2)]);
        let listed = json!([{"name": "beta", "versions": ["1"]}]);
        let spec = json!({"name": "corp", "url": URL, "sync": {"enabled": false}, "charts": listed});
        world.applies_chart("Repository", "corp", spec);
        world.run_for(2_000);
        world.restarts_charted();
        world.run_for(60_000);
        assert_eq!(world.charts.fetches, 1, "nothing is lacking");
        let spec = json!({"name": "alpha", "repository": "corp", "versions": versions});
        world.applies_chart("Chart", "mine", spec);
        world.run_for(2_000);
        assert_eq!((world.condition("Chart", "mine").0.as_str(), world.charts.fetches), ("success", 2));
        world.run_for(4_000_000);
        assert_eq!(world.charts.fetches, 2);
    }
}

#[test]
fn that_an_index_is_truncated_is_still_said_after_a_restart_which_writes_nothing() {
    let mut world = charted(&files());
    world.charts.truncated = Some(700);
    offers(&mut world, &[offered("alpha", "1.0", 1)]);
    corp(&mut world, &json!([]));
    world.run_for(2_000);
    let conditions = |world: &World| world.chart_object("Repository", "corp")["status"]["conditions"].clone();
    let before = (conditions(&world), world.charts.writes.len());
    assert_eq!(before.0[1]["type"], "IndexTruncated");
    assert_eq!(world.chart_object("Repository", "corp")["status"]["offered"], 700);
    world.restarts_charted();
    world.run_for(400_000);
    assert_eq!(world.charts.conditional, 2);
    assert_eq!((conditions(&world), world.charts.writes.len()), before);
}

#[test]
fn a_list_of_versions_that_somebody_removed_is_there_again_though_nobody_has_a_chart_of_it() {
    for is_away in [false, true] {
        let mut world = charted(&files());
        offers(&mut world, &[offered("alpha", "1.0", 1), offered("beta", "1.0", 2)]);
        corp(&mut world, &json!([]));
        world.run_for(2_000);
        assert_eq!(world.chart_object("Repository", "corp")["status"]["kept"], 2);
        world.charts.indexes.get_mut("corp").unwrap().retain(|its| its.chart != "beta");
        if is_away {
            world.restarts_charted();
        } else {
            let beta = ChartConfigMap {
                repository: "corp".into(),
                chart: "beta".into(),
                version: None,
                digest: None,
            };
            world.send_in(0, Event::ChartMapsLost { maps: vec![beta] });
        }
        world.run_for(2_000);
        assert_eq!(world.charts.indexes["corp"].len(), 2, "away: {is_away}");
        let before = (world.charts.writes.len(), world.charts.fetches);
        world.restarts_charted();
        world.run_for(2_000);
        assert_eq!((world.charts.writes.len(), world.charts.fetches), (before.0, before.1 + 1));
        assert!(world.charts.conditional > 0, "it is known how many there were");
    }
}

#[test]
fn a_chart_that_is_applied_with_its_repository_is_not_said_to_fail_first() {
    for (waits, chart_first) in [(0, true), (0, false), (3, false), (15, false)] {
        let mut world = charted(&files());
        offers(&mut world, &[offered("alpha", "1.0", 1)]);
        world.run_for(100);
        let spec = json!({"name": "alpha", "repository": "corp", "versions": ["1"]});
        if chart_first {
            world.applies_chart("Chart", "mine", spec.clone());
        }
        corp(&mut world, &json!([]));
        world.run_for(waits);
        world.applies_chart("Chart", "mine", spec);
        world.run_for(2_000);
        assert_eq!(world.condition("Chart", "mine").0, "success");
        let told = world.announcements.iter().filter(|told| told.message.contains("Chart mine"));
        assert_eq!(told.map(|told| told.reason).collect::<Vec<_>>(), ["ChartSynced"], "{waits}");
    }
}
