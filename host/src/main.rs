//! Parses the command line, runs it, and turns the result into an exit code. No logic lives here.

use std::process::ExitCode;

/// Measured: see docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let exit = projector_host::commands::main(std::env::args_os());
    ExitCode::from(exit.code())
}
