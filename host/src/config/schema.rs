//! Texts made from the types of the sections: the JSON schema for editors and the reference manual.
//!
//! Promises: both come from the same doc comments and defaults, so that neither can differ from the program.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

/// The JSON schema of the file, as text.
#[must_use]
pub fn json() -> String {
    let mut text = format!("{:#}", tree());
    text.push('\n');
    text
}

/// The reference manual of the file, in Markdown.
#[must_use]
pub fn reference() -> String {
    let tree = tree();
    let mut out = String::from(
        "# Configuration reference\n\n\
         What this is: every key of `projections.toml`, made from the program's own types. A commented file with \
         all defaults is `config/projections.toml`, or `projector-host config init`.\n\n",
    );
    out.push_str(&words(&tree));
    out.push_str(INTRODUCTION);
    let mut sections = Vec::new();
    for (name, section) in properties(&tree) {
        table(name, section, &mut sections);
    }
    for section in sections {
        out.push('\n');
        out.push_str(&section);
    }
    out
}

const INTRODUCTION: &str = "

Layers, lowest first: defaults, this file, environment variables, flags. Only process settings have the last two: \
`host.node` (`PROJECTOR_NODE`, `--node`), `host.log` (`PROJECTOR_LOG`, `--log`), `host.log_format` \
(`PROJECTOR_LOG_FORMAT`, `--log-format`) and `http.listen` (`PROJECTOR_HTTP_LISTEN`, `--http-listen`). \
`projector-host config show` prints each effective value and where it comes from.

Secrets stand in environment variables or files that the configuration names, never in the file itself. Where a \
database URL is silent (user, host, port, database, password, TLS), the driver takes libpq's own variables: `PGHOST`, \
`PGHOSTADDR`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY`, \
`PGOPTIONS`, and `PGPASSFILE`. With no URL at all and `url_env` left out of the file, `PGHOST`, `PGHOSTADDR` or \
`PGDATABASE` is enough.
";

fn tree() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    settings
        .into_generator()
        .into_root_schema_for::<Config>()
        .to_value()
}

fn table(path: &str, section: &Value, out: &mut Vec<String>) {
    let (heading, section) = match section.get("items") {
        Some(items) => (format!("[[{path}]]"), items),
        None => (format!("[{path}]"), section),
    };
    let mut text = format!("## `{heading}`\n\n{}\n", words(section));
    let mut inner = Vec::new();
    let mut rows = String::new();
    for (key, property) in properties(section) {
        let below = format!("{path}.{key}");
        let object = property.get("properties").is_some();
        // Small tables are written inline and belong to their key; limits have a heading of their own.
        if object && key == "limits" && heading.starts_with("[plugins") {
            table(&below, property, &mut inner);
            continue;
        }
        let required = section["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == key));
        let default = match property.get("default") {
            Some(Value::Null) | None if required => "required".to_owned(),
            Some(Value::Null) | None => "–".to_owned(),
            Some(value) => format!("`{}`", toml_text(value)),
        };
        rows.push_str(&format!(
            "| `{key}` | {} | {default} | {} |\n",
            kind(property),
            words(property)
        ));
    }
    if !rows.is_empty() {
        text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        text.push_str(&rows);
    }
    out.push(text);
    out.extend(inner);
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

fn words(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn kind(schema: &Value) -> String {
    if let Some(format) = schema["format"]
        .as_str()
        .filter(|format| format.ends_with("unit"))
    {
        return format.to_owned();
    }
    for list in ["oneOf", "anyOf"] {
        if let Some(cases) = schema[list].as_array() {
            let mut kinds: Vec<String> = cases
                .iter()
                .filter(|case| case["type"] != "null")
                .map(kind)
                .collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let names: Vec<&str> = names
        .into_iter()
        .filter(|name| *name != "null")
        .map(|name| match name {
            "string" => "text",
            "boolean" => "true or false",
            "object" => "table",
            "array" => "list",
            other => other,
        })
        .collect();
    names.join(" or ")
}

/// A JSON value as the file would have it.
pub(crate) fn toml_text(value: &Value) -> String {
    match value {
        Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml_text(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_text).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
