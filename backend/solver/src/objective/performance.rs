//! Performance: load above the share of a host that it bears well, and free CPU that lacks the
//! memory that goes with it in the mix of VMs, or the other way round; as parts of all that the
//! fleet has of each resource. The range is from all load evenly below the safe share to as much as
//! possible above it.

use super::Natural;
use super::facts::Facts;
use cluster::Dim;
use cluster::assignment::Goal;

/// Worth is counted in parts of 10^12 of the fleet.
const PER_PPB: u64 = 1_000;
const WHOLE: u64 = 1_000_000_000 * PER_PPB;

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let resources = facts.problem.resources.len();
    let dimensions = facts.dimensions();
    let capacity: Vec<u64> = (0..resources).map(|row| facts.capacity(row)).collect();
    let weight = |row: usize| match capacity[row] {
        _ if row >= dimensions => 0,
        0 => 0,
        all => WHOLE / all,
    };
    let permille = u64::from(facts.setting.safe_permille);
    let safe = |host: usize| facts.whole(host).iter().map(|all| all * permille / 1_000).collect();
    let mut goals = vec![Goal::Overload {
        weights: (0..resources).map(weight).collect(),
        safe: (0..facts.hosts()).map(safe).collect(),
    }];
    goals.extend(stranded(facts, weight));
    Natural { goals, per_unit: PER_PPB }
}

/// Free room in another proportion than VMs ask for.
fn stranded(facts: &Facts<'_>, weight: impl Fn(usize) -> u64) -> Option<Goal> {
    let (cpu, memory) = (Dim::CPU_MILLIS.row(), Dim::MEMORY_MIB.row());
    let (cores, mib) = (facts.demand(cpu), facts.demand(memory));
    if cores == 0 || mib == 0 {
        return None;
    }
    let (plenty, scarce, target) = match mib >= cores {
        true => (cpu, memory, (mib + cores / 2) / cores),
        false => (memory, cpu, (cores + mib / 2) / mib),
    };
    let weight = weight(scarce);
    Some(Goal::Stranded { plenty: plenty as u32, scarce: scarce as u32, target, weight })
}
