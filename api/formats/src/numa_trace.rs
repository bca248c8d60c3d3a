//! The trace of servers with two NUMA nodes.
//!
//! Servers: `CPU1,RAM1,CPU2,RAM2`, what is free on either node. Racks: `host_id,rack_id`, where
//! server i is `host-i`. Requests: `flavor_vcpus,flavor_ram,numa,strategy,group,domain` in order of
//! arrival. `numa` 1 asks for one node, 2 for half on each. Members of a group (of one strategy) go
//! to one server (`affinity`), to different ones (`anti-affinity`), or, where their domains differ,
//! to different racks (`fault_domain`). An answer: `request,host,numa`.

use crate::table::{Table, TableError, text};
use std::collections::HashMap;
use std::fmt::Write;

const LARGEST: u32 = u32::MAX / 4;

/// Free on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub vcpus: u32,
    pub ram: u32,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub nodes: [Free; 2],
    pub rack: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    Affinity,
    AntiAffinity,
    FaultDomain,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub vcpus: u32,
    pub ram: u32,
    /// Half on each node, or all on one.
    pub split: bool,
    pub group: Option<Membership>,
}

#[derive(Clone, Copy, Debug)]
pub struct Membership {
    pub strategy: Strategy,
    /// Rows of groups; equal for members of one group.
    pub group: u32,
    pub domain: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub servers: Vec<Server>,
    pub requests: Vec<Request>,
}

/// Reads the three files of a trace, each packed or not.
pub fn read(servers: &[u8], racks: &[u8], requests: &[u8]) -> Result<Trace, TableError> {
    Ok(Trace {
        servers: read_servers(&text(servers)?, &text(racks)?)?,
        requests: read_requests(&text(requests)?)?,
    })
}

/// Where a request went: a row of a server, and a node where it takes one only.
pub type Answer = Option<(usize, Option<u8>)>;

/// The answers, one for each request, as the trace's checkers read them.
pub fn write(answers: &[Answer]) -> String {
    let mut text = String::from("request,host,numa\n");
    for (request, answer) in answers.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = match answer {
            Some((host, Some(node))) => writeln!(text, "{request},host-{host},{node}"),
            Some((host, None)) => writeln!(text, "{request},host-{host},"),
            None => writeln!(text, "{request},,"),
        };
    }
    text
}

/// Rows for names, in the order in which they are first seen.
#[derive(Default)]
struct Names<'a>(HashMap<(&'a str, &'a str), u32>);

impl<'a> Names<'a> {
    fn row(&mut self, kind: &'a str, name: &'a str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry((kind, name)).or_insert(next)
    }
}

fn read_servers(servers: &str, racks: &str) -> Result<Vec<Server>, TableError> {
    let table = Table::read(racks)?;
    let (host, rack) = (table.column("host_id")?, table.column("rack_id")?);
    let rack_of: HashMap<&str, &str> =
        (0..table.len()).map(|row| (host.text(row), rack.text(row))).collect();
    let table = Table::read(servers)?;
    let columns = ["CPU1", "RAM1", "CPU2", "RAM2"];
    let mut names = Names::default();
    let mut found = Vec::with_capacity(table.len());
    for row in 0..table.len() {
        let amount = |at: usize| table.column(columns[at])?.number(row, LARGEST);
        let name = format!("host-{row}");
        let rack = rack_of.get(name.as_str());
        let rack = rack.ok_or_else(|| TableError::Meaning(format!("no rack_id for {name}")))?;
        found.push(Server {
            nodes: [
                Free { vcpus: amount(0)?, ram: amount(1)? },
                Free { vcpus: amount(2)?, ram: amount(3)? },
            ],
            rack: names.row("", rack),
        });
    }
    Ok(found)
}

fn read_requests(text: &str) -> Result<Vec<Request>, TableError> {
    let table = Table::read(text)?;
    let (vcpus, ram, numa) =
        (table.column("flavor_vcpus")?, table.column("flavor_ram")?, table.column("numa")?);
    let (strategy, group, domain) =
        (table.column("strategy")?, table.column("group")?, table.column("domain")?);
    let (mut groups, mut domains) = (Names::default(), Names::default());
    let mut requests = Vec::with_capacity(table.len());
    for row in 0..table.len() {
        let wrong = |column: &'static str, value: &str, wanted: &'static str| TableError::Value {
            line: row + 2,
            column,
            value: value.to_owned(),
            wanted,
        };
        let strategy_of_row = match strategy.text(row) {
            "" => None,
            "affinity" => Some(Strategy::Affinity),
            "anti-affinity" => Some(Strategy::AntiAffinity),
            "fault_domain" => Some(Strategy::FaultDomain),
            other => {
                return Err(wrong(
                    "strategy",
                    other,
                    "affinity, anti-affinity, fault_domain or empty",
                ));
            }
        };
        let split = match numa.text(row) {
            "1" => false,
            "2" => true,
            other => return Err(wrong("numa", other, "1 or 2")),
        };
        requests.push(Request {
            vcpus: vcpus.number(row, LARGEST)?,
            ram: ram.number(row, LARGEST)?,
            split,
            group: strategy_of_row.map(|kind| Membership {
                strategy: kind,
                group: groups.row(strategy.text(row), group.text(row)),
                domain: domains.row("", domain.text(row)),
            }),
        });
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: &str = "CPU1,RAM1,CPU2,RAM2\n16,32,8,16\n4,8,4,8\n";
    const RACKS: &str = "host_id,rack_id\nhost-1,7\nhost-0,9\nhost-2,9\n";
    const REQUESTS: &str = "flavor_vcpus,flavor_ram,numa,strategy,group,domain\n4,8,1,affinity,0,\n4,8,2,anti-affinity,0,\n2,4,1,,,\n";

    #[test]
    fn a_trace_is_read_and_its_answers_are_written() {
        let trace = read(SERVERS.as_bytes(), RACKS.as_bytes(), REQUESTS.as_bytes()).unwrap();
        assert_eq!(trace.servers[0].nodes[1], Free { vcpus: 8, ram: 16 });
        assert_ne!(trace.servers[0].rack, trace.servers[1].rack);
        let groups: Vec<_> =
            trace.requests.iter().map(|request| request.group.map(|group| group.group)).collect();
        assert_eq!(groups, [Some(0), Some(1), None], "a group belongs to its strategy");
        assert_eq!(
            trace.requests.iter().map(|request| request.split).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert_eq!(
            write(&[Some((1, Some(1))), Some((0, None)), None]),
            "request,host,numa\n0,host-1,1\n1,host-0,\n2,,\n"
        );
    }

    #[test]
    fn faults_say_what_to_look_at() {
        let fault = |servers: &str, requests: &str| {
            read(servers.as_bytes(), RACKS.as_bytes(), requests.as_bytes()).unwrap_err().to_string()
        };
        let many = format!("{SERVERS}1,1,1,1\n1,1,1,1\n");
        assert_eq!(fault(&many, REQUESTS), "no rack_id for host-3");
        let wrong = REQUESTS.replace(",2,anti", ",3,anti");
        assert_eq!(fault(SERVERS, &wrong), "line 3, numa: \"3\" is not 1 or 2");
        let wrong = REQUESTS.replace("anti-affinity", "anti");
        assert!(fault(SERVERS, &wrong).starts_with("line 3, strategy: \"anti\" is not affinity"));
    }
}
