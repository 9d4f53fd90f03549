//! Which plugin files have changed and stand still again.
//!
//! A look takes the stamps of all files; a file counts as settled when its stamp was the same for a while, so a
//! half-written one is left alone, and a missing one is missed only after a while, since editors and build tools
//! delete before they create. Promises: an event of the file system is a hint to look, never a reason to act; looks
//! go on without any event. No file is read here.

mod hints;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use hints::Hints;

/// A file must stand still for so long before it is read.
pub const QUIET: Duration = Duration::from_millis(200);

/// A file must be missing for so long before it counts as gone.
pub const GONE: Duration = Duration::from_millis(1_000);

/// Between two looks while something moves.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Between two looks when nothing was heard, with events of the file system.
pub const RESCAN_INTERVAL: Duration = Duration::from_secs(2);

/// Between two looks without events of the file system.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What tells one state of a file from another without reading it. The time of change cannot be set by anybody,
/// so a copy that keeps the time of modification is seen as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A file that stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Still {
    /// Its stamp; none for a name that leads nowhere, such as a dangling link.
    pub stamp: Option<Stamp>,
    /// When this stamp was first seen.
    pub since: Instant,
}

/// What a look came to.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// Files that stand still.
    pub still: BTreeMap<PathBuf, Still>,
    /// Files that changed just now, or are missing only just now: to be left as they are.
    pub moving: BTreeSet<PathBuf>,
}

/// Remembers the looks before.
#[derive(Debug, Default)]
pub struct Settling {
    seen: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    /// None while it is missing.
    found: Option<Option<Stamp>>,
    since: Instant,
}

impl Stamp {
    /// The stamp of a file, behind all links.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// The stamp of a file, none for a name that leads nowhere; nothing when there is no such name.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Option<Self>> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            _ => Some(Self::of(path)),
        }
    }
}

impl Settling {
    /// Takes everything as it stands, for a start.
    pub fn begin(&mut self, now: Instant, found: BTreeMap<PathBuf, Option<Stamp>>) -> Looked {
        let still = |stamp| Still { stamp, since: now };
        self.seen = found
            .iter()
            .map(|(path, &stamp)| {
                (
                    path.clone(),
                    Seen {
                        found: Some(stamp),
                        since: now.checked_sub(QUIET).unwrap_or(now),
                    },
                )
            })
            .collect();
        Looked {
            still: found
                .into_iter()
                .map(|(path, stamp)| (path, still(stamp)))
                .collect(),
            moving: BTreeSet::new(),
        }
    }

    /// Compares with the looks before.
    pub fn look(&mut self, now: Instant, found: &BTreeMap<PathBuf, Option<Stamp>>) -> Looked {
        let mut looked = Looked::default();
        for path in found.keys() {
            self.seen.entry(path.clone()).or_insert(Seen {
                found: None,
                since: now,
            });
        }
        self.seen.retain(|path, seen| {
            let present = found.get(path).copied();
            if present != seen.found {
                *seen = Seen {
                    found: present,
                    since: now,
                };
            }
            let age = now.saturating_duration_since(seen.since);
            match present {
                Some(stamp) if age >= QUIET => {
                    let since = seen.since;
                    looked.still.insert(path.clone(), Still { stamp, since });
                    true
                }
                None if age >= GONE => false,
                _ => {
                    looked.moving.insert(path.clone());
                    true
                }
            }
        });
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(size: u64) -> Option<Stamp> {
        Some(Stamp {
            device: 1,
            inode: 1,
            size,
            modified: (0, 0),
            changed: (0, 0),
        })
    }

    /// Looks every 100 ms; `.` for a missing file, a digit for its size. Still files are shown with their size,
    /// moving ones as `~`, others as `.`.
    fn check(begin: &str, story: &str, expected: &str) {
        let path = PathBuf::from("a.wasm");
        let find = |word: char| -> BTreeMap<PathBuf, Option<Stamp>> {
            word.to_digit(10)
                .map(|size| (path.clone(), stamp(u64::from(size))))
                .into_iter()
                .collect()
        };
        let mut now = Instant::now();
        let mut settling = Settling::default();
        for word in begin.chars() {
            settling.begin(now, find(word));
        }
        let mut shown = String::new();
        for word in story.chars() {
            now += LOOK_INTERVAL;
            let looked = settling.look(now, &find(word));
            let size = looked.still.get(&path).and_then(|still| still.stamp);
            shown.push(match size {
                Some(stamp) => char::from_digit(u32::try_from(stamp.size).expect("small"), 10)
                    .expect("a digit"),
                None if looked.moving.contains(&path) => '~',
                None => '.',
            });
        }
        assert_eq!(shown, expected, "{begin} {story}");
    }

    #[test]
    fn a_file_is_read_when_it_has_stood_still() {
        check("1", "1112222", "111~~22");
        check("", "..1111", "..~~11");
        // Written slowly: never read in between.
        check("1", "1234567888", "1~~~~~~~~8");
        check("1", "2211", "~~~~");
    }

    #[test]
    fn a_file_is_missed_only_after_a_while() {
        check("1", "1.........1111", "1~~~~~~~~~~~11");
        check("1", "1............", "1~~~~~~~~~~..");
        check("1", "1..222", "1~~~~2");
    }

    #[test]
    fn a_stamp_differs_after_every_change() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        assert_eq!(Stamp::of_name(&path), None);
        std::fs::write(&path, "1").expect("a file");
        let first = Stamp::of(&path).expect("there");
        std::os::unix::fs::symlink("nowhere", &other).expect("a link");
        assert_eq!(Stamp::of_name(&other), Some(None));
        std::fs::remove_file(&other).expect("removed");
        std::os::unix::fs::symlink(&path, &other).expect("a link");
        assert_eq!(Stamp::of(&other), Some(first));
        std::fs::write(&path, "22").expect("rewritten");
        assert_ne!(Stamp::of(&path), Some(first));
    }
}
