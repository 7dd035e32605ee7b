//! Plans of chart bundles: which one a section picks, and what becomes of the credentials of its release.

use std::sync::Arc;

use engine::{Failure, FailureKind, Plans, ValuesLayout};
use serde_json::json;
use values::preset::{Preset, Presets};

use crate::build::{Files, config, files, reread};
use crate::world::World;

const SCHEMA: &str = r#"{"type": "object", "properties": {"size": {"type": "integer"}}}"#;

/// Returns a plan with this size.
pub(crate) fn plan(name: &str, size: i64) -> Preset {
    Preset {
        name: name.into(),
        values: Arc::new(json!({"size": size, "kind": name})),
        schema: Some(SCHEMA.as_bytes().into()),
    }
}

impl Files {
    /// Gives the last module these plans, and credentials to those that are named.
    fn plans(self, presets: Vec<Preset>, with_credentials: &[&str]) -> Self {
        let template = |name: &&str| ((*name).into(), format!("plans/{name}/bind.yaml").into());
        let credentials = with_credentials.iter().map(template).collect();
        self.with(|module| {
            module.layout = ValuesLayout::Root;
            module.plans = Plans { presets: Arc::new(Presets::new(presets)), credentials, offer: None };
        })
    }
}

pub(crate) fn tour() {
    World::new(&db()).configured(&[("db", "plan: big")]).run();
}

/// A module `db` with the plans micro, without credentials, and big, with some.
fn db() -> Files {
    files().module(10, "db").plans(vec![plan("big", 9), plan("micro", 1)], &["big"])
}

/// Returns the lines of a trace that are about the release of a module or about credentials, without numbers of runs.
fn of_release(trace: &str) -> Vec<String> {
    let is_of_release = |line: &&str| line.contains("upgrade") || line.contains("credentials");
    let what = |line: &str| {
        let said = line.split_once("     ").or(line.split_once(" > ")).unwrap().1;
        let words = said.split(' ').filter(|word| !word.starts_with('#'));
        words.collect::<Vec<_>>().join(" ")
    };
    trace.lines().filter(is_of_release).map(what).collect()
}

fn phase(world: &World) -> (String, String) {
    let view = world.view();
    let module = view.modules.iter().find(|module| module.name.as_str() == "db").unwrap();
    let error = module.last_error.as_ref().map(ToString::to_string).unwrap_or_default();
    (module.phase.to_owned(), error)
}

#[test]
fn a30_a_plan_is_picked_changed_and_given_up() {
    let mut world = World::new(&db()).configured(&[("db", "plan: big\nextra: {a: 1}")]).showing_values();
    assert_eq!(
        of_release(&world.run()),
        [
            r#"upgrade db {} {"extra":{"a":1},"kind":"big","size":9}"#,
            "write credentials of db revision 1 from plans/big/bind.yaml",
            "credentials ok",
        ]
    );
    assert_eq!(phase(&world), ("running".to_owned(), String::new()));
    // Another plan is other values: an upgrade. It has no credentials, so those of the first go, once.
    let trace = world.after(10, config(200, &[("db", "plan: micro")]));
    assert_eq!(
        of_release(&trace),
        [r#"upgrade db {} {"kind":"micro","size":1}"#, "remove credentials of db", "credentials ok"]
    );
    assert!(world.credentials.is_empty());
    let trace = world.after(10, config(201, &[("db", "plan: micro\nsize: 2")]));
    assert_eq!(of_release(&trace), [r#"upgrade db {} {"kind":"micro","size":2}"#]);
}

#[test]
fn a30_what_breaks_the_schema_or_names_no_plan_leaves_the_release_untouched() {
    let mut world = World::new(&db()).configured(&[("db", "plan: big")]).settled();
    for (version, text, problem) in [
        (
            200,
            "plan: big\nsize: hunter2hunter2",
            "ConfigMap key db: config values are not valid: 1 error occurred:\n\t* plan big: at '/size': got string, want integer\n\n",
        ),
        (
            201,
            "plan: bug",
            "ConfigMap key db: there is no plan \"bug\", did you mean big?; plans are: big, micro",
        ),
        (202, "size: 3", "ConfigMap key db: no plan is picked; set plan to one of: big, micro"),
        (
            203,
            "plan: [big]",
            "ConfigMap key db: plan should be the name of a plan, and is a list; plans are: big, micro",
        ),
    ] {
        let trace = world.after(10, config(version, &[("db", text)]));
        assert_eq!(of_release(&trace), [""; 0], "{text}");
        let problems = world.view().config_problems;
        assert_eq!(problems[0].failure.message, problem);
        assert_eq!(phase(&world).0, "running");
    }
    // The section is gone: that picks no plan either.
    assert_eq!(of_release(&world.after(10, config(204, &[]))), [""; 0]);
    assert!(world.view().config_problems[0].failure.message.contains("no plan is picked"));
    let trace = world.after(10, config(205, &[("db", "plan: big\nsize: 3")]));
    assert_eq!(of_release(&trace).len(), 3, "{trace}");
    assert!(world.view().config_problems.is_empty());
}

#[test]
fn a30_a_module_without_a_plan_does_not_run_until_one_is_picked() {
    let mut world = World::new(&db());
    let trace = world.run_for(20_000);
    assert_eq!(of_release(&trace), [""; 0]);
    let (state, error) = phase(&world);
    assert_eq!(
        (state.as_str(), error.as_str()),
        ("failed", "ConfigMap key db: no plan is picked; set plan to one of: big, micro")
    );
    let trace = world.after(10, config(200, &[("db", "plan: micro")]));
    assert!(trace.contains("upgrade db"), "{trace}");
    assert_eq!(phase(&world), ("running".to_owned(), String::new()));
    // A schema can ask for something, and nothing is configured.
    let schema = Some(br#"{"required": ["size"]}"#.as_slice().into());
    let files = files().module(10, "db").plans(vec![Preset { schema, ..plan("only", 1) }], &[]);
    let mut world = World::new(&files);
    assert_eq!(of_release(&world.run_for(20_000)), [""; 0]);
    assert!(phase(&world).1.contains("missing property 'size'"), "{:?}", phase(&world));
}

#[test]
fn the_only_plan_need_not_be_named() {
    let files = files().module(10, "db").plans(vec![plan("only", 4)], &["only"]);
    let mut world = World::new(&files).showing_values();
    let trace = world.run();
    assert_eq!(of_release(&trace)[0], r#"upgrade db {} {"kind":"only","size":4}"#);
    assert_eq!(world.credentials["db"], "plans/only/bind.yaml");
}

#[test]
fn credentials_that_can_not_be_written_fail_the_run_and_not_the_release() {
    let mut world = World::new(&db()).configured(&[("db", "plan: big")]);
    world.crediting.push_back(Err(Failure::new(FailureKind::Cluster, "there is no Secret db-root")));
    let trace = world.run_for(4_000);
    assert!(trace.contains(": there is no Secret db-root"), "{trace}");
    let (state, error) = phase(&world);
    assert_eq!(state, "failed");
    assert_eq!(
        error,
        "the release is deployed, but its credentials are not in Secret db-binding: there is no Secret db-root"
    );
    let view = world.view();
    assert_eq!(view.modules[0].revision, Some(1), "the release is there");
    // It is tried again by itself, and the release is as it was.
    let trace = world.run();
    assert!(
        trace.contains(" Unchanged") && of_release(&trace).contains(&"credentials ok".to_owned()),
        "{trace}"
    );
    assert_eq!(phase(&world), ("running".to_owned(), String::new()));
}

#[test]
fn a_new_version_of_the_bundle_can_take_a_plan_away() {
    let mut world = World::new(&db()).configured(&[("db", "plan: micro")]).settled();
    let without =
        files().module(10, "db").plans(vec![plan("big", 9)], &["big"]).with(|module| module.content = 2);
    world.send_in(10, reread(&without));
    let trace = world.run_for(20_000);
    assert_eq!(of_release(&trace), [""; 0]);
    assert!(phase(&world).1.contains("there is no plan \"micro\""), "{:?}", phase(&world));
    let trace = world.after(10, config(200, &[("db", "")]));
    assert!(of_release(&trace).contains(&"credentials ok".to_owned()), "{trace}");
}

#[test]
fn a_module_in_maintenance_writes_no_credentials_and_one_that_is_off_has_none() {
    let pairs = [("db", "plan: big"), ("dbMaintenance", "NoResourceReconciliation")];
    let planned = Ok(engine::ReleaseAction::Unmanaged);
    let mut world = World::new(&db()).configured(&pairs).release("db", planned);
    assert!(!world.run().contains("write credentials"));
    let mut world = World::new(&db()).configured(&[("db", "plan: big")]).settled();
    assert_eq!(world.credentials.len(), 1);
    world.after(10, config(200, &[("db", "plan: big"), ("dbEnabled", "false")]));
    assert_eq!(world.credentials.len(), 0);
}
