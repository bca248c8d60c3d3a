//! Limits on what enters the state. The wire checks shape and spelling; these are the bounds that
//! keep arithmetic exact and tables finite, whoever the caller is.

use crate::report::UseReport;
use crate::request::Refusal;
use cluster::{Amounts, Dimensions, Host, MAX_AMOUNT, Name, Strength, Vm};

/// Shortest and longest time a reservation may be held.
pub const HOLD_TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;

/// Most VMs in one batch: its command stays within what one log record may hold.
pub const MAX_BATCH: usize = 10_000;

/// Most hosts in one piece of a report: its command stays well below what a log record may hold.
pub const MAX_REPORTS: usize = 10_000;

/// Most hosts that one placement may name to choose from.
const MAX_AMONG: usize = 20_000;

/// Most entries in any one list of a host or VM.
const MAX_LIST: usize = 256;
const MAX_OVERCOMMIT_PERMILLE: u64 = 100_000;
const MAX_PREFERENCE: u16 = 1_000;

pub(crate) fn host(host: &Host, dimensions: &Dimensions) -> Result<(), Refusal> {
    amounts("capacity", &host.capacity, dimensions, MAX_AMOUNT)?;
    amounts("reserved", &host.reserved, dimensions, MAX_AMOUNT)?;
    amounts("overcommit_permille", &host.overcommit_permille, dimensions, MAX_OVERCOMMIT_PERMILLE)?;
    at_most("labels", host.labels.len())?;
    at_most("taints", host.taints.len())?;
    at_most("latencies", host.latencies.len())?;
    at_most("datastores", host.datastores.len())?;
    host.hardware.check().map_err(|error| invalid("hardware", &error.to_string()))
}

pub(crate) fn vm(vm: &Vm, dimensions: &Dimensions) -> Result<(), Refusal> {
    demand(&vm.demand, dimensions)?;
    if let Some(topology) = &vm.topology {
        topology.check().map_err(|error| invalid("topology", &error.to_string()))?;
    }
    at_most("labels", vm.labels.len())?;
    at_most("groups", vm.groups.len())?;
    at_most("selectors", vm.selectors.len())?;
    at_most("tolerations", vm.tolerations.len())?;
    at_most("affinity", vm.affinities.len())?;
    at_most("spread", vm.spreads.len())?;
    at_most("preferred_hosts", vm.preferred_hosts.len())?;
    at_most("excluded_hosts", vm.excluded_hosts.len())?;
    at_most("datastores", vm.datastores.len())?;
    at_most("data", vm.data.len())?;
    at_most("hints.colocate_with", vm.hints.colocate_with.len())?;
    for affinity in &vm.affinities {
        strength("affinity.strength", affinity.strength)?;
    }
    for spread in &vm.spreads {
        strength("spread.strength", spread.strength)?;
        if spread.max_skew == 0 {
            return Err(invalid("spread.max_skew", "is 0; at least 1 is needed"));
        }
    }
    if vm.data.iter().any(|data| !(1..=MAX_PREFERENCE).contains(&data.weight)) {
        return Err(invalid("data.weight", "must be from 1 to 1000"));
    }
    Ok(())
}

pub(crate) fn demand(demand: &Amounts, dimensions: &Dimensions) -> Result<(), Refusal> {
    amounts("demand", demand, dimensions, MAX_AMOUNT)
}

pub(crate) fn use_report(report: &UseReport, dimensions: &Dimensions) -> Result<(), Refusal> {
    amounts("used", &report.used, dimensions, MAX_AMOUNT)
}

pub(crate) fn hold_ttl(ttl_ms: Option<u64>) -> Result<(), Refusal> {
    match ttl_ms {
        Some(ttl_ms) if !HOLD_TTL_MS.contains(&ttl_ms) => Err(invalid(
            "hold_ttl_ms",
            &format!(
                "is {ttl_ms}; it must be from {} to {}",
                HOLD_TTL_MS.start(),
                HOLD_TTL_MS.end()
            ),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn among(hosts: &[Name]) -> Result<(), Refusal> {
    if hosts.len() <= MAX_AMONG {
        return Ok(());
    }
    let problem = format!("names {} hosts; at most {MAX_AMONG} are allowed", hosts.len());
    Err(invalid("among", &problem))
}

fn amounts(field: &str, amounts: &Amounts, dims: &Dimensions, max: u64) -> Result<(), Refusal> {
    if amounts.width() > dims.len() {
        return Err(invalid(field, "has a dimension that is not declared"));
    }
    match amounts.iter().find(|(_, amount)| *amount > max) {
        Some((dim, amount)) => Err(invalid(
            &format!("{field}.{}", dims.name(dim)),
            &format!("is {amount}; at most {max} is allowed"),
        )),
        None => Ok(()),
    }
}

fn strength(field: &str, strength: Strength) -> Result<(), Refusal> {
    match strength {
        Strength::Preferred(weight) if !(1..=MAX_PREFERENCE).contains(&weight) => {
            Err(invalid(field, "must be from 1 to 1000"))
        }
        _ => Ok(()),
    }
}

fn at_most(field: &str, len: usize) -> Result<(), Refusal> {
    if len <= MAX_LIST {
        return Ok(());
    }
    Err(invalid(field, &format!("has {len} entries; at most {MAX_LIST} are allowed")))
}

pub(crate) fn invalid(field: &str, problem: &str) -> Refusal {
    Refusal::Invalid { field: field.into(), problem: problem.into() }
}
