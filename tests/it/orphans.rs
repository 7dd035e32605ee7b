//! What hooks leave behind: it is collected and ended, by process 1 of a container and by any other operator.

use std::fs;
use std::process::Command;
use std::time::Instant;

use crate::support::DEADLINE;
use crate::support::pause::pause_thread;

use crate::support::program::{Running, Workspace, hook};

/// Returns whether this machine lets us make a namespace of processes.
fn is_permitted() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns a program of `world` as the first process of a namespace of its own.
fn as_process_1(program: &Command, world: &Workspace) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(program.get_program()).args(program.get_args()).current_dir(world.path());
    command
}

#[test]
fn as_process_1_the_operator_collects_what_hooks_leave_behind() {
    if !is_permitted() {
        eprintln!("skipped: this machine does not permit namespaces of processes");
        return;
    }
    let world = Workspace::new();
    // Each run leaves twenty programs behind that end after it, and counts the dead that nobody has collected.
    world.write(
        "global-hooks/a.sh",
        &hook(
            "\"schedule\":[{\"crontab\":\"* * * * * *\"}]",
            "dead=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z 1 ')\n\
         [[ -e left ]] && echo \"as process $PPID, dead: $dead\"\n\
         [[ -e left ]] || for n in {1..20}; do (setsid sleep 0.$n >/dev/null 2>&1 &) ; done\ntouch left",
        ),
    );
    let dev =
        world.command(&["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"]);
    let mut running = Running::start(as_process_1(&dev, &world));
    running.wait("as process 1, dead: 0");
    assert!(!running.seen().iter().any(|line| line.contains("failed")), "{:?}", running.seen());
}

#[test]
fn what_left_its_hook_with_an_output_open_writes_into_none_of_later_runs() {
    let world = Workspace::new();
    // The first run leaves a program behind that is in no group of its and has nothing of it open but one output.
    // It ends with the directory of this test.
    let what = "if [[ ! -e left ]]; then\n\
                touch left\n\
                setsid bash -c 'while sleep 0.05 && [[ -e left ]]; do printf junk >&9; done' 9>>\"$METRICS_PATH\" </dev/null >/dev/null 2>&1 &\n\
                exit 0\nfi\n\
                sleep 0.3; [[ ! -s $METRICS_PATH ]] || echo \"somebody else wrote\"\n\
                echo run >> runs; (( $(wc -l < runs) < 3 )) || echo \"three more runs\"";
    world.write("global-hooks/a.sh", &hook("\"schedule\":[{\"crontab\":\"* * * * * *\"}]", what));
    let dev =
        world.command(&["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"]);
    let mut running = Running::start(dev);
    running.wait("three more runs");
    assert!(!running.seen().iter().any(|line| line.contains("somebody else wrote")), "{:?}", running.seen());
}

/// Runs so many hooks that end at once beside orphans that end at once, in an operator that is process 1 and collects those.
fn hooks_beside_orphans(count: usize) {
    if !is_permitted() {
        eprintln!("skipped: this machine does not permit namespaces of processes");
        return;
    }
    let world = Workspace::new();
    for n in 0..count {
        // Each third fails the first time, with a code of its own.
        let fails = if n % 3 == 0 {
            format!("[[ -e failed-{n} ]] || {{ touch failed-{n}; exit {}; }}", n % 100 + 100)
        } else {
            String::new()
        };
        let what = format!("(setsid true &)\n(setsid true &)\n{fails}\necho output {n} of a hook");
        world.write(&format!("global-hooks/h{n}.sh"), &hook(&format!("\"onStartup\":{}", n + 1), &what));
    }
    let dev = world.command(&[
        "dev",
        "--retry-delay",
        "1ms",
        "--prometheus-listen-port",
        "0",
        "--prometheus-listen-address",
        "127.0.0.1",
    ]);
    let mut running = Running::start(as_process_1(&dev, &world));
    running.wait("Operator is ready now");
    let log = running.seen().join("\n");
    for n in 0..count {
        assert_eq!(log.matches(&format!("output {n} of a hook")).count(), 1, "hook {n}:\n{log}");
        let code = format!("exit status {}", n % 100 + 100);
        assert!(n % 3 != 0 || log.contains(&code), "hook {n}: {code} was lost:\n{log}");
    }
}

#[test]
fn f_b4_exit_and_output_of_hooks_that_end_at_once_are_not_lost_to_the_collection_of_orphans() {
    hooks_beside_orphans(24);
}

#[test]
#[ignore = "a minute"]
fn f_b4_exit_and_output_of_a_thousand_hooks_are_not_lost_to_the_collection_of_orphans() {
    hooks_beside_orphans(1_000);
}

/// Waits until a process has ended.
fn until_gone(pid: &str) {
    let begun = Instant::now();
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while lives() {
        assert!(begun.elapsed() < DEADLINE, "process {pid} lives on");
        pause_thread();
    }
}

/// A hook that ignores SIGTERM, with a child in a session of its own that has lost its parent.
fn stubborn() -> String {
    let left = "(setsid bash -c \"trap '' TERM; echo left pid \\$\\$ .; sleep 600\" &)";
    hook(
        "\"onStartup\":1",
        &format!("trap '' TERM\n{left}\necho hook pid $$ .\nwhile :; do sleep 0.01; done"),
    )
}

/// Returns the numbers that lines with `pid N .` have.
fn pids(running: &mut Running) -> Vec<String> {
    let number = |line: &String| Some(line.split("pid ").nth(1)?.split(' ').next()?.to_owned());
    loop {
        let found: Vec<String> = running.seen().iter().filter_map(number).collect();
        if found.len() == 2 {
            return found;
        }
        running.wait(" pid ");
    }
}

#[test]
fn slip_18_a_second_signal_ends_all_that_hooks_started() {
    let world = Workspace::new();
    world.write("global-hooks/a.sh", &stubborn());
    let mut running = world.dev(&["--shutdown-timeout", "10m"]);
    let pids = pids(&mut running);
    running.terminate();
    running.wait("a second signal ends at once");
    running.terminate();
    assert_eq!(running.end().0, 128 + 15);
    for pid in pids {
        until_gone(&pid);
    }
}

#[test]
fn slip_18_the_end_of_the_operator_ends_what_hooks_left_behind() {
    let world = Workspace::new();
    let left = "(setsid sleep 600 >/dev/null 2>&1 &)\nsleep 600 >/dev/null 2>&1 & echo hook pid $! .";
    world.write("global-hooks/a.sh", &hook("\"onStartup\":1", left));
    let (running, _) = world.ready();
    let line = running.seen().iter().find(|line| line.contains("hook pid ")).unwrap();
    let pid = line.split("pid ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(running.stop(), 0);
    until_gone(&pid);
}

/// A plugin for credentials that leaves at once, and an orphan beside it. Whoever waits for it has to get its status.
const PLUGIN: &str = "#!/bin/bash\n(setsid true &)\necho $PPID > parent\n\
    echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}'\n";

/// Returns a world whose kubeconfig has that plugin, and the operator that uses it.
fn with_plugin() -> (Workspace, Command) {
    let world = Workspace::new();
    world.write("plugin.sh", PLUGIN);
    world.write(
        "kubeconfig",
        "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin.sh, interactiveMode: Never}}}]\n\
         contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n",
    );
    let program = world.command(&[
        "start",
        "--kube-config",
        "kubeconfig",
        "--namespace",
        "ops",
        "--prometheus-listen-port",
        "0",
        "--prometheus-listen-address",
        "127.0.0.1",
        "--debug-unix-socket",
        "socket",
        "--tmp-dir",
        "tmp",
        "--once",
    ]);
    (world, program)
}

/// Runs it. The plugin has to have worked: what fails is the API server behind it.
fn plugin_works(mut command: Command, world: &Workspace) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("does not answer") && !text.contains("child"), "{:?}: {text}", output.status);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(world.path().join("parent").exists(), "the plugin has not run: {text}");
}

#[test]
fn slip_18_what_somebody_else_waits_for_is_not_taken_for_an_orphan() {
    for _ in 0..20 {
        let (world, program) = with_plugin();
        plugin_works(program, &world);
    }
}

#[test]
fn slip_18_as_process_1_the_exits_of_credential_plugins_are_left_to_who_waits_for_them() {
    if !is_permitted() {
        eprintln!("skipped: this machine does not permit namespaces of processes");
        return;
    }
    for _ in 0..20 {
        let (world, program) = with_plugin();
        plugin_works(as_process_1(&program, &world), &world);
        assert_eq!(fs::read_to_string(world.path().join("parent")).unwrap(), "1\n");
    }
}
