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

    /// Returns other flags that mean the same: those of shell-operator's two servers of webhooks, which are one here.
    pub fn other_flags(&self) -> impl Iterator<Item = String> {
        let is_flag =
            |name: &&&str| name.starts_with("VALIDATING_WEBHOOK_") || name.starts_with("CONVERSION_WEBHOOK_");
        self.variables.iter().filter(is_flag).map(|name| name.to_lowercase().replace('_', "-"))
    }

    /// Returns whether it may be given several times, which is the same as its texts separated by commas.
    pub fn is_list(&self) -> bool {
        matches!(self.value, "FILES" | "HOSTS" | "URLS" | "NAMESPACES")
    }
}

/// What the text of a duration is called.
pub const DURATION: &str = "DURATION";

/// Returns all options of `start` and `dev`.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|(_, settings)| settings.iter())
}

/// Returns the option of this flag.
pub(super) fn setting(flag: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.flag == flag)
}

/// Makes the table of all options. A row is: what the text of the option is, its flag, its default, the words that it can be,
/// its variables, and one line of help. The text of a `duration` is one; a `switch` is true or false, and false
/// without a default.
macro_rules! sections {
    (@value duration) => { DURATION };
    (@value switch) => { "" };
    (@value $value:ident) => { stringify!($value) };
    (@default) => { "false" };
    (@default $default:literal) => { $default };
    ($($heading:literal => {
        $($value:ident $flag:literal $(= $default:literal $(of [$($word:literal),*])?)?, [$($variable:literal),*], $help:literal;)*
    })*) => {
        &[$(($heading, &[$(Setting {
            flag: $flag,
            value: sections!(@value $value),
            words: &[$($($($word),*)?)?],
            variables: &[$($variable),*],
            default: sections!(@default $($default)?),
            help: $help,
        }),*])),*]
    };
}

/// All options of `start` and `dev`, by topic: the heading in `--help` and in the documentation, and the options below it.
pub const SECTIONS: &[(&str, &[Setting])] = sections! {
    "Modules" => {
        DIR "modules-dir" = "modules", ["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"],
            "Directories with modules, separated by colons";
        N "unnumbered-modules-order" = "1",
            ["ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULES_ORDER", "UNNUMBERED_MODULE_ORDER"],
            "Order of modules whose directory has no number";
        N "module-concurrency" = "1", ["ADDON_OPERATOR_MODULE_CONCURRENCY"],
            "How many modules of one order number run at the same time";
        MODE "on-module-failure" = "block" of ["block", "pass"], ["ADDON_OPERATOR_ON_MODULE_FAILURE"],
            "What a failing module does to those behind it";
        duration "retry-delay" = "5s", ["ADDON_OPERATOR_RETRY_DELAY"],
            "How long a failed task waits before it is tried again";
        duration "retry-max-delay" = "0s", ["ADDON_OPERATOR_RETRY_MAX_DELAY"],
            "Let the delay grow up to this when a task goes on failing; less than the delay keeps it";
        duration "enabled-timeout" = "1m", ["ADDON_OPERATOR_ENABLED_TIMEOUT"],
            "How long an enabled script may run; 0s for ever";
        N "enabled-concurrency" = "4", ["ADDON_OPERATOR_ENABLED_CONCURRENCY"],
            "How many enabled scripts run at the same time when what they read is known; 1 for never more than one, and for none before it is needed";
        NAMES "applied-module-extenders" = "", ["ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS"],
            "Who says whether modules are on, the last one wins: Static, DynamicallyEnabled, KubeConfig and ScriptEnabled, each once; empty for all in this order";
        switch "strict-check-values-mode-enabled",
            ["ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED", "STRICT_CHECK_VALUES_MODE_ENABLED"],
            "Refuse to start when a values.yaml is missing";
        LABELS "crd-extra-labels" = "heritage=addon-operator", ["ADDON_OPERATOR_CRD_EXTRA_LABELS"],
            "Labels of all objects that modules bring, as a=b,c=d";
        PREFIXES "crd-filters" = "doc-,_", ["ADDON_OPERATOR_CRD_FILTER_PREFIXES"],
            "Files in crds/ that begin so are no CRDs";
        switch "watch-files" = "true", ["ADDON_OPERATOR_WATCH_FILES"],
            "Take up changed modules and hooks without a restart";
    }
    "Module sources" => {
        DIR "source-dir" = "/tmp/addon-operator-sources", ["ADDON_OPERATOR_SOURCE_DIR"],
            "Directory for the bundles of module sources; what is missing in it is restored from the cluster";
        NAMESPACES "source-secret-namespaces" = "", ["ADDON_OPERATOR_SOURCE_SECRET_NAMESPACES"],
            "Namespaces whose Secrets a ClusterAddonsConfiguration may name; that of the operator by default";
        HOSTS "source-allow" = "", ["ADDON_OPERATOR_SOURCE_ALLOW"],
            "Hosts, as HOST or HOST:PORT, that may have private addresses";
        URLS "source-allow-prefix" = "", ["ADDON_OPERATOR_SOURCE_ALLOW_PREFIX"],
            "What the URLs of indexes may begin with; everything by default";
        MIRRORS "source-mirror" = "", ["ADDON_OPERATOR_SOURCE_MIRROR"],
            "What stands in for repositories that can't be reached, as FROM=TO,…: both are the beginnings of URLs";
        switch "source-develop", ["ADDON_OPERATOR_SOURCE_DEVELOP"],
            "Allow http:// in URLs of module sources";
        FILE "source-ca" = "", ["ADDON_OPERATOR_SOURCE_CA"],
            "File with certificates that are trusted beside those of the system";
        N "source-workers" = "2", ["ADDON_OPERATOR_SOURCE_WORKERS"],
            "How many configurations of sources decide and write at the same time; fetches are not counted";
        N "source-fetches" = "16", ["ADDON_OPERATOR_SOURCE_FETCHES"],
            "How many requests to repositories run at the same time; two of them to one host";
        duration "source-timeout" = "60s", ["ADDON_OPERATOR_SOURCE_TIMEOUT"],
            "How long one request to a repository may take";
        duration "source-relist" = "10m", ["ADDON_OPERATOR_SOURCE_RELIST"],
            "How often a configuration that failed is processed again";
        duration "source-retry" = "5m", ["ADDON_OPERATOR_SOURCE_RETRY"],
            "The first wait before repositories that could not be fetched are asked again; it grows to 1h";
    }
    "Charts from repositories" => {
        NAMESPACE "charts-namespace" = "", ["ADDON_OPERATOR_CHARTS_NAMESPACE", "WATCH_NAMESPACE"],
            "Namespace of the ConfigMaps with charts, and of the Secrets for repositories; that of the operator by default";
        N "charts-index-max" = "500", ["ADDON_OPERATOR_CHARTS_INDEX_MAX"],
            "How many charts of the index of a Repository are kept that lists none";
        BYTES "charts-index-bytes" = "134217728", ["ADDON_OPERATOR_CHARTS_INDEX_BYTES"],
            "How many bytes the index of a Repository may have";
    }
    "Hooks" => {
        DIR "global-hooks-dir" = "global-hooks",
            ["ADDON_OPERATOR_GLOBAL_HOOKS_DIR", "GLOBAL_HOOKS_DIR", "SHELL_OPERATOR_HOOKS_DIR"],
            "Directory with global hooks";
        DIR "tmp-dir" = "/tmp/addon-operator", ["ADDON_OPERATOR_TMP_DIR", "SHELL_OPERATOR_TMP_DIR"],
            "Directory for the files that hooks read and write, best one in memory; empty for a new one";
        N "max-hooks" = "64", ["ADDON_OPERATOR_MAX_HOOKS"],
            "How many hooks run at the same time; modules, hooks of the main queue and what these wait for need no place";
        duration "hook-timeout" = "0s", ["ADDON_OPERATOR_HOOK_TIMEOUT"],
            "How long a hook may run if its configuration does not say; 0s for ever";
        LIMITS "hook-limits" = "", ["ADDON_OPERATOR_HOOK_LIMITS"],
            "What a hook may use if its configuration does not say: memory=256Mi,cpu=500m,processes=64,output=10Mi,strict";
        duration "hook-config-timeout" = "10s", ["ADDON_OPERATOR_HOOK_CONFIG_TIMEOUT"],
            "How long a hook may take to answer --config";
        DIR "shell-chroot-dir" = "", ["ADDON_OPERATOR_SHELL_CHROOT_DIR"],
            "Directory below which hooks and enabled scripts of modules run in a chroot, each module in its own";
        duration "shutdown-timeout" = "10s", ["ADDON_OPERATOR_SHUTDOWN_TIMEOUT"],
            "How long the end of the operator may take: hooks that run may finish, but for its last 6 s, in which they are ended";
    }
    "Helm" => {
        N "helm-history-max" = "10", ["HELM_HISTORY_MAX"],
            "How many revisions of a release are kept; 0 for all";
        BACKEND "helm-backend" = "native" of ["native", "cli"], ["HELM_BACKEND"],
            "Who renders and writes releases: the operator itself, or the program of --helm-bin";
        PROGRAM "helm-bin" = "helm", ["HELM_BIN"],
            "The helm program of --helm-backend=cli, 3.8 or later: a path, or a name in PATH";
        duration "helm-timeout" = "20m", ["HELM_TIMEOUT"],
            "How long the hooks of a chart may take";
        RELEASE "helm-ignore-release" = "", ["HELM_IGNORE_RELEASE"],
            "A release that is never removed: the operator's own";
    }
    "Kubernetes" => {
        NAMESPACE "namespace" = "", ["ADDON_OPERATOR_NAMESPACE", "SHELL_OPERATOR_NAMESPACE"],
            "Namespace of the ConfigMap and of the releases";
        NAME "config-map" = "addon-operator", ["ADDON_OPERATOR_CONFIG_MAP"],
            "Name of the ConfigMap with values";
        NAME "config-secret" = "", ["ADDON_OPERATOR_CONFIG_SECRET"],
            "Name of the Secret with values over those of the ConfigMap; that of the ConfigMap if empty";
        FILE "kube-config" = "", ["KUBE_CONFIG"],
            "Path of the kubeconfig";
        CONTEXT "kube-context" = "", ["KUBE_CONTEXT"],
            "Context of the kubeconfig";
        URL "kube-server" = "", ["KUBE_SERVER"],
            "Address of the API server, instead of that in the kubeconfig";
        N "kube-client-qps" = "500", ["KUBE_CLIENT_QPS"],
            "Requests per second to the API server in the long run; 0 for no limit";
        N "kube-client-burst" = "1000", ["KUBE_CLIENT_BURST"],
            "Requests to the API server at once";
        N "object-patcher-kube-client-qps" = "500", ["OBJECT_PATCHER_KUBE_CLIENT_QPS"],
            "The same for what hooks write";
        N "object-patcher-kube-client-burst" = "1000", ["OBJECT_PATCHER_KUBE_CLIENT_BURST"],
            "The same for what hooks write";
        duration "object-patcher-kube-client-timeout" = "10s", ["OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT"],
            "How long one request of what hooks write may take";
    }
    "High availability" => {
        switch "ha", ["ADDON_OPERATOR_HA"],
            "Run as one of several replicas: one leads, the others are ready to take over";
        duration "ha-lease-duration" = "35s", ["ADDON_OPERATOR_HA_LEASE_DURATION"],
            "How long the other replicas wait for a leader that renews its Lease no more; whole seconds";
        duration "ha-renew-deadline" = "30s", ["ADDON_OPERATOR_HA_RENEW_DEADLINE"],
            "How long a leader acts that can't renew its Lease";
        duration "ha-retry-period" = "10s", ["ADDON_OPERATOR_HA_RETRY_PERIOD"],
            "How often the leader renews its Lease";
        ADDR "ha-advertise-address" = "", ["ADDON_OPERATOR_HA_ADVERTISE_ADDRESS"],
            "What the Lease says where this replica is, where pods have no names in the DNS";
        NAME "pod-name" = "", ["ADDON_OPERATOR_POD"],
            "Name of this replica, which no other has; needed with --ha";
        MODE "single-instance" = "warn" of ["warn", "refuse", "off"], ["ADDON_OPERATOR_SINGLE_INSTANCE"],
            "What an operator without --ha does when another one is alive in its namespace; off looks for none";
    }
    "HTTP" => {
        ADDR "prometheus-listen-address" = "0.0.0.0",
            ["ADDON_OPERATOR_LISTEN_ADDRESS", "SHELL_OPERATOR_LISTEN_ADDRESS"],
            "Address of the HTTP server";
        PORT "prometheus-listen-port" = "9115", ["ADDON_OPERATOR_LISTEN_PORT", "SHELL_OPERATOR_LISTEN_PORT"],
            "Port of the HTTP server";
        PREFIX "prometheus-metrics-prefix" = "addon_operator_",
            ["ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX", "SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX"],
            "What the names of metrics begin with";
    }
    "Log" => {
        LEVEL "log-level" = "info" of ["trace", "debug", "info", "warn", "error"],
            ["LOG_LEVEL", "RLOG_LOG_LEVEL"],
            "Least severe level of log lines";
        FORM "log-type" = "" of ["json", "text", "color"], ["LOG_TYPE"],
            "Form of log lines; json for start, color for dev on a terminal";
        switch "log-no-time", ["LOG_NO_TIME"],
            "Leave out the time of log lines";
        switch "log-proxy-hook-json", ["LOG_PROXY_HOOK_JSON"],
            "Merge JSON lines that hooks print into the log";
        switch "log-hook-values", ["ADDON_OPERATOR_LOG_HOOK_VALUES", "LOG_HOOK_VALUES"],
            "Show values that hooks print; without it, texts of six and more characters are ****** in the log";
    }
    "Webhooks" => {
        switch "admission-server-enabled", ["ADDON_OPERATOR_ADMISSION_SERVER_ENABLED"],
            "Let the API server ask hooks: kubernetesValidating, kubernetesMutating, kubernetesCustomResourceConversion";
        ADDR "admission-server-listen-address" = "0.0.0.0", ["ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_ADDRESS", "VALIDATING_WEBHOOK_LISTEN_ADDRESS", "CONVERSION_WEBHOOK_LISTEN_ADDRESS"],
            "Address where the API server asks";
        PORT "admission-server-listen-port" = "9651", ["ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT", "VALIDATING_WEBHOOK_LISTEN_PORT", "CONVERSION_WEBHOOK_LISTEN_PORT"],
            "Port where the API server asks, over HTTPS";
        DIR "admission-server-certs-dir" = "", ["ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR"],
            "Directory with tls.crt, tls.key and ca.crt; without it the operator makes a certificate and keeps it in a Secret";
        FILE "admission-server-cert" = "", ["ADDON_OPERATOR_ADMISSION_SERVER_CERT", "VALIDATING_WEBHOOK_SERVER_CERT", "CONVERSION_WEBHOOK_SERVER_CERT"],
            "File with the certificate, instead of tls.crt in that directory; files that are not named are sought beside it";
        FILE "admission-server-key" = "", ["ADDON_OPERATOR_ADMISSION_SERVER_KEY", "VALIDATING_WEBHOOK_SERVER_KEY", "CONVERSION_WEBHOOK_SERVER_KEY"],
            "File with its private key, instead of tls.key";
        FILE "admission-server-ca" = "", ["ADDON_OPERATOR_ADMISSION_SERVER_CA", "VALIDATING_WEBHOOK_CA", "CONVERSION_WEBHOOK_CA"],
            "File with the authorities that the API server has to trust, instead of ca.crt";
        FILES "admission-server-client-ca" = "", ["ADDON_OPERATOR_ADMISSION_SERVER_CLIENT_CA", "VALIDATING_WEBHOOK_CLIENT_CA", "CONVERSION_WEBHOOK_CLIENT_CA"],
            "Files with authorities: only clients with a certificate of one of them are answered";
        NAME "webhook-service-name" = "addon-operator-webhooks", ["ADDON_OPERATOR_WEBHOOK_SERVICE_NAME", "VALIDATING_WEBHOOK_SERVICE_NAME", "CONVERSION_WEBHOOK_SERVICE_NAME"],
            "Service in the operator's namespace that leads to that port";
        URL "webhook-url" = "", ["ADDON_OPERATOR_WEBHOOK_URL"],
            "Address where the API server asks instead, for an operator outside of the cluster: https://10.0.0.1:9651";
        NAME "webhook-configuration-name" = "", ["ADDON_OPERATOR_WEBHOOK_CONFIGURATION_NAME", "VALIDATING_WEBHOOK_CONFIGURATION_NAME"],
            "Name of the configurations of webhooks; addon-operator-NAMESPACE if empty";
        POLICY "webhook-failure-policy" = "Fail" of ["Fail", "Ignore"], ["ADDON_OPERATOR_WEBHOOK_FAILURE_POLICY", "VALIDATING_WEBHOOK_FAILURE_POLICY"],
            "What the API server does with a request when a validating webhook does not answer that does not say so itself";
        N "webhook-concurrency" = "16", ["ADDON_OPERATOR_WEBHOOK_CONCURRENCY"],
            "How many hooks answer the API server at a time, beside the queues";
    }
    "Broker" => {
        ADDR "osb-listen" = "", ["ADDON_OPERATOR_OSB_LISTEN"],
            "Address where platforms of the Open Service Broker API find the addons of module sources as services, such as :8081; no broker if empty";
        NAME "osb-secret" = "addon-operator-broker", ["ADDON_OPERATOR_OSB_SECRET"],
            "Secret in the operator's namespace with the username and password of platforms";
        URL "osb-url" = "", ["ADDON_OPERATOR_OSB_URL"],
            "Address under which Service Catalog reaches the broker; that of the Service addon-operator-broker if empty";
    }
    "Debugging" => {
        FILE "debug-unix-socket" = "/var/run/addon-operator/debug.socket", ["DEBUG_UNIX_SOCKET"],
            "Socket of the debugging commands";
        ADDR "debug-http-addr" = "", ["DEBUG_HTTP_SERVER_ADDR"],
            "Address where the debugging commands answer over TCP, too";
        switch "debug-keep-tmp-files", ["DEBUG_KEEP_TMP_FILES"],
            "Keep the files of hooks; they hold values";
        switch "debug-kubernetes-api", ["DEBUG_KUBERNETES_API"],
            "Log each request to the API server";
    }
    "Without effect" => {
        DIR "jq-library-path" = "", ["JQ_LIBRARY_PATH"],
            "Accepted, has no effect: filters are part of the program";
        N "helm-monitor-kube-client-qps" = "5", ["HELM_MONITOR_KUBE_CLIENT_QPS"],
            "Accepted, has no effect: drift is watched";
        N "helm-monitor-kube-client-burst" = "10", ["HELM_MONITOR_KUBE_CLIENT_BURST"],
            "Accepted, has no effect: drift is watched";
    }
};
