//! `version`: of the host, of the plugin contract and of the engine.

use serde::Serialize;

use super::output::{FormatArg, Output};
use crate::error::Failure;

/// Arguments of `version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: FormatArg,
}

/// What `version -o json` prints.
#[derive(Debug, Serialize)]
struct Versions {
    version: &'static str,
    contracts: [&'static str; 1],
    engine: Engine,
}

#[derive(Debug, Serialize)]
struct Engine {
    name: &'static str,
    version: &'static str,
}

const VERSIONS: Versions = Versions {
    version: env!("CARGO_PKG_VERSION"),
    contracts: ["projector:projection@0.1.0"],
    engine: Engine {
        name: "wasmtime",
        version: env!("PROJECTOR_WASMTIME_VERSION"),
    },
};

/// Prints the versions.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: Args, out: &Output) -> Result<(), Failure> {
    if args.output.is_json() {
        return out.json(&VERSIONS);
    }
    out.text(&format!(
        "projector-host {}\nplugin contract {}\n{} {}",
        VERSIONS.version,
        VERSIONS.contracts.join(", "),
        VERSIONS.engine.name,
        VERSIONS.engine.version
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_version_is_that_of_the_wit_package() {
        let wit = include_str!("../../../plugins/wit/projection.wit");
        let package = wit
            .lines()
            .find_map(|line| line.strip_prefix("package ")?.strip_suffix(';'));
        assert_eq!(package, Some(VERSIONS.contracts[0]));
    }
}
