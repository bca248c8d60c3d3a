//! The checker finds every mistake that was made on purpose, and this is how soon.
#![allow(clippy::print_stdout, reason = "the figures are the point")]

use chaos::planted::{Bug, hunt};

/// Seeds after which a bug counts as not found: many times what the slowest hunt takes.
const LIMIT: u64 = 200;

/// Hunts for each bug, each from seeds of its own.
const HUNTS: u64 = 15;

#[test]
fn every_planted_bug_is_found() {
    println!("{:<30} seeds: median  most   of {HUNTS} hunts; first shown as", "planted bug");
    for bug in Bug::ALL {
        let hunts = (0..HUNTS).map(|row| hunt(bug, 1 + row * 10_000, LIMIT));
        let mut hunts: Vec<_> = hunts.collect();
        for hunt in &hunts {
            assert!(hunt.found.is_some(), "{} not found in {LIMIT} seeds", bug.name());
        }
        let shown = hunts[0].found.as_ref().map_or("", |violation| violation.finding.law.name());
        hunts.sort_by_key(|hunt| hunt.seeds);
        let (median, most) = (hunts[hunts.len() / 2].seeds, hunts[hunts.len() - 1].seeds);
        println!("{:<30} {median:>13} {most:>5}   {shown}", bug.name());
    }
}
