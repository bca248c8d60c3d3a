//! Latency and bandwidth between pairs of VMs over a fabric.
//!
//! Whom a VM is paired with is counted by domain, in three kinds: only one of `vms`, only one of
//! `to`, or both. What the pairs set aside on links is patched when a VM comes or goes.

use super::fabric::{Fabric, Node};
use super::installed::{Class, Tables};
use super::members::Members;
use crate::bits::{Bits, Mask};
use crate::domains::{LevelIx, Moved};
use cluster::{HostIx, Name};

/// A fabric and the constraints over it.
#[derive(Debug)]
pub(crate) struct Networked {
    pub(crate) name: Name,
    pub(crate) level: LevelIx,
    fabric: Fabric,
    /// Somebody on a host that was moved is paired: the loads have to be summed up again.
    stale: bool,
    scratch: Scratch,
}

/// What the pairs of one constraint need.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) over: Name,
    max_latency_us: u64,
    bandwidth_mbps: u64,
    /// By kind: only `vms`, only `to`, both.
    kinds: [Members; 3],
}

/// Buffers of one question.
#[derive(Debug, Default)]
struct Scratch {
    peers: Vec<Peers>,
    /// What the newcomer would add to each link.
    extra: Vec<u64>,
    touched: Vec<u16>,
}

/// Partners of the newcomer in one domain.
#[derive(Clone, Copy, Debug)]
struct Peers {
    domain: u32,
    /// `None` when no link leads there.
    node: Option<Node>,
    max_latency_us: u64,
    mbps: u64,
}

impl Pairs {
    pub(crate) fn new(rule: &cluster::Network, level: LevelIx) -> Self {
        Self {
            over: rule.over.clone(),
            max_latency_us: rule.max_latency_us.map_or(u64::MAX, u64::from),
            bandwidth_mbps: rule.bandwidth_mbps.into(),
            kinds: std::array::from_fn(|_| Members::at(level)),
        }
    }

    pub(crate) fn move_host(&mut self, host: HostIx, moved: Moved) -> bool {
        let mut any = false;
        for kind in &mut self.kinds {
            any |= kind.move_host(host, moved);
        }
        any
    }

    /// The kinds of VMs that one of this class is paired with.
    fn partners(&self, class: Class) -> impl Iterator<Item = &Members> {
        let [vms, to, both] = &self.kinds;
        let vms = class.is_against().then_some(vms);
        let to = class.is_about().then_some(to);
        vms.into_iter().chain(to).chain((class.is_about() || class.is_against()).then_some(both))
    }

    fn kind_mut(&mut self, class: Class) -> Option<&mut Members> {
        let [vms, to, both] = &mut self.kinds;
        match (class.is_about(), class.is_against()) {
            (true, true) => Some(both),
            (true, false) => Some(vms),
            (false, true) => Some(to),
            (false, false) => None,
        }
    }
}

impl Networked {
    pub(crate) fn new(name: Name, level: LevelIx, links: &cluster::Links) -> Self {
        let fabric = Fabric::new(&links.links);
        let extra = vec![0; fabric.links()];
        let scratch = Scratch { extra, ..Scratch::default() };
        Self { name, level, fabric, stale: false, scratch }
    }

    pub(crate) fn add(
        &mut self,
        pairs: &mut Pairs,
        host: HostIx,
        class: Class,
        tables: &Tables<'_>,
    ) {
        self.account(pairs, host, class, tables, Fabric::set_aside);
        if let Some(kind) = pairs.kind_mut(class) {
            kind.add(host, tables.domains);
        }
    }

    pub(crate) fn remove(
        &mut self,
        pairs: &mut Pairs,
        host: HostIx,
        class: Class,
        tables: &Tables<'_>,
    ) {
        if let Some(kind) = pairs.kind_mut(class) {
            kind.remove(host, tables.domains);
        }
        self.account(pairs, host, class, tables, Fabric::give_back);
    }

    /// Changes what is set aside between a VM on `host` and all its partners.
    fn account(
        &mut self,
        pairs: &Pairs,
        host: HostIx,
        class: Class,
        tables: &Tables<'_>,
        change: impl Fn(&mut Fabric, Node, Node, u64),
    ) {
        let Some(domain) = tables.domains.of(self.level, host) else { return };
        let Some(from) = self.node(domain, tables) else { return };
        if pairs.bandwidth_mbps == 0 {
            return;
        }
        for (other, count) in pairs.partners(class).flat_map(Members::each_domain) {
            if other != domain
                && let Some(to) = self.node(other, tables)
            {
                change(&mut self.fabric, from, to, pairs.bandwidth_mbps * u64::from(count));
            }
        }
    }

    pub(crate) fn note_moved(&mut self) {
        self.stale = true;
    }

    /// Sums up again what pairs set aside, if hosts have changed their domains.
    pub(crate) fn refresh<'p>(
        &mut self,
        all: impl Iterator<Item = &'p Pairs>,
        tables: &Tables<'_>,
    ) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.fabric.clear();
        for pairs in all.filter(|pairs| pairs.bandwidth_mbps > 0) {
            let mut counts: Vec<(Node, [u64; 3])> = Vec::new();
            for (kind, members) in pairs.kinds.iter().enumerate() {
                for (domain, count) in members.each_domain() {
                    let Some(node) = self.node(domain, tables) else { continue };
                    let row = counts.iter().position(|(known, _)| *known == node);
                    let row = row.unwrap_or_else(|| {
                        counts.push((node, [0; 3]));
                        counts.len() - 1
                    });
                    counts[row].1[kind] = count.into();
                }
            }
            for (row, (a, [vms, to, both])) in counts.iter().enumerate() {
                for (b, other) in &counts[..row] {
                    let count = vms * (other[1] + other[2])
                        + to * (other[0] + other[2])
                        + both * other.iter().sum::<u64>();
                    self.fabric.set_aside(*a, *b, count * pairs.bandwidth_mbps);
                }
            }
        }
    }

    /// Removes the hosts that are too far from a partner, or whose way there is too narrow; says
    /// how many.
    pub(crate) fn narrow<'p>(
        &mut self,
        asked: impl Iterator<Item = (&'p Pairs, Class)>,
        tables: &Tables<'_>,
        mask: &mut Mask,
        union: &mut Bits,
    ) -> u32 {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.peers.clear();
        let mut lost = false;
        for (pairs, class) in asked {
            for partners in pairs.partners(class) {
                lost |= partners.strays() > 0;
                scratch.peers.extend(partners.each_domain().map(|(domain, count)| Peers {
                    domain,
                    node: self.node(domain, tables),
                    max_latency_us: pairs.max_latency_us,
                    mbps: pairs.bandwidth_mbps * u64::from(count),
                }));
            }
        }
        let removed = match (lost, scratch.peers.is_empty()) {
            (true, _) => mask.subtract_all(),
            (false, true) => 0,
            (false, false) => {
                union.clear();
                if self.level == LevelIx::HOST {
                    for host in
                        mask.iter().filter(|host| self.reaches(host.0, tables, &mut scratch))
                    {
                        union.insert(host);
                    }
                } else {
                    for domain in tables.domains.each(self.level) {
                        if self.reaches(domain, tables, &mut scratch) {
                            tables.domains.add_to(union, self.level, domain);
                        }
                    }
                }
                mask.retain(union)
            }
        };
        self.scratch = scratch;
        removed
    }

    /// Whether every partner is near enough to the domain and the links have what is needed.
    fn reaches(&self, domain: u32, tables: &Tables<'_>, scratch: &mut Scratch) -> bool {
        let Scratch { peers, extra, touched } = scratch;
        let from = self.node(domain, tables);
        let near = peers.iter().filter(|peers| peers.domain != domain).all(|peers| {
            let (Some(from), Some(to)) = (from, peers.node) else { return false };
            let Some(route) = self.fabric.route(from, to) else { return false };
            if peers.mbps > 0 {
                for &link in &route.links {
                    if extra[usize::from(link)] == 0 {
                        touched.push(link);
                    }
                    extra[usize::from(link)] += peers.mbps;
                }
            }
            route.latency_us <= peers.max_latency_us
        });
        let mut wide = true;
        for link in touched.drain(..) {
            wide &= self.fabric.has(link, std::mem::take(&mut extra[usize::from(link)]));
        }
        near && wide
    }

    fn node(&self, domain: u32, tables: &Tables<'_>) -> Option<Node> {
        let name = match self.level {
            LevelIx::HOST => tables.hosts.get(HostIx(domain)).map(|host| &host.id),
            level => tables.domains.name(level, domain),
        };
        name.and_then(|name| self.fabric.node(name))
    }
}
