//! Around every request: its id, its deadline, and an answer even when a handler panics.

use crate::failure::Failure;
use crate::routes::novacron;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use wire::Code;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_TIMEOUT_MS: HeaderName = HeaderName::from_static("x-request-timeout-ms");
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The longest that any request may take. Streams end their first answer long before.
const LONGEST: Duration = Duration::from_secs(30);

/// When the caller stops waiting. Put into the request's extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(pub(crate) Instant);

pub(crate) async fn envelope(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let form = Form::of(request.uri().path());
    let answered = match allowed_time(request.headers()) {
        Ok(allowed) => {
            let now = Instant::now();
            request.extensions_mut().insert(Deadline(now.checked_add(allowed).unwrap_or(now)));
            let handled = AssertUnwindSafe(next.run(request)).catch_unwind();
            match tokio::time::timeout(allowed, handled).await {
                Ok(Ok(response)) => response,
                Ok(Err(_)) => {
                    tracing::error!(request_id = ?id, "a handler panicked");
                    Failure::new(Code::INTERNAL, "the handler failed").into_response()
                }
                Err(_) => {
                    let detail = format!("not done within {} ms", allowed.as_millis());
                    Failure::new(Code::DEADLINE_EXCEEDED, detail).into_response()
                }
            }
        }
        Err(failure) => failure.into_response(),
    };
    let mut response = written(answered, &id, form);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// How failures are written.
#[derive(Clone, Copy)]
enum Form {
    Problem,
    Novacron,
}

impl Form {
    fn of(path: &str) -> Self {
        if novacron::speaks(path) { Form::Novacron } else { Form::Problem }
    }
}

/// Writes the body of a failure.
fn written(mut response: Response, id: &HeaderValue, form: Form) -> Response {
    let Some(Failure { mut problem, .. }) = response.extensions_mut().remove::<Failure>() else {
        return response;
    };
    problem.request_id = id.to_str().ok().map(str::to_owned);
    let (mut head, _) = response.into_parts();
    let (body, content_type) = match form {
        Form::Problem => (serde_json::to_vec(&problem), PROBLEM_JSON),
        Form::Novacron => {
            let failure = wire::novacron::Failure::from_problem(&problem);
            head.status = StatusCode::from_u16(failure.status).unwrap_or(head.status);
            (serde_json::to_vec(&failure), JSON)
        }
    };
    let body = body.unwrap_or_default();
    head.headers.insert(header::CONTENT_TYPE, content_type);
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response::from_parts(head, body.into())
}

/// The caller's id if it is one that can stand in a log line, otherwise a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(byte);
    let usable =
        |id: &&HeaderValue| (1..=128).contains(&id.len()) && id.as_bytes().iter().all(plain);
    match headers.get(REQUEST_ID).filter(usable) {
        Some(id) => id.clone(),
        None => new_id(),
    }
}

/// Unique within the process and, by its start time, between processes.
fn new_id() -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    static STARTED: std::sync::OnceLock<u128> = std::sync::OnceLock::new();
    let started = STARTED.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_micros())
    });
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = HeaderValue::try_from(format!("{started:x}-{number:x}"));
    id.unwrap_or(HeaderValue::from_static("unnamed"))
}

fn allowed_time(headers: &HeaderMap) -> Result<Duration, Failure> {
    let Some(asked) = headers.get(REQUEST_TIMEOUT_MS) else { return Ok(LONGEST) };
    let millis = asked.to_str().ok().and_then(|text| text.parse::<u64>().ok());
    match millis {
        Some(millis @ 1..) => Ok(Duration::from_millis(millis).min(LONGEST)),
        _ => {
            let detail = format!("X-Request-Timeout-Ms is {asked:?}, not a number of milliseconds");
            Err(Failure::new(Code::INVALID_HEADER, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    async fn ask(headers: &[(&str, &str)], path: &str) -> (u16, HeaderMap, serde_json::Value) {
        let app = Router::new()
            .route("/", get(|| async { "\"fine\"" }))
            .route(
                "/boom",
                get(|| async {
                    if true {
                        panic!("on purpose")
                    }
                }),
            )
            .route("/slow", get(std::future::pending::<()>))
            .layer(from_fn(envelope));
        let mut request = axum::http::Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a valid request");
        let response = app.oneshot(request).await.expect("infallible");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let json = serde_json::from_slice(&body).expect("JSON");
        (head.status.as_u16(), head.headers, json)
    }

    #[tokio::test]
    async fn ids_are_echoed_or_made() {
        let (_, headers, _) = ask(&[("x-request-id", "abc-1")], "/").await;
        assert_eq!(headers["x-request-id"], "abc-1");
        let (_, first, _) = ask(&[("x-request-id", "no spaces")], "/").await;
        let (_, second, _) = ask(&[], "/").await;
        assert_ne!(first["x-request-id"], "no spaces");
        assert_ne!(first["x-request-id"], second["x-request-id"]);
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_problem() {
        let (status, headers, problem) = ask(&[("x-request-id", "q7")], "/boom").await;
        assert_eq!(status, 500);
        assert_eq!(headers["content-type"], "application/problem+json");
        assert_eq!(problem["code"], "internal");
        assert_eq!(problem["request_id"], "q7");
    }

    #[tokio::test(start_paused = true)]
    async fn callers_may_shorten_the_wait_but_not_lengthen_it() {
        let (status, _, problem) = ask(&[("x-request-timeout-ms", "250")], "/slow").await;
        assert_eq!((status, problem["code"].as_str()), (504, Some("deadline_exceeded")));
        assert_eq!(problem["detail"], "not done within 250 ms");
        let (_, _, problem) = ask(&[("x-request-timeout-ms", "99999999")], "/slow").await;
        assert_eq!(problem["detail"], "not done within 30000 ms");
        for wrong in ["0", "-1", "soon", "1.5"] {
            let (status, _, problem) = ask(&[("x-request-timeout-ms", wrong)], "/").await;
            assert_eq!(
                (status, problem["code"].as_str()),
                (400, Some("invalid_header")),
                "{wrong}"
            );
        }
    }
}
