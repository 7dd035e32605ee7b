//! Metrics that hooks export. Their label sets are their own, and groups of them vanish together.

use std::collections::BTreeMap;

use engine::metric::{MetricAction, MetricOperation};
use engine::{HookId, Scope};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder, TextEncoder};

/// The bounds of a histogram whose hook names none.
const DEFAULT_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// All metrics of all hooks.
#[derive(Debug, Default)]
pub(super) struct Exported {
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

/// What tells one series from another.
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

impl Exported {
    /// Takes in what one run of a hook wrote: the groups it names are replaced, the rest accumulates.
    ///
    /// Returns what could not be taken, one line each.
    pub(super) fn take(&mut self, hook: &HookId, operations: &[MetricOperation]) -> Vec<String> {
        for group in engine::metric::groups(operations) {
            self.retain(|series, _| series.group.as_deref() != Some(group));
        }
        let mut problems = Vec::new();
        for operation in operations {
            if let Err(problem) = self.put(hook, operation) {
                problems.push(format!("metric {} of hook {hook}: {problem}", operation.name));
            }
        }
        problems
    }

    /// Forgets what the hooks of a scope exported.
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
            return Err("another hook exports it as another type".to_owned());
        }
        let mut labels = operation.labels.clone();
        labels.insert("hook".to_owned(), hook.name.to_string());
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
        let metrics = self.series.iter().map(|(series, amount)| {
            let mut metric = Metric::default();
            let label = |name: &&String| {
                let mut label = LabelPair::default();
                label.set_name((*name).clone());
                label.set_value(series.labels.get(*name).cloned().unwrap_or_default());
                label
            };
            metric.set_label(names.iter().map(label).collect());
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
