//! The files of simulated operators: two modules with charts and hooks, and a global hook; some have more. Each
//! scenario is loaded once.
//!
//! The hooks are files only for their `--config`. What they do in a run is in `hooks.rs`.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use addon_operator::config::{Environment, OptionSources, Settings};
use addon_operator::load::{LoadOptions, Loader};
use engine::Catalog;
use tempfile::TempDir;

use crate::FAILED_ONCE;
use crate::seed::Seed;

/// The kinds of a run that the API server does not have at the start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kinds {
    /// There are none.
    Known,
    /// A module brings one. A global hook that watches it runs before all modules.
    Brought,
    /// People bring one, sooner or later or never. A global hook has a binding on it, and another one, both in `main`.
    Awaited,
}

/// What some runs have beside their kinds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Extra {
    Nothing,
    /// The chart of `db` has a hook, a Job that takes its time and fails now and then.
    ChartHook,
    /// People edit a field that the chart of `db` renders, which is enforced.
    Edits,
    /// Objects of releases may never be listed nor watched in the whole cluster, as with rights in one namespace only.
    NamespaceOnly,
    /// The ConfigMap of the operator may be listed, and never be watched.
    UnwatchedConfig,
    /// Items of the hook of `web` may be listed, and never be watched.
    UnwatchedItems,
    /// A global hook has a binding on Secrets that may never be listed nor watched, and another one, both in `main`.
    ForbiddenKeys,
    /// A module watches the kind that another one brings behind it, as the global hook does but with a filter. Its watch is
    /// opened when the kind is known to be missing. Without such a kind there is nothing.
    LateWatch,
}

/// What is drawn for a run: almost half of them have nothing else.
const EXTRAS: [Extra; 12] = [
    Extra::LateWatch,
    Extra::Nothing,
    Extra::Nothing,
    Extra::Nothing,
    Extra::Nothing,
    Extra::Nothing,
    Extra::ChartHook,
    Extra::Edits,
    Extra::NamespaceOnly,
    Extra::UnwatchedConfig,
    Extra::UnwatchedItems,
    Extra::ForbiddenKeys,
];

/// Where the Secrets are that may never be seen.
pub(crate) const KEYS: &str = "/api/v1/namespaces/private/secrets";

/// Where the items are.
pub(crate) const ITEMS_PATH: &str = "/api/v1/namespaces/work/configmaps";

/// Where the ConfigMap of the operator is listed.
pub(crate) const CONFIG_PATH: &str = "/api/v1/namespaces/ops/configmaps";

impl Extra {
    /// Returns what can't be watched for ever. It is listed again and again.
    pub(crate) fn never_watched(self) -> Option<&'static str> {
        match self {
            Self::UnwatchedConfig => Some(CONFIG_PATH),
            Self::UnwatchedItems => Some(ITEMS_PATH),
            Self::ForbiddenKeys => Some(KEYS),
            Self::Nothing | Self::ChartHook | Self::Edits | Self::NamespaceOnly | Self::LateWatch => None,
        }
    }
}

/// What all runs of one scenario share.
pub(crate) struct Scenario {
    pub(crate) kinds: Kinds,
    pub(crate) extra: Extra,
    pub(crate) settings: Settings,
    pub(crate) loader: Arc<Loader>,
    pub(crate) catalog: Catalog,
    _dir: TempDir,
}

/// Counts items; sees each change of an item.
const ITEMS: &str = r#"{"configVersion":"v1","beforeHelm":1,"kubernetes":[{"name":"items","apiVersion":"v1","kind":"ConfigMap","namespace":{"nameSelector":{"matchNames":["work"]}},"labelSelector":{"matchLabels":{"item":"yes"}},"includeSnapshotsFrom":["items"]}]}"#;

/// Reads a Secret into values, in a queue of its own.
const CREDENTIALS: &str = r#"{"configVersion":"v1","kubernetes":[{"name":"credentials","apiVersion":"v1","kind":"Secret","queue":"credentials","namespace":{"nameSelector":{"matchNames":["work"]}},"nameSelector":{"matchNames":["credentials"]},"includeSnapshotsFrom":["credentials"]}]}"#;

/// Sees items as a group, in namespaces that are selected by their labels.
const TEAMS: &str = r#"{"configVersion":"v1","beforeAll":1,"kubernetes":[{"name":"items","apiVersion":"v1","kind":"ConfigMap","queue":"teams","group":"all","namespace":{"labelSelector":{"matchLabels":{"team":"yes"}}},"labelSelector":{"matchLabels":{"item":"yes"}},"jqFilter":".data.text"}]}"#;

/// Is due twice a minute, in a queue of its own.
const TICK: &str =
    r#"{"configVersion":"v1","schedule":[{"name":"tick","crontab":"*/30 * * * * *","queue":"ticks"}]}"#;

/// Sees what a module brings, before all modules.
const GADGETS: &str = r#"{"configVersion":"v1","beforeAll":2,"kubernetes":[{"name":"gadgets","apiVersion":"example.com/v1","kind":"Gadget","includeSnapshotsFrom":["gadgets"]}]}"#;

/// Sees the same, filtered, before its module is installed.
const VIEWED: &str = r#"{"configVersion":"v1","beforeHelm":1,"kubernetes":[{"name":"gadgets","apiVersion":"example.com/v1","kind":"Gadget","jqFilter":".spec.text","includeSnapshotsFrom":["gadgets"]}]}"#;

/// Has a binding on a kind that may be missing, behind one on a kind that is not.
const PAIR: &str = r#"{"configVersion":"v1","kubernetes":[{"name":"items","apiVersion":"v1","kind":"ConfigMap","namespace":{"nameSelector":{"matchNames":["work"]}},"labelSelector":{"matchLabels":{"item":"yes"}}},{"name":"things","apiVersion":"example.com/v1","kind":"Thing","includeSnapshotsFrom":["things"]}]}"#;

/// Has a binding on Secrets that it may never see, behind one on items.
const OF_KEYS: &str = r#"{"configVersion":"v1","kubernetes":[{"name":"items","apiVersion":"v1","kind":"ConfigMap","namespace":{"nameSelector":{"matchNames":["work"]}},"labelSelector":{"matchLabels":{"item":"yes"}}},{"name":"keys","apiVersion":"v1","kind":"Secret","namespace":{"nameSelector":{"matchNames":["private"]}},"includeSnapshotsFrom":["keys"]}]}"#;

/// A hook of the chart of `db`.
const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: prepare
  annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
";

/// Returns the definition of a kind of `example.com/v1`, as JSON.
pub(crate) fn definition(kind: &str) -> serde_json::Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"text": {"type": "string"}}},
                }}},
            }],
        },
    })
}

fn hook(config: &str) -> String {
    format!("#!/bin/sh\n[ \"$1\" = --config ] && echo '{config}'\n")
}

fn write(dir: &Path, path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    if path.extension().is_some_and(|extension| extension == "sh") {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn write_files(dir: &Path, (kinds, extra): (Kinds, Extra), ticks: bool) {
    let files = [
        (
            "modules/values.yaml",
            "webEnabled: true\ndbEnabled: true\ngadgetsEnabled: true\nviewerEnabled: true\nkindsEnabled: true\nweb: {text: first, password: none, internal: {items: 0}}\ndb: {text: first, internal: {token: none}}\n",
        ),
        ("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n"),
        (
            "modules/010-web/templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {text: {{ .Values.web.text | quote }}, items: {{ .Values.web.internal.items | quote }}}\n",
        ),
        (
            "modules/010-web/templates/secret.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: {{ .Values.web.password | quote }}}\n",
        ),
        ("modules/010-web/hooks/items.sh", &hook(ITEMS)),
        ("modules/020-db/Chart.yaml", "name: db\nversion: 0.1.0\n"),
        (
            "modules/020-db/templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\ndata: {text: {{ .Values.db.text | quote }}}\n",
        ),
        (
            "modules/020-db/templates/secret.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {token: {{ .Values.db.internal.token | quote }}}\n",
        ),
        ("modules/020-db/hooks/credentials.sh", &hook(CREDENTIALS)),
        ("global-hooks/teams.sh", &hook(TEAMS)),
    ];
    for (path, text) in files {
        write(dir, path, text);
    }
    if ticks {
        write(dir, "modules/020-db/hooks/tick.sh", &hook(TICK));
    }
    match extra {
        Extra::ChartHook => write(dir, "modules/020-db/templates/job.yaml", JOB),
        Extra::Edits => write(dir, "modules/020-db/module.yaml", "drift: enforce\n"),
        Extra::ForbiddenKeys => write(dir, "global-hooks/keys.sh", &hook(OF_KEYS)),
        Extra::LateWatch if kinds == Kinds::Brought => {
            write(dir, "modules/025-viewer/Chart.yaml", "name: viewer\nversion: 0.1.0\n");
            let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: viewer}\n";
            write(dir, "modules/025-viewer/templates/map.yaml", map);
            write(dir, "modules/025-viewer/hooks/viewed.sh", &hook(VIEWED));
            write(dir, "modules/028-kinds/Chart.yaml", "name: kinds\nversion: 0.1.0\n");
        }
        Extra::Nothing
        | Extra::NamespaceOnly
        | Extra::UnwatchedConfig
        | Extra::UnwatchedItems
        | Extra::LateWatch => {}
    }
    match kinds {
        Kinds::Known => {}
        Kinds::Brought => {
            write(dir, "modules/030-gadgets/Chart.yaml", "name: gadgets\nversion: 0.1.0\n");
            // What is in `crds` is there before all modules run.
            let crd = match extra {
                Extra::LateWatch => "modules/028-kinds/templates/gadget.yaml",
                _ => "modules/030-gadgets/crds/gadget.yaml",
            };
            write(dir, crd, &definition("Gadget").to_string());
            write(
                dir,
                "modules/030-gadgets/templates/gadget.yaml",
                "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {text: brought}\n",
            );
            write(dir, "global-hooks/gadgets.sh", &hook(GADGETS));
        }
        Kinds::Awaited => write(dir, "global-hooks/pair.sh", &hook(PAIR)),
    }
}

impl Scenario {
    /// Returns the scenario of a seed, which is loaded when it is first asked for.
    pub(crate) fn of(seed: Seed) -> &'static Self {
        static ALL: [[[OnceLock<Scenario>; 2]; 3]; 8] =
            [const { [const { [const { OnceLock::new() }; 2] }; 3] }; 8];
        let kinds = seed.pick(
            "kinds",
            0,
            &[Kinds::Known, Kinds::Known, Kinds::Known, Kinds::Brought, Kinds::Awaited],
        );
        let ticks = seed.chance("ticks", 0, 25);
        // Those that failed once had none, and go on to be what they were.
        let has_extra = !FAILED_ONCE.contains(&seed.0);
        let extra = if has_extra { seed.pick("extra", 0, &EXTRAS) } else { Extra::Nothing };
        ALL[extra as usize][kinds as usize][usize::from(ticks)]
            .get_or_init(|| Self::load((kinds, extra), ticks))
    }

    fn load((kinds, extra): (Kinds, Extra), ticks: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path(), (kinds, extra), ticks);
        let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        let flags = [
            ("modules-dir", path("modules")),
            ("global-hooks-dir", path("global-hooks")),
            ("tmp-dir", path("tmp")),
            ("source-dir", path("sources")),
            ("namespace", "ops".to_owned()),
            ("watch-files", "false".to_owned()),
        ];
        let flags = flags.into_iter().map(|(flag, text)| (flag.to_owned(), text)).collect();
        let settings = Settings::new(&OptionSources::new(flags, Environment::default())).unwrap();
        let options = LoadOptions {
            serves_webhooks: false,
            modules_dirs: settings.modules_dirs.clone(),
            bundles_dir: None,
            global_hooks_dir: settings.global_hooks_dir.clone(),
            global_hooks_optional: false,
            unnumbered_order: settings.unnumbered_order,
            crd_filters: settings.crd_filters.clone(),
            strict: settings.strict_values,
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            config_timeout: settings.hook_config_timeout,
            chroots: None,
        };
        let loader = Arc::new(Loader::new(options));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let catalog = runtime.block_on(loader.load()).unwrap();
        assert!(catalog.warnings.is_empty(), "{:?}", catalog.warnings);
        Self { kinds, extra, settings, loader, catalog, _dir: dir }
    }
}
