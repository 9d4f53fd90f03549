//! The OS thread on which a projection's guest runs, never a worker of the runtime.
//!
//! A guest may use a megabyte of stack and burn CPU for seconds. On a thread of its own it can neither
//! overflow a small stack nor starve the heartbeat.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use thiserror::Error;
use tokio::sync::oneshot;

/// Stack of a guest thread; far above the engine's own limit, since host functions run on it too.
const STACK_BYTES: usize = 8 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// The thread could not do the work.
#[derive(Debug, Error)]
pub enum Error {
    /// No thread.
    #[error("cannot start a thread for the plugin: {0}")]
    Spawn(#[from] std::io::Error),
    /// The work panicked: a bug of the host.
    #[error("the thread of the plugin panicked: {0}")]
    Panicked(String),
}

/// A thread that runs one job after the other. It ends when this value is dropped and its jobs are done.
#[derive(Debug)]
pub struct GuestThread {
    jobs: mpsc::Sender<Job>,
}

impl GuestThread {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn spawn(name: &str) -> Result<Self, Error> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name(format!("guest-{name}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                while let Ok(job) = inbox.recv() {
                    job();
                }
            })?;
        Ok(Self { jobs })
    }

    /// Runs a job on the thread and waits for its result.
    ///
    /// # Errors
    /// When the job panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(job))
                .map_err(|panic| Error::Panicked(panic_text(&*panic)));
            // Nobody waits any more when the projection was told to end.
            let _ = done.send(outcome);
        });
        if self.jobs.send(job).is_err() {
            return Err(Error::Panicked("the thread has ended".to_owned()));
        }
        result
            .await
            .unwrap_or_else(|_| Err(Error::Panicked("the job was dropped".to_owned())))
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_its_job_and_the_thread_goes_on() {
        let thread = GuestThread::spawn("test").expect("a thread");
        let broken = thread.run(|| -> i32 { panic!("on purpose") }).await;
        assert!(matches!(broken, Err(Error::Panicked(text)) if text == "on purpose"));
        assert_eq!(thread.run(|| 7).await.expect("still there"), 7);
    }
}
