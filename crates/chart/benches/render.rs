//! How long charts take to render.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::sync::Arc;

use chart::environment::FixedEnvironment;
use chart::load::{Tree, from_directory};
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, Request};
use chart::render_cache::{Cache, render};
use chart::template::Limits;
use chart::warnings::Warnings;

const HELPERS: &str = include_str!("chart/templates/_helpers.tpl");
const ALL: &str = include_str!("chart/templates/all.yaml");
const VALUES: &str = include_str!("chart/values.yaml");
const CHART: &str = include_str!("chart/Chart.yaml");

fn main() {
    divan::main();
}

/// Puts the files of a chart with so many copies of its template below `directory`.
fn put(files: &mut Tree, directory: &str, name: &str, copies: usize) {
    let mut put = |path: &str, text: &str| {
        files.insert(format!("{directory}{path}"), Arc::from(text.as_bytes()));
    };
    put("Chart.yaml", &CHART.replace("name: ", &format!("name: {name}-")));
    put("values.yaml", VALUES);
    put("templates/_helpers.tpl", HELPERS);
    for copy in 0..copies {
        let name = format!("name: {{{{ .Chart.Name }}}}-{copy}");
        put(&format!("templates/all{copy:03}.yaml"), &ALL.replace("name: {{ .Chart.Name }}", &name));
    }
}

fn chart_of(copies: usize) -> chart::chart::Chart {
    let mut files = Tree::new();
    put(&mut files, "", "top", copies);
    from_directory(&files, &mut Warnings::default()).unwrap()
}

/// A hundred templates, forty of them in two subcharts: 300 objects.
fn with_subcharts() -> chart::chart::Chart {
    let mut files = Tree::new();
    put(&mut files, "", "top", 60);
    put(&mut files, "charts/one/", "one", 20);
    put(&mut files, "charts/two/", "two", 20);
    from_directory(&files, &mut Warnings::default()).unwrap()
}

/// Renders with a value of its own for each `turn`, so that nothing is known of the outcome
/// of another one.
fn rendered(chart: &chart::chart::Chart, cache: &mut Cache, turn: usize) -> usize {
    let release = Release { name: "rel".into(), namespace: "ns".into(), revision: 1, is_upgrade: false };
    let capabilities = Capabilities::without_cluster(KubeVersion::default());
    let values = [("turn".to_owned(), turn.into())].into_iter().collect();
    let request = Request {
        values: &values,
        release: &release,
        capabilities: &capabilities,
        limits: Limits { stack: 1 << 20, ..Limits::default() },
        validate: true,
    };
    let mut environment = FixedEnvironment::default();
    render(chart, &request, cache, &mut environment, &mut Warnings::default()).unwrap().manifests.len()
}

/// A `ServiceAccount`, a ConfigMap and a Deployment, with templates that were parsed before.
#[divan::bench(args = [1, 100])]
fn warm(bencher: divan::Bencher<'_, '_>, copies: usize) {
    let chart = chart_of(copies);
    let mut cache = Cache::default();
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        rendered(&chart, &mut cache, turn)
    });
}

/// The same with nothing parsed before.
#[divan::bench(args = [1, 100])]
fn cold(bencher: divan::Bencher<'_, '_>, copies: usize) {
    let chart = chart_of(copies);
    bencher.bench_local(|| rendered(&chart, &mut Cache::default(), 0));
}

/// A hundred templates with subcharts, parsed before.
#[divan::bench]
fn warm_with_subcharts(bencher: divan::Bencher<'_, '_>) {
    let chart = with_subcharts();
    let mut cache = Cache::default();
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        rendered(&chart, &mut cache, turn)
    });
}

/// The same with nothing parsed before.
#[divan::bench]
fn cold_with_subcharts(bencher: divan::Bencher<'_, '_>) {
    let chart = with_subcharts();
    bencher.bench_local(|| rendered(&chart, &mut Cache::default(), 0));
}

/// The same as the last time: what the operator asks for when nothing has changed.
#[divan::bench]
fn again_with_subcharts(bencher: divan::Bencher<'_, '_>) {
    let chart = with_subcharts();
    let mut cache = Cache::default();
    rendered(&chart, &mut cache, 0);
    bencher.bench_local(|| rendered(&chart, &mut cache, 0));
}
