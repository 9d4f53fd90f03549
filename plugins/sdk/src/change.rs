//! What each kind of write does to one row: the contract's meaning, the same as the host's.

use std::rc::Rc;

use crate::canonical::canonical;
use crate::contract::{Cell, Change, Text};
use crate::description::ColumnType;
use crate::row::Row;
use crate::schema::TableSchema;
use crate::types::Decimal;
use crate::value::Value;

/// Applies a write to the row that its key names, present or absent; a `remove-where` to any row of its table.
/// `position` is that of the write's event.
pub(crate) fn apply(
    table: &Rc<TableSchema>,
    key: &[Cell],
    change: &Change,
    position: u64,
    row: &mut Option<Row>,
) {
    match change {
        Change::Insert(cells) => {
            if row.is_none() {
                *row = Some(with(Row::fresh(table, key, position), cells, position));
            }
        }
        Change::Put(cells) => *row = Some(with(Row::fresh(table, key, position), cells, position)),
        Change::Merge(cells) => {
            row.get_or_insert_with(|| Row::fresh(table, key, position))
                .set(cells, position);
        }
        Change::Patch(cells) => {
            if let Some(row) = row {
                row.set(cells, position);
            }
        }
        Change::Add(cells) => match row {
            Some(row) => add(row, cells, position),
            None => *row = Some(with(Row::fresh(table, key, position), cells, position)),
        },
        Change::Remove => *row = None,
        Change::RemoveWhere(cells) => {
            if row
                .as_ref()
                .is_some_and(|row| matches(row, cells, position))
            {
                *row = None;
            }
        }
    }
}

fn with(mut row: Row, cells: &[Cell], position: u64) -> Row {
    row.set(cells, position);
    row
}

/// Null equals null; a column that the table does not have equals nothing.
fn matches(row: &Row, cells: &[Cell], position: u64) -> bool {
    cells.iter().all(|cell| {
        row.table.column(&cell.column).is_some_and(|place| {
            let wanted = canonical(row.table.columns[place].column_type, cell.value, position);
            row.values[place] == wanted
        })
    })
}

fn add(row: &mut Row, cells: &[Cell], position: u64) {
    for cell in cells {
        if let Some(place) = row.table.column(&cell.column) {
            let column_type = row.table.columns[place].column_type;
            let amount = canonical(column_type, cell.value, position);
            if let Some(sum) = sum(column_type, &row.values[place], &amount) {
                row.values[place] = sum;
            }
        }
    }
}

/// The exact sum, where null counts as zero. A sum that does not fit a bigint is kept as a numeric: the host refuses
/// such a write, so no later one depends on it.
pub(crate) fn sum(column_type: ColumnType, value: &Value, amount: &Value) -> Option<Value> {
    if let (Value::Float(value), Value::Float(amount)) = (value, amount) {
        return Some(Value::Float(value + amount));
    }
    if value.is_null() {
        return Some(*amount);
    }
    if amount.is_null() {
        return Some(*value);
    }
    if let (Value::Int(value), Value::Int(amount)) = (value, amount) {
        return Some(Value::whole(i128::from(*value) + i128::from(*amount)));
    }
    let sum = decimal(value)?.plus(&decimal(amount)?);
    Some(match column_type {
        ColumnType::BigInt => match sum.to_i64() {
            Some(number) => Value::Int(number),
            None => Value::Other(Text::new("numeric"), sum.to_string().into()),
        },
        _ => sum.to_string().into(),
    })
}

fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Int(number) => Decimal::parse(&number.to_string()),
        Value::Text(text) | Value::Other(_, text) => Decimal::parse(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::apply;
    use crate::contract::{Cell, Change, List, Text};
    use crate::description::{ColumnType, Description, Table};
    use crate::row::Row;
    use crate::schema::{Schema, TableSchema};
    use crate::value::Value;

    fn table() -> Rc<TableSchema> {
        let table = Table::new("t")
            .column("id", ColumnType::Text)
            .column_or("a", ColumnType::BigInt, "5")
            .nullable("b", ColumnType::Numeric)
            .primary_key(["id"]);
        match Schema::new(&Description::new("p", "0").table(table)) {
            Ok(schema) => Rc::clone(&schema.tables[0]),
            Err(message) => panic!("{message}"),
        }
    }

    fn cells(cells: &[(&'static str, Value)]) -> List<Cell> {
        let cell = |&(column, value): &(&'static str, Value)| Cell {
            column: Text::new(column),
            value,
        };
        cells.iter().map(cell).collect::<Vec<_>>().into()
    }

    /// The change on an absent row, and on the row (a: 1, b: "2.5").
    fn check(change: Change, on_absent: Option<(i64, Value)>, on_present: Option<(i64, Value)>) {
        let table = table();
        let key = cells(&[("id", "k".into())]);
        let present = Row {
            table: Rc::clone(&table),
            values: vec!["k".into(), 1_i64.into(), "2.5".into()],
        };
        for (before, expected) in [(None, on_absent), (Some(present), on_present)] {
            let mut row = before.clone();
            apply(&table, &key, &change, 9, &mut row);
            let expected = expected.map(|(a, b)| vec!["k".into(), a.into(), b]);
            assert_eq!(
                row.map(|row| row.values),
                expected,
                "{change:?} on {before:?}"
            );
        }
    }

    #[test]
    fn every_write_does_what_the_contract_says() {
        let b: Value = "2.5".into();
        let given = || cells(&[("b", "7".into())]);
        check(Change::Insert(given()), Some((5, "7".into())), Some((1, b)));
        check(
            Change::Put(given()),
            Some((5, "7".into())),
            Some((5, "7".into())),
        );
        check(
            Change::Put(cells(&[])),
            Some((5, Value::Null)),
            Some((5, Value::Null)),
        );
        check(
            Change::Merge(given()),
            Some((5, "7".into())),
            Some((1, "7".into())),
        );
        check(Change::Patch(given()), None, Some((1, "7".into())));
        check(
            Change::Patch(cells(&[("a", Value::Position)])),
            None,
            Some((9, b)),
        );
        check(
            Change::Add(given()),
            Some((5, "7".into())),
            Some((1, "9.5".into())),
        );
        check(
            Change::Add(cells(&[("a", (-3_i64).into())])),
            Some((-3, Value::Null)),
            Some((-2, b)),
        );
        check(Change::Remove, None, None);
        check(
            Change::RemoveWhere(cells(&[("b", "2.5".into())])),
            None,
            None,
        );
        check(
            Change::RemoveWhere(cells(&[("b", Value::Null)])),
            None,
            Some((1, b)),
        );
        check(
            Change::RemoveWhere(cells(&[("a", 2_i64.into())])),
            None,
            Some((1, b)),
        );
    }

    #[test]
    fn a_sum_may_pass_the_limit_on_its_way_and_stays_exact() {
        let table = table();
        let key = cells(&[("id", "k".into())]);
        let mut row = None;
        for (amount, expected) in [
            (Value::Int(i64::MAX), Value::Int(i64::MAX)),
            (Value::Int(2), Value::whole(i128::from(i64::MAX) + 2)),
            (Value::whole(-i128::from(i64::MAX) - 3), Value::Int(-1)),
        ] {
            apply(
                &table,
                &key,
                &Change::Add(cells(&[("a", amount)])),
                1,
                &mut row,
            );
            assert_eq!(row.as_ref().and_then(|row| row.get("a")), Some(expected));
        }
    }
}
