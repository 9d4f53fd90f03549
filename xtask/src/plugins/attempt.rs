//! Remembers for a day that something failed, so that a machine without network does not wait for it every time.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// One thing to try, told apart by name and by what it was tried with.
pub struct Attempt {
    file: PathBuf,
    with: String,
}

impl Attempt {
    /// Kept in this folder.
    pub fn new(folder: PathBuf, name: &str, with: impl Into<String>) -> Self {
        Self {
            file: folder.join(format!("{name}.failed")),
            with: with.into(),
        }
    }

    /// How long ago it failed, if that was within the last day.
    pub fn failed_ago(&self) -> Option<Duration> {
        let with = fs::read_to_string(&self.file).ok()?;
        let modified = fs::metadata(&self.file)
            .and_then(|data| data.modified())
            .ok()?;
        let age = SystemTime::now()
            .duration_since(modified)
            .unwrap_or_default();
        (with == self.with && age < MEMORY).then_some(age)
    }

    /// Keeps that it failed. Without a place to keep it the next try costs time and nothing else.
    pub fn failed(&self) {
        let _ = fs::write(&self.file, &self.with);
    }

    /// Forgets an earlier failure.
    pub fn succeeded(&self) {
        let _ = fs::remove_file(&self.file);
    }

    /// For the hint to people who know better.
    pub fn file(&self) -> &std::path::Path {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_for_the_same_thing_only_and_forgotten_after_a_day() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let attempt = |with| Attempt::new(folder.path().into(), "target-add", with);
        assert!(attempt("1.95").failed_ago().is_none());
        attempt("1.95").failed();
        assert!(attempt("1.95").failed_ago().is_some());
        assert!(
            attempt("1.96").failed_ago().is_none(),
            "another toolchain is another attempt"
        );

        let file = fs::File::options()
            .write(true)
            .open(attempt("1.95").file())
            .expect("the file is there");
        file.set_modified(SystemTime::now() - MEMORY)
            .expect("the clock can be set back");
        assert!(attempt("1.95").failed_ago().is_none());

        attempt("1.95").failed();
        attempt("1.95").succeeded();
        assert!(attempt("1.95").failed_ago().is_none());
    }
}
