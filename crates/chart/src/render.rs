//! From a chart and values to manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::chart::{Chart, CrdFile};
use crate::coalesce::{CoalesceError, Nulls, coalesced, shown, written};
use crate::dependency::{self, MissingDependencies};
use crate::environment::Environment;
use crate::manifest::{self, Heads, Hook, Manifest, ManifestError, Text};
use crate::object::{Capabilities, ChartObject, VALUES, files};
use crate::schema::{self, SchemaError};
use crate::template::{Limits, ParseError, Renderer, Template, TemplateSet, parse};
use crate::value::{Map as Dict, Value};
use crate::warnings::Warnings;

/// What the name of a file with notes ends with.
const NOTES: &str = "NOTES.txt";

/// What Go prints for a value that is not there.
const NO_VALUE: &str = "<no value>";

/// The release that templates see as `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The name.
    pub name: String,
    /// The namespace of the release and the default one of its objects.
    pub namespace: String,
    /// The number of the revision.
    pub revision: u32,
    /// Whether there was a revision before.
    pub is_upgrade: bool,
}

/// What a render is to be made of.
#[derive(Clone, Debug)]
pub struct Request<'r> {
    /// The values of the user.
    pub values: &'r Map<String, Json>,
    /// The release.
    pub release: &'r Release,
    /// What the cluster can do.
    pub capabilities: &'r Capabilities,
    /// How much the render may use.
    pub limits: Limits,
    /// Whether `values.schema.json` counts.
    pub validate: bool,
}

/// What a chart rendered to.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The chart with the dependencies that are in use, as a record holds it.
    pub chart: Chart,
    /// The objects in the order in which they are installed.
    pub manifests: Vec<Manifest>,
    /// The hooks, by kind.
    pub hooks: Vec<Hook>,
    /// The rendered `NOTES.txt`.
    pub notes: String,
    /// The files below `crds/`, which are not rendered.
    pub crds: Vec<CrdFile>,
}

/// Why a chart gives no manifests.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Only application charts can be installed.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// Dependencies are not in `charts/`.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run \
         `helm dependency build` to fetch missing dependencies: {0}"
    )]
    Missing(#[source] MissingDependencies),
    /// Values can't be merged.
    #[error(transparent)]
    Values(#[from] CoalesceError),
    /// Values do not fit their schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The chart does not work with this version of Kubernetes.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {found}")]
    KubeVersion {
        /// What the chart says.
        wanted: String,
        /// The version of the cluster.
        found: String,
    },
    /// A template is malformed.
    #[error("{}", .0.for_people())]
    Parse(#[source] ParseError),
    /// A template failed.
    #[error("{text}")]
    Execute {
        /// The file.
        template: String,
        /// The chain of errors.
        text: String,
        /// Whether a limit of the render was reached.
        limit: bool,
    },
    /// A rendered template is not made of objects.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl RenderError {
    /// Reports whether the error came up after the values were settled, when Helm
    /// offers to show what was rendered so far.
    pub fn is_late(&self) -> bool {
        match self {
            Self::NotInstallable(_) | Self::Missing(_) | Self::Values(_) | Self::Schema(_) => false,
            Self::KubeVersion { .. } | Self::Parse(_) | Self::Execute { .. } | Self::Manifest(_) => true,
        }
    }
}

/// What was parsed for earlier renders of a chart: its templates and the heads of what they
/// rendered to. What is the same is not parsed again.
#[derive(Debug, Default)]
pub(crate) struct TemplateCache {
    templates: BTreeMap<String, Parsed>,
    heads: Heads,
}

/// What the templates of a file were parsed from, and what they are.
type Parsed = (Arc<[u8]>, Vec<Arc<Template>>);

impl TemplateCache {
    /// Adds templates that were parsed already.
    pub(crate) fn extend(&mut self, ahead: ParsedTemplates) {
        self.templates.extend(ahead.0);
    }

    /// Returns the templates of a file, parsed now or before.
    fn parsed(&mut self, path: &str, data: &Arc<[u8]>) -> Result<Vec<Arc<Template>>, ParseError> {
        if let Some((known, templates)) = self.templates.get(path)
            && (Arc::ptr_eq(known, data) || known == data)
        {
            return Ok(templates.clone());
        }
        let templates = parse(path, Arc::clone(data))?;
        self.templates.insert(path.to_owned(), (Arc::clone(data), templates.clone()));
        Ok(templates)
    }
}

/// The templates of one file, not parsed yet.
#[derive(Clone, Debug)]
pub struct UnparsedTemplates {
    path: String,
    data: Arc<[u8]>,
}

/// Templates that were parsed before a render needs them.
#[derive(Debug, Default)]
pub struct ParsedTemplates(Vec<(String, Parsed)>);

/// Returns the files with templates of a chart and its dependencies. Those of dependencies
/// that turn out to be off are among them.
pub fn unparsed(chart: &Chart) -> Vec<UnparsedTemplates> {
    fn collect(chart: &Chart, path: &str, found: &mut Vec<UnparsedTemplates>) {
        found.extend(chart.templates.iter().map(|template| UnparsedTemplates {
            path: format!("{path}/{}", template.name),
            data: Arc::clone(&template.data),
        }));
        for dependency in &chart.dependencies {
            collect(dependency, &dependency.path_in(path), found);
        }
    }
    let mut found = Vec::new();
    collect(chart, chart.name(), &mut found);
    found
}

/// Parses some files; several threads can share the work. The render reports a malformed one.
pub fn parse_ahead(files: &[UnparsedTemplates]) -> ParsedTemplates {
    let parsed = files.iter().filter_map(|file| {
        let templates = parse(&file.path, Arc::clone(&file.data)).ok()?;
        Some((file.path.clone(), (Arc::clone(&file.data), templates)))
    });
    ParsedTemplates(parsed.collect())
}

/// Renders `chart`.
pub(crate) fn render_anew(
    chart: &Chart,
    request: &Request<'_>,
    cache: &mut TemplateCache,
    environment: &mut dyn Environment,
    warnings: &mut Warnings,
) -> Result<Rendered, RenderError> {
    let (chart, values) = settle(chart, request, warnings)?;
    let pages = Pages::of(&chart, &values, request);
    let mut rendered = execute_pages(&pages.found, None, request.limits, cache, environment)?;
    let own_notes = format!("{}/templates/{NOTES}", chart.name());
    let notes = rendered.remove(&own_notes).map(Text::into_string).unwrap_or_default();
    rendered.retain(|path, _| !path.ends_with(NOTES));
    let sorted = manifest::sort(&rendered, &mut cache.heads, warnings)?;
    Ok(Rendered { manifests: sorted.manifests, hooks: sorted.hooks, notes, crds: chart.crds(), chart })
}

/// Renders one more template with what `chart` knows: its values, its named templates, its files. It is named as if it lay in
/// the directory of the chart, and the templates of the chart are not rendered.
///
/// The calling thread needs more stack than the limits allow the template.
pub fn render_text(
    chart: &Chart,
    (name, data): (&str, Arc<[u8]>),
    request: &Request<'_>,
    environment: &mut dyn Environment,
    warnings: &mut Warnings,
) -> Result<String, RenderError> {
    let (chart, values) = settle(chart, request, warnings)?;
    let mut pages = Pages::of(&chart, &values, request);
    let path = format!("{}/{name}", chart.name());
    if let Value::Map(dot) = &pages.root {
        let base = format!("{}/templates", chart.name());
        pages.found.insert(path.clone(), Page { dot: dot.as_class(&VALUES), base, data });
    }
    let mut cache = TemplateCache::default();
    let mut rendered = execute_pages(&pages.found, Some(&path), request.limits, &mut cache, environment)?;
    Ok(rendered.remove(&path).map(Text::into_string).unwrap_or_default())
}

/// Returns the chart with the dependencies that are in use, and what its templates see as values.
fn settle(
    chart: &Chart,
    request: &Request<'_>,
    warnings: &mut Warnings,
) -> Result<(Chart, Dict), RenderError> {
    if !matches!(chart.metadata.kind.as_str(), "" | "application") {
        return Err(RenderError::NotInstallable(chart.metadata.kind.clone()));
    }
    if chart.metadata.deprecated {
        warnings.add("WARNING: This chart is deprecated".to_owned());
    }
    dependency::check(chart).map_err(RenderError::Missing)?;
    let mut chart = chart.clone();
    dependency::resolve(&mut chart, request.values, warnings)?;
    let values = {
        let table = coalesced(&chart, request.values, Nulls::Remove, warnings)?;
        let values = shown(&chart, &table)?;
        if request.validate && schema::is_in(&chart) {
            schema::validate(&chart, written(&chart, &table)?)?;
        }
        values
    };
    let wanted = &chart.metadata.kube_version;
    let found = &request.capabilities.kube_version.version;
    if !wanted.is_empty() && !dependency::is_compatible(wanted, found) {
        return Err(RenderError::KubeVersion { wanted: wanted.clone(), found: found.clone() });
    }
    Ok((chart, values))
}

/// A file to render.
struct Page {
    dot: Dict,
    base: String,
    data: Arc<[u8]>,
}

/// The files of a chart and its dependencies that have templates.
struct Pages {
    release: Value,
    capabilities: Value,
    found: BTreeMap<String, Page>,
    /// The dot of the chart itself.
    root: Value,
}

impl Pages {
    fn of(chart: &Chart, values: &Dict, request: &Request<'_>) -> Self {
        let release = request.release;
        let release = Value::map([
            ("Name", release.name.as_str().into()),
            ("Namespace", release.namespace.as_str().into()),
            ("IsUpgrade", release.is_upgrade.into()),
            ("IsInstall", (!release.is_upgrade).into()),
            ("Revision", Value::Int(i64::from(release.revision))),
            ("Service", "Helm".into()),
        ]);
        let (capabilities, found) = (request.capabilities.object(), BTreeMap::new());
        let mut pages = Self { release, capabilities, found, root: Value::Nil };
        pages.root = pages.collect(chart, values.as_class(&VALUES), chart.name(), true);
        pages
    }

    /// Collects the templates of `chart` and of its dependencies; returns its dot.
    fn collect(&mut self, chart: &Chart, values: Dict, path: &str, is_root: bool) -> Value {
        let subcharts = Dict::new(BTreeMap::new());
        for dependency in &chart.dependencies {
            let section = values.get(dependency.name()).and_then(|section| section.as_map().cloned());
            let section =
                section.map_or_else(|| Dict::of(&VALUES, BTreeMap::new()), |map| map.as_class(&VALUES));
            let dot = self.collect(dependency, section, &dependency.path_in(path), false);
            subcharts.insert(dependency.name(), dot);
        }
        let chart_object = ChartObject { metadata: Rc::new(chart.metadata.clone()), is_root };
        let dot = Dict::new(BTreeMap::new());
        dot.insert("Chart", Value::object(chart_object));
        dot.insert("Files", files(&chart.files));
        dot.insert("Release", self.release.clone());
        dot.insert("Capabilities", self.capabilities.clone());
        dot.insert("Values", Value::Map(values));
        dot.insert("Subcharts", Value::Map(subcharts));
        for template in &chart.templates {
            if chart.is_library() && !base_name(&template.name).starts_with('_') {
                continue;
            }
            let page = Page {
                dot: dot.as_class(&VALUES),
                base: format!("{path}/templates"),
                data: Arc::clone(&template.data),
            };
            self.found.insert(format!("{path}/{}", template.name), page);
        }
        Value::Map(dot)
    }
}

/// Executes all templates, or those of one file if one is `wanted`; returns the text of each.
fn execute_pages(
    pages: &BTreeMap<String, Page>,
    wanted: Option<&str>,
    limits: Limits,
    cache: &mut TemplateCache,
    environment: &mut dyn Environment,
) -> Result<BTreeMap<String, Text>, RenderError> {
    let mut order: Vec<&String> = pages.keys().collect();
    order.sort_by_key(|path| std::cmp::Reverse((path.matches('/').count(), *path)));
    let mut set = TemplateSet::new();
    for path in &order {
        if let Some(page) = pages.get(*path) {
            set.add(&cache.parsed(path, &page.data).map_err(RenderError::Parse)?);
        }
    }
    let used: BTreeSet<&str> = pages.keys().map(String::as_str).collect();
    cache.templates.retain(|path, _| used.contains(path.as_str()));
    let mut context = Renderer::new(environment, set, limits);
    let (mut rendered, mut length) = (BTreeMap::new(), 0);
    for path in order {
        let Some(page) = pages.get(path) else { continue };
        if wanted.is_some_and(|wanted| wanted != path) {
            continue;
        }
        if base_name(path).starts_with('_') {
            continue;
        }
        let template = Dict::of(&VALUES, BTreeMap::new());
        template.insert("Name", path.as_str().into());
        template.insert("BasePath", page.base.as_str().into());
        page.dot.insert("Template", Value::Map(template));
        let text = context.render(path, &Value::Map(page.dot.clone())).map_err(|error| {
            RenderError::Execute { template: path.clone(), text: error.for_people(), limit: error.is_limit() }
        })?;
        length += text.len();
        let too_much = |what: &str, limit: usize| RenderError::Execute {
            template: path.clone(),
            text: format!("rendering {path}: {what} renders to more than {limit} bytes"),
            limit: true,
        };
        if text.len() > limits.file {
            return Err(too_much("the file", limits.file));
        }
        if length > limits.text {
            return Err(too_much("the chart", limits.text));
        }
        let text = match Text::from(text) {
            Text::Readable(text) if text.contains(NO_VALUE) => Text::Readable(text.replace(NO_VALUE, "")),
            text @ (Text::Readable(_) | Text::Broken(_)) => text,
        };
        rendered.insert(path.clone(), text);
    }
    Ok(rendered)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
