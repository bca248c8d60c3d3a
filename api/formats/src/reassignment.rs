//! Machine reassignment, the problem of the ROADEF/EURO challenge of 2012: a fleet that runs, and
//! what it costs.
//!
//! Both files are numbers between blanks, counted from 0. Machines become hosts, processes VMs and
//! services groups; safety capacities become overload goals, balance objectives stranded-capacity
//! goals, and move costs what it costs that VMs are not where they were.

use crate::table;
use cluster::assignment::{Busiest, Distances, Goal, Host, Problem, Resource, Rule, Scope, Vm};
use cluster::{HostIx, VmIx};
use std::collections::BTreeMap;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReassignmentError {
    #[error("{0}")]
    Unreadable(String),
    #[error("number {place}, {what}, is {found:?}; a whole number from 0 to {most} is expected")]
    Number { place: usize, what: &'static str, found: String, most: u64 },
    #[error("ends after {place} numbers, before {what}")]
    Ends { place: usize, what: &'static str },
    #[error("goes on after the last of {place} numbers; are the counts right?")]
    GoesOn { place: usize },
    #[error("process {process} is on machine {machine}, there are {machines}")]
    Machine { process: usize, machine: u64, machines: usize },
}

const LOCATION: Scope = Scope::Level(0);
const NEIGHBOURHOOD: Scope = Scope::Level(1);

/// More machines, services or processes than this are a mistake in the file.
const MOST_ROWS: u64 = 1 << 20;
/// Amounts and costs; the compiled problem has limits of its own.
const MOST: u64 = 1 << 40;

/// Reads a model and the assignment that it starts from, packed by gzip or not.
pub fn read(model: &[u8], initial: &[u8]) -> Result<Problem, ReassignmentError> {
    let (model, initial) = (text(model)?, text(initial)?);
    let mut numbers = Numbers::new(&model);
    let mut problem =
        Problem { levels: vec!["location".into(), "neighbourhood".into()], ..Problem::default() };
    let load_weights = resources(&mut numbers, &mut problem)?;
    let (safe, distances) = machines(&mut numbers, &mut problem)?;
    services(&mut numbers, &mut problem)?;
    let (service_of, move_costs) = processes(&mut numbers, &mut problem)?;
    problem.goals.push(Goal::Overload { weights: load_weights, safe });
    balances(&mut numbers, &mut problem)?;
    let process_weight = numbers.next("the weight of process moves", MOST)?;
    let service_weight = numbers.next("the weight of service moves", MOST)?;
    let machine_weight = numbers.next("the weight of machine moves", MOST)?;
    numbers.end()?;
    problem.goals.push(Goal::Moves {
        vms: move_costs.iter().map(|cost| cost.saturating_mul(process_weight)).collect(),
        between: Some(Distances { weight: machine_weight, pairs: distances }),
        busiest: Some(Busiest { weight: service_weight, group_of: service_of }),
    });
    let mut numbers = Numbers::new(&initial);
    let machines = problem.hosts.len();
    for (process, vm) in problem.vms.iter_mut().enumerate() {
        let machine = numbers.next("the machine of a process", MOST_ROWS)?;
        if machine >= machines as u64 {
            return Err(ReassignmentError::Machine { process, machine, machines });
        }
        vm.initial = Some(HostIx(machine as u32));
    }
    numbers.end()?;
    Ok(problem)
}

/// The machine of each process, as the challenge wants it.
pub fn write_assignment(hosts: &[u32]) -> String {
    let mut text = hosts.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    text.push('\n');
    text
}

fn text(bytes: &[u8]) -> Result<String, ReassignmentError> {
    table::text(bytes).map_err(|error| ReassignmentError::Unreadable(error.to_string()))
}

/// The weights of load, by resource.
fn resources(
    numbers: &mut Numbers<'_>,
    problem: &mut Problem,
) -> Result<Vec<u64>, ReassignmentError> {
    let count = numbers.next("the number of resources", 64)?;
    let mut weights = Vec::new();
    for row in 0..count {
        let transient = numbers.next("whether a resource is transient", 1)? == 1;
        problem.resources.push(Resource { name: format!("r{row}"), transient });
        weights.push(numbers.next("the weight of a load", MOST)?);
    }
    Ok(weights)
}

/// Safe amounts by machine, and distances by pair of machines.
fn machines(
    numbers: &mut Numbers<'_>,
    problem: &mut Problem,
) -> Result<(Vec<Vec<u64>>, Vec<u32>), ReassignmentError> {
    let count = numbers.next("the number of machines", MOST_ROWS)?;
    let resources = problem.resources.len();
    let (mut safe, mut distances) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let neighbourhood = numbers.next("a neighbourhood", MOST_ROWS)? as u32;
        let location = numbers.next("a location", MOST_ROWS)? as u32;
        let capacity = numbers.row(resources, "a capacity", MOST)?;
        problem.hosts.push(Host { capacity, domains: vec![location, neighbourhood] });
        safe.push(numbers.row(resources, "a safety capacity", MOST)?);
        for _ in 0..count {
            distances.push(numbers.next("a cost of moving", u32::MAX.into())? as u32);
        }
    }
    Ok((safe, distances))
}

fn services(numbers: &mut Numbers<'_>, problem: &mut Problem) -> Result<(), ReassignmentError> {
    let count = numbers.next("the number of services", MOST_ROWS)?;
    for service in 0..count as u32 {
        problem.groups.push(Vec::new());
        problem.rules.push(Rule::Apart { group: service, scope: Scope::Host });
        let domains = numbers.next("a least number of locations", MOST_ROWS)? as u32;
        problem.rules.push(Rule::Spread { group: service, scope: LOCATION, domains });
        for _ in 0..numbers.next("the number of dependencies", MOST_ROWS)? {
            let needs = numbers.next("a service that is needed", count.saturating_sub(1))? as u32;
            problem.rules.push(Rule::Dependency { group: service, needs, scope: NEIGHBOURHOOD });
        }
    }
    Ok(())
}

/// The service of each process, and what moving it costs.
fn processes(
    numbers: &mut Numbers<'_>,
    problem: &mut Problem,
) -> Result<(Vec<u32>, Vec<u64>), ReassignmentError> {
    let count = numbers.next("the number of processes", MOST_ROWS)?;
    let services = (problem.groups.len() as u64).saturating_sub(1);
    let (mut service_of, mut costs) = (Vec::new(), Vec::new());
    let mut shapes: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
    for process in 0..count as u32 {
        let service = numbers.next("the service of a process", services)? as u32;
        let demand = numbers.row(problem.resources.len(), "a requirement", MOST)?;
        let next = shapes.len() as u32;
        let shape = *shapes.entry(demand.clone()).or_insert(next);
        if shape == next {
            problem.shapes.push(demand);
        }
        if let Some(members) = problem.groups.get_mut(service as usize) {
            members.push(VmIx(process));
        }
        problem.vms.push(Vm { shape, initial: None, allowed: None });
        service_of.push(service);
        costs.push(numbers.next("the cost of moving a process", MOST)?);
    }
    Ok((service_of, costs))
}

fn balances(numbers: &mut Numbers<'_>, problem: &mut Problem) -> Result<(), ReassignmentError> {
    let last = (problem.resources.len() as u64).saturating_sub(1);
    for _ in 0..numbers.next("the number of balance objectives", MOST_ROWS)? {
        problem.goals.push(Goal::Stranded {
            plenty: numbers.next("a resource", last)? as u32,
            scarce: numbers.next("a resource", last)? as u32,
            target: numbers.next("a target", MOST)?,
            weight: numbers.next("the weight of a balance", MOST)?,
        });
    }
    Ok(())
}

/// Numbers between blanks, with how far they were read.
struct Numbers<'t> {
    words: std::str::SplitAsciiWhitespace<'t>,
    place: usize,
}

impl<'t> Numbers<'t> {
    fn new(text: &'t str) -> Self {
        Self { words: text.split_ascii_whitespace(), place: 0 }
    }

    fn next(&mut self, what: &'static str, most: u64) -> Result<u64, ReassignmentError> {
        let place = self.place;
        let word = self.words.next().ok_or(ReassignmentError::Ends { place, what })?;
        self.place += 1;
        let number = word.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| {
            let found = word.chars().take(40).collect();
            ReassignmentError::Number { place: self.place, what, found, most }
        })
    }

    fn row(
        &mut self,
        length: usize,
        what: &'static str,
        most: u64,
    ) -> Result<Vec<u64>, ReassignmentError> {
        (0..length).map(|_| self.next(what, most)).collect()
    }

    fn end(&mut self) -> Result<(), ReassignmentError> {
        match self.words.next() {
            Some(_) => Err(ReassignmentError::GoesOn { place: self.place }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two resources, two machines, two services of which the second needs the first, three
    /// processes, one balance.
    const MODEL: &str = "2 1 100 0 10
        2 0 0 30 400 16 80 0 1 0 1 10 160 8 80 1 0
        2 2 0 1 1 0
        3 0 12 10 1000 0 10 20 100 1 6 200 1
        1 0 1 20 10
        1 10 100";

    #[test]
    fn a_model_becomes_hosts_vms_rules_and_goals() {
        let problem = read(MODEL.as_bytes(), b"0 1 0").expect("a good model");
        problem.check().expect("a sound problem");
        assert!(problem.resources[0].transient && !problem.resources[1].transient);
        assert_eq!(problem.hosts[1], Host { capacity: vec![10, 160], domains: vec![1, 0] });
        assert_eq!(problem.demand(VmIx(2)), [6, 200]);
        assert_eq!(problem.groups, [vec![VmIx(0), VmIx(1)], vec![VmIx(2)]]);
        let spread = Rule::Spread { group: 0, scope: LOCATION, domains: 2 };
        let needs = Rule::Dependency { group: 1, needs: 0, scope: NEIGHBOURHOOD };
        assert!(problem.rules.contains(&spread) && problem.rules.contains(&needs));
        let Goal::Overload { weights, safe } = &problem.goals[0] else { panic!("loads first") };
        assert_eq!((weights, &safe[1]), (&vec![100, 10], &vec![8, 80]));
        let Goal::Stranded { plenty: 0, scarce: 1, target: 20, weight: 10 } = problem.goals[1]
        else {
            panic!("then balances: {:?}", problem.goals[1]);
        };
        let Goal::Moves { vms, between, busiest } = &problem.goals[2] else { panic!("then moves") };
        assert_eq!((vms, busiest.as_ref().map(|it| it.weight)), (&vec![1000, 100, 1], Some(10)));
        assert_eq!(between.as_ref().map(|it| it.pairs.clone()), Some(vec![0, 1, 1, 0]));
        assert_eq!(write_assignment(&[0, 1, 0]), "0 1 0\n");
    }

    #[test]
    fn what_is_wrong_is_told_by_its_place() {
        let told = |model: &str, initial: &str| {
            read(model.as_bytes(), initial.as_bytes()).expect_err("a fault").to_string()
        };
        assert!(told("2 1 x", "").starts_with("number 3, the weight of a load, is \"x\""));
        assert!(told("2 1", "").contains("ends after 2 numbers, before the weight of a load"));
        assert!(told(&format!("{MODEL} 7"), "0 1 0").contains("goes on after the last of"));
        assert!(told(MODEL, "0 1").contains("before the machine of a process"));
        assert!(told(MODEL, "0 1 2").contains("process 2 is on machine 2, there are 2"));
    }
}
