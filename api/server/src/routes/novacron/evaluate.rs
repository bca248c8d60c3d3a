//! Judges nodes that a request brings along, on tables that are thrown away afterwards.
//!
//! Whether a VM fits is the solver's answer; NovaCron's constraints, preferences and its parts of
//! a score come on top. The live cluster is neither read nor changed.

use super::rules::{Candidate, Rule, Wish, rules, wishes};
use cluster::{Amounts, Dim, Dimensions, Host, HostIx, Reason, Vm};
use solver::Problem;
use wire::Fault;
use wire::novacron::{
    EvaluateRequest, Gpu, GpuRequirements, Node, NodeScore, PlacementRequest, PlacementStrategy,
    ScoreBreakdown,
};

/// The lowest score of a node that will do: NovaCron takes 0 for "will not do".
const LEAST: f64 = 0.001;

/// One score per node, in the order of the nodes.
pub(super) fn evaluate(asked: EvaluateRequest) -> Result<Vec<NodeScore>, Fault> {
    let EvaluateRequest { request, nodes } = asked;
    let judge = Judge::new(&request)?;
    let rows = nodes.into_iter().flatten().enumerate().map(|(row, node)| Row::new(row, node));
    let rows: Vec<Row> = rows.collect::<Result<_, Fault>>()?;
    let mut problem = Problem::new(Dimensions::default().len());
    for (row, known) in rows.iter().enumerate() {
        // What is taken is left out of what there is, so that no VM has to stand for it.
        let free = known.free.clone();
        problem.put_host(index(row), &Host { capacity: free, ..known.host.clone() });
    }
    let prices = Prices::of(rows.iter().map(|row| row.node.cost));
    let scores = rows.into_iter().enumerate().map(|(ix, row)| {
        let verdict = solver::feasible(&mut problem, &judge.vm, index(ix));
        judge.score(row, verdict.err(), &prices)
    });
    Ok(scores.collect())
}

fn index(row: usize) -> HostIx {
    // The reader takes at most 20,000 nodes.
    HostIx(u32::try_from(row).unwrap_or(u32::MAX))
}

/// A node as the solver knows it.
struct Row {
    node: Node,
    host: Host,
    used: Amounts,
    free: Amounts,
}

impl Row {
    fn new(row: usize, node: Node) -> Result<Self, Fault> {
        let within = |fault: Fault| Fault { path: format!("nodes[{row}].{}", fault.path), ..fault };
        let host = node.to_host().map_err(within)?;
        let used = node.used().map_err(within)?;
        let free = node.available.amounts("available").map_err(within)?;
        if !(0.0..=1.0).contains(&node.health) {
            return Err(within(Fault {
                path: "health".into(),
                code: "invalid_value".into(),
                message: format!("{} is not a share", node.health),
                hint: "send 0 to 1".into(),
            }));
        }
        Ok(Self { node, host, used, free })
    }
}

/// The cheapest price above nothing and the highest, among the nodes of a request.
struct Prices {
    cheapest: f64,
    dearest: f64,
}

impl Prices {
    fn of(prices: impl Iterator<Item = f64>) -> Self {
        let mut found = Self { cheapest: f64::MAX, dearest: 0.0 };
        for price in prices.filter(|price| *price > 0.0) {
            found.cheapest = found.cheapest.min(price);
            found.dearest = found.dearest.max(price);
        }
        found
    }
}

/// A request with everything in it understood.
struct Judge {
    vm: Vm,
    rules: Vec<Rule>,
    wishes: Vec<Wish>,
    strategy: PlacementStrategy,
    gpus: Option<GpuRequirements>,
}

impl Judge {
    fn new(request: &PlacementRequest) -> Result<Self, Fault> {
        Ok(Self {
            vm: request.to_vm()?,
            rules: rules(request)?.into_iter().map(Rule::without_vms).collect(),
            wishes: wishes(request)?,
            strategy: request.known_strategy()?,
            gpus: request.vm_spec.gpu.clone(),
        })
    }

    fn score(&self, row: Row, refused: Option<Reason>, prices: &Prices) -> NodeScore {
        let gpus = row.node.available.gpus.as_deref().unwrap_or_default();
        let free = gpus.iter().filter(|gpu| fits(gpu, self.gpus.as_ref())).count();
        let candidate = Candidate {
            host: &row.host,
            used: &row.used,
            health: row.node.health,
            free_gpus: Some(i64::try_from(free).unwrap_or(i64::MAX)),
            gpus: i64::try_from(gpus.len()).unwrap_or(i64::MAX),
        };
        let broken = || self.broken(&candidate);
        if let Some(reason) = refused.map(words).or_else(broken) {
            return NodeScore { node: Some(row.node), reason, ..NodeScore::default() };
        }
        let breakdown = self.breakdown(&candidate, prices);
        let score = self.total(&breakdown);
        NodeScore { node: Some(row.node), score, breakdown, feasible: true, reason: String::new() }
    }

    /// Why a hard rule keeps the VM away.
    fn broken(&self, candidate: &Candidate<'_>) -> Option<String> {
        let hard = self.rules.iter().filter(|rule| rule.is_hard());
        let mut broken = hard.filter(|rule| !rule.holds(candidate, &self.vm.demand));
        broken.next().map(Rule::reason)
    }

    fn breakdown(&self, candidate: &Candidate<'_>, prices: &Prices) -> ScoreBreakdown {
        let soft = self.rules.iter().filter(|rule| !rule.is_hard());
        let met = soft.map(|rule| (rule.weight, rule.credit(candidate, &self.vm.demand)));
        let wished =
            self.wishes.iter().map(|wish| (wish.weight, wish.grade(candidate, prices.dearest)));
        let price = candidate.price_per_hour();
        let location = self.rules.iter().filter(|rule| rule.is_about_location());
        let location: Vec<(f64, f64)> =
            location.map(|rule| (rule.weight, rule.credit(candidate, &self.vm.demand))).collect();
        ScoreBreakdown {
            resource_score: self.resources(candidate).max(LEAST),
            constraint_score: mean(met),
            preference_score: mean(wished),
            health_score: candidate.health,
            cost_score: if price > 0.0 { prices.cheapest / price } else { 1.0 },
            location_score: if location.is_empty() { 0.0 } else { mean(location.into_iter()) },
        }
    }

    /// How well the VM sits on the host, by the utilisation of the dimensions that it has.
    fn resources(&self, candidate: &Candidate<'_>) -> f64 {
        let dims = [Dim::CPU_MILLIS, Dim::MEMORY_MIB, Dim::DISK_GIB, Dim::NET_MBPS];
        let has = dims.iter().filter(|dim| candidate.host.capacity.get(**dim) > 0);
        let shares: Vec<f64> = has
            .map(|dim| {
                let used = candidate.used.get(*dim).saturating_add(self.vm.demand.get(*dim));
                used as f64 / candidate.host.capacity.get(*dim) as f64
            })
            .collect();
        let count = shares.len().max(1) as f64;
        let average = shares.iter().sum::<f64>() / count;
        let highest = shares.iter().copied().fold(0.0, f64::max);
        match self.strategy {
            PlacementStrategy::Consolidated | PlacementStrategy::Efficiency => average,
            PlacementStrategy::Performance => 1.0 - average,
            // Half for headroom, half for evenness.
            PlacementStrategy::Balanced | PlacementStrategy::CostOptimized => {
                (1.0 - highest) / 2.0 + (1.0 - (highest - average)) / 2.0
            }
        }
        .clamp(0.0, 1.0)
    }

    fn total(&self, parts: &ScoreBreakdown) -> f64 {
        // Resources, constraints, preferences, health, cost; each row sums to 100.
        let weights: [f64; 5] = match self.strategy {
            PlacementStrategy::Balanced => [40.0, 20.0, 15.0, 15.0, 10.0],
            PlacementStrategy::Consolidated | PlacementStrategy::Efficiency => {
                [60.0, 15.0, 10.0, 10.0, 5.0]
            }
            PlacementStrategy::Performance => [50.0, 15.0, 10.0, 20.0, 5.0],
            PlacementStrategy::CostOptimized => [20.0, 15.0, 10.0, 10.0, 45.0],
        };
        let values = [
            parts.resource_score,
            parts.constraint_score,
            parts.preference_score,
            parts.health_score,
            parts.cost_score,
        ];
        let sum: f64 = weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
        (sum / 100.0).clamp(LEAST, 1.0)
    }
}

/// The weighted mean; 1 when nothing is asked.
fn mean(parts: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut weight, mut sum) = (0.0, 0.0);
    for (part, value) in parts {
        weight += part;
        sum += part * value;
    }
    if weight > 0.0 { sum / weight } else { 1.0 }
}

fn fits(gpu: &Gpu, wanted: Option<&GpuRequirements>) -> bool {
    !gpu.in_use
        && wanted.is_none_or(|wanted| {
            (wanted.model.is_empty() || wanted.model == gpu.model)
                && gpu.memory_mb >= wanted.memory_mb
        })
}

/// A rule of the cluster in NovaCron's words.
fn words(reason: Reason) -> String {
    match reason {
        Reason::HostState => "the node is not ready".into(),
        Reason::Taint => "the node has a taint that the VM does not tolerate".into(),
        Reason::ExcludedHost => "the node is excluded by the request".into(),
        Reason::Capacity(dim) => {
            let what = match dim {
                Dim::CPU_MILLIS => "CPU",
                Dim::MEMORY_MIB => "memory",
                Dim::DISK_GIB => "storage",
                Dim::NET_MBPS => "network bandwidth",
                _ => "of what is asked for",
            };
            format!("not enough {what} is available")
        }
        other => other.name().unwrap_or("the node may not be used").into(),
    }
}
