//! What descends from a process: also what left its group, found through `/proc`.
//!
//! A signal to a group misses a child that called `setsid`. Such a child is still found: by its parents as long as
//! they live, and later by a variable of its environment that only its run has.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal};

/// How often it is looked for more before the rest is given up: what forks faster than it is killed has no end.
const ROUNDS: usize = 16;

/// The processes that descend from some process.
#[derive(Debug, Default)]
pub(super) struct Descendants(BTreeMap<i32, Stat>);

/// A line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stat {
    is_dead: bool,
    parent: i32,
    /// The group that it is in; 0 if that is the group of somebody outside of this namespace.
    pub(super) group: i32,
    started: u64,
}

impl Stat {
    /// Returns whether both are about one process. The time of the start tells it from a later one with its number.
    fn is_same(self, other: Option<&Self>) -> bool {
        other.is_some_and(|other| other.started == self.started)
    }
}

impl Descendants {
    /// Returns this process alone, if it is there.
    pub(super) fn only(pid: Pid) -> Self {
        let number = pid.as_raw_nonzero().get();
        Self(stat(number).map(|stat| (number, stat)).into_iter().collect())
    }

    /// Adds all that descends from `ancestor` or from what is known already, and what `mark` was given to.
    ///
    /// `mark` is an entry of an environment, `NAME=value`. What has ended is forgotten.
    pub(super) fn find(&mut self, ancestor: Pid, mark: Option<&[u8]>) {
        let ancestor = ancestor.as_raw_nonzero().get();
        let table = processes();
        self.0.retain(|pid, known| {
            table.get(pid).is_some_and(|stat| !stat.is_dead && stat.is_same(Some(known)))
        });
        let since = table.get(&ancestor).map_or(0, |stat| stat.started);
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let is_marked = |pid: i32, stat: &Stat| {
            pid != own && stat.started >= since && mark.is_some_and(|mark| has_mark(pid, mark))
        };
        let mut waiting: Vec<i32> = vec![ancestor];
        waiting.extend(self.0.keys());
        waiting.extend(table.iter().filter(|(pid, stat)| is_marked(**pid, stat)).map(|(pid, _)| *pid));
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, stat) in &table {
            children.entry(stat.parent).or_default().push(*pid);
        }
        // A process is taken out of `children` when it is visited, so that this ends whatever the table says.
        while let Some(pid) = waiting.pop() {
            waiting.extend(children.remove(&pid).unwrap_or_default());
            if let Some(stat) = table.get(&pid).filter(|stat| pid != ancestor && !stat.is_dead) {
                self.0.insert(pid, *stat);
            }
        }
    }

    /// Sends `signal` to those whose group `is_meant`. What is gone already is fine.
    pub(super) fn signal(&self, signal: Signal, is_meant: impl Fn(i32) -> bool) {
        for (number, known) in self.0.iter().filter(|(_, stat)| is_meant(stat.group)) {
            let Some(pid) = Pid::from_raw(*number) else { continue };
            // The descriptor holds on to the process: its number can't become that of another one.
            let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if known.is_same(stat(*number).as_ref()) {
                let _ = rustix::process::pidfd_send_signal(&process, signal);
            }
        }
    }

    /// Kills all that is known, and all that [`Descendants::find`] finds until there is no more, except for `spared`.
    pub(super) fn kill(&mut self, ancestor: Pid, mark: Option<&[u8]>, spared: &Self) {
        self.signal(Signal::KILL, |_| true);
        for _ in 0..ROUNDS {
            let before = self.0.clone();
            self.find(ancestor, mark);
            self.0.retain(|pid, known| !known.is_same(spared.0.get(pid)));
            if self.0.iter().all(|(pid, known)| known.is_same(before.get(pid))) {
                return;
            }
            self.signal(Signal::KILL, |_| true);
        }
    }
}

/// Returns all processes.
fn processes() -> BTreeMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// Returns what the system says of a process; `None` when there is none.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/PID/stat`.
///
/// The name of the program stands in parentheses and may hold anything, parentheses too.
fn parse(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // The start is field 22 of the line, and the group is field 5.
    let started = fields.nth(16)?.parse().ok()?;
    Some(Stat { is_dead, parent, group, started })
}

/// Returns whether a process was started with this entry in its environment.
fn has_mark(pid: i32, mark: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name_of_the_program() {
        let rest = "1 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 7654 1000 10";
        for (name, is_dead) in [("sleep) Z", true), ("sleep) S", false), ("a) Z 7 (b) S", false)] {
            let stat = parse(&format!("12 ({name} {rest}"));
            assert_eq!(stat, Some(Stat { is_dead, parent: 1, group: 12, started: 7654 }), "{name}");
        }
        for line in ["", "12 (a b) Z x", "12 (sleep) S 1 2"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
