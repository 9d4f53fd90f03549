//! What is packed comes out again, within the bounds.

use super::*;

fn cell(column: &str, value: Value) -> Cell {
    Cell {
        column: column.to_owned(),
        value,
    }
}

#[test]
fn what_was_packed_comes_out_as_it_was() {
    let values = || {
        vec![
            cell("a", Value::Null),
            cell("b", Value::Boolean(true)),
            cell("c", Value::Int(i64::MIN)),
            cell("d", Value::Float(-0.5)),
            cell("e", Value::Text("漢字".into())),
            cell("f", Value::Bytes(vec![0, 255])),
            cell("g", Value::Texts(vec![String::new(), "x".into()])),
            cell("h", Value::Position),
            cell("i", Value::Other(("numeric".into(), "1.5".into()))),
        ]
    };
    let kinds: [fn(Vec<Cell>) -> Change; 7] = [
        Change::Insert,
        Change::Put,
        Change::Merge,
        Change::Patch,
        Change::Add,
        |_| Change::Remove,
        Change::RemoveWhere,
    ];
    let list: Vec<Write> = (0..)
        .zip(kinds)
        .map(|(event, kind)| Write {
            event,
            target: RowKey {
                table: format!("t{}", event % 2),
                key: vec![cell("a", Value::Text(event.to_string()))],
            },
            change: kind(values()),
        })
        .collect();
    let packed = Writes::from_list(&list).expect("not large");
    assert_eq!(format!("{packed:?}"), format!("{list:?}"));
    assert_eq!(packed.names(), 2 + 9, "each name once");

    let keys: Vec<RowKey> = list.into_iter().map(|write| write.target).collect();
    let packed = Keys::from_list(&keys).expect("not large");
    let found = packed.rows().to_list();
    let found: Vec<RowKey> = found.into_iter().map(|write| write.target).collect();
    assert_eq!(format!("{found:?}"), format!("{keys:?}"));
}

#[test]
fn names_are_bounded() {
    let write = |names: usize| Write {
        event: 0,
        target: RowKey {
            table: "t".to_owned(),
            key: Vec::new(),
        },
        change: Change::Put(
            (0..names)
                .map(|number| cell(&number.to_string(), Value::Null))
                .collect(),
        ),
    };
    assert!(Writes::from_list(&[write(NAMES_MAX - 1)]).is_ok());
    let error = Writes::from_list(&[write(NAMES_MAX)]).expect_err("one too many");
    assert_eq!(error, TooLarge::Names);
}
