//! Makes sure that a server never outlives the process that started it.
//!
//! A value's `Drop` does not run when a process is killed, aborts or calls `exit`, and a test program's statics
//! are never dropped. So a small shell watches a pipe that only we hold: when the pipe closes, however we ended,
//! it stops the server and removes its folder. It reads the server's pid from the folder at that moment, so a
//! restarted server is found and a foreign process that got an old pid is not.

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::error::{Error, Result};

const SCRIPT: &str = include_str!("janitor.sh");

/// Dropping it sends the janitor home; its folder must be gone by then.
#[derive(Debug)]
pub(super) struct Janitor {
    shell: Child,
}

impl Janitor {
    /// Starts to watch over the server in this folder.
    pub(super) fn watch(folder: &Path) -> Result<Self> {
        let script = folder.join("janitor.sh");
        fs::write(&script, SCRIPT).map_err(Error::io(format!("write {}", script.display())))?;
        let shell = Command::new("sh")
            .arg(&script)
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(Error::io("run sh"))?;
        Ok(Self { shell })
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // If the shell is gone, there is nobody to send home.
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }
}
