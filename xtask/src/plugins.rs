//! `cargo xtask plugins`: builds the shipped plugins for WebAssembly and puts them into one folder.
//!
//! The result is what the compiler gives, a core module with the component type in it; the host turns it into a
//! component when it loads it. Cargo decides what has to be built again.

mod attempt;
mod toolchain;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{place, process};
pub use toolchain::Way;

/// The shipped plugins: (package, name of the plugin).
const SHIPPED: [(&str, &str); 3] = [
    ("projection-order", "order"),
    ("projection-scheduling", "scheduling"),
    ("projection-service-request", "service-request"),
];

/// The target that they are built for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Takes this way to a compiler for WebAssembly and no other
    #[arg(long, value_enum)]
    via: Option<Way>,
}

/// Builds and tells where the files are.
pub fn run(arguments: &Arguments) -> Result<()> {
    for file in build(arguments.via)? {
        println!("{}", file.display());
    }
    Ok(())
}

/// Builds the plugins; gives the files.
pub fn build(via: Option<Way>) -> Result<Vec<PathBuf>> {
    let guests = place::target().join("guests");
    let mut command = toolchain::cargo(via)?;
    command
        .current_dir(place::guests())
        .env("CARGO_TARGET_DIR", &guests);
    command.args(["build", "--release", "--target", TARGET]);
    for (package, _) in SHIPPED {
        command.args(["--package", package]);
    }
    process::run(&mut command)?;

    let folder = place::plugins();
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let built = guests.join(TARGET).join("release");
    SHIPPED
        .iter()
        .map(|(package, name)| {
            let file = folder.join(format!("{name}.wasm"));
            place_file(
                &built.join(format!("{}.wasm", package.replace('-', "_"))),
                &file,
            )?;
            Ok(file)
        })
        .collect()
}

/// Puts a copy in place in one step, and not at all if it is the same: a running host may watch that folder.
fn place_file(from: &Path, to: &Path) -> Result<()> {
    let content =
        fs::read(from).with_context(|| format!("the build did not give {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let half = to.with_extension("wasm.tmp");
    fs::write(&half, content).with_context(|| format!("cannot write {}", half.display()))?;
    fs::rename(&half, to).with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_file_is_left_alone_and_a_changed_one_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (
            folder.path().join("from.wasm"),
            folder.path().join("to.wasm"),
        );
        let modified = || {
            fs::metadata(&to)
                .and_then(|data| data.modified())
                .expect("the file is there")
        };
        fs::write(&from, "one").expect("written");
        place_file(&from, &to).expect("placed");
        let first = modified();
        place_file(&from, &to).expect("placed");
        assert_eq!(modified(), first);
        fs::write(&from, "two").expect("written");
        place_file(&from, &to).expect("placed");
        assert_eq!(fs::read_to_string(&to).expect("read"), "two");
        assert_eq!(
            fs::read_dir(folder.path()).expect("listed").count(),
            2,
            "no half-written file stays"
        );
    }
}
