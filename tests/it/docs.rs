//! The commands in README.md, `docs/` and the READMEs of the examples are run, and what they print is compared.
//!
//! Blocks of code of `bash` and `console` are commands. A word behind that says how they are run:
//!
//! * `background`: an operator that is started and kept until the end of the document;
//! * `files`: a server of files at `localhost:8080`; the test serves the directory that it names, on a port of its own;
//! * `cluster`: needs a cluster; runs against an embedded API server of its own;
//! * `helm`: needs Helm, and is left out where there is none;
//! * `hook`: the text of a hook; its syntax is checked.
//!
//! In `console` a line `$ …` is a command, the lines below are what it prints. `…` in a line stands for anything, alone for any
//! number of lines. A command whose output is not that yet is run again: many things take effect a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use addon_operator::config::Environment;
use regex::Regex;
use tempfile::TempDir;

use crate::support::DEADLINE;
use crate::support::files::{copy, root, tracked, tracked_below};
use crate::support::pause::long_pause_thread;
use crate::support::program::Running;

/// Languages of blocks that are commands.
const COMMANDS: &[&str] = &["bash", "console", "sh", "shell"];

/// Where documents serve files.
const FILES: &str = "localhost:8080";

/// A block of code.
#[derive(Debug)]
struct Block {
    language: String,
    how: String,
    text: String,
    line: usize,
}

/// Returns the blocks of code of a document.
fn blocks(document: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(words) => {
                open = true;
                let (language, how) = words.split_once(' ').unwrap_or((words, ""));
                let (language, how) = (language.to_owned(), how.to_owned());
                found.push(Block { language, how, text: String::new(), line: number + 1 });
            }
            None if open => found.last_mut().unwrap().text.extend([line, "\n"]),
            None => {}
        }
    }
    found
}

/// A place where a document is tried: what a fresh clone has, and the programs of this build.
struct Place {
    name: String,
    dir: TempDir,
    /// What earlier blocks exported.
    exports: String,
    running: Vec<Running>,
    port: Option<String>,
    server: Option<PathBuf>,
    /// The port of the server of files.
    files: Option<u16>,
}

impl Place {
    fn new(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for part in ["modules", "global-hooks", "examples"] {
            copy(&root().join(part), dir.path());
        }
        let bin = dir.path().join(".bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_addon-operator"), bin.join("addon-operator")).unwrap();
        // It was built already, and tested.
        let cargo = "#!/bin/sh\n[ \"$1\" = run ] || exit 0\nwhile [ $# -gt 0 ]; do [ \"$1\" = -- ] && break; shift; done; shift\nexec addon-operator \"$@\"\n";
        fs::write(bin.join("cargo"), cargo).unwrap();
        fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        let (exports, running) = (String::new(), Vec::new());
        Self { name: name.to_owned(), dir, exports, running, port: None, server: None, files: None }
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        let port = self.port.as_deref().unwrap_or("9115");
        let script =
            format!("{}{}", self.exports, script.replace("localhost:9115", &format!("localhost:{port}")));
        let script = match self.files {
            Some(port) => script.replace(FILES, &format!("localhost:{port}")),
            None => script,
        };
        command.args(["-euo", "pipefail", "-c", &script]).current_dir(self.dir.path()).env_clear();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.dir.path().join(".bin").display());
        command.env("PATH", path).env("HOME", self.dir.path());
        command.env("ADDON_OPERATOR_LISTEN_PORT", "0").env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1");
        command
    }

    /// Runs a script and returns what it printed, and whether it succeeded.
    fn run(&self, script: &str, cluster: bool) -> (bool, String) {
        let mut command = self.command(script);
        if let Some(kubeconfig) = self.server.as_ref().filter(|_| cluster) {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text.into_owned())
    }

    /// Remembers what a block exports for those behind it.
    fn remember(&mut self, text: &str) {
        for line in text.lines().filter(|line| line.starts_with("export ")) {
            self.exports.extend([line, "\n"]);
        }
    }

    fn block(&mut self, block: &Block) {
        let place = format!("{}:{}", self.name, block.line);
        match (block.language.as_str(), block.how.as_str()) {
            ("bash", "hook") => {
                fs::write(self.dir.path().join("hook"), &block.text).unwrap();
                let checked = Command::new("bash").arg("-n").arg(self.dir.path().join("hook")).status();
                assert!(checked.unwrap().success(), "{place}");
            }
            ("bash", "background") => {
                let mut running =
                    Running::start(self.command(&block.text.replacen("cargo", "exec cargo", 1)));
                self.port = Some(running.port());
                running.wait("Operator is ready now");
                self.running.push(running);
            }
            ("bash", "files") => self.serve(block),
            ("bash", "cluster") => {
                self.server();
                let (done, text) = self.run(&block.text, true);
                assert!(done, "{place}: {text}");
            }
            ("bash", "helm") if !has("helm") => eprintln!("skipped: {place} needs helm"),
            ("bash", "" | "helm") => {
                let (done, text) = self.run(&block.text, false);
                assert!(done, "{place}: {text}");
                self.remember(&block.text);
            }
            ("console", "") => self.console(block),
            (language, how) => panic!("{place}: a block of {language:?} can't be {how:?}"),
        }
    }

    /// Serves the directory that the command names last, for as long as the process lives.
    fn serve(&mut self, block: &Block) {
        let directory = self.dir.path().join(block.text.split_whitespace().next_back().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        self.files = Some(port);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let path = lines.next().and_then(|line| Some(line.split(' ').nth(1)?.to_owned()));
                lines.find(String::is_empty);
                let found = path.and_then(|path| fs::read(directory.join(path.trim_start_matches('/'))).ok());
                let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
                let body = found.unwrap_or_default();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let mut stream = stream;
                // Who hangs up does not want it.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        let examples = root().join("examples");
        for manifest in tracked_below(&examples).filter(|path| path.ends_with("manifest.yaml")) {
            let copied = self.dir.path().join(manifest.strip_prefix(root()).unwrap());
            let text = fs::read_to_string(&copied).unwrap();
            fs::write(&copied, text.replace(FILES, &format!("localhost:{port}"))).unwrap();
        }
    }

    /// Starts an API server for blocks that need a cluster.
    fn server(&mut self) {
        if self.server.is_some() {
            return;
        }
        let kubeconfig = self.dir.path().join(".cluster");
        let mut server = Running::start(self.command(
            "exec addon-operator apiserver --listen 127.0.0.1:0 --simulate --kubeconfig-out .cluster",
        ));
        server.wait_for_file(&kubeconfig);
        self.running.push(server);
        self.server = Some(kubeconfig);
    }

    fn console(&mut self, block: &Block) {
        let mut steps: Vec<(usize, String, String)> = Vec::new();
        for (number, line) in block.text.lines().enumerate() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push((block.line + number + 1, command.to_owned(), String::new())),
                None => steps.last_mut().unwrap().2.extend([line, "\n"]),
            }
        }
        for (line, command, expected) in steps {
            self.remember(&command);
            let pattern = pattern(&expected);
            let begun = Instant::now();
            loop {
                let (done, text) = self.run(&command, false);
                if done && pattern.is_match(&text) {
                    break;
                }
                let late = begun.elapsed() > DEADLINE;
                assert!(!late, "{}:{line}: {command}\nexpected:\n{expected}\nprinted:\n{text}", self.name);
                long_pause_thread();
            }
        }
    }
}

/// Returns what an output has to look like. The end of its last line may be missing.
fn pattern(expected: &str) -> Regex {
    let mut pattern = String::from("(?s)^");
    for line in expected.lines() {
        if line == "…" {
            pattern += "(?:[^\\n]*\\n)*";
        } else {
            pattern += &(regex::escape(line).replace('…', "[^\\n]*") + " *\\n");
        }
    }
    // What was asked for ends with a line; commands of the operator end with one more.
    Regex::new(&format!("{}\\n*$", pattern.strip_suffix("\\n").unwrap_or(&pattern))).unwrap()
}

/// Returns the documents with commands.
fn documents() -> Vec<(String, String)> {
    let is_example = |path: &Path| path.ends_with("README.md") && path.starts_with(root().join("examples"));
    let is_document = |path: &Path| path.parent() == Some(&*root().join("docs"));
    let is_markdown = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    let wanted = |path: &Path| {
        is_markdown(path) && (is_document(path) || is_example(path) || path == root().join("README.md"))
    };
    let mut paths: Vec<PathBuf> = tracked().iter().filter(|path| wanted(path)).cloned().collect();
    paths.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn has(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
}

/// Runs the commands of a document; they need `curl` and `kubectl`.
fn try_out(name: &str) {
    try_out_in(Place::new(name), name);
}

fn try_out_in(mut place: Place, name: &str) {
    let (_, text) = documents().into_iter().find(|(known, _)| known == name).unwrap();
    if !has("kubectl") || !has("curl") {
        eprintln!("skipped: {name} needs curl and kubectl");
        return;
    }
    for block in blocks(&text).iter().filter(|block| COMMANDS.contains(&block.language.as_str())) {
        place.block(block);
    }
    for running in place.running {
        assert_eq!(running.stop(), 0);
    }
}

/// The documents that the tests below try out.
const TRIED: &[&str] = &[
    "README.md",
    "docs/charts.md",
    "docs/hooks.md",
    "docs/operating.md",
    "docs/quickstart.md",
    "docs/source-air-gap.md",
    "docs/source-broker.md",
    "docs/source-registries.md",
    "docs/source-signatures.md",
    "docs/source-updates.md",
    "docs/sources.md",
    "docs/testing.md",
    "examples/001-startup-global/README.md",
    "examples/101-module/README.md",
    "examples/201-values/README.md",
    "examples/300-hypershift/README.md",
    "examples/301-secret-copier/README.md",
    "examples/302-namespace-labeller/README.md",
    "examples/303-website-controller/README.md",
    "examples/304-config-checksum/README.md",
    "examples/305-expired-configmaps/README.md",
    "examples/306-small-controllers/README.md",
    "examples/401-source/README.md",
    "examples/402-signed-source/README.md",
    "examples/403-catalogue/README.md",
    "examples/501-validating/README.md",
    "examples/502-mutating/README.md",
    "examples/503-conversion/README.md",
];

#[test]
fn the_commands_of_the_readme_work() {
    try_out("README.md");
}

#[test]
fn the_commands_of_the_quick_start_work_and_print_what_it_says() {
    try_out("docs/quickstart.md");
}

#[test]
fn the_commands_of_the_document_about_operating_work() {
    try_out("docs/operating.md");
}

#[test]
fn the_commands_of_the_document_about_hooks_work() {
    try_out("docs/hooks.md");
}

#[test]
fn the_commands_of_the_document_about_charts_work() {
    try_out("docs/charts.md");
}

#[test]
fn the_commands_of_the_documents_about_sources_work() {
    try_out("docs/sources.md");
    for page in ["air-gap", "broker", "registries", "signatures", "updates"] {
        try_out(&format!("docs/source-{page}.md"));
    }
}

#[test]
fn the_commands_of_the_document_about_testing_work() {
    let name = "docs/testing.md";
    let place = Place::new(name);
    // Three commands run all tests that are there: here those of the samples. `testing` and `example_controllers` run those of examples.
    fs::remove_dir_all(place.dir.path().join("examples")).unwrap();
    try_out_in(place, name);
}

#[test]
fn the_commands_of_the_first_examples_work() {
    try_out("examples/001-startup-global/README.md");
    try_out("examples/101-module/README.md");
    try_out("examples/201-values/README.md");
}

#[test]
fn the_commands_of_the_examples_of_hooks_work() {
    try_out("examples/301-secret-copier/README.md");
    try_out("examples/302-namespace-labeller/README.md");
    try_out("examples/303-website-controller/README.md");
    if has("python3") {
        try_out("examples/304-config-checksum/README.md");
    }
}

#[test]
fn the_commands_of_the_example_of_hosted_clusters_work() {
    try_out("examples/300-hypershift/README.md");
}

#[test]
fn the_commands_of_the_example_of_a_schedule_work() {
    try_out("examples/305-expired-configmaps/README.md");
}

#[test]
fn the_commands_of_the_examples_of_controllers_work() {
    try_out("examples/306-small-controllers/README.md");
}

#[test]
fn the_commands_of_the_examples_of_webhooks_work() {
    try_out("examples/501-validating/README.md");
    try_out("examples/502-mutating/README.md");
    try_out("examples/503-conversion/README.md");
}

#[test]
fn the_commands_of_the_example_of_a_module_source_work() {
    try_out("examples/401-source/README.md");
}

#[test]
fn the_commands_of_the_example_of_a_signed_source_work() {
    if !has("openssl") {
        eprintln!("skipped: examples/402-signed-source/README.md needs openssl");
        return;
    }
    try_out("examples/402-signed-source/README.md");
}

#[test]
fn the_commands_of_the_example_of_a_chart_repository_work() {
    try_out("examples/403-catalogue/README.md");
}

#[test]
fn no_document_has_commands_that_nobody_tries() {
    for (name, text) in documents() {
        let commands = blocks(&text).iter().any(|block| COMMANDS.contains(&block.language.as_str()));
        assert!(
            !commands || TRIED.contains(&name.as_str()),
            "{name} has commands: add it to TRIED and a test"
        );
        let indented = text.lines().find(|line| {
            ["    curl ", "    kubectl ", "    cargo ", "    addon-operator ", "    export "]
                .iter()
                .any(|known| line.starts_with(known))
        });
        let in_block = |line: &str| blocks(&text).iter().any(|block| block.text.contains(line));
        assert!(indented.is_none_or(in_block), "{name}: {indented:?} is not in a block of its own");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)#:]+)(?:#[^)]*)?\)").unwrap();
    for (name, text) in documents() {
        let from = root().join(&name);
        for found in link.captures_iter(&text) {
            assert!(from.parent().unwrap().join(&found[1]).exists(), "{name}: {}", &found[1]);
        }
    }
}

/// Returns the anchors of a document's headings, as renderers make them.
fn anchors(document: &str) -> BTreeSet<String> {
    let heading = |line: &str| Some(line.trim_start_matches('#').strip_prefix(' ')?.to_lowercase());
    let headings = document.lines().filter(|line| line.starts_with('#')).filter_map(heading);
    let kept = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_');
    headings.map(|text| text.replace(' ', "-").chars().filter(|char| kept(*char)).collect()).collect()
}

#[test]
fn links_to_sections_lead_to_headings() {
    let headings: BTreeMap<String, BTreeSet<String>> =
        documents().into_iter().map(|(name, text)| (name, anchors(&text))).collect();
    let check = |from: &Path, document: &str, anchor: &str| {
        let found = headings.get(document).is_none_or(|anchors| anchors.contains(anchor));
        assert!(found, "{}: {document}#{anchor}", from.display());
    };
    let in_document = Regex::new(r"\]\(([\w./-]*)#([\w-]+)\)").unwrap();
    for (name, text) in documents() {
        for link in in_document.captures_iter(&text) {
            let parts = Path::new(&name).parent().unwrap().join(&link[1]);
            let document = if link[1].is_empty() { name.clone() } else { normal(&parts) };
            check(Path::new(&name), &document, &link[2]);
        }
    }
    let in_code = Regex::new(r"(docs/\w+\.md)#([\w-]+)").unwrap();
    for folder in ["src", "crates", "examples"] {
        for path in tracked_below(&root().join(folder)) {
            if path.extension().is_some_and(|extension| extension == "rs" || extension == "yaml") {
                for link in in_code.captures_iter(&fs::read_to_string(path).unwrap()) {
                    check(path, &link[1], &link[2]);
                }
            }
        }
    }
}

/// Returns a relative path without `..`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.iter().filter_map(|part| part.to_str()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[test]
fn outputs_are_compared_line_by_line() {
    for (expected, printed, same) in [
        ("a\nb\n", "a\nb\n", true),
        ("a\nb\n", "a\nb", true),
        ("a\nb\n", "a\nb\n\n", true),
        ("a\nb\n", "a\nc\n", false),
        ("a … c\n", "a b c\n", true),
        ("a … c\n", "a b\nc\n", false),
        ("…\nc\n", "a\nb\nc\n", true),
        ("a\n…\n", "a\nb\nc\n", true),
        ("…\nc\n", "a\nb\n", false),
        ("", "", true),
        ("", "a\n", false),
        ("(a)\n", "(a)\n", true),
    ] {
        assert_eq!(pattern(expected).is_match(printed), same, "{expected:?} {printed:?}");
    }
}

/// Returns the names of all tests that show a fault, by the id of the fault (`F-A1`, `S-07`), each below its file.
fn tests_of_faults() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let name =
        Regex::new(r"(?m)^ *(?:async )?fn ((?:f(?:_[a-h][0-9]+)+|slip(?:_[0-9]{2}[bc]?)+)_\w+)\(").unwrap();
    let number = Regex::new(r"^(f|slip)((?:_[a-h][0-9]+|_[0-9]{2}[bc]?)+)_").unwrap();
    let mut found: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let below = ["src", "crates", "tests"].map(|dir| root().join(dir));
    for path in below.iter().flat_map(|dir| tracked_below(dir)) {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        for test in name.captures_iter(&fs::read_to_string(path).unwrap()) {
            let parts = number.captures(&test[1]).unwrap();
            for number in parts[2].split('_').skip(1) {
                let id = if &parts[1] == "f" {
                    format!("F-{}", number.to_uppercase())
                } else {
                    format!("S-{number}")
                };
                let files = found.entry(id).or_default();
                files.entry(file.clone()).or_default().push(test[1].to_owned());
            }
        }
    }
    found
}

#[test]
fn every_fault_is_listed_with_its_tests() {
    let path = root().join("docs/faults.md");
    let kept = fs::read_to_string(&path).unwrap();
    let mut tests = tests_of_faults();
    let mut made = String::new();
    for line in kept.lines() {
        let row = line.strip_prefix("| ").and_then(|row| row.split_once(" | "));
        let row = row.filter(|(id, _)| id.starts_with("F-") || id.starts_with("S-"));
        match row.and_then(|(fault, rest)| Some((fault, rest.split_once(" | ")?.0))) {
            Some((fault, what)) => {
                let files = tests.remove(fault).unwrap_or_default().into_iter();
                let files: Vec<String> =
                    files.map(|(file, tests)| format!("`{file}`: `{}`", tests.join("`, `"))).collect();
                let files = if files.is_empty() { "none yet".to_owned() } else { files.join("<br>") };
                let _ = writeln!(made, "| {fault} | {what} | {files} |");
            }
            None => made.extend([line, "\n"]),
        }
    }
    assert!(tests.is_empty(), "these are not in docs/faults.md: {tests:?}");
    if Environment::of_process().text("UPDATE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept == made, "docs/faults.md is not up to date: UPDATE_DOCS=1 cargo test --test it every_fault");
}
