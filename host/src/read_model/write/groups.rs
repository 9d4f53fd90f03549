//! Pairs sorted by what they need of the database.

use super::Error;
use super::update::Update;
use crate::read_model::check::Key;
use crate::read_model::fold::{Absent, Pair, Present, Row, Rows};

/// The rows of a phase, each in one group.
#[derive(Default)]
pub(super) struct Groups<'p> {
    /// Rows to delete.
    pub(super) deletes: Vec<&'p Key>,
    /// Updates of rows that were looked up and found.
    pub(super) there: Vec<Update<'p>>,
    /// Rows that were looked up and not found.
    pub(super) not_there: Vec<&'p Row>,
    /// Updates of rows that may be absent.
    pub(super) updates: Vec<Update<'p>>,
    /// Rows to insert unless they are there.
    pub(super) inserts: Vec<&'p Row>,
    /// Rows to put in place of what is there.
    pub(super) replaces: Vec<&'p Row>,
    /// Pairs of which one outcome cannot be applied: the row's presence decides.
    pub(super) doubtful: Vec<(&'p Key, &'p Pair)>,
}

impl<'p> Groups<'p> {
    /// Sorts; fails when a pair cannot be applied whatever is there.
    pub(super) fn sort(rows: &'p Rows) -> Result<Self, Error> {
        let mut groups = Self::default();
        for (key, pair) in &rows.pairs {
            match pair.known {
                Some(true) => groups.present(key, &pair.present)?,
                Some(false) => match &pair.absent {
                    Absent::Fault(fault) => return Err(Error::Fault(fault.clone())),
                    Absent::Row(row) => groups.not_there.push(row),
                    Absent::Nothing => {}
                },
                None => groups.unknown(key, pair)?,
            }
        }
        Ok(groups)
    }

    fn present(&mut self, key: &'p Key, present: &'p Present) -> Result<(), Error> {
        match present {
            Present::Fault(fault) => return Err(Error::Fault(fault.clone())),
            Present::Delete => self.deletes.push(key),
            Present::Replace(row) => self.replaces.push(row),
            Present::Update(ops) if ops.is_empty() => {}
            Present::Update(ops) => self.there.push((key, ops, None)),
        }
        Ok(())
    }

    fn unknown(&mut self, key: &'p Key, pair: &'p Pair) -> Result<(), Error> {
        match (&pair.absent, &pair.present) {
            (Absent::Fault(fault), Present::Fault(_)) => return Err(Error::Fault(fault.clone())),
            (Absent::Fault(_), _) | (_, Present::Fault(_)) => self.doubtful.push((key, pair)),
            (_, Present::Delete) => self.deletes.push(key),
            (_, Present::Replace(row)) => self.replaces.push(row),
            (Absent::Row(row), Present::Update(ops)) if ops.is_empty() => self.inserts.push(row),
            (Absent::Row(row), Present::Update(ops)) => self.updates.push((key, ops, Some(row))),
            (Absent::Nothing, Present::Update(ops)) => {
                if !ops.is_empty() {
                    self.updates.push((key, ops, None));
                }
            }
        }
        Ok(())
    }

    /// Puts the doubtful pairs, of which it is known now whether their rows are there, with the others.
    pub(super) fn judge(
        &mut self,
        doubtful: &[(&'p Key, &'p Pair)],
        present: &[bool],
    ) -> Result<(), Error> {
        for ((key, pair), present) in doubtful.iter().zip(present) {
            match (present, &pair.absent, &pair.present) {
                (true, _, Present::Fault(fault)) | (false, Absent::Fault(fault), _) => {
                    return Err(Error::Fault(fault.clone()));
                }
                (true, _, Present::Update(ops)) => {
                    if !ops.is_empty() {
                        self.updates.push((key, ops, None));
                    }
                }
                (true, _, Present::Replace(row)) => self.replaces.push(row),
                (true, _, Present::Delete) => self.deletes.push(key),
                (false, Absent::Row(row), _) => self.inserts.push(row),
                (false, Absent::Nothing, _) => {}
            }
        }
        Ok(())
    }
}
