//! Metrics with one name: a series for each set of label values, held in little memory, and shown a piece at a time.
//!
//! There are dozens of series for each module. The vectors of the library `prometheus` hold name, help and names of
//! labels once for each of them, 13 KiB of histograms alone for a module with two hooks. And they collect all series
//! at once: more than 60 MiB for a scrape of 1,000 modules. Here a series is the values of its labels and its numbers.
//! The library still writes the text format.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::TextEncoder;
use prometheus::proto::{self, LabelPair, MetricFamily, MetricType};

/// The bounds of all histograms, in seconds.
pub(super) const BUCKETS: [f64; 14] =
    [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// What ends the value of a label within a key. No text contains it, so different values have different keys.
const END: u8 = 0xff;

/// The numbers of one series.
pub(super) trait Sample: Debug + Default + Send + 'static {
    /// What Prometheus calls such a metric.
    const TYPE: MetricType;

    /// Writes the numbers into a metric of the library.
    fn show(&self, metric: &mut proto::Metric);
}

/// A number that only grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter(f64);

/// A number that says how something is now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gauge(f64);

/// How many numbers lay between two bounds.
#[derive(Debug, Default)]
pub(super) struct Histogram(Box<Distribution>);

#[derive(Debug, Default)]
struct Distribution {
    sum: f64,
    /// How many numbers there were.
    count: u64,
    /// How many of them lay above the bound before and not above this one.
    buckets: [u64; BUCKETS.len()],
}

impl Sample for Counter {
    const TYPE: MetricType = MetricType::COUNTER;

    fn show(&self, metric: &mut proto::Metric) {
        let mut counter = proto::Counter::default();
        counter.set_value(self.0);
        metric.set_counter(counter);
    }
}

impl Sample for Gauge {
    const TYPE: MetricType = MetricType::GAUGE;

    fn show(&self, metric: &mut proto::Metric) {
        let mut gauge = proto::Gauge::default();
        gauge.set_value(self.0);
        metric.set_gauge(gauge);
    }
}

impl Sample for Histogram {
    const TYPE: MetricType = MetricType::HISTOGRAM;

    fn show(&self, metric: &mut proto::Metric) {
        let mut histogram = proto::Histogram::default();
        histogram.set_sample_sum(self.0.sum);
        histogram.set_sample_count(self.0.count);
        let mut below = 0;
        let bucket = |(bound, count): (&f64, &u64)| {
            below += count;
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(below);
            bucket
        };
        histogram.set_bucket(BUCKETS.iter().zip(&self.0.buckets).map(bucket).collect());
        metric.set_histogram(histogram);
    }
}

/// All series of one metric.
#[derive(Debug)]
pub(super) struct Family<S> {
    name: String,
    help: &'static str,
    labels: &'static [&'static str],
    state: Mutex<State<S>>,
}

#[derive(Debug, Default)]
struct State<S> {
    /// By the values of the labels, each followed by `END`.
    series: BTreeMap<Box<[u8]>, S>,
    /// The key that is looked for. It is held, so that counting takes no memory.
    key: Vec<u8>,
}

impl<S: Sample> State<S> {
    fn look_for(&mut self, values: &[&str]) {
        self.key.clear();
        for value in values {
            self.key.extend_from_slice(value.as_bytes());
            self.key.push(END);
        }
    }

    fn change(&mut self, values: &[&str], change: impl FnOnce(&mut S)) {
        self.look_for(values);
        if let Some(sample) = self.series.get_mut(self.key.as_slice()) {
            return change(sample);
        }
        let mut sample = S::default();
        change(&mut sample);
        self.series.insert(self.key.as_slice().into(), sample);
    }
}

impl<S: Sample> Family<S> {
    /// Returns a metric without series. `labels` are in the order in which their values are given later.
    pub(super) fn new(name: String, help: &'static str, labels: &'static [&'static str]) -> Self {
        let state = Mutex::new(State { series: BTreeMap::new(), key: Vec::new() });
        Self { name, help, labels, state }
    }

    fn lock<T>(&self, work: impl FnOnce(&mut State<S>) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns one series for the library, with labels sorted by name.
    fn metric(&self, key: &[u8], sample: &S) -> proto::Metric {
        let label = |(name, value): (&&str, &[u8])| {
            let mut label = LabelPair::default();
            label.set_name((*name).to_owned());
            label.set_value(String::from_utf8_lossy(value).into_owned());
            label
        };
        let mut labels: Vec<LabelPair> =
            self.labels.iter().zip(key.split(|byte| *byte == END)).map(label).collect();
        labels.sort_by(|a, b| a.name().cmp(b.name()));
        let mut metric = proto::Metric::default();
        metric.set_label(labels);
        sample.show(&mut metric);
        metric
    }
}

impl Family<Counter> {
    /// Adds to the series with these values of labels; it begins with 0.
    pub(super) fn add(&self, labels: &[&str], amount: f64) {
        self.lock(|state| state.change(labels, |counter| counter.0 += amount));
    }

    /// Adds 1.
    pub(super) fn count(&self, labels: &[&str]) {
        self.add(labels, 1.0);
    }
}

impl Family<Gauge> {
    /// Sets the series with these values of labels.
    pub(super) fn set(&self, labels: &[&str], value: f64) {
        self.lock(|state| state.change(labels, |gauge| gauge.0 = value));
    }

    /// Removes all series whose first labels have these values.
    pub(super) fn remove(&self, labels: &[&str]) {
        self.lock(|state| {
            state.look_for(labels);
            let State { series, key } = state;
            series.retain(|other, _| !other.starts_with(key));
        });
    }

    /// Replaces all series by those that `fill` sets. Who reads meanwhile sees either, and never none.
    pub(super) fn renew(&self, fill: impl FnOnce(&mut Gauges)) {
        let mut gauges = Gauges(State::default());
        fill(&mut gauges);
        self.lock(|state| *state = gauges.0);
    }
}

/// All series of a gauge, while they are set anew.
#[derive(Debug)]
pub(super) struct Gauges(State<Gauge>);

impl Gauges {
    /// Sets the series with these values of labels.
    pub(super) fn set(&mut self, labels: &[&str], value: f64) {
        self.0.change(labels, |gauge| gauge.0 = value);
    }

    /// Adds 1 to the series with these values of labels.
    pub(super) fn count(&mut self, labels: &[&str]) {
        self.0.change(labels, |gauge| gauge.0 += 1.0);
    }
}

impl Family<Histogram> {
    /// Counts a number, in seconds, for the series with these values of labels.
    pub(super) fn observe(&self, labels: &[&str], seconds: f64) {
        self.lock(|state| {
            state.change(labels, |Histogram(distribution)| {
                distribution.sum += seconds;
                distribution.count += 1;
                let mut buckets = BUCKETS.iter().zip(&mut distribution.buckets);
                if let Some((_, count)) = buckets.find(|(bound, _)| seconds <= **bound) {
                    *count += 1;
                }
            });
        });
    }
}

/// A metric of any type, as it is shown.
pub(super) trait Shown: Debug + Send + Sync {
    /// Its name with the prefix.
    fn name(&self) -> &str;

    /// Returns the lines of at most `most` series behind the one with this key, and the key of the last of them; none if
    /// no series is left.
    fn lines(&self, behind: Option<&[u8]>, most: usize) -> Option<(String, Box<[u8]>)>;
}

impl<S: Sample> Shown for Family<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn lines(&self, behind: Option<&[u8]>, most: usize) -> Option<(String, Box<[u8]>)> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let (metrics, last) = self.lock(|state| {
            let found = || state.series.range::<[u8], _>((from, Bound::Unbounded)).take(most);
            let last = found().last().map(|(key, _)| key.clone())?;
            Some((found().map(|(key, sample)| self.metric(key, sample)).collect::<Vec<_>>(), last))
        })?;
        let mut family = MetricFamily::default();
        family.set_name(self.name.clone());
        family.set_help(self.help.to_owned());
        family.set_field_type(S::TYPE);
        family.set_metric(metrics);
        let mut text = String::new();
        if let Err(error) = TextEncoder::new().encode_utf8(&[family], &mut text) {
            text = format!("# {error}\n");
        }
        // Help and type are told once: they are the first two lines.
        let text = match behind {
            Some(_) => text.splitn(3, '\n').nth(2).unwrap_or_default().to_owned(),
            None => text,
        };
        Some((text, last))
    }
}

/// The text of many metrics, made while it is read.
#[derive(Debug)]
pub(super) struct Pieces {
    families: Arc<[Arc<dyn Shown>]>,
    /// Which family comes next.
    at: usize,
    /// The key of the series that was shown last.
    behind: Option<Box<[u8]>>,
}

/// How many series are read at once. The lines of a histogram have about 3 KiB.
const AT_ONCE: usize = 16;

/// From how many bytes on a piece is not made longer.
const PIECE: usize = 32 << 10;

impl Pieces {
    /// Returns the text of these metrics.
    pub(super) fn new(families: Arc<[Arc<dyn Shown>]>) -> Self {
        Self { families, at: 0, behind: None }
    }
}

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut piece = String::new();
        while let Some(family) = self.families.get(self.at).filter(|_| piece.len() < PIECE) {
            if let Some((text, last)) = family.lines(self.behind.as_deref(), AT_ONCE) {
                self.behind = Some(last);
                piece.push_str(&text);
            } else {
                self.at += 1;
                self.behind = None;
            }
        }
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn text(family: impl Shown + 'static) -> String {
        let families: [Arc<dyn Shown>; 1] = [Arc::new(family)];
        Pieces::new(families.into()).collect()
    }

    #[test]
    fn a_metric_in_many_pieces_is_as_in_one_with_its_help_and_type_once() {
        let family = Family::<Counter>::new("runs_total".to_owned(), "Runs", &["module"]);
        let names: Vec<String> = (0..AT_ONCE * 3).map(|number| format!("m{number:03}")).collect();
        for (name, amount) in names.iter().zip(1_u32..) {
            family.add(&[name], amount.into());
        }
        let mut expected = "# HELP runs_total Runs\n# TYPE runs_total counter\n".to_owned();
        for (name, amount) in names.iter().zip(1_u32..) {
            writeln!(expected, "runs_total{{module=\"{name}\"}} {amount}").unwrap();
        }
        assert_eq!(text(family), expected);
        assert_eq!(text(Family::<Counter>::new("none".to_owned(), "None", &[])), "");
    }

    #[test]
    fn labels_are_sorted_and_their_values_kept_apart_and_escaped() {
        let family = Family::<Gauge>::new("g".to_owned(), "G", &["b", "a"]);
        for (number, labels) in (1_u32..).zip([["x", "yz"], ["xy", "z"], ["", "xyz"], ["\"\n\\", "é"]]) {
            family.set(&labels, number.into());
        }
        let text = text(family);
        for line in [
            r#"g{a="yz",b="x"} 1"#,
            r#"g{a="z",b="xy"} 2"#,
            r#"g{a="xyz",b=""} 3"#,
            r#"g{a="é",b="\"\n\\"} 4"#,
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is missing:\n{text}");
        }
    }

    #[test]
    fn a_bound_belongs_to_its_bucket_and_what_is_above_all_is_counted() {
        let family = Family::<Histogram>::new("h".to_owned(), "H", &[]);
        for seconds in [0.0, 0.001, 0.0011, 10.0, 11.5] {
            family.observe(&[], seconds);
        }
        let text = text(family);
        for line in [
            r#"h_bucket{le="0"} 1"#,
            r#"h_bucket{le="0.001"} 2"#,
            r#"h_bucket{le="0.002"} 3"#,
            r#"h_bucket{le="5"} 3"#,
            r#"h_bucket{le="10"} 4"#,
            r#"h_bucket{le="+Inf"} 5"#,
            "h_sum 21.5021",
            "h_count 5",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is missing:\n{text}");
        }
    }

    #[test]
    fn a_gauge_that_is_set_anew_while_it_is_read_shows_what_comes_behind() {
        let family = Family::<Gauge>::new("g".to_owned(), "G", &["module"]);
        let names = ["a", "b", "c"];
        family.renew(|gauges| names.iter().for_each(|name| gauges.set(&[name], 1.0)));
        let (text, last) = family.lines(None, 2).unwrap();
        assert_eq!(text, "# HELP g G\n# TYPE g gauge\ng{module=\"a\"} 1\ng{module=\"b\"} 1\n");
        family.renew(|gauges| ["a", "c", "c"].iter().for_each(|name| gauges.count(&[name])));
        let (text, last) = family.lines(Some(&last), 2).unwrap();
        assert_eq!(text, "g{module=\"c\"} 2\n");
        assert!(family.lines(Some(&last), 2).is_none());
    }

    #[test]
    fn a_piece_is_not_much_longer_than_it_has_to_be() {
        let family = Family::<Histogram>::new("h".to_owned(), "H", &["module"]);
        let names: Vec<String> = (0..1_000).map(|number| format!("m{number:04}")).collect();
        for name in &names {
            family.observe(&[name], 1.0);
        }
        let families: [Arc<dyn Shown>; 1] = [Arc::new(family)];
        let lengths: Vec<usize> = Pieces::new(families.into()).map(|piece| piece.len()).collect();
        assert!(lengths.len() > 10 && lengths.iter().all(|length| *length < 2 * PIECE), "{lengths:?}");
    }
}
