//! The simulated disk loses exactly what a real one may lose.

use store::{DiskOptions, SimDisk};

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(DiskOptions { seed, ..DiskOptions::default() })
}

fn content(disk: &SimDisk) -> Vec<u8> {
    disk.file(0).read_all().unwrap()
}

#[test]
fn what_was_synced_survives() {
    for seed in 0..50 {
        let disk = disk(seed);
        disk.file(0).write_at(0, &[1; 3_000]).unwrap();
        disk.file(0).sync().unwrap();
        disk.file(0).write_at(3_000, &[2; 3_000]).unwrap();
        disk.crash();
        assert_eq!(content(&disk)[..3_000], [1; 3_000], "seed {seed}");
    }
}

#[test]
fn unsynced_writes_are_kept_dropped_or_torn_between_sectors_independently() {
    let mut lengths = std::collections::BTreeSet::new();
    let mut holes = 0;
    for seed in 0..300 {
        let disk = disk(seed);
        disk.file(0).write_at(0, &[1; 2_048]).unwrap();
        disk.file(0).write_at(2_048, &[2; 2_048]).unwrap();
        disk.crash();
        let content = content(&disk);
        assert_eq!(content.len() % 512, 0, "seed {seed}: a sector is torn");
        for (at, sector) in content.chunks(512).enumerate() {
            let written = if at < 4 { 1 } else { 2 };
            let whole = sector.iter().all(|byte| *byte == written);
            let empty = sector.iter().all(|byte| *byte == 0);
            assert!(whole || empty, "seed {seed}");
            holes += usize::from(empty);
        }
        lengths.insert(content.len());
    }
    assert_eq!(lengths.len(), 9, "every possible length came up: {lengths:?}");
    assert!(holes > 0, "the second write was kept without the first");
}

#[test]
fn overwritten_bytes_come_back_in_whole_sectors() {
    for seed in 0..100 {
        let disk = disk(seed);
        disk.file(0).write_at(0, &[1; 2_048]).unwrap();
        disk.file(0).sync().unwrap();
        disk.file(0).write_at(100, &[2; 1_500]).unwrap();
        disk.file(0).set_len(700).unwrap();
        disk.file(0).set_len(5_000).unwrap();
        disk.crash();
        let content = content(&disk);
        assert!([700, 2_048, 5_000].contains(&content.len()), "seed {seed}: {}", content.len());
        assert!(content[..100].iter().all(|byte| *byte == 1));
        assert!(content[100..512].windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn no_later_sync_rescues_what_a_failed_one_covered() {
    let lost = (0..100).filter(|seed| {
        let disk = disk(*seed);
        disk.file(0).write_at(0, &[1; 512]).unwrap();
        disk.fail_sync(1);
        assert!(disk.file(0).sync().is_err());
        assert_eq!(content(&disk), [1; 512], "it is still to be seen");
        disk.file(0).write_at(512, &[2; 512]).unwrap();
        disk.file(0).sync().unwrap();
        disk.crash();
        assert_eq!(content(&disk)[512..], [2; 512], "what came later is safe");
        content(&disk)[..512] != [1; 512]
    });
    assert!(lost.count() > 30);
}

#[test]
fn written_again_it_is_durable() {
    for seed in 0..100 {
        let disk = disk(seed);
        disk.file(0).write_at(0, &[1; 512]).unwrap();
        disk.fail_sync(1);
        assert!(disk.file(0).sync().is_err());
        disk.file(0).write_at(0, &[1; 512]).unwrap();
        disk.file(0).sync().unwrap();
        disk.crash();
        assert_eq!(content(&disk), [1; 512], "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_disk() {
    let run = |seed| {
        let disk = disk(seed);
        for at in 0..40 {
            disk.file(0).write_at(at * 700, &[at as u8; 900]).unwrap();
        }
        disk.crash();
        let flipped = disk.flip_random_bit();
        (content(&disk), flipped, disk.stats())
    };
    assert!((0..20).all(|seed| run(seed) == run(seed)));
    assert!(run(1) != run(2));
}

#[test]
fn a_dead_process_cannot_write() {
    let disk = disk(1);
    let file = disk.file(0);
    file.write_at(0, b"before").unwrap();
    disk.kill();
    assert!(file.write_at(0, b"after!").is_err() && file.sync().is_err());
    assert_eq!(content(&disk), b"before", "the kernel's cache survives a kill");
}

#[test]
fn ordered_failures_come_when_they_are_due_and_once() {
    let disk = disk(1);
    disk.fail_write(2);
    let outcomes: Vec<bool> = (0..4).map(|at| disk.file(0).write_at(at, b"x").is_ok()).collect();
    assert_eq!(outcomes, [true, false, true, true]);

    disk.fill_up_after(10);
    assert!(disk.file(1).write_at(0, &[0; 10]).is_ok());
    let error = disk.file(1).write_at(10, &[0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    disk.remove(1);
    assert!(disk.file(2).write_at(0, &[0; 10]).is_ok(), "removing makes room");

    disk.crash_at(3);
    let file = disk.file(0);
    let outcomes = [file.set_len(0).is_ok(), file.sync().is_ok(), file.sync().is_ok()];
    assert_eq!(outcomes, [true, true, false]);
    assert_eq!(disk.stats().crashes, 1);
}

#[test]
fn a_removed_file_may_come_back_until_something_is_synced() {
    let comes_back = |seed, sync: bool| {
        let disk = disk(seed);
        disk.file(0).write_at(0, b"old").unwrap();
        disk.file(0).sync().unwrap();
        disk.remove(0);
        if sync {
            disk.file(1).write_at(0, b"new").unwrap();
            disk.file(1).sync().unwrap();
        }
        disk.crash();
        disk.files().contains(&0)
    };
    assert!((0..50).any(|seed| comes_back(seed, false)));
    assert!(!(0..50).any(|seed| comes_back(seed, true)));
}
