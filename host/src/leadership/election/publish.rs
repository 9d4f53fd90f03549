//! What others see of the election, and what the log says of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::steps::HolderDone;
use super::{Error, Phase, Service};
use crate::database::session::Purpose;
use crate::leadership::clock::Moment;
use crate::leadership::holder::{Holder, identity};
use crate::leadership::lease::Lease;
use crate::leadership::term::row_key;
use crate::leadership::{Leadership, Role, Term};

impl Service {
    /// Brings the lease and the role in line with the machine. Runs after every step, before anything waits.
    pub(super) fn publish(&mut self) {
        let phase = self.machine.phase();
        // With a leader for each projection it would be a session for each projection: there the interval has to do.
        let one_for_all = self.options.projection.is_none();
        self.handover
            .attend(one_for_all && self.stands_by && phase == Phase::Follower);
        if let Phase::Leading {
            term,
            trusted_until,
        } = phase
        {
            match &self.leading {
                Some((leading, keeper)) if leading.term == term => keeper.renew(trusted_until),
                _ => self.begin(term, trusted_until),
            }
        } else {
            // Dropping the keeper revokes the lease.
            self.leading = None;
        }
        let same = match (self.published, phase) {
            (Phase::Leading { term: before, .. }, Phase::Leading { term: now, .. }) => {
                before == now
            }
            (before, now) => before == now,
        };
        if !same {
            self.changed(phase);
        } else if matches!(phase, Phase::Follower) {
            self.still_following();
        }
    }

    fn begin(&mut self, term: Term, trusted_until: Moment) {
        let (Some(claimed), Some(facts)) = (&self.claimed, &self.facts) else {
            return;
        };
        let (lease, keeper) = Lease::new(Arc::clone(&self.clock), trusted_until);
        let leadership = Leadership {
            group: row_key(&self.options.group, self.options.projection.as_deref()),
            term,
            term_id: claimed.term_id,
            backend_pid: facts.backend_pid,
            since: claimed.since,
            lease,
        };
        self.shared.leaderships.fetch_add(1, Ordering::Relaxed);
        self.shared.term.store(term.0, Ordering::Relaxed);
        self.leading = Some((leadership, keeper));
    }

    fn changed(&mut self, phase: Phase) {
        let was = self.published;
        self.published = phase;
        let role = match phase {
            Phase::Follower => {
                self.share = None;
                if !matches!(was, Phase::Claiming) {
                    self.follow_anew(was);
                }
                self.say_why();
                Role::Follower(self.denied.clone())
            }
            Phase::Claiming => {
                self.said = None;
                tracing::info!("won the leader lock; claiming a term");
                Role::Claiming
            }
            Phase::Leading { .. } => {
                let Some((leadership, _)) = &self.leading else {
                    return;
                };
                tracing::info!(
                    term = leadership.term.0,
                    backend_pid = leadership.backend_pid,
                    "leading"
                );
                self.denied.refusal = None;
                Role::Leading(leadership.clone())
            }
            Phase::Draining { term, cause } => {
                tracing::info!(term = term.0, %cause, "leadership ends; draining");
                self.options.metrics.ended(cause.as_str());
                self.denied.reason = cause.to_string();
                Role::Draining { term, cause }
            }
            Phase::Stopped => {
                self.share = None;
                tracing::info!("left the election");
                Role::Stopped
            }
        };
        self.role.send_replace(role);
    }

    /// After a leadership the time without one counts from now.
    fn follow_anew(&mut self, was: Phase) {
        if let Phase::Draining { cause, .. } = was {
            self.denied.reason = cause.to_string();
        }
        self.denied.holder = None;
        self.denied.overdue = false;
        self.denied.since = self.clock.wall();
        self.denied_since = self.clock.now();
        self.inspected_at = None;
    }

    /// Logs why this replica stands by, whenever that changes.
    fn say_why(&mut self) {
        if self.said.as_ref() != Some(&self.denied.reason) {
            tracing::info!(reason = self.denied.reason, "standing by");
            self.said = Some(self.denied.reason.clone());
        }
    }

    fn still_following(&mut self) {
        self.say_why();
        let waited = self.clock.now().since(self.denied_since);
        if !self.denied.overdue && waited >= self.options.denied_limit {
            self.denied.overdue = true;
            tracing::warn!(
                waited = ?std::time::Duration::from_millis(waited.as_millis() as u64),
                since = %self.denied.since,
                reason = self.denied.reason,
                "still standing by, for longer than [leader] denied_limit"
            );
        }
        let denied = &self.denied;
        self.role.send_if_modified(|role| match role {
            Role::Follower(seen) if seen != denied => {
                *seen = denied.clone();
                true
            }
            _ => false,
        });
    }

    /// A follower learned who holds the lock.
    pub(super) fn denied_by(&mut self, holder: Option<Holder>) {
        self.denied.refusal = None;
        let Some(mut holder) = holder else {
            self.denied.holder = None;
            self.denied.reason = "the lock was held a moment ago".to_owned();
            return;
        };
        if let Some(known) = &self.denied.holder
            && known.backend_pid == holder.backend_pid
            && known.application_name == holder.application_name
        {
            holder.host.clone_from(&known.host);
            holder.since = known.since;
        }
        if holder.since.is_none() && self.holder_step.is_none() {
            self.look_up(holder.backend_pid);
        }
        self.warn_of_stranger(&holder);
        self.denied.reason = format!("the lock is held by {}", holder.describe());
        self.denied.holder = Some(holder);
    }

    /// The read model answered what it knows of the holder.
    pub(super) fn holder_found(&mut self, found: HolderDone) {
        match found {
            Ok(Some(leader)) => {
                if let Some(holder) = &mut self.denied.holder
                    && holder.backend_pid == leader.backend_pid
                {
                    holder.host = Some(leader.host);
                    holder.since = Some(leader.since);
                    self.denied.reason = format!("the lock is held by {}", holder.describe());
                }
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "could not look up the term of the holder"),
        }
    }

    pub(super) fn not_leading_because(&mut self, error: &Error) {
        let reason = error.to_string();
        if self.denied.reason != reason {
            match error {
                Error::Refused(refusal) => {
                    tracing::error!(code = %refusal.code, reason, "this replica may not lead");
                }
                _ => tracing::warn!(reason, "this replica cannot lead at the moment"),
            }
            self.said = Some(reason.clone());
            self.denied.reason = reason;
        }
        self.denied.holder = None;
        self.denied.refusal = match error {
            Error::Refused(refusal) => Some(refusal.clone()),
            _ => None,
        };
    }

    fn warn_of_stranger(&mut self, holder: &Holder) {
        let purpose = Purpose::Lock {
            server_lease: self.site.server_lease,
            local_lease: self.site.local_lease,
        };
        let own = identity(&self.site.database.application_name(&purpose));
        let own_group = own.map_or_else(|| self.options.group.clone(), |(group, _)| group);
        if holder.is_foreign_to(&own_group) && self.warned_of != Some(holder.backend_pid) {
            self.warned_of = Some(holder.backend_pid);
            tracing::warn!(
                code = "PH0405",
                holder = holder.describe(),
                key = %self.site.key,
                own_group,
                "the leader lock is held by another installation or program; give each its own [leader] key"
            );
        }
    }
}
