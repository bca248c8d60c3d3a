//! `novaplace replay gpu`: fills a fleet with GPUs as a trace says, under a policy of choice.

use super::Pace;
use crate::{input, output};
use anyhow::Context;
use clap::{Args, ValueEnum};
use formats::gpu_trace::{self, Answer, Pod, Trace};
use serde_json::json;
use solver::fragmentation::{Empty, Fleet, Knowledge, Mix, Policy, Shape, Ties};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Gpu {
    /// Nodes: sn,cpu_milli,memory_mib,gpu,model (packed by gzip or not, as all files here)
    #[arg(long)]
    nodes: PathBuf,
    /// Pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]
    #[arg(long)]
    pods: PathBuf,
    /// Order of arrival: N and a rank for each node, then the end of a pod's name a line
    #[arg(long)]
    order: PathBuf,
    /// How a node is chosen
    #[arg(long, default_value = "default", value_parser = policy)]
    policy: Policy,
    /// Whether the mix of shapes is told beforehand, as ratios, or learned from the arrivals
    #[arg(long, default_value = "given")]
    mix: MixFrom,
    /// Ties between nodes: by the ranks of the order, or at random
    #[arg(long, default_value = "fixed")]
    ties: TiesBy,
    /// Where random numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where each pod went: arrival,pod,node,gpus
    #[arg(long)]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MixFrom {
    Given,
    Online,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TiesBy {
    Fixed,
    Random,
}

fn policy(name: &str) -> Result<Policy, String> {
    let names = || Policy::ALL.map(|(name, _)| name).join(", ");
    let found = Policy::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, policy)| *policy).ok_or_else(|| format!("it must be one of {}", names()))
}

impl Gpu {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (nodes, pods, order) =
            (input::read(&self.nodes)?, input::read(&self.pods)?, input::read(&self.order)?);
        let trace = gpu_trace::read(&nodes, &pods, &order).with_context(|| {
            format!(
                "in {}, {} or {}",
                self.nodes.display(),
                self.pods.display(),
                self.order.display()
            )
        })?;
        // Rows in the order of ranks, so that the lowest row wins a tie.
        let mut by_rank: Vec<usize> = (0..trace.nodes.len()).collect();
        by_rank.sort_by_key(|node| trace.ranks[*node]);

        let begun = Instant::now();
        let mut fleet = self.fleet(&trace, &by_rank);
        let ready = begun.elapsed();
        let mut pace = Pace::default();
        let mut answers: Vec<Answer> = Vec::with_capacity(trace.arrivals.len());
        for pod in &trace.arrivals {
            let shape = shape(&trace.pods[*pod]);
            let begun = Instant::now();
            let chosen = fleet.place(&shape);
            pace.add(begun.elapsed());
            answers.push(chosen.map(|chosen| (by_rank[chosen.host], chosen.gpus.to_vec())));
        }
        std::fs::write(&self.output, gpu_trace::write(&trace, &answers))
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        let allocation = Allocation::of(&trace, &answers);
        let mut figures = pace.figures();
        figures["ready_seconds"] = json!(ready.as_secs_f64());
        figures["placed"] = json!(answers.iter().flatten().count());
        figures["refused"] = json!(answers.iter().filter(|answer| answer.is_none()).count());
        figures["allocation_at_100"] = json!(allocation.at_100);
        figures["allocation_at_130"] = json!(allocation.at_130);
        figures["final"] = json!(allocation.at_the_end);
        output::print(figures)?;
        Ok(ExitCode::SUCCESS)
    }

    fn fleet(&self, trace: &Trace, by_rank: &[usize]) -> Fleet {
        let empty = |node: &usize| {
            let node = &trace.nodes[*node];
            Empty {
                cpu_millis: node.cpu_millis,
                memory_mib: node.memory_mib,
                model: node.model,
                gpus: node.gpus,
            }
        };
        let hosts: Vec<Empty> = by_rank.iter().map(empty).collect();
        let knowledge = match self.mix {
            MixFrom::Given => {
                Knowledge::Given(Mix::given(trace.pods.iter().map(|pod| (shape(pod), 1))))
            }
            MixFrom::Online => Knowledge::Online,
        };
        let ties = match self.ties {
            TiesBy::Fixed => Ties::Lowest,
            TiesBy::Random => Ties::Random(self.seed),
        };
        Fleet::new(&hosts, self.policy, knowledge, ties)
    }
}

fn shape(pod: &Pod) -> Shape {
    let shape = match pod.gpus {
        0 => Shape::without_gpus(pod.cpu_millis, pod.memory_mib),
        1 => Shape::of_share(pod.cpu_millis, pod.memory_mib, pod.gpu_milli),
        gpus => Shape::of_whole(pod.cpu_millis, pod.memory_mib, gpus),
    };
    shape.on_models(pod.models)
}

/// Percent of all GPUs that are allocated, as means over the arrivals at which what was asked for
/// until then rounds to 100 and 130 percent of them.
struct Allocation {
    at_100: Option<f64>,
    at_130: Option<f64>,
    at_the_end: f64,
}

impl Allocation {
    fn of(trace: &Trace, answers: &[Answer]) -> Self {
        let total: f64 = trace.nodes.iter().map(|node| 1000.0 * f64::from(node.gpus)).sum();
        let percent = |millis: u64| 100.0 * millis as f64 / total.max(1.0);
        let (mut asked, mut given) = (0u64, 0u64);
        let (mut at_100, mut at_130) = (Mean::default(), Mean::default());
        for (pod, answer) in trace.arrivals.iter().zip(answers) {
            let millis = u64::from(shape(&trace.pods[*pod]).gpu_millis());
            asked += millis;
            given += if answer.is_some() { millis } else { 0 };
            match percent(asked).round() as u64 {
                100 => at_100.add(percent(given)),
                130 => at_130.add(percent(given)),
                _ => {}
            }
        }
        Self { at_100: at_100.value(), at_130: at_130.value(), at_the_end: percent(given) }
    }
}

#[derive(Default)]
struct Mean {
    sum: f64,
    number: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.number += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.number > 0).then(|| self.sum / self.number as f64)
    }
}
