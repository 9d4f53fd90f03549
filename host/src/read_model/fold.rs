//! The writes of a batch, folded to one operation for each row.
//!
//! Every write is a function of whether its row is absent or present when the batch begins. Folding keeps
//! both outcomes, so any sequence of writes to a key becomes one such pair, and one statement can apply the
//! pairs of all keys. The result equals applying the writes one after the other. Where the plugin looked a row up,
//! it is known which outcome counts: the other is not worked out, and the statement makes sure that nobody else has
//! changed that meanwhile.
//!
//! Three things close a *phase* of a table, and what comes later stands in the next: `remove-where`, which can
//! touch any row; a second `add` to a double precision column, since the addition of doubles is not
//! associative, or to a numeric one whose sum alone is too large to be sent; and a change that would overwrite an `add` whose overflow only the database can judge.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::check::{Cells, Change, Checked, Fault, Key, Shapes, TableShape};
use super::datum::{Amount, Datum, Sums};

/// A whole row, in the table's column order.
pub type Row = Vec<Datum>;

/// What a batch does to one row that is absent when the batch begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Absent {
    /// It stays absent.
    Nothing,
    /// This row is inserted.
    Row(Row),
    /// One of the writes cannot be applied.
    Fault(Box<Fault>),
}

/// What a batch does to one row that is present when the batch begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Present {
    /// These columns change; none at all means that nothing does.
    Update(Vec<(usize, Op)>),
    /// This row stands in its place.
    Replace(Row),
    /// It is deleted.
    Delete,
    /// One of the writes cannot be applied.
    Fault(Box<Fault>),
}

/// How a column of a present row changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Becomes this value.
    Set(Datum),
    /// These amounts are added, null counting as 0.
    Add(Sums),
}

/// Both outcomes for one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Whether the row is present when the batch begins, if that is known. The other outcome is then without meaning.
    pub known: Option<bool>,
    /// If the row is absent.
    pub absent: Absent,
    /// If the row is present.
    pub present: Present,
}

/// One step of a table.
#[derive(Debug)]
pub enum Phase {
    /// Each key once, in the order of first use.
    Rows(Rows),
    /// Deletes every row that one of these matches.
    RemoveWhere(Vec<Cells>),
}

/// The rows of a phase.
#[derive(Debug, Default)]
pub struct Rows {
    places: HashMap<Key, usize, RandomState>,
    /// Keys and their outcomes.
    pub pairs: Vec<(Key, Pair)>,
}

/// All writes of a batch, folded: for each table its phases.
#[derive(Debug)]
pub struct Folded {
    /// By index of the table.
    pub tables: Vec<Vec<Phase>>,
}

/// Which rows are known to be there, or not to be there, when the batch begins.
#[derive(Debug, Default)]
pub struct Known(Vec<HashMap<Key, bool, RandomState>>);

impl Known {
    /// Notes what a look-up found, with the batches before laid over it.
    pub fn insert(&mut self, table: usize, key: Key, present: bool) {
        if self.0.len() <= table {
            self.0.resize_with(table + 1, HashMap::default);
        }
        self.0[table].insert(key, present);
    }

    fn get(&self, table: usize, key: &Key) -> Option<bool> {
        self.0.get(table)?.get(key).copied()
    }
}

/// Folds checked writes, where it may be known of some rows whether they are there.
#[must_use]
pub fn fold(
    shapes: &Shapes,
    positions: &dyn Fn(usize) -> i64,
    writes: Vec<Checked>,
    known: &Known,
) -> Folded {
    let mut tables: Vec<Vec<Phase>> = shapes.tables().iter().map(|_| Vec::new()).collect();
    for write in writes {
        match write {
            Checked::RemoveWhere { table, cells, .. } => match tables[table].last_mut() {
                Some(Phase::RemoveWhere(all)) => all.push(cells),
                _ => tables[table].push(Phase::RemoveWhere(vec![cells])),
            },
            Checked::Row {
                table,
                event,
                key,
                change,
            } => {
                let at = At {
                    shape: &shapes.tables()[table],
                    event,
                    position: positions(event),
                };
                let phases = &mut tables[table];
                let closed = match phases.last_mut() {
                    Some(Phase::Rows(rows)) => rows.must_close(&key, &change),
                    _ => true,
                };
                if closed {
                    phases.push(Phase::Rows(Rows::default()));
                }
                // What is known is how the batch begins, so it says nothing of later phases.
                let is_first = phases.len() == 1;
                if let Some(Phase::Rows(rows)) = phases.last_mut() {
                    let known = |key: &Key| known.get(table, key).filter(|_| is_first);
                    rows.apply(&at, key, change, &known);
                }
            }
        }
    }
    Folded { tables }
}

impl Folded {
    /// What the batch makes of one row, given how the row stood when it began.
    ///
    /// # Errors
    /// The write that cannot be applied to such a row.
    pub fn overlay(
        &self,
        table: usize,
        key: &Key,
        mut row: Option<Row>,
    ) -> Result<Option<Row>, Box<Fault>> {
        for phase in &self.tables[table] {
            match phase {
                Phase::RemoveWhere(all) => {
                    let gone = row.as_ref().is_some_and(|row| {
                        all.iter()
                            .any(|cells| cells.iter().all(|(column, datum)| row[*column] == *datum))
                    });
                    if gone {
                        row = None;
                    }
                }
                Phase::Rows(rows) => {
                    if let Some(&place) = rows.places.get(key) {
                        row = rows.pairs[place].1.outcome(row)?;
                    }
                }
            }
        }
        Ok(row)
    }
}

impl Rows {
    /// Whether this change has to wait until what is pending for its row is applied.
    fn must_close(&self, key: &Key, change: &Change) -> bool {
        let Some(&place) = self.places.get(key) else {
            return false;
        };
        let Present::Update(ops) = &self.pairs[place].1.present else {
            return false;
        };
        let added = |column: usize| {
            ops.iter()
                .any(|(known, op)| *known == column && matches!(op, Op::Add(_)))
        };
        match change {
            Change::Insert(_) => false,
            Change::Add(amounts) => amounts.iter().any(|(column, amount)| {
                ops.iter().any(|(known, op)| {
                    known == column && matches!(op, Op::Add(sums) if sums.must_wait(amount))
                })
            }),
            Change::Merge(cells) | Change::Patch(cells) => {
                cells.iter().any(|(column, _)| added(*column))
            }
            Change::Put(_) | Change::Remove => ops.iter().any(|(column, _)| added(*column)),
        }
    }

    fn apply(
        &mut self,
        at: &At<'_>,
        key: Key,
        change: Change,
        known: &dyn Fn(&Key) -> Option<bool>,
    ) {
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None => {
                self.places.insert(key.clone(), self.pairs.len());
                let pair = Pair {
                    known: known(&key),
                    absent: Absent::Nothing,
                    present: Present::Update(Vec::new()),
                };
                self.pairs.push((key, pair));
                self.pairs.len() - 1
            }
        };
        let (key, pair) = &mut self.pairs[place];
        match pair.known {
            Some(true) => at.present(&mut pair.present, key, change),
            Some(false) => at.absent(&mut pair.absent, key, change),
            None => {
                at.absent(&mut pair.absent, key, change.clone());
                at.present(&mut pair.present, key, change);
            }
        }
    }
}

impl Pair {
    /// The row after the batch, given the row before it.
    ///
    /// # Errors
    /// The write that cannot be applied to such a row.
    pub fn outcome(&self, row: Option<Row>) -> Result<Option<Row>, Box<Fault>> {
        if self.known.is_some_and(|present| present != row.is_some()) {
            return Err(Box::new(Fault {
                event: 0,
                position: 0,
                table: String::new(),
                column: None,
                why: "something else than this projection changes its rows".to_owned(),
            }));
        }
        match row {
            None => match &self.absent {
                Absent::Nothing => Ok(None),
                Absent::Row(row) => Ok(Some(row.clone())),
                Absent::Fault(fault) => Err(fault.clone()),
            },
            Some(mut row) => match &self.present {
                Present::Update(ops) => {
                    for (column, op) in ops {
                        row[*column] = match op {
                            Op::Set(datum) => datum.clone(),
                            // An overflow here is found again, and blamed, when the batch before is written.
                            Op::Add(sums) => sums.add_to(&row[*column]).unwrap_or(Datum::Null),
                        };
                    }
                    Ok(Some(row))
                }
                Present::Replace(row) => Ok(Some(row.clone())),
                Present::Delete => Ok(None),
                Present::Fault(fault) => Err(fault.clone()),
            },
        }
    }
}

/// Where a write comes from, for new rows and for blame.
struct At<'a> {
    shape: &'a TableShape,
    event: usize,
    position: i64,
}

impl At<'_> {
    fn absent(&self, state: &mut Absent, key: &Key, change: Change) {
        let next = match (&mut *state, change) {
            (Absent::Fault(_), _)
            | (Absent::Nothing, Change::Patch(_))
            | (Absent::Row(_), Change::Insert(_)) => return,
            (_, Change::Remove) => Ok(None),
            (
                Absent::Nothing,
                Change::Insert(cells) | Change::Put(cells) | Change::Merge(cells),
            )
            | (Absent::Row(_), Change::Put(cells)) => self.new_row(key, cells).map(Some),
            (Absent::Nothing, Change::Add(amounts)) => self.new_row_of(key, &amounts).map(Some),
            (Absent::Row(row), Change::Merge(cells) | Change::Patch(cells)) => {
                set(row, cells);
                return;
            }
            (Absent::Row(row), Change::Add(amounts)) => match self.add(row, &amounts) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
        };
        *state = match next {
            Ok(None) => Absent::Nothing,
            Ok(Some(row)) => Absent::Row(row),
            Err(fault) => Absent::Fault(fault),
        };
    }

    fn present(&self, state: &mut Present, key: &Key, change: Change) {
        let next = match (&mut *state, change) {
            (Present::Fault(_), _)
            | (Present::Update(_) | Present::Replace(_), Change::Insert(_))
            | (Present::Delete, Change::Patch(_)) => return,
            (_, Change::Remove) => Ok(None),
            (_, Change::Put(cells))
            | (Present::Delete, Change::Insert(cells) | Change::Merge(cells)) => {
                self.new_row(key, cells).map(Some)
            }
            (Present::Delete, Change::Add(amounts)) => self.new_row_of(key, &amounts).map(Some),
            (Present::Update(ops), Change::Merge(cells) | Change::Patch(cells)) => {
                for (column, datum) in cells {
                    put_op(ops, column, Op::Set(datum));
                }
                return;
            }
            (Present::Replace(row), Change::Merge(cells) | Change::Patch(cells)) => {
                set(row, cells);
                return;
            }
            (Present::Update(ops), Change::Add(amounts)) => match self.add_ops(ops, amounts) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
            (Present::Replace(row), Change::Add(amounts)) => match self.add(row, &amounts) {
                Ok(()) => return,
                Err(fault) => Err(fault),
            },
        };
        *state = match next {
            Ok(None) => Present::Delete,
            Ok(Some(row)) => Present::Replace(row),
            Err(fault) => Present::Fault(fault),
        };
    }

    fn new_row(&self, key: &Key, cells: Cells) -> Result<Row, Box<Fault>> {
        let mut row = self.shape.defaults.clone();
        for (part, &column) in self.shape.table.primary_key.iter().enumerate() {
            row[column] = key[part].clone();
        }
        set(&mut row, cells);
        match self.shape.missing_in(&row) {
            None => Ok(row),
            Some(column) => Err(self.fault(
                column,
                "the row does not exist, and this column, which is not nullable, is not given",
            )),
        }
    }

    fn new_row_of(&self, key: &Key, amounts: &[(usize, Amount)]) -> Result<Row, Box<Fault>> {
        let mut cells = Vec::with_capacity(amounts.len());
        for (column, amount) in amounts {
            cells.push((
                *column,
                amount
                    .add_to(&Datum::Null)
                    .map_err(|why| self.fault(*column, &why))?,
            ));
        }
        self.new_row(key, cells)
    }

    fn add(&self, row: &mut Row, amounts: &[(usize, Amount)]) -> Result<(), Box<Fault>> {
        for (column, amount) in amounts {
            row[*column] = amount
                .add_to(&row[*column])
                .map_err(|why| self.fault(*column, &why))?;
        }
        Ok(())
    }

    fn add_ops(
        &self,
        ops: &mut Vec<(usize, Op)>,
        amounts: Vec<(usize, Amount)>,
    ) -> Result<(), Box<Fault>> {
        for (column, amount) in amounts {
            match ops.iter_mut().find(|(known, _)| *known == column) {
                None => put_op(ops, column, Op::Add(Sums::of(&amount))),
                Some((_, Op::Set(datum))) => {
                    *datum = amount
                        .add_to(datum)
                        .map_err(|why| self.fault(column, &why))?;
                }
                Some((_, Op::Add(sums))) => {
                    let folded = sums.then(&amount);
                    debug_assert!(
                        folded,
                        "a second double closes the phase before it comes here"
                    );
                }
            }
        }
        Ok(())
    }

    fn fault(&self, column: usize, why: &str) -> Box<Fault> {
        Box::new(Fault {
            event: self.event,
            position: self.position,
            table: self.shape.table.name.as_str().to_owned(),
            column: Some(self.shape.table.columns[column].name.as_str().to_owned()),
            why: why.to_owned(),
        })
    }
}

fn set(row: &mut Row, cells: Cells) {
    for (column, datum) in cells {
        row[column] = datum;
    }
}

/// Keeps the ops in column order, so that rows that change the same columns share a statement.
fn put_op(ops: &mut Vec<(usize, Op)>, column: usize, op: Op) {
    match ops.binary_search_by_key(&column, |(known, _)| *known) {
        Ok(at) => ops[at].1 = op,
        Err(at) => ops.insert(at, (column, op)),
    }
}

#[cfg(test)]
mod tests;
