//! What the service counts and times, and how it is shown to Prometheus.
//!
//! Labels come from closed sets only: route templates, methods, status classes, outcomes. Nothing
//! that a caller makes up becomes a label, so the number of series has a limit that is known
//! when the service is built.

use axum::extract::{MatchedPath, Request, State as Handle};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use engine::{Command, Core, Event, Outcome, Placement, Refusal, Reply};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The route of requests that no route takes.
const UNMATCHED: &str = "unmatched";

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Asked, Counter>,
    request_seconds: Family<Route, Histogram, fn() -> Histogram>,
    placements: Family<Ended, Counter>,
    decision_seconds: Histogram,
    commit_seconds: Histogram,
    log_failures: Counter,
    policy_files: Family<Ended, Counter>,
    policy_changes: Counter,
    policy_errors: Counter,
    now: Now,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    route: String,
    method: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    outcome: &'static str,
}

/// Filled in when somebody looks.
#[derive(Debug, Default)]
struct Now {
    queue_depth: Gauge,
    hosts: Gauge,
    vms: Gauge,
    reservations: Gauge,
    revision: Gauge,
    policies_active: Gauge,
    policy_revision: Gauge,
    rejected_files: Gauge,
    resident_bytes: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("novacron_scheduler");
        let requests = Family::<Asked, Counter>::default();
        registry.register("requests", "HTTP requests answered", requests.clone());
        // From a quarter of a millisecond, doubling, to 16 s.
        let in_service: fn() -> Histogram =
            || Histogram::new(exponential_buckets(0.000_25, 2.0, 17));
        let request_seconds = Family::new_with_constructor(in_service);
        registry.register(
            "request_duration_seconds",
            "Time from a request's head to its answer's",
            request_seconds.clone(),
        );
        let placements = Family::<Ended, Counter>::default();
        registry.register("placements", "Attempts to place a VM", placements.clone());
        // From four microseconds, doubling, to a quarter of a second.
        let decision_seconds = Histogram::new(exponential_buckets(0.000_004, 2.0, 17));
        registry.register(
            "decision_duration_seconds",
            "Time to decide one placement, without queueing and commit",
            decision_seconds.clone(),
        );
        // From 64 microseconds, doubling, to 4 s.
        let commit_seconds = Histogram::new(exponential_buckets(0.000_064, 2.0, 17));
        registry.register(
            "commit_duration_seconds",
            "Time to make one batch of commands durable",
            commit_seconds.clone(),
        );
        let log_failures = Counter::default();
        registry.register("log_failures", "Commits that failed", log_failures.clone());
        let policy_files = Family::<Ended, Counter>::default();
        registry.register("policy_files", "Policy files taken note of", policy_files.clone());
        let policy_changes = Counter::default();
        registry.register(
            "policy_changes",
            "Changes of policies, of their parameters and of weights",
            policy_changes.clone(),
        );
        let policy_errors = Counter::default();
        registry.register(
            "policy_evaluation_errors",
            "Times that a rule of a policy had no value on a host while placing",
            policy_errors.clone(),
        );
        let now = Now::default();
        let mut gauge = |name: &str, help: &str, gauge: &Gauge| {
            registry.register(name, help, gauge.clone());
        };
        gauge("queue_depth", "Calls that wait for the writer", &now.queue_depth);
        gauge("hosts", "Hosts registered", &now.hosts);
        gauge("vms", "VMs placed, held ones included", &now.vms);
        gauge("reservations", "Reservations held", &now.reservations);
        gauge("revision", "Revision of the cluster", &now.revision);
        gauge("policies_active", "Policies in force", &now.policies_active);
        gauge("policy_revision", "Revision of policies and weights", &now.policy_revision);
        gauge(
            "policy_rejected_files",
            "Files of policies that are not in force, because something is wrong with them",
            &now.rejected_files,
        );
        gauge("resident_memory_bytes", "Memory of the process in RAM", &now.resident_bytes);
        Self {
            registry,
            requests,
            request_seconds,
            placements,
            decision_seconds,
            commit_seconds,
            log_failures,
            policy_files,
            policy_changes,
            policy_errors,
            now,
        }
    }

    /// Takes note of what the writer did.
    pub(crate) fn hear(&self, event: &Event<'_>) {
        match event {
            Event::Decided { request: engine::Request::Place(_), reply, took } => {
                self.decision_seconds.observe(took.as_secs_f64());
                self.attempted(reply);
            }
            Event::Decided { request: engine::Request::PlaceBatch { .. }, reply, .. } => {
                self.attempted(reply);
            }
            Event::Decided { .. } => {}
            Event::Committed { took, commands } => {
                self.commit_seconds.observe(took.as_secs_f64());
                let is_policy = |command: &Command| {
                    matches!(command, Command::EditPolicy(_) | Command::InstallPolicy(_))
                };
                let changes = commands.iter().filter(|(_, entry)| is_policy(&entry.command));
                self.policy_changes.inc_by(changes.count() as u64);
            }
            Event::LogFailed => {
                self.log_failures.inc();
            }
        }
    }

    /// A policy file was `accepted`, `rejected` or `removed`.
    pub(crate) fn policy_file(&self, outcome: &'static str) {
        self.policy_files.get_or_create(&Ended { outcome }).inc();
    }

    fn attempted(&self, reply: &Result<Reply, Refusal>) {
        let count = |outcome| {
            self.placements.get_or_create(&Ended { outcome }).inc();
        };
        match reply.as_ref().map(|reply| &reply.outcome) {
            Ok(Outcome::Placement(placement)) => count(ended(placement)),
            Ok(Outcome::Batch(placements)) => placements.iter().map(ended).for_each(count),
            Ok(_) => {}
            Err(_) => count("refused"),
        }
    }

    fn answered(&self, route: String, method: &Method, status: u16, took: Duration) {
        let label = Route { route: route.clone() };
        self.request_seconds.get_or_create(&label).observe(took.as_secs_f64());
        let asked = Asked { route, method: known(method), status: class(status) };
        self.requests.get_or_create(&asked).inc();
    }

    /// Everything in the OpenMetrics text format, which Prometheus reads.
    pub(crate) fn shown(&self, state: &Sizes, queue_depth: usize, rejected_files: usize) -> String {
        let set = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.now.queue_depth, queue_depth as u64);
        set(&self.now.hosts, state.hosts as u64);
        set(&self.now.vms, state.vms as u64);
        set(&self.now.reservations, state.reservations as u64);
        set(&self.now.revision, state.revision);
        set(&self.now.policies_active, state.policies_active as u64);
        set(&self.now.policy_revision, state.policy_revision);
        set(&self.now.rejected_files, rejected_files as u64);
        self.policy_errors.inner().store(state.policy_errors, Ordering::Relaxed);
        set(&self.now.resident_bytes, resident_bytes().unwrap_or(0));
        let mut shown = String::with_capacity(16 * 1024);
        // Writing to a string cannot fail.
        let _ = text::encode(&mut shown, &self.registry);
        shown
    }
}

/// How much the state holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    hosts: usize,
    vms: usize,
    reservations: usize,
    revision: u64,
    policies_active: usize,
    policy_revision: u64,
    policy_errors: u64,
}

impl Sizes {
    pub(crate) fn of(core: &Core) -> Self {
        let state = core.state();
        Self {
            policies_active: core.policies().policies().len(),
            policy_revision: state.policy().revision,
            policy_errors: core.policy_errors(),
            hosts: state.host_count(),
            vms: state.vm_count(),
            reservations: state.reservation_count(),
            revision: state.revision().0,
        }
    }
}

/// Counts and times a request under its route's template.
pub(crate) async fn measure(
    Handle(metrics): Handle<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = matched.unwrap_or(UNMATCHED).to_owned();
    let method = request.method().clone();
    let response = next.run(request).await;
    metrics.answered(route, &method, response.status().as_u16(), started.elapsed());
    response
}

fn ended(placement: &Placement) -> &'static str {
    match placement {
        Placement { repeated: true, .. } => "repeated",
        Placement { host: None, .. } => "rejected",
        Placement { hold: Some(_), .. } => "reserved",
        _ => "placed",
    }
}

/// Methods that anybody can make up share one label.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn class(status: u16) -> &'static str {
    match status {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}

/// From the kernel's own account; nothing where there is none.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
