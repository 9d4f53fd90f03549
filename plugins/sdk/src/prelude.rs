//! What nearly every projection uses: `use projector_sdk::prelude::*;`.

pub use crate::{
    ColumnType, Config, Description, Event, Failure, Integer, Key, Keys, Projection, Row, Rows,
    Table, Timestamp, Uuid, Value,
};
