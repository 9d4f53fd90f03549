//! One row for each change of an order: who, what, and the order before and after.

use projection_domain::Identity;
use projector_sdk::{Row, Rows, Timestamp, Uuid, Value};

use crate::tables::{CHANGE_LOGS, is_logged};

/// The table `order_change_logs`, or nothing where the configuration leaves it out.
pub struct ChangeLog {
    is_kept: bool,
}

/// What a log row says beside the order itself.
pub struct Entry {
    /// The kind of change.
    pub action: &'static str,
    /// Who made it.
    pub operator: Option<Uuid>,
    /// When, by the event's own word.
    pub changed_at: Timestamp,
    /// The order before it; none on creation.
    pub before: Option<String>,
}

impl ChangeLog {
    pub const fn new(is_kept: bool) -> Self {
        Self { is_kept }
    }

    pub const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The order as the log shows it; `None` when no log is kept.
    pub fn picture(&self, row: &Row) -> Option<String> {
        self.is_kept.then(|| row.to_json(is_logged))
    }

    /// Writes a row with the order as it stands after the change.
    pub fn write(&self, order: Identity, entry: Entry, after: Option<String>, rows: &mut Rows<'_>) {
        if !self.is_kept {
            return;
        }
        rows.row(&order.key(CHANGE_LOGS, "order_uuid"))
            .key("position", Value::Position)
            .set("action", entry.action)
            .set("operator_uuid", entry.operator)
            .set("before", entry.before)
            .set("after", after)
            .set("changed_at", entry.changed_at)
            .insert();
    }
}
