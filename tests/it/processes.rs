//! Real processes: exit, output, deadlines and what they leave behind.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use addon_operator::process::{
    Exit, Finished, LimitKind, MetLimit, Program, RunError, Stream, Survivors, Variables,
};
use engine::hook::HookLimits;
use tokio::sync::oneshot;

use crate::support::DEADLINE;
use crate::support::pause::pause_thread;

fn bash(script: &str, timeout: Option<Duration>) -> Program {
    Program {
        path: PathBuf::from("/bin/bash"),
        args: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into(),
        timeout,
        mark: None,
        limits: HookLimits::default(),
        outputs: Vec::new(),
        chroot: None,
    }
}

async fn run(program: Program) -> (Finished, String, String) {
    let printed = Arc::new(Mutex::new((String::new(), String::new())));
    let sink = Arc::clone(&printed);
    let (_keep, cancel) = oneshot::channel();
    let finished = program
        .run(cancel, move |stream, bytes| {
            let mut printed = sink.lock().unwrap();
            let text = String::from_utf8_lossy(bytes);
            match stream {
                Stream::Stdout => printed.0.push_str(&text),
                Stream::Stderr => printed.1.push_str(&text),
            }
        })
        .await
        .unwrap();
    let printed = printed.lock().unwrap().clone();
    (finished, printed.0, printed.1)
}

#[tokio::test]
async fn a_program_says_how_it_ended_and_what_it_used() {
    let (finished, out, err) = run(bash("echo one; echo two >&2; exit 3", None)).await;
    assert_eq!((finished.exit, out.as_str(), err.as_str()), (Exit::Code(3), "one\n", "two\n"));
    assert_eq!(finished.stderr, "two\n");
    assert!(finished.usage.max_rss > 100_000 && finished.usage.took > Duration::ZERO, "{:?}", finished.usage);
    let (finished, ..) = run(bash("kill -SEGV $$", None)).await;
    assert_eq!(finished.exit, Exit::Signal(11));
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_its_children() {
    let begun = Instant::now();
    let script = "sleep 600 & echo $!; wait";
    let (finished, out, _) = run(bash(script, Some(Duration::from_millis(100)))).await;
    assert_eq!(finished.exit, Exit::TimedOut(Duration::from_millis(100)));
    assert!(begun.elapsed() < Duration::from_secs(5));
    until_gone(out.trim());
}

#[tokio::test]
async fn f_b3_a_child_that_keeps_the_streams_open_does_not_block_the_run() {
    let begun = Instant::now();
    let (finished, out, _) = run(bash("sleep 20 & echo started; echo pid $!", None)).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "waited for the child");
    let pid = out.lines().last().unwrap().trim_start_matches("pid ");
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "the child was ended, too");
    std::process::Command::new("kill").arg(pid).status().unwrap();
}

#[tokio::test]
async fn what_a_program_leaves_running_is_told() {
    for script in ["true", "sleep 0.01 & wait"] {
        // A child that another thread starts at this moment holds the streams until it runs its program.
        let begun = Instant::now();
        while run(bash(script, None)).await.0.survivors == Survivors::Some {
            assert!(begun.elapsed() < DEADLINE, "{script} leaves nothing running");
        }
    }
    for script in ["sleep 600 < /dev/null > /dev/null 2>&1 & echo pid $!", "setsid sleep 600 & echo pid $!"] {
        let (finished, out, _) = run(bash(script, None)).await;
        assert_eq!(finished.survivors, Survivors::Some, "{script}");
        for pid in pids(&out) {
            let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    }
}

/// Returns whether a process lives.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
}

/// Waits until a process has ended: when a signal was sent, the system takes its time to carry it out.
fn until_gone(pid: &str) {
    let begun = Instant::now();
    while lives(pid) {
        assert!(begun.elapsed() < DEADLINE, "process {pid} lives on");
        pause_thread();
    }
}

/// Runs a program on a thread of its own, since one that holds the thread lets no deadline of the runtime pass.
fn run_apart(program: Program) -> (Finished, String, String) {
    let (sender, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _ = sender.send(runtime.block_on(run(program)));
        // What the program left behind is heard for as long as the runtime runs.
        runtime.block_on(std::future::pending::<()>());
    });
    finished.recv_timeout(DEADLINE).unwrap()
}

#[test]
fn slip_12_a_child_that_prints_for_ever_neither_delays_the_run_nor_holds_a_worker() {
    let (finished, out, _) = run_apart(bash("echo first; yes & echo pid $!", None));
    assert_eq!(finished.exit, Exit::Code(0));
    let pid = out.lines().find_map(|line| line.strip_prefix("pid ")).unwrap();
    // It is heard for a while. Then its stream is closed, and the system ends it.
    until_gone(pid);
}

#[test]
fn slip_12_a_quiet_child_in_the_background_lives_on() {
    let (_, out, _) = run_apart(bash("sleep 600 & echo pid $!", None));
    let pid = out.trim().strip_prefix("pid ").unwrap().to_owned();
    assert!(lives(&pid));
    std::process::Command::new("kill").arg(&pid).status().unwrap();
}

/// A script whose children leave its group: one stays below it, one loses its parent.
const LEAVERS: &str = "trap '' TERM\nsetsid bash -c \"trap '' TERM; sleep 600\" & echo pid $!\n\
    (setsid bash -c \"trap '' TERM; echo pid \\$\\$; sleep 600\" &)\nwhile :; do sleep 0.01; done";

/// Returns the numbers in the lines `pid …`.
fn pids(out: &str) -> Vec<String> {
    out.lines().filter_map(|line| line.strip_prefix("pid ")).map(str::to_owned).collect()
}

/// Runs a script whose children leave its group, with this limit, and cancels it if there is none. All that it started has to be
/// gone then.
async fn leavers_end(timeout: Option<Duration>) -> Exit {
    let (cancel, cancelled) = oneshot::channel();
    let (sender, mut printed) = tokio::sync::mpsc::unbounded_channel();
    let mut program = bash(LEAVERS, timeout);
    program.environment.set("RUN", format!("{}-{timeout:?}", std::process::id()));
    program.mark = Some("RUN");
    let running = tokio::spawn(program.run(cancelled, move |_, text| {
        let _ = sender.send(String::from_utf8_lossy(text).into_owned());
    }));
    let mut out = String::new();
    while pids(&out).len() < 2 || !out.ends_with('\n') {
        out += &printed.recv().await.unwrap();
    }
    // Neither the limit nor the time between SIGTERM, which all of them ignore, and SIGKILL need pass.
    tokio::time::pause();
    let cancel = if timeout.is_none() { cancel.send(()).map(|()| None).unwrap() } else { Some(cancel) };
    let finished = running.await.unwrap().unwrap();
    drop(cancel);
    for pid in pids(&out) {
        until_gone(&pid);
    }
    finished.exit
}

#[tokio::test]
async fn slip_18_what_left_the_group_of_a_program_ends_with_it_at_its_deadline() {
    let limit = Duration::from_hours(1);
    assert_eq!(leavers_end(Some(limit)).await, Exit::TimedOut(limit));
}

#[tokio::test]
async fn slip_18_what_left_the_group_of_a_program_ends_with_it_when_it_is_cancelled() {
    assert_eq!(leavers_end(None).await, Exit::Cancelled);
}

#[tokio::test]
async fn a_cancelled_program_gets_sigterm_first() {
    let (cancel, cancelled) = oneshot::channel();
    let (started, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let program = bash("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", None);
    let running = tokio::spawn(program.run(cancelled, move |_, _| {
        let _ = started.send(());
    }));
    begun.recv().await.unwrap();
    cancel.send(()).unwrap();
    assert_eq!(running.await.unwrap().unwrap().exit, Exit::Cancelled);
}

#[tokio::test]
async fn a_program_whose_run_is_dropped_is_killed_with_its_children() {
    let (_keep, cancel) = oneshot::channel();
    let (started, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let program = bash("trap '' TERM; sleep 600 & echo $!; wait", None);
    let running = tokio::spawn(program.run(cancel, move |_, text| {
        let _ = started.send(String::from_utf8_lossy(text).into_owned());
    }));
    let child = begun.recv().await.unwrap().trim().to_owned();
    running.abort();
    assert!(running.await.is_err());
    until_gone(&child);
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hook.sh");
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(&path).status().unwrap();
    let program = Program {
        path,
        args: Vec::new(),
        environment: Variables::default(),
        timeout: None,
        mark: None,
        limits: HookLimits::default(),
        outputs: Vec::new(),
        chroot: None,
    };
    let (_keep, cancel) = oneshot::channel();
    let error = program.run(cancel, |_, _| {}).await.unwrap_err();
    assert!(matches!(error, RunError::Start { .. }));
    assert!(error.to_string().contains("interpreter in its first line"), "{error}");
}

#[tokio::test]
async fn f_b4_exit_and_output_of_a_process_that_ends_at_once_are_never_lost() {
    for round in 0..300 {
        let program = Program {
            path: PathBuf::from("/bin/echo"),
            args: vec!["all of it".into()],
            environment: Variables::default(),
            timeout: None,
            mark: None,
            limits: HookLimits::default(),
            outputs: Vec::new(),
            chroot: None,
        };
        let (finished, out, _) = run(program).await;
        assert_eq!((finished.exit, out.as_str()), (Exit::Code(0), "all of it\n"), "round {round}");
    }
}

#[tokio::test]
async fn f_b5_what_the_system_refuses_is_told_and_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hook.sh");
    let program = || Program {
        path: path.clone(),
        args: Vec::new(),
        environment: Variables::default(),
        timeout: None,
        mark: None,
        limits: HookLimits::default(),
        outputs: Vec::new(),
        chroot: None,
    };
    let refused = |expected: &'static str| {
        let program = program();
        async move {
            let (_keep, cancel) = oneshot::channel();
            let error = program.run(cancel, |_, _| {}).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    };
    refused("does the file exist").await;
    std::fs::write(&path, "#!/bin/bash\nexit 0\n").unwrap();
    refused("chmod +x").await;
    std::process::Command::new("chmod").arg("+x").arg(&path).status().unwrap();
    // A file that is still open for writing can't be run; once it is closed, it can.
    let open = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    refused("can't start").await;
    drop(open);
    assert_eq!(run(program()).await.0.exit, Exit::Code(0));
}

#[tokio::test]
async fn f_b1_what_ignores_sigterm_sleeps_for_ever_and_forks_is_killed_at_its_deadline() {
    let (_keep, cancel) = oneshot::channel();
    let (sender, mut printed) = tokio::sync::mpsc::unbounded_channel();
    let script = "trap '' TERM; for n in 1 2 3; do (trap '' TERM; while :; do sleep 600; done) & echo pid $!; done; wait";
    let limit = Duration::from_hours(1);
    let running = tokio::spawn(bash(script, Some(limit)).run(cancel, move |_, text| {
        let _ = sender.send(String::from_utf8_lossy(text).into_owned());
    }));
    let mut out = String::new();
    while pids(&out).len() < 3 || !out.ends_with('\n') {
        out += &printed.recv().await.unwrap();
    }
    // Neither the hour nor the time between the two signals has to pass.
    tokio::time::pause();
    assert_eq!(running.await.unwrap().unwrap().exit, Exit::TimedOut(limit));
    for pid in pids(&out) {
        until_gone(&pid);
    }
}

#[tokio::test]
async fn f_b2_what_is_no_text_and_streams_that_are_closed_early_are_no_failure() {
    let (finished, out, _) = run(bash("head -c 300000 /dev/urandom; printf '\\xff\\x00end'", None)).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(out.ends_with("\u{fffd}\0end"), "{} bytes", out.len());
    let (finished, out, err) = run(bash("echo one; exec 1>&- 2>&-; sleep 0.05; exit 4", None)).await;
    assert_eq!((finished.exit, out.as_str(), err.as_str()), (Exit::Code(4), "one\n", ""));
}

#[tokio::test]
async fn f_b2_a_flood_of_output_is_bounded_in_memory() {
    let (finished, _, _) = run(bash("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2", None)).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(finished.stderr.len() < 200_000, "{} bytes are kept", finished.stderr.len());
    assert!(finished.stderr.ends_with("end\n") && finished.stderr.contains("bytes left out"));
}

/// Returns the limit that a program met, if it was ended because of one.
fn met(finished: &Finished) -> Option<MetLimit> {
    if let Exit::Limited(met) = finished.exit { Some(met) } else { None }
}

#[tokio::test]
async fn a_program_that_prints_more_than_it_may_is_ended_on_either_stream_with_its_children() {
    let limits = HookLimits { output: Some(10_000), ..HookLimits::default() };
    for script in ["sleep 600 & echo $!; yes", "sleep 600 & echo $!; yes >&2"] {
        let (finished, out, _) = run(Program { limits, ..bash(script, None) }).await;
        assert_eq!(met(&finished), Some(MetLimit { kind: LimitKind::Output, most: 10_000 }), "{script}");
        let child = out.lines().next().unwrap();
        until_gone(child);
    }
    let (finished, ..) = run(Program { limits, ..bash("head -c 10000 /dev/zero", None) }).await;
    assert_eq!(finished.exit, Exit::Code(0), "as much as it may");
    let (finished, ..) = run(Program { limits, ..bash("head -c 10001 /dev/zero", None) }).await;
    assert!(met(&finished).is_some(), "its end does not save it");
}

#[tokio::test]
async fn a_program_that_needs_more_memory_than_it_may_dies_alone_and_says_why() {
    let limits = HookLimits { memory: Some(32 << 20), ..HookLimits::default() };
    let script = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let (finished, out, err) = run(Program { limits, ..bash(script, None) }).await;
    assert_eq!(
        met(&finished),
        Some(MetLimit { kind: LimitKind::Memory, most: 32 << 20 }),
        "{finished:?} {out} {err}"
    );
    let shown = finished.exit.to_string();
    assert_eq!(
        shown,
        "it needs more memory than the 33554432 bytes that it may use (settings.limits.memory)"
    );
    let (finished, out, _) =
        run(Program { limits, ..bash("x=$(head -c 1000 /dev/zero | tr '\\0' x); echo ${#x}", None) }).await;
    assert_eq!((finished.exit, out.as_str()), (Exit::Code(0), "1000\n"));
}

#[tokio::test]
async fn what_can_not_be_limited_here_is_no_reason_not_to_run_unless_it_must_be() {
    let limits = HookLimits { cpu: Some(500), processes: Some(64), ..HookLimits::default() };
    let (finished, ..) = run(Program { limits, ..bash("exit 0", None) }).await;
    assert_eq!(finished.exit, Exit::Code(0));
    let (_keep, cancel) = oneshot::channel();
    let strict = Program { limits: HookLimits { is_strict: true, ..limits }, ..bash("exit 0", None) };
    match strict.run(cancel, |_, _| {}).await {
        // Where a control group is delegated, all of them can be set.
        Ok(finished) => assert_eq!(finished.exit, Exit::Code(0)),
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("can't be limited here") && error.contains("settings.limits.strict"),
                "{error}"
            );
        }
    }
}
