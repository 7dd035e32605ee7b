//! `addon-operator template`: prints what a chart renders to, as `helm template` does.

use std::io::{self, Write as _};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use chart::chart::Chart;
use chart::flags::ValueFlags;
use chart::object::{Capabilities, KubeVersion};
use chart::printout::Printout;
use chart::render::{Cache, Release, RenderError, Request};
use chart::template::Limits;
use chart::warning::Warnings;

use super::files;
use super::stack;
use super::world::LocalWorld;

/// Arguments of `addon-operator template`.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct TemplateArgs {
    /// Name of the release, then the chart; a chart alone is rendered as `release-name`.
    #[arg(num_args = 1..=2, required = true, value_names = ["NAME", "CHART"])]
    name_and_chart: Vec<String>,
    /// Namespace of the release.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Files with values; the last one wins.
    #[arg(short = 'f', long = "values", value_delimiter = ',')]
    values: Vec<String>,
    /// Values as `key=value,…`.
    #[arg(long)]
    set: Vec<String>,
    /// Values that are texts.
    #[arg(long)]
    set_string: Vec<String>,
    /// Values that are JSON.
    #[arg(long)]
    set_json: Vec<String>,
    /// Values that are the content of files.
    #[arg(long)]
    set_file: Vec<String>,
    /// One value that is taken literally.
    #[arg(long)]
    set_literal: Vec<String>,
    /// Version of Kubernetes for `.Capabilities`.
    #[arg(long)]
    kube_version: Option<String>,
    /// Versions of APIs for `.Capabilities`.
    #[arg(short, long, value_delimiter = ',')]
    api_versions: Vec<String>,
    /// Print the files of `crds/` too.
    #[arg(long)]
    include_crds: bool,
    /// Set `.Release.IsUpgrade`.
    #[arg(long)]
    is_upgrade: bool,
    /// Print only what these templates render to.
    #[arg(short, long, value_delimiter = ',')]
    show_only: Vec<String>,
    /// Leave test hooks out.
    #[arg(long)]
    skip_tests: bool,
    /// Leave hooks out.
    #[arg(long)]
    no_hooks: bool,
    /// Do not check values against `values.schema.json`.
    #[arg(long)]
    skip_schema_validation: bool,
    /// Accepted for the sake of scripts; a cluster is never asked.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide = true)]
    validate: Option<bool>,
}

/// From how many templates on a second thread is worth its start.
const MANY_TEMPLATES: usize = 16;

/// Prints what the chart renders to, or what is wrong with it.
pub fn run(args: &TemplateArgs) -> ExitCode {
    let mut warnings = Warnings::default();
    let outcome = print(args, &mut warnings);
    let mut stderr = io::stderr().lock();
    for warning in warnings.lines() {
        let _ = writeln!(stderr, "{warning}");
    }
    let outcome = outcome.and_then(|text| {
        io::stdout().write_all(text.as_bytes()).map_err(|error| format!("can not write the output: {error}"))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(stderr, "Error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn print(args: &TemplateArgs, warnings: &mut Warnings) -> Result<String, String> {
    let kube_version = match &args.kube_version {
        Some(text) => {
            KubeVersion::parse(text).map_err(|error| format!("invalid kube version '{text}': {error}"))?
        }
        None => KubeVersion::default(),
    };
    if args.validate == Some(true) {
        return Err("--validate needs a cluster, which this command never asks".to_owned());
    }
    let (name, path) = match args.name_and_chart.as_slice() {
        [name, path] => (name.as_str(), path),
        [path] => ("release-name", path),
        _ => return Err("expected a name and a chart".to_owned()),
    };
    let values = value_flags(args).merged(&mut |path| read(path)).map_err(|error| error.to_string())?;
    let chart = files::open(path.as_ref(), warnings).map_err(|error| error.to_string())?;
    chart::release_name(name).map_err(|error| error.to_string())?;
    let mut capabilities = Capabilities::without_cluster(kube_version);
    capabilities.api_versions.extend(args.api_versions.iter().cloned());
    let release = Release {
        name: name.to_owned(),
        namespace: args.namespace.clone(),
        revision: 1,
        is_upgrade: args.is_upgrade,
    };
    let request = Request {
        values: &values,
        release: &release,
        capabilities: &capabilities,
        limits: Limits::default(),
        validate: !args.skip_schema_validation,
    };
    // The process ends when this is printed; nothing has to be given back to the allocator.
    let (chart, mut cache) = (ManuallyDrop::new(chart), ManuallyDrop::new(Cache::default()));
    let rendered = stack::with(|| {
        stack::take_memory_at_once();
        parse_by_two(&chart, &mut cache);
        chart::render::render(&chart, &request, &mut cache, &mut LocalWorld::default(), warnings)
    });
    let rendered = rendered.map_err(|error| error.to_string())?.map_err(|error| told(&error))?;
    let rendered = ManuallyDrop::new(rendered);
    let printout = Printout {
        crds: args.include_crds,
        no_hooks: args.no_hooks,
        skip_tests: args.skip_tests,
        only: args.show_only.clone(),
    };
    printout.of(&rendered).map_err(|error| error.to_string())
}

/// Parses the templates of a large chart on two threads, which is a third of a first render.
fn parse_by_two(chart: &Chart, cache: &mut Cache) {
    let files = chart::render::unparsed(chart);
    if files.len() < MANY_TEMPLATES {
        return;
    }
    let (here, there) = files.split_at(files.len() / 2);
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            stack::take_memory_at_once();
            chart::render::parse_ahead(there)
        });
        cache.extend(chart::render::parse_ahead(here));
        // Whatever went wrong there, the render meets it again.
        cache.extend(there.join().unwrap_or_default());
    });
}

fn told(error: &RenderError) -> String {
    if error.is_late() {
        format!("{error}\n\nUse --debug flag to render out invalid YAML")
    } else {
        error.to_string()
    }
}

fn value_flags(args: &TemplateArgs) -> ValueFlags {
    ValueFlags {
        files: args.values.clone(),
        set_json: args.set_json.clone(),
        set: args.set.clone(),
        set_string: args.set_string.clone(),
        set_file: args.set_file.clone(),
        set_literal: args.set_literal.clone(),
    }
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            format!("open {path}: no such file or directory")
        } else {
            format!("open {path}: {error}")
        }
    })
}
