//! Reads the parsed file table by table, and collects every fault on the way.
//!
//! Promises: a fault never ends the reading; a key that nobody asked for is reported with a suggestion; where
//! each value came from is remembered. A value that was not taken counts as unsound, so that rules between
//! keys do not complain about it a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::environment::Layers;
use super::fault::{Excerpt, Fault, MALFORMED, Place, Severity, UNKNOWN_KEY};
use super::value::{Problem, Value, closest};
use crate::error::Code;

/// Where an effective value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A line of the file.
    File {
        /// From 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag(String),
    /// A file that the configuration names.
    SecretFile(String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { line } => write!(f, "file, line {line}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::SecretFile(path) => write!(f, "secret file {path}"),
        }
    }
}

/// The state of reading one file.
pub(super) struct Reading<'a> {
    file: &'a str,
    text: &'a str,
    layers: &'a Layers,
    pub(super) faults: Vec<Fault>,
    pub(super) sources: BTreeMap<String, Source>,
    spans: BTreeMap<String, Range<usize>>,
    unsound: BTreeSet<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(file: &'a str, text: &'a str, layers: &'a Layers) -> Self {
        Self {
            file,
            text,
            layers,
            faults: Vec::new(),
            sources: BTreeMap::new(),
            spans: BTreeMap::new(),
            unsound: BTreeSet::new(),
        }
    }

    /// The outermost table.
    pub(super) fn root<'r>(&'r mut self, entries: &'a DeTable<'a>) -> Table<'r, 'a> {
        Table {
            reading: self,
            path: String::new(),
            entries: Some(entries),
            known: Vec::new(),
        }
    }

    /// The place of a byte range.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        Place::at(self.file, self.text, span)
    }

    /// The place of a key's value, or of the file when the value does not stand in it.
    pub(super) fn place_of(&self, path: &str) -> Place {
        match (self.sources.get(path), self.spans.get(path)) {
            (Some(Source::Environment(_) | Source::Flag(_)), _) => {
                Place::Named(self.sources[path].to_string())
            }
            (_, Some(span)) => self.place(span),
            _ => Place::Named(self.file.to_owned()),
        }
    }

    /// Whether this key was set in the file, faulty or not.
    pub(super) fn is_in_file(&self, path: &str) -> bool {
        self.spans.contains_key(path)
    }

    /// Reports a rule between keys, unless one of them is at fault already.
    pub(super) fn rule(&mut self, code: Code, keys: &[&str], message: String, hint: &str) {
        if keys.iter().any(|key| self.unsound.contains(*key)) {
            return;
        }
        let place = keys
            .iter()
            .find(|key| self.sources.contains_key(**key))
            .map_or_else(
                || Place::Named(self.file.to_owned()),
                |key| self.place_of(key),
            );
        self.faults
            .push(Fault::new(code, place, message).hint(hint));
    }

    /// Lowers the last fault to a warning.
    pub(super) fn warn(&mut self, code: Code, keys: &[&str], message: String, hint: &str) {
        let before = self.faults.len();
        self.rule(code, keys, message, hint);
        for fault in &mut self.faults[before..] {
            fault.severity = Severity::Warning;
        }
    }

    fn problem(&mut self, path: &str, place: Place, problem: Problem) {
        self.unsound.insert(path.to_owned());
        let mut fault = Fault::new(problem.code, place, format!("`{path}` {}", problem.message));
        fault.hint = problem.hint;
        self.faults.push(fault);
    }
}

/// One table of the file, present or not.
pub(super) struct Table<'r, 'a> {
    reading: &'r mut Reading<'a>,
    path: String,
    entries: Option<&'a DeTable<'a>>,
    known: Vec<&'static str>,
}

impl<'a> Table<'_, 'a> {
    /// The value of a key, or its default.
    pub(super) fn value<T: Value>(&mut self, key: &'static str, default: T) -> T {
        self.checked(key, default, |_| Ok(()))
    }

    /// The value of a key when it passes a check, or its default.
    pub(super) fn checked<T: Value>(
        &mut self,
        key: &'static str,
        default: T,
        check: impl Fn(&T) -> Result<(), Problem>,
    ) -> T {
        self.optional(key, check).unwrap_or(default)
    }

    /// The value of a key that has no default.
    pub(super) fn optional<T: Value>(
        &mut self,
        key: &'static str,
        check: impl Fn(&T) -> Result<(), Problem>,
    ) -> Option<T> {
        let path = self.path_of(key);
        let read = |value: &DeValue<'_>| T::read(value).and_then(|v| check(&v).map(|()| v));
        let mut found = None;
        if let Some(value) = self.entry(key) {
            match read(value.get_ref()) {
                Ok(value) => found = Some(value),
                Err(problem) => {
                    let place = match self.reading.place(&value.span()) {
                        // Whatever was pasted in place of a variable's name may be the secret itself.
                        Place::File(at) if key.ends_with("_env") => {
                            Place::File(Box::new(hidden(*at)))
                        }
                        place => place,
                    };
                    self.reading.problem(&path, place, problem);
                }
            }
        }
        let layers = self.reading.layers;
        if let Some(layer) = layers.get(path.as_str()) {
            self.reading
                .sources
                .insert(path.clone(), layer.source.clone());
            match read(&DeValue::String(layer.text.as_str().into())) {
                Ok(value) => found = Some(value),
                Err(problem) => {
                    let place = Place::Named(layer.source.to_string());
                    self.reading.problem(&path, place, problem);
                }
            }
        }
        found
    }

    /// A table inside this one, such as `[plugins.limits]`.
    pub(super) fn section(&mut self, key: &'static str) -> Table<'_, 'a> {
        let path = self.path_of(key);
        let entries = self.entry(key).and_then(|value| {
            let entries = value.get_ref().as_table();
            if entries.is_none() {
                let problem = Problem::kind("a table", value.get_ref());
                let place = self.reading.place(&value.span());
                self.reading.problem(&path, place, problem);
            }
            entries
        });
        Table {
            reading: self.reading,
            path,
            entries,
            known: Vec::new(),
        }
    }

    /// Whether a table of this name stands here.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries
            .is_some_and(|entries| entries.contains_key(key))
    }

    /// Tables in a list, such as `[[projection]]`, in order.
    pub(super) fn each<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(Table<'_, 'a>) -> T,
    ) -> Vec<T> {
        let path = self.path_of(key);
        let Some(value) = self.entry(key) else {
            return Vec::new();
        };
        let items: &'a [Spanned<DeValue<'a>>] = match value.get_ref() {
            DeValue::Array(items) => items,
            other => {
                let problem = Problem::kind("a list of tables", other)
                    .hint(format!("write [[{path}]] with two brackets"));
                let place = self.reading.place(&value.span());
                self.reading.problem(&path, place, problem);
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.reading.spans.insert(path.clone(), item.span());
            match item.get_ref() {
                DeValue::Table(entries) => all.push(read(Table {
                    reading: self.reading,
                    path,
                    entries: Some(entries),
                    known: Vec::new(),
                })),
                other => {
                    let problem = Problem::kind("a table", other);
                    let place = self.reading.place(&item.span());
                    self.reading.problem(&path, place, problem);
                }
            }
        }
        all
    }

    /// Tables under names that the user chose, such as the entries of `[locks.registry]`.
    pub(super) fn named<T>(
        self,
        mut read: impl FnMut(&str, Table<'_, 'a>) -> T,
    ) -> Vec<(String, T)> {
        let mut all = Vec::new();
        for (name, value) in self.entries.into_iter().flatten() {
            let name: &str = name.get_ref();
            let path = format!("{}.{name}", self.path);
            self.reading.spans.insert(path.clone(), value.span());
            let entries = value.get_ref().as_table();
            if entries.is_none() {
                let problem = Problem::kind("a table such as {}", value.get_ref());
                let place = self.reading.place(&value.span());
                self.reading.problem(&path, place, problem);
                continue;
            }
            let table = Table {
                reading: self.reading,
                path,
                entries,
                known: Vec::new(),
            };
            all.push((name.to_owned(), read(name, table)));
        }
        all
    }

    /// A key that is known and looked at elsewhere.
    pub(super) fn skip(&mut self, key: &'static str) {
        let _ = self.entry(key);
    }

    /// Reports a problem of this table as a whole.
    pub(super) fn problem(&mut self, problem: Problem) {
        let path = self.path.clone();
        let place = self.reading.place_of(&path);
        self.reading.problem(&path, place, problem);
    }

    /// Ends the table: whatever nobody asked for is unknown.
    pub(super) fn finish(self) {
        for (key, value) in self.entries.into_iter().flatten() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            // The value may be a secret that was put into the wrong place.
            let place = match self.reading.place(&key.span()) {
                Place::File(at) => Place::File(Box::new(at.cut())),
                named => named,
            };
            let inside = match self.path.as_str() {
                "" => "at the top of the file".to_owned(),
                path if path.contains('[') => format!(
                    "in [[{}]]",
                    path.replace(|c: char| c == '[' || c == ']' || c.is_ascii_digit(), "")
                ),
                path => format!("in [{path}]"),
            };
            let kind = if value.get_ref().is_table() {
                "table"
            } else {
                "key"
            };
            let message = format!("unknown {kind} `{name}` {inside}");
            let hint = match closest(name, self.known.iter().copied()) {
                _ if name == "url" && self.known.contains(&"url_env") => {
                    "name the environment variable that holds the URL with `url_env`, or a file with `url_file`".to_owned()
                }
                Some(word) => format!("did you mean `{word}`?"),
                None => {
                    let mut known = self.known.clone();
                    known.sort_unstable();
                    format!("known here: {}", known.join(", "))
                }
            };
            self.reading
                .faults
                .push(Fault::new(UNKNOWN_KEY, place, message).hint(hint));
        }
    }

    fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    fn entry(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(key);
        let value = self.entries?.get(key)?;
        let path = self.path_of(key);
        if let Place::File(at) = self.reading.place(&value.span()) {
            self.reading
                .sources
                .insert(path.clone(), Source::File { line: at.line });
        }
        self.reading.spans.insert(path, value.span());
        Some(value)
    }
}

fn hidden(mut at: Excerpt) -> Excerpt {
    at.text = at
        .text
        .chars()
        .take(at.column - 1)
        .chain(std::iter::repeat_n('*', at.width))
        .collect();
    at
}

/// The fault of a file that is not TOML.
pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Fault {
    let span = error.span().unwrap_or(0..0);
    let place = Place::at(file, text, &span);
    Fault::new(
        super::fault::SYNTAX,
        place,
        error.message().replace('\n', ", "),
    )
}

/// The fault of a value of the environment that is not text.
pub(super) fn not_text(source: &Source) -> Fault {
    Fault::new(
        MALFORMED,
        Place::Named(source.to_string()),
        "the value is not UTF-8",
    )
}
