//! Policies on the living fleet: the solver reads them over columns, the verifier rule by rule for
//! one host. On random clusters with random policies the two say the same of every host.

use cluster::{HostIx, Index, Placed, Reason, Snapshot, Vm};
use fixture::{Dice, small};
use policy::{ActiveSet, Configuration, Syntax};
use solver::{How, Problem, Scratch};
use std::sync::Arc;
use verify::Ledger;

const CLUSTERS: u64 = 1_000;

const RULES: [&str; 6] = [
    r#"when { candidateNode.utilisation.cpu_millis > 40 } then { filter "busy" }"#,
    r#"when { candidateNode.zone == "z1" || vm.cpu_cores > 1 } then { filter "zone" }"#,
    r#"when { node.vm_count >= 2 } then { score 0 - 30 * node.vm_count "crowd" }"#,
    r#"when { node.free.memory_mib / node.capacity.memory_mib < 0.5 } then { filter "memory" }"#,
    r#"when { vm.tenant == "t1" } then { score candidateNode.available_cpu * 3 "room" }"#,
    r#"when { node.power_watts > 10 && !(node.pool == "gold") } then { filter "power" }"#,
];

#[test]
fn solver_and_verifier_read_policies_alike_on_random_clusters() {
    let (mut removed, mut scored) = (0, 0);
    for seed in 0..CLUSTERS {
        let dice = &mut Dice::new(seed);
        let size = small::Size::random(dice);
        let scene = &mut Scene::new(small::cluster(dice, size), random_policies(dice));
        for number in 0..5 {
            let vm = small::vm(dice, &scene.snapshot.dimensions, &format!("new-{number}"));
            removed += scene.compare(&vm, seed);
            let how = How::default();
            let choice = solver::place(&mut scene.problem, &mut scene.scratch, &vm, &how);
            let mut fresh = Scene::new(scene.snapshot.clone(), Arc::clone(&scene.policies));
            let afresh = solver::place(&mut fresh.problem, &mut fresh.scratch, &vm, &how);
            assert_eq!(choice, afresh, "seed {seed}: what is kept is what is worked out anew");
            let Some(chosen) = choice.host else { continue };
            assert_eq!(chosen.breakdown.total(), chosen.score, "seed {seed}");
            scored += u32::from(chosen.breakdown.policy != 0);
            scene.problem.add_vm(chosen.host, &vm, &chosen.committed);
            scene.ledger.add_vm(chosen.host, &vm, &chosen.committed).expect("a new VM");
            let host = scene.snapshot.hosts[chosen.host.row()].id.clone();
            scene.snapshot.placed.push(Placed {
                vm: Arc::new(vm),
                host,
                committed: chosen.committed,
                bindings: None,
                over_capacity: false,
                adopted: false,
                held: false,
            });
        }
    }
    println!("{removed} hosts removed by policies, {scored} choices with points");
    assert!(removed > 1_000 && scored > 100, "{removed} {scored}: the policies had no say");
}

fn random_policies(dice: &mut Dice) -> Arc<ActiveSet> {
    let policies = (0..1 + dice.below(2)).map(|number| {
        let rules: String = (0..1 + dice.below(3))
            .map(|row| format!("rule \"r{row}\" {{ {} }}\n", dice.pick(&RULES)))
            .collect();
        let text = format!("policy \"policy {number}\" {{ rules {{ {rules} }} }}");
        let (program, _) = policy::load(&text, Syntax::Dsl).expect("a good policy");
        (Arc::new(program), Configuration::default())
    });
    Arc::new(ActiveSet::new(policies.collect()).expect("no parameters"))
}

struct Scene {
    snapshot: Snapshot,
    policies: Arc<ActiveSet>,
    problem: Problem,
    ledger: Ledger,
    scratch: Scratch,
}

impl Scene {
    fn new(snapshot: Snapshot, policies: Arc<ActiveSet>) -> Self {
        let dimensions = snapshot.dimensions.len();
        let (mut problem, mut ledger) = (Problem::new(dimensions), Ledger::new(dimensions));
        for (row, host) in snapshot.hosts.iter().enumerate() {
            problem.put_host(HostIx::new(row), host);
            ledger.put_host(HostIx::new(row), host);
        }
        let hosts = snapshot.hosts.iter().enumerate();
        let hosts = hosts.map(|(row, host)| (HostIx::new(row), host.as_ref()));
        problem.set_policies(Arc::clone(&policies), &snapshot.dimensions, hosts);
        for placed in &snapshot.placed {
            let row = snapshot.hosts.iter().position(|host| host.id == placed.host);
            let ix = HostIx::new(row.expect("a known host"));
            problem.add_vm(ix, &placed.vm, &placed.committed);
            ledger.add_vm(ix, &placed.vm, &placed.committed).expect("a new VM");
        }
        Self { snapshot, policies, problem, ledger, scratch: Scratch::default() }
    }

    /// Asks both sides about every host; returns how many a policy keeps the VM away from.
    fn compare(&mut self, vm: &Vm, seed: u64) -> u32 {
        let mut removed = 0;
        for (row, host) in self.snapshot.hosts.iter().enumerate() {
            let ix = HostIx::new(row);
            let solver = solver::feasible(&mut self.problem, vm, ix);
            let dimensions = &self.snapshot.dimensions;
            let verifier = self.ledger.check_policies(&self.policies, dimensions, vm, ix, host);
            // Policies are tried after every other rule but capacity.
            let judged = match &solver {
                Ok(_) | Err(Reason::Policy | Reason::Capacity(_)) => true,
                Err(_) => false,
            };
            let says_no = solver == Err(Reason::Policy);
            assert!(
                !judged || says_no == verifier.is_some(),
                "seed {seed}: {solver:?} {verifier:?}"
            );
            removed += u32::from(says_no);
        }
        removed
    }
}
