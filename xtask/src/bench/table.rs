//! Tables of figures, as people read them: words on the left, figures to the right.

use std::fmt;

/// Rows of cells; the first row is the head.
#[derive(Debug, Clone)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// A table with a head only.
    pub fn new<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Self {
        Self(vec![head.map(str::to_owned).to_vec()])
    }

    /// One more row.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.0.push(cells.to_vec());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        for (number, row) in self.0.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                match column {
                    0 => line.push_str(&format!("{cell:<0$}", width(column))),
                    _ => line.push_str(&format!("  {cell:>0$}", width(column))),
                }
            }
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_each_other() {
        let mut table = Table::new(["", "ratio"]);
        table.row(["a µs".into(), "1.25".into()]);
        table.row(["longer".into(), String::new()]);
        assert_eq!(table.to_string(), "        ratio\na µs     1.25\nlonger");
    }
}
