//! Folding equals applying writes one after the other, for rows that are there and rows that are not.

use proptest::prelude::*;

use super::*;
use crate::database::identifier::Identifier;
use crate::plugin::manifest::{Column, ColumnType, Table};

fn shapes() -> Shapes {
    let column = |name: &str, column_type, nullable, default: Option<&str>| Column {
        name: Identifier::new(name).expect("a good name"),
        column_type,
        nullable,
        default: default.map(str::to_owned),
    };
    Shapes::new(&[Table {
        name: Identifier::new("things").expect("a good name"),
        columns: vec![
            column("id", ColumnType::BigInt, false, None),
            column("needed", ColumnType::Text, false, None),
            column("amount", ColumnType::BigInt, true, Some("5")),
            column("ratio", ColumnType::Double, true, None),
        ],
        primary_key: vec![0],
        indexes: vec![],
    }])
    .expect("good defaults")
}

/// The meaning of each write, straight from the contract: one write on one row.
fn apply_one(
    shapes: &Shapes,
    row: Option<Row>,
    key: &Key,
    change: &Change,
) -> Result<Option<Row>, ()> {
    let new = |cells: &Cells| {
        let mut row = shapes.tables()[0].defaults.clone();
        row[0] = key[0].clone();
        set(&mut row, cells.clone());
        if row[1].is_null() {
            Err(())
        } else {
            Ok(Some(row))
        }
    };
    match (row, change) {
        (None, Change::Insert(cells) | Change::Put(cells) | Change::Merge(cells))
        | (Some(_), Change::Put(cells)) => new(cells),
        (None, Change::Patch(_) | Change::Remove) | (Some(_), Change::Remove) => Ok(None),
        (Some(row), Change::Insert(_)) => Ok(Some(row)),
        (Some(mut row), Change::Merge(cells) | Change::Patch(cells)) => {
            set(&mut row, cells.clone());
            Ok(Some(row))
        }
        (None, Change::Add(amounts)) => {
            let cells: Result<Cells, String> = amounts
                .iter()
                .map(|(column, amount)| Ok((*column, amount.add_to(&Datum::Null)?)))
                .collect();
            new(&cells.map_err(|_| ())?)
        }
        (Some(mut row), Change::Add(amounts)) => {
            for (column, amount) in amounts {
                row[*column] = amount.add_to(&row[*column]).map_err(|_| ())?;
            }
            Ok(Some(row))
        }
    }
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![
        -3_i64..4,
        Just(i64::MAX),
        Just(i64::MIN),
        Just(i64::MAX - 1)
    ]
}

fn datum_cells(whole: bool) -> BoxedStrategy<Cells> {
    let needed = if whole {
        (Just(Some("n".to_owned()))).boxed()
    } else {
        proptest::option::of("[a-c]").boxed()
    };
    (
        needed,
        proptest::option::of(proptest::option::of(amount())),
        proptest::option::of(-2_i32..3),
    )
        .prop_map(|(needed, amount, ratio)| {
            let mut cells = Cells::new();
            cells.extend(needed.map(|text| (1, Datum::Text(text))));
            cells.extend(amount.map(|amount| (2, amount.map_or(Datum::Null, Datum::BigInt))));
            cells.extend(ratio.map(|ratio| (3, Datum::Double(f64::from(ratio) / 10.0))));
            cells
        })
        .boxed()
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => datum_cells(true).prop_map(Change::Insert),
        1 => datum_cells(true).prop_map(Change::Put),
        1 => datum_cells(false).prop_map(Change::Merge),
        1 => datum_cells(false).prop_map(Change::Patch),
        4 => (amount(), proptest::option::of(-2_i32..3)).prop_map(|(whole, ratio)| {
            let mut amounts = vec![(2, Amount::Whole(i128::from(whole)))];
            amounts.extend(ratio.map(|ratio| (3, Amount::Double(f64::from(ratio) / 10.0))));
            Change::Add(amounts)
        }),
        1 => Just(Change::Remove),
    ]
}

/// As the database will judge it: every running sum of an `add` has to fit.
fn strict(folded: &Folded, key: &Key, row: Option<Row>) -> Result<Option<Row>, ()> {
    let mut row = row;
    for phase in &folded.tables[0] {
        let Phase::Rows(rows) = phase else { continue };
        let Some(&place) = rows.places.get(key) else {
            continue;
        };
        let pair = &rows.pairs[place].1;
        if let (Some(row), Present::Update(ops)) = (&row, &pair.present) {
            for (column, op) in ops {
                if let Op::Add(sums) = op {
                    sums.add_to(&row[*column]).map_err(|_| ())?;
                }
            }
        }
        row = pair.outcome(row).map_err(|_| ())?;
    }
    Ok(row)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn folding_equals_one_after_the_other(
        changes in proptest::collection::vec(change(), 1..8),
        start in proptest::option::of((amount(), -2_i32..3)),
    ) {
        let shapes = shapes();
        let key: Key = vec![Datum::BigInt(1)];
        let start = start.map(|(whole, ratio)| vec![
            Datum::BigInt(1),
            Datum::Text("s".to_owned()),
            Datum::BigInt(whole),
            Datum::Double(f64::from(ratio) / 10.0),
        ]);
        let mut expected = Ok(start.clone());
        for change in &changes {
            expected = expected.and_then(|row| apply_one(&shapes, row, &key, change));
        }
        let writes = changes.into_iter().enumerate().map(|(event, change)| Checked::Row { table: 0, event, key: key.clone(), change });
        let writes: Vec<Checked> = writes.collect();
        let folded = fold(&shapes, &|event| event as i64, writes.clone(), &Known::default());
        prop_assert_eq!(strict(&folded, &key, start.clone()), expected.clone());
        let mut known = Known::default();
        known.insert(0, key.clone(), start.is_some());
        let folded = fold(&shapes, &|event| event as i64, writes, &known);
        prop_assert_eq!(strict(&folded, &key, start), expected);
    }
}

#[test]
fn remove_where_closes_the_fold_of_its_table() {
    let shapes = shapes();
    let key: Key = vec![Datum::BigInt(1)];
    let row = |text: &str| Change::Put(vec![(1, Datum::Text(text.to_owned()))]);
    let write = |change| Checked::Row {
        table: 0,
        event: 0,
        key: vec![Datum::BigInt(1)],
        change,
    };
    let sweep = Checked::RemoveWhere {
        table: 0,
        event: 0,
        cells: vec![(1, Datum::Text("a".to_owned()))],
    };
    let folded = fold(
        &shapes,
        &|_| 1,
        vec![
            write(row("a")),
            sweep.clone(),
            write(Change::Patch(vec![(1, Datum::Text("b".to_owned()))])),
        ],
        &Known::default(),
    );
    assert_eq!(folded.tables[0].len(), 3);
    assert_eq!(folded.overlay(0, &key, None), Ok(None));
    let folded = fold(
        &shapes,
        &|_| 1,
        vec![write(row("b")), sweep],
        &Known::default(),
    );
    assert_eq!(
        folded
            .overlay(0, &key, None)
            .map(|row| row.map(|row| row[1].clone())),
        Ok(Some(Datum::Text("b".to_owned())))
    );
}
