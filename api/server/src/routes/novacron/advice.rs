//! Advice from numbers alone: scaling, bandwidth, performance and the kind of a workload.
//!
//! Every sentence and every figure comes from the data it is given; thresholds are named here.

use super::samples::{metrics_of, numbers};
use super::stats::{predictability, quantile, summary};
use std::collections::BTreeMap;
use wire::novacron::{
    AnalyzeWorkloadRequest, BandwidthAdvice, Basis, Json, MODEL, MetricSummary,
    OptimizeBandwidthRequest, OptimizePerformanceRequest, OptimizeScalingRequest,
    PerformanceAdvice, QosFinding, ScalingAdvice, ScalingDecision, WorkloadAnalysis,
};

/// A VM whose 95th percentile is above this share of what it has should have more.
const SCALE_UP_ABOVE: f64 = 0.8;
/// And below this share, less.
const SCALE_DOWN_BELOW: f64 = 0.3;
/// What the 95th percentile should come to after scaling.
const AIM: f64 = 0.6;
/// Bandwidth beyond the 95th percentile.
const HEADROOM: f64 = 1.2;
/// A workload is of a kind if it uses this share of it on average.
const INTENSIVE_FROM: f64 = 0.6;
const IDLE_BELOW: f64 = 0.05;
/// Variation below which a metric is steady.
const STEADY_BELOW: f64 = 0.1;
/// A metric is bursty if its 95th percentile is this many times its median.
const BURSTY_FROM: f64 = 2.0;
/// And trending if it moved by this share of its median from first to last.
const TREND_FROM: f64 = 0.2;

type Metrics = BTreeMap<String, Vec<f64>>;

pub(super) fn scaling(request: &OptimizeScalingRequest) -> ScalingAdvice {
    let metrics = metrics_of(&request.historical_data);
    let current = request.current_resources.clone().unwrap_or_default();
    let decisions = metrics.iter().filter_map(|(metric, values)| {
        let resource = resource_of(metric)?;
        Some(scale(resource, &as_shares(values)?, metric, amount(&current, resource)))
    });
    ScalingAdvice {
        vm_id: request.vm_id.clone(),
        decisions: decisions.collect(),
        confidence: confidence(&metrics),
        model: MODEL,
        basis: basis(&metrics),
    }
}

fn scale(resource: &str, shares: &[f64], metric: &str, current: Option<f64>) -> ScalingDecision {
    let summary = summary(shares);
    let (p95, samples) = (summary.p95, summary.samples);
    let (action, reason) = match p95 {
        p95 if p95 > SCALE_UP_ABOVE => ("scale_up", format!("above {SCALE_UP_ABOVE}")),
        p95 if p95 < SCALE_DOWN_BELOW => ("scale_down", format!("below {SCALE_DOWN_BELOW}")),
        _ => ("no_action", format!("between {SCALE_DOWN_BELOW} and {SCALE_UP_ABOVE}")),
    };
    let wanted = |current: f64| if action == "no_action" { current } else { current * p95 / AIM };
    ScalingDecision {
        resource: resource.to_owned(),
        action,
        current,
        recommended: current.map(wanted),
        summary,
        reason: format!(
            "the 95th percentile of {metric} over {samples} samples is {p95:.3}, {reason}"
        ),
    }
}

pub(super) fn bandwidth(request: &OptimizeBandwidthRequest) -> BandwidthAdvice {
    let metrics = metrics_of(&request.traffic_data);
    let qos = request.qos_requirements.clone().unwrap_or_default();
    let required: Vec<(&String, f64)> =
        qos.iter().filter_map(|(key, value)| Some((key, value.as_f64()?))).collect();
    let mut recommended = BTreeMap::new();
    for (metric, values) in metrics.iter().filter(|(metric, _)| is_bandwidth(metric)) {
        let least = required.iter().find(|(key, _)| key.strip_prefix("min_") == Some(metric));
        let wanted = quantile(values, 0.95) * HEADROOM;
        recommended.insert(metric.clone(), least.map_or(wanted, |(_, least)| wanted.max(*least)));
    }
    BandwidthAdvice {
        network_id: request.network_id.clone(),
        metrics: summaries(&metrics),
        recommended_bandwidth: recommended,
        qos: required.iter().map(|(key, bound)| held_against(key, *bound, &metrics)).collect(),
        confidence: confidence(&metrics),
        model: MODEL,
        basis: basis(&metrics),
    }
}

fn is_bandwidth(metric: &str) -> bool {
    ["bandwidth", "throughput", "mbps", "bytes", "rate", "value"]
        .iter()
        .any(|word| metric.contains(word))
}

fn held_against(key: &str, bound: f64, metrics: &Metrics) -> QosFinding {
    let of = |prefix: &str| key.strip_prefix(prefix).and_then(|metric| metrics.get(metric));
    let (measured, met) = match (of("max_"), of("min_")) {
        (Some(values), _) => {
            let high = quantile(values, 0.95);
            (Some(high), Some(high <= bound))
        }
        (_, Some(values)) => {
            let low = quantile(values, 0.05);
            (Some(low), Some(low >= bound))
        }
        _ => (None, None),
    };
    QosFinding { requirement: key.to_owned(), required: bound, measured, met }
}

pub(super) fn workload(request: &AnalyzeWorkloadRequest) -> WorkloadAnalysis {
    let metrics = metrics_of(&request.workload_data);
    let shares = metrics.iter().filter_map(|(metric, values)| {
        let kind = kind_of(resource_of(metric)?)?;
        Some((kind, summary(&as_shares(values)?)))
    });
    let shares: Vec<(&'static str, MetricSummary)> = shares.collect();
    let busiest = shares.iter().max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
    let workload_type = match busiest {
        None => "unknown",
        Some((kind, summary)) if summary.mean >= INTENSIVE_FROM => kind,
        Some((_, summary)) if summary.mean < IDLE_BELOW => "idle",
        Some(_) => "balanced",
    };
    WorkloadAnalysis {
        vm_id: request.vm_id.clone(),
        workload_type,
        pattern: busiest.map_or("unknown", |(_, summary)| pattern(summary)),
        metrics: summaries(&metrics),
        confidence: confidence(&metrics),
        model: MODEL,
        basis: basis(&metrics),
    }
}

fn pattern(summary: &MetricSummary) -> &'static str {
    let steps = summary.samples.saturating_sub(1) as f64;
    let moved = summary.slope_per_sample * steps;
    let middle = summary.p50.abs().max(1e-9);
    match summary {
        summary if summary.samples < 2 => "unknown",
        _ if moved >= TREND_FROM * middle => "growing",
        _ if moved <= -TREND_FROM * middle => "shrinking",
        summary if summary.variation < STEADY_BELOW => "steady",
        summary if summary.p95 >= BURSTY_FROM * middle => "bursty",
        _ => "varying",
    }
}

/// What the data says. The hosts of the living fleet are the caller's to add.
pub(super) fn performance(request: &OptimizePerformanceRequest) -> PerformanceAdvice {
    let metrics = metrics_of(&request.performance_data);
    let mut recommendations = Vec::new();
    for (metric, values) in &metrics {
        let (Some(resource), Some(shares)) = (resource_of(metric), as_shares(values)) else {
            continue;
        };
        let decision = scale(resource, &shares, metric, None);
        if decision.action != "no_action" {
            recommendations.push(format!("{} {resource}: {}", decision.action, decision.reason));
        }
    }
    let goals = request.optimization_goals.iter().flatten().filter_map(Json::as_str);
    let speaks_of = |goal: &str| {
        let mut words = goal.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
        words.any(|word| metrics.keys().any(|metric| metric.contains(word)))
    };
    let goals_without_data = goals.filter(|goal| !speaks_of(goal)).map(str::to_owned).collect();
    PerformanceAdvice {
        cluster_id: request.cluster_id.clone(),
        metrics: summaries(&metrics),
        recommendations,
        goals_without_data,
        confidence: confidence(&metrics),
        model: MODEL,
        basis: basis(&metrics),
        ..PerformanceAdvice::default()
    }
}

/// Which resource a metric of use speaks of, by its name.
pub(super) fn resource_of(metric: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 9] = [
        ("cpu", "cpu"),
        ("mem", "memory"),
        ("disk", "disk"),
        ("storage", "disk"),
        ("iops", "disk"),
        ("io_", "disk"),
        ("net", "network"),
        ("bandwidth", "network"),
        ("gpu", "gpu"),
    ];
    let metric = metric.to_ascii_lowercase();
    // "gpu" has "pu" in common with "cpu" only; the first word that is found decides.
    WORDS.iter().find(|(word, _)| metric.contains(word)).map(|(_, resource)| *resource)
}

fn kind_of(resource: &str) -> Option<&'static str> {
    match resource {
        "cpu" => Some("cpu_intensive"),
        "memory" => Some("memory_intensive"),
        "disk" => Some("io_intensive"),
        "network" => Some("network_intensive"),
        _ => None,
    }
}

/// Values as shares of what there is: taken as they are up to 1, as percent up to 100, and not at
/// all beyond, because then nobody knows of what they are a part.
fn as_shares(values: &[f64]) -> Option<Vec<f64>> {
    let highest = quantile(values, 1.0);
    let scale = match highest {
        _ if values.iter().any(|value| *value < 0.0) => return None,
        highest if highest <= 1.0 => 1.0,
        highest if highest <= 100.0 => 0.01,
        _ => return None,
    };
    Some(values.iter().map(|value| value * scale).collect())
}

/// The amount of a resource that a VM has: the first number whose name speaks of it.
fn amount(current: &BTreeMap<String, Json>, resource: &str) -> Option<f64> {
    let given = Json::object(current.iter().map(|(key, value)| (key.as_str(), value.clone())));
    let found = numbers(&given).into_iter().find(|(name, _)| resource_of(name) == Some(resource));
    found.map(|(_, amount)| amount)
}

fn summaries(metrics: &Metrics) -> BTreeMap<String, MetricSummary> {
    metrics.iter().map(|(metric, values)| (metric.clone(), summary(values))).collect()
}

/// The mean predictability of the metrics; 0 without any.
fn confidence(metrics: &Metrics) -> f64 {
    let each: Vec<f64> = metrics.values().map(|values| predictability(values)).collect();
    super::stats::mean(&each)
}

fn basis(metrics: &Metrics) -> Basis {
    if metrics.is_empty() { Basis::NoHistory } else { Basis::Request }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(metric: &str, values: &[f64]) -> Option<Vec<Json>> {
        let item = |value: &f64| Json::object([(metric, Json::Float(*value))]);
        Some(values.iter().map(item).collect())
    }

    fn check_scaling(values: &[f64], action: &str, recommended: f64) {
        let request = OptimizeScalingRequest {
            current_resources: Some([("cpu_cores".to_owned(), Json::Integer(6))].into()),
            historical_data: data("cpu_usage", values),
            ..Default::default()
        };
        let advice = scaling(&request);
        assert_eq!(advice.decisions[0].action, action);
        let size = advice.decisions[0].recommended.expect("a size");
        assert!((size - recommended).abs() < 1e-9, "{size}");
    }

    #[test]
    fn size_follows_the_95th_percentile() {
        check_scaling(&[0.9; 10], "scale_up", 9.0);
        check_scaling(&[90.0; 10], "scale_up", 9.0);
        check_scaling(&[0.5; 10], "no_action", 6.0);
        check_scaling(&[0.1; 10], "scale_down", 1.0);
        let request = OptimizeScalingRequest::default();
        assert_eq!((scaling(&request).decisions.len(), scaling(&request).confidence), (0, 0.0));
    }

    #[test]
    fn bandwidth_has_headroom_and_requirements_are_checked() {
        let request = OptimizeBandwidthRequest {
            traffic_data: data("bandwidth_mbps", &[100.0; 20]),
            qos_requirements: Some(
                [("min_bandwidth_mbps", 200.0), ("max_bandwidth_mbps", 50.0), ("max_jitter", 1.0)]
                    .map(|(key, value)| (key.to_owned(), Json::Float(value)))
                    .into(),
            ),
            ..Default::default()
        };
        let advice = bandwidth(&request);
        assert_eq!(advice.recommended_bandwidth["bandwidth_mbps"], 200.0);
        let met: Vec<Option<bool>> = advice.qos.iter().map(|finding| finding.met).collect();
        assert_eq!(met, [Some(false), None, Some(false)]);
    }

    #[test]
    fn workloads_are_told_apart() {
        let check = |metric: &str, values: &[f64], kind: &str, pattern: &str| {
            let workload_data = data(metric, values);
            let analysis = workload(&AnalyzeWorkloadRequest { vm_id: "v".into(), workload_data });
            assert_eq!((analysis.workload_type, analysis.pattern), (kind, pattern), "{metric}");
        };
        check("cpu_usage", &[0.8; 12], "cpu_intensive", "steady");
        check("memory_percent", &[70.0, 71.0, 70.0, 71.0], "memory_intensive", "steady");
        check("disk_io", &[0.01; 5], "idle", "steady");
        let growing: Vec<f64> = (1..=10).map(|row| f64::from(row) / 10.0).collect();
        check("network_usage", &growing, "balanced", "growing");
        check("cpu", &[0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.1], "balanced", "bursty");
        check("temperature", &[0.5; 5], "unknown", "unknown");
        check("cpu_cycles", &[5e9; 5], "unknown", "unknown");
    }
}
