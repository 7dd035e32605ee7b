//! What is left of earlier renders: templates that need not be parsed again, and the last
//! render, which is the answer to the same request again.

use sha2::{Digest as _, Sha256};

use crate::chart::Chart;
use crate::environment::{Certificate, CertificateRequest, Environment, EnvironmentError, KeyKind};
use crate::render::{ParsedTemplates, RenderError, Rendered, Request, TemplateCache, render_anew};
use crate::warnings::Warnings;

/// What was made for earlier renders of a chart. What is the same is not parsed again, and a
/// render that would be the same as the last one is not made again.
#[derive(Debug, Default)]
pub struct Cache {
    templates: TemplateCache,
    last: Option<LastRender>,
}

impl Cache {
    /// Adds templates that were parsed already.
    pub fn extend(&mut self, parsed: ParsedTemplates) {
        self.templates.extend(parsed);
    }
}

/// Renders `chart`.
///
/// The calling thread needs more stack than the limits allow the templates.
pub fn render(
    chart: &Chart,
    request: &Request<'_>,
    cache: &mut Cache,
    environment: &mut dyn Environment,
    warnings: &mut Warnings,
) -> Result<Rendered, RenderError> {
    let key = Key::of(chart, request);
    if let Some(rendered) = cache.last.as_ref().and_then(|last| last.answer(&key, warnings)) {
        return Ok(rendered);
    }
    cache.last = None;
    let mut environment = TrackedEnvironment { environment, was_asked: false };
    let mut own_warnings = Warnings::default();
    let rendered = render_anew(chart, request, &mut cache.templates, &mut environment, &mut own_warnings);
    warnings.extend(&own_warnings);
    let rendered = rendered?;
    if !environment.was_asked {
        cache.last = Some(LastRender { key, rendered: rendered.clone(), warnings: own_warnings });
    }
    Ok(rendered)
}

/// Renders `chart` for once. Templates are parsed as little as by [`render`], and the answer to the request before this one
/// is still known afterwards.
pub fn render_once(
    chart: &Chart,
    request: &Request<'_>,
    cache: &mut Cache,
    environment: &mut dyn Environment,
    warnings: &mut Warnings,
) -> Result<Rendered, RenderError> {
    render_anew(chart, request, &mut cache.templates, environment, warnings)
}

/// What a render depends on, as long as it asks its environment nothing.
#[derive(PartialEq)]
struct Key {
    /// Shares its files with the chart that was rendered.
    chart: Chart,
    /// The sum of all else: values are large, and may be secrets.
    request: [u8; 32],
}

impl Key {
    /// Returns the key of a render.
    fn of(chart: &Chart, request: &Request<'_>) -> Self {
        let mut sum = Sha256::new();
        // Writing into a sum can't fail, and a map of JSON can always be written.
        let _ = serde_json::to_writer(&mut Writer(&mut sum), request.values);
        let release = request.release;
        let version = &request.capabilities.kube_version;
        let texts = [&release.name, &release.namespace, &version.version, &version.major, &version.minor];
        for text in texts.into_iter().chain(&request.capabilities.api_versions) {
            sum.update(text.len().to_le_bytes());
            sum.update(text);
        }
        sum.update(release.revision.to_le_bytes());
        sum.update([u8::from(release.is_upgrade), u8::from(request.validate)]);
        let limits = request.limits;
        sum.update(limits.steps.to_le_bytes());
        for limit in [limits.depth, limits.bytes, limits.file, limits.text, limits.stack] {
            sum.update(limit.to_le_bytes());
        }
        Self { chart: chart.clone(), request: sum.finalize().into() }
    }
}

struct Writer<'s>(&'s mut Sha256);

impl std::io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A render and what it was made of.
struct LastRender {
    key: Key,
    rendered: Rendered,
    warnings: Warnings,
}

impl LastRender {
    /// Returns the render again if `key` is that of it, with its warnings.
    fn answer(&self, key: &Key, warnings: &mut Warnings) -> Option<Rendered> {
        (self.key == *key).then(|| {
            warnings.extend(&self.warnings);
            self.rendered.clone()
        })
    }
}

/// Prints nothing of what was rendered: it may hold secrets.
impl std::fmt::Debug for LastRender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LastRender({:?})", self.key.chart)
    }
}

/// An environment that knows whether it was asked anything.
struct TrackedEnvironment<'w> {
    environment: &'w mut dyn Environment,
    was_asked: bool,
}

impl TrackedEnvironment<'_> {
    fn asked(&mut self) -> &mut dyn Environment {
        self.was_asked = true;
        self.environment
    }
}

impl Environment for TrackedEnvironment<'_> {
    fn now(&mut self) -> jiff::Zoned {
        self.asked().now()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        self.asked().random(bytes);
    }

    fn private_key(&mut self, kind: KeyKind) -> Result<String, EnvironmentError> {
        self.asked().private_key(kind)
    }

    fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, EnvironmentError> {
        self.asked().certificate(request)
    }

    fn resolve(&mut self, host: &str) -> Result<String, EnvironmentError> {
        self.asked().resolve(host)
    }

    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<serde_json::Value, EnvironmentError> {
        self.asked().lookup(api_version, kind, namespace, name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Map, json};

    use crate::environment::FixedEnvironment;
    use crate::load::{Tree, from_directory};
    use crate::object::{Capabilities, KubeVersion};
    use crate::render::{Release, Request};
    use crate::render_cache::{Cache, render};
    use crate::template::Limits;
    use crate::warnings::Warnings;

    fn chart(template: &str) -> crate::chart::Chart {
        let text = |text: &str| -> Arc<[u8]> { Arc::from(text.as_bytes()) };
        let tree: Tree = [
            ("Chart.yaml".to_owned(), text("{name: a, version: 1.0.0, deprecated: true}")),
            ("templates/t.yaml".to_owned(), text(template)),
        ]
        .into();
        from_directory(&tree, &mut Warnings::default()).unwrap()
    }

    struct Given<'g> {
        chart: &'g crate::chart::Chart,
        values: Map<String, serde_json::Value>,
        revision: u32,
        api_versions: &'g [&'g str],
    }

    fn text(given: &Given<'_>, cache: &mut Cache, environment: &mut FixedEnvironment) -> String {
        let revision = given.revision;
        let release = Release { name: "r".into(), namespace: "n".into(), revision, is_upgrade: false };
        let mut capabilities = Capabilities::without_cluster(KubeVersion::default());
        capabilities.api_versions = given.api_versions.iter().map(|known| (*known).to_owned()).collect();
        let request = Request {
            values: &given.values,
            release: &release,
            capabilities: &capabilities,
            limits: Limits { stack: 1 << 20, ..Limits::default() },
            validate: true,
        };
        let mut warnings = Warnings::default();
        let rendered = render(given.chart, &request, cache, environment, &mut warnings).unwrap();
        assert_eq!(warnings.texts(), ["WARNING: This chart is deprecated"]);
        rendered.manifests.iter().map(|manifest| &*manifest.content).collect()
    }

    fn values(value: i32) -> Map<String, serde_json::Value> {
        json!({"v": value}).as_object().unwrap().clone()
    }

    #[test]
    fn the_same_again_is_not_rendered_again_and_all_else_is() {
        let first = chart("a: {{ .Values.v }} {{ .Release.Revision }} {{ .Capabilities.APIVersions }}");
        let second = chart("b: {{ .Values.v }}");
        let (mut cache, mut environment) = (Cache::default(), FixedEnvironment::default());
        let mut of = |chart, value, revision, api_versions: &[&str]| {
            text(
                &Given { chart, values: values(value), revision, api_versions },
                &mut cache,
                &mut environment,
            )
        };
        for _ in 0..2 {
            assert_eq!(of(&first, 1, 1, &["v1"]), "a: 1 1 [v1]");
        }
        assert_eq!(of(&first, 2, 1, &["v1"]), "a: 2 1 [v1]");
        assert_eq!(of(&first, 2, 2, &["v1"]), "a: 2 2 [v1]");
        assert_eq!(of(&first, 2, 2, &["v", "1"]), "a: 2 2 [v 1]");
        assert_eq!(of(&second, 2, 2, &["v", "1"]), "b: 2");
    }

    #[test]
    fn what_asked_the_outside_is_asked_again() {
        let chart = chart("a: {{ randAlpha 20 }}");
        let (mut cache, mut environment) = (Cache::default(), FixedEnvironment::default());
        let given = Given { chart: &chart, values: values(1), revision: 1, api_versions: &[] };
        let first = text(&given, &mut cache, &mut environment);
        assert_ne!(text(&given, &mut cache, &mut environment), first);
    }
}
