//! What people see on a terminal, and what programs read from a pipe.

use std::process::{Command, Output, Stdio};

use crate::support::program::{Running, Workspace, hook};

/// Runs the program on a pseudo-terminal of 120 columns; `None` where no `script` is there to make one.
fn on_a_terminal(world: &Workspace, arguments: &str, environment: &[(&str, &str)]) -> Option<Output> {
    let program = env!("CARGO_BIN_EXE_addon-operator");
    let line = format!("stty cols 120 rows 40; exec '{program}' {arguments}");
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(world.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("not tried, there is no program `script`: {error}");
            None
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const ONCE: &str = "dev --once --prometheus-listen-port 0 --prometheus-listen-address 127.0.0.1";

#[test]
fn dev_shows_a_bar_on_a_terminal_and_a_line_for_each_state_in_a_pipe() {
    let world = Workspace::samples();
    let Some(output) = on_a_terminal(&world, ONCE, &[]) else { return };
    let seen = text(&output);
    assert_eq!(output.status.code(), Some(0), "{seen}");
    for part in ["/2 modules", "the operator starts", "\u{1b}[36mINFO ", "Operator is ready now"] {
        assert!(seen.contains(part), "{part:?} is missing: {seen:?}");
    }
    // What is erased is not left.
    let last = seen.trim_end().rsplit(['\n', '\r']).next().unwrap();
    assert!(!last.contains(" modules "), "the bar is left on the screen: {last:?}");

    let piped = Workspace::samples().once();
    let lines = text(&piped) + &String::from_utf8_lossy(&piped.stderr);
    assert!(!lines.contains('\u{1b}') && !lines.contains("/2 modules"), "{lines:?}");
    for module in ["greeter", "echo"] {
        for state in ["starting", "running"] {
            let line = format!("module {module} is {state}");
            assert_eq!(lines.matches(&line).count(), 1, "{line}: {lines}");
        }
    }
}

#[test]
fn answers_are_tables_in_colours_on_a_terminal_and_plain_in_a_pipe() {
    let world = Workspace::samples();
    let (running, _) = world.ready();
    for (arguments, on_terminal, in_pipe) in [
        ("status", "\u{1b}[32mrunning\u{1b}[0m", "Queues: 1, "),
        ("module list", "MODULE", "enabledModules:\n- echo\n"),
        ("config list", "EXPIRE AT", "log.level                      info"),
        ("why module greeter", "\u{1b}[32mrunning\u{1b}[0m", "Module greeter is on"),
        ("journal", "\u{1b}[32mdone\u{1b}[0m", "ModuleRun greeter  "),
    ] {
        let Some(output) = on_a_terminal(&world, arguments, &[]) else { return };
        let seen = text(&output);
        assert!(output.status.success() && seen.contains(on_terminal), "{arguments}: {seen:?}");
        let is_table = matches!(arguments, "status" | "module list" | "config list");
        assert_eq!(seen.contains('─'), is_table, "{arguments}: {seen:?}");
        let parts: Vec<&str> = arguments.split(' ').collect();
        let (code, plain) = world.ask(&parts);
        assert!(code == 0 && plain.contains(in_pipe), "{arguments}: {plain}");
        assert!(!plain.contains(['\u{1b}', '─']), "{arguments}: {plain:?}");
        for refusal in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let seen = text(&on_a_terminal(&world, arguments, &[refusal]).unwrap());
            assert!(!seen.contains('\u{1b}'), "{arguments} with {refusal:?}: {seen:?}");
        }
    }
    let asked_for = text(&on_a_terminal(&world, "module list -o yaml", &[]).unwrap());
    assert!(asked_for.contains("enabledModules:"), "who asks for a format gets it: {asked_for:?}");
    assert_eq!(running.stop(), 0);
}

#[test]
fn a_port_of_zero_that_is_asked_for_is_not_called_taken() {
    let world = Workspace::samples();
    let log = text(&world.once());
    assert!(log.contains("curl localhost:") && !log.contains("is taken"), "{log}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let arguments = ["dev", "--prometheus-listen-port", &port, "--prometheus-listen-address", "127.0.0.1"];
    let mut running = Running::start(world.command(&arguments));
    let line = running.wait("is taken");
    assert!(line.contains(&format!("port {port} is taken; this operator listens on port ")), "{line}");
    assert_ne!(running.port(), port);
    assert_eq!(running.stop(), 0);
}

#[test]
fn slip_14_no_command_prints_what_a_hook_wants_the_terminal_to_do() {
    let world = Workspace::new();
    let wants = "printf 'before \\033[2J\\033]0;title\\007 behind\\n' >&2; exit 3";
    world.write("global-hooks/a.sh", &hook("\"onStartup\":1", wants));
    let mut running = world.dev(&["--retry-delay", "1h", "--log-type", "text"]);
    running.wait("exit status 3");
    for command in [&["status"][..], &["queue", "list"], &["journal"], &["why", "queue", "main"]] {
        let (code, said) = world.ask(command);
        assert!(code == 0 && said.contains("\\u001b[2J"), "{command:?} ended with {code}:\n{said}");
        assert!(!said.contains(['\u{1b}', '\u{7}']), "{command:?}:\n{}", said.escape_debug());
    }
    let log = running.seen().join("\n");
    assert!(log.contains("before") && !log.contains(['\u{1b}', '\u{7}']), "{}", log.escape_debug());
    assert_eq!(running.stop(), 0);
}
