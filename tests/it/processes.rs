//! Real processes: exit, output, deadlines and what they leave behind.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use addon_operator::process::{Exit, Finished, Program, RunError, Stream};
use tokio::sync::oneshot;

fn bash(script: &str, timeout: Option<Duration>) -> Program {
    Program {
        path: PathBuf::from("/bin/bash"),
        args: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        timeout,
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
    let child = out.trim();
    // The signal was sent; the system takes its time to carry it out.
    let lives = || {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(" Z ")
    };
    while lives() {
        assert!(begun.elapsed() < Duration::from_mins(1), "the child lives on");
        std::thread::yield_now();
    }
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
    let begun = Instant::now();
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while runs() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it goes on");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hook.sh");
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(&path).status().unwrap();
    let program = Program { path, args: Vec::new(), environment: Vec::new(), timeout: None };
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
            environment: Vec::new(),
            timeout: None,
        };
        let (finished, out, _) = run(program).await;
        assert_eq!((finished.exit, out.as_str()), (Exit::Code(0), "all of it\n"), "round {round}");
    }
}

#[tokio::test]
async fn f_b5_what_the_system_refuses_is_told_and_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hook.sh");
    let program = || Program { path: path.clone(), args: Vec::new(), environment: Vec::new(), timeout: None };
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
async fn f_b2_a_flood_of_output_is_bounded_in_memory() {
    let (finished, _, _) = run(bash("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2", None)).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(finished.stderr.len() < 200_000, "{} bytes are kept", finished.stderr.len());
    assert!(finished.stderr.ends_with("end\n") && finished.stderr.contains("bytes left out"));
}
