//! The checker finds every mistake that was made on purpose, and this is how soon.

use chaos::planted::{Bug, hunt};

/// Seeds after which a bug counts as not found. The slowest takes a fraction of it.
const LIMIT: u64 = 300;

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let hunt = hunt(bug, LIMIT);
        match &hunt.found {
            Some(violation) => {
                let law = violation.finding.law.name();
                println!(
                    "{:<32} {:>4} seeds  {law}: {}",
                    bug.name(),
                    hunt.seeds,
                    violation.finding.what
                );
            }
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {LIMIT} seeds: {missed:?}");
}
