//! The machine: a disk that outlives everything, and the process that lives and dies on it.

use cluster::Revision;
use engine::{Engine, OpenError, Options};
use store::{CommandLog, EmbeddedLog, LogError, SimDisk, SimulatedLog, SimulatedOptions};

/// Which log the process keeps on the disk.
pub(crate) trait Medium {
    type Log: CommandLog;
    /// About how many writes and syncs a commit takes: faults are spread over a few commits.
    const STEPS_PER_COMMIT: u64;
    fn open(&self, disk: &SimDisk) -> Result<Self::Log, LogError>;
}

/// The simulator's own log: fast to write and to open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Simulated(pub(crate) SimulatedOptions);

impl Medium for Simulated {
    type Log = SimulatedLog;
    const STEPS_PER_COMMIT: u64 = 2;
    fn open(&self, disk: &SimDisk) -> Result<SimulatedLog, LogError> {
        SimulatedLog::open(disk, self.0)
    }
}

/// The log that the service keeps on real disks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedded;

impl Medium for Embedded {
    type Log = EmbeddedLog;
    const STEPS_PER_COMMIT: u64 = 12;
    fn open(&self, disk: &SimDisk) -> Result<EmbeddedLog, LogError> {
        // On a real disk a failed write leaves a mark beside the log, which says the same.
        let stats = disk.stats();
        let distrust_cache = stats.failed_writes > 0 || stats.failed_syncs > 0;
        let options = store::Options {
            cache_bytes: 1 << 20,
            reserve_bytes: 0,
            distrust_cache,
            ..store::Options::default()
        };
        EmbeddedLog::open_on(disk.file(1), options)
    }
}

#[derive(Debug)]
pub(crate) struct Machine<M: Medium> {
    pub(crate) disk: SimDisk,
    medium: M,
    options: Options,
    process: Option<Engine<M::Log>>,
}

impl<M: Medium> Machine<M> {
    pub(crate) fn new(disk: SimDisk, medium: M, options: Options) -> Self {
        Self { disk, medium, options, process: None }
    }

    /// Starts the process, which recovers from the disk. `opened` runs between opening the log
    /// and replaying it.
    pub(crate) fn start(&mut self, opened: impl FnOnce(&SimDisk)) -> Result<(), OpenError> {
        let log = self.medium.open(&self.disk)?;
        opened(&self.disk);
        self.process = Some(Engine::open(log, self.options)?);
        Ok(())
    }

    /// The living process.
    pub(crate) fn engine(&mut self) -> &mut Engine<M::Log> {
        self.process.as_mut().expect("only a started machine is asked to do anything")
    }

    /// The process is gone; what it wrote stays in the kernel's cache.
    ///
    /// Its files end first: nobody who is killed gets to close them in good order.
    pub(crate) fn kill(&mut self) {
        self.disk.kill();
        self.process = None;
    }

    /// The machine loses power.
    pub(crate) fn cut_power(&mut self) {
        self.disk.crash();
        self.process = None;
    }

    pub(crate) fn head(&mut self) -> u64 {
        self.engine().log().head().revision
    }

    pub(crate) fn revision(&mut self) -> Revision {
        self.engine().read(|state| state.revision())
    }
}

/// A copy of everything on a disk.
#[derive(Debug)]
pub(crate) struct Image(Vec<(u32, Vec<u8>)>);

impl Image {
    pub(crate) fn take(disk: &SimDisk) -> std::io::Result<Image> {
        let files = disk.files().into_iter().map(|number| {
            let bytes = disk.file(number).read_all()?;
            Ok((number, bytes))
        });
        files.collect::<std::io::Result<_>>().map(Image)
    }

    /// Puts the disk back to what it was, durably.
    pub(crate) fn restore(&self, disk: &SimDisk) -> std::io::Result<()> {
        for number in disk.files() {
            if self.0.iter().all(|(kept, _)| *kept != number) {
                disk.remove(number);
            }
        }
        for (number, bytes) in &self.0 {
            let file = disk.file(*number);
            file.set_len(bytes.len() as u64)?;
            file.write_at(0, bytes)?;
            file.sync()?;
        }
        Ok(())
    }
}
