//! A process to be killed: the writer over a real log, with clients that never pause.
//!
//! Prints a line for every answer, after the answer: `ACTOR REVISION WHAT`. Whoever kills it
//! holds these lines against the log. Each operation has an actor of its own, so that the log
//! shows whether it happened once.

use cluster::{Amounts, Dim, Host, Name, Vm, VmKey};
use engine::{
    Call, Engine, IdempotencyKey, Options, Outcome, PlaceRequest, PutMode, Request, Writer,
};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::EmbeddedLog;

const CLIENTS: u64 = 8;
const HOSTS: u64 = 12;
/// More than any run reaches before it is killed; the process ends by itself all the same.
const OPERATIONS: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let data_dir = arguments.next().ok_or("usage: kill-driver DATA_DIR ROUND")?;
    let round: u64 = arguments.next().ok_or("usage: kill-driver DATA_DIR ROUND")?.parse()?;
    let log =
        EmbeddedLog::open(Path::new(&data_dir).join(store::LOG_FILE), store::Options::default())?;
    let options = Options { snapshot_every: 300, retain: u64::MAX };
    let engine = Engine::open(log, options)?;
    let clock = Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_millis() as u64
    });
    let (writer, thread) = Writer::spawn(engine, 1024, clock, Box::new(|_| {}))?;
    for row in 0..HOSTS {
        let host = Host::new(name(&format!("h{row}"))?, Amounts::cpu_memory(64_000, 256_000));
        let mode = PutMode::CreateOrReplace;
        let request = Request::PutHost { host: Box::new(host), mode, if_generation: None };
        writer.call(Call::internal(request))?;
    }
    say("ready")?;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let writer = writer.clone();
            std::thread::spawn(move || run(&writer, round, client).map_err(|e| e.to_string()))
        })
        .collect();
    for client in clients {
        client.join().map_err(|_| "a client panicked")??;
    }
    writer.stop();
    thread.join().map_err(|_| "the writer panicked")?;
    Ok(())
}

/// Places, confirms, resizes and removes, and says what was answered.
fn run(writer: &Writer, round: u64, client: u64) -> Result<(), Box<dyn Error>> {
    let mut live = Vec::new();
    for operation in 0..OPERATIONS {
        let actor = name(&format!("r{round}-c{client}-{operation}"))?;
        let request = match operation % 5 {
            4 if live.len() > 20 => {
                Request::RemoveVm { vm: live.swap_remove(0), if_generation: None }
            }
            3 if !live.is_empty() => {
                let vm: VmKey = live[operation as usize % live.len()].clone();
                // Another size each time: a resize that changes nothing leaves no record.
                let changes = vec![(Dim::CPU_MILLIS, 200 + operation)];
                Request::Resize { vm, changes, if_generation: None }
            }
            kind => {
                let key = VmKey::in_default_tenant(actor.clone());
                let vm = Vm::new(key, Amounts::cpu_memory(100 + 10 * kind, 64));
                let hold_ttl_ms = (kind == 1).then_some(2_000);
                Request::Place(PlaceRequest { hold_ttl_ms, ..PlaceRequest::new(vm) })
            }
        };
        let idempotency_key = Some(IdempotencyKey::new(&name("default")?, actor.as_str()));
        let call = Call { actor: actor.clone(), idempotency_key, request };
        let Ok(reply) = writer.call(call) else { continue };
        let what = match &reply.outcome {
            Outcome::Placement(placement) => match &placement.host {
                Some(host) => {
                    if placement.hold.is_none() {
                        live.push(VmKey::in_default_tenant(actor.clone()));
                    }
                    format!("placed {host}")
                }
                None => "rejected".into(),
            },
            Outcome::VmRemoved => "removed".into(),
            Outcome::Resized { .. } => "resized".into(),
            other => format!("{other:?}").replace(' ', ""),
        };
        say(&format!("{actor} {} {what}", reply.revision))?;
    }
    Ok(())
}

/// One whole line in one write, so that a kill never leaves half of one.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

fn name(text: &str) -> Result<Name, cluster::NameError> {
    Name::new(text)
}
