//! Reading small files from disk: configuration, tokens, URLs.
//!
//! Promises: a name may lead to anything, and no read waits or grows because of that. A pipe would wait for somebody who
//! writes, a device may never end.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Most bytes of a configuration file.
pub const CONFIG_BYTES_MAX: u64 = 4 << 20;

/// Most bytes of a file that holds one secret.
pub const SECRET_BYTES_MAX: u64 = 64 << 10;

/// Opens a regular file, or `/dev/null`, which is an empty one. What kind it is, is asked of the open file, so that nobody changes it in between.
///
/// # Errors
/// When it cannot be opened, or is anything else.
pub fn open(path: &Path) -> Result<File> {
    let without_waiting = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(without_waiting.cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Error::new(
            ErrorKind::IsADirectory,
            "it is a folder, not a file",
        ));
    }
    // What people name for "nothing".
    let is_null = kind.is_char_device() && metadata.rdev() == rustix::fs::makedev(1, 3);
    if !kind.is_file() && !is_null {
        return Err(Error::other("it is no regular file"));
    }
    Ok(file)
}

/// Reads a regular file of at most this many bytes.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("it is larger than {bytes_max} bytes");
        return Err(Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// The same as text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_its_size_is_read_and_nothing_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "12345").expect("a file");
        let made = std::process::Command::new("mkfifo")
            .arg(path("pipe"))
            .status();
        assert!(made.is_ok_and(|status| status.success()));
        std::os::unix::fs::symlink("/dev/zero", path("zero")).expect("a link");
        std::os::unix::fs::symlink("file", path("link")).expect("a link");
        let check = |name: &str, bytes_max, expected: std::result::Result<&str, &str>| {
            let found = read_text(&path(name), bytes_max).map_err(|error| error.to_string());
            let found = found.as_deref().map_err(String::as_str);
            assert_eq!(found, expected, "{name}");
        };
        check("file", 5, Ok("12345"));
        check("link", 5, Ok("12345"));
        check("file", 4, Err("it is larger than 4 bytes"));
        check("pipe", 5, Err("it is no regular file"));
        check("zero", 5, Err("it is no regular file"));
        check(".", 5, Err("it is a folder, not a file"));
    }
}
