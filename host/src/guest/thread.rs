//! Threads that plugins run on. Calls are synchronous and need a deep stack, so they never run on the async
//! workers.
//!
//! Promises: one call at a time, in order; a panic in a call is contained and reported, and the thread goes
//! on. Must never: block an async worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::Builder;

use thiserror::Error;
use tokio::sync::oneshot;

use super::engine::Engine;
use super::error::{CallError, Category};

/// Bytes of stack beside the guest's own: the engine ends the process when host code runs out of it.
const HOST_STACK_BYTES: usize = 7 << 20;
/// Calls that may wait.
const QUEUE_MAX: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that serves calls. It ends after the call that runs when this is dropped.
#[derive(Debug)]
pub struct GuestThread {
    jobs: mpsc::SyncSender<Job>,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ThreadError {
    /// The host's own code panicked.
    #[error("the host panicked while it called the plugin: {0}")]
    Panicked(String),
    /// More calls wait than a projection can have.
    #[error("more than {QUEUE_MAX} calls wait for this plugin thread")]
    Full,
    /// The thread is gone.
    #[error("the thread that calls the plugin is gone")]
    Gone,
}

impl From<ThreadError> for CallError {
    fn from(error: ThreadError) -> Self {
        Self::new(Category::Bug, error.to_string())
    }
}

impl GuestThread {
    /// Starts a thread for calls on this engine. Names longer than 15 bytes are cut by the system.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(name: &str, engine: &Engine) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::sync_channel::<Job>(QUEUE_MAX);
        Builder::new()
            .name(name.into())
            .stack_size(stack_bytes(engine))
            .spawn(move || {
                for job in queue {
                    job();
                }
            })?;
        Ok(Self { jobs })
    }

    /// Runs work on the thread and waits for it. When the future is dropped the work still ends, and its
    /// result is thrown away.
    ///
    /// # Errors
    /// When the work panics, or the thread is gone.
    pub async fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ThreadError> {
        self.start(work)?.await.map_err(|_| ThreadError::Gone)?
    }

    /// The same for callers without an async runtime, such as `plugin test`.
    ///
    /// # Errors
    /// When the work panics, or the thread is gone.
    pub fn call_blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ThreadError> {
        self.start(work)?
            .blocking_recv()
            .map_err(|_| ThreadError::Gone)?
    }

    fn start<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<R, ThreadError>>, ThreadError> {
        let (answer, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            let ended = catch_unwind(AssertUnwindSafe(work))
                .map_err(|panic| ThreadError::Panicked(panic_text(&*panic)));
            // Nobody waits any more when the caller was dropped.
            drop(answer.send(ended));
        });
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => ThreadError::Full,
            mpsc::TrySendError::Disconnected(_) => ThreadError::Gone,
        })?;
        Ok(result)
    }
}

/// Bytes of stack that a thread needs to call guests of this engine.
#[must_use]
pub fn stack_bytes(engine: &Engine) -> usize {
    engine.stack_max() + HOST_STACK_BYTES
}

/// The message of a panic.
#[must_use]
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::engine::EngineOptions;
    use super::*;

    #[test]
    fn a_panic_is_reported_and_the_thread_goes_on() {
        let engine = Engine::new(&EngineOptions::default()).expect("an engine");
        let thread = GuestThread::spawn("test", &engine).expect("a thread");
        let panicked = thread.call_blocking(|| -> u32 { panic!("boom {}", 1) });
        assert_eq!(panicked, Err(ThreadError::Panicked("boom 1".into())));
        assert_eq!(thread.call_blocking(|| 7), Ok(7));
        assert_eq!(
            CallError::from(ThreadError::Gone).class(),
            crate::error::Class::Fatal
        );
    }
}
