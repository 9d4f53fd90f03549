//! `cargo xtask generate [--check]`: the files of the repository that are written by a program.
//!
//! One table. Whoever adds a generated file adds a line here, and CI checks that it is current.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{place, process, sample};

/// Every generated file, and who writes it.
const FILES: &[(&str, Producer)] = &[
    ("xtask/sample/events.ndjson", Producer::Own(shipped_sample)),
    (
        "config/projections.schema.json",
        Producer::Host(&["config", "schema"]),
    ),
    (
        "docs/reference/config.md",
        Producer::Host(&["config", "reference"]),
    ),
];

/// Who writes a file.
enum Producer {
    /// A function here.
    Own(fn() -> Result<Vec<u8>>),
    /// The standard output of `projector-host` with these arguments.
    Host(&'static [&'static str]),
}

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Changes nothing; fails if a file is not current
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// As `generate --check`.
    pub fn check() -> Self {
        Self { check: true }
    }
}

/// Writes or checks all of them.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut stale = Vec::new();
    for (name, producer) in FILES {
        let path = place::root().join(name);
        let content = producer
            .content()
            .with_context(|| format!("cannot generate {name}"))?;
        if fs::read(&path).is_ok_and(|old| old == content) {
            continue;
        }
        if arguments.check {
            stale.push(*name);
        } else {
            write(&path, &content)?;
            eprintln!("    written: {name}");
        }
    }
    if !stale.is_empty() {
        bail!(
            "not current: {}; run `cargo xtask generate` and commit the change",
            stale.join(", ")
        );
    }
    Ok(())
}

impl Producer {
    fn content(&self) -> Result<Vec<u8>> {
        match self {
            Self::Own(function) => function(),
            Self::Host(arguments) => {
                let host = build_host()?;
                process::capture(
                    Command::new(host)
                        .args(*arguments)
                        .current_dir(place::root()),
                )
            }
        }
    }
}

/// Builds the host as the tests do; gives the program.
pub fn build_host() -> Result<std::path::PathBuf> {
    process::run(process::cargo().current_dir(place::root()).args([
        "build",
        "--quiet",
        "--package",
        "projector-host",
    ]))?;
    Ok(place::target().join("debug/projector-host"))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

fn shipped_sample() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    sample::write(&mut bytes, sample::SHIPPED_EVENTS, sample::SHIPPED_SEED)?;
    Ok(bytes)
}
