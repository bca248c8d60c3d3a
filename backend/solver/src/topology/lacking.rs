//! Why a host cannot bind a VM, in one word, and fast: this is asked about every host.

use super::bind::Ask;
use super::devices::Devices;
use super::layout::EVERYWHERE;
use super::summary::{Needs, Summary};
use cluster::{Amounts, Reason, Topology};

/// The first of `INSIDE_REASONS` for which `bind` finds nothing; `None` if it finds something.
///
/// `summary` is that of the devices.
pub(crate) fn lacking(
    devices: &Devices,
    summary: &Summary,
    request: &Topology,
    demand: &Amounts,
) -> Option<Reason> {
    let hardware = &devices.layout().hardware;
    let wanted = request.architecture;
    if wanted.is_some() && wanted != hardware.architecture
        || !request.cpu_features.iter().all(|name| hardware.cpu_features.contains(name))
    {
        return Some(Reason::Architecture);
    }
    if request.watts > devices.watts {
        return Some(Reason::Heat);
    }
    let needs = Needs::new(request, demand);
    if summary.lacks_gpus(&needs) {
        return Some(Reason::Gpus);
    }
    let ask = Ask::new(devices, request, demand);
    if let Some(units) = &ask.units
        && !units.groups().iter().any(|group| units.sum(*group) >= units.count)
    {
        return Some(Reason::Gpus);
    }
    if ask.wishes.iter().any(|wish| wish.free_within(EVERYWHERE) < wish.count) {
        return Some(Reason::Devices);
    }
    if summary.lacks_nodes(&needs) || !ask.stands() {
        return Some(Reason::Numa);
    }
    None
}
