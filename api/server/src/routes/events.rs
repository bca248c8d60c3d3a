//! Events: as a stream, or by asking again and again.

use super::{Answer, answer};
use crate::app::Problems;
use crate::ask::{Ask, Params};
use crate::failure::Failure;
use crate::service::Service;
use axum::extract::State as Handle;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use cluster::Revision;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{Code, EventPage, StreamedEvent};

/// Kept back from the caller's time, so that an empty answer still arrives in it.
const MARGIN: Duration = Duration::from_millis(200);

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(events))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Follow {
    /// Only what happened after this revision. Left out: from now on.
    since: Option<u64>,
    /// Wait this long for something to happen, such as `30s` or `500ms`, and answer with JSON.
    #[param(pattern = "^[0-9]{1,9}(ms|s)?$")]
    wait: Option<String>,
}

/// Follow changes: a server-sent event stream, or with `wait` or `since` one page of JSON.
#[utoipa::path(get, path = "/v1/events", tag = "cluster", params(Follow),
    responses((status = 200, description = "Events",
               content((EventPage = "application/json"), (StreamedEvent = "text/event-stream"))), Problems))]
async fn events(
    Handle(service): Handle<Service>,
    Params(follow): Params<Follow>,
    headers: HeaderMap,
    ask: Ask,
) -> Answer {
    let now = *service.durable().borrow();
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let since = Revision(follow.since.or(last_id).unwrap_or(now.0));
    if since > now {
        let detail = format!("since is {since}, and the cluster is at {now}");
        return Err(Failure::new(Code::INVALID_QUERY, detail));
    }
    let streamed = headers
        .get("accept")
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/event-stream"));
    if streamed || (follow.wait.is_none() && follow.since.is_none()) {
        service.events.since(since).ok_or_else(|| gone(since))?;
        let stream = Sse::new(told(service, since)).keep_alive(KeepAlive::default());
        return Ok(stream.into_response());
    }
    let wait = follow.wait.as_deref().map_or(Ok(Duration::ZERO), duration)?;
    let wait = wait.min(ask.time_left().saturating_sub(MARGIN));
    let mut durable = service.durable();
    let first = service.events.since(since).ok_or_else(|| gone(since))?;
    let told = match first.events.is_empty() {
        false => first,
        true => {
            // Whether something came or the time is over, what there is now is the answer.
            let _ = timeout(wait, next_events(&service, &mut durable, since)).await;
            service.events.since(since).ok_or_else(|| gone(since))?
        }
    };
    let page = EventPage { events: told.events, revision: told.revision.0 };
    answer(StatusCode::OK, &page)
}

/// Returns when there is something after `since`, or when nothing will come any more.
async fn next_events(
    service: &Service,
    durable: &mut tokio::sync::watch::Receiver<Revision>,
    since: Revision,
) {
    while service.events.since(since).is_some_and(|told| told.events.is_empty()) {
        if durable.changed().await.is_err() {
            return;
        }
    }
}

/// Every event after `since`, for as long as the caller listens and keeps up.
fn told(service: Service, since: Revision) -> impl Stream<Item = Result<Sent, Infallible>> {
    let durable = service.durable();
    let start = (service, durable, since, Vec::new().into_iter());
    stream::unfold(start, |(service, mut durable, mut since, mut waiting)| async move {
        loop {
            if let Some(sent) = waiting.next() {
                return Some((Ok(sent), (service, durable, since, waiting)));
            }
            if !service.is_alive() {
                return None;
            }
            next_events(&service, &mut durable, since).await;
            // A caller who has fallen behind further than the ring reaches must start again.
            let told = service.events.since(since)?;
            since = told.revision;
            let sent = told.events.iter().map(|event| {
                let data = serde_json::to_string(event).unwrap_or_default();
                Sent::default().id(event.revision.to_string()).event(&event.kind).data(data)
            });
            waiting = sent.collect::<Vec<_>>().into_iter();
        }
    })
}

fn gone(since: Revision) -> Failure {
    let detail = format!("events after revision {since} are no longer kept");
    Failure::new(Code::REVISION_GONE, detail)
}

/// `30s`, `500ms` or `30`, which are seconds.
fn duration(text: &str) -> Result<Duration, Failure> {
    let (digits, unit_ms) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s').unwrap_or(text), 1_000),
    };
    let millis = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    let wrong = || {
        let detail = format!("wait is {text:?}, not a duration such as 30s or 500ms");
        Failure::new(Code::INVALID_QUERY, detail)
    };
    millis.map(Duration::from_millis).ok_or_else(wrong)
}
