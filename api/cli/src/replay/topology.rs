//! `novaplace replay topology`: VMs on servers with two NUMA nodes, in racks and groups.

use super::Pace;
use crate::{input, output};
use anyhow::Context;
use clap::{Args, ValueEnum};
use formats::numa_trace::{self, Answer, Membership, Request, Strategy, Trace};
use serde_json::json;
use solver::fragmentation::numa::{Company, Node, NumaFleet, Part};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Topology {
    /// Directory with PM_res.csv.gz and topology_provider_topology_provider.csv.gz
    #[arg(long)]
    dir: PathBuf,
    /// Requests: flavor_vcpus,flavor_ram,numa,strategy,group,domain (packed by gzip or not)
    #[arg(long)]
    requests: PathBuf,
    /// How a server is chosen
    #[arg(long, default_value = "default")]
    policy: Policy,
    /// Where each VM went: request,host,numa
    #[arg(long)]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Where the room left is worth most to what comes
    Default,
    /// The first server and node with room
    #[value(name = "first_fit")]
    FirstFit,
}

impl Topology {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let servers = input::read(&self.dir.join("PM_res.csv.gz"))?;
        let racks = input::read(&self.dir.join("topology_provider_topology_provider.csv.gz"))?;
        let requests = input::read(&self.requests)?;
        let trace = numa_trace::read(&servers, &racks, &requests)
            .with_context(|| format!("in {} or {}", self.dir.display(), self.requests.display()))?;
        let mut pace = Pace::default();
        let mut fleet = fleet(&trace);
        let mut groups = Groups::default();
        let mut answers: Vec<Answer> = Vec::with_capacity(trace.requests.len());
        for request in &trace.requests {
            let begun = Instant::now();
            let answer = place(&mut fleet, &mut groups, &trace, request, self.policy);
            pace.add(begun.elapsed());
            answers.push(answer);
        }
        std::fs::write(&self.output, numa_trace::write(&answers))
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        let accepted =
            || trace.requests.iter().zip(&answers).filter(|(_, answer)| answer.is_some());
        let mut figures = pace.figures();
        figures["accepted"] = json!(accepted().count());
        figures["refused"] = json!(answers.len() - accepted().count());
        figures["vcpus_accepted"] =
            json!(accepted().map(|(request, _)| u64::from(request.vcpus)).sum::<u64>());
        output::print(figures)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Amounts are doubled, so that half of an odd one is whole.
fn fleet(trace: &Trace) -> NumaFleet {
    let nodes = |server: &numa_trace::Server| {
        server.nodes.iter().map(|node| Node { cpu: 2 * node.vcpus, memory: 2 * node.ram }).collect()
    };
    NumaFleet::new(trace.servers.iter().map(nodes).collect())
}

fn place(
    fleet: &mut NumaFleet,
    groups: &mut Groups,
    trace: &Trace,
    request: &Request,
    policy: Policy,
) -> Answer {
    let part = match request.split {
        true => Part { cpu: request.vcpus, memory: request.ram, parts: 2 },
        false => Part { cpu: 2 * request.vcpus, memory: 2 * request.ram, parts: 1 },
    };
    let company = match request.group {
        Some(member) if member.strategy == Strategy::Affinity && groups.is_new(&member) => {
            Company::FirstOfMany
        }
        _ => Company::Alone,
    };
    let may = groups.allowed(trace, request.group.as_ref());
    let seat = match policy {
        Policy::Default => fleet.place(&part, company, may),
        Policy::FirstFit => fleet.place_first(&part, may),
    }?;
    if let Some(member) = &request.group {
        groups.join(member, seat.host);
    }
    Some((seat.host, if request.split { None } else { seat.nodes.first().copied() }))
}

/// Where the members of each group are: servers, with the domain of each member.
#[derive(Debug, Default)]
struct Groups {
    members: HashMap<u32, Vec<(usize, u32)>>,
}

impl Groups {
    fn is_new(&self, member: &Membership) -> bool {
        !self.members.contains_key(&member.group)
    }

    fn join(&mut self, member: &Membership, server: usize) {
        self.members.entry(member.group).or_default().push((server, member.domain));
    }

    /// Which servers a member may go to.
    fn allowed<'a>(
        &'a self,
        trace: &'a Trace,
        member: Option<&'a Membership>,
    ) -> impl Fn(usize) -> bool + use<'a> {
        let placed = member
            .and_then(|member| self.members.get(&member.group))
            .map_or(&[][..], Vec::as_slice);
        move |server| match member.map(|member| (member.strategy, member.domain)) {
            None => true,
            Some((Strategy::Affinity, _)) => placed.iter().all(|(other, _)| *other == server),
            Some((Strategy::AntiAffinity, _)) => placed.iter().all(|(other, _)| *other != server),
            Some((Strategy::FaultDomain, domain)) => {
                let rack = |server: usize| trace.servers[server].rack;
                placed.iter().all(|(other, of)| *of == domain || rack(*other) != rack(server))
            }
        }
    }
}
