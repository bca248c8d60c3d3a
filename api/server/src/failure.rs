//! Problems as responses, and what each refusal of the engine means in HTTP.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::Refusal;
use std::borrow::Cow;
use wire::{Code, Fault, Problem};

/// A request that did not lead to what was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) problem: Box<Problem>,
    retry_after_s: Option<u64>,
}

impl Failure {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let retry_after_s = (code.status == 503 || code.status == 429).then_some(1);
        Self { problem: Box::new(Problem::new(code, detail)), retry_after_s }
    }

    /// A body that is wrong.
    pub(crate) fn faults(faults: Vec<Fault>) -> Self {
        Self { problem: Box::new(Problem::from_faults(faults)), retry_after_s: None }
    }
}

/// Status and headers only. The envelope writes the body, because it knows the request's id.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status);
        let mut response = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        let code = match refusal {
            Refusal::Invalid { field, problem } => {
                return Self::faults(vec![Fault {
                    path: field,
                    code: Cow::Borrowed("invalid_value"),
                    message: problem,
                    hint: "correct the value".into(),
                }]);
            }
            Refusal::UnknownHost(_) => Code::HOST_NOT_FOUND,
            Refusal::HostExists(_) => Code::HOST_EXISTS,
            Refusal::HostNotEmpty { .. } => Code::HOST_NOT_EMPTY,
            Refusal::UnknownVm(_) => Code::VM_NOT_FOUND,
            Refusal::VmExists { .. } => Code::VM_EXISTS,
            Refusal::Stale { current, .. } => {
                let mut failure = Self::new(Code::CONCURRENT_UPDATE, detail);
                failure.problem.current = Some(current);
                return failure;
            }
            Refusal::DoesNotFit { .. } => Code::DOES_NOT_FIT,
            Refusal::PartsRefused { .. } => Code::CONFLICT,
            Refusal::UnknownPolicy(_) => Code::POLICY_NOT_FOUND,
            Refusal::PolicyRefused { .. } => Code::POLICY_REFUSED,
            Refusal::UnknownConstraint(_) => Code::CONSTRAINT_NOT_FOUND,
            Refusal::ConstraintInUse { .. } => Code::CONSTRAINT_IN_USE,
            Refusal::Contradiction { between, .. } => {
                let mut failure = Self::new(Code::CONSTRAINTS_CONTRADICT, detail);
                failure.problem.conflicts = between;
                return failure;
            }
            Refusal::UnknownReservation(_) => Code::RESERVATION_NOT_FOUND,
            Refusal::ReservationExpired { .. } => Code::RESERVATION_ENDED,
            Refusal::Gap { .. } => Code::CONFLICT,
            Refusal::UnknownPlan(_) => Code::PLAN_NOT_FOUND,
            Refusal::PlanRefused { .. } => Code::PLAN_REFUSED,
            Refusal::Moving { .. } | Refusal::Tied { .. } => Code::VM_MOVING,
            Refusal::IdempotencyConflict => Code::IDEMPOTENCY_KEY_REUSED,
            Refusal::Busy { .. } => Code::OVERLOADED,
            Refusal::DeadlinePassed => Code::DEADLINE_EXCEEDED,
            Refusal::Unverified(_) => Code::INTERNAL,
            Refusal::OutcomeUnknown => Code::OUTCOME_UNKNOWN,
        };
        Self::new(code, detail)
    }
}
