//! Coming back: recovery that is itself hit by faults, and damage that it must refuse.

use crate::faults::{Fault, Plan, RecoveryFault};
use crate::machine::{Image, Medium};
use crate::sometimes::Rare;
use crate::violation::{Checked, Law, broken, ensure};
use crate::world::World;
use engine::OpenError;
use std::ops::ControlFlow;
use store::{CommandLog, LogError, LogReader};

/// More than any run writes.
const ROOM_AGAIN_BYTES: u64 = 1 << 30;

impl<M: Medium> World<M> {
    /// Starts the machine on an empty disk.
    pub(crate) fn start(&mut self) -> Checked {
        match self.machine.start(|_| ()) {
            Ok(()) => Ok(()),
            Err(error) => broken(Law::Progress, format!("a new machine does not start: {error}")),
        }
    }

    /// Starts the machine again, through whatever still goes wrong, and checks everything.
    pub(crate) fn come_back(&mut self, plan: &Plan) -> Checked {
        for fault in plan.recovery.into_iter().flatten() {
            match fault {
                RecoveryFault::CutPowerAt(n) => self.die_recovering(Fault::PowerCutInRecovery, n),
                RecoveryFault::FailSync(n) => self.die_recovering(Fault::SyncErrorInRecovery, n),
                RecoveryFault::FlipBit { .. } => {}
            }
        }
        self.recover()?;
        for fault in plan.recovery.into_iter().flatten() {
            if let RecoveryFault::FlipBit { opened } = fault {
                self.survive_flipped_bit(opened)?;
            }
        }
        Ok(())
    }

    /// A start that the disk does not let through, if the fault is reached at all.
    fn die_recovering(&mut self, fault: Fault, n: u64) {
        self.outline.faults.order(fault);
        let before = self.machine.disk.stats();
        match fault {
            Fault::PowerCutInRecovery => self.machine.disk.crash_at(n),
            _ => self.machine.disk.fail_sync(n),
        }
        let started = self.machine.start(|_| ());
        self.story.tell(|| format!("starting with {fault:?} at {n}: {started:?}"));
        if started.is_err() {
            self.outline.faults.happened(fault, 1);
            self.outline.sometimes.hit(Rare::CrashInRecovery);
        }
        self.machine.disk.clear_faults();
        self.machine.cut_power();
        self.note_crash(before);
    }

    /// Starts on a disk that works again, and holds the outcome against everything known.
    fn recover(&mut self) -> Checked {
        self.machine.disk.clear_faults();
        self.machine.disk.set_capacity(ROOM_AGAIN_BYTES);
        if let Err(error) = self.machine.start(|_| ()) {
            let what = format!("recovery was refused although nothing was damaged: {error}");
            return broken(Law::Acknowledged, what);
        }
        self.outline.recoveries += 1;
        let log = self.machine.engine().log().reader();
        let head = self.machine.head();
        self.story.tell(|| format!("recovered at revision {head}"));
        self.checker.reread(log.as_ref())?;
        let (without, with) = self.heads;
        ensure(head == without || head == with, Law::Acknowledged, || {
            format!("the log ends at {head}, within the batch from {without} to {with}")
        })?;
        self.outline.sometimes.hit_if(Rare::BatchUnknown, head == with && with > without);
        self.heads = (head, head);
        let snapshots = log.snapshots().map_or(0, |snapshots| snapshots.len());
        self.outline.sometimes.hit_if(Rare::SnapshotUsed, snapshots > 0);
        self.checker.follow(log.as_ref(), &self.history, &[])?;
        self.check_live_state()?;
        let hash = self.machine.engine().read(|state| state.hash());
        self.trace(&hash);
        for op in std::mem::take(&mut self.unknown) {
            let done = self.checker.effect(op).is_some();
            let rare = if done { Rare::UnknownDone } else { Rare::UnknownNotDone };
            self.outline.sometimes.hit(rare);
        }
        Ok(())
    }

    /// Flips a bit, starts, and puts the disk back. The start must be refused, or lead to exactly
    /// what it led to before; a log that opens may still refuse to be read.
    fn survive_flipped_bit(&mut self, opened: bool) -> Checked {
        self.machine.kill();
        let disk = self.machine.disk.clone();
        let Ok(image) = Image::take(&disk) else {
            return broken(Law::Progress, "a working disk cannot be copied");
        };
        let mut flipped = None;
        if !opened {
            flipped = disk.flip_random_bit();
        }
        let started = self.machine.start(|disk| {
            if opened {
                flipped = disk.flip_random_bit();
            }
        });
        let Some(at) = flipped else {
            return self.put_back(&image);
        };
        self.outline.faults.both(Fault::BitFlip);
        self.story.tell(|| format!("flipped {at:?} (opened: {opened}): {started:?}"));
        match started {
            Err(error) => {
                self.check_names_what_is_wrong(&error)?;
                self.outline.sometimes.hit(Rare::RefusedFlippedBit);
            }
            Ok(()) => self.check_unharmed()?,
        }
        self.put_back(&image)
    }

    fn check_unharmed(&mut self) -> Checked {
        let log = self.machine.engine().log().reader();
        let head = self.machine.engine().log().head();
        ensure(head.revision == self.checker.revision(), Law::Acknowledged, || {
            let due = self.checker.revision();
            format!("a flipped bit and the log ends at {} instead of {due}", head.revision)
        })?;
        self.check_live_state()?;
        self.checker.reread_damaged(log.as_ref(), head.first)?;
        let fell_back = newest_is_damaged(log.as_ref());
        self.outline.sometimes.hit_if(Rare::SnapshotFellBack, fell_back);
        self.outline.sometimes.hit_if(Rare::HarmlessFlippedBit, !fell_back);
        Ok(())
    }

    /// A refusal says where: a revision that exists, or the next one, or a part of the store.
    fn check_names_what_is_wrong(&self, error: &OpenError) -> Checked {
        let last = self.checker.revision() + 1;
        let revision = match error {
            OpenError::Log(
                LogError::Corrupt { revision, .. } | LogError::CorruptSnapshot { revision, .. },
            ) => *revision,
            OpenError::Unreadable { revision } | OpenError::HashMismatch { revision } => revision.0,
            OpenError::Gap { expected, .. } => expected.0,
            _ => return Ok(()),
        };
        ensure((1..=last).contains(&revision), Law::Honest, || {
            format!("recovery names revision {revision} of {last}: {error}")
        })
    }

    fn put_back(&mut self, image: &Image) -> Checked {
        self.machine.kill();
        if image.restore(&self.machine.disk).is_err() {
            return broken(Law::Progress, "a working disk cannot be written");
        }
        self.recover()
    }
}

fn newest_is_damaged(log: &dyn LogReader) -> bool {
    let Ok(snapshots) = log.snapshots() else { return false };
    let newest = snapshots.last().map(|meta| meta.revision);
    newest.is_some_and(|revision| {
        log.read_snapshot(revision, &mut |_| ControlFlow::Continue(())).is_err()
    })
}
