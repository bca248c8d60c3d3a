//! Plans as tables.

use crate::output::{Paint, Table, grouped, print};
use wire::{Choice, MigrationStatus, PlanDiffView, PlanList, PlanStatus, PlanView};

pub(super) fn list(list: &PlanList) -> anyhow::Result<()> {
    let mut table = Table::new(&["PLAN", "KIND", "STATUS", "MIGRATIONS", "DONE", "NOTE"]);
    for plan in &list.items {
        table.row([
            plan.id.clone(),
            plan.kind.0.word().into(),
            plan.status.0.word().into(),
            grouped(u64::from(plan.totals.migrations)),
            grouped(u64::from(plan.totals.done)),
            plan.note.clone(),
        ]);
    }
    if table.is_empty() {
        print("no plans")?;
        return Ok(());
    }
    print(table.painted(Paint::for_stdout()))?;
    Ok(())
}

pub(super) fn plan(plan: &PlanView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let status = plan.status.0.word();
    let status = match plan.status.0 {
        PlanStatus::Completed | PlanStatus::RolledBack => paint.good(status),
        PlanStatus::Stale | PlanStatus::Incomplete | PlanStatus::Paused => paint.bad(status),
        _ => status.to_owned(),
    };
    print(format!("plan {} ({}): {status}, {}", plan.id, plan.kind.0.word(), plan.note))?;
    if !plan.because.is_empty() {
        print(format!("  {}", plan.because))?;
    }
    let mut table = Table::new(&["WAVE", "VM", "FROM", "TO", "STATUS", "BROWN-OUT MS", "WHY"]);
    for (number, wave) in plan.waves.iter().enumerate() {
        for it in wave {
            let status = it.status.0.word();
            let status = match it.status.0 {
                MigrationStatus::Done => paint.good(status),
                MigrationStatus::Failed | MigrationStatus::Skipped => paint.bad(status),
                _ => status.to_owned(),
            };
            table.row([
                (number + 1).to_string(),
                format!("{}/{}", it.tenant, it.vm_id),
                it.from.to_string(),
                it.to.to_string(),
                status,
                grouped(it.brownout_ms),
                it.reason.clone().unwrap_or_else(|| it.why.clone()),
            ]);
        }
    }
    if !table.is_empty() {
        print(table.painted(paint))?;
    }
    for it in &plan.blocked {
        print(paint.bad(format!("{}/{} stays on {}: {}", it.tenant, it.vm_id, it.from, it.why)))?;
    }
    if let Some(gain) = plan.totals.gain {
        let per_move = plan.totals.gain_per_move.unwrap_or(0.0);
        let per_second = plan.totals.gain_per_second.unwrap_or(0.0);
        print(format!(
            "gains {gain}: {per_move:.0} a move, {per_second:.0} a second of brown-out"
        ))?;
    }
    for (what, hosts) in [("empty afterwards", &plan.power_down), ("to be woken", &plan.wake)] {
        if !hosts.is_empty() {
            let names: Vec<&str> = hosts.iter().map(|host| host.as_str()).collect();
            print(format!("{what}: {}", names.join(", ")))?;
        }
    }
    Ok(())
}

pub(super) fn diff(diff: &PlanDiffView) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    if diff.hosts.is_empty() {
        print("nothing is different")?;
        return Ok(());
    }
    for host in &diff.hosts {
        let vms = format!("{} -> {} VMs", host.vms_before, host.vms_after);
        let used = host.used_before.0.iter().zip(&host.used_after.0).filter(|(a, b)| a != b);
        let used: Vec<String> = used
            .map(|((name, before), (_, after))| format!("{name} {before} -> {after}"))
            .collect();
        print(format!("{}  {vms}  {}", paint.bold(&host.host_id), used.join(", ")))?;
        for vm in &host.leaves {
            print(paint.bad(format!("  - {vm}")))?;
        }
        for vm in &host.arrives {
            print(paint.good(format!("  + {vm}")))?;
        }
    }
    Ok(())
}
