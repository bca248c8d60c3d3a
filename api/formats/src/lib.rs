//! Readers and writers of other people's files.

pub mod consolidation;
pub mod gpu_trace;
pub mod numa_trace;
pub mod placement;
pub mod planetlab;
pub mod reassignment;
pub mod table;
