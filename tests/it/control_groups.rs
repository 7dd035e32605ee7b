//! Limits of hooks in a control group (version 2) that belongs to the operator: there all of them hold, and for all processes of a
//! hook together.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::support::DEADLINE;
use crate::support::control_group::ControlGroup;
use crate::support::pause::pause_thread;
use crate::support::program::{Running, Workspace, hook};

const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Makes a group that may limit everything; `None` where that is not permitted.
fn delegated() -> Option<ControlGroup> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/'));
    let offers = |group: &Path| {
        let offered = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
        CONTROLLERS.iter().all(|name| offered.split_whitespace().any(|found| found == *name))
    };
    // A group with processes hands nothing on, but for the root.
    own.ancestors().filter(|group| offers(group)).find_map(|group| {
        let _ = fs::write(
            group.join("cgroup.subtree_control"),
            CONTROLLERS.map(|name| format!("+{name}")).join(" "),
        );
        let made = ControlGroup::new(group)?;
        offers(made.path()).then_some(made)
    })
}

/// Each process has less than the hook may, and all of them have more.
const GREEDY: &str = "for n in 1 2 3 4; do head -c 20000000 /dev/zero | tail -c 20000000 | sleep 60 & done; wait; echo outlived";

/// It ends with 3 when it may start no more.
const PROLIFIC: &str = "perl -e 'for (1..40) { my $child = fork; exit 3 unless defined $child; unless ($child) { sleep 3; exit } } print qq(outlived\\n)'";

/// It computes for 0.3 s, and says how often it was held up meanwhile.
const BUSY: &str = "perl -e 'while ((times)[0] < 0.3) {}'; grep nr_throttled \"/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.stat\"";

#[test]
fn in_a_delegated_control_group_each_limit_holds_and_the_failure_says_which_was_met() {
    let Some(group) = delegated() else {
        eprintln!(
            "skipped: this machine does not permit control groups (version 2) for memory, processes and CPU"
        );
        return;
    };
    let world = Workspace::new();
    let limited = |name: &str, limits: &str, text: &str| {
        let schedule =
            format!(r#""schedule":[{{"crontab":"* * * * * *","queue":"{name}","allowFailure":true}}]"#);
        let config = format!(r#"{schedule},"settings":{{"limits":{{{limits},"strict":true}}}}"#);
        world.write(&format!("global-hooks/{name}.sh"), &hook(&config, text));
    };
    limited("greedy", r#""memory":"32Mi""#, GREEDY);
    limited("prolific", r#""processes":16"#, PROLIFIC);
    limited("busy", r#""cpu":"200m""#, BUSY);
    let dev =
        world.command(&["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"]);
    let mut command = group.holding(&dev);
    command.current_dir(world.path()).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let mut running = Running::start(command);
    let (mut memory, mut processes, mut cpu) = (false, false, false);
    while !(memory && processes && cpu) {
        let line = running.wait("");
        assert!(!line.contains("outlived") && !line.contains("can't be limited"), "{line}");
        memory |= line.contains(
            "it needs more memory than the 33554432 bytes that it may use (settings.limits.memory)",
        );
        processes |= line
            .contains("it starts more than the 16 processes that it may have (settings.limits.processes)");
        if let Some((_, rest)) = line.split_once("nr_throttled ") {
            let times: String = rest.chars().take_while(char::is_ascii_digit).collect();
            assert_ne!(times, "0", "{line}");
            cpu = true;
        }
    }
    // The operator itself is in a group beside those of hooks, and lives.
    let operator = fs::read_to_string(group.path().join("operator/cgroup.procs")).unwrap();
    assert!(operator.lines().any(|pid| pid == running.pid().to_string()), "{operator}");
    assert_eq!(world.ask(&["status"]).0, 0);
    assert_eq!(running.stop(), 0);
    // Nothing of a hook is left: its group could be removed otherwise only when it has ended.
    let begun = Instant::now();
    let left = || {
        let groups = fs::read_dir(group.path()).unwrap().flatten().filter(|entry| entry.path().is_dir());
        let lives = |entry: &fs::DirEntry| {
            let processes = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap_or_default();
            entry.file_name() != "operator" && !processes.is_empty()
        };
        groups.filter(lives).count()
    };
    while left() > 0 {
        assert!(begun.elapsed() < DEADLINE, "{} hooks have left processes behind", left());
        pause_thread();
    }
}
