//! How large a body may be in every direction that is not its length in bytes.

use cluster::Dimensions;
use std::sync::Arc;

/// Limits of one body. Its length in bytes is checked by whoever receives it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The dimensions that amounts may be given in.
    pub dimensions: Arc<Dimensions>,
    /// How deep objects and arrays may be nested.
    pub depth: usize,
    /// Members of one object or items of one array.
    pub items: usize,
    /// Values in the whole body. Bounds memory: a value costs more than the two bytes `0,`.
    pub values: usize,
    /// Bytes of one string, and of the text of one number.
    pub string_bytes: usize,
    /// Lines of a body that has one document per line.
    pub lines: usize,
    /// Faults reported; a body with more is not worth reading to the end.
    pub faults: usize,
}

impl Limits {
    /// For a body about one thing.
    pub fn single(dimensions: Arc<Dimensions>) -> Self {
        Self {
            dimensions,
            depth: 32,
            items: 10_000,
            values: 200_000,
            string_bytes: 256,
            lines: 1_000_000,
            faults: 64,
        }
    }

    /// For a batch: as `single`, with room for 10,000 VMs of 400 values each.
    pub fn batch(dimensions: Arc<Dimensions>) -> Self {
        Self { values: 4_000_000, ..Self::single(dimensions) }
    }

    /// For a whole cluster: as `batch`, with lists as long as a large one needs.
    pub fn cluster(dimensions: Arc<Dimensions>) -> Self {
        Self { items: 200_000, ..Self::batch(dimensions) }
    }

    /// For what NovaCron sends: command lines and environments are longer than names, and an
    /// inventory names every node of a cluster.
    pub fn novacron(dimensions: Arc<Dimensions>) -> Self {
        Self { items: 100_000, string_bytes: 64 << 10, ..Self::batch(dimensions) }
    }

    /// For the text of a policy, which is one long string.
    pub fn policy(dimensions: Arc<Dimensions>) -> Self {
        Self { string_bytes: 512 << 10, ..Self::single(dimensions) }
    }

    /// For a document that an operator gives to an offline command.
    pub fn document(dimensions: Arc<Dimensions>) -> Self {
        Self { items: 2_000_000, values: 100_000_000, ..Self::single(dimensions) }
    }
}

/// Rules of one kind that a VM may carry: selectors, tolerations, affinities, spreads, data.
pub(crate) const MAX_RULES: usize = 64;
/// Names in one list of a VM or host: groups, hosts, datastores, label values.
pub(crate) const MAX_NAMES: usize = 256;
/// Labels of one host or VM.
pub(crate) const MAX_LABELS: usize = 256;
/// VMs of one batch. The writer's thread works on one batch at a time.
pub(crate) const MAX_BATCH: usize = 10_000;
