//! Keeps lists in the documentation equal to what they list.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
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
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| projector_testkit::repository(""))
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    let mut codes = BTreeSet::new();
    let mut folders = vec![root().join("host/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is text");
                codes.extend(codes_in(&text));
            }
        }
    }
    let pages: BTreeSet<u16> = fs::read_dir(root().join("docs/errors"))
        .expect("the folder is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_prefix("PH")?.strip_suffix(".md")?.parse().ok())
        .collect();
    let missing: Vec<u16> = codes.difference(&pages).copied().collect();
    let unused: Vec<u16> = pages.difference(&codes).copied().collect();
    assert_eq!(
        (missing, unused),
        (vec![], vec![]),
        "codes without a page, pages without a code"
    );
}

/// Codes are written as `Code(101)`, as `PH0101` in a message, or as `=> 101,` within `Code(match …)`.
/// What follows the tests of a file, and the placeholders in comments, are no codes.
fn codes_in(text: &str) -> Vec<u16> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let matched = text.contains("Code(match");
    let number = |rest: &str, digits: usize| {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        (end == digits).then(|| rest[..end].parse().ok()).flatten()
    };
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| {
            let after = |mark: &'static str| line.split(mark).skip(1).map(str::to_owned);
            let plain = after("Code(").filter_map(|rest| number(&rest, 3));
            let told = after("\"PH").filter_map(|rest| number(&rest, 4));
            let arms = after("=> ")
                .filter(|_| matched)
                .filter_map(|rest| number(&rest, 3));
            plain.chain(told).chain(arms).collect::<Vec<u16>>()
        })
        .filter(|code| (101..900).contains(code))
        .collect()
}
