//! Which files are plugins: every `*.wasm` of the folder, and every configured file outside it.

use std::path::{Path, PathBuf};

use super::{Declared, Options};
use crate::plugin::error::Error;

/// Files that the host looks at.
pub(super) const FILES_MAX: usize = 1_000;

/// The files in order, and what is wrong with the folder itself.
pub(super) fn files(options: &Options) -> (Vec<PathBuf>, Vec<(PathBuf, Error)>) {
    let mut failed = Vec::new();
    let mut files = match in_folder(&options.dir) {
        Ok(files) => files,
        Err(error) => {
            failed.push((options.dir.clone(), Error::Folder(error)));
            Vec::new()
        }
    };
    let configured = options
        .projections
        .iter()
        .map(|declared| resolved(&options.dir, declared))
        .filter(|file| file.exists());
    files.extend(configured);
    files.sort();
    files.dedup();
    if files.len() > FILES_MAX {
        files.truncate(FILES_MAX);
        failed.push((options.dir.clone(), Error::TooMany { max: FILES_MAX }));
    }
    (files, failed)
}

/// The folders in which these files lie, and links to them.
pub(super) fn folders(options: &Options) -> Vec<PathBuf> {
    let configured = options.projections.iter().filter_map(|declared| {
        let parent = resolved(&options.dir, declared).parent()?.to_owned();
        Some(parent)
    });
    let mut folders: Vec<PathBuf> = configured.chain([options.dir.clone()]).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// The file of a configured projection.
pub(super) fn resolved(dir: &Path, declared: &Declared) -> PathBuf {
    match &declared.component {
        Some(component) => dir.join(component),
        None => dir.join(format!("{}.wasm", declared.name)),
    }
}

/// Hidden files are left out: build tools and copies write under such names before they rename.
fn in_folder(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|end| end == "wasm") && !path.is_dir() {
            files.push(path);
        }
    }
    Ok(files)
}
