//! The engine as the routes see it: asynchronous, with deadlines, and showing only what is durable.

use crate::advice::Book;
use crate::ask::Ask;
use crate::body::aside;
use crate::events::Events;
use crate::explain::Study;
use crate::failure::Failure;
use crate::metrics::Metrics;
use crate::optimisations::Jobs;
use crate::options::Options;
use crate::policies::Policies;
use crate::policy_files::PolicyFiles;
use crate::routes::novacron::Samples;
use cluster::{Dimensions, Name, Revision};
use engine::{
    Call, Caller, Clock, Core, Engine, History, IdempotencyKey, Prepared, Refusal, Reply, Request,
    State, Writer,
};
use std::sync::Arc;
use std::thread::JoinHandle;
use store::CommandLog;
use tokio::sync::{oneshot, watch};
use wire::Code;
use wire::novacron::NodeResourceInfo;

/// A handle to the running service. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Service {
    writer: Writer,
    /// The newest revision that the log has. Closed when the writer has ended.
    durable: watch::Receiver<Revision>,
    pub(crate) events: Arc<Events>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) advice: Arc<Book>,
    pub(crate) options: Options,
    /// What was measured lately, for NovaCron's AI routes.
    pub(crate) samples: Arc<Samples>,
    pub(crate) ai_routes_open: bool,
    dimensions: Arc<Dimensions>,
    clock: ClockHandle,
    policy_files: PolicyFiles,
    /// What policies are tried on and asked with, beside placing.
    pub(crate) policies: Arc<Policies>,
    /// What questions beside placing are worked out on.
    pub(crate) study: Arc<Study>,
    pub(crate) jobs: Arc<Jobs>,
}

/// Somebody who waits for a reply. Has left once the request's future is dropped, which happens
/// when the connection closes or the deadline passes.
struct Waiting(oneshot::Sender<Result<Reply, Refusal>>);

impl Caller for Waiting {
    fn answer(self: Box<Self>, reply: Result<Reply, Refusal>) {
        // A caller who has left needs no answer.
        let _ = self.0.send(reply);
    }

    fn has_left(&self) -> bool {
        self.0.is_closed()
    }
}

#[derive(Clone)]
struct ClockHandle(Clock);

impl std::fmt::Debug for ClockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Service {
    /// Starts the writer's thread on a recovered engine. Dimensions must have been declared.
    pub fn start<L: CommandLog + 'static>(
        engine: Engine<L>,
        queue: usize,
        clock: Clock,
    ) -> std::io::Result<(Self, JoinHandle<Engine<L>>)> {
        let (revision, dimensions) =
            engine.read(|state| (state.revision(), Arc::new(state.dimensions().clone())));
        let (announce, durable) = watch::channel(revision);
        let events = Arc::new(Events::new(revision));
        let metrics = Arc::new(Metrics::new());
        let (recorder, meter) = (Arc::clone(&events), Arc::clone(&metrics));
        let listener = Box::new(move |event: engine::Event<'_>| {
            meter.hear(&event);
            let engine::Event::Committed { commands, .. } = event else { return };
            recorder.record(commands);
            if let Some((revision, _)) = commands.last() {
                announce.send_replace(*revision);
            }
        });
        let (writer, thread) = Writer::spawn(engine, queue, Arc::clone(&clock), listener)?;
        let clock = ClockHandle(clock);
        let samples = Arc::new(Samples::default());
        let (advice, options) = (Arc::default(), Options::default());
        let service = Self {
            writer,
            durable,
            events,
            metrics,
            advice,
            options,
            samples,
            ai_routes_open: true,
            dimensions,
            clock,
            policy_files: PolicyFiles::default(),
            policies: Arc::default(),
            study: Arc::default(),
            jobs: Arc::default(),
        };
        Ok((service, thread))
    }

    /// The same service with other settings. To be called before anything is asked of it.
    pub fn with(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Whether NovaCron's AI routes answer. They take callers at their word, so that they are for
    /// this machine only unless the operator says otherwise.
    pub fn with_ai_routes(self, open: bool) -> Self {
        Self { ai_routes_open: open, ..self }
    }

    /// Takes in what a node reports of its use, as evidence for predictions.
    pub fn observe(&self, node: &NodeResourceInfo) {
        self.samples.record_node(node, self.now_ms());
    }

    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// What became of the files in the directory of policies, if one is read.
    pub fn policy_files(&self) -> &PolicyFiles {
        &self.policy_files
    }

    pub(crate) fn dimensions(&self) -> Arc<Dimensions> {
        Arc::clone(&self.dimensions)
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.clock.0)()
    }

    pub(crate) fn durable(&self) -> watch::Receiver<Revision> {
        self.durable.clone()
    }

    /// Done when the writer has ended, told to or not: from then on nothing can be answered.
    pub async fn failed(&self) {
        let mut durable = self.durable.clone();
        while durable.changed().await.is_ok() {}
    }

    /// Whether the writer is there to take requests.
    pub(crate) fn is_alive(&self) -> bool {
        self.durable.has_changed().is_ok()
    }

    /// Carries out a request, or says what it would do if the caller asks for a dry run. The
    /// answer is durable.
    pub(crate) async fn carry_out(
        &self,
        ask: &Ask,
        tenant: &Name,
        request: Request,
    ) -> Result<Reply, Failure> {
        self.carry_out_prepared(ask, tenant, request, None).await
    }

    /// The same for a change of policies that may have been worked out beforehand.
    pub(crate) async fn carry_out_prepared(
        &self,
        ask: &Ask,
        tenant: &Name,
        request: Request,
        prepared: Option<Box<Prepared>>,
    ) -> Result<Reply, Failure> {
        let places = matches!(request, Request::Place(_) | Request::PlaceBatch { .. });
        if self.options.advise && places && !ask.dry_run {
            let detail = "the service was started with --advise and places nothing";
            return Err(Failure::new(Code::ADVISE_MODE, detail));
        }
        let (sender, receiver) = oneshot::channel();
        let answer = Box::new(Waiting(sender));
        if ask.dry_run {
            self.writer.preview(request, answer);
        } else {
            let key = ask.idempotency_key.as_deref();
            let call = Call {
                actor: ask.actor.clone(),
                idempotency_key: key.map(|key| IdempotencyKey::new(tenant, key)),
                request,
            };
            let left = ask.time_left().as_millis();
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            let deadline_ms = self.now_ms().saturating_add(left);
            match prepared {
                Some(prepared) => {
                    self.writer.submit_prepared(call, prepared, Some(deadline_ms), answer);
                }
                None => self.writer.submit(call, Some(deadline_ms), answer),
            }
        }
        match receiver.await {
            Ok(reply) => reply.map_err(Failure::from),
            Err(_) => Err(Refusal::OutcomeUnknown.into()),
        }
    }

    /// Reads the state, on a thread that may wait for the writer's lock, and returns when what
    /// was read is durable.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        self.look(|core| read(core.state())).await
    }

    /// The same with the policies in force.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Core) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        self.beside(|writer| Ok(writer.look(|core| (look(core), core.state().revision())))).await
    }

    /// Works something out from what it reads of the state, on a thread where it keeps nobody
    /// waiting. `work` says at which revision it read; what came of it is returned when that is
    /// durable.
    pub(crate) async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer) -> Result<(T, Revision), Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let writer = self.writer.clone();
        let (seen, revision) = aside(move || work(&writer)).await?;
        let mut durable = self.durable.clone();
        match durable.wait_for(|durable| *durable >= revision).await {
            Ok(_) => Ok(seen),
            Err(_) => Err(Failure::new(Code::NOT_READY, "the log has stopped")),
        }
    }

    /// Reads the log, on a thread that may wait for the disk.
    pub(crate) async fn recall<T: Send + 'static>(
        &self,
        recall: impl FnOnce(&History) -> Result<T, engine::OpenError> + Send + 'static,
    ) -> Result<T, Failure> {
        let history = self.writer.history().clone();
        aside(move || {
            recall(&history).map_err(|error| Failure::new(Code::INTERNAL, error.to_string()))
        })
        .await
    }
}
