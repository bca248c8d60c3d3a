//! `novaplace backup` and `novaplace restore`: a stopped service's log in one file, and back.
//!
//! A backup is the log's own file inside an envelope, so that records, snapshots and stored
//! replies come back as they were and old decisions can still be replayed. It is taken while the
//! log is open and locked: what is copied is then what a killed process would have left, and
//! coming back from that is what the log is made for.

mod envelope;

use crate::offline;
use crate::output::print;
use crate::progress::Progress;
use anyhow::{Context, bail};
use clap::Args;
use engine::State;
use envelope::{Envelope, Label};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Head;

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The service's data directory; the service must not be running on it
    #[arg(long, env = "NOVAPLACE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
    /// The file to write; it must not exist yet
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A file that `novaplace backup` has written
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The data directory to fill; it must be empty, or not exist yet
    #[arg(long, env = "NOVAPLACE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
}

impl Backup {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Backup { data_dir, to } = self;
        if to.try_exists().with_context(|| format!("cannot look at {}", to.display()))? {
            bail!("{} exists; choose another name or remove it", to.display());
        }
        // Held until the end, so that nobody writes while the file is copied.
        let log = offline::open(&data_dir)?;
        let (head, state) = offline::verified(&log)?;
        let source = data_dir.join(store::LOG_FILE);
        let copied = copy(&source, &to, &head);
        let bytes = copied.with_context(|| format!("cannot back up to {}", to.display()))?;
        drop(log);
        print(format!("{} holds {} in {bytes} bytes", to.display(), told(&head, &state)))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the backup under another name, reads it back, and gives it its own name when it is
/// known to be whole.
fn copy(source: &Path, to: &Path, head: &Head) -> anyhow::Result<u64> {
    let unfinished = Unfinished(with_ending(to, ".unfinished"));
    let source = File::open(source)?;
    let bytes = source.metadata()?.len();
    let label = Label::new(head, bytes);
    let mut progress = Progress::new("backup", bytes.saturating_mul(2));
    let file = File::create(&unfinished.0)?;
    let mut envelope = Envelope::write(BufWriter::new(&file), &label)?;
    pump(&mut source.take(bytes), &mut envelope, &mut progress)?;
    let written = envelope.close()?;
    file.sync_all()?;
    let (found, mut envelope) = Envelope::read(BufReader::new(File::open(&unfinished.0)?))?;
    pump(&mut envelope, &mut io::sink(), &mut progress)?;
    if found != label || envelope.checked()? != written {
        bail!("what was read back is not what was written");
    }
    fs::rename(&unfinished.0, to)?;
    sync_directory_of(to)?;
    Ok(fs::metadata(to)?.len())
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Restore { from, data_dir } = self;
        let file = File::open(&from).with_context(|| format!("cannot read {}", from.display()))?;
        let (label, envelope) = Envelope::read(BufReader::new(file))
            .with_context(|| format!("cannot restore from {}", from.display()))?;
        fs::create_dir_all(&data_dir)
            .with_context(|| format!("cannot make {}", data_dir.display()))?;
        if fs::read_dir(&data_dir)?.next().is_some() {
            bail!("{} is not empty; restore into an empty directory", data_dir.display());
        }
        let restored = fill(&data_dir, &label, envelope)
            .with_context(|| format!("cannot restore from {}", from.display()));
        if restored.is_err() {
            // It was empty before, and half a log must not be served.
            empty(&data_dir).with_context(|| format!("cannot empty {}", data_dir.display()))?;
        }
        let (head, state) = restored?;
        print(format!("{} holds {}", data_dir.display(), told(&head, &state)))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the log and opens it as the service would, with every check there is.
fn fill(
    data_dir: &Path,
    label: &Label,
    mut envelope: Envelope<BufReader<File>>,
) -> anyhow::Result<(Head, State)> {
    let log_file = data_dir.join(store::LOG_FILE);
    let mut progress = Progress::new("restore", label.bytes);
    // A name that no service looks for, until it is known to be whole.
    let unfinished = with_ending(&log_file, ".unfinished");
    let mut file = File::create_new(&unfinished)?;
    pump(&mut envelope, &mut file, &mut progress)?;
    envelope.checked()?;
    file.sync_all()?;
    fs::rename(&unfinished, &log_file)?;
    sync_directory_of(&log_file)?;
    drop(progress);
    let (head, state) = offline::verified(&offline::open(data_dir)?)?;
    if !label.is_of(&head) {
        bail!("the log ends at revision {}, the backup says {}", head.revision, label.revision);
    }
    Ok((head, state))
}

fn pump(from: &mut impl Read, to: &mut impl Write, progress: &mut Progress) -> io::Result<()> {
    let mut block = vec![0; 1 << 20];
    loop {
        let bytes = from.read(&mut block)?;
        if bytes == 0 {
            return to.flush();
        }
        to.write_all(&block[..bytes])?;
        progress.add(bytes as u64);
    }
}

fn told(head: &Head, state: &State) -> String {
    let (revision, hash) = (head.revision, envelope::hex(&head.state_hash));
    let (hosts, vms) = (state.host_count(), state.vm_count());
    format!("revision {revision}, {hosts} hosts, {vms} VMs, state hash {hash}")
}

/// A file that is removed unless it has got another name.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Gone already, if all went well.
        let _ = fs::remove_file(&self.0);
    }
}

fn empty(directory: &Path) -> io::Result<()> {
    fs::read_dir(directory)?.try_for_each(|entry| fs::remove_file(entry?.path()))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Makes a new name as durable as what it stands for.
fn sync_directory_of(file: &Path) -> io::Result<()> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
