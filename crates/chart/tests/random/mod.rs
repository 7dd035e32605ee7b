//! Random charts, rendered here and by Helm: both print the same, or both refuse.
//!
//! `cargo test -p chart --test it random:: -- --ignored` asks the `helm` in the PATH, or the one that `HELM` names, which must be
//! of version 3; a program for many charts is faster, see `helm.rs`. `RANDOM_CHARTS` says how many charts (10,000), `RANDOM_SEED` where to begin.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test starts Helm and fails by panicking"
)]

mod charts;
mod dice;
mod expressions;
mod helm;

use std::fmt::Write as _;
use std::path::Path;

use chart::load::Tree;
use chart::render_cache::Cache;
use charts::Random;
use dice::Dice;
use serde_json::json;

use crate::golden::case::{Case, Outcome};

/// How many charts are compared before the next ones are made.
const BATCH: usize = 1_000;

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn chart(seed: usize) -> Random {
    let mut dice = Dice::new(u64::try_from(seed).unwrap());
    match seed % 10 {
        0..=4 => charts::expression(&mut dice),
        5 | 6 => charts::control(&mut dice),
        _ => charts::dependencies(&mut dice),
    }
}

/// Renders a chart here.
fn ours(random: &Random, directory: &Path) -> Result<String, String> {
    let files = random.files.iter();
    let tree: Tree = files.map(|(path, text)| (path.clone(), text.as_bytes().into())).collect();
    let values = directory.join("values.yaml");
    std::fs::write(&values, &random.values).unwrap();
    let case = Case::from_json(&json!({"values": ["values.yaml"]}));
    match case.run(directory, &tree, &mut Cache::default()).0 {
        Outcome::Text(text) => Ok(text),
        Outcome::Error(text) => Err(text),
    }
}

/// Returns what differs, if anything does.
fn difference(
    random: &Random,
    ours: &Result<String, String>,
    helms: &Result<String, String>,
) -> Option<String> {
    let is_crash = matches!(helms, Err(text) if text == "fatal" || text.contains("stack overflow"));
    // Templates can print addresses; nobody knows those of Helm.
    let has_address = matches!(ours, Ok(text) if text.contains("0xc000000000"));
    // What is wrong with TOML is told in other words in places.
    let is_toml = matches!(helms, Ok(text) if text.contains("toml: "));
    if has_address || is_toml || ours == helms || (ours.is_err() && helms.is_err()) || is_crash {
        return None;
    }
    let mut text = String::new();
    for (path, content) in &random.files {
        let is_usual = !path.contains("charts/") && random.files.len() == 5;
        if !is_usual || path.ends_with("t.yaml") {
            let _ = writeln!(text, "--- {path}\n{content}");
        }
    }
    let _ = writeln!(text, "--- values\n{}\n=== here: {ours:?}\n=== helm: {helms:?}", random.values);
    Some(text)
}

#[test]
#[ignore = "needs helm 3, and minutes"]
fn random_charts_give_what_they_give_in_helm() {
    let Some(helm) = helm::find() else {
        println!("left out: there is no helm of version 3");
        return;
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("random-charts");
    std::fs::create_dir_all(&directory).unwrap();
    let (first, count) = (number("RANDOM_SEED", 0), number("RANDOM_CHARTS", 10_000));
    let (mut failures, mut refused) = (Vec::new(), 0);
    for batch in (first..first + count).step_by(BATCH) {
        let seeds: Vec<usize> = (batch..(batch + BATCH).min(first + count)).collect();
        let all: Vec<Random> = seeds.iter().map(|seed| chart(*seed)).collect();
        let helms = helm::render(&helm, &all, &directory);
        assert_eq!(helms.len(), all.len());
        // Templates have as much stack as in the operator.
        let ours: Vec<_> = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(64 << 20);
            let work = || all.iter().map(|random| ours(random, &directory)).collect();
            thread.spawn_scoped(scope, work).unwrap().join().unwrap()
        });
        for (((seed, random), ours), helms) in seeds.iter().zip(&all).zip(&ours).zip(&helms) {
            refused += usize::from(helms.is_err());
            failures.extend(difference(random, ours, helms).map(|text| format!("##### seed {seed}\n{text}")));
        }
    }
    println!("{count} charts, of which Helm refuses {refused}");
    let report = directory.join("differences.txt");
    std::fs::write(&report, failures.join("\n")).unwrap();
    assert!(
        failures.is_empty(),
        "{} charts differ, see {}:\n{}",
        failures.len(),
        report.display(),
        failures[0]
    );
}
