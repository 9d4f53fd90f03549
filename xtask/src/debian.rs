//! Installs packages, where that is possible without asking: as root on Debian or a relative of it.

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::process;

const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Whether [`install`] can work here.
pub fn can_install() -> bool {
    rustix::process::geteuid().is_root() && is_debian()
}

/// Whether this is Debian or a relative.
pub fn is_debian() -> bool {
    fs::exists("/etc/debian_version").unwrap_or(false)
        && process::ask(Command::new("apt-get").arg("--version")).is_some()
}

/// Installs the packages; fetches the package lists first if they are missing or too old.
pub fn install(packages: &[&str]) -> Result<()> {
    eprintln!("    installing {}", packages.join(", "));
    if apt(&["install", "-y", "--no-install-recommends"], packages).is_ok() {
        return Ok(());
    }
    apt(&["update"], &[])?;
    apt(&["install", "-y", "--no-install-recommends"], packages)
        .with_context(|| format!("install {} by hand, then try again", packages.join(", ")))
}

fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .arg("-qq")
        .args(arguments)
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null());
    process::run_bounded(&mut command, LIMIT)
}
