//! Rules about the source itself. See ARCHITECTURE.md, "Invariants".

mod imports;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{root, tracked, tracked_below};

/// What each pure crate may depend on.
const PURE: &[(&str, &[&str])] = &[
    (
        "values",
        &[
            "expressions",
            "golang",
            "json-patch",
            "libyaml-safer",
            "objects",
            "serde",
            "serde_json",
            "strsim",
            "thiserror",
        ],
    ),
    ("expressions", &["base64", "cel", "golang", "objects", "serde_json", "thiserror"]),
    ("golang", &["base64", "jiff", "regex", "serde", "serde_json", "thiserror"]),
    ("objects", &["base64", "golang", "jiff", "json-patch", "serde_json", "thiserror"]),
    ("redaction", &["golang", "serde_json"]),
    (
        "source",
        &[
            "base64",
            "chart",
            "flate2",
            "golang",
            "jsonpath-rust",
            "objects",
            "percent-encoding",
            "serde_json",
            "sha1-checked",
            "sha2",
            "thiserror",
            "values",
        ],
    ),
    (
        "engine",
        &[
            "chart",
            "expressions",
            "golang",
            "jiff",
            "objects",
            "redaction",
            "serde",
            "serde_json",
            "strsim",
            "strum",
            "thiserror",
            "values",
        ],
    ),
    (
        "chart",
        &[
            "aes",
            "base64",
            "bcrypt",
            "cbc",
            "flate2",
            "golang",
            "hmac",
            "jiff",
            "md-5",
            "num-bigint",
            "regex",
            "scrypt",
            "serde",
            "serde_json",
            "sha1",
            "sha2",
            "tar",
            "thiserror",
            "toml",
            "values",
        ],
    ),
];

/// From how many lines on a file says in its head why it is so long. Its inline tests do not count; the aim is 300.
const LONG_FILE: usize = 500;

/// Adapters, which do not know each other.
const ADAPTERS: &[&str] = &[
    "broker",
    "helm",
    "hook",
    "http",
    "kube",
    "load",
    "repository",
    "schedule",
    "source",
    "telemetry",
    "webhook",
];

/// What an adapter may use beside itself: leaves, and the inbox of the driver.
const SHARED: &[&str] = &[
    "cluster",
    "config",
    "directory_trust",
    "directory_watch",
    "driver",
    "fence",
    "file_lock",
    "http_listener",
    "lasting_task",
    "line_diff",
    "process",
    "regular_file",
    "remote",
];

/// Adapters that may use another one, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("hook", "telemetry", "the name of the field that merges JSON into a log line"),
    ("http", "telemetry", "metrics are served where telemetry keeps them"),
];

/// The folders and files of the engine. Each may know those before it, and no other.
const ENGINE: &[&str] = &[
    "duration",
    "time",
    "cause",
    "failure",
    "name",
    "retry",
    "drift_settings",
    "module_settings",
    "enabled",
    "extenders",
    "cron",
    "secrets",
    "shared_list",
    "hook",
    "addon",
    "package",
    "catalog",
    "config",
    "memory",
    "release_target",
    "config_object",
    "lease",
    "chart_test",
    "event",
    "notice",
    "effect",
    "chart_values",
    "context",
    "view",
    "module_file",
    "configuration",
    "task",
    "queue",
    "reconcile",
    "binding",
    "inspection",
    "module",
    "controller",
    "converge",
    "source",
    "repository",
    "webhook",
    "broker",
    "election",
    "command",
    "engine",
];

fn sources(below: &[&str]) -> Vec<PathBuf> {
    let below: Vec<PathBuf> = below.iter().map(|dir| root().join(dir)).collect();
    let files = below.iter().flat_map(|dir| tracked_below(dir));
    files
        .map(Path::to_owned)
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter(|path| {
            !path.components().any(|part| part.as_os_str() == "target" || part.as_os_str() == "fuzz")
        })
        .collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Returns the sources below these folders that are so, as they are shown.
fn those(below: &[&str], so: impl Fn(&Path) -> bool) -> Vec<String> {
    sources(below).iter().filter(|path| so(path)).map(|path| shown(path)).collect()
}

/// Returns a file's text without its inline tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    lines.join("\n")
}

/// Returns what a crate of ours depends on outside of its tests, sorted.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let dependencies = dependencies.split("\n[").next().unwrap();
    let names =
        dependencies.lines().filter_map(|line| line.split_once(" =")).map(|(name, _)| name.to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "benches" | "tests.rs")))
}

#[test]
fn pure_crates_depend_on_what_is_listed_and_nothing_else() {
    for (name, allowed) in PURE {
        assert_eq!(
            dependencies(name),
            *allowed,
            "crates/{name} is pure; see ARCHITECTURE.md before adding a dependency"
        );
    }
}

#[test]
fn what_servers_share_knows_none_of_them() {
    assert_eq!(dependencies("connections"), ["bytes", "http", "http-body", "tokio"]);
}

#[test]
fn pure_crates_forbid_clocks_files_and_random_order() {
    for (name, _) in PURE {
        let rules = fs::read_to_string(root().join("crates").join(name).join("clippy.toml")).unwrap();
        for rule in
            ["std::time::Instant::now", "std::fs::read", "std::thread::spawn", "std::collections::HashMap"]
        {
            assert!(rules.contains(rule), "crates/{name}/clippy.toml does not forbid {rule}");
        }
    }
}

#[test]
fn a_long_file_says_why_it_is_long() {
    let reason = regex::Regex::new(r"(?m)\A(?://!.*\n)*//!.*\b(?:lines|long)\b").unwrap();
    let silent: Vec<String> = sources(&["src", "crates"])
        .iter()
        .filter(|path| !is_test(path))
        .map(|path| (shown(path), code(path)))
        .filter(|(_, code)| code.lines().count() > LONG_FILE && !reason.is_match(code))
        .map(|(path, code)| format!("{path}: {} lines", code.lines().count()))
        .collect();
    assert_eq!(silent, Vec::<String>::new(), "split them by noun, or say in the head why one is so long");
}

#[test]
fn files_say_what_they_are_for() {
    let silent =
        those(&["src", "crates", "tests"], |path| !fs::read_to_string(path).unwrap().starts_with("//!"));
    assert_eq!(silent, Vec::<String>::new(), "these do not begin with `//!` and their purpose");
}

#[test]
fn only_the_driver_runs_the_engine() {
    let callers = those(&["src"], |path| !is_test(path) && code(path).contains("engine.handle("));
    assert_eq!(callers, ["src/driver.rs"]);
}

#[test]
fn only_one_file_knows_the_whole_engine() {
    let name = regex::Regex::new(r"\bEngine\b").unwrap();
    let mut knowing = Vec::new();
    for path in sources(&["crates/engine/src"]) {
        let code = code(&path);
        let mut lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        if lines.any(|line| name.is_match(line) && line != "pub use engine::Engine;") {
            knowing.push(shown(&path));
        }
    }
    assert_eq!(knowing, ["crates/engine/src/engine.rs"]);
}

#[test]
fn the_machines_of_the_engine_know_only_those_below_them() {
    let used = regex::Regex::new(r"crate::([a-z_]+)").unwrap();
    let mut faults = Vec::new();
    for path in sources(&["crates/engine/src"]).into_iter().filter(|path| !is_test(path)) {
        let shown = shown(&path);
        let place =
            shown.trim_start_matches("crates/engine/src/").split(['/', '.']).next().unwrap_or_default();
        if place == "lib" {
            continue;
        }
        let at = ENGINE.iter().position(|name| *name == place);
        let at = at.unwrap_or_else(|| panic!("{shown} has no place in the order of the engine"));
        for name in
            code(&path).lines().flat_map(|line| used.captures_iter(line)).map(|found| found[1].to_owned())
        {
            if !ENGINE[..=at].contains(&name.as_str()) {
                faults.push(format!("{shown} knows {name}"));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn adapters_do_not_know_each_other() {
    let mut faults = Vec::new();
    for path in sources(&["src"]) {
        let shown = shown(&path);
        let Some(adapter) = ADAPTERS
            .iter()
            .find(|name| shown.starts_with(&format!("src/{name}/")) || shown == format!("src/{name}.rs"))
        else {
            continue;
        };
        for line in code(&path).lines() {
            let Some((_, used)) = line.split_once("crate::") else { continue };
            let used: String =
                used.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
            let allowed = used == *adapter
                || SHARED.contains(&used.as_str())
                || EXCEPTIONS.iter().any(|(from, to, _)| from == adapter && *to == used);
            if !allowed {
                faults.push(format!("{shown}: {}", line.trim()));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn events_and_effects_are_plain_data() {
    for file in ["event.rs", "effect.rs", "notice.rs"] {
        let text = fs::read_to_string(root().join("crates/engine/src").join(file)).unwrap();
        for word in ["Sender<", "Receiver<", "Mutex<", "RefCell<", "Box<dyn", "Fn("] {
            assert!(!text.contains(word), "{file} holds a {word}…");
        }
    }
}

#[test]
fn only_the_configuration_reads_the_environment() {
    let readers =
        those(&["src"], |path| ["env::var", "env::vars"].iter().any(|call| code(path).contains(call)));
    assert_eq!(readers, ["src/config.rs"]);
}

#[test]
fn only_development_and_tests_know_the_embedded_api_server() {
    let knowing: Vec<String> = sources(&["src"])
        .iter()
        .filter(|path| code(path).contains("apiserver::"))
        .map(|path| shown(path))
        .filter(|path| !["src/cli", "src/dev", "src/testing/"].iter().any(|place| path.starts_with(place)))
        .collect();
    assert_eq!(knowing, Vec::<String>::new(), "what objects are is in crates/objects");
}

#[test]
fn watches_are_opened_in_one_place() {
    let opening =
        those(&["src"], |path| ["watch=true", "kube::runtime"].iter().any(|way| code(path).contains(way)));
    assert_eq!(opening, ["src/cluster/list.rs"]);
}

#[test]
fn only_telemetry_knows_the_names_of_metrics() {
    let knowing = those(&["src"], |path| {
        !shown(path).starts_with("src/telemetry/") && code(path).contains("prometheus::")
    });
    assert_eq!(knowing, Vec::<String>::new());
}

#[test]
fn unsafe_code_stands_where_the_system_is_asked() {
    let found = those(&["src", "crates"], |path| code(path).contains("unsafe {"));
    assert_eq!(
        found,
        [
            "src/process/child_signal.rs",
            "src/process/chroot.rs",
            "src/process/clock.rs",
            "src/process/lease.rs",
            "src/process/limits.rs",
            "src/process/memory.rs",
            "src/process/spawn.rs",
            "src/process/wait.rs",
            "crates/heap/src/lib.rs"
        ]
    );
}

#[test]
fn main_decides_nothing() {
    let lines = fs::read_to_string(root().join("src/main.rs")).unwrap().lines().count();
    assert!(lines <= 80, "src/main.rs has {lines} lines");
}

#[test]
fn the_top_level_holds_what_it_should() {
    let expected = [
        ".cargo",
        ".ci",
        ".gitignore",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.lock",
        "Cargo.toml",
        "Dockerfile",
        "LICENSE",
        "README.md",
        "build.rs",
        "clippy.toml",
        "crates",
        "deny.toml",
        "docs",
        "examples",
        "fuzz",
        "global-hooks",
        "modules",
        "rust-toolchain.toml",
        "rustfmt.toml",
        "src",
        "tests",
        ".addon-operator",
    ];
    let names = tracked().iter().map(|path| path.strip_prefix(root()).unwrap().iter().next().unwrap());
    let unexpected: BTreeSet<String> = names
        .map(|name| name.to_str().unwrap().to_owned())
        .filter(|name| !expected.contains(&name.as_str()))
        .collect();
    assert_eq!(unexpected, BTreeSet::new());
    let lines = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap().lines().count();
    assert!(lines <= 250, "ARCHITECTURE.md has {lines} lines");
}
