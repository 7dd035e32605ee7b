//! The command line of `addon-operator template`, which is that of `helm template`.

/// Arguments of `addon-operator template`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct TemplateArgs {
    /// Name of the release, then the chart; a chart alone is rendered as `release-name`.
    #[arg(num_args = 1.., required = true, value_names = ["NAME", "CHART"])]
    pub(super) name_and_chart: Vec<String>,
    /// Namespace of the release.
    #[arg(short, long, default_value = "default")]
    pub(super) namespace: String,
    /// Files with values; the last one wins.
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub(super) values: Vec<String>,
    /// Values as `key=value,…`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Values that are texts.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set_string: Vec<String>,
    /// Values that are JSON.
    #[arg(long, value_name = "KEY=JSON")]
    pub(super) set_json: Vec<String>,
    /// Values that are the content of files.
    #[arg(long, value_name = "KEY=FILE")]
    pub(super) set_file: Vec<String>,
    /// One value that is taken literally.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set_literal: Vec<String>,
    /// Version of Kubernetes for `.Capabilities`.
    #[arg(long, value_name = "VERSION")]
    pub(super) kube_version: Option<String>,
    /// Versions of APIs for `.Capabilities`.
    #[arg(short, long, value_name = "VERSION")]
    pub(super) api_versions: Vec<String>,
    /// Print the files of `crds/` too.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(super) include_crds: Option<String>,
    /// Set `.Release.IsUpgrade`.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(super) is_upgrade: Option<String>,
    /// Print only what these templates render to.
    #[arg(short, long, value_name = "FILE")]
    pub(super) show_only: Vec<String>,
    /// Leave test hooks out.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(super) skip_tests: Option<String>,
    /// Leave hooks out.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(super) no_hooks: Option<String>,
    /// Do not check values against `values.schema.json`.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(super) skip_schema_validation: Option<String>,
    /// Accepted for the sake of scripts; a cluster is never asked.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide = true, value_name = "BOOL")]
    pub(super) validate: Option<String>,
}
