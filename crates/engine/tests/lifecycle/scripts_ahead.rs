//! Enabled scripts that run before their turn: more than one at a time, and the outcome of one after the other.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use engine::{Command, CommandId, Config, Event, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{Files, config, files, sets};
use crate::counting::live_here;
use crate::random::Random;
use crate::world::World;

fn at_once(scripts: usize) -> Config {
    Config { namespace: "ops".to_owned(), script_concurrency: scripts, ..Config::default() }
}

/// Modules that each have a script.
fn modules(names: &[&str]) -> Files {
    names.iter().zip(1..).fold(files(), |files, (name, order)| files.module(order, name).script())
}

/// Returns how many runs of scripts began.
fn asked(trace: &str) -> usize {
    trace.lines().filter(|line| line.contains("run enabled script")).count()
}

/// Returns the lines about scripts.
fn of_scripts(trace: &str) -> String {
    let is_of_script = |line: &&str| line.contains("script") || line.contains("cancel");
    trace.lines().filter(is_of_script).fold(String::new(), |lines, line| lines + line + "\n")
}

#[test]
fn scripts_of_later_modules_run_while_a_discovery_waits_for_an_earlier_one() {
    let files = modules(&["a", "b", "c", "d"]);
    let trace = World::with_config(&files, at_once(3)).run();
    assert_snapshot!(of_scripts(&trace), @r"
    0.000s     run enabled script of a #1 after []
    0.000s     run enabled script of b #2 after [a]
    0.000s     run enabled script of c #3 after [a b]
    0.010s > script #1 true
    0.010s     run enabled script of d #4 after [a b c]
    0.010s > script #2 true
    0.010s > script #3 true
    0.020s > script #4 true
    ");
    assert!(trace.contains("0.020s     upgrade a"), "{trace}");
}

#[test]
fn a_script_is_asked_again_if_another_list_was_expected() {
    let files = modules(&["a", "off", "b"]);
    let world = World::with_config(&files, at_once(3)).script("off", Ok(false));
    let mut world = world.takes("script a", 5);
    assert_snapshot!(of_scripts(&world.run()), @r"
    0.000s     run enabled script of a #1 after []
    0.000s     run enabled script of off #2 after [a]
    0.000s     run enabled script of b #3 after [a off]
    0.005s > script #1 true
    0.010s > script #2 false
    0.010s     cancel #3
    0.015s > script #3 failed: ended by SIGTERM
    0.015s     run enabled script of b #4 after [a]
    0.025s > script #4 true
    ");
    let runs = world.noticed(|notice| matches!(notice, Notice::HookRan { .. }));
    assert_eq!(runs, 3, "one that was ended says nothing");
    let waits = |notice: &Notice| matches!(notice, Notice::TaskWaits { reason, .. } if reason.contains("earlier run"));
    assert_eq!(world.noticed(waits), 1);
}

#[test]
fn an_answer_that_was_given_to_another_list_does_not_count() {
    let files = modules(&["slow", "only-alone"]);
    let alone = |module: &str, read: &engine::ValuesInput| {
        Ok(module == "only-alone" && read.enabled_modules.as_ref().unwrap().is_empty())
    };
    for scripts in [1, 2] {
        let mut world =
            World::with_config(&files, at_once(scripts)).answering(alone).takes("script slow", 50);
        world.run();
        assert_eq!(world.deployed.keys().collect::<Vec<_>>(), ["only-alone"], "{scripts}");
    }
}

#[test]
fn a_failure_ahead_of_its_turn_is_none() {
    let world = World::with_config(&modules(&["a", "b"]), at_once(2));
    let mut world = world.script("b", Err("exit status 3")).takes("script a", 50);
    let trace = world.run();
    assert_snapshot!(of_scripts(&trace), @r"
    0.000s     run enabled script of a #1 after []
    0.000s     run enabled script of b #2 after [a]
    0.010s > script #2 failed: exit status 3
    0.050s > script #1 true
    0.050s     run enabled script of b #3 after [a]
    0.060s > script #3 true
    ");
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::DiscoveryFailed { .. })), 0);
}

#[test]
fn a_failure_of_a_run_whose_turn_has_come_repeats_the_discovery_with_all_scripts() {
    let world = World::with_config(&modules(&["a", "b", "c"]), at_once(3));
    let mut world = world.script("b", Err("exit status 3")).takes("script b", 50).takes("script c", 6_000);
    assert_snapshot!(of_scripts(&world.run()), @r"
    0.000s     run enabled script of a #1 after []
    0.000s     run enabled script of b #2 after [a]
    0.000s     run enabled script of c #3 after [a b]
    0.010s > script #1 true
    0.050s > script #2 failed: exit status 3
    5.050s     run enabled script of a #4 after []
    5.050s     run enabled script of b #5 after [a]
    5.060s > script #4 true
    5.100s > script #5 true
    5.100s     cancel #3
    5.105s > script #3 failed: ended by SIGTERM
    5.105s     run enabled script of c #6 after [a b]
    11.105s > script #6 true
    ");
    let failed = world.noticed(
        |notice| matches!(notice, Notice::DiscoveryFailed { failure } if failure.message.contains("module b")),
    );
    assert_eq!(failed, 1);
}

#[test]
fn no_script_runs_ahead_on_the_last_place_of_a_hook_or_while_memory_is_short() {
    let files = modules(&["a", "b", "c"]);
    let crowded = Config { max_hooks: 2, ..at_once(4) };
    let trace = World::with_config(&files, crowded).run_until(5);
    assert_eq!(asked(&trace), 2, "{trace}");
    let mut short = World::with_config(&files, at_once(4));
    short.take_in(Event::MemoryChanged { used: 95, limit: 100 });
    let trace = short.run_until(5);
    assert_eq!(asked(&trace), 1, "{trace}");
}

#[test]
fn scripts_ahead_end_with_the_operator() {
    let world = World::with_config(&modules(&["a", "b"]), at_once(2));
    let mut world = world.takes("script b", 60_000).takes("script a", 100);
    world.send_in(50, Event::ShutdownRequested);
    let trace = world.run();
    assert!(trace.contains("0.050s     cancel #2\n"), "{trace}");
    assert!(trace.ends_with("0.100s     exit\n"), "{trace}");
}

#[test]
fn a_run_by_command_takes_no_answer_from_before() {
    let world = World::with_config(&modules(&["a", "b"]), at_once(2)).settled();
    let mut world = world.takes("script a", 100).takes("script b", 300);
    world.send_in(100, config(101, &[("global", "x: 1")]));
    let run = Command::RunModule("b".into());
    world.send_in(150, Event::Commanded { id: CommandId::new(1), command: run });
    let trace = of_scripts(&world.run());
    let of_b = trace.lines().filter(|line| line.contains("run enabled script of b")).count();
    assert_eq!(of_b, 2, "{trace}");
    assert!(trace.contains("cancel"), "{trace}");
}

/// Hooks that change what the script of their module reads.
fn changing(names: &[&str]) -> Files {
    let with_hook = |files: Files, (name, order): (&&str, u32)| {
        files.module(order, name).script().hook("before.sh", "beforeHelm: 1")
    };
    names.iter().zip(1..).fold(files(), with_hook)
}

#[test]
fn the_first_edit_after_a_start_asks_only_the_script_of_its_module() {
    let names = ["a", "b", "c", "d"];
    let told = |scripts| {
        let mut world = World::with_config(&changing(&names), at_once(scripts));
        for name in names {
            world = world.hook(&format!("{name}/before.sh"), Ok(sets(&format!("/{name}/seen"), &json!(1))));
        }
        let start = world.run();
        let edit = world.after(1_000, config(101, &[("c", "x: 1")]));
        let again = |notice: &Notice| matches!(notice, Notice::ScriptsAskedAgain { scripts: 4 });
        assert_eq!(world.noticed(again), usize::from(scripts > 1));
        (asked(&start), asked(&edit), edit)
    };
    let (start, edit, trace) = told(1);
    assert_eq!((start, edit), (4, 4), "{trace}");
    let (start, edit, trace) = told(4);
    assert_eq!((start, edit), (8, 1), "{trace}");
    assert_snapshot!(of_scripts(&trace), @r"
    1.295s     run enabled script of c #18 after [a b]
    1.305s > script #18 true
    ");
}

#[test]
fn scripts_that_nothing_has_changed_for_are_not_asked_after_a_start() {
    let mut world = World::with_config(&changing(&["a", "b", "c"]), at_once(4));
    assert_eq!(asked(&world.run()), 3);
    let later = sets("/a/seen", &json!(1));
    let mut world = world.hook("a/before.sh", Ok(later));
    let edit = world.after(100, config(101, &[("a", "x: 1")]));
    assert_eq!(asked(&edit), 1, "only the first converge is followed by questions: {edit}");
}

#[test]
fn an_edit_while_scripts_are_asked_after_the_start_goes_first() {
    let names = ["a", "b", "c"];
    let mut world = World::with_config(&changing(&names), at_once(4));
    for name in names {
        world = world
            .hook(&format!("{name}/before.sh"), Ok(sets(&format!("/{name}/seen"), &json!(1))))
            .takes(&format!("script {name}"), 20);
    }
    let start = world.run_until(215);
    assert!(start.ends_with("run enabled script of a #11 after []\n"), "{start}");
    world.send_in(0, config(101, &[("c", "x: 1")]));
    assert_snapshot!(world.run(), @r"
    0.205s > ConfigMap rv 101 [c]
    0.205s     run enabled script of b #12 after [a]
    0.205s     run enabled script of c #13 after [a b]
    0.225s > script #11 true
    0.225s > script #12 true
    0.225s > script #13 true
    0.225s     run hook c/before.sh #14 [beforeHelm]
    0.235s > hook #14 ok
    0.235s     upgrade c #15
    0.285s > release #15 Upgraded
    ");
}

#[test]
fn a_start_of_a_hundred_modules_asks_each_script_once_however_many_run_at_once() {
    let names: Vec<String> = (0..100).map(|number| format!("m{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let times = [1, 2, 4, 8].map(|scripts| {
        let mut world = World::with_config(&modules(&names), at_once(scripts));
        let trace = world.run();
        assert_eq!(asked(&trace), 100, "{scripts}");
        let upgrade = trace.lines().find(|line| line.contains("upgrade m00")).unwrap();
        upgrade.split('s').next().unwrap().trim().to_owned()
    });
    assert_eq!(times, ["1.000", "0.500", "0.250", "0.130"]);
}

#[test]
fn the_answers_of_many_scripts_share_one_list_of_modules() {
    let names: Vec<String> = (0..300).map(|number| format!("m{number:03}")).collect();
    let held = |has_scripts: bool| {
        let all = names.iter().zip(1..).fold(files(), |files, (name, order)| {
            let files = files.module(order, name);
            if has_scripts { files.script() } else { files }
        });
        let mut world = World::with_config(&all, at_once(4));
        world.is_quiet = true;
        world.run();
        // The second discovery compares its list with that of the first.
        world.after(1, config(101, &[("m299", "x: 1")]));
        let before = live_here();
        world.engine = engine::Engine::new(Config::default(), files().catalog());
        before - live_here()
    };
    let each = (held(true) - held(false)) / 300;
    assert!(each < 512, "an answer holds {each} bytes; a list of its own would be 2,400 more");
}

/// What a script says that weighs all it reads: mostly yes, sometimes no, rarely nothing.
fn weighed(seed: u64, module: &str, read: &engine::ValuesInput) -> Result<bool, &'static str> {
    let mut hasher = DefaultHasher::new();
    let section = read.module.as_ref().map(|section| section.values.to_string());
    (seed, module, read.global.to_string(), section).hash(&mut hasher);
    for name in read.enabled_modules.iter().flat_map(|names| names.iter()) {
        name.hash(&mut hasher);
    }
    match hasher.finish() % 40 {
        0 => Err("exit status 1"),
        1..=12 => Ok(false),
        _ => Ok(true),
    }
}

/// Returns what came of a life, without how often and when scripts ran.
fn outcome(seed: u64, scripts: usize) -> String {
    let mut random = Random(seed);
    let mut files = files();
    let names: Vec<String> = (0..3 + random.below(6)).map(|number| format!("m{number}")).collect();
    for (name, order) in names.iter().zip(1..) {
        files = files.module(order, name).hook("before.sh", "beforeHelm: 1");
        files = if random.below(5) == 0 { files } else { files.script() };
        files = if random.below(6) == 0 { files.off() } else { files };
    }
    let mut world = World::with_config(&files, at_once(scripts));
    world = world.answering(move |module, read| weighed(seed, module, read));
    for name in &names {
        world = world.takes(&format!("script {name}"), 1 + random.below(40));
        if random.below(2) == 0 {
            let value = json!(random.below(3));
            world = world.hook(&format!("{name}/before.sh"), Ok(sets(&format!("/{name}/seen"), &value)));
        }
    }
    let mut trace = world.run_until(30_000);
    let mut pairs: Vec<(String, String)> = Vec::new();
    for version in 101..104 {
        let key = match random.below(4) {
            0 => "global".to_owned(),
            _ => names[usize::try_from(random.below(names.len() as u64)).unwrap()].clone(),
        };
        let (key, text) = match random.below(3) {
            0 if key != "global" => (format!("{key}Enabled"), (random.below(2) == 0).to_string()),
            _ => (key, format!("x: {}", random.below(4))),
        };
        pairs.retain(|(known, _)| *known != key);
        pairs.push((key, text));
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, text)| (&**key, &**text)).collect();
        world.send_in(0, config(version, &pairs));
        trace += &world.run_until(30_000 * (version - 99));
    }
    let mut told = String::new();
    let is_of_scripts = |line: &str| ["script", "cancel", "> timer"].iter().any(|word| line.contains(word));
    for line in trace.lines().filter(|line| !is_of_scripts(line)) {
        let words = line.split_whitespace().skip(1).filter(|word| !word.starts_with('#'));
        writeln!(told, "{}", words.collect::<Vec<_>>().join(" ")).unwrap();
    }
    for module in world.view().modules {
        writeln!(told, "{} {}: {}", module.name, module.phase, module.why).unwrap();
    }
    assert!(world.view().processes <= scripts, "seed {seed}");
    told
}

#[test]
fn whatever_scripts_say_the_outcome_is_that_of_one_after_the_other() {
    let lives = if cfg!(debug_assertions) { 300 } else { 1_000 };
    for seed in 0..lives {
        let scripts = 2 + usize::try_from(seed % 5).unwrap();
        assert_eq!(outcome(seed, scripts), outcome(seed, 1), "seed {seed}, {scripts} at once");
    }
}
