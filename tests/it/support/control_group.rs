//! Control groups of tests, where a test may make some: with the rights of root, on a machine of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::DEADLINE;

/// A control group that a test has made. It is removed with the last process in it, and so are those that were made in it.
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes one in `parent`, which exists; `None` where that is not permitted.
    pub(crate) fn new(parent: &Path) -> Option<Self> {
        let path = parent.join(format!("addon-operator-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns a program that runs in the group.
    pub(crate) fn holding(&self, program: &Command) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        command.arg(program.get_program()).args(program.get_args());
        command
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.0.exists() && begun.elapsed() < DEADLINE {
            for group in fs::read_dir(&self.0).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(group.path());
            }
            if fs::remove_dir(&self.0).is_err() {
                super::pause::pause_thread();
            }
        }
    }
}
