//! Compiled code, kept between starts, so that a replica is ready in milliseconds.
//!
//! One file for each (plugin file, engine settings, version), written under another name and renamed. An entry is native
//! code, so it proves what it is: it holds the digest of the plugin's file, that of the engine's settings, and a digest of
//! both and of the code that only who has the folder's key can make. Promises: what is missing, damaged, of another file
//! or made by somebody else is compiled anew, and a cache that cannot be used costs one warning and nothing else. Must
//! never: wait for a file, read more of one than [`ENTRY_BYTES_MAX`], or trust a name.

use std::fs::OpenOptions;
use std::hash::{Hash, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use super::apart::CODE_BYTES_MAX;
use super::file::sha256;
use crate::guest::Engine;

/// Begins every entry; the digests of [`Proof`] follow, then the code.
const HEADER: &[u8] = b"projector-host compiled 2\n";
const DIGEST_BYTES: usize = 32;
/// Largest entry that is read.
pub const ENTRY_BYTES_MAX: u64 = (CODE_BYTES_MAX + HEADER.len() + 3 * DIGEST_BYTES) as u64;
/// Entries that are kept; the oldest go first.
const ENTRIES_MAX: usize = 256;
/// Ends the name of an entry.
const ENTRY: &str = "compiled";
/// The file of the folder's key.
const KEY: &str = "key";

type Sum = [u8; DIGEST_BYTES];

/// The folder of compiled code, or none.
#[derive(Debug, Default)]
pub struct Cache {
    folder: Option<Folder>,
    warned: AtomicBool,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// A folder that nobody else can write.
struct Folder {
    dir: PathBuf,
    key: Sum,
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Folder").field(&self.dir).finish()
    }
}

impl Cache {
    /// Opens the folder, and creates it for this user alone. A folder that cannot be used is warned of once.
    #[must_use]
    pub fn open(dir: Option<&Path>) -> Self {
        let mut cache = Self::default();
        let Some(dir) = dir else {
            return cache;
        };
        let opened = prepare(dir).and_then(|()| key(dir).map_err(|error| error.to_string()));
        match opened {
            Ok(key) => {
                cache.folder = Some(Folder {
                    dir: dir.to_owned(),
                    key,
                });
            }
            Err(reason) => cache.warn(dir, &reason),
        }
        cache
    }

    /// Whether compiled code is kept.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.folder.is_some()
    }

    /// How many components were found compiled, and how many were not.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (
            self.hits.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        )
    }

    /// The code that was kept for a plugin file of this digest.
    #[must_use]
    pub fn find(&self, engine: &Engine, source: &str) -> Option<Component> {
        let folder = self.folder.as_ref()?;
        let found = folder.find(engine, source);
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps the code of a plugin file of this digest. Failing is warned of once.
    pub fn keep(&self, engine: &Engine, source: &str, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        if let Err(error) = folder.keep(engine, source, code) {
            self.warn(&folder.dir, &error.to_string());
        }
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

/// Code that was compiled just now, by this process or by one that it started for that.
///
/// # Errors
/// When the engine refuses it.
pub(super) fn fresh(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    deserialize(engine, code)
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
            "it belongs to user {} and this process runs as user {user}; set another `[host] cache_dir`",
            found.uid()
        ));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!(
            "others can write it (mode {:o}), and what lies in it is run as native code; remove it with all that is \
             in it, and the host creates it anew",
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

/// The folder's key; made when there is none that only this user can have written and read.
fn key(dir: &Path) -> io::Result<Sum> {
    let path = dir.join(KEY);
    let there = || -> io::Result<Sum> {
        let bytes = own_file(&path, DIGEST_BYTES as u64)?;
        Sum::try_from(bytes).map_err(|_| io::Error::other("the key is no key"))
    };
    match there() {
        Ok(key) => return Ok(key),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "the key of compiled code is made anew");
            std::fs::remove_file(&path)?;
        }
    }
    let temporary = temporary(&path);
    write_new(&temporary, &[&rand::random::<Sum>()])?;
    // Of several replicas that begin at once, the first one's key is everybody's.
    let linked = std::fs::hard_link(&temporary, &path);
    std::fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => there(),
    }
}

/// What an entry says that it is.
#[derive(Clone, Copy)]
struct Proof {
    source: Sum,
    settings: Sum,
}

impl Proof {
    fn new(engine: &Engine, source: &str) -> Self {
        let mut settings = Sha256Hasher(Sha256::new());
        engine
            .wasmtime()
            .precompile_compatibility_hash()
            .hash(&mut settings);
        Self {
            source: Sha256::digest(source).into(),
            settings: settings.0.finalize().into(),
        }
    }

    /// A digest that nobody makes without the key. What is summed last always has the same length, so nothing can be
    /// added behind it.
    fn seal(&self, key: &Sum, code: &[u8]) -> Sum {
        let code: Sum = Sha256::digest(code).into();
        let parts = [*key, self.source, self.settings, code].concat();
        Sha256::digest(parts).into()
    }
}

impl Folder {
    fn path(&self, engine: &Engine, source: &str) -> PathBuf {
        let settings = sha256(&Proof::new(engine, source).settings);
        self.dir
            .join(format!("{source}-{}.{ENTRY}", &settings[..16]))
    }

    /// The entry, if it is there and proves that this host made it for this file and this engine.
    fn find(&self, engine: &Engine, source: &str) -> Option<Component> {
        let path = self.path(engine, source);
        let ignored = |reason: &dyn std::fmt::Display| {
            tracing::warn!(file = %path.display(), %reason, "kept compiled code is not used, and compiled anew");
        };
        let entry = match own_file(&path, ENTRY_BYTES_MAX) {
            Ok(entry) => entry,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    ignored(&error);
                }
                return None;
            }
        };
        let Some(code) = self.proven(&Proof::new(engine, source), &entry) else {
            ignored(&"it is damaged, or not the code of this plugin");
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

    fn proven<'a>(&self, proof: &Proof, entry: &'a [u8]) -> Option<&'a [u8]> {
        let rest = entry.strip_prefix(HEADER)?;
        let (source, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let (settings, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let (seal, code) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let is_proven = *source == proof.source
            && *settings == proof.settings
            && *seal == proof.seal(&self.key, code);
        is_proven.then_some(code)
    }

    /// Writes under another name, syncs, renames: nobody ever sees half an entry.
    fn keep(&self, engine: &Engine, source: &str, code: &[u8]) -> io::Result<()> {
        let path = self.path(engine, source);
        let proof = Proof::new(engine, source);
        let seal = proof.seal(&self.key, code);
        let temporary = temporary(&path);
        let written = write_new(
            &temporary,
            &[HEADER, &proof.source, &proof.settings, &seal, code],
        )
        .and_then(|()| std::fs::rename(&temporary, &path))
        .and_then(|()| std::fs::File::open(&self.dir)?.sync_all());
        if written.is_err() {
            // Nothing more can be done about a temporary file that cannot be removed either.
            drop(std::fs::remove_file(&temporary));
            return written;
        }
        prune(&self.dir)
    }
}

/// The one place where native code that was not compiled by this process enters it.
#[expect(
    unsafe_code,
    reason = "the engine cannot check native code; see SAFETY"
)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` comes from `Component::serialize` of this very program. Either it was compiled just now and came
    // through a pipe that nobody else has (`fresh`), or it carries a seal that only this user's hosts can make, over the
    // digests of the file and the settings that it is wanted for (`Folder::proven`). The engine itself refuses code of
    // other settings, versions or CPU features.
    unsafe { Component::deserialize(engine.wasmtime(), code) }
}

/// A file that is this user's alone, at most so long. It is neither waited for nor followed elsewhere.
fn own_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    let refused = |what: String| Err(io::Error::other(what));
    if !found.is_file() {
        return refused("it is no regular file".to_owned());
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refused(format!("it belongs to user {}", found.uid()));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o7777;
        return refused(format!("others have rights to it (mode {mode:o})"));
    }
    if found.len() > bytes_max {
        return refused(format!("it has more than {bytes_max} bytes"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A name beside a file that no other write uses.
fn temporary(path: &Path) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let unique = WRITES.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{unique}.tmp", std::process::id()))
}

fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

fn prune(dir: &Path) -> io::Result<()> {
    let mut entries: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(dir)?
        .flatten()
        .filter(|entry| entry.file_name() != KEY)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    if entries.len() > ENTRIES_MAX {
        entries.sort();
        for (_, path) in &entries[..entries.len() - ENTRIES_MAX] {
            match std::fs::remove_file(path) {
                // Another process that shares the folder was faster.
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::guest::EngineOptions;

    const A: &str = "aaaa";
    const B: &str = "bbbb";

    struct Kept {
        engine: Engine,
        code: Vec<u8>,
        dir: tempfile::TempDir,
    }

    impl Kept {
        fn new() -> Self {
            let engine = Engine::new(&EngineOptions::default()).expect("an engine");
            let empty = Component::from_binary(engine.wasmtime(), b"\0asm\x0d\0\x01\0");
            Self {
                code: empty.and_then(|empty| empty.serialize()).expect("compiles"),
                engine,
                dir: tempfile::tempdir().expect("a folder"),
            }
        }

        fn open(&self) -> Cache {
            Cache::open(Some(&self.dir.path().join("a/b")))
        }

        fn has(&self, source: &str) -> bool {
            self.open().find(&self.engine, source).is_some()
        }

        fn keep(&self, source: &str) {
            self.open().keep(&self.engine, source, &self.code);
            assert!(self.has(source));
        }

        fn path(&self, source: &str) -> PathBuf {
            let cache = self.open();
            let folder = cache.folder.as_ref().expect("it is used");
            folder.path(&self.engine, source)
        }
    }

    fn mode(path: &Path) -> u32 {
        let found = std::fs::metadata(path).expect("it is there");
        found.permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own file");
    }

    #[test]
    fn an_entry_is_used_again_and_a_damaged_one_is_not() {
        let kept = Kept::new();
        assert!(!kept.has(A));
        kept.keep(A);
        let dir = kept.dir.path().join("a/b");
        assert_eq!((mode(&dir), mode(&dir.join(KEY))), (0o700, 0o600));
        let path = kept.path(A);
        assert_eq!(mode(&path), 0o600);
        let good = std::fs::read(&path).expect("the entry");
        for at in [
            0,
            HEADER.len(),
            HEADER.len() + 40,
            HEADER.len() + 70,
            good.len() - 1,
        ] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).expect("can be damaged");
            assert!(!kept.has(A), "byte {at}");
        }
        for bad in [&good[..good.len() - 1], &[]] {
            std::fs::write(&path, bad).expect("can be damaged");
            assert!(!kept.has(A));
        }
        // What is not used is replaced.
        kept.keep(A);
    }

    #[test]
    fn the_entry_of_another_file_is_not_used_under_any_name() {
        let kept = Kept::new();
        kept.keep(A);
        kept.keep(B);
        std::fs::copy(kept.path(A), kept.path(B)).expect("a copy");
        assert!(!kept.has(B) && kept.has(A));
    }

    #[test]
    fn an_entry_that_was_made_without_the_key_is_not_used() {
        let kept = Kept::new();
        kept.keep(A);
        let elsewhere = Kept::new();
        elsewhere.keep(A);
        std::fs::copy(elsewhere.path(A), kept.path(A)).expect("a copy");
        assert!(!kept.has(A));
        // Nor is anything trusted when the key is not this user's alone.
        kept.keep(A);
        set_mode(&kept.dir.path().join("a/b").join(KEY), 0o644);
        assert!(!kept.has(A));
    }

    #[test]
    fn an_entry_that_others_can_touch_or_that_is_no_file_is_not_used() {
        let kept = Kept::new();
        kept.keep(A);
        let path = kept.path(A);
        for bad in [0o666, 0o640, 0o604] {
            set_mode(&path, bad);
            assert!(!kept.has(A), "{bad:o}");
        }
        kept.keep(A);
        let moved = kept.dir.path().join("moved");
        std::fs::rename(&path, &moved).expect("same disk");
        symlink(&moved, &path).expect("a link");
        assert!(!kept.has(A), "a link is not followed");
        kept.keep(A);
        std::fs::remove_file(&path).expect("the entry");
        symlink("/dev/zero", &path).expect("a link");
        assert!(!kept.has(A), "nor one to a device");
        kept.keep(A);
        std::fs::remove_file(&path).expect("the entry");
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, pipe, 0o600.into(), 0).expect("a pipe");
        assert!(!kept.has(A), "a pipe is not waited for");
        kept.keep(A);
        let sparse = OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("the entry");
        sparse
            .set_len(ENTRY_BYTES_MAX + 1)
            .expect("it may be sparse");
        assert!(!kept.has(A), "nor is one read that has no end");
    }

    #[test]
    fn replicas_that_begin_at_once_share_one_key() {
        let kept = Kept::new();
        let keys: Vec<Option<Sum>> = std::thread::scope(|scope| {
            let open = || kept.open().folder.map(|folder| folder.key);
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            all.into_iter()
                .map(|one| one.join().expect("opens"))
                .collect()
        });
        assert!(keys[0].is_some());
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn other_settings_never_share_an_entry() {
        let kept = Kept::new();
        kept.keep(A);
        let cache = kept.open();
        let dev = EngineOptions {
            dev: true,
            ..EngineOptions::default()
        };
        let fast = Engine::new(&dev).expect("an engine");
        assert!(cache.find(&fast, A).is_none());
        let again = Engine::new(&EngineOptions::default()).expect("an engine");
        assert!(cache.find(&again, A).is_some());
        assert_eq!(cache.hits_and_misses(), (1, 1));
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let dir = tempfile::tempdir().expect("a folder");
        set_mode(dir.path(), 0o770);
        assert!(!Cache::open(Some(dir.path())).is_on());
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("the folder").count(),
            0
        );
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("a file");
        assert!(!Cache::open(Some(&file.join("below"))).is_on());
    }

    #[test]
    fn old_entries_go_when_there_are_too_many_and_the_key_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        key(dir.path()).expect("a key");
        for at in 0..ENTRIES_MAX + 5 {
            std::fs::write(dir.path().join(format!("{at}.compiled")), "x").expect("a file");
        }
        prune(dir.path()).expect("can be pruned");
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("the folder").count(),
            ENTRIES_MAX + 1
        );
        assert!(dir.path().join(KEY).exists());
    }
}
