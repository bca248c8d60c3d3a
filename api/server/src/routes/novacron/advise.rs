//! Advice mode: when a VM has started, how its node compares with the one we would have chosen.

use super::schedule::place;
use crate::ask::Ask;
use crate::failure::Failure;
use crate::service::Service;
use cluster::{Amounts, Breakdown, Decision, Name, Reason, Term, Verdict};
use engine::{PlaceRequest, Request, State, VmNews};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::AdviceEntry;
use wire::novacron::{EventKind, VmEvent};

/// Compares, if the event is the first news of a VM that we have a choice for. Both hosts are
/// judged on the same state, the one before the VM is there.
pub(super) async fn compare(
    service: &Service,
    ask: &Ask,
    event: &VmEvent,
    request: &Request,
) -> Result<(), Failure> {
    let starts = matches!(event.known_kind(), Some(EventKind::Created | EventKind::Started));
    let Request::ReportVm { vm: key, news: VmNews::Runs { host, vm }, .. } = request else {
        return Ok(());
    };
    let (looked_for, chosen) = (key.clone(), host.clone());
    let fresh = service.read(move |state| {
        state.find_vm(&looked_for).is_none()
            && state.gone().at_ns(&looked_for).is_none()
            && state.find_host(&chosen).is_some()
    });
    if !starts || !fresh.await? {
        return Ok(());
    }
    let asked = service.advice.take(key).or_else(|| {
        let vm = Arc::clone(vm.as_ref()?);
        Some(PlaceRequest {
            vm,
            ..PlaceRequest::new(cluster::Vm::new(key.clone(), Amounts::zero()))
        })
    });
    let Some(asked) = asked else { return Ok(()) };
    let ask = ask.without_key().dry(true);
    let ours = place(service, &ask, &asked).await?;
    let pinned = PlaceRequest { pinned: Some(host.clone()), among: Vec::new(), ..asked.clone() };
    let theirs = place(service, &ask, &pinned).await?;
    let (Some(ours), Some(theirs)) = (ours.decision, theirs.decision) else { return Ok(()) };
    let advised = ours.host().cloned();
    let (chosen, demand) = (host.clone(), asked.vm.demand.clone());
    let at = advised.clone();
    let headroom = service.read(move |state| {
        let of = |host: &Name| headroom_permille(state, host, &demand);
        (of(&chosen), at.as_ref().map(of))
    });
    let (chosen_headroom_permille, advised_headroom_permille) = headroom.await?;
    let gain = match (breakdown(&ours), breakdown(&theirs)) {
        (Some(ours), Some(theirs)) => Some((ours, theirs)),
        _ => None,
    };
    let by_term = gain.iter().flat_map(|(ours, theirs)| {
        Term::ALL
            .map(|term| (term.name().to_owned(), ours.get(term).saturating_sub(theirs.get(term))))
    });
    service.advice.note(AdviceEntry {
        tenant: key.tenant.to_string(),
        vm_id: key.id.to_string(),
        at_ms: service.now_ms(),
        chosen_host: host.to_string(),
        agreed: advised.as_ref() == Some(host),
        advised_host: advised.map(|host| host.to_string()),
        broken: broken(&theirs, service),
        score_gain: gain.map(|(ours, theirs)| ours.total().saturating_sub(theirs.total())),
        gain_by_term: by_term.filter(|(_, gain)| *gain != 0).collect::<BTreeMap<_, _>>(),
        chosen_headroom_permille,
        advised_headroom_permille,
    });
    Ok(())
}

fn breakdown(decision: &Decision) -> Option<Breakdown> {
    match &decision.verdict {
        Verdict::Placed { breakdown, .. } => Some(*breakdown),
        Verdict::Rejected => None,
    }
}

/// Why the host that was insisted on is none for the VM.
fn broken(decision: &Decision, service: &Service) -> Option<String> {
    if decision.host().is_some() {
        return None;
    }
    let reasons = decision.rejections.0.iter().map(|(reason, _)| *reason);
    let own = reasons.filter(|reason| *reason != Reason::HostAffinity).next_back();
    Some(match own {
        Some(Reason::Capacity(dim)) => service.dimensions().name(dim).to_owned(),
        Some(reason) => reason.name().unwrap_or("capacity").to_owned(),
        None => "host_affinity".to_owned(),
    })
}

/// The smallest share of any dimension that is left with `demand` in place, in permille. Below
/// zero if there is not enough.
fn headroom_permille(state: &State, host: &Name, demand: &Amounts) -> i64 {
    let Some((_, entry)) = state.find_host(host) else { return 0 };
    let foreign = entry.foreign().used;
    let left = state.dimensions().iter().filter_map(|dim| {
        let allocatable = i64::try_from(entry.host.allocatable(dim)).ok().filter(|all| *all > 0)?;
        let taken = entry.allocated.get(dim).saturating_add(foreign.get(dim));
        let taken = i64::try_from(taken.saturating_add(demand.get(dim))).unwrap_or(i64::MAX);
        allocatable.saturating_sub(taken).saturating_mul(1000).checked_div(allocatable)
    });
    left.min().unwrap_or(0)
}
