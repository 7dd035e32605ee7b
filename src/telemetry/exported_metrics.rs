//! Metrics that hooks export, with labels of their own and groups that expire together. See docs/hooks.md#metrics.

use std::collections::BTreeMap;

use engine::metric::{MetricAction, MetricOperation};
use engine::{HookId, Scope};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder, TextEncoder};

/// The default bounds of a histogram.
const DEFAULT_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The label with the name of the hook that exports a series.
const HOOK: &str = "hook";

/// All metrics of all hooks.
#[derive(Debug, Default)]
pub(super) struct ExportedMetrics {
    families: BTreeMap<String, Family>,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    buckets: Vec<f64>,
    series: BTreeMap<Series, Amount>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The identity of a series: its group and labels.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Series {
    group: Option<String>,
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Amount {
    owner: Scope,
    value: f64,
    count: u64,
    buckets: Vec<u64>,
}

impl ExportedMetrics {
    /// Applies the operations of one run of a hook: the groups it names are replaced, the rest accumulates.
    ///
    /// Returns what is wrong with operations that were refused, one line each.
    pub(super) fn take(&mut self, hook: &HookId, operations: &[MetricOperation]) -> Vec<String> {
        for group in engine::metric::groups(operations) {
            self.retain(|series, _| series.group.as_deref() != Some(group));
        }
        let expires_own = |operation: &MetricOperation| {
            operation.action == MetricAction::Expire && operation.group.is_none()
        };
        if operations.iter().any(expires_own) {
            let is_own = |series: &Series, amount: &Amount| {
                series.group.is_none()
                    && amount.owner == hook.scope
                    && series.labels.get(HOOK).is_some_and(|name| *name == *hook.name.as_str())
            };
            self.retain(|series, amount| !is_own(series, amount));
        }
        let mut problems = Vec::new();
        for operation in operations {
            if let Err(problem) = self.put(hook, operation) {
                problems.push(format!("metric {} of hook {hook}: {problem}", operation.name));
            }
        }
        problems
    }

    /// Removes what the hooks of a scope exported.
    pub(super) fn forget(&mut self, scope: &Scope) {
        self.retain(|_, amount| amount.owner != *scope);
    }

    fn retain(&mut self, keep: impl Fn(&Series, &Amount) -> bool) {
        for family in self.families.values_mut() {
            family.series.retain(|series, amount| keep(series, amount));
        }
        self.families.retain(|_, family| !family.series.is_empty());
    }

    fn put(&mut self, hook: &HookId, operation: &MetricOperation) -> Result<(), String> {
        let (kind, value, buckets) = match &operation.action {
            MetricAction::Add(value) => (Kind::Counter, *value, Vec::new()),
            MetricAction::Set(value) => (Kind::Gauge, *value, Vec::new()),
            MetricAction::Observe { value, buckets } => (Kind::Histogram, *value, buckets.clone()),
            MetricAction::Expire => return Ok(()),
            MetricAction::Unknown(action) => {
                return Err(format!("unknown action {action:?}; use add, set, observe or expire"));
            }
        };
        let buckets = if buckets.is_empty() { DEFAULT_BUCKETS.to_vec() } else { buckets };
        let family = self.families.entry(operation.name.clone());
        let family = family.or_insert_with(|| Family { kind, buckets, series: BTreeMap::new() });
        if family.kind != kind {
            return Err(format!("it is exported as a {} already", family.kind.name()));
        }
        let mut labels = operation.labels.clone();
        labels.insert(HOOK.to_owned(), hook.name.to_string());
        if let Scope::Module(module) = &hook.scope {
            labels.insert("module".to_owned(), module.to_string());
        }
        let series = Series { group: operation.group.clone(), labels };
        let empty = || Amount {
            owner: hook.scope.clone(),
            value: 0.0,
            count: 0,
            buckets: vec![0; family.buckets.len()],
        };
        let amount = family.series.entry(series).or_insert_with(empty);
        match kind {
            Kind::Counter => amount.value += value,
            Kind::Gauge => amount.value = value,
            Kind::Histogram => {
                amount.value += value;
                amount.count += 1;
                for (count, bound) in amount.buckets.iter_mut().zip(&family.buckets) {
                    *count += u64::from(value <= *bound);
                }
            }
        }
        Ok(())
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(super) fn text(&self) -> String {
        let families: Vec<MetricFamily> =
            self.families.iter().map(|(name, family)| family.proto(name)).collect();
        let mut out = Vec::new();
        match TextEncoder::new().encode(&families, &mut out) {
            Ok(()) => String::from_utf8(out).unwrap_or_default(),
            Err(error) => format!("# {error}\n"),
        }
    }
}

impl Family {
    fn proto(&self, name: &str) -> MetricFamily {
        // All series of a name show the same labels; those that a series lacks are empty.
        let names: std::collections::BTreeSet<&String> =
            self.series.keys().flat_map(|series| series.labels.keys()).collect();
        // Series of several groups can have the same labels; a scrape may show them only once.
        let mut shown: BTreeMap<Vec<&str>, Amount> = BTreeMap::new();
        for (series, amount) in &self.series {
            let values =
                names.iter().map(|name| series.labels.get(*name).map_or("", String::as_str)).collect();
            match shown.get_mut(&values) {
                Some(known) => self.add(known, amount),
                None => {
                    shown.insert(values, amount.clone());
                }
            }
        }
        let metrics = shown.iter().map(|(values, amount)| {
            let mut metric = Metric::default();
            let label = |(name, value): (&&String, &&str)| {
                let mut label = LabelPair::default();
                label.set_name((*name).clone());
                label.set_value((*value).to_owned());
                label
            };
            metric.set_label(names.iter().zip(values).map(label).collect());
            self.fill(&mut metric, amount);
            metric
        });
        let mut family = MetricFamily::default();
        family.set_metric(metrics.collect());
        family.set_name(name.to_owned());
        family.set_help(name.to_owned());
        family.set_field_type(match self.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram => MetricType::HISTOGRAM,
        });
        family
    }

    /// Merges two series with the same labels: counters and histograms are added, of gauges the last one counts.
    fn add(&self, known: &mut Amount, other: &Amount) {
        match self.kind {
            Kind::Gauge => known.value = other.value,
            Kind::Counter | Kind::Histogram => {
                known.value += other.value;
                known.count += other.count;
                for (count, more) in known.buckets.iter_mut().zip(&other.buckets) {
                    *count += more;
                }
            }
        }
    }

    fn fill(&self, metric: &mut Metric, amount: &Amount) {
        match self.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(amount.value);
                metric.set_counter(counter);
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(amount.value);
                metric.set_gauge(gauge);
            }
            Kind::Histogram => {
                let mut histogram = Histogram::default();
                histogram.set_sample_count(amount.count);
                histogram.set_sample_sum(amount.value);
                let bucket = |(bound, count): (&f64, &u64)| {
                    let mut bucket = Bucket::default();
                    bucket.set_upper_bound(*bound);
                    bucket.set_cumulative_count(*count);
                    bucket
                };
                histogram.set_bucket(self.buckets.iter().zip(&amount.buckets).map(bucket).collect());
                metric.set_histogram(histogram);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str) -> HookId {
        HookId { scope: Scope::Global, name: name.into() }
    }

    /// Exports what a run of the hook wrote and returns the problems.
    fn run(exported: &mut ExportedMetrics, hook: &HookId, text: &str) -> Vec<String> {
        exported.take(hook, &engine::metric::parse(text.as_bytes()).unwrap())
    }

    /// Returns the samples without comments.
    fn samples(exported: &ExportedMetrics) -> String {
        let text = exported.text();
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_kind_of_metric_is_shown_with_its_type_and_its_hook() {
        let mut exported = ExportedMetrics::default();
        let module = HookId { scope: Scope::Module("web".into()), name: "hooks/a.sh".into() };
        let text = r#"{"name":"c","add":1.5,"labels":{"hook":"forged","zone":"a"}} {"name":"g","set":-2}
            {"name":"h","action":"observe","value":0.3,"buckets":[0.1,0.5]}
            {"name":"d","action":"observe","value":0.3,"buckets":[]}"#;
        assert_eq!(run(&mut exported, &module, text), Vec::<String>::new());
        let text = exported.text();
        for line in [
            "# HELP c c",
            "# TYPE c counter",
            r#"c{hook="hooks/a.sh",module="web",zone="a"} 1.5"#,
            "# TYPE g gauge",
            r#"g{hook="hooks/a.sh",module="web"} -2"#,
            "# TYPE h histogram",
            r#"h_bucket{hook="hooks/a.sh",module="web",le="0.1"} 0"#,
            r#"h_bucket{hook="hooks/a.sh",module="web",le="0.5"} 1"#,
            r#"h_bucket{hook="hooks/a.sh",module="web",le="+Inf"} 1"#,
            r#"h_sum{hook="hooks/a.sh",module="web"} 0.3"#,
            r#"h_count{hook="hooks/a.sh",module="web"} 1"#,
            r#"d_bucket{hook="hooks/a.sh",module="web",le="0.25"} 0"#,
            r#"d_bucket{hook="hooks/a.sh",module="web",le="10"} 1"#,
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is missing:\n{text}");
        }
        exported.forget(&module.scope);
        assert_eq!(exported.text(), "");
    }

    #[test]
    fn metrics_without_a_group_stay_and_accumulate() {
        let mut exported = ExportedMetrics::default();
        for _ in 0..3 {
            run(&mut exported, &hook("a"), r#"{"name":"runs","add":0.5}"#);
        }
        run(&mut exported, &hook("a"), r#"{"name":"other","set":1}"#);
        run(&mut exported, &hook("a"), "");
        assert_eq!(samples(&exported), "other{hook=\"a\"} 1\nruns{hook=\"a\"} 1.5");
    }

    #[test]
    fn metrics_of_a_group_are_replaced_by_each_run_that_names_it() {
        let mut exported = ExportedMetrics::default();
        let two = r#"{"group":"g","name":"pods","set":1,"labels":{"ns":"a"}} {"group":"g","name":"pods","set":2,"labels":{"ns":"b"}}"#;
        run(&mut exported, &hook("a"), two);
        run(&mut exported, &hook("a"), r#"{"name":"alone","set":1} {"group":"h","name":"x","set":1}"#);
        run(&mut exported, &hook("a"), r#"{"group":"g","name":"pods","add":1,"labels":{"ns":"b"}}"#);
        assert_eq!(
            samples(&exported),
            "alone{hook=\"a\"} 1\npods{hook=\"a\",ns=\"b\"} 1\nx{hook=\"a\"} 1",
            "all of the group went, its type too"
        );
        // A group belongs to nobody: another hook can expire it.
        run(&mut exported, &hook("b"), r#"{"group":"g","action":"expire"}"#);
        assert_eq!(samples(&exported), "alone{hook=\"a\"} 1\nx{hook=\"a\"} 1");
    }

    #[test]
    fn to_expire_without_a_group_removes_what_the_hook_itself_exports_without_one() {
        let mut exported = ExportedMetrics::default();
        run(&mut exported, &hook("a"), r#"{"name":"x","set":1} {"name":"y","set":1,"group":"g"}"#);
        run(&mut exported, &hook("b"), r#"{"name":"x","set":2}"#);
        run(&mut exported, &hook("a"), r#"{"name":"z","add":1} {"action":"expire"}"#);
        assert_eq!(samples(&exported), "x{hook=\"b\"} 2\ny{hook=\"a\"} 1\nz{hook=\"a\"} 1");
    }

    #[test]
    fn series_have_all_labels_of_their_metric_and_none_is_shown_twice() {
        let mut exported = ExportedMetrics::default();
        run(&mut exported, &hook("a"), r#"{"name":"x","add":1} {"name":"x","add":2,"labels":{"k":"v"}}"#);
        run(
            &mut exported,
            &hook("a"),
            r#"{"name":"x","add":4,"group":"g"} {"name":"x","add":8,"group":"g","labels":{"k":""}}"#,
        );
        assert_eq!(samples(&exported), "x{hook=\"a\",k=\"\"} 13\nx{hook=\"a\",k=\"v\"} 2");
    }

    #[test]
    fn what_is_invalid_is_reported_and_the_rest_is_exported() {
        let mut exported = ExportedMetrics::default();
        run(&mut exported, &hook("a"), r#"{"name":"x","set":1}"#);
        let problems = run(
            &mut exported,
            &hook("b"),
            r#"{"name":"x","add":1} {"name":"y","action":"mul"} {"name":"z","set":1}"#,
        );
        assert_eq!(
            problems,
            [
                "metric x of hook global/b: it is exported as a gauge already",
                "metric y of hook global/b: unknown action \"mul\"; use add, set, observe or expire"
            ]
        );
        assert_eq!(samples(&exported), "x{hook=\"a\"} 1\nz{hook=\"b\"} 1");
    }
}
