//! Writes of every kind, folded in one batch, leave the same rows as one transaction for each of them.

use projector_host::database::error::Error as DatabaseError;
use projector_host::guest::bindings::{Cell, Change, Value, Write};
use projector_host::read_model::check::{Key, Shapes};
use projector_host::read_model::fold::Known;
use projector_host::read_model::lookup::{self, Source};
use projector_host::read_model::write::{self, Error};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use sqlx::{Connection as _, Executor as _};

use super::support::{
    Site, cell, events, folded, folded_known, key, manifest, name, step, text, write,
};

const SEEDS: u64 = 150;
const WRITES: usize = 14;

/// One of these, or null.
fn maybe(random: &mut StdRng, values: &[Value]) -> Value {
    if random.random_ratio(1, 6) {
        return Value::Null;
    }
    values[random.random_range(0..values.len())].clone()
}

/// Some columns with values of many forms; `label`, which may not be null, when `whole`.
fn cells(random: &mut StdRng, whole: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    if whole || random.random_bool(0.4) {
        cells.push(cell(
            "label",
            text(["a", "b", "quo\"te's \\ 漢字 😀"][random.random_range(0..3)]),
        ));
    }
    let choices: [(&str, Vec<Value>); 9] = [
        (
            "amount",
            [0, -7, 19_900, 1 << 40, -3, 77, 5, i64::MAX - 9]
                .map(Value::Int)
                .to_vec(),
        ),
        ("ratio", [0.1, -2.5, 1e300].map(Value::Float).to_vec()),
        ("done", vec![Value::Boolean(true)]),
        (
            "price",
            ["1.50", "-0.001", "123456789012345678901234567890"]
                .map(text)
                .to_vec(),
        ),
        (
            "at",
            ["2024-02-29T23:59:59.123456789Z", "1969-12-31T23:59:59Z"]
                .map(text)
                .to_vec(),
        ),
        ("day", vec![text("2024-02-29")]),
        (
            "data",
            vec![text(
                "{\"a\": [1, 9007199254740993, null, \"\\ud83d\\ude00\"]}",
            )],
        ),
        ("raw", vec![Value::Bytes(vec![0, 255, 92, 39])]),
        (
            "tags",
            vec![Value::Texts(vec![
                "x,y".into(),
                "{\"q\\".into(),
                String::new(),
            ])],
        ),
    ];
    let others: Vec<Cell> = choices
        .iter()
        .map(|(column, values)| cell(column, maybe(random, values)))
        .collect();
    cells.extend(others.into_iter().filter(|_| random.random_bool(0.4)));
    cells
}

fn change(random: &mut StdRng) -> Change {
    match random.random_range(0..10) {
        0 => Change::Insert(cells(random, true)),
        1 => Change::Put(cells(random, true)),
        2 => Change::Merge(cells(random, true)),
        3 | 4 => Change::Patch(cells(random, false)),
        5 | 6 => {
            // Most fit wherever they are added; the last two seldom do.
            let amounts = [
                "1",
                "-1",
                "250",
                "-19900",
                "3e2",
                "7.0",
                "9223372036854775807",
                "-18446744073709551615",
            ];
            let common = if random.random_ratio(1, 8) {
                amounts.len()
            } else {
                amounts.len() - 2
            };
            let mut cells = vec![cell(
                "amount",
                text(amounts[random.random_range(0..common)]),
            )];
            if random.random_bool(0.5) {
                cells.push(cell("ratio", Value::Float(0.1)));
                cells.push(cell("price", text("0.05")));
            }
            Change::Add(cells)
        }
        7 => Change::Merge(cells(random, false)),
        8 => Change::Remove,
        _ => Change::RemoveWhere(match random.random_range(0..3) {
            0 => vec![cell("label", text("a"))],
            1 => vec![cell("amount", Value::Null)],
            _ => vec![cell("ratio", Value::Float(0.1)), cell("done", Value::Null)],
        }),
    }
}

/// Applies writes in one transaction; whether they passed.
async fn apply(
    site: &mut Site,
    shapes: &Shapes,
    schema: &str,
    writes: Vec<Write>,
) -> Result<(), String> {
    apply_known(site, shapes, schema, writes, &Known::default()).await
}

/// The same after look-ups.
async fn apply_known(
    site: &mut Site,
    shapes: &Shapes,
    schema: &str,
    writes: Vec<Write>,
    known: &Known,
) -> Result<(), String> {
    let folded = folded_known(shapes, writes, known)?;
    let mut transaction = site.connection.begin().await.expect("begun");
    match write::apply(&mut transaction, &name(schema), shapes, &folded).await {
        Ok(_) => {
            transaction.commit().await.expect("committed");
            Ok(())
        }
        Err(error) => {
            assert_ne!(
                error.class(),
                projector_host::error::Class::Transient,
                "{error}"
            );
            Err(error.to_string())
        }
    }
}

#[tokio::test]
async fn a_folded_batch_leaves_the_rows_of_its_writes_one_by_one() {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    let generation = site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    for copy in ["alone", "looked_up", "at_once"] {
        let copy = format!(
            "CREATE SCHEMA {copy}; CREATE TABLE {copy}.things (LIKE mirror_g1.things INCLUDING ALL)"
        );
        site.connection
            .execute(sqlx::AssertSqlSafe(copy))
            .await
            .expect("a copy");
    }
    let source = |schema| Source {
        schema: name(schema),
        control: name("projector"),
        key: generation.key.clone(),
    };
    let (mut passed, mut steps) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(seed);
        let keys = random.random_range(1..4);
        let writes: Vec<Write> = (0..WRITES)
            .map(|_| write(0, random.random_range(0..keys), change(&mut random)))
            .collect();
        let mut alone = Ok(());
        for write in &writes {
            alone = apply(&mut site, &shapes, "alone", vec![write.clone()]).await;
            if alone.is_err() {
                break;
            }
        }
        let together = apply(&mut site, &shapes, "mirror_g1", writes.clone()).await;
        assert_eq!(
            alone.is_ok(),
            together.is_ok(),
            "seed {seed}: alone {alone:?}, together {together:?}\n{writes:#?}"
        );
        let found = known(&mut site, &shapes, &source("looked_up"), keys).await;
        let looked = apply_known(&mut site, &shapes, "looked_up", writes.clone(), &found).await;
        assert_eq!(alone.is_ok(), looked.is_ok(), "seed {seed}: {looked:?}");
        let mut at_once = Ok(());
        for part in writes.chunks(3) {
            let found = match random.random() {
                true => known(&mut site, &shapes, &source("at_once"), keys).await,
                false => Known::default(),
            };
            let step = step(steps, steps + 1);
            let done = site
                .at_once(&shapes, "at_once", &step, part.to_vec(), &found)
                .await;
            at_once = match done {
                Some(Ok(stood)) => {
                    assert!(stood, "the checkpoint stands elsewhere");
                    steps += 1;
                    Ok(())
                }
                // As the loop does it: what is refused is applied once more.
                Some(Err(_)) | None => {
                    apply_known(&mut site, &shapes, "at_once", part.to_vec(), &found).await
                }
            };
            if at_once.is_err() {
                break;
            }
        }
        assert_eq!(alone.is_ok(), at_once.is_ok(), "seed {seed}: {at_once:?}");
        if alone.is_err() {
            // The batch left nothing; the single writes before the bad one stay.
            for copy in ["alone", "at_once"] {
                let even = format!(
                    "TRUNCATE {copy}.things; INSERT INTO {copy}.things SELECT * FROM mirror_g1.things"
                );
                site.connection
                    .execute(sqlx::AssertSqlSafe(even))
                    .await
                    .expect("even");
            }
            continue;
        }
        passed += 1;
        assert_eq!(
            site.rows("mirror_g1.things"),
            site.rows("alone.things"),
            "seed {seed}\n{writes:#?}"
        );
        assert_eq!(
            site.rows("looked_up.things"),
            site.rows("alone.things"),
            "seed {seed}, with look-ups\n{writes:#?}"
        );
        assert_eq!(
            site.rows("at_once.things"),
            site.rows("alone.things"),
            "seed {seed}, at once\n{writes:#?}"
        );
        assert_eq!(
            site.rows("read_model.things"),
            site.rows("alone.things"),
            "the view shows the generation"
        );
    }
    assert!(
        passed > SEEDS / 4,
        "only {passed} batches passed: nothing was tested"
    );
    assert!(steps > 150, "only {steps} parts were one statement");
}

/// Looks up whether rows 0 to `keys` are there.
async fn known(site: &mut Site, shapes: &Shapes, source: &Source, keys: i64) -> Known {
    let keys: Vec<(usize, Key)> = (0..keys).map(|number| key(shapes, number)).collect();
    let found = lookup::rows(&mut site.connection, source, shapes, &keys)
        .await
        .expect("answered");
    let mut known = Known::default();
    for ((table, key), (row, _)) in keys.into_iter().zip(found) {
        known.insert(table, key, row.is_some());
    }
    known
}

#[tokio::test]
async fn rows_that_are_not_as_they_were_looked_up_refuse_the_batch_for_the_moment() {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    let row = |number| write(0, number, Change::Merge(vec![cell("label", text("l"))]));
    apply(&mut site, &shapes, "mirror_g1", vec![row(1)])
        .await
        .expect("written");
    let before = site.rows("mirror_g1.things");
    for (number, present) in [(1, false), (2, true)] {
        let mut wrong = Known::default();
        let (table, key) = key(&shapes, number);
        wrong.insert(table, key, present);
        let folded = folded_known(&shapes, vec![row(number)], &wrong).expect("good writes");
        let mut transaction = site.connection.begin().await.expect("begun");
        let refused = write::apply(&mut transaction, &name("mirror_g1"), &shapes, &folded)
            .await
            .expect_err("the row is not as it was looked up");
        assert!(matches!(refused, Error::Changed { .. }), "{refused}");
        assert_eq!(refused.class(), projector_host::error::Class::Transient);
        transaction.rollback().await.expect("rolled back");
    }
    assert_eq!(site.rows("mirror_g1.things"), before);
}

#[tokio::test]
async fn an_overflow_names_table_and_column_and_leaves_nothing() {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    let put = write(
        0,
        1,
        Change::Put(vec![
            cell("label", text("l")),
            cell("amount", Value::Int(i64::MAX)),
        ]),
    );
    apply(&mut site, &shapes, "mirror_g1", vec![put])
        .await
        .expect("written");
    let before = site.rows("mirror_g1.things");
    let up = write(0, 1, Change::Add(vec![cell("amount", Value::Int(1))]));
    let down = write(0, 1, Change::Add(vec![cell("amount", Value::Int(-1))]));
    // The end would fit; a value between does not.
    let refused = apply(&mut site, &shapes, "mirror_g1", vec![up, down.clone()])
        .await
        .expect_err("an overflow");
    assert!(
        refused.contains("\"things\"") && refused.contains("\"amount\""),
        "{refused}"
    );
    assert_eq!(site.rows("mirror_g1.things"), before);
    apply(&mut site, &shapes, "mirror_g1", vec![down])
        .await
        .expect("fits");
}

#[tokio::test]
async fn bad_writes_are_refused_before_any_sql_and_name_what_is_wrong() {
    let shapes = Shapes::new(&manifest("mirror", "things").tables).expect("good defaults");
    let check = |write: Write, expected: &[&str]| {
        let refused = folded(&shapes, vec![write]).expect_err("refused");
        for part in expected {
            assert!(refused.contains(part), "{refused:?} should say {part:?}");
        }
    };
    let put = |cells: Vec<Cell>| write(0, 1, Change::Put(cells));
    check(
        put(vec![]),
        &["position 1", "\"things\"", "\"label\"", "not given"],
    );
    check(
        put(vec![cell("label", Value::Null)]),
        &["\"label\"", "null"],
    );
    check(
        put(vec![cell("label", text("a\0b"))]),
        &["\"label\"", "NUL"],
    );
    check(
        put(vec![cell("label", text("a")), cell("amount", text("12.5"))]),
        &["\"amount\"", "bigint"],
    );
    check(
        put(vec![cell("label", text("a")), cell("label", text("b"))]),
        &["\"label\"", "twice"],
    );
    check(
        put(vec![cell("label", text("a")), cell("nope", text("b"))]),
        &["\"nope\"", "no such column"],
    );
    check(
        write(0, 1, Change::Add(vec![cell("label", Value::Int(1))])),
        &["\"label\"", "numeric columns"],
    );
    check(write(0, 1, Change::RemoveWhere(vec![])), &["every row"]);
    check(write(7, 1, Change::Remove), &["event 7", "batch of 1"]);
    let mut foreign = write(0, 1, Change::Remove);
    foreign.target.table = "orders".to_owned();
    check(foreign, &["\"orders\"", "owns no such table", "things"]);
    let mut short = write(0, 1, Change::Remove);
    short.target.key.pop();
    check(short, &["\"number\"", "missing in the key"]);
}

#[tokio::test]
async fn look_ups_see_committed_rows_and_the_checkpoint_of_their_snapshot() {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    let generation = site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    let all = vec![
        cell("label", text("l")),
        cell("amount", Value::Int(i64::MIN)),
        cell("ratio", Value::Float(0.1)),
        cell("price", text("1.50")),
        cell("at", text("2024-02-29T23:59:59.123456789Z")),
        cell("day", text("2024-02-29")),
        cell("data", text("{\"a\": 1}")),
        cell("raw", Value::Bytes(vec![0, 255])),
        cell("tags", Value::Texts(vec!["x,y".into(), "{\"q\\".into()])),
    ];
    apply(
        &mut site,
        &shapes,
        "mirror_g1",
        vec![write(0, 1, Change::Put(all.clone()))],
    )
    .await
    .expect("written");
    let key = |number| key(&shapes, number);
    let source = Source {
        schema: generation.schema,
        control: name("projector"),
        key: generation.key,
    };
    let found = lookup::rows(&mut site.connection, &source, &shapes, &[key(2), key(1)])
        .await
        .expect("answered");
    assert_eq!(found[0].0, None);
    assert_eq!(found[1].1.0, 0, "the checkpoint stands at the beginning");
    let row = found[1].0.as_ref().expect("the row");
    let values: Vec<Value> = row
        .iter()
        .map(projector_host::read_model::datum::Datum::to_value)
        .collect();
    let expected = vec![
        text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        Value::Int(1),
        text("l"),
        Value::Int(i64::MIN),
        Value::Float(0.1),
        Value::Boolean(false),
        text("1.50"),
        text("2024-02-29T23:59:59.123456Z"),
        text("2024-02-29"),
        text("{\"a\": 1}"),
        Value::Bytes(vec![0, 255]),
        Value::Texts(vec!["x,y".into(), "{\"q\\".into()]),
    ];
    assert_eq!(format!("{values:?}"), format!("{expected:?}"));
}

#[tokio::test]
async fn a_constraint_of_the_database_is_poison_and_a_lost_table_is_not() {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    site.connection
        .execute("ALTER TABLE mirror_g1.things ADD CONSTRAINT short CHECK (length(label) < 3)")
        .await
        .expect("added");
    let put = || {
        vec![write(
            0,
            1,
            Change::Put(vec![cell("label", text("too long"))]),
        )]
    };
    let refused = apply(&mut site, &shapes, "mirror_g1", put())
        .await
        .expect_err("refused");
    assert!(refused.contains("short"), "{refused}");
    site.connection
        .execute("DROP TABLE mirror_g1.things CASCADE")
        .await
        .expect("dropped");
    let folded = folded(&shapes, put()).expect("fine in itself");
    match write::apply(&mut site.connection, &name("mirror_g1"), &shapes, &folded).await {
        Err(Error::Refused { source, .. }) => {
            assert_eq!(
                DatabaseError::class(&source),
                projector_host::error::Class::Transient
            );
        }
        other => panic!("expected a refused statement, found {other:?}"),
    }
    assert_eq!(events(1).len(), 1);
}
