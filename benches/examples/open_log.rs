//! Opens a data directory and says how long each part took: for profiling recovery.

use engine::{Engine, Options};
use std::time::Instant;
use store::EmbeddedLog;

#[expect(clippy::print_stdout, reason = "the figures are what was asked for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: open_log DATA_DIR")?;
    let started = Instant::now();
    let path = std::path::Path::new(&dir).join(store::LOG_FILE);
    let log = EmbeddedLog::open(path, store::Options::default())?;
    println!("log open after {:.2} s", started.elapsed().as_secs_f64());
    let engine = Engine::open(log, Options::default())?;
    println!("engine open after {:.2} s", started.elapsed().as_secs_f64());
    println!("revision {}", engine.read(|state| state.revision()));
    Ok(())
}
