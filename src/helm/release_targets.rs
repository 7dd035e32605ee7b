//! The releases of all modules, wherever they are: what changes those of one target stands in `Helm`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use engine::{
    DriftSettings, Failure, Module, ModuleName, OwnedReleases, ReleaseName, ReleaseOutcome, ReleaseTarget,
    RunId, TestReport, TestRequest,
};
use kube::Client;

use super::cancellation::Cancellation;
use super::{Archives, CredentialsRun, Helm, HelmCommand, ReleaseRun, Settings};
use crate::cluster::Discovery;
use crate::driver::Inbox;

/// Installs, upgrades, watches and removes releases in the operator's namespace and in others.
///
/// Other targets cost nothing until something is asked of them, and nothing any more when there is no release of ours.
pub struct ReleaseTargets {
    own: Arc<Helm>,
    of_operator: ReleaseTarget,
    client: Client,
    discovery: Discovery,
    settings: Settings,
    others: Mutex<BTreeMap<ReleaseTarget, Other>>,
}

/// A target other than the operator's own.
struct Other {
    helm: Arc<Helm>,
    /// The modules that have, or may have, a release there.
    modules: BTreeSet<ModuleName>,
}

impl ReleaseTargets {
    /// Returns the targets of an operator whose own releases are in the namespace of `settings`.
    pub fn new(client: Client, discovery: Discovery, settings: Settings) -> Self {
        Self {
            own: Arc::new(Helm::new(client.clone(), discovery.clone(), settings.clone())),
            of_operator: ReleaseTarget::of_operator(&settings.namespace),
            client,
            discovery,
            settings,
            others: Mutex::default(),
        }
    }

    /// Says who hands out the archives of charts that modules name.
    pub fn set_archives(&self, archives: Arc<dyn Archives>) {
        self.own.archives.set(archives);
    }

    /// Says which program renders and writes releases; without one the operator itself does.
    pub fn set_command(&self, command: Arc<HelmCommand>) {
        self.own.set_command(command);
    }

    /// Returns what changes the releases of a target.
    ///
    /// Has to be called within a runtime.
    pub fn of(&self, target: &ReleaseTarget) -> Arc<Helm> {
        if *target == self.of_operator {
            return Arc::clone(&self.own);
        }
        self.lock(|others| Arc::clone(&self.other(others, target).helm))
    }

    fn other<'o>(
        &self,
        others: &'o mut BTreeMap<ReleaseTarget, Other>,
        target: &ReleaseTarget,
    ) -> &'o mut Other {
        others.entry(target.clone()).or_insert_with(|| {
            let settings = Settings { namespace: target.namespace.to_string(), ..self.settings.clone() };
            let (client, discovery) = (self.client.clone(), self.discovery.clone());
            let helm = Arc::new(self.own.elsewhere(client, discovery, settings, target));
            Other { helm, modules: BTreeSet::new() }
        })
    }

    /// Installs or upgrades a release, if anything changed. Ends the new revision as failed as soon as that is requested.
    pub async fn upgrade(
        &self,
        target: &ReleaseTarget,
        run: ReleaseRun<'_>,
        cancellation: &Cancellation,
    ) -> Result<ReleaseOutcome, Failure> {
        if *target != self.of_operator {
            let module = run.module.name.clone();
            self.lock(|others| self.other(others, target).modules.insert(module));
        }
        self.of(target).upgrade_until(run, cancellation).await
    }

    /// Writes the credentials of a release, or removes them.
    pub async fn write_credentials(
        &self,
        target: &ReleaseTarget,
        run: CredentialsRun<'_>,
    ) -> Result<(), Failure> {
        let outcome = self.of(target).write_credentials(run).await;
        self.let_go(target, None);
        outcome
    }

    /// Runs the tests of the deployed revision of a release. Ends the one that runs as soon as that is requested.
    pub async fn test(
        &self,
        target: &ReleaseTarget,
        module: &ModuleName,
        request: &TestRequest,
        cancellation: &Cancellation,
    ) -> Result<TestReport, Failure> {
        let outcome = self.of(target).test(module.as_str(), request, cancellation).await;
        self.let_go(target, None);
        outcome
    }

    /// Removes a release with its history. Waits for no hook any more as soon as that is requested.
    pub async fn uninstall(
        &self,
        target: &ReleaseTarget,
        release: &ReleaseName,
        cancellation: &Cancellation,
    ) -> Result<ReleaseOutcome, Failure> {
        let outcome = self.of(target).uninstall_until(release, cancellation).await;
        if outcome.is_ok() {
            self.let_go(target, Some(&ModuleName::from(release.as_str())));
        }
        outcome
    }

    /// Returns the releases that carry our owner label, by target.
    ///
    /// # Errors
    ///
    /// When those of the operator's own namespace can't be listed, or the API server does not answer. What may not be listed
    /// elsewhere is in the result.
    pub async fn list(&self, targets: &[ReleaseTarget]) -> Result<Vec<OwnedReleases>, Failure> {
        let mut lists = Vec::with_capacity(targets.len());
        for target in targets {
            let outcome = self.of(target).list_or_refusal().await;
            // Where there are releases, the runs of their modules take what was listed. They may not have begun yet.
            if !matches!(&outcome, Ok(Ok(owned)) if !owned.is_empty()) {
                self.let_go(target, None);
            }
            let outcome = match outcome? {
                Err(refused) if *target == self.of_operator => return Err(refused),
                outcome => outcome,
            };
            lists.push(OwnedReleases { target: target.clone(), outcome });
        }
        Ok(lists)
    }

    /// Writes the CRDs of a module and waits until they are established.
    pub async fn ensure_crds(&self, module: &Arc<Module>) -> Result<(), Failure> {
        self.own.ensure_crds(module).await
    }

    /// Watches the objects and records of a module's release and reports to `inbox` what drifts.
    pub fn watch(&self, target: &ReleaseTarget, module: ModuleName, drift: DriftSettings, inbox: &Inbox) {
        self.of(target).watch(module, drift, inbox);
    }

    /// Reports to `inbox` which objects of a module's release are not ready, until all of them are.
    pub fn await_readiness(&self, target: &ReleaseTarget, (run, module): (RunId, ModuleName), inbox: &Inbox) {
        self.of(target).await_readiness(run, module, inbox);
    }

    /// Stops watching the objects of a module's release.
    pub fn forget(&self, target: &ReleaseTarget, module: &ModuleName) {
        self.of(target).forget(module);
        self.let_go(target, Some(module));
    }

    /// Returns the objects that are watched for each release, as `namespace/Kind/name`, sorted.
    pub fn watched(&self) -> BTreeMap<String, Vec<String>> {
        let others: Vec<Arc<Helm>> =
            self.lock(|others| others.values().map(|other| Arc::clone(&other.helm)).collect());
        let mut watched = self.own.watched();
        watched.extend(others.iter().flat_map(|helm| helm.watched()));
        watched
    }

    /// Drops what is known of a target if no module has a release there any more, and nobody is at work. `gone` is one that has
    /// none.
    fn let_go(&self, target: &ReleaseTarget, gone: Option<&ModuleName>) {
        self.lock(|others| {
            let Some(other) = others.get_mut(target) else { return };
            other.modules.retain(|module| Some(module) != gone);
            if other.modules.is_empty() && Arc::strong_count(&other.helm) == 1 {
                others.remove(target);
            }
        });
    }

    fn lock<T>(&self, work: impl FnOnce(&mut BTreeMap<ReleaseTarget, Other>) -> T) -> T {
        work(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
