//! The planted bugs are real: each breaks a promise that the log otherwise keeps.
#![cfg(feature = "planted-bugs")]

use std::ops::ControlFlow;

use store::{
    CommandLog, DiskOptions, LogError, PlantedBug, Record, SimDisk, SimulatedLog, SimulatedOptions,
};

fn open(disk: &SimDisk, planted: Option<PlantedBug>) -> Result<SimulatedLog, LogError> {
    SimulatedLog::open(disk, SimulatedOptions { planted, ..SimulatedOptions::default() })
}

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(DiskOptions { seed, ..DiskOptions::default() })
}

fn record(revision: u64) -> Record {
    Record { revision, state_hash: [1; 32], body: vec![7; 600], idempotency: None }
}

/// How many of 100 machines lose something acknowledged in a power cut.
fn losses(planted: Option<PlantedBug>) -> usize {
    let loses = |seed| {
        let disk = disk(seed);
        let mut log = open(&disk, planted).unwrap();
        (1..=5).for_each(|revision| log.append(&[record(revision)]).unwrap());
        disk.crash();
        open(&disk, planted).unwrap().head().revision < 5
    };
    (0..100).filter(|seed| loses(*seed)).count()
}

#[test]
fn acknowledging_before_the_sync_loses_batches() {
    assert_eq!(losses(None), 0);
    assert!(losses(Some(PlantedBug::AckBeforeSync)) > 30);
}

#[test]
fn skipping_a_bad_record_leaves_a_hole() {
    for bad in 1..=5 {
        let disk = disk(bad);
        let mut log = open(&disk, None).unwrap();
        (1..=5).for_each(|revision| log.append(&[record(revision)]).unwrap());
        drop(log);
        let entry = disk.file(1).len().unwrap() / 5;
        disk.flip_bit(1, entry * bad - 100, 3);
        let error = open(&disk, None).unwrap_err();
        assert!(matches!(error, LogError::Corrupt { revision, .. } if revision == bad), "{error}");

        let log = open(&disk, Some(PlantedBug::SkipBadRecord)).unwrap();
        let mut seen = Vec::new();
        log.reader()
            .scan(1, &mut |record| {
                seen.push(record.revision);
                ControlFlow::Continue(())
            })
            .unwrap();
        let left: Vec<u64> = (1..=5).filter(|revision| *revision != bad).collect();
        assert_eq!(seen, left);
    }
}
