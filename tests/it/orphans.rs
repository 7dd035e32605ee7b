//! The operator as process 1 of a container.

use std::process::Command;

use crate::support::program::{Running, Workspace, hook};

/// Returns whether this machine lets us make a namespace of processes.
fn is_permitted() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]);
    command.output().is_ok_and(|output| output.status.success())
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
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(dev.get_program()).args(dev.get_args()).current_dir(world.path());
    let mut running = Running::start(command);
    running.wait("as process 1, dead: 0");
    assert!(!running.seen().iter().any(|line| line.contains("failed")), "{:?}", running.seen());
}
