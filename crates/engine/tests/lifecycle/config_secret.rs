//! The Secret over the ConfigMap: what it says counts, what hooks change goes back to where it came from.

use engine::{Command, CommandId, ConfigObject, Event, Failure, FailureKind};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::build::{Files, TICK, config, configures, cron, files, secret};
use crate::world::{World, failure};

fn web() -> Files {
    files().module(10, "web").hook("tick.sh", TICK)
}

/// A module whose hook writes `value` at `path` of its configuration with the next tick.
fn writing(plain: &[(&str, &str)], secret: &[(&str, &str)], path: &str, value: &Value) -> (World, String) {
    let mut world = World::new(&web())
        .configured_with(plain, Some(secret))
        .settled()
        .showing_values()
        .hook("web/tick.sh", Ok(configures(path, value)));
    let trace = world.after(100, cron("* * * * *"));
    (world, trace)
}

fn saves(trace: &str) -> Vec<&str> {
    trace.lines().filter_map(|line| line.split_once("save ")).map(|(_, save)| save).collect()
}

fn values(world: &World) -> Value {
    (*world.engine.inspect().modules["web"].values).clone()
}

#[test]
fn what_the_secret_says_lies_over_the_config_map() {
    let plain = [("web", "db: {host: h, password: default}\nsize: 1"), ("webEnabled", "true")];
    let over = [("web", "db: {password: hunter22}"), ("webEnabled", "false")];
    let mut world = World::new(&web()).configured_with(&plain, Some(&over)).settled();
    assert_eq!(values(&world), json!({"db": {"host": "h", "password": "hunter22"}, "size": 1}));
    assert_eq!(
        world.told(|view, _| view.modules[0].why.clone()),
        "modules/values.yaml says true, then Secret key webEnabled says false"
    );
    let why = |world: &World| {
        world.told(|view, format| engine::view::why::module(view, "web", format).unwrap().text())
    };
    let source = "what Secret ops/addon-operator key web says lies over ConfigMap ops/addon-operator key web";
    assert!(why(&world).contains(source) && !why(&world).contains("hunter"), "{}", why(&world));
    // Each is read by itself, and what is gone uncovers what it lay over.
    let trace = world.after(100, secret(101, &[("web", "db: {password: hunter33}")]));
    assert!(trace.contains("run hook") || trace.contains("upgrade web"), "{trace}");
    assert_eq!(values(&world), json!({"db": {"host": "h", "password": "hunter33"}, "size": 1}));
    world.after(100, config(102, &[("web", "size: 2")]));
    assert_eq!(values(&world), json!({"db": {"password": "hunter33"}, "size": 2}));
    world.after(100, secret(103, &[]));
    assert_eq!(values(&world), json!({"size": 2}));
    assert!(!why(&world).contains("lies over"), "{}", why(&world));
}

#[test]
fn what_a_hook_changes_goes_to_the_object_it_comes_from() {
    let (world, trace) =
        writing(&[("web", "size: 1")], &[("web", "password: hunter22")], "/web/size", &json!(2));
    assert_eq!(saves(&trace), ["web #4 \"size: 2\\n\""]);
    assert_eq!(values(&world), json!({"password": "hunter22", "size": 2}));
    let (world, trace) =
        writing(&[("web", "size: 1")], &[("web", "password: hunter22")], "/web/password", &json!("hunter33"));
    assert_eq!(saves(&trace), ["web in the Secret #4 \"password: hunter33\\n\""]);
    assert_eq!(values(&world), json!({"password": "hunter33", "size": 1}));
    // It is no change by somebody else when it comes back, and what comes then counts.
    assert_eq!(trace.matches("run hook").count(), 1, "{trace}");
}

#[test]
fn a_change_of_both_objects_is_written_one_after_the_other() {
    let over = [("web", "db: {password: hunter22}")];
    let value = json!({"db": {"password": "hunter33", "user": "u"}, "size": 3});
    let (world, trace) = writing(&[("web", "size: 1")], &over, "/web", &value);
    let both =
        ["web in the Secret #4 \"db:\\n    password: hunter33\\n    user: u\\n\"", "web #5 \"size: 3\\n\""];
    assert_eq!(saves(&trace), both);
    assert_eq!(values(&world), value);
}

#[test]
fn a_failed_second_write_is_tried_again_with_the_hook() {
    let wanted = || Ok(configures("/web", &json!({"password": "hunter33", "size": 2})));
    let mut world = World::new(&web())
        .configured_with(&[("web", "size: 1")], Some(&[("web", "password: hunter22")]))
        .settled()
        .saving(Ok(()))
        .saving(Err("403"))
        .hook("web/tick.sh", wanted())
        .hook("web/tick.sh", wanted());
    let trace = world.after(100, cron("* * * * *"));
    let secrets = saves(&trace).into_iter().filter(|save| save.contains("in the Secret")).count();
    assert_eq!((saves(&trace).len(), secrets), (4, 2), "{trace}");
    assert_eq!(values(&world), json!({"password": "hunter33", "size": 2}));
}

#[test]
fn a_secret_that_takes_no_change_leaves_the_config_map_as_it_is() {
    let mut world = World::new(&web())
        .configured_with(&[("web", "size: 1")], Some(&[("web", "password: hunter22")]))
        .settled()
        .saving(Err("Secret \"addon-operator\" is invalid: data: Forbidden: field is immutable when `immutable` is set"))
        .hook("web/tick.sh", Ok(configures("/web", &json!({"password": "hunter33", "size": 2}))));
    world.send_in(100, cron("* * * * *"));
    let trace = world.run_for(2_000);
    let written = saves(&trace);
    assert!(written.len() == 1 && written[0].starts_with("web in the Secret "), "{trace}");
    assert_eq!(values(&world), json!({"password": "hunter22", "size": 1}));
    let why = world.told(|view, format| engine::view::why::module(view, "web", format).unwrap().text());
    assert!(!why.contains("RBAC") && !why.contains("was written before"), "{why}");
}

#[test]
fn a_key_of_the_secret_that_is_no_yaml_keeps_what_it_said_and_is_told_without_its_text() {
    let good = [("web", "password: hunter22")];
    let mut world = World::new(&web()).configured_with(&[], Some(&good)).settled();
    world.after(100, secret(101, &[("web", "password: [hunter33")]));
    assert_eq!(values(&world), json!({"password": "hunter22"}));
    let told = world.told(engine::view::status::text);
    assert!(told.contains("Secret ops/addon-operator") && told.contains("bad yaml"), "{told}");
    // The other object goes on, over the last good text.
    world.after(100, config(102, &[("web", "size: 2")]));
    assert_eq!(values(&world), json!({"password": "hunter22", "size": 2}));
    world.after(100, secret(103, &[("web", "password: hunter44")]));
    assert_eq!(values(&world), json!({"password": "hunter44", "size": 2}));
    let told = world.told(engine::view::status::text);
    assert!(!told.contains("bad yaml"), "{told}");
}

#[test]
fn a_module_whose_secret_never_was_good_waits() {
    let mut world =
        World::new(&web()).configured_with(&[("web", "size: 1")], Some(&[("web", "password: [")]));
    let trace = world.run_until(7_000);
    assert!(!trace.contains("upgrade web"), "{trace}");
    let trace = world.after(100, secret(101, &[("web", "password: hunter22")]));
    assert!(trace.contains("upgrade web"), "{trace}");
}

#[test]
fn what_only_fails_together_heals_from_either_side() {
    let schema = "type: object\nproperties: {a: {type: integer}, b: {type: integer}}\nmaxProperties: 1";
    let files = files().module(10, "web").schema(schema, None);
    let mut world = World::new(&files).configured_with(&[("web", "a: 1")], Some(&[])).settled();
    world.after(100, secret(101, &[("web", "b: 2")]));
    assert_eq!(values(&world), json!({"a": 1}));
    world.after(100, config(102, &[]));
    assert_eq!(values(&world), json!({"b": 2}));
    assert!(world.told(|view, _| view.config_problems.is_empty()));
}

#[test]
fn a_command_writes_the_flag_that_counts() {
    let command = |world: &mut World| {
        let enable = Command::SetEnabled("web".into(), false);
        world.after(100, Event::Commanded { id: CommandId::new(1), command: enable })
    };
    let mut world = World::new(&web()).configured_with(&[], Some(&[("webEnabled", "true")])).settled();
    assert_snapshot!(saves(&command(&mut world)).join("\n"), @r#"webEnabled in the Secret #3 "false""#);
    let mut world = World::new(&web()).configured_with(&[("webEnabled", "true")], Some(&[])).settled();
    assert_snapshot!(saves(&command(&mut world)).join("\n"), @r#"webEnabled #3 "false""#);
}

#[test]
fn a_secret_that_may_not_be_read_is_told_and_hinders_nothing() {
    let mut world = World::new(&web());
    let failure = Failure::new(FailureKind::Forbidden, "may not read");
    let trace = world.after(0, Event::ConfigRejected { object: ConfigObject::Secret, failure });
    assert!(trace.contains("upgrade web"), "{trace}");
    let told = world.told(engine::view::status::text);
    assert!(told.contains("Secret ops/addon-operator"), "{told}");
}

#[test]
fn slip_03_failures_of_before_do_not_show_what_the_secret_said_then() {
    let mut world = World::new(&web())
        .configured_with(&[], Some(&[("web", "password: hunter22")]))
        .settled()
        .hook("web/tick.sh", Err(failure("login hunter22 failed")));
    world.after(100, cron("* * * * *"));
    // The value is another one, then there is no Secret.
    let edits = [secret(101, &[("web", "password: hunter33")]), secret(102, &[])];
    for event in edits {
        world.after(100, event);
        let shown = world.told(|view, _| {
            let failures = view.journal.iter().filter_map(|end| end.failure.as_ref());
            failures.map(|failure| view.secrets.hide(&failure.to_string()).into_owned()).collect::<Vec<_>>()
        });
        assert!(shown.iter().any(|text| text.contains("login ******")), "{shown:?}");
        assert!(!shown.iter().any(|text| text.contains("hunter")), "{shown:?}");
    }
}
