//! Lists the pages of `docs/errors` for `explain`, and finds the engine's version for `version`.
//!
//! A build script, since a list kept by hand would be one more thing to forget with every new error code.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked at run time: a target folder that several clones share may hold this script as built in another one.
    let own = env::var_os("CARGO_MANIFEST_DIR")
        .ok_or_else(|| io::Error::other("no CARGO_MANIFEST_DIR"))?;
    let root = Path::new(&own).join("..");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(
        Path::new(&out).join("error_pages.rs"),
        pages(&root.join("docs/errors"))?,
    )?;
    println!(
        "cargo::rustc-env=PROJECTOR_WASMTIME_VERSION={}",
        locked(&root.join("Cargo.lock"), "wasmtime")?
    );
    Ok(())
}

/// An array of `(code, page)` as Rust source.
fn pages(folder: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut source = String::from("&[");
    for file in files {
        let code = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("");
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        if is_page && code.starts_with("PH") {
            let path = file.display().to_string();
            let _ = write!(source, "({code:?}, include_str!({path:?})),");
        }
    }
    source.push(']');
    Ok(source)
}

/// The version of a package in the lock file.
fn locked(file: &Path, package: &str) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", file.display());
    let text = fs::read_to_string(file)?;
    let heading = format!("name = \"{package}\"\nversion = \"");
    text.split_once(&heading)
        .and_then(|(_, rest)| rest.split('"').next())
        .map(str::to_owned)
        .ok_or_else(|| io::Error::other(format!("{package} is not in the lock file")))
}
