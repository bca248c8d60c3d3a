//! Thermal: what the hosts of a rack draw above what it is cooled for, and single hosts above their
//! own thermal limit, in milliwatts. The range is from what is above now to everything at its peak.

use super::Natural;
use super::facts::Facts;
use cluster::Level;
use cluster::assignment::{Goal, Scope};

pub(super) fn goals(facts: &mut Facts<'_>) -> Natural {
    let (resource, curves) = (facts.cpu(), facts.curves(|_| 1));
    let mut goals = Vec::new();
    if let Some(scope) = facts.scope(&Level::Rack) {
        let limit = u64::from(facts.setting.rack_limit_watts) * 1_000;
        let limits = vec![limit; facts.domains(scope)];
        goals.push(Goal::Heat { resource, curves: curves.clone(), scope, limits });
    }
    let limit = |row: usize| match facts.host(row).hardware.thermal_limit_watts {
        0 => None,
        watts => Some(u64::from(watts) * 1_000),
    };
    let limits: Vec<Option<u64>> = (0..facts.hosts()).map(limit).collect();
    if limits.iter().any(Option::is_some) {
        // Without a limit a host may draw whatever it can.
        let peak = curves.points.iter().flatten().copied().max().unwrap_or(0);
        let limits = limits.into_iter().map(|limit| limit.unwrap_or(peak)).collect();
        goals.push(Goal::Heat { resource, curves, scope: Scope::Host, limits });
    }
    Natural { goals, per_unit: 1 }
}
