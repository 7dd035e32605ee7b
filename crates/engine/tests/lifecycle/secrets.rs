//! Values in what everybody may read: whatever a hook prints, however long it is, and whatever changes meanwhile.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use engine::hook::log::LineLog;
use engine::view::{Format, Secrets, View, journal, status, why};
use engine::{BrokenPart, Event, Failure, FailureKind, Notice};
use serde_json::{Value, json};

use crate::build::{Files, config, configures, files, reread, sets};
use crate::random::Random;
use crate::world::World;

const OLD: &str = "old-secret-7f3a";
const NEW: &str = "new-secret-91c2";

fn web() -> Files {
    files()
        .module(10, "web")
        .hook("hooks/a.sh", "{beforeHelm: 1}")
        .values(json!({"password": "from-the-file"}))
}

fn quoting(secret: &str) -> Failure {
    let failure = Failure::new(FailureKind::HookExit, format!("exit status 1: login {secret} failed"));
    failure.advise(format!("try {secret}"))
}

/// Returns all that everybody may read of a picture, with what is in force by now masked as the port does.
fn public(world: &World) -> String {
    let view = world.view().for_everybody();
    let inspection = world.engine.inspect();
    let sections = inspection.modules.values().flat_map(|scope| [&*scope.values, &*scope.config]);
    let secrets = Secrets::of(&sections.collect::<Vec<_>>());
    let show = |text: &str| secrets.hide(text).into_owned();
    let format = Format { show: &show, at: &|_| String::new() };
    let why = |view: &View| {
        let answers = [why::module(view, "web", format), why::queue(view, "main", format)];
        answers.map(|answer| answer.map(|answer| answer.data().to_string()).unwrap_or_default()).concat()
    };
    [
        status::text(&view, format),
        status::data(&view, format).to_string(),
        journal::text(&view, 0, format),
        why(&view),
        format!("{view:?}"),
        format!("{:?}", world.announcements),
        format!("{:?}", world.notices),
    ]
    .concat()
}

#[test]
fn slip_03_after_a_rotation_old_failures_show_no_old_value() {
    let world = World::new(&web())
        .configured(&[("web", &format!("password: {OLD}"))])
        .hook("web/hooks/a.sh", Err(quoting(OLD)))
        .lived(2_000);
    let mut world = world.at(0, config(101, &[("web", &format!("password: {NEW}"))]));
    world.run();
    let shown = public(&world);
    assert!(shown.contains("login ****** failed"), "{shown}");
    assert!(!shown.contains(OLD), "{shown}");
    // The owner of the socket sees what happened.
    assert!(format!("{:?}", world.view().journal).contains(OLD));
}

#[test]
fn slip_03_broken_files_show_no_value_that_was_one_when_they_broke() {
    let web = web().global_hook("g.sh", "onStartup: 1");
    let mut broken = web.clone();
    broken.modules[0].content = 2;
    broken.modules[0].broken = Some(quoting(OLD));
    broken.global.hooks.clear();
    broken.global.broken = vec![BrokenPart { hook: Some("g.sh".into()), failure: quoting(OLD) }];
    let mut world = World::new(&web).configured(&[("web", &format!("password: {OLD}"))]).settled();
    for event in [
        reread(&broken),
        Event::CatalogRejected { failure: quoting(OLD) },
        config(101, &[("web", &format!("password: {NEW}"))]),
        reread(&broken),
    ] {
        world.after(100, event);
        let shown = public(&world);
        assert!(!shown.contains(OLD), "{shown}");
    }
    let view = world.view();
    assert!(view.file_problems[0].message.contains(OLD), "the owner of the socket sees what happened");
    assert!(view.modules[0].broken_version.as_ref().unwrap().message.contains(OLD));
    let told = |notice: &Notice| matches!(notice, Notice::Warned { message, .. } if message.contains("the new version of"));
    assert_eq!(world.noticed(told), 2, "each of them is told once");
}

#[test]
fn slip_03_a_failure_quotes_nothing_that_its_process_could_read() {
    let mut world = World::new(&web())
        .configured(&[("web", &format!("password: {OLD}"))])
        .hook("web/hooks/a.sh", Err(quoting(OLD)))
        .takes("web/hooks/a.sh", 1_000)
        .at(500, config(101, &[("web", &format!("password: {NEW}"))]));
    world.run_until(1_800);
    let shown = public(&world);
    assert!(shown.contains("login ****** failed") && !shown.contains(OLD), "{shown}");
}

#[test]
fn slip_03_a_failure_quotes_nothing_that_its_hook_wanted_to_set() {
    let wants = [configures("/web/password", &json!(NEW)), sets("/web/password", &json!(NEW))];
    for mut output in wants {
        let mut world = World::new(&web());
        if output.config_patch.operations().is_empty() {
            output.failed = Some(quoting(NEW));
        } else {
            world = world.saving(Err(&format!("invalid: {NEW}")));
        }
        let world = world.hook("web/hooks/a.sh", Ok(output)).lived(2_000);
        let shown = public(&world);
        assert!(shown.contains("******") && !shown.contains(NEW), "{shown}");
    }
}

#[test]
fn slip_03_a_key_of_the_config_map_that_can_not_be_used_is_not_quoted() {
    let web = web().schema("{type: object, properties: {password: {enum: [other]}}}", None);
    for text in [
        format!("password: {NEW}"),
        NEW.to_owned(),
        format!("- {NEW}"),
        format!("password: [\"{NEW}\""),
        format!("password: *{NEW}"),
        format!("password: !!int {NEW}"),
        format!("password: !{NEW}%zz"),
    ] {
        let mut world = World::new(&web).at(100, config(101, &[("web", &text)]));
        world.run_until(5_000);
        let shown = public(&world);
        assert!(shown.contains("ConfigMap key web"), "{shown}");
        assert!(!shown.contains(NEW), "{shown}");
    }
}

#[test]
fn slip_03_labels_of_metrics_hold_no_secrets_and_other_values() {
    let operations =
        r#"{"name": "x", "set": 1, "labels": {"a": "is old-secret-7f3a", "host": "example.com"}}"#;
    let mut output = sets("/web/size", &json!(1));
    output.metrics = engine::metric::parse(operations.as_bytes()).unwrap();
    let world = World::new(&web())
        .configured(&[("web", &format!("db: {{adminPassword: {OLD}}}\nhost: example.com"))])
        .hook("web/hooks/a.sh", Ok(output))
        .settled();
    let labels: Vec<_> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::MetricsExported { operations, .. } => Some(operations[0].labels.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(labels.len(), 1);
    assert_eq!((&*labels[0]["a"], &*labels[0]["host"]), ("is ******", "example.com"));
}

/// What random values are made of.
const LETTERS: [&str; 24] = [
    "a", "b", "q", "x", "7", "0", "A", "Z", "-", "_", ".", "/", "+", "=", "&", "<", ">", "\"", "'", "\\",
    "%", "ü", " ", "🦀",
];

fn value(random: &mut Random) -> String {
    let length = match random.below(32) {
        0..12 => 6 + random.below(4),
        12..24 => 10 + random.below(60),
        24..31 => 60 + random.below(1_000),
        _ => 1_000 + random.below(14_000),
    };
    let mut text: String = (0..length).map(|_| LETTERS[usize::try_from(random.below(24)).unwrap()]).collect();
    if random.below(8) == 0 && length > 30 {
        let at = text.char_indices().nth(usize::try_from(length / 2).unwrap()).unwrap().0;
        text.insert(at, '\n');
    }
    // Blanks at the ends of lines are no part of what is printed.
    text.insert(0, 'S');
    text.push('E');
    text
}

/// Returns `text` escaped in some way.
fn escaped(random: &mut Random, text: &str) -> String {
    let inner = |text: &str| text.get(1..text.len() - 1).unwrap_or_default().to_owned();
    match random.below(11) {
        0 | 1 => inner(&Value::from(text).to_string()),
        2 => inner(&String::from_utf8(golang::json::bytes(&Value::from(text))).unwrap()),
        3 => inner(&format!("{text:?}")),
        4 => text.replace('\'', "'\\''"),
        5 => text.replace('\'', "'\"'\"'"),
        6 => text.replace('\'', "''"),
        7 => text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat(),
        8 => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
            let letter = |byte: u8| match byte {
                b' ' => "+".to_owned(),
                byte if plain(byte) => char::from(byte).to_string(),
                byte => format!("%{byte:02x}"),
            };
            text.bytes().map(letter).collect::<Vec<_>>().concat()
        }
        9 => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;"),
        _ => text.chars().map(|char| format!("\\u{{{:x}}}", u32::from(char))).collect::<Vec<_>>().concat(),
    }
}

/// Returns a text that quotes `value` in some way, with that part of it that nobody may read.
fn written(random: &mut Random, value: &str) -> (String, String) {
    let base64 = |engine: &base64::engine::GeneralPurpose, random: &mut Random| {
        // What stands before it moves it within the groups.
        let before = "u".repeat(usize::try_from(random.below(4)).unwrap());
        let text = engine.encode(format!("{before}{value}"));
        let first = before.len().div_ceil(3) * 4;
        let own = text.trim_end_matches('=').get(first..).unwrap_or_default().to_owned();
        (text, own)
    };
    let own = match random.below(18) {
        0 => value.to_owned(),
        1..6 => escaped(random, value),
        6..12 => {
            let inner = escaped(random, value);
            escaped(random, &inner)
        }
        12 => return base64(&STANDARD, random),
        13 => return base64(&STANDARD_NO_PAD, random),
        14 => return base64(&URL_SAFE, random),
        15 => {
            // Nine letters are three whole groups.
            let text = STANDARD.encode(format!("{{\"auth\":\"{}\"}}", STANDARD.encode(value)));
            let own = text.get(12..).unwrap_or_default().to_owned();
            return (text, own);
        }
        _ => return base64(&URL_SAFE_NO_PAD, random),
    };
    (own.clone(), own)
}

/// Fails if `shown` has a part of `own` that is long enough to tell something.
fn check(shown: &str, own: &str, context: &str) {
    const TELLING: usize = 24;
    let letters: Vec<(usize, char)> = own.char_indices().collect();
    if letters.len() < TELLING {
        assert!(!shown.contains(own), "{context}: {own} in {shown}");
        return;
    }
    let last = letters.len() - TELLING;
    for start in (0..=last).step_by((last / 16).max(1)).chain([last]) {
        let end = letters.get(start + TELLING).map_or(own.len(), |(at, _)| *at);
        let part = &own[letters[start].0..end];
        assert!(!shown.contains(part), "{context}: {part} in {} bytes", shown.len());
    }
}

#[test]
fn slip_03_no_way_to_print_a_value_shows_it() {
    for seed in 0..300 {
        let mut random = Random(seed);
        for _ in 0..5 {
            let _ = random.below(2);
        }
        let value = value(&mut random);
        let values = json!({"deep": [{"key": value}], "other": "something"});
        let secrets = Secrets::of(&[&values]);
        let (text, own) = written(&mut random, &value);
        // Before the value stands so much that a cut can be within it.
        let room = match random.below(32) {
            0..28 => [0, 3, 100][usize::try_from(random.below(3)).unwrap()],
            28..31 if random.below(2) == 0 => 9_900,
            31 if random.below(2) == 0 => 64 * 1024 - 500,
            _ => 20,
        };
        let line = format!(
            "{} {text} {}",
            "·".repeat(room / 2),
            "·".repeat(usize::try_from(random.below(9)).unwrap())
        );
        let context = format!("seed {seed}");
        let line = match random.below(4) {
            0 => json!({"msg": line, "level": "info"}).to_string(),
            1 => json!({"msg": "x", "field": [line]}).to_string(),
            2 => format!("[{}]", Value::from(line)),
            _ => line,
        };
        let mut log = LineLog::new(random.below(2) == 0);
        let mut entries = Vec::new();
        let chunk = usize::try_from(1 + random.below(70_000)).unwrap();
        for chunk in line.as_bytes().chunks(chunk) {
            entries.extend(log.push(chunk, &secrets));
        }
        entries.extend(log.finish(&secrets));
        let logged: Vec<String> =
            entries.iter().map(|entry| format!("{}\n{}\n", entry.message, entry.fields)).collect();
        let logged = logged.concat();
        check(&logged, &own, &context);
        let failure = Failure::new(FailureKind::HookExit, format!("exit status 1: {line}"));
        check(&failure.without(&secrets).to_string(), &own, &context);
        check(&engine::view::masked(&failure, &[&values]), &own, &context);
    }
}

#[test]
fn slip_03_no_way_to_print_a_value_shows_it_before_and_after_a_rotation() {
    let section = |value: &str| json!({ "password": value }).to_string();
    for seed in 0..150 {
        let mut random = Random(seed);
        for _ in 0..5 {
            let _ = random.below(2);
        }
        let [old, new] = [value(&mut random), value(&mut random)];
        let [(old_text, old_own), (new_text, new_own)] =
            [&old, &new].map(|value| written(&mut random, value));
        let failure = |text: &str| {
            let failure = Failure::new(FailureKind::HookExit, format!("exit status 1: {text} end"));
            Err(failure.advise(format!("try {text}")))
        };
        // The hook has read the old value, and prints it before the rotation or behind it. Then it prints the new one.
        let takes = [100, 3_000][usize::try_from(random.below(2)).unwrap()];
        let mut world = World::new(&web())
            .configured(&[("web", &section(&old))])
            .hook("web/hooks/a.sh", failure(&old_text))
            .hook("web/hooks/a.sh", failure(&new_text))
            .takes("web/hooks/a.sh", takes)
            .at(2_000, config(101, &[("web", &section(&new))]));
        for until in [1_900, 2_100, 4_000, 20_000] {
            world.run_until(until);
            let (shown, context) = (public(&world), format!("seed {seed}, after {until} ms"));
            check(&shown, &old_own, &context);
            check(&shown, &new_own, &context);
        }
        let journal = format!("{:?}", world.view().journal);
        let failures = journal.matches("exit status 1: ").count();
        assert!(failures >= 2, "seed {seed}: {journal}");
    }
}
