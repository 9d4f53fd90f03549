//! What a projection reads does not depend on how events are cut into batches, for every mix of writes.

use projector_sdk::prelude::*;
use projector_sdk::testing::{Harness, event};
use serde::Deserialize;

/// Does what each event says to a handful of rows, and notes down what it reads.
struct Script;

#[derive(Deserialize)]
struct Steps {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    verb: String,
    id: i64,
    amount: i64,
    /// Named before the batch, or asked for out of the blue.
    announced: bool,
}

fn thing(id: i64) -> Key {
    Key::new("things").part("id", id)
}

/// Never announced.
fn other(id: i64) -> Key {
    Key::new("others").part("id", id)
}

/// Notes down what a row reads now.
fn note(key: &Key, step: usize, rows: &mut Rows<'_>) -> Result<(), Failure> {
    let seen = rows.get(key)?.map(|row| row.to_json(|_| true));
    rows.table("seen")
        .key("position", Value::Position)
        .key("step", step as i64)
        .set("row", seen)
        .insert();
    Ok(())
}

impl Projection for Script {
    type Input = Vec<Step>;

    fn new(_: &Config) -> Result<Self, String> {
        Ok(Self)
    }

    fn describe(&self) -> Description {
        Description::new("script", "1")
            .reads()
            .table(
                Table::new("things")
                    .column("id", ColumnType::BigInt)
                    .column_or("count", ColumnType::BigInt, "3")
                    .nullable("price", ColumnType::Numeric)
                    .nullable("group", ColumnType::Text)
                    .nullable("doc", ColumnType::Jsonb)
                    .nullable("at", ColumnType::BigInt)
                    .primary_key(["id"]),
            )
            .table(
                Table::new("others")
                    .column("id", ColumnType::BigInt)
                    .column("count", ColumnType::BigInt)
                    .primary_key(["id"]),
            )
            .table(
                Table::new("seen")
                    .column("position", ColumnType::BigInt)
                    .column("step", ColumnType::BigInt)
                    .nullable("row", ColumnType::Text)
                    .primary_key(["position", "step"]),
            )
    }

    fn decode(&self, event: &Event) -> Result<Option<Vec<Step>>, Failure> {
        let steps: Steps = event.data()?;
        Ok(Some(steps.steps))
    }

    fn lookups(&self, _: &Event, steps: &Vec<Step>, keys: &mut Keys) {
        for step in steps.iter().filter(|step| step.announced) {
            keys.add(thing(step.id));
        }
    }

    fn handle(&self, _: &Event, steps: Vec<Step>, rows: &mut Rows<'_>) -> Result<(), Failure> {
        for (number, step) in steps.into_iter().enumerate() {
            let group = format!("g{}", step.amount.rem_euclid(3));
            let row = rows.row(&thing(step.id));
            match step.verb.as_str() {
                "read" => note(&thing(step.id), number, rows)?,
                "other-read" => note(&other(step.id), number, rows)?,
                "other-add" => rows.row(&other(step.id)).set("count", step.amount).add(),
                "insert" => row.set("group", group).set("at", Value::Position).insert(),
                "put" => row.set("price", "1.50").set("group", group).put(),
                "merge" => row
                    .set("doc", r#"{"b":1e2, "a":[]}"#)
                    .set("group", group)
                    .merge(),
                "patch" => row
                    .set("group", Value::Null)
                    .set("at", Value::Position)
                    .patch(),
                "add" => row
                    .set("count", step.amount)
                    .set("price", format!("{}.25", step.amount))
                    .add(),
                "remove" => row.remove(),
                "sweep" => rows.table("things").set("group", group).remove_where(),
                "sweep-null" => rows
                    .table("things")
                    .set("group", Value::Null)
                    .remove_where(),
                other => return Err(Failure::rejected("unknown-verb", other)),
            }
        }
        Ok(())
    }
}

/// A small generator of numbers: the same ones on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn script(seed: u64, verbs: &[&str], keys: u64) -> Vec<Event> {
    let mut numbers = Numbers(seed);
    let step = |numbers: &mut Numbers| {
        let verb = verbs[numbers.below(verbs.len() as u64) as usize];
        let (id, amount) = (numbers.below(keys), numbers.below(20) as i64 - 10);
        let announced = numbers.below(3) > 0;
        format!(r#"{{"verb":"{verb}","id":{id},"amount":{amount},"announced":{announced}}}"#)
    };
    (0..300)
        .map(|_| {
            let steps: Vec<String> = (0..=numbers.below(4)).map(|_| step(&mut numbers)).collect();
            event(
                "script",
                "Steps",
                &format!(r#"{{"steps":[{}]}}"#, steps.join(",")),
            )
        })
        .collect()
}

const ALL: [&str; 15] = [
    "read",
    "read",
    "read",
    "insert",
    "put",
    "merge",
    "patch",
    "add",
    "add",
    "remove",
    "sweep",
    "sweep-null",
    "other-read",
    "other-add",
    "other-add",
];

#[test]
fn every_mix_of_writes_reads_the_same_in_every_batch_size() {
    for seed in 0..40 {
        let tables = Harness::<Script>::new("{}")
            .project(&script(seed, &ALL, 4))
            .rows();
        assert!(
            tables.rows("seen").any(|row| row.text("row").is_some()),
            "seed {seed} read no row"
        );
    }
}

#[test]
fn many_keys_are_looked_up_in_several_calls() {
    let tables = Harness::<Script>::new("{}")
        .project(&script(1, &["read", "put"], 5_000))
        .rows();
    assert!(tables.rows("things").count() > 200);
}

#[test]
fn a_failure_names_its_event_and_keeps_what_came_before() {
    let steps = |verb: &str| {
        let steps =
            format!(r#"{{"steps":[{{"verb":"{verb}","id":1,"amount":1,"announced":true}}]}}"#);
        event("script", "Steps", &steps)
    };
    let events = [
        steps("put"),
        event(
            "script",
            "Steps",
            r#"{"steps":[{"verb":"nonsense","id":1,"amount":1,"announced":true}]}"#,
        ),
        event("script", "Steps", "{"),
        steps("remove"),
    ];
    let (stop, tables) = Harness::<Script>::new("{}").project(&events).stopped();
    assert_eq!((stop.position, stop.code.as_str()), (2, "unknown-verb"));
    assert_eq!(tables.rows("things").count(), 1);

    let (stop, tables) = Harness::<Script>::new("{}")
        .project(&[steps("put"), events[2]])
        .stopped();
    assert_eq!((stop.position, stop.code.as_str()), (2, "malformed-json"));
    assert_eq!(tables.rows("things").count(), 1);
}

#[test]
fn a_write_that_does_not_fit_is_refused_with_table_and_column() {
    let mut events = script(3, &["put"], 2);
    events.truncate(3);
    events.push(event(
        "script",
        "Steps",
        r#"{"steps":[
            {"verb":"add","id":1,"amount":9223372036854775807,"announced":true},
            {"verb":"add","id":1,"amount":9223372036854775807,"announced":true},
            {"verb":"remove","id":1,"amount":0,"announced":true}
        ]}"#,
    ));
    let (stop, _) = Harness::<Script>::new("{}").project(&events).stopped();
    assert_eq!((stop.position, stop.code.as_str()), (4, "bad-write"));
    assert!(
        stop.message.contains("`things`") && stop.message.contains("`count`"),
        "{}",
        stop.message
    );
}
