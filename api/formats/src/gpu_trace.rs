//! The 2023 GPU trace: nodes, pods and orders of arrival.
//!
//! Nodes: `sn,cpu_milli,memory_mib,gpu,model`. Pods: `name,cpu_milli,memory_mib,num_gpu,gpu_milli`
//! and in some files `gpu_spec`, the models that will do with `|` between them; other columns are
//! left aside. An order: a line `N` with a rank for each node, by which ties are broken, then the
//! last part of a pod's name a line. An answer: `arrival,pod,node,gpus`.

use crate::table::{Table, TableError};
use std::collections::HashMap;
use std::fmt::Write;

const LARGEST: u32 = u32::MAX / 2;

/// Models are bits of a word.
const MOST_MODELS: usize = 64;

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub cpu_millis: u32,
    pub memory_mib: u32,
    pub gpus: u8,
    pub model: u8,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub name: String,
    pub cpu_millis: u32,
    pub memory_mib: u32,
    pub gpus: u8,
    pub gpu_milli: u16,
    /// Models that will do, by bit; all bits if it does not matter.
    pub models: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    /// The rank of each node.
    pub ranks: Vec<u32>,
    /// Rows of pods as they arrive.
    pub arrivals: Vec<usize>,
}

/// Reads the three files of a trace, each packed or not.
pub fn read(nodes: &[u8], pods: &[u8], order: &[u8]) -> Result<Trace, TableError> {
    let mut models: Vec<String> = Vec::new();
    let nodes = read_nodes(&crate::table::text(nodes)?, &mut models)?;
    let pods = read_pods(&crate::table::text(pods)?, &models)?;
    let (ranks, arrivals) = read_order(&crate::table::text(order)?, nodes.len(), &pods)?;
    Ok(Trace { nodes, pods, ranks, arrivals })
}

/// Where a pod went: a row of a node and rows of its GPUs.
pub type Answer = Option<(usize, Vec<u8>)>;

/// The answers, one for each arrival, as the trace's checkers read them.
pub fn write(trace: &Trace, answers: &[Answer]) -> String {
    let mut text = String::from("arrival,pod,node,gpus\n");
    for (arrival, (pod, answer)) in trace.arrivals.iter().zip(answers).enumerate() {
        let (node, gpus) = match answer {
            Some((node, gpus)) => (trace.nodes[*node].name.as_str(), gpus.as_slice()),
            None => ("", &[][..]),
        };
        let gpus: Vec<String> = gpus.iter().map(u8::to_string).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{arrival},{},{node},{}", trace.pods[*pod].name, gpus.join("|"));
    }
    text
}

fn read_nodes(text: &str, models: &mut Vec<String>) -> Result<Vec<Node>, TableError> {
    let table = Table::read(text)?;
    let (name, model) = (table.column("sn")?, table.column("model")?);
    let (cpu, memory, gpus) =
        (table.column("cpu_milli")?, table.column("memory_mib")?, table.column("gpu")?);
    let mut nodes = Vec::with_capacity(table.len());
    for row in 0..table.len() {
        let at = models.iter().position(|known| known == model.text(row)).unwrap_or(models.len());
        if at == models.len() {
            models.push(model.text(row).to_owned());
        }
        if models.len() > MOST_MODELS {
            return Err(TableError::Meaning(format!("more than {MOST_MODELS} GPU models")));
        }
        nodes.push(Node {
            name: name.text(row).to_owned(),
            cpu_millis: cpu.number(row, LARGEST)?,
            memory_mib: memory.number(row, LARGEST)?,
            gpus: gpus.number(row, 16)? as u8,
            model: at as u8,
        });
    }
    Ok(nodes)
}

fn read_pods(text: &str, models: &[String]) -> Result<Vec<Pod>, TableError> {
    let table = Table::read(text)?;
    let (name, spec) = (table.column("name")?, table.optional("gpu_spec"));
    let (cpu, memory) = (table.column("cpu_milli")?, table.column("memory_mib")?);
    let (gpus, milli) = (table.column("num_gpu")?, table.column("gpu_milli")?);
    let pod = |row: usize| {
        let named = spec.map_or("", |spec| spec.text(row));
        Ok(Pod {
            name: name.text(row).to_owned(),
            cpu_millis: cpu.number(row, LARGEST)?,
            memory_mib: memory.number(row, LARGEST)?,
            gpus: gpus.number(row, 16)? as u8,
            gpu_milli: milli.number(row, 1000)? as u16,
            models: if named.is_empty() { u64::MAX } else { models_named(named, models) },
        })
    };
    (0..table.len()).map(pod).collect()
}

/// A model that no node has is no bit.
fn models_named(names: &str, models: &[String]) -> u64 {
    let bits = names.split('|').filter_map(|name| models.iter().position(|known| known == name));
    bits.fold(0, |set, bit| set | 1 << bit)
}

fn read_order(
    text: &str,
    nodes: usize,
    pods: &[Pod],
) -> Result<(Vec<u32>, Vec<usize>), TableError> {
    let mut lines = text.lines().enumerate();
    let (_, first) = lines.next().unwrap_or((0, ""));
    let ranks: Result<Vec<u32>, _> = first.split_whitespace().skip(1).map(str::parse).collect();
    let ranks = ranks.map_err(|_| value(1, "rank", first, "N and a rank for each node"))?;
    if ranks.len() != nodes {
        return Err(TableError::Meaning(format!(
            "line 1 has {} ranks for {nodes} nodes",
            ranks.len()
        )));
    }
    let last_part = |pod: &Pod| pod.name.rsplit('-').next().unwrap_or("").to_owned();
    let rows: HashMap<String, usize> =
        pods.iter().enumerate().map(|(row, pod)| (last_part(pod), row)).collect();
    let mut arrivals = Vec::new();
    for (line, suffix) in lines
        .map(|(line, suffix)| (line + 1, suffix.trim()))
        .filter(|(_, suffix)| !suffix.is_empty())
    {
        let row = rows
            .get(suffix)
            .ok_or_else(|| value(line, "pod", suffix, "the end of a pod's name"))?;
        arrivals.push(*row);
    }
    Ok((ranks, arrivals))
}

fn value(line: usize, column: &'static str, value: &str, wanted: &'static str) -> TableError {
    TableError::Value { line, column, value: value.to_owned(), wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str =
        "sn,cpu_milli,memory_mib,gpu,model\nn-0,8000,1024,2,A\nn-1,16000,2048,1,B\n";
    const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\npod-0007,1000,10,1,500,A|X,LS\npod-0008,2000,20,0,0,,BE\n";

    fn trace(order: &str) -> Result<Trace, TableError> {
        read(NODES.as_bytes(), PODS.as_bytes(), order.as_bytes())
    }

    #[test]
    fn a_trace_is_read_and_its_answers_are_written() {
        let trace = trace("N 1 0\n0008\n0007\n0007\n").unwrap();
        assert_eq!(
            (trace.ranks.as_slice(), trace.arrivals.as_slice()),
            (&[1, 0][..], &[1, 0, 0][..])
        );
        assert_eq!((trace.pods[0].models, trace.pods[1].models), (0b01, u64::MAX));
        let answers = [Some((1, vec![])), Some((0, vec![0])), None];
        assert_eq!(
            write(&trace, &answers),
            "arrival,pod,node,gpus\n0,pod-0008,n-1,\n1,pod-0007,n-0,0\n2,pod-0007,,\n"
        );
    }

    #[test]
    fn pods_without_a_column_for_models_run_on_any() {
        let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-1,1,1,8,1000\n";
        let trace = read(NODES.as_bytes(), pods.as_bytes(), b"N 0 1\n1\n").unwrap();
        assert_eq!(trace.pods[0].models, u64::MAX);
    }

    #[test]
    fn faults_say_what_to_look_at() {
        assert_eq!(trace("N 1\n").unwrap_err().to_string(), "line 1 has 1 ranks for 2 nodes");
        let unknown = trace("N 0 1\n0009\n").unwrap_err().to_string();
        assert_eq!(unknown, "line 2, pod: \"0009\" is not the end of a pod's name");
    }
}
