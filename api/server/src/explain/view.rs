//! Explanations as they are answered.

use super::text;
use cluster::{
    AffinityKind, Breakdown, Dimensions, HostIx, Level, Name, Strength, Subject, Vm, VmKey,
};
use engine::{Tables, VmEntry};
use solver::explain::{
    Change, Counterfactual, Explanation, HostExplanation, Obstacle, Scored, Unknown, UnknownKind,
    WHOLE, changed, compare,
};
use wire::{
    ChangeView, ComparisonView, CounterfactualView, ExplanationView, ObstacleView, Quantities,
    ReasonView, ScoreParts, ScoredView, UnknownView, VmSpec, Word, reason_word,
};

/// VMs that are named for one obstacle.
const MOST_NAMED: usize = 8;

pub(super) fn everywhere(tables: &Tables, vm: &Vm, told: &Explanation) -> ExplanationView {
    let dimensions = tables.dimensions();
    let reasons = told.reasons.iter().map(|(reason, hosts)| ReasonView {
        reason: reason_word(*reason, dimensions),
        first: hosts.first,
        any: hosts.any,
        alone: hosts.alone,
    });
    ExplanationView {
        fits: told.fits > 0,
        hosts_considered: told.considered,
        hosts_that_fit: Some(told.fits),
        reasons: reasons.collect(),
        ..common(tables, vm, None, &told.unknown, told.counterfactual.as_ref())
    }
}

pub(super) fn on_host(
    tables: &Tables,
    vm: &Vm,
    host: HostIx,
    told: &HostExplanation,
) -> ExplanationView {
    let obstacles = told.obstacles.iter().map(|it| obstacle(tables, vm, host, it));
    ExplanationView {
        fits: told.obstacles.is_empty(),
        obstacles: obstacles.collect(),
        hosts_considered: 1,
        ..common(tables, vm, Some(host), &told.unknown, told.counterfactual.as_ref())
    }
}

/// A placed VM's host beside the best other one. The VM must not be in the tables.
pub(super) fn comparison(tables: &mut Tables, vm: &Vm, placed: &VmEntry) -> ComparisonView {
    let how = tables.how();
    let Tables { problem, scratch, .. } = tables;
    let (own, other) = compare(problem, scratch, vm, &how, placed.host);
    let ahead = other.map(|other| ScoreParts::from(&difference(own.breakdown, other.breakdown)));
    ComparisonView {
        strategy: Word(how.strategy),
        host: scored(tables, own),
        runner_up: other.map(|other| scored(tables, other)),
        ahead,
        decision_id: placed.decided.to_string(),
        committed: Quantities::full(&placed.committed, tables.dimensions()),
    }
}

fn common(
    tables: &Tables,
    vm: &Vm,
    host: Option<HostIx>,
    unknown: &[Unknown],
    found: Option<&Counterfactual>,
) -> ExplanationView {
    ExplanationView {
        vm_id: vm.key.id.clone(),
        tenant: vm.key.tenant.clone(),
        host_id: host.map(|host| name_of(tables, host)),
        fits: false,
        obstacles: Vec::new(),
        hosts_considered: 0,
        hosts_that_fit: None,
        reasons: Vec::new(),
        unknown: unknown.iter().map(unknown_name).collect(),
        counterfactual: found.map(|found| counterfactual(tables, vm, found)),
        placed: None,
        revision: tables.rows().revision.0,
        policy_revision: tables.rows().policy_revision,
    }
}

fn obstacle(tables: &Tables, vm: &Vm, host: HostIx, obstacle: &Obstacle) -> ObstacleView {
    let dimensions = tables.dimensions();
    let mut view = ObstacleView {
        reason: reason_word(obstacle.reason(), dimensions),
        text: text::obstacle(obstacle, dimensions),
        ..ObstacleView::default()
    };
    match obstacle {
        Obstacle::Capacity { need, free, .. } => {
            view.need = Some(*need);
            view.free = Some(*free);
            view.short_by = Some(need.saturating_sub(*free));
        }
        Obstacle::Parts { missing, .. } => {
            view.need = Some(missing.asked);
            view.free = Some(missing.most);
            view.short_by = Some(missing.deficit());
        }
        Obstacle::Spread { rule, domain, members, skew, .. } => {
            view.level = Some(rule.level.name());
            view.domain = domain.clone();
            view.max_skew = Some(rule.max_skew);
            view.members = Some(*members);
            view.skew = domain.is_some().then_some(*skew);
        }
        Obstacle::HostAffinity { rule, domain } | Obstacle::Affinity { rule, domain } => {
            view.level = Some(rule.level.name());
            view.domain = domain.clone();
        }
        Obstacle::AntiAffinity { rule, domain, members } => {
            view.level = Some(rule.level.name());
            view.domain = Some(domain.clone());
            view.members = Some(*members);
            let near = |other: &Vm| belongs(other, &rule.subject);
            view.vms = named(tables, vm, host, &rule.level, near);
        }
        Obstacle::Repelled { subject, level, domain, by } => {
            view.level = Some(level.name());
            view.domain = Some(domain.clone());
            view.members = Some(*by);
            view.vms = named(tables, vm, host, level, |other| repels(other, subject, level));
        }
        _ => {}
    }
    view
}

/// The first VMs of the tenant, in the host's domain at a level, that are meant.
fn named(
    tables: &Tables,
    vm: &Vm,
    host: HostIx,
    level: &Level,
    is_meant: impl Fn(&Vm) -> bool,
) -> Vec<Name> {
    let domain_of = |host| tables.host(host).and_then(|entry| entry.host.domain(level));
    let Some(here) = domain_of(host) else { return Vec::new() };
    let others = tables.vms().filter(|other| {
        let VmKey { tenant, id } = &other.vm.key;
        *tenant == vm.key.tenant && *id != vm.key.id && is_meant(&other.vm)
    });
    let near = others.filter(|other| domain_of(other.host) == Some(here));
    near.take(MOST_NAMED).map(|other| other.vm.key.id.clone()).collect()
}

fn belongs(vm: &Vm, subject: &Subject) -> bool {
    match subject {
        Subject::Vm(id) => vm.key.id == *id,
        Subject::Group(group) => {
            vm.groups.contains(group) || vm.spreads.iter().any(|spread| spread.group == *group)
        }
        Subject::Hosts(_) => false,
    }
}

fn repels(vm: &Vm, subject: &Subject, level: &Level) -> bool {
    vm.affinities.iter().any(|rule| {
        rule.kind == AffinityKind::Apart
            && rule.strength == Strength::Required
            && (&rule.subject, &rule.level) == (subject, level)
    })
}

fn counterfactual(tables: &Tables, vm: &Vm, found: &Counterfactual) -> CounterfactualView {
    let dimensions = tables.dimensions();
    CounterfactualView {
        host_id: name_of(tables, found.host),
        changes: found.changes.iter().map(|it| change(it, dimensions)).collect(),
        cost_thousandths: thousandths(found.cost),
        minimal: found.proved,
        vm: VmSpec::new(&changed(vm, &found.changes), dimensions),
    }
}

fn change(change: &Change, dimensions: &Dimensions) -> ChangeView {
    let (dimension, from, to) = match change {
        Change::Demand { dim, from, to } => {
            (Some(dimensions.name(*dim).to_owned()), Some(*from), Some(*to))
        }
        Change::RaiseSkew { rule, to } => {
            (None, Some(u64::from(rule.max_skew)), Some(u64::from(*to)))
        }
        _ => (None, None, None),
    };
    ChangeView {
        kind: text::kind(change).into(),
        text: text::change(change, dimensions),
        dimension,
        from,
        to,
        cost_thousandths: thousandths(change.cost()),
    }
}

/// Rounded up: nothing is free.
fn thousandths(cost: u128) -> u64 {
    u64::try_from(cost.saturating_mul(1000).div_ceil(WHOLE)).unwrap_or(u64::MAX)
}

fn unknown_name(unknown: &Unknown) -> UnknownView {
    let (what, label) = match &unknown.what {
        UnknownKind::Pool => ("pool", None),
        UnknownKind::LabelKey => ("label", None),
        UnknownKind::LabelValue { key } => ("label_value", Some(key.clone())),
        UnknownKind::Datastore => ("datastore", None),
        UnknownKind::Host => ("host", None),
    };
    UnknownView {
        what: what.into(),
        name: unknown.name.clone(),
        label,
        did_you_mean: unknown.nearest.clone(),
    }
}

fn scored(tables: &Tables, scored: Scored) -> ScoredView {
    ScoredView {
        host_id: name_of(tables, scored.host),
        score: scored.breakdown.total(),
        breakdown: ScoreParts::from(&scored.breakdown),
    }
}

fn difference(one: Breakdown, other: Breakdown) -> Breakdown {
    let mut terms = one.terms;
    for (term, less) in terms.iter_mut().zip(other.terms) {
        *term = term.saturating_sub(less);
    }
    Breakdown { terms, policy: one.policy.saturating_sub(other.policy) }
}

fn name_of(tables: &Tables, host: HostIx) -> Name {
    let entry = tables.host(host).expect("the solver names only hosts that are in the tables");
    entry.host.id.clone()
}
