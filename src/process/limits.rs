//! What a program may use at most: by a control group where one can be made, else by limits of each process.
//!
//! | limit | in a control group | without one |
//! | --- | --- | --- |
//! | memory | of all processes together (`memory.max`) | of each process, what it can write to (`RLIMIT_DATA`) |
//! | processes | `pids.max` | not at all: `RLIMIT_NPROC` counts all processes of the user |
//! | cpu | `cpu.max` | not at all: `RLIMIT_CPU` is a time, and no rate |
//! | output | counted by this process, and seen in the files of the run (`written.rs`) | the same |

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::hook::HookLimits;
use rustix::process::{Pid, Resource, Rlimit, prlimit, setrlimit};

use super::control_group::{ControlGroup, ControlGroups};
use super::limit_kind::{LimitKind, MetLimit};

/// What programs say that got no more memory.
const OUT_OF_MEMORY: [&str; 6] =
    ["annot allocate", "out of memory", "Out of memory", "memory exhausted", "MemoryError", "bad_alloc"];

/// The limits of a program that is to be started.
pub(super) struct PreparedLimits {
    limits: HookLimits,
    group: Option<(&'static ControlGroups, ControlGroup)>,
    /// Why there is no group.
    why: String,
}

/// The limits of a program that runs.
#[derive(Debug, Default)]
pub(super) struct AppliedLimits {
    limits: HookLimits,
    group: Option<ControlGroup>,
}

/// The kinds that can't be limited here and that this was said of: CPU, memory, processes.
static TOLD: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

impl PreparedLimits {
    /// Makes what the limits need.
    pub(super) fn new(limits: HookLimits) -> Self {
        let mut why = "no control group was delegated to the operator".to_owned();
        let mut group = None;
        if limits.memory.is_some() || limits.cpu.is_some() || limits.processes.is_some() {
            group = ControlGroups::of_process().and_then(|groups| {
                let group = groups.group(&limits).map_err(|error| why = unusable(&error)).ok()?;
                Some((groups, group))
            });
        }
        Self { limits, group, why }
    }

    /// Returns what the process does before it becomes the program, if it is limited then. What the program starts at once is
    /// limited, too. It takes no memory and no lock, and makes only calls of the system on what was made before.
    pub(super) fn entrance(&self) -> Option<impl FnMut() + Send + Sync + 'static> {
        // Whether it worked is asked for when the process is there.
        let entrance = self.group.as_ref().and_then(|(_, group)| group.entrance().ok());
        let memory = self.limits.memory.filter(|_| !self.has_group_for(LimitKind::Memory));
        if entrance.is_none() && memory.is_none() {
            return None;
        }
        let limit = Rlimit { current: memory, maximum: memory };
        Some(move || {
            if let Some(entrance) = &entrance {
                // 0 is the process that writes.
                let _ = rustix::io::write(entrance, b"0");
            }
            if memory.is_some() {
                let _ = setrlimit(Resource::Data, limit);
            }
        })
    }

    /// Has the process of `command` limited before it becomes the program.
    pub(super) fn enter(&self, command: &mut Command) {
        let Some(mut entrance) = self.entrance() else { return };
        let enter = move || {
            entrance();
            Ok(())
        };
        #[expect(unsafe_code, reason = "a limit is set between the two calls that start a program")]
        // SAFETY: the closure allocates nothing, takes no lock and makes only calls of the system on what was made before.
        unsafe {
            command.pre_exec(enter);
        }
    }

    /// Returns the limits of the program, which was started. What can't be limited is told once for all programs.
    ///
    /// # Errors
    ///
    /// What can't be limited here, if the limits are strict.
    pub(super) fn started(mut self, pid: Pid) -> Result<AppliedLimits, String> {
        if let Some((_, group)) = &self.group
            && let Err(error) = group.enter(pid.as_raw_nonzero().get())
        {
            self.why = unusable(&error);
            self.group = None;
        }
        let limits = self.limits;
        let wanted = [
            (LimitKind::Cpu, limits.cpu.is_some()),
            (LimitKind::Memory, limits.memory.is_some()),
            (LimitKind::Processes, limits.processes.is_some()),
        ];
        let mut lacking = Vec::new();
        for (place, (kind, is_wanted)) in wanted.into_iter().enumerate() {
            if !is_wanted || self.has_group_for(kind) {
                continue;
            }
            if kind == LimitKind::Memory && limit_memory(pid, limits.memory).is_ok() {
                continue;
            }
            lacking.push(kind.key());
            if !TOLD.get(place).is_none_or(|told| told.swap(true, Ordering::Relaxed)) {
                tracing::warn!(
                    "{} of hooks can't be limited here: {}; they run without that limit, and this is not told again",
                    kind.key(),
                    self.why
                );
            }
        }
        if limits.is_strict && !lacking.is_empty() {
            return Err(format!("{} can't be limited here: {}", lacking.join(" and "), self.why));
        }
        Ok(AppliedLimits { limits, group: self.group.map(|(_, group)| group) })
    }

    fn has_group_for(&self, kind: LimitKind) -> bool {
        self.group.as_ref().is_some_and(|(groups, _)| groups.can_limit(kind))
    }
}

fn unusable(error: &io::Error) -> String {
    format!("its control group can't be used: {error}")
}

impl AppliedLimits {
    /// Returns the limit that a program has met which did not succeed and said this.
    pub(super) fn met(&self, stderr: &str) -> Option<MetLimit> {
        let by_group = self.group.as_ref().and_then(ControlGroup::met);
        let says_so =
            || OUT_OF_MEMORY.iter().any(|words| stderr.contains(words)).then_some(LimitKind::Memory);
        let kind = by_group.or_else(says_so)?;
        let most = match kind {
            LimitKind::Memory => self.limits.memory,
            LimitKind::Processes => self.limits.processes,
            LimitKind::Cpu | LimitKind::Output => None,
        };
        most.map(|most| MetLimit { kind, most })
    }

    /// Returns the limit of output, if so many bytes are more.
    pub(super) fn met_by_output(&self, bytes: u64) -> Option<MetLimit> {
        let most = self.limits.output.filter(|most| bytes > *most)?;
        Some(MetLimit { kind: LimitKind::Output, most })
    }
}

/// Limits what a process, and each that it starts from now on, can write to.
fn limit_memory(pid: Pid, most: Option<u64>) -> io::Result<()> {
    prlimit(Some(pid), Resource::Data, Rlimit { current: most, maximum: most })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_limited_before_it_can_start_another_one() {
        let limits = HookLimits { memory: Some(64 << 20), ..HookLimits::default() };
        let prepared = PreparedLimits { limits, group: None, why: String::new() };
        let mut command = Command::new("cat");
        prepared.enter(command.arg("/proc/self/limits"));
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let line = output.lines().find(|line| line.starts_with("Max data size")).unwrap();
        assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["67108864", "67108864", "bytes"]);
    }

    #[test]
    fn who_has_no_limits_is_started_as_ever() {
        let limits = HookLimits { output: Some(1), ..HookLimits::default() };
        let prepared = PreparedLimits::new(limits);
        assert!(prepared.group.is_none());
        assert!(prepared.started(rustix::process::getpid()).unwrap().group.is_none());
    }
}
