//! Where things are: the repository, the target folder, the caches.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result};

/// The repository. Cargo says where it runs this program; what was compiled in may be the place of another clone
/// that shares the target folder.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let own = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let own = own.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        own.parent().map_or_else(|| own.clone(), Path::to_path_buf)
    })
}

/// Cargo's target folder: `CARGO_TARGET_DIR`, else `target` in the repository.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Where the built plugins are.
pub fn plugins() -> PathBuf {
    target().join("plugins")
}

/// The workspace of the guests.
pub fn guests() -> PathBuf {
    root().join("plugins")
}

/// This user's cache folder; it exists after the call.
pub fn cache() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder = base
        .or_else(home)
        .unwrap_or_else(target)
        .join("projector-host");
    create(folder)
}

/// A cache folder for programs that another account must be able to run: PostgreSQL refuses root, and root's own
/// folders are closed to others.
pub fn open_cache() -> Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        create("/var/cache/projector-host".into())
    } else {
        cache()
    }
}

fn create(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
