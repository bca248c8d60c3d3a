//! What the policies in force say about each host for the VM at hand.
//!
//! Keeps the attributes that they read in columns: those of the host itself are written when the
//! host comes or changes, those that follow its load are brought up to date before the next
//! evaluation. What a policy means is the policy crate's business.

use crate::bits::{Bits, LANES, Mask, ones};
use crate::hosts::Hosts;
use crate::room::Room;
use cluster::{Dim, Dimensions, Host, HostIx, Index, Vm};
use policy::vocabulary::{HostField, HostView, VmField};
use policy::{ActiveSet, PolicyType, RuleIx, Table, Value, Verdicts};
use smallvec::SmallVec;
use std::sync::Arc;

/// Points count as much as scores can carry: beyond this, more of them changes nothing.
const MOST_POINTS: i64 = 1 << 28;

/// Rules that are named in an answer; those that remove the most hosts come first.
const NAMED_RULES: usize = 8;

/// How many hosts each rule removed, most first.
pub type RulesThatRemoved = SmallVec<[(RuleIx, u32); 2]>;

#[derive(Debug, Default)]
pub(crate) struct Policies {
    set: Arc<ActiveSet>,
    /// The columns of the table.
    fields: Vec<HostField>,
    /// The columns that change when a VM comes to a host or leaves it.
    of_load: Vec<usize>,
    table: Table,
    /// Hosts whose load changed since it was written to the table.
    stale: Bits,
    vm_fields: Vec<VmField>,
    vm_values: Vec<Value>,
    scratch: policy::Scratch,
    verdicts: Verdicts,
    /// Whether the verdicts are about the VM at hand.
    judged: bool,
    /// How often a rule had no value on a host.
    errors: u64,
}

impl Policies {
    /// Starts again with another set of policies; every host has to be written again.
    pub(crate) fn install(&mut self, set: Arc<ActiveSet>, dimensions: &Dimensions) {
        let paths = set.paths();
        self.fields = paths.host.iter().map(|path| HostField::resolve(path, dimensions)).collect();
        self.vm_fields = paths.vm.iter().map(|path| VmField::resolve(path, dimensions)).collect();
        let of_load = self.fields.iter().enumerate().filter(|(_, field)| field.follows_load());
        self.of_load = of_load.map(|(column, _)| column).collect();
        self.table = Table::new(0, self.fields.len());
        self.stale.clear();
        self.set = set;
        self.judged = false;
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    pub(crate) fn put_host(&mut self, ix: HostIx, host: &Host) {
        if self.fields.is_empty() {
            return;
        }
        if self.table.rows() <= ix.row() {
            self.table.resize(ix.row() + 1);
        }
        // What follows the load is left to the next evaluation.
        let view = HostView { host, used: &|_| 0, vm_count: 0 };
        for (column, field) in self.fields.iter().enumerate() {
            self.table.set(ix.row(), column, field.value(&view));
        }
        self.stale.insert(ix);
    }

    /// What runs on a host changed.
    pub(crate) fn note(&mut self, ix: HostIx) {
        if !self.of_load.is_empty() {
            self.stale.insert(ix);
        }
    }

    /// A request begins: whatever was judged before is about another VM.
    pub(crate) fn ask(&mut self, vm: &Vm) {
        self.judged = false;
        self.vm_values.clear();
        self.vm_values.extend(self.vm_fields.iter().map(|field| field.value(vm)));
    }

    /// Keeps only hosts that no policy removes for the VM at hand; says how many were removed,
    /// and by which rules.
    pub(crate) fn narrow(
        &mut self,
        left: &mut Mask,
        hosts: &Hosts,
        room: &Room,
    ) -> (u32, RulesThatRemoved) {
        if self.set.is_empty() {
            return (0, RulesThatRemoved::new());
        }
        self.table.resize(hosts.rows());
        self.follow_load(hosts, room);
        let fuel = policy::MAX_SET_STEPS_PER_HOST * (hosts.rows() as u64 + 1);
        let request = policy::Request {
            candidates: Some(left.words()),
            fuel,
            ..policy::Request::new(PolicyType::Placement, &self.vm_values)
        };
        let (scratch, verdicts) = (&mut self.scratch, &mut self.verdicts);
        if self.set.evaluate(&request, &self.table, scratch, verdicts).is_err() {
            // Cannot happen with this table and this much fuel; a host that was not judged is
            // not given to anybody.
            return (left.subtract_all(), RulesThatRemoved::new());
        }
        self.judged = true;
        self.errors = self.errors.saturating_add(self.verdicts.total_errors());
        let mut by_rule = RulesThatRemoved::new();
        let mut removed = 0;
        for word in left.scope() {
            let gone = left.word(word) & !self.verdicts.feasible().get(word).copied().unwrap_or(0);
            for host in ones(word, gone) {
                removed += left.remove(host);
                let Some(rule) = self.verdicts.filtered_by(host.row()) else { continue };
                match by_rule.iter_mut().find(|(known, _)| *known == rule) {
                    Some((_, count)) => *count += 1,
                    None => by_rule.push((rule, 1)),
                }
            }
        }
        by_rule.sort_by_key(|&(rule, count)| (std::cmp::Reverse(count), rule));
        by_rule.truncate(NAMED_RULES);
        (removed, by_rule)
    }

    /// What the policies give a host that is left, in units of the score.
    pub(crate) fn points(&self, host: HostIx) -> i32 {
        if !self.judged {
            return 0;
        }
        let points = self.verdicts.scores().get(host.row()).copied().unwrap_or(0);
        points.clamp(-MOST_POINTS, MOST_POINTS) as i32
    }

    /// The most that any of these hosts of a block gets.
    pub(crate) fn most(&self, block: usize, lanes: u64) -> i32 {
        if !self.judged {
            return 0;
        }
        ones(block, lanes).map(|host| self.points(host)).max().unwrap_or(0)
    }

    fn follow_load(&mut self, hosts: &Hosts, room: &Room) {
        for (word, &bits) in self.stale.words().iter().enumerate() {
            for ix in ones(word, bits) {
                let Some(host) = hosts.get(ix) else { continue };
                let used = |dim: Dim| room.used(ix, dim);
                let view = HostView { host, used: &used, vm_count: u64::from(room.host(ix).vms) };
                for &column in &self.of_load {
                    if let Some(field) = self.fields.get(column) {
                        self.table.set(ix.row(), column, field.value(&view));
                    }
                }
            }
        }
        self.stale.clear();
    }
}

const _: () = assert!(LANES == 64, "masks and verdicts share their words");
