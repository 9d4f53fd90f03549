//! The temporary folder of one server: data, log and Unix socket.

use std::{
    env, fs,
    io::Write as _,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::janitor::Janitor;
use crate::{
    account::Account,
    error::{Error, Result},
    tool,
};

/// A Unix socket's path may have 107 bytes on Linux and 103 on macOS; ours adds up to 40 to the parent folder.
const PARENT_BYTES_MAX: usize = 60;

/// How much of the log an error shows.
const LOG_TAIL_LINES: usize = 40;

/// Goes, with everything in it, when the value is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    // Fields are dropped in this order: the janitor goes home once there is nothing left to clear away.
    folder: TempDir,
    _janitor: Janitor,
    account: Account,
}

impl Folder {
    /// Makes one that the server's account owns, in this folder or where there is room.
    pub(super) fn create(account: Account, within: Option<&Path>) -> Result<Self> {
        let parent = within.map_or_else(|| parent(account), Path::to_path_buf);
        let folder = tempfile::Builder::new()
            .prefix("projector-pg-")
            .tempdir_in(&parent)
            .map_err(Error::io(format!(
                "create a folder in {}",
                parent.display()
            )))?;
        account.own(folder.path())?;
        let janitor = Janitor::watch(folder.path())?;
        Ok(Self {
            folder,
            _janitor: janitor,
            account,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn account(&self) -> Account {
        self.account
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path().join("server.log")
    }

    /// Lets in who connects from a network.
    pub(super) fn trust(&self, network: &str) -> Result<()> {
        let rules = self.data().join("pg_hba.conf");
        let doing = || format!("write {}", rules.display());
        let mut file = fs::File::options()
            .append(true)
            .open(&rules)
            .map_err(Error::io(doing()))?;
        writeln!(file, "host all all {network} trust").map_err(Error::io(doing()))
    }

    /// Copies the data aside.
    pub(super) fn save(&self) -> Result<()> {
        tool::run(
            "cp",
            Command::new("cp")
                .arg("-a")
                .arg(self.data())
                .arg(self.saved()),
        )
        .map(drop)
    }

    /// The data as they were put aside.
    pub(super) fn restore(&self) -> Result<()> {
        let doing = || format!("restore {}", self.data().display());
        fs::remove_dir_all(self.data()).map_err(Error::io(doing()))?;
        fs::rename(self.saved(), self.data()).map_err(Error::io(doing()))
    }

    fn saved(&self) -> PathBuf {
        self.path().join("data.saved")
    }

    /// A program that runs under the server's account in this folder (our own may be closed to that account).
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path());
        self.account.apply(&mut command);
        command
    }

    pub(super) fn log_tail(&self) -> String {
        match fs::read(self.log()) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
            }
            Err(error) => format!("({} cannot be read: {error})", self.log().display()),
        }
    }
}

/// The user's temporary folder, unless its path is too long for a socket or closed to the server's account.
fn parent(account: Account) -> PathBuf {
    let usual = env::temp_dir();
    let short = usual.as_os_str().len() <= PARENT_BYTES_MAX;
    let open = account == Account::Own || usual.ancestors().all(is_open);
    if short && open {
        usual
    } else {
        PathBuf::from("/tmp")
    }
}

fn is_open(folder: &Path) -> bool {
    const OTHERS_MAY_PASS: u32 = 0o001;
    fs::metadata(folder).is_ok_and(|data| data.permissions().mode() & OTHERS_MAY_PASS != 0)
}
