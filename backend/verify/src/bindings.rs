//! The second opinion on what VMs have inside a host.
//!
//! Reads "Inside a host" of `backend/ARCHITECTURE.md` for itself: from the host's description and
//! the requests, demands and bindings of all VMs on it, finds every part that is not what was
//! asked for (`own`) and every part that is promised twice (here). Plain loops, nothing kept.

mod hardware;
mod own;
mod room;
mod violation;

use cluster::{Amounts, Bindings, CoreClass, GpuShare, Hardware, Topology, VmKey};
use hardware::Reading;
pub(crate) use room::lacking;
use std::collections::BTreeMap;
use violation::BindingViolationKind as Kind;
pub use violation::{BindingViolation, BindingViolationKind, BindingViolations};

/// A VM on the host: what it asked for, its demand on this host, and what it has.
#[derive(Clone, Copy, Debug)]
pub struct Guest<'a> {
    pub vm: &'a VmKey,
    pub request: &'a Topology,
    pub demand: &'a Amounts,
    pub bindings: &'a Bindings,
}

/// A VM and what it has, whatever it asked for.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    pub vm: &'a VmKey,
    pub bindings: &'a Bindings,
}

impl<'a> From<Guest<'a>> for Holder<'a> {
    fn from(Guest { vm, bindings, .. }: Guest<'a>) -> Self {
        Self { vm, bindings }
    }
}

/// Everything that is wrong with the bindings of these VMs, which are all that the host has.
pub fn bindings(
    hardware: &Hardware,
    cpu_overcommit_permille: u64,
    guests: &[Guest<'_>],
) -> BindingViolations {
    let reading = Reading::new(hardware);
    let mut found = BindingViolations::new();
    for guest in guests {
        own::check(&reading, guest, &mut found);
    }
    let holders: Vec<Holder<'_>> = guests.iter().map(|guest| Holder::from(*guest)).collect();
    between(&reading, cpu_overcommit_permille, &holders, &mut found);
    found
}

/// Everything that is wrong with a VM beside others that were checked before: of those it is only
/// read whether they have something that the new one has too.
pub fn newcomer(
    hardware: &Hardware,
    cpu_overcommit_permille: u64,
    others: &[Holder<'_>],
    guest: &Guest<'_>,
) -> BindingViolations {
    let reading = Reading::new(hardware);
    let mut found = BindingViolations::new();
    own::check(&reading, guest, &mut found);
    let mut holders = others.to_vec();
    holders.push(Holder::from(*guest));
    between(&reading, cpu_overcommit_permille, &holders, &mut found);
    found
}

/// What these VMs have that is not there or that another of them has too.
pub fn shared(
    hardware: &Hardware,
    cpu_overcommit_permille: u64,
    holders: &[Holder<'_>],
) -> BindingViolations {
    let reading = Reading::new(hardware);
    let mut found = BindingViolations::new();
    for holder in holders {
        own::check_existence(&reading, holder, &mut found);
    }
    between(&reading, cpu_overcommit_permille, holders, &mut found);
    found
}

fn between(
    reading: &Reading<'_>,
    cpu_overcommit_permille: u64,
    holders: &[Holder<'_>],
    found: &mut BindingViolations,
) {
    threads(reading, holders, found);
    nodes(reading, cpu_overcommit_permille.max(1), holders, found);
    gpus(reading.hardware, holders, found);
    functions(holders, found);
    counts(reading.hardware, holders, found);
}

fn report(found: &mut BindingViolations, vm: &VmKey, kind: Kind) {
    found.push(BindingViolation { vm: vm.clone(), kind });
}

/// No thread has two owners, and nobody runs where somebody wants it idle.
fn threads(reading: &Reading<'_>, holders: &[Holder<'_>], found: &mut BindingViolations) {
    let mut owners: Vec<Option<(usize, bool)>> = vec![None; reading.threads.len()];
    for (row, holder) in holders.iter().enumerate() {
        let runs = holder.bindings.cpus.iter().map(|cpu| (*cpu, true));
        let idles = holder.bindings.idle_cpus.iter().map(|cpu| (*cpu, false));
        for (cpu, running) in runs.chain(idles) {
            let Some(owner) = owners.get_mut(usize::from(cpu)) else { continue };
            match *owner {
                None => *owner = Some((row, running)),
                Some((other, _)) if other == row => {}
                Some((other, theirs)) => {
                    let with = holders[other].vm.clone();
                    let kind = if running && theirs {
                        Kind::ThreadTwice { cpu, with }
                    } else {
                        Kind::SiblingTaken { cpu, with }
                    };
                    report(found, holder.vm, kind);
                }
            }
        }
    }
}

/// Memory, pages and shared CPU of each node are enough for all.
fn nodes(
    reading: &Reading<'_>,
    permille: u64,
    holders: &[Holder<'_>],
    found: &mut BindingViolations,
) {
    let mut pages: BTreeMap<(u16, u32), u64> = BTreeMap::new();
    let mut memory: BTreeMap<u16, u64> = BTreeMap::new();
    let mut shared: BTreeMap<(u16, u8), u64> = BTreeMap::new();
    let mut claimed: BTreeMap<(u16, u8), u64> = BTreeMap::new();
    for holder in holders {
        let bindings = holder.bindings;
        let class = bindings.core_class as u8;
        for cpu in bindings.cpus.iter().chain(&bindings.idle_cpus) {
            if let Some(thread) = reading.threads.get(usize::from(*cpu)) {
                *claimed.entry((thread.node, thread.class as u8)).or_default() += 1;
            }
        }
        for node in &bindings.nodes {
            *memory.entry(node.node).or_default() += u64::from(node.memory_mib);
            let size = bindings.hugepage_kib;
            *pages.entry((node.node, size)).or_default() += u64::from(node.hugepages);
            *shared.entry((node.node, class)).or_default() += u64::from(node.shared_millis);
        }
        // Whoever came last, of those that are over, is the one that is named.
        for bound in &bindings.nodes {
            let Some(shape) = reading.hardware.numa_nodes.get(usize::from(bound.node)) else {
                continue;
            };
            let node = bound.node;
            let in_pages: u64 = shape
                .hugepages
                .iter()
                .map(|pages| (u64::from(pages.size_kib) * u64::from(pages.count)).div_ceil(1024))
                .sum();
            let has = u64::from(shape.memory_mib).saturating_sub(in_pages);
            let used = memory.get(&node).copied().unwrap_or(0);
            if bound.memory_mib > 0 && used > has {
                report(found, holder.vm, Kind::MemoryOver { node, used, has });
            }
            let size_kib = bindings.hugepage_kib;
            let listed = shape.hugepages.iter().find(|pages| pages.size_kib == size_kib);
            let has = listed.map_or(0, |pages| u64::from(pages.count));
            let used = pages.get(&(node, size_kib)).copied().unwrap_or(0);
            if bound.hugepages > 0 && used > has {
                report(found, holder.vm, Kind::HugePagesOver { node, size_kib, used, has });
            }
            let all = match bindings.core_class {
                CoreClass::Performance => {
                    u64::from(shape.cores) * u64::from(shape.threads_per_core)
                }
                CoreClass::Efficiency => u64::from(shape.efficiency_cores),
            };
            let taken = claimed.get(&(node, class)).copied().unwrap_or(0);
            let has = all.saturating_sub(taken) * permille;
            let used = shared.get(&(node, class)).copied().unwrap_or(0);
            if bound.has_cores() && used > has {
                report(found, holder.vm, Kind::SharedCpuOver { node, used, has });
            }
        }
    }
}

/// Shares of a GPU add up to one at most, pieces do not overlap, and it is one or the other.
fn gpus(hardware: &Hardware, holders: &[Holder<'_>], found: &mut BindingViolations) {
    for (row, gpu) in hardware.gpus.iter().enumerate() {
        let row = row as u16;
        let (mut milli, mut whole, mut slices) = (0_u32, false, 0_u32);
        for holder in holders {
            for bound in holder.bindings.gpus.iter().filter(|bound| bound.gpu == row) {
                let taken = whole || milli > 0;
                let kind = match bound.share {
                    GpuShare::Whole => {
                        let busy = taken || slices != 0;
                        (whole, milli) = (true, milli + 1000);
                        busy.then_some(Kind::WholeGpuShared { gpu: row })
                    }
                    GpuShare::Milli(share) => {
                        milli += u32::from(share);
                        if whole {
                            Some(Kind::WholeGpuShared { gpu: row })
                        } else if slices != 0 {
                            Some(Kind::GpuCutAndShared { gpu: row })
                        } else {
                            (milli > 1000).then_some(Kind::GpuOver { gpu: row, milli })
                        }
                    }
                    GpuShare::Mig { profile, start } => {
                        let cut = gpu.mig_profiles.get(usize::from(profile));
                        let length = cut.map_or(0, |cut| u32::from(cut.slices.min(16)));
                        let piece = ((1_u32 << length) - 1).checked_shl(u32::from(start));
                        let piece = piece.unwrap_or(0);
                        let overlaps = slices & piece != 0;
                        slices |= piece;
                        if whole {
                            Some(Kind::WholeGpuShared { gpu: row })
                        } else if taken {
                            Some(Kind::GpuCutAndShared { gpu: row })
                        } else {
                            overlaps.then_some(Kind::PiecesOverlap { gpu: row, start })
                        }
                    }
                };
                if let Some(kind) = kind {
                    report(found, holder.vm, kind);
                }
            }
        }
    }
}

fn functions(holders: &[Holder<'_>], found: &mut BindingViolations) {
    let mut owners = BTreeMap::new();
    for (row, holder) in holders.iter().enumerate() {
        for &function in &holder.bindings.functions {
            let other = *owners.entry(function).or_insert(row);
            if other != row {
                let with = holders[other].vm.clone();
                let (nic, function) = (function.nic, function.function);
                report(found, holder.vm, Kind::FunctionTwice { nic, function, with });
            }
        }
    }
}

/// Accelerators and heat.
fn counts(hardware: &Hardware, holders: &[Holder<'_>], found: &mut BindingViolations) {
    let mut used = vec![0_u64; hardware.accelerators.len()];
    let mut watts = 0_u64;
    for holder in holders {
        for bound in &holder.bindings.accelerators {
            let row = usize::from(bound.row);
            let Some(device) = hardware.accelerators.get(row) else { continue };
            used[row] += u64::from(bound.count);
            let (used, has) = (used[row], u64::from(device.count));
            if used > has {
                report(found, holder.vm, Kind::AcceleratorsOver { row: bound.row, used, has });
            }
        }
        watts += u64::from(holder.bindings.watts);
        let has = u64::from(hardware.thermal_limit_watts);
        if has > 0 && holder.bindings.watts > 0 && watts > has {
            report(found, holder.vm, Kind::WattsOver { used: watts, has });
        }
    }
}
