//! `novaplace simulate planetlab`: a day of VMs whose use changes, kept on few hosts.
//!
//! Moves before a step come from the samples of steps before it; the figures that are printed are
//! counted afterwards.

use crate::input;
use crate::output::{Usage, print};
use anyhow::Context;
use clap::Args;
use formats::planetlab::{self, Day, HOST_KINDS, HOSTS, Move, STEP_SECONDS};
use serde_json::json;
use solver::steering::{Course, HostKind, Steering};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Planetlab {
    /// Percentages that each VM used every five minutes, a line a VM; packed by gzip or not
    #[arg(long, value_name = "FILE")]
    day: PathBuf,
    /// The names of the VMs, one a line
    #[arg(long, value_name = "FILE")]
    order: PathBuf,
    /// Where the moves go: step,vm,host
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The share of hosts that may have too little CPU, of those that are on
    #[arg(long, value_name = "SHARE", default_value_t = Steering::default().overload)]
    overload: f64,
    /// Watts, over one step, that a migration has to save
    #[arg(long, value_name = "WATTS", default_value_t = Steering::default().move_price)]
    move_price: f64,
}

impl Planetlab {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let settings = self.settings()?;
        let (day, order) = (input::read(&self.day)?, input::read(&self.order)?);
        let day = planetlab::read(&day, &order)
            .with_context(|| format!("in {} or {}", self.day.display(), self.order.display()))?;
        let moves = steer(&day, settings);
        if let Some(path) = &self.output {
            std::fs::write(path, planetlab::write_moves(&moves))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut figures = figures(&day, &moves);
        figures["seconds"] = json!(started.elapsed().as_secs_f64());
        print(figures.to_string())?;
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self) -> Result<Steering, Usage> {
        let Self { overload, move_price, .. } = *self;
        if !(0.0001..=0.5).contains(&overload) {
            let wrong = format!("--overload is {overload}, it has to be from 0.0001 to 0.5");
            return Err(Usage(wrong));
        }
        if !move_price.is_finite() || move_price < 0.0 {
            return Err(Usage(format!("--move-price is {move_price}, it has to be 0 or more")));
        }
        Ok(Steering { overload, move_price, ..Steering::default() })
    }
}

fn steer(day: &Day, settings: Steering) -> Vec<Move> {
    let kind = |host: usize| {
        let kind = HOST_KINDS[host % HOST_KINDS.len()];
        HostKind { capacity: kind.capacity, milliwatts: kind.milliwatts }
    };
    let mut course = Course::new(settings, (0..HOSTS).map(kind).collect(), &day.requested);
    let mut moves = Vec::new();
    let mut note = |step: usize, made: Vec<solver::steering::Move>| {
        moves.extend(made.iter().map(|made| Move { step, vm: made.vm, host: made.to }));
    };
    note(0, course.begin());
    for step in 1..day.used[0].len() {
        let used: Vec<u64> = day.used.iter().map(|samples| samples[step - 1]).collect();
        note(step, course.step(&used));
    }
    moves
}

/// What the day came to. A host with VMs is on; a step draws the mean of what its hosts draw at the
/// use of this step and of the next.
fn figures(day: &Day, moves: &[Move]) -> serde_json::Value {
    let steps = day.used[0].len();
    let mut hosts = vec![0u32; day.used.len()];
    let (mut milliwatts, mut on, mut over) = (0.0, 0usize, 0usize);
    let mut moves_left = moves;
    for step in 0..steps {
        let now = moves_left.partition_point(|made| made.step <= step);
        moves_left[..now].iter().for_each(|made| hosts[made.vm as usize] = made.host);
        moves_left = &moves_left[now..];
        let loads = |step: usize| {
            let mut loads = vec![None::<u64>; HOSTS];
            for (&host, used) in hosts.iter().zip(&day.used) {
                *loads[host as usize].get_or_insert(0) += used[step];
            }
            loads
        };
        let (these, next) = (loads(step), loads((step + 1).min(steps - 1)));
        for (host, (this, next)) in these.iter().zip(&next).enumerate() {
            let (Some(this), Some(next)) = (this, next) else { continue };
            let kind = HOST_KINDS[host % HOST_KINDS.len()];
            on += 1;
            over += usize::from(*this > kind.capacity);
            milliwatts += (draws(&kind, *this) + draws(&kind, *next)) / 2.0;
        }
    }
    let kwh = milliwatts * f64::from(STEP_SECONDS) / 3.6e9;
    json!({
        "vms": day.used.len(),
        "steps": steps,
        "energy_kwh": (kwh * 100.0).round() / 100.0,
        "migrations": moves.len() - day.used.len(),
        "overloaded_share": over as f64 / on.max(1) as f64,
        "mean_hosts_on": on as f64 / steps as f64,
    })
}

fn draws(kind: &planetlab::HostKind, used: u64) -> f64 {
    HostKind { capacity: kind.capacity, milliwatts: kind.milliwatts }.watts(used as f64) * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 VMs that take turns in being busy.
    fn day() -> Day {
        let sample = |vm: usize, step: usize| ((vm * 31 + step / 5 * 17) % 97) as u64 * 2_000;
        let used = (0..40).map(|vm| (0..48).map(|step| sample(vm, step)).collect()).collect();
        Day { requested: vec![200_000; 40], used }
    }

    #[test]
    fn moves_follow_from_samples_of_earlier_steps_alone() {
        let (today, settings) = (day(), Steering::default());
        let usual = steer(&today, settings);
        for step in [0, 1, 17, 47] {
            let mut other = day();
            for used in &mut other.used {
                used[step..].iter_mut().for_each(|used| *used = 200_000 - *used);
            }
            let changed = steer(&other, settings);
            let until = |moves: &[Move]| -> Vec<Move> {
                moves.iter().copied().filter(|made| made.step <= step).collect()
            };
            assert_eq!(until(&changed), until(&usual), "samples from step {step} on");
            assert_eq!(changed == usual, step == 47, "later moves do follow");
        }
    }

    #[test]
    fn figures_count_hosts_that_are_on_and_those_with_too_little() {
        let day = Day { requested: vec![250_000; 3], used: vec![vec![250_000, 0]; 3] };
        let at = |step: usize, vm: u32, host: u32| Move { step, vm, host };
        let together = [at(0, 0, 1), at(0, 1, 1), at(0, 2, 1)];
        let counted = figures(&day, &together);
        assert_eq!(
            (&counted["overloaded_share"], &counted["mean_hosts_on"]),
            (&json!(0.5), &json!(1.0))
        );
        // (135 + 93.7) / 2 W and 93.7 W for five minutes each.
        assert_eq!(counted["energy_kwh"], json!(0.02));
        let apart = [&together[..], &[at(1, 2, 3)]].concat();
        let counted = figures(&day, &apart);
        assert_eq!((&counted["migrations"], &counted["mean_hosts_on"]), (&json!(1), &json!(1.5)));
    }
}
