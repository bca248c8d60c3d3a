//! A log that forgets: for measuring the engine without a disk.

use std::ops::ControlFlow;
use store::{CommandLog, Head, IdempotencyEntry, LogError, LogReader, Record, SnapshotMeta};

/// Accepts everything and keeps the head only.
#[derive(Clone, Copy, Debug)]
pub struct NoLog(Head);

impl Default for NoLog {
    fn default() -> Self {
        Self(Head::EMPTY)
    }
}

impl CommandLog for NoLog {
    fn append(&mut self, batch: &[Record]) -> Result<(), LogError> {
        if let Some(last) = batch.last() {
            self.0.revision = last.revision;
            self.0.state_hash = last.state_hash;
        }
        Ok(())
    }

    fn head(&self) -> Head {
        self.0
    }

    fn reader(&self) -> Box<dyn LogReader> {
        Box::new(*self)
    }

    fn begin_snapshot(&mut self, _: SnapshotMeta) -> Result<(), LogError> {
        Ok(())
    }

    fn write_snapshot_chunk(&mut self, _: &[u8]) -> Result<(), LogError> {
        Ok(())
    }

    fn has_queued_pieces(&self) -> bool {
        false
    }

    fn step_snapshot(&mut self) -> Result<u64, LogError> {
        Ok(0)
    }

    fn finish_snapshot(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    fn truncate_before(&mut self, _: u64) -> Result<(), LogError> {
        Ok(())
    }
}

impl LogReader for NoLog {
    fn get(&self, _: u64) -> Result<Option<Record>, LogError> {
        Ok(None)
    }

    fn scan(&self, _: u64, _: &mut dyn FnMut(Record) -> ControlFlow<()>) -> Result<(), LogError> {
        Ok(())
    }

    fn verify(&self, _: u64) -> Result<Head, LogError> {
        Ok(self.0)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotMeta>, LogError> {
        Ok(Vec::new())
    }

    fn read_snapshot(
        &self,
        _: u64,
        _: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, LogError> {
        Ok(false)
    }

    fn idempotency(&self, _: &[u8]) -> Result<Option<IdempotencyEntry>, LogError> {
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn LogReader> {
        Box::new(*self)
    }
}
