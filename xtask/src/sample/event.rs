//! One event, as a line of the file that `projector-host append` takes.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// One event before it is written.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its stream.
    pub stream: String,
    /// Its name.
    pub name: &'static str,
    /// Its fields.
    pub data: Map<String, Value>,
    /// Who wrote it, for the metadata.
    pub source: &'static str,
    /// Its own identifier: appending the file twice adds nothing.
    pub id: String,
}

impl Event {
    /// As one line of JSON.
    pub fn line(&self) -> String {
        json!({
            "stream": self.stream,
            "type": self.name,
            "data": self.data,
            "metadata": {"source": self.source},
            "id": self.id,
        })
        .to_string()
    }
}

/// The fields of an event in the order given.
pub fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// A time as producers write it: UTC with `Z`.
pub fn time(at: Timestamp) -> Value {
    Value::from(at.to_string())
}
