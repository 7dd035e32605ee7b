//! Files become a catalog: good ones, and each kind of bad one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use addon_operator::load::{LoadOptions, Loader};
use addon_operator::process::Chroots;
use engine::{Module, ValuesLayout};
use serde_json::json;
use tempfile::TempDir;

use crate::support::files::load_options;

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
        Loader::new(load_options(self.0.path()))
    }

    async fn broken(&self, module: &str) -> String {
        let catalog = self.loader().load().await.unwrap();
        let module = catalog.modules.iter().find(|found| found.name.as_str() == module).unwrap();
        let failure = module.broken.as_ref().unwrap_or_else(|| panic!("{module:?} is fine"));
        format!("{failure}; {}", failure.advice.as_deref().unwrap_or_default())
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
async fn a_section_with_nothing_behind_it_says_nothing() {
    let files = Files::new();
    files
        .write("modules/values.yaml", "web: {size: 1}\ndb:\n")
        .write("modules/010-web/values.yaml", "web:\n")
        .write("modules/020-db/values.yaml", "db: {size: 2}\n");
    let catalog = files.loader().load().await.unwrap();
    let values: Vec<_> = catalog
        .modules
        .iter()
        .map(|module| (module.broken.clone(), (*module.static_values).clone()))
        .collect();
    assert_eq!(values, [(None, json!({"size": 1})), (None, json!({"size": 2}))]);
}

#[tokio::test]
async fn what_python_compiled_is_no_hook() {
    let files = Files::new();
    files
        .write("modules/010-web/templates/x.yaml", "")
        .executable("modules/010-web/hooks/__pycache__/a.cpython-311.pyc", "#!/bin/false\n")
        .executable("modules/010-web/hooks/a.sh", HOOK);
    let catalog = files.loader().load().await.unwrap();
    let hooks: Vec<_> = catalog.modules[0].hooks.iter().map(|hook| hook.id.name.as_str()).collect();
    assert_eq!((hooks, &catalog.modules[0].broken), (vec!["hooks/a.sh"], &None));
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
        ("list", &["values.yaml", "section list should be a mapping", "correct the file"][..]),
        ("text", &["values.yaml", "mapping"]),
        ("yaml", &["values.yaml", "line 1"]),
        ("schema", &["openapi/values.yaml", "correct the file"]),
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
    let options = LoadOptions { config_timeout: Duration::from_millis(100), ..load_options(files.0.path()) };
    let loader = Loader::new(options);
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
async fn bundles_make_no_catalog_complete_and_keep_none_from_it() {
    let files = Files::new();
    let digits = "0a".repeat(32);
    files.write(&format!("sources/blobs/{digits}/bundle/Chart.yaml"), "name: db\nversion: 0.1.0\n");
    fs::create_dir(files.0.path().join("sources/active")).unwrap();
    let link = files.0.path().join("sources/active/005-db");
    std::os::unix::fs::symlink(format!("../blobs/{digits}/bundle"), &link).unwrap();
    let found = async || {
        let catalog = files.loader().load().await.unwrap();
        let names: Vec<String> = catalog.modules.iter().map(|module| module.name.to_string()).collect();
        (names.join(" "), catalog.complete)
    };
    // Not one module of the directory was found: it may not be mounted.
    assert_eq!(found().await, ("db".to_owned(), false));
    files.executable("modules/010-web/hooks/a.sh", HOOK);
    assert_eq!(found().await, ("db web".to_owned(), true));
    // An empty store is as good as none.
    fs::remove_file(&link).unwrap();
    assert_eq!(found().await, ("web".to_owned(), true));
    fs::remove_dir_all(files.0.path().join("sources")).unwrap();
    assert_eq!(found().await, ("web".to_owned(), true));
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

/// A program of 64-bit x86 that prints `text` and does nothing else.
#[cfg(target_arch = "x86_64")]
fn elf(text: &str) -> Vec<u8> {
    const HEADERS: u32 = 64 + 56;
    const BASE: u32 = 0x40_0000;
    let mut code = Vec::new();
    let address = BASE + HEADERS + 34;
    code.extend([0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0xbe]); // write(1, …
    code.extend(address.to_le_bytes());
    code.push(0xba);
    code.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    code.extend([0x0f, 0x05, 0xb8, 60, 0, 0, 0, 0xbf, 0, 0, 0, 0, 0x0f, 0x05]); // exit(0)
    assert_eq!(code.len(), 34);
    let size = u64::from(HEADERS) + (code.len() + text.len()) as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0];
    file.extend(u64::from(BASE + HEADERS).to_le_bytes()); // where it begins
    file.extend(64_u64.to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, u64::from(BASE), u64::from(BASE), size, size, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file.extend(text.as_bytes());
    file
}

#[tokio::test]
async fn a_configuration_can_come_from_any_executable() {
    let files = Files::new();
    files
        .executable("modules/010-web/hooks/a.py", "#!/usr/bin/env python3\nimport json\nprint(json.dumps({'configVersion': 'v1', 'beforeHelm': 7}))\n")
        .executable("modules/010-web/hooks/b.sh", "#!/bin/sh\nprintf 'configVersion: v1\\nafterHelm: 8\\n'\n")
        .executable("modules/010-web/hooks/c.pl", "#!/usr/bin/perl\nprint '{\"onStartup\": 3}';\n")
        .executable("modules/010-web/hooks/e.sh", "#!/bin/bash\njq -r . $BINDING_CONTEXT_PATH > /dev/null\necho '{\"onStartup\": 4}'\n");
    let mut expected = vec!["BeforeHelm 7", "AfterHelm 8", "OnStartup 3", "OnStartup 4"];
    #[cfg(target_arch = "x86_64")]
    {
        let path = files.0.path().join("modules/010-web/hooks/d");
        fs::write(&path, elf("{\"configVersion\":\"v1\",\"onStartup\":9}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        expected.insert(3, "OnStartup 9");
    }
    let catalog = files.loader().load().await.unwrap();
    let web = &catalog.modules[0];
    assert!(web.broken.is_none(), "{:?}", web.broken);
    let found: Vec<String> = web
        .hooks
        .iter()
        .flat_map(|hook| hook.spec.lifecycle.iter().map(|(point, order)| format!("{point:?} {}", order.0)))
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn mistakes_in_a_configuration_are_told_with_hook_line_and_column() {
    let files = Files::new();
    let hook = |text: &str| format!("#!/bin/bash\ncat <<'END'\n{text}END\n");
    files
        .executable("modules/010-filter/hooks/a.sh", &hook("configVersion: v1\nkubernetes:\n- kind: Pod\n- kind: Pod\n  jqFilter: '.a | nothing_like_that'\n"))
        .executable("modules/020-old/hooks/a.sh", &hook("onKubernetesEvent:\n- kind: pod\n  jqFilter: '.a |'\n"))
        .executable("modules/030-shape/hooks/a.sh", &hook("{\n \"configVersion\": \"v1\",\n \"kubernetes\": [{\"kind\": \"Pod\", \"watchEvent\": \"Added\"}]\n}\n"))
        .executable("modules/040-good/hooks/a.sh", &hook("configVersion: v1\nkubernetes:\n- {kind: Pod, jqFilter: '.a | length'}\n"));
    for (module, expected) in [
        ("filter", "invalid kubernetes config [1] jqFilter: compile jqFilter: "),
        ("filter", "nothing_like_that"),
        ("filter", "(line 5, column 3)"),
        ("old", "jqFilter: compile jqFilter: "),
        ("old", "(line 3, column 3)"),
        ("shape", "kubernetes.watchEvent must be of type array: \"string\" (line 3, column "),
        ("shape", "hooks/a.sh"),
    ] {
        let message = files.broken(module).await;
        assert!(message.contains(expected), "{module}: {message}");
    }
    let catalog = files.loader().load().await.unwrap();
    assert!(catalog.modules.iter().any(|module| module.name.as_str() == "good" && module.broken.is_none()));
}

#[tokio::test]
async fn a_hooks_directory_may_have_any_name_and_its_lib_holds_no_hooks() {
    for root in ["lib", ".hidden", "hooks"] {
        let files = Files::new();
        let at = |name: &str| files.0.path().join(name);
        fs::create_dir(at(root)).unwrap();
        files
            .executable(
                &format!("{root}/a.sh"),
                "#!/bin/bash\necho '{\"configVersion\":\"v1\",\"onStartup\":5}'\n",
            )
            .executable(&format!("{root}/lib/b.sh"), "#!/bin/bash\nexit 1\n");
        let loader = Loader::new(LoadOptions { global_hooks_dir: at(root), ..load_options(files.0.path()) });
        let catalog = loader.load().await.unwrap();
        assert_eq!(catalog.global.hooks.len(), 1, "{root}");
        let warning =
            "/lib/b.sh: file has executable permissions and is located in the ignored 'lib' directory";
        assert!(catalog.warnings.iter().any(|found| found.ends_with(warning)), "{:?}", catalog.warnings);
    }
}

/// A file with two hooks. It writes down what it was asked, and does so with its work, too.
const BATCH: &str = r#"#!/bin/bash
echo "$*" >> "$(dirname "$0")/../asked"
case "$1 $2" in
"hook config")
  echo '{"version":"v1","hooks":[{"metadata":{"name":"a"},"beforeHelm":1},{"metadata":{"name":"b"},"afterHelm":2}]}'
  ;;
*) echo "usage: tool hook config|run" >&2; exit 2 ;;
esac
"#;

#[tokio::test]
async fn a_file_with_several_hooks_is_asked_once_for_all_of_them() {
    let files = Files::new();
    files.executable("modules/010-web/hooks/tool", BATCH);
    let loader = files.loader();
    for _ in 0..2 {
        let catalog = loader.load().await.unwrap();
        let web = &catalog.modules[0];
        assert!(web.broken.is_none(), "{:?}", web.broken);
        let found: Vec<_> =
            web.hooks.iter().map(|hook| (hook.id.name.to_string(), hook.launch.batch_index)).collect();
        assert_eq!(found, [("tool:a:0".to_owned(), Some(0)), ("tool:b:1".to_owned(), Some(1))]);
    }
    let asked = fs::read_to_string(files.0.path().join("modules/010-web/asked")).unwrap();
    assert_eq!(asked, "--config\nhook config\n", "a script may be a plain hook, so that is asked first");
}

#[tokio::test]
async fn hook_list_is_another_word_for_hook_config() {
    let files = Files::new();
    files.executable("modules/010-web/hooks/tool", &BATCH.replace("hook config\")", "hook list\")"));
    assert_eq!(files.loader().load().await.unwrap().modules[0].hooks.len(), 2);
}

#[tokio::test]
async fn a_plain_hook_is_never_asked_for_several() {
    let files = Files::new();
    let asked = "#!/bin/bash\necho \"$*\" >> \"$(dirname \"$0\")/../asked\"\n";
    let plain = format!("{asked}echo '{{\"configVersion\":\"v1\",\"beforeHelm\":5}}'\n");
    let wrong = format!("{asked}echo '{{\"configVersion\":\"v1\",\"beforeHlem\":5}}'\n");
    files
        .executable("modules/010-web/hooks/plain", &plain)
        .executable("modules/020-api/hooks/wrong", &wrong)
        .executable("modules/030-sh/hooks/fails.sh", &format!("{asked}exit 3\n"));
    let catalog = files.loader().load().await.unwrap();
    assert_eq!(catalog.modules[0].hooks[0].id.name.as_str(), "hooks/plain");
    assert!(catalog.modules[1].broken.as_ref().unwrap().to_string().contains("beforeHlem"));
    for module in ["010-web", "020-api", "030-sh"] {
        let asked = fs::read_to_string(files.0.path().join(format!("modules/{module}/asked"))).unwrap();
        assert_eq!(asked, "--config\n", "{module}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_several_hooks_is_told_with_the_file_and_the_index() {
    let files = Files::new();
    files
        .executable("modules/010-web/hooks/tool", &BATCH.replace("\"afterHelm\":2", "\"afterHelm\":\"x\""))
        .executable("modules/020-api/hooks/tool", BATCH)
        .executable("modules/020-api/hooks/more/tool", BATCH);
    for (module, parts) in [
        ("web", &["hooks/tool", "hook config invalid", "hook 1: ", "afterHelm must be of type integer"][..]),
        ("api", &["hooks/tool", "another file has a hook tool:a:0, too"]),
    ] {
        let message = files.broken(module).await;
        for part in parts {
            assert!(message.contains(part), "{module}: {message:?} does not say {part:?}");
        }
    }
}

#[tokio::test]
async fn hooks_in_python_are_run_by_the_environment_beside_them() {
    let files = Files::new();
    let python = "#!/bin/bash\necho \"$PYTHONHOME $*\" >> \"${0%/hooks/venv/*}/asked\"\n\
        echo '{\"configVersion\":\"v1\",\"beforeHelm\":5}'\n";
    files
        .executable("modules/010-web/hooks/venv/bin/python3", python)
        .executable("modules/010-web/hooks/sub/a.py", "#!/no/such/python\n")
        .executable("modules/010-web/hooks/b.sh", HOOK)
        .executable("modules/020-api/hooks/a.py", HOOK)
        .write("modules/020-api/hooks/venv/bin/python3", "");
    let catalog = files.loader().load().await.unwrap();
    let web = &catalog.modules[0];
    assert!(web.broken.is_none(), "{:?}", web.broken);
    let dir = files.0.path().join("modules/010-web");
    let (venv, hooks) = (dir.join("hooks/venv"), dir.join("hooks"));
    let launched: Vec<_> = web.hooks.iter().map(|hook| hook.launch.venv.as_deref()).collect();
    assert_eq!(launched, [None, venv.to_str()]);
    let asked = fs::read_to_string(dir.join("asked")).unwrap();
    assert_eq!(asked, format!("{} {}/sub/a.py --config\n", venv.display(), hooks.display()));
    assert_eq!(catalog.modules[1].hooks[0].launch.venv, None);
    assert!(
        catalog.warnings.iter().any(|warning| warning.contains("bin/python3 is missing or not executable"))
    );
}

#[tokio::test]
async fn hooks_of_modules_are_asked_in_their_chroots() {
    let (files, outside) = (Files::new(), tempfile::tempdir().unwrap());
    let Ok(chroots) = Chroots::new(&outside.path().join("roots")) else { return };
    let asked = format!("#!/bin/bash\n[[ $PWD == / && ! -e {} ]] || exit 1\n", outside.path().display());
    files.executable("modules/010-web/hooks/a.sh", &format!("{asked}{}", &HOOK["#!/bin/bash\n".len()..]));
    files.executable(
        "global-hooks/all.sh",
        "#!/bin/bash\n[[ $PWD == / ]] && exit 1\necho '{\"configVersion\":\"v1\",\"onStartup\":5}'\n",
    );
    let loader = Loader::new(LoadOptions { chroots: Some(chroots), ..load_options(files.0.path()) });
    let catalog = loader.load().await.unwrap();
    assert!(catalog.modules[0].broken.is_none(), "{:?}", catalog.modules[0].broken);
    assert!(outside.path().join("roots/web").is_dir());
    assert_eq!(catalog.global.hooks.len(), 1);
}

#[tokio::test]
async fn hooks_that_ask_for_webhooks_are_told_that_nobody_asks_them() {
    let files = Files::new();
    let config = r#"{"configVersion":"v1","beforeHelm":1,"kubernetesValidating":[{"name":"a.b.c"}],"kubernetesMutating":[{"name":"x"}]}"#;
    files.executable("modules/010-web/hooks/a.sh", &format!("#!/bin/bash\necho '{config}'\n"));
    let catalog = files.loader().load().await.unwrap();
    assert!(catalog.modules[0].broken.is_none());
    let expected = "hook web/hooks/a.sh asks for kubernetesValidating, kubernetesMutating, but webhooks are switched off";
    assert!(catalog.warnings.iter().any(|warning| warning.starts_with(expected)), "{:?}", catalog.warnings);
}

#[tokio::test]
async fn rules_that_cannot_be_evaluated_are_warnings() {
    let files = Files::new();
    let rule = "x-deckhouse-validations: [{expression: self., message: m}]\n";
    files
        .write("modules/010-web/openapi/values.yaml", rule)
        .write("global-hooks/openapi/config-values.yaml", rule);
    let catalog = files.loader().load().await.unwrap();
    assert!(catalog.modules[0].broken.is_none());
    let told = |file: &str| {
        let is_it = |warning: &&String| warning.contains(file) && warning.contains("does not compile");
        catalog.warnings.iter().filter(is_it).count()
    };
    assert_eq!(
        (told("010-web/openapi/values.yaml"), told("openapi/config-values.yaml")),
        (1, 1),
        "{:?}",
        catalog.warnings
    );
}

#[tokio::test]
async fn f_g1_a_directory_that_can_not_be_read_is_not_an_empty_one() {
    let files = Files::new();
    files.executable("modules/010-web/hooks/a.sh", HOOK);
    // So deep that its path is longer than the system takes, which stops root, too.
    let deep = "n=$(printf 'd%.0s' {1..200}); for i in {1..30}; do mkdir $n; cd $n; done; touch x";
    let hooks = files.0.path().join("modules/010-web/hooks");
    assert!(
        std::process::Command::new("bash").args(["-c", deep]).current_dir(&hooks).status().unwrap().success()
    );
    let message = files.broken("web").await;
    assert!(message.contains("can't read the hooks in") && message.contains("010-web/hooks"), "{message}");
}

#[tokio::test]
async fn hooks_are_ordered_by_their_whole_path() {
    let files = Files::new();
    for name in ["b.sh", "a/x.sh", "a-b/x.sh", "a.sh", "B.sh", "10-z.sh", "9-z.sh"] {
        files.executable(&format!("modules/010-web/hooks/{name}"), HOOK);
    }
    let catalog = files.loader().load().await.unwrap();
    let names: Vec<&str> = catalog.modules[0]
        .hooks
        .iter()
        .map(|hook| hook.id.name.as_str().trim_start_matches("hooks/"))
        .collect();
    assert_eq!(names, ["10-z.sh", "9-z.sh", "B.sh", "a-b/x.sh", "a.sh", "a/x.sh", "b.sh"]);
}

#[tokio::test]
async fn who_lets_go_of_a_list_of_modules_does_not_take_the_time_to_drop_it() {
    let files = Files::new();
    files.write("modules/010-web/Chart.yaml", "{name: web, version: 0.1.0}");
    let loader = files.loader();
    let first = loader.load().await.unwrap().modules;
    assert_eq!(Arc::strong_count(&first), 2, "the loader has it, too");
    let second = loader.reload().await.unwrap().modules;
    // It is let go of when the second one is in force, which is a moment later.
    assert_eq!(Arc::strong_count(&first), 2);
    assert!(Arc::ptr_eq(&first[0], &second[0]), "what did not change is shared");
    drop(loader.reload().await.unwrap());
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
}

#[tokio::test]
async fn a_chart_bundle_is_a_chart_with_plans_and_nothing_in_it_is_code() {
    let files = Files::new();
    let bundle = format!("sources/blobs/{}/bundle", "0a".repeat(32));
    let path = |name: &str| format!("{bundle}/{name}");
    files
        .write(
            &path("meta.yaml"),
            "{id: i, name: db, version: 1.0.0, description: d, displayName: D, bindable: true}",
        )
        .write(&path("chart/redis/Chart.yaml"), "{name: redis, version: 0.1.0}")
        .write(&path("chart/redis/values.yaml"), "{db: 7, dbEnabled: maybe}")
        .write(&path("chart/redis/crds/crd.yaml"), "")
        .write(&path("chart/README.md"), "")
        .write(&path("plans/a/meta.yaml"), "{id: a, name: big, description: d, displayName: D}")
        .write(&path("plans/a/values.yaml"), "size: 9")
        .write(&path("plans/a/create-instance-schema.json"), "{}")
        .write(&path("plans/a/bind.yaml"), "")
        .write(
            &path("plans/b/meta.yaml"),
            "{id: b, name: micro, description: d, displayName: D, bindable: false}",
        )
        .write(&path("plans/b/bind.yaml"), "")
        .executable(&path("chart/redis/enabled"), "#!/bin/bash\nexit 1\n")
        .executable(&path("chart/redis/hooks/a.sh"), HOOK);
    let active = files.0.path().join("sources/active");
    fs::create_dir(&active).unwrap();
    std::os::unix::fs::symlink(files.0.path().join(&bundle), active.join("030-db")).unwrap();
    let load = async || -> Module {
        let catalog = files.loader().load().await.unwrap();
        Module::clone(catalog.modules.iter().find(|module| module.name.as_str() == "db").unwrap())
    };
    let db = load().await;
    assert_eq!(db.broken, None);
    assert!(db.path.ends_with("bundle/chart/redis") && db.has_chart && db.origin.digest().is_some());
    assert_eq!((db.layout, &*db.static_values, db.order), (ValuesLayout::Root, &json!({}), 30));
    assert!(
        db.hooks.is_empty() && !db.has_unread_hooks && db.enabled_script.is_none() && db.enabled.is_none()
    );
    assert_eq!(db.crds.len(), 1);
    let pick = |name: &str| db.plans.presets.pick(Some(&json!({ "plan": name }))).unwrap().unwrap().clone();
    assert_eq!((&*pick("big").values, &*pick("micro").values), (&json!({"size": 9}), &json!({})));
    assert!(pick("big").schema.is_some() && pick("micro").schema.is_none());
    let templates: Vec<_> = db.plans.credentials.iter().map(|(plan, file)| (&**plan, &**file)).collect();
    let template = files.0.path().join(path("plans/a/bind.yaml"));
    assert_eq!(templates, [("big", &*template.to_string_lossy())]);
    // What lies beside the chart is a part of the module.
    files.write(&path("plans/a/values.yaml"), "size: 10");
    let other = load().await;
    assert!(other.content != db.content && other.plans != db.plans);
    files.write(&path("plans/a/meta.yaml"), "{id: a, name: big}");
    let broken = load().await.broken.unwrap().to_string();
    assert!(broken.contains("plans/a/meta.yaml: description"), "{broken}");
}
