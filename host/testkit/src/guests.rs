//! Guests that misbehave: the texts of `plugins/fixtures`, made into plugin files.
//!
//! Each file of that folder replaces blocks of `base.wat`, so that it shows one fault and nothing else.

pub mod harmful;
mod hostile;
pub mod trial;

use wit_component::{StringEncoding, embed_component_metadata};

use crate::repository;

pub use hostile::{EVERY_GUEST, Expected, Hostile};

/// As much of WASI as the fixtures import, and worlds that have it.
const WASI: [&str; 6] = [
    "package wasi:io@0.2.3;
     interface error { resource error; }
     interface poll { resource pollable { block: func(); } }
     interface streams {
       use error.{error};
       variant stream-error { last-operation-failed(error), closed }
       resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
     }",
    "package wasi:clocks@0.2.3;
     interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
     interface monotonic-clock {
       use wasi:io/poll@0.2.3.{pollable};
       subscribe-duration: func(when: u64) -> pollable;
     }",
    "package wasi:random@0.2.3; interface random { get-random-u64: func() -> u64; }",
    "package wasi:cli@0.2.3;
     interface stdout { use wasi:io/streams@0.2.3.{output-stream}; get-stdout: func() -> output-stream; }",
    "package wasi:sockets@0.2.3; interface lookup { resolve: func() -> u32; }",
    "package test:worlds;
     world with-wasi {
       include projector:projection/projection@0.1.0;
       import wasi:clocks/wall-clock@0.2.3;
       import wasi:clocks/monotonic-clock@0.2.3;
       import wasi:io/poll@0.2.3;
       import wasi:random/random@0.2.3;
       import wasi:cli/stdout@0.2.3;
     }
     world with-socket {
       include projector:projection/projection@0.1.0;
       import wasi:sockets/lookup@0.2.3;
     }",
];

/// Blocks of `base.wat`.
const BLOCKS: [&str; 6] = [
    "imports", "memory", "describe", "project", "realloc", "more",
];

/// What `base.wat` calls its projection and its table, and where it says which events it wants: none is listed.
const PROJECTION: &str = "hostile";
const TABLE: &str = "events";
const ALL_TYPES: &str = r#""\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00""#;

/// A list of one type, which is the projection's name.
const OWN_TYPE: &str = r#""\e0\03\00\00\01\00\00\00" "\00\00\00\00\00\00\00\00""#;
const OWN_TYPE_LIST: &str = r#"(data (i32.const 992) "\00\01\00\00\07\00\00\00")"#;

/// The text of a fixture, whole.
///
/// # Panics
/// When there is no such file, or it replaces nothing.
pub fn text(fixture: &str) -> String {
    let base = read("base");
    match fixture {
        "base" => base,
        name => replace(base, &read(name)),
    }
}

/// The same guest under another name, with a table of another name. With `own_type` it wants only events whose type
/// is its name.
///
/// # Panics
/// When a name has not the length of the one that it replaces, 7 and 6 bytes.
pub fn renamed(text: &str, projection: &str, table: &str, own_type: bool) -> String {
    assert_eq!(
        (projection.len(), table.len()),
        (PROJECTION.len(), TABLE.len()),
        "{projection} {table}"
    );
    let text = text.replace(PROJECTION, projection).replace(TABLE, table);
    if !own_type {
        return text;
    }
    assert!(
        text.contains(ALL_TYPES),
        "the base says which events it wants"
    );
    let text = text.replacen(ALL_TYPES, OWN_TYPE, 1);
    text.replacen(
        ";; <describe>",
        &format!("{OWN_TYPE_LIST}\n;; <describe>"),
        1,
    )
}

/// The core module of a fixture, with the type section.
pub fn module(fixture: &str) -> Vec<u8> {
    from_text(&text(fixture))
}

/// A core module from text, with the type section of the world that it exports.
///
/// # Panics
/// When the text is not valid.
pub fn from_text(text: &str) -> Vec<u8> {
    let mut module = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve
        .push_path(repository("plugins/wit"))
        .expect("the contract");
    let world = if text.contains("#project-json") {
        "projection-json"
    } else if text.contains("\"wasi:sockets") {
        "with-socket"
    } else if text.contains("\"wasi:clocks") {
        "with-wasi"
    } else {
        "projection"
    };
    let package = if world.starts_with("with") {
        WASI.iter()
            .map(|source| resolve.push_str("wasi.wit", source).expect("valid WIT"))
            .last()
            .unwrap_or(package)
    } else {
        package
    };
    let world = resolve
        .select_world(&[package], Some(world))
        .expect("the world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("the type section");
    module
}

/// Puts the blocks of one text in the place of the blocks of the same name in another.
fn replace(mut base: String, with: &str) -> String {
    let mut replaced = 0;
    for name in BLOCKS {
        let (open, close) = (format!(";; <{name}>\n"), format!(";; </{name}>"));
        let block = |text: &str| {
            let start = text.find(&open)? + open.len();
            Some(start..start + text[start..].find(&close)?)
        };
        if let Some(found) = block(with) {
            let place = block(&base).expect("the base has every block");
            base.replace_range(place, &with[found]);
            replaced += 1;
        }
    }
    assert!(replaced > 0, "no block is replaced");
    base
}

fn read(fixture: &str) -> String {
    let path = repository("plugins/fixtures").join(format!("{fixture}.wat"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
