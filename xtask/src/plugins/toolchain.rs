//! Three ways to a compiler for WebAssembly, tried in this order; the one taken is told.
//!
//! 1. The target is installed.
//! 2. `rustup target add`. It can hang for ever without network, so it has a time limit, and a failure is
//!    remembered for a day.
//! 3. Debian's own newer Rust with the source of the standard library, which is then built for the target.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Result, bail};

use super::{TARGET, attempt::Attempt};
use crate::{debian, place, process};

const TARGET_ADD_LIMIT: Duration = Duration::from_secs(45);

/// Debian's Rust that follows new releases closely, since the browsers need it.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// The first version of Rust that the guests compile with: the `rust-version` of their workspace.
const RUST_MINIMUM: (u32, u32) = (1, 95);

/// A way to a compiler for WebAssembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// The target is installed
    Installed,
    /// `rustup target add`
    Rustup,
    /// Debian's own Rust, which builds the standard library from source
    Debian,
}

/// A `cargo` that can build for the target once its arguments are added.
pub fn cargo(only: Option<Way>) -> Result<Command> {
    let mut refusals = Vec::new();
    for way in [Way::Installed, Way::Rustup, Way::Debian] {
        if only.is_some_and(|only| only != way) {
            continue;
        }
        let result = match way {
            Way::Installed => installed(),
            Way::Rustup => rustup(only.is_some()),
            Way::Debian => debian(),
        };
        match result {
            Ok(command) => return Ok(command),
            Err(refusal) => {
                eprintln!("    {refusal:#}");
                refusals.push(format!("- {refusal:#}"));
            }
        }
    }
    bail!(
        "there is no Rust that compiles for {TARGET}:\n{}\nInstall the target with `rustup target add {TARGET}`, or on \
         Debian `apt-get install {}`.",
        refusals.join("\n"),
        DEBIAN_PACKAGES.join(" ")
    )
}

fn installed() -> Result<Command> {
    if !has_target() {
        bail!("the target {TARGET} is not installed");
    }
    eprintln!("    compiling for {TARGET} with the installed target");
    Ok(process::cargo())
}

/// A failure within the last day counts, unless this way was asked for.
fn rustup(asked_for: bool) -> Result<Command> {
    let toolchain = sysroot("rustc").unwrap_or_default();
    if process::ask(Command::new("rustup").arg("--version")).is_none() {
        bail!("there is no rustup to install the target with");
    }
    let attempt = Attempt::new(
        place::cache()?,
        "rustup-target-add",
        toolchain.to_string_lossy(),
    );
    if let Some(age) = attempt.failed_ago().filter(|_| !asked_for) {
        bail!(
            "`rustup target add {TARGET}` failed {} minutes ago and is tried again a day later, or once {} is removed",
            age.as_secs() / 60,
            attempt.file().display()
        );
    }
    let mut command = Command::new("rustup");
    command.args(["target", "add", TARGET]);
    if let Err(error) = process::run_bounded(&mut command, TARGET_ADD_LIMIT) {
        attempt.failed();
        return Err(error);
    }
    attempt.succeeded();
    if !has_target() {
        bail!("`rustup target add {TARGET}` succeeded, but this compiler still lacks the target");
    }
    eprintln!("    compiling for {TARGET} with the target that rustup has just installed");
    Ok(process::cargo())
}

fn debian() -> Result<Command> {
    if !debian::is_debian() {
        bail!("this is not Debian, whose packages would be another way");
    }
    if !debian_is_ready() {
        if !debian::can_install() {
            bail!(
                "only root can install Debian's {}",
                DEBIAN_PACKAGES.join(", ")
            );
        }
        debian::install(&DEBIAN_PACKAGES)?;
    }
    if !debian_is_ready() {
        bail!(
            "Debian's {DEBIAN_RUSTC} is older than {}.{} or lacks its sources",
            RUST_MINIMUM.0,
            RUST_MINIMUM.1
        );
    }
    let Some(linker) = linker() else {
        bail!("there is no linker for WebAssembly: `apt-get install lld` brings one");
    };
    eprintln!("    compiling for {TARGET} with Debian's Rust, standard library from source");
    let mut command = Command::new(DEBIAN_CARGO);
    command
        .arg("-Zbuild-std=std,panic_abort")
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    for ours in [
        "CARGO",
        "RUSTUP_TOOLCHAIN",
        "RUSTDOC",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
    ] {
        command.env_remove(ours);
    }
    Ok(command)
}

fn has_target() -> bool {
    let folder =
        process::ask(Command::new(rustc()).args(["--print", "target-libdir", "--target", TARGET]));
    folder.is_some_and(|folder| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()))
}

fn debian_is_ready() -> bool {
    let version = process::ask(Command::new(DEBIAN_RUSTC).arg("--version"));
    let new_enough = version
        .and_then(|text| version_of(&text))
        .is_some_and(|version| version >= RUST_MINIMUM);
    let sources = sysroot(DEBIAN_RUSTC)
        .map(|sysroot| sysroot.join("lib/rustlib/src/rust/library/Cargo.lock"));
    new_enough && sources.is_some_and(|file| file.is_file()) && Path::new(DEBIAN_CARGO).is_file()
}

/// The linker of our own toolchain, else one that the system has. Debian's Rust brings only a link to one.
fn linker() -> Option<PathBuf> {
    let own = sysroot(&rustc()).into_iter().chain(sysroot(DEBIAN_RUSTC));
    let own = own.flat_map(|sysroot| {
        let hosts = fs::read_dir(sysroot.join("lib/rustlib"))
            .into_iter()
            .flatten()
            .flatten();
        hosts
            .map(|host| host.path().join("bin/rust-lld"))
            .collect::<Vec<_>>()
    });
    let path = env::var_os("PATH").unwrap_or_default();
    let system: Vec<_> = env::split_paths(&path)
        .map(|folder| folder.join("wasm-ld"))
        .collect();
    own.chain(system).find(|program| program.is_file())
}

fn rustc() -> String {
    env::var("RUSTC").unwrap_or_else(|_| "rustc".into())
}

fn sysroot(rustc: &str) -> Option<PathBuf> {
    process::ask(Command::new(rustc).args(["--print", "sysroot"])).map(PathBuf::from)
}

/// From `rustc 1.96.0 (…)` the pair (1, 96).
fn version_of(answer: &str) -> Option<(u32, u32)> {
    let mut numbers = answer.split_whitespace().nth(1)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_compilers_answer() {
        let check = |answer: &str, expected| assert_eq!(version_of(answer), expected, "{answer}");
        check(
            "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)",
            Some((1, 96)),
        );
        check("rustc 1.63.0", Some((1, 63)));
        check("rustc", None);
        assert!((1, 100) > RUST_MINIMUM && (1, 63) < RUST_MINIMUM);
    }
}
