//! A decision as a person reads it: where the VM goes and why, or why nowhere.

use crate::output::{Paint, Table, bar, grouped, print};
use cluster::VmKey;
use std::process::ExitCode;
use wire::{Choice, Outcome, PlacementAnswer, ScoreParts};

const BAR: u32 = 24;

/// Prints the decision. 1 is the exit code of "no host can take it".
pub(crate) fn show(answer: &PlacementAnswer, dry_run: bool) -> anyhow::Result<ExitCode> {
    let paint = Paint::for_stdout();
    let vm = VmKey { tenant: answer.tenant.clone(), id: answer.vm_id.clone() };
    let placed = answer.outcome.0 == Outcome::Placed;
    let held = answer.reservation_id.is_some();
    let told = match (&answer.host_id, dry_run) {
        (None, _) => paint.bad(format!("no host can take {vm}")),
        (Some(host), true) => format!("{vm} would go to {}", paint.good(host)),
        (Some(host), false) if held => format!("{vm} has its place held on {}", paint.good(host)),
        (Some(host), false) => format!("{vm} is placed on {}", paint.good(host)),
    };
    print(told)?;
    if let (Some(reservation), false) = (&answer.reservation_id, dry_run) {
        let id = &answer.vm_id;
        print(format!("reservation {reservation}; `novaplace vm confirm {id}` makes it final"))?;
    }
    let decision = if dry_run { "dry run" } else { &answer.decision_id };
    let (strategy, revision) = (answer.strategy.0.word(), answer.based_on);
    let policy = answer.policy_revision;
    print(paint.faint(format!(
        "{decision}, strategy {strategy}, decided on revision {revision} with policy {policy}"
    )))?;
    if let (Some(score), Some(parts)) = (answer.score, &answer.breakdown) {
        print(format!("\nscore {}", paint.bold(grouped(score))))?;
        print(breakdown(parts).painted(paint))?;
    }
    if !answer.alternatives.is_empty() {
        print("\nnext best")?;
        print(alternatives(answer).painted(paint))?;
    }
    left_out(answer, paint)?;
    Ok(if placed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn breakdown(parts: &ScoreParts) -> Table {
    let ScoreParts { fit, affinity, load, locality, cost, policy } = *parts;
    let mut rows = vec![
        ("fit", fit),
        ("affinity", affinity),
        ("load", load),
        ("locality", locality),
        ("cost", cost),
    ];
    if policy != 0 {
        rows.push(("policy", policy));
    }
    let most = rows.iter().map(|(_, points)| points.unsigned_abs()).max().unwrap_or(0);
    let mut table = Table::new(&["PART", "POINTS", ""]);
    for (name, points) in rows {
        table.row([name.to_owned(), grouped(points), bar(points.unsigned_abs(), most, BAR)]);
    }
    table
}

fn alternatives(answer: &PlacementAnswer) -> Table {
    let mut table = Table::new(&["HOST", "SCORE", "LESS BY"]);
    for other in &answer.alternatives {
        let less = answer.score.map_or(0, |score| score.saturating_sub(other.score));
        table.row([other.host_id.to_string(), grouped(other.score), grouped(less)]);
    }
    table
}

/// Why hosts were left out, the most frequent reason first.
fn left_out(answer: &PlacementAnswer, paint: Paint) -> anyhow::Result<()> {
    let mut reasons: Vec<(&String, u64)> =
        answer.rejections.0.iter().map(|(reason, hosts)| (reason, u64::from(*hosts))).collect();
    reasons.sort_by(|(a, most), (b, more)| more.cmp(most).then(a.cmp(b)));
    let (all, considered) =
        (reasons.iter().map(|(_, hosts)| hosts).sum::<u64>(), answer.hosts_considered);
    if considered == 0 && answer.host_id.is_none() {
        return Ok(print("\nthere are no hosts; register some with `novaplace host import FILE`")?);
    }
    if reasons.is_empty() {
        return Ok(());
    }
    print(format!("\n{} of {} hosts left out", grouped(all), grouped(considered)))?;
    let mut table = Table::new(&["FIRST REASON", "HOSTS", ""]);
    for (reason, hosts) in reasons {
        table.row([reason.clone(), grouped(hosts), bar(hosts, considered.into(), BAR)]);
    }
    Ok(print(table.painted(paint))?)
}
