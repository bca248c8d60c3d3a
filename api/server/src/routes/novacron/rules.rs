//! NovaCron's constraints and preferences as tests that a host passes, or passes in part.
//!
//! Everything that a request asks for is either understood here or refused by name: a parameter
//! that nobody reads would be a promise that nobody keeps. Tests read one host at a time and know
//! nothing of other hosts; what follows from them is the routes' business.

use cluster::{Amounts, Dim, Host, Name};
use std::collections::BTreeMap;
use wire::Fault;
use wire::novacron::{
    Constraint, ConstraintKind, Enforcement, GpuRequirements, Json, PlacementRequest, Preference,
    PreferenceKind, label_name,
};

/// A host, with what is known of it beside what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) host: &'a Host,
    /// Taken of `host.capacity`.
    pub(super) used: &'a Amounts,
    /// From 0 to 1.
    pub(super) health: f64,
    /// GPUs of the asked kind that are free; `None` where nobody counts them.
    pub(super) free_gpus: Option<i64>,
    pub(super) gpus: i64,
}

impl Candidate<'_> {
    /// The share of `dim` that is in use with `demand` added; everything of what is not there.
    fn utilisation(&self, dim: Dim, demand: u64) -> f64 {
        let capacity = self.host.capacity.get(dim);
        let used = self.used.get(dim).saturating_add(demand);
        match (capacity, used) {
            (0, 0) => 0.0,
            (0, _) => 1.0,
            _ => used as f64 / capacity as f64,
        }
    }

    pub(super) fn price_per_hour(&self) -> f64 {
        self.host.price.micros_per_hour as f64 / 1e6
    }
}

/// Something that a request says about nodes.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Where it stands in the request.
    path: String,
    pub(super) enforcement: Enforcement,
    pub(super) weight: f64,
    pub(super) test: Test,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Near(Place),
    Far(Place),
    Limits {
        cpu: Option<f64>,
        memory: Option<f64>,
        storage: Option<f64>,
    },
    Latency {
        region: Name,
        most_us: f64,
    },
    Compliance {
        labels: Vec<(Name, Name)>,
        regions: Vec<Name>,
    },
    Cost {
        most: f64,
    },
    Health {
        least: f64,
    },
    Gpus(GpuRequirements),
    /// Nobody knows, so nobody passes. Says what it is that is not known.
    Unknown(&'static str),
}

/// Hosts by what they carry, where they stand, what they are called and whom they run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    labels: Vec<(Name, Name)>,
    region: Option<Name>,
    zone: Option<Name>,
    rack: Option<Name>,
    nodes: Vec<Name>,
    pub(super) vms: Vec<Name>,
}

impl Rule {
    /// How far it holds with the VM on the host: 1 is entirely.
    pub(super) fn satisfaction(&self, candidate: &Candidate<'_>, demand: &Amounts) -> f64 {
        let host = candidate.host;
        let holds = |holds: bool| if holds { 1.0 } else { 0.0 };
        match &self.test {
            Test::Near(place) => holds(place.has(host)),
            Test::Far(place) => holds(!place.touches(host)),
            Test::Limits { cpu, memory, storage } => {
                let within = |limit: &Option<f64>, dim: Dim| {
                    let share = candidate.utilisation(dim, demand.get(dim));
                    limit.map_or(1.0, |limit| excess(share, limit, 1.0 - limit))
                };
                within(cpu, Dim::CPU_MILLIS)
                    .min(within(memory, Dim::MEMORY_MIB))
                    .min(within(storage, Dim::DISK_GIB))
            }
            Test::Latency { region, most_us } => {
                let known = host.latencies.iter().find(|latency| latency.region == *region);
                known.map_or(0.0, |known| excess(f64::from(known.latency_us), *most_us, *most_us))
            }
            Test::Compliance { labels, regions } => {
                let in_region = host.location.region.as_ref().is_some_and(|r| regions.contains(r));
                holds(has_all(host, labels) && (regions.is_empty() || in_region))
            }
            Test::Cost { most } => excess(candidate.price_per_hour(), *most, *most),
            Test::Health { least } => holds(candidate.health >= *least),
            Test::Gpus(gpus) => holds(candidate.free_gpus.is_some_and(|free| free >= gpus.count)),
            Test::Unknown(_) => 0.0,
        }
    }

    pub(super) fn holds(&self, candidate: &Candidate<'_>, demand: &Amounts) -> bool {
        self.satisfaction(candidate, demand) >= 1.0
    }

    /// What it counts for: a soft rule as far as it holds, any other only if it holds entirely.
    pub(super) fn credit(&self, candidate: &Candidate<'_>, demand: &Amounts) -> f64 {
        match self.satisfaction(candidate, demand) {
            part if self.enforcement == Enforcement::Soft => part,
            part => part.floor(),
        }
    }

    pub(super) fn is_hard(&self) -> bool {
        self.enforcement == Enforcement::Hard
    }

    /// Why a node that does not pass is left out.
    pub(super) fn reason(&self) -> String {
        let path = &self.path;
        let what: String = match &self.test {
            Test::Near(_) => "the node is not where the VM must be".into(),
            Test::Far(_) => "the node is where the VM must not be".into(),
            Test::Limits { .. } => "the node would be fuller than allowed".into(),
            Test::Latency { region, .. } => {
                format!("the latency to {region} is too high or not known")
            }
            Test::Compliance { .. } => "the node is outside of what compliance allows".into(),
            Test::Cost { most } => format!("the node costs more than {most} an hour"),
            Test::Health { least } => format!("the node's health is below {least}"),
            Test::Gpus(gpus) => format!("the node does not have {} such GPUs free", gpus.count),
            Test::Unknown(what) => format!("{what} is not known"),
        };
        format!("{path}: {what}")
    }

    /// The same for nodes of which nobody says what they run.
    pub(super) fn without_vms(self) -> Self {
        match &self.test {
            Test::Near(place) | Test::Far(place) if !place.vms.is_empty() => {
                Self { test: Test::Unknown("which VMs the node runs"), ..self }
            }
            _ => self,
        }
    }

    /// Whether it speaks of where the node stands.
    pub(super) fn is_about_location(&self) -> bool {
        match &self.test {
            Test::Near(place) | Test::Far(place) => place.is_location(),
            Test::Latency { .. } => true,
            _ => false,
        }
    }
}

/// 1 up to the limit, falling to 0 at `limit + slack`.
fn excess(value: f64, limit: f64, slack: f64) -> f64 {
    match value - limit {
        over if over <= 0.0 => 1.0,
        over if slack > 0.0 => (1.0 - over / slack).clamp(0.0, 0.999),
        _ => 0.0,
    }
}

fn has_all(host: &Host, labels: &[(Name, Name)]) -> bool {
    labels.iter().all(|(key, value)| host.labels.get(key.as_str()) == Some(value))
}

impl Place {
    /// Whether the host is all of it. VMs are left to the engine, which knows where they run.
    fn has(&self, host: &Host) -> bool {
        let at = |wanted: &Option<Name>, is: &Option<Name>| wanted.is_none() || wanted == is;
        has_all(host, &self.labels)
            && at(&self.region, &host.location.region)
            && at(&self.zone, &host.location.zone)
            && at(&self.rack, &host.location.rack)
            && (self.nodes.is_empty() || self.nodes.contains(&host.id))
    }

    /// Whether the host is any of it.
    fn touches(&self, host: &Host) -> bool {
        let at = |wanted: &Option<Name>, is: &Option<Name>| wanted.is_some() && wanted == is;
        self.labels.iter().any(|(key, value)| host.labels.get(key.as_str()) == Some(value))
            || at(&self.region, &host.location.region)
            || at(&self.zone, &host.location.zone)
            || at(&self.rack, &host.location.rack)
            || self.nodes.contains(&host.id)
    }

    fn is_location(&self) -> bool {
        self.region.is_some() || self.zone.is_some() || self.rack.is_some()
    }
}

/// Every rule of a request: its constraints, and what its VM needs beyond amounts.
pub(super) fn rules(request: &PlacementRequest) -> Result<Vec<Rule>, Fault> {
    let mut rules = needs(request)?;
    for (row, constraint) in request.constraints.iter().flatten().enumerate() {
        let path = format!("constraints[{row}]");
        let rule = rule(constraint, &path).map_err(|fault| below(&path, fault))?;
        rules.push(rule);
    }
    Ok(rules)
}

fn below(path: &str, fault: Fault) -> Fault {
    Fault { path: format!("{path}.{}", fault.path), ..fault }
}

fn needs(request: &PlacementRequest) -> Result<Vec<Rule>, Fault> {
    let spec = &request.vm_spec;
    let hard = |path: &str, test: Test| Rule {
        path: format!("vm_spec.{path}"),
        enforcement: Enforcement::Hard,
        weight: 1.0,
        test,
    };
    let mut rules = Vec::new();
    if let Some(gpu) = spec.gpu.as_ref().filter(|gpu| gpu.count != 0) {
        if !(1..=1024).contains(&gpu.count) || gpu.memory_mb < 0 {
            let message = format!("{} GPUs of {} MB", gpu.count, gpu.memory_mb);
            return Err(wrong("vm_spec.gpu", message, "ask for 1 to 1024"));
        }
        rules.push(hard("gpu", Test::Gpus(gpu.clone())));
    }
    let network = &spec.network;
    if network.networks.as_ref().is_some_and(|networks| !networks.is_empty()) {
        rules.push(hard("network.networks", Test::Unknown("which networks a node reaches")));
    }
    if network.public_ip {
        rules.push(hard("network.public_ip", Test::Unknown("which nodes have public addresses")));
    }
    if network.latency_ms != 0 {
        let what = "what the latency is measured to (use a network_latency constraint)";
        rules.push(hard("network.latency_ms", Test::Unknown(what)));
    }
    Ok(rules)
}

fn rule(constraint: &Constraint, path: &str) -> Result<Rule, Fault> {
    let kind = constraint.known_kind()?;
    let enforcement = constraint.known_enforcement()?;
    let required = matches!(
        kind,
        ConstraintKind::Affinity | ConstraintKind::AntiAffinity | ConstraintKind::ResourceLimit
    );
    if required && constraint.parameters.is_none() {
        let message = format!("{} constraint missing parameters", constraint.kind);
        return Err(wrong("parameters", message, "say what the constraint is about"));
    }
    let none = BTreeMap::new();
    let mut given = Given::new(constraint.parameters.as_ref().unwrap_or(&none));
    let test = match kind {
        ConstraintKind::Affinity => Test::Near(given.place()?),
        ConstraintKind::AntiAffinity => Test::Far(given.place()?),
        ConstraintKind::ResourceLimit => Test::Limits {
            cpu: given.share("max_cpu_utilization")?,
            memory: given.share("max_memory_utilization")?,
            storage: given.share("max_storage_utilization")?,
        },
        ConstraintKind::NetworkLatency => {
            let most_ms = given.number("max_latency_ms", 0.0, 60_000.0)?;
            match (given.name("region")?, most_ms) {
                (Some(region), Some(ms)) => Test::Latency { region, most_us: ms * 1000.0 },
                _ => Test::Unknown("what the latency is measured to (give region, max_latency_ms)"),
            }
        }
        ConstraintKind::Compliance => {
            Test::Compliance { labels: given.labels()?, regions: given.names("regions")? }
        }
        ConstraintKind::Cost => {
            let most = given.number("max_cost_per_hour", 0.0, f64::MAX)?;
            Test::Cost { most: most.unwrap_or(f64::MAX) }
        }
        ConstraintKind::Availability => {
            Test::Health { least: given.share("min_health")?.unwrap_or(0.0) }
        }
    };
    given.finish()?;
    let weight = weight(constraint.weight)?;
    Ok(Rule { path: format!("{path} ({})", constraint.kind), enforcement, weight, test })
}

/// A weight; what is not above 0 counts as 1, as in NovaCron.
fn weight(weight: f64) -> Result<f64, Fault> {
    match weight {
        weight if weight > 1e9 => {
            Err(wrong("weight", format!("{weight} is too large"), "send at most 1000000000"))
        }
        weight if weight > 0.0 => Ok(weight),
        _ => Ok(1.0),
    }
}

fn wrong(path: &str, message: impl Into<String>, hint: impl Into<String>) -> Fault {
    Fault {
        path: path.into(),
        code: "invalid_value".into(),
        message: message.into(),
        hint: hint.into(),
    }
}

/// The parameters of a constraint or preference. Those that nobody asked for are refused.
struct Given<'a> {
    parameters: &'a BTreeMap<String, Json>,
    asked: Vec<&'static str>,
}

impl<'a> Given<'a> {
    fn new(parameters: &'a BTreeMap<String, Json>) -> Self {
        Self { parameters, asked: Vec::new() }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Json> {
        self.asked.push(key);
        self.parameters.get(key).filter(|value| **value != Json::Null)
    }

    fn number(&mut self, key: &'static str, least: f64, most: f64) -> Result<Option<f64>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let hint = format!("send a number from {least} to {most}");
                Err(wrong(&format!("parameters.{key}"), value.describe(), hint))
            }
        }
    }

    fn share(&mut self, key: &'static str) -> Result<Option<f64>, Fault> {
        self.number(key, 0.0, 1.0)
    }

    fn name(&mut self, key: &'static str) -> Result<Option<Name>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let name = value.as_str().and_then(label_name);
        name.map(Some).ok_or_else(|| {
            wrong(&format!("parameters.{key}"), value.describe(), "send a string of a name")
        })
    }

    fn names(&mut self, key: &'static str) -> Result<Vec<Name>, Fault> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let texts = value.as_texts().filter(|texts| texts.len() <= 10_000);
        let names = texts.and_then(|texts| texts.into_iter().map(label_name).collect());
        names.ok_or_else(|| {
            wrong(&format!("parameters.{key}"), value.describe(), "send at most 10000 names")
        })
    }

    fn labels(&mut self) -> Result<Vec<(Name, Name)>, Fault> {
        let Some(value) = self.get("labels") else { return Ok(Vec::new()) };
        let pair = |(key, value): &(String, Json)| label_name(key).zip(label_name(value.as_str()?));
        let labels = match value {
            Json::Object(members) => members.iter().map(pair).collect(),
            _ => None,
        };
        labels.ok_or_else(|| {
            wrong("parameters.labels", value.describe(), "send an object of short strings")
        })
    }

    fn place(&mut self) -> Result<Place, Fault> {
        Ok(Place {
            labels: self.labels()?,
            region: self.name("region")?,
            zone: self.name("zone")?,
            rack: self.name("rack")?,
            nodes: self.names("nodes")?,
            vms: self.names("vms")?,
        })
    }

    fn finish(self) -> Result<(), Fault> {
        match self.parameters.keys().find(|key| !self.asked.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let message = format!("{key:?} is not a parameter here");
                Err(wrong("parameters", message, format!("known are {}", self.asked.join(", "))))
            }
        }
    }
}

/// A wish about nodes, and how much it counts.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) weight: f64,
    kind: PreferenceKind,
    zone: Option<Name>,
    region: Option<Name>,
}

/// Every wish of a request.
pub(super) fn wishes(request: &PlacementRequest) -> Result<Vec<Wish>, Fault> {
    let rows = request.preferences.iter().flatten().enumerate();
    rows.map(|(row, preference)| {
        wish(preference).map_err(|fault| below(&format!("preferences[{row}]"), fault))
    })
    .collect()
}

fn wish(preference: &Preference) -> Result<Wish, Fault> {
    let kind = preference.known_kind()?;
    let none = BTreeMap::new();
    let mut given = Given::new(preference.parameters.as_ref().unwrap_or(&none));
    let (mut zone, mut region) = (None, None);
    if kind == PreferenceKind::LowLatency {
        zone = given.name("preferred_zone")?;
        region = given.name("preferred_region")?;
    }
    given.finish()?;
    Ok(Wish { weight: weight(preference.weight)?, kind, zone, region })
}

impl Wish {
    /// How well the node meets it, from 0 to 1. `dearest` is the highest price among the nodes.
    pub(super) fn grade(&self, candidate: &Candidate<'_>, dearest: f64) -> f64 {
        let location = &candidate.host.location;
        let free = |dim: Dim| match candidate.host.capacity.get(dim) {
            0 => 0.0,
            _ => (1.0 - candidate.utilisation(dim, 0)).max(0.0),
        };
        match self.kind {
            PreferenceKind::LowLatency => match (&self.zone, &self.region) {
                (None, None) => 1.0,
                (Some(_), _) if self.zone == location.zone => 1.0,
                (zone, Some(_)) if self.region == location.region => {
                    if zone.is_some() {
                        0.75
                    } else {
                        1.0
                    }
                }
                _ => 0.5,
            },
            PreferenceKind::HighBandwidth => free(Dim::NET_MBPS),
            PreferenceKind::LocalStorage => free(Dim::DISK_GIB),
            PreferenceKind::LowCost if dearest > 0.0 => {
                1.0 - candidate.price_per_hour() / (2.0 * dearest)
            }
            PreferenceKind::LowCost => 1.0,
            PreferenceKind::GpuOptimized => match (candidate.free_gpus, candidate.gpus) {
                (Some(free), gpus @ 1..) => free as f64 / gpus as f64,
                (None, 1..) => 0.5,
                _ => 0.0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::RegionLatency;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn host() -> Host {
        let mut host = Host::new(name("n1"), Amounts::from_slice(&[8000, 1000, 100, 0, 1000]));
        host.labels.insert(name("ssd"), name("yes"));
        host.location.zone = Some(name("z1"));
        host.location.region = Some(name("eu"));
        host.price.micros_per_hour = 200_000;
        host.latencies.push(RegionLatency { region: name("paris"), latency_us: 4_000 });
        host
    }

    fn one(json: &str) -> Result<Vec<Rule>, Fault> {
        let body = format!(r#"{{"vm_id":"v","constraints":[{json}]}}"#);
        let limits = wire::Limits::novacron(Default::default());
        let request = wire::read(body.as_bytes(), &limits).expect("a request");
        rules(&request)
    }

    /// How far the constraint holds on `host` with 4 of 8 cores in use and 2 more asked for.
    fn check(json: &str, expected: f64) {
        let rules = one(json).expect("understood");
        let host = host();
        let used = Amounts::cpu_memory(4000, 0);
        let candidate =
            Candidate { host: &host, used: &used, health: 0.9, free_gpus: None, gpus: 0 };
        let satisfaction = rules[0].satisfaction(&candidate, &Amounts::cpu_memory(2000, 0));
        assert!((satisfaction - expected).abs() < 1e-9, "{json}: {satisfaction}");
    }

    #[test]
    fn constraints_hold_where_they_should() {
        let affinity = |parameters: &str, near: f64, far: f64| {
            let of = |kind: &str| format!(r#"{{"type":"{kind}","parameters":{parameters}}}"#);
            check(&of("affinity"), near);
            check(&of("anti_affinity"), far);
        };
        affinity(r#"{"labels":{"ssd":"yes"}}"#, 1.0, 0.0);
        affinity(r#"{"labels":{"ssd":"no"}}"#, 0.0, 1.0);
        affinity(r#"{"zone":"z1","region":"us"}"#, 0.0, 0.0);
        affinity(r#"{"nodes":["n2"]}"#, 0.0, 1.0);
        affinity("{}", 1.0, 1.0);
        let limit = |most: f64| {
            format!(r#"{{"type":"resource_limit","parameters":{{"max_cpu_utilization":{most}}}}}"#)
        };
        check(&limit(0.75), 1.0);
        check(&limit(0.5), 0.5);
        check(r#"{"type":"cost","parameters":{"max_cost_per_hour":0.2}}"#, 1.0);
        check(r#"{"type":"cost","parameters":{"max_cost_per_hour":0.16}}"#, 0.75);
        check(r#"{"type":"availability","parameters":{"min_health":0.9}}"#, 1.0);
        check(r#"{"type":"availability","parameters":{"min_health":0.95}}"#, 0.0);
        check(r#"{"type":"compliance","parameters":{"regions":["eu","us"]}}"#, 1.0);
        check(r#"{"type":"compliance","parameters":{"regions":["us"]}}"#, 0.0);
        let latency = |region: &str, ms: u32| {
            format!(
                r#"{{"type":"network_latency","parameters":{{"region":"{region}","max_latency_ms":{ms}}}}}"#
            )
        };
        check(&latency("paris", 4), 1.0);
        check(&latency("paris", 3), 1.0 - 1.0 / 3.0);
        check(&latency("tokyo", 999), 0.0);
        check(r#"{"type":"network_latency","parameters":null}"#, 0.0);
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let check = |json: &str, path: &str, message: &str| {
            let fault = one(json).expect_err(json);
            assert_eq!((fault.path.as_str(), fault.message.as_str()), (path, message), "{json}");
        };
        for kind in ["affinity", "anti_affinity", "resource_limit"] {
            let json = format!(r#"{{"type":"{kind}","enforcement":"soft","parameters":null}}"#);
            let message = format!("{kind} constraint missing parameters");
            check(&json, "constraints[0].parameters", &message);
        }
        check(
            r#"{"type":"affinity","parameters":{"zones":"z"}}"#,
            "constraints[0].parameters",
            "\"zones\" is not a parameter here",
        );
        check(
            r#"{"type":"cost","parameters":{"max_cost_per_hour":"1"}}"#,
            "constraints[0].parameters.max_cost_per_hour",
            "\"1\"",
        );
        check(r#"{"type":"luck"}"#, "constraints[0].type", "\"luck\" is not one of the choices");
        check(
            r#"{"type":"cost","enforcement":"maybe"}"#,
            "constraints[0].enforcement",
            "\"maybe\" is not one of the choices",
        );
    }
}
