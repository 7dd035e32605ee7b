//! The table of all options: flags, environment variables, defaults and what they mean.
//!
//! The command line, the environment and the documentation are made from it.

/// An option of the operator.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The long flag without dashes; also the name in error texts.
    pub flag: &'static str,
    /// The environment variables that set it, the strongest first.
    pub variables: &'static [&'static str],
    /// What holds when nothing sets it.
    pub default: &'static str,
    /// One line for `--help` and the documentation.
    pub help: &'static str,
    /// What kind of text it takes.
    pub kind: Kind,
}

/// What kind of text an option takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `true` or `false`; the flag alone means `true`.
    Bool,
    /// A duration: `5s`, `1m30s`.
    Duration,
    /// Any text.
    Text,
}

const fn text(
    flag: &'static str,
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { flag, variables, default, help, kind: Kind::Text }
}

const fn switch(flag: &'static str, variables: &'static [&'static str], help: &'static str) -> Setting {
    Setting { flag, variables, default: "false", help, kind: Kind::Bool }
}

const fn duration(
    flag: &'static str,
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { flag, variables, default, help, kind: Kind::Duration }
}

/// All options of `start` and `dev`.
pub const SETTINGS: &[Setting] = &[
    text(
        "modules-dir",
        &["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"],
        "modules",
        "Directories with modules, separated by colons",
    ),
    text(
        "global-hooks-dir",
        &["ADDON_OPERATOR_GLOBAL_HOOKS_DIR", "GLOBAL_HOOKS_DIR", "SHELL_OPERATOR_HOOKS_DIR"],
        "global-hooks",
        "Directory with global hooks",
    ),
    text(
        "unnumbered-modules-order",
        &["ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULE_ORDER"],
        "1",
        "Order of modules whose directory has no number",
    ),
    text(
        "tmp-dir",
        &["ADDON_OPERATOR_TMP_DIR", "SHELL_OPERATOR_TMP_DIR"],
        "/tmp/addon-operator",
        "Directory for the files that hooks read and write; empty for a new one",
    ),
    text(
        "namespace",
        &["ADDON_OPERATOR_NAMESPACE", "SHELL_OPERATOR_NAMESPACE"],
        "",
        "Namespace of the ConfigMap and of the releases",
    ),
    text("config-map", &["ADDON_OPERATOR_CONFIG_MAP"], "addon-operator", "Name of the ConfigMap with values"),
    text(
        "prometheus-listen-address",
        &["ADDON_OPERATOR_LISTEN_ADDRESS", "SHELL_OPERATOR_LISTEN_ADDRESS"],
        "0.0.0.0",
        "Address of the HTTP server",
    ),
    text(
        "prometheus-listen-port",
        &["ADDON_OPERATOR_LISTEN_PORT", "SHELL_OPERATOR_LISTEN_PORT"],
        "9115",
        "Port of the HTTP server",
    ),
    text(
        "prometheus-metrics-prefix",
        &["ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX", "SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX"],
        "addon_operator_",
        "What the names of metrics begin with",
    ),
    duration(
        "retry-delay",
        &["ADDON_OPERATOR_RETRY_DELAY"],
        "5s",
        "How long a failed task waits before it is tried again",
    ),
    duration(
        "retry-max-delay",
        &["ADDON_OPERATOR_RETRY_MAX_DELAY"],
        "0s",
        "Let the delay grow up to this when a task goes on failing; less than the delay keeps it",
    ),
    text(
        "on-module-failure",
        &["ADDON_OPERATOR_ON_MODULE_FAILURE"],
        "block",
        "What a failing module does to those behind it: block or pass",
    ),
    text(
        "module-concurrency",
        &["ADDON_OPERATOR_MODULE_CONCURRENCY"],
        "1",
        "How many modules of one order number run at the same time",
    ),
    text(
        "max-hooks",
        &["ADDON_OPERATOR_MAX_HOOKS"],
        "0",
        "How many hooks run at the same time; 0 for four times the number of processors",
    ),
    duration(
        "hook-timeout",
        &["ADDON_OPERATOR_HOOK_TIMEOUT"],
        "0s",
        "How long a hook may run if its configuration does not say; 0s for ever",
    ),
    duration(
        "hook-config-timeout",
        &["ADDON_OPERATOR_HOOK_CONFIG_TIMEOUT"],
        "1m",
        "How long a hook may take to answer --config",
    ),
    duration(
        "enabled-timeout",
        &["ADDON_OPERATOR_ENABLED_TIMEOUT"],
        "1m",
        "How long an enabled script may run; 0s for ever",
    ),
    duration(
        "shutdown-timeout",
        &["ADDON_OPERATOR_SHUTDOWN_TIMEOUT"],
        "10s",
        "How long the end of the operator may take: hooks that run may finish, but for its last 6 s, in which they are ended",
    ),
    switch(
        "watch-files",
        &["ADDON_OPERATOR_WATCH_FILES"],
        "Take up changed modules and hooks without a restart",
    ),
    switch(
        "strict-check-values-mode-enabled",
        &["ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED", "STRICT_CHECK_VALUES_MODE_ENABLED"],
        "Refuse to start when a values.yaml is missing",
    ),
    text(
        "applied-module-extenders",
        &["ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS"],
        "",
        "Not supported: the sources of Enabled have a fixed order",
    ),
    text(
        "crd-extra-labels",
        &["ADDON_OPERATOR_CRD_EXTRA_LABELS"],
        "heritage=addon-operator",
        "Labels of all objects that modules bring, as a=b,c=d",
    ),
    text(
        "crd-filters",
        &["ADDON_OPERATOR_CRD_FILTER_PREFIXES"],
        "doc-,_",
        "Files in crds/ that begin so are no CRDs",
    ),
    text(
        "helm-history-max",
        &["HELM_HISTORY_MAX"],
        "10",
        "How many revisions of a release are kept; 0 for all",
    ),
    duration("helm-timeout", &["HELM_TIMEOUT"], "20m", "How long the hooks of a chart may take"),
    text(
        "helm-ignore-release",
        &["HELM_IGNORE_RELEASE"],
        "",
        "A release that is never removed: the operator's own",
    ),
    text(
        "helm-monitor-kube-client-qps",
        &["HELM_MONITOR_KUBE_CLIENT_QPS"],
        "5",
        "Accepted, has no effect: drift is watched",
    ),
    text(
        "helm-monitor-kube-client-burst",
        &["HELM_MONITOR_KUBE_CLIENT_BURST"],
        "10",
        "Accepted, has no effect: drift is watched",
    ),
    text("kube-context", &["KUBE_CONTEXT"], "", "Context of the kubeconfig"),
    text("kube-config", &["KUBE_CONFIG"], "", "Path of the kubeconfig"),
    text("kube-server", &["KUBE_SERVER"], "", "Address of the API server, instead of that in the kubeconfig"),
    text(
        "kube-client-qps",
        &["KUBE_CLIENT_QPS"],
        "500",
        "Requests per second to the API server in the long run; 0 for no limit",
    ),
    text("kube-client-burst", &["KUBE_CLIENT_BURST"], "1000", "Requests to the API server at once"),
    text(
        "object-patcher-kube-client-qps",
        &["OBJECT_PATCHER_KUBE_CLIENT_QPS"],
        "500",
        "The same for what hooks write",
    ),
    text(
        "object-patcher-kube-client-burst",
        &["OBJECT_PATCHER_KUBE_CLIENT_BURST"],
        "1000",
        "The same for what hooks write",
    ),
    duration(
        "object-patcher-kube-client-timeout",
        &["OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT"],
        "10s",
        "How long one request of what hooks write may take",
    ),
    text("log-level", &["LOG_LEVEL", "RLOG_LOG_LEVEL"], "info", "trace, debug, info, warn or error"),
    text("log-type", &["LOG_TYPE"], "", "json, text or color; json for start, color for dev on a terminal"),
    switch("log-no-time", &["LOG_NO_TIME"], "Leave out the time of log lines"),
    switch("log-proxy-hook-json", &["LOG_PROXY_HOOK_JSON"], "Merge JSON lines that hooks print into the log"),
    switch(
        "log-hook-values",
        &["ADDON_OPERATOR_LOG_HOOK_VALUES", "LOG_HOOK_VALUES"],
        "Show values that hooks print; without it, texts of six and more characters are ****** in the log",
    ),
    text(
        "debug-unix-socket",
        &["DEBUG_UNIX_SOCKET"],
        "/var/run/addon-operator/debug.socket",
        "Socket of the debugging commands",
    ),
    text(
        "debug-http-addr",
        &["DEBUG_HTTP_SERVER_ADDR"],
        "",
        "Address where the debugging commands answer over TCP, too",
    ),
    switch("debug-keep-tmp-files", &["DEBUG_KEEP_TMP_FILES"], "Keep the files of hooks; they hold values"),
    switch("debug-kubernetes-api", &["DEBUG_KUBERNETES_API"], "Log each request to the API server"),
    text("shell-chroot-dir", &["ADDON_OPERATOR_SHELL_CHROOT_DIR"], "", "Not supported"),
    switch("admission-server-enabled", &["ADDON_OPERATOR_ADMISSION_SERVER_ENABLED"], "Not supported"),
    text(
        "admission-server-listen-port",
        &["ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT"],
        "9651",
        "Accepted, has no effect without the admission server",
    ),
    text(
        "admission-server-certs-dir",
        &["ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR"],
        "",
        "Accepted, has no effect without the admission server",
    ),
];
