//! The whole program, run as a user runs it: `dev` with modules of its own.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::program::{Running, Workspace, get, hook};

#[test]
fn the_first_command_of_the_readme_converges_the_samples_and_harms_no_other_cluster() {
    let world = Workspace::samples();
    let output = world.once();
    let log = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{log}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(log.contains("Operator is ready now"), "{log}");
    assert!(log.contains("the greeting is installed: Hello, world!"), "{log}");
    assert!(
        log.contains("heard: Hello, world!"),
        "the second module did not see what the first installed:\n{log}"
    );
    let kubeconfig = fs::read_to_string(world.dir.path().join(".addon-operator/kubeconfig")).unwrap();
    assert!(kubeconfig.contains("127.0.0.1"), "{kubeconfig}");
    assert_eq!(
        fs::read_dir(world.dir.path().join(".addon-operator/tmp")).unwrap().count(),
        0,
        "files of hooks are left"
    );
}

#[test]
fn modules_are_listed_switched_and_explained() {
    let world = Workspace::samples();
    let (mut running, port) = world.ready();
    assert_eq!(
        world.ask(&["module", "list", "-o", "json"]),
        (0, "{\"enabledModules\":[\"echo\",\"greeter\"]}\n\n".into())
    );
    let (code, values) = world.ask(&["module", "values", "greeter"]);
    assert!(code == 0 && values.contains("text: Hello, world!"), "{values}");
    let (code, manifest) = world.ask(&["module", "render", "greeter"]);
    assert!(code == 0 && manifest.contains("name: greeting"), "{manifest}");
    assert_eq!(world.ask(&["module", "releases"]), (0, "echo\ngreeter\n".into()));
    let (code, history) = world.ask(&["module", "history", "greeter"]);
    assert!(code == 0 && history.starts_with("1    deployed"), "{history}");
    assert_eq!(world.ask(&["module", "disable", "echo"]).0, 0);
    running.wait("module echo is disabled");
    running.wait("ConvergeModules done");
    assert_eq!(world.ask(&["module", "list", "-o", "json"]).1, "{\"enabledModules\":[\"greeter\"]}\n\n");
    let (code, text) = world.ask(&["module", "values", "greter"]);
    assert!(code != 0 && text.contains("did you mean greeter?"), "{text}");
    assert!(get(&port, "/queue").contains("1 module on, 2 off, nothing waits"), "{}", get(&port, "/queue"));
    assert!(get(&port, "/readyz").contains("Startup converge done."));
    assert!(get(&port, "/metrics").contains("addon_operator_live_ticks"));
    assert_eq!(running.stop(), 0);
}

#[test]
fn a_dropped_hook_runs_without_a_restart() {
    let world = Workspace::samples();
    let (mut running, _) = world.ready();
    world.write("modules/010-greeter/hooks/05-new.sh", &hook("\"beforeHelm\":1", "echo 'the new hook ran'"));
    running.wait("the new hook ran");
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_e7_a_secret_that_a_hook_echoes_is_neither_on_the_port_nor_in_the_log() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/values.yaml", "web: {password: hunter2hunter2}\n");
    world.write(
        "modules/010-web/hooks/a.sh",
        &hook("\"beforeHelm\":1", "set -x\necho hunter2hunter2\necho '{\"level\":\"warn\",\"msg\":\"it is hunter2hunter2\"}'\nexit 1"),
    );
    let mut running = world.dev(&["--log-hook-values=false", "--log-proxy-hook-json"]);
    let port = running.port();
    running.wait("ModuleRun web failed");
    running.wait("ModuleRun web failed");
    let log = running.seen().join("\n");
    assert!(!log.contains("hunter2"), "the log shows a value:\n{log}");
    for line in ["INFO  + echo ******", "WARN  it is ******", "module hook 'hooks/a.sh' failed: "] {
        assert!(log.contains(line), "{line} is missing:\n{log}");
    }
    for path in [
        "/queue",
        "/queue?format=json",
        "/queue?format=yaml",
        "/metrics",
        "/metrics/hooks",
        "/status/converge",
        "/",
    ] {
        let shown = get(&port, path);
        assert!(!shown.contains("hunter2"), "{path} shows a value: {shown}");
    }
    let queue = get(&port, "/queue");
    let head = "tasks_queue_head_info{hook=\"\",module=\"web\",queue=\"main\",task_type=\"ModuleRun\"} 1";
    let metrics = get(&port, "/metrics");
    assert!(metrics.contains(head), "{metrics}");
    assert!(
        queue.contains("ModuleRun:main:web") && queue.contains("last error") && queue.contains("******"),
        "{queue}"
    );
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_b9_files_of_hooks_that_cannot_be_written_are_tried_again() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write(
        "modules/010-web/hooks/a.sh",
        &hook(
            "\"beforeHelm\":1,\"schedule\":[{\"crontab\":\"* * * * * *\"}]",
            "echo \"ran $(jq -r '.[0].binding' $BINDING_CONTEXT_PATH)\"",
        ),
    );
    let mut running = world.dev(&["--retry-delay", "200ms"]);
    running.wait("ran schedule");
    let tmp = world.dir.path().join(".addon-operator/tmp");
    let private = fs::read_dir(&tmp).unwrap().flatten().next().unwrap().path();
    // At one blow: a run that is under way writes files into the directory while it is taken away, or makes it again.
    let aside = world.dir.path().join("aside");
    fs::write(&aside, "a file stands in the way").unwrap();
    renameat_with(CWD, &aside, CWD, &private, RenameFlags::EXCHANGE).unwrap();
    running.wait("--tmp-dir");
    fs::remove_file(&private).unwrap();
    running.wait("ran schedule");
    assert_eq!(running.stop(), 0);
}

#[test]
fn f_h2_sigterm_in_the_middle_of_a_hook_ends_the_hook_and_then_the_operator() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write(
        "modules/010-web/hooks/a.sh",
        &hook(
            "\"beforeHelm\":1",
            "trap 'echo told to end; exit 1' TERM\necho hookpid $$ is at work\nsleep 600 & wait",
        ),
    );
    // The time for hooks that end by themselves is none.
    let mut running = world.dev(&["--shutdown-timeout", "6s"]);
    let line = running.wait("hookpid ");
    let pid = line.split("hookpid ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    running.terminate();
    let stopped = running.wait("ModuleRun web stopped at shutdown");
    assert!(!stopped.to_lowercase().contains("error"), "{stopped}");
    let (code, lines) = running.end();
    assert_eq!(code, 0);
    let failed = lines.iter().find(|line| line.contains("failed"));
    assert!(failed.is_none(), "what the end cut off did not fail: {failed:?}");
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the hook outlived the operator");
    assert_eq!(fs::read_dir(world.dir.path().join(".addon-operator/tmp")).unwrap().count(), 0);
}

#[test]
fn f_h2_sigterm_after_any_line_of_the_log_ends_in_time_and_the_next_start_goes_on() {
    let world = Workspace::samples();
    for lines in [1, 2, 4, 6, 9, 12, 16, 20] {
        let mut running = world.dev(&[]);
        for _ in 0..lines {
            let line = running.wait("");
            if line.contains("Operator is ready now") {
                break;
            }
        }
        let begun = Instant::now();
        assert_eq!(running.stop(), 0, "after {lines} lines");
        assert!(begun.elapsed() < Duration::from_secs(10), "after {lines} lines: {:?}", begun.elapsed());
        let left = fs::read_dir(world.dir.path().join(".addon-operator/tmp")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "after {lines} lines: files of hooks are left");
    }
    let output = world.once();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn an_api_server_that_is_away_is_waited_for_but_not_with_once() {
    let world = Workspace::new();
    world.write(
        "kubeconfig",
        "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         users: [{name: a, user: {token: t}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n",
    );
    let arguments =
        ["start", "--kube-config", "kubeconfig", "--namespace", "ops", "--prometheus-listen-port", "0"];
    let socket = ["--debug-unix-socket", "socket", "--tmp-dir", "tmp"];
    let once: Vec<&str> = arguments.iter().chain(&socket).copied().chain(["--once"]).collect();
    let (code, text) = world.ask(&once);
    assert!(code == 3 && text.contains("does not answer"), "exit {code}: {text}");
    let waiting: Vec<&str> = arguments.iter().chain(&socket).copied().collect();
    let mut running = Running::start(world.command(&waiting));
    running.wait("it is asked again every second");
    assert_eq!(running.stop(), 0);
}

#[test]
fn bad_options_and_files_end_the_start_with_exit_code_2() {
    let world = Workspace::new();
    for (arguments, said) in [
        (&["start", "--namespace", "ops", "--retry-delay", "soon"][..], "retry-delay"),
        (&["start", "--kube-config", "/nowhere/config", "--namespace", "ops"], "/nowhere/config"),
        (&["start", "--kube-config", "/nowhere/config"], "--namespace is missing"),
        (&["dev", "--modules-dir", "missing", "--once"], "missing"),
        (&["start", "--no-such-flag"], "--no-such-flag"),
    ] {
        let (code, text) = world.ask(arguments);
        assert!(code == 2 && text.contains(said), "{arguments:?}: exit {code}, {text}");
    }
    let (code, text) = world.ask(&["queue", "list", "--debug-unix-socket", "/nowhere/debug.socket"]);
    assert!(code == 1 && text.contains("is the operator running"), "{text}");
}

#[test]
fn a_hook_that_sources_the_framework_works_without_files_at_the_root() {
    if Path::new("/shell_lib.sh").exists() {
        // Then it is installed, and nothing is redirected.
        return;
    }
    let world = Workspace::new();
    world.write("modules/values.yaml", "greeterEnabled: true\n");
    world.write("modules/010-greeter/values.yaml", "greeter: {text: hello}\n");
    for (name, source) in [
        ("a.sh", "source /shell_lib.sh"),
        (
            "b.sh",
            ". /frameworks/shell/path.sh; . /framework/shell/context.sh; . /frameworks/shell/values.sh; . /frameworks/shell/hook.sh",
        ),
    ] {
        world.write(
            &format!("modules/010-greeter/hooks/{name}"),
            &format!(
                "#!/bin/bash\n{source}\n__config__() {{ echo '{{\"configVersion\":\"v1\",\"beforeHelm\":1}}'; }}\n\
                 __on_before_helm() {{ echo \"{name} says $(values::get greeter.text) in $(context::get binding)\"; }}\n\
                 hook::run \"$@\"\n"
            ),
        );
    }
    let output = world.once();
    let log = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{log}");
    for line in ["a.sh says hello in beforeHelm", "b.sh says hello in beforeHelm"] {
        assert!(log.contains(line), "{log}");
    }
}

#[test]
fn f_b12_a_hook_that_changes_what_it_watches_gets_one_event_for_that() {
    let world = Workspace::new();
    world.write(
        "global-hooks/watch.sh",
        &hook(
            r#""kubernetes":[{"kind":"ConfigMap","namespace":{"nameSelector":{"matchNames":["default"]}},"executeHookOnSynchronization":false}]"#,
            "jq -r '.[] | \"saw \\(.watchEvent) with \\(.object.data.n // \"nothing\")\"' $BINDING_CONTEXT_PATH\n\
             jq -c '.[] | select(.watchEvent == \"Added\") | {operation: \"MergePatch\", kind: \"ConfigMap\", namespace: \"default\", \
             name: .object.metadata.name, mergePatch: {data: {n: \"1\"}}}' $BINDING_CONTEXT_PATH > $KUBERNETES_PATCH_PATH",
        ),
    );
    world.write(
        "global-hooks/make.sh",
        &hook(
            r#""afterAll":1,"schedule":[{"name":"tick","crontab":"* * * * * *","queue":"side"}]"#,
            "if grep -q afterAll $BINDING_CONTEXT_PATH; then\n\
             echo '{\"operation\":\"Create\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\",\"namespace\":\"default\"}}}' \
             > $KUBERNETES_PATCH_PATH\nelse echo a second has passed; fi",
        ),
    );
    let mut running = world.dev(&[]);
    running.wait("saw Added with nothing");
    running.wait("saw Modified with 1");
    // A change of its own that came back again would be seen by now.
    running.wait("a second has passed");
    running.wait("a second has passed");
    let seen = running.seen().iter().filter(|line| line.contains("saw ")).count();
    assert_eq!(seen, 2, "{:#?}", running.seen());
    assert_eq!(running.stop(), 0);
}

#[test]
fn slip_13_dev_needs_no_global_hooks_unless_somebody_names_them() {
    let world = Workspace::new();
    fs::remove_dir(world.path().join("global-hooks")).unwrap();
    let (mut running, _) = world.ready();
    // They are taken up when they come.
    world.write(
        "global-hooks/a.sh",
        &hook("\"onStartup\":1,\"schedule\":[{\"crontab\":\"* * * * * *\"}]", "echo 'a hook came'"),
    );
    running.wait("a hook came");
    assert_eq!(running.stop(), 0);
    let (code, text) = world.ask(&["dev", "--once", "--state-dir", "other", "--global-hooks-dir", "missing"]);
    assert!(code == 2 && text.contains("missing"), "exit {code}: {text}");
}

#[test]
fn slip_13_the_socket_and_the_state_of_a_living_operator_are_left_to_it() {
    let world = Workspace::new();
    let (running, _) = world.ready();
    let (code, text) = world.ask(&["dev", "--once", "--reset", "--prometheus-listen-port", "0"]);
    assert!(code == 1 && text.contains("another dev uses it"), "exit {code}: {text}");
    let socket = world.path().join(".addon-operator/debug.socket");
    let socket = socket.to_str().unwrap();
    let other = [
        "dev",
        "--once",
        "--state-dir",
        "other",
        "--prometheus-listen-port",
        "0",
        "--debug-unix-socket",
        socket,
    ];
    let (code, text) = world.ask(&other);
    assert!(code == 1 && text.contains("another operator answers on the socket"), "exit {code}: {text}");
    assert_eq!(world.ask(&["raw", "/", "--debug-unix-socket", socket]).0, 0, "the first one still answers");
    drop(running);
    // A killed operator leaves its socket, and the next one takes its place.
    assert!(Path::new(socket).exists());
    let output = world.once();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // What is no socket is not removed.
    world.write("notes.txt", "mine");
    let (code, text) =
        world.ask(&["dev", "--once", "--debug-unix-socket", "notes.txt", "--prometheus-listen-port", "0"]);
    assert!(code == 1 && text.contains("no socket stands there"), "exit {code}: {text}");
    assert_eq!(fs::read_to_string(world.path().join("notes.txt")).unwrap(), "mine");
}

#[test]
fn slip_12_a_place_that_others_may_replace_is_refused_in_one_way() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let world = Workspace::new();
    let open = world.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    world.write("notes.txt", "mine");
    symlink("other", world.path().join("link")).unwrap();
    fs::create_dir(world.path().join("other")).unwrap();
    let options = ["--tmp-dir", "--source-dir", "--state-dir", "--debug-unix-socket"];
    let others = options.map(|option| {
        (
            option,
            "open/x",
            "others may replace what is in it (mode 777, no sticky bit); take the right to write there",
        )
    });
    let none = ["--tmp-dir", "--source-dir", "--state-dir"]
        .map(|option| (option, "notes.txt", "it is no directory; name"));
    let link = [("--source-dir", "link", "it is no directory; name")];
    for (option, place, said) in others.into_iter().chain(none).chain(link) {
        let (code, text) = world.ask(&["dev", "--once", "--prometheus-listen-port", "0", option, place]);
        assert_eq!(code, 1, "{option} {place}: {text}");
        assert!(text.contains("won't use ") && text.contains(said), "{option} {place}: {text}");
        assert!(text.contains(&format!("a directory of your own with {option}")), "{option} {place}: {text}");
    }
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
}

#[test]
fn f_g1_a_start_with_an_empty_modules_directory_deletes_no_release() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
    );
    let (running, _) = world.ready();
    running.stop();
    // A volume that was not mounted, for example.
    std::fs::remove_dir_all(world.path().join("modules/010-web")).unwrap();
    let mut running = world.dev(&[]);
    running.wait("release web belongs to no module; it stays");
    let (code, releases) = world.ask(&["module", "releases"]);
    assert_eq!((code, releases.trim()), (0, "web"));
    running.stop();
}

#[test]
fn a_start_asks_each_hook_and_each_script_once_and_a_flag_asks_none_again() {
    const MODULES: usize = 20;
    let world = Workspace::new();
    let runs = world.path().join("runs");
    let note = |what: &str| format!("#!/bin/bash\necho \"{what} $1\" >> {}\n", runs.display());
    let flags: Vec<String> = (0..MODULES).map(|number| format!("m{number}Enabled: true")).collect();
    for number in 0..MODULES {
        let dir = format!("modules/{:03}-m{number}", 10 + number);
        world.write(&format!("{dir}/enabled"), &(note("enabled") + "echo true > $MODULE_ENABLED_RESULT\n"));
        world.write(
            &format!("{dir}/hooks/a.sh"),
            &(note("hook")
                + "if [[ $1 == --config ]]; then echo '{\"configVersion\":\"v1\",\"beforeHelm\":1}'; fi\n"),
        );
    }
    world.write("modules/values.yaml", &(flags.join("\n") + "\n"));
    let (mut running, _) = world.ready();
    let counted = || {
        let runs = fs::read_to_string(&runs).unwrap();
        let count = |what: &str| runs.lines().filter(|line| line.trim_end() == what).count();
        [count("hook --config"), count("enabled"), count("hook"), runs.lines().count()]
    };
    assert_eq!(counted(), [MODULES, MODULES, MODULES, 3 * MODULES]);
    assert_eq!(world.ask(&["module", "disable", "m19"]).0, 0);
    running.wait("module m19 is disabled");
    let [_, asked, ..] = counted();
    assert_eq!(asked, MODULES, "what scripts read is the same");
    assert_eq!(running.stop(), 0);
}

#[test]
fn slip_04_each_cluster_of_dev_and_apiserver_has_a_token_of_its_own() {
    let token = Regex::new(r#"token"?: "?([^"\s,}]+)"#).unwrap();
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let world = Workspace::new();
        let (running, _) = world.ready();
        let mut server = Running::start(world.command(&[
            "apiserver",
            "--listen",
            "127.0.0.1:0",
            "--kubeconfig-out",
            "kubeconfig",
        ]));
        server.wait_for_file(&world.path().join("kubeconfig"));
        for name in [".addon-operator/kubeconfig", "kubeconfig"] {
            let text = fs::read_to_string(world.path().join(name)).unwrap();
            let found = token.captures(&text).unwrap()[1].to_owned();
            assert!(found.len() >= 43, "{} characters have no 256 random bits", found.len());
            tokens.insert(found);
        }
        assert_eq!((server.stop(), running.stop()), (0, 0));
    }
    assert_eq!(tokens.len(), 4);
}
