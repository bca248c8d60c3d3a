//! Errors as RFC 9457 problems with a stable code, a hint and the faults of the body.

use crate::fault::{self, Fault};
use crate::policies::DiagnosticView;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// What went wrong. `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:novaplace:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// A stable name for programs.
    #[schema(value_type = String, example = "vm_exists")]
    pub code: Cow<'static, str>,
    /// What happened this time.
    pub detail: String,
    /// What to do about it.
    pub hint: String,
    /// The same as the `X-Request-ID` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// With `concurrent_update`: the generation that is current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
    /// With `constraints_contradict`: those that cannot hold together, each of them needed for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// What is wrong with the body, field by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    /// What is wrong with a policy's text, place by place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<DiagnosticView>,
}

/// A kind of problem: its stable code, status, title and what to do when nothing else is known.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub hint: &'static str,
}

macro_rules! codes {
    ($($name:ident $status:literal $code:literal $title:literal $hint:literal)+) => {
        impl Code {
            $(pub const $name: Code =
                Code { code: $code, status: $status, title: $title, hint: $hint };)+
        }
        /// Every code there is.
        pub const CODES: &[Code] = &[$(Code::$name),+];
    };
}

codes! {
    INVALID_JSON 400 "invalid_json" "The body is not JSON" "send valid JSON in UTF-8"
    INVALID_QUERY 400 "invalid_query" "A query parameter is wrong" "see /docs for the parameters of this operation"
    INVALID_HEADER 400 "invalid_header" "A header is wrong" "see /docs for the headers of this operation"
    INVALID_PATH 400 "invalid_path" "The path is not valid" "percent-encode ids in the path"
    ROUTE_NOT_FOUND 404 "route_not_found" "No such route" "see /docs for the routes there are"
    HOST_NOT_FOUND 404 "host_not_found" "No such host" "list the hosts with GET /v1/hosts"
    VM_NOT_FOUND 404 "vm_not_found" "No such VM" "check id and tenant"
    DECISION_NOT_FOUND 404 "decision_not_found" "No such decision" "decisions are kept as long as the log is retained"
    RESERVATION_NOT_FOUND 404 "reservation_not_found" "No such reservation" "check the id"
    METHOD_NOT_ALLOWED 405 "method_not_allowed" "The route does not have this method" "use a method of the Allow header"
    REQUEST_TIMEOUT 408 "request_timeout" "The request came too slowly" "send the body without pauses"
    HOST_EXISTS 409 "host_exists" "The host exists already" "change it with PUT /v1/hosts/{id}"
    HOST_NOT_EMPTY 409 "host_not_empty" "The host has VMs" "move or remove its VMs first"
    VM_EXISTS 409 "vm_exists" "The VM exists already with another body" "use another id, or repeat the same body"
    CONCURRENT_UPDATE 409 "concurrent_update" "Changed by someone else meanwhile" "read it again and repeat with the new ETag"
    DOES_NOT_FIT 409 "does_not_fit" "There is no room for this" "ask for less, or place it elsewhere"
    ADVISE_MODE 409 "advise_mode" "The service only advises" "repeat with dry_run=true, or start the service without --advise"
    CONFLICT 409 "conflict" "Not possible in the present state" "read the state and decide again"
    RESERVATION_ENDED 410 "reservation_ended" "The reservation is over" "place the VM again"
    POLICY_NOT_FOUND 404 "policy_not_found" "No such policy" "GET /v1/policies lists what is installed"
    POLICY_VERSION_NOT_FOUND 404 "policy_version_not_found" "No such version of the policy" "list those that are kept with GET /v1/policies/{id}/versions"
    CONSTRAINT_NOT_FOUND 404 "constraint_not_found" "No such constraint" "GET /v1/constraints lists what is installed"
    CONSTRAINT_IN_USE 409 "constraint_in_use" "Other constraints need this one" "remove those first"
    CONSTRAINTS_CONTRADICT 409 "constraints_contradict" "The constraints cannot hold together" "remove or change one of those in conflicts"
    OPTIMISATION_NOT_FOUND 404 "optimisation_not_found" "No such optimisation" "the last 64 are kept, until the service restarts"
    FRONT_NOT_FOUND 404 "front_not_found" "No such front" "optimise with mode pareto, and wait until it is done"
    PLAN_NOT_FOUND 404 "plan_not_found" "No such plan" "GET /v1/plans lists those that are kept"
    PLAN_REFUSED 409 "plan_refused" "The plan is not in a state for this" "read the plan; its status says what it waits for"
    VM_MOVING 409 "vm_moving" "A migration is under way" "wait for the migration, then repeat"
    SIMULATION_NOT_FOUND 404 "simulation_not_found" "No such simulation" "the last 32 are kept, until the service restarts"
    POLICY_EXISTS 409 "policy_exists" "The policy exists already" "give it a new version with PUT /v1/policies/{id}"
    POLICY_REFUSED 422 "policy_refused" "The policy was left as it is" "see detail; POST /v1/policies:validate shows every mistake of a text"
    REVISION_GONE 410 "revision_gone" "History does not reach back that far" "start again from a revision that is kept"
    BODY_TOO_LARGE 413 "body_too_large" "The body is too large" "split it"
    UNSUPPORTED_MEDIA_TYPE 415 "unsupported_media_type" "The body has the wrong content type" "set Content-Type: application/json"
    INVALID_BODY 422 "invalid_body" "The body has wrong fields" "correct what is listed in errors"
    IDEMPOTENCY_KEY_REUSED 422 "idempotency_key_reused" "The Idempotency-Key was used with another body" "use a new key for a new request"
    TOO_MANY_REQUESTS 429 "too_many_requests" "This caller asks too often" "wait as Retry-After says"
    INTERNAL 500 "internal" "The service made a mistake" "report it with the request id"
    OVERLOADED 503 "overloaded" "The service is busy" "wait as Retry-After says, then repeat"
    NOT_READY 503 "not_ready" "The service is starting or stopping" "wait as Retry-After says, then repeat"
    OUTCOME_UNKNOWN 503 "outcome_unknown" "Nobody knows whether this was stored" "repeat with the same Idempotency-Key or id"
    DEADLINE_EXCEEDED 504 "deadline_exceeded" "Not done within the time allowed" "repeat with a larger X-Request-Timeout-Ms"
    STORAGE_FULL 507 "storage_full" "There is no room to store this" "free space in the data directory"
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:novaplace:problem:{}", code.code),
            title: code.title.into(),
            status: code.status,
            code: code.code.into(),
            detail: detail.into(),
            hint: code.hint.into(),
            request_id: None,
            current: None,
            conflicts: Vec::new(),
            errors: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// The problem of a body that `read` refused.
    pub fn from_faults(faults: Vec<Fault>) -> Self {
        let syntax = faults.iter().any(|fault| fault::is_syntax(&fault.code));
        let code = if syntax { Code::INVALID_JSON } else { Code::INVALID_BODY };
        let detail = match faults.as_slice() {
            [] => String::new(),
            [only] => format!("{}: {}", only.path, only.message),
            [first, rest @ ..] => {
                format!("{}: {} (and {} more)", first.path, first.message, rest.len())
            }
        };
        Self { errors: faults, ..Self::new(code, detail) }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}
