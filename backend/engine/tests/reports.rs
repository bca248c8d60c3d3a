//! What reports of others come to: the truth table of orders, losses and repetitions.
//!
//! The hosts have 10 cores, times are seconds of the reporter's clock, amounts are cores.

mod common;

use cluster::{Amounts, Dim, Host};
use common::{Bench, host, key, name, vm};
use engine::{
    Options, Outcome, PlaceRequest, Refusal, Request, Told, UseReport, UseReports, VmNews,
};
use std::sync::Arc;

const CORE: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

struct Feed {
    bench: Bench,
    generation: u64,
}

impl Feed {
    fn new() -> Self {
        let options = Options { snapshot_every: 0, retain: 1_000 };
        Self { bench: Bench::with_options(&[10 * CORE, 10 * CORE], options), generation: 0 }
    }

    /// A whole inventory in which `h0` and `h1` use this many cores.
    fn full(&mut self, taken: u64, cores: [u64; 2]) -> &mut Self {
        self.generation += 1;
        let reports = [("h0", cores[0]), ("h1", cores[1])].map(|(id, cores)| used(id, cores));
        let reports = inventory(self.generation, None, Some(taken), reports.to_vec());
        self.bench.ask(Request::ReportUse(Box::new(reports))).expect("taken");
        self
    }

    fn news(&mut self, id: &str, at: u64, news: VmNews) -> Told {
        let request = Request::ReportVm { vm: key(id), at_ns: at * SECOND, news };
        match self.bench.ask(request).expect("taken").outcome {
            Outcome::VmReported(told) => told,
            other => panic!("news answer news, not {other:?}"),
        }
    }

    fn runs(&mut self, id: &str, at: u64, on: &str) -> Told {
        self.news(id, at, VmNews::Runs { host: name(on), vm: None })
    }

    fn runs_as(&mut self, id: &str, at: u64, on: &str, cores: u64) -> Told {
        let vm = Some(Arc::new(vm(id, cores * CORE)));
        self.news(id, at, VmNews::Runs { host: name(on), vm })
    }

    fn gone(&mut self, id: &str, at: u64) -> Told {
        self.news(id, at, VmNews::Gone)
    }

    /// Reserves `cores` on `h0` for half a minute.
    fn hold(&mut self, id: &str, cores: u64) -> Option<u64> {
        let request = PlaceRequest {
            hold_ttl_ms: Some(30_000),
            pinned: Some(name("h0")),
            ..PlaceRequest::new(vm(id, cores * CORE))
        };
        let placement = self.bench.place_request(request).expect("an answer");
        placement.hold.map(|hold| hold.reservation)
    }

    fn foreign(&self, id: &str) -> u64 {
        self.bench.engine.read(|state| {
            let (_, entry) = state.find_host(&name(id)).expect("there");
            entry.foreign().used.get(Dim::CPU_MILLIS) / CORE
        })
    }

    /// Whole cores that can still be placed, as solver and verifier see it: by trying.
    fn free(&mut self, id: &str) -> u64 {
        let fits = |bench: &mut Bench, cores: u64| {
            let request = PlaceRequest {
                pinned: Some(name(id)),
                ..PlaceRequest::new(vm("try", cores * CORE))
            };
            let reply = bench.engine.preview(&Request::Place(request), bench.now_ms);
            match reply.expect("an answer").outcome {
                Outcome::Placement(placement) => placement.host.is_some(),
                other => panic!("a placement answers a placement, not {other:?}"),
            }
        };
        (1..=10).take_while(|cores| fits(&mut self.bench, *cores)).last().unwrap_or(0)
    }

    #[track_caller]
    fn check(&mut self, free: u64, foreign: u64) -> &mut Self {
        assert_eq!((self.free("h0"), self.foreign("h0")), (free, foreign), "free, foreign");
        self
    }
}

fn used(id: &str, cores: u64) -> UseReport {
    let used = Amounts::cpu_memory(cores * CORE, 0);
    UseReport { host: name(id), used, vms: None }
}

fn inventory(
    generation: u64,
    base: Option<u64>,
    taken: Option<u64>,
    reports: Vec<UseReport>,
) -> UseReports {
    let digest = [reports.len() as u8; 16];
    let taken_ns = taken.map(|taken| taken * SECOND);
    UseReports { generation, base, digest, taken_ns, last: true, reports }
}

#[test]
fn what_others_use_is_not_given_away() {
    let mut feed = Feed::new();
    feed.check(10, 0).full(1, [7, 0]).check(3, 7);
    assert_eq!(feed.hold("a", 4), None);
    feed.hold("a", 3).expect("just enough");
    feed.check(0, 7);
}

#[test]
fn a_vm_is_counted_once_from_reservation_to_its_end() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).check(8, 2);
    feed.hold("a", 3).expect("room");
    feed.check(5, 2);
    assert_eq!(feed.runs("a", 10, "h0"), Told::Confirmed);
    feed.check(5, 2).full(11, [5, 0]).check(5, 2);
    assert_eq!(feed.gone("a", 20), Told::Released);
    // Until the reporter says otherwise, the room may still be in use.
    feed.check(5, 5).full(21, [2, 0]).check(8, 2);
}

#[test]
fn a_report_that_has_the_vm_before_its_event_counts_it_twice_for_that_while() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.full(11, [5, 0]).check(2, 5);
    assert_eq!(feed.runs("a", 10, "h0"), Told::Confirmed, "and was in that report");
    feed.check(5, 2);
}

#[test]
fn a_report_that_was_taken_before_the_vm_ran_does_not_include_it_however_late_it_comes() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.full(9, [2, 0]).check(5, 2).full(10, [2, 0]).check(5, 2);
    feed.full(11, [5, 0]).check(5, 2).full(9, [2, 0]).check(5, 2);
}

#[test]
fn a_lost_event_lets_the_reservation_end_and_the_report_shows_the_vm_as_foreign() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.full(11, [5, 0]).check(2, 5);
    feed.bench.now_ms += 29_000;
    feed.bench.ask(Request::Tick).expect("a tick");
    feed.bench.now_ms += 2_000;
    feed.bench.ask(Request::Tick).expect("a tick");
    assert_eq!(feed.bench.host_of("a"), None);
    feed.check(5, 5);
    assert_eq!(feed.runs_as("a", 10, "h0", 3), Told::Adopted { over_capacity: false }, "late");
    feed.check(5, 2);
}

#[test]
fn a_lost_end_counts_until_it_is_told_again() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.full(11, [5, 0]).full(21, [2, 0]).check(7, 0);
    assert_eq!(feed.gone("a", 20), Told::Released);
    feed.check(8, 2);
}

#[test]
fn repeated_and_late_events_change_nothing() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.runs("a", 12, "h0");
    feed.full(13, [5, 0]).check(5, 2);
    let hash = feed.bench.hash();
    assert_eq!(feed.runs("a", 12, "h0"), Told::Known);
    assert_eq!(feed.runs("a", 10, "h0"), Told::Late);
    assert_eq!(feed.runs_as("a", 11, "h1", 3), Told::Late, "an older place");
    assert_eq!(feed.gone("a", 11), Told::Late, "of an earlier life");
    assert_eq!(feed.bench.hash(), hash, "nothing was logged");
    assert_eq!(feed.gone("a", 20), Told::Released);
    let hash = feed.bench.hash();
    assert_eq!(feed.gone("a", 20), Told::Known);
    assert_eq!(feed.runs_as("a", 15, "h0", 3), Told::Late, "it does not come back");
    assert_eq!(feed.runs_as("a", 20, "h0", 3), Told::Late, "at one instant the end is last");
    assert_eq!(feed.bench.hash(), hash);
    assert_eq!(feed.runs_as("a", 30, "h0", 3), Told::Adopted { over_capacity: false }, "a new one");
}

#[test]
fn an_end_that_overtakes_everything_is_remembered_also_after_a_restart() {
    let mut feed = Feed::new();
    assert_eq!(feed.gone("a", 20), Told::Remembered);
    let mut feed = Feed { bench: feed.bench.restart(), generation: 0 };
    assert_eq!(feed.runs_as("a", 10, "h0", 3), Told::Late);
    feed.bench.engine.snapshot_now().expect("a snapshot");
    let mut feed = Feed { bench: feed.bench.restart(), generation: 0 };
    assert_eq!(feed.runs_as("a", 10, "h0", 3), Told::Late);
    assert_eq!(feed.bench.host_of("a"), None);
}

#[test]
fn a_vm_that_runs_elsewhere_is_moved_and_its_old_place_stays_taken_until_the_next_report() {
    let mut feed = Feed::new();
    feed.full(1, [0, 9]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.full(11, [3, 9]).check(7, 0);
    let moved = Told::Moved { from: name("h0"), over_capacity: false };
    assert_eq!(feed.runs("a", 20, "h1"), moved, "there is room but for the others");
    assert_eq!(feed.bench.host_of("a").as_deref(), Some("h1"));
    feed.check(7, 3);
    assert_eq!((feed.free("h1"), feed.foreign("h1")), (0, 9));
    feed.full(21, [0, 10]).check(10, 0);
    assert_eq!((feed.free("h1"), feed.foreign("h1")), (0, 7), "whatever the reporter says");
    let moved = Told::Moved { from: name("h1"), over_capacity: true };
    assert_eq!(feed.runs_as("a", 30, "h0", 11), moved, "larger than its host");
}

#[test]
fn a_held_vm_that_turns_up_elsewhere_gives_its_reservation_back() {
    let mut feed = Feed::new();
    feed.full(1, [0, 0]).hold("a", 3).expect("room");
    assert_eq!(feed.runs("a", 10, "h1"), Told::Moved { from: name("h0"), over_capacity: false });
    feed.check(10, 0);
    assert_eq!(feed.bench.engine.read(|state| state.reservation_count()), 0);
}

#[test]
fn a_new_size_is_taken_over_and_counted_in_the_report_after_it() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.runs_as("a", 10, "h0", 3);
    feed.full(11, [5, 0]);
    assert_eq!(feed.runs_as("a", 20, "h0", 4), Told::Resized { over_capacity: false });
    feed.check(1, 5).full(21, [6, 0]).check(4, 2);
    let resize = Request::Resize {
        vm: key("a"),
        changes: vec![(Dim::CPU_MILLIS, 2 * CORE)],
        if_generation: None,
    };
    feed.bench.ask(resize).expect("smaller");
    feed.check(2, 6).full(31, [4, 0]).check(6, 2);
}

#[test]
fn a_vm_that_nobody_placed_here_is_taken_in_if_it_is_described() {
    let mut feed = Feed::new();
    feed.full(11, [9, 0]).check(1, 9);
    assert_eq!(feed.runs("x", 10, "h0"), Told::NotDescribed);
    assert_eq!(feed.runs_as("x", 10, "h0", 9), Told::Adopted { over_capacity: false });
    feed.check(1, 0);
    assert_eq!(feed.runs_as("y", 12, "h0", 4), Told::Adopted { over_capacity: true });
    assert_eq!(feed.free("h0"), 0);
    let unknown = Request::ReportVm {
        vm: key("z"),
        at_ns: 1,
        news: VmNews::Runs { host: name("nowhere"), vm: None },
    };
    assert_eq!(feed.bench.ask(unknown), Err(Refusal::UnknownHost(name("nowhere"))));
}

#[test]
fn a_change_of_another_inventory_is_refused_and_the_same_change_twice_is_not() {
    let mut feed = Feed::new();
    feed.full(1, [2, 2]);
    let mut ask = |base, generation, reports: Vec<UseReport>| {
        let reports = inventory(generation, Some(base), Some(generation), reports);
        feed.bench.ask(Request::ReportUse(Box::new(reports))).map(|reply| reply.outcome)
    };
    let done = |generation, repeated| Ok(Outcome::UseReported { generation, repeated });
    assert_eq!(ask(1, 2, vec![used("h0", 4)]), done(2, false));
    assert_eq!(ask(1, 2, vec![used("h0", 4)]), done(2, true));
    let gap = Err(Refusal::Gap { base: 1, current: 2 });
    assert_eq!(ask(1, 2, vec![used("h0", 4), used("h1", 1)]), gap, "another content");
    assert_eq!(ask(3, 4, vec![]), Err(Refusal::Gap { base: 3, current: 2 }), "one is missing");
    assert_eq!(ask(2, 3, vec![used("h9", 4)]), Err(Refusal::UnknownHost(name("h9"))));
    assert_eq!(ask(2, 3, vec![used("h0", 5)]), done(3, false));
    feed.check(5, 5);
    assert_eq!(feed.foreign("h1"), 2, "not named, not changed");
}

#[test]
fn a_change_vouches_for_the_hosts_that_it_does_not_name() {
    let mut feed = Feed::new();
    feed.full(1, [5, 0]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.check(2, 5);
    // One VM of others went and ours came: the sum is what it was.
    let change = inventory(2, Some(1), Some(11), vec![used("h1", 1)]);
    feed.bench.ask(Request::ReportUse(Box::new(change))).expect("taken");
    feed.check(5, 2);
}

#[test]
fn a_whole_inventory_counts_anew_after_the_reporter_started_again() {
    let mut feed = Feed::new();
    feed.generation = 57;
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.full(11, [5, 0]).check(5, 2);
    feed.generation = 0;
    feed.full(100, [5, 0]).check(5, 2);
    assert_eq!(feed.bench.engine.read(|state| state.inventory().generation), 1);
}

#[test]
fn without_times_a_report_includes_what_was_confirmed_before_it_came() {
    let mut feed = Feed::new();
    let full = |bench: &mut Bench, cores| {
        let reports = inventory(1, None, None, vec![used("h0", cores)]);
        bench.ask(Request::ReportUse(Box::new(reports))).expect("taken");
    };
    full(&mut feed.bench, 2);
    let reservation = feed.hold("a", 3).expect("room");
    full(&mut feed.bench, 2);
    feed.check(5, 2);
    feed.bench.ask(Request::Confirm { reservation }).expect("in time");
    feed.check(5, 2);
    full(&mut feed.bench, 5);
    feed.check(5, 2);
}

#[test]
fn reports_in_pieces_reach_their_generation_with_the_last() {
    let mut feed = Feed::new();
    let mut piece = inventory(9, None, Some(1), vec![used("h0", 4)]);
    piece.last = false;
    feed.bench.ask(Request::ReportUse(Box::new(piece.clone()))).expect("taken");
    feed.check(6, 4);
    assert_eq!(feed.bench.engine.read(|state| state.inventory().generation), 0);
    piece.last = true;
    piece.reports = vec![used("h1", 1)];
    feed.bench.ask(Request::ReportUse(Box::new(piece))).expect("taken");
    assert_eq!(feed.bench.engine.read(|state| state.inventory().generation), 9);
}

#[test]
fn reported_use_survives_a_restart_from_log_and_from_snapshot() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]).hold("a", 3).expect("room");
    feed.runs("a", 10, "h0");
    feed.full(11, [5, 0]);
    let hash = feed.bench.hash();
    let mut feed = Feed { bench: feed.bench.restart(), generation: 2 };
    assert_eq!(feed.bench.hash(), hash);
    feed.check(5, 2);
    feed.bench.engine.snapshot_now().expect("a snapshot");
    let mut feed = Feed { bench: feed.bench.restart(), generation: 2 };
    assert_eq!(feed.bench.hash(), hash);
    feed.check(5, 2);
    feed.gone("a", 20);
    feed.full(21, [2, 0]).check(8, 2);
}

#[test]
fn a_description_cannot_set_what_others_use_and_does_not_forget_it() {
    let mut feed = Feed::new();
    feed.full(1, [2, 0]);
    let mut described: Host = host(0, 12 * CORE);
    described.foreign.used = Amounts::cpu_memory(12 * CORE, 0);
    feed.bench.put(described).expect("larger than before");
    feed.check(10, 2);
    let request = |cpu| UseReport { used: Amounts::cpu_memory(cpu, 0), ..used("h0", 0) };
    let absurd = inventory(2, None, None, vec![request(u64::MAX)]);
    let refusal = feed.bench.ask(Request::ReportUse(Box::new(absurd))).expect_err("too large");
    assert!(refusal.to_string().contains("used.cpu_millis"), "{refusal}");
}
