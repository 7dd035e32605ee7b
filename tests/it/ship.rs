//! What is shipped: the image, the manifests to install it, and what watches over it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use addon_operator::cli;
use addon_operator::cluster::{Access, RateLimit, connect, connect_in_process};
use addon_operator::config::settings;
use addon_operator::fence::Fence;
use addon_operator::telemetry::Telemetry;
use apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kube::{Api, Client};
use regex::Regex;
use serde_json::Value;

use crate::support::files::{root, tracked};
use crate::support::program::{Running, Workspace};
use crate::support::rights::{Request, manifests};

/// Applies the manifests as `kubectl apply --server-side` does; a field that nobody knows is an error.
async fn install(client: &Client) {
    for manifest in manifests() {
        let types: TypeMeta = serde_json::from_value(manifest.clone()).unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types).unwrap());
        let object: DynamicObject = serde_json::from_value(manifest).unwrap();
        let name = object.metadata.name.clone().unwrap();
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let mut parameters = PatchParams::apply("test").force();
        parameters.field_validation = Some(kube::api::ValidationDirective::Strict);
        let applied = api.patch(&name, &parameters, &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", resource.kind));
    }
}

/// Returns whose the fields of an object are that a client makes without saying who it is.
async fn managers(client: &Client) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let metadata = ObjectMeta { name: Some("probe".into()), ..ObjectMeta::default() };
    let data = Some([("a".to_owned(), "b".to_owned())].into());
    let map = ConfigMap { metadata, data, ..ConfigMap::default() };
    let made = maps.create(&PostParams::default(), &map).await.unwrap();
    let entries = made.metadata.managed_fields.unwrap_or_default();
    entries.into_iter().filter_map(|entry| entry.manager).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_installation_is_applied_and_its_roles_are_enough_for_the_samples() {
    let world = Workspace::samples();
    let arguments = [
        "apiserver",
        "--listen",
        "127.0.0.1:0",
        "--kubeconfig-out",
        "kubeconfig",
        "--simulate",
        "--audit",
        "audit",
    ];
    let mut server = Running::start(world.command(&arguments));
    let kubeconfig = world.path().join("kubeconfig");
    server.wait_for_file(&kubeconfig);
    let access = Access { kubeconfig: Some(kubeconfig), ..Access::default() };
    let client = connect(&access, &RateLimit::new(100.0, 100), &Fence::none()).await.unwrap();
    install(&client).await;
    install(&client).await;
    assert_eq!(managers(&client).await, ["addon-operator"]);
    let in_process = connect_in_process(ApiServer::builder().build().unwrap().service(), "default");
    assert_eq!(managers(&in_process).await, ["addon-operator"]);
    let installed = fs::read_to_string(world.path().join("audit")).unwrap().lines().count();

    let mut command = world.command(&["start"]);
    command.env("KUBE_CONFIG", world.path().join("kubeconfig"));
    command.env("ADDON_OPERATOR_NAMESPACE", "addon-operator");
    command.env("ADDON_OPERATOR_TMP_DIR", world.path().join("tmp"));
    command.env("DEBUG_UNIX_SOCKET", world.path().join("socket"));
    command.env("ADDON_OPERATOR_LISTEN_PORT", "0").env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1");
    let mut running = Running::start(command);
    running.wait("Hello, cluster!");
    running.wait("Operator is ready now");
    let disable = ["module", "disable", "greeter", "--debug-unix-socket", "socket"];
    assert_eq!(world.ask(&disable).0, 0);
    running.wait("module greeter is disabled");
    assert_eq!(running.stop(), 0);

    let manifests = manifests();
    let audit = fs::read_to_string(world.path().join("audit")).unwrap();
    let requests = audit.lines().skip(installed).map(Request::of_audit);
    let requests: Vec<Request> = requests.filter(|request| !request.text("resource").is_empty()).collect();
    assert!(requests.len() > 10, "{audit}");
    let refused: BTreeSet<String> =
        requests.iter().filter(|request| !request.is_allowed(&manifests)).map(ToString::to_string).collect();
    assert_eq!(refused, BTreeSet::new(), "the roles do not allow this");
    let _ = server.stop();
}

#[test]
fn the_roles_grant_nothing_wholesale() {
    for object in manifests() {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let text = rule.to_string();
            if text.contains("impersonate") {
                // Modules of one namespace: their rights are those that its people gave to that ServiceAccount.
                let names = ["apiGroups", "resources", "resourceNames", "verbs"].map(|field| &rule[field][0]);
                assert_eq!(names, ["", "serviceaccounts", "addon-operator", "impersonate"], "{text}");
                let lists = rule.as_object().unwrap().values();
                assert!(lists.map(|list| list.as_array().unwrap().len()).all(|length| length == 1), "{text}");
                continue;
            }
            for word in ["\"*\"", "escalate", "bind", "nodes", "pods/exec"] {
                assert!(!text.contains(word), "{}: {text}", object["metadata"]["name"]);
            }
        }
    }
}

#[test]
fn the_deployment_speaks_the_operators_language() {
    let manifests = manifests();
    let deployment = manifests.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let known: BTreeSet<&str> = settings().flat_map(|setting| setting.variables.iter().copied()).collect();
    for variable in container["env"].as_array().unwrap() {
        assert!(known.contains(variable["name"].as_str().unwrap()), "{variable}");
    }
    let arguments = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
    let matches = cli::command().try_get_matches_from(std::iter::once("addon-operator").chain(arguments));
    assert_eq!(matches.unwrap().subcommand_name(), Some("start"));
    let port = settings().find(|setting| setting.flag == "prometheus-listen-port").unwrap().default;
    assert_eq!(container["ports"][0]["containerPort"].to_string(), port);
    let socket = settings().find(|setting| setting.flag == "debug-unix-socket").unwrap().default;
    let writable: Vec<&str> = container["volumeMounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| mount["mountPath"].as_str().unwrap())
        .collect();
    assert!(writable.iter().any(|path| Path::new(socket).starts_with(path)), "{socket} can't be made");
    assert!(writable.contains(&"/tmp"));
    for (probe, path) in
        [("readinessProbe", "/readyz"), ("livenessProbe", "/healthz"), ("startupProbe", "/healthz")]
    {
        assert_eq!(container[probe]["httpGet"]["path"], path);
    }
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_exist_and_alerts_are_explained() {
    let described = Telemetry::new("addon_operator_").unwrap().described();
    let mut known: BTreeSet<String> = BTreeSet::from(["process_resident_memory_bytes".to_owned()]);
    for metric in &described {
        let name = metric.name.clone();
        if metric.kind == "histogram" {
            known.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        }
        known.insert(name);
    }
    let metric = Regex::new(r"\b(addon_operator_[a-z_]+|process_[a-z_]+)\b").unwrap();
    let monitoring = root().join("examples/monitoring");
    let alerts = fs::read_to_string(monitoring.join("alerts.yaml")).unwrap();
    let dashboard = fs::read_to_string(monitoring.join("dashboard.json")).unwrap();
    for text in [&alerts, &dashboard] {
        let asked: Vec<&str> = metric.find_iter(text).map(|found| found.as_str()).collect();
        assert!(asked.len() > 5);
        let unknown: Vec<&&str> = asked.iter().filter(|name| !known.contains(**name)).collect();
        assert_eq!(unknown, Vec::<&&str>::new());
    }
    serde_json::from_str::<Value>(&dashboard).unwrap();
    let operating = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let alerts = values::yaml::parse(&alerts).unwrap();
    for rule in alerts["groups"][0]["rules"].as_array().unwrap() {
        let name = rule["alert"].as_str().unwrap();
        assert!(operating.contains(&format!("### {name}\n")), "docs/operating.md does not explain {name}");
        let link = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert_eq!(link, format!("docs/operating.md#{}", name.to_lowercase()));
    }
}

#[test]
fn the_dockerfile_copies_what_is_there_and_keeps_the_paths_of_the_reference_image() {
    let text = fs::read_to_string(root().join("Dockerfile")).unwrap();
    for line in text.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from")) {
        let source = line.split(' ').nth(1).unwrap();
        assert!(root().join(source).exists(), "{line}");
    }
    let last = text.rsplit("\nFROM ").next().unwrap();
    for part in [
        "scratch",
        "MODULES_DIR=/modules",
        "GLOBAL_HOOKS_DIR=/global-hooks",
        "ENTRYPOINT [\"/addon-operator\"]",
    ] {
        assert!(last.contains(part), "{part}");
    }
}

/// Returns how many bytes the files below a directory have.
fn size(path: &Path) -> u64 {
    let files = walkdir::WalkDir::new(path).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.map(|entry| entry.metadata().unwrap().len()).sum()
}

#[test]
fn the_image_is_small_and_runs_hooks_and_charts_as_process_1() {
    let busybox = Command::new("busybox").arg("true").status().is_ok_and(|status| status.success());
    let namespace = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"];
    let permitted =
        Command::new("unshare").args(namespace).arg("true").status().is_ok_and(|status| status.success());
    if !busybox || !permitted {
        eprintln!("skipped: busybox is missing, or this machine does not permit namespaces");
        return;
    }
    let world = Workspace::samples();
    let image = world.path().join("image");
    let made = Command::new(root().join(".ci/image-root"))
        .arg(&image)
        .arg(env!("CARGO_BIN_EXE_addon-operator"))
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for path in ["addon-operator", "modules", "global-hooks", "shell_lib.sh", "frameworks/shell/hook.sh"] {
        assert!(image.join(path).exists(), "/{path} is not in the image");
    }
    assert_eq!(fs::read_link(image.join("framework/shell")).unwrap(), Path::new("/frameworks/shell"));
    let beside = size(&image) - size(&image.join("addon-operator"));
    assert!(beside < 10 * 1024 * 1024, "{beside} bytes beside the operator");

    world.write(
        "global-hooks/30-framework.sh",
        "#!/usr/bin/env bash\nsource /shell_lib.sh\n__config__() { echo '{\"configVersion\":\"v1\",\"onStartup\":5}'; }\n\
         __on_startup() { echo \"process 1 is $(tr '\\0' ' ' </proc/1/cmdline)\"; }\nhook::run \"$@\"\n",
    );
    for name in ["modules", "global-hooks"] {
        let copied =
            Command::new("cp").arg("-rT").arg(world.path().join(name)).arg(image.join(name)).status();
        assert!(copied.unwrap().success());
    }
    let script = "mount -t proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && cd / && exec chroot \"$0\" /addon-operator dev --once \
                  --prometheus-listen-port 0 --prometheus-listen-address 127.0.0.1 --state-dir /tmp/state";
    let mut command = Command::new("unshare");
    command.args(namespace).args(["sh", "-c", script]).arg(&image).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    command.env("MODULES_DIR", "/modules").env("GLOBAL_HOOKS_DIR", "/global-hooks");
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    for part in [
        "process 1 is /addon-operator dev",
        "the greeting is installed: Hello, world!",
        "Operator is ready now",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn every_ignored_test_is_run_by_the_nightly_step() {
    let script = fs::read_to_string(root().join(".ci/run")).unwrap();
    let (_, nightly) = script.split_once("nightly_failed=()").unwrap();
    let mut ignored = 0;
    for path in tracked().iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let text = fs::read_to_string(path).unwrap();
        if !text.lines().any(|line| line.trim_start().starts_with(concat!("#[", "ignore"))) {
            continue;
        }
        ignored += 1;
        let path = path.strip_prefix(root()).unwrap();
        let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let command = match parts.as_slice() {
            ["tests", target, ..] => format!("--test {target} -- --ignored"),
            ["crates", package, "tests", target, ..]
                if root().join(format!("crates/{package}/tests/{target}/main.rs")).exists() =>
            {
                format!("cargo test -p {package} --test {target} -- --ignored")
            }
            // Other folders are modules of the one binary.
            ["crates", package, "tests", module, ..] => {
                format!("cargo test -p {package} --test it {module}:: -- --ignored")
            }
            _ => panic!("{}: no step of .ci/run runs ignored tests there", path.display()),
        };
        assert!(nightly.contains(&command), ".ci/run --nightly lacks {command:?}, for {}", path.display());
    }
    assert!(ignored > 10, "{ignored} files");
}
