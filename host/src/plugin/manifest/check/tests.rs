//! What a description may say, and what is said of one that may not.

use super::*;

fn column(name: &str, column_type: &str) -> contract::Column {
    contract::Column {
        name: name.into(),
        column_type: column_type.into(),
        nullable: false,
        default_value: None,
    }
}

fn good() -> Description {
    Description {
        name: "order".into(),
        version: "1.0.0".into(),
        subscription: contract::Subscription {
            types: vec!["OrderCreated".into()],
            stream_prefixes: Vec::new(),
        },
        reads: false,
        tables: vec![contract::Table {
            name: "orders".into(),
            columns: vec![
                column("id", "uuid"),
                column("total", "numeric"),
                column("tags", "text[]"),
            ],
            primary_key: vec!["id".into()],
            indexes: vec![contract::Index {
                columns: vec!["total".into(), "id".into()],
            }],
        }],
        options: vec![("later".into(), "x".into())],
    }
}

fn check(change: impl FnOnce(&mut Description), expected: &[&str]) {
    let mut description = good();
    change(&mut description);
    let faults = Manifest::check(&description).expect_err("faults");
    let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, part) in found.iter().zip(expected) {
        assert!(found.contains(part), "{found}");
    }
}

#[test]
fn a_sound_description_becomes_a_manifest_and_survives_json() {
    let mut description = good();
    description.tables[0].columns[1].default_value = Some("0.00".into());
    let manifest = Manifest::check(&description).expect("sound");
    assert_eq!(manifest.tables[0].primary_key, [0]);
    assert_eq!(manifest.tables[0].indexes, [[1, 0]]);
    let json = serde_json::to_string(&manifest).expect("has a JSON form");
    assert_eq!(
        json,
        r#"{"name":"order","version":"1.0.0","subscription":{"types":["OrderCreated"],"stream_prefixes":[]},"reads":false,"tables":[{"name":"orders","columns":[{"name":"id","type":"uuid"},{"name":"total","type":"numeric","default":"0.00"},{"name":"tags","type":"text[]"}],"primary_key":["id"],"indexes":[["total","id"]]}]}"#
    );
    assert_eq!(
        serde_json::from_str::<Manifest>(&json).expect("round trip"),
        manifest
    );
    let unsound = json.replace("\"primary_key\":[\"id\"]", "\"primary_key\":[\"no\"]");
    let error = serde_json::from_str::<Manifest>(&unsound).expect_err("unsound");
    assert!(
        error.to_string().contains("`no`, which is no column"),
        "{error}"
    );
}

#[test]
fn names_are_checked() {
    for bad in [
        "",
        "Order",
        "order_x",
        "ör",
        "1order",
        "pg-x",
        &"x".repeat(41),
    ] {
        check(|d| d.name = bad.into(), &["name: "]);
    }
    check(|d| d.version = String::new(), &["version: is empty"]);
    check(|d| d.tables[0].name = "Orders".into(), &["table Orders: "]);
    check(
        |d| d.tables[0].columns[2].name = "a\"b".into(),
        &["orders.a\"b: "],
    );
}

#[test]
fn every_fault_is_listed_at_once() {
    check(
        |d| {
            d.name = "Bad Name".into();
            d.subscription.types = vec!["A".into(), String::new(), "A".into()];
            let table = &mut d.tables[0];
            table.columns[0].nullable = true;
            table.columns[1].column_type = "money".into();
            table.columns[2].default_value = Some("x".into());
            table.columns.push(column("id", "text"));
            table.primary_key.push("nope".into());
            table.indexes[0].columns = vec!["id".into(), "id".into()];
            table.indexes.push(contract::Index {
                columns: Vec::new(),
            });
        },
        &[
            "name: ",
            "subscription.types[1]: is empty",
            "subscription.types[2]: \"A\" stands there twice",
            "orders.total: has the unknown type `money`",
            "orders.tags: has the default \"x\", which is no text[]",
            "orders.id: is declared twice",
            "primary key: names `nope`",
            "orders.id: is part of the primary key",
            "index 0: names `id` twice",
            "index 1: has no columns",
        ],
    );
}

#[test]
fn tables_have_bounds_and_a_key() {
    check(|d| d.tables[0].primary_key.clear(), &["has no primary key"]);
    check(
        |d| d.tables[0].columns[0].column_type = "jsonb".into(),
        &["orders.id: is part of the primary key and cannot be jsonb"],
    );
    check(
        |d| d.tables[0].columns = (0..401).map(|n| column(&format!("c{n}"), "text")).collect(),
        &["401 columns"],
    );
    check(
        |d| d.tables = (0..65).map(|_| d.tables[0].clone()).collect(),
        &["tables: are 65"],
    );
    check(
        |d| d.tables.push(d.tables[0].clone()),
        &["table orders: is declared twice"],
    );
}

#[test]
fn defaults_get_a_first_look() {
    use ColumnType::{BigInt, Boolean, Bytea, Double, Jsonb, Numeric, Text, Uuid};
    for (column_type, good, bad) in [
        (BigInt, "-5", "1.5"),
        (Double, "1e3", "x"),
        (Boolean, "true", "yes"),
        (Numeric, "1.50", "1,5"),
        (Uuid, "00000000-0000-0000-0000-000000000000", "x"),
        (Jsonb, "{\"a\":[]}", "{"),
        (Bytea, "\\x00", "00"),
        (Text, "anything", "a\0b"),
    ] {
        assert!(fits(column_type, good), "{column_type:?} {good}");
        assert!(!fits(column_type, bad), "{column_type:?} {bad}");
    }
}

#[test]
fn what_would_keep_a_projection_from_beginning_is_refused() {
    for name in ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"] {
        let with = |description: &mut Description| {
            description.tables[0].columns.push(column(name, "bigint"));
        };
        check(with, &["is the name of a system column"]);
    }
    let defaults = [
        ("text[]", "{a,b}"),
        ("timestamptz", "2026-01-01"),
        ("date", "today"),
        ("double precision", "NaN"),
    ];
    for (column_type, default) in defaults {
        let mut description = good();
        let mut odd = column("odd", column_type);
        odd.default_value = Some(default.into());
        description.tables[0].columns.push(odd);
        // Whatever passes has a value that the checks of writes can use.
        match Manifest::check(&description) {
            Ok(manifest) => {
                let shapes = crate::read_model::check::Shapes::new(&manifest.tables);
                assert!(shapes.is_ok(), "{column_type} {default}: {shapes:?}");
            }
            Err(faults) => {
                assert!(faults[0].to_string().contains("odd"), "{faults:?}");
            }
        }
    }
    check(
        |description| {
            let mut odd = column("day", "date");
            odd.default_value = Some("today".into());
            description.tables[0].columns.push(odd);
        },
        &["column day: default: "],
    );
}
