//! `completions`: the completion script of a shell.

use clap::CommandFactory as _;

use super::Cli;
use super::output::Output;
use crate::error::Failure;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which shell
    pub shell: clap_complete::Shell,
}

/// Prints the script.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args, out: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "projector-host",
        &mut script,
    );
    out.text(&String::from_utf8_lossy(&script))
}
