//! The table of docs/moving.md: each option, variable, command and file of the reference operator, and what became of it here.

use std::fs;
use std::path::Path;

use addon_operator::cli;
use addon_operator::config::{Environment, OptionSources, Settings, settings};

/// What became of something.
#[derive(Clone, Copy, Debug)]
enum Here {
    /// It is there, and means the same.
    Same,
    /// It is there, and does more or less in this way.
    Better(&'static str),
    /// It is there with a name that is no option, in this way.
    Known(&'static str),
    /// It is not there, for this reason; the start fails if it is set.
    Refused(&'static str),
    /// It is not there, for this reason, and nothing would be different if it were.
    Idle(&'static str),
}
use Here::{Better, Idle, Known, Refused, Same};

/// Options: flag, variables, default of the reference operator.
const OPTIONS: &[(&str, &[&str], &str, Here)] = &[
    ("modules-dir", &["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"], "modules", Same),
    (
        "unnumbered-modules-order",
        &["ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULE_ORDER"],
        "1",
        Same,
    ),
    ("global-hooks-dir", &["ADDON_OPERATOR_GLOBAL_HOOKS_DIR", "GLOBAL_HOOKS_DIR"], "global-hooks", Same),
    (
        "tmp-dir",
        &["ADDON_OPERATOR_TMP_DIR"],
        "/tmp/addon-operator",
        Better("private, and empty after each run"),
    ),
    (
        "namespace",
        &["ADDON_OPERATOR_NAMESPACE"],
        "",
        Better("needed: a start without it would act in a namespace that nobody chose"),
    ),
    ("prometheus-listen-address", &["ADDON_OPERATOR_LISTEN_ADDRESS"], "0.0.0.0", Same),
    (
        "prometheus-listen-port",
        &["ADDON_OPERATOR_LISTEN_PORT"],
        "9650",
        Better("9115 if it is not set, as in the image's documents; set it where yours is another"),
    ),
    ("prometheus-metrics-prefix", &["ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX"], "addon_operator_", Same),
    (
        "config-map",
        &["ADDON_OPERATOR_CONFIG_MAP"],
        "addon-operator",
        Better("a Secret lies over it, `--config-secret`"),
    ),
    (
        "shell-chroot-dir",
        &["ADDON_OPERATOR_SHELL_CHROOT_DIR"],
        "",
        Better(
            "works without a program that embeds the operator: bash and the rest of the system are there, read-only, and nothing stays mounted",
        ),
    ),
    (
        "strict-check-values-mode-enabled",
        &["ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED", "STRICT_CHECK_VALUES_MODE_ENABLED"],
        "false",
        Same,
    ),
    ("applied-module-extenders", &["ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS"], "", Same),
    ("crd-extra-labels", &["ADDON_OPERATOR_CRD_EXTRA_LABELS"], "heritage=addon-operator", Same),
    (
        "crd-filters",
        &["ADDON_OPERATOR_CRD_FILTER_PREFIXES"],
        "doc-,_",
        Better("a prefix that matches every file is told"),
    ),
    ("helm-history-max", &["HELM_HISTORY_MAX"], "10", Same),
    ("helm-timeout", &["HELM_TIMEOUT"], "20m", Same),
    ("helm-ignore-release", &["HELM_IGNORE_RELEASE"], "", Better("has an effect")),
    (
        "helm-monitor-kube-client-qps",
        &["HELM_MONITOR_KUBE_CLIENT_QPS"],
        "5",
        Better("accepted: objects of releases are watched, not asked for again and again"),
    ),
    (
        "helm-monitor-kube-client-burst",
        &["HELM_MONITOR_KUBE_CLIENT_BURST"],
        "10",
        Better("accepted: objects of releases are watched, not asked for again and again"),
    ),
    (
        "jq-library-path",
        &["JQ_LIBRARY_PATH"],
        "",
        Better("accepted, as in old versions of shell-operator; filters are part of the program"),
    ),
    (
        "admission-server-listen-port",
        &["ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT"],
        "9651",
        Better("serves the webhooks of hooks"),
    ),
    (
        "admission-server-certs-dir",
        &["ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR"],
        "",
        Better("files are read again when they change; without them the operator makes a certificate"),
    ),
    (
        "admission-server-enabled",
        &["ADDON_OPERATOR_ADMISSION_SERVER_ENABLED"],
        "false",
        Better("serves the webhooks of hooks"),
    ),
    ("kube-context", &["KUBE_CONTEXT"], "", Same),
    ("kube-config", &["KUBE_CONFIG"], "", Same),
    ("kube-server", &["KUBE_SERVER"], "", Better("has an effect")),
    ("kube-client-qps", &["KUBE_CLIENT_QPS"], "5", Better("500 if it is not set")),
    ("kube-client-burst", &["KUBE_CLIENT_BURST"], "10", Better("1000 if it is not set")),
    (
        "object-patcher-kube-client-qps",
        &["OBJECT_PATCHER_KUBE_CLIENT_QPS"],
        "5",
        Better("500 if it is not set"),
    ),
    (
        "object-patcher-kube-client-burst",
        &["OBJECT_PATCHER_KUBE_CLIENT_BURST"],
        "10",
        Better("1000 if it is not set"),
    ),
    ("object-patcher-kube-client-timeout", &["OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT"], "10s", Same),
    ("log-level", &["LOG_LEVEL"], "info", Same),
    (
        "log-type",
        &["LOG_TYPE"],
        "text",
        Better("has an effect; json if it is not set, which is what the reference operator writes always"),
    ),
    ("log-no-time", &["LOG_NO_TIME"], "false", Better("has an effect")),
    ("log-proxy-hook-json", &["LOG_PROXY_HOOK_JSON"], "false", Same),
    (
        "debug-unix-socket",
        &["DEBUG_UNIX_SOCKET"],
        "/var/run/addon-operator/debug.socket",
        Better("each command that asks the operator has it"),
    ),
    ("debug-http-addr", &["DEBUG_HTTP_SERVER_ADDR"], "", Same),
    ("debug-keep-tmp-files", &["DEBUG_KEEP_TMP_FILES"], "false", Same),
    ("debug-kubernetes-api", &["DEBUG_KUBERNETES_API"], "false", Better("a line for each request")),
];

/// Options of shell-operator, whose hooks run here as global hooks: variable, its flag there, the flag here.
const LIBRARY: &[(&str, &str, &str)] = &[
    ("SHELL_OPERATOR_HOOKS_DIR", "hooks-dir", "global-hooks-dir"),
    ("SHELL_OPERATOR_TMP_DIR", "tmp-dir", "tmp-dir"),
    ("SHELL_OPERATOR_LISTEN_ADDRESS", "listen-address", "prometheus-listen-address"),
    ("SHELL_OPERATOR_LISTEN_PORT", "listen-port", "prometheus-listen-port"),
    ("SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX", "prometheus-metrics-prefix", "prometheus-metrics-prefix"),
    ("SHELL_OPERATOR_NAMESPACE", "namespace", "namespace"),
    (
        "VALIDATING_WEBHOOK_CONFIGURATION_NAME",
        "validating-webhook-configuration-name",
        "webhook-configuration-name",
    ),
    ("VALIDATING_WEBHOOK_SERVICE_NAME", "validating-webhook-service-name", "webhook-service-name"),
    ("VALIDATING_WEBHOOK_SERVER_CERT", "validating-webhook-server-cert", "admission-server-cert"),
    ("VALIDATING_WEBHOOK_SERVER_KEY", "validating-webhook-server-key", "admission-server-key"),
    ("VALIDATING_WEBHOOK_CA", "validating-webhook-ca", "admission-server-ca"),
    ("VALIDATING_WEBHOOK_CLIENT_CA", "validating-webhook-client-ca", "admission-server-client-ca"),
    ("VALIDATING_WEBHOOK_FAILURE_POLICY", "validating-webhook-failure-policy", "webhook-failure-policy"),
    ("VALIDATING_WEBHOOK_LISTEN_PORT", "validating-webhook-listen-port", "admission-server-listen-port"),
    (
        "VALIDATING_WEBHOOK_LISTEN_ADDRESS",
        "validating-webhook-listen-address",
        "admission-server-listen-address",
    ),
    ("CONVERSION_WEBHOOK_SERVICE_NAME", "conversion-webhook-service-name", "webhook-service-name"),
    ("CONVERSION_WEBHOOK_SERVER_CERT", "conversion-webhook-server-cert", "admission-server-cert"),
    ("CONVERSION_WEBHOOK_SERVER_KEY", "conversion-webhook-server-key", "admission-server-key"),
    ("CONVERSION_WEBHOOK_CA", "conversion-webhook-ca", "admission-server-ca"),
    ("CONVERSION_WEBHOOK_CLIENT_CA", "conversion-webhook-client-ca", "admission-server-client-ca"),
    ("CONVERSION_WEBHOOK_LISTEN_PORT", "conversion-webhook-listen-port", "admission-server-listen-port"),
    (
        "CONVERSION_WEBHOOK_LISTEN_ADDRESS",
        "conversion-webhook-listen-address",
        "admission-server-listen-address",
    ),
];

/// Variables that are no options there.
const VARIABLES: &[(&str, Here)] = &[
    (
        "ADDON_OPERATOR_HA",
        Better("standbys are warm, and the Lease is given back at the end; also the flag `--ha`"),
    ),
    ("ADDON_OPERATOR_POD", Better("also the flag `--pod-name`")),
    ("USE_NELM", Idle("there is one engine for releases; it is told at the start")),
    (
        "HELM_DRIVER",
        Better(
            "`secret` is what releases are kept in; another one refuses the start, because releases would not be found",
        ),
    ),
    (
        "NELM_DEPENDENCY_GRAPH_ENABLED",
        Idle("there is no such graph: `module render` and `graph` show what happens"),
    ),
    ("QUEUE_ACTIONS_METRICS", Idle("the metrics of queues cost nothing that could be saved")),
    (
        "FLANT_KUBE_CLIENT_IN_MEMORY_DISCOVERY_CACHE",
        Idle("what the API server offers is always kept in memory"),
    ),
    ("KUBECONFIG", Known("read when `--kube-config` is empty")),
    ("KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT", Known("read in a pod")),
    ("TZ", Known("the time zone of schedules that name none")),
    (
        "HELM_KUBECONTEXT, HELM_KUBETOKEN, HELM_KUBEASUSER, HELM_KUBEASGROUPS, HELM_KUBEAPISERVER, HELM_KUBECAFILE, HELM_KUBEINSECURE_SKIP_TLS_VERIFY, HELM_KUBETLS_SERVER_NAME, HELM_NAMESPACE",
        Idle(
            "releases are made by the operator's own client, so one account has all rights; the program of `--helm-backend=cli` does not get them",
        ),
    ),
    ("HELM_BURST_LIMIT", Idle("`--kube-client-burst` counts; the program of `--helm-backend=cli` gets it")),
    ("HELM_BIN_PATH, HELM_POST_RENDERER_PATH, HELM3LIB", Idle("the reference operator ignores them, too")),
    (
        "ADDON_OPERATOR_IS_TESTS_ENVIRONMENT",
        Idle("it leaves out the mounts of a chroot in tests of the reference operator"),
    ),
    ("ADDON_OPERATOR_TILLER_LISTEN_PORT", Refused("Helm 2 is not supported, as there")),
    ("ADDON_OPERATOR_TILLER_PROBE_LISTEN_PORT", Refused("Helm 2 is not supported, as there")),
    ("TILLER_MAX_HISTORY", Refused("Helm 2 is not supported, as there")),
    ("TILLER_BIN_PATH", Refused("Helm 2 is not supported, as there")),
    ("HELM2", Refused("Helm 2 is not supported, as there")),
    ("RLOG_LOG_LEVEL", Better("of old versions; still understood")),
    (
        "TRACING_OTLP_ENDPOINT, TRACING_OTLP_AUTH_TOKEN",
        Idle(
            "no spans are sent: `journal`, `why` and the field `cause` of the log follow a change through all tasks",
        ),
    ),
];

/// Commands.
const COMMANDS: &[(&str, Here)] = &[
    ("start", Better("its flags do without the word `start`, too")),
    ("version", Same),
    ("debug-options", Same),
    ("queue list", Same),
    ("queue main", Same),
    ("config list", Same),
    ("config set", Same),
    ("raw", Better("a failure ends with an exit code")),
    ("global list", Better("in every format")),
    ("global values", Better("masked, unless `--show-secrets` is given")),
    ("global config", Better("masked, unless `--show-secrets` is given")),
    ("global patches", Same),
    ("global snapshots", Same),
    ("module list", Better("with phases, reasons and versions")),
    ("module values", Better("masked, unless `--show-secrets` is given")),
    ("module config", Better("masked, unless `--show-secrets` is given")),
    ("module render", Same),
    ("module patches", Same),
    ("module resource-monitor", Better("the name has an effect")),
    ("module snapshots", Same),
];

/// Files of modules, of hooks and of the image.
const FILES: &[(&str, Here)] = &[
    ("values.yaml of a modules directory", Better("an empty one is fine")),
    (
        "<module>/values.yaml",
        Better("its `<key>Enabled` counts, as the documents of the reference operator say"),
    ),
    ("<module>/enabled", Better("runs again only if what it reads has changed")),
    ("<module>/hooks/", Same),
    (
        "<module>/hooks/venv/bin/python3",
        Better("an environment without a standard library of its own works, too"),
    ),
    (
        "batch hooks: files without extension that know hook config and hook run",
        Better("asked once for all their hooks; a script is not asked before `--config`"),
    ),
    ("<module>/openapi/config-values.yaml, values.yaml", Better("with `x-deckhouse-validations`")),
    ("<module>/crds/", Same),
    ("<module>/templates/, Chart.yaml, .helmignore, charts/", Same),
    ("<module>/module.yaml", Better("optional: namespace, chart, `requires`, `readiness`, `retry`, `drift`")),
    ("global-hooks/, global-hooks/hooks/, global-hooks/openapi/", Same),
    ("BINDING_CONTEXT_PATH", Same),
    ("VALUES_PATH, CONFIG_VALUES_PATH", Same),
    (
        "VALUES_JSON_PATCH_PATH, CONFIG_VALUES_JSON_PATCH_PATH",
        Better("checked with all other files before the first takes effect"),
    ),
    ("METRICS_PATH", Same),
    ("KUBERNETES_PATCH_PATH", Better("with `Apply`")),
    (
        "VALIDATING_RESPONSE_PATH, ADMISSION_RESPONSE_PATH, CONVERSION_RESPONSE_PATH",
        Better("of shell-operator; modules have them, too"),
    ),
    ("MODULE_ENABLED_RESULT, MODULE_ENABLED_REASON", Same),
    ("MODULE_NAME of batch hooks", Same),
    (
        "APPLICATION_NAME, APPLICATION_NAMESPACE of batch hooks",
        Idle("they are of programs that embed the reference operator, which have applications"),
    ),
    ("/shell_lib.sh, /framework/shell, /frameworks/shell", Same),
    ("/modules, /global-hooks", Same),
    ("/addon-operator", Same),
    ("/sbin/tini", Idle("the operator collects orphans itself; remove it from `command`")),
    ("bash, sed, jq, kubectl, CA certificates", Same),
    (
        "helm",
        Better(
            "needed with `--helm-backend=cli` only: releases are made by the operator, and any `helm` reads them",
        ),
    ),
    (
        "post-renderer",
        Idle(
            "the labels of `--crd-extra-labels` are set by the operator; charts that need another one have `--helm-backend=cli`",
        ),
    ),
    ("ConfigMap `--config-map`", Same),
    ("Lease addon-operator-leader-election", Same),
    ("Secrets sh.helm.release.v1.<release>.v<revision>", Same),
    ("hooks compiled into the program (Go)", Idle("MISSING: they are Go code; a batch hook runs most of it")),
];

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn code(text: &str) -> String {
    text.split(", ").map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn row(name: &str, here: Here) -> String {
    let (word, how) = match here {
        Same => ("same", ""),
        Better(how) => ("better", how),
        Known(how) => ("same", how),
        Refused(why) => ("refused", why),
        Idle(why) => match why.strip_prefix("MISSING: ") {
            Some(why) => ("missing", why),
            None => ("without effect", why),
        },
    };
    format!("| {name} | {word} | {} |\n", cell(how))
}

/// Returns the table.
fn table() -> String {
    let heading =
        |title: &str| format!("\n### {title}\n\n| reference | here | how, or why |\n| --- | --- | --- |\n");
    let mut text = heading("Options");
    for (flag, variables, _, here) in OPTIONS {
        text += &row(&format!("`--{flag}`, {}", code(&variables.join(", "))), *here);
    }
    text += &heading("Options of shell-operator");
    for (variable, there, here) in LIBRARY {
        let how = if there == here { Same } else { Better("") };
        let line = row(&format!("`{variable}`, `--{there}`"), how);
        let setting = settings().find(|setting| setting.flag == *here);
        let is_taken = setting.is_some_and(|setting| setting.other_flags().any(|other| other == *there));
        let how = if is_taken {
            format!("the variable and the flag; its name here is `--{here}`")
        } else {
            format!("the variable; the flag is `--{here}` here")
        };
        text += &line.replace("| better |  |", &format!("| same | {how} |"));
    }
    text += &heading("Other variables");
    for (names, here) in VARIABLES {
        text += &row(&code(names), *here);
    }
    text += &heading("Commands");
    for (command, here) in COMMANDS {
        text += &row(&code(command), *here);
    }
    text += &heading("Files");
    for (file, here) in FILES {
        text += &row(&cell(file), *here);
    }
    text
}

const BEGIN: &str =
    "<!-- The table is made from tests/it/moving.rs: UPDATE_DOCS=1 cargo test --test it reference -->\n";
const END: &str = "<!-- The end of the table. -->\n";

#[test]
fn everything_of_the_reference_operator_is_in_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/moving.md");
    let kept = fs::read_to_string(&path).unwrap();
    let (before, rest) = kept.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{}\n{END}{after}", table());
    if Environment::of_process().text("UPDATE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == made,
        "docs/moving.md is not up to date: UPDATE_DOCS=1 cargo test --test it reference"
    );
}

/// Returns the error of a start with these variables.
fn problem(variables: &[(&str, &str)]) -> Option<String> {
    let flags = [("namespace".to_owned(), "ops".to_owned())].into();
    let environment = variables
        .iter()
        .fold(Environment::default(), |environment, (name, text)| environment.with(name, *text));
    Settings::new(&OptionSources::new(flags, environment)).err().map(|error| error.to_string())
}

#[test]
fn nothing_is_missing_but_hooks_in_go() {
    let table = table();
    let missing: Vec<&str> = table.lines().filter(|line| line.contains("| missing |")).collect();
    assert!(missing.len() == 1 && missing[0].contains("hooks compiled into the program (Go)"), "{missing:?}");
}

#[test]
fn what_the_table_of_the_reference_operator_says_is_so() {
    for (flag, variables, default, here) in OPTIONS {
        let setting = settings().find(|setting| setting.flag == *flag);
        let setting = setting.unwrap_or_else(|| panic!("there is no --{flag}"));
        for variable in *variables {
            assert!(setting.variables.contains(variable), "--{flag} does not read {variable}");
        }
        let differs = setting.default != *default;
        assert!(!differs || matches!(here, Better(_)), "--{flag}: {} is not {default}", setting.default);
    }
    for (variable, _, flag) in LIBRARY {
        let setting = settings().find(|setting| setting.flag == *flag).unwrap();
        assert!(setting.variables.contains(variable), "--{flag} does not read {variable}");
    }
    for (names, here) in VARIABLES {
        for name in names.split(", ") {
            let is_option = settings().any(|setting| setting.variables.contains(&name));
            match here {
                Same | Better(_) => assert!(is_option || name == "HELM_DRIVER", "{name}"),
                Known(_) => assert!(!is_option, "{name}"),
                Refused(_) => {
                    assert!(problem(&[(name, "x")]).is_some_and(|problem| problem.contains(name)), "{name}");
                }
                Idle(_) => assert!(!is_option && problem(&[(name, "true")]).is_none(), "{name}"),
            }
        }
    }
    assert!(problem(&[("HELM_DRIVER", "secret")]).is_none() && problem(&[("HELM_DRIVER", "sql")]).is_some());
    for (command, _) in COMMANDS {
        let found =
            command.split(' ').try_fold(cli::command(), |all, word| all.find_subcommand(word).cloned());
        assert!(found.is_some(), "there is no {command}");
    }
    let missing = table().lines().filter(|line| line.contains("| missing |")).count();
    assert_eq!(missing, 1, "only Go hooks are missing");
}
