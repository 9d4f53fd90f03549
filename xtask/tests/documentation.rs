//! Keeps lists in the documentation equal to what they list.

use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, fs};

#[test]
fn every_dependency_is_named_with_its_reason() {
    let manifest = read("Cargo.toml");
    let section = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .expect("the workspace has dependencies");
    let used: BTreeSet<&str> = section
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("path = "))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    let page = read("docs/decisions/0002-dependencies.md");
    let named: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        used, named,
        "Cargo.toml on the left, docs/decisions/0002-dependencies.md on the right"
    );
}

#[test]
fn every_decision_is_in_the_list() {
    let list = read("docs/decisions/README.md");
    for file in fs::read_dir(root().join("docs/decisions")).expect("the folder is there") {
        let name = file
            .expect("it can be read")
            .file_name()
            .into_string()
            .expect("ASCII");
        assert!(
            name == "README.md" || list.contains(&format!("({name})")),
            "docs/decisions/README.md lacks {name}"
        );
    }
}

fn read(file: &str) -> String {
    let path: PathBuf = root().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the repository")
}
