//! An engine over the simulated log, and short ways to ask it for things.
#![allow(dead_code, reason = "each test file uses its own part")]

use cluster::{Amounts, Host, Name, Vm, VmKey};
use engine::{
    Call, Engine, IdempotencyKey, Options, Outcome, PlaceRequest, PutMode, Refusal, Reply, Request,
};
use store::{DiskOptions, SimDisk, SimulatedLog, SimulatedOptions};

pub struct Bench {
    pub engine: Engine<SimulatedLog>,
    pub disk: SimDisk,
    pub options: Options,
    pub now_ms: u64,
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub fn vm(id: &str, cpu_millis: u64) -> Vm {
    Vm::new(VmKey::in_default_tenant(name(id)), Amounts::cpu_memory(cpu_millis, 1))
}

pub fn key(id: &str) -> VmKey {
    VmKey::in_default_tenant(name(id))
}

impl Bench {
    /// Hosts `h0`, `h1`, ... with this much CPU each.
    pub fn with_hosts(cpu_millis: &[u64]) -> Self {
        Self::with_options(cpu_millis, Options { snapshot_every: 0, retain: 0 })
    }

    pub fn with_options(cpu_millis: &[u64], options: Options) -> Self {
        let disk = SimDisk::new(DiskOptions::default());
        let mut bench = Self { engine: open(&disk, options), disk, options, now_ms: 1_000_000 };
        for (row, cpu_millis) in cpu_millis.iter().enumerate() {
            bench.put(host(row, *cpu_millis)).expect("a new host");
        }
        bench
    }

    pub fn put(&mut self, host: Host) -> Result<Reply, Refusal> {
        let mode = PutMode::CreateOrReplace;
        self.ask(Request::PutHost { host: Box::new(host), mode, if_generation: None })
    }

    /// Proposes and commits one request.
    pub fn ask(&mut self, request: Request) -> Result<Reply, Refusal> {
        self.call(&Call::internal(request))
    }

    pub fn ask_with_key(&mut self, key: &str, request: Request) -> Result<Reply, Refusal> {
        let idempotency_key = Some(IdempotencyKey::new(&name("default"), key));
        self.call(&Call { idempotency_key, ..Call::internal(request) })
    }

    pub fn call(&mut self, call: &Call) -> Result<Reply, Refusal> {
        let reply = self.engine.propose(call, self.now_ms);
        self.engine.commit()?;
        reply
    }

    pub fn place(&mut self, vm: Vm) -> Result<engine::Placement, Refusal> {
        self.place_request(PlaceRequest::new(vm))
    }

    pub fn place_request(&mut self, request: PlaceRequest) -> Result<engine::Placement, Refusal> {
        match self.ask(Request::Place(request))?.outcome {
            Outcome::Placement(placement) => Ok(placement),
            other => panic!("a placement answers a placement, not {other:?}"),
        }
    }

    pub fn hold(&mut self, vm: Vm, ttl_ms: u64) -> u64 {
        let request = PlaceRequest { hold_ttl_ms: Some(ttl_ms), ..PlaceRequest::new(vm) };
        let placement = self.place_request(request).expect("room");
        placement.hold.expect("a reservation").reservation
    }

    pub fn host_of(&self, id: &str) -> Option<String> {
        self.engine.read(|state| {
            let (_, entry) = state.find_vm(&key(id))?;
            Some(state.host(entry.host)?.host.id.to_string())
        })
    }

    pub fn cpu_taken(&self, host: &str) -> u64 {
        self.engine.read(|state| {
            let (_, entry) = state.find_host(&name(host)).expect("the host");
            entry.allocated.get(cluster::Dim::CPU_MILLIS)
        })
    }

    pub fn hash(&self) -> [u8; 32] {
        self.engine.read(|state| state.freeze().full_hash())
    }

    /// Kills the process: what was not committed is gone, and the log is opened again.
    pub fn restart(self) -> Self {
        let Self { engine, disk, options, now_ms } = self;
        drop(engine);
        disk.crash();
        Self { engine: open(&disk, options), disk, options, now_ms }
    }
}

pub fn host(row: usize, cpu_millis: u64) -> Host {
    Host::new(name(&format!("h{row}")), Amounts::cpu_memory(cpu_millis, 1_000))
}

fn open(disk: &SimDisk, options: Options) -> Engine<SimulatedLog> {
    let log = SimulatedLog::open(disk, SimulatedOptions::default()).expect("a log that opens");
    Engine::open(log, options).expect("a log that recovers")
}
