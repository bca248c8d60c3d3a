//! What every log promises when the disk fails it: nothing that was acknowledged is lost, and of
//! what was not, a batch is there entirely or not at all.

use store::{CommandLog, LogError, LogReader, Record, SnapshotMeta};

use crate::machine::{
    BreakableMachine, EmbeddedOnSimDisk, Simulated, content, keyed, meta, read_snapshot, record,
    scan,
};

#[test]
fn the_simulated_log_survives_a_power_cut_at_every_operation() {
    power_cut_at_every_operation::<Simulated>(40);
}

#[test]
fn the_embedded_log_survives_a_power_cut_at_every_operation() {
    power_cut_at_every_operation::<EmbeddedOnSimDisk>(2);
}

#[test]
fn the_simulated_log_stops_at_an_input_output_error_and_recovers() {
    error_at_every_operation::<Simulated>();
}

#[test]
fn the_embedded_log_stops_at_an_input_output_error_and_recovers() {
    error_at_every_operation::<EmbeddedOnSimDisk>();
}

#[test]
fn the_simulated_log_stops_on_a_full_disk_and_recovers() {
    full_disk::<Simulated>(400, 0);
}

#[test]
fn the_embedded_log_stops_on_a_full_disk_and_recovers() {
    full_disk::<EmbeddedOnSimDisk>(500_000, 300_000);
}

#[test]
fn a_killed_process_leaves_nothing_that_a_later_power_cut_takes_back() {
    killed_then_cut::<Simulated>();
    killed_then_cut::<EmbeddedOnSimDisk>();
}

/// What the client of a log knows: what was acknowledged, and what was under way when it failed.
#[derive(Debug, Default)]
struct Client {
    acknowledged: Vec<Record>,
    unknown: Vec<Record>,
    snapshots: Vec<SnapshotMeta>,
    first: u64,
    step: u64,
    /// Added to every command.
    padding: usize,
}

const STEPS: u64 = 14;

impl Client {
    /// Goes on with a fixed scenario of batches, two snapshots and a cut, until it fails or ends.
    fn run(&mut self, log: &mut dyn CommandLog) -> Result<(), LogError> {
        while self.step < STEPS {
            self.step += 1;
            match self.step {
                4 | 9 if log.head().revision > 0 => self.snapshot(log)?,
                11 if self.snapshots.len() == 2 => {
                    self.first = self.snapshots[0].revision + 1;
                    log.truncate_before(self.first)?;
                }
                step => self.append(log, step)?,
            }
        }
        Ok(())
    }

    fn append(&mut self, log: &mut dyn CommandLog, step: u64) -> Result<(), LogError> {
        let next = log.head().revision + 1;
        let batch: Vec<Record> = (next..=next + step % 5)
            .map(|revision| {
                let mut record = match revision % 3 {
                    0 => keyed(revision, &format!("key {revision}"), revision),
                    _ => record(revision),
                };
                record.body.resize(record.body.len() + self.padding, 0);
                record
            })
            .collect();
        self.unknown = batch.clone();
        log.append(&batch)?;
        self.acknowledged.extend(batch);
        self.unknown.clear();
        Ok(())
    }

    fn snapshot(&mut self, log: &mut dyn CommandLog) -> Result<(), LogError> {
        let content = content(log.head().revision, 3_000);
        let meta = meta(log.head(), &content);
        log.begin_snapshot(meta)?;
        log.write_snapshot_chunk(&content)?;
        // The chunk rides along with this batch.
        self.append(log, 2)?;
        log.finish_snapshot()?;
        self.snapshots.push(meta);
        Ok(())
    }

    /// Compares a reopened log with what the client knows, and settles what was unknown.
    fn check(&mut self, log: &dyn CommandLog, context: &str) {
        let reader = log.reader();
        let head = log.head();
        assert_eq!(reader.verify(0), Ok(head), "{context}");
        let acknowledged = self.acknowledged.len() as u64;
        if head.revision != acknowledged {
            let whole = acknowledged + self.unknown.len() as u64;
            assert_eq!(head.revision, whole, "lost or half a batch, {context}");
            self.acknowledged.append(&mut self.unknown);
        }
        self.unknown.clear();
        assert!(head.first <= self.first.max(1), "{context}");
        let expected = &self.acknowledged[head.first as usize - 1..];
        assert_eq!(scan(&*reader, head.first).unwrap(), expected, "{context}");
        for record in &self.acknowledged {
            if let Some(entry) = &record.idempotency {
                let kept = reader.idempotency(&entry.key).unwrap();
                assert_eq!(kept.as_ref(), Some(entry), "{context}");
            }
        }
        self.check_snapshots(&*reader, context);
    }

    /// Acknowledged snapshots are there; one more may be, if its end was under way.
    fn check_snapshots(&mut self, reader: &dyn LogReader, context: &str) {
        let found = reader.snapshots().unwrap();
        for acknowledged in &self.snapshots {
            assert!(found.contains(acknowledged), "snapshot lost, {context}");
        }
        for snapshot in &found {
            let bytes = read_snapshot(reader, snapshot.revision).unwrap();
            assert_eq!(bytes, content(snapshot.revision, 3_000), "{context}");
        }
        self.snapshots = found;
    }
}

/// Operations that the scenario performs on the disk, from an empty one.
fn operations<M: BreakableMachine>() -> u64 {
    let machine = M::new(0);
    let mut log = machine.open().unwrap();
    Client::default().run(&mut *log).unwrap();
    drop(log);
    let stats = machine.disk().stats();
    // Changes of length are operations too; there are far fewer than writes.
    stats.writes * 2 + stats.syncs
}

fn power_cut_at_every_operation<M: BreakableMachine>(seeds: u64) {
    let operations = operations::<M>();
    let (mut cuts, mut torn) = (0, 0);
    for seed in 0..seeds {
        for at in 1..=operations {
            let context = format!("seed {seed}, power cut at operation {at}");
            let machine = M::new(seed.wrapping_mul(1_000_003) ^ at);
            let mut client = Client::default();
            machine.disk().crash_at(at);
            // The second and third cut come while it recovers from the one before.
            for again in [1 + at % 7, 1 + at % 3, 0] {
                if let Ok(mut log) = machine.open() {
                    client.check(&*log, &context);
                    let _ = client.run(&mut *log);
                }
                if machine.disk().stats().crashes == 0 {
                    break;
                }
                machine.disk().clear_faults();
                machine.disk().crash_at(again);
            }
            machine.disk().clear_faults();
            machine.disk().crash();
            let mut log = machine.open().unwrap_or_else(|error| panic!("{context}: {error}"));
            client.check(&*log, &context);
            client.step = client.step.min(STEPS - 1);
            client.run(&mut *log).unwrap();
            drop(log);
            client.check(&*machine.open().unwrap(), &context);
            cuts += machine.disk().stats().crashes;
            torn += machine.disk().stats().torn;
        }
    }
    assert!(cuts > operations && torn > 0, "{cuts} cuts, {torn} torn");
}

fn error_at_every_operation<M: BreakableMachine>() {
    let operations = operations::<M>();
    for (kind, at) in (0..2).flat_map(|kind| (1..=operations).map(move |at| (kind, at))) {
        let context = format!("error of kind {kind} at operation {at}");
        let machine = M::new(at);
        let mut client = Client::default();
        match kind {
            0 => machine.disk().fail_write(at),
            _ => machine.disk().fail_sync(at),
        }
        if let Ok(mut log) = machine.open()
            && client.run(&mut *log).is_err()
        {
            assert_poisoned(&mut *log, &context);
        }
        machine.disk().clear_faults();
        // Half of the time the kernel's cache survives, half of the time it does not.
        match at % 2 {
            0 => machine.disk().kill(),
            _ => machine.disk().crash(),
        }
        let mut log = machine.open().unwrap_or_else(|error| panic!("{context}: {error}"));
        client.check(&*log, &context);
        client.run(&mut *log).unwrap();
    }
}

fn assert_poisoned(log: &mut dyn CommandLog, context: &str) {
    let next = record(log.head().revision + 1);
    let head = log.head();
    for answer in [
        log.append(&[next]),
        log.write_snapshot_chunk(b"x"),
        log.finish_snapshot(),
        log.truncate_before(1),
        log.step_snapshot().map(|_| ()),
    ] {
        let poisoned = matches!(answer, Err(LogError::Poisoned { .. }));
        assert!(poisoned, "{answer:?} after an error, {context}");
    }
    assert_eq!(log.head(), head, "{context}");
}

fn full_disk<M: BreakableMachine>(granularity: u64, padding: usize) {
    let mut refused = 0;
    for step in 0..20 {
        let context = format!("{} bytes left", step * granularity);
        let machine = M::new(step);
        let mut client = Client { padding, ..Client::default() };
        machine.disk().fill_up_after(step * granularity);
        let mut log = machine.open().unwrap();
        if let Err(error) = client.run(&mut *log) {
            assert!(matches!(error, LogError::NoSpace { .. }), "{error}");
            assert_poisoned(&mut *log, &context);
            refused += 1;
        }
        drop(log);
        machine.disk().set_capacity(1 << 30);
        machine.disk().crash();
        let mut log = machine.open().unwrap();
        client.check(&*log, &context);
        client.run(&mut *log).unwrap();
    }
    assert!(refused > 3, "the disk was full {refused} times only");
}

fn killed_then_cut<M: BreakableMachine>() {
    for at in 1..=operations::<M>() {
        let context = format!("killed at sync {at}");
        let machine = M::new(at);
        let mut client = Client::default();
        // The sync fails, the process dies of it, and the next one sees what it wrote.
        machine.disk().fail_sync(at);
        if let Ok(mut log) = machine.open() {
            let _ = client.run(&mut *log);
        }
        machine.disk().clear_faults();
        machine.disk().kill();
        let log = machine.open().unwrap();
        client.check(&*log, &context);
        machine.disk().crash();
        drop(log);
        let log = machine.open().unwrap_or_else(|error| panic!("{context}: {error}"));
        client.check(&*log, &context);
    }
}
