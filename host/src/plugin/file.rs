//! From the bytes of a plugin file to a valid component of our contract, without compiling or running it.
//!
//! Promises: size is checked before anything is parsed, and everything is validated before the engine sees
//! it. Native code and text are refused.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use wasmparser::{Parser, Payload, Validator};
use wit_component::ComponentEncoder;

use super::error::{Error, reason};
use super::scan;
use crate::guest::{Engine, load};

/// Most bytes that a plugin file may have.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Sections with this beginning say which contract a core module was built for.
pub(super) const TYPE_SECTION: &str = "component-type";

const MAGIC: &[u8; 4] = b"\0asm";
const CORE: [u8; 4] = [1, 0, 0, 0];

/// A component of our contract, not yet compiled.
#[derive(Debug, Clone)]
pub struct Component {
    /// The component's bytes; other than the file's when the file is a core module.
    pub bytes: Vec<u8>,
    /// Whether the file was a core module.
    pub encoded: bool,
    /// Names of what it imports.
    pub imports: Vec<String>,
    /// Names of what it exports.
    pub exports: Vec<String>,
}

/// Reads a file, at most [`FILE_BYTES_MAX`] of it.
///
/// # Errors
/// When it cannot be read, or is larger.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        // Opening a pipe would wait for somebody who writes; what it is, is asked of the open file.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(Error::Read)?;
    if !file.metadata().map_err(Error::Read)?.is_file() {
        return Err(Error::Read(std::io::Error::other("it is no regular file")));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(Error::Read)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::TooLarge {
            max: FILE_BYTES_MAX,
        });
    }
    Ok(bytes)
}

/// The digest that names a plugin everywhere: SHA-256 over the file, in lower-case hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Finds out what the bytes are, and makes a component of them.
///
/// # Errors
/// When they are anything else than a projection; the message says what.
pub fn component(engine: &Engine, bytes: &[u8]) -> Result<Component, Error> {
    let is_core = bounded(bytes)?;
    validate(engine, bytes)?;
    let bytes_of_component = if is_core {
        let encoded = encode(bytes)?;
        validate(engine, &encoded)?;
        encoded
    } else {
        bytes.to_vec()
    };
    let (imports, exports) = names(&bytes_of_component)?;
    load::check_names(&imports, &exports)?;
    Ok(Component {
        bytes: bytes_of_component,
        encoded: is_core,
        imports,
        exports,
    })
}

/// Checks what costs little and needs no trust: what kind of file it is, and that it is within the bounds of [`scan`].
/// Returns whether it is a core module.
///
/// # Errors
/// When it is no WebAssembly, or too much of it.
pub fn bounded(bytes: &[u8]) -> Result<bool, Error> {
    let is_core = kind(bytes)?;
    scan::check(bytes)?;
    Ok(is_core)
}

/// Whether it is a core module.
fn kind(bytes: &[u8]) -> Result<bool, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Err(Error::Precompiled);
    }
    if let Some(rest) = bytes.strip_prefix(MAGIC) {
        return match rest.first_chunk::<4>() {
            Some(version) => Ok(*version == CORE),
            None => Err(Error::Truncated {
                at: bytes.len() as u64,
            }),
        };
    }
    if MAGIC.starts_with(bytes) {
        return Err(Error::Truncated {
            at: bytes.len() as u64,
        });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Err(Error::Text),
        _ => Err(Error::NotWasm),
    }
}

fn validate(engine: &Engine, bytes: &[u8]) -> Result<(), Error> {
    Validator::new_with_features(engine.wasmtime().get_wasm_features())
        .validate_all(bytes)
        .map(drop)
        .map_err(|error| Error::malformed(&error, bytes.len()))
}

fn encode(module: &[u8]) -> Result<Vec<u8>, Error> {
    let mut carries_type = false;
    let mut preview1 = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| Error::Invalid(reason(&error)))? {
            Payload::CustomSection(section) => {
                carries_type |= section.name().starts_with(TYPE_SECTION);
            }
            Payload::ImportSection(section) => {
                preview1 |= section
                    .into_imports()
                    .flatten()
                    .any(|import| import.module == "wasi_snapshot_preview1");
            }
            _ => {}
        }
    }
    if !carries_type {
        return Err(Error::NoComponentType);
    }
    if preview1 {
        return Err(Error::Encode(
            "it imports `wasi_snapshot_preview1`, so it was built for `wasm32-wasip1`; build it for \
             `wasm32-unknown-unknown` or `wasm32-wasip2`"
                .into(),
        ));
    }
    ComponentEncoder::default()
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| Error::Encode(reason(&error)))
}

/// Names of the imports and exports of the outermost component.
fn names(component: &[u8]) -> Result<(Vec<String>, Vec<String>), Error> {
    let invalid = |error: wasmparser::BinaryReaderError| Error::Invalid(reason(&error));
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(invalid)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import.map_err(invalid)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.push(export.map_err(invalid)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::EngineOptions;

    fn check(bytes: &[u8], part: &str) {
        let engine = Engine::new(&EngineOptions::default()).expect("an engine");
        let error = component(&engine, bytes).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn what_is_no_component_is_named() {
        check(b"", "empty");
        check(b"\0as", "cut off at byte 3");
        check(b"\0asm\x01\0", "cut off at byte 6");
        check(b"(module)", "text");
        check(b"\x7fELF\x02\x01\x01\0\0\0", "no WebAssembly file");
        check(b"\0asm\x01\0\0\0", "core module without the section");
        check(b"\0asm\x01\0\0\0\x01\x05\x01", "cut off at byte 11");
        check(b"\0asm\x01\0\0\0\x0a\x02\x01\x00", "no valid WebAssembly");
        check(b"\0asm\x63\0\0\0", "no valid WebAssembly");
        check(b"\0asm\x0d\0\x01\0", "it exports nothing");
    }

    #[test]
    fn native_code_is_refused() {
        let engine = Engine::new(&EngineOptions::default()).expect("an engine");
        let compiled = engine
            .wasmtime()
            .precompile_component(b"\0asm\x0d\0\x01\0")
            .expect("an empty component compiles");
        check(&compiled, "precompiled native code");
    }

    #[test]
    fn a_digest_is_sha256_in_hexadecimal() {
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
