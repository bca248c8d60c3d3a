//! `novaplace serve`: recovers the state, answers HTTP, and ends cleanly when told to.

mod demo;
mod settings;

pub(crate) use settings::{Settings, schema};

use anyhow::Context;
use cluster::{Dimensions, Name};
use engine::{Call, Clock, Engine, Options, Refusal, Request};
use server::{AcceptLimits, Service, check_listen, router};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::EmbeddedLog;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// What a supervisor is told when the log failed: start again, and recover from it.
const LOG_FAILED: u8 = 70;

pub(crate) fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let settings = settings.complete()?;
    start_logging(&settings);
    check_listen(settings.listen, settings.insecure_public)?;
    let started = Instant::now();
    let engine = open(&settings)?;
    let (revision, hosts, vms) =
        engine.read(|state| (state.revision(), state.host_count(), state.vm_count()));
    let seconds = started.elapsed().as_secs_f64();
    tracing::info!(%revision, hosts, vms, seconds, "recovered");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings, engine))
}

/// Opens the log, recovers the state and brings the declared dimensions in.
fn open(settings: &settings::Complete) -> anyhow::Result<Engine<EmbeddedLog>> {
    let data_dir = &settings.data_dir;
    std::fs::create_dir_all(data_dir)
        .with_context(|| format!("cannot make the data directory {}", data_dir.display()))?;
    let log = open_log(data_dir)?;
    let options = Options { snapshot_every: settings.snapshot_every, retain: settings.retain };
    let mut engine = Engine::open(log, options)
        .with_context(|| format!("cannot recover from {}", data_dir.display()))?;
    declare(&mut engine, &settings.dimensions)?;
    Ok(engine)
}

pub(crate) fn open_log(data_dir: &Path) -> anyhow::Result<EmbeddedLog> {
    EmbeddedLog::open(data_dir.join(store::LOG_FILE), store::Options::default())
        .with_context(|| format!("cannot open the log in {}", data_dir.display()))
}

/// Adds the configured dimensions to those that the log knows.
fn declare(engine: &mut Engine<EmbeddedLog>, names: &[String]) -> anyhow::Result<()> {
    let mut extra = engine.read(|state| state.dimensions().extra().to_vec());
    for name in names {
        let name = Name::new(name).with_context(|| format!("dimension {name:?}"))?;
        if !extra.contains(&name) {
            extra.push(name);
        }
    }
    let request = Request::DeclareDimensions(Dimensions::with_extra(extra)?);
    engine.propose(&Call::internal(request), now_ms())?;
    engine.commit()?;
    Ok(())
}

async fn serve(
    settings: settings::Complete,
    engine: Engine<EmbeddedLog>,
) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    let clock: Clock = Arc::new(now_ms);
    let (service, writer) = Service::start(engine, settings.queue, clock)?;
    if settings.demo {
        let handle = service.writer().clone();
        tokio::task::spawn_blocking(move || demo::load(&handle)).await??;
        demo::say_what_to_try(address);
    }
    tracing::info!(%address, "listening");
    let limits = AcceptLimits { connections: settings.connections, ..AcceptLimits::default() };
    let stop = until_told_or_dead(service.clone());
    let ended = server::serve(listener, router(service.clone()), limits, stop).await;
    if ended.cut_off > 0 {
        tracing::warn!(connections = ended.cut_off, "cut off at the end of the grace period");
    }
    service.writer().stop();
    drop(service);
    let engine = tokio::task::spawn_blocking(move || writer.join()).await?;
    let engine = engine.map_err(|_| anyhow::anyhow!("the writer panicked"))?;
    match engine.failure() {
        None => {
            tracing::info!(revision = %engine.read(|state| state.revision()), "stopped");
            Ok(ExitCode::SUCCESS)
        }
        Some(failure) => {
            tracing::error!(failure, "the log failed; restart to recover from it");
            Ok(ExitCode::from(LOG_FAILED))
        }
    }
}

/// Done when a signal asks for it, or when the log has failed and nothing can be answered.
async fn until_told_or_dead(service: Service) {
    let told = async {
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            // Without signals the process can only be killed, which the log survives.
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        () = told => {}
        () = service.failed() => {}
    }
}

fn start_logging(settings: &settings::Complete) {
    let filter = tracing_subscriber::EnvFilter::try_new(&settings.log_level)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match settings.log_format {
        settings::LogFormat::Text => logs.init(),
        settings::LogFormat::Json => logs.json().init(),
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Submits calls without waiting for each, at most `window` at a time.
fn submit_all(
    writer: &engine::Writer,
    requests: impl Iterator<Item = Request>,
    window: usize,
) -> Result<usize, Refusal> {
    let (sender, answers) = std::sync::mpsc::channel();
    let (mut sent, mut answered) = (0usize, 0usize);
    for request in requests {
        let sender = sender.clone();
        let answer = Box::new(move |reply: Result<engine::Reply, Refusal>| {
            // The receiver lives until the last answer.
            let _ = sender.send(reply.map(|_| ()));
        });
        writer.submit(Call::internal(request), None, answer);
        sent += 1;
        while sent - answered >= window {
            answers.recv().unwrap_or(Err(Refusal::OutcomeUnknown))?;
            answered += 1;
        }
    }
    while answered < sent {
        answers.recv().unwrap_or(Err(Refusal::OutcomeUnknown))?;
        answered += 1;
    }
    Ok(sent)
}
