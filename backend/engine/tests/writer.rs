//! The writer's queue: what it refuses, what it never starts, and what it tells its listener.

mod common;

use common::{Bench, vm};
use engine::{Call, Caller, Event, PlaceRequest, Refusal, Reply, Request, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

type Answered = Result<Reply, Refusal>;

fn place(id: &str) -> Call {
    Call::internal(Request::Place(PlaceRequest::new(vm(id, 100))))
}

fn tell(sender: &Sender<Answered>) -> Box<dyn Caller> {
    let sender = sender.clone();
    Box::new(move |reply: Answered| sender.send(reply).expect("somebody listens"))
}

/// Keeps the writer's thread busy with one answer until the returned sender is used or dropped.
fn hold_up(writer: &Writer) -> Sender<()> {
    let (release, held) = channel::<()>();
    let (entered, busy) = channel();
    let answer = move |_: Answered| {
        entered.send(()).expect("the test waits for it");
        let _ = held.recv();
    };
    writer.submit(place("blocker"), None, Box::new(answer));
    busy.recv().expect("the writer answers");
    release
}

fn start(queue: usize) -> (Writer, impl FnOnce()) {
    let bench = Bench::with_hosts(&[8_000]);
    let clock = Arc::new(|| 1_000_000);
    let spawned = Writer::spawn(bench.engine, queue, clock, Box::new(|_| {}));
    let (writer, thread) = spawned.expect("a thread");
    let handle = writer.clone();
    let stop = move || {
        handle.stop();
        assert!(thread.join().expect("no panic").failure().is_none());
    };
    (writer, stop)
}

struct Impatient {
    left: Arc<AtomicBool>,
    answered: Sender<Answered>,
}

impl Caller for Impatient {
    fn answer(self: Box<Self>, reply: Answered) {
        self.answered.send(reply).expect("somebody listens");
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }
}

#[test]
fn a_queued_call_of_a_caller_who_has_left_is_never_started() {
    let (writer, stop) = start(16);
    let release = hold_up(&writer);
    let (sender, answers): (_, Receiver<Answered>) = channel();
    let left = Arc::new(AtomicBool::new(false));
    let impatient = Impatient { left: Arc::clone(&left), answered: sender.clone() };
    writer.submit(place("left"), None, Box::new(impatient));
    writer.submit(place("stayed"), None, tell(&sender));
    drop(sender);
    left.store(true, Ordering::SeqCst);
    release.send(()).expect("the writer waits");
    let answers: Vec<Answered> = answers.iter().collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let there = |id: &str| writer.read(|state| state.find_vm(&common::key(id)).is_some());
    assert!(there("stayed") && !there("left"));
    stop();
}

#[test]
fn a_full_queue_refuses_at_once_and_counts_who_waits() {
    let (writer, stop) = start(2);
    let release = hold_up(&writer);
    let (sender, answers) = channel();
    for id in ["a", "b", "c"] {
        writer.submit(place(id), None, tell(&sender));
    }
    let refused = answers.recv().expect("before the writer goes on");
    assert!(matches!(refused, Err(Refusal::Busy { .. })), "{refused:?}");
    assert_eq!(writer.waiting(), 2);
    release.send(()).expect("the writer waits");
    assert!(answers.recv().expect("an answer").is_ok());
    assert!(answers.recv().expect("an answer").is_ok());
    assert_eq!(writer.waiting(), 0);
    stop();
}

#[test]
fn the_listener_hears_a_decision_before_its_commit_and_the_commit_before_its_answer() {
    let bench = Bench::with_hosts(&[8_000]);
    let (sender, heard) = channel();
    let listen = sender.clone();
    let listener = Box::new(move |event: Event<'_>| {
        let word = match event {
            Event::Decided { reply: Ok(_), .. } => "decided",
            Event::Decided { reply: Err(_), .. } => "refused",
            Event::Committed { commands, .. } => {
                assert!(!commands.is_empty());
                "committed"
            }
            Event::LogFailed => "failed",
        };
        let _ = listen.send(word);
    });
    let spawned = Writer::spawn(bench.engine, 4, Arc::new(|| 1_000_000), listener);
    let (writer, thread) = spawned.expect("a thread");
    let answer = Box::new(move |_: Answered| sender.send("answered").expect("the test listens"));
    writer.submit(place("a"), None, answer);
    let order: Vec<_> = heard.iter().take(3).collect();
    assert_eq!(order, ["decided", "committed", "answered"]);
    writer.stop();
    thread.join().expect("no panic");
}
