//! Renders the charts of modules, on threads of their own.

use std::sync::{Arc, PoisonError};

use chart::chart::Chart;
use chart::environment::Environment;
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, RenderError, Rendered, Request};
use chart::template::Limits;
use chart::warnings::Warnings;
use chart::{manifest, render_cache};
use engine::Module;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::chart_cache::LoadedChart;
use super::error::ReleaseError;
use super::render_environment::ClusterEnvironment;
use super::{Helm, KnownCapabilities, guest_limits, object, render_thread};

/// One of the two ways to render a chart.
type Render = fn(
    &Chart,
    &Request<'_>,
    &mut render_cache::Cache,
    &mut dyn Environment,
    &mut Warnings,
) -> Result<Rendered, RenderError>;

/// What a module renders to.
#[derive(Clone, Debug)]
pub struct RenderedModule {
    /// The manifests as one text.
    pub manifest: String,
    /// The hooks as one text.
    pub hooks: String,
    /// The rendered notes.
    pub notes: String,
}

impl Helm {
    /// Renders on a thread with a stack of its own. The same again is not rendered again.
    pub(super) async fn render_chart(
        &self,
        loaded: &LoadedChart,
        name: &str,
        values: &Map<String, Value>,
        revision: u32,
        is_upgrade: bool,
    ) -> Result<Rendered, ReleaseError> {
        self.render_with(render_cache::render, loaded, (name, revision, is_upgrade), values).await
    }

    /// Renders for one revision, for which nobody asks again. What was rendered before is still known afterwards.
    pub(super) async fn render_revision(
        &self,
        loaded: &LoadedChart,
        name: &str,
        values: &Map<String, Value>,
        revision: u32,
        is_upgrade: bool,
    ) -> Result<Rendered, ReleaseError> {
        self.render_with(render_cache::render_once, loaded, (name, revision, is_upgrade), values).await
    }

    async fn render_with(
        &self,
        render: Render,
        loaded: &LoadedChart,
        (name, revision, is_upgrade): (&str, u32, bool),
        values: &Map<String, Value>,
    ) -> Result<Rendered, ReleaseError> {
        if let Some(command) = self.command.get() {
            return self.render_by_command(command, loaded, name, values, is_upgrade).await;
        }
        self.render_here(render, loaded, (name, revision, is_upgrade), values).await
    }

    /// Returns how many objects a chart has without a program, which may lose what it prints.
    pub(super) async fn count_objects(
        &self,
        loaded: &LoadedChart,
        name: &str,
        values: &Map<String, Value>,
    ) -> Result<usize, ReleaseError> {
        let rendered = self.render_here(render_cache::render_once, loaded, (name, 1, true), values).await?;
        Ok(rendered.manifests.len())
    }

    async fn render_here(
        &self,
        render: Render,
        loaded: &LoadedChart,
        (name, revision, is_upgrade): (&str, u32, bool),
        values: &Map<String, Value>,
    ) -> Result<Rendered, ReleaseError> {
        let capabilities = self.capabilities().await?;
        let release = Release {
            name: name.to_owned(),
            namespace: self.settings.namespace.clone(),
            revision,
            is_upgrade,
        };
        let (loaded, values) = (loaded.clone(), values.clone());
        let (limits, place) = self.limits().await;
        let mut world = ClusterEnvironment::new(self.requests.clone(), self.discovery.clone());
        let work = move || {
            let request = Request {
                values: &values,
                release: &release,
                capabilities: &capabilities,
                limits,
                validate: true,
            };
            // It is left when the thread has ended, whoever waits for that.
            let _place = place;
            let mut cache = loaded.templates.lock().unwrap_or_else(PoisonError::into_inner);
            let mut warnings = Warnings::default();
            let rendered = render(&loaded.chart, &request, &mut cache, &mut world, &mut warnings);
            (rendered, warnings)
        };
        let (rendered, warnings) = render_thread::run_aside(work).await?;
        for warning in warnings.texts() {
            tracing::warn!(module = name, "{warning}");
        }
        Ok(rendered?)
    }

    /// Returns what a chart may use, with its place among those that are rendered, if it is one of a namespace.
    pub(super) async fn limits(&self) -> (Limits, Option<OwnedSemaphorePermit>) {
        match self.guest {
            None => (Limits::default(), None),
            Some(_) => (guest_limits::limits(), self.guest_places.render().await),
        }
    }

    pub(super) async fn render_module(
        &self,
        module: &Arc<Module>,
        values: Map<String, Value>,
    ) -> Result<RenderedModule, ReleaseError> {
        let loaded = self.charts.load(module).await?;
        let rendered = self.render_chart(&loaded, module.name.as_str(), &values, 1, true).await?;
        let manifests = object::labelled(rendered.manifests, &self.object_labels(false))?;
        let mut hooks = String::new();
        for hook in &rendered.hooks {
            manifest::push(&mut hooks, &hook.path, &hook.manifest);
        }
        Ok(RenderedModule { manifest: manifest::join(&manifests), hooks, notes: rendered.notes })
    }

    /// Returns what templates know about the cluster.
    pub(super) async fn capabilities(&self) -> Result<Arc<Capabilities>, ReleaseError> {
        let version = self.version().await?;
        let known = self
            .discovery
            .all()
            .await
            .map_err(|source| ReleaseError::of_kind("chart", "kinds", "", source))?;
        let mut last = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| Arc::ptr_eq(&last.kinds, &known)) {
            return Ok(Arc::clone(&last.capabilities));
        }
        let mut versions: Vec<String> = Vec::new();
        for resource in known.iter() {
            versions.push(resource.api_version());
            versions.push(format!("{}/{}", resource.api_version(), resource.kind));
        }
        versions.sort();
        versions.dedup();
        let capabilities = Arc::new(Capabilities { kube_version: version, api_versions: versions });
        *last = Some(KnownCapabilities { kinds: known, capabilities: Arc::clone(&capabilities) });
        Ok(capabilities)
    }

    /// Returns the version of the cluster; it is asked once.
    async fn version(&self) -> Result<KubeVersion, ReleaseError> {
        if let Some(version) = self.version.get() {
            return Ok(version.clone());
        }
        let answer = self.requests.get("/version").await?.unwrap_or_default();
        let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let version = KubeVersion { version: text("gitVersion"), major: text("major"), minor: text("minor") };
        Ok(self.version.get_or_init(|| version).clone())
    }
}
