//! The application before and after the state is recovered.
//!
//! The port is open from the start, so that those who watch the process can tell "recovering"
//! from "gone". Until the router is there, only the questions about life are answered.

use crate::envelope::envelope;
use crate::failure::Failure;
use crate::routes::HealthView;
use axum::Json;
use axum::Router;
use axum::http::Request;
use axum::middleware::from_fn;
use axum::routing::future::RouteFuture;
use axum::routing::get;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tower::Service;
use wire::Code;

/// What the accept loop serves: first the answers of a service that is starting, then the router.
#[derive(Clone, Debug)]
pub struct App {
    starting: Router,
    router: Arc<OnceLock<Router>>,
}

impl App {
    /// An application that is starting.
    pub fn starting() -> Self {
        let alive = || async { Json(HealthView { status: "starting", revision: 0 }) };
        let not_yet = || async { Failure::new(Code::NOT_READY, "the state is being recovered") };
        let starting = Router::new()
            .route("/health", get(alive))
            .route("/healthz", get(alive))
            .fallback(not_yet)
            .layer(from_fn(envelope));
        Self { starting, router: Arc::new(OnceLock::new()) }
    }

    /// From now on the router answers, also on connections that are open already.
    pub fn open(&self, router: Router) {
        // Opened once by whoever started it; a second router would have nothing to add.
        let _ = self.router.set(router);
    }
}

impl From<Router> for App {
    fn from(router: Router) -> Self {
        let app = Self::starting();
        app.open(router);
        app
    }
}

impl Service<Request<Incoming>> for App {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.router.get().unwrap_or(&self.starting).clone().call(request)
    }
}
