//! Readers and writers of other people's files.

pub mod placement;
