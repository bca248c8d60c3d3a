//! What can be wrong, with the facts that show it, and the report that collects it.

use crate::bindings::BindingViolationKind;
use crate::text::{
    self, dimension_text, place, reason_text, selector_text, state_text, subject_text, taint_text,
};
use cluster::{
    AffinityKind, Dim, HostIx, HostState, Level, Name, Reason, Revision, Selector, Subject, Taint,
    VmKey,
};
use serde::Serialize;
use std::fmt;

/// What a check found; empty means accepted. Sorted by the order in which reasons are tried.
pub type Violations = Vec<Violation>;

/// One broken rule or one false statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `None` where a host is wrong whatever runs on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm: Option<VmKey>,
    /// `None` where the statement is about no single host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Name>,
    #[serde(flatten)]
    pub kind: ViolationKind,
}

/// What is broken. The first block are the rules, in the order of `Reason`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ViolationKind {
    HostState {
        #[serde(serialize_with = "text::host_state")]
        state: HostState,
    },
    Pool {
        wanted: Name,
        found: Option<Name>,
    },
    Selector {
        #[serde(serialize_with = "text::selector")]
        wanted: Selector,
        found: Option<Name>,
    },
    Taint {
        #[serde(serialize_with = "text::taint")]
        taint: Taint,
    },
    Datastore {
        datastore: Name,
    },
    ExcludedHost,
    HostAffinity {
        #[serde(serialize_with = "text::affinity_kind")]
        rule: AffinityKind,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Option<Name>,
    },
    /// The VM is fenced in and the host is outside, or the host is `reserved` for others.
    Fence {
        constraint: Name,
        reserved: bool,
    },
    /// The domain holds no member of the subject that the VM must be together with.
    Affinity {
        #[serde(serialize_with = "text::subject")]
        subject: Subject,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Option<Name>,
    },
    /// The domain holds members of the subject that the VM must be apart from.
    AntiAffinity {
        #[serde(serialize_with = "text::subject")]
        subject: Subject,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Name,
        members: u32,
    },
    /// The domain holds VMs that must be apart from a subject which the VM belongs to.
    Repelled {
        #[serde(serialize_with = "text::subject")]
        subject: Subject,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Name,
        by: u32,
    },
    /// `members` are those in the domain now, `fewest` those in the emptiest eligible domain.
    Spread {
        group: Name,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Option<Name>,
        members: u32,
        fewest: u32,
        max_skew: u32,
    },
    /// Too few domains have members, and this one would be no more.
    MinDomains {
        constraint: Name,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Option<Name>,
        covered: u32,
        min: u32,
    },
    /// The domain has as many as it may have.
    Limit {
        constraint: Name,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Name,
        members: u32,
        max: u32,
    },
    /// Members of the constraint would share the host; `is_member` says whether the VM is one.
    Exclusive {
        constraint: Name,
        is_member: bool,
        members: u32,
        others: u32,
    },
    /// The domain holds none of those that the VM depends on.
    Dependency {
        constraint: Name,
        #[serde(serialize_with = "text::level")]
        level: Level,
        domain: Option<Name>,
    },
    /// A partner is too far away; without a latency there is no way to it.
    Latency {
        constraint: Name,
        from: Option<Name>,
        to: Option<Name>,
        latency_us: Option<u64>,
        max_us: Option<u64>,
    },
    /// A link on the way to partners has too little left.
    Bandwidth {
        constraint: Name,
        over: Name,
        a: Name,
        b: Name,
        asked: u64,
        free: u64,
        capacity: u64,
    },
    /// Less would stay free than has to be kept.
    Spare {
        constraint: Name,
        domain: Option<Name>,
        #[serde(serialize_with = "text::dimension")]
        dimension: Dim,
        asked: u64,
        free: u64,
        kept: u64,
    },
    /// A filter of an active policy fires on this host.
    Policy {
        policy: String,
        rule: String,
        reason: String,
    },
    Capacity {
        #[serde(serialize_with = "text::dimension")]
        dimension: Dim,
        asked: u64,
        free: u64,
        allocatable: u64,
    },
    /// The host cannot give the VM the parts that it asks for.
    Inside {
        #[serde(serialize_with = "text::reason")]
        reason: Reason,
    },

    /// Something is wrong with the parts that the VM has, or is to have.
    Bindings {
        found: BindingViolationKind,
    },
    /// The VM asks for parts of its host, and none are recorded.
    NoBindings,
    /// Parts are recorded for a VM that asks for none.
    UnaskedBindings,

    UnknownHost,
    /// The index belongs to another host than the one that was named.
    WrongHost {
        index: HostIx,
        found: Name,
    },
    WrongIncarnation {
        decided: u64,
        found: u64,
    },
    /// What is recorded as taken is not the VM's demand on this host.
    WrongCommitted {
        #[serde(serialize_with = "text::dimension")]
        dimension: Dim,
        stated: u64,
        derived: u64,
    },
    /// The VM that was to be placed is on this host already.
    AlreadyPlaced {
        on: Name,
    },
    /// The VM that a step is to move or release is on no host.
    NotPlaced,
    /// The VM is on another host than the step says.
    WrongSource {
        stated: Name,
        found: Name,
    },
    /// A step is to move a VM that must stay where it is.
    Pinned,
    /// Two steps of one wave are about the VM, and nobody can tell which comes first.
    TwiceInWave,

    /// Two hosts of a snapshot have one id.
    DuplicateHost,
    /// A VM of a snapshot is placed twice; the other time on `other`.
    DuplicateVm {
        other: Name,
    },
    /// More is committed than the host has, beyond what adopted VMs explain.
    Overcommitted {
        #[serde(serialize_with = "text::dimension")]
        dimension: Dim,
        committed: u64,
        flagged: u64,
        allocatable: u64,
    },

    /// More is guaranteed than the host physically has, beyond what adopted VMs explain.
    Overguaranteed {
        #[serde(serialize_with = "text::dimension")]
        dimension: Dim,
        guaranteed: u64,
        flagged: u64,
        physical: u64,
    },

    /// The decision is about another VM.
    WrongVm {
        decided: VmKey,
    },
    WrongRevision {
        decided: Revision,
        expected: Revision,
    },
    /// The parts add up to `sum`, as far as it can be written.
    ScoreSum {
        score: i64,
        sum: i64,
    },
    HostsConsidered {
        stated: u32,
        hosts: usize,
    },
    RejectionCount {
        #[serde(serialize_with = "text::reason")]
        reason: Reason,
        stated: u64,
        counted: u64,
    },
    /// The VM was rejected although this host can take it.
    HostFits,
    AlternativeUnknown,
    AlternativeUnfit {
        #[serde(serialize_with = "text::reason")]
        reason: Reason,
    },
    /// The alternative is the chosen host or was listed before.
    AlternativeRepeated,
    /// The alternative scores higher than what was ranked before it.
    AlternativeOutranks {
        score: i64,
        before: i64,
    },
    /// The batch has no decision for the VM.
    Undecided,
    /// The batch has a decision that nobody asked for, or the same one twice.
    Unasked,
}

impl ViolationKind {
    /// The rule that is broken; `None` for false statements, which no host could repair.
    pub fn reason(&self) -> Option<Reason> {
        Some(match self {
            ViolationKind::HostState { .. } => Reason::HostState,
            ViolationKind::Pool { .. } => Reason::Pool,
            ViolationKind::Selector { .. } => Reason::Selector,
            ViolationKind::Taint { .. } => Reason::Taint,
            ViolationKind::Datastore { .. } => Reason::Datastore,
            ViolationKind::ExcludedHost => Reason::ExcludedHost,
            ViolationKind::HostAffinity { .. } => Reason::HostAffinity,
            ViolationKind::Fence { .. } => Reason::Fence,
            ViolationKind::Affinity { .. } => Reason::Affinity,
            ViolationKind::AntiAffinity { .. } | ViolationKind::Repelled { .. } => {
                Reason::AntiAffinity
            }
            ViolationKind::Spread { .. } => Reason::Spread,
            ViolationKind::MinDomains { .. } => Reason::MinDomains,
            ViolationKind::Limit { .. } => Reason::Limit,
            ViolationKind::Exclusive { .. } => Reason::Exclusive,
            ViolationKind::Dependency { .. } => Reason::Dependency,
            ViolationKind::Latency { .. } | ViolationKind::Bandwidth { .. } => Reason::Network,
            ViolationKind::Spare { .. } => Reason::Spare,
            ViolationKind::Policy { .. } => Reason::Policy,
            ViolationKind::Capacity { dimension, .. } => Reason::Capacity(*dimension),
            ViolationKind::Inside { reason } => *reason,
            _ => return None,
        })
    }
}

/// What was found, and how much was looked at to find it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub violations: Vec<Violation>,
    /// Rules that bind at placement only and no longer hold for a VM where it is.
    pub drift: Vec<Violation>,
    pub checked: Checked,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub hosts: usize,
    pub vms: usize,
    pub decisions: usize,
    /// Steps of a plan.
    pub steps: usize,
}

impl Report {
    /// Whether nothing is violated. Drift is information, not refusal.
    pub fn accepted(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checked { hosts, vms, decisions, .. } = self.checked;
        write!(
            f,
            "{} violations and {} drifted rules in {hosts} hosts, {vms} VMs, {decisions} decisions",
            self.violations.len(),
            self.drift.len(),
        )?;
        for violation in &self.violations {
            write!(f, "\n{violation}")?;
        }
        for violation in &self.drift {
            write!(f, "\ndrift: {violation}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.vm, &self.host) {
            (Some(vm), Some(host)) => write!(f, "vm {vm} on host {host}: ")?,
            (Some(vm), None) => write!(f, "vm {vm}: ")?,
            (None, Some(host)) => write!(f, "host {host}: ")?,
            (None, None) => {}
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ViolationKind as K;
        match self {
            K::HostState { state } => {
                write!(f, "the host is {} and takes no new VMs", state_text(*state))
            }
            K::Pool { wanted, found: Some(found) } => {
                write!(f, "the host is in pool {found}, the VM asks for {wanted}")
            }
            K::Pool { wanted, found: None } => {
                write!(f, "the host is in no pool, the VM asks for {wanted}")
            }
            K::Selector { wanted, found } => {
                write!(f, "the VM asks for {}, the host has ", selector_text(wanted))?;
                match found {
                    Some(found) => write!(f, "{}={found}", wanted.key),
                    None => write!(f, "no label {}", wanted.key),
                }
            }
            K::Taint { taint } => write!(f, "taint {} is not tolerated", taint_text(taint)),
            K::Datastore { datastore } => write!(f, "the host does not reach {datastore}"),
            K::ExcludedHost => write!(f, "the VM excludes this host"),
            K::HostAffinity { rule: AffinityKind::Together, level, domain } => write!(
                f,
                "{} is that of none of the hosts the VM must be together with",
                place(level, domain.as_ref())
            ),
            K::HostAffinity { rule: AffinityKind::Apart, level, domain } => write!(
                f,
                "{} is that of a host the VM must be apart from",
                place(level, domain.as_ref())
            ),
            K::Affinity { subject, level, domain } => write!(
                f,
                "{} holds no member of {}, with which the VM must be together",
                place(level, domain.as_ref()),
                subject_text(subject)
            ),
            K::AntiAffinity { subject, level, domain, members } => write!(
                f,
                "{} holds {members} of {}, from which the VM must be apart",
                place(level, Some(domain)),
                subject_text(subject)
            ),
            K::Repelled { subject, level, domain, by } => write!(
                f,
                "{} holds {by} VMs that must be apart from {}, to which the VM belongs",
                place(level, Some(domain)),
                subject_text(subject)
            ),
            K::Spread { group, level, domain: None, .. } => {
                write!(
                    f,
                    "group {group} is spread by {}, where the host has no value",
                    level.name()
                )
            }
            K::Spread { group, level, domain, members, fewest, max_skew } => write!(
                f,
                "{} holds {members} of group {group}, the emptiest eligible one {fewest}; \
                 one more exceeds the skew of {max_skew}",
                place(level, domain.as_ref())
            ),
            K::Fence { constraint, reserved: false } => {
                write!(f, "constraint {constraint} keeps the VM on other hosts")
            }
            K::Fence { constraint, reserved: true } => {
                write!(f, "constraint {constraint} reserves the host for other VMs")
            }
            K::MinDomains { constraint, level, domain: None, covered, min } => write!(
                f,
                "constraint {constraint} asks for {min} domains by {}, {covered} are covered, \
                 and the host is in none",
                level.name()
            ),
            K::MinDomains { constraint, level, domain, covered, min } => write!(
                f,
                "{} has a member already, and {covered} of the {min} domains that constraint \
                 {constraint} asks for are covered",
                place(level, domain.as_ref())
            ),
            K::Limit { constraint, level, domain, members, max } => write!(
                f,
                "constraint {constraint} allows {max} in {}, would be {}",
                place(level, Some(domain)),
                members.saturating_add(1)
            ),
            K::Exclusive { constraint, is_member: false, members, .. } => {
                write!(f, "the host belongs to {members} VMs of constraint {constraint} alone")
            }
            K::Exclusive { constraint, members, others, .. } => write!(
                f,
                "constraint {constraint} gives the VM a host for itself, this one has {others} \
                 other VMs and {members} of its kind"
            ),
            K::Dependency { constraint, level, domain } => write!(
                f,
                "{} holds none of those that the VM depends on by constraint {constraint}",
                place(level, domain.as_ref())
            ),
            K::Latency { constraint, from, to, latency_us, max_us } => {
                let name = |end: &Option<Name>| match end {
                    Some(name) => name.to_string(),
                    None => "a host in no domain".into(),
                };
                write!(f, "from {} to {} ", name(from), name(to))?;
                match (latency_us, max_us) {
                    (Some(latency), Some(max)) => {
                        write!(f, "it is {latency} us, constraint {constraint} allows {max}")
                    }
                    _ => write!(f, "no link leads, and constraint {constraint} asks for a way"),
                }
            }
            K::Bandwidth { constraint, over, a, b, asked, free, capacity } => write!(
                f,
                "constraint {constraint} would set {asked} Mbit/s aside between {a} and {b} of \
                 {over}, {free} of {capacity} are free"
            ),
            K::Spare { constraint, domain, dimension, asked, free, kept } => {
                let dimension = dimension_text(*dimension);
                write!(f, "the VM asks for {asked} {dimension}, {free} are free")?;
                if let Some(domain) = domain {
                    write!(f, " in {domain}")?;
                }
                write!(f, ", of which constraint {constraint} keeps {kept}")
            }
            K::Policy { policy, rule, reason } => {
                write!(f, "rule {rule} of policy {policy} removes the host: {reason}")
            }
            K::Capacity { dimension, asked, free, allocatable } => write!(
                f,
                "the VM asks for {asked} {}, {free} of {allocatable} are free",
                dimension_text(*dimension)
            ),
            K::UnknownHost => write!(f, "there is no such host"),
            K::WrongHost { index, found } => {
                write!(f, "index {} belongs to host {found}", index.0)
            }
            K::WrongIncarnation { decided, found } => {
                write!(f, "incarnation {decided} was decided on, the host is incarnation {found}")
            }
            K::WrongCommitted { dimension, stated, derived } => write!(
                f,
                "{stated} {} are recorded as taken, the demand on this host is {derived}",
                dimension_text(*dimension)
            ),
            K::AlreadyPlaced { on } => write!(f, "the VM is placed on host {on} already"),
            K::NotPlaced => write!(f, "the VM is on no host"),
            K::WrongSource { stated, found } => {
                write!(f, "the VM is said to be on host {stated} and is on {found}")
            }
            K::Pinned => write!(f, "the VM is pinned to its host"),
            K::TwiceInWave => write!(f, "another step of the wave is about this VM"),
            K::DuplicateHost => write!(f, "the id is used by two hosts"),
            K::DuplicateVm { other } => write!(f, "the VM is also on host {other}"),
            K::Overcommitted { dimension, committed, flagged, allocatable } => write!(
                f,
                "{committed} {} are committed, {flagged} of them by adoption beyond capacity; \
                 {allocatable} are allocatable",
                dimension_text(*dimension)
            ),
            K::Overguaranteed { dimension, guaranteed, flagged, physical } => write!(
                f,
                "{guaranteed} {} are guaranteed, {flagged} of them by adoption beyond capacity; \
                 {physical} are there",
                dimension_text(*dimension)
            ),
            K::WrongVm { decided } => write!(f, "the decision is about vm {decided}"),
            K::WrongRevision { decided, expected } => {
                write!(f, "decided on revision {decided}, the snapshot is at {expected}")
            }
            K::ScoreSum { score, sum } => {
                write!(f, "the score is {score}, its parts add up to {sum}")
            }
            K::HostsConsidered { stated, hosts } => {
                write!(f, "{stated} hosts are said to be considered, there are {hosts}")
            }
            K::RejectionCount { reason, stated, counted } => write!(
                f,
                "{stated} hosts are said to be rejected for {}, {counted} are",
                reason_text(*reason)
            ),
            K::Inside { reason } => {
                write!(f, "the host cannot give the VM its parts: {}", reason_text(*reason))
            }
            K::Bindings { found } => found.fmt(f),
            K::NoBindings => write!(f, "the VM asks for parts of its host and has none"),
            K::UnaskedBindings => write!(f, "the VM has parts of its host and asks for none"),
            K::HostFits => write!(f, "the VM was rejected although this host can take it"),
            K::AlternativeUnknown => write!(f, "the alternative does not exist"),
            K::AlternativeUnfit { reason } => {
                write!(f, "the alternative cannot take the VM for {}", reason_text(*reason))
            }
            K::AlternativeRepeated => write!(f, "the alternative is listed before or chosen"),
            K::AlternativeOutranks { score, before } => {
                write!(f, "the alternative scores {score}, ranked after one with {before}")
            }
            K::Undecided => write!(f, "the batch has no decision for the VM"),
            K::Unasked => write!(f, "the batch has a decision that was not asked for"),
        }
    }
}
