//! The options with their types.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use engine::Extenders;
use engine::hook::HookLimits;

use super::broker::BrokerSettings;
use super::election::ElectionSettings;
use super::webhooks::WebhookSettings;
use super::{ConfigError, Environment, OptionSources, parse_bool, parse_duration};

/// All options, checked.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is on or off")]
pub struct Settings {
    /// The directories with modules, in order.
    pub modules_dirs: Vec<PathBuf>,
    /// How modules come from repositories.
    pub sources: SourceSettings,
    /// How operators of one namespace are kept apart.
    pub election: ElectionSettings,
    /// How the API server asks hooks.
    pub webhooks: WebhookSettings,
    /// How platforms ask the broker.
    pub broker: BrokerSettings,
    /// How charts come from repositories.
    pub charts: ChartSettings,
    /// The directory with global hooks.
    pub global_hooks_dir: PathBuf,
    /// Whether that directory may be missing: nobody asked for it.
    pub global_hooks_optional: bool,
    /// The order of modules without number.
    pub unnumbered_order: u32,
    /// Where the files of hooks are written; `None` for a new directory.
    pub tmp_dir: Option<PathBuf>,
    /// The namespace of the ConfigMap and of the releases.
    pub namespace: String,
    /// The name of the ConfigMap.
    pub config_map: String,
    /// The name of the Secret that lies over it.
    pub config_secret: String,
    /// The address of the HTTP server.
    pub listen_address: String,
    /// The port of the HTTP server.
    pub listen_port: u16,
    /// What the names of metrics begin with.
    pub metrics_prefix: String,
    /// How long a failed task waits.
    pub retry_delay: Duration,
    /// How far that delay may grow.
    pub retry_max_delay: Duration,
    /// What a failing module does to those behind it.
    pub on_module_failure: OnModuleFailure,
    /// How many modules of one order number run at the same time.
    pub module_concurrency: usize,
    /// How many enabled scripts run at the same time when what they read is known.
    pub enabled_concurrency: usize,
    /// Who says whether modules are on.
    pub extenders: Extenders,
    /// How many hooks run at the same time.
    pub max_hooks: usize,
    /// How long a hook may run if it does not say itself.
    pub hook_timeout: Option<Duration>,
    /// What a hook may use at most if it does not say itself.
    pub hook_limits: HookLimits,
    /// Below which directory hooks of modules run in a chroot, if they do.
    pub shell_chroot_dir: Option<PathBuf>,
    /// How long a hook may take for `--config`.
    pub hook_config_timeout: Duration,
    /// How long an enabled script may run.
    pub enabled_timeout: Option<Duration>,
    /// How long running hooks are waited for at the end.
    pub shutdown_timeout: Duration,
    /// Whether changed files are loaded while the operator runs.
    pub watch_files: bool,
    /// Whether a missing `values.yaml` is an error.
    pub strict_values: bool,
    /// The labels of all objects that modules bring.
    pub extra_labels: BTreeMap<String, String>,
    /// Files in `crds/` that begin so are no CRDs.
    pub crd_filters: Vec<String>,
    /// How many revisions of a release are kept; 0 for all.
    pub helm_history_max: usize,
    /// Whether a program renders and writes releases.
    pub helm_is_program: bool,
    /// That program.
    pub helm_bin: PathBuf,
    /// How long the hooks of a chart may take.
    pub helm_timeout: Duration,
    /// A release that is never removed.
    pub helm_ignore_release: String,
    /// The context of the kubeconfig; empty for its current one.
    pub kube_context: String,
    /// The path of the kubeconfig; empty for the usual places.
    pub kube_config: String,
    /// The address of the API server; empty for that of the kubeconfig.
    pub kube_server: String,
    /// Requests per second in the long run; 0 for no limit.
    pub kube_qps: f64,
    /// Requests at once.
    pub kube_burst: u32,
    /// Requests per second of what hooks write.
    pub patcher_qps: f64,
    /// Requests at once of what hooks write.
    pub patcher_burst: u32,
    /// How long one request of what hooks write may take.
    pub patcher_timeout: Duration,
    /// The least severe level that is logged.
    pub log_level: tracing::Level,
    /// The form of log lines; `None` for what suits the command.
    pub log_type: Option<LogType>,
    /// Whether log lines have no time.
    pub log_no_time: bool,
    /// Whether JSON lines of hooks are merged into the log.
    pub log_proxy_hook_json: bool,
    /// Whether values that hooks print are shown in the log.
    pub log_hook_values: bool,
    /// The socket of the debugging commands.
    pub debug_socket: PathBuf,
    /// Where the debugging commands answer over TCP, too; empty for nowhere.
    pub debug_http_addr: String,
    /// Whether the files of hooks are kept.
    pub keep_tmp_files: bool,
    /// Whether each request to the API server is logged.
    pub log_requests: bool,
    /// Warnings about the options, for the log once it is open.
    pub warnings: Vec<String>,
}

/// How modules come from repositories.
#[derive(Clone, Debug)]
pub struct SourceSettings {
    /// The directory for bundles.
    pub dir: PathBuf,
    /// The namespaces whose Secrets a configuration for the cluster may name; empty for that of the operator.
    pub secret_namespaces: Vec<String>,
    /// Hosts that may have private addresses, as `HOST` or `HOST:PORT`.
    pub allow: Vec<String>,
    /// What the URLs of indexes may begin with; empty for everything.
    pub allow_prefixes: Vec<String>,
    /// What stands in for repositories, as `FROM=TO`.
    pub mirrors: Vec<String>,
    /// Whether `http://` is allowed.
    pub develop: bool,
    /// A file with certificates that are trusted beside those of the system.
    pub ca: Option<PathBuf>,
    /// How many configurations decide and write at the same time.
    pub workers: usize,
    /// How many requests to repositories run at the same time.
    pub fetches: usize,
    /// How long one request to a repository may take.
    pub timeout: Duration,
    /// How often a configuration that failed is processed again.
    pub relist: Duration,
    /// The first wait before repositories that could not be fetched are asked again.
    pub retry: Duration,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogType {
    /// Text in colours.
    Color,
    /// One JSON object a line.
    Json,
    /// Plain text.
    Text,
}

/// What a failing module does to the modules behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnModuleFailure {
    /// They wait.
    Block,
    /// They go first.
    Pass,
}

impl Settings {
    /// Returns the settings, or the first thing that is wrong with them.
    #[expect(clippy::too_many_lines, reason = "one line for each setting")]
    pub fn new(given: &OptionSources) -> Result<Self, ConfigError> {
        refuse(given)?;
        let text = |flag| given.text(flag).0;
        let tmp_dir = text("tmp-dir");
        let count = |flag| count(given, flag);
        Ok(Self {
            modules_dirs: paths(&text("modules-dir")),
            sources: SourceSettings::new(given)?,
            election: ElectionSettings::new(given)?,
            webhooks: WebhookSettings::new(given)?,
            broker: BrokerSettings::new(given)?,
            charts: ChartSettings::new(given)?,
            global_hooks_dir: text("global-hooks-dir").into(),
            global_hooks_optional: false,
            unnumbered_order: given.number("unnumbered-modules-order")?,
            tmp_dir: (!tmp_dir.is_empty()).then(|| tmp_dir.into()),
            namespace: text("namespace"),
            config_map: text("config-map"),
            config_secret: [text("config-secret"), text("config-map")]
                .into_iter()
                .find(|name| !name.is_empty())
                .unwrap_or_default(),
            listen_address: text("prometheus-listen-address"),
            listen_port: given
                .parse("prometheus-listen-port", "a port, 0 to 65535", |text| text.parse().ok())?,
            metrics_prefix: text("prometheus-metrics-prefix"),
            retry_delay: given.duration("retry-delay")?,
            retry_max_delay: given.duration("retry-max-delay")?,
            on_module_failure: given.parse("on-module-failure", "block or pass", |text| match text {
                "block" => Some(OnModuleFailure::Block),
                "pass" => Some(OnModuleFailure::Pass),
                _ => None,
            })?,
            module_concurrency: count("module-concurrency")?,
            max_hooks: count("max-hooks")?,
            hook_timeout: limit(given.duration("hook-timeout")?),
            hook_limits: given.read("hook-limits", |text| {
                let form = "some of memory=256Mi, cpu=500m, processes=64, output=10Mi and strict, with commas between them";
                HookLimits::parse(text).map_err(|problem| format!("{form}; {problem}"))
            })?,
            shell_chroot_dir: Some(text("shell-chroot-dir")).filter(|dir| !dir.is_empty()).map(PathBuf::from),
            hook_config_timeout: given.duration("hook-config-timeout")?,
            enabled_timeout: limit(given.duration("enabled-timeout")?),
            shutdown_timeout: given.duration("shutdown-timeout")?,
            watch_files: given.switch("watch-files")?,
            enabled_concurrency: count("enabled-concurrency")?,
            extenders: given.parse(
                "applied-module-extenders",
                "some of Static,DynamicallyEnabled,KubeConfig,ScriptEnabled, each once and without spaces",
                Extenders::parse,
            )?,
            strict_values: given.switch("strict-check-values-mode-enabled")?,
            extra_labels: given.parse("crd-extra-labels", "labels like a=b,c=d", parse_labels)?,
            crd_filters: text("crd-filters").split(',').map(|prefix| prefix.trim().to_owned()).collect(),
            helm_history_max: given.number("helm-history-max")?,
            helm_is_program: given.parse("helm-backend", "native or cli", |text| match text {
                "native" => Some(false),
                "cli" => Some(true),
                _ => None,
            })?,
            helm_bin: text("helm-bin").into(),
            helm_timeout: given.duration("helm-timeout")?,
            helm_ignore_release: text("helm-ignore-release"),
            kube_context: text("kube-context"),
            kube_config: text("kube-config"),
            kube_server: text("kube-server"),
            kube_qps: given.parse("kube-client-qps", "a number that is not negative", parse_rate)?,
            kube_burst: given.number("kube-client-burst")?,
            patcher_qps: given.parse(
                "object-patcher-kube-client-qps",
                "a number that is not negative",
                parse_rate,
            )?,
            patcher_burst: given.number("object-patcher-kube-client-burst")?,
            patcher_timeout: given.duration("object-patcher-kube-client-timeout")?,
            log_level: given.parse("log-level", "trace, debug, info, warn or error", parse_level)?,
            log_type: given.parse("log-type", "json, text or color", |text| match text {
                "" => Some(None),
                "json" => Some(Some(LogType::Json)),
                "text" => Some(Some(LogType::Text)),
                "color" => Some(Some(LogType::Color)),
                _ => None,
            })?,
            log_no_time: given.switch("log-no-time")?,
            log_proxy_hook_json: given.switch("log-proxy-hook-json")?,
            log_hook_values: given.switch("log-hook-values")?,
            debug_socket: text("debug-unix-socket").into(),
            debug_http_addr: text("debug-http-addr"),
            keep_tmp_files: given.switch("debug-keep-tmp-files")?,
            log_requests: given.switch("debug-kubernetes-api")?,
            warnings: warnings(given.environment(), &text("crd-filters")),
        })
    }
}

/// Returns the paths of a list with colons.
fn paths(list: &str) -> Vec<PathBuf> {
    list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

impl SourceSettings {
    fn new(given: &OptionSources) -> Result<Self, ConfigError> {
        let text = |flag| given.text(flag).0;
        let positive = |flag| {
            given.parse(flag, "a duration above zero, like 5s or 1m30s", |text| {
                parse_duration(text).filter(|time| !time.is_zero())
            })
        };
        let ca = text("source-ca");
        Ok(Self {
            dir: text("source-dir").into(),
            secret_namespaces: list(&text("source-secret-namespaces")),
            allow: list(&text("source-allow")),
            allow_prefixes: list(&text("source-allow-prefix")),
            mirrors: list(&text("source-mirror")),
            develop: given.switch("source-develop")?,
            ca: (!ca.is_empty()).then(|| ca.into()),
            workers: count(given, "source-workers")?,
            fetches: count(given, "source-fetches")?,
            timeout: positive("source-timeout")?,
            relist: positive("source-relist")?,
            retry: positive("source-retry")?,
        })
    }
}

/// How charts come from repositories.
#[derive(Clone, Debug)]
pub struct ChartSettings {
    /// The namespace of the `ConfigMap`s and Secrets.
    pub namespace: String,
    /// How many charts of an index are kept that lists none.
    pub index_max: usize,
    /// How many bytes an index may have.
    pub index_bytes: u64,
}

impl ChartSettings {
    fn new(given: &OptionSources) -> Result<Self, ConfigError> {
        let own = given.text("charts-namespace").0;
        let namespace = if own.is_empty() { given.text("namespace").0 } else { own };
        let index_bytes = given.parse("charts-index-bytes", "a number of bytes, at least 1", |text| {
            text.parse().ok().filter(|bytes: &u64| *bytes > 0)
        })?;
        Ok(Self { namespace, index_max: count(given, "charts-index-max")?, index_bytes })
    }
}

fn count(given: &OptionSources, flag: &'static str) -> Result<usize, ConfigError> {
    given.parse(flag, "a number, at least 1", |text| text.parse().ok().filter(|count: &usize| *count > 0))
}

/// Returns the parts of a text with commas.
fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Returns the number of processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Refuses options that would do harm if they were ignored.
fn refuse(given: &OptionSources) -> Result<(), ConfigError> {
    if given.text("namespace").0.is_empty() {
        let advice =
            "set it or ADDON_OPERATOR_NAMESPACE to the namespace of the ConfigMap and of the releases";
        return Err(ConfigError::Missing { option: "--namespace", advice });
    }
    let unsupported =
        |option: &str, advice| Err(ConfigError::Unsupported { option: option.to_owned(), advice });
    let environment = given.environment();
    let helm2 = [
        "ADDON_OPERATOR_TILLER_LISTEN_PORT",
        "ADDON_OPERATOR_TILLER_PROBE_LISTEN_PORT",
        "TILLER_MAX_HISTORY",
        "TILLER_BIN_PATH",
        "HELM2",
    ];
    for name in helm2 {
        if environment.text(name).is_some_and(|value| !value.is_empty()) {
            return unsupported(name, "Helm 2 is not supported; move to Helm 3 and unset it");
        }
    }
    match environment.text("HELM_DRIVER") {
        None | Some("" | "secret" | "secrets") => Ok(()),
        Some(_) => unsupported("HELM_DRIVER", "releases are kept in Secrets; unset it"),
    }
}

/// Returns warnings about options that have no effect.
fn warnings(environment: &Environment, crd_filters: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if environment.text("USE_NELM").and_then(parse_bool) == Some(true) {
        warnings.push("USE_NELM has no effect: charts are installed by the built-in engine".to_owned());
    }
    if crd_filters.split(',').any(|prefix| prefix.trim().is_empty()) {
        warnings.push("an empty prefix in --crd-filters matches every file: no CRD is installed".to_owned());
    }
    warnings
}

fn limit(duration: Duration) -> Option<Duration> {
    (duration > Duration::ZERO).then_some(duration)
}

fn parse_rate(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0)
}

pub(super) fn parse_level(text: &str) -> Option<tracing::Level> {
    match text.to_ascii_lowercase().as_str() {
        "fatal" | "critical" | "none" => Some(tracing::Level::ERROR),
        "warning" => Some(tracing::Level::WARN),
        level => level.parse().ok(),
    }
}

fn parse_labels(text: &str) -> Option<BTreeMap<String, String>> {
    let pair = |part: &str| {
        part.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(flags: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let flags = flags.iter().chain(&[("namespace", "ops")]);
        let flags = flags.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let environment = variables
            .iter()
            .fold(Environment::default(), |environment, (name, text)| environment.with(name, *text));
        Settings::new(&OptionSources::new(flags, environment))
    }

    #[test]
    fn slip_19_files_are_watched_and_an_answer_to_config_takes_ten_seconds_at_most() {
        let usual = settings(&[], &[]).unwrap();
        assert_eq!((usual.watch_files, usual.hook_config_timeout), (true, Duration::from_secs(10)));
        assert!(!settings(&[("watch-files", "false")], &[]).unwrap().watch_files);
        assert!(!settings(&[], &[("ADDON_OPERATOR_WATCH_FILES", "false")]).unwrap().watch_files);
    }

    #[test]
    fn slip_11_the_limit_of_hooks_is_high_and_not_zero() {
        assert!(settings(&[], &[]).unwrap().max_hooks >= 64);
        assert!(settings(&[("max-hooks", "0")], &[]).is_err());
    }

    #[test]
    fn enabled_scripts_run_one_after_the_other_or_some_at_a_time() {
        let concurrency =
            |flags: &[(&str, &str)]| settings(flags, &[]).map(|given| given.enabled_concurrency);
        assert_eq!(concurrency(&[]).unwrap(), 4);
        assert_eq!(concurrency(&[("enabled-concurrency", "1")]).unwrap(), 1);
        assert!(concurrency(&[("enabled-concurrency", "0")]).is_err());
    }

    #[test]
    fn flags_win_over_prefixed_variables_over_old_spellings_over_defaults() {
        let dirs = |flags: &[(&str, &str)], variables: &[(&str, &str)]| {
            settings(flags, variables).unwrap().modules_dirs
        };
        assert_eq!(dirs(&[], &[]), [PathBuf::from("modules")]);
        assert_eq!(dirs(&[], &[("MODULES_DIR", "/a:/b")]), [PathBuf::from("/a"), PathBuf::from("/b")]);
        let both = [("MODULES_DIR", "/old"), ("ADDON_OPERATOR_MODULES_DIR", "/new")];
        assert_eq!(dirs(&[], &both), [PathBuf::from("/new")]);
        assert_eq!(dirs(&[("modules-dir", "/flag")], &both), [PathBuf::from("/flag")]);
        assert_eq!(dirs(&[], &[("MODULES_DIR", "")]), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_malformed_option_names_who_set_it_and_what_would_do() {
        let error = settings(&[], &[("ADDON_OPERATOR_RETRY_DELAY", "soon")]).unwrap_err().to_string();
        assert_eq!(
            error,
            "configuration error: retry-delay (ADDON_OPERATOR_RETRY_DELAY) is \"soon\": expected a duration like 5s, 500ms or 1m30s"
        );
        for (limits, problem) in [
            ("cpu=9m", "strict, with commas between them; cpu: should be an amount of CPUs from 10m to 1000"),
            ("memory=2Ti", "; memory: should be an amount of bytes from 4Mi to 1Ti"),
            ("foo=1", "; there is no key"),
        ] {
            let error = settings(&[("hook-limits", limits)], &[]).unwrap_err().to_string();
            assert!(error.contains(problem), "{limits}: {error}");
        }
        assert!(settings(&[("prometheus-listen-port", "70000")], &[]).is_err());
        assert!(settings(&[("module-concurrency", "0")], &[]).is_err());
        assert!(settings(&[("retry-delay", "-5s")], &[]).is_err());
    }

    #[test]
    fn options_whose_silence_would_do_harm_are_refused_by_name() {
        for (name, value) in [
            ("ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS", "Static,Script"),
            ("HELM_DRIVER", "sql"),
            ("TILLER_BIN_PATH", "/tiller"),
        ] {
            assert!(settings(&[], &[(name, value)]).is_err(), "{name}");
        }
        assert_eq!(settings(&[], &[("USE_NELM", "true")]).unwrap().warnings.len(), 1);
    }

    #[test]
    fn levels_and_durations_are_read_as_users_write_them() {
        assert_eq!(settings(&[], &[("RLOG_LOG_LEVEL", "DEBUG")]).unwrap().log_level, tracing::Level::DEBUG);
        assert_eq!(
            settings(&[("helm-timeout", "1h30m")], &[]).unwrap().helm_timeout,
            Duration::from_mins(90)
        );
        assert_eq!(settings(&[("hook-timeout", "0")], &[]).unwrap().hook_timeout, None);
    }
}
