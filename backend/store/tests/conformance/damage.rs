//! Damaged bytes are refused, by the revision where there is one, and never read as something
//! else.

use std::path::Path;

use store::{CommandLog, LogError, Record, SimDisk};

use crate::machine::{
    BreakableMachine, EmbeddedOnFile, EmbeddedOnSimDisk, Machine, Simulated, keyed, record, scan,
    take_snapshot,
};

const LAST: u64 = 12;

fn script(revision: u64) -> Record {
    match revision % 4 {
        0 => keyed(revision, &format!("key {revision}"), revision),
        _ => record(revision),
    }
}

fn fill(log: &mut dyn CommandLog) {
    for from in (1..=LAST).step_by(3) {
        let batch: Vec<Record> = (from..from + 3).map(script).collect();
        log.append(&batch).unwrap();
    }
}

/// The frames as they lie on the disk, by walking the chain once more from outside.
fn frames() -> Vec<Vec<u8>> {
    let mut chain = [0; 32];
    let framed = (1..=LAST).map(|revision| {
        let mut frame = Vec::new();
        chain = store::frame::encode(&script(revision), &chain, &mut frame).unwrap();
        frame
    });
    framed.collect()
}

/// Every place of a frame: redb leaves old copies behind, and only one of them is read.
fn find(haystack: &[u8], needle: &[u8]) -> Vec<usize> {
    let windows = haystack.windows(needle.len()).enumerate();
    windows.filter(|(_, window)| *window == needle).map(|(at, _)| at).collect()
}

/// Opens the log and reads everything in it.
fn read_all(machine: &dyn Machine) -> Result<Vec<Record>, LogError> {
    let log = machine.open()?;
    let reader = log.reader();
    let records = scan(&*reader, log.head().first)?;
    reader.verify(0)?;
    for snapshot in reader.snapshots()? {
        reader.read_snapshot(snapshot.revision, &mut |_| std::ops::ControlFlow::Continue(()))?;
    }
    Ok(records)
}

#[test]
fn a_changed_byte_anywhere_in_a_record_is_refused_by_its_revision() {
    let simulated = Simulated::new(1);
    fill(&mut *simulated.open().unwrap());
    let embedded = EmbeddedOnSimDisk::new(1);
    fill(&mut *embedded.open().unwrap());
    each_byte_of_each_record(&simulated, simulated.disk());
    each_byte_of_each_record(&embedded, embedded.disk());
}

fn each_byte_of_each_record(machine: &dyn Machine, disk: &SimDisk) {
    let image = image(disk);
    for (revision, frame) in (1..).zip(frames()) {
        let places: Vec<(u32, usize)> = image
            .iter()
            .flat_map(|(file, bytes)| find(bytes, &frame).into_iter().map(|at| (*file, at)))
            .collect();
        for offset in 0..frame.len() {
            restore(disk, &image);
            for (file, at) in &places {
                assert!(disk.flip_bit(*file, (at + offset) as u64, (offset % 8) as u8));
            }
            let error = read_all(machine).expect_err("it was read");
            let LogError::Corrupt { revision: named, .. } = error else {
                panic!("record {revision}, byte {offset}: {error}");
            };
            assert_eq!(named, revision, "byte {offset}: {error}");
        }
    }
    restore(disk, &image);
    assert_eq!(read_all(machine).unwrap().len() as u64, LAST);
}

#[test]
fn a_changed_byte_in_a_file_is_refused_by_the_revision() {
    let machine = EmbeddedOnFile::new();
    fill(&mut *machine.open().unwrap());
    let intact = std::fs::read(machine.path()).unwrap();
    for (revision, frame) in (1..).zip(frames()) {
        let mut bytes = intact.clone();
        for at in find(&intact, &frame) {
            bytes[at + frame.len() / 2] ^= 0x10;
        }
        std::fs::write(machine.path(), &bytes).unwrap();
        let error = read_all(&machine).unwrap_err();
        assert!(error.to_string().starts_with(&format!("record {revision} is corrupt")), "{error}");
    }
}

#[test]
fn any_changed_bit_of_a_simulated_log_is_refused() {
    let machine = Simulated::new(1);
    let mut log = machine.open().unwrap();
    fill(&mut *log);
    take_snapshot(&mut *log, 700).unwrap();
    drop(log);
    for file in machine.disk().files() {
        for place in 0..machine.disk().file(file).len().unwrap() {
            let bit = (place % 8) as u8;
            machine.disk().flip_bit(file, place, bit);
            assert!(read_all(&machine).is_err(), "file {file}, byte {place}");
            machine.disk().flip_bit(file, place, bit);
        }
    }
    assert_eq!(read_all(&machine).unwrap().len() as u64, LAST);
}

#[test]
fn a_changed_bit_of_an_embedded_log_is_refused_or_makes_no_difference() {
    let machine = EmbeddedOnSimDisk::new(1);
    let mut log = machine.open().unwrap();
    fill(&mut *log);
    take_snapshot(&mut *log, 700).unwrap();
    drop(log);
    let image = image(machine.disk());
    let bytes = &image[0].1;
    let expected: Vec<Record> = (1..=LAST).map(script).collect();
    // redb leaves most of a new file unused; only the bytes that mean something are tried.
    let used = (0..bytes.len()).filter(|at| bytes[*at] != 0).step_by(17);
    let mut refused = 0;
    for (round, place) in used.enumerate() {
        restore(machine.disk(), &image);
        machine.disk().flip_bit(0, place as u64, (round % 8) as u8);
        match read_all(&machine) {
            Ok(records) => {
                assert!(records == expected, "byte {place} changed what was read");
                check_that_appending_does_no_harm(&machine, place);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 30, "{refused} were refused");
}

/// Damage that does not show at once, such as in the list of free pages, must not show later.
fn check_that_appending_does_no_harm(machine: &dyn Machine, place: usize) {
    let mut log = machine.open().unwrap_or_else(|error| panic!("byte {place}: {error}"));
    for from in [LAST + 1, LAST + 4] {
        let batch: Vec<Record> = (from..from + 3).map(script).collect();
        log.append(&batch).unwrap();
    }
    drop(log);
    let expected: Vec<Record> = (1..=LAST + 6).map(script).collect();
    let records = read_all(machine).unwrap_or_else(|error| panic!("byte {place}: {error}"));
    assert!(records == expected, "byte {place} did harm");
}

type Image = Vec<(u32, Vec<u8>)>;

fn image(disk: &SimDisk) -> Image {
    let files = disk.files().into_iter();
    files.map(|file| (file, disk.file(file).read_all().unwrap())).collect()
}

/// Puts everything back: an open, even one that fails, may have written.
fn restore(disk: &SimDisk, image: &Image) {
    for (number, bytes) in image {
        let file = disk.file(*number);
        file.set_len(bytes.len() as u64).unwrap();
        file.write_at(0, bytes).unwrap();
        file.sync().unwrap();
    }
}

#[test]
fn a_simulated_log_that_ends_early_loses_only_the_batch_that_was_cut() {
    let machine = Simulated::new(1);
    fill(&mut *machine.open().unwrap());
    let last = *machine.disk().files().last().unwrap();
    let file = machine.disk().file(last);
    let whole = file.read_all().unwrap();
    for length in (0..whole.len() as u64).rev() {
        file.set_len(length).unwrap();
        let records = read_all(&machine).unwrap();
        assert_eq!(records.len() % 3, 0, "half a batch is left at {length} bytes");
        // Opening has cut the torn batch off; put everything back.
        file.write_at(0, &whole).unwrap();
    }
    if let Some(older) = machine.disk().files().iter().rev().nth(1) {
        let file = machine.disk().file(*older);
        file.set_len(file.len().unwrap() - 1).unwrap();
        assert!(read_all(&machine).is_err(), "only the last segment may be torn");
    }
}

#[test]
fn a_log_of_another_format_is_refused_with_advice() {
    let machine = EmbeddedOnFile::new();
    fill(&mut *machine.open().unwrap());
    for format in [0, store::LOG_FORMAT - 1, store::LOG_FORMAT + 1] {
        rewrite_format(&machine.path(), format);
        let error = machine.open().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the log has format {format}, written by novaplace 0.1.0; novaplace 0.1.0 reads \
                 format {} only: start the version that wrote it, or export there and import here",
                store::LOG_FORMAT
            )
        );
    }
    rewrite_format(&machine.path(), store::LOG_FORMAT);
    assert_eq!(read_all(&machine).unwrap().len() as u64, LAST);
}

fn rewrite_format(path: &Path, format: u32) {
    const META: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("meta");
    let db = redb::Database::open(path).unwrap();
    let tx = db.begin_write().unwrap();
    let mut meta = tx.open_table(META).unwrap();
    meta.insert("format", format.to_le_bytes().as_slice()).unwrap();
    drop(meta);
    tx.commit().unwrap();
}

#[test]
fn a_file_that_is_no_log_is_refused() {
    let machine = EmbeddedOnFile::new();
    for content in [vec![7; 10], vec![0; 100_000], b"#!/bin/sh\n".repeat(2_000)] {
        std::fs::write(machine.path(), content).unwrap();
        assert!(machine.open().is_err());
    }
}
