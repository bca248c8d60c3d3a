//! `novaplace serve`: recovers the state, answers HTTP, and ends cleanly when told to.

mod demo;
mod settings;

pub(crate) use settings::{Settings, schema};

use anyhow::Context;
use cluster::{Dimensions, Name};
use engine::{Call, Clock, Engine, Options, Refusal, Request};
use server::{AcceptLimits, App, PolicyDirectory, Service, Watching, check_listen, router};
use std::io::IsTerminal;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::EmbeddedLog;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// What a supervisor is told when the log failed: start again, and recover from it.
const LOG_FAILED: u8 = 70;

pub(crate) fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let settings = settings.complete()?;
    start_logging(&settings);
    check_listen(settings.listen, settings.insecure_public)?;
    let (ttl_ms, allowed) = (settings.novacron_hold_ttl_ms, engine::HOLD_TTL_MS);
    if !allowed.contains(&ttl_ms) {
        let (least, most) = (allowed.start(), allowed.end());
        anyhow::bail!("--novacron-hold-ttl-ms is {ttl_ms}; it must be from {least} to {most}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
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
    let mut dimensions = settings.dimensions.clone();
    if settings.novacron_max_vms_per_node > 0 {
        dimensions.push(server::VM_SLOTS.to_owned());
    }
    declare(&mut engine, &dimensions)?;
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

/// Listens at once, so that `/health` and `/ready` answer while the state is being recovered.
async fn serve(settings: settings::Complete) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening");
    let mut told = pin!(told_to_stop());
    let app = App::starting();
    let limits = AcceptLimits { connections: settings.connections, ..AcceptLimits::default() };
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        // Dropping the sender stops as well.
        let _ = stopped.await;
    };
    let serving = tokio::spawn(server::serve(listener, app.clone(), limits, stopped));
    let demo = settings.demo;
    let starting = tokio::task::spawn_blocking(move || start(&settings));
    let (service, writer, watching) = tokio::select! {
        started = starting => started??,
        // Nothing has been promised yet, and the log survives being dropped at any moment.
        () = &mut told => std::process::exit(0),
    };
    app.open(router(service.clone()));
    if demo {
        demo::say_what_to_try(address);
    }
    tokio::select! {
        () = told => {}
        () = service.failed() => {}
    }
    drop(stop);
    let ended = serving.await?;
    if ended.cut_off > 0 {
        tracing::warn!(connections = ended.cut_off, "cut off at the end of the grace period");
    }
    // Files that change from now on are for the next start; it waits for what it has begun.
    tokio::task::spawn_blocking(move || drop(watching)).await?;
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

type Started = (Service, JoinHandle<Engine<EmbeddedLog>>, Option<Watching>);

/// Recovers the state, starts the writer on it, and brings in what it is told to begin with.
fn start(settings: &settings::Complete) -> anyhow::Result<Started> {
    let started = Instant::now();
    let engine = open(settings)?;
    let (revision, hosts, vms) =
        engine.read(|state| (state.revision(), state.host_count(), state.vm_count()));
    let seconds = started.elapsed().as_secs_f64();
    tracing::info!(%revision, hosts, vms, seconds, "recovered");
    let clock: Clock = Arc::new(now_ms);
    let (service, writer) = Service::start(engine, settings.queue, clock)?;
    let service = service.with(server::Options {
        hold_ttl_ms: settings.novacron_hold_ttl_ms,
        max_vms_per_node: settings.novacron_max_vms_per_node,
        advise: settings.advise,
    });
    if settings.advise {
        tracing::info!("advising only: nothing is placed");
    }
    // An IPv4 loopback address in IPv6 clothes is as private as without.
    let private = settings.listen.ip().to_canonical().is_loopback();
    let service = service.with_ai_routes(private || settings.ai_routes_open);
    if settings.demo {
        demo::load(service.writer())?;
    }
    let watching = settings.policies.as_ref().map(|path| {
        let (path, keep_removed) = (path.clone(), settings.policies_keep_removed);
        let directory = PolicyDirectory { path, keep_removed };
        let shown = directory.path.display().to_string();
        directory.watch(&service).with_context(|| format!("cannot read policies in {shown}"))
    });
    Ok((service, writer, watching.transpose()?))
}

/// Done when a signal asks the service to stop.
async fn told_to_stop() {
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
