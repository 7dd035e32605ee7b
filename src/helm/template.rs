//! `addon-operator template`: prints what a chart renders to, as `helm template` does.

use std::io::{self, Write as _};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use chart::chart::Chart;
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, RenderError, Rendered, Request};
use chart::render_cache::Cache;
use chart::template::Limits;
use chart::template_output::TemplateOutput;
use chart::value_flags::ValueFlags;
use chart::warnings::Warnings;

mod arguments;
mod input;
mod switches;

use super::chart_files;
use super::render_environment::LocalEnvironment;
use super::render_thread;
pub use arguments::TemplateArgs;
use input::{located, read, refuse_other_files};
use switches::{Switches, listed};

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
    let switches = Switches::read(args)?;
    let kube_version = match args.kube_version.as_deref() {
        Some(text) if !text.is_empty() => {
            KubeVersion::parse(text).map_err(|error| format!("invalid kube version '{text}': {error}"))?
        }
        Some(_) | None => KubeVersion::default(),
    };
    if switches.validate {
        return Err("--validate needs a cluster, which this command never asks".to_owned());
    }
    let (name, path) = match args.name_and_chart.as_slice() {
        [path] => ("release-name", path),
        [name, path] => (name.as_str(), path),
        [_, _, others @ ..] => {
            return Err(format!(
                "expected at most two arguments, unexpected arguments: {}",
                others.join(", ")
            ));
        }
        [] => return Err("expected a name and a chart".to_owned()),
    };
    let path = located(path)?;
    let values = value_flags(args)?.merged(&mut |path| read(path)).map_err(|error| error.to_string())?;
    refuse_other_files(path)?;
    let chart = chart_files::open(path.as_ref(), warnings).map_err(|error| error.to_string())?;
    chart::release_name(name).map_err(|error| error.to_string())?;
    let mut capabilities = Capabilities::without_cluster(kube_version);
    capabilities.api_versions.extend(listed("-a, --api-versions", &args.api_versions)?);
    let namespace = if args.namespace.is_empty() { "default" } else { args.namespace.as_str() };
    let release = Release {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        revision: 1,
        is_upgrade: switches.is_upgrade,
    };
    let request = Request {
        values: &values,
        release: &release,
        capabilities: &capabilities,
        limits: Limits::default(),
        validate: !switches.skip_schema_validation,
    };
    let rendered = rendered(chart, &request, warnings)?;
    let output = TemplateOutput {
        crds: switches.include_crds,
        no_hooks: switches.no_hooks,
        skip_tests: switches.skip_tests,
        only: args.show_only.clone(),
    };
    output.of(&rendered).map_err(|error| error.to_string())
}

fn rendered(
    chart: Chart,
    request: &Request<'_>,
    warnings: &mut Warnings,
) -> Result<ManuallyDrop<Rendered>, String> {
    // The process ends when this is printed; nothing has to be given back to the allocator.
    let (chart, mut cache) = (ManuallyDrop::new(chart), ManuallyDrop::new(Cache::default()));
    let rendered = render_thread::run(|| {
        render_thread::reserve_thread_memory();
        parse_by_two(&chart, &mut cache);
        chart::render_cache::render(&chart, request, &mut cache, &mut LocalEnvironment::default(), warnings)
    });
    let rendered = rendered.map_err(|error| error.to_string())?.map_err(|error| told(&error))?;
    Ok(ManuallyDrop::new(rendered))
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
            render_thread::reserve_thread_memory();
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

fn value_flags(args: &TemplateArgs) -> Result<ValueFlags, String> {
    Ok(ValueFlags {
        files: listed("-f, --values", &args.values)?,
        set_json: args.set_json.clone(),
        set: args.set.clone(),
        set_string: args.set_string.clone(),
        set_file: args.set_file.clone(),
        set_literal: args.set_literal.clone(),
    })
}
