//! Tables, indexes and views as SQL text.

use crate::database::identifier::{IDENTIFIER_BYTES_MAX, Identifier};
use crate::plugin::manifest::{Column, Table};

pub(super) fn create_table(schema: &Identifier, table: &Table) -> String {
    let mut lines: Vec<String> = table.columns.iter().map(column).collect();
    lines.push(format!(
        "PRIMARY KEY ({})",
        names(table, &table.primary_key)
    ));
    format!(
        "CREATE TABLE {}.{} (\n    {}\n)",
        schema.quoted(),
        table.name.quoted(),
        lines.join(",\n    ")
    )
}

pub(super) fn create_index(
    schema: &Identifier,
    table: &Table,
    number: usize,
    columns: &[usize],
) -> String {
    format!(
        "CREATE INDEX \"{}\" ON {}.{} ({})",
        index_name(table, number),
        schema.quoted(),
        table.name.quoted(),
        names(table, columns)
    )
}

/// Names of tables need no quoting, so neither does this one.
pub(super) fn index_name(table: &Table, number: usize) -> String {
    let suffix = format!("_i{}", number + 1);
    let mut name: String = table.name.as_str().to_owned();
    name.truncate(IDENTIFIER_BYTES_MAX - suffix.len());
    name + &suffix
}

/// The view's comment marks it as this host's, which allows it to be replaced later.
pub(super) fn create_view(
    readers: &Identifier,
    schema: &Identifier,
    table: &Table,
    projection: &str,
) -> String {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let view = format!("{}.{}", readers.quoted(), table.name.quoted());
    format!(
        "CREATE OR REPLACE VIEW {view} AS SELECT {} FROM {}.{}; COMMENT ON VIEW {view} IS {}",
        names(table, &all),
        schema.quoted(),
        table.name.quoted(),
        literal(&format!("projection {projection}"))
    )
}

fn column(column: &Column) -> String {
    let mut text = format!(
        "{} {}",
        column.name.quoted(),
        column.column_type.qualified()
    );
    if let Some(default) = &column.default {
        text.push_str(&format!(
            " DEFAULT {}::{}",
            literal(default),
            column.column_type.qualified()
        ));
    }
    if !column.nullable {
        text.push_str(" NOT NULL");
    }
    text
}

fn names(table: &Table, columns: &[usize]) -> String {
    columns
        .iter()
        .map(|&at| table.columns[at].name.quoted())
        .collect::<Vec<_>>()
        .join(", ")
}

/// A text as an SQL literal that does not depend on `standard_conforming_strings`.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_cannot_be_left() {
        assert_eq!(literal(r"it's \' here"), r"E'it''s \\'' here'");
    }
}
