//! House rules that no other tool checks.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

const LINES_MAX: usize = 600;

/// Names of files and folders that are built, fetched or Git's.
const NOT_OURS: [&str; 4] = [".git", "target", "node_modules", "__pycache__"];

/// Words that belong to one person's machine. Split, so that this file does not hold them.
const PRIVATE: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("shared/", "design"),
    concat!("TEAM", ".md"),
];

#[test]
fn every_rust_file_begins_with_what_it_owns() {
    check(".rs", |text| {
        (!text.starts_with("//!")).then(|| "does not begin with `//!`".to_owned())
    });
}

#[test]
fn every_sql_file_begins_with_what_it_is_for() {
    check(".sql", |text| {
        (!text.starts_with("-- ")).then(|| "does not begin with a comment".to_owned())
    });
}

#[test]
fn no_rust_file_is_longer_than_people_read() {
    check(".rs", |text| {
        let lines = text.lines().count();
        (lines > LINES_MAX).then(|| format!("has {lines} lines, more than {LINES_MAX}"))
    });
}

#[test]
fn no_test_is_ignored() {
    check(".rs", |text| {
        let mut attributes = text.lines().map(str::trim_start);
        attributes
            .any(|line| line.starts_with("#[ignore"))
            .then(|| "has an ignored test".to_owned())
    });
}

#[test]
fn nothing_names_a_place_on_somebodys_machine() {
    check("", |text| {
        let word = PRIVATE.iter().find(|word| text.contains(**word))?;
        Some(format!("names `{word}`"))
    });
}

/// Looks at every file of the repository whose name ends so, and fails with the list of those that have a fault.
fn check(ending: &str, fault: impl Fn(&str) -> Option<String>) {
    let mut files = Vec::new();
    collect(root(), &mut files);
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    assert!(!files.is_empty(), "no file ends in {ending}");
    let faults: Vec<String> = files
        .iter()
        .filter_map(|file| {
            // What is not text is none of our business.
            let text = String::from_utf8(fs::read(file).ok()?).ok()?;
            let shown = file.strip_prefix(root()).unwrap_or(file).display();
            fault(&text).map(|fault| format!("{shown} {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Everything but what is built or fetched.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("the repository can be read")
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name();
        if NOT_OURS.iter().any(|other| name == *other) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| projector_testkit::repository(""))
}
