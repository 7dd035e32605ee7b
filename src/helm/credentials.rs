//! The credentials of releases: the template of a plan is rendered, what it names is looked up, and all of it goes into a
//! Secret beside the release.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chart::render::{Release, Request, render_text};
use chart::warnings::Warnings;
use engine::{Failure, FailureKind, Module, ValuesInput};
use serde_json::{Map, Value, json};
use source::credentials::{Credentials, CredentialsError, Kind, MAX_TEXT, Reference};

use super::Helm;
use super::error::ReleaseError;
use super::object::uid;
use super::render_environment::ClusterEnvironment;
use super::render_thread::{self, RenderThreadError};
use super::storage::OWNER;
use crate::cluster::request::{RequestError, encode_segment};
use crate::regular_file;

/// The label that names the module whose credentials a Secret holds.
const MODULE: &str = "addon-operator.io/module";

/// What the template is called in messages, as it lies beside the chart.
const TEMPLATE: &str = "bind.yaml";

/// Why the credentials of a release are not in their Secret. Nothing of it quotes a value of an object.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    /// The template can't be read.
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    /// It is larger than any template of credentials has to be.
    #[error("{path}: the template is larger than {MAX_TEXT} bytes")]
    TooLarge { path: String },
    /// It does not render.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// What it renders to can't be used.
    #[error("{path}: {source}")]
    Credentials { path: String, source: CredentialsError },
    /// An object can't be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Somebody else's Secret has the name.
    #[error("Secret {0} is there, and is not ours: rename the one that the chart or somebody else made")]
    Taken(String),
}

/// What the credentials of a release are made of.
#[derive(Clone, Copy)]
pub struct CredentialsRun<'r> {
    /// The module.
    pub module: &'r Arc<Module>,
    /// The file of the template; `None` removes what is there.
    pub template: Option<&'r str>,
    /// What its chart reads.
    pub values: &'r ValuesInput,
    /// The revision of the release.
    pub revision: u32,
}

/// The file of a template, and what it is called in messages.
struct Template<'t> {
    file: &'t Path,
    /// Its path in the bundle: where the operator keeps bundles says nothing to who reads a status.
    shown: String,
}

impl<'t> Template<'t> {
    fn of(module: &Module, file: &'t str) -> Self {
        let file = Path::new(file);
        // The chart lies in the same bundle.
        let mut above = Path::new(&*module.path).ancestors();
        let own = above.find_map(|directory| file.strip_prefix(directory).ok()).unwrap_or(file);
        Self { file, shown: own.display().to_string() }
    }
}

/// Returns the name of the Secret for a release.
fn secret_name(release: &str) -> String {
    format!("{release}-binding")
}

fn bug(panic: &tokio::task::JoinError) -> ReleaseError {
    ReleaseError::RenderThread(RenderThreadError::Panic(panic.to_string()))
}

impl WriteError {
    /// Returns the failure for the engine.
    fn failure(&self) -> Failure {
        let kind = match self {
            Self::File { .. } | Self::TooLarge { .. } => FailureKind::Files,
            // Objects of the release may come with a delay: it is tried again.
            Self::Release(_) | Self::Credentials { .. } | Self::Taken(_) => FailureKind::Release,
            Self::Request(_) => FailureKind::Cluster,
        };
        Failure::new(kind, self.to_string())
    }
}

impl Helm {
    /// Makes the Secret with the credentials of a release hold what the template says now, or removes it.
    ///
    /// # Errors
    ///
    /// The template does not render, something that it names is not there, or the API server refuses. The Secret stays as it
    /// was then.
    pub async fn write_credentials(&self, run: CredentialsRun<'_>) -> Result<(), Failure> {
        let outcome = match run.template {
            Some(template) => {
                let template = Template::of(run.module, template);
                let values = super::chart_values(run.module, run.values)?;
                self.write_secret(&run, &template, values).await
            }
            None => self.remove_credentials(run.module.name.as_str()).await.map_err(WriteError::from),
        };
        outcome.map_err(|error| {
            if let WriteError::Release(error) = &error {
                return self.failure(error, "the template of the credentials does not render");
            }
            let is_forbidden = matches!(&error, WriteError::Request(error) if error.code() == 403);
            let failure = error.failure();
            if is_forbidden { failure.advise(self.missing_right()) } else { failure }
        })
    }

    async fn write_secret(
        &self,
        run: &CredentialsRun<'_>,
        template: &Template<'_>,
        values: Map<String, Value>,
    ) -> Result<(), WriteError> {
        let release = run.module.name.as_str();
        let text = self.rendered_credentials(run, template, values).await?;
        let wrong = |source| WriteError::Credentials { path: template.shown.clone(), source };
        let credentials = Credentials::read(&text, &self.settings.namespace).map_err(wrong)?;
        let mut objects = BTreeMap::new();
        for reference in credentials.references() {
            if let Some(object) = self.requests.get(&self.path_of(reference)).await? {
                objects.insert(reference.clone(), object);
            }
        }
        let data = credentials.resolve(&objects).map_err(wrong)?;
        let data = data.into_iter().map(|(name, value)| (name, STANDARD.encode(value).into()));
        let data: Map<String, Value> = data.collect();
        let (name, collection) = (secret_name(release), self.storage.collection());
        let path = format!("{collection}/{name}");
        let labels = json!({OWNER: self.storage.owner(), MODULE: release});
        let Some(mut there) = self.requests.get(&path).await? else {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {"name": name, "namespace": self.settings.namespace, "labels": labels},
            });
            self.requests.make(&collection, &secret).await?;
            return Ok(());
        };
        if !self.owns(&there, release) {
            return Err(WriteError::Taken(name));
        }
        let is_same = match there.get("data") {
            None | Some(Value::Null) => data.is_empty(),
            Some(held) => held.as_object() == Some(&data),
        };
        if is_same {
            return Ok(());
        }
        // With its version, so that no write of somebody else is undone unseen.
        if let Some(object) = there.as_object_mut() {
            object.insert("data".to_owned(), data.into());
        }
        self.requests.replace(&path, &there).await?;
        Ok(())
    }

    /// Removes the Secret with the credentials of a release, if there is one of ours.
    pub(super) async fn remove_credentials(&self, release: &str) -> Result<(), RequestError> {
        let path = format!("{}/{}", self.storage.collection(), secret_name(release));
        let Some(secret) = self.requests.get(&path).await?.filter(|secret| self.owns(secret, release)) else {
            return Ok(());
        };
        self.requests.delete_this(&path, uid(&secret)).await.map(|_| ())
    }

    /// Returns whether we made a Secret for the credentials of this release.
    fn owns(&self, secret: &Value, release: &str) -> bool {
        let label = |name: &str| secret.get("metadata")?.get("labels")?.get(name)?.as_str();
        label(OWNER) == Some(self.storage.owner()) && label(MODULE) == Some(release)
    }

    fn path_of(&self, reference: &Reference) -> String {
        let collection = match reference.kind {
            Kind::ConfigMap => "configmaps",
            Kind::Secret => "secrets",
            Kind::Service => "services",
        };
        let name = encode_segment(&reference.name);
        format!("/api/v1/namespaces/{}/{collection}/{name}", self.settings.namespace)
    }

    /// Renders the template with what the chart of the module knows.
    async fn rendered_credentials(
        &self,
        run: &CredentialsRun<'_>,
        template: &Template<'_>,
        values: Map<String, Value>,
    ) -> Result<String, WriteError> {
        let file = template.file.to_owned();
        let read = tokio::task::spawn_blocking(move || regular_file::read(&file)).await;
        let read = read.map_err(|error| bug(&error))?;
        let data = read.map_err(|source| WriteError::File { path: template.shown.clone(), source })?;
        if data.len() > MAX_TEXT {
            return Err(WriteError::TooLarge { path: template.shown.clone() });
        }
        let capabilities = self.capabilities().await?;
        let loaded = self.charts.load(run.module).await?;
        let release = Release {
            name: run.module.name.as_str().to_owned(),
            namespace: self.settings.namespace.clone(),
            revision: run.revision,
            is_upgrade: run.revision > 1,
        };
        let mut world = ClusterEnvironment::new(self.requests.clone(), self.discovery.clone());
        let (limits, place) = self.limits().await;
        let work = move || {
            let _place = place;
            let request = Request {
                values: &values,
                release: &release,
                capabilities: &capabilities,
                limits,
                validate: false,
            };
            // What the chart warns of was told when it was rendered.
            let mut warnings = Warnings::default();
            render_text(&loaded.chart, (TEMPLATE, data.into()), &request, &mut world, &mut warnings)
        };
        let rendered = render_thread::run_aside(work).await.map_err(ReleaseError::from)?;
        Ok(rendered.map_err(ReleaseError::from)?)
    }
}
