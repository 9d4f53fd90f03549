//! The proof that a gap stays empty. No I/O.
//!
//! An INSERT locks the table before it draws its number and holds the lock to the end of its transaction. So
//! when position q is visible, every lower number was drawn by a transaction that has ended or is in the set
//! of lock holders seen after q. When the last of those has ended, whatever was missing below q either shows
//! in a new snapshot or never will. New writers do not matter. (The settled-gap method; see
//! `docs/gap-safe-reading.md`.)

use std::collections::{HashMap, HashSet};

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
    /// Sessions that are waited for.
    sessions: HashSet<String>,
    /// Prepared transactions that are waited for.
    prepared: HashSet<String>,
    /// Other prepared transactions, with the look that they were first seen in.
    strangers: HashMap<String, u64>,
    looks: u64,
}

impl Proof {
    /// Begins with the holders that were seen *after* `upto` was visible.
    pub(super) fn begin(upto: Position, holders: &[Holder]) -> Self {
        Self {
            upto,
            sessions: names(holders, true).collect(),
            prepared: names(holders, false).collect(),
            strangers: HashMap::new(),
            looks: 0,
        }
    }

    /// One more look at the holders.
    ///
    /// A transaction that was seen with a session may be prepared meanwhile; then it has no pid and, on some
    /// versions, another name. So when a session goes, every prepared transaction that came up in this look is
    /// waited for, and in the look before, since one look may show a transaction in both shapes. A prepared
    /// one that came up while all sessions stayed is a new writer's, which does not matter.
    pub(super) fn observe(&mut self, holders: &[Holder]) {
        let sessions: HashSet<String> = names(holders, true).collect();
        let prepared: HashSet<String> = names(holders, false).collect();
        let before = self.sessions.len();
        self.looks += 1;
        self.sessions.retain(|holder| sessions.contains(holder));
        self.prepared.retain(|holder| prepared.contains(holder));
        self.strangers.retain(|holder, _| prepared.contains(holder));
        for holder in prepared {
            if !self.prepared.contains(&holder) {
                self.strangers.entry(holder).or_insert(self.looks);
            }
        }
        if self.sessions.len() < before {
            let recent = self.looks - 1;
            let ours = self.strangers.extract_if(|_, first| *first >= recent);
            self.prepared.extend(ours.map(|(holder, _)| holder));
        }
    }

    /// What is to be proven.
    pub(super) fn upto(&self) -> Position {
        self.upto
    }

    /// The position that is settled now, if the proof is complete.
    pub(super) fn settled(&self) -> Option<Position> {
        (self.sessions.is_empty() && self.prepared.is_empty()).then_some(self.upto)
    }

    /// Whether this holder is waited for.
    pub(super) fn waits_for(&self, holder: &Holder) -> bool {
        let waiting_for = match holder.pid {
            Some(_) => &self.sessions,
            None => &self.prepared,
        };
        waiting_for.contains(&holder.virtual_transaction)
    }
}

fn names(holders: &[Holder], with_session: bool) -> impl Iterator<Item = String> + '_ {
    holders
        .iter()
        .filter(move |holder| holder.pid.is_some() == with_session)
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

/// How many positions between `mark` and the last of these have no event.
pub(super) fn missing(mark: Position, delivered: impl Iterator<Item = Position>) -> u64 {
    let mut last = mark;
    let mut missing = 0;
    for position in delivered {
        missing += (position.0 - last.0 - 1).unsigned_abs();
        last = position;
    }
    missing
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

    #[test]
    fn a_transaction_that_shows_in_both_shapes_while_it_is_prepared_is_waited_for() {
        let mut proof = Proof::begin(Position(9), &[session("3/1")]);
        proof.observe(&[session("3/1"), prepared("-1/748")]);
        proof.observe(&[prepared("-1/748")]);
        assert_eq!(proof.settled(), None);
        assert!(proof.waits_for(&prepared("-1/748")));
    }

    #[test]
    fn prepared_transactions_that_come_and_go_do_not_hold_a_proof_open() {
        let mut proof = Proof::begin(Position(9), &[session("3/1"), prepared("-1/700")]);
        proof.observe(&[session("3/1"), prepared("-1/700"), prepared("-1/701")]);
        proof.observe(&[session("3/1"), prepared("-1/701"), prepared("-1/702")]);
        proof.observe(&[prepared("-1/701"), prepared("-1/702"), prepared("-1/703")]);
        assert!(
            !proof.waits_for(&prepared("-1/701")),
            "it came up long before"
        );
        assert!(proof.waits_for(&prepared("-1/702")) && proof.waits_for(&prepared("-1/703")));
        proof.observe(&[prepared("-1/701"), prepared("-1/704")]);
        assert_eq!(proof.settled(), Some(Position(9)));
    }

    #[test]
    fn what_is_missing_is_counted() {
        let positions = [3, 4, 7].map(Position);
        assert_eq!(missing(Position(0), positions.into_iter()), 4);
        assert_eq!(missing(Position(2), positions.into_iter()), 2);
        assert_eq!(missing(Position(7), std::iter::empty()), 0);
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

    /// An open transaction: the numbers it drew, and how the server shows it.
    struct Open {
        numbers: Vec<i64>,
        shown: Vec<Holder>,
    }

    /// A reader against a made-up server.
    #[derive(Default)]
    struct Reader {
        mark: Position,
        floor: Position,
        proof: Option<Proof>,
        delivered: Vec<i64>,
    }

    impl Reader {
        fn look(&mut self, visible: &HashSet<i64>, open: &[Option<Open>]) {
            let holders: Vec<Holder> = open
                .iter()
                .flatten()
                .flat_map(|o| o.shown.clone())
                .collect();
            if let Some(proof) = &mut self.proof {
                proof.observe(&holders);
                if let Some(settled) = proof.settled() {
                    self.floor = settled;
                    self.proof = None;
                }
            }
            let mut rows: Vec<i64> = visible
                .iter()
                .copied()
                .filter(|n| *n > self.mark.0)
                .collect();
            rows.sort_unstable();
            let count = deliverable(self.mark, self.floor, rows.iter().copied().map(Position));
            self.delivered.extend(&rows[..count]);
            let last = rows[..count]
                .last()
                .map_or(self.mark, |last| Position(*last));
            self.mark = last.max(self.mark).max(self.floor);
            if count < rows.len() && self.proof.is_none() {
                self.proof = Some(Proof::begin(Position(rows[rows.len() - 1]), &holders));
            }
        }
    }

    proptest! {
        /// Writers draw numbers in order, end or are prepared in any order; nothing ever appears below the mark.
        #[test]
        fn nothing_appears_at_or_below_what_was_settled(
            steps in proptest::collection::vec((0_usize..6, 0_u8..6, proptest::bool::ANY), 1..300),
        ) {
            let mut visible: HashSet<i64> = HashSet::new();
            let mut open: Vec<Option<Open>> = (0..6).map(|_| None).collect();
            let (mut next, mut names) = (1_i64, 0_u32);
            let mut reader = Reader::default();
            for (slot, action, look) in steps {
                names += 1;
                match (open[slot].take(), action) {
                    (None, _) => {
                        open[slot] = Some(Open { numbers: vec![next], shown: vec![session(&format!("{slot}/{names}"))] });
                        next += 1;
                    }
                    (Some(mut writer), 0 | 1) if writer.shown[0].pid.is_some() => {
                        writer.numbers.push(next);
                        next += 1;
                        open[slot] = Some(writer);
                    }
                    // Prepared: under another name, and one look may see both shapes.
                    (Some(mut writer), 2 | 3) if writer.shown[0].pid.is_some() => {
                        writer.shown.push(prepared(&format!("-1/{names}")));
                        open[slot] = Some(writer);
                        if action == 2 {
                            reader.look(&visible, &open);
                        }
                        open[slot].iter_mut().for_each(|writer| drop(writer.shown.remove(0)));
                    }
                    (Some(writer), 4 | 2) => visible.extend(writer.numbers),
                    (Some(_), _) => {}
                }
                if look {
                    reader.look(&visible, &open);
                }
            }
            prop_assert!(reader.delivered.is_sorted_by(|a, b| a < b), "in order: {:?}", reader.delivered);
            let delivered: HashSet<i64> = reader.delivered.iter().copied().collect();
            let missed: Vec<i64> =
                visible.iter().copied().filter(|n| *n <= reader.mark.0 && !delivered.contains(n)).collect();
            prop_assert!(missed.is_empty(), "lost: {:?}", missed);
            // When all have ended, everything is delivered: nothing is waited for in vain.
            open.fill_with(|| None);
            for _ in 0..3 {
                reader.look(&visible, &open);
            }
            prop_assert_eq!(reader.delivered.len(), visible.len());
        }
    }
}
