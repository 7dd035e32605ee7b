//! Faults of hooks and their processes, made to happen: real signals, a system that refuses, a disk that is full.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::support::DEADLINE;
use crate::support::pause::pause_thread;
use crate::support::program::{Running, Workspace, hook};

/// A schedule that is due each second.
const TICK: &str = "\"schedule\":[{\"crontab\":\"* * * * * *\"}]";

/// The arguments of `dev` on a free port of this machine.
const DEV: &[&str] = &["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"];

/// Returns `program` with the arguments, run by `dev` of this workspace with arguments of its own.
fn around(world: &Workspace, program: &str, arguments: &[&str], dev: &[&str]) -> Command {
    let inner = world.command(DEV);
    let mut command = Command::new(program);
    command.args(arguments).arg(inner.get_program()).args(inner.get_args()).args(dev);
    command.current_dir(world.path()).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

#[test]
fn f_b1_a_hook_that_sleeps_for_ever_is_ended_at_its_deadline_and_the_queue_goes_on() {
    let world = Workspace::new();
    let sleeps = "[[ -e slept ]] && { echo the queue goes on; exit; }\ntouch slept\nsleep 600 & sleep 600";
    world.write("global-hooks/a.sh", &hook("\"onStartup\":1", sleeps));
    let mut running = world.dev(&["--hook-timeout", "300ms", "--retry-delay", "100ms"]);
    running.wait("ended after 0.3 s, the time it may take");
    running.wait("the queue goes on");
    running.wait("Operator is ready now");
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_b5_a_system_that_refuses_processes_is_named_and_hooks_run_when_it_does_not() {
    let world = Workspace::new();
    world.write("global-hooks/a.sh", &hook(TICK, "echo it ran"));
    fs::set_permissions(world.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    // Limits of processes do not hold for root. A user that nobody else is counts only what runs here.
    let user = (4_000_000 + std::process::id()).to_string();
    let as_user: &[&str] = &["--reuid", &user, "--regid", &user, "--clear-groups"];
    let as_user = if rustix::process::geteuid().is_root() { as_user } else { &[] };
    let mut running = Running::start(around(&world, "setpriv", as_user, &["--retry-delay", "100ms"]));
    running.wait("it ran");
    let pid = running.pid().to_string();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let usual = limits.lines().find_map(|line| line.strip_prefix("Max processes")).unwrap();
    let usual = usual.split_whitespace().next().unwrap();
    let limit = |processes: &str| {
        let limit = format!("--nproc={processes}:");
        let mut command = Command::new("setpriv");
        command.args(as_user).args(["prlimit", "--pid", &pid, &limit]);
        assert!(command.status().unwrap().success());
    };
    limit("1");
    running.wait("Resource temporarily unavailable");
    limit(usual);
    running.wait("it ran");
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_b9_a_full_disk_fails_hooks_until_there_is_room() {
    let world = Workspace::new();
    let permitted = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine does not permit namespaces");
        return;
    }
    // A directory with a file of the hook is not used again, so that each run needs room for its files.
    world.write("global-hooks/a.sh", &hook(TICK, "echo it ran; : > \"${VALUES_PATH%/*}/own\""));
    fs::create_dir(world.path().join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=128k,mode=700 tmpfs disk && exec \"$@\"";
    let own_disk = ["--user", "--map-root-user", "--mount", "bash", "-c", mount, "bash"];
    let dev = ["--retry-delay", "100ms", "--tmp-dir", "disk"];
    let mut running = Running::start(around(&world, "unshare", &own_disk, &dev));
    running.wait("it ran");
    // The disk is one of the operator alone; this is the way to it.
    let inside = Path::new("/proc").join(running.pid().to_string()).join("root");
    let filler = inside.join(world.path().strip_prefix("/").unwrap()).join("disk/filler");
    let stop = Arc::new(AtomicBool::new(false));
    let filling = std::thread::spawn({
        let (filler, stop, begun) = (filler.clone(), Arc::clone(&stop), Instant::now());
        move || {
            let mut file = fs::File::create(filler).unwrap();
            // What a run leaves free is taken, too.
            while !stop.load(Ordering::Relaxed) && begun.elapsed() < DEADLINE {
                let _ = file.write(&[0; 4096]);
                std::thread::yield_now();
            }
        }
    });
    let failed = running.wait("No space left on device");
    stop.store(true, Ordering::Relaxed);
    filling.join().unwrap();
    assert!(failed.contains("--tmp-dir"), "{failed}");
    fs::remove_file(filler).unwrap();
    running.wait("it ran");
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_b10_of_many_processes_that_are_due_at_once_no_more_run_than_allowed() {
    let world = Workspace::new();
    let dir = world.path().display();
    // Each counts those that run, and stays for a moment.
    let counts = format!(
        "touch {dir}/run/$$\nls {dir}/run | wc -l >> {dir}/counts\nsleep 0.03\nrm {dir}/run/$$\necho it ran"
    );
    fs::create_dir(world.path().join("run")).unwrap();
    for n in 0..24 {
        let config = format!("\"schedule\":[{{\"crontab\":\"* * * * * *\",\"queue\":\"q{n}\"}}]");
        world.write(&format!("global-hooks/h{n}.sh"), &hook(&config, &counts));
    }
    let mut running = world.dev(&["--max-hooks", "3"]);
    for _ in 0..48 {
        running.wait("it ran");
    }
    assert_eq!(running.stop(), 0);
    let counts = fs::read_to_string(world.path().join("counts")).unwrap();
    let most = counts.lines().map(|line| line.trim().parse::<u32>().unwrap()).max();
    assert_eq!(most, Some(3), "{counts}");
}

#[test]
fn f_b3_a_hook_that_leaves_a_child_with_its_streams_ends_at_once_and_the_queue_goes_on() {
    let world = Workspace::new();
    let leaves = "sleep 600 &\necho left pid $! .\nsleep 600 2>&1 | cat &";
    world.write("global-hooks/a.sh", &hook("\"onStartup\":1", leaves));
    world.write("global-hooks/b.sh", &hook("\"onStartup\":2", "echo the queue goes on"));
    let begun = Instant::now();
    let mut running = world.dev(&["--hook-timeout", "5m"]);
    let line = running.wait("left pid ");
    running.wait("the queue goes on");
    running.wait("Operator is ready now");
    assert!(begun.elapsed() < DEADLINE, "it waited for the child");
    let pid = line.split("left pid ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(Path::new("/proc").join(pid).exists(), "the child was ended, too");
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_b6_a_hook_that_fails_at_its_configuration_in_every_way_is_asked_again_and_registered_once() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\n");
    let dir = world.path().display().to_string();
    // Garbage, then silence for ever, then a failure, then half an answer, then the right one.
    let config = "{\"configVersion\":\"v1\",\"onStartup\":1,\"schedule\":[{\"crontab\":\"0 0 1 1 *\"}]}";
    let moody = format!(
        "#!/bin/bash\nif [[ ${{1:-}} == --config ]]; then\necho x >> {dir}/asked\n\
         case $(wc -l < {dir}/asked) in\n1) echo '}}{{ garbage';;\n2) sleep 600;;\n3) echo no luck today >&2; exit 3;;\n\
         4) printf '{{\"configVersion\":\"v1\",\"onSta';;\n*) echo something for the log >&2; echo '{config}';;\nesac\nexit\nfi\necho it ran\n"
    );
    world.write("modules/010-web/hooks/moody.sh", &moody);
    world.write("modules/010-web/hooks/sane.sh", &hook("\"onStartup\":2", "echo the other ran"));
    let mut running = world.dev(&["--hook-config-timeout", "300ms", "--retry-delay", "100ms"]);
    running.wait("Operator is ready now");
    let log = running.seen().join("\n");
    for told in ["did not answer within 0.3 s", "no luck today", "exit status 3"] {
        assert!(log.contains(told), "{told} is missing:\n{log}");
    }
    for once in ["it ran", "the other ran"] {
        assert_eq!(log.matches(once).count(), 1, "{once}:\n{log}");
    }
    let (code, hooks) = world.ask(&["module", "list", "-o", "json"]);
    assert!(code == 0 && hooks.contains("web"), "{hooks}");
    assert_eq!(fs::read_to_string(world.path().join("asked")).unwrap().lines().count(), 5);
    assert_eq!(running.stop(), 0);
}

/// Returns the files below a directory that hold `text`.
fn holding(dir: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let files = walkdir::WalkDir::new(dir).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let holds =
        |path: &Path| fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text));
    files.map(walkdir::DirEntry::into_path).filter(|path| holds(path)).collect()
}

#[test]
fn f_e7_no_file_with_values_outlives_an_operator_that_was_killed_for_longer_than_the_next_start() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/values.yaml", "web: {password: hunter2hunter2}\n");
    let killed = world.path().join("killed").display().to_string();
    let stays = format!("echo hook pid $$ .\n[[ -e {killed} ]] || exec sleep 600");
    world.write("modules/010-web/hooks/a.sh", &hook("\"beforeHelm\":1", &stays));
    let mut running = world.dev(&[]);
    let line = running.wait("hook pid ");
    let pid = line.split("hook pid ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let tmp = world.path().join(".addon-operator/tmp");
    assert!(!holding(&tmp, "hunter2").is_empty(), "the hook has its values in a file");
    // SIGKILL: nobody clears up.
    drop(running);
    Command::new("kill").arg(&pid).status().unwrap();
    assert!(!holding(&tmp, "hunter2").is_empty(), "this is the fault");
    world.write("killed", "");
    let mut running = world.dev(&[]);
    running.wait("Operator is ready now");
    assert_eq!(holding(&tmp, "hunter2"), Vec::<std::path::PathBuf>::new());
    assert_eq!(running.stop(), 0);
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
}

/// Starts an operator whose output is a pipe that is full and that nobody reads, sends it SIGTERM, once or again and again, and
/// returns its exit code.
fn ended_with_a_full_pipe(again: bool) -> Option<i32> {
    /// So little is left of what a pipe holds that no line fits.
    const FULL: u64 = 60_000;
    let world = Workspace::new();
    // Of a flood lines are left out: only one without end is sure to fill the pipe.
    world.write("global-hooks/a.sh", &hook("\"onStartup\":1", "exec yes 'a line that nobody reads'"));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = world.command(DEV).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let mut is_asked = false;
    let status = loop {
        if (!is_asked || again) && rustix::io::ioctl_fionread(&reader).unwrap() >= FULL {
            Command::new("kill").arg(child.id().to_string()).status().unwrap();
            is_asked = true;
        }
        if begun.elapsed() >= DEADLINE {
            let _ = child.kill();
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        pause_thread();
    };
    assert!(is_asked, "the hook does not flood the output");
    drop(reader);
    status.code()
}

#[test]
fn slip_12_an_operator_whose_output_nobody_reads_ends_when_it_is_asked_to() {
    assert_eq!(ended_with_a_full_pipe(false), Some(0));
}

#[test]
fn slip_12_an_operator_whose_output_nobody_reads_ends_when_it_is_asked_to_twice() {
    assert_eq!(ended_with_a_full_pipe(true), Some(143));
}
