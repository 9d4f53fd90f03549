//! The lock while the command runs: proven every second, beside the command.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::advisory_lock::Error;
use crate::advisory_lock::session::SessionLock;
use crate::advisory_lock::slots::Slot;

/// How often the lock is proven.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A lock or a slot.
#[derive(Debug)]
pub(super) enum Held {
    Lock(SessionLock),
    Slot(Slot),
}

impl Held {
    pub(super) const fn lock(&mut self) -> &mut SessionLock {
        match self {
            Self::Lock(lock) => lock,
            Self::Slot(slot) => slot.lock(),
        }
    }

    pub(super) async fn release(self) -> Result<(), Error> {
        match self {
            Self::Lock(lock) => lock.release().await,
            Self::Slot(slot) => slot.release().await,
        }
    }

    /// Proves the lock in a task of its own, so that a slow answer does not keep the end of the command waiting.
    pub(super) fn keep(self) -> Keeping {
        let (stop, stopped) = oneshot::channel();
        Keeping {
            stop: Some(stop),
            task: tokio::spawn(keep(self, stopped)),
        }
    }
}

/// The task that proves the lock.
pub(super) struct Keeping {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<Held, Error>>,
}

impl Keeping {
    /// Resolves only when the lock is lost.
    pub(super) async fn lost(&mut self) -> Error {
        match (&mut self.task).await {
            Ok(Err(lost)) => lost,
            // Without a word to stop the task ends only by a loss or a panic.
            Ok(Ok(_)) => unknown("its watch ended".to_owned()),
            Err(error) => unknown(error.to_string()),
        }
    }

    /// Ends the watch and takes the lock back.
    pub(super) async fn stop(mut self) -> Result<Held, Error> {
        if let Some(stop) = self.stop.take() {
            // A task that is gone has a result, too.
            let _gone = stop.send(());
        }
        match self.task.await {
            Ok(held) => held,
            Err(error) => Err(unknown(error.to_string())),
        }
    }
}

async fn keep(mut held: Held, mut stopped: oneshot::Receiver<()>) -> Result<Held, Error> {
    loop {
        tokio::select! {
            _ = &mut stopped => return Ok(held),
            () = tokio::time::sleep(CHECK_INTERVAL) => held.lock().check().await?,
        }
    }
}

fn unknown(reason: String) -> Error {
    Error::Lost {
        key: "of this run".to_owned(),
        reason,
    }
}
