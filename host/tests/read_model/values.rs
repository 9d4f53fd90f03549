//! Odd values of every type: what the host takes, the server takes and gives back; what the server refuses, the host
//! refuses. And batches of every size come to the same end with them.

use projector_host::guest::bindings::{Cell, Change, RowKey, Value, Write};
use projector_host::plugin::manifest::{Column, ColumnType, Manifest, Table};
use projector_host::read_model::check::Shapes;
use projector_host::read_model::datum::Datum;
use projector_host::read_model::write;
use sqlx::{Connection as _, Executor as _, Row as _};

use super::support::{Site, cell, folded, manifest, name, text};

/// Every combination of the parts, one of each.
fn combined(parts: &[&[&str]]) -> Vec<String> {
    parts.iter().fold(vec![String::new()], |heads, tails| {
        let pairs = heads
            .iter()
            .flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}")));
        pairs.collect()
    })
}

fn numbers() -> Vec<String> {
    let signs: &[&str] = &["", "-", "+", "--", " "];
    let wholes: &[&str] = &[
        "",
        "0",
        "007",
        "1",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775808",
        "1_0",
        "0x1",
        "12345678901234567890123456789",
    ];
    let fractions: &[&str] = &[
        "",
        ".",
        ".0",
        ".50",
        ".000000000000000000000000000001",
        ".5.5",
    ];
    let exponents: &[&str] = &[
        "",
        "e0",
        "E+2",
        "e-3",
        "e",
        "e308",
        "e309",
        "e-324",
        "e-330",
        "e-400",
        "e16383",
        "e131071",
        "e131072",
        "e-16383",
        "e-16384",
        "e99999999999",
    ];
    let mut all = combined(&[signs, wholes, fractions, exponents]);
    let others = [
        "NaN",
        "nan",
        "inf",
        "Infinity",
        "-Infinity",
        "infinity",
        "1e1e1",
        "1,5",
        "1 ",
        "\n1",
        "٣",
        "1f",
        "0b1",
        "0o7",
        "2.2250738585072014e-308",
        "4.9e-324",
        "2.4e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
    ];
    all.extend(others.map(str::to_owned));
    all
}

fn dates() -> Vec<String> {
    let years: &[&str] = &[
        "0000", "0001", "1900", "2000", "2023", "2024", "9999", "10000", "-0001", "+2024", "99",
        "5874897", "294277",
    ];
    let days: &[&str] = &[
        "-01-01", "-02-28", "-02-29", "-02-30", "-12-31", "-13-01", "-00-10", "-04-31", "-1-1",
        "0229", "-06-00",
    ];
    let mut all = combined(&[years, days, &["", " BC", "Z", "T00:00:00Z"]]);
    all.extend(
        [
            "today",
            "epoch",
            "infinity",
            "",
            "2024-W05",
            "January 8, 1999",
        ]
        .map(str::to_owned),
    );
    all
}

fn times() -> Vec<String> {
    let days: &[&str] = &[
        "0000-12-31",
        "0001-01-01",
        "2024-02-29",
        "2023-02-29",
        "9999-12-31",
        "10000-01-01",
    ];
    let clocks: &[&str] = &[
        "00:00:00", "23:59:59", "23:59:60", "24:00:00", "12:60:00", "1:02:03", "12:30",
    ];
    let fractions: &[&str] = &["", ".5", ".123456", ".1234567", ".9999999", ".", ".000000"];
    let zones: &[&str] = &[
        "Z", "z", "", "+00:00", "-00:30", "+08", "+0530", "+14:00", "+15:59", "-15:59", "+16:00",
        "+24:00", "+8:00", " UTC", "[UTC]", "+01:60",
    ];
    let mut all = combined(&[days, &["T", " ", "t", "_"], clocks, fractions, zones]);
    all.extend(["now", "infinity", "-infinity", "allballs", ""].map(str::to_owned));
    all
}

fn jsons() -> Vec<String> {
    let odd = [
        "null",
        "nul",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ude00\"",
        "{\"a\":1,\"a\":2}",
        "{\"\\u0000\":1}",
        "01",
        "1.",
        ".5",
        "-0",
        "-0.0",
        "+1",
        "1e131071",
        "1e131072",
        "1e20000",
        "1e-16383",
        "1e-16384",
        "1e1000000000",
        "0e1000000000",
        "NaN",
        "Infinity",
        "\"a\tb\"",
        "\"a\\xb\"",
        "[1,]",
        "{}",
        "",
        " 1 ",
        "'a'",
        "\"\\\\u0000\"",
        "1 2",
        "[1e99999]",
        "tru",
        "\u{feff}1",
        "\u{a0}1",
    ];
    let mut all: Vec<String> = odd.map(str::to_owned).to_vec();
    for depth in [10, 999, 1_000, 1_001, 100_000] {
        all.push(format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        all.push(format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
    }
    all
}

fn uuids() -> Vec<String> {
    let good = "A0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    vec![
        good.to_owned(),
        good.to_uppercase(),
        good.replace('-', ""),
        format!("{{{good}}}"),
        format!("urn:uuid:{good}"),
        good.replace('a', "g"),
        good[1..].to_owned(),
        format!(" {good}"),
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11".to_owned(),
        "a0eebc999c0b-4ef8-bb6d-6bb9bd380a11----".to_owned(),
        "a0eebc99-9c0b4ef8-bb6d-6bb9-bd380a11".to_owned(),
        String::new(),
    ]
}

fn values(column_type: ColumnType) -> Vec<String> {
    let some = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
    match column_type {
        ColumnType::BigInt | ColumnType::Double | ColumnType::Numeric => numbers(),
        ColumnType::Date => dates(),
        ColumnType::Timestamptz => times(),
        ColumnType::Jsonb => jsons(),
        ColumnType::Uuid => uuids(),
        ColumnType::Boolean => some(&[
            "true", "false", "t", "f", "TRUE", "yes", "on", "1", "0", "tr", "truely", "", " true",
            "null",
        ]),
        ColumnType::Bytea => some(&[
            "\\x", "\\x0aFF", "\\x0", "\\xgg", "0aff", "\\X00", "\\x 00", "\\000", "", "\\x00 11",
        ]),
        ColumnType::Text => some(&[
            "",
            " ",
            "a",
            "\u{1}",
            "\u{feff}",
            "漢字😀",
            "\u{fffd}",
            "a\\0",
        ]),
        ColumnType::TextArray => some(&["{}", "{a}", "", "{\"a\"}"]),
    }
}

/// What the server makes of the texts: none where it refuses, else whether it equals the host's value and its text.
async fn asked(
    site: &mut Site,
    column_type: ColumnType,
    given: &str,
    host: Option<&str>,
) -> Option<bool> {
    let through = match column_type {
        // The host takes other spellings of whole numbers than the server does.
        ColumnType::BigInt => "numeric",
        // Cut, where the server rounds.
        other => other.sql(),
    };
    let sql = column_type.sql();
    let statement =
        format!("SELECT $1::text::{through}::{sql}::text = coalesce($2::text::{sql}::text, '')");
    let found = sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(given)
        .bind(host)
        .fetch_one(&mut site.connection)
        .await;
    match found {
        Ok(row) => Some(row.get::<Option<bool>, _>(0).unwrap_or(false)),
        Err(sqlx::Error::Database(_)) => None,
        Err(other) => panic!("{given:?}: {other}"),
    }
}

/// The server's text form of a host's value, which is also what a guest would read.
fn shown(datum: &Datum) -> String {
    match datum.to_value() {
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Float(float) => format!("{float:e}"),
        Value::Text(text) => text,
        Value::Bytes(bytes) => bytes
            .iter()
            .fold("\\x".to_owned(), |hex, byte| format!("{hex}{byte:02x}")),
        other => panic!("{other:?}"),
    }
}

/// Finer than microseconds, or a zero with a sign: here the host's own rule holds.
fn has_own_rule(column_type: ColumnType, given: &str) -> bool {
    match column_type {
        ColumnType::Timestamptz => given.contains(".1234567") || given.contains(".9999999"),
        ColumnType::Double => {
            given.starts_with('-')
                && !given
                    .split(['e', 'E'])
                    .next()
                    .unwrap_or("")
                    .contains(|c: char| ('1'..='9').contains(&c))
        }
        _ => false,
    }
}

#[tokio::test]
async fn what_the_host_takes_the_server_takes_and_gives_back() {
    use ColumnType as T;
    let mut site = Site::new().await;
    let types = [
        T::Text,
        T::BigInt,
        T::Double,
        T::Boolean,
        T::Numeric,
        T::Timestamptz,
        T::Date,
        T::Uuid,
        T::Jsonb,
        T::Bytea,
        T::TextArray,
    ];
    let (mut wrong, mut taken, mut refused) = (Vec::new(), 0, 0);
    for column_type in types {
        for given in values(column_type) {
            let host = Datum::from_text(&given, column_type);
            let Ok(datum) = host else {
                refused += 1;
                continue;
            };
            taken += 1;
            let short: String = given.chars().take(60).collect();
            match asked(&mut site, column_type, &given, Some(&shown(&datum))).await {
                None => wrong.push(format!(
                    "{short:?} as {}: the server refuses it",
                    column_type.sql()
                )),
                Some(false) if !has_own_rule(column_type, &given) => {
                    wrong.push(format!(
                        "{short:?} as {}: the server makes something else of it",
                        column_type.sql()
                    ));
                }
                Some(_) => {}
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {taken} taken:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        taken > 1_000 && refused > 1_000,
        "{taken} taken, {refused} refused"
    );
}
