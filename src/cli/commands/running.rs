//! The commands that ask a running operator.

use clap::{Arg, Command};

use crate::cli::arguments::{argument, option, switch};

/// Returns all commands that ask a running operator.
pub(super) fn commands() -> Vec<Command> {
    vec![status(), why(), journal(), graph(), queue(), config(), global(), module(), converge(), raw()]
}

fn status() -> Command {
    Command::new("status")
        .about("Show everything on one screen: modules, queues, watches, and what needs attention")
        .after_help("Examples:\n  addon-operator status\n  addon-operator status -o json | jq '.problems'\n\nExit code: 0 if the operator answers, whatever it says.")
        .arg(output(&["text", "json", "yaml"], "text"))
        .arg(socket())
}

fn why() -> Command {
    let about = |name: &'static str, about: &'static str, value: &'static str| {
        let not_empty = clap::builder::NonEmptyStringValueParser::new();
        let which = argument("name", value, "Which one").required(true).value_parser(not_empty);
        Command::new(name).about(about).arg(which).arg(output(&["text", "json", "yaml"], "text"))
    };
    Command::new("why")
        .about("Explain why a module is on or off, why a queue is stuck, why a module source failed, why a task exists")
        .after_help(
            "Examples:\n  addon-operator why module cert-manager   who said what, the last one wins; what it waits for\n  \
             addon-operator why queue main            what blocks the first task, since when, when it is tried again\n  \
             addon-operator why source platform       what is wrong with a module source, when it is tried again\n  \
             addon-operator why task t42              what led to it (journal and log show the numbers)",
        )
        .subcommand_required(true)
        .arg(socket().global(true))
        .subcommands([
            about("module", "Why a module is on or off, and what it is doing", "NAME"),
            about("queue", "What blocks a queue, and what waits behind it", "NAME"),
            about("source", "Why a module source is pending or failed, and when it is tried again", "NAME"),
            about("task", "What led to a task, and what became of it", "ID"),
        ])
}

fn journal() -> Command {
    Command::new("journal")
        .about("Show the last tasks that ended, with cause, length and outcome (the last 1,000 are kept)")
        .after_help("Examples:\n  addon-operator journal -n 20\n  addon-operator journal --follow\n  addon-operator journal -o json | jq '.ends[] | select(.outcome == \"failed\")'")
        .args([
            switch("follow", "Go on with those that end from now on, until interrupted").short('f'),
            option("lines", "N", "Show only that many of the past")
                .short('n')
                .value_parser(clap::value_parser!(usize)),
            output(&["text", "json", "yaml"], "text"),
            socket(),
        ])
}

fn graph() -> Command {
    Command::new("graph")
        .about("Draw the modules in the order in which they run")
        .after_help("Examples:\n  addon-operator graph -o svg > modules.svg\n  addon-operator graph | dot -Tpng > modules.png")
        .arg(output(&["dot", "svg"], "dot"))
        .arg(socket())
}

fn converge() -> Command {
    Command::new("converge")
        .about("Discover which modules are on and run all of them again")
        .after_help("Enabled scripts are asked again, too. Releases whose charts render to the same stay as they are.")
        .arg(socket())
}

fn queue() -> Command {
    let list = Command::new("list").about("Show all queues").args([
        switch("show-empty", "Show empty queues, too").short('e'),
        switch("watch", "Show them again and again, until interrupted").short('w'),
        option("watchInterval", "DURATION", "How often they are shown again").short('t').default_value("1s"),
    ]);
    group("queue", "Show what waits and runs")
        .after_help("Examples:\n  addon-operator queue list --watch\n  addon-operator queue list -o json | jq '.active[].tasks[0]'\n  addon-operator why queue main")
        .subcommands([
            list.arg(format("text")),
            Command::new("main").about("Show the main queue").arg(format("text")),
        ])
}

fn config() -> Command {
    let set = Command::new("set").about("Change a parameter, for a while or until the operator ends").args([
        argument("name", "NAME", "The parameter, as `config list` shows it").required(true),
        argument("value", "VALUE", "Its new value").required(true),
        argument("duration", "DURATION", "How long it lasts, like 10m; debug lasts 30m if nothing is said"),
    ]);
    group("config", "Show and change parameters of a running operator")
        .after_help("Examples:\n  addon-operator config list\n  addon-operator config set log.level debug 10m\n  addon-operator config set log.level info")
        .subcommands([Command::new("list").about("Show all parameters").arg(format("text")), set])
}

/// The switch of commands that show values.
fn show_secrets() -> Arg {
    switch("show-secrets", "Show the values that come from the Secret over the ConfigMap, too")
}

fn global() -> Command {
    let show = |name: &'static str, about: &'static str, default: &'static str| {
        Command::new(name).about(about).arg(format(default))
    };
    group("global", "Show global hooks and values")
        .after_help("Examples:\n  addon-operator global values -o json\n  addon-operator global snapshots")
        .subcommands([
            show("list", "List the global hooks", "yaml"),
            show("values", "Show the global values", "yaml").arg(show_secrets()),
            show("config", "Show the global values that the user configured", "yaml").arg(show_secrets()),
            show("patches", "Show the patches that hooks made", "json").arg(show_secrets()),
            show("snapshots", "Show the snapshots of global hooks", "yaml").arg(show_secrets()),
        ])
}

fn module() -> Command {
    let named = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).arg(argument("name", "MODULE", "The module").required(true))
    };
    let global_too = switch("global", "Show the global section, too").short('g');
    let monitor = Command::new("resource-monitor")
        .about("Show which objects are watched for each module that is on")
        .arg(argument("name", "MODULE", "Accepted and ignored, as ever"));
    group("module", "Show modules and switch them")
        .after_help(
            "Examples:\n  addon-operator module list\n  addon-operator module values web -o json\n  addon-operator module render web --diff\n  \
             addon-operator module disable web\n  addon-operator why module web",
        )
        .subcommands([
            Command::new("list").about("List the modules that are on").arg(format("yaml")),
            named("status", "Explain why a module is on or off, and what it is doing").arg(format("text")),
            named("values", "Show the values of a module")
                .args([format("yaml"), global_too.clone(), show_secrets()]),
            named("config", "Show the values that the user configured")
                .args([format("yaml"), global_too, show_secrets()]),
            named("patches", "Show the patches that hooks made").args([format("json"), show_secrets()]),
            named("snapshots", "Show the snapshots of a module's hooks")
                .args([format("yaml"), show_secrets()]),
            named("render", "Show what the chart renders to")
                .arg(show_secrets())
                .arg(switch("debug", "Show all that led to an error"))
                .arg(switch("diff", "Show how that differs from what is in the cluster; changes nothing")),
            monitor.arg(format("yaml")),
            named("history", "Show the revisions of the release"),
            Command::new("releases").about("List the releases"),
            named("enable", "Switch a module on, in the ConfigMap"),
            named("disable", "Switch a module off, in the ConfigMap"),
            named("run", "Run a module now"),
            super::super::module_test::command(named("test", "Run the tests of the chart, which are hooks of its release")).arg(format("text")),
            named("resume", "Take up a parked module again"),
            named("purge", "Remove the release of a module whose directory is gone"),
        ])
}

/// Returns the commands about sources that ask a running operator.
pub(super) fn source() -> Vec<Command> {
    vec![
        Command::new("list")
            .about("List module sources: phase, modules, when each was processed and will be again, what is wrong")
            .args([format("text"), socket()]),
        Command::new("pause")
            .about("Suspend a module source until it is resumed: sets spec.suspend of its object; a deletion is carried out")
            .args([source_name(), socket()]),
        Command::new("resume")
            .about("Have a suspended module source looked after again: takes spec.suspend of its object back")
            .args([source_name(), socket()]),
        Command::new("sync")
            .about("Have a module source processed again now: raises spec.reprocessRequest of its object")
            .args([source_name(), socket()]),
    ]
}

/// Returns the arguments of `source plan` beside its file.
pub(super) fn source_plan() -> [Arg; 3] {
    [format("text"), show_secrets(), socket()]
}

fn source_name() -> Arg {
    argument("name", "NAME", "Its name; NAMESPACE/NAME or KIND/NAME where there are several").required(true)
}

/// Returns the commands about charts that ask a running operator.
pub(super) fn chart() -> Vec<Command> {
    vec![
        Command::new("list")
            .about("List Charts: what their constraints took, the highest version, the module that each is for, what is wrong")
            .args([format("text"), socket()]),
        Command::new("outdated")
            .about("List the modules for whose chart there is something newer: what fits, and what the repository has")
            .args([format("text"), socket()]),
        Command::new("versions")
            .about("List the versions of a chart that its repository offers, and which of them are kept")
            .args([chart_name(), format("text"), socket()]),
        Command::new("values")
            .about("Show the default values of a version that is kept: what can be set")
            .args([chart_name(), chart_version(), socket()]),
        Command::new("plan")
            .about("Show what another version of a module's chart would change in the cluster; writes nothing")
            .args([
                argument("name", "MODULE", "The module").required(true),
                chart_version(),
                switch("show-secrets", "Show the values of the Secret"),
                socket(),
            ]),
        Command::new("pull")
            .about("Write the archive of a version that is kept into a file, byte for byte as it was published")
            .args([
                chart_name(),
                chart_version(),
                option("output-dir", "DIR", "Where the archive goes")
                    .short('d')
                    .default_value(".")
                    .value_parser(clap::value_parser!(std::path::PathBuf)),
                socket(),
            ]),
    ]
}

/// Returns the argument that names a chart.
fn chart_name() -> Arg {
    argument("name", "NAME", "A module, a Chart, or REPOSITORY/CHART").required(true)
}

/// Returns the option with a version.
fn chart_version() -> Arg {
    option(
        "version",
        "VERSION",
        "The version, or a constraint; the one that is pinned or kept first, when left out",
    )
}

fn raw() -> Command {
    Command::new("raw")
        .about("Get a path from the debugging socket")
        .after_help(
            "Examples:\n  addon-operator raw /discovery\n  addon-operator raw /module/web/values.json",
        )
        .arg(argument("path", "PATH", "The path").default_value("/"))
        .arg(socket())
}

/// A command whose commands all take the socket, before or after their name.
fn group(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).subcommand_required(true).arg(socket().global(true))
}

fn format(default: &'static str) -> Arg {
    output(&["json", "yaml", "text"], default)
}

fn output(formats: &[&'static str], default: &'static str) -> Arg {
    option("output", "FORMAT", "The format")
        .short('o')
        .value_parser(clap::builder::PossibleValuesParser::new(formats.iter().copied()))
        .default_value(default)
}

fn socket() -> Arg {
    option("debug-unix-socket", "FILE", "The socket of the operator")
}
