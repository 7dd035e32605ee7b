//! Renders, upgrades and removes releases with a `helm` program. What is due is decided as without one. See
//! docs/charts.md#charts-that-need-the-helm-program.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use chart::manifest::{self, Heads, Text};
use chart::record::Status;
use chart::render::{RenderError, Rendered};
use chart::warnings::Warnings;
use engine::{ApplyMode, ReleaseAction, ReleaseOutcome};
use serde_json::{Map, Value};

use super::cancellation::Cancellation;
use super::chart_cache::LoadedChart;
use super::chart_directory::{write_chart, write_rendered, write_values};
use super::error::ReleaseError;
use super::helm_command::{HelmCommand, HelmRun};
use super::object::{self, Object};
use super::storage::StoredRevision;
use super::upgrade::{Upgrade, outcome};
use super::upgrade_plan::UpgradePlan;
use super::{Helm, LastRelease, object_diff};

/// A revision that is to be written: the plan, what its chart rendered to, the objects in that, the objects of the revisions before
/// it, which may be in the cluster, and the history.
type NextRevision<'r> = (&'r UpgradePlan, &'r Rendered, &'r [Object], &'r [Object], &'r [StoredRevision]);

/// The template of what people are told after an upgrade.
const NOTES: &str = "templates/NOTES.txt";

impl Helm {
    /// Returns what a start of the program is about, for a release whose objects are written by patches.
    fn command_run<'r>(&'r self, release: &'r str, cancellation: &'r Cancellation) -> HelmRun<'r> {
        let account = self.guest.as_ref().and_then(|guest| guest.account.split_once('/'));
        HelmRun {
            release,
            namespace: &self.settings.namespace,
            user: account.map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}")),
            timeout: self.settings.timeout,
            mode: ApplyMode::Client,
            cancellation,
        }
    }

    /// Renders a chart as `helm template` does.
    pub(super) async fn render_by_command(
        &self,
        command: &HelmCommand,
        loaded: &LoadedChart,
        name: &str,
        values: &Map<String, Value>,
        is_upgrade: bool,
    ) -> Result<Rendered, ReleaseError> {
        let unwritten = |error: io::Error| unwritten("template", &error);
        let directory = command.directory().map_err(unwritten)?;
        let (chart, file) = (directory.path().join("chart"), directory.path().join("values.yaml"));
        write_chart(&chart, &loaded.chart).map_err(unwritten)?;
        write_values(&file, values).map_err(unwritten)?;
        let never = Cancellation::never();
        let text = command.template(&self.command_run(name, &never), (&chart, &file), is_upgrade).await?;
        let mut rendered = parse(&text, loaded.chart.name())?;
        rendered.chart = (*loaded.chart).clone();
        rendered.crds = loaded.chart.crds();
        Ok(rendered)
    }

    /// Renders a chart to see whether anything changes.
    ///
    /// The program asks the cluster for the kinds of what it renders, also for those that the chart brings in charts below
    /// `charts/`. So these come first where it can't render without.
    pub(super) async fn render_checked(
        &self,
        loaded: &LoadedChart,
        name: &str,
        values: &Map<String, Value>,
    ) -> Result<Rendered, ReleaseError> {
        let rendered = self.render_chart(loaded, name, values, 1, true).await;
        if rendered.is_ok() || self.command.get().is_none() {
            return rendered;
        }
        if !self.create_crds_of_dependencies(&loaded.chart.crds()).await? {
            return rendered;
        }
        self.render_chart(loaded, name, values, 1, true).await
    }

    /// Returns the notes of a chart. `helm template` does not print them.
    async fn notes_of(
        &self,
        command: &HelmCommand,
        run: &HelmRun<'_>,
        rendered: &Rendered,
        (directory, values): (&Path, &Path),
    ) -> Result<String, ReleaseError> {
        if !rendered.chart.templates.iter().any(|template| &*template.name == NOTES) {
            return Ok(String::new());
        }
        let whole = directory.join("whole");
        write_chart(&whole, &rendered.chart).map_err(|error| unwritten("upgrade", &error))?;
        command.notes(run, (&whole, values), self.settings.history_max).await
    }

    /// Creates a revision with the program, if there is one; otherwise nothing is done. What earlier attempts left is cleared up
    /// first, as without it.
    pub(super) async fn by_command(
        &self,
        upgrade: &Upgrade<'_>,
        (plan, rendered, objects, before, history): NextRevision<'_>,
    ) -> Result<Option<ReleaseOutcome>, ReleaseError> {
        let Some(command) = self.command.get() else { return Ok(None) };
        let last = history.last();
        let name = upgrade.name;
        if objects.is_empty() && !before.is_empty() {
            self.check_nothing_is_meant(upgrade, before.len()).await?;
        }
        let unwritten = |error: io::Error| unwritten("upgrade", &error);
        let directory = command.directory().map_err(unwritten)?;
        let (chart, file) = (directory.path().join("chart"), directory.path().join("values.yaml"));
        write_values(&file, upgrade.values).map_err(unwritten)?;
        // The program refuses to go on from a revision that was cut off.
        self.storage.delete_all(name, history, &plan.cut_off).await?;
        if let Some(last) = last.filter(|last| last.status == Status::Uninstalling) {
            self.storage.delete(name, last).await?;
        }
        let change =
            object_diff::first(before, objects, &self.settings.namespace).filter(|_| plan.is_upgrade);
        upgrade.tell_change(plan, change.as_deref());
        let applier = self.applier(name);
        // The program takes what is of other releases, and tells nobody.
        let of_others = applier.of_others(objects).await?;
        let run = HelmRun { mode: upgrade.mode, ..self.command_run(name, upgrade.cancellation) };
        let notes = self.notes_of(command, &run, rendered, (directory.path(), &file)).await?;
        write_rendered(&chart, &rendered.chart.metadata, (&rendered.manifests, &rendered.hooks), &notes)
            .map_err(unwritten)?;
        let done = command.upgrade(&run, (&chart, &file), self.settings.history_max).await;
        let history = self.storage.history(name).await?;
        let Some(newest) =
            history.last().filter(|newest| last.is_none_or(|last| last.written != newest.written))
        else {
            let silent = || ReleaseError::Command {
                what: "upgrade",
                problem: "it ended well, but there is no new revision".to_owned(),
            };
            return Err(done.err().unwrap_or_else(silent));
        };
        // A revision that failed is ours, too: it is removed with the module.
        let marked = self.storage.mark(name, newest.version, &upgrade.marks(last)).await;
        done?;
        let written = marked?;
        for (shown, owner) in of_others {
            applier.tell_taken(&shown, owner);
        }
        applier.delete_gone(before, objects).await?;
        let left = UpgradePlan {
            superseded: plan
                .superseded
                .iter()
                .copied()
                .filter(|version| Some(*version) != plan.base)
                .collect(),
            ..UpgradePlan::default()
        };
        self.supersede(name, &history, (&left, &[])).await?;
        self.track(name, objects).await;
        let last = LastRelease {
            checksum: upgrade.checksum.clone(),
            revision: newest.version,
            maintenance: upgrade.maintenance,
            origin: upgrade.origin.labels(),
            written: vec![newest.written.clone(), written],
        };
        self.last_releases.set(name, Some(last));
        let action = if plan.is_upgrade { ReleaseAction::Upgraded } else { ReleaseAction::Installed };
        let done = outcome(action, newest.version, &upgrade.checksum);
        Ok(Some(ReleaseOutcome { changed: change, taken_over: self.taken_over.take(name), ..done }))
    }

    /// Checks that a chart has no objects where the program printed none: the end of a pipe may have failed, and all objects would be
    /// removed.
    async fn check_nothing_is_meant(&self, upgrade: &Upgrade<'_>, before: usize) -> Result<(), ReleaseError> {
        match self.count_objects(upgrade.loaded, upgrade.name, upgrade.values).await {
            Ok(count @ 1..) => Err(ReleaseError::Command {
                what: "template",
                problem: format!(
                    "it printed no object, and the chart itself has {count}: the {before} of the release stay; look at what --helm-bin does with them"
                ),
            }),
            // Whether it can be rendered without the program tells nothing.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Removes a release whose newest revision the program can go on from; returns whether it was one.
    pub(super) async fn uninstall_by_command(
        &self,
        command: &HelmCommand,
        name: &str,
        cancellation: &Cancellation,
    ) -> Result<bool, ReleaseError> {
        let history = self.storage.history(name).await?;
        let is_whole = |newest: &&StoredRevision| matches!(newest.status, Status::Deployed | Status::Failed);
        let Some(newest) = history.last().filter(is_whole) else { return Ok(false) };
        match self.storage.read(name, newest.version).await {
            Ok(Some(_)) => {}
            // Without its record nobody knows what to remove but by looking for it.
            Ok(None) | Err(ReleaseError::Record { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.objects.pause(name);
        self.last_releases.set(name, None);
        self.first_list.pass_by(name);
        let revisions: Vec<_> = history.iter().map(StoredRevision::revision).collect();
        let records = self.previous(name, &UpgradePlan::of(&revisions)).await?;
        let has_hooks = !newest.skips_hooks();
        command.uninstall(&self.command_run(name, cancellation), has_hooks).await?;
        // It looks at the newest record only.
        let objects: Vec<Object> =
            records.iter().rev().skip(1).flat_map(|record| object::of_record(&record.manifest)).collect();
        self.applier(name).delete(objects.iter()).await?;
        if history.iter().any(StoredRevision::has_source) {
            self.remove_credentials(name).await?;
        }
        for stored in &history {
            self.storage.delete(name, stored).await?;
        }
        Ok(true)
    }
}

fn unwritten(what: &'static str, error: &io::Error) -> ReleaseError {
    ReleaseError::Command { what, problem: format!("its files can't be written: {error}") }
}

/// Returns the objects and hooks in what `helm template` prints. A document that does not say from where it is, as after a post
/// renderer, is from the chart `name`.
fn parse(text: &str, name: &str) -> Result<Rendered, ReleaseError> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for document in manifest::split(text) {
        let (source, content) =
            match document.strip_prefix("# Source: ").and_then(|rest| rest.split_once('\n')) {
                Some((source, content)) => (source.trim().to_owned(), content),
                None => (format!("{name}/templates/rendered.yaml"), document),
            };
        let file = files.entry(source).or_default();
        file.push_str("---\n");
        file.push_str(content);
        file.push('\n');
    }
    let files = files.into_iter().map(|(path, text)| (path, Text::Readable(text))).collect();
    let sorted = manifest::sort(&files, &mut Heads::default(), &mut Warnings::default());
    let sorted = sorted.map_err(RenderError::Manifest)?;
    Ok(Rendered {
        chart: chart::chart::Chart::default(),
        manifests: sorted.manifests,
        hooks: sorted.hooks,
        notes: String::new(),
        crds: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_hooks_are_read_from_what_helm_prints() {
        let text = "---\n# Source: web/templates/b.yaml\nkind: Service\napiVersion: v1\nmetadata: {name: b}\n---\n# Source: web/templates/b.yaml\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\n\
                    # Source: web/templates/t.yaml\nkind: Pod\napiVersion: v1\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: s}\n";
        let rendered = parse(text, "web").unwrap();
        let found: Vec<(&str, &str)> =
            rendered.manifests.iter().map(|one| (one.path.as_str(), one.head.kind.as_str())).collect();
        let b = "web/templates/b.yaml";
        assert_eq!(found, [("web/templates/rendered.yaml", "Secret"), (b, "ConfigMap"), (b, "Service")]);
        assert_eq!(rendered.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(), ["t"]);
        assert!(parse("kind: [", "web").is_err());
        assert!(parse("", "web").unwrap().manifests.is_empty());
    }
}
