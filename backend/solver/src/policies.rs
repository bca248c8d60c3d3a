//! What the policies in force say about each host for the VM at hand.
//!
//! Keeps the attributes that they read in columns: those of the host itself are written when the
//! host comes or changes, those that follow its load are brought up to date when they are next
//! read. What a policy means is the policy crate's business.

mod columns;
mod judged;
mod removers;

pub(crate) use removers::removers;

pub use columns::PolicyColumns;

use crate::bits::{Bits, Mask, ones};
use crate::cache::{Cache, Slot};
use crate::changes::Changes;
use crate::hosts::Hosts;
use crate::room::Room;
use cluster::{Dim, Dimensions, Host, HostIx, Index, Vm};
use judged::Judged;
use policy::vocabulary::{HostView, VmField};
use policy::{PolicyType, RuleIx, Setting, Value, Verdicts};
use smallvec::SmallVec;

/// Judgements kept, one for each way in which VMs differ to the policies. Each takes about four
/// bytes a host.
const LIMIT: usize = 64;

/// Rules that are named in an answer; those that remove the most hosts come first.
const NAMED_RULES: usize = 8;

/// How many hosts each rule removed, most first.
pub type RulesThatRemoved = SmallVec<[(RuleIx, u32); 2]>;

#[derive(Debug)]
pub(crate) struct Policies {
    columns: PolicyColumns,
    /// Hosts whose load changed since it was written to the columns.
    stale: Bits,
    vm_fields: Vec<VmField>,
    vm_values: Vec<Value>,
    judgements: Cache<Vec<Setting>, Judged>,
    changes: Changes,
    /// What is said about the VM at hand; `None` until it is known, or when nothing is in force.
    at_hand: Option<Slot>,
    scratch: policy::Scratch,
    verdicts: Verdicts,
    /// Hosts to judge again, one bit for each.
    asked: Vec<u64>,
    /// How often a rule had no value on a host.
    errors: u64,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            columns: PolicyColumns::default(),
            stale: Bits::default(),
            vm_fields: Vec::new(),
            vm_values: Vec::new(),
            judgements: Cache::new(LIMIT),
            changes: Changes::default(),
            at_hand: None,
            scratch: policy::Scratch::default(),
            verdicts: Verdicts::default(),
            asked: Vec::new(),
            errors: 0,
        }
    }
}

impl Policies {
    /// Starts again with other policies. Hosts that the columns do not have, or not as they are,
    /// have to be put again.
    pub(crate) fn install(&mut self, columns: PolicyColumns, dimensions: &Dimensions) {
        let paths = columns.set().paths().vm.iter();
        *self = Self {
            vm_fields: paths.map(|path| VmField::resolve(path, dimensions)).collect(),
            columns,
            errors: self.errors,
            ..Self::default()
        };
    }

    /// The policies in force.
    pub(crate) fn set(&self) -> &policy::ActiveSet {
        self.columns.set()
    }

    /// How often a rule had no value on a host, since the beginning.
    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    pub(crate) fn put_host(&mut self, ix: HostIx, host: &Host) {
        if self.columns.set().is_empty() {
            return;
        }
        // What follows the load is left to the next reading.
        self.columns.put(ix, &HostView { host, used: &|_| 0, vm_count: 0 });
        self.stale.insert(ix);
        self.changes.note(ix);
    }

    /// What runs on a host changed.
    pub(crate) fn note(&mut self, ix: HostIx) {
        if self.columns.follow_load() {
            self.stale.insert(ix);
            self.changes.note(ix);
        }
    }

    /// A request begins: whatever is at hand is about another VM.
    pub(crate) fn ask(&mut self, vm: &Vm) {
        self.at_hand = None;
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
        if self.columns.set().is_empty() {
            return (0, RulesThatRemoved::new());
        }
        self.follow_load(hosts, room);
        let Some(slot) = self.judge(hosts.rows()) else {
            // Cannot happen with a table and fuel of our own making; all the same, a host that
            // was not judged is given to nobody.
            return (left.subtract_all(), RulesThatRemoved::new());
        };
        self.at_hand = Some(slot);
        let mut by_rule = self.judgements.get(slot).narrow(left);
        let removed = by_rule.iter().map(|(_, hosts)| hosts).sum();
        by_rule.sort_by_key(|&(rule, hosts)| (std::cmp::Reverse(hosts), rule));
        by_rule.truncate(NAMED_RULES);
        (removed, by_rule.into())
    }

    /// What the policies give a host that is left, in units of the score.
    pub(crate) fn points(&self, host: HostIx) -> i32 {
        self.at_hand.map_or(0, |slot| self.judgements.get(slot).points(host))
    }

    /// At least the most that any host of a block gets.
    pub(crate) fn most(&self, block: usize) -> i32 {
        self.at_hand.map_or(0, |slot| self.judgements.get(slot).most(block))
    }

    /// Brings the judgement about VMs like the one at hand up to date.
    fn judge(&mut self, rows: usize) -> Option<Slot> {
        self.columns.resize(rows);
        self.judgements.tick();
        let key: Vec<Setting> = self.vm_values.iter().map(Setting::from).collect();
        let slot = self.judgements.slot(key.as_slice(), Judged::default);
        let judged = self.judgements.get_mut(slot);
        self.asked.clear();
        self.asked.resize(rows.div_ceil(u64::BITS as usize), 0);
        let known = judged.rows() > 0;
        match self.changes.since(judged.followed).filter(|_| known) {
            Some(changed) => {
                judged.resize(rows);
                for host in changed {
                    let word = self.asked.get_mut(host.row() / 64);
                    word.into_iter().for_each(|word| *word |= 1 << (host.row() % 64));
                }
            }
            None => {
                judged.start_over(rows);
                self.asked.fill(u64::MAX);
            }
        }
        if self.asked.iter().any(|word| *word != 0) {
            let request = policy::Request {
                candidates: Some(&self.asked),
                fuel: policy::MAX_SET_STEPS_PER_HOST * (rows as u64 + 1),
                ..policy::Request::new(PolicyType::Placement, &self.vm_values)
            };
            let (scratch, verdicts) = (&mut self.scratch, &mut self.verdicts);
            let (set, table) = (self.columns.set(), self.columns.table());
            if set.evaluate(&request, table, scratch, verdicts).is_err() {
                judged.start_over(0);
                return None;
            }
            judged.take(&self.asked, &self.verdicts);
            self.errors = self.errors.saturating_add(self.verdicts.total_errors());
        }
        judged.followed = self.changes.count();
        Some(slot)
    }

    fn follow_load(&mut self, hosts: &Hosts, room: &Room) {
        for (word, &bits) in self.stale.words().iter().enumerate() {
            for ix in ones(word, bits) {
                let Some(host) = hosts.get(ix) else { continue };
                let used = |dim: Dim| room.used(ix, dim);
                let vm_count = u64::from(room.host(ix).vms);
                self.columns.put_load(ix, &HostView { host, used: &used, vm_count });
            }
        }
        self.stale.clear();
    }
}
