//! A standby of a server: for take-over tests.

use std::time::Duration;

use super::{Server, folder::Folder};
use crate::{
    error::{Error, Result},
    tool,
};

const PROMOTE_TIMEOUT: Duration = Duration::from_secs(60);

impl Server {
    /// Copies this server into a streaming standby that can be read at once.
    ///
    /// Start the server on what [`Installation::find_with`](crate::Installation::find_with)`("pg_basebackup")` gives:
    /// that program serves only its own version.
    pub fn basebackup(&self) -> Result<Server> {
        let folder = Folder::create(self.folder.account(), None)?;
        let mut command = folder.command(&self.installation.program("pg_basebackup")?);
        command.args([
            "--write-recovery-conf",
            "--wal-method=stream",
            "--checkpoint=fast",
            "--no-sync",
            "-D",
        ]);
        command
            .arg(folder.data())
            .arg("-d")
            .arg(self.url("postgres"));
        tool::run("pg_basebackup", &mut command)?;
        Self::start_in(folder, self.installation.clone(), self.options.clone())
    }

    /// Makes a standby writable and waits until it is.
    pub fn promote(&self) -> Result<()> {
        let answer = self.psql(
            "postgres",
            &format!("select pg_promote(true, {})", PROMOTE_TIMEOUT.as_secs()),
        )?;
        if answer == "t" {
            return Ok(());
        }
        Err(Error::TooSlow {
            what: "take over",
            limit: PROMOTE_TIMEOUT,
            log: self.log_tail(),
        })
    }
}
