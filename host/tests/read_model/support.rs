//! A migrated read model with a term, and a table with a column of each type.

use projector_host::database::identifier::Identifier;
use projector_host::database::migrate::{self, Target};
use projector_host::database::session::{Database, Purpose};
use projector_host::event_store::event::{Anchor, Event, Position, Subscription};
use projector_host::guest::bindings::{Cell, Change, RowKey, Value, Write};
use projector_host::guest::writes::{Keys, Writes};
use projector_host::plugin::manifest::{Column, ColumnType, Manifest, Table};
use projector_host::read_model::check::{Key, Shapes, check, lookup_keys};
use projector_host::read_model::checkpoint::{Checkpoints, Fence, GenerationKey, Step};
use projector_host::read_model::fold::{Folded, Known, fold};
use projector_host::read_model::schema::{self, Generation};
use projector_host::read_model::write::Single;
use projector_testkit::{TestDatabase, test_database};
use sqlx::Executor as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

pub const DIGEST: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

pub struct Site {
    pub test: TestDatabase,
    pub database: Database,
    pub connection: PgConnection,
    pub checkpoints: Checkpoints,
}

pub fn name(text: &str) -> Identifier {
    Identifier::new(text).expect("a good name")
}

impl Site {
    pub async fn new() -> Self {
        let test = test_database().expect("a database");
        let database = Database::new("read model", test.url().to_owned().into(), "test", "tests");
        migrate::up(&database, &Target::read_model(name("projector")))
            .await
            .expect("migrated");
        let mut connection = database.connect(&Purpose::Write).await.expect("connected");
        connection
            .execute(
                "INSERT INTO projector.leadership (\"group\", term, term_id, node, host, backend_pid, lock_key, lock_database) \
                 VALUES ('default', 1, '11111111-1111-1111-1111-111111111111', 'n', 'h', 1, '1', 'd')",
            )
            .await
            .expect("a term");
        let checkpoints = Checkpoints::new(name("projector"), fence(1));
        Self {
            test,
            database,
            connection,
            checkpoints,
        }
    }

    pub async fn ensure(&mut self, manifest: &Manifest) -> Result<Generation, schema::Error> {
        schema::ensure(
            &mut self.connection,
            &self.checkpoints,
            &name("read_model"),
            schema::Filler {
                manifest,
                sha256: DIGEST,
                bytes: b"no plugin",
            },
            schema::Start::default(),
        )
        .await
    }

    /// Writes as one statement, from the checkpoint of generation 1 of `mirror`. None when they are no batch for that.
    pub fn single(
        &self,
        shapes: &Shapes,
        schema: &str,
        step: &Step,
        writes: Vec<Write>,
        known: &Known,
    ) -> Option<Single> {
        let folded = folded_known(shapes, writes, known).ok()?;
        let key = GenerationKey {
            projection: "mirror".to_owned(),
            generation: 1,
        };
        let fence = self.checkpoints.advancing(&key, step).expect("encoded");
        Single::new(fence, &name(schema), shapes, &folded)
    }

    /// The same, committed: whether the checkpoint stood where it must, or why the server refused it.
    pub async fn at_once(
        &mut self,
        shapes: &Shapes,
        schema: &str,
        step: &Step,
        writes: Vec<Write>,
        known: &Known,
    ) -> Option<Result<bool, String>> {
        let single = self.single(shapes, schema, step, writes, known)?;
        let done = single.commit(&mut self.connection).await;
        Some(done.map_err(|error| error.to_string()))
    }

    pub fn rows(&self, table: &str) -> String {
        self.test
            .psql(&format!("SELECT to_jsonb(t) FROM {table} t ORDER BY 1"))
            .expect("rows")
    }
}

/// The key of a row of `things`.
pub fn key(shapes: &Shapes, number: i64) -> (usize, Key) {
    let named = Keys::from_list(&[write(0, number, Change::Remove).target]).expect("not large");
    let mut keys = lookup_keys(shapes, &named).expect("a good key");
    keys.pop().expect("one")
}

pub fn step(from: i64, to: i64) -> Step {
    Step {
        from: Position(from),
        to: Position(to),
        last_event: Some(Anchor {
            position: Position(to),
            id: "id".to_owned(),
        }),
        revision: 0,
    }
}

pub fn fence(term: i64) -> Fence {
    Fence {
        group: "default".to_owned(),
        term,
        term_id: Uuid::from_u128(0x11111111_1111_1111_1111_111111111111),
    }
}

pub fn manifest(projection: &str, table: &str) -> Manifest {
    let column = |name: &str, column_type, nullable, default: Option<&str>| Column {
        name: Identifier::new(name).expect("a good name"),
        column_type,
        nullable,
        default: default.map(str::to_owned),
    };
    use ColumnType as T;
    Manifest {
        name: projection.to_owned(),
        version: "1.0.0".to_owned(),
        subscription: Subscription::default(),
        reads: true,
        tables: vec![Table {
            name: name(table),
            columns: vec![
                column("merchant", T::Uuid, false, None),
                column("number", T::BigInt, false, None),
                column("label", T::Text, false, None),
                column("amount", T::BigInt, true, Some("5")),
                column("ratio", T::Double, true, None),
                column("done", T::Boolean, true, Some("false")),
                column("price", T::Numeric, true, None),
                column("at", T::Timestamptz, true, None),
                column("day", T::Date, true, None),
                column("data", T::Jsonb, true, None),
                column("raw", T::Bytea, true, None),
                column("tags", T::TextArray, true, None),
            ],
            primary_key: vec![0, 1],
            indexes: vec![vec![2], vec![7, 0]],
        }],
    }
}

pub fn cell(column: &str, value: Value) -> Cell {
    Cell {
        column: column.to_owned(),
        value,
    }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub fn write(event: u32, number: i64, change: Change) -> Write {
    let key = match change {
        Change::RemoveWhere(_) => Vec::new(),
        _ => vec![
            cell("merchant", text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")),
            cell("number", Value::Int(number)),
        ],
    };
    Write {
        event,
        target: RowKey {
            table: "things".to_owned(),
            key,
        },
        change,
    }
}

pub fn events(count: usize) -> Vec<Event> {
    (0..count)
        .map(|at| Event {
            position: Position(i64::try_from(at).expect("small") + 1),
            id: Uuid::from_u128(at as u128).to_string(),
            stream: "s".to_owned(),
            version: 1,
            event_type: "T".to_owned(),
            schema_version: 1,
            recorded_at: 0,
            data: "{}".to_owned(),
            metadata: "{}".to_owned(),
        })
        .collect()
}

/// Checked and folded as the loop does it, without look-ups.
pub fn folded(shapes: &Shapes, writes: Vec<Write>) -> Result<Folded, String> {
    folded_known(shapes, writes, &Known::default())
}

/// Checked and folded as the loop does it, after these look-ups.
pub fn folded_known(shapes: &Shapes, writes: Vec<Write>, known: &Known) -> Result<Folded, String> {
    let events = events(writes.len().max(1));
    let writes = Writes::from_list(&writes).expect("not large");
    let checked = check(shapes, &events, &writes).map_err(|fault| fault.to_string())?;
    let position = |event: usize| events[event].position.0;
    Ok(fold(shapes, &position, checked, known))
}
