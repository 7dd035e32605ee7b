//! The command line: parses the arguments, runs the command, returns the exit code.

mod arguments;
mod chart;
mod client;
mod color;
mod commands;
mod hook;
mod module_test;
mod output;
mod registry;
mod request;
mod source;
mod tables;
mod test;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::app::{self, Outcome, Surroundings};
use crate::config::{ElectionMode, Environment, LogType, OptionSources, Settings, settings};
use crate::dev::{self, Dev};
use crate::fence::Fence;
use crate::helm::template::TemplateArgs;
use crate::process::{guard, memory};
use crate::telemetry::log::Log;
use crate::telemetry::progress_bar;

use output::{CLUSTER_AWAY, FAILED, MISCONFIGURED, OK, complain, print};

pub use commands::command;

/// The variable by which everything is known that a replica starts.
const MARK: &str = "ADDON_OPERATOR_INSTANCE";

/// Runs the program with these arguments and returns its exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    crate::helm::render_thread::quiet_yaml_panics();
    if let Some(arguments) = jq_arguments(&arguments) {
        return hook::jq(&arguments);
    }
    if arguments.get(1).is_some_and(|name| name == guard::COMMAND) {
        let is_understood = guard::run(arguments.get(2..).unwrap_or_default());
        return if is_understood { OK } else { MISCONFIGURED };
    }
    // Most of the time of `template` would go into the descriptions of all other commands.
    let is_template = arguments.get(1).is_some_and(|name| name == "template");
    let command = if is_template { commands::template_alone() } else { command() };
    let matches = match command.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(MISCONFIGURED);
        }
    };
    match matches.subcommand() {
        None => start(&matches),
        Some(("start", inner)) => start(inner),
        Some(("dev", inner)) => dev(inner),
        Some(("apiserver", inner)) => api_server(inner),
        Some(("template", inner)) => template(inner),
        Some(("hook", inner)) => hook::run(inner),
        Some(("test", inner)) => test::run(inner),
        Some(("source", inner)) => source::run(&matches, inner),
        Some(("chart", inner)) => chart::run(&matches, inner),
        Some(("crds", _)) => print(crate::source::CRDS),
        Some(("version", _)) => print(&format!("addon-operator {}\n", env!("CARGO_PKG_VERSION"))),
        Some(("debug-options", _)) => debug_options(),
        Some(("completion", inner)) => completion(inner),
        Some(("module", inner)) if inner.subcommand_name() == Some("test") => {
            module_test::run(&matches, inner)
        }
        Some((name, inner)) => client::run(&matches, name, inner),
    }
}

/// Returns the arguments for `jq`, if the program was started under that name or as `hook jq`.
///
/// The options are those of `jq`, which the parser of this program does not know.
fn jq_arguments(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let name = Path::new(arguments.first()?).file_name()?;
    if name == "jq" {
        return Some(arguments.iter().skip(1).cloned().collect());
    }
    let is_command = arguments.get(1)? == "hook" && arguments.get(2)? == "jq";
    is_command.then(|| arguments.iter().skip(3).cloned().collect())
}

/// Renders a chart as `helm template` does.
fn template(matches: &ArgMatches) -> u8 {
    match TemplateArgs::from_arg_matches(matches) {
        Ok(arguments) => {
            if crate::helm::template::run(&arguments) == ExitCode::SUCCESS {
                OK
            } else {
                FAILED
            }
        }
        Err(error) => complain(&error.into()),
    }
}

/// Returns the options of the command line, by flag.
pub fn flags(matches: &ArgMatches) -> BTreeMap<String, String> {
    let typed = |flag: &str| {
        let is_typed = matches.value_source(flag) == Some(ValueSource::CommandLine);
        let texts = is_typed.then(|| matches.get_many::<String>(flag)).flatten()?;
        Some(texts.map(String::as_str).collect::<Vec<_>>().join(","))
    };
    settings().filter_map(|setting| Some((setting.flag.to_owned(), typed(setting.flag)?))).collect()
}

fn start(matches: &ArgMatches) -> u8 {
    memory::share_heap();
    let given = OptionSources::new(flags(matches), Environment::of_process());
    let once = matches.try_get_one::<bool>("once").ok().flatten().copied().unwrap_or(false);
    let takes_back =
        matches.try_get_one::<bool>("uninstall-webhooks").ok().flatten().copied().unwrap_or(false);
    operate(&given, LogType::Json, |settings, shutdown| async move {
        if takes_back {
            return app::uninstall_webhooks(&settings).await;
        }
        let (environment, fence) = fenced(Environment::of_hooks(), &settings);
        let app::Clients { client, patcher, request_metrics, api_server } =
            app::clients(&settings, &fence).await?;
        let around = Surroundings {
            settings,
            environment,
            client,
            patcher,
            request_metrics,
            fence,
            api_server,
            once,
            any_port: false,
            shutdown,
        };
        app::run(around, |address| tracing::info!("listening on {address}")).await
    })
}

/// Returns what keeps this process from acting when another one may, and an environment in which its hooks are known by a mark.
fn fenced(environment: Environment, settings: &Settings) -> (Environment, Fence) {
    match settings.election.mode {
        ElectionMode::Off | ElectionMode::Warn => (environment, Fence::none()),
        ElectionMode::Refuse | ElectionMode::Standby => {
            let name = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
            (environment.with(MARK, &name), Fence::marked(format!("{MARK}={name}")))
        }
    }
}

fn dev(matches: &ArgMatches) -> u8 {
    let state_dir = PathBuf::from(matches.get_one::<String>("state-dir").cloned().unwrap_or_default());
    let (once, reset) = (matches.get_flag("once"), matches.get_flag("reset"));
    let socket = std::path::absolute(state_dir.join("debug.socket")).unwrap_or_default();
    let given = OptionSources::new(flags(matches), Environment::of_process());
    let given =
        dev::with_defaults(given, &state_dir).default_to("debug-unix-socket", socket.to_string_lossy());
    let terminal = std::io::stdout().is_terminal();
    let form = if terminal { LogType::Color } else { LogType::Text };
    if terminal && std::io::stderr().is_terminal() {
        progress_bar::open();
    }
    let has_hooks_dir = given.is_given("global-hooks-dir");
    operate(&given, form, |settings, shutdown| {
        // Whoever tries a module out need not have global hooks.
        let settings = Settings { global_hooks_optional: !has_hooks_dir, ..settings };
        dev::run(Dev { settings, environment: Environment::of_hooks(), state_dir, reset, once, shutdown })
    })
}

/// Checks the settings, opens the log, handles signals, runs, and returns the exit code.
fn operate<F>(
    given: &OptionSources,
    form: LogType,
    run: impl FnOnce(Settings, watch::Receiver<bool>) -> F,
) -> u8
where
    F: Future<Output = anyhow::Result<Outcome>> + Send + 'static,
{
    let settings = match Settings::new(given) {
        Ok(settings) => settings,
        Err(error) => return complain(&error.into()),
    };
    // Two providers of cryptography would make the choice a panic; there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // One thread: an event, its decision and the end of its run follow each other, and waking another thread for each step takes
    // longer than most steps. What may take long has threads of its own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    let log = Log::open(settings.log_type.unwrap_or(form), settings.log_level, settings.log_no_time);
    let outcome = runtime.block_on(async {
        let shutdown = signals()?;
        let _orphans = crate::process::adopt()?;
        Box::pin(run(settings, shutdown)).await
    });
    log.close();
    let code = match outcome {
        Ok(Outcome::Done) => OK,
        Ok(Outcome::ClusterAway) => CLUSTER_AWAY,
        Ok(Outcome::NotConverged) => FAILED,
        Err(error) => complain(&error),
    };
    // Up to here a second signal ends the process, whatever can't be written.
    runtime.shutdown_background();
    crate::process::end_all();
    code
}

/// Returns a flag that becomes true at the first SIGTERM or SIGINT; a second signal ends the process at once.
fn signals() -> std::io::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (requested, shutdown) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let number = tokio::select! {
                _ = terminate.recv() => libc::SIGTERM,
                _ = interrupt.recv() => libc::SIGINT,
            };
            if requested.send_replace(true) {
                crate::process::end_all();
                std::process::exit(128 + number);
            }
            tracing::info!("ending; a second signal ends at once");
        }
    });
    Ok(shutdown)
}

fn api_server(matches: &ArgMatches) -> u8 {
    let text = |id: &str| matches.get_one::<String>(id).cloned().unwrap_or_default();
    let path = |id: &str| matches.get_one::<String>(id).map(PathBuf::from);
    let Ok(listen) = text("listen").parse() else {
        return complain(&anyhow::anyhow!(
            "--listen {:?} is not an address with a port, like 127.0.0.1:6443",
            text("listen")
        ));
    };
    let options = apiserver::Options {
        listen,
        kubeconfig_out: text("kubeconfig-out").into(),
        simulate: matches.get_flag("simulate").then_some(dev::SIMULATED),
        state: path("state"),
        audit: path("audit"),
    };
    let given = OptionSources::new(BTreeMap::new(), Environment::of_process())
        .default_to("namespace", dev::NAMESPACE);
    operate(&given, LogType::Text, |_, _| async move {
        apiserver::run(options).await?;
        Ok(Outcome::Done)
    })
}

/// Writes the completion of a shell.
fn completion(matches: &ArgMatches) -> u8 {
    let Some(shell) = matches.get_one::<clap_complete::Shell>("shell") else { return MISCONFIGURED };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut command(), "addon-operator", &mut script);
    print(&String::from_utf8_lossy(&script))
}

fn debug_options() -> u8 {
    let mut text = "usage: addon-operator start [flags]\n\nDebug flags:\n".to_owned();
    for setting in settings().filter(|setting| setting.flag.starts_with("debug-")) {
        let _ = writeln!(text, "  --{:24} {}", setting.flag, setting.help);
    }
    print(&text)
}
