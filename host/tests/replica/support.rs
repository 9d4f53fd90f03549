//! Which programs are tested.

use std::path::{Path, PathBuf};

use projector_testkit::site::Programs;

/// The folder of the built plugins, as `cargo xtask test` names it.
const PLUGINS_VARIABLE: &str = "PROJECTOR_TEST_PLUGINS";

/// The program of this build with the plugins that `cargo xtask plugins` has built.
pub fn programs() -> Programs {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = temporary.parent().expect("it lies in the target folder");
    let plugins =
        std::env::var_os(PLUGINS_VARIABLE).map_or_else(|| target.join("plugins"), PathBuf::from);
    assert!(
        plugins.join("order.wasm").is_file(),
        "there are no plugins in {}: run `cargo xtask plugins` first, or `cargo xtask test`",
        plugins.display()
    );
    Programs {
        host: env!("CARGO_BIN_EXE_projector-host").into(),
        plugins,
        cache: temporary.join("compiled-plugins"),
    }
}
