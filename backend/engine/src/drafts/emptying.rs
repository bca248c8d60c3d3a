//! Hosts that are to be empty: for good, or one batch after the other for maintenance.
//!
//! Every VM looks for a host like a newcomer, by the policy in force, with those that found one
//! before it in place. While a batch is out, its hosts count as out: room that is kept free and
//! domains that must be covered have to do without them.

use super::scene::Scene;
use super::{Drafted, Terms};
use crate::plans::{BlockedMove, PlanKind};
use crate::proposal::rule;
use crate::request::Refusal;
use crate::state::VmEntry;
use crate::tables::{Tables, add, remove};
use cluster::{Dim, Host, HostIx, HostState, Migratability, Name, Rejections};
use planner::Move;
use solver::{Chosen, How, place};
use std::cmp::Reverse;
use std::sync::Arc;

/// Reasons that are told of a VM that finds no host.
const TOLD: usize = 4;

impl Tables {
    /// A plan after which nobody is on these hosts, as far as that is possible.
    pub fn draft_drain(&mut self, hosts: &[Name], terms: &Terms) -> Result<Drafted, Refusal> {
        let mut drafted = self.draft_emptying(PlanKind::Drain, &[hosts.to_vec()], terms)?;
        drafted.draft.hosts = hosts.to_vec();
        Ok(drafted)
    }

    /// A plan that empties these hosts in batches, one after the other. Those of a batch are out
    /// while it is their turn and back, empty, before the next one.
    pub fn draft_maintenance(
        &mut self,
        hosts: &[Name],
        batch: usize,
        terms: &Terms,
    ) -> Result<Drafted, Refusal> {
        let batches: Vec<Vec<Name>> = hosts.chunks(batch.max(1)).map(<[Name]>::to_vec).collect();
        let mut drafted = self.draft_emptying(PlanKind::Maintenance, &batches, terms)?;
        drafted.draft.hosts = hosts.to_vec();
        Ok(drafted)
    }

    fn draft_emptying(
        &mut self,
        kind: PlanKind,
        batches: &[Vec<Name>],
        terms: &Terms,
    ) -> Result<Drafted, Refusal> {
        let mut scene = Scene::of(self);
        let mut rows: Vec<Vec<HostIx>> = Vec::with_capacity(batches.len());
        for batch in batches {
            let row = |id| scene.host(id).ok_or_else(|| Refusal::UnknownHost(Name::clone(id)));
            rows.push(batch.iter().map(row).collect::<Result<_, _>>()?);
        }
        let mut drafted = Drafted::new(kind, terms, self);
        let before = scene.vms.clone();
        for (number, batch) in rows.iter().enumerate() {
            let later = rows.get(number.saturating_add(1)..).unwrap_or_default().concat();
            self.empty(&mut scene, batch, &later, terms, &mut drafted);
        }
        // The tables are as they were again.
        for (now, before) in scene.vms.iter().zip(&before) {
            if !Arc::ptr_eq(now, before) {
                remove(&mut self.problem, now);
                add(&mut self.problem, before);
            }
        }
        Ok(drafted)
    }

    /// Empties one batch, and leaves its VMs in the tables and the scene where they go.
    fn empty(
        &mut self,
        scene: &mut Scene,
        batch: &[HostIx],
        later: &[HostIx],
        terms: &Terms,
        drafted: &mut Drafted,
    ) {
        self.set_states(scene, batch, Some(HostState::Maintenance));
        let mut leaving: Vec<usize> = (0..scene.vms.len())
            .filter(|&row| scene.vms.get(row).is_some_and(|vm| batch.contains(&vm.host)))
            .collect();
        // The largest first: they find room in fewer places.
        leaving.sort_by_cached_key(|&row| {
            let demand = scene.vms.get(row).map(|vm| &vm.vm.demand);
            let size =
                demand.map_or((0, 0), |it| (it.get(Dim::MEMORY_MIB), it.get(Dim::CPU_MILLIS)));
            (Reverse(size), row)
        });
        let mut found = Vec::with_capacity(leaving.len());
        for row in leaving {
            let Some(entry) = scene.vms.get(row).map(Arc::clone) else { continue };
            match self.new_home(scene, &entry, later) {
                Ok(chosen) => found.push((row, entry, chosen)),
                Err(why) => {
                    let Some(from) = scene.name(entry.host) else { continue };
                    let (vm, to) = (entry.vm.key.clone(), None);
                    drafted.draft.blocked.push(BlockedMove { vm, from, to, why });
                }
            }
        }
        for (_, entry, chosen) in found.iter().rev() {
            remove(&mut self.problem, &moved(entry, chosen));
            add(&mut self.problem, entry);
        }
        self.set_states(scene, batch, None);
        let moves: Vec<(Move, Option<i64>)> =
            found.iter().map(|(vm, _, to)| (Move { vm: *vm, to: to.host }, None)).collect();
        // On the way everybody is where the planner puts him; the batch goes out when it is empty.
        for step in scene.order(self, &moves, terms, drafted) {
            let Some(entry) = scene.vms.get_mut(step.vm) else { continue };
            remove(&mut self.problem, entry);
            let next = VmEntry {
                host: step.to,
                committed: step.committed,
                bindings: step.bindings,
                ..entry.as_ref().clone()
            };
            *entry = Arc::new(next);
            add(&mut self.problem, entry);
        }
    }

    /// Where a VM goes, if hosts that are emptied later are left out as far as possible. Moves it
    /// there in the tables.
    fn new_home(
        &mut self,
        scene: &Scene,
        entry: &Arc<VmEntry>,
        later: &[HostIx],
    ) -> Result<Chosen, String> {
        if entry.vm.key.is_stand_in() {
            return Err("a VM is under way to this host; wait for it".into());
        }
        if entry.vm.migratability == Migratability::Pinned {
            return Err("the VM must not be moved".into());
        }
        if entry.hold.is_some() {
            return Err("it is a reservation that nobody has confirmed".into());
        }
        let how: How = self.how();
        remove(&mut self.problem, entry);
        let mut picky = entry.vm.as_ref().clone();
        picky.excluded_hosts.extend(later.iter().filter_map(|ix| scene.name(*ix)));
        let mut choice = place(&mut self.problem, &mut self.scratch, &picky, &how);
        if choice.host.is_none() && !later.is_empty() {
            choice = place(&mut self.problem, &mut self.scratch, &entry.vm, &how);
        }
        match choice.host {
            Some(chosen) => {
                add(&mut self.problem, &moved(entry, &chosen));
                Ok(chosen)
            }
            None => {
                add(&mut self.problem, entry);
                Err(told(&choice.rejections, self))
            }
        }
    }

    /// Gives hosts another state in the tables, or their own again.
    fn set_states(&mut self, scene: &Scene, hosts: &[HostIx], state: Option<HostState>) {
        for ix in hosts {
            let Some(host) = scene.hosts.get(ix) else { continue };
            match state {
                Some(state) => {
                    let host = Host { state, ..host.as_ref().clone() };
                    self.problem.put_host(*ix, &host);
                }
                None => self.problem.put_host(*ix, host),
            }
        }
    }
}

fn moved(entry: &VmEntry, to: &Chosen) -> VmEntry {
    let (host, committed, bindings) = (to.host, to.committed.clone(), to.bindings.clone());
    VmEntry { host, committed, bindings, ..entry.clone() }
}

fn told(rejections: &Rejections, tables: &Tables) -> String {
    let mut by_count: Vec<_> = rejections.0.iter().collect();
    by_count.sort_by_key(|(_, hosts)| Reverse(*hosts));
    let named = by_count.iter().take(TOLD).map(|(reason, hosts)| {
        let name = match reason {
            cluster::Reason::Capacity(dim) => {
                format!("capacity:{}", tables.dimensions().name(*dim))
            }
            other => rule(*other),
        };
        format!("{name} on {hosts}")
    });
    format!("no other host takes it: {}", named.collect::<Vec<_>>().join(", "))
}
