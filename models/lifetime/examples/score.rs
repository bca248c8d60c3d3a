//! Prints how a forest, a prior and the truth are surprised by generated lives, at several ages.
//!
//! usage: cargo run --release -p lifetime --example score [SEED]

use lifetime::generated::{self, Vm};
use lifetime::score::score;
use lifetime::{Curve, Forest, Life, Training};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let lives = |vms: &[Vm]| vms.iter().map(Vm::life).collect::<Vec<Life>>();
    let forest = Forest::train(&lives(&generated::trace(20_000, seed)), Training::default());
    let nobody = Forest::train(&[], Training::default());
    let ahead = generated::trace(10_000, seed + 1_000);
    let judged = lives(&ahead);
    let mut out = std::io::stdout().lock();
    writeln!(out, "| age | lives | who | log-loss | calibration | ended by 0.1 / 0.5 / 0.9 |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (age, age_s) in [("start", 0), ("1 h", 3_600), ("1 day", 86_400)] {
        let curves: [(&str, &dyn Fn(&Vm) -> Curve); 3] = [
            ("truth", &|vm| vm.truth.clone()),
            ("forest", &|vm| forest.predict(&vm.traits)),
            ("prior", &|vm| nobody.predict(&vm.traits)),
        ];
        for (who, curve) in curves {
            let found = score(judged.iter().zip(ahead.iter().map(curve)), age_s);
            let [tenth, half, most] = found.ended_by;
            let (log_loss, off) = (found.log_loss, found.calibration);
            let lives = found.lives;
            writeln!(
                out,
                "| {age} | {lives} | {who} | {log_loss:.3} | {off:.3} | {tenth:.2} / {half:.2} / {most:.2} |"
            )?;
        }
    }
    Ok(())
}
