//! The installed constraints as tables that follow every host and VM.
//!
//! Each constraint is a row with the sets of VMs that it speaks of; a VM has one class for each
//! row. Without constraints there are no rows, and nobody pays for them.

use super::dependency::Dependency;
use super::exclusive::Exclusive;
use super::fence::Fence;
use super::limit::Limit;
use super::members::Members;
use super::min_domains::MinDomains;
use super::network::{Networked, Pairs};
use super::spare::Spare;
use crate::bits::{Bits, Mask};
use crate::domains::{Domains, LevelIx, Moved};
use crate::hosts::Hosts;
use crate::room::{Ask, Room};
use cluster::{
    Constraint, ConstraintRule, Host, HostIx, Level, Name, Reason, Rejections, Vm, VmSet,
};
use smallvec::SmallVec;

/// Which of a constraint's two sets a VM is in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Class(u8);

impl Class {
    /// One of those that the constraint is about.
    pub(crate) fn is_about(self) -> bool {
        self.0 & 1 != 0
    }

    /// One of those that the others are held against.
    pub(crate) fn is_against(self) -> bool {
        self.0 & 2 != 0
    }

    /// The constraint does not count for the VM, whichever set it is in.
    fn is_waived(self) -> bool {
        self.0 & 4 != 0
    }
}

/// A VM's class for each row.
pub(crate) type Classes = SmallVec<[Class; 8]>;

/// What the rows look things up in.
pub(crate) struct Tables<'a> {
    pub(crate) hosts: &'a Hosts,
    pub(crate) domains: &'a Domains,
    pub(crate) room: &'a Room,
}

#[derive(Debug, Default)]
pub(crate) struct Installed {
    rows: Vec<Row>,
    networks: Vec<Networked>,
    /// The levels that rows look at, for as long as they do.
    pub(crate) levels: Vec<LevelIx>,
}

#[derive(Debug)]
struct Row {
    name: Name,
    sets: [Option<VmSet>; 2],
    check: Check,
}

#[derive(Debug)]
enum Check {
    Fence(Fence),
    MinDomains(MinDomains),
    Limit(Limit),
    Exclusive(Exclusive),
    Dependency(Dependency),
    Network(Pairs),
    Spare(Spare),
}

impl Installed {
    /// Rows for these constraints, with no host and no VM in them. `level` finds a level's row.
    pub(crate) fn new<'a>(
        constraints: impl Iterator<Item = &'a Constraint> + Clone,
        mut level: impl FnMut(&Level) -> LevelIx,
    ) -> Self {
        let mut made = Self::default();
        for Constraint { name, rule } in constraints.clone() {
            if let ConstraintRule::Links(links) = rule {
                made.networks.push(Networked::new(name.clone(), level(&links.level), links));
            }
        }
        for Constraint { name, rule } in constraints {
            made.levels.extend(rule.level().map(&mut level));
            let check = match rule {
                ConstraintRule::Fence(rule) => Check::Fence(Fence::new(rule)),
                ConstraintRule::MinDomains(rule) => {
                    Check::MinDomains(MinDomains::new(rule, level(&rule.level)))
                }
                ConstraintRule::Limit(rule) => Check::Limit(Limit::new(rule, level(&rule.level))),
                ConstraintRule::Exclusive(rule) => Check::Exclusive(Exclusive::new(rule)),
                ConstraintRule::Dependency(rule) => {
                    Check::Dependency(Dependency::at(level(&rule.level)))
                }
                ConstraintRule::Network(rule) => {
                    let over = made.networks.iter().find(|network| network.name == rule.over);
                    let Some(over) = over else { continue };
                    Check::Network(Pairs::new(rule, over.level))
                }
                ConstraintRule::Spare(rule) => {
                    Check::Spare(Spare::new(rule, rule.each.as_ref().map(&mut level)))
                }
                ConstraintRule::Links(_) => continue,
            };
            let sets = rule.vm_sets().map(|set| set.cloned());
            made.rows.push(Row { name: name.clone(), sets, check });
        }
        made
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The VM's class for each row.
    pub(crate) fn classes(&self, vm: &Vm) -> Classes {
        let is_in = |set: &Option<VmSet>| set.as_ref().is_some_and(|set| set.contains(vm));
        let class =
            |row: &Row| Class(u8::from(is_in(&row.sets[0])) | u8::from(is_in(&row.sets[1])) << 1);
        self.rows.iter().map(class).collect()
    }

    /// Lets the constraints of these names, and those over fabrics of these names, not count for
    /// a VM of these classes.
    pub(crate) fn waive(&self, names: &[&Name], classes: &mut Classes) {
        for (row, class) in self.rows.iter().zip(classes) {
            let over = match &row.check {
                Check::Network(pairs) => &pairs.over,
                _ => &row.name,
            };
            if names.contains(&over) {
                class.0 |= 4;
            }
        }
    }

    /// Follows a host that came, changed or went; the other tables have done so already.
    pub(crate) fn put_host(&mut self, ix: HostIx, host: Option<&Host>, tables: &Tables<'_>) {
        for row in &mut self.rows {
            match &mut row.check {
                Check::Fence(fence) => fence.put_host(ix, host),
                Check::Exclusive(exclusive) => exclusive.look_again(ix, tables.room),
                Check::Spare(spare) => spare.put_host(ix, host, tables),
                _ => {}
            }
        }
        for network in &mut self.networks {
            let over = pairs_over(&self.rows, network.name.clone());
            network.refresh(over, tables);
        }
    }

    pub(crate) fn move_host(&mut self, ix: HostIx, moved: Moved) {
        for row in &mut self.rows {
            match &mut row.check {
                Check::MinDomains(MinDomains { members, .. })
                | Check::Limit(Limit { members, .. })
                | Check::Dependency(Dependency { members }) => {
                    members.move_host(ix, moved);
                }
                Check::Network(pairs) => {
                    if pairs.move_host(ix, moved) {
                        let over = |network: &&mut Networked| network.name == pairs.over;
                        self.networks.iter_mut().find(over).map(Networked::note_moved);
                    }
                }
                Check::Fence(_) | Check::Exclusive(_) | Check::Spare(_) => {}
            }
        }
    }

    /// Follows what others use of a host.
    pub(crate) fn set_foreign(&mut self, ix: HostIx, tables: &Tables<'_>) {
        for row in &mut self.rows {
            match &mut row.check {
                Check::Exclusive(exclusive) => exclusive.look_again(ix, tables.room),
                Check::Spare(spare) => spare.follow(ix, tables),
                _ => {}
            }
        }
    }

    /// Counts a VM on a host; its room is taken already.
    pub(crate) fn add_vm(&mut self, host: HostIx, vm: &Vm, tables: &Tables<'_>) {
        self.count(host, vm, tables, true);
    }

    /// Takes a VM off a host again; its room is given back already.
    pub(crate) fn remove_vm(&mut self, host: HostIx, vm: &Vm, tables: &Tables<'_>) {
        self.count(host, vm, tables, false);
    }

    fn count(&mut self, host: HostIx, vm: &Vm, tables: &Tables<'_>, comes: bool) {
        let classes = self.classes(vm);
        let step = |members: &mut Members| match comes {
            true => members.add(host, tables.domains),
            false => members.remove(host, tables.domains),
        };
        for (row, class) in self.rows.iter_mut().zip(classes) {
            match &mut row.check {
                Check::MinDomains(MinDomains { members, .. })
                | Check::Limit(Limit { members, .. })
                    if class.is_about() =>
                {
                    step(members);
                }
                Check::Dependency(Dependency { members }) if class.is_against() => step(members),
                Check::Exclusive(exclusive) => match comes {
                    true => exclusive.add(host, class, tables.domains, tables.room),
                    false => exclusive.remove(host, class, tables.domains, tables.room),
                },
                Check::Network(pairs) => {
                    let over = |network: &&mut Networked| network.name == pairs.over;
                    let Some(network) = self.networks.iter_mut().find(over) else { continue };
                    match comes {
                        true => network.add(pairs, host, class, tables),
                        false => network.remove(pairs, host, class, tables),
                    }
                }
                Check::Spare(spare) => spare.follow(host, tables),
                _ => {}
            }
        }
    }

    /// Removes the hosts on the wrong side of a fence; says how many.
    pub(crate) fn narrow_by_fences(&self, classes: &[Class], mask: &mut Mask) -> u32 {
        let rows = self.rows.iter().zip(classes).filter(|(_, class)| !class.is_waived());
        let removed = rows.map(|(row, &class)| match &row.check {
            Check::Fence(fence) => fence.narrow(class, mask),
            _ => 0,
        });
        removed.sum()
    }

    /// For each constraint that leaves out any host: its name, its reason and the hosts that it
    /// allows, in the order in which reasons are tried. Those over one fabric are one.
    pub(crate) fn each(
        &mut self,
        classes: &[Class],
        asks: &[Ask],
        tables: &Tables<'_>,
    ) -> Vec<(Name, Reason, Mask)> {
        let mut found = Vec::new();
        let names = self.rows.iter().map(|row| match &row.check {
            Check::Network(pairs) => pairs.over.clone(),
            _ => row.name.clone(),
        });
        let mut names: Vec<Name> = names.collect();
        names.sort();
        names.dedup();
        for name in names {
            let mut others: Classes = classes.iter().copied().collect();
            for (row, class) in self.rows.iter().zip(&mut others) {
                let own = match &row.check {
                    Check::Network(pairs) => pairs.over == name,
                    _ => row.name == name,
                };
                class.0 |= if own { 0 } else { 4 };
            }
            let mut mask = Mask::default();
            mask.reset_to(tables.hosts.present());
            let mut rejections = Rejections::default();
            rejections.add(Reason::Fence, self.narrow_by_fences(&others, &mut mask));
            let union = &mut Bits::default();
            self.narrow(&others, asks, tables, &mut mask, union, &mut rejections);
            if let Some((reason, _)) = rejections.0.first() {
                found.push((name, *reason, mask));
            }
        }
        found.sort_by_key(|(_, reason, _)| *reason);
        found
    }

    /// Removes the hosts that the other constraints leave out, and counts them by reason.
    pub(crate) fn narrow(
        &mut self,
        classes: &[Class],
        asks: &[Ask],
        tables: &Tables<'_>,
        mask: &mut Mask,
        union: &mut Bits,
        rejections: &mut Rejections,
    ) {
        let Tables { domains, room, .. } = *tables;
        let rows = || {
            let rows = self.rows.iter().zip(classes.iter().copied());
            rows.filter(|(_, class)| !class.is_waived())
        };
        for (row, class) in rows() {
            if let Check::MinDomains(rule) = &row.check {
                rejections.add(Reason::MinDomains, rule.narrow(class, domains, mask));
            }
        }
        for (row, class) in rows() {
            if let Check::Limit(rule) = &row.check {
                rejections.add(Reason::Limit, rule.narrow(class, domains, mask));
            }
        }
        for (row, class) in rows() {
            if let Check::Exclusive(rule) = &row.check {
                rejections.add(Reason::Exclusive, rule.narrow(class, mask));
            }
        }
        for (row, class) in rows() {
            if let Check::Dependency(rule) = &row.check {
                rejections.add(Reason::Dependency, rule.narrow(class, domains, mask, union));
            }
        }
        for network in &mut self.networks {
            let over = self.rows.iter().zip(classes.iter().copied());
            let over = over.filter_map(|(row, class)| match &row.check {
                Check::Network(pairs) if pairs.over == network.name && !class.is_waived() => {
                    Some((pairs, class))
                }
                _ => None,
            });
            let over: SmallVec<[(&Pairs, Class); 4]> = over.collect();
            let removed = network.narrow(over.into_iter(), tables, mask, union);
            rejections.add(Reason::Network, removed);
        }
        for (row, class) in self.rows.iter_mut().zip(classes.iter().copied()) {
            if let (Check::Spare(rule), false) = (&mut row.check, class.is_waived()) {
                rejections.add(Reason::Spare, rule.narrow(class, asks, room, mask));
            }
        }
    }
}

fn pairs_over(rows: &[Row], fabric: Name) -> impl Iterator<Item = &Pairs> {
    rows.iter().filter_map(move |row| match &row.check {
        Check::Network(pairs) if pairs.over == fabric => Some(pairs),
        _ => None,
    })
}
