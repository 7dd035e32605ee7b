//! The table of all options: flags, environment variables, defaults and what they mean.
//!
//! The command line, the environment and the documentation are made from it.

/// An option of the operator.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The long flag without dashes; also the name in error texts.
    pub flag: &'static str,
    /// What its text is: `DIR`, `N`, `DURATION`; empty for a switch.
    pub value: &'static str,
    /// The words that it can be, where there are few.
    pub words: &'static [&'static str],
    /// The environment variables that set it, the strongest first.
    pub variables: &'static [&'static str],
    /// What holds when nothing sets it.
    pub default: &'static str,
    /// One line for `--help` and the documentation.
    pub help: &'static str,
}

impl Setting {
    /// Returns whether it is `true` or `false`; the flag alone means `true`.
    pub const fn is_switch(&self) -> bool {
        self.value.is_empty()
    }

    const fn one_of(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }
}

/// What the text of a duration is called.
pub const DURATION: &str = "DURATION";

const fn text(
    flag: &'static str,
    value: &'static str,
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { flag, value, words: &[], variables, default, help }
}

const fn switch(flag: &'static str, variables: &'static [&'static str], help: &'static str) -> Setting {
    text(flag, "", variables, "false", help)
}

const fn duration(
    flag: &'static str,
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    text(flag, DURATION, variables, default, help)
}

/// Returns all options of `start` and `dev`.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|(_, settings)| settings.iter())
}

/// Returns the option of this flag.
pub(super) fn setting(flag: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.flag == flag)
}

/// All options of `start` and `dev`, by topic: the heading in `--help` and in the documentation, and the options below it.
pub const SECTIONS: &[(&str, &[Setting])] = &[
    ("Modules", MODULES),
    ("Hooks", HOOKS),
    ("Helm", HELM),
    ("Kubernetes", KUBERNETES),
    ("HTTP", HTTP),
    ("Log", LOG),
    ("Debugging", DEBUGGING),
    ("Without effect, or not supported", NOT_SUPPORTED),
];

const MODULES: &[Setting] = &[
    text(
        "modules-dir",
        "DIR",
        &["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"],
        "modules",
        "Directories with modules, separated by colons",
    ),
    text(
        "unnumbered-modules-order",
        "N",
        &["ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULE_ORDER"],
        "1",
        "Order of modules whose directory has no number",
    ),
    text(
        "module-concurrency",
        "N",
        &["ADDON_OPERATOR_MODULE_CONCURRENCY"],
        "1",
        "How many modules of one order number run at the same time",
    ),
    text(
        "on-module-failure",
        "MODE",
        &["ADDON_OPERATOR_ON_MODULE_FAILURE"],
        "block",
        "What a failing module does to those behind it",
    )
    .one_of(&["block", "pass"]),
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
    duration(
        "enabled-timeout",
        &["ADDON_OPERATOR_ENABLED_TIMEOUT"],
        "1m",
        "How long an enabled script may run; 0s for ever",
    ),
    switch(
        "strict-check-values-mode-enabled",
        &["ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED", "STRICT_CHECK_VALUES_MODE_ENABLED"],
        "Refuse to start when a values.yaml is missing",
    ),
    text(
        "crd-extra-labels",
        "LABELS",
        &["ADDON_OPERATOR_CRD_EXTRA_LABELS"],
        "heritage=addon-operator",
        "Labels of all objects that modules bring, as a=b,c=d",
    ),
    text(
        "crd-filters",
        "PREFIXES",
        &["ADDON_OPERATOR_CRD_FILTER_PREFIXES"],
        "doc-,_",
        "Files in crds/ that begin so are no CRDs",
    ),
    switch(
        "watch-files",
        &["ADDON_OPERATOR_WATCH_FILES"],
        "Take up changed modules and hooks without a restart",
    ),
];

const HOOKS: &[Setting] = &[
    text(
        "global-hooks-dir",
        "DIR",
        &["ADDON_OPERATOR_GLOBAL_HOOKS_DIR", "GLOBAL_HOOKS_DIR", "SHELL_OPERATOR_HOOKS_DIR"],
        "global-hooks",
        "Directory with global hooks",
    ),
    text(
        "tmp-dir",
        "DIR",
        &["ADDON_OPERATOR_TMP_DIR", "SHELL_OPERATOR_TMP_DIR"],
        "/tmp/addon-operator",
        "Directory for the files that hooks read and write; empty for a new one",
    ),
    text(
        "max-hooks",
        "N",
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
        "shutdown-timeout",
        &["ADDON_OPERATOR_SHUTDOWN_TIMEOUT"],
        "10s",
        "How long the end of the operator may take: hooks that run may finish, but for its last 6 s, in which they are ended",
    ),
];

const HELM: &[Setting] = &[
    text(
        "helm-history-max",
        "N",
        &["HELM_HISTORY_MAX"],
        "10",
        "How many revisions of a release are kept; 0 for all",
    ),
    duration("helm-timeout", &["HELM_TIMEOUT"], "20m", "How long the hooks of a chart may take"),
    text(
        "helm-ignore-release",
        "RELEASE",
        &["HELM_IGNORE_RELEASE"],
        "",
        "A release that is never removed: the operator's own",
    ),
];

const KUBERNETES: &[Setting] = &[
    text(
        "namespace",
        "NAMESPACE",
        &["ADDON_OPERATOR_NAMESPACE", "SHELL_OPERATOR_NAMESPACE"],
        "",
        "Namespace of the ConfigMap and of the releases",
    ),
    text(
        "config-map",
        "NAME",
        &["ADDON_OPERATOR_CONFIG_MAP"],
        "addon-operator",
        "Name of the ConfigMap with values",
    ),
    text("kube-config", "FILE", &["KUBE_CONFIG"], "", "Path of the kubeconfig"),
    text("kube-context", "CONTEXT", &["KUBE_CONTEXT"], "", "Context of the kubeconfig"),
    text(
        "kube-server",
        "URL",
        &["KUBE_SERVER"],
        "",
        "Address of the API server, instead of that in the kubeconfig",
    ),
    text(
        "kube-client-qps",
        "N",
        &["KUBE_CLIENT_QPS"],
        "500",
        "Requests per second to the API server in the long run; 0 for no limit",
    ),
    text("kube-client-burst", "N", &["KUBE_CLIENT_BURST"], "1000", "Requests to the API server at once"),
    text(
        "object-patcher-kube-client-qps",
        "N",
        &["OBJECT_PATCHER_KUBE_CLIENT_QPS"],
        "500",
        "The same for what hooks write",
    ),
    text(
        "object-patcher-kube-client-burst",
        "N",
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
];

const HTTP: &[Setting] = &[
    text(
        "prometheus-listen-address",
        "ADDR",
        &["ADDON_OPERATOR_LISTEN_ADDRESS", "SHELL_OPERATOR_LISTEN_ADDRESS"],
        "0.0.0.0",
        "Address of the HTTP server",
    ),
    text(
        "prometheus-listen-port",
        "PORT",
        &["ADDON_OPERATOR_LISTEN_PORT", "SHELL_OPERATOR_LISTEN_PORT"],
        "9115",
        "Port of the HTTP server",
    ),
    text(
        "prometheus-metrics-prefix",
        "PREFIX",
        &["ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX", "SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX"],
        "addon_operator_",
        "What the names of metrics begin with",
    ),
];

const LOG: &[Setting] = &[
    text("log-level", "LEVEL", &["LOG_LEVEL", "RLOG_LOG_LEVEL"], "info", "Least severe level of log lines")
        .one_of(&["trace", "debug", "info", "warn", "error"]),
    text(
        "log-type",
        "FORM",
        &["LOG_TYPE"],
        "",
        "Form of log lines; json for start, color for dev on a terminal",
    )
    .one_of(&["json", "text", "color"]),
    switch("log-no-time", &["LOG_NO_TIME"], "Leave out the time of log lines"),
    switch("log-proxy-hook-json", &["LOG_PROXY_HOOK_JSON"], "Merge JSON lines that hooks print into the log"),
    switch(
        "log-hook-values",
        &["ADDON_OPERATOR_LOG_HOOK_VALUES", "LOG_HOOK_VALUES"],
        "Show values that hooks print; without it, texts of six and more characters are ****** in the log",
    ),
];

const DEBUGGING: &[Setting] = &[
    text(
        "debug-unix-socket",
        "FILE",
        &["DEBUG_UNIX_SOCKET"],
        "/var/run/addon-operator/debug.socket",
        "Socket of the debugging commands",
    ),
    text(
        "debug-http-addr",
        "ADDR",
        &["DEBUG_HTTP_SERVER_ADDR"],
        "",
        "Address where the debugging commands answer over TCP, too",
    ),
    switch("debug-keep-tmp-files", &["DEBUG_KEEP_TMP_FILES"], "Keep the files of hooks; they hold values"),
    switch("debug-kubernetes-api", &["DEBUG_KUBERNETES_API"], "Log each request to the API server"),
];

const NOT_SUPPORTED: &[Setting] = &[
    text(
        "helm-monitor-kube-client-qps",
        "N",
        &["HELM_MONITOR_KUBE_CLIENT_QPS"],
        "5",
        "Accepted, has no effect: drift is watched",
    ),
    text(
        "helm-monitor-kube-client-burst",
        "N",
        &["HELM_MONITOR_KUBE_CLIENT_BURST"],
        "10",
        "Accepted, has no effect: drift is watched",
    ),
    text(
        "admission-server-listen-port",
        "PORT",
        &["ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT"],
        "9651",
        "Accepted, has no effect without the admission server",
    ),
    text(
        "admission-server-certs-dir",
        "DIR",
        &["ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR"],
        "",
        "Accepted, has no effect without the admission server",
    ),
    text(
        "applied-module-extenders",
        "NAMES",
        &["ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS"],
        "",
        "Not supported: the sources of Enabled have a fixed order",
    ),
    switch("admission-server-enabled", &["ADDON_OPERATOR_ADMISSION_SERVER_ENABLED"], "Not supported"),
    text("shell-chroot-dir", "DIR", &["ADDON_OPERATOR_SHELL_CHROOT_DIR"], "", "Not supported"),
];
