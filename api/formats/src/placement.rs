//! Placement instances: VMs of a few flavours on hosts with power curves.
//!
//! One JSON object: `flavours` with an amount for each of `resources`, `vms` as rows of flavours,
//! `hosts` with `cap`, `idle_mw` and `max_mw`, `groups` of VMs that must be on different hosts, and
//! `current`, the host of each VM now. Wanted is little power, in mW, plus `w_imb_mw` times the
//! highest utilisation. The first resource is the CPU, which makes the work. An answer is a JSON
//! array with the host of each VM.

use cluster::assignment::{Goal, Host, Power, Problem, ProblemError, Resource, Rule, Scope, Vm};
use cluster::{HostIx, VmIx};
use serde::Deserialize;

#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    #[error("not a placement instance: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Problem(#[from] ProblemError),
    #[error("hosts[{host}].max_mw is {max_mw}, below its idle_mw of {idle_mw}")]
    Power { host: usize, idle_mw: u64, max_mw: u64 },
    #[error("current has {found} entries, {vms} are needed, one for each VM")]
    Current { found: usize, vms: usize },
}

#[derive(Deserialize)]
struct Instance {
    resources: Vec<String>,
    flavours: Vec<Vec<u64>>,
    vms: Vec<u32>,
    hosts: Vec<Machine>,
    #[serde(default)]
    groups: Vec<Vec<u32>>,
    #[serde(default)]
    current: Option<Vec<u32>>,
    #[serde(default)]
    w_imb_mw: u64,
}

#[derive(Deserialize)]
struct Machine {
    cap: Vec<u64>,
    idle_mw: u64,
    max_mw: u64,
}

/// Reads an instance; the problem that is returned is sound.
pub fn read(text: &[u8]) -> Result<Problem, PlacementError> {
    let instance: Instance = serde_json::from_slice(text)?;
    let vms = instance.vms.len();
    if let Some(current) = instance.current.as_ref().filter(|current| current.len() != vms) {
        return Err(PlacementError::Current { found: current.len(), vms });
    }
    let mut powers = Vec::with_capacity(instance.hosts.len());
    for (host, &Machine { idle_mw, max_mw, .. }) in instance.hosts.iter().enumerate() {
        let span = max_mw.checked_sub(idle_mw);
        let span = span.ok_or(PlacementError::Power { host, idle_mw, max_mw })?;
        powers.push(Power { idle: idle_mw, span });
    }
    let initial = |vm: usize| instance.current.as_ref().map(|current| HostIx(current[vm]));
    let vm = |(row, &shape): (usize, &u32)| Vm { shape, initial: initial(row), allowed: None };
    let apart = |group| Rule::Apart { group, scope: Scope::Host };
    let problem = Problem {
        vms: instance.vms.iter().enumerate().map(vm).collect(),
        resources: instance
            .resources
            .into_iter()
            .map(|name| Resource { name, transient: false })
            .collect(),
        levels: Vec::new(),
        hosts: instance
            .hosts
            .into_iter()
            .map(|machine| Host { capacity: machine.cap, domains: Vec::new() })
            .collect(),
        shapes: instance.flavours,
        rules: (0..instance.groups.len() as u32).map(apart).collect(),
        groups: instance
            .groups
            .into_iter()
            .map(|members| members.into_iter().map(VmIx).collect())
            .collect(),
        fabrics: Vec::new(),
        goals: vec![
            Goal::Energy { resource: 0, hosts: powers },
            Goal::Peak { weight: instance.w_imb_mw },
        ],
        standing: Vec::new(),
    };
    problem.check()?;
    Ok(problem)
}

/// An answer as the file that tools for these instances read.
pub fn write_assignment(hosts: &[u32]) -> String {
    let hosts: Vec<String> = hosts.iter().map(u32::to_string).collect();
    format!("[{}]\n", hosts.join(","))
}

/// Trade-offs as tools that score fronts read them.
pub fn write_front(points: &[&[u32]]) -> String {
    let point =
        |hosts: &&[u32]| format!("{{\"assignment\":{}}}", write_assignment(hosts).trim_end());
    let points: Vec<String> = points.iter().map(point).collect();
    format!("[{}]\n", points.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"name":"s","seed":1,"resources":["cpu_milli","mem_mb"],
        "flavours":[[1000,2048],[2000,1024]],"vms":[0,1,1],
        "hosts":[{"type":0,"cap":[4000,8192],"idle_mw":100,"max_mw":300},
                 {"type":1,"cap":[8000,8192],"idle_mw":150,"max_mw":350}],
        "groups":[[1,2]],"current":[0,0,1],"w_imb_mw":1000}"#;

    #[test]
    fn an_instance_becomes_a_problem() {
        let problem = read(SMALL.as_bytes()).unwrap();
        assert_eq!(problem.hosts[1].capacity, [8000, 8192]);
        assert_eq!(problem.demand(VmIx(2)), [2000, 1024]);
        assert_eq!(problem.vms[2].initial, Some(HostIx(1)));
        assert_eq!(problem.rules, [Rule::Apart { group: 0, scope: Scope::Host }]);
        let power = |idle, span| Power { idle, span };
        assert_eq!(
            problem.goals,
            [
                Goal::Energy { resource: 0, hosts: vec![power(100, 200), power(150, 200)] },
                Goal::Peak { weight: 1000 }
            ]
        );
        assert_eq!(write_assignment(&[1, 0, 1]), "[1,0,1]\n");
        let front = write_front(&[&[1, 0], &[0, 1]]);
        assert_eq!(front, "[{\"assignment\":[1,0]},\n{\"assignment\":[0,1]}]\n");
    }

    #[test]
    fn faults_are_named() {
        let check = |from: &str, to: &str, expected: &str| {
            let error = read(SMALL.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            r#""max_mw":300"#,
            r#""max_mw":30"#,
            "hosts[0].max_mw is 30, below its idle_mw of 100",
        );
        check("[0,0,1]", "[0,0]", "current has 2 entries, 3 are needed");
        check("[0,0,1]", "[0,0,9]", "vms[2].initial names row 9, there are 2");
        check("[[1,2]]", "[[1,3]]", "groups[0] names row 3, there are 3");
        check(r#""vms":[0,1,1],"#, "", "missing field `vms`");
    }
}
