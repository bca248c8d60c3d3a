//! Reads the log and the clients' history, and believes neither the engine nor itself.
//!
//! It follows the log as a tail would: after each commit that succeeded, and after each recovery.
//! Every entry is checked as it is read, every answer against the entries, and once a machine is
//! up again all that is still kept is read again and compared with what was seen before.

use crate::answers;
use crate::history::{Answer, History, OpNo};
use crate::model::Model;
use crate::replica::Replica;
use crate::sometimes::Rare;
use crate::violation::{Checked, Finding, Law, broken, ensure};
use engine::{Command, Entry, Outcome, Refusal, Reply, State};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::ops::ControlFlow;
use store::{LogError, LogReader, Record};

#[derive(Debug, Default)]
pub(crate) struct Checker {
    pub(crate) model: Model,
    replica: Replica,
    /// What was read, by revision from 1 on.
    seen: Vec<Seen>,
    /// Where in the log each operation took effect.
    effects: FxHashMap<OpNo, u64>,
    /// Which operation an idempotency key took effect for.
    keys: FxHashMap<Vec<u8>, OpNo>,
    pub(crate) checks: u64,
}

#[derive(Debug)]
struct Seen {
    print: u64,
    /// What the caller should have been told.
    due: Outcome,
}

impl Checker {
    /// The last revision that was read.
    pub(crate) fn revision(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(crate) fn effect(&self, op: OpNo) -> Option<u64> {
        self.effects.get(&op).copied()
    }

    /// Takes over what a commit has made durable and the answers that were given after it.
    pub(crate) fn follow(
        &mut self,
        log: &dyn LogReader,
        history: &History,
        answers: &[Answer],
    ) -> Checked {
        let mut open: Vec<&Answer> = answers.iter().collect();
        open.retain(|answer| !self.is_true_now(history, answer));
        let first = self.revision() + 1;
        let mut finding = Ok(());
        let read = log.scan(first, &mut |record| {
            finding = self.take(&record, history);
            open.retain(|answer| !self.is_true_now(history, answer));
            if finding.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        finding?;
        read.or_else(unreadable)?;
        for answer in answers {
            self.check_order(history, answer)?;
            let undone = self.effect(answer.op).is_none() || !history.get(answer.op).is_refused();
            ensure(undone, Law::Honest, || format!("op{} took effect and was refused", answer.op))?;
        }
        open.into_iter().try_for_each(|answer| self.check_answer(history, answer))
    }

    /// Reads everything that is kept once more: history must not change.
    pub(crate) fn reread(&mut self, log: &dyn LogReader) -> Checked {
        let head = log.verify(1).or_else(unreadable)?;
        ensure(head.revision >= self.revision(), Law::Acknowledged, || {
            format!("revision {} was durable, the log ends at {}", self.revision(), head.revision)
        })?;
        self.compare(log, head.first).or_else(unreadable)?
    }

    /// As `reread`, for a log that may say that it is damaged.
    pub(crate) fn reread_damaged(&mut self, log: &dyn LogReader, first: u64) -> Checked {
        self.compare(log, first).unwrap_or(Ok(()))
    }

    fn compare(&mut self, log: &dyn LogReader, first: u64) -> Result<Checked, LogError> {
        let mut next = first;
        let mut finding = Ok(());
        log.scan(first, &mut |record| {
            self.checks += 1;
            let known = self.seen.get(record.revision as usize - 1);
            finding = ensure(record.revision == next, Law::Chain, || {
                format!("revision {} comes where {next} should be", record.revision)
            })
            .and_then(|()| {
                ensure(known.is_none_or(|it| it.print == print(&record)), Law::Chain, || {
                    format!("revision {next} is not what it was")
                })
            });
            next += 1;
            if finding.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let kept = next > self.revision();
        Ok(finding.and(ensure(kept, Law::Acknowledged, || {
            format!("revision {} was durable, the log ends before {next}", self.revision())
        })))
    }

    /// The engine's state must be the one that the log leads to, in every index of it.
    pub(crate) fn compare_state(&mut self, state: &State) -> Checked {
        self.checks += 1;
        self.replica.compare(state)?;
        crate::replica::compare_with_model(&self.model, state)
    }

    fn take(&mut self, record: &Record, history: &History) -> Checked {
        self.checks += 1;
        let due = self.revision() + 1;
        ensure(record.revision == due, Law::Chain, || {
            format!("revision {} follows {}", record.revision, due - 1)
        })?;
        let Ok(entry) = Entry::decode(&record.body) else {
            return broken(Law::Chain, format!("revision {due} cannot be decoded"));
        };
        let op = history.by_actor(&entry.actor);
        match op {
            Some(op) => self.take_effect(op, record, &entry, history)?,
            None => ensure(is_the_systems(&entry), Law::Asked, || {
                format!("revision {due} by {}: {:?}", entry.actor, entry.command)
            })?,
        }
        let request = op.map(|op| &history.get(op).call.request);
        let time_ms = self.model.time_ms;
        let outcome = self.model.apply(&entry, request)?;
        let step_ms = entry.ts_ms - time_ms;
        let capped = time_ms > 0 && step_ms == crate::model::LONGEST_STEP_MS;
        self.model.reached.hit_if(Rare::TimeStepCapped, capped);
        self.replica.apply(&entry, record)?;
        self.seen.push(Seen { print: print(record), due: outcome });
        Ok(())
    }

    fn take_effect(
        &mut self,
        op: OpNo,
        record: &Record,
        entry: &Entry,
        history: &History,
    ) -> Checked {
        let revision = record.revision;
        if let Some(first) = self.effects.insert(op, revision) {
            return broken(
                Law::Acknowledged,
                format!("op{op} took effect at {first} and {revision}"),
            );
        }
        let operation = history.get(op);
        ensure(!operation.is_refused(), Law::Asked, || {
            format!("op{op} was refused, or never sent, and took effect at {revision}")
        })?;
        ensure(revision > operation.floor, Law::Order, || {
            format!("op{op} was sent after {} was known, and is at {revision}", operation.floor)
        })?;
        answers::check_asked(&self.model, entry, &operation.call.request)?;
        let key = operation.call.idempotency_key.as_ref().map(|key| key.as_bytes());
        let logged = record.idempotency.as_ref().map(|entry| entry.key.as_slice());
        ensure(key == logged, Law::Acknowledged, || format!("op{op} is logged under another key"))?;
        let Some(key) = key else { return Ok(()) };
        match self.keys.insert(key.to_vec(), op) {
            Some(first) if first != op => broken(
                Law::Acknowledged,
                format!("one idempotency key took effect for op{first} and for op{op}"),
            ),
            _ => Ok(()),
        }
    }

    /// Whether a refusal, or an answer that nothing had to change, is true at this revision.
    fn is_true_now(&mut self, history: &History, answer: &Answer) -> bool {
        let request = &history.get(answer.op).call.request;
        match &answer.told {
            Ok(reply) => {
                reply.revision.0 == self.model.revision
                    && !self.effects.contains_key(&answer.op)
                    && answers::unchanged(&self.model, request, &reply.outcome)
            }
            Err(refusal) => answers::refused_rightly(&self.model, request, refusal),
        }
    }

    /// Checks an answer that was not true by the state alone.
    fn check_answer(&mut self, history: &History, answer: &Answer) -> Checked {
        self.checks += 1;
        let op = answer.op;
        match &answer.told {
            Ok(reply) => self.check_effect(self.stands_for(history, op), reply),
            Err(Refusal::IdempotencyConflict) => {
                let key = history.get(op).call.idempotency_key.as_ref();
                let used = key.and_then(|key| self.keys.get(key.as_bytes()));
                ensure(used.is_some_and(|first| *first != op), Law::Honest, || {
                    format!("op{op} was refused for its key, which was never used")
                })
            }
            Err(refusal) => {
                broken(Law::Honest, format!("op{op} was refused without reason: {refusal}"))
            }
        }
    }

    /// The operation whose effect an operation is told of: its own, or that of an earlier one
    /// with the same key and the same body.
    fn stands_for(&self, history: &History, op: OpNo) -> OpNo {
        let call = &history.get(op).call;
        let key = call.idempotency_key.as_ref().map(|key| key.as_bytes());
        let first = key.and_then(|key| self.keys.get(key)).copied();
        let same = |first: &OpNo| history.get(*first).call.request == call.request;
        first.filter(same).unwrap_or(op)
    }

    /// An acknowledged effect is in the log, where it was said to be, as it was said.
    fn check_effect(&self, op: OpNo, reply: &Reply) -> Checked {
        let Some(revision) = self.effect(op) else {
            let what =
                format!("op{op} was acknowledged at {} and is not in the log", reply.revision);
            return broken(Law::Acknowledged, what);
        };
        let due = &self.seen[revision as usize - 1].due;
        ensure(
            revision == reply.revision.0 && answers::same(due, &reply.outcome),
            Law::Acknowledged,
            || format!("op{op} is at {revision} as {due:?}, the client was told {reply:?}"),
        )
    }

    fn check_order(&self, history: &History, answer: &Answer) -> Checked {
        let Ok(reply) = &answer.told else { return Ok(()) };
        let floor = history.get(self.stands_for(history, answer.op)).floor;
        ensure(reply.revision.0 >= floor, Law::Order, || {
            let op = answer.op;
            format!("op{op} was told of revision {}, after {floor} was known", reply.revision)
        })?;
        ensure(reply.revision.0 <= self.revision(), Law::Acknowledged, || {
            format!("op{} was told of revision {}, the log ends before", answer.op, reply.revision)
        })
    }
}

fn is_the_systems(entry: &Entry) -> bool {
    entry.actor.as_str() == "system"
        && matches!(entry.command, Command::Tick | Command::Expire { .. })
}

fn print(record: &Record) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(&record.body);
    hasher.write(&record.state_hash);
    hasher.finish()
}

fn unreadable<T>(error: LogError) -> Checked<T> {
    Err(Finding { law: Law::Chain, what: format!("the log does not verify: {error}") })
}

#[cfg(test)]
mod tests {
    //! Logs that no engine would write, to see that each law is really looked after.

    use super::*;
    use crate::shapes::name;
    use cluster::{Amounts, Host, Revision, Vm, VmKey};
    use engine::{Adoption, Call, Request};
    use std::sync::Arc;
    use store::{CommandLog, DiskOptions, SimDisk, SimulatedLog, SimulatedOptions};

    fn put(cpu_millis: u64) -> Request {
        let host = Box::new(Host::new(name("h"), Amounts::cpu_memory(cpu_millis, 1)));
        let mode = engine::PutMode::CreateOrReplace;
        Request::PutHost { host, mode, if_generation: None }
    }

    fn adopt(cpu_millis: u64) -> Request {
        let key = VmKey::in_default_tenant(name("v"));
        let vm = Arc::new(Vm::new(key, Amounts::cpu_memory(cpu_millis, 1)));
        Request::Adopt { vm, host: name("h"), bindings: None }
    }

    /// What an honest engine would make of the request.
    fn command(request: &Request) -> Command {
        match request {
            Request::PutHost { host, .. } => Command::PutHost(host.clone()),
            Request::Adopt { vm, host, bindings } => Command::Adopt(Box::new(Adoption {
                vm: vm.clone(),
                host: host.clone(),
                committed: vm.demand.clone(),
                bindings: bindings.clone(),
                over_capacity: false,
                request_hash: [0; 16],
            })),
            _ => Command::Tick,
        }
    }

    /// Asks for `requests`, logs `entries` as given by operation and command, tells the clients
    /// of `told`, and expects the law that is broken.
    fn check(
        requests: &[Request],
        entries: &[(&str, Command)],
        told: &[(OpNo, u64, Outcome)],
        expect: Option<Law>,
    ) {
        let disk = SimDisk::new(DiskOptions::default());
        let mut log = SimulatedLog::open(&disk, SimulatedOptions::default()).expect("a new log");
        let mut history = History::default();
        for request in requests {
            let op = history.begin(Call::internal(request.clone()));
            history.send(op);
        }
        let mut state = State::new();
        for (actor, command) in entries {
            let entry = Entry { ts_ms: 1, actor: name(actor), command: command.clone() };
            // What does not apply is logged all the same: the checker has to say so.
            let _ = engine::apply(&mut state, &entry);
            let revision = log.head().revision + 1;
            let (state_hash, body) = (state.hash(), entry.encode());
            log.append(&[Record { revision, state_hash, body, idempotency: None }]).expect("room");
        }
        let told = told.iter().map(|(op, revision, outcome)| {
            let reply = Reply { revision: Revision(*revision), outcome: outcome.clone() };
            Answer { op: *op, told: Ok(reply) }
        });
        let answers: Vec<Answer> = told.collect();
        let found = Checker::default().follow(log.reader().as_ref(), &history, &answers);
        assert_eq!(found.as_ref().err().map(|finding| finding.law), expect, "{found:?}");
    }

    fn created() -> Outcome {
        Outcome::Host { generation: cluster::Generation(1), created: true }
    }

    #[test]
    fn an_honest_log_is_accepted() {
        let asked = [put(1_000), adopt(1_000)];
        let entries = [("op0", command(&asked[0])), ("op1", command(&asked[1]))];
        check(&asked, &entries, &[(0, 1, created())], None);
    }

    #[test]
    fn an_acknowledged_operation_that_is_not_in_the_log_is_lost() {
        check(
            &[put(1)],
            &[("system", Command::Tick)],
            &[(0, 1, created())],
            Some(Law::Acknowledged),
        );
    }

    #[test]
    fn an_operation_that_is_acknowledged_with_other_words_than_logged_is_found() {
        let told = Outcome::Host { generation: cluster::Generation(7), created: true };
        let entries = [("op0", command(&put(1)))];
        check(&[put(1)], &entries, &[(0, 1, told)], Some(Law::Acknowledged));
    }

    #[test]
    fn an_operation_that_took_effect_twice_is_found() {
        let entries = [("op0", command(&put(1))), ("op0", command(&put(1)))];
        check(&[put(1)], &entries, &[], Some(Law::Acknowledged));
    }

    #[test]
    fn an_entry_that_nobody_asked_for_is_found() {
        check(&[], &[("op0", command(&put(1)))], &[], Some(Law::Asked));
        check(&[put(1)], &[("op0", command(&put(2)))], &[], Some(Law::Asked));
        check(&[put(1)], &[("system", command(&put(1)))], &[], Some(Law::Asked));
    }

    #[test]
    fn a_host_that_promises_more_than_it_has_is_found() {
        let asked = [put(1_000), adopt(1_001)];
        let entries = [("op0", command(&asked[0])), ("op1", command(&asked[1]))];
        check(&asked, &entries, &[], Some(Law::Capacity));
    }

    #[test]
    fn a_vm_in_two_places_is_found() {
        let asked = [put(1_000), adopt(1), adopt(1)];
        let entries = ["op0", "op1", "op2"].into_iter().zip(asked.iter().map(command));
        check(&asked, &entries.collect::<Vec<_>>(), &[], Some(Law::OnePlace));
    }

    #[test]
    fn a_reservation_that_ends_without_being_held_is_found() {
        let entries = [("system", Command::Expire { reservations: vec![3] })];
        check(&[], &entries, &[], Some(Law::Reservations));
    }
}
