//! The routes of NovaCron's AI engine.
//!
//! NovaCron tries again for seconds on any other status, so everything that can be read is answered
//! with 200, and says what it rests on: which samples, which state, or nothing. It sends no
//! credentials here; where others than this machine can reach the service, the routes are closed
//! unless the operator opens them.

use super::migration::Move;
use super::orchestration::{lead, preview};
use super::prepare::{in_use, moving};
use super::samples::{Sample, numbers, record_all};
use super::stats::{extrapolate, predictability, robust_z};
use super::{Failures, advice};
use crate::ask::Ask;
use crate::body::Sent;
use crate::failure::Failure;
use crate::routes::{Answer, answer};
use crate::service::Service;
use axum::extract::{FromRequestParts, State as Handle};
use axum::http::StatusCode;
use axum::http::request::Parts;
use cluster::{Affinity, AffinityKind, Dim, Level, Name, Strategy, Strength, Subject, Verdict, Vm};
use engine::State;
use std::collections::BTreeMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::RejectionCounts;
use wire::novacron::{
    AnalyzeWorkloadRequest, AnomalyReport, BandwidthAdvice, Basis, CostAnalysis,
    DetectAnomalyRequest, FORBIDDEN, HostLoad, Json, MODEL, MetricPrediction, MigrationPrediction,
    NetworkImpact, OptimizeBandwidthRequest, OptimizePerformanceRequest, OptimizeScalingRequest,
    PerformanceAdvice, PredictMigrationRequest, PredictResourcesRequest, ResourcePrediction,
    ScalingAdvice, Time, WorkloadAnalysis,
};

/// Fewest samples that a judgement may rest on.
const FEWEST_SAMPLES: usize = 8;
/// Farthest that is looked ahead, in minutes: a week.
const FARTHEST_MINUTES: i64 = 10_080;
/// Robust deviations from which a value is an anomaly.
const ANOMALY_FROM: f64 = 3.5;
/// Hosts listed as hot or idle.
const MOST_HOSTS: usize = 20;
const HOT_ABOVE: f64 = 0.85;
const IDLE_BELOW: f64 = 0.2;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(predict_resources))
        .routes(routes!(predict_migration))
        .routes(routes!(optimize_performance))
        .routes(routes!(analyze_workload))
        .routes(routes!(detect_anomaly))
        .routes(routes!(optimize_scaling))
        .routes(routes!(optimize_bandwidth))
}

/// Passes where these routes may be used.
struct Open;

impl FromRequestParts<Service> for Open {
    type Rejection = Failure;
    async fn from_request_parts(_: &mut Parts, service: &Service) -> Result<Self, Failure> {
        if service.ai_routes_open {
            return Ok(Self);
        }
        let detail = "callers are not authenticated here and the service can be reached from \
                      other machines; start it with --ai-routes-open to serve this route";
        Err(Failure::new(FORBIDDEN, detail))
    }
}

/// Predict the use of a resource from what was ingested about it.
///
/// The values in `metrics` are not used, because NovaCron sends a constant there; their names say
/// what is asked about.
#[utoipa::path(post, path = "/predict/resources", tag = "novacron", request_body = PredictResourcesRequest,
    responses((status = 200, description = "What is expected", body = ResourcePrediction), Failures))]
async fn predict_resources(
    _: Open,
    Handle(service): Handle<Service>,
    Sent(request): Sent<PredictResourcesRequest>,
) -> Answer {
    let horizon = request.prediction_horizon.clamp(0, FARTHEST_MINUTES);
    let resource = request.resource_id.trim().to_owned();
    let metrics: Vec<String> = match request.metrics {
        Some(metrics) if !metrics.is_empty() => metrics.into_keys().take(64).collect(),
        _ => ["cpu_usage", "disk_usage", "memory_usage"].map(str::to_owned).to_vec(),
    };
    let (name, asked) = (resource.clone(), metrics.clone());
    let state = service.read(move |state| utilisations(state, &name, &asked)).await?;
    let at_ms = service.now_ms().saturating_add(horizon.unsigned_abs().saturating_mul(60_000));
    let mut predictions = BTreeMap::new();
    for (metric, now) in metrics.into_iter().zip(state) {
        let samples = service.samples.of(&resource, &metric);
        predictions.insert(metric, predicted(&samples, at_ms, now));
    }
    let first = predictions.values().next().cloned().unwrap_or_default();
    let body = ResourcePrediction {
        resource_id: resource,
        prediction: first.prediction,
        confidence: first.confidence,
        basis: first.basis,
        predictions,
        prediction_horizon: horizon,
        model: MODEL,
    };
    answer(StatusCode::OK, &body)
}

fn predicted(samples: &[Sample], at_ms: u64, now: Option<f64>) -> MetricPrediction {
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    let Some(last) = values.last().copied() else {
        let basis = if now.is_some() { Basis::CurrentState } else { Basis::NoHistory };
        return MetricPrediction { prediction: now, basis, ..MetricPrediction::default() };
    };
    let points: Vec<(f64, f64)> =
        samples.iter().map(|sample| (sample.at_ms as f64, sample.value)).collect();
    // With few samples a trend would be guesswork: what was last is what will be.
    let trend = (values.len() >= FEWEST_SAMPLES).then(|| extrapolate(&points, at_ms as f64));
    let highest = values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = values.iter().copied().fold(f64::MAX, f64::min);
    let ceiling = if highest <= 1.0 && lowest >= 0.0 { 1.0 } else { f64::MAX };
    let floor = if lowest >= 0.0 { 0.0 } else { f64::MIN };
    MetricPrediction {
        prediction: Some(trend.flatten().unwrap_or(last).clamp(floor, ceiling)),
        confidence: predictability(&values),
        samples: values.len(),
        basis: Basis::History,
    }
}

/// The shares of a host that are in use, for each metric that speaks of a dimension.
fn utilisations(state: &State, resource: &str, metrics: &[String]) -> Vec<Option<f64>> {
    let host = Name::new(resource).ok().and_then(|name| state.find_host(&name));
    let host = host.map(|(_, entry)| (entry, in_use(entry)));
    let of = |metric: &String| {
        let (entry, used) = host.as_ref()?;
        let dim = match advice::resource_of(metric)? {
            "cpu" => Dim::CPU_MILLIS,
            "memory" => Dim::MEMORY_MIB,
            "disk" => Dim::DISK_GIB,
            "network" => Dim::NET_MBPS,
            _ => return None,
        };
        match entry.host.allocatable(dim) {
            0 => None,
            allocatable => Some(used.get(dim) as f64 / allocatable as f64),
        }
    };
    metrics.iter().map(of).collect()
}

/// What is known of a VM and where it may move.
struct Moving {
    vm: Vm,
    source: Name,
    unknown: Vec<String>,
    most: i64,
    prices: BTreeMap<Name, f64>,
    mbps: BTreeMap<Name, f64>,
}

/// Choose where a VM should move, among the given hosts.
#[utoipa::path(post, path = "/predict/migration", tag = "novacron", request_body = PredictMigrationRequest,
    responses((status = 200, description = "The best target, or why there is none", body = MigrationPrediction), Failures))]
async fn predict_migration(
    _: Open,
    Handle(service): Handle<Service>,
    ask: Ask,
    Sent(request): Sent<PredictMigrationRequest>,
) -> Answer {
    let mut body = MigrationPrediction {
        vm_id: request.vm_id.clone(),
        prediction_time: Time::from_unix_millis(service.now_ms()),
        model: MODEL,
        ..MigrationPrediction::default()
    };
    let (id, targets) = (request.vm_id.trim().to_owned(), request.target_hosts.clone());
    let found = service.read(move |state| find_move(state, &id, targets.as_deref())).await?;
    let Some(found) = found else {
        body.reasons.push(format!(
            "VM {:?} is not placed here, so nothing is known of what it needs",
            request.vm_id
        ));
        return answer(StatusCode::OK, &body);
    };
    body.basis = Basis::CurrentState;
    body.reasons.extend(found.unknown.iter().map(|host| format!("host {host:?} is not known")));
    let memory_mib = found.vm.demand.get(Dim::MEMORY_MIB) as f64;
    let decision = preview(&service, &ask, Some(Strategy::Balanced), found.vm).await?;
    let counts = RejectionCounts::new(&decision.rejections, &service.dimensions());
    let counts = counts.0.iter().filter(|(reason, _)| *reason != "host_affinity");
    body.reasons.extend(counts.map(|(reason, hosts)| format!("{hosts} left out by {reason}")));
    let Verdict::Placed { host, score, breakdown, .. } = &decision.verdict else {
        body.reasons.push("none of the targets can take the VM".into());
        return answer(StatusCode::OK, &body);
    };
    let mbps = |host: &Name| found.mbps.get(host).copied();
    let mbps = match (mbps(&found.source), mbps(host)) {
        (Some(source), Some(target)) => Some(source.min(target)),
        (one, other) => one.or(other),
    };
    let metric = |key: &str| request.vm_metrics.as_ref()?.get(key)?.as_f64();
    let pages_dirtied_per_s = metric("dirty_page_rate");
    let estimate = Move { memory_mib, pages_dirtied_per_s, mbps }.estimate();
    let price = |host: &Name| found.prices.get(host).copied();
    let difference = price(host).zip(price(&found.source)).map(|(to, from)| to - from);
    let parts = cluster::Term::ALL.map(|term| format!("{} {}", term.name(), breakdown.get(term)));
    body.reasons.push(format!("{host} has the highest score ({})", parts.join(", ")));
    body.recommended_host = Some(host.to_string());
    body.target_host = Some(host.to_string());
    body.migration_score = (*score as f64 / found.most.max(1) as f64).clamp(0.001, 1.0);
    body.score = body.migration_score;
    body.confidence = lead(*score, decision.alternatives.first().map(|other| other.score));
    body.estimated_downtime = Some(estimate.downtime_s);
    body.network_impact = NetworkImpact {
        transferred_mib: Some(estimate.transferred_mib),
        duration_seconds: Some(estimate.duration_s),
        bandwidth_mbps: Some(estimate.mbps),
        dirty_rate_is_assumed: estimate.dirty_rate_is_assumed,
    };
    body.cost_analysis = CostAnalysis { price_difference_per_hour: difference };
    answer(StatusCode::OK, &body)
}

fn find_move(state: &State, id: &str, targets: Option<&[String]>) -> Option<Moving> {
    let (mut vm, source) = moving(state, &Name::new(id).ok()?)?;
    let mut unknown = Vec::new();
    let targets = targets.unwrap_or_default();
    if !targets.is_empty() {
        let mut hosts = Vec::new();
        for target in targets {
            let known = Name::new(target.trim()).ok().filter(|it| state.find_host(it).is_some());
            match known {
                Some(host) => hosts.push(host),
                None if unknown.len() < MOST_HOSTS => unknown.push(target.clone()),
                None => {}
            }
        }
        vm.affinities.push(Affinity {
            kind: AffinityKind::Together,
            subject: Subject::Hosts(hosts),
            level: Level::Host,
            strength: Strength::Required,
        });
    }
    let hosts = || state.hosts().map(|(_, entry)| &entry.host);
    let priced = hosts().filter(|host| host.price.micros_per_hour > 0);
    let price = |micros: u64| micros as f64 / 1e6;
    let prices = priced.map(|host| (host.id.clone(), price(host.price.micros_per_hour))).collect();
    let mbps = hosts().filter_map(|host| match host.capacity.get(Dim::NET_MBPS) {
        0 => None,
        mbps => Some((host.id.clone(), mbps as f64)),
    });
    let weights = state.policy().weights;
    let weights = cluster::Term::ALL.map(|term| i64::from(weights.get(term)));
    let most = weights.iter().sum::<i64>().saturating_mul(1000);
    Some(Moving { vm, source, unknown, most, prices, mbps: mbps.collect() })
}

/// Say what the data of a cluster and its fullest and emptiest hosts suggest.
#[utoipa::path(post, path = "/optimize/performance", tag = "novacron", request_body = OptimizePerformanceRequest,
    responses((status = 200, description = "What could be better", body = PerformanceAdvice), Failures))]
async fn optimize_performance(
    _: Open,
    Handle(service): Handle<Service>,
    Sent(request): Sent<OptimizePerformanceRequest>,
) -> Answer {
    record_all(&service.samples, &request.cluster_id, &request.performance_data);
    let mut body = advice::performance(&request);
    let (hot, idle, hosts) = service.read(loads).await?;
    if !hot.is_empty() {
        let text = format!("{} of {hosts} hosts are above {HOT_ABOVE}: move VMs away", hot.len());
        body.recommendations.push(text);
    }
    if !idle.is_empty() {
        let text = format!("{} of {hosts} hosts are below {IDLE_BELOW}: empty them", idle.len());
        body.recommendations.push(text);
    }
    if body.basis == Basis::NoHistory && hosts > 0 {
        body.basis = Basis::CurrentState;
    }
    body.hot_hosts = hot.into_iter().take(MOST_HOSTS).collect();
    body.idle_hosts = idle.into_iter().take(MOST_HOSTS).collect();
    answer(StatusCode::OK, &body)
}

/// The hosts that are too full, those that are nearly empty, and how many there are in all.
fn loads(state: &State) -> (Vec<HostLoad>, Vec<HostLoad>, usize) {
    let load = |entry: &engine::HostEntry| {
        let used = in_use(entry);
        let shares = state.dimensions().iter().filter_map(|dim| {
            let allocatable = entry.host.allocatable(dim);
            (allocatable > 0).then(|| used.get(dim) as f64 / allocatable as f64)
        });
        let utilisation = shares.fold(0.0, f64::max);
        HostLoad { host: entry.host.id.to_string(), utilisation, vms: entry.vms.len() }
    };
    let all: Vec<HostLoad> = state.hosts().map(|(_, entry)| load(entry)).collect();
    let pick = |wanted: &dyn Fn(&HostLoad) -> bool| -> Vec<HostLoad> {
        all.iter().filter(|load| wanted(load)).cloned().collect()
    };
    let mut hot = pick(&|load| load.utilisation > HOT_ABOVE);
    let mut idle = pick(&|load| load.vms > 0 && load.utilisation < IDLE_BELOW);
    hot.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    idle.sort_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
    (hot, idle, all.len())
}

/// Say what kind of work a VM does.
#[utoipa::path(post, path = "/analyze/workload", tag = "novacron", request_body = AnalyzeWorkloadRequest,
    responses((status = 200, description = "Its kind and pattern", body = WorkloadAnalysis), Failures))]
async fn analyze_workload(
    _: Open,
    Handle(service): Handle<Service>,
    Sent(request): Sent<AnalyzeWorkloadRequest>,
) -> Answer {
    record_all(&service.samples, &request.vm_id, &request.workload_data);
    answer(StatusCode::OK, &advice::workload(&request))
}

/// Judge metrics by what was ordinary so far, then remember them.
#[utoipa::path(post, path = "/detect/anomaly", tag = "novacron", request_body = DetectAnomalyRequest,
    responses((status = 200, description = "Whether they are out of the ordinary", body = AnomalyReport), Failures))]
async fn detect_anomaly(
    _: Open,
    Handle(service): Handle<Service>,
    Sent(request): Sent<DetectAnomalyRequest>,
) -> Answer {
    let resource = request.resource_id.trim();
    let metrics = Json::object(request.metrics.iter().flatten().map(|(k, v)| (k, v.clone())));
    let mut body = AnomalyReport {
        resource_id: resource.to_owned(),
        model: MODEL,
        ..AnomalyReport::default()
    };
    let mut worst: f64 = 0.0;
    for (metric, value) in numbers(&metrics) {
        let samples = service.samples.of(resource, &metric);
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        if values.len() < FEWEST_SAMPLES {
            body.not_judged.push(metric.clone());
        } else {
            let z = robust_z(&values, value);
            worst = worst.max(z.abs());
            if z.abs() > ANOMALY_FROM {
                let (middle, count) = (super::stats::median(&values), values.len());
                let side = if z > 0.0 { "above" } else { "below" };
                body.recommendations.push(format!(
                    "look at {metric}: {value} is {:.1} deviations {side} its median of {middle} \
                     over {count} samples",
                    z.abs()
                ));
            }
            body.z_scores.insert(metric.clone(), z);
            body.basis = Basis::History;
        }
        service.samples.record(resource, &metric, Sample { at_ms: service.now_ms(), value });
    }
    body.anomaly_score = worst / (worst + ANOMALY_FROM);
    body.is_anomaly = worst > ANOMALY_FROM;
    answer(StatusCode::OK, &body)
}

/// Say whether a VM should be larger or smaller.
#[utoipa::path(post, path = "/optimize/scaling", tag = "novacron", request_body = OptimizeScalingRequest,
    responses((status = 200, description = "One decision per resource", body = ScalingAdvice), Failures))]
async fn optimize_scaling(
    _: Open,
    Handle(service): Handle<Service>,
    Sent(request): Sent<OptimizeScalingRequest>,
) -> Answer {
    record_all(&service.samples, &request.vm_id, &request.historical_data);
    answer(StatusCode::OK, &advice::scaling(&request))
}

/// Say how much bandwidth a network needs, and which requirements it meets.
#[utoipa::path(post, path = "/optimize/bandwidth", tag = "novacron", request_body = OptimizeBandwidthRequest,
    responses((status = 200, description = "What the traffic asks for", body = BandwidthAdvice), Failures))]
async fn optimize_bandwidth(
    _: Open,
    Handle(service): Handle<Service>,
    Sent(request): Sent<OptimizeBandwidthRequest>,
) -> Answer {
    record_all(&service.samples, &request.network_id, &request.traffic_data);
    answer(StatusCode::OK, &advice::bandwidth(&request))
}
