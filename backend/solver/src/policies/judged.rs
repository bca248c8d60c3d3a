//! What the policies in force say of every host for VMs that look alike to them.
//!
//! Policies read few attributes of a VM, so that many VMs share one judgement. It is kept and
//! patched: only hosts that changed since it was last used are judged again.

use crate::bits::{Bits, LANES, Mask, ones};
use cluster::{HostIx, Index};
use policy::{RuleIx, Verdicts};

/// Points count as much as scores can carry: beyond this, more of them changes nothing.
const MOST_POINTS: i64 = 1 << 28;

#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The hosts that each rule removes. A host is in one of these sets at most.
    removed: Vec<(RuleIx, Bits)>,
    points: Vec<i32>,
    /// At least the most points in each block.
    highest: Vec<i32>,
    /// How many changes of hosts are in it.
    pub(super) followed: u64,
}

impl Judged {
    /// Forgets everything; no host is removed, none has points.
    pub(super) fn start_over(&mut self, rows: usize) {
        self.removed.clear();
        self.points.clear();
        self.highest.clear();
        self.resize(rows);
    }

    pub(super) fn resize(&mut self, rows: usize) {
        self.points.resize(rows, 0);
        self.highest.resize(rows.div_ceil(LANES), 0);
    }

    pub(super) fn rows(&self) -> usize {
        self.points.len()
    }

    /// Takes over what was found out about these hosts.
    pub(super) fn take(&mut self, hosts: &[u64], verdicts: &Verdicts) {
        for (word, &bits) in hosts.iter().enumerate() {
            self.removed.iter_mut().for_each(|(_, hosts)| hosts.clear_in(word, bits));
            for host in ones(word, bits) {
                let points = verdicts.score_millis(host.row()).clamp(-MOST_POINTS, MOST_POINTS);
                if let Some(kept) = self.points.get_mut(host.row()) {
                    *kept = points as i32;
                }
                if let Some(rule) = verdicts.filtered_by(host.row()) {
                    self.removed_by(rule).insert(host);
                }
            }
            let first = word * LANES;
            let last = self.points.len().min(first + LANES);
            if let (true, Some(highest)) = (bits != 0, self.highest.get_mut(word)) {
                let lanes = self.points.get(first..last).unwrap_or(&[]);
                *highest = lanes.iter().copied().max().unwrap_or(0);
            }
        }
    }

    fn removed_by(&mut self, rule: RuleIx) -> &mut Bits {
        let row = match self.removed.iter().position(|(known, _)| *known == rule) {
            Some(row) => row,
            None => {
                self.removed.push((rule, Bits::default()));
                self.removed.len() - 1
            }
        };
        &mut self.removed[row].1
    }

    /// Takes the removed hosts out of the mask; says how many each rule took.
    pub(super) fn narrow(&self, left: &mut Mask) -> Vec<(RuleIx, u32)> {
        let counts = self.removed.iter().map(|(rule, hosts)| (*rule, left.subtract(hosts)));
        counts.filter(|(_, hosts)| *hosts > 0).collect()
    }

    pub(super) fn points(&self, host: HostIx) -> i32 {
        self.points.get(host.row()).copied().unwrap_or(0)
    }

    /// At least the most points of any host of a block.
    pub(super) fn most(&self, block: usize) -> i32 {
        self.highest.get(block).copied().unwrap_or(0)
    }
}
