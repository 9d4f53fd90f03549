//! How many schedules each worker has in each status, kept by adding what each event changes.

use projector_sdk::{Rows, Uuid};

use crate::payload::Status;
use crate::tables::LOAD;

/// Where a schedule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Whose it is.
    pub worker: Uuid,
    /// Where it stands.
    pub status: Status,
}

/// A schedule counts here from now on and there no longer.
pub fn shift(merchant: Uuid, old: Option<Share>, new: Option<Share>, rows: &mut Rows<'_>) {
    if old == new {
        return;
    }
    for (share, schedules) in [(old, -1_i64), (new, 1)] {
        if let Some(share) = share {
            rows.table(LOAD)
                .key("merchant_id", merchant)
                .key("worker_uuid", share.worker)
                .key("status", share.status)
                .set("schedules", schedules)
                .add();
        }
    }
}
