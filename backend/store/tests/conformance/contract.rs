//! What every log promises while nothing breaks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use store::{CommandLog, Head, IdempotencyEntry, LogError, Record, SnapshotMeta};

use crate::machine::{
    BreakableMachine, EmbeddedOnFile, EmbeddedOnSimDisk, LIMITS, Machine, Simulated, all, content,
    keyed, meta, read_snapshot, record, records, scan, take_snapshot,
};

#[test]
fn an_empty_log_has_an_empty_head_and_nothing_to_read() {
    for machine in all() {
        let log = machine.open().unwrap();
        assert_eq!(log.head(), Head::EMPTY, "{machine:?}");
        let reader = log.reader();
        assert_eq!(reader.get(1), Ok(None));
        assert_eq!(scan(&*reader, 0), Ok(vec![]));
        assert_eq!(reader.verify(0), Ok(Head::EMPTY));
        assert_eq!(reader.snapshots(), Ok(vec![]));
        assert_eq!(reader.idempotency(b"key"), Ok(None));
    }
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 3)).unwrap();
        log.append(&[keyed(4, "a", 10), record(5)]).unwrap();
        let snapshot = take_snapshot(&mut *log, 200_000).unwrap();
        log.append(&records(6, 40)).unwrap();
        let head = log.head();
        drop(log);

        let log = machine.open().unwrap();
        let reader = log.reader();
        assert_eq!(log.head(), head, "{machine:?}");
        assert_eq!(head.revision, 40);
        assert_eq!(head.state_hash, record(40).state_hash);
        assert_eq!(reader.verify(1), Ok(head));
        let mut all = records(1, 40);
        all[3] = keyed(4, "a", 10);
        assert_eq!(scan(&*reader, 1).unwrap(), all);
        assert_eq!(reader.get(4).unwrap().unwrap(), all[3]);
        assert_eq!(reader.get(41), Ok(None));
        assert_eq!(reader.idempotency(b"a").unwrap(), all[3].idempotency);
        assert_eq!(reader.snapshots(), Ok(vec![snapshot]));
        assert_eq!(read_snapshot(&*reader, snapshot.revision).unwrap(), content(5, 200_000));
    }
}

#[test]
fn revisions_that_do_not_follow_are_refused_and_change_nothing() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 2)).unwrap();
        let head = log.head();
        for bad in [
            vec![record(2)],
            vec![record(4)],
            vec![record(3), record(5)],
            vec![record(3), record(3)],
            vec![record(0)],
        ] {
            let error = log.append(&bad).unwrap_err();
            assert!(matches!(error, LogError::NotDense { .. }), "{error}");
            assert_eq!(log.head(), head, "{machine:?}");
        }
        log.append(&[]).unwrap();
        log.append(&[record(3)]).unwrap();
        drop(log);
        let reader = machine.open().unwrap().reader();
        assert!(matches!(reader.get(1), Err(LogError::Closed)) || reader.get(1).is_ok());
        let log = machine.open().unwrap();
        assert_eq!(scan(&*log.reader(), 1).unwrap(), records(1, 3));
    }
}

#[test]
fn a_scan_starts_anywhere_and_stops_when_told() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 30)).unwrap();
        let reader = log.reader();
        assert_eq!(scan(&*reader, 17).unwrap(), records(17, 30));
        assert_eq!(scan(&*reader, 31).unwrap(), vec![]);
        let mut seen = 0;
        let stop_at_20 = &mut |record: Record| {
            seen = record.revision;
            if seen == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        reader.scan(5, stop_at_20).unwrap();
        assert_eq!(seen, 20, "{machine:?}");
        assert_eq!(reader.verify(12).unwrap().revision, 30);
    }
}

#[test]
fn readers_see_each_batch_once_it_is_durable_and_can_be_cloned_into_threads() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        let reader = log.reader();
        let watcher = std::thread::spawn({
            let reader = reader.clone();
            move || {
                let mut last = 0;
                while last < 200 {
                    let seen = scan(&*reader, 1).unwrap();
                    assert!(seen.len().is_multiple_of(10), "half a batch was visible");
                    assert!(seen.len() >= last, "records vanished");
                    last = seen.len();
                }
            }
        });
        for batch in 0..20 {
            log.append(&records(batch * 10 + 1, batch * 10 + 10)).unwrap();
            assert!(reader.get(batch * 10 + 10).unwrap().is_some());
        }
        watcher.join().unwrap();
    }
}

#[test]
fn snapshot_bytes_ride_along_with_appends() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 1)).unwrap();
        let content = content(1, 500_000);
        log.begin_snapshot(meta(log.head(), &content)).unwrap();
        log.write_snapshot_chunk(&content).unwrap();
        for revision in 2..=12 {
            log.append(&[record(revision)]).unwrap();
        }
        // All is written by now, 100 kB with each append; what is left is reading it back.
        let mut left = 500_000;
        for _ in 0..12 {
            let now = log.step_snapshot().unwrap();
            assert!(now < left || now == 0, "{machine:?}: {now} of {left} left");
            left = now;
        }
        assert_eq!(left, 0);
        assert_eq!(log.reader().snapshots(), Ok(vec![]), "it is not finished");
        log.finish_snapshot().unwrap();
        assert_eq!(read_snapshot(&*log.reader(), 1).unwrap(), content);
    }
}

#[test]
fn the_two_newest_snapshots_are_kept() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        let mut taken = Vec::new();
        for round in 1..=5 {
            log.append(&records(round * 10 - 9, round * 10)).unwrap();
            taken.push(take_snapshot(&mut *log, 150_000 + round as usize).unwrap());
        }
        for _ in 0..2 {
            let reader = log.reader();
            assert_eq!(reader.snapshots().unwrap(), taken[3..], "{machine:?}");
            for kept in &taken[3..] {
                let content = content(kept.revision, kept.bytes as usize);
                assert_eq!(read_snapshot(&*reader, kept.revision).unwrap(), content);
            }
            assert_eq!(
                reader.read_snapshot(30, &mut |_| ControlFlow::Continue(())),
                Err(LogError::NoSuchSnapshot { revision: 30 })
            );
            drop(log);
            log = machine.open().unwrap();
        }
    }
}

#[test]
fn a_snapshot_that_contradicts_the_log_or_itself_is_refused() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 5)).unwrap();
        let first = take_snapshot(&mut *log, 1_000).unwrap();
        log.append(&records(6, 7)).unwrap();
        let content = content(7, 1_000);
        let good = meta(log.head(), &content);

        let wrong_state = SnapshotMeta { state_hash: [0; 32], ..good };
        let wrong_chain = SnapshotMeta { chain_hash: [0; 32], ..good };
        let too_new = SnapshotMeta { revision: 8, ..good };
        for bad in [wrong_state, wrong_chain, too_new] {
            let error = log.begin_snapshot(bad).unwrap_err();
            assert!(matches!(error, LogError::SnapshotRefused { .. }), "{error}");
        }

        log.begin_snapshot(good).unwrap();
        assert!(log.write_snapshot_chunk(&[0; 1_001]).is_err(), "too long");
        log.write_snapshot_chunk(&content[..999]).unwrap();
        assert!(log.finish_snapshot().is_err(), "too short");

        let wrong_content = SnapshotMeta { content_hash: [0; 32], ..good };
        log.begin_snapshot(wrong_content).unwrap();
        log.write_snapshot_chunk(&content).unwrap();
        let error = log.finish_snapshot().unwrap_err();
        assert!(matches!(error, LogError::CorruptSnapshot { .. }), "{error}");
        assert_eq!(log.finish_snapshot(), Err(LogError::NoSnapshotBegun));
        assert_eq!(log.write_snapshot_chunk(b"x"), Err(LogError::NoSnapshotBegun));

        // None of it hurt the log, nor the snapshot that was there.
        assert_eq!(log.reader().snapshots(), Ok(vec![first]), "{machine:?}");
        log.append(&[record(8)]).unwrap();
        take_snapshot(&mut *log, 10).unwrap();
    }
}

#[test]
fn a_snapshot_that_was_not_finished_is_gone_after_reopening() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 5)).unwrap();
        let kept = take_snapshot(&mut *log, 1_000).unwrap();
        let half = content(6, 400_000);
        log.append(&[record(6)]).unwrap();
        log.begin_snapshot(meta(log.head(), &half)).unwrap();
        log.write_snapshot_chunk(&half).unwrap();
        log.append(&[record(7)]).unwrap();
        log.append(&[record(8)]).unwrap();
        drop(log);

        let mut log = machine.open().unwrap();
        assert_eq!(log.reader().snapshots(), Ok(vec![kept]), "{machine:?}");
        assert_eq!(log.finish_snapshot(), Err(LogError::NoSnapshotBegun));
        // Its leftovers do not mix with those of the next.
        let next = take_snapshot(&mut *log, 300_000).unwrap();
        drop(log);
        let log = machine.open().unwrap();
        assert_eq!(log.reader().snapshots(), Ok(vec![kept, next]));
        assert_eq!(read_snapshot(&*log.reader(), 8).unwrap(), content(8, 300_000));
    }
}

#[test]
fn records_are_cut_only_up_to_the_older_of_two_snapshots() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&records(1, 50)).unwrap();
        let needed = |asked| Err(LogError::StillNeeded { asked, needed_from: 1 });
        assert_eq!(log.truncate_before(2), needed(2), "no snapshot yet");
        take_snapshot(&mut *log, 100).unwrap();
        assert_eq!(log.truncate_before(2), needed(2), "nothing to fall back on");
        log.append(&records(51, 90)).unwrap();
        take_snapshot(&mut *log, 100).unwrap();
        log.append(&records(91, 99)).unwrap();
        assert_eq!(
            log.truncate_before(52),
            Err(LogError::StillNeeded { asked: 52, needed_from: 51 })
        );
        log.truncate_before(51).unwrap();
        log.truncate_before(10).unwrap();
        for _ in 0..2 {
            let reader = log.reader();
            let head = log.head();
            assert_eq!((head.first, head.revision), (51, 99), "{machine:?}");
            assert_eq!(reader.get(50), Ok(None));
            assert_eq!(scan(&*reader, 51).unwrap(), records(51, 99));
            assert_eq!(scan(&*reader, 50), Err(LogError::Cut { revision: 50, first: 51 }));
            assert_eq!(reader.verify(1), Ok(head));
            assert_eq!(reader.snapshots().unwrap().len(), 2);
            assert_eq!(read_snapshot(&*reader, 50).unwrap(), content(50, 100));
            drop(log);
            log = machine.open().unwrap();
        }
        log.append(&[record(100)]).unwrap();
        assert_eq!(log.reader().verify(0), Ok(log.head()));
    }
}

#[test]
fn replies_outlive_the_records_they_came_with() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        log.append(&[keyed(1, "early", 100), record(2)]).unwrap();
        log.append(&records(3, 60)).unwrap();
        take_snapshot(&mut *log, 10).unwrap();
        log.append(&records(61, 120)).unwrap();
        take_snapshot(&mut *log, 10).unwrap();
        log.truncate_before(61).unwrap();
        for revision in 121..=130 {
            log.append(&[record(revision)]).unwrap();
        }
        for _ in 0..2 {
            let reader = log.reader();
            assert_eq!(reader.get(1), Ok(None));
            assert_eq!(
                reader.idempotency(b"early").unwrap(),
                keyed(1, "early", 100).idempotency,
                "{machine:?}"
            );
            drop(log);
            log = machine.open().unwrap();
        }
    }
}

#[test]
fn replies_are_kept_for_a_time_and_up_to_a_number() {
    for machine in all() {
        let mut log = machine.open().unwrap();
        // Too old once something newer by more than the limit arrives.
        log.append(&[keyed(1, "old", 1)]).unwrap();
        log.append(&[keyed(2, "edge", 2)]).unwrap();
        log.append(&[keyed(3, "new", 2 + LIMITS.keep_ms)]).unwrap();
        let kept = |log: &dyn CommandLog, key: &str| {
            let entry: Option<IdempotencyEntry> = log.reader().idempotency(key.as_bytes()).unwrap();
            entry.is_some()
        };
        assert!(!kept(&*log, "old"), "{machine:?}");
        assert!(kept(&*log, "edge") && kept(&*log, "new"));

        // One more use of a key starts its time again.
        log.append(&[keyed(4, "edge", 900 + LIMITS.keep_ms)]).unwrap();
        for revision in 5..4 + LIMITS.max_keys {
            let ts_ms = 900 + LIMITS.keep_ms + revision;
            log.append(&[keyed(revision, &format!("k{revision}"), ts_ms)]).unwrap();
        }
        assert!(!kept(&*log, "new"), "the oldest goes when there are too many");
        assert!(kept(&*log, "edge"));
        let reply = log.reader().idempotency(b"edge").unwrap().unwrap();
        assert_eq!(reply.reply, b"reply to 4");
    }
}

#[test]
fn a_generated_history_reads_the_same_from_every_log() {
    let seeds = 4;
    for seed in 0..seeds {
        let machines: [Box<dyn Machine>; 3] = [
            Box::new(Simulated::new(seed)),
            Box::new(EmbeddedOnSimDisk::new(seed)),
            Box::new(EmbeddedOnFile::new()),
        ];
        let views: Vec<View> = machines.iter().map(|m| history(&**m, seed)).collect();
        assert!(views[0] == views[1] && views[1] == views[2], "seed {seed}");
    }
}

#[derive(PartialEq)]
struct View {
    head: Head,
    records: Vec<Record>,
    snapshots: BTreeMap<u64, Vec<u8>>,
    replies: Vec<Option<IdempotencyEntry>>,
}

/// Drives a log by a seeded script of appends, snapshots, cuts and reopenings.
fn history(machine: &dyn Machine, seed: u64) -> View {
    let mut state = seed.wrapping_mul(0x9E37_79B9).wrapping_add(12_345);
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut log = machine.open().unwrap();
    for _ in 0..120 {
        let head = log.head();
        match random(10) {
            0..=6 => {
                let batch: Vec<Record> = (1..=1 + random(6))
                    .map(|step| {
                        let revision = head.revision + step;
                        match random(3) {
                            0 => keyed(revision, &format!("key {}", random(30)), revision * 10),
                            _ => record(revision),
                        }
                    })
                    .collect();
                log.append(&batch).unwrap();
            }
            7 if head.revision > 0 => {
                take_snapshot(&mut *log, random(150_000) as usize).unwrap();
            }
            8 => {
                let _ = log.truncate_before(1 + random(head.revision + 1));
            }
            _ => {
                drop(log);
                log = machine.open().unwrap();
            }
        }
    }
    drop(log);
    let log = machine.open().unwrap();
    let reader = log.reader();
    assert_eq!(reader.verify(0), Ok(log.head()), "seed {seed}");
    let snapshots = reader.snapshots().unwrap().into_iter().map(|snapshot| {
        let content = read_snapshot(&*reader, snapshot.revision).unwrap();
        (snapshot.revision, content)
    });
    View {
        head: log.head(),
        records: scan(&*reader, log.head().first).unwrap(),
        snapshots: snapshots.collect(),
        replies: (0..30)
            .map(|key| reader.idempotency(format!("key {key}").as_bytes()).unwrap())
            .collect(),
    }
}
