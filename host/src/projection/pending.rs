//! Batches that are folded but not yet committed, so that the next batch's look-ups can see them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::event_store::event::Position;
use crate::read_model::fold::Folded;

/// One such batch.
#[derive(Debug, Clone)]
pub struct PendingBatch {
    /// Where its commit takes the checkpoint.
    pub to: Position,
    /// Its writes.
    pub folded: Arc<Folded>,
}

/// The batches between guest and commit, in order.
#[derive(Debug, Clone, Default)]
pub struct Pending(Arc<Mutex<VecDeque<PendingBatch>>>);

impl Pending {
    /// One more.
    pub fn push(&self, batch: PendingBatch) {
        self.lock().push_back(batch);
    }

    /// Forgets what is committed up to here.
    pub fn committed(&self, upto: Position) {
        let mut batches = self.lock();
        while batches.front().is_some_and(|batch| batch.to <= upto) {
            batches.pop_front();
        }
    }

    /// All of them. A look-up takes this *before* its statement: what is committed meanwhile is then known
    /// both ways, and the position that the statement saw decides.
    #[must_use]
    pub fn all(&self) -> Vec<PendingBatch> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<PendingBatch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
