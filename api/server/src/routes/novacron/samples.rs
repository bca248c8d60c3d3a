//! What was measured lately, by resource and metric: a ring for each, and not too many of them.
//!
//! Fed by reports of use and by the data that comes with requests, never by what a request for a
//! prediction claims. In memory only: it is evidence for advice, and nothing is decided by it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use wire::novacron::{Json, NodeResourceInfo, Time};

/// Samples kept of one metric.
const MOST_SAMPLES: usize = 512;
/// Metrics kept in all; beyond, the one that was fed longest ago makes room. 32 MiB at most.
const MOST_SERIES: usize = 4_096;
/// Metrics taken from one item of data.
const MOST_METRICS: usize = 64;
/// Largest number that is taken for a measurement: sums of squares of it stay finite.
const MOST_VALUE: f64 = 1e15;
/// Longest name of a resource or metric that is kept.
const MOST_NAME_BYTES: usize = 256;

/// A value and when it was measured, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at_ms: u64,
    pub(crate) value: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Samples {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    series: BTreeMap<(String, String), Series>,
    /// Series by when they were last fed.
    oldest: BTreeMap<u64, (String, String)>,
    fed: u64,
}

#[derive(Debug, Default)]
struct Series {
    samples: VecDeque<Sample>,
    fed: u64,
}

impl Samples {
    /// Keeps a sample. What is older than the newest of its series is not kept: it is a repetition.
    pub(crate) fn record(&self, resource: &str, metric: &str, sample: Sample) {
        let too_long = resource.len() > MOST_NAME_BYTES || metric.len() > MOST_NAME_BYTES;
        if too_long || !sample.value.is_finite() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.record((resource.to_owned(), metric.to_owned()), sample);
    }

    /// What a node reports of itself, as shares from 0 to 1.
    pub(crate) fn record_node(&self, node: &NodeResourceInfo, at_ms: u64) {
        let share = |used: i64, total: i64| used as f64 / total as f64;
        for (metric, used, total) in [
            ("cpu_usage", node.used_cpu, node.total_cpu),
            ("memory_usage", node.used_memory_mb, node.total_memory_mb),
            ("disk_usage", node.used_disk_gb, node.total_disk_gb),
        ] {
            let sample = Sample { at_ms, value: share(used, total) };
            self.record(node.node_id.trim(), metric, sample);
        }
    }

    /// The samples of a metric, oldest first.
    pub(crate) fn of(&self, resource: &str, metric: &str) -> Vec<Sample> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (resource.to_owned(), metric.to_owned());
        kept.series.get(&key).map(|it| it.samples.iter().copied().collect()).unwrap_or_default()
    }
}

impl Kept {
    fn record(&mut self, key: (String, String), sample: Sample) {
        self.fed = self.fed.saturating_add(1);
        let known = self.series.contains_key(&key);
        if !known
            && self.series.len() >= MOST_SERIES
            && let Some((_, oldest)) = self.oldest.pop_first()
        {
            self.series.remove(&oldest);
        }
        let series = self.series.entry(key.clone()).or_default();
        if series.samples.back().is_some_and(|last| last.at_ms >= sample.at_ms) {
            return;
        }
        if series.samples.len() == MOST_SAMPLES {
            series.samples.pop_front();
        }
        series.samples.push_back(sample);
        self.oldest.remove(&series.fed);
        series.fed = self.fed;
        self.oldest.insert(self.fed, key);
    }
}

/// The numbers of a list of data by metric, in order. An item is an object of numbers, also one
/// level down, or a number by itself, which is the metric `value`.
pub(super) fn metrics_of(data: &Option<Vec<Json>>) -> BTreeMap<String, Vec<f64>> {
    let mut metrics: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for item in data.iter().flatten() {
        for (metric, value) in numbers(item) {
            if metrics.len() < MOST_METRICS || metrics.contains_key(&metric) {
                metrics.entry(metric).or_default().push(value);
            }
        }
    }
    metrics
}

/// Keeps the numbers of a list of data whose items say when they were measured.
pub(super) fn record_all(samples: &Samples, resource: &str, data: &Option<Vec<Json>>) {
    for item in data.iter().flatten() {
        let Some(at_ms) = item.get("timestamp").and_then(instant) else { continue };
        for (metric, value) in numbers(item) {
            samples.record(resource, &metric, Sample { at_ms, value });
        }
    }
}

/// RFC 3339, or seconds since 1970.
fn instant(value: &Json) -> Option<u64> {
    match value {
        Json::Text(text) => Time::parse(text).map(|time| time.unix_millis()),
        other => {
            let seconds = other.as_f64()?;
            (0.0..=1e11).contains(&seconds).then_some((seconds * 1000.0) as u64)
        }
    }
}

/// The numbers of one item, by name.
pub(super) fn numbers(item: &Json) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    let mut add = |name: &str, value: &Json| {
        if let Some(number) = value.as_f64()
            && number.abs() <= MOST_VALUE
            && name != "timestamp"
            && found.len() < MOST_METRICS
        {
            found.push((name.to_owned(), number));
        }
    };
    match item {
        Json::Object(members) => {
            for (name, value) in members {
                match value {
                    Json::Object(inner) => {
                        for (inner_name, value) in inner {
                            add(&format!("{name}.{inner_name}"), value);
                        }
                    }
                    value => add(name, value),
                }
            }
        }
        value => add("value", value),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, value: f64) -> Sample {
        Sample { at_ms, value }
    }

    #[test]
    fn a_ring_keeps_the_newest_and_refuses_what_is_not_newer() {
        let samples = Samples::default();
        for at_ms in 0..600 {
            samples.record("n", "cpu", sample(at_ms, at_ms as f64));
        }
        samples.record("n", "cpu", sample(599, 0.0));
        samples.record("n", "cpu", sample(700, f64::NAN));
        let kept = samples.of("n", "cpu");
        assert_eq!((kept.len(), kept[0].at_ms, kept[511].at_ms), (512, 88, 599));
    }

    #[test]
    fn the_series_that_was_fed_longest_ago_makes_room() {
        let samples = Samples::default();
        for number in 0..MOST_SERIES {
            samples.record(&number.to_string(), "cpu", sample(1, 0.5));
        }
        samples.record("0", "cpu", sample(2, 0.5));
        samples.record("new", "cpu", sample(1, 0.5));
        assert_eq!(samples.of("0", "cpu").len(), 2, "fed again");
        assert_eq!(samples.of("1", "cpu").len(), 0, "made room");
        assert_eq!(samples.of("new", "cpu").len(), 1);
        let kept = samples.kept.lock().expect("unpoisoned");
        assert_eq!((kept.series.len(), kept.oldest.len()), (MOST_SERIES, MOST_SERIES));
    }

    #[test]
    fn reports_of_nodes_are_shares_and_nothing_is_no_share() {
        let samples = Samples::default();
        let node = NodeResourceInfo {
            node_id: "n".into(),
            total_cpu: 8,
            used_cpu: 2,
            ..Default::default()
        };
        samples.record_node(&node, 1);
        assert_eq!(samples.of("n", "cpu_usage"), [sample(1, 0.25)]);
        assert!(samples.of("n", "memory_usage").is_empty());
    }

    #[test]
    fn numbers_are_found_one_level_down() {
        let item = Json::object([
            ("timestamp", Json::Integer(5)),
            ("cpu", Json::Float(0.5)),
            ("disk", Json::object([("read", Json::Integer(7)), ("name", "sda".into())])),
        ]);
        let expected = [("cpu".to_owned(), 0.5), ("disk.read".to_owned(), 7.0)];
        assert_eq!(numbers(&item), expected);
        let samples = Samples::default();
        record_all(&samples, "v", &Some(vec![item]));
        assert_eq!(samples.of("v", "disk.read"), [sample(5_000, 7.0)]);
    }
}
