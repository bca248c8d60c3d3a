//! Tries policies on the living fleet before they are put in force.
//!
//! A bounded sample of the placed VMs, the same for the same state, is asked about as if each were
//! placed again: which rules remove how many hosts, whom they leave without a host, and which
//! rules have no value. Policies are asked about the hosts that fences leave a VM; constraints that
//! follow where other VMs are have their say when it is placed. Nothing is changed and nothing is
//! decided by it.

use crate::fleet::{Fleet, host_attribute};
use crate::state::State;
use cluster::{Amounts, Constraint, ConstraintRule, HostIx, Index, Name, Vm, VmKey};
use policy::vocabulary::{HostField, VmField};
use policy::{ActiveSet, EvaluateError, PolicyType, RuleIx, Scratch, Value, Verdicts};
use std::borrow::Cow;
use std::sync::Arc;

/// VMs that are asked about, at most.
const MOST_VMS: usize = 64;
/// Where there are many hosts, fewer VMs are asked about, so that a trial takes this many verdicts
/// at most; a few are always asked about.
const MOST_VERDICTS: usize = 2_000_000;
const FEWEST_VMS: usize = 8;
/// VMs without a host that are named.
const NAMED_VMS: usize = 8;

/// The VMs that a trial asks about, with what the policies read of them.
#[derive(Debug)]
pub struct Sample {
    vms: Vec<Asked>,
    stand_in: bool,
}

#[derive(Debug)]
struct Asked {
    key: VmKey,
    host: Option<HostIx>,
    vm: Vec<Value>,
    source: Vec<Value>,
    /// Fences that tell it apart, and whether it has to be inside.
    fences: Vec<(Arc<Constraint>, bool)>,
}

/// What the policies would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// Hosts that take VMs.
    pub hosts: u32,
    /// VMs that were asked about.
    pub vms: u32,
    /// No VM is placed, and one that asks for nothing stood in.
    pub stand_in: bool,
    /// VMs that no host would be left for.
    pub vms_without_host: u32,
    /// The first of them.
    pub without_host: Vec<VmKey>,
    /// VMs that would not be placed again where they are.
    pub vms_off_their_host: u32,
    /// Every rule, in the order of evaluation.
    pub rules: Vec<RuleTrial>,
}

/// What one rule would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTrial {
    pub policy: String,
    pub rule: String,
    /// The most hosts that it removes for one VM.
    pub hosts_removed: u32,
    /// VMs for which it removes any.
    pub vms_affected: u32,
    /// Pairs of VM and host on which a part of it has no value, so that it does not fire.
    pub errors: u64,
    /// That is the case on every host for every VM.
    pub never_has_a_value: bool,
}

impl Sample {
    /// VMs at even distances by row. Without any, a VM that asks for nothing.
    pub fn of(state: &State, set: &ActiveSet) -> Self {
        let affordable = MOST_VERDICTS.checked_div(state.host_count()).unwrap_or(MOST_VMS);
        let most = affordable.clamp(FEWEST_VMS, MOST_VMS);
        let step = state.vm_count().div_ceil(most).max(1);
        let dimensions = state.dimensions();
        let of_vm: Vec<VmField> =
            set.paths().vm.iter().map(|path| VmField::resolve(path, dimensions)).collect();
        let of_source: Vec<HostField> =
            set.paths().source.iter().map(|path| HostField::resolve(path, dimensions)).collect();
        let ask = |vm: &Vm, host: Option<HostIx>| {
            let entry = host.and_then(|host| state.host(host));
            let source =
                |field: &HostField| entry.map_or(Value::Null, |entry| host_attribute(field, entry));
            Asked {
                key: vm.key.clone(),
                host,
                vm: of_vm.iter().map(|field| field.value(vm)).collect(),
                source: of_source.iter().map(source).collect(),
                fences: fences(state, vm),
            }
        };
        let vms: Vec<Asked> =
            state.vms().step_by(step).map(|(_, it)| ask(&it.vm, Some(it.host))).collect();
        let stand_in = vms.is_empty();
        let vms = if stand_in { vec![ask(&nobody(), None)] } else { vms };
        Self { vms, stand_in }
    }
}

/// The fences that a VM has to be inside, or outside.
fn fences(state: &State, vm: &Vm) -> Vec<(Arc<Constraint>, bool)> {
    let sides = state.constraints().filter_map(|entry| match &entry.constraint.rule {
        ConstraintRule::Fence(fence) => {
            let inside = fence.vms.contains(vm);
            (inside || fence.reserved).then(|| (Arc::clone(&entry.constraint), inside))
        }
        _ => None,
    });
    sides.collect()
}

fn nobody() -> Vm {
    #[expect(clippy::expect_used, reason = "a constant that is a valid name")]
    let id = Name::new("stand-in").expect("a constant that is a valid name");
    Vm::new(VmKey::in_default_tenant(id), Amounts::zero())
}

impl Trial {
    /// Asks the fleet's policies about every VM of the sample.
    pub fn run(fleet: &Fleet, sample: &Sample) -> Result<Self, EvaluateError> {
        let set: &Arc<ActiveSet> = fleet.set();
        let hosts = fleet.open_count();
        let mut trial = Self {
            hosts,
            vms: if sample.stand_in { 0 } else { sample.vms.len() as u32 },
            stand_in: sample.stand_in,
            rules: rules(set),
            ..Self::default()
        };
        let (mut scratch, mut verdicts) = (Scratch::default(), Verdicts::default());
        let mut removed = vec![0u32; set.rule_count()];
        for asked in &sample.vms {
            let may = |host: &cluster::Host| {
                asked.fences.iter().all(|(constraint, inside)| match &constraint.rule {
                    ConstraintRule::Fence(fence) => fence.hosts.contains(host) == *inside,
                    _ => true,
                })
            };
            let candidates = match asked.fences.is_empty() {
                true => Cow::Borrowed(fleet.open()),
                false => Cow::Owned(fleet.open_where(may)),
            };
            for kind in kinds(set) {
                let request = policy::Request {
                    source: &asked.source,
                    candidates: Some(&candidates),
                    ..policy::Request::new(kind, &asked.vm)
                };
                set.evaluate(&request, fleet.table(), &mut scratch, &mut verdicts)?;
                removed.fill(0);
                for row in 0..verdicts.rows() {
                    let rule = verdicts.filtered_by(row);
                    if let Some(count) = rule.and_then(|rule| removed.get_mut(rule.0 as usize)) {
                        *count = count.saturating_add(1);
                    }
                }
                trial.add(set, &verdicts, &removed);
                if kind == PolicyType::Placement {
                    let fenced_off = |host: &HostIx| !fleet.is_at(*host, may);
                    trial.place(asked, &verdicts, asked.host.as_ref().is_some_and(fenced_off));
                }
            }
        }
        let pairs = u64::from(hosts).saturating_mul(sample.vms.len() as u64);
        let policies = set.policies().iter();
        let tried = policies.flat_map(|policy| policy.rules().map(|_| times(set, policy)));
        for (rule, times) in trial.rules.iter_mut().zip(tried) {
            rule.never_has_a_value = pairs > 0 && rule.errors >= pairs.saturating_mul(times);
        }
        Ok(trial)
    }

    fn add(&mut self, set: &ActiveSet, verdicts: &Verdicts, removed: &[u32]) {
        let mut of_target = Vec::new();
        for (place, policy) in set.policies().iter().enumerate() {
            let failed = u64::from(verdicts.target_errors(place));
            of_target.extend(policy.rules().map(|_| failed));
        }
        let counted = self.rules.iter_mut().zip(removed).zip(of_target);
        for (number, ((rule, removed), of_target)) in (0u32..).zip(counted) {
            rule.hosts_removed = rule.hosts_removed.max(*removed);
            rule.vms_affected = rule.vms_affected.saturating_add(u32::from(*removed > 0));
            let own = u64::from(verdicts.errors(RuleIx(number)));
            rule.errors = rule.errors.saturating_add(own).saturating_add(of_target);
        }
    }

    fn place(&mut self, asked: &Asked, verdicts: &Verdicts, fenced_off: bool) {
        if verdicts.feasible().iter().all(|word| *word == 0) {
            self.vms_without_host = self.vms_without_host.saturating_add(1);
            if self.without_host.len() < NAMED_VMS {
                self.without_host.push(asked.key.clone());
            }
        }
        let refused = |host: HostIx| verdicts.filtered_by(host.row()).is_some();
        if fenced_off || asked.host.is_some_and(refused) {
            self.vms_off_their_host = self.vms_off_their_host.saturating_add(1);
        }
    }
}

fn rules(set: &ActiveSet) -> Vec<RuleTrial> {
    let all = set.policies().iter().flat_map(|policy| policy.rules().map(move |it| (policy, it)));
    all.map(|(policy, (_, rule))| RuleTrial {
        policy: policy.id().to_owned(),
        rule: rule.id.clone(),
        hosts_removed: 0,
        vms_affected: 0,
        errors: 0,
        never_has_a_value: false,
    })
    .collect()
}

/// How many questions a policy is asked about each VM.
fn times(set: &ActiveSet, policy: &policy::ActivePolicy) -> u64 {
    kinds(set).filter(|kind| policy.program().document().kind.counts_for(*kind)).count() as u64
}

/// The questions that any of the policies has something to say to.
fn kinds(set: &ActiveSet) -> impl Iterator<Item = PolicyType> {
    PolicyType::ALL.into_iter().filter(|kind| {
        let counts =
            |policy: &policy::ActivePolicy| policy.program().document().kind.counts_for(*kind);
        // A composite policy is asked about placements and migrations, and counts there.
        *kind != PolicyType::Composite && set.policies().iter().any(counts)
    })
}
