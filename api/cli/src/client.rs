//! Talks to a running service: one request at a time, repeated where repeating is safe.
//!
//! Knows HTTP, deadlines and problem documents. What is asked, and how an answer is shown, is for
//! the verbs to say.

use crate::output::Format;
use clap::Args;
use serde::de::DeserializeOwned;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use ureq::http::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use ureq::http::{Method, Request};
use wire::Problem;

/// Where the service is and how to print what it says. Part of every verb that asks it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Connection {
    /// The service to ask
    #[arg(long, global = true, env = "NOVAPLACE_SERVER", value_name = "URL")]
    #[arg(default_value = "http://127.0.0.1:8080", value_parser = base_url)]
    server: String,
    /// How long the service may take to answer
    #[arg(long, global = true, env = "NOVAPLACE_TIMEOUT_MS", value_name = "MS")]
    #[arg(default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..=30_000))]
    timeout_ms: u64,
    /// A table for people, or the service's own JSON for programs
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

impl Connection {
    /// A client of another service than the one that verbs ask, with the same patience.
    pub(crate) fn open_at(&self, server: &str) -> Client {
        Self { server: server.to_owned(), ..self.clone() }.open()
    }

    pub(crate) fn open(&self) -> Client {
        // The service answers in time or says that it could not; this is for when it is gone.
        let patience = Duration::from_millis(self.timeout_ms) + Duration::from_secs(2);
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(patience))
            .user_agent(concat!("novaplace/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Client { agent, server: self.server.clone(), timeout_ms: self.timeout_ms }
    }
}

/// `http://HOST:PORT`, without a slash at the end.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("http://").ok_or("it must start with http://")?;
    let address = address.trim_end_matches('/');
    match address.is_empty() || address.contains(['/', '?', '#', ' ']) {
        true => Err("it must be http://HOST:PORT and nothing more".into()),
        false => Ok(format!("http://{address}")),
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    server: String,
    timeout_ms: u64,
}

/// What to send.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: Method,
    /// Path and query.
    target: String,
    body: Option<(&'static str, Vec<u8>)>,
    /// The `ETag` that the caller has seen.
    if_match: Option<String>,
}

/// What the service said to a request that it carried out.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<String>,
}

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
/// Answers are as large as a page of a thousand hosts.
const MAX_ANSWER_BYTES: u64 = 256 << 20;
/// Pauses before the second, third and fourth attempt.
const PAUSES_MS: [u64; 3] = [100, 300, 900];

impl Ask {
    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &[&str]) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn put(path: &[&str]) -> Self {
        Self::new(Method::PUT, path)
    }

    pub(crate) fn patch(path: &[&str]) -> Self {
        Self::new(Method::PATCH, path)
    }

    pub(crate) fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: &[&str]) -> Self {
        let target = path.iter().map(|part| format!("/{}", encoded(part))).collect();
        Self { method, target, body: None, if_match: None }
    }

    /// Adds a query parameter, if there is a value for it.
    pub(crate) fn query(mut self, name: &str, value: Option<impl fmt::Display>) -> Self {
        if let Some(value) = value {
            let sign = if self.target.contains('?') { '&' } else { '?' };
            self.target.push_str(&format!("{sign}{name}={}", encoded(&value.to_string())));
        }
        self
    }

    pub(crate) fn dry_run(self, dry_run: bool) -> Self {
        self.query("dry_run", dry_run.then_some(true))
    }

    pub(crate) fn json(self, body: Vec<u8>) -> Self {
        Self { body: Some((JSON, body)), ..self }
    }

    pub(crate) fn lines(self, body: Vec<u8>) -> Self {
        Self { body: Some((NDJSON, body)), ..self }
    }

    pub(crate) fn if_match(self, etag: Option<String>) -> Self {
        Self { if_match: etag, ..self }
    }
}

impl Answer {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body)
            .map_err(|error| anyhow::anyhow!("the service's answer cannot be read: {error}"))
    }
}

impl Client {
    /// Sends a request and waits for the answer.
    ///
    /// A request that got no answer, or 503, is sent again a few times: with the same
    /// `Idempotency-Key`, so that it is carried out once however often it arrives.
    pub(crate) fn send(&self, ask: &Ask) -> Result<Answer, ClientError> {
        let key = idempotency_key();
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let outcome = self.attempt(ask, &key);
            let pause_ms = match &outcome {
                Err(ClientError::Unreachable { again: true, .. }) => pauses.next(),
                Err(ClientError::Refused(problem)) if problem.status == 503 => pauses.next(),
                _ => None,
            };
            let Some(pause_ms) = pause_ms else { return outcome };
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }

    fn attempt(&self, ask: &Ask, key: &str) -> Result<Answer, ClientError> {
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(format!("{}{}", self.server, ask.target))
            .header("x-request-timeout-ms", self.timeout_ms);
        if [Method::POST, Method::PUT, Method::DELETE].contains(&ask.method) {
            request = request.header("idempotency-key", key);
        }
        if let Some(etag) = &ask.if_match {
            request = request.header(IF_MATCH, etag);
        }
        let sent = match &ask.body {
            Some((kind, body)) => request
                .header(CONTENT_TYPE, *kind)
                .body(body.as_slice())
                .map_err(ureq::Error::from)
                .and_then(|request| self.agent.run(request)),
            None => request.body(()).map_err(ureq::Error::from).and_then(|it| self.agent.run(it)),
        };
        let unreachable = |error| self.unreachable(error);
        let response = sent.map_err(unreachable)?;
        let (head, mut body) = response.into_parts();
        let body = body.with_config().limit(MAX_ANSWER_BYTES).read_to_vec().map_err(unreachable)?;
        if head.status.is_success() {
            let etag = head.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
            return Ok(Answer { body, etag: etag.map(str::to_owned) });
        }
        let status = head.status.as_u16();
        Err(match problem(&body, status) {
            Some(problem) => ClientError::Refused(Box::new(problem)),
            None => ClientError::Foreign { server: self.server.clone(), status },
        })
    }

    fn unreachable(&self, error: ureq::Error) -> ClientError {
        let again = matches!(&error, ureq::Error::Io(_) | ureq::Error::ConnectionFailed);
        ClientError::Unreachable { server: self.server.clone(), reason: error.to_string(), again }
    }
}

/// A problem document, or an error in NovaCron's form, which its own routes answer with.
fn problem(body: &[u8], status: u16) -> Option<Problem> {
    let ours = serde_json::from_slice::<Problem>(body).ok();
    ours.or_else(|| {
        let theirs = serde_json::from_slice::<wire::novacron::Failure>(body).ok()?;
        Some(theirs.to_problem(status))
    })
}

/// Why there is no answer to go on with.
#[derive(Debug)]
pub(crate) enum ClientError {
    Unreachable {
        server: String,
        reason: String,
        /// Whether a moment later may be better.
        again: bool,
    },
    /// Something answered that is not this service.
    Foreign {
        server: String,
        status: u16,
    },
    Refused(Box<Problem>),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, reason, .. } => write!(
                f,
                "cannot reach {server}: {reason}; start the service with `novaplace serve`, or \
                 say with --server where it runs"
            ),
            Self::Foreign { server, status } => write!(
                f,
                "{server} answered {status} in a way that novaplace does not: is it the service?"
            ),
            Self::Refused(problem) => match problem.errors.as_slice() {
                [] => write!(f, "{}; {} ({})", problem.detail, problem.hint, problem.code),
                [only] => write!(f, "{only}"),
                many => {
                    write!(f, "{} faults ({})", many.len(), problem.code)?;
                    many.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
                }
            },
        }
    }
}

impl std::error::Error for ClientError {}

/// Percent-encodes everything but letters, digits and the signs that stand for themselves.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// 128 random bits, from the seeds that the standard library takes for its hash maps.
fn idempotency_key() -> String {
    let bits = || RandomState::new().hash_one(std::process::id());
    format!("cli-{:016x}{:016x}", bits(), bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_leave_their_place_in_the_path() {
        let ask = Ask::get(&["v1", "hosts", "a/b?c#d e%"]).query("tenant", Some("x&y"));
        assert_eq!(ask.target, "/v1/hosts/a%2Fb%3Fc%23d%20e%25?tenant=x%26y");
    }

    #[test]
    fn parameters_without_a_value_are_left_out() {
        let ask = Ask::get(&["v1", "hosts:bulk"]).query("zone", None::<&str>).dry_run(true);
        assert_eq!(ask.target, "/v1/hosts:bulk?dry_run=true");
    }

    #[test]
    fn a_server_is_an_http_url_without_a_path() {
        assert_eq!(base_url("http://a:1/").as_deref(), Ok("http://a:1"));
        for wrong in ["a:1", "https://a:1", "http://", "http://a/v1", "http://a b"] {
            assert!(base_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_two_requests_have_the_same_key() {
        assert_ne!(idempotency_key(), idempotency_key());
    }

    #[test]
    fn a_problem_is_told_with_its_field_its_hint_and_its_code() {
        let told = ClientError::Refused(Box::new(Problem::new(
            wire::Code::HOST_NOT_FOUND,
            "there is no host h9",
        )));
        let expected = "there is no host h9; list the hosts with GET /v1/hosts (host_not_found)";
        assert_eq!(told.to_string(), expected);
    }
}
