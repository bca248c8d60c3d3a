//! Heartbeats: who has gone silent, who is back, and who cannot make up its mind.
//!
//! Beats are counted here and never logged; only a change of a host's health becomes a command.
//! A host is suspect after one missed deadline and down after three. Coming back takes a streak
//! of beats, longer for a host that has flapped: each relapse doubles it, up to 64 deadlines, and
//! every ten quiet deadlines forgive one. What is known here is lost on restart, and then every
//! host gets a full deadline of grace: a service that was blind must not declare the fleet dead.

use crate::state::{Health, State};
use cluster::{HostIx, Index, Name};

/// Missed deadlines after which a host is down.
const DOWN_AFTER: u64 = 3;
/// Quiet deadlines that forgive one relapse.
const FORGIVEN_AFTER: u64 = 10;
/// Doublings of the streak that a flapping host needs, at most.
const MOST_DOUBLINGS: u32 = 6;

/// What is known of each host's heartbeats.
#[derive(Debug, Default)]
pub struct Monitor {
    pulses: Vec<Pulse>,
    /// Where the round that is under way goes on.
    next_row: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pulse {
    /// Whose pulse this is: rows are reused, incarnations are not.
    incarnation: u64,
    last_beat_ms: u64,
    /// Start of the current streak of beats without a missed deadline.
    streak_from_ms: u64,
    relapses: u32,
    /// When it last came back, or a relapse was last counted or forgiven.
    judged_ms: u64,
}

impl Monitor {
    /// Notes a beat. `false`: no such host.
    pub fn beat(&mut self, state: &State, host: &Name, now_ms: u64) -> bool {
        let Some((ix, entry)) = state.find_host(host) else { return false };
        let deadline_ms = entry.host.heartbeat_deadline_ms;
        let pulse = self.pulse(ix, entry.host.incarnation, now_ms);
        if now_ms.saturating_sub(pulse.last_beat_ms) > deadline_ms {
            pulse.streak_from_ms = now_ms;
        }
        pulse.last_beat_ms = pulse.last_beat_ms.max(now_ms);
        true
    }

    /// Goes on with a round over all hosts, by this many rows at most, and returns the hosts whose
    /// health should change now. Looking at a host means fetching it from far away in memory, so a
    /// writer with callers waiting takes a large fleet in small steps.
    pub fn judge(&mut self, state: &State, now_ms: u64, rows: usize) -> Vec<(Name, Health)> {
        let mut verdicts = Vec::new();
        let first = self.next_row;
        let last = first.saturating_add(rows);
        self.next_row = if last < state.row_count() { last } else { 0 };
        for (ix, entry) in state.hosts_between(first, last) {
            let deadline_ms = entry.host.heartbeat_deadline_ms;
            if deadline_ms == 0 {
                continue;
            }
            let pulse = self.pulse(ix, entry.host.incarnation, now_ms);
            let health = pulse.health(entry.health, deadline_ms, now_ms);
            if health != entry.health {
                verdicts.push((entry.host.id.clone(), health));
            }
        }
        verdicts
    }

    /// Whether a round has begun and is not at its end.
    pub fn is_in_round(&self) -> bool {
        self.next_row > 0
    }

    fn pulse(&mut self, ix: HostIx, incarnation: u64, now_ms: u64) -> &mut Pulse {
        let row = ix.row();
        if self.pulses.len() <= row {
            self.pulses.resize(row.saturating_add(1), Pulse::default());
        }
        #[expect(clippy::indexing_slicing, reason = "the row was made just above")]
        let pulse = &mut self.pulses[row];
        if pulse.incarnation != incarnation {
            *pulse = Pulse {
                incarnation,
                last_beat_ms: now_ms,
                streak_from_ms: now_ms,
                relapses: 0,
                judged_ms: now_ms,
            };
        }
        pulse
    }
}

impl Pulse {
    fn health(&mut self, current: Health, deadline_ms: u64, now_ms: u64) -> Health {
        let silent_ms = now_ms.saturating_sub(self.last_beat_ms);
        if silent_ms > deadline_ms {
            if current == Health::Healthy {
                self.relapses = self.relapses.saturating_add(1).min(MOST_DOUBLINGS);
                self.judged_ms = now_ms;
            }
            let down = silent_ms > deadline_ms.saturating_mul(DOWN_AFTER);
            return if down || current == Health::Down { Health::Down } else { Health::Suspect };
        }
        if current == Health::Healthy {
            let quiet_ms = deadline_ms.saturating_mul(FORGIVEN_AFTER);
            if self.relapses > 0 && now_ms.saturating_sub(self.judged_ms) >= quiet_ms {
                self.relapses = self.relapses.saturating_sub(1);
                self.judged_ms = now_ms;
            }
            return Health::Healthy;
        }
        let doublings = self.relapses.saturating_sub(1).min(MOST_DOUBLINGS);
        let streak_ms = deadline_ms.saturating_mul(1u64.wrapping_shl(doublings));
        if now_ms.saturating_sub(self.streak_from_ms) < streak_ms {
            return current;
        }
        self.judged_ms = now_ms;
        Health::Healthy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::apply;
    use crate::command::{Command, Entry};
    use cluster::{Amounts, Host};

    const DEADLINE_MS: u64 = 1_000;

    /// A host, its monitor and a clock; health changes are applied as the engine would.
    struct Bedside {
        state: State,
        monitor: Monitor,
        now_ms: u64,
        changes: u32,
    }

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    impl Bedside {
        fn new() -> Self {
            let mut host = Host::new(name("h"), Amounts::cpu_memory(1, 1));
            host.heartbeat_deadline_ms = DEADLINE_MS;
            let mut bedside = Self {
                state: State::new(),
                monitor: Monitor::default(),
                now_ms: 1_000_000,
                changes: 0,
            };
            bedside.apply(Command::PutHost(Box::new(host)));
            bedside.judge();
            bedside
        }

        fn apply(&mut self, command: Command) {
            let entry = Entry { ts_ms: self.now_ms, actor: name("test"), command };
            apply(&mut self.state, &entry).expect("applies");
        }

        fn judge(&mut self) -> Health {
            for (host, health) in self.monitor.judge(&self.state, self.now_ms, 1) {
                self.changes += 1;
                self.apply(Command::SetHostHealth { host, health });
            }
            self.state.find_host(&name("h")).expect("the host").1.health
        }

        /// Time passes with a beat every half deadline, or in silence.
        fn pass(&mut self, deadlines: u64, beating: bool) -> Health {
            for _ in 0..2 * deadlines {
                self.now_ms += DEADLINE_MS / 2;
                if beating {
                    assert!(self.monitor.beat(&self.state, &name("h"), self.now_ms));
                }
                self.judge();
            }
            self.judge()
        }
    }

    #[test]
    fn silence_makes_a_host_suspect_then_down_and_a_steady_pulse_brings_it_back() {
        let mut bedside = Bedside::new();
        assert_eq!(bedside.pass(5, true), Health::Healthy);
        assert_eq!(bedside.pass(1, false), Health::Healthy, "the deadline itself is in time");
        assert_eq!(bedside.pass(1, false), Health::Suspect);
        assert_eq!(bedside.pass(2, false), Health::Down);
        assert_eq!(bedside.pass(3, true), Health::Healthy);
        assert_eq!(bedside.changes, 3);
    }

    #[test]
    fn a_flapping_host_stays_out_longer_each_time() {
        let mut bedside = Bedside::new();
        for _ in 0..4 {
            bedside.pass(2, false);
            assert_eq!(bedside.pass(9, true), Health::Healthy);
        }
        let before = bedside.changes;
        bedside.pass(2, false);
        assert_ne!(bedside.pass(8, true), Health::Healthy, "a short streak no longer convinces");
        for _ in 0..20 {
            bedside.pass(2, false);
            bedside.pass(2, true);
        }
        assert!(bedside.changes - before <= 3, "flapping is not one command a flap");
    }

    #[test]
    fn a_restarted_service_gives_every_host_its_deadline() {
        let mut bedside = Bedside::new();
        bedside.pass(3, true);
        bedside.monitor = Monitor::default();
        bedside.now_ms += 3_600_000;
        assert_eq!(bedside.judge(), Health::Healthy);
        assert_eq!(bedside.pass(2, false), Health::Suspect);
    }

    #[test]
    fn hosts_that_promise_no_heartbeats_are_left_alone() {
        let mut bedside = Bedside::new();
        bedside.apply(Command::PutHost(Box::new(Host::new(name("h"), Amounts::zero()))));
        assert_eq!(bedside.pass(50, false), Health::Healthy);
        let unknown = bedside.monitor.beat(&bedside.state, &name("nobody"), 0);
        assert!(!unknown);
    }

    #[test]
    fn a_round_in_small_steps_finds_every_silent_host() {
        let mut state = State::new();
        for row in 0..10 {
            let mut host = Host::new(name(&format!("h{row}")), Amounts::cpu_memory(1, 1));
            host.heartbeat_deadline_ms = DEADLINE_MS;
            let command = Command::PutHost(Box::new(host));
            let entry = Entry { ts_ms: 0, actor: name("tests"), command };
            apply(&mut state, &entry).expect("a new host");
        }
        let mut monitor = Monitor::default();
        assert!(monitor.judge(&state, 0, usize::MAX).is_empty() && !monitor.is_in_round());
        let mut found = Vec::new();
        for step in 0..4 {
            found.extend(monitor.judge(&state, 2 * DEADLINE_MS, 3));
            assert_eq!(monitor.is_in_round(), step < 3);
        }
        assert_eq!(found.len(), 10);
    }
}
