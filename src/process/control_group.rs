//! Control groups of runs, where a part of the tree of control groups (version 2) belongs to this process.
//!
//! A group with processes of its own can't limit groups below it. So this process first moves into a group below its own:
//!
//! ```text
//! own group ─▶ operator     this process and all it has started
//!          └─▶ run-1 …      a run with limits
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::hook::HookLimits;

use super::limit_kind::LimitKind;

/// Where the system keeps control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// The group that this process moves to.
const OPERATOR: &str = "operator";

/// How often controllers are asked for: a process that is started meanwhile is in the way.
const TRIES: usize = 3;

/// The part of the tree that belongs to this process.
static OWN: OnceLock<Option<ControlGroups>> = OnceLock::new();

/// A part of the tree of control groups that belongs to this process.
#[derive(Debug)]
pub(super) struct ControlGroups {
    own: PathBuf,
    kinds: Vec<LimitKind>,
    made: AtomicU64,
}

/// The control group of a run. It is removed with the last process in it.
#[derive(Debug)]
pub(super) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroups {
    /// Returns the part that belongs to this process, which moves there with the first call; `None` if there is none.
    pub(super) fn of_process() -> Option<&'static Self> {
        let find = || {
            let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
            Self::take(Path::new(ROOT), &groups).ok()
        };
        OWN.get_or_init(find).as_ref()
    }

    /// Takes the group that `groups` names, as `/proc/self/cgroup` has it.
    fn take(root: &Path, groups: &str) -> io::Result<Self> {
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let path = path.ok_or_else(|| io::Error::other("there are no control groups of version 2"))?;
        let own = root.join(path.trim_start_matches('/'));
        let offered = fs::read_to_string(own.join("cgroup.controllers"))?;
        let kinds: Vec<LimitKind> = [LimitKind::Memory, LimitKind::Cpu, LimitKind::Processes]
            .into_iter()
            .filter(|kind| offered.split_whitespace().any(|name| kind.controller() == Some(name)))
            .collect();
        if kinds.is_empty() {
            return Err(io::Error::other("it has no controllers"));
        }
        let wanted: Vec<String> =
            kinds.iter().filter_map(|kind| kind.controller()).map(|name| format!("+{name}")).collect();
        let operator = own.join(OPERATOR);
        if !operator.is_dir() {
            fs::create_dir(&operator)?;
        }
        let mut taken = Ok(());
        for _ in 0..TRIES {
            for process in fs::read_to_string(own.join("cgroup.procs"))?.lines() {
                // One that has ended meanwhile need not be moved.
                let _ = fs::write(operator.join("cgroup.procs"), process);
            }
            taken = fs::write(own.join("cgroup.subtree_control"), wanted.join(" "));
            if taken.is_ok() {
                break;
            }
        }
        taken.map(|()| Self { own, kinds, made: AtomicU64::new(0) })
    }

    /// Returns whether groups can limit this.
    pub(super) fn can_limit(&self, kind: LimitKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Makes a group with those of the limits that it can have.
    pub(super) fn group(&self, limits: &HookLimits) -> io::Result<ControlGroup> {
        self.remove_empty();
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let group = ControlGroup { path: self.own.join(format!("run-{}-{number}", std::process::id())) };
        fs::create_dir(&group.path)?;
        let write = |name: &str, text: String| fs::write(group.path.join(name), text);
        if let Some(memory) = limits.memory.filter(|_| self.can_limit(LimitKind::Memory)) {
            write("memory.max", memory.to_string())?;
            // All of it is ended, not a part that the rest waits for. Not each kernel has these.
            let _ = write("memory.oom.group", "1".to_owned());
            let _ = write("memory.swap.max", "0".to_owned());
        }
        if let Some(cpu) = limits.cpu.filter(|_| self.can_limit(LimitKind::Cpu)) {
            write("cpu.max", format!("{} 100000", cpu.saturating_mul(100)))?;
        }
        if let Some(processes) = limits.processes.filter(|_| self.can_limit(LimitKind::Processes)) {
            write("pids.max", processes.to_string())?;
        }
        Ok(group)
    }

    /// Removes the groups of runs whose last process has ended.
    fn remove_empty(&self) {
        for entry in fs::read_dir(&self.own).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("run-") {
                // One with processes can't be removed.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl ControlGroup {
    /// Returns the file into which a process is written that enters the group.
    pub(super) fn entrance(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))
    }

    /// Moves a process into the group; one that is in it already stays.
    pub(super) fn enter(&self, process: i32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), process.to_string())
    }

    /// Returns which limit was met.
    pub(super) fn met(&self) -> Option<LimitKind> {
        let count = |file: &str, event: &str| {
            let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix(event)?.trim().parse::<u64>().ok());
            count.is_some_and(|count| count > 0)
        };
        if count("memory.events", "oom_kill ") {
            return Some(LimitKind::Memory);
        }
        count("pids.events", "max ").then_some(LimitKind::Processes)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // What the hook has left running keeps it; then a later run removes it.
        let _ = fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a control group, with a file for each that the system would make.
    fn tree(controllers: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("pod");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("cgroup.controllers"), controllers).unwrap();
        fs::write(own.join("cgroup.procs"), "7\n8\n").unwrap();
        root
    }

    #[test]
    fn a_delegated_group_is_taken_with_its_controllers_and_limits_what_they_can() {
        let root = tree("cpuset memory pids\n");
        let groups = ControlGroups::take(root.path(), "4:memory:/x\n0::/pod\n").unwrap();
        let read = |path: &str| fs::read_to_string(root.path().join("pod").join(path)).unwrap();
        assert_eq!(
            (read("cgroup.subtree_control").as_str(), read("operator/cgroup.procs").as_str()),
            ("+memory +pids", "8")
        );
        assert!(groups.can_limit(LimitKind::Memory) && !groups.can_limit(LimitKind::Cpu));
        let limits =
            HookLimits { memory: Some(1 << 20), cpu: Some(500), processes: Some(9), ..HookLimits::default() };
        let group = groups.group(&limits).unwrap();
        group.enter(4711).unwrap();
        let name = group.path.file_name().unwrap().to_string_lossy().into_owned();
        let of_run = |file: &str| read(&format!("{name}/{file}"));
        assert_eq!(
            (of_run("memory.max"), of_run("pids.max"), of_run("cgroup.procs")),
            ("1048576".into(), "9".into(), "4711".into())
        );
        rustix::io::write(group.entrance().unwrap(), b"0").unwrap();
        assert_eq!(of_run("cgroup.procs"), "0711", "it is this file");
        assert!(!group.path.join("cpu.max").exists(), "nobody offers that");
        assert_eq!(group.met(), None);
        fs::write(group.path.join("pids.events"), "max 3\n").unwrap();
        assert_eq!(group.met(), Some(LimitKind::Processes));
        fs::write(group.path.join("memory.events"), "low 0\noom 1\noom_kill 1\n").unwrap();
        assert_eq!(group.met(), Some(LimitKind::Memory));
    }

    #[test]
    fn without_delegation_there_are_no_groups() {
        for (controllers, groups) in
            [("", "0::/pod\n"), ("memory", "4:memory:/pod\n"), ("memory", "0::/elsewhere\n")]
        {
            let root = tree(controllers);
            assert!(ControlGroups::take(root.path(), groups).is_err(), "{controllers:?} {groups:?}");
        }
    }
}
