//! Files of hooks that are larger than what the operator may hold of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use addon_operator::hook::{HookRun, Hooks, LogRules, Scratch};
use engine::hook::{BindingContext, HookKind, RunContexts, config};
use engine::snapshot::{Item, Key, Snapshot};
use engine::{Cause, Failure, Hook, HookId, HookOutput, RunLabels, Scope, TaskId, ValuesInput};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::{alone, grown_by};

/// How long the context is.
const CONTEXT: usize = 200 << 20;

struct World {
    dir: TempDir,
    hooks: Hooks,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(Some(&dir.path().join("tmp")), false).unwrap();
        let environment = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        Self { hooks: Hooks::new(Arc::new(scratch), environment, LogRules::default()), dir }
    }

    /// Runs a hook with this text that is shown this snapshot.
    async fn run(&self, text: &str, snapshot: &Snapshot) -> Result<HookOutput, Failure> {
        let path = self.dir.path().join("hook.sh");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let text = "{configVersion: v1, kubernetes: [{name: all, kind: Pod}]}";
        let spec = config::parse("hook.sh".into(), HookKind::Global, text).unwrap();
        let contexts = vec![BindingContext::synchronization(spec.kubernetes.first().unwrap(), 0)];
        let run = HookRun {
            contexts: RunContexts::new(&spec, contexts, |_| snapshot.clone()),
            hook: Arc::new(Hook {
                id: HookId { scope: Scope::Global, name: "hook.sh".into() },
                path: path.to_str().unwrap().into(),
                content: 1,
                launch: engine::Launch::default(),
                spec,
            }),
            values: ValuesInput {
                secret: Arc::default(),
                global: Arc::new(json!({})),
                global_config: Arc::new(Value::Null),
                module: None,
                enabled_modules: None,
            },
            timeout: None,
            labels: RunLabels {
                task: TaskId::new(1),
                queue: "main".into(),
                binding_type: "kubernetes",
                binding: "all".into(),
                cause: Cause::outside("test"),
            },
        };
        let (_keep, cancel) = oneshot::channel();
        self.hooks.run(run, cancel).await.0
    }
}

#[test]
fn a_context_of_two_hundred_megabytes_is_streamed_to_its_hook() {
    let _alone = alone();
    let world = World::new();
    // The objects share their bytes, as the items of several filters do.
    let text: Arc<[u8]> = format!("{{\"data\":\"{}\"}}", "x".repeat(1 << 20)).into_bytes().into();
    let item = Arc::new(Item::unfiltered(Arc::clone(&text), true));
    let objects = CONTEXT.div_ceil(text.len());
    let snapshot: Snapshot =
        (0..objects).map(|n| (Key::new("ns", &n.to_string()), Arc::clone(&item))).collect();
    let out = world.dir.path().join("length");
    let hook = format!(
        "#!/bin/bash\nwc -c < \"$BINDING_CONTEXT_PATH\" > {0}\nhead -c 40 \"$BINDING_CONTEXT_PATH\" >> {0}\n\
         tail -c 30 \"$BINDING_CONTEXT_PATH\" >> {0}\n",
        out.display()
    );
    let grown = grown_by(async {
        world.run(&hook, &snapshot).await.unwrap();
    });
    let seen = fs::read_to_string(out).unwrap();
    let (length, ends) = seen.split_once('\n').unwrap();
    let length: usize = length.trim().parse().unwrap();
    assert!(length > CONTEXT && length < CONTEXT + (1 << 20), "{length}");
    assert!(ends.starts_with("[{\"binding\":\"all\",\"objects\":[{\"object\":{"), "{ends}");
    assert!(ends.ends_with("}],\"type\":\"Synchronization\"}]\n"), "{ends}");
    assert!(grown < 1 << 20, "the operator held {grown} bytes for a context of {length}");
}

#[test]
fn a_file_of_a_gibibyte_that_a_hook_wrote_is_refused_unread() {
    let _alone = alone();
    let world = World::new();
    for (variable, what) in [
        ("METRICS_PATH", "hook-metrics.json has 1073741824 bytes, more than the 33554432 that are read"),
        ("KUBERNETES_PATCH_PATH", "object-patch has 1073741824 bytes, more than the 67108864 that are read"),
        ("VALUES_JSON_PATCH_PATH", "json-patch has 1073741824 bytes, more than the 33554432 that are read"),
    ] {
        // With and without a failure of the hook itself: then what survives is looked for.
        for end in ["exit 0", "exit 1"] {
            let hook = format!("#!/bin/bash\ntruncate -s 1G ${variable}\n{end}\n");
            let mut said = String::new();
            let grown = grown_by(async {
                let failure = world.run(&hook, &Snapshot::default()).await.unwrap_err();
                said = failure.to_string();
            });
            assert!(end == "exit 1" || said.contains(what), "{said}");
            assert!(grown < 1 << 20, "{variable}: the operator held {grown} bytes");
        }
    }
}
