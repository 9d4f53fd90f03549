//! What one measurement came to, and the files that keep it.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The results of one command.
#[derive(Debug)]
pub struct Outcome {
    /// Name of its files.
    pub name: &'static str,
    /// For people.
    pub table: String,
    /// For programs: everything that was measured.
    pub figures: Value,
    /// For the eye, where there is something to see.
    pub picture: Option<String>,
}

impl Outcome {
    /// Prints the table, and writes it as `NAME.txt` beside `NAME.json` and `NAME.svg`.
    pub fn publish(&self, folder: &Path) -> Result<()> {
        println!("\n{}\n", self.table);
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let files = [
            ("txt", Some(format!("{}\n", self.table))),
            ("json", Some(format!("{:#}\n", self.figures))),
            ("svg", self.picture.clone()),
        ];
        for (kind, text) in files {
            let Some(text) = text else { continue };
            let file = folder.join(format!("{}.{kind}", self.name));
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
            println!("{}", file.display());
        }
        Ok(())
    }
}
