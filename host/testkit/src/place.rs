//! Where the repository lies, asked when a test runs. What was compiled in may be the folder of another clone that
//! shares the target folder, and is perhaps gone.

use std::env;
use std::path::{Path, PathBuf};

/// A path of the repository.
///
/// # Panics
/// When cargo did not start this program.
pub fn repository(path: &str) -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where its package lies");
    let root = Path::new(&package)
        .ancestors()
        .find(|folder| folder.join("plugins/wit").is_dir());
    root.expect("the package lies in the repository").join(path)
}
