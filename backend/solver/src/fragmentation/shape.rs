//! What one VM asks for, as far as GPUs and what feeds them are concerned.

/// Thousandths of a GPU that make a whole one.
pub const WHOLE: u16 = 1000;

/// Sets of GPU models are bits of a word.
pub const MOST_MODELS: usize = 64;

/// Equal shapes are placed alike and share all work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    pub cpu_millis: u32,
    pub memory_mib: u32,
    /// GPUs asked for. With one, `milli` of it; with more, each of them whole.
    pub gpus: u8,
    /// Thousandths of each GPU; 0 without GPUs.
    pub milli: u16,
    /// Models that will do, by bit. All bits without GPUs, so that such shapes are equal.
    pub models: u64,
}

impl Shape {
    /// A shape without GPUs.
    pub fn without_gpus(cpu_millis: u32, memory_mib: u32) -> Self {
        Self { cpu_millis, memory_mib, gpus: 0, milli: 0, models: u64::MAX }
    }

    /// A share of one GPU.
    pub fn of_share(cpu_millis: u32, memory_mib: u32, milli: u16) -> Self {
        Self { cpu_millis, memory_mib, gpus: 1, milli, models: u64::MAX }
    }

    /// Whole GPUs.
    pub fn of_whole(cpu_millis: u32, memory_mib: u32, gpus: u8) -> Self {
        let milli = if gpus == 0 { 0 } else { WHOLE };
        Self { cpu_millis, memory_mib, gpus, milli, models: u64::MAX }
    }

    /// The same on one of these models only.
    pub fn on_models(self, models: u64) -> Self {
        Self { models: if self.gpus == 0 { u64::MAX } else { models }, ..self }
    }

    /// Thousandths over all its GPUs.
    pub fn gpu_millis(&self) -> u32 {
        u32::from(self.gpus) * u32::from(self.milli)
    }

    /// Whether it runs on this model.
    pub fn runs_on(&self, model: u8) -> bool {
        self.models >> model & 1 == 1
    }

    /// Whether every model that will do is one of these.
    pub fn confined_to(&self, models: u64) -> bool {
        self.models & !models == 0
    }
}
