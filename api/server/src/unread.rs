//! A stream that gives up on a reader who does not read.
//!
//! The HTTP implementation has a timeout for callers who do not send, and none for callers who
//! do not take their answer: such a connection would keep its buffers and its place for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Ends with an error when nothing of what is to be written has left for `patience`.
#[derive(Debug)]
pub(crate) struct Unread<S> {
    stream: S,
    patience: Duration,
    /// Set while a write waits. Kept afterwards, because timers are dear and answers are many.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl<S> Unread<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, timer: None, waiting: false }
    }

    /// `done`, unless it waits and has waited for too long.
    fn hurry<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waiting = false;
            return done;
        }
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !self.waiting {
            self.waiting = true;
            let now = Instant::now();
            timer.as_mut().reset(now.checked_add(patience).unwrap_or(now));
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the answer is not being read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.hurry(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.hurry(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_reader_who_stops_reading_is_given_up_on() {
        let (near, far) = duplex(8);
        let mut stream = Unread::new(near, PATIENCE);
        let started = Instant::now();
        let failed = stream.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), PATIENCE);
        drop(far);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        let (near, mut far) = duplex(8);
        let mut stream = Unread::new(near, PATIENCE);
        let reader = tokio::spawn(async move {
            let mut piece = [0; 8];
            for _ in 0..8 {
                sleep(PATIENCE - Duration::from_secs(1)).await;
                far.read_exact(&mut piece).await.expect("a piece");
            }
        });
        stream.write_all(&[0; 64]).await.expect("each piece leaves in time");
        reader.await.expect("no panic");
    }
}
