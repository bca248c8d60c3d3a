//! Plans as state: what a migration holds, who may disturb it, and what a crash leaves of it.

mod common;

use cluster::{
    Affinity, AffinityKind, Amounts, HostState, Level, Name, Strength, Subject, Vm, VmKey,
};
use common::{Bench, host, key, name, vm};
use engine::{
    DisruptionBudget, Draft, MigrationReport, MigrationStatus, OnFailure, Options, Outcome,
    PlaceRequest, PlanAction, PlanId, PlanKind, PlanStatus, Planned, Refusal, Request, VmNews,
};

/// The wave of a move a line: VM, from, to.
fn draft(waves: &[&[(&str, &str, &str)]]) -> Draft {
    let planned = |&(vm, from, to): &(&str, &str, &str)| Planned {
        vm: key(vm),
        from: name(from),
        to: name(to),
        staging: false,
        memory_mib: 1,
        brownout_ms: 1_000,
        downtime_ms: 100,
        gain: None,
    };
    Draft {
        kind: PlanKind::Moves,
        hosts: Vec::new(),
        waves: waves.iter().map(|wave| wave.iter().map(planned).collect()).collect(),
        blocked: Vec::new(),
        worth: Default::default(),
        on_failure: OnFailure::Pause,
        approved: true,
        based_on: Default::default(),
        note: String::new(),
        asked: [0; 16],
    }
}

trait Plans {
    fn create(&mut self, draft: Draft) -> PlanId;
    fn act(&mut self, plan: PlanId, action: PlanAction) -> Result<PlanStatus, Refusal>;
    fn advance(&mut self, plan: PlanId) -> PlanStatus;
    fn report(&mut self, plan: PlanId, vm: &str, report: MigrationReport) -> Result<(), Refusal>;
    fn status(&self, plan: PlanId) -> PlanStatus;
    fn migrations(&self, plan: PlanId) -> Vec<MigrationStatus>;
    /// Begins the first wave of a plan of these waves.
    fn begun(&mut self, waves: &[&[(&str, &str, &str)]]) -> PlanId;
    fn put_on(&mut self, vm: Vm, host: &str);
}

impl Plans for Bench {
    fn create(&mut self, draft: Draft) -> PlanId {
        plan_of(self.ask(Request::CreatePlan(Box::new(draft))).expect("a plan").outcome).0
    }

    fn act(&mut self, plan: PlanId, action: PlanAction) -> Result<PlanStatus, Refusal> {
        Ok(plan_of(self.ask(Request::ChangePlan { plan, action })?.outcome).1)
    }

    fn advance(&mut self, plan: PlanId) -> PlanStatus {
        self.ask(Request::AdvancePlan { plan }).expect("a known plan");
        self.status(plan)
    }

    fn report(&mut self, plan: PlanId, vm: &str, report: MigrationReport) -> Result<(), Refusal> {
        let request = Request::ReportMigration { plan, vm: key(vm), to: None, report };
        self.ask(request).map(|_| ())
    }

    fn status(&self, plan: PlanId) -> PlanStatus {
        self.engine.read(|state| state.plans().get(plan).expect("the plan").status)
    }

    fn migrations(&self, plan: PlanId) -> Vec<MigrationStatus> {
        self.engine.read(|state| {
            let plan = state.plans().get(plan).expect("the plan");
            plan.steps().map(|(_, it)| it.status.clone()).collect()
        })
    }

    fn begun(&mut self, waves: &[&[(&str, &str, &str)]]) -> PlanId {
        let plan = self.create(draft(waves));
        self.act(plan, PlanAction::Apply).expect("approved");
        assert_eq!(self.advance(plan), PlanStatus::Running);
        plan
    }

    fn put_on(&mut self, vm: Vm, host: &str) {
        let request = PlaceRequest { pinned: Some(name(host)), ..PlaceRequest::new(vm) };
        let placement = self.place_request(request).expect("a placement");
        assert_eq!(placement.host, Some(name(host)));
    }
}

fn plan_of(outcome: Outcome) -> (PlanId, PlanStatus) {
    match outcome {
        Outcome::Plan { plan, status } => (plan, status),
        other => panic!("a plan answers a plan, not {other:?}"),
    }
}

fn failed(why: &str) -> MigrationReport {
    MigrationReport::Failed(why.into())
}

use MigrationReport::Confirmed;

#[test]
fn a_vm_under_way_has_room_on_both_hosts_until_the_core_has_spoken() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")]]);
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (600, 600));
    assert_eq!(bench.place(vm("b", 500)).expect("an answer").host, None, "no room on either");
    assert_eq!(bench.engine.read(|state| state.vm_count()), 1, "there is one VM");
    let mut bench = bench.restart();
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (600, 600), "after a crash too");
    bench.report(plan, "a", Confirmed).expect("under way");
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (0, 600));
    assert_eq!(bench.host_of("a").as_deref(), Some("h1"));
    assert_eq!(bench.status(plan), PlanStatus::Completed);
    bench.report(plan, "a", Confirmed).expect("said twice");
    let late = bench.report(plan, "a", failed("late")).expect_err("it was confirmed");
    assert!(matches!(late, Refusal::PlanRefused { .. }), "{late}");
}

#[test]
fn a_failed_migration_gives_its_place_back_and_stops_the_plan() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")], &[("a", "h1", "h2")]]);
    bench.report(plan, "a", failed("no route")).expect("under way");
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (600, 0));
    assert_eq!(bench.status(plan), PlanStatus::Paused);
    assert_eq!(bench.act(plan, PlanAction::Resume), Ok(PlanStatus::Running));
    assert_eq!(bench.advance(plan), PlanStatus::Stale, "the VM is not where it should be by now");
    assert_eq!(bench.act(plan, PlanAction::Cancel { abandon: false }), Ok(PlanStatus::Cancelled));
    let failed = MigrationStatus::Failed("no route".into());
    assert_eq!(bench.migrations(plan), [failed, MigrationStatus::Cancelled]);
}

#[test]
fn a_plan_that_goes_on_leaves_out_what_no_longer_holds() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    bench.put_on(vm("b", 300), "h0");
    let waves: &[&[(&str, &str, &str)]] = &[&[("a", "h0", "h1"), ("b", "h0", "h2")]];
    let plan = bench.create(Draft { on_failure: OnFailure::Continue, ..draft(waves) });
    bench.put_on(vm("c", 600), "h1");
    bench.act(plan, PlanAction::Apply).expect("approved");
    assert_eq!(bench.advance(plan), PlanStatus::Running);
    assert!(
        matches!(&bench.migrations(plan)[0], MigrationStatus::Skipped(why) if why.contains("h1") || !why.is_empty())
    );
    assert_eq!(bench.cpu_taken("h1"), 600, "nothing was taken for it");
    bench.report(plan, "b", Confirmed).expect("under way");
    assert_eq!(bench.status(plan), PlanStatus::Incomplete);
}

#[test]
fn a_plan_needs_approval_and_can_be_paused_resumed_and_turned_round() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    bench.put_on(vm("b", 600), "h1");
    let waves: &[&[(&str, &str, &str)]] = &[&[("b", "h1", "h2")], &[("a", "h0", "h1")]];
    let plan = bench.create(Draft { approved: false, ..draft(waves) });
    let early = bench.act(plan, PlanAction::Apply).expect_err("nobody has approved it");
    assert!(early.to_string().contains("approve it first"), "{early}");
    bench.act(plan, PlanAction::Approve).expect("proposed");
    bench.act(plan, PlanAction::Apply).expect("approved");
    bench.advance(plan);
    assert_eq!(bench.act(plan, PlanAction::Pause), Ok(PlanStatus::Paused));
    bench.report(plan, "b", Confirmed).expect("what is under way goes on");
    assert_eq!(bench.advance(plan), PlanStatus::Paused, "and nothing else begins");
    bench.act(plan, PlanAction::Resume).expect("paused");
    bench.advance(plan);
    let busy = bench.act(plan, PlanAction::Rollback).expect_err("under way");
    assert!(matches!(busy, Refusal::PlanRefused { .. }));
    bench.report(plan, "a", Confirmed).expect("under way");
    assert_eq!(bench.status(plan), PlanStatus::Completed);

    bench.act(plan, PlanAction::Rollback).expect("something is done");
    let back = bench.engine.read(|state| state.plans().due());
    let [back] = back.as_slice() else { panic!("one plan goes on, not {back:?}") };
    for (vm, home) in [("a", "h0"), ("b", "h1")] {
        bench.advance(*back);
        bench.report(*back, vm, Confirmed).expect("the last wave first");
        assert_eq!(bench.host_of(vm).as_deref(), Some(home));
    }
    assert_eq!(
        (bench.status(*back), bench.status(plan)),
        (PlanStatus::Completed, PlanStatus::RolledBack)
    );
    assert_eq!(bench.migrations(plan), [MigrationStatus::RolledBack, MigrationStatus::RolledBack]);
}

#[test]
fn cancelling_keeps_what_is_under_way_unless_somebody_vouches_that_it_stopped() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")]]);
    bench.act(plan, PlanAction::Cancel { abandon: false }).expect("running");
    assert_eq!(bench.cpu_taken("h1"), 600, "the core may be copying still");
    let mut bench = bench.restart();
    bench.act(plan, PlanAction::Cancel { abandon: true }).expect("cancelled");
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (600, 0));
    assert_eq!(bench.host_of("a").as_deref(), Some("h0"));
}

#[test]
fn removing_the_vm_or_its_target_ends_its_migration() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    bench.put_on(vm("b", 600), "h2");
    let first = bench.begun(&[&[("a", "h0", "h1")]]);
    bench.ask(Request::RemoveVm { vm: key("a"), if_generation: None }).expect("there");
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (0, 0));
    assert_eq!(bench.status(first), PlanStatus::Incomplete);
    let second = bench.begun(&[&[("b", "h2", "h1")]]);
    let evict = |evict| Request::RemoveHost { host: name("h1"), evict, if_generation: None };
    let busy = bench.ask(evict(false)).expect_err("somebody is on the way to it");
    assert!(matches!(busy, Refusal::HostNotEmpty { vms: 1, .. }));
    bench.ask(evict(true)).expect("told to");
    assert_eq!(bench.host_of("b").as_deref(), Some("h2"));
    assert_eq!(bench.status(second), PlanStatus::Incomplete);
    let third = bench.begun(&[&[("b", "h2", "h0")]]);
    let evict = Request::RemoveHost { host: name("h2"), evict: true, if_generation: None };
    bench.ask(evict).expect("the source goes, and the VM with it");
    assert_eq!((bench.host_of("b"), bench.cpu_taken("h0")), (None, 0));
    assert_eq!(bench.status(third), PlanStatus::Incomplete);
    let bench = bench.restart();
    assert_eq!(bench.engine.read(|state| state.plans().moving().len()), 0);
}

#[test]
fn news_that_the_vm_runs_on_its_target_is_a_confirmation() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")]]);
    let news = |host: &str| VmNews::Runs { host: name(host), vm: None };
    let told = |at_ns, host: &str| Request::ReportVm { vm: key("a"), at_ns, news: news(host) };
    bench.ask(told(1, "h1")).expect("known");
    assert_eq!(bench.status(plan), PlanStatus::Completed);
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (0, 600));
    let elsewhere = bench.begun(&[&[("a", "h1", "h0")]]);
    bench.ask(told(2, "h2")).expect("known");
    assert_eq!(bench.status(elsewhere), PlanStatus::Incomplete, "it went somewhere else");
    let taken = ["h0", "h1", "h2"].map(|host| bench.cpu_taken(host));
    assert_eq!(taken, [0, 0, 600]);
}

#[test]
fn a_wave_that_no_longer_holds_makes_the_plan_stale_and_takes_nothing() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 600), "h0");
    let plan = bench.create(draft(&[&[("a", "h0", "h1")]]));
    bench.act(plan, PlanAction::Apply).expect("approved");
    let state = |state| Request::SetHostState { host: name("h1"), state, if_generation: None };
    bench.ask(state(HostState::Maintenance)).expect("known");
    assert_eq!(bench.advance(plan), PlanStatus::Stale);
    assert_eq!(bench.cpu_taken("h1"), 0);
    let why = bench.engine.read(|state| state.plans().get(plan).expect("it").because.clone());
    assert!(why.contains("host_state"), "{why}");
    bench.ask(state(HostState::Available)).expect("known");
    bench.act(plan, PlanAction::Resume).expect("it looks again");
    assert_eq!(bench.advance(plan), PlanStatus::Running);
}

fn member(id: &str, kind: AffinityKind) -> Vm {
    let mut vm = vm(id, 100);
    vm.groups.push(name("g"));
    vm.affinities.push(Affinity {
        kind,
        subject: Subject::Group(name("g")),
        level: Level::Host,
        strength: Strength::Required,
    });
    vm
}

#[test]
fn nobody_comes_where_a_migration_under_way_would_break_a_rule() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(member("a", AffinityKind::Apart), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")]]);
    for taken in ["h0", "h1"] {
        let pinned = Some(name(taken));
        let request =
            PlaceRequest { pinned, ..PlaceRequest::new(member("b", AffinityKind::Apart)) };
        assert_eq!(bench.place_request(request).expect("an answer").host, None, "{taken}");
    }
    bench.put_on(member("b", AffinityKind::Apart), "h2");
    bench.report(plan, "a", Confirmed).expect("under way");

    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(member("a", AffinityKind::Together), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")]]);
    let refused = bench.place(member("b", AffinityKind::Together)).expect_err("where will a be?");
    assert!(matches!(refused, Refusal::Tied { .. }), "{refused}");
    let batch = Request::PlaceBatch {
        requests: vec![PlaceRequest::new(member("b", AffinityKind::Together))],
        atomic: false,
    };
    assert!(matches!(bench.ask(batch), Err(Refusal::Tied { .. })), "nor in a batch");
    bench.report(plan, "a", Confirmed).expect("under way");
    let after = bench.place(member("b", AffinityKind::Together)).expect("an answer");
    assert_eq!(after.host, Some(name("h1")));
}

#[test]
fn plans_that_would_get_in_each_others_way_wait() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000, 1_000]);
    bench.put_on(vm("a", 100), "h0");
    bench.put_on(vm("b", 100), "h1");
    let first = bench.begun(&[&[("a", "h0", "h1")]]);
    let second = bench.create(draft(&[&[("b", "h1", "h2")]]));
    bench.act(second, PlanAction::Apply).expect("approved");
    bench.advance(second);
    assert_eq!(bench.migrations(second), [MigrationStatus::Waiting], "h1 is taking a VM");
    bench.report(first, "a", Confirmed).expect("under way");
    bench.advance(second);
    assert_eq!(bench.migrations(second), [MigrationStatus::Running]);
}

#[test]
fn a_disruption_budget_is_charged_when_a_wave_begins_and_is_never_overspent() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 100), "h0");
    let budget =
        DisruptionBudget { per_vm_ms: Some(1_500), per_tenant_ms: None, window_ms: 60_000 };
    bench.ask(Request::SetBudget(budget)).expect("a valid budget");
    let plan = bench.begun(&[&[("a", "h0", "h1")], &[("a", "h1", "h0")]]);
    bench.report(plan, "a", Confirmed).expect("under way");
    bench.advance(plan);
    assert_eq!(bench.migrations(plan)[1], MigrationStatus::Waiting, "1,000 of 1,500 ms are spent");
    let mut bench = bench.restart();
    bench.advance(plan);
    assert_eq!(bench.migrations(plan)[1], MigrationStatus::Waiting, "a crash forgives nothing");
    bench.now_ms += 60_001;
    bench.advance(plan);
    assert_eq!(bench.migrations(plan)[1], MigrationStatus::Running);
    let none = DisruptionBudget { window_ms: 0, ..budget };
    assert!(matches!(bench.ask(Request::SetBudget(none)), Err(Refusal::Invalid { .. })));
}

#[test]
fn plans_survive_a_snapshot_and_go_on_from_it() {
    let options = Options { snapshot_every: 1, retain: 0 };
    let mut bench = Bench::with_options(&[1_000, 1_000], options);
    bench.put_on(vm("a", 600), "h0");
    let plan = bench.begun(&[&[("a", "h0", "h1")]]);
    let hash = bench.hash();
    bench.engine.snapshot_now().expect("a disk");
    let mut bench = bench.restart();
    assert_eq!(bench.hash(), hash);
    bench.report(plan, "a", Confirmed).expect("still under way");
    assert_eq!((bench.cpu_taken("h0"), bench.cpu_taken("h1")), (0, 600));
}

#[test]
fn what_cannot_be_a_plan_is_refused_and_named() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 100), "h0");
    let mut wrong = |draft: Draft| {
        bench.ask(Request::CreatePlan(Box::new(draft))).expect_err("wrong").to_string()
    };
    assert!(wrong(draft(&[&[("a", "h1", "h0")]])).contains("waves[0][0].from"));
    assert!(wrong(draft(&[&[("a", "h0", "h0")]])).contains("waves[0][0].to"));
    assert!(wrong(draft(&[&[("x", "h0", "h1")]])).contains("not known"));
    assert!(wrong(draft(&[&[("a", "h0", "h9")]])).contains("not known"));
    assert!(wrong(draft(&[&[]])).contains("empty"));
    assert!(wrong(draft(&[&[("a", "h0", "h1"), ("a", "h0", "h1")]])).contains("twice"));
    let reserved = VmKey::stand_in(name("default"), 7, 7);
    let odd = Vm::new(reserved.clone(), Amounts::cpu_memory(1, 1));
    assert!(matches!(bench.place(odd), Err(Refusal::Invalid { .. })));
    let gone = Request::ReportVm { vm: reserved, at_ns: 1, news: VmNews::Gone };
    assert!(matches!(bench.ask(gone), Err(Refusal::Invalid { .. })));
}

#[test]
fn history_is_bounded_and_keeps_what_is_open() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 100), "h0");
    let open = bench.create(draft(&[&[("a", "h0", "h1")]]));
    for _ in 0..300 {
        let plan = bench.create(draft(&[&[("a", "h0", "h1")]]));
        bench.act(plan, PlanAction::Cancel { abandon: false }).expect("open");
    }
    let (kept, there) = bench
        .engine
        .read(|state| (state.plans().iter().count(), state.plans().get(open).is_some()));
    assert_eq!((kept, there), (256, true));
    let many = (0..engine::MAX_OPEN_PLANS).map(|_| draft(&[&[("a", "h0", "h1")]]));
    let last = many.map(|draft| bench.ask(Request::CreatePlan(Box::new(draft)))).last();
    assert!(matches!(last, Some(Err(Refusal::Invalid { .. }))), "one more than may be open");
}

#[test]
fn a_vm_under_way_is_not_resized() {
    let mut bench = Bench::with_hosts(&[1_000, 1_000]);
    bench.put_on(vm("a", 100), "h0");
    bench.begun(&[&[("a", "h0", "h1")]]);
    let changes = vec![(cluster::Dim::CPU_MILLIS, 200)];
    let resize = Request::Resize { vm: key("a"), changes, if_generation: None };
    assert!(matches!(bench.ask(resize), Err(Refusal::Moving { .. })));
    let smaller = host(1, 50);
    assert!(bench.put(smaller).is_err(), "nor may its target shrink below it");
}

#[test]
fn a_name_of_a_plan_is_read_back() {
    assert_eq!(PlanId::parse(&PlanId(12).to_string()), Some(PlanId(12)));
    assert_eq!(PlanId::parse("12"), None);
    let _: Name = name("p12");
}
