//! Pictures of Repositories, Charts and the charts of modules for people.

use std::sync::Arc;

use super::chart::Chart;
use super::known::Repository;
use super::module_chart::{ModuleChart, chart_of};
use super::repositories::Repositories;
use crate::name::ModuleName;
use crate::package::RepositoryAccess;
use crate::time::Time;
use crate::view::{ChartRepositoryView, ChartVersionView, ChartView, ChartsView, ModuleChartView};

impl Repositories {
    /// Returns a picture of all of them.
    pub(crate) fn view(&self, now: Time) -> ChartsView {
        let repositories = self.repositories.iter();
        let charts = self.charts.iter();
        let modules = self.modules.iter();
        ChartsView {
            repositories: repositories
                .filter_map(|(name, its)| self.repository_view(name, its, now))
                .collect(),
            charts: charts.filter_map(|(name, chart)| chart_view(name, chart, now)).collect(),
            modules: modules.filter_map(|(name, module)| self.module_view(name, module)).collect(),
        }
    }

    fn repository_view(
        &self,
        name: &Arc<str>,
        repository: &Repository,
        now: Time,
    ) -> Option<ChartRepositoryView> {
        let object = repository.object.as_ref()?;
        let unreadable = || RepositoryAccess { name: Arc::clone(name), ..RepositoryAccess::default() };
        Some(ChartRepositoryView {
            access: repository.access(name).unwrap_or_else(unreadable),
            group: repository.group().unwrap_or_default().to_owned(),
            is_synced: object.says_synced(),
            message: object.synced().1.to_owned(),
            charts: self.charts.values().filter(|chart| chart.repository() == Some(name)).count(),
            next_in: repository.fetch_at.map(|at| at.since(now)),
        })
    }

    fn module_view(&self, name: &ModuleName, module: &ModuleChart) -> Option<ModuleChartView> {
        let reference = module.reference.as_ref()?;
        let chart = chart_of(name);
        let known = self.charts.get(&chart);
        let resolved = known.and_then(Chart::found).and_then(|outcome| outcome.as_ref().ok());
        let fits = resolved.and_then(|resolved| resolved.versions.first()?.as_ref().ok());
        Some(ModuleChartView {
            module: name.clone(),
            chart: chart.to_string(),
            repository: reference.repository.to_string(),
            name: reference.name.to_string(),
            constraint: reference.version.to_string(),
            auto_upgrade: reference.auto_upgrade,
            pinned: module.pin.as_ref().map(|pin| pin.package.clone()),
            previous: module.pin.as_ref().and_then(|pin| pin.previous.clone()),
            rejected: module.pin.as_ref().and_then(|pin| Some(pin.rejected.as_ref()?.to_string())),
            given_up: module.pin.as_ref().and_then(|pin| pin.given_up.clone()),
            lost: self.why_lost(name),
            fits: fits.map(|version| version.version.to_string()),
            highest: resolved.and_then(|resolved| resolved.highest.clone()),
        })
    }
}

fn chart_view(name: &Arc<str>, chart: &Chart, now: Time) -> Option<ChartView> {
    let object = chart.object.as_ref()?;
    let text = |text: Option<&Arc<str>>| text.map(ToString::to_string).unwrap_or_default();
    let resolved = chart.found().and_then(|outcome| outcome.as_ref().ok());
    let lines = object.status.get("resolved").and_then(serde_json::Value::as_array).into_iter().flatten();
    let line = |line: &serde_json::Value| {
        let field = |name: &str| Some(line.get(name)?.as_str()?.to_owned());
        Some(ChartVersionView {
            constraint: field("constraint")?,
            version: field("version")?,
            digest: field("digest")?,
        })
    };
    Some(ChartView {
        name: name.to_string(),
        repository: text(chart.repository()),
        chart: text(chart.name()),
        is_synced: object.says_synced().map(|_| chart.is_synced()),
        message: object.synced().1.to_owned(),
        versions: lines.filter_map(line).collect(),
        highest: resolved.and_then(|resolved| resolved.highest.clone()),
        next_in: chart.retry_at.map(|at| at.since(now)),
    })
}
