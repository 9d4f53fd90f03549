//! Odd values of every type: what the host takes, the server takes and gives back; what the server refuses, the host
//! refuses. And batches of every size come to the same end with them.

use projector_host::guest::bindings::{Cell, Change, RowKey, Value, Write};
use projector_host::plugin::manifest::{Column, ColumnType, Manifest, Table};
use projector_host::read_model::check::Shapes;
use projector_host::read_model::datum::Datum;
use projector_host::read_model::write;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
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

/// A table whose key is a numeric and a double, with an index over two texts.
fn odd_table() -> Manifest {
    use ColumnType as T;
    let column = |label: &str, column_type, nullable| Column {
        name: name(label),
        column_type,
        nullable,
        default: None,
    };
    let mut odd = manifest("odd", "odd");
    odd.tables = vec![Table {
        name: name("odd"),
        columns: vec![
            column("number", T::Numeric, false),
            column("ratio", T::Double, false),
            column("label", T::Text, false),
            column("left_part", T::Text, true),
            column("right_part", T::Text, true),
            column("sum", T::Numeric, true),
            column("float", T::Double, true),
            column("day", T::Date, true),
            column("at", T::Timestamptz, true),
        ],
        primary_key: vec![0, 1, 2],
        indexes: vec![vec![3, 4]],
    }];
    odd
}

fn pick<'a>(random: &mut StdRng, all: &[&'a str]) -> &'a str {
    all[random.random_range(0..all.len())]
}

/// A write of any kind; one in a few has a value that only just passes, or only just does not.
fn odd_write(random: &mut StdRng, at: usize, wide: &[String]) -> Write {
    let mut key = vec![
        cell("number", text(pick(random, &["1", "1.0", "1.00", "1e0"]))),
        cell("ratio", text(pick(random, &["0", "-0", "-0.0", "0e5"]))),
    ];
    let label = if random.random_ratio(1, 12) {
        wide[random.random_range(0..wide.len())].clone()
    } else {
        "a".to_owned()
    };
    key.push(cell("label", text(&label)));
    let cells = |random: &mut StdRng| -> Vec<Cell> {
        let wide = wide[random.random_range(0..wide.len())].clone();
        let choices = [
            cell(
                "left_part",
                text(if random.random_ratio(1, 6) {
                    &wide
                } else {
                    "l"
                }),
            ),
            cell(
                "right_part",
                text(if random.random_ratio(1, 6) {
                    &wide
                } else {
                    "r"
                }),
            ),
            cell(
                "sum",
                text(pick(
                    random,
                    &["0", "1.50", "9e131071", "-9e131071", "0.000"],
                )),
            ),
            cell(
                "float",
                text(pick(random, &["1e308", "-0", "0.1", "-1e308", "1e308"])),
            ),
            cell(
                "day",
                text(pick(
                    random,
                    &[
                        "0001-01-01",
                        "9999-12-31",
                        "2024-02-29",
                        "2024-02-29",
                        "0000-01-01",
                    ],
                )),
            ),
            cell(
                "at",
                text(pick(
                    random,
                    &[
                        "2024-02-29 00:00:00+00",
                        "9999-12-31T23:59:59Z",
                        "2024-02-29T23:59:59Z",
                        "2024-02-29T23:59:60Z",
                    ],
                )),
            ),
        ];
        choices
            .into_iter()
            .filter(|_| random.random_ratio(1, 4))
            .collect()
    };
    let change = match random.random_range(0..9) {
        0 => Change::Insert(cells(random)),
        1 | 2 => Change::Put(cells(random)),
        3 => Change::Merge(cells(random)),
        4 => Change::Patch(cells(random)),
        5 | 6 => Change::Add(vec![
            cell(
                "sum",
                text(pick(
                    random,
                    &["9e131071", "-9e131071", "0.00", "1", "-1.5"],
                )),
            ),
            cell(
                "float",
                text(pick(random, &["1e308", "-1e308", "-0", "0.25"])),
            ),
        ]),
        7 => Change::Remove,
        _ => {
            key.clear();
            Change::RemoveWhere(vec![cell("number", text("1.000"))])
        }
    };
    Write {
        event: u32::try_from(at).expect("small"),
        target: RowKey {
            table: "odd".to_owned(),
            key,
        },
        change,
    }
}

/// Applies writes in one transaction; whether they passed.
async fn passes(site: &mut Site, shapes: &Shapes, writes: &[Write]) -> bool {
    let renumbered = writes.iter().zip(0..).map(|(write, event)| Write {
        event,
        ..write.clone()
    });
    let Ok(folded) = folded(shapes, renumbered.collect()) else {
        return false;
    };
    let mut transaction = site.connection.begin().await.expect("begun");
    let done = write::apply(&mut transaction, &name("odd_g1"), shapes, &folded).await;
    match done {
        Ok(_) => transaction.commit().await.expect("committed"),
        Err(_) => transaction.rollback().await.expect("rolled back"),
    }
    done.is_ok()
}

/// The writes in batches of a size, each that fails split in halves, as the loop does it: which writes were refused.
async fn refused(site: &mut Site, shapes: &Shapes, writes: &[Write], size: usize) -> Vec<usize> {
    let mut refused = Vec::new();
    let mut parts: Vec<std::ops::Range<usize>> = (0..writes.len())
        .step_by(size)
        .map(|at| at..(at + size).min(writes.len()))
        .rev()
        .collect();
    while let Some(part) = parts.pop() {
        if passes(site, shapes, &writes[part.clone()]).await {
            continue;
        }
        if part.len() == 1 {
            refused.push(part.start);
            continue;
        }
        let middle = part.start + part.len() / 2;
        parts.push(middle..part.end);
        parts.push(part.start..middle);
    }
    refused
}

const SEEDS: u64 = 40;
const WRITES: usize = 14;

#[tokio::test]
async fn batches_of_every_size_refuse_the_same_writes_and_leave_the_same_rows() {
    let mut site = Site::new().await;
    let manifest = odd_table();
    site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    // Around what a key, and what a column of the index holds; random, so that it does not compress.
    let mut random = StdRng::seed_from_u64(11);
    let mut letters = |length: usize| -> String {
        (0..length)
            .map(|_| char::from(random.random_range(b'!'..=b'~')))
            .collect()
    };
    let wide: Vec<String> = [1_200, 1_336, 1_337, 2_640, 2_700, 4_000]
        .map(&mut letters)
        .to_vec();
    let (mut all_refused, mut all) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(seed);
        let writes: Vec<Write> = (0..WRITES)
            .map(|at| odd_write(&mut random, at, &wide))
            .collect();
        let mut expected = None;
        for size in [1, 2, 3, 7, WRITES] {
            site.connection
                .execute("TRUNCATE odd_g1.odd")
                .await
                .expect("empty");
            let refused = refused(&mut site, &shapes, &writes, size).await;
            // As texts: equal keys of different forms would be equal otherwise.
            let rows = site
                .test
                .psql("SELECT md5(t::text) FROM odd_g1.odd t ORDER BY 1")
                .expect("rows");
            let (wanted, wanted_rows) = expected.get_or_insert((refused.clone(), rows.clone()));
            assert_eq!(&refused, wanted, "seed {seed}, batches of {size}");
            assert_eq!(&rows, wanted_rows, "seed {seed}, batches of {size}");
        }
        all_refused += expected.map_or(0, |(refused, _)| refused.len());
        all += writes.len();
    }
    assert!(
        all_refused > 20 && all_refused * 2 < all,
        "{all_refused} of {all} refused"
    );
}
