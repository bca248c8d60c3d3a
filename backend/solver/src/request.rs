//! A VM's wishes as rows of the tables: names are looked up once, here, and never in a loop.

use crate::cache::Slot;
use crate::constraints::affinity::{Near, Rule};
use crate::constraints::installed::Classes;
use crate::constraints::spread::SpreadRule;
use crate::domains::LevelIx;
use crate::fragmentation::Keeping;
use crate::groups::{GroupIx, SubjectKey, SubjectKind};
use crate::inside::Asked;
use crate::locality::Locality;
use crate::problem::{Problem, groups_of};
use crate::room::Ask;
use crate::score::Formula;
use cluster::{
    Affinity, AffinityKind, Amounts, HostIx, Name, Spread, Strategy, Strength, Subject, Vm, VmKey,
};
use smallvec::SmallVec;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asks: SmallVec<[Ask; 6]>,
    pub(crate) pool: Option<Slot>,
    pub(crate) selectors: SmallVec<[Slot; 4]>,
    pub(crate) tolerated: Slot,
    pub(crate) datastores: SmallVec<[Slot; 4]>,
    pub(crate) excluded: SmallVec<[HostIx; 4]>,
    pub(crate) rules: SmallVec<[Rule; 4]>,
    pub(crate) spreads: SmallVec<[SpreadRule; 2]>,
    /// Groups that the VM belongs to and that have members or repellers.
    pub(crate) own_groups: SmallVec<[GroupIx; 4]>,
    /// Somebody keeps this very VM away.
    pub(crate) own_name: Option<GroupIx>,
    /// What the VM is to each installed constraint.
    pub(crate) classes: Classes,
    pub(crate) locality: Locality,
    /// The parts of a host that the VM asks for.
    pub(crate) inside: Option<Asked>,
    /// Sum of the weights of all preferred rules.
    pub(crate) wished: i64,
    /// What the VM would cost in worth, if that is what decides.
    pub(crate) keeping: Option<Keeping>,
}

impl Request {
    /// Looks everything up. `crowding` asks for the VM's own groups by rack and zone as well.
    pub(crate) fn compile(problem: &mut Problem, vm: &Vm, crowding: bool) -> Self {
        problem.predicates.tick();
        problem.domains.tick();
        problem.policies.ask(vm);
        let own_groups = own_groups(problem, vm, crowding);
        let own_name = SubjectKey::new(&vm.key.tenant, SubjectKind::Vm, &vm.key.id);
        let own_name = problem.groups.find(&own_name);
        let rules: SmallVec<[Rule; 4]> =
            vm.affinities.iter().map(|rule| compile_rule(problem, vm, rule)).collect();
        let spreads: SmallVec<[SpreadRule; 2]> =
            vm.spreads.iter().map(|spread| compile_spread(problem, vm, spread)).collect();
        let wished = rules.iter().filter_map(|rule| rule.weight);
        let wished = wished.chain(spreads.iter().filter_map(|spread| spread.weight));
        let (predicates, hosts) = (&mut problem.predicates, &problem.hosts);
        Self {
            asks: vm.demand.iter().map(|(dim, n)| Ask::new(dim, n, vm)).collect(),
            pool: vm.pool.as_ref().map(|pool| predicates.pool(pool)),
            selectors: vm.selectors.iter().map(|one| predicates.selector(one)).collect(),
            tolerated: predicates.tolerations(&vm.tolerations),
            datastores: vm.datastores.iter().map(|one| predicates.datastore(one)).collect(),
            excluded: vm.excluded_hosts.iter().filter_map(|name| hosts.find(name)).collect(),
            wished: wished.map(i64::from).sum(),
            rules,
            spreads,
            own_groups,
            own_name,
            classes: problem.installed.classes(vm),
            locality: Locality::compile(problem, vm),
            inside: problem.inside.ask(vm),
            keeping: None,
        }
    }

    /// As `compile`, with all that a strategy needs.
    pub(crate) fn for_strategy(
        problem: &mut Problem,
        vm: &Vm,
        formula: &Formula,
        strategy: Strategy,
    ) -> Self {
        let mut request = Self::compile(problem, vm, formula.crowding());
        if strategy == Strategy::LeastFragmentation {
            let Problem { losses, hosts, room, inside, .. } = problem;
            request.keeping = Some(losses.ask(vm, hosts, room, inside));
        }
        request
    }

    /// What the VM takes on this host.
    pub(crate) fn committed(&self, problem: &Problem, host: HostIx) -> Amounts {
        let mut committed = Amounts::zero();
        for ask in &self.asks {
            committed.set(ask.dim, problem.room.taken(ask, host));
        }
        committed
    }

    /// The share of preferred rules, by weight, that hold on the host, in permille.
    pub(crate) fn wishes_held(&self, problem: &Problem, host: HostIx) -> i64 {
        if self.wished == 0 {
            return 1000;
        }
        let mut held = 0;
        for rule in &self.rules {
            if let Some(weight) = rule.weight
                && rule.holds(problem, host)
            {
                held += i64::from(weight);
            }
        }
        for spread in &self.spreads {
            if let Some(weight) = spread.weight
                && spread.holds(problem, host)
            {
                held += i64::from(weight);
            }
        }
        1000 * held / self.wished
    }
}

fn own_groups(problem: &mut Problem, vm: &Vm, crowding: bool) -> SmallVec<[GroupIx; 4]> {
    let mut own = SmallVec::new();
    for group in groups_of(vm) {
        let key = SubjectKey::new(&vm.key.tenant, SubjectKind::Group, group);
        let Some(group) = problem.groups.find(&key) else { continue };
        if crowding {
            problem.groups.track(group, LevelIx::RACK, &problem.domains);
            problem.groups.track(group, LevelIx::ZONE, &problem.domains);
        }
        own.push(group);
    }
    own
}

fn compile_rule(problem: &mut Problem, vm: &Vm, rule: &Affinity) -> Rule {
    let level = problem.level(&rule.level);
    let weight = weight(rule.strength);
    let (near, anywhere, belongs) = match &rule.subject {
        Subject::Hosts(names) => {
            let hosts = names.iter().filter_map(|name| problem.hosts.find(name));
            (domains_of(problem, level, hosts), true, false)
        }
        Subject::Vm(id) => {
            let key = VmKey { tenant: vm.key.tenant.clone(), id: id.clone() };
            let host = problem.groups.host_of(&key);
            let belongs = *id == vm.key.id;
            (domains_of(problem, level, host.into_iter()), host.is_some(), belongs)
        }
        Subject::Group(group) => {
            let found = track(problem, vm, group, level);
            let anywhere = found.is_some_and(|group| problem.groups.has_members(group));
            (found.map_or(Near::nobody(), Near::Group), anywhere, groups_of(vm).contains(&group))
        }
    };
    Rule {
        kind: rule.kind,
        about_hosts: matches!(rule.subject, Subject::Hosts(_)),
        level,
        near,
        open: rule.kind == AffinityKind::Together && !anywhere && belongs,
        weight,
    }
}

fn compile_spread(problem: &mut Problem, vm: &Vm, spread: &Spread) -> SpreadRule {
    let level = problem.level(&spread.level);
    SpreadRule {
        level,
        group: track(problem, vm, &spread.group, level),
        max_skew: spread.max_skew,
        weight: weight(spread.strength),
        fewest: 0,
    }
}

fn track(problem: &mut Problem, vm: &Vm, group: &Name, level: LevelIx) -> Option<GroupIx> {
    let key = SubjectKey::new(&vm.key.tenant, SubjectKind::Group, group);
    let found = problem.groups.find(&key)?;
    problem.groups.track(found, level, &problem.domains);
    Some(found)
}

/// The domains of these hosts, each once. There may be as many hosts as the fleet has.
fn domains_of(problem: &Problem, level: LevelIx, hosts: impl Iterator<Item = HostIx>) -> Near {
    let domains = hosts.filter_map(|host| problem.domains.of(level, host));
    let mut domains: SmallVec<[u32; 4]> = domains.collect();
    domains.sort_unstable();
    domains.dedup();
    Near::Domains(domains)
}

fn weight(strength: Strength) -> Option<u16> {
    match strength {
        Strength::Required => None,
        Strength::Preferred(weight) => Some(weight),
    }
}
