//! Hooks as processes: what they are given, what is read of what they leave, and how they fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addon_operator::app::Outcome;
use addon_operator::hook::{HookRun, Hooks, LogRules, Scratch};
use addon_operator::process::Chroots;
use engine::hook::{BindingContext, HookKind, Lifecycle, RunContexts, config};
use engine::snapshot::Snapshot;
use engine::{Cause, Failure, FailureKind, Hook, HookId, HookOutput, RunLabels, Scope, TaskId, ValuesInput};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::support::in_process::Cluster;
use crate::support::server::until;
use crate::support::{DEADLINE, program};

struct Fixture {
    dir: TempDir,
    hooks: Hooks,
    /// What the configuration of the hook has more.
    settings: &'static str,
    /// How it is started.
    launch: engine::Launch,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(Some(&dir.path().join("tmp")), false).unwrap();
        let environment = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("FROM_OUTSIDE".into(), "yes".into()),
        ];
        let hooks = Hooks::new(Arc::new(scratch), environment, LogRules::default());
        Self { hooks, dir, settings: "", launch: engine::Launch::default() }
    }

    /// Runs a hook with this text.
    async fn run(&self, text: &str) -> Result<HookOutput, Failure> {
        let path = self.dir.path().join("hooks/my hook.sh");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!("{{configVersion: v1, beforeHelm: 1{}}}", self.settings);
        let spec = config::parse("hooks/my hook.sh".into(), HookKind::Module, &config).unwrap();
        let contexts = vec![BindingContext::lifecycle(Lifecycle::BeforeHelm)];
        let run = HookRun {
            contexts: RunContexts::new(&spec, contexts, |_| Snapshot::default()),
            hook: Arc::new(Hook {
                id: HookId { scope: Scope::Module("web".into()), name: "hooks/my hook.sh".into() },
                path: path.to_str().unwrap().into(),
                content: 1,
                launch: self.launch.clone(),
                spec,
            }),
            values: ValuesInput {
                secret: Arc::default(),
                global: Arc::new(json!({})),
                global_config: Arc::new(Value::Null),
                module: Some(engine::ModuleValues {
                    key: "web".into(),
                    values: Arc::new(json!({"a": 1})),
                    config: Arc::new(json!({})),
                }),
                enabled_modules: None,
            },
            timeout: Some(Duration::from_mins(1)),
            labels: RunLabels {
                task: TaskId::new(1),
                queue: "main".into(),
                binding_type: "beforeHelm",
                binding: "beforeHelm".into(),
                cause: Cause::outside("test"),
            },
        };
        let (_keep, cancel) = oneshot::channel();
        self.hooks.run(run, cancel).await.0
    }

    /// Returns what a hook wrote into a file of this directory.
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    /// Returns how many files hold anything. Those that wait for the next run hold zeros.
    fn files_left(&self) -> usize {
        let runs = walkdir::WalkDir::new(self.dir.path().join("tmp")).into_iter().flatten();
        let files = runs.filter(|entry| entry.file_type().is_file());
        files.filter(|file| fs::read(file.path()).unwrap().iter().any(|byte| *byte != 0)).count()
    }
}

#[tokio::test]
async fn a_hook_is_given_what_the_contract_says() {
    let world = Fixture::new();
    let out = world.dir.path().display();
    let text = format!(
        "#!/bin/bash\nset -eu\ncd {out}\necho \"$# $0\" > arguments\nenv | sort > environment\n(cd \"$OLDPWD\" && pwd) > directory\n\
         cat > stdin\ncp \"$BINDING_CONTEXT_PATH\" context\ncp \"$VALUES_PATH\" values\ncp \"$CONFIG_VALUES_PATH\" config\n\
         stat -c '%a %s' \"$BINDING_CONTEXT_PATH\" \"$VALUES_PATH\" \"$CONFIG_VALUES_PATH\" \"$METRICS_PATH\" \"$KUBERNETES_PATCH_PATH\" \
         \"$VALUES_JSON_PATCH_PATH\" \"$CONFIG_VALUES_JSON_PATCH_PATH\" > files\nstat -c %a \"$(dirname \"$METRICS_PATH\")\" > rights\n"
    );
    let output = world.run(&text).await.unwrap();
    assert_eq!(output, HookOutput::default());
    assert_eq!(world.read("arguments"), format!("0 {out}/hooks/my hook.sh\n"));
    assert_eq!(world.read("stdin"), "");
    assert_eq!(world.read("directory").trim(), std::env::current_dir().unwrap().to_str().unwrap());
    assert_eq!(world.read("context"), "[{\"binding\":\"beforeHelm\",\"snapshots\":{}}]\n");
    assert_eq!(world.read("values"), "{\"global\":{},\"web\":{\"a\":1}}");
    assert_eq!(world.read("config"), "{\"global\":null,\"web\":{}}");
    let names: Vec<String> = world
        .read("environment")
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
        .filter(|name| !matches!(name.as_str(), "_" | "SHLVL" | "PWD" | "OLDPWD"))
        .collect();
    assert_eq!(
        names,
        [
            "BINDING_CONTEXT_PATH",
            "CONFIG_VALUES_JSON_PATCH_PATH",
            "CONFIG_VALUES_PATH",
            "FROM_OUTSIDE",
            "HOOK_DIR",
            "KUBERNETES_PATCH_PATH",
            "METRICS_PATH",
            "PATH",
            "VALUES_JSON_PATCH_PATH",
            "VALUES_PATH"
        ]
    );
    assert!(world.read("environment").contains(&format!("HOOK_DIR={out}/hooks\n")));
    let files = world.read("files");
    let files: Vec<&str> = files.lines().collect();
    assert!(files.iter().all(|file| file.starts_with("600 ")), "{files:?}");
    assert!(files[3..].iter().all(|file| *file == "600 0"), "outputs are there, and empty: {files:?}");
    assert_eq!(world.read("rights").trim(), "700");
    assert_eq!(world.files_left(), 0);
}

#[tokio::test]
async fn one_of_several_hooks_of_a_file_is_run_by_its_index_with_the_files_of_every_hook() {
    let launch = engine::Launch { batch_index: Some(7), ..engine::Launch::default() };
    let world = Fixture { launch, ..Fixture::new() };
    let out = world.dir.path().display();
    let text = format!(
        "#!/bin/bash\ncd {out}\necho \"$* $MODULE_NAME\" > arguments\ncp \"$VALUES_PATH\" values\n\
        echo '{{\"name\":\"m\",\"set\":1}}' > \"$METRICS_PATH\"\n"
    );
    let output = world.run(&text).await.unwrap();
    assert_eq!(output.metrics[0].name, "m");
    assert_eq!(world.read("arguments"), "hook run 7 web\n");
    assert_eq!(world.read("values"), "{\"global\":{},\"web\":{\"a\":1}}");
}

#[tokio::test]
async fn a_hook_in_python_is_run_by_its_environment() {
    let mut world = Fixture::new();
    let venv = world.dir.path().join("hooks/venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    let out = world.dir.path().display();
    fs::write(venv.join("bin/python3"), format!("#!/bin/bash\necho \"$PYTHONHOME $*\" > {out}/arguments\n"))
        .unwrap();
    fs::set_permissions(venv.join("bin/python3"), fs::Permissions::from_mode(0o755)).unwrap();
    world.launch.venv = Some(venv.to_str().unwrap().into());
    world.run("#!/no/such/python\n").await.unwrap();
    assert_eq!(world.read("arguments"), format!("{} {out}/hooks/my hook.sh\n", venv.display()));
}

/// Returns where hooks of modules run. A machine that forbids that says what it lacks, and there is nothing to test.
fn chroots(directory: &Path) -> Option<Chroots> {
    match Chroots::new(directory) {
        Ok(chroots) => Some(chroots),
        Err(error) => {
            assert!(error.to_string().contains("capability SYS_ADMIN"), "{error}");
            None
        }
    }
}

#[tokio::test]
async fn a_hook_in_a_chroot_sees_its_module_its_files_and_the_system_and_nothing_else() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    let Some(chroots) = chroots(&outside.path().join("roots")) else { return };
    let mut world = Fixture::new();
    let module = world.dir.path().display().to_string();
    fs::create_dir_all(world.dir.path().join("tmp/of another run")).unwrap();
    fs::create_dir_all(outside.path().join("roots/web/opt")).unwrap();
    fs::write(outside.path().join("roots/web/opt/own"), "from the directory").unwrap();
    world.launch.module = Some(module.as_str().into());
    world.hooks = world.hooks.below(Some(chroots));
    let text = format!(
        "#!/bin/bash\nset -u\ncd_was=$PWD\ncd {module}\nexec > seen 2>&1\necho \"in $cd_was\"\ncat /opt/own; echo\n\
         [[ -e {outside} ]] || echo hidden\nls {module}/tmp/*/*/ | grep -c json\nls {module}/tmp | wc -l\n\
         touch /usr/x 2> /dev/null || echo read-only\ncp \"$VALUES_PATH\" values\necho > /dev/null && echo devices\n\
         echo '{{\"name\":\"m\",\"set\":1}}' > \"$METRICS_PATH\"\n",
        outside = outside.path().display()
    );
    let output = world.run(&text).await.unwrap();
    assert_eq!(world.read("seen"), "in /\nfrom the directory\nhidden\n6\n1\nread-only\ndevices\n");
    assert_eq!(output.metrics[0].name, "m");
    assert_eq!(world.read("values"), "{\"global\":{},\"web\":{\"a\":1}}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("roots/web"), "nobody else sees what was mounted");
    let failure = world.run("#!/no/such/shell\n").await.unwrap_err().to_string();
    assert!(failure.contains("in the chroot") && failure.contains("interpreter"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_a_chroot_directory_scripts_and_hooks_of_modules_see_their_module_and_global_hooks_see_all() {
    let world = Cluster::new().await;
    let (roots, outside) = (world.path("roots"), world.path("outside"));
    if chroots(&roots).is_none() {
        return;
    }
    let outside = outside.display();
    world.write("outside", "x");
    world.write("modules/values.yaml", "webEnabled: true\n");
    let is_inside = format!("[[ $PWD == / && ! -e {outside} ]]");
    world.write(
        "modules/010-web/enabled",
        &format!("#!/bin/bash\n{is_inside} && echo true > \"$MODULE_ENABLED_RESULT\" || echo false > \"$MODULE_ENABLED_RESULT\"\n"),
    );
    let module = world.path("modules/010-web");
    let inside = format!("{is_inside} && echo inside > {}/seen", module.display());
    world.write("modules/010-web/hooks/a.sh", &program::hook("\"beforeHelm\":1", &inside));
    world.write(
        "global-hooks/g.sh",
        &program::hook("\"onStartup\":1", &format!("cp {outside} {outside}.seen")),
    );
    let operator = world.start(&[("shell-chroot-dir", &roots.display().to_string())]).await;
    // The script says yes in the chroot only, and without it the hook does not run.
    until("the hook of the module", || module.join("seen").exists()).await;
    assert!(world.path("outside.seen").exists());
    assert_eq!(operator.stop().await, Outcome::Done);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&roots.display().to_string()), "{mounts}");
}

#[tokio::test]
async fn runs_one_after_the_other_make_no_new_files() {
    let world = Fixture::new();
    let list = "#!/bin/bash\nstat -c '%i %n' \"${VALUES_PATH%/*}\" \"${VALUES_PATH%/*}\"/* > $OUT\n";
    let mut lists: Vec<Vec<(String, String)>> = Vec::new();
    let begun = Instant::now();
    // A child that another thread starts at this moment holds the streams until it runs its program. It could be one that
    // the hook left, so the files are not used again then. Five runs one after the other have to be without.
    while lists.len() < 5 {
        assert!(begun.elapsed() < DEADLINE, "files were made: {lists:?}");
        let out = world.dir.path().join("list");
        world.run(&list.replace("$OUT", out.to_str().unwrap())).await.unwrap();
        let text = world.read("list");
        let files = text.lines().map(|line| line.split_once(' ').unwrap());
        let files: Vec<_> = files.map(|(inode, path)| (inode.to_owned(), path.to_owned())).collect();
        assert_eq!(files.len(), 8, "a directory and its files");
        let inodes =
            |list: &[(String, String)]| list.iter().map(|(inode, _)| inode.clone()).collect::<Vec<_>>();
        if lists.last().is_some_and(|last| inodes(last) != inodes(&files)) {
            lists.clear();
        }
        lists.push(files);
    }
    for pair in lists.windows(2) {
        assert!(pair[0].iter().all(|(_, path)| pair[1].iter().all(|(_, other)| path != other)));
    }
}

/// What a hook leaves behind: it holds the file for metrics, and writes there and to the old path when it is told to.
const LEFT: &str = "read -r < tell; echo '{\"name\":\"late\",\"set\":1}' >&9; echo late > $METRICS_PATH; \
    cd \"${METRICS_PATH%/*}\" && echo late > hook-metrics.json; echo > told";

#[tokio::test]
async fn what_a_hook_leaves_behind_never_writes_into_the_files_of_another_run() {
    for start in [
        "bash -c \"$LEFT\" &",
        "setsid bash -c \"$LEFT\" &",
        "setsid bash -c \"$LEFT\" < /dev/null > /dev/null 2>&1 &",
        "(setsid bash -c \"$LEFT\" < /dev/null > /dev/null 2>&1 &) &",
    ] {
        let world = Fixture::new();
        for name in ["tell", "told"] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, world.dir.path().join(name), mode).unwrap();
        }
        let at = |text: &str| {
            let dir = world.dir.path().display();
            text.replace("< tell", &format!("< {dir}/tell")).replace("> told", &format!("> {dir}/told"))
        };
        let left = at(LEFT).replace('\'', "'\\''");
        let first =
            format!("#!/bin/bash\nexec 9>>\"$METRICS_PATH\"\nexport LEFT='{left}'\n{start}\nexit 0\n");
        world.run(&first).await.unwrap();
        let dir = world.dir.path().display();
        let second = format!("#!/bin/bash\necho > {dir}/tell\nread -r < {dir}/told\nexit 0\n");
        assert_eq!(world.run(&second).await.unwrap(), HookOutput::default(), "{start}");
    }
}

#[tokio::test]
async fn a_hook_can_be_any_program_that_reads_and_writes_files() {
    let world = Fixture::new();
    let python = "#!/usr/bin/env python3\nimport json, os\ncontexts = json.load(open(os.environ['BINDING_CONTEXT_PATH']))\n\
        with open(os.environ['METRICS_PATH'], 'w') as file:\n    json.dump({'name': contexts[0]['binding'], 'set': 1}, file)\n\
        with open(os.environ['VALUES_JSON_PATCH_PATH'], 'w') as file:\n    json.dump([{'op': 'add', 'path': '/web/b', 'value': 2}], file)\n";
    let output = world.run(python).await.unwrap();
    assert_eq!(output.metrics[0].name, "beforeHelm");
    assert_eq!(output.values_patch.operations().len(), 1);
}

#[tokio::test]
async fn a_failed_hook_is_told_with_all_it_said_and_nothing_it_wrote_is_read() {
    let world = Fixture::new();
    for (text, expected) in [
        ("exit 3", "module hook 'hooks/my hook.sh' failed: cmd run: exit status 3"),
        (
            "echo one >&2; echo two >&2; exit 3",
            "module hook 'hooks/my hook.sh' failed: one\ntwo: exit status 3",
        ),
        ("kill -KILL $$", "module hook 'hooks/my hook.sh' failed: cmd run: signal: killed"),
        (
            "echo '{\"name\":\"a\",\"set\":\"x\"}' > $METRICS_PATH",
            "module hook 'hooks/my hook.sh' failed: got bad metrics: 1 error occurred:",
        ),
        (
            "echo '{\"name\":\"a\",\"set\":\"x\"}' > $METRICS_PATH; exit 1",
            "module hook 'hooks/my hook.sh' failed: cmd run: exit status 1",
        ),
        (
            "truncate -s 1G $METRICS_PATH",
            "module hook 'hooks/my hook.sh' failed: hook-metrics.json has 1073741824 bytes",
        ),
        (
            "rm $METRICS_PATH; mkfifo $METRICS_PATH",
            "module hook 'hooks/my hook.sh' failed: hook-metrics.json is no regular file",
        ),
    ] {
        let failure = world.run(&format!("#!/bin/bash\n{text}\n")).await.unwrap_err();
        assert!(failure.to_string().starts_with(expected), "{text}: {failure}");
        assert_eq!(world.files_left(), 0, "{text}");
    }
}

#[tokio::test]
async fn of_what_a_failed_hook_wrote_a_marked_patch_of_the_status_survives() {
    let world = Fixture::new();
    let patch = |name: &str, more: &str| {
        format!(
            "echo '{{\"operation\":\"MergePatch\",\"kind\":\"Pod\",\"name\":\"{name}\",\"mergePatch\":{{\"a\":1}}{more}}}' >> $KUBERNETES_PATCH_PATH\n"
        )
    };
    let writes =
        patch("plain", "") + &patch("marked", ",\"subresource\":\"/status\",\"ignoreHookError\":true");
    let writes = writes + "echo '{\"name\":\"m\",\"set\":1}' > $METRICS_PATH\n";
    let output = world.run(&format!("#!/bin/bash\n{writes}exit 1\n")).await.unwrap();
    assert_eq!(output.failed.as_ref().map(|failure| failure.kind), Some(FailureKind::HookExit));
    assert_eq!(output.object_patches.iter().map(|patch| &*patch.target.name).collect::<Vec<_>>(), ["marked"]);
    assert!(output.metrics.is_empty());
    let output = world.run(&format!("#!/bin/bash\n{writes}")).await.unwrap();
    assert_eq!((output.failed, output.object_patches.len(), output.metrics.len()), (None, 2, 1));
}

/// Returns how many bytes this process has in memory.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn f_b8_a_hook_that_takes_too_much_memory_dies_and_the_operator_lives() {
    let world = Fixture::new();
    let before = resident();
    // The limit stands for the one of a container: what is beyond it is not to be had.
    let greedy = "#!/bin/bash\nulimit -v 300000\nexec python3 -c 'x = bytearray(4 << 30); print(len(x))'\n";
    let failure = world.run(greedy).await.unwrap_err();
    assert!(
        failure.kind == FailureKind::HookExit && failure.to_string().contains("MemoryError"),
        "{failure}"
    );
    // As the system ends a process that has used up its memory.
    let killed = "#!/bin/bash\nhead -c 50000000 /dev/zero | tail -c 50000000 > /dev/null\nkill -KILL $$\n";
    let failure = world.run(killed).await.unwrap_err();
    assert!(failure.to_string().contains("signal: killed"), "{failure}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "the operator grew by {grown} bytes");
    assert!(world.run("#!/bin/bash\nexit 0\n").await.is_ok(), "the next run is fine");
    assert!(Path::new(&world.dir.path().join("tmp")).exists() && world.files_left() == 0);
}

#[tokio::test]
async fn what_a_hook_prints_and_writes_counts_together_and_its_failure_says_which_limit() {
    let fixture = Fixture { settings: ", settings: {limits: {output: 4Ki}}", ..Fixture::new() };
    let text = |printed: usize, written: usize| {
        format!(
            "#!/bin/bash\nhead -c {printed} /dev/zero >&2\nhead -c {written} /dev/zero | tr '\\0' ' ' > \"$METRICS_PATH\"\n"
        )
    };
    fixture.run(&text(2_000, 2_000)).await.unwrap();
    let failure = fixture.run(&text(2_000, 3_000)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::HookLimit);
    assert!(
        failure.message.contains("more than the 4096 bytes that it may (settings.limits.output)"),
        "{failure}"
    );
    assert!(failure.advice.unwrap().contains("--hook-limits"));
    // It is ended while it writes, whatever it does about signals, and however it writes.
    for writes in [
        "head -c 5000 /dev/zero > \"$METRICS_PATH\"",
        "head -c 5000 /dev/zero > x; mv x \"$METRICS_PATH\"",
        "truncate -s 300M \"$METRICS_PATH\"",
    ] {
        let text =
            format!("#!/bin/bash\ncd \"$(dirname \"$METRICS_PATH\")\"\ntrap '' TERM\n{writes}\nsleep 600\n");
        let failure = fixture.run(&text).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::HookLimit, "{writes}: {failure}");
        assert!(failure.message.contains("settings.limits.output"), "{writes}: {failure}");
    }
    let of_option = Fixture::new();
    let limits = engine::hook::HookLimits::parse("output=1Ki").unwrap();
    let of_option = Fixture { hooks: of_option.hooks.limited(limits), ..of_option };
    let failure = of_option.run(&text(2_000, 0)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::HookLimit, "{failure}");
}
