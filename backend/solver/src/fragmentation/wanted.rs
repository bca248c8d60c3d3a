//! What a VM wants, with GPU models by name, and how names become bits.
//!
//! A mix that lives longer than the tables is kept by name. The bits of a `Shape` are given out
//! anew for each mix: the models that it names, in order of their names, and one bit for all
//! others, so that equal mixes have equal bits.

use super::host_state::MOST_GPUS;
use super::mix::Mix;
use super::shape::{MOST_MODELS, Shape, WHOLE};
use cluster::{Dim, GpuAmount, Name, Vm};
use serde::{Deserialize, Serialize};

/// What one VM asks for, as far as GPUs and what feeds them are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wanted {
    pub cpu_millis: u32,
    pub memory_mib: u32,
    pub gpus: u8,
    /// Thousandths of each GPU.
    pub milli: u16,
    /// Models that will do; all of them if none is named.
    pub models: Vec<Name>,
}

impl Wanted {
    /// Pieces of GPUs (MIG) are of so many kinds that they do not count as GPUs here.
    pub fn of(vm: &Vm) -> Self {
        let amount = |dim: Dim| u32::try_from(vm.demand.get(dim)).unwrap_or(u32::MAX);
        let request = vm.topology.as_ref().and_then(|topology| topology.gpus.as_ref());
        let (gpus, milli) = match request.map(|request| &request.amount) {
            Some(GpuAmount::Whole(gpus)) => ((*gpus).min(MOST_GPUS as u16) as u8, WHOLE),
            Some(GpuAmount::Milli(milli)) => (1, (*milli).min(WHOLE)),
            Some(GpuAmount::Mig { .. }) | None => (0, 0),
        };
        let models = request.filter(|_| gpus > 0).map_or_else(Vec::new, |request| {
            let mut models = request.models.clone();
            models.sort_unstable();
            models.dedup();
            models
        });
        Self {
            cpu_millis: amount(Dim::CPU_MILLIS),
            memory_mib: amount(Dim::MEMORY_MIB),
            gpus,
            milli,
            models,
        }
    }
}

/// The models that a mix names, in order.
#[derive(Clone, Debug, Default)]
pub struct Models(Vec<Name>);

/// The bit of every model that the mix does not name.
const OTHER: u8 = MOST_MODELS as u8 - 1;

impl Models {
    pub fn of(mix: &Mix<Wanted>) -> Self {
        let mut names: Vec<Name> =
            mix.entries().iter().flat_map(|(wanted, _)| wanted.models.iter().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(usize::from(OTHER));
        Self(names)
    }

    pub fn bit(&self, name: &Name) -> u8 {
        self.0.binary_search(name).map_or(OTHER, |row| row as u8)
    }

    pub fn shape(&self, wanted: &Wanted) -> Shape {
        let Wanted { cpu_millis, memory_mib, gpus, milli, ref models } = *wanted;
        let bits = models.iter().fold(0, |bits, name| bits | 1u64 << self.bit(name));
        let shape = Shape { cpu_millis, memory_mib, gpus, milli, models: u64::MAX };
        shape.on_models(if models.is_empty() { u64::MAX } else { bits })
    }

    /// All bits that a host's model can be.
    pub fn bits(&self) -> u64 {
        ((1u64 << self.0.len()) - 1) | (1 << OTHER)
    }

    /// The mix in bits.
    pub fn mix(&self, mix: &Mix<Wanted>) -> Mix {
        mix.map(|wanted| self.shape(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn wanted(models: &[&str]) -> Wanted {
        let models = models.iter().map(|text| name(text)).collect();
        Wanted { cpu_millis: 1000, memory_mib: 1024, gpus: 1, milli: 500, models }
    }

    #[test]
    fn bits_go_by_name_and_models_that_nobody_names_share_one() {
        let mix = Mix::given([(wanted(&["b"]), 1), (wanted(&["a", "c"]), 2), (wanted(&[]), 3)]);
        let models = Models::of(&mix);
        assert_eq!(
            ["a", "b", "c", "x", "y"].map(|model| models.bit(&name(model))),
            [0, 1, 2, 63, 63]
        );
        assert_eq!(models.shape(&wanted(&["a", "c"])).models, 0b101);
        assert_eq!(models.shape(&wanted(&["x"])).models, 1 << OTHER);
        assert_eq!(models.shape(&wanted(&[])).models, u64::MAX);
        assert_eq!(models.mix(&mix).entries().iter().map(|entry| entry.1).sum::<u64>(), 6);
    }
}
