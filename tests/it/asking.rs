//! The commands that ask a running operator, as a person types them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;

use crate::support::program::{Running, Workspace, get};

/// A module that is off, beside the samples.
const OFF: &str =
    "#!/bin/bash\necho false >$MODULE_ENABLED_RESULT\necho 'needs ingress' >$MODULE_ENABLED_REASON\n";

#[test]
fn every_command_is_answered_by_a_running_operator() {
    let world = Workspace::samples();
    world.write("modules/050-late/enabled", OFF);
    world.write("modules/050-late/values.yaml", "late: {}\n");
    let values = fs::read_to_string(world.dir.path().join("modules/values.yaml")).unwrap();
    world.write("modules/values.yaml", &format!("{values}\nlateEnabled: true\n"));
    let (mut running, _) = world.ready();
    let socket = world.dir.path().join(".addon-operator/debug.socket").display().to_string();
    for (arguments, code, said) in [
        (&["status"][..], 0, "Operator is ready"),
        (&["status", "-o", "json"], 0, "\"phase\":\"running\""),
        (&["status", "-o", "yaml"], 0, "phase: running"),
        (&["why", "module", "late"], 0, "its enabled script said no"),
        (&["why", "module", "late"], 0, "needs ingress"),
        (&["why", "module", "echo", "-o", "json"], 0, "\"state\":\"running\""),
        (&["why", "module", "ehco"], 1, "did you mean echo?"),
        (&["why", "queue", "main"], 0, "Queue main is empty"),
        (&["why", "queue", "mian"], 1, "did you mean main?"),
        (&["why", "task", "t1"], 0, "Task t1 ("),
        (&["why", "task", "t9999"], 1, "there is no task t9999"),
        (&["module", "status", "late"], 0, "its enabled script said no"),
        (&["journal"], 0, "ModuleRun echo"),
        (&["journal", "-o", "json"], 0, "\"outcome\":\"done\""),
        (&["graph"], 0, "label=\"Module Scheduler's Graph\""),
        (&["graph", "-o", "svg"], 0, "<title>echo: running</title>"),
        (
            &["config", "list"],
            0,
            "NAME                           VALUE                EXPIRE AT            DESCRIPTION",
        ),
        (&["config", "list", "-o", "json"], 0, "\"name\":\"log.level\""),
        (&["config", "set", "log.level", "loud"], 1, "expected trace, debug, info, warn or error"),
        (&["config", "set", "log.size", "3"], 1, "there is no parameter"),
        (&["config", "set", "log.level", "debug", "soon"], 1, "expected one like 30m"),
        (&["config", "set", "log.level", "debug", "10m"], 0, "log.level is debug for 10m"),
        (&["global", "list", "-o", "json"], 0, "globalHooks"),
        (&["global", "list", "-o", "text"], 0, "globalHooks"),
        (&["global", "snapshots", "-o", "json"], 0, "\"sinceStart\":{\"added\":"),
        (&["global", "values"], 0, "team: platform"),
        (&["global", "patches"], 0, "["),
        (&["module", "resource-monitor", "-o", "json"], 0, "\"echo\":"),
        (&["module", "resource-monitor", "anything"], 0, "echo:"),
        (&["module", "render", "greeter", "--diff"], 0, "No diff found"),
        (&["module", "render", "greeter", "--debug"], 0, "name: greeting"),
        (&["module", "values", "greter"], 1, "did you mean greeter?"),
        (&["module", "purge", "echo"], 1, "its release is in use"),
        (&["module", "purge", "greter"], 1, "did you mean greeter?"),
        (&["config", "set", "log.lvel", "info"], 1, "did you mean log.level?"),
        (&["module", "run", "late"], 1, "enabled script says false (needs ingress)"),
        (&["raw", "/discovery"], 0, "GET /why/module/{name}"),
        (&["raw", "/nowhere"], 1, "404 page not found"),
        (&["raw", "/module/../global/values"], 1, "404 page not found"),
        (&["raw", "/converge"], 1, "405 method not allowed"),
        (&["converge"], 0, "is queued"),
        (&["queue", "--debug-unix-socket", &socket, "main"], 0, "Queue 'main'"),
        (&["queue", "main", "--debug-unix-socket", &socket], 0, "Queue 'main'"),
        (&["--debug-unix-socket", &socket, "queue", "main"], 0, "Queue 'main'"),
        (&["--debug-unix-socket", "/nowhere", "queue", "main"], 1, "is not exists"),
    ] {
        let (exit, text) = world.ask(arguments);
        assert!(
            exit == code && text.contains(said),
            "{arguments:?}: exit {exit}, expected {code} and {said:?}:\n{text}"
        );
        assert!(!text.contains('\u{1b}'), "{arguments:?}: colours, though nobody looks: {text}");
    }
    let (_, text) = world.ask(&["config", "list", "-o", "json"]);
    assert!(text.contains("expireAt") && text.contains("\"value\":\"debug\""), "{text}");
    running.wait("DEBUG");
    assert_eq!(running.stop(), 0);
}

#[test]
fn commands_about_sources_say_that_there_is_none() {
    let world = Workspace::new();
    let (running, port) = world.ready();
    for (arguments, code, said) in [
        (&["why", "source", "platform"][..], 1, "there is no source platform"),
        (&["source", "list"], 0, "There is no module source"),
        (&["source", "list", "-o", "json"], 0, "{\"sources\":[]}"),
        (&["source", "list", "-o", "yaml"], 0, "sources: []"),
        (&["source", "sync", "platform"], 1, "there is no source platform"),
    ] {
        let (exit, text) = world.ask(arguments);
        assert!(exit == code && text.contains(said), "{arguments:?}: exit {exit}: {text}");
    }
    for path in ["/", "/queue", "/metrics", "/status"] {
        let text = get(&port, path);
        assert!(!text.contains("odule sources") && !text.contains("addons_"), "{path}: {text}");
    }
    assert_eq!(running.stop(), 0);
}

#[test]
fn the_port_explains_without_values() {
    let world = Workspace::samples();
    let (running, port) = world.ready();
    for (path, said) in [
        ("/why/module/night-shift", "\"state\":\"off\""),
        ("/why/module/nobody", "\"error\":"),
        ("/why/queue/main", "\"about\":\"queue\""),
        ("/status", "Operator is ready"),
        ("/journal", "ModuleRun echo"),
        ("/graph", "<svg xmlns"),
        ("/queue?output=json", "\"summary\""),
        ("/queue?format=yaml", "summary:"),
        ("/discovery", "GET /why/module/{name}"),
    ] {
        let text = get(&port, path);
        assert!(text.contains(said), "{path}: {text}");
    }
    assert_eq!(running.stop(), 0);
}

#[test]
fn a_journal_that_is_followed_shows_what_ends_later() {
    let world = Workspace::samples();
    let (running, _) = world.ready();
    let mut followed = Running::start(world.command(&["journal", "--follow", "-n", "0"]));
    let as_json = ["journal", "--follow", "-n", "0", "-o", "json"];
    let mut as_json = Running::start(world.command(&as_json));
    assert_eq!(world.ask(&["module", "run", "echo"]).0, 0);
    followed.wait("ModuleRun echo");
    drop(followed);
    assert_eq!(world.ask(&["journal", "-n", "1"]).1.lines().count(), 1);
    let ends: serde_json::Value =
        serde_json::from_str(&world.ask(&["journal", "-n", "2", "-o", "json"]).1).unwrap();
    assert_eq!(ends["ends"].as_array().unwrap().len(), 2, "{ends}");
    let line = as_json.wait("ModuleRun");
    assert!(serde_json::from_str::<serde_json::Value>(&line).unwrap().is_object(), "{line}");
    drop(as_json);
    assert_eq!(running.stop(), 0);
}

/// Asks with `arguments` at the socket `path` and returns exit code and text.
fn asked(world: &Workspace, path: &str, arguments: &[&str]) -> (i32, String) {
    let mut all = arguments.to_vec();
    all.extend(["--debug-unix-socket", path]);
    world.ask(&all)
}

#[test]
fn an_operator_that_is_not_there_is_one_clear_line() {
    let world = Workspace::new();
    let socket = world.dir.path().join("socket");
    let path = socket.display().to_string();
    let (code, text) = asked(&world, &path, &["status"]);
    assert!(code == 1 && text.contains(&format!("debug socket '{path}' is not exists")), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    drop(UnixListener::bind(&socket).unwrap());
    let (code, text) = asked(&world, &path, &["why", "queue", "main"]);
    assert!(code == 1 && text.contains("the operator is not running"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_socket_that_belongs_to_somebody_else_is_one_clear_line() {
    let world = Workspace::new();
    let socket = world.dir.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = world.command(&["status", "--debug-unix-socket", &socket.display().to_string()]);
    // Nothing is closed to root, who becomes somebody else.
    if fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap() == 0 {
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    let Ok(output) = command.output() else {
        // Somebody else may not even run the program where it lies.
        return;
    };
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("does not let you in") && text.lines().count() == 1, "{text}");
}

#[test]
fn an_older_operator_is_one_clear_line() {
    let world = Workspace::new();
    let socket = world.dir.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let body = "404 page not found\n";
            let _ = write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    let path = socket.display().to_string();
    for arguments in
        [&["status"][..], &["why", "module", "web"], &["journal"], &["config", "set", "log.level", "info"]]
    {
        let (code, text) = asked(&world, &path, arguments);
        assert!(code == 1 && text.contains("another version than this command"), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn help_teaches_and_mistakes_are_met_with_suggestions() {
    let world = Workspace::new();
    for command in [
        "start",
        "dev",
        "status",
        "why",
        "journal",
        "graph",
        "queue",
        "config",
        "global",
        "module",
        "raw",
        "template",
        "completion",
    ] {
        let (code, text) = world.ask(&[command, "--help"]);
        let teaches = text.contains("Examples:") || text.contains("For this shell:");
        assert!(code == 0 && teaches, "{command}: {text}");
    }
    for (typed, meant) in [
        (&["staus"][..], "status"),
        (&["why", "modul", "x"], "module"),
        (&["queue", "lst"], "list"),
        (&["why", "queue", ""], "a value is required"),
    ] {
        let (code, text) = world.ask(typed);
        assert!(code == 2 && text.contains(meant), "{typed:?}: {text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, text) = world.ask(&["completion", shell]);
        assert!(code == 0 && text.contains("resource-monitor"), "{shell}: {}", text.len());
    }
}
