//! Bodies: content type, size, pace, and the strict reader.

use crate::envelope::Deadline;
use crate::failure::Failure;
use crate::service::Service;
use axum::body::Body as HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use wire::{Code, Limits, Read};

const SINGLE_BYTES: usize = 1 << 20;
/// Twice the longest text of a policy: escapes take room.
const POLICY_BYTES: usize = 512 << 10;
const BULK_BYTES: usize = 64 << 20;
/// A body this short is read faster than it is handed to another thread.
const AT_ONCE: usize = 16 << 10;
/// Longest pause between two pieces of a body.
const IDLE: Duration = Duration::from_secs(5);

/// A JSON body about one thing.
pub(crate) struct Body<T>(pub(crate) T);

/// A JSON body with the text of a policy.
pub(crate) struct Written<T>(pub(crate) T);

/// A JSON body about many things.
pub(crate) struct Batch<T>(pub(crate) T);

/// A JSON body with a whole cluster in it.
pub(crate) struct Large<T>(pub(crate) T);

/// A JSON body in NovaCron's form, about one thing or many.
pub(crate) struct Sent<T>(pub(crate) T);

/// A body with one JSON document per line.
pub(crate) struct Lines<T>(pub(crate) Vec<T>);

impl<T: Read> FromRequest<Service> for Body<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        check_type(request.headers(), JSON)?;
        let bytes = collect(request, SINGLE_BYTES).await?;
        let limits = Limits::single(service.dimensions());
        wire::read(&bytes, &limits).map(Self).map_err(Failure::faults)
    }
}

impl<T: Read> FromRequest<Service> for Written<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        check_type(request.headers(), JSON)?;
        let bytes = collect(request, POLICY_BYTES).await?;
        let limits = Limits::policy(service.dimensions());
        wire::read(&bytes, &limits).map(Self).map_err(Failure::faults)
    }
}

impl<T: Read + Send + 'static> FromRequest<Service> for Batch<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        check_type(request.headers(), JSON)?;
        let bytes = collect(request, BULK_BYTES).await?;
        let limits = Limits::batch(service.dimensions());
        aside(move || wire::read(&bytes, &limits).map_err(Failure::faults)).await.map(Self)
    }
}

impl<T: Read + Send + 'static> FromRequest<Service> for Large<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        check_type(request.headers(), JSON)?;
        let bytes = collect(request, BULK_BYTES).await?;
        let limits = Limits::cluster(service.dimensions());
        aside(move || wire::read(&bytes, &limits).map_err(Failure::faults)).await.map(Self)
    }
}

impl<T: Read + Send + 'static> FromRequest<Service> for Sent<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        check_type(request.headers(), JSON)?;
        let bytes = collect(request, BULK_BYTES).await?;
        let limits = Limits::novacron(service.dimensions());
        if bytes.len() <= AT_ONCE {
            return wire::read(&bytes, &limits).map(Self).map_err(Failure::faults);
        }
        aside(move || wire::read(&bytes, &limits).map_err(Failure::faults)).await.map(Self)
    }
}

impl<T: Read + Send + 'static> FromRequest<Service> for Lines<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        check_type(request.headers(), NDJSON)?;
        let bytes = collect(request, BULK_BYTES).await?;
        let limits = Limits::single(service.dimensions());
        aside(move || wire::read_lines(&bytes, &limits).map_err(Failure::faults)).await.map(Self)
    }
}

/// Runs what takes long on a thread where it keeps nobody waiting.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Failure::new(Code::INTERNAL, error.to_string())),
    }
}

const JSON: &[&str] = &["application/json"];
const NDJSON: &[&str] = &["application/x-ndjson", "application/ndjson", "application/jsonl"];

fn check_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), Failure> {
    let sent = headers.get(header::CONTENT_TYPE);
    let text = sent.and_then(|sent| sent.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if allowed.iter().any(|allowed| essence.eq_ignore_ascii_case(allowed)) {
        return Ok(());
    }
    let first = allowed.first().copied().unwrap_or_default();
    let detail = match sent {
        Some(_) => format!("Content-Type is {essence:?}, expected {first}"),
        None => format!("Content-Type is missing, expected {first}"),
    };
    let mut failure = Failure::new(Code::UNSUPPORTED_MEDIA_TYPE, detail);
    failure.problem.hint = format!("set Content-Type: {first}");
    Err(failure)
}

/// The whole body, if it is small enough and comes fast enough.
async fn collect(request: Request, most: usize) -> Result<Vec<u8>, Failure> {
    let deadline = request.extensions().get::<Deadline>().map(|deadline| deadline.0);
    let too_large = || Failure::new(Code::BODY_TOO_LARGE, format!("more than {most} bytes"));
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut body: HttpBody = request.into_body();
    // The announced length is only a promise, so it does not decide how much memory is taken.
    let mut bytes = Vec::with_capacity(announced.unwrap_or(0).min(64 * 1024));
    loop {
        let left = deadline.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
        let frame = match timeout(left.min(IDLE), body.frame()).await {
            Ok(None) => return Ok(bytes),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                let detail = format!("the body ended early: {error}");
                return Err(Failure::new(Code::INVALID_JSON, detail));
            }
            Err(_) => {
                let detail = format!("the body stopped after {} bytes", bytes.len());
                return Err(Failure::new(Code::REQUEST_TIMEOUT, detail));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len().saturating_add(data.len()) > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
}
