//! How long one filter and score policy takes over a fleet: `evaluate [HOSTS] [ROUNDS]`.
#![expect(clippy::print_stdout, reason = "an example tells what it found")]

use policy::{
    ActiveSet, Configuration, PolicyType, Request, Scratch, Syntax, Table, Value, Verdicts,
};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

const POLICY: &str = r#"
policy "Headroom" {
  rules {
    rule "full or in maintenance" {
      priority = 100
      when { candidateNode.maintenance_scheduled == true
             || candidateNode.available_memory < vm.memory
             || vm.labels["zone"] != candidateNode.zone }
      then { filter "does not fit" }
    }
    rule "headroom" {
      weight = 2
      when { candidateNode.metrics["cpu.utilization"] < 90 }
      then { score (100 - candidateNode.metrics["cpu.utilization"]) * 0.7
                   + candidateNode.power_efficiency * 30 "headroom and power" }
    }
  }
}
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let hosts = arguments.next().transpose()?.unwrap_or(10_000);
    let rounds = arguments.next().transpose()?.unwrap_or(1_000).max(1);
    let (program, _) = policy::load(POLICY, Syntax::Dsl).map_err(|found| format!("{found:?}"))?;
    let set = ActiveSet::new(vec![(Arc::new(program), Configuration::default())])?;
    let names: Vec<String> = set.host_paths().iter().map(ToString::to_string).collect();
    let table = Table::fill(hosts, names.len(), &mut |row, column| {
        let mixed = (row * 7919 + column * 104_729) % 1009;
        match names.get(column).map_or("", String::as_str) {
            "candidateNode.maintenance_scheduled" => Value::Bool(mixed % 50 == 0),
            "candidateNode.available_memory" => Value::from((mixed * 256) as f64),
            "candidateNode.zone" => Value::from(if mixed % 4 == 0 { "b" } else { "a" }),
            "candidateNode.power_efficiency" => Value::from(mixed as f64 / 1009.0),
            _ => Value::from((mixed % 100) as f64),
        }
    });
    let vm: Vec<Value> = set
        .paths()
        .vm
        .iter()
        .map(|path| match path.keys.len() {
            1 => Value::from(8192.0),
            _ => Value::from("a"),
        })
        .collect();
    let request = Request::new(PolicyType::Placement, &vm);
    let (mut scratch, mut verdicts) = (Scratch::default(), Verdicts::default());
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        set.evaluate(&request, &table, &mut scratch, &mut verdicts)?;
        times.push(start.elapsed());
    }
    times.sort();
    let micros =
        |part: usize| times.get((rounds - 1) * part / 100).map_or(0, |time| time.as_micros());
    let left = verdicts.ranked().len();
    println!("{hosts} hosts, {left} left: p50 {} us, p99 {} us", micros(50), micros(99));
    Ok(())
}
