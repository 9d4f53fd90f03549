//! Where PostgreSQL's programs are on this machine.
//!
//! A distribution often links one of them into PATH without the others, so links are followed and a folder counts
//! only if it holds all three programs that we need.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    error::{Error, Result},
    tool,
};

/// Environment variable that names the folder of PostgreSQL's programs and goes before everything else.
pub const BIN_VARIABLE: &str = "PROJECTOR_PG_BIN";

const NEEDED: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// Folders in which distributions keep one subfolder a version: (parent, start of its name, rest of the path).
const VERSIONED: [(&str, &str, &str); 7] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
    ("/usr/local/lib/postgresql", "", "bin"),
];

/// One set of PostgreSQL's server programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    bin: PathBuf,
    major: u32,
    version: String,
}

impl Installation {
    /// The one to use: [`BIN_VARIABLE`], then PATH, then `pg_config`, then the newest in the usual folders.
    pub fn find() -> Result<Self> {
        if let Some(folder) = env::var_os(BIN_VARIABLE).filter(|folder| !folder.is_empty()) {
            return Self::at(folder);
        }
        preferred()
            .into_iter()
            .find_map(|folder| Self::at(folder).ok())
            .or_else(|| Self::all().into_iter().next())
            .ok_or(Error::NotInstalled)
    }

    /// The one to use, if it brings this program itself, else the newest that does: some programs, such as
    /// `pg_basebackup`, serve only their own version, and not every distribution packs them.
    pub fn find_with(program: &str) -> Result<Self> {
        let found = Self::find()?;
        let candidates = std::iter::once(found.clone()).chain(Self::all());
        candidates
            .into_iter()
            .find(|installation| installation.bin.join(program).is_file())
            .ok_or_else(|| Error::ToolMissing {
                program: program.into(),
                folder: found.bin,
            })
    }

    /// Every one on this machine, newest first.
    pub fn all() -> Vec<Self> {
        let named = env::var_os(BIN_VARIABLE).map(PathBuf::from);
        let mut found: Vec<Self> = Vec::new();
        for folder in named.into_iter().chain(preferred()).chain(versioned()) {
            if let Ok(installation) = Self::at(folder)
                && !found.iter().any(|other| other.bin == installation.bin)
            {
                found.push(installation);
            }
        }
        found.sort_by_key(|installation| std::cmp::Reverse(installation.major));
        found
    }

    /// The one in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        if let Some(missing) = NEEDED
            .into_iter()
            .find(|program| !folder.join(program).is_file())
        {
            return Err(Error::Incomplete { folder, missing });
        }
        let version = tool::run(
            "postgres",
            Command::new(folder.join("postgres")).arg("--version"),
        )?;
        let major = major(&version).ok_or_else(|| Error::ToolFailed {
            program: "postgres --version".into(),
            status: "its answer names no version".into(),
            output: version.clone(),
        })?;
        Ok(Self {
            bin: folder,
            major,
            version,
        })
    }

    /// The folder of the programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The major version, such as 15.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The version as the server words it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A program beside the server's or, failing that, in PATH: client programs may be packaged apart.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let beside = self.bin.join(name);
        if beside.is_file() {
            return Ok(beside);
        }
        in_path(name).ok_or_else(|| Error::ToolMissing {
            program: name.into(),
            folder: self.bin.clone(),
        })
    }
}

/// A program in PATH.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    path_folders()
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

fn path_folders() -> Vec<PathBuf> {
    env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// The folders that the user's own environment points to.
fn preferred() -> Vec<PathBuf> {
    let linked = path_folders().into_iter().filter_map(|folder| {
        let program = fs::canonicalize(folder.join("postgres")).ok()?;
        program.parent().map(Path::to_path_buf)
    });
    let mut folders: Vec<PathBuf> = linked.collect();
    if let Ok(answer) = tool::run("pg_config", Command::new("pg_config").arg("--bindir")) {
        folders.push(answer.into());
    }
    folders
}

fn versioned() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for (parent, start, rest) in VERSIONED {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(start) {
                let folder = if rest.is_empty() {
                    entry.path()
                } else {
                    entry.path().join(rest)
                };
                folders.extend(fs::canonicalize(folder));
            }
        }
    }
    folders
}

/// From `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` the 15; also from `18beta1` and `19devel`.
fn major(answer: &str) -> Option<u32> {
    let version = answer.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_the_servers_answer() {
        let check = |answer: &str, expected| assert_eq!(major(answer), expected, "{answer}");
        check(
            "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
            Some(15),
        );
        check("postgres (PostgreSQL) 18.4", Some(18));
        check("postgres (PostgreSQL) 19devel", Some(19));
        check("postgres (EnterpriseDB) x", None);
        check("", None);
    }

    #[test]
    fn a_folder_without_the_programs_is_refused_with_the_name_of_the_first_missing_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error =
            Installation::at(folder.path()).expect_err("an empty folder is no installation");
        assert!(error.to_string().contains("has no initdb"), "{error}");
    }

    #[test]
    fn the_one_found_is_among_all() {
        let found = Installation::find().expect("PostgreSQL is installed where these tests run");
        let all = Installation::all();
        assert!(all.contains(&found), "{found:?} not in {all:?}");
        assert!(all.is_sorted_by_key(|installation| std::cmp::Reverse(installation.major())));
    }

    #[test]
    fn a_client_program_may_live_elsewhere() {
        let found = Installation::find().expect("PostgreSQL is installed where these tests run");
        found
            .program("psql")
            .expect("psql beside the server or in PATH");
        let complete = Installation::find_with("pg_basebackup").expect("one has it");
        assert!(complete.bin().join("pg_basebackup").is_file());
        Installation::find_with("no-such-program").expect_err("there is none");
        let error = found.program("no-such-program").expect_err("there is none");
        assert!(
            error.to_string().contains("no-such-program is neither in"),
            "{error}"
        );
    }
}
