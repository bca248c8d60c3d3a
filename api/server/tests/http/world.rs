//! A running service and a client that shows everything it gets.

use engine::{Engine, Options, Request};
use serde_json::Value;
use server::{AcceptLimits, Ended, Service};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use store::{DiskOptions, SimDisk, SimulatedLog, SimulatedOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) app: axum::Router,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Ended>,
    service: Service,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("0");
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            status: status.parse().unwrap_or(0),
            headers: headers.map(|(name, value)| (name.into(), value.into())).collect(),
            text: body.to_owned(),
        }
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(AcceptLimits::default()).await
    }

    pub(crate) async fn with(limits: AcceptLimits) -> Self {
        Self::with_queue(limits, 1_024).await
    }

    /// `queue`: how many calls may wait for the writer.
    pub(crate) async fn with_queue(limits: AcceptLimits, queue: usize) -> Self {
        Self::with_options(limits, queue, server::Options::default()).await
    }

    pub(crate) async fn with_options(
        limits: AcceptLimits,
        queue: usize,
        options: server::Options,
    ) -> Self {
        let clock = Arc::new(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_millis() as u64)
        });
        let disk = SimDisk::new(DiskOptions::default());
        let log = SimulatedLog::open(&disk, SimulatedOptions::default()).expect("an empty log");
        let mut engine = Engine::open(log, Options::default()).expect("an empty state");
        let mut extra = vec![cluster::Name::new("gpu_slots").expect("a name")];
        if options.max_vms_per_node > 0 {
            extra.push(cluster::Name::new(server::VM_SLOTS).expect("a name"));
        }
        let dimensions = cluster::Dimensions::with_extra(extra).expect("one extra dimension");
        let declare = engine::Call::internal(Request::DeclareDimensions(dimensions));
        engine.propose(&declare, clock()).expect("declared");
        engine.commit().expect("committed");
        let (service, _) = Service::start(engine, queue, clock).expect("a thread");
        let service = service.with(options);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = server::router(service.clone());
        let stopped = async {
            let _ = stopped.await;
        };
        let serving = tokio::spawn(server::serve(listener, app.clone(), limits, stopped));
        Self { address, app, stop, serving, service }
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// The same service as others than this machine would see it.
    pub(crate) fn seen_from_elsewhere(&self) -> axum::Router {
        server::router(self.service.clone().with_ai_routes(false))
    }

    /// Takes in what a node reports, as the inventory's routes do.
    pub(crate) fn observe(&self, node: &wire::novacron::NodeResourceInfo) {
        self.service.observe(node);
    }

    pub(crate) async fn stop(self) -> Ended {
        self.stop.send(()).expect("still serving");
        let ended = self.serving.await.expect("no panic");
        self.service.writer().stop();
        ended
    }

    /// Keeps the writer from working on anything until the returned sender is dropped.
    pub(crate) fn hold_up(&self) -> std::sync::mpsc::Sender<()> {
        let (release, held) = std::sync::mpsc::channel();
        let (entered, busy) = std::sync::mpsc::channel();
        let answer = move |_: Result<engine::Reply, engine::Refusal>| {
            entered.send(()).expect("the test waits for it");
            // Ends with an error, because nothing is ever sent.
            let _ = held.recv();
        };
        self.service.writer().flush(Box::new(answer));
        busy.recv().expect("the writer answers");
        release
    }

    pub(crate) fn queue_depth(&self) -> usize {
        self.service.writer().waiting()
    }

    /// Returns when this many calls wait for the writer.
    pub(crate) async fn wait_for_queue(&self, depth: usize) {
        while self.queue_depth() != depth {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("accepted")
    }

    /// Sends bytes as they are and reads until the other side closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        exchange(self.address, bytes).await
    }

    pub(crate) async fn ask(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        self.raw(&request(line, headers, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &[], "").await
    }

    /// A request with a JSON body; `line` is `POST /v1/hosts` and the like.
    pub(crate) async fn send(&self, line: &str, body: &str) -> Answer {
        self.ask(line, &["Content-Type: application/json"], body).await
    }

    /// Adds a host with this many cores.
    pub(crate) async fn host(&self, id: &str, cores: u32) {
        let body = format!(
            r#"{{"id":"{id}","capacity":{{"cpu_millis":{},"memory_mib":65536}}}}"#,
            cores * 1_000
        );
        let answer = self.send("POST /v1/hosts", &body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
}

/// Posts a JSON body on a connection of its own.
pub(crate) async fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    let line = format!("POST {path}");
    exchange(address, &request(&line, &["Content-Type: application/json"], body)).await
}

fn request(line: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut head = format!("{line} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    format!("{head}{body}").into_bytes()
}

async fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("accepted");
    // A service that has read enough may answer and close before all is sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    // A reset after the answer is as good as a close.
    let _ = stream.read_to_end(&mut answer).await;
    Answer::parse(&answer)
}
