//! The rules: what a history must be like, whatever happened to the replicas.
//!
//! - **A** each stored event lies in exactly one committed batch of each projection;
//! - **B** checkpoints only rise, and each batch begins where the one before ended;
//! - **C** a projection's terms never fall, and only the replica that claimed a term writes under it;
//! - **D** the rows are what the events make of them (checked with the rows, not here);
//! - **E** each checkpoint stands where its last batch ended;
//! - **F** versions of a stream rise by one in the order in which they are applied;
//! - **G** the projections reach the head after everything has healed; **H** nothing is left behind after a shutdown
//!   (both checked by who runs them);
//! - **J** the guest that counts has counted each event up to its checkpoint once (**I** is said of a run that tested
//!   nothing).

use std::collections::{BTreeMap, BTreeSet};

use super::{Applied, COUNTS, History, Violation, miscounted};

/// More of one rule would only hide the others.
const PER_RULE_MAX: usize = 5;

impl History {
    /// Every rule that can be told from the history alone.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut by_projection: BTreeMap<&(String, i32), Vec<&Applied>> = BTreeMap::new();
        for applied in &self.applied {
            by_projection
                .entry(&applied.projection)
                .or_default()
                .push(applied);
        }
        for key in self.checkpoints.keys() {
            by_projection.entry(key).or_default();
        }
        for (projection, batches) in &by_projection {
            self.each_event_once(projection, batches, &mut found);
            chained(projection, batches, &mut found);
            self.checkpoint(projection, batches, &mut found);
        }
        self.terms(&mut found);
        self.versions(&mut found);
        self.counts(&mut found);
        few_of_each(found)
    }

    /// A
    fn each_event_once(
        &self,
        projection: &(String, i32),
        batches: &[&Applied],
        found: &mut Vec<Violation>,
    ) {
        let upto = self.checkpoints.get(projection).copied().unwrap_or(0);
        // How many batches begin or end behind a position.
        let mut steps: BTreeMap<i64, i64> = BTreeMap::new();
        // One that goes back takes nothing back: what it makes room for is applied again, and counts again.
        for batch in batches.iter().filter(|batch| batch.to > batch.from) {
            *steps.entry(batch.from).or_default() += 1;
            *steps.entry(batch.to).or_default() -= 1;
        }
        let mut steps = steps.into_iter().peekable();
        let mut covering = 0;
        for event in &self.events {
            while let Some((_, change)) = steps.next_if(|(at, _)| *at < event.position) {
                covering += change;
            }
            let expected = i64::from(event.position <= upto);
            if covering != expected {
                found.push(Violation {
                    rule: 'A',
                    what: format!(
                        "{}: the event at position {} was applied {covering} times instead of {expected}",
                        projection.0, event.position
                    ),
                });
            }
        }
    }

    /// C
    fn terms(&self, found: &mut Vec<Violation>) {
        let claimed: BTreeMap<&(i64, String), &str> = self
            .claims
            .iter()
            .map(|claim| (&claim.term, claim.replica.as_str()))
            .collect();
        let mut highest = 0;
        for claim in &self.claims {
            if claim.term.0 <= highest {
                found.push(Violation {
                    rule: 'C',
                    what: format!("term {} was claimed after term {highest}", claim.term.0),
                });
            }
            highest = highest.max(claim.term.0);
        }
        let mut highest: BTreeMap<&(String, i32), i64> = BTreeMap::new();
        for batch in &self.applied {
            let highest = highest.entry(&batch.projection).or_default();
            let mut broken = |what: String| found.push(Violation { rule: 'C', what });
            let place = format!("{} to {}", batch.projection.0, batch.to);
            if batch.term.0 < *highest {
                broken(format!(
                    "{place}: written under term {} after term {highest}",
                    batch.term.0
                ));
            }
            *highest = batch.term.0.max(*highest);
            match claimed.get(&batch.term) {
                None => broken(format!("{place}: nobody claimed term {}", batch.term.0)),
                Some(owner) if *owner != batch.replica => broken(format!(
                    "{place}: {} wrote under term {}, which {owner} had claimed",
                    batch.replica, batch.term.0
                )),
                Some(_) => {}
            }
        }
    }

    /// E
    fn checkpoint(
        &self,
        projection: &(String, i32),
        batches: &[&Applied],
        found: &mut Vec<Violation>,
    ) {
        let stands = self.checkpoints.get(projection).copied();
        let went = batches.iter().map(|batch| batch.to).max().unwrap_or(0);
        if stands != Some(went) {
            found.push(Violation {
                rule: 'E',
                what: format!(
                    "{}: the checkpoint stands at {stands:?}, its batches went to {went}",
                    projection.0
                ),
            });
        }
    }

    /// J
    fn counts(&self, found: &mut Vec<Violation>) {
        let Some(seen) = &self.seen else { return };
        let of_it = self
            .checkpoints
            .iter()
            .find(|((name, _), _)| name == COUNTS);
        let upto = of_it.map_or(0, |(_, position)| *position);
        let wrong = miscounted(seen, &self.events, upto);
        found.extend(wrong.into_iter().map(|what| Violation { rule: 'J', what }));
    }

    /// F
    fn versions(&self, found: &mut Vec<Violation>) {
        let mut last: BTreeMap<&str, i64> = BTreeMap::new();
        for event in &self.events {
            let before = last.insert(&event.stream, event.version).unwrap_or(0);
            if event.version != before + 1 {
                found.push(Violation {
                    rule: 'F',
                    what: format!(
                        "stream {}: version {} at position {} follows version {before}",
                        event.stream, event.version, event.position
                    ),
                });
            }
        }
    }
}

/// B
fn chained(projection: &(String, i32), batches: &[&Applied], found: &mut Vec<Violation>) {
    let mut stood = 0;
    let mut transactions = BTreeSet::new();
    for batch in batches {
        let mut broken = |what: String| {
            let what = format!("{}: {what}", projection.0);
            found.push(Violation { rule: 'B', what });
        };
        if batch.from != stood {
            broken(format!(
                "a batch begins at {}, the one before ended at {stood}",
                batch.from
            ));
        }
        if batch.to <= batch.from {
            broken(format!(
                "the checkpoint went from {} to {}",
                batch.from, batch.to
            ));
        }
        if !transactions.insert(&batch.txid) {
            broken(format!(
                "one transaction moved it twice, to {} at last",
                batch.to
            ));
        }
        stood = batch.to;
    }
}

fn few_of_each(found: Vec<Violation>) -> Vec<Violation> {
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    found
        .into_iter()
        .filter(|violation| {
            let count = counts.entry(violation.rule).or_default();
            *count += 1;
            *count <= PER_RULE_MAX
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Claim, Stored};

    fn applied(seq: i64, from: i64, to: i64, term: i64, replica: &str) -> Applied {
        Applied {
            seq,
            projection: ("order".into(), 1),
            from,
            to,
            term: (term, format!("id-{term}")),
            replica: replica.into(),
            txid: seq.to_string(),
        }
    }

    fn claim(term: i64, replica: &str) -> Claim {
        Claim {
            term: (term, format!("id-{term}")),
            replica: replica.into(),
            at: 0,
            released_at: None,
        }
    }

    /// Two leaders, one after the other; position 3 was rolled back.
    fn good() -> History {
        let event = |position, stream: &str, version| Stored {
            position,
            stream: stream.into(),
            version,
            id: format!("event-{position}"),
            kind: "Happened".into(),
        };
        History {
            applied: vec![
                applied(1, 0, 2, 1, "a"),
                applied(2, 2, 4, 2, "b"),
                applied(3, 4, 5, 2, "b"),
            ],
            claims: vec![claim(1, "a"), claim(2, "b")],
            events: vec![
                event(1, "x", 1),
                event(2, "y", 1),
                event(4, "x", 2),
                event(5, "x", 3),
            ],
            checkpoints: [(("order".to_owned(), 1), 5)].into(),
            seen: None,
        }
    }

    fn check(spoil: impl FnOnce(&mut History), rules: &str) {
        let mut history = good();
        spoil(&mut history);
        let found: BTreeSet<char> = history.violations().iter().map(|v| v.rule).collect();
        assert_eq!(found, rules.chars().collect(), "{:?}", history.violations());
    }

    #[test]
    fn a_good_history_is_right() {
        check(|_| {}, "");
        check(|history| *history = History::default(), "");
    }

    #[test]
    fn every_way_to_spoil_a_history_is_found() {
        // Applied twice; left out; left out at the end.
        check(|h| h.applied.insert(1, applied(9, 0, 2, 1, "a")), "AB");
        check(|h| drop(h.applied.remove(1)), "AB");
        check(|h| drop(h.applied.pop()), "AE");
        check(|h| h.applied[1].from = 4, "AB");
        check(|h| h.applied.insert(1, applied(9, 2, 2, 2, "b")), "B");
        // Out of order, or back.
        check(|h| h.applied.swap(0, 1), "BC");
        check(|h| h.applied.push(applied(4, 5, 1, 2, "b")), "B");
        let back_and_again = [applied(4, 5, 2, 2, "b"), applied(5, 2, 5, 2, "b")];
        check(|h| h.applied.extend(back_and_again), "AB");
        check(|h| h.applied[1].txid = "1".into(), "B");
        // Under a term that is over, that nobody claimed, or that somebody else claimed.
        check(|h| h.applied[2].term = (1, "id-1".into()), "C");
        check(|h| h.applied[2].term = (2, "other".into()), "C");
        check(|h| h.applied[2].replica = "a".into(), "C");
        check(|h| h.claims.swap(0, 1), "C");
        // Elsewhere than its batches, or not there at all.
        check(
            |h| *h.checkpoints.values_mut().next().expect("one") = 4,
            "AE",
        );
        check(|h| h.checkpoints.extend([(("other".into(), 1), 5)]), "AE");
        // A stream with a hole.
        check(|h| h.events[3].version = 4, "F");
    }

    /// The same with a guest that has counted up to position 4.
    fn counted(spoil: impl FnOnce(&mut BTreeMap<String, i64>), rules: &str) {
        let seen = ["event-1", "event-2", "event-4"].map(|id| (id.to_owned(), 1));
        let sums = ["Happened", "total"].map(|key| (key.to_owned(), 3));
        let mut seen: BTreeMap<String, i64> = seen.into_iter().chain(sums).collect();
        spoil(&mut seen);
        let of_it = |applied: Applied| Applied {
            projection: (COUNTS.into(), 1),
            ..applied
        };
        let spoil = |history: &mut History| {
            let batches = [applied(4, 0, 2, 2, "b"), applied(5, 2, 4, 2, "b")];
            history.applied.extend(batches.map(of_it));
            history.checkpoints.insert((COUNTS.into(), 1), 4);
            history.seen = Some(seen);
        };
        check(spoil, rules);
    }

    #[test]
    fn an_event_that_was_delivered_twice_or_not_at_all_is_found_by_counting() {
        counted(|_| {}, "");
        // A batch that held an event twice looks right to every other rule.
        counted(
            |seen| {
                for key in ["event-2", "Happened", "total"] {
                    *seen.get_mut(key).expect("it is there") += 1;
                }
            },
            "J",
        );
        counted(|seen| seen.extend([("total".into(), 4)]), "J");
        counted(|seen| seen.retain(|key, _| key != "event-4"), "J");
        counted(|seen| seen.extend([("event-5".into(), 1)]), "J");
    }
}
