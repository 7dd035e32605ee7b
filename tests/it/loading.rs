//! Files become a catalog: good ones, and each kind of bad one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use addon_operator::load::{Loader, Places};
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("modules")).unwrap();
        fs::create_dir(dir.path().join("global-hooks")).unwrap();
        Self(dir)
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn executable(&self, path: &str, text: &str) -> &Self {
        self.write(path, text);
        fs::set_permissions(self.0.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn loader(&self) -> Loader {
        let at = |name: &str| self.0.path().join(name);
        Loader::new(Places {
            modules_dirs: vec![at("modules")],
            global_hooks_dir: at("global-hooks"),
            unnumbered_order: 1,
            crd_filters: vec!["doc-".into(), "_".into()],
            strict: false,
            environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            config_timeout: Duration::from_secs(5),
        })
    }

    async fn broken(&self, module: &str) -> String {
        let catalog = self.loader().load().await.unwrap();
        let module = catalog.modules.iter().find(|found| found.name.as_str() == module).unwrap();
        module.broken.as_ref().unwrap_or_else(|| panic!("{module:?} is fine")).to_string()
    }
}

const HOOK: &str = "#!/bin/bash\necho '{\"configVersion\":\"v1\",\"beforeHelm\":5}'\n";

#[tokio::test]
async fn a_module_has_values_flags_hooks_schemas_chart_and_crds() {
    let files = Files::new();
    files
        .write("modules/values.yaml", "global: {a: 1}\nwebEnabled: true\nweb: {size: 1, port: 80}\n")
        .write("modules/010-web/values.yaml", "web: {size: 2}\nwebEnabled: \"False\"\n")
        .write("modules/010-web/openapi/values.yaml", "type: object\nadditionalProperties: true\n")
        .write("modules/010-web/templates/x.yaml", "")
        .write("modules/010-web/crds/crd.yaml", "")
        .write("modules/010-web/crds/doc-crd.yaml", "")
        .executable("modules/010-web/hooks/sub/a.sh", HOOK)
        .executable("modules/010-web/hooks/lib/b.sh", "#!/bin/bash\nexit 1\n")
        .write("modules/010-web/hooks/forgotten.sh", HOOK);
    let catalog = files.loader().load().await.unwrap();
    let web = &catalog.modules[0];
    assert_eq!((web.name.as_str(), web.order, &*web.key), ("web", 10, "web"));
    assert!(web.broken.is_none() && web.has_chart && web.crds.len() == 1);
    assert_eq!(*web.static_values, serde_json::json!({"size": 2, "port": 80}));
    let flag = web.enabled.as_ref().unwrap();
    assert!(!flag.value && flag.source.ends_with("010-web/values.yaml"));
    assert_eq!(web.hooks.iter().map(|hook| hook.id.name.as_str()).collect::<Vec<_>>(), ["hooks/sub/a.sh"]);
    assert_eq!(*catalog.global.static_values, serde_json::json!({"a": 1}));
    assert!(catalog.warnings.iter().any(|warning| warning.contains("chmod +x")), "{:?}", catalog.warnings);
    assert!(catalog.complete);
}

#[tokio::test]
async fn each_kind_of_broken_module_says_what_is_wrong_and_where() {
    let files = Files::new();
    files
        .write("modules/010-list/values.yaml", "list: [1]\n")
        .write("modules/020-text/values.yaml", "- not a mapping\n")
        .write("modules/030-yaml/values.yaml", "a: b: c\n")
        .write("modules/040-schema/openapi/values.yaml", "type: [\n")
        .executable("modules/050-exit/hooks/a.sh", "#!/bin/bash\necho no luck >&2\nexit 4\n")
        .executable("modules/060-garbage/hooks/a.sh", "#!/bin/bash\necho '}{'\n")
        .executable("modules/070-shebang/hooks/a.sh", "#!/no/such/shell\n")
        .executable(
            "modules/080-unknown/hooks/a.sh",
            "#!/bin/bash\necho '{\"configVersion\":\"v1\",\"beforeAll\":5}'\n",
        );
    for (module, parts) in [
        ("list", &["values.yaml", "section list should be a mapping"][..]),
        ("text", &["values.yaml", "mapping"]),
        ("yaml", &["values.yaml", "line 1"]),
        ("schema", &["openapi/values.yaml"]),
        ("exit", &["hooks/a.sh", "exit status 4", "no luck"]),
        ("garbage", &["hooks/a.sh"]),
        ("shebang", &["hooks/a.sh", "interpreter"]),
        ("unknown", &["hooks/a.sh", "beforeAll"]),
    ] {
        let message = files.broken(module).await;
        for part in parts {
            assert!(message.contains(part), "{module}: {message:?} does not say {part:?}");
        }
    }
}

#[tokio::test]
async fn a_hook_that_hangs_at_its_configuration_is_ended() {
    let files = Files::new();
    files.executable("modules/010-web/hooks/a.sh", "#!/bin/bash\nsleep 600\n");
    let at = |name: &str| files.0.path().join(name);
    let loader = Loader::new(Places {
        modules_dirs: vec![at("modules")],
        global_hooks_dir: at("global-hooks"),
        unnumbered_order: 1,
        crd_filters: Vec::new(),
        strict: false,
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        config_timeout: Duration::from_millis(100),
    });
    let catalog = loader.load().await.unwrap();
    let broken = catalog.modules[0].broken.as_ref().unwrap();
    assert!(broken.to_string().contains("did not answer within 0.1 s"), "{broken}");
    assert!(broken.advice.as_ref().unwrap().contains("--hook-config-timeout"));
}

#[tokio::test]
async fn a_start_is_refused_when_everybody_would_suffer() {
    let refused = |files: Files| async move { files.loader().load().await.unwrap_err().to_string() };
    let files = Files::new();
    files.executable("global-hooks/a.sh", "#!/bin/bash\nexit 1\n");
    assert!(refused(files).await.contains("a.sh"));
    let files = Files::new();
    files.write("modules/values.yaml", "a: [\n");
    assert!(refused(files).await.contains("modules/values.yaml"));
    let files = Files::new();
    files.write("modules/values.yaml", "webEnabled: 5\n");
    assert!(refused(files).await.contains("webEnabled"));
    let files = Files::new();
    fs::remove_dir(files.0.path().join("global-hooks")).unwrap();
    assert!(refused(files).await.contains("global-hooks"));
    let files = Files::new();
    fs::create_dir(files.0.path().join("modules/010-Bad_Name")).unwrap();
    assert!(refused(files).await.contains("010-Bad_Name"));
}

#[tokio::test]
async fn a_hook_is_asked_again_only_when_it_changed() {
    let files = Files::new();
    let count = files.0.path().join("count");
    let hook = format!("#!/bin/bash\necho x >> {}\necho '{{\"configVersion\":\"v1\"}}'\n", count.display());
    files.executable("modules/010-web/hooks/a.sh", &hook);
    let loader = files.loader();
    let asked = |count: &Path| fs::read_to_string(count).unwrap().lines().count();
    let first = loader.load().await.unwrap();
    let again = loader.load().await.unwrap();
    assert_eq!((asked(&count), first == again), (1, true));
    files.executable("modules/010-web/hooks/a.sh", &format!("{hook}# changed\n"));
    let changed = loader.load().await.unwrap();
    assert_eq!((asked(&count), changed == again), (2, false));
}

#[tokio::test]
async fn f_g1_an_empty_modules_directory_makes_a_catalog_that_lets_nothing_be_purged() {
    let files = Files::new();
    assert!(!files.loader().load().await.unwrap().complete);
    files.executable("modules/010-web/hooks/a.sh", HOOK);
    assert!(files.loader().load().await.unwrap().complete);
}

#[tokio::test]
async fn f_h3_drafts_hidden_files_and_links_in_a_circle_are_no_hooks() {
    let files = Files::new();
    files
        .executable("modules/010-web/hooks/a.sh", HOOK)
        .executable("modules/010-web/hooks/.a.sh.swp", HOOK)
        .executable("modules/010-web/hooks/..data/b.sh", HOOK)
        .write("modules/010-web/hooks/a.sh~", HOOK)
        .write("modules/010-web/hooks/notes.md", "");
    let hooks = files.0.path().join("modules/010-web/hooks");
    std::os::unix::fs::symlink(&hooks, hooks.join("again")).unwrap();
    let catalog = files.loader().load().await.unwrap();
    let names: Vec<&str> = catalog.modules[0].hooks.iter().map(|hook| hook.id.name.as_str()).collect();
    assert_eq!(names, ["hooks/a.sh"]);
}
