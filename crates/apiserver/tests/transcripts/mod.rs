//! Answers to recorded request scripts are those of a real server, but for the differences in `known.tsv`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod hook;
mod normal;
mod play;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use apiserver::ApiServer;

use hook::Hook;
use normal::Difference;

/// Where an answer differs from that of a real server: where, why, and what it says there.
struct Known {
    script: &'static str,
    path: &'static str,
    reason: &'static str,
    pinned: &'static str,
}

/// What is known, as it is now: a test can write it anew.
static KNOWN: LazyLock<String> = LazyLock::new(|| std::fs::read_to_string(KNOWN_PATH).unwrap());

const KNOWN_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts/known.tsv");

fn known() -> Vec<Known> {
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut parts = line.split('\t');
            Known {
                script: parts.next().unwrap(),
                path: parts.next().unwrap(),
                reason: parts.next().unwrap(),
                pinned: parts.next().unwrap(),
            }
        })
        .collect()
}

fn files() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("apply", include_str!("apply.jsonl")),
        ("bodies", include_str!("bodies.jsonl")),
        ("crud", include_str!("crud.jsonl")),
        ("custom", include_str!("custom.jsonl")),
        ("details", include_str!("details.jsonl")),
        ("edges", include_str!("edges.jsonl")),
        ("mistakes", include_str!("mistakes.jsonl")),
        ("ownership", include_str!("ownership.jsonl")),
        ("parts", include_str!("parts.jsonl")),
        ("patches", include_str!("patches.jsonl")),
        ("patterns", include_str!("patterns.jsonl")),
        ("policies", include_str!("policies.jsonl")),
        ("queries", include_str!("queries.jsonl")),
        ("randoms", include_str!("randoms.jsonl")),
        ("rare", include_str!("rare.jsonl")),
        ("refusals", include_str!("refusals.jsonl")),
        ("requests", include_str!("requests.jsonl")),
        ("resources", include_str!("resources.jsonl")),
        (REVIEWS, include_str!("reviews.jsonl")),
        ("rules", include_str!("rules.jsonl")),
        ("schemas", include_str!("schemas.jsonl")),
        ("statuses", include_str!("statuses.jsonl")),
        ("strictness", include_str!("strictness.jsonl")),
        ("transitions", include_str!("transitions.jsonl")),
        ("updates", include_str!("updates.jsonl")),
        ("workloads", include_str!("workloads.jsonl")),
        ("writes", include_str!("writes.jsonl")),
    ])
}

/// The scripts that are played with a webhook for everything.
const REVIEWS: &str = "reviews";

/// Plays scripts; returns how many there were and what differs, by script.
async fn play_all(is_reviewed: bool) -> (usize, Vec<(String, Vec<Difference>)>) {
    let mut count = 0;
    let mut found = Vec::new();
    for (family, text) in files().into_iter().filter(|(family, _)| (*family == REVIEWS) == is_reviewed) {
        let server = ApiServer::builder().seed(1).build().unwrap();
        let mut hook = None;
        if is_reviewed {
            let listening = Hook::listen().await;
            listening.register(&server.service()).await;
            hook = Some(listening);
        }
        for line in text.lines() {
            let script: play::Script = serde_json::from_str(line).unwrap();
            let name = format!("{family}/{}", script.name);
            count += 1;
            let answers = play::script(&server.service(), &script, count, hook.as_ref()).await;
            let mut differences = Vec::new();
            for (index, (step, answer)) in script.steps.iter().zip(&answers).enumerate() {
                normal::compare(&step.answer, answer, &format!("{index}"), &mut differences);
            }
            found.push((name, differences));
        }
    }
    (count, found)
}

/// Writes what the answers say now into the lines of `known.tsv` that are about them.
fn update(found: &[(String, Vec<Difference>)]) {
    let mut text = String::new();
    for line in KNOWN.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [script, path, reason, ..] = parts.as_slice() else {
            writeln!(text, "{line}").unwrap();
            continue;
        };
        if !found.iter().any(|(name, _)| name == script) {
            writeln!(text, "{line}").unwrap();
        }
        let differences = found.iter().filter(|(name, _)| name == script).flat_map(|(_, found)| found);
        for difference in differences.filter(|difference| difference.path == *path) {
            writeln!(text, "{script}\t{path}\t{reason}\t{}", difference.pinned).unwrap();
        }
    }
    std::fs::write(KNOWN_PATH, text).unwrap();
}

/// Fails with what differs and is not in `known.tsv`, or differs otherwise.
fn judge(found: &[(String, Vec<Difference>)]) {
    #[expect(clippy::disallowed_methods, reason = "a test has no configuration")]
    let is_update = std::env::var_os("UPDATE_KNOWN").is_some();
    if is_update {
        return update(found);
    }
    let known: Vec<Known> =
        known().into_iter().filter(|known| found.iter().any(|(script, _)| script == known.script)).collect();
    let mut used = vec![false; known.len()];
    let mut report = String::new();
    let mut wrong = 0;
    for (script, differences) in found {
        let mut shown = 0;
        for difference in differences {
            let matching = known.iter().position(|k| k.script == script && k.path == difference.path);
            if let Some(index) = matching {
                used[index] = true;
                if known[index].pinned == difference.pinned {
                    continue;
                }
                writeln!(
                    report,
                    "{script} {}: known.tsv has the answer {}",
                    difference.path, known[index].pinned
                )
                .unwrap();
            }
            shown += 1;
            writeln!(report, "{script} {difference}").unwrap();
        }
        wrong += usize::from(shown > 0);
    }
    for (entry, _) in known.iter().zip(&used).filter(|(_, used)| !**used) {
        writeln!(report, "no longer needed in known.tsv: {} {} ({})", entry.script, entry.path, entry.reason)
            .unwrap();
    }
    assert!(report.is_empty(), "{wrong} of {} scripts differ\n{report}", found.len());
}

#[tokio::test(start_paused = true)]
async fn recorded_scripts_are_answered_as_by_a_real_server() {
    let (count, found) = play_all(false).await;
    assert!(count >= 400, "only {count} scripts");
    judge(&found);
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_shown_what_a_real_server_shows_them() {
    let (count, found) = play_all(true).await;
    assert!(count >= 60, "only {count} scripts");
    judge(&found);
}

#[test]
fn every_entry_of_what_is_known_names_a_script() {
    for known in known() {
        let (family, name) = known.script.split_once('/').unwrap();
        let name = format!("{{\"n\":\"{name}\",");
        assert!(files()[family].lines().any(|line| line.starts_with(&name)), "{}", known.script);
    }
}

/// The documentation counts the differences that are known, by family and reason, and the scripts.
#[test]
fn the_documentation_lists_what_is_known() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/apiserver.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| Family | Answers | Difference |\n|---|---|---|\n").unwrap();
    let shown: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for known in known() {
        let (family, _) = known.script.split_once('/').unwrap();
        *counts.entry((family, known.reason)).or_default() += 1;
    }
    let row =
        |((family, reason), count): (&(&str, &str), &usize)| format!("| `{family}` | {count} | {reason} |");
    let expected: Vec<String> = counts.iter().map(row).collect();
    assert_eq!(shown, expected, "expected:\n{}", expected.join("\n"));
    let mut count = 0;
    for (family, scripts) in files() {
        let scripts = scripts.lines().count();
        assert!(text.contains(&format!("| `{family}.jsonl` | {scripts} |")), "{family}: {scripts}");
        count += scripts;
    }
    assert!(text.contains(&format!("holds {count} request scripts")), "{count}");
}
