//! Many requests in one body, carried out in step with the writer's queue.

use super::{Answer, answer};
use crate::ask::Ask;
use crate::service::Service;
use axum::http::StatusCode;
use cluster::Name;
use engine::Request;
use futures_util::future::join_all;
use wire::{BulkAnswer, BulkFailure};

/// Requests in flight at once: as many as the writer commits together, so that a bulk load
/// leaves the queue to others.
const AT_ONCE: usize = 256;
const FAILURES_SHOWN: usize = 100;

/// Carries out each request with the id and tenant that it is about.
pub(super) async fn carry_out(
    service: &Service,
    ask: &Ask,
    requests: Vec<(Name, Name, Request)>,
) -> Answer {
    // One key cannot stand for many requests; repeating a line is safe without one.
    let mut ask = ask.clone();
    ask.idempotency_key = None;
    let mut done = BulkAnswer { accepted: 0, failed: 0, failures: Vec::new(), revision: 0 };
    let mut item = 0u64;
    let mut requests = requests.into_iter().peekable();
    while requests.peek().is_some() {
        let chunk = requests.by_ref().take(AT_ONCE).map(|(id, tenant, request)| {
            let (service, ask) = (service, &ask);
            async move { (id, service.carry_out(ask, &tenant, request).await) }
        });
        for (id, reply) in join_all(chunk).await {
            match reply {
                Ok(reply) => {
                    done.accepted = done.accepted.saturating_add(1);
                    done.revision = done.revision.max(reply.revision.0);
                }
                Err(failure) => {
                    done.failed = done.failed.saturating_add(1);
                    if done.failures.len() < FAILURES_SHOWN {
                        let code = failure.problem.code.to_string();
                        let message = failure.problem.detail;
                        done.failures.push(BulkFailure { item, id, code, message });
                    }
                }
            }
            item = item.saturating_add(1);
        }
    }
    answer(StatusCode::OK, &done)
}
