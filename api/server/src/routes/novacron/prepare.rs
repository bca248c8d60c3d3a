//! A placement request against the living fleet, in the engine's words.
//!
//! What the engine has rules for becomes rules. The rest is tested here, host by host, and becomes
//! a list of the hosts that pass: one that must hold for hard constraints, one that counts for
//! each wish. The engine still decides, with its policies and under its verifier's eye.

use super::rules::{Candidate, Rule, Test, Wish, rules, wishes};
use cluster::{
    Affinity, AffinityKind, Amounts, Dim, Host, Level, Name, Strategy, Strength, Subject, Term, Vm,
    VmKey,
};
use engine::{Health, HostEntry, State};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::Fault;
use wire::novacron::{GpuRequirements, PlacementRequest, PlacementStrategy};

/// Names of the dimension that counts whole GPUs, where one is declared.
const GPU_DIMENSIONS: [&str; 3] = ["gpu_slots", "gpus", "gpu"];

/// A request with everything in it understood.
#[derive(Debug)]
pub(super) struct Asked {
    vm: Vm,
    rules: Vec<Rule>,
    wishes: Vec<Wish>,
    pub(super) strategy: PlacementStrategy,
    gpus: Option<GpuRequirements>,
}

impl Asked {
    pub(super) fn new(request: &PlacementRequest) -> Result<Self, Fault> {
        Ok(Self {
            vm: request.to_vm()?,
            rules: rules(request)?,
            wishes: wishes(request)?,
            strategy: request.known_strategy()?,
            gpus: request.vm_spec.gpu.clone().filter(|gpus| gpus.count > 0),
        })
    }
}

/// What to ask the engine.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) vm: Vm,
    pub(super) strategy: Strategy,
    /// The VM itself, as it is to be kept if its place is reserved.
    pub(super) plain: Arc<Vm>,
    /// Hosts that pass every hard test, with their prices; `None` if all of them do.
    allowed: Option<Vec<(Name, u64)>>,
    /// The prices that allowed hosts have, each once, lowest first, where the cheapest is wanted.
    pub(super) prices: Vec<u64>,
    /// Hard rules that left hosts out, and how many each.
    pub(super) left_out: Vec<(String, usize)>,
    /// Where the VM is, if it is known.
    pub(super) moves_from: Option<Name>,
    /// The highest score there can be.
    pub(super) most: i64,
    pub(super) hosts: usize,
}

impl Prepared {
    pub(super) fn new(asked: Asked, state: &State) -> Self {
        let Asked { vm, rules, wishes, strategy, gpus } = asked;
        let (mut vm, moves_from) = known(vm, state);
        let gpu_dim = GPU_DIMENSIONS.iter().find_map(|name| state.dimensions().find(name));
        if let (Some(gpus), Some(dim)) = (&gpus, gpu_dim) {
            vm.demand.set(dim, u64::try_from(gpus.count).unwrap_or(0));
        }
        let listed = lists_gpus(state, gpu_dim);
        if let Some(gpus) = gpus.as_ref().filter(|_| listed && moves_from.is_none()) {
            let topology = vm.topology.get_or_insert_default();
            topology.gpus = gpus.to_request();
        }
        let rows: Vec<Row<'_>> = state
            .hosts()
            .map(|(_, entry)| Row::new(state, entry, gpu_dim, gpus.as_ref(), listed))
            .collect();
        let plain = Arc::new(vm.clone());
        let cheapest = strategy == PlacementStrategy::CostOptimized;
        let (allowed, left_out) = allowed(&rows, &rules, &vm.demand, cheapest);
        let hints = hints(&rows, &rules, &wishes, &vm.demand);
        let strategy = engine_strategy(strategy, !hints.is_empty());
        vm.affinities.extend(vm_rules(&rules));
        vm.affinities.extend(hints);
        let mut prices: Vec<u64> = Vec::new();
        if cheapest {
            prices = allowed.iter().flatten().map(|(_, price)| *price).collect();
            prices.sort_unstable();
            prices.dedup();
        }
        let weights = state.policy().weights;
        let most = match strategy {
            Strategy::LeastLoaded => 100_000,
            _ => {
                let weights = Term::ALL.map(|term| i64::from(weights.get(term)));
                weights.iter().sum::<i64>().saturating_mul(1000)
            }
        };
        let hosts = rows.len();
        Self { vm, strategy, plain, allowed, prices, left_out, moves_from, most, hosts }
    }

    /// The VM with a rule that only allowed hosts of at most this price will do.
    pub(super) fn restricted(&self, most: Option<u64>) -> Vm {
        let mut vm = self.vm.clone();
        if let Some(allowed) = &self.allowed {
            let hosts = allowed.iter().filter(|(_, price)| most.is_none_or(|most| *price <= most));
            let hosts = hosts.map(|(host, _)| host.clone()).collect();
            vm.affinities.push(on_hosts(AffinityKind::Together, hosts, Strength::Required));
        }
        vm
    }
}

/// A VM that runs already is asked about with the rules that it carries, with its own size unless
/// another is given, and never about the host where it is.
fn known(asked: Vm, state: &State) -> (Vm, Option<Name>) {
    let Some((mut vm, host)) = moving(state, &asked.key.id) else { return (asked, None) };
    if !asked.demand.is_zero() {
        vm.demand = asked.demand;
    }
    vm.excluded_hosts.extend(asked.excluded_hosts);
    (vm, Some(host))
}

/// A placed VM as one that looks for another host, and the host where it is. NovaCron's ids are
/// unique, so that the tenant need not be told; where two have the id, `default` goes first.
pub(super) fn moving(state: &State, id: &Name) -> Option<(Vm, Name)> {
    let by_default = state.find_vm(&VmKey::in_default_tenant(id.clone()));
    let anywhere = || state.vms().find(|(_, entry)| entry.vm.key.id == *id);
    let (_, entry) = by_default.or_else(anywhere)?;
    crate::routes::moving::moving(state, &entry.vm.key)
}

/// A host of the fleet as a candidate.
struct Row<'a> {
    host: &'a Host,
    used: Amounts,
    health: f64,
    free_gpus: Option<i64>,
}

impl<'a> Row<'a> {
    /// `listed` says that hosts list their GPUs, and that those are what counts.
    fn new(
        state: &State,
        entry: &'a HostEntry,
        dim: Option<Dim>,
        wanted: Option<&GpuRequirements>,
        listed: bool,
    ) -> Self {
        let host = entry.host.as_ref();
        let health = match entry.health {
            Health::Healthy => 1.0,
            Health::Suspect => 0.5,
            Health::Down => 0.0,
        };
        let used = in_use(entry);
        let by_count = |dim| {
            let free = host.allocatable(dim).saturating_sub(used.get(dim));
            i64::try_from(free).unwrap_or(i64::MAX)
        };
        let free_gpus = match listed {
            true => Some(unused_gpus(state, entry, wanted)),
            false => dim.filter(|_| all_fit(host, wanted)).map(by_count),
        };
        Self { host, used, health, free_gpus }
    }

    fn candidate(&self) -> Candidate<'_> {
        let gpus = i64::try_from(self.host.hardware.gpus.len()).unwrap_or(i64::MAX);
        Candidate {
            host: self.host,
            used: &self.used,
            health: self.health,
            free_gpus: self.free_gpus,
            gpus,
        }
    }

    fn price(&self) -> u64 {
        self.host.price.marginal_micros_per_hour()
    }
}

/// What is taken of a host, by VMs that are recorded here and by others.
pub(super) fn in_use(entry: &HostEntry) -> Amounts {
    let others = entry.foreign().used;
    entry.allocated.checked_add(&others).unwrap_or_else(|| entry.allocated.clone())
}

/// Whether hosts list their GPUs, so that VMs can be given certain ones. Where some are only
/// counted, counting has to do for all.
fn lists_gpus(state: &State, dim: Option<Dim>) -> bool {
    let mut any = false;
    for (_, entry) in state.hosts() {
        let listed = !entry.host.hardware.gpus.is_empty();
        if !listed && dim.is_some_and(|dim| entry.host.capacity.get(dim) > 0) {
            return false;
        }
        any |= listed;
    }
    any
}

/// GPUs of the host that would do and that no VM has a part of.
fn unused_gpus(state: &State, entry: &HostEntry, wanted: Option<&GpuRequirements>) -> i64 {
    let vms = entry.vms.iter().filter_map(|vm| state.vm(*vm)?.bindings.as_deref());
    let taken: BTreeSet<u16> = vms.flat_map(|parts| &parts.gpus).map(|bound| bound.gpu).collect();
    let gpus = entry.host.hardware.gpus.iter().zip(0u16..);
    let free = gpus
        .filter(|(gpu, row)| !taken.contains(row) && wanted.is_none_or(|wanted| fits(gpu, wanted)));
    i64::try_from(free.count()).unwrap_or(i64::MAX)
}

fn fits(gpu: &cluster::Gpu, wanted: &GpuRequirements) -> bool {
    (wanted.model.is_empty() || gpu.model.as_str() == wanted.model)
        && i64::from(gpu.memory_mib) >= wanted.memory_mb
}

/// Whether each GPU of the host would do. Nobody knows which of them are free, so a host with
/// others among them is not counted on.
fn all_fit(host: &Host, wanted: Option<&GpuRequirements>) -> bool {
    let Some(wanted) = wanted.filter(|it| !it.model.is_empty() || it.memory_mb > 0) else {
        return true;
    };
    let gpus = &host.hardware.gpus;
    !gpus.is_empty() && gpus.iter().all(|gpu| fits(gpu, wanted))
}

type Allowed = (Option<Vec<(Name, u64)>>, Vec<(String, usize)>);

/// The hosts that pass every hard rule, and what left the others out. `None` where no list is
/// needed: everything passes, and nobody wants to know the prices.
fn allowed(rows: &[Row<'_>], rules: &[Rule], demand: &Amounts, with_prices: bool) -> Allowed {
    let hard: Vec<&Rule> = rules.iter().filter(|rule| rule.is_hard()).collect();
    let mut left_out = vec![0usize; hard.len()];
    let mut passed = Vec::with_capacity(rows.len());
    for row in rows {
        let candidate = row.candidate();
        match hard.iter().position(|rule| !rule.holds(&candidate, demand)) {
            Some(broken) => {
                if let Some(count) = left_out.get_mut(broken) {
                    *count = count.saturating_add(1);
                }
            }
            None => passed.push((row.host.id.clone(), row.price())),
        }
    }
    let everything = passed.len() == rows.len();
    let counts = hard.iter().zip(left_out).filter(|(_, count)| *count > 0);
    let counts = counts.map(|(rule, count)| (rule.reason(), count)).collect();
    ((!everything || with_prices).then_some(passed), counts)
}

/// Each soft rule and each wish as a list of the hosts that meet it, or meet it better than most.
fn hints(rows: &[Row<'_>], rules: &[Rule], wishes: &[Wish], demand: &Amounts) -> Vec<Affinity> {
    let soft: Vec<&Rule> = rules.iter().filter(|rule| !rule.is_hard()).collect();
    let weights = soft.iter().map(|rule| rule.weight).chain(wishes.iter().map(|wish| wish.weight));
    let heaviest = weights.fold(0.0, f64::max);
    let mut hints = Vec::new();
    let mut add = |weight: f64, hosts: Vec<Name>| {
        // A list of all hosts, or of none, tells nothing.
        if !hosts.is_empty() && hosts.len() < rows.len() {
            let weight = preferred(weight, heaviest);
            hints.push(on_hosts(AffinityKind::Together, hosts, weight));
        }
    };
    for rule in soft {
        let meet = rows.iter().filter(|row| rule.holds(&row.candidate(), demand));
        add(rule.weight, meet.map(|row| row.host.id.clone()).collect());
    }
    let dearest = rows.iter().map(|row| row.candidate().price_per_hour()).fold(0.0, f64::max);
    for wish in wishes {
        add(wish.weight, better_half(rows, |row| wish.grade(&row.candidate(), dearest)));
    }
    hints
}

/// The hosts whose grade is at least the median and above the lowest.
fn better_half(rows: &[Row<'_>], grade: impl Fn(&Row<'_>) -> f64) -> Vec<Name> {
    let grades: Vec<f64> = rows.iter().map(grade).collect();
    let mut sorted = grades.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let lowest = sorted.first().copied().unwrap_or(0.0);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let better = rows.iter().zip(grades).filter(|(_, grade)| *grade >= median && *grade > lowest);
    better.map(|(row, _)| row.host.id.clone()).collect()
}

/// Together with and apart from VMs, which the engine knows about.
fn vm_rules(rules: &[Rule]) -> Vec<Affinity> {
    let heaviest = rules.iter().map(|rule| rule.weight).fold(0.0, f64::max);
    let mut found = Vec::new();
    for rule in rules {
        let (kind, place) = match &rule.test {
            Test::Near(place) => (AffinityKind::Together, place),
            Test::Far(place) => (AffinityKind::Apart, place),
            _ => continue,
        };
        let strength =
            if rule.is_hard() { Strength::Required } else { preferred(rule.weight, heaviest) };
        found.extend(place.vms.iter().map(|vm| Affinity {
            kind,
            subject: Subject::Vm(vm.clone()),
            level: Level::Host,
            strength,
        }));
    }
    found
}

fn on_hosts(kind: AffinityKind, hosts: Vec<Name>, strength: Strength) -> Affinity {
    Affinity { kind, subject: Subject::Hosts(hosts), level: Level::Host, strength }
}

/// A weight among others: the heaviest is 1000.
fn preferred(weight: f64, heaviest: f64) -> Strength {
    let share = if heaviest > 0.0 { weight / heaviest } else { 1.0 };
    Strength::Preferred((share * 1000.0).clamp(1.0, 1000.0) as u16)
}

/// `performance` looks at load alone where nothing else is wished for; the strategies that count
/// wishes are the weighted ones.
fn engine_strategy(strategy: PlacementStrategy, has_wishes: bool) -> Strategy {
    match strategy {
        PlacementStrategy::Balanced | PlacementStrategy::CostOptimized => Strategy::Balanced,
        PlacementStrategy::Consolidated | PlacementStrategy::Efficiency => Strategy::Consolidate,
        PlacementStrategy::Performance if has_wishes => Strategy::Spread,
        PlacementStrategy::Performance => Strategy::LeastLoaded,
    }
}
