//! Moves that pay: off hosts that are at risk, and off hosts that could be off.

use super::load::Loads;

/// What a move has to gain, and how many may still be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thrift {
    /// In watts.
    pub(super) price: f64,
    pub(super) moves: u32,
}

/// Opens hosts for what the costliest ones have too much of, where that gains more than a host.
pub(super) fn open(loads: &mut Loads<'_>, thrift: &mut Thrift) {
    while let Some(fresh) = loads.fresh() {
        let Some(host) = costliest(loads) else { return };
        let mut total = 0.0;
        let mut went = Vec::new();
        while went.len() < thrift.moves as usize {
            let gain =
                |vm: u32| loads.delta(vm, host, -1.0) + loads.delta(vm, fresh, 1.0) + thrift.price;
            let priced = loads.vms[host as usize].iter().map(|&vm| (gain(vm), vm));
            let best =
                priced.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            // The first pays for the host, the others have to be worth it.
            let Some((gain, vm)) = best.filter(|best| went.is_empty() || best.0 < 0.0) else {
                break;
            };
            total += gain;
            loads.remove(vm, host);
            loads.add(vm, fresh);
            went.push(vm);
        }
        if total < 0.0 {
            thrift.moves -= went.len() as u32;
            continue;
        }
        for vm in went {
            loads.remove(vm, fresh);
            loads.add(vm, host);
        }
        return;
    }
}

fn costliest(loads: &Loads<'_>) -> Option<u32> {
    let cost = |host: u32| loads.cost[host as usize];
    loads.on.iter().copied().max_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(b.cmp(&a)))
}

/// VMs leave hosts one by one while that gains more than it costs, the costliest hosts first.
pub(super) fn relieve(loads: &mut Loads<'_>, thrift: &mut Thrift) {
    let mut hosts = loads.on.clone();
    hosts.sort_by(|&one, &other| {
        loads.cost[other as usize].total_cmp(&loads.cost[one as usize]).then(one.cmp(&other))
    });
    for host in hosts {
        while thrift.moves > 0 {
            let Some((vm, to)) = best_move(loads, host, thrift.price) else { break };
            loads.remove(vm, host);
            loads.add(vm, to);
            thrift.moves -= 1;
        }
    }
}

/// The VM that gains most by leaving a host, and where it goes.
fn best_move(loads: &Loads<'_>, host: u32, price: f64) -> Option<(u32, u32)> {
    let mut best: Option<(f64, u32, u32)> = None;
    for &vm in &loads.vms[host as usize] {
        let leaves = loads.delta(vm, host, -1.0) + price;
        if leaves >= best.map_or(0.0, |best| best.0) {
            continue;
        }
        let Some((comes, to)) = loads.best(vm, Some(host), true) else { continue };
        if leaves + comes < best.map_or(0.0, |best| best.0) {
            best = Some((leaves + comes, vm, to));
        }
    }
    best.map(|(_, vm, to)| (vm, to))
}

/// Hosts are emptied, those with the fewest VMs first, where what is saved is worth all the moves.
pub(super) fn empty(loads: &mut Loads<'_>, thrift: &mut Thrift) {
    let mut hosts = loads.on.clone();
    hosts.sort_by_key(|&host| (loads.vms[host as usize].len(), host));
    for host in hosts {
        if loads.vms[host as usize].len() <= thrift.moves as usize {
            empty_one(loads, host, thrift);
        }
    }
}

fn empty_one(loads: &mut Loads<'_>, host: u32, thrift: &mut Thrift) {
    let mut vms = loads.vms[host as usize].clone();
    let size = |vm: u32| {
        let [mean, variance] = loads.demands[vm as usize].later;
        mean + variance.max(0.0).sqrt()
    };
    vms.sort_by(|&one, &other| size(other).total_cmp(&size(one)).then(one.cmp(&other)));
    let mut total = -loads.cost[host as usize];
    let mut went = Vec::with_capacity(vms.len());
    for &vm in &vms {
        let Some((comes, to)) = loads.best(vm, Some(host), false) else { break };
        total += comes + thrift.price;
        if total >= 0.0 {
            break;
        }
        loads.add(vm, to);
        went.push((vm, to));
    }
    if went.len() == vms.len() {
        vms.iter().for_each(|&vm| loads.remove(vm, host));
        thrift.moves -= went.len() as u32;
    } else {
        went.iter().for_each(|&(vm, to)| loads.remove(vm, to));
    }
}

/// Two VMs change places wherever that is worth two moves.
pub(super) fn exchange(loads: &mut Loads<'_>, thrift: &mut Thrift) {
    let mut hosts = loads.on.clone();
    hosts.sort_unstable();
    for (place, &host) in hosts.iter().enumerate() {
        for &other in &hosts[..place] {
            while thrift.moves >= 2 {
                let Some((vm, partner)) = best_exchange(loads, host, other, thrift.price) else {
                    break;
                };
                loads.remove(vm, host);
                loads.remove(partner, other);
                loads.add(vm, other);
                loads.add(partner, host);
                thrift.moves -= 2;
            }
        }
    }
}

fn best_exchange(loads: &Loads<'_>, host: u32, other: u32, price: f64) -> Option<(u32, u32)> {
    let mut best: Option<(f64, u32, u32)> = None;
    for &vm in &loads.vms[host as usize] {
        for &partner in &loads.vms[other as usize] {
            let gain = loads.exchange_delta(vm, host, partner, other) + 2.0 * price;
            if gain < best.map_or(0.0, |best| best.0) {
                best = Some((gain, vm, partner));
            }
        }
    }
    best.map(|(_, vm, partner)| (vm, partner))
}
