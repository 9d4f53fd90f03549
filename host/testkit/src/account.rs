//! Which account the server runs under.
//!
//! PostgreSQL refuses root. When we are root, an existing account is taken, and one is created only if there is
//! none; otherwise the server runs as ourselves.

use std::{fs, os::unix::process::CommandExt, path::Path, process::Command};

use crate::error::{Error, Result};

/// Tried in this order.
const CANDIDATES: [&str; 3] = ["postgres", "nobody", CREATED];

/// Created as a last resort.
const CREATED: &str = "projector-pg";

/// The account that PostgreSQL's programs get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// Our own.
    Own,
    /// Another one, since we are root.
    Other { user: u32, group: u32 },
}

impl Account {
    /// Picks the account; may create one when run as root on a machine that has neither `postgres` nor `nobody`.
    pub(crate) fn pick() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        if let Some(account) = existing() {
            return Ok(account);
        }
        // The result shows in the next look-up; a machine without `useradd` ends in the error below.
        let _ = Command::new("useradd")
            .args(["--system", "--no-create-home", CREATED])
            .output();
        existing().ok_or(Error::NoAccount)
    }

    /// Lets the command run under this account.
    pub(crate) fn apply(self, command: &mut Command) {
        if let Self::Other { user, group } = self {
            command.uid(user).gid(group);
        }
    }

    /// Hands a file or folder to this account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { user, group } => std::os::unix::fs::chown(path, Some(user), Some(group))
                .map_err(Error::io(format!(
                    "hand {} to the server's account",
                    path.display()
                ))),
        }
    }
}

fn existing() -> Option<Account> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    CANDIDATES.iter().find_map(|name| in_passwd(&passwd, name))
}

fn in_passwd(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        (user != 0).then_some(Account::Other { user, group })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_the_password_file() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\npostgres:x:101:104:PostgreSQL:/var:/bin/bash\n";
        assert_eq!(
            in_passwd(passwd, "postgres"),
            Some(Account::Other {
                user: 101,
                group: 104
            })
        );
        assert_eq!(in_passwd(passwd, "nobody"), None);
        assert_eq!(
            in_passwd(passwd, "root"),
            None,
            "root itself is never picked"
        );
    }
}
