//! What a program may use at most: by a control group where one can be made, else by limits of each process.
//!
//! | limit | in a control group | without one |
//! | --- | --- | --- |
//! | memory | of all processes together (`memory.max`) | of each process, what it can write to (`RLIMIT_DATA`) |
//! | processes | `pids.max` | not at all: `RLIMIT_NPROC` counts all processes of the user |
//! | cpu | `cpu.max` | not at all: `RLIMIT_CPU` is a time, and no rate |
//! | output | counted by this process | the same |

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::hook::HookLimits;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::control_group::{ControlGroup, ControlGroups};
use super::limit_kind::{LimitKind, MetLimit};

/// What programs say that got no more memory.
const OUT_OF_MEMORY: [&str; 6] =
    ["annot allocate", "out of memory", "Out of memory", "memory exhausted", "MemoryError", "bad_alloc"];

/// The limits of a program that runs.
#[derive(Debug, Default)]
pub(super) struct AppliedLimits {
    limits: HookLimits,
    group: Option<ControlGroup>,
}

/// The kinds that can't be limited here and that this was said of: CPU, memory, processes.
static TOLD: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

impl AppliedLimits {
    /// Limits a program that was started just now. What can't be limited is told once for all programs.
    ///
    /// # Errors
    ///
    /// What can't be limited here, if the limits are strict.
    pub(super) fn apply(limits: HookLimits, pid: Pid) -> Result<Self, String> {
        let wanted = [
            (LimitKind::Cpu, limits.cpu.is_some()),
            (LimitKind::Memory, limits.memory.is_some()),
            (LimitKind::Processes, limits.processes.is_some()),
        ];
        if wanted.iter().all(|(_, is_wanted)| !is_wanted) {
            return Ok(Self { limits, group: None });
        }
        let mut why = "no control group was delegated to the operator".to_owned();
        let group = ControlGroups::of_process().and_then(|groups| {
            let group = groups.group(&limits).and_then(|group| {
                group.enter(pid.as_raw_nonzero().get())?;
                Ok((groups, group))
            });
            group.map_err(|error| why = format!("its control group can't be used: {error}")).ok()
        });
        let mut lacking = Vec::new();
        for (place, (kind, is_wanted)) in wanted.into_iter().enumerate() {
            let by_group = group.as_ref().is_some_and(|(groups, _)| groups.can_limit(kind));
            if !is_wanted || by_group {
                continue;
            }
            if kind == LimitKind::Memory && limit_memory(pid, limits.memory).is_ok() {
                continue;
            }
            lacking.push(kind.key());
            if !TOLD.get(place).is_none_or(|told| told.swap(true, Ordering::Relaxed)) {
                tracing::warn!(
                    "{} of hooks can't be limited here: {why}; they run without that limit, and this is not told again",
                    kind.key()
                );
            }
        }
        if limits.is_strict && !lacking.is_empty() {
            return Err(format!("{} can't be limited here: {why}", lacking.join(" and ")));
        }
        Ok(Self { limits, group: group.map(|(_, group)| group) })
    }

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

    /// Returns the limit of output, if `printed` bytes are more.
    pub(super) fn met_by_output(&self, printed: u64) -> Option<MetLimit> {
        let most = self.limits.output.filter(|most| printed > *most)?;
        Some(MetLimit { kind: LimitKind::Output, most })
    }
}

/// Limits what a process, and each that it starts, can write to.
fn limit_memory(pid: Pid, most: Option<u64>) -> io::Result<()> {
    // It has run for a moment, in which it has loaded its interpreter at most.
    prlimit(Some(pid), Resource::Data, Rlimit { current: most, maximum: most })?;
    Ok(())
}
