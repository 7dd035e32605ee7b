//! Memory that becomes short in truth: the operator in a control group of its own, beside a program that takes nearly all of it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::DEADLINE;
use crate::support::control_group::ControlGroup;
use crate::support::pause::pause_thread;
use crate::support::program::{Running, Workspace, hook};

const LIMIT: u64 = 512 << 20;

const MIB: usize = 1 << 20;

/// A control group below that of the test, with a limit for memory.
struct MemoryGroup {
    group: ControlGroup,
    used: &'static str,
    reclaimable: &'static str,
}

impl MemoryGroup {
    /// Makes one; `None` where that is not permitted.
    fn new() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = |controller: &str| {
            groups.lines().find_map(|line| {
                let (names, path) = line.split_once(':')?.1.split_once(':')?;
                (names == controller).then(|| path.trim_start_matches('/').to_owned())
            })
        };
        let versions = [
            ("/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file "),
            (
                "/sys/fs/cgroup/memory",
                "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file ",
            ),
        ];
        versions.into_iter().find_map(|(root, controller, limit, used, reclaimable)| {
            let group = ControlGroup::new(&Path::new(root).join(own(controller)?))?;
            // One without that controller has no such file, and must not get one.
            group.path().join(limit).exists().then_some(())?;
            fs::write(group.path().join(limit), LIMIT.to_string()).ok()?;
            Some(Self { group, used, reclaimable })
        })
    }

    /// Returns how much is used, without what the system takes back.
    fn used(&self) -> u64 {
        let used: u64 =
            fs::read_to_string(self.group.path().join(self.used)).unwrap().trim().parse().unwrap();
        let stat = fs::read_to_string(self.group.path().join("memory.stat")).unwrap();
        let caches = stat.lines().find_map(|line| line.strip_prefix(self.reclaimable)?.parse::<u64>().ok());
        used - caches.unwrap_or(0).min(used)
    }
}

/// A program that keeps in memory what it is told.
struct Balloon(Child);

impl Balloon {
    fn new(group: &MemoryGroup) -> Self {
        let mut tail = Command::new("tail");
        tail.args(["-c", "1G"]);
        let mut command = group.group.holding(&tail);
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Takes memory until 95 of 100 parts are used.
    fn fill(&mut self, group: &MemoryGroup) {
        let stdin = self.0.stdin.as_mut().unwrap();
        let begun = Instant::now();
        while group.used() < LIMIT / 100 * 95 {
            assert!(begun.elapsed() < DEADLINE, "{} bytes are used", group.used());
            stdin.write_all(&vec![1; MIB]).unwrap();
        }
    }
}

impl Drop for Balloon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the most hooks that ran at the same time when there were that many lines, or later.
fn most_at_once(text: &str, lines: usize) -> i32 {
    let (mut running, mut most) = (0, 0);
    for (number, line) in text.lines().enumerate() {
        running += if line == "begin" { 1 } else { -1 };
        if number + 1 >= lines {
            most = most.max(running);
        }
    }
    most
}

#[test]
fn f_h6_with_memory_close_to_its_limit_hooks_run_one_at_a_time_and_the_release_is_made() {
    let Some(group) = MemoryGroup::new() else {
        eprintln!("skipped: this machine does not permit control groups for memory");
        return;
    };
    let world = Workspace::new();
    let runs = world.path().join("runs");
    let tick = format!("echo begin >> '{0}'; sleep 0.2; echo end >> '{0}'", runs.display());
    for n in 0..6 {
        let schedule = format!("\"schedule\":[{{\"crontab\":\"* * * * * *\",\"queue\":\"q{n}\"}}]");
        world.write(&format!("global-hooks/h{n}.sh"), &hook(&schedule, &tick));
    }
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
    );
    world.write("modules/values.yaml", "webEnabled: false\n");
    let dev =
        world.command(&["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"]);
    let mut command = group.group.holding(&dev);
    command.current_dir(world.path()).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let mut running = Running::start(command);
    running.wait_for_file(&runs);
    let mut balloon = Balloon::new(&group);
    balloon.fill(&group);
    let lines = || fs::read_to_string(&runs).unwrap();
    let begun = Instant::now();
    // Behind a moment at which one runs at most, all are decided while memory is short: those of the first turn, too.
    while world.ask(&["queue", "list"]).1.matches("run first task").count() > 1 {
        assert!(begun.elapsed() < DEADLINE, "hooks run for ever: {}", lines());
        pause_thread();
    }
    let before = lines().lines().count();
    running.wait("hooks run one at a time");
    assert_eq!(world.ask(&["module", "enable", "web"]).0, 0);
    running.wait("module web is running");
    // Twenty runs behind the moment at which memory was short.
    let begun = Instant::now();
    while lines().lines().count() < before + 40 {
        assert!(begun.elapsed() < DEADLINE, "hooks do not run: {}", lines());
        pause_thread();
    }
    let text = lines();
    assert_eq!(most_at_once(&text, before), 1, "{before} lines, then memory was short: {text}");
    assert!(group.used() > LIMIT / 10 * 9, "it was short all the time");
    let (code, status) = world.ask(&["status"]);
    assert_eq!(code, 0, "{status}");
    assert!(status.contains("memory is short"), "{status}");
    let before = text.lines().count();
    drop(balloon);
    running.wait("memory is not short any more");
    let begun = Instant::now();
    while most_at_once(&lines(), before) <= 1 {
        assert!(begun.elapsed() < DEADLINE, "one at a time for ever: {}", lines());
        pause_thread();
    }
    assert_eq!(running.stop(), 0);
}
