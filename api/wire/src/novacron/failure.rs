//! Errors as NovaCron writes them: `{"error":{"code","message"}}`.
//!
//! Placement failures have the codes of its VM errors, in capitals; everything else has the codes
//! of its HTTP middleware, which copies both into its own envelope.

use crate::fault::Fault;
use crate::problem::{Code, Problem};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Most faults of a body that a message tells of.
const MOST_FAULTS: usize = 8;

/// No node has room for the VM.
pub const INSUFFICIENT_CAPACITY: Code = Code {
    code: "INSUFFICIENT_CAPACITY",
    status: 409,
    title: "No node has room",
    hint: "ask for less, or add nodes",
};

/// There are nodes, and none of them may take the VM.
pub const PLACEMENT_UNAVAILABLE: Code = Code {
    code: "PLACEMENT_UNAVAILABLE",
    status: 409,
    title: "No node may take the VM",
    hint: "register nodes, or relax what the VM asks for",
};

/// The VM or request makes no sense, where NovaCron says so in capitals.
pub const INVALID_ARGUMENT: Code = Code {
    code: "INVALID_ARGUMENT",
    status: 400,
    title: "The request makes no sense",
    hint: "correct what the message names",
};

/// The caller may not use this route.
pub const FORBIDDEN: Code =
    Code { code: "forbidden", status: 403, title: "This route is closed", hint: "see the message" };

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = novacron::Failure)]
pub struct Failure {
    #[serde(skip)]
    pub status: u16,
    pub error: FailureBody,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = novacron::Error)]
pub struct FailureBody {
    /// A stable name for programs.
    #[schema(value_type = String, example = "INSUFFICIENT_CAPACITY")]
    pub code: Cow<'static, str>,
    /// What happened, and where it helps, what to do.
    pub message: String,
}

impl Failure {
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self { status, error: FailureBody { code: code.into(), message: message.into() } }
    }

    /// The failure of a body that `read` refused, or that makes no sense.
    pub fn from_faults(faults: &[Fault]) -> Self {
        Self::new(400, "invalid_argument", told(faults))
    }

    /// The failure as clients of `/v1` know it. `status` is that of the answer it came with.
    pub fn to_problem(&self, status: u16) -> Problem {
        Problem {
            kind: "about:blank".into(),
            title: "NovaCron's route failed".into(),
            status,
            code: self.error.code.clone(),
            detail: self.error.message.clone(),
            hint: "see the message".into(),
            request_id: None,
            current: None,
            conflicts: Vec::new(),
            diagnostics: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// A problem of `/v1` in NovaCron's words. What is wrong with a body is a bad request here,
    /// since NovaCron knows no other status for it.
    pub fn from_problem(problem: &Problem) -> Self {
        if !problem.errors.is_empty() {
            return Self::from_faults(&problem.errors);
        }
        let status = problem.status;
        let is_novacron_code = problem.code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let code = match status {
            _ if is_novacron_code => problem.code.clone(),
            400 | 413 | 415 => "invalid_argument".into(),
            401 => "unauthorized".into(),
            403 => "forbidden".into(),
            404 => "not_found".into(),
            409 | 410 => "conflict".into(),
            422 => "validation_failed".into(),
            // What is left is the service's trouble, which has a name of its own there.
            _ => problem.code.clone(),
        };
        Self::new(status, code, problem.detail.clone())
    }
}

fn told(faults: &[Fault]) -> String {
    let line = |fault: &Fault| format!("{}: {}; {}", fault.path, fault.message, fault.hint);
    let mut lines: Vec<String> = faults.iter().take(MOST_FAULTS).map(line).collect();
    let more = faults.len().saturating_sub(lines.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: Code, status: u16, expected: &str) {
        let failure = Failure::from_problem(&Problem::new(code, "because"));
        assert_eq!((failure.status, failure.error.code.as_ref()), (status, expected));
        assert_eq!(failure.error.message, "because");
    }

    #[test]
    fn problems_have_the_codes_that_novacron_knows() {
        check(Code::HOST_NOT_FOUND, 404, "not_found");
        check(Code::VM_EXISTS, 409, "conflict");
        check(Code::RESERVATION_ENDED, 410, "conflict");
        check(Code::BODY_TOO_LARGE, 413, "invalid_argument");
        check(Code::IDEMPOTENCY_KEY_REUSED, 422, "validation_failed");
        check(Code::OVERLOADED, 503, "overloaded");
        check(FORBIDDEN, 403, "forbidden");
        check(INSUFFICIENT_CAPACITY, 409, "INSUFFICIENT_CAPACITY");
    }

    #[test]
    fn every_fault_is_told_up_to_a_limit() {
        let fault = |row: usize| Fault {
            path: format!("nodes[{row}].total_cpu"),
            code: "negative_number".into(),
            message: "-1 is negative".into(),
            hint: "send more".into(),
        };
        let faults: Vec<Fault> = (0..20).map(fault).collect();
        let failure = Failure::from_problem(&Problem::from_faults(faults));
        assert_eq!(failure.status, 400);
        assert!(failure.error.message.starts_with("nodes[0].total_cpu: -1 is negative; send more"));
        assert!(failure.error.message.ends_with("and 12 more"), "{}", failure.error.message);
    }
}
