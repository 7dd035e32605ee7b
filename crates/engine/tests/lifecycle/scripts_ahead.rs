//! Enabled scripts that run before their turn: more than one at a time, and the outcome of one after the other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use engine::{Command, CommandId, Config, Event, Notice};
use insta::assert_snapshot;
use serde_json::json;

use crate::build::{Files, TICK, config, cron, files, sets};
use crate::counting::live_here;
use crate::random::{Random, live, seeds};
use crate::world::World;

fn at_once(scripts: usize) -> Config {
    Config { namespace: "ops".to_owned(), script_concurrency: scripts, ..Config::default() }
}

/// Modules that each have a script.
fn modules(names: &[&str]) -> Files {
    names.iter().zip(1..).fold(files(), |files, (name, order)| files.module(order, name).script())
}

/// A command that runs all modules, and all scripts before them.
fn converge() -> Event {
    Event::Commanded { id: CommandId::new(1), command: Command::Converge }
}

/// Returns how many runs of scripts began.
fn asked(trace: &str) -> usize {
    trace.lines().filter(|line| line.contains("run enabled script")).count()
}

/// Returns how many times scripts were waited for, where all take as long.
fn rounds(trace: &str) -> usize {
    let begins = trace.lines().filter(|line| line.contains("run enabled script"));
    begins.filter_map(|line| line.split_whitespace().next()).collect::<BTreeSet<_>>().len()
}

/// Returns the lines about scripts.
fn of_scripts(trace: &str) -> String {
    let is_of_script = |line: &&str| line.contains("script") || line.contains("cancel");
    trace.lines().filter(is_of_script).fold(String::new(), |lines, line| lines + line + "\n")
}

#[test]
fn a_first_discovery_asks_one_script_after_the_other() {
    let trace = World::with_config(&modules(&["a", "b", "c"]), at_once(4)).run();
    assert_snapshot!(of_scripts(&trace), @r"
    0.000s     run enabled script of a #1 after []
    0.010s > script #1 true
    0.010s     run enabled script of b #2 after [a]
    0.020s > script #2 true
    0.020s     run enabled script of c #3 after [a b]
    0.030s > script #3 true
    ");
}

#[test]
fn scripts_run_again_at_the_same_time_if_they_read_what_they_read_before() {
    let files = modules(&["a", "b", "c", "d"]);
    let mut world = World::with_config(&files, at_once(3)).settled();
    assert_snapshot!(of_scripts(&world.after(1_000, converge())), @r"
    1.245s     run enabled script of a #10 after []
    1.245s     run enabled script of b #11 after [a]
    1.245s     run enabled script of c #12 after [a b]
    1.255s > script #10 true
    1.255s     run enabled script of d #13 after [a b c]
    1.255s > script #11 true
    1.255s > script #12 true
    1.265s > script #13 true
    ");
}

#[test]
fn scripts_behind_one_with_a_new_question_wait_for_its_answer() {
    let files = modules(&["a", "b", "new", "c"]).module(5, "d").off();
    let world = World::with_config(&files, at_once(4)).script("new", Err("exit status 3"));
    let mut world = world.takes("script a", 100);
    let trace = world.run();
    assert_snapshot!(of_scripts(&trace), @r"
    0.000s     run enabled script of a #1 after []
    0.100s > script #1 true
    0.100s     run enabled script of b #2 after [a]
    0.110s > script #2 true
    0.110s     run enabled script of new #3 after [a b]
    0.120s > script #3 failed: exit status 3
    5.120s     run enabled script of a #4 after []
    5.120s     run enabled script of b #5 after [a]
    5.130s > script #5 true
    5.220s > script #4 true
    5.220s     run enabled script of new #6 after [a b]
    5.230s > script #6 true
    5.230s     run enabled script of c #7 after [a b new]
    5.240s > script #7 true
    ");
}

#[test]
fn what_was_asked_after_another_answer_ends_at_once() {
    let world = World::with_config(&modules(&["a", "b", "c"]), at_once(4)).script("a", Ok(true));
    let mut world = world.takes("script b", 1_000).takes("script c", 2_000).settled().script("a", Ok(false));
    assert_snapshot!(of_scripts(&world.after(1_000, converge())), @r"
    4.165s     run enabled script of a #8 after []
    4.165s     run enabled script of b #9 after [a]
    4.165s     run enabled script of c #10 after [a b]
    4.175s > script #8 false
    4.175s     cancel #9
    4.175s     cancel #10
    4.180s > script #9 failed: ended by SIGTERM
    4.180s     run enabled script of b #11 after []
    4.180s > script #10 failed: ended by SIGTERM
    5.180s > script #11 true
    5.180s     run enabled script of c #12 after [b]
    7.180s > script #12 true
    ");
    let runs = world.noticed(|notice| matches!(notice, Notice::HookRan { .. }));
    assert_eq!(runs, 6, "one that was ended says nothing");
    let waits = |notice: &Notice| matches!(notice, Notice::TaskWaits { reason, .. } if reason.contains("earlier run"));
    assert_eq!(world.noticed(waits), 1);
    assert_eq!(world.deployed.keys().collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn an_answer_that_was_given_after_another_answer_does_not_count() {
    let files = modules(&["slow", "only-alone"]);
    let alone = |module: &str, read: &engine::ValuesInput| {
        Ok(module == "only-alone" && read.enabled_modules.as_ref().unwrap().is_empty())
    };
    for scripts in [1, 2] {
        let world = World::with_config(&files, at_once(scripts)).answering(alone).script("slow", Ok(true));
        let mut world = world.takes("script slow", 50).settled();
        assert_eq!(world.deployed.keys().collect::<Vec<_>>(), ["slow"], "{scripts}");
        world.after(1_000, converge());
        assert_eq!(world.deployed.keys().collect::<Vec<_>>(), ["only-alone"], "{scripts}");
    }
}

#[test]
fn a_failure_ahead_of_its_turn_is_none() {
    let mut world = World::with_config(&modules(&["a", "b"]), at_once(2)).takes("script a", 50).settled();
    world = world.script("b", Err("exit status 3"));
    assert_snapshot!(of_scripts(&world.after(1_000, converge())), @r"
    1.165s     run enabled script of a #6 after []
    1.165s     run enabled script of b #7 after [a]
    1.175s > script #7 failed: exit status 3
    1.215s > script #6 true
    1.215s     run enabled script of b #8 after [a]
    1.225s > script #8 true
    ");
    assert_eq!(world.noticed(|notice| matches!(notice, Notice::DiscoveryFailed { .. })), 0);
}

#[test]
fn a_script_whose_last_run_failed_is_not_asked_before_its_turn() {
    let mut world = World::with_config(&modules(&["a", "b", "c"]), at_once(3)).settled();
    for _ in 0..3 {
        world = world.script("b", Err("exit status 3"));
    }
    assert_snapshot!(of_scripts(&world.after(1_000, converge())), @r"
    1.185s     run enabled script of a #8 after []
    1.185s     run enabled script of b #9 after [a]
    1.185s     run enabled script of c #10 after [a b]
    1.195s > script #8 true
    1.195s > script #9 failed: exit status 3
    1.195s > script #10 true
    6.195s     run enabled script of a #11 after []
    6.205s > script #11 true
    6.205s     run enabled script of b #12 after [a]
    6.215s > script #12 failed: exit status 3
    11.215s     run enabled script of a #13 after []
    11.225s > script #13 true
    11.225s     run enabled script of b #14 after [a]
    11.235s > script #14 failed: exit status 3
    16.235s     run enabled script of a #15 after []
    16.245s > script #15 true
    16.245s     run enabled script of b #16 after [a]
    16.255s > script #16 true
    16.255s     run enabled script of c #17 after [a b]
    16.265s > script #17 true
    ");
    let failed = world.noticed(
        |notice| matches!(notice, Notice::DiscoveryFailed { failure } if failure.message.contains("module b")),
    );
    assert_eq!(failed, 3);
}

#[test]
fn a_discovery_that_starts_over_waits_for_what_the_one_before_it_asked() {
    let mut world =
        World::with_config(&modules(&["a", "b", "c"]), at_once(3)).takes("script c", 6_000).settled();
    world = world.script("b", Ok(true)).script("b", Err("exit status 3")).takes("script b", 50);
    world.send_in(1_000, converge());
    world.send_in(1_020, converge());
    assert_snapshot!(of_scripts(&world.run()), @r"
    7.175s     run enabled script of a #8 after []
    7.175s     run enabled script of b #9 after [a]
    7.175s     run enabled script of c #10 after [a b]
    7.185s > script #8 true
    7.225s > script #9 true
    7.225s     run enabled script of a #11 after []
    7.225s     run enabled script of b #12 after [a]
    7.235s > script #11 true
    7.275s > script #12 failed: exit status 3
    12.275s     run enabled script of a #13 after []
    12.285s > script #13 true
    12.285s     run enabled script of b #14 after [a]
    12.335s > script #14 true
    12.335s     cancel #10
    12.340s > script #10 failed: ended by SIGTERM
    12.340s     run enabled script of c #15 after [a b]
    18.340s > script #15 true
    ");
}

#[test]
fn no_script_runs_ahead_on_the_last_place_of_a_hook_or_while_memory_is_short() {
    let files = modules(&["a", "b", "c"]);
    let begun = |config: Config, memory: Option<u64>| {
        let mut world = World::with_config(&files, config).settled();
        if let Some(used) = memory {
            world.take_in(Event::MemoryChanged { used, limit: 100 });
        }
        world.send_in(0, converge());
        asked(&world.run_for(5))
    };
    assert_eq!(begun(at_once(4), None), 3);
    assert_eq!(begun(Config { max_hooks: 2, ..at_once(4) }, None), 2);
    assert_eq!(begun(at_once(4), Some(95)), 1);
}

#[test]
fn scripts_ahead_end_with_the_operator() {
    let mut world = World::with_config(&modules(&["a", "b"]), at_once(2)).settled();
    world = world.takes("script b", 60_000).takes("script a", 100);
    world.send_in(1_000, converge());
    world.send_in(1_050, Event::ShutdownRequested);
    let trace = world.run();
    assert!(trace.contains("1.175s     cancel #7\n"), "{trace}");
    assert!(trace.ends_with("     exit\n"), "{trace}");
}

#[test]
fn a_run_by_command_takes_no_answer_from_before() {
    let world = World::with_config(&modules(&["a", "b", "c"]), at_once(3)).settled();
    let mut world = world.takes("script a", 100).takes("script b", 300);
    world.send_in(100, converge());
    let run = Command::RunModule("b".into());
    world.send_in(150, Event::Commanded { id: CommandId::new(2), command: run });
    let trace = of_scripts(&world.run());
    assert_snapshot!(trace, @r"
    0.285s     run enabled script of a #8 after []
    0.285s     run enabled script of b #9 after [a]
    0.285s     run enabled script of c #10 after [a b]
    0.295s > script #10 true
    0.335s     cancel #9
    0.340s > script #9 failed: ended by SIGTERM
    0.385s > script #8 true
    0.385s     run enabled script of a #11 after []
    0.485s > script #11 true
    0.485s     run enabled script of b #12 after [a]
    0.785s > script #12 true
    0.785s     run enabled script of c #13 after [a b]
    0.795s > script #13 true
    ");
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
    1.325s     run enabled script of c #18 after [a b]
    1.335s > script #18 true
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
    let start = world.run_until(250);
    assert!(start.ends_with("run enabled script of a #11 after []\n"), "{start}");
    world.send_in(0, config(101, &[("c", "x: 1")]));
    assert_snapshot!(world.run(), @r"
    0.245s > ConfigMap rv 101 [c]
    0.265s > script #11 true
    0.265s     run enabled script of b #12 after [a]
    0.285s > script #12 true
    0.285s     run enabled script of c #13 after [a b]
    0.305s > script #13 true
    0.305s     run hook c/before.sh #14 [beforeHelm]
    0.315s > hook #14 ok
    0.315s     upgrade c #15
    0.365s > release #15 Upgraded
    ");
}

#[test]
fn what_the_pass_after_the_start_finds_out_is_what_later_scripts_read() {
    let names = ["a", "no", "c"];
    let mut world = World::with_config(&changing(&names), at_once(4)).script("no", Ok(true));
    world = world.script("no", Ok(false));
    for name in names {
        world = world.hook(&format!("{name}/before.sh"), Ok(sets(&format!("/{name}/seen"), &json!(1))));
    }
    let start = of_scripts(&world.run());
    assert!(start.contains("run enabled script of c #3 after [a no]\n"), "{start}");
    assert!(start.ends_with("script of c #13 after [a]\n0.245s > script #13 true\n"), "{start}");
    assert_eq!(asked(&start), 6);
}

#[test]
fn the_pass_after_the_start_ends_with_a_script_that_fails_or_reads_something_new() {
    let start = |fails: bool| {
        let files = changing(&["a", "b"]).hook("tick.sh", TICK);
        let files = files.module(3, "c").script().hook("before.sh", "beforeHelm: 1");
        let mut world = World::with_config(&files, at_once(4)).takes("script b", 500);
        for name in ["a", "b", "c"] {
            world = world.hook(&format!("{name}/before.sh"), Ok(sets(&format!("/{name}/seen"), &json!(1))));
        }
        if fails {
            world = world.script("b", Ok(true)).script("b", Err("exit status 3"));
        } else {
            world = world.hook("b/tick.sh", Ok(sets("/b/seen", &json!(2))));
            world.send_in(900, cron("* * * * *"));
        }
        let trace = world.run_until(30_000);
        assert_eq!(world.noticed(|notice| matches!(notice, Notice::DiscoveryFailed { .. })), 0);
        let told = |notice: &Notice| matches!(notice, Notice::ScriptsAskedAgain { scripts: 2 });
        assert_eq!(world.noticed(told), 1, "{trace}");
        trace
    };
    assert_eq!(asked(&start(true)), 3 + 2);
    let trace = start(false);
    assert!(trace.contains("run hook b/tick.sh") && trace.contains("upgrade b #15"), "{trace}");
    assert_eq!(asked(&trace), 3 + 2, "{trace}");
}

#[test]
fn a_hundred_scripts_are_waited_for_one_by_one_unless_they_read_what_they_read_before() {
    let names: Vec<String> = (0..100).map(|number| format!("m{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let counted = [1, 2, 4, 8].map(|scripts| {
        let mut world = World::with_config(&modules(&names), at_once(scripts));
        let start = world.run();
        let of_one = world.after(1_000, config(101, &[("m50", "x: 1")]));
        let of_all = world.after(1_000, config(102, &[("m50", "x: 1"), ("global", "x: 1")]));
        let again = world.after(1_000, converge());
        let traces = [start, of_one, of_all, again];
        assert_eq!(traces.each_ref().map(|trace| asked(trace)), [100, 1, 100, 100], "{scripts}");
        traces.map(|trace| rounds(&trace))
    });
    // The start, an edit of a module, an edit of the global section, a command.
    assert_eq!(counted, [[100, 1, 100, 100], [100, 1, 100, 50], [100, 1, 100, 25], [100, 1, 100, 13]]);
}

#[test]
fn after_a_failure_at_the_start_those_before_it_run_again_at_the_same_time() {
    let names: Vec<String> = (0..100).map(|number| format!("m{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let counted = [1, 4].map(|scripts| {
        let mut world = World::with_config(&modules(&names), at_once(scripts));
        world = world.script("m80", Err("exit status 3"));
        let trace = world.run();
        (asked(&trace), rounds(&trace))
    });
    assert_eq!(counted, [(181, 181), (181, 81 + 20 + 20)]);
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

/// What came of a life.
struct Life {
    /// What happened, without how often and when scripts ran.
    outcome: String,
    /// What scripts read.
    read: BTreeSet<String>,
}

/// Edits that a life has.
const EDITS: u64 = 4;

/// The ConfigMap's data is these pairs now.
fn edited(version: u64, pairs: &[(String, String)]) -> Event {
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, text)| (&**key, &**text)).collect();
    config(version, &pairs)
}

/// Lives a random life up to an edit. With `looks_again` there is one more discovery at the end, for which nothing has changed.
fn life(seed: u64, scripts: usize, edits: u64, looks_again: bool) -> Life {
    let mut random = Random(seed);
    // Either what hooks write changes what scripts say, or something that nobody here knows of.
    let is_outside = random.below(3) == 0;
    let mut files = files();
    let names: Vec<String> = (0..3 + random.below(6)).map(|number| format!("m{number}")).collect();
    for (name, order) in names.iter().zip(1..) {
        files = files.module(order, name).hook("before.sh", "beforeHelm: 1");
        files = if random.below(5) == 0 { files } else { files.script() };
        files = if random.below(6) == 0 { files.off() } else { files };
    }
    files = files.module(99, "last").off();
    let (read, outside) = (Rc::new(RefCell::new(BTreeSet::new())), Rc::new(Cell::new(seed)));
    let mut world = World::with_config(&files, at_once(scripts));
    let (note, state) = (Rc::clone(&read), Rc::clone(&outside));
    world = world.answering(move |module, read| {
        let sections = read.module.as_ref().map(|section| (section.values.to_string(), &section.config));
        let global = (read.global.to_string(), &read.global_config);
        note.borrow_mut().insert(format!("{module} {global:?} {sections:?} {:?}", read.enabled_modules));
        weighed(state.get(), module, read)
    });
    for name in &names {
        world = world.takes(&format!("script {name}"), 1 + random.below(40));
        if random.below(2) == 0 && !is_outside {
            let value = json!(random.below(3));
            world = world.hook(&format!("{name}/before.sh"), Ok(sets(&format!("/{name}/seen"), &value)));
        }
    }
    let mut trace = world.run_until(30_000);
    let mut pairs: Vec<(String, String)> = Vec::new();
    for edit in 1..=edits {
        let key = match random.below(4) {
            0 => "global".to_owned(),
            _ => names[usize::try_from(random.below(names.len() as u64)).unwrap()].clone(),
        };
        let (key, text) = match random.below(3) {
            0 if key != "global" => (format!("{key}Enabled"), (random.below(2) == 0).to_string()),
            _ => (key, format!("x: {}", random.below(4))),
        };
        let is_command = random.below(2) == 0;
        if is_outside && random.below(2) == 0 {
            outside.set(seed + 1_000_000 * edit);
        }
        if is_command {
            world.send_in(0, converge());
        } else {
            pairs.retain(|(known, _)| *known != key);
            pairs.push((key, text));
            world.send_in(0, edited(100 + edit, &pairs));
        }
        trace += &world.run_until(30_000 * (edit + 1));
    }
    if looks_again {
        pairs.push(("lastEnabled".to_owned(), "true".to_owned()));
        world.send_in(0, edited(200, &pairs));
        world.run_for(30_000);
    }
    let mut outcome = String::new();
    let is_of_scripts = |line: &str| ["script", "cancel", "> timer"].iter().any(|word| line.contains(word));
    for line in trace.lines().filter(|line| !is_of_scripts(line)) {
        let words = line.split_whitespace().skip(1).filter(|word| !word.starts_with('#'));
        writeln!(outcome, "{}", words.collect::<Vec<_>>().join(" ")).unwrap();
    }
    for module in world.view().modules {
        writeln!(outcome, "{} {}: {}", module.name, module.phase, module.why).unwrap();
    }
    assert!(world.view().processes <= scripts, "seed {seed}");
    let read = read.borrow().clone();
    Life { outcome, read }
}

#[test]
fn whatever_scripts_say_the_outcome_and_what_they_read_are_those_of_one_after_the_other() {
    live(seeds(300), |seed| {
        let scripts = 2 + usize::try_from(seed % 5).unwrap();
        let (ahead, alone) = (life(seed, scripts, EDITS, false), life(seed, 1, EDITS, false));
        assert_eq!(ahead.outcome, alone.outcome, "seed {seed}, {scripts} at once");
        let unknown: Vec<_> = ahead.read.difference(&alone.read).collect();
        // The pass after the start reads what a discovery would read then.
        let later = (0..=EDITS).flat_map(|edits| life(seed, 1, edits, true).read);
        let later: BTreeSet<String> = if unknown.is_empty() { BTreeSet::new() } else { later.collect() };
        let never: Vec<_> = unknown.into_iter().filter(|read| !later.contains(*read)).collect();
        assert!(never.is_empty(), "seed {seed}, {scripts} at once: no script reads {never:#?}");
    });
}
