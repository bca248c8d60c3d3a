//! Finds the first thing that is missing, after `bind` has found that something is.
//!
//! Parts are looked at one by one, in the order of `Missing`; if each is there by itself, parts
//! that have to be near others are left out in turn until the rest binds.

use super::bind::Ask;
use super::gpus::{Unfit, Units, fitness, memory_mib};
use super::layout::EVERYWHERE;
use super::unbound::{Missing, Scope, Unbound};
use super::wishes::{Kind, Wish, wishes};
use cluster::{CoreClass, Cores, GpuAmount, GpuGrouping, GpuRequest, Near, NumaPolicy};

impl Ask<'_> {
    pub(super) fn why(&self) -> Unbound {
        self.why_unsuited()
            .or_else(|| self.why_nodes())
            .or_else(|| self.units.as_ref().and_then(|units| self.why_gpus(units)))
            .or_else(|| {
                self.wishes.iter().find_map(|wish| {
                    let most = wish.free_within(EVERYWHERE);
                    let short = most < wish.count;
                    short.then(|| unbound(missing(wish), Scope::Host, wish.count, most))
                })
            })
            .unwrap_or_else(|| self.why_apart())
    }

    fn why_unsuited(&self) -> Option<Unbound> {
        let hardware = &self.devices.layout().hardware;
        let wanted = self.request.architecture;
        if let Some(wanted) = wanted.filter(|_| wanted != hardware.architecture) {
            return Some(unbound(Missing::Architecture(wanted), Scope::Host, 1, 0));
        }
        let lacking = |name: &&cluster::Name| !hardware.cpu_features.contains(name);
        if let Some(name) = self.request.cpu_features.iter().find(lacking) {
            return Some(unbound(Missing::CpuFeature(name.clone()), Scope::Host, 1, 0));
        }
        let (asked, most) = (self.request.watts, self.devices.watts);
        (asked > most).then(|| unbound(Missing::Watts, Scope::Host, asked, most))
    }

    /// Something of which no node, or all nodes together, have too little.
    fn why_nodes(&self) -> Option<Unbound> {
        if self.floats() {
            return None;
        }
        // Of the class that has the most of it.
        let room = |class: &CoreClass| self.room(*class);
        let class = self.classes().max_by_key(|class| (room(class), *class as u8 == 0))?;
        let offers = self.offers(class);
        for of in 0..3 {
            let mut had: Vec<u32> =
                offers.by_node.iter().take(offers.nodes).map(|lot| lot[of]).collect();
            had.sort_unstable_by(|a, b| b.cmp(a));
            let nth = |place: usize| had.get(place.wrapping_sub(1)).copied().unwrap_or(0);
            let need = self.need[of];
            let short = |scope, asked: u32, most: u32| {
                let missing = self.missing(of, class);
                (asked > most).then(|| unbound(missing, scope, asked, most))
            };
            let found = match self.request.numa {
                NumaPolicy::Single => short(Scope::OneNode, need, nth(1)),
                NumaPolicy::Split(ways) => {
                    let (count, scope) = (u32::from(ways.max(1)), Scope::EachOf(ways));
                    let few = of == 0 && need < count;
                    let least =
                        short(scope, (need / count).max(u32::from(few)), nth(count as usize));
                    let extra = (need % count) as usize;
                    let more = || short(scope, need / count + 1, nth(extra));
                    least.or_else(|| if extra > 0 && !few { more() } else { None })
                }
                NumaPolicy::Preferred => {
                    let total = had.iter().map(|had| u64::from(*had)).sum::<u64>();
                    short(Scope::Host, need, total.min(u64::from(u32::MAX)) as u32)
                }
            };
            if found.is_some() {
                return found;
            }
        }
        let together =
            self.classes().any(|class| self.offers(class).choose(&mut |_| Some(0)).is_some());
        let scope = match self.request.numa {
            NumaPolicy::Single => Scope::OneNode,
            NumaPolicy::Split(ways) => Scope::EachOf(ways),
            NumaPolicy::Preferred => Scope::Host,
        };
        (!together).then(|| unbound(Missing::Alignment, scope, 1, 0))
    }

    fn room(&self, class: CoreClass) -> u64 {
        let offers = self.offers(class);
        offers.by_node.iter().take(offers.nodes).map(|lot| u64::from(lot[0])).sum()
    }

    fn missing(&self, of: usize, class: CoreClass) -> Missing {
        match (of, self.request.cores) {
            (0, Cores::Shared) => Missing::SharedCpuMillis(class),
            (0, Cores::Exclusive(siblings)) => Missing::ExclusiveCores(class, siblings),
            (1, _) => Missing::MemoryMib,
            _ => Missing::HugePages {
                size_kib: self.request.hugepages.map_or(0, |pages| pages.size_kib),
            },
        }
    }

    /// No GPU of the kind, or not enough units of those that are.
    fn why_gpus(&self, units: &Units<'_>) -> Option<Unbound> {
        let layout = self.devices.layout();
        let gpus = 0..layout.gpus.len();
        let unfit = |row| fitness(layout, row, units.request, self.vm_memory_mib).err();
        let best = |of: &dyn Fn(usize) -> u64| gpus.clone().map(of).max().unwrap_or(0);
        // The check that the last of them failed; none fails where a GPU is of the kind.
        let nearest = gpus.clone().map(unfit).max_by_key(|unfit| unfit.map_or(u8::MAX, rank));
        let request = units.request;
        let (missing, asked, most) = match nearest.flatten() {
            None => return self.why_units(units),
            Some(Unfit::Model) => (Missing::GpuModel(request.models.clone()), 1, 0),
            Some(Unfit::Profile) => match &request.amount {
                GpuAmount::Mig { profile, .. } => (Missing::MigProfile(profile.clone()), 1, 0),
                _ => (Missing::Gpus, 1, 0),
            },
            Some(Unfit::Memory) => {
                let has = |row| memory_mib(layout, row, request, self.vm_memory_mib);
                (Missing::GpuMemoryMib, u64::from(request.min_memory_mib), best(&has))
            }
            Some(Unfit::ComputeCapability) => {
                let has =
                    |row: usize| u64::from(layout.hardware.gpus[row].compute_capability_tenths);
                let asked = u64::from(request.min_compute_capability_tenths);
                (Missing::ComputeCapability, asked, best(&has))
            }
            Some(Unfit::Driver) => {
                let (min, max) = (request.min_driver, request.max_driver);
                (Missing::Driver { min, max }, 1, 0)
            }
            Some(Unfit::Pcie) => {
                let has = |row: usize| u64::from(layout.gpus[row].pcie_mbps);
                (Missing::PcieMbps, u64::from(request.min_pcie_mbps), best(&has))
            }
        };
        // Some other GPU may have it and fail for something else.
        Some(Unbound {
            missing,
            scope: Scope::Host,
            asked,
            most: most.min(asked.saturating_sub(1)),
        })
    }

    fn why_units(&self, units: &Units<'_>) -> Option<Unbound> {
        let layout = self.devices.layout();
        let request = units.request;
        if let GpuAmount::Milli(milli) = request.amount {
            let fit = |row: &usize| fitness(layout, *row, request, self.vm_memory_mib).is_ok();
            let free = (0..layout.gpus.len()).filter(fit).map(|row| {
                let used = self.devices.gpus[row];
                if used.slices == 0 { 1000 - used.milli } else { 0 }
            });
            let most = u32::from(free.max().unwrap_or(0));
            let short = u32::from(milli) > most;
            return short.then(|| unbound(Missing::GpuMilli, Scope::Host, u32::from(milli), most));
        }
        let total = units.sum(u64::MAX);
        let most = units.groups().iter().map(|group| units.sum(*group)).max().unwrap_or(0);
        let scope = match request.together {
            _ if total < units.count => Scope::Host,
            GpuGrouping::Any => Scope::Host,
            GpuGrouping::SameSwitch => Scope::OneSwitch,
            GpuGrouping::NvlinkClique => Scope::OneClique,
        };
        let most = if scope == Scope::Host { total } else { most };
        (most < units.count).then(|| unbound(gpu_units(request), scope, units.count, most))
    }

    /// Everything is there by itself: leaves out what has to be near something, in turn.
    fn why_apart(&self) -> Unbound {
        for row in 0..self.wishes.len() {
            let with = |count: u32| {
                let mut ask = self.again(self.units.as_ref().map(|units| units.request));
                ask.wishes[row].count = count;
                ask.binds()
            };
            if with(0) {
                let counts: Vec<u32> = (0..self.wishes[row].count).collect();
                let most = counts.partition_point(|&count| with(count)).saturating_sub(1) as u32;
                let wish = &self.wishes[row];
                let scope = match wish.near {
                    Near::Any => Scope::Host,
                    Near::Cores => Scope::NearCores,
                    Near::Gpus => Scope::NearGpus,
                };
                return unbound(missing(wish), scope, wish.count, most);
            }
        }
        if let Some(units) = self.units.as_ref().filter(|units| units.request.near_cores) {
            let far = GpuRequest { near_cores: false, ..units.request.clone() };
            if self.again(Some(&far)).binds() {
                let fewer = |count: &u32| {
                    let amount = match &units.request.amount {
                        GpuAmount::Whole(_) => GpuAmount::Whole(*count as u16),
                        GpuAmount::Milli(_) => return false,
                        GpuAmount::Mig { profile, .. } => {
                            GpuAmount::Mig { profile: profile.clone(), count: *count as u16 }
                        }
                    };
                    let request = GpuRequest { amount, ..units.request.clone() };
                    self.again(Some(&request)).binds()
                };
                let most = (1..units.count).rev().find(fewer).unwrap_or(0);
                return unbound(gpu_units(units.request), Scope::NearCores, units.count, most);
            }
        }
        unbound(Missing::Alignment, Scope::Host, 1, 0)
    }

    /// The same question with another request for GPUs.
    fn again<'b>(&'b self, gpus: Option<&'b GpuRequest>) -> Ask<'b> {
        Ask {
            devices: self.devices,
            request: self.request,
            need: self.need,
            units: gpus.map(|gpus| Units::new(self.devices, gpus, self.vm_memory_mib)),
            wishes: wishes(self.devices, self.request),
            vm_memory_mib: self.vm_memory_mib,
        }
    }
}

fn unbound(missing: Missing, scope: Scope, asked: u32, most: u32) -> Unbound {
    Unbound { missing, scope, asked: u64::from(asked), most: u64::from(most) }
}

fn missing(wish: &Wish<'_>) -> Missing {
    match wish.kind {
        Kind::Functions(nic) => Missing::NicFunctions { rdma: nic.rdma },
        Kind::Accelerators(asked) => Missing::Accelerators(asked.kind.clone()),
    }
}

fn gpu_units(request: &GpuRequest) -> Missing {
    match &request.amount {
        GpuAmount::Whole(_) => Missing::Gpus,
        GpuAmount::Milli(_) => Missing::GpuMilli,
        GpuAmount::Mig { profile, .. } => Missing::MigPieces(profile.clone()),
    }
}

/// How far a GPU got through the checks.
fn rank(unfit: Unfit) -> u8 {
    match unfit {
        Unfit::Model => 0,
        Unfit::Profile => 1,
        Unfit::Memory => 2,
        Unfit::ComputeCapability => 3,
        Unfit::Driver => 4,
        Unfit::Pcie => 5,
    }
}
