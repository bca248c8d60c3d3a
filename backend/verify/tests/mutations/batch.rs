//! Two VMs that are decided together, where the order matters.

use crate::scene::{Scene, apart, name};
use cluster::{Decision, Level, Reason, Subject, Verdict, Vm};
use verify::Violation;

/// The picky VM and one that must be apart from it, decided the other way round.
pub(crate) struct Batch {
    scene: Scene,
    vms: Vec<Vm>,
    pub(crate) decisions: Vec<Decision>,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let mut scene = Scene::placed();
        let mut second = scene.vm.clone();
        second.key.id = name("second");
        second.spreads.clear();
        second.affinities.push(apart(Subject::Vm(name("new")), Level::Host));
        let mut its = scene.decision.clone();
        its.vm = second.key.clone();
        scene.decision.alternatives.clear();
        scene.decision.rejections.add(Reason::AntiAffinity, 1);
        scene.decision.verdict = match scene.decision.verdict {
            Verdict::Placed { incarnation, score, breakdown, bindings, .. } => {
                Verdict::Placed { host: name("a2"), incarnation, score, breakdown, bindings }
            }
            Verdict::Rejected => Verdict::Rejected,
        };
        let vms = vec![scene.vm.clone(), second];
        let decisions = vec![scene.decision.clone(), its];
        Self { scene, vms, decisions }
    }

    pub(crate) fn certify(&self, order: &[usize]) -> Vec<Violation> {
        verify::batch(&self.scene.snapshot, &self.vms, &self.decisions, order).violations
    }
}

#[test]
fn a_batch_is_right_only_in_the_order_in_which_it_was_decided() {
    let batch = Batch::new();
    assert_eq!(batch.certify(&[1, 0]), []);
    let found = batch.certify(&[0, 1]);
    assert!(!found.is_empty(), "each decision counts on the one before it");
}
