//! All commands with their arguments and help texts.

mod running;

use std::ffi::OsStr;
use std::path::Path;

use clap::builder::styling::Styles;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Args, Command};

use super::arguments::{argument, option, switch};
use crate::config::{self, DURATION, OptionSources, SECTIONS, Setting};
use crate::dev;
use crate::helm::template::TemplateArgs;

/// Returns the whole command line.
pub fn command() -> Command {
    bare()
        .about("Turns modules (a Helm chart, shell hooks and values) into addons of a Kubernetes cluster")
        .after_help(EXAMPLES)
        .args(settings())
        .subcommand(start())
        .subcommand(dev())
        .subcommand(apiserver())
        .subcommand(template())
        .subcommand(hook())
        .subcommand(super::test::command())
        .subcommand(crds())
        .subcommand(Command::new("version").about("Print the version"))
        .subcommand(Command::new("debug-options").about("Print the options for debugging").hide(true))
        .subcommand(completion())
        .subcommand(super::source::command(running::source(), running::source_plan()))
        .subcommand(super::chart::command(running::chart()))
        .subcommands(running::commands())
}

/// Returns the command line of a program that can do nothing but `template`.
pub(super) fn template_alone() -> Command {
    bare().subcommand(template())
}

fn bare() -> Command {
    Command::new("addon-operator").version(env!("CARGO_PKG_VERSION")).styles(Styles::styled())
}

const EXAMPLES: &str = "\
Try it without a cluster:
  addon-operator dev

Look at an operator that runs:
  addon-operator status                     everything on one screen, with what needs attention
  addon-operator why module cert-manager    who switched it on or off, what it waits for, what to do
  addon-operator why queue main             what blocks the queue, since when, what waits behind it
  addon-operator journal --follow           what happens, with causes
  addon-operator module values cert-manager the values that its hooks and its chart see

In a cluster:
  kubectl -n NAMESPACE exec deploy/addon-operator -- addon-operator status";

/// Prints the kinds that the operator watches.
fn crds() -> Command {
    Command::new("crds")
        .about("Print the CRDs of module sources, for kubectl apply")
        .after_help("Example:\n  addon-operator crds | kubectl apply -f -")
}

/// Writes what a shell needs to complete commands and options.
fn completion() -> Command {
    Command::new("completion")
        .about("Write the completion of a shell")
        .after_help("For this shell:\n  source <(addon-operator completion bash)\nFor all shells to come:\n  addon-operator completion bash > /etc/bash_completion.d/addon-operator")
        .arg(
            argument("shell", "SHELL", "Which shell")
                .required(true)
                .value_parser(clap::value_parser!(clap_complete::Shell)),
        )
}

fn start() -> Command {
    Command::new("start")
        .about("Run the operator in a cluster (also what runs without a command)")
        .after_help(
            "Examples:\n  addon-operator start --modules-dir /modules --namespace addons\n  \
             addon-operator start --kube-config ~/.kube/config --namespace addons\n\n\
             Each option has an environment variable; the option is stronger.",
        )
        .args(settings())
        .arg(once())
        .arg(switch(
            "uninstall-webhooks",
            "Take back what an operator with these options told the API server of webhooks, and end",
        ))
}

fn dev() -> Command {
    Command::new("dev")
        .about("Run the operator with a cluster of its own in this process; touches no other cluster")
        .after_help(
            "Examples:\n  addon-operator dev                   run modules/ and global-hooks/ of this directory, take up changes\n  \
             addon-operator dev --once            end when all modules have converged\n  \
             addon-operator dev --reset           begin with an empty cluster\n\n\
             In another terminal, in the same directory:\n  addon-operator status",
        )
        .args(dev_settings())
        .arg(once())
        .arg(
            option("state-dir", "DIR", "Where the cluster is kept between runs, with its kubeconfig")
                .default_value(STATE_DIR),
        )
        .arg(switch("reset", "Forget the cluster of earlier runs"))
}

/// Where `dev` keeps its cluster when nothing says so.
const STATE_DIR: &str = ".addon-operator";

/// Returns the options of `dev`, with the defaults that they have there.
fn dev_settings() -> Vec<Arg> {
    let defaults = dev::with_defaults(OptionSources::default(), Path::new(STATE_DIR));
    let with_default = |(setting, arg): (&Setting, Arg)| {
        let default = defaults.default_of(setting);
        // A few short texts, once in the life of the program.
        if default == setting.default { arg } else { arg.default_value(&*default.leak()) }
    };
    config::settings().zip(settings()).map(with_default).collect()
}

fn once() -> Arg {
    switch(
        "once",
        "End when all modules have converged; exit code 1 when a whole round of tries brought none further",
    )
}

fn apiserver() -> Command {
    let kubeconfig = option("kubeconfig-out", "FILE", "Where to write a kubeconfig for it");
    Command::new("apiserver").about("Run the embedded Kubernetes API server alone").args([
        option("listen", "ADDR", "Address and port where it listens; port 0 takes a free one")
            .default_value("127.0.0.1:6443"),
        kubeconfig.default_value("kubeconfig"),
        switch("simulate", "Let workloads become ready as if there were nodes"),
        option("state", "FILE", "Keep the cluster in this file"),
        option("audit", "FILE", "Write each request to this file, as JSON lines"),
    ])
}

fn template() -> Command {
    TemplateArgs::augment_args(Command::new("template"))
        .about("Render a chart as `helm template` does")
        .after_help(
            "Examples:\n  addon-operator template web ./chart -n shop -f values.yaml --set replicas=2\n  \
             addon-operator template web web-1.2.0.tgz --show-only templates/deployment.yaml",
        )
}

fn hook() -> Command {
    let path = || argument("path", "PATH", "The path: parts separated by dots, those with dots in quotes");
    let named =
        |name: &'static str, about: &'static str| Command::new(name).about(about).arg(path().required(true));
    let required = || switch("required", "Fail if there is no value");
    let config = || switch("config", "The values that users configure");
    let value = argument("value", "VALUE", "JSON, or else a text").required(true).allow_hyphen_values(true);
    Command::new("hook")
        .about("What hooks call: jq, values, binding contexts, the shell framework")
        .subcommand_required(true)
        .subcommands([
            Command::new("jq").about("Run a jq filter, with the options of jq").disable_help_flag(true).arg(
                argument("arguments", "ARGUMENT", "The options, the filter and the files")
                    .num_args(0..)
                    .trailing_var_arg(true)
                    .allow_hyphen_values(true)
                    .value_parser(clap::value_parser!(std::ffi::OsString)),
            ),
            Command::new("framework")
                .about("Write the shell framework: shell_lib.sh and frameworks/shell")
                .arg(
                    argument("directory", "DIR", "Where to")
                        .required(true)
                        .value_parser(clap::value_parser!(std::path::PathBuf)),
                ),
            Command::new("values")
                .about("Read and change the values of a hook")
                .subcommand_required(true)
                .subcommands([
                    Command::new("get").about("Print a value").arg(path()).arg(required()).arg(config()),
                    named("has", "Tell by the exit code whether there is a value").arg(config()),
                    named("set", "Change a value").arg(value).arg(config()),
                    named("unset", "Remove a value").arg(config()),
                ]),
            Command::new("context")
                .about("Read the binding context of a hook")
                .subcommand_required(true)
                .subcommands([
                    Command::new("get").about("Print a part of it").arg(path()).arg(required()),
                    named("has", "Tell by the exit code whether there is a value"),
                    named("is-true", "Tell by the exit code whether a value is true"),
                    named("is-false", "Tell by the exit code whether a value is false"),
                    named("is-null", "Tell by the exit code whether a value is null or missing"),
                ]),
        ])
}

/// Returns the options of `start` and `dev`.
///
/// `env` of clap shows the first variable of each, no more: it reads one variable, and an option can have three, of which
/// the prefixed one wins; and it reads those of the process, where tests give others. `OptionSources` looks them up.
fn settings() -> impl Iterator<Item = Arg> {
    SECTIONS
        .iter()
        .flat_map(|(heading, settings)| settings.iter().map(|setting| setting_option(setting, heading)))
}

fn setting_option(setting: &Setting, heading: &'static str) -> Arg {
    let value = if setting.is_switch() { "BOOL" } else { setting.value };
    let arg = option(setting.flag, value, setting.help)
        .help_heading(heading)
        .hide(setting.flag.starts_with("debug-"))
        .value_parser(Words(setting.words));
    let arg = if setting.default.is_empty() { arg } else { arg.default_value(setting.default) };
    let arg = match setting.variables {
        [first, ..] => arg.env(first).hide_env_values(true),
        [] => arg,
    };
    // Who gives an option under two of its names means the last one.
    let others: Vec<&'static str> = setting.other_flags().map(|flag| &*flag.leak()).collect();
    let arg = match others.as_slice() {
        [] => arg,
        _ if setting.is_list() => arg.aliases(others),
        _ => arg.aliases(others).overrides_with(setting.flag),
    };
    let arg = if setting.is_list() { arg.action(ArgAction::Append) } else { arg };
    if setting.is_switch() {
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg.num_args(1).allow_hyphen_values(setting.value != DURATION)
    }
}

/// Shows the words that an option can be, and accepts any: what is wrong is refused with all other options, in `Settings`.
#[derive(Clone)]
struct Words(&'static [&'static str]);

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<String, clap::Error> {
        // What a variable says is not used from here.
        if source == ValueSource::EnvVariable {
            Ok(String::new())
        } else {
            self.parse_ref(command, arg, value)
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = (!self.0.is_empty()).then(|| self.0.iter().copied().map(PossibleValue::new))?;
        Some(Box::new(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_help_of_dev_shows_the_defaults_of_dev() {
        let mut command = command();
        let help = |command: &mut Command, name: &str| {
            command.find_subcommand_mut(name).unwrap().render_long_help().to_string()
        };
        let (start, dev) = (help(&mut command, "start"), help(&mut command, "dev"));
        let (of_start, of_dev) = ("[default: /tmp/addon-operator]", "[default: .addon-operator/tmp]");
        assert!(start.contains(of_start) && !dev.contains(of_start), "{start}");
        assert!(dev.contains(of_dev) && !start.contains(of_dev), "{dev}");
        assert!(dev.contains("[default: addon-operator]"), "the namespace has a default");
    }

    #[test]
    fn flags_of_both_servers_of_shell_operator_mean_one_and_the_last_counts() {
        let given = [
            ("--validating-webhook-listen-port", "1"),
            ("--conversion-webhook-listen-port", "2"),
            ("--validating-webhook-server-cert", "a"),
            ("--validating-webhook-client-ca", "b"),
            ("--conversion-webhook-client-ca", "c"),
        ];
        let line = given.iter().flat_map(|(flag, text)| [*flag, *text]);
        let matches =
            command().try_get_matches_from(["addon-operator", "start"].into_iter().chain(line)).unwrap();
        let flags = super::super::flags(matches.subcommand().unwrap().1);
        let flag = |name: &str| flags.get(name).map(String::as_str);
        assert_eq!(flag("admission-server-listen-port"), Some("2"));
        assert_eq!(
            (flag("admission-server-cert"), flag("admission-server-client-ca")),
            (Some("a"), Some("b,c"))
        );
    }

    #[test]
    fn options_work_with_and_without_the_word_start() {
        for line in [
            &["addon-operator", "--modules-dir", "m"][..],
            &["addon-operator", "start", "--modules-dir", "m"][..],
        ] {
            let matches = command().try_get_matches_from(line).unwrap();
            let inner = matches.subcommand().map_or(&matches, |(_, inner)| inner);
            assert_eq!(super::super::flags(inner).get("modules-dir").map(String::as_str), Some("m"));
        }
    }
}
