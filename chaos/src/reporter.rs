//! The client that runs the VMs: it reports what is in use and what became of whom, late, twice,
//! out of order, and not always truthfully.

use crate::shapes;
use cluster::{Amounts, Name, VmKey};
use engine::{Request, UseReport, UseReports, VmNews};
use fixture::Dice;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Reporter {
    /// Its clock. Events and reports may be a few ticks behind it.
    now_ns: u64,
    /// The inventory that it believes to be known.
    generation: u64,
    last: Option<UseReports>,
}

impl Reporter {
    pub(crate) fn learn(&mut self, generation: u64) {
        self.generation = generation;
    }

    pub(crate) fn report(&mut self, dice: &mut Dice, host: Name) -> Request {
        if let Some(last) = self.last.as_ref().filter(|_| dice.chance(200)) {
            return Request::ReportUse(Box::new(last.clone()));
        }
        let used = Amounts::cpu_memory(dice.below(8) * 500, dice.below(9));
        let vms = dice.chance(500).then(|| dice.below(6) as u32);
        let reports = UseReports {
            generation: self.generation + 1,
            base: dice.chance(700).then_some(self.generation),
            digest: [dice.below(256) as u8; 16],
            taken_ns: dice.chance(700).then(|| self.past(dice)),
            last: dice.chance(900),
            reports: vec![UseReport { host, used, vms }],
        };
        self.last = Some(reports.clone());
        Request::ReportUse(Box::new(reports))
    }

    /// News of a VM that is `known` to be somewhere, or of any at all.
    pub(crate) fn news(
        &mut self,
        dice: &mut Dice,
        known: Option<(VmKey, Name)>,
        elsewhere: Name,
        extra: usize,
    ) -> Request {
        let at_ns = self.past(dice);
        let described = shapes::vm(dice, extra);
        let (vm, host) = match known {
            Some(known) if dice.chance(800) => known,
            _ => (described.key.clone(), elsewhere.clone()),
        };
        if dice.chance(250) {
            return Request::ReportVm { vm, at_ns, news: VmNews::Gone };
        }
        let host = if dice.chance(700) { host } else { elsewhere };
        let described = cluster::Vm { key: vm.clone(), ..described };
        let described = dice.chance(400).then(|| Arc::new(described));
        Request::ReportVm { vm, at_ns, news: VmNews::Runs { host, vm: described } }
    }

    fn past(&mut self, dice: &mut Dice) -> u64 {
        self.now_ns += dice.below(4);
        1 + self.now_ns.saturating_sub(dice.below(6))
    }
}
