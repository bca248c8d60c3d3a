//! A second opinion on decisions and plans, ours or another system's.

use super::{Answer, answer};
use crate::app::Problems;
use crate::body::{Large, aside};
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::StatusCode;
use cluster::{Revision, Snapshot};
use policy::ActiveSet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use verify::{Certificate, Finding, Violation, ViolationKind};
use wire::certify::{
    CertificateView, CheckedView, Document, DocumentSpec, ViolationView, VmKeyView,
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(validate))
}

/// Check decisions and plans, whoever made them, and list every rule that they break.
///
/// Without `snapshot` they are checked on the state as it is, with the policies in force; a
/// snapshot that is sent has no policies. A plan is checked after every prefix, and while each of
/// its waves is under way: a VM that moves then has its place on both hosts, and the steps of a
/// wave may be done in any order.
#[utoipa::path(post, path = "/v1/validate", tag = "placements", request_body = DocumentSpec,
    responses((status = 200, description = "Accepted, or what is broken", body = CertificateView),
              Problems))]
async fn validate(
    Handle(service): Handle<Service>,
    Large(Document { snapshot, decisions, plan }): Large<Document>,
) -> Answer {
    let (snapshot, policies, revision): (Snapshot, Arc<ActiveSet>, Option<Revision>) =
        match snapshot {
            Some(snapshot) => (snapshot, Arc::default(), None),
            None => {
                let now =
                    service.look(|core| (core.state().snapshot(), Arc::clone(core.policies())));
                let (snapshot, policies) = now.await?;
                let revision = snapshot.revision;
                (snapshot, policies, Some(revision))
            }
        };
    let checked = move || Ok(verify::certificate(snapshot, &decisions, &plan, &policies));
    let certificate = aside(checked).await?;
    answer(StatusCode::OK, &shown(&certificate, revision))
}

fn shown(certificate: &Certificate, revision: Option<Revision>) -> CertificateView {
    let drift = |list: &[Violation]| {
        list.iter().map(|it| shown_one(&Finding::from(it.clone()))).collect::<Vec<_>>()
    };
    let count = |number: usize| number as u64;
    CertificateView {
        accepted: certificate.accepted(),
        violations: certificate.violations.iter().map(shown_one).collect(),
        drift: drift(&certificate.drift),
        drift_after: drift(&certificate.drift_after),
        checked: CheckedView {
            hosts: count(certificate.checked.hosts),
            vms: count(certificate.checked.vms),
            decisions: count(certificate.checked.decisions),
            steps: count(certificate.checked.steps),
        },
        revision: revision.map(|revision| revision.0),
    }
}

fn shown_one(finding: &Finding) -> ViolationView {
    let Finding { decision, wave, step, violation } = finding;
    let key = violation.vm.clone();
    let mut facts = facts(&violation.kind);
    ViolationView {
        kind: facts.remove("kind").unwrap_or_default(),
        text: violation.kind.to_string(),
        decision: decision.map(|place| place as u64),
        wave: wave.map(|place| place as u64),
        step: step.map(|place| place as u64),
        host: violation.host.clone(),
        vm: key.map(|key| VmKeyView { tenant: key.tenant, id: key.id }),
        facts,
    }
}

/// The fields of a kind by name.
fn facts(kind: &ViolationKind) -> BTreeMap<String, String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(kind) else { return BTreeMap::new() };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}
