//! One filter and score policy over a fleet, beside NovaCron's way of doing it, in the same run.

use crate::upstream_policy::{Action, Attributes, Context, Engine, Rule, find, number};
use ::policy::{
    ActivateError, ActiveSet, Configuration, Diagnostic, EvaluateError, PolicyType, Request,
    Scratch, Syntax, Table, Value, Verdicts, load,
};
use fixture::Dice;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// How often the policy is evaluated; the middle time is reported.
const ROUNDS: usize = 201;

const POLICY: &str = r#"
policy "Headroom" {
  parameters { param "ceiling" { type = "float" default = 90 } }
  rules {
    rule "does not fit" {
      when { candidateNode.maintenance_scheduled == true
             || candidateNode.available_memory < vm.memory }
      then { filter "does not fit" }
    }
    rule "headroom" {
      when { candidateNode.metrics["cpu.utilization"] < param.ceiling }
      then { score (100 - candidateNode.metrics["cpu.utilization"])
                   + candidateNode.power_efficiency * 30 "headroom and power" }
    }
  }
}
"#;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyReport {
    pub hosts: usize,
    pub seed: u64,
    pub evaluate_p50_ms: f64,
    pub evaluate_p99_ms: f64,
    pub upstream_ms: f64,
    pub speedup_over_upstream: f64,
    /// Hosts that were left.
    pub feasible: usize,
    /// Whether both left the same hosts with the same scores, best first.
    pub same_answer: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyBenchError {
    #[error("the bench's own policy is not valid: {0:?}")]
    Load(Vec<Diagnostic>),
    #[error(transparent)]
    Activate(#[from] ActivateError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

/// Measures both over the same hosts.
pub fn run(hosts: usize, seed: u64) -> Result<PolicyReport, PolicyBenchError> {
    let (vm, nodes) = fleet(hosts, seed);
    let (program, _) = load(POLICY, Syntax::Dsl).map_err(PolicyBenchError::Load)?;
    let set = ActiveSet::new(vec![(Arc::new(program), Configuration::default())])?;
    let value = |attributes: &Attributes, path: &::policy::Path| {
        let keys: Vec<&str> = path.keys.iter().map(|key| key.as_str()).collect();
        match find(attributes, &keys) {
            Some(serde_json::Value::Bool(value)) => Value::Bool(*value),
            Some(serde_json::Value::String(text)) => Value::text(text),
            Some(other) => Value::from(other.as_f64()),
            None => Value::Null,
        }
    };
    let paths = set.host_paths();
    let cell = &mut |row: usize, column: usize| match (nodes.get(row), paths.get(column)) {
        (Some(node), Some(path)) => value(node, path),
        _ => Value::Null,
    };
    let table = Table::fill(hosts, paths.len(), cell);
    let wanted: Vec<Value> = set.paths().vm.iter().map(|path| value(&vm, path)).collect();
    let request = Request::new(PolicyType::Placement, &wanted);
    let (mut scratch, mut verdicts) = (Scratch::default(), Verdicts::default());
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        set.evaluate(&request, &table, &mut scratch, &mut verdicts)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let part = |percent: usize| times.get((ROUNDS - 1) * percent / 100).copied().unwrap_or(0.0);

    let engine = upstream();
    let start = Instant::now();
    let ordered = engine.evaluate(&vm, &nodes);
    let upstream_ms = start.elapsed().as_secs_f64() * 1e3;

    let ranked = verdicts.ranked();
    let scores = ranked.iter().map(|row| verdicts.score_millis(*row) as f64 / 1e3);
    let same_answer = ranked.len() == ordered.len()
        && scores.zip(&ordered).all(|(ours, (_, theirs))| (ours - theirs).abs() < 0.001);
    let evaluate_p50_ms = part(50);
    Ok(PolicyReport {
        hosts,
        seed,
        evaluate_p50_ms,
        evaluate_p99_ms: part(99),
        upstream_ms,
        speedup_over_upstream: upstream_ms / evaluate_p50_ms.max(1e-6),
        feasible: ranked.len(),
        same_answer,
    })
}

fn fleet(hosts: usize, seed: u64) -> (Attributes, Vec<Attributes>) {
    let mut dice = Dice::new(seed);
    let object = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
    let nodes = (0..hosts)
        .map(|row| {
            object(json!({
                "id": format!("node-{row}"),
                "labels": { "rack": format!("rack-{}", row / 40) },
                "maintenance_scheduled": dice.chance(20),
                "available_memory": dice.below(262_144),
                "power_efficiency": dice.below(1000) as f64 / 1000.0,
                "metrics": { "cpu.utilization": dice.below(100_000) as f64 / 1000.0 },
            }))
        })
        .collect();
    (object(json!({ "id": "vm-1", "memory": 16_384 })), nodes)
}

/// The same policy as closures over maps.
fn upstream() -> Engine {
    let busy = |context: &Context<'_>| number(context.node, &["metrics", "cpu.utilization"]);
    let filter = Rule {
        when: Box::new(|context| {
            let planned = find(context.node, &["maintenance_scheduled"]);
            planned.and_then(serde_json::Value::as_bool) == Some(true)
                || number(context.node, &["available_memory"]) < number(context.vm, &["memory"])
        }),
        then: Action::Filter,
        hard_constraint: true,
    };
    let score = Rule {
        when: Box::new(move |context| busy(context) < context.variable("ceiling")),
        then: Action::Score {
            points: Box::new(move |context| {
                100.0 - busy(context) + number(context.node, &["power_efficiency"]) * 30.0
            }),
            reason: "headroom and power".into(),
        },
        hard_constraint: false,
    };
    let parameters = vec![("ceiling".to_string(), json!(90.0))];
    Engine { policies: vec![(vec![filter, score], parameters)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_give_the_same_answer() {
        for seed in 1..4 {
            println!("seed {seed}");
            let report = run(500, seed).expect("runs");
            assert!(report.same_answer, "{report:?}");
            assert!(report.feasible > 300 && report.feasible < 500, "{report:?}");
        }
    }
}
