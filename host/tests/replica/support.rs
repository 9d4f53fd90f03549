//! Which programs are tested.

use projector_testkit::site::Programs;

/// The program of this build with the plugins that `cargo xtask plugins` has built.
pub fn programs() -> Programs {
    Programs::built(
        env!("CARGO_BIN_EXE_projector-host"),
        env!("CARGO_TARGET_TMPDIR"),
    )
}
