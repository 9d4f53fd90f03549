//! The proof that a gap stays empty. No I/O.
//!
//! An INSERT locks the table before it draws its number and holds the lock to the end of its transaction. So
//! when position q is visible, every lower number was drawn by a transaction that has ended or is in the set
//! of lock holders seen after q. When the last of those has ended, whatever was missing below q either shows
//! in a new snapshot or never will. New writers do not matter. (The settled-gap method; see
//! `docs/gap-safe-reading.md`.)

use std::collections::HashSet;

use super::event::Position;

/// A lock holder as the server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    /// Unique while the server runs.
    pub(super) virtual_transaction: String,
    /// None for a prepared transaction.
    pub(super) pid: Option<i32>,
}

/// A running proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    /// Becomes settled when the last holder is gone.
    upto: Position,
    waiting_for: HashSet<String>,
    prepared: bool,
}

impl Proof {
    /// Begins with the holders that were seen *after* `upto` was visible.
    pub(super) fn begin(upto: Position, holders: &[Holder]) -> Self {
        Self {
            upto,
            waiting_for: sessions(holders).collect(),
            prepared: holders.iter().any(|holder| holder.pid.is_none()),
        }
    }

    /// One more look at the holders.
    ///
    /// A transaction that was seen with a session may be prepared meanwhile, and then has no pid and, on some
    /// versions, another name. So every prepared one counts until none is left.
    pub(super) fn observe(&mut self, holders: &[Holder]) {
        let now: HashSet<String> = sessions(holders).collect();
        self.waiting_for.retain(|holder| now.contains(holder));
        self.prepared = holders.iter().any(|holder| holder.pid.is_none());
    }

    /// The position that is settled now, if the proof is complete.
    pub(super) fn settled(&self) -> Option<Position> {
        (self.waiting_for.is_empty() && !self.prepared).then_some(self.upto)
    }

    /// Whether this holder is waited for.
    pub(super) fn waits_for(&self, holder: &Holder) -> bool {
        holder.pid.is_none() || self.waiting_for.contains(&holder.virtual_transaction)
    }
}

fn sessions(holders: &[Holder]) -> impl Iterator<Item = String> + '_ {
    holders
        .iter()
        .filter(|holder| holder.pid.is_some())
        .map(|holder| holder.virtual_transaction.clone())
}

/// How many of these positions may be delivered after `mark`: each is the next one, or at or below `floor`,
/// which is settled.
pub(super) fn deliverable(
    mark: Position,
    floor: Position,
    positions: impl Iterator<Item = Position>,
) -> usize {
    let mut last = mark;
    positions
        .take_while(|position| {
            let next = position.0 == last.0 + 1 || *position <= floor;
            last = *position;
            next
        })
        .count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session(name: &str) -> Holder {
        Holder {
            virtual_transaction: name.to_owned(),
            pid: Some(1),
        }
    }

    fn prepared(name: &str) -> Holder {
        Holder {
            virtual_transaction: name.to_owned(),
            pid: None,
        }
    }

    #[test]
    fn only_the_holders_of_the_beginning_are_waited_for() {
        let mut proof = Proof::begin(Position(9), &[session("3/1"), session("4/1")]);
        proof.observe(&[session("4/1"), session("5/1")]);
        assert_eq!(proof.settled(), None);
        proof.observe(&[session("5/1"), session("3/2")]);
        assert_eq!(
            proof.settled(),
            Some(Position(9)),
            "a session's next transaction is a new writer"
        );
    }

    #[test]
    fn a_writer_that_is_prepared_under_another_name_is_not_taken_for_gone() {
        let mut proof = Proof::begin(Position(9), &[session("3/1")]);
        proof.observe(&[prepared("-1/748")]);
        assert_eq!(proof.settled(), None);
        proof.observe(&[]);
        assert_eq!(proof.settled(), Some(Position(9)));
    }

    fn check(mark: i64, floor: i64, positions: &[i64], expected: usize) {
        let positions = positions.iter().map(|&position| Position(position));
        assert_eq!(
            deliverable(Position(mark), Position(floor), positions),
            expected
        );
    }

    #[test]
    fn delivery_ends_before_the_first_gap_above_the_floor() {
        check(0, 0, &[1, 2, 3], 3);
        check(0, 0, &[2, 3], 0);
        check(0, 0, &[1, 3], 1);
        check(0, 3, &[1, 3], 2);
        check(0, 3, &[2, 3, 4, 6], 3);
        check(5, 3, &[7], 0);
        check(5, 7, &[7, 8, 10], 2);
    }

    proptest! {
        /// Writers draw numbers in order and end in any order; a proof that says "settled" is never wrong.
        #[test]
        fn nothing_appears_below_a_settled_position(
            steps in proptest::collection::vec((0_usize..6, proptest::bool::ANY), 1..200),
        ) {
            // (number, committed) of ended transactions; open ones by slot, each with the numbers it drew.
            let mut visible: HashSet<i64> = HashSet::new();
            let mut open: Vec<Option<(String, Vec<i64>)>> = vec![None; 6];
            let (mut next, mut names) = (1_i64, 0_u32);
            let (mut mark, mut floor) = (Position(0), Position(0));
            let mut delivered: Vec<i64> = Vec::new();
            let mut proof: Option<Proof> = None;
            for (slot, commit) in steps {
                match open[slot].take() {
                    None => {
                        names += 1;
                        open[slot] = Some((format!("{slot}/{names}"), vec![next]));
                        next += 1;
                    }
                    Some((name, mut numbers)) if !commit && numbers.len() < 3 => {
                        numbers.push(next);
                        next += 1;
                        open[slot] = Some((name, numbers));
                    }
                    Some((_, numbers)) => if commit { visible.extend(numbers) },
                }
                let holders: Vec<Holder> = open.iter().flatten().map(|(name, _)| session(name)).collect();
                let mut rows: Vec<i64> = visible.iter().copied().filter(|number| *number > mark.0).collect();
                rows.sort_unstable();
                let count = deliverable(mark, floor, rows.iter().map(|&number| Position(number)));
                delivered.extend(&rows[..count]);
                if let Some(&last) = rows[..count].last() { mark = mark.max(Position(last)) }
                mark = mark.max(floor);
                if count < rows.len() {
                    let running = proof.get_or_insert_with(|| Proof::begin(Position(rows[rows.len() - 1]), &holders));
                    running.observe(&holders);
                    if let Some(settled) = running.settled() {
                        floor = settled;
                        proof = None;
                    }
                }
            }
            prop_assert!(delivered.is_sorted(), "in order: {:?}", delivered);
            let missed: Vec<i64> = visible.iter().copied().filter(|number| *number <= mark.0 && !delivered.contains(number)).collect();
            prop_assert!(missed.is_empty(), "lost: {:?}", missed);
        }
    }
}
