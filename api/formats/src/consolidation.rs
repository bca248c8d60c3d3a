//! Consolidation instances as balcon has them: a fleet that runs, to be put on fewer hosts.
//!
//! One JSON object, packed by gzip or not: `hosts` and `vms` as `[cpu, memory in MiB]`, and
//! `mapping`, the host of each VM now. A host that is on is worth as much as ten TiB of memory that
//! move, so that the objective is in MiB. An answer is a JSON array with the host of each VM.

use crate::table;
use cluster::HostIx;
use cluster::assignment::{Goal, Host, Power, Problem, ProblemError, Resource, Vm};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, thiserror::Error)]
pub enum ConsolidationError {
    #[error("{0}")]
    Unreadable(String),
    #[error("not a consolidation instance: {0}")]
    Json(#[from] serde_json::Error),
    #[error("mapping has {found} entries, {vms} are needed, one for each VM")]
    Mapping { found: usize, vms: usize },
    #[error("{0}")]
    Problem(#[from] ProblemError),
}

#[derive(Deserialize)]
struct Instance {
    hosts: Vec<[u64; 2]>,
    vms: Vec<[u64; 2]>,
    mapping: Vec<u32>,
}

/// What a host that is on is worth, in MiB that move.
pub const HOST_MIB: u64 = 10 << 20;

/// Reads an instance; the problem that is returned is sound.
pub fn read(bytes: &[u8]) -> Result<Problem, ConsolidationError> {
    let text = table::text(bytes);
    let text = text.map_err(|error| ConsolidationError::Unreadable(error.to_string()))?;
    let Instance { hosts, vms, mapping } = serde_json::from_str(&text)?;
    if mapping.len() != vms.len() {
        return Err(ConsolidationError::Mapping { found: mapping.len(), vms: vms.len() });
    }
    let mut shapes: BTreeMap<[u64; 2], u32> = BTreeMap::new();
    let mut problem = Problem {
        resources: ["cpu", "memory_mib"]
            .map(|name| Resource { name: name.into(), transient: false })
            .into(),
        hosts: hosts
            .iter()
            .map(|capacity| Host { capacity: capacity.to_vec(), domains: Vec::new() })
            .collect(),
        ..Problem::default()
    };
    for (demand, &host) in vms.iter().zip(&mapping) {
        let next = shapes.len() as u32;
        let shape = *shapes.entry(*demand).or_insert(next);
        if shape == next {
            problem.shapes.push(demand.to_vec());
        }
        problem.vms.push(Vm { shape, initial: Some(HostIx(host)), allowed: None });
    }
    problem.goals = vec![
        Goal::Energy { resource: 0, hosts: vec![Power { idle: HOST_MIB, span: 0 }; hosts.len()] },
        Goal::Moves {
            vms: vms.iter().map(|demand| demand[1]).collect(),
            between: None,
            busiest: None,
        },
    ];
    problem.check()?;
    Ok(problem)
}

/// The host of each VM, as a JSON array.
pub fn write_mapping(hosts: &[u32]) -> String {
    let hosts: Vec<String> = hosts.iter().map(u32::to_string).collect();
    format!("[{}]\n", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_cost_ten_tib_and_vms_their_memory() {
        let text = br#"{"hosts":[[8,64],[8,64]],"vms":[[2,16],[2,16],[1,8]],"mapping":[0,1,1]}"#;
        let problem = read(text).expect("a good instance");
        assert_eq!(problem.shapes, [vec![2, 16], vec![1, 8]]);
        assert_eq!(problem.vms[2].initial, Some(HostIx(1)));
        let Goal::Moves { vms, .. } = &problem.goals[1] else { panic!("moves are second") };
        assert_eq!(vms, &[16, 16, 8]);
        assert_eq!(write_mapping(&[0, 0, 1]), "[0,0,1]\n");
    }

    #[test]
    fn faults_name_the_field() {
        let told = |text: &str| read(text.as_bytes()).expect_err("a fault").to_string();
        let short = r#"{"hosts":[[8,64]],"vms":[[2,16]],"mapping":[]}"#;
        assert_eq!(told(short), "mapping has 0 entries, 1 are needed, one for each VM");
        let astray = r#"{"hosts":[[8,64]],"vms":[[2,16]],"mapping":[3]}"#;
        assert_eq!(told(astray), "vms[0].initial names row 3, there are 1");
        assert!(told(r#"{"hosts":[[8]]}"#).starts_with("not a consolidation instance: "));
    }
}
