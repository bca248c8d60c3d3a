//! The accept loop: HTTP/1.1 over TCP with a limit on everything a stranger can hold open.
//!
//! Own, because the ready-made ones keep a half-sent request open for as long as its sender likes.
//! Knows nothing of routes; what a connection does with its requests is the router's.

use crate::gate::{Gate, Pass};
use crate::opening::App;
use crate::unread::Unread;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What a connection may take.
#[derive(Clone, Debug)]
pub struct AcceptLimits {
    /// From the first wait for a request to the end of its headers. Also how long a connection
    /// may be idle between two requests.
    pub header_timeout: Duration,
    pub headers: usize,
    pub header_bytes: usize,
    /// How long an answer may wait for its caller to take any of it.
    pub unread_timeout: Duration,
    pub connections: usize,
    pub connections_per_address: usize,
    /// How long requests in flight may take to finish when the service stops.
    pub grace: Duration,
}

impl Default for AcceptLimits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(5),
            headers: 64,
            header_bytes: 16 * 1024,
            unread_timeout: Duration::from_secs(10),
            connections: 2_048,
            connections_per_address: 64,
            grace: Duration::from_secs(10),
        }
    }
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Connections that were cut off because their requests did not finish within the grace.
    pub cut_off: usize,
}

/// Serves until `stop` is done, then accepts nothing more, finishes what is in flight and returns.
pub async fn serve(
    listener: TcpListener,
    app: impl Into<App>,
    limits: AcceptLimits,
    stop: impl Future<Output = ()>,
) -> Ended {
    let app = app.into();
    let gate = Gate::new(limits.connections, limits.connections_per_address);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(limits.headers)
        .max_header_size(limits.header_bytes)
        .keep_alive(true);
    let builder = Arc::new(builder);
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
            // Finished tasks are collected as they end, or the set would grow for ever.
            Some(_) = connections.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        match gate.enter(peer.ip()) {
            Some(pass) => {
                // Answers are small and latency counts; failing to say so costs only latency.
                let _ = stream.set_nodelay(true);
                let (builder, app, stopped) = (Arc::clone(&builder), app.clone(), stopped.clone());
                let stream = Unread::new(stream, limits.unread_timeout);
                connections.spawn(converse(stream, pass, builder, app, stopped));
            }
            None => turn_away(&stream),
        }
    }
    drop(listener);
    // Fails only when there is no connection left to tell.
    let _ = stopping.send(true);
    let all_done = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.grace, all_done).await.is_ok() {
        return Ended { cut_off: 0 };
    }
    let cut_off = connections.len();
    connections.shutdown().await;
    Ended { cut_off }
}

/// One connection, to its end or to the end of its last request when the service stops.
async fn converse(
    stream: Unread<TcpStream>,
    // Dropped last: a place is free when what was done for its caller has ended.
    _pass: Pass,
    builder: Arc<http1::Builder>,
    app: App,
    mut stopped: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(app);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Broken connections and late headers are the caller's doing.
        tracing::debug!(%error, "connection ended early");
    }
}

async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    // An error means that the loop itself is gone, which is reason enough.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Tells a caller that there is no room. What does not fit into the socket at once is not worth
/// waiting for.
fn turn_away(stream: &TcpStream) {
    let body = r#"{"type":"urn:novaplace:problem:overloaded","title":"The service is busy","status":503,"code":"overloaded","detail":"too many connections","hint":"close idle connections, then repeat"}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
         Content-Length: {}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.try_write(answer.as_bytes());
}

/// After a failed accept: a connection that broke is nothing, but out of file descriptors the
/// loop would spin.
async fn rest_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
