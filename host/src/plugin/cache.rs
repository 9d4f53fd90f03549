//! Compiled code, kept between starts, so that a replica is ready in milliseconds.
//!
//! One file for each (component, engine settings, version), written under another name and renamed. Promises: a
//! missing, damaged or foreign entry is compiled anew, and a cache that cannot be used costs one warning and
//! nothing else. Must never: load an entry from a folder that others can write, since entries are native code.

use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use super::file::sha256;
use crate::guest::Engine;

/// Begins every entry; the digest of the rest follows.
const HEADER: &[u8] = b"projector-host compiled 1\n";
const DIGEST_BYTES: usize = 32;
/// Entries that are kept; the oldest go first.
const ENTRIES_MAX: usize = 256;

/// The folder of compiled code, or none.
#[derive(Debug, Default)]
pub struct Cache {
    dir: Option<PathBuf>,
    warned: AtomicBool,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Cache {
    /// Opens the folder, and creates it for this user alone. A folder that cannot be used is warned of once.
    #[must_use]
    pub fn open(dir: Option<&Path>) -> Self {
        let mut cache = Self::default();
        let Some(dir) = dir else {
            return cache;
        };
        match prepare(dir) {
            Ok(()) => cache.dir = Some(dir.to_owned()),
            Err(reason) => cache.warn(dir, &reason),
        }
        cache
    }

    /// Whether compiled code is kept.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.dir.is_some()
    }

    /// How many components were found compiled, and how many were not.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (
            self.hits.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        )
    }

    /// Compiled code for a component: kept code if there is some, else the compiler's.
    ///
    /// # Errors
    /// When the component cannot be compiled.
    pub fn component(&self, engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Component> {
        let Some(dir) = &self.dir else {
            return Component::from_binary(engine.wasmtime(), bytes);
        };
        let path = dir.join(entry_name(engine, bytes));
        if let Some(component) = load(engine, &path) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let component = Component::from_binary(engine.wasmtime(), bytes)?;
        let stored = component
            .serialize()
            .map_err(|error| error.to_string())
            .and_then(|code| store(dir, &path, &code).map_err(|error| error.to_string()));
        if let Err(reason) = stored {
            self.warn(dir, &reason);
        }
        Ok(component)
    }

    fn warn(&self, dir: &Path, reason: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                dir = %dir.display(),
                reason,
                code = "PH0517",
                "compiled plugins cannot be kept; every start compiles them again"
            );
        }
    }
}

/// Creates the folder if need be, and refuses one that somebody else could put code into.
fn prepare(dir: &Path) -> Result<(), String> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| error.to_string())?;
    let found = std::fs::metadata(dir).map_err(|error| error.to_string())?;
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Err(format!(
            "it belongs to user {} and this process runs as user {user}",
            found.uid()
        ));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!(
            "others can write it (mode {:o}), and what lies in it is run as native code; chmod it to 700",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

fn entry_name(engine: &Engine, bytes: &[u8]) -> String {
    let mut settings = Sha256Hasher(Sha256::new());
    engine
        .wasmtime()
        .precompile_compatibility_hash()
        .hash(&mut settings);
    let settings = settings.0.finalize();
    format!("{}-{}.compiled", sha256(bytes), &sha256(&settings)[..16])
}

/// The entry, if it is there, whole and of this engine.
fn load(engine: &Engine, path: &Path) -> Option<Component> {
    let entry = std::fs::read(path).ok()?;
    let checked = entry
        .strip_prefix(HEADER)
        .and_then(|rest| rest.split_first_chunk::<DIGEST_BYTES>())
        .filter(|(digest, code)| <[u8; DIGEST_BYTES]>::from(Sha256::digest(code)) == **digest);
    let Some((_, code)) = checked else {
        tracing::warn!(file = %path.display(), "damaged compiled code is ignored and compiled anew");
        return None;
    };
    match deserialize(engine, code) {
        Ok(component) => Some(component),
        Err(error) => {
            tracing::info!(file = %path.display(), %error, "compiled code of another machine is compiled anew");
            None
        }
    }
}

/// The one place where native code that is not fresh from the compiler enters the process.
#[expect(
    unsafe_code,
    reason = "the engine cannot check native code; see SAFETY"
)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` was written by `store` from `Component::serialize` of this very host: the folder belongs to
    // this user and nobody else can write it (`prepare`), the name binds it to the component, the engine's
    // settings and version (`entry_name`), and its digest was compared with the one written with it (`load`). The
    // engine itself refuses code of other settings, versions or CPU features.
    unsafe { Component::deserialize(engine.wasmtime(), code) }
}

/// Writes under another name, syncs, renames: nobody ever sees half an entry.
fn store(dir: &Path, path: &Path, code: &[u8]) -> std::io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let unique = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{unique}.tmp", std::process::id()));
    let written = (|| {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)?;
        file.write_all(HEADER)?;
        file.write_all(&Sha256::digest(code))?;
        file.write_all(code)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        std::fs::File::open(dir)?.sync_all()
    })();
    if written.is_err() {
        // Nothing more can be done about a temporary file that cannot be removed either.
        drop(std::fs::remove_file(&temporary));
        return written;
    }
    prune(dir)
}

fn prune(dir: &Path) -> std::io::Result<()> {
    let mut entries: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(dir)?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    if entries.len() > ENTRIES_MAX {
        entries.sort();
        for (_, path) in &entries[..entries.len() - ENTRIES_MAX] {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A hasher that gives the same digest in every process of one build.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::guest::EngineOptions;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn entry(dir: &Path) -> PathBuf {
        let entries: Vec<PathBuf> = std::fs::read_dir(dir)
            .expect("the folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries[0].clone()
    }

    #[test]
    fn an_entry_is_used_again_and_a_damaged_or_foreign_one_is_made_anew() {
        let engine = Engine::new(&EngineOptions::default()).expect("an engine");
        let temporary = tempfile::tempdir().expect("a folder");
        let dir = temporary.path().join("a/b");
        let cache = Cache::open(Some(&dir));
        assert!(cache.is_on());
        assert_eq!(
            std::fs::metadata(&dir)
                .expect("created")
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
        cache.component(&engine, EMPTY).expect("compiles");
        cache.component(&engine, EMPTY).expect("is loaded");
        assert_eq!(cache.hits_and_misses(), (1, 1));

        let path = entry(&dir);
        let good = std::fs::read(&path).expect("the entry");
        let flipped = {
            let mut bytes = good.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        };
        let foreign = {
            // A whole entry whose code the engine itself refuses.
            let mut bytes = HEADER.to_vec();
            bytes.extend(Sha256::digest(b"code of another build"));
            bytes.extend(b"code of another build");
            bytes
        };
        for (at, bad) in [
            flipped,
            good[..good.len() - 1].to_vec(),
            Vec::new(),
            foreign,
        ]
        .into_iter()
        .enumerate()
        {
            std::fs::write(&path, bad).expect("can be damaged");
            cache.component(&engine, EMPTY).expect("compiles");
            assert_eq!(cache.hits_and_misses(), (1, 2 + at as u64));
            assert_eq!(std::fs::read(entry(&dir)).expect("the entry"), good);
        }
    }

    #[test]
    fn other_settings_never_share_an_entry() {
        let well = Engine::new(&EngineOptions::default()).expect("an engine");
        let fast = Engine::new(&EngineOptions {
            dev: true,
            ..EngineOptions::default()
        })
        .expect("an engine");
        assert_ne!(entry_name(&well, EMPTY), entry_name(&fast, EMPTY));
        let again = Engine::new(&EngineOptions::default()).expect("an engine");
        assert_eq!(entry_name(&well, EMPTY), entry_name(&again, EMPTY));
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let engine = Engine::new(&EngineOptions::default()).expect("an engine");
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o770))
            .expect("own folder");
        let cache = Cache::open(Some(dir.path()));
        assert!(!cache.is_on());
        cache
            .component(&engine, EMPTY)
            .expect("compiles all the same");
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("the folder").count(),
            0
        );
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("a file");
        assert!(!Cache::open(Some(&file.join("below"))).is_on());
    }

    #[test]
    fn old_entries_go_when_there_are_too_many() {
        let dir = tempfile::tempdir().expect("a folder");
        for at in 0..ENTRIES_MAX + 5 {
            std::fs::write(dir.path().join(format!("{at}.compiled")), "x").expect("a file");
        }
        prune(dir.path()).expect("can be pruned");
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("the folder").count(),
            ENTRIES_MAX
        );
    }
}
