//! What clients asked and what they were told, in the order in which they saw it.
//!
//! Every operation has an actor name of its own, however often it is sent, so that the log shows
//! which operation an entry belongs to, and how often it took effect.

use cluster::Name;
use engine::{Call, Refusal, Reply};

/// An operation's number in the history.
pub(crate) type OpNo = u32;

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) call: Call,
    /// The highest revision that anybody had been told of when it was first sent.
    pub(crate) floor: u64,
    pub(crate) sent: u32,
    /// How many times it was answered with a refusal.
    pub(crate) refused: u32,
    pub(crate) state: Knowledge,
}

impl Operation {
    /// Whether every attempt was refused, so that it must not have happened.
    pub(crate) fn is_refused(&self) -> bool {
        self.sent == self.refused
    }
}

/// What the client knows of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Waiting,
    Answered,
    /// The answer was lost, the service died, or it said that it does not know.
    Unknown,
}

/// An answer as the client got it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) op: OpNo,
    pub(crate) told: Result<Reply, Refusal>,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    operations: Vec<Operation>,
    /// The highest revision in any answer so far.
    acknowledged: u64,
}

impl History {
    /// A new operation. `call` gets its actor here.
    pub(crate) fn begin(&mut self, mut call: Call) -> OpNo {
        let number = self.operations.len() as OpNo;
        call.actor = actor(number);
        let floor = self.acknowledged;
        self.operations.push(Operation {
            call,
            floor,
            sent: 0,
            refused: 0,
            state: Knowledge::Waiting,
        });
        number
    }

    pub(crate) fn get(&self, op: OpNo) -> &Operation {
        &self.operations[op as usize]
    }

    pub(crate) fn send(&mut self, op: OpNo) -> &Call {
        let operation = &mut self.operations[op as usize];
        operation.sent += 1;
        &operation.call
    }

    pub(crate) fn answered(&mut self, answer: &Answer) {
        let operation = &mut self.operations[answer.op as usize];
        operation.state = Knowledge::Answered;
        match &answer.told {
            Ok(reply) => self.acknowledged = self.acknowledged.max(reply.revision.0),
            Err(_) => operation.refused += 1,
        }
    }

    /// The client will never hear of this attempt. Returns whether it is left in the dark: a
    /// duplicate may have been answered.
    pub(crate) fn lost(&mut self, op: OpNo) -> bool {
        let state = &mut self.operations[op as usize].state;
        if *state == Knowledge::Waiting {
            *state = Knowledge::Unknown;
        }
        *state == Knowledge::Unknown
    }

    /// The operation that an actor's name stands for.
    pub(crate) fn by_actor(&self, actor: &Name) -> Option<OpNo> {
        let number: OpNo = actor.as_str().strip_prefix("op")?.parse().ok()?;
        ((number as usize) < self.operations.len()).then_some(number)
    }
}

fn actor(number: OpNo) -> Name {
    Name::new(&format!("op{number}")).expect("letters and digits")
}
