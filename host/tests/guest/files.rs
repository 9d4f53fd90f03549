//! Plugin files of every kind, cut at every place.

use std::path::Path;

use projector_host::error::Code;
use projector_host::guest::Limits;
use projector_host::plugin::{Loader, Options, Plugin, file};
use wasmparser::{Parser, Payload};

use projector_testkit::guests::from_text;

use crate::fixture::{engine, events, module, on_thread, project, repository};

fn loader() -> Loader {
    Loader::new(
        engine(),
        &Options {
            dir: "no-folder".into(),
            cache_dir: None,
            limits: Limits::default(),
            projections: Vec::new(),
            program: None,
        },
    )
}

fn load(bytes: Vec<u8>) -> Result<Plugin, projector_host::plugin::Error> {
    on_thread(move || loader().load_bytes(Path::new("x.wasm"), bytes))
}

fn refused(bytes: Vec<u8>, code: u16, parts: &[&str]) {
    let error = load(bytes).expect_err(parts[0]);
    let text = error.to_string();
    assert_eq!(error.code(), Code(code), "{text}");
    for part in parts {
        assert!(text.contains(part), "{text}");
    }
}

/// Where the outermost sections of a file end.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![0, 4, 8];
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.expect("valid");
        match &payload {
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                if let Some((_, range)) = payload.as_section() {
                    ends.push(range.end);
                }
            }
            _ => {}
        }
        if matches!(
            payload,
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. }
        ) {
            depth += 1;
        }
    }
    ends.retain(|end| *end < bytes.len());
    ends.sort_unstable();
    ends.dedup();
    ends
}

#[test]
fn a_file_cut_anywhere_is_refused_or_still_whole() {
    let core = module("base");
    let component = file::component(engine(), &core)
        .expect("a projection")
        .bytes;
    for whole in [core, component] {
        let manifest = load(whole.clone()).expect("whole").manifest;
        let cuts = boundaries(&whole);
        assert!(cuts.len() > 8, "{cuts:?}");
        let mut refusals = 0;
        for cut in cuts
            .iter()
            .flat_map(|end| [end.saturating_sub(1), *end, end + 1])
        {
            match load(whole[..cut.min(whole.len())].to_vec()) {
                // What is missing is only a section that says who built it.
                Ok(plugin) => assert_eq!(plugin.manifest, manifest),
                Err(error) => {
                    refusals += 1;
                    assert!((501..=511).contains(&error.code().0), "{cut}: {error}");
                }
            }
        }
        assert!(refusals > cuts.len() * 2, "{refusals} of {}", cuts.len());
    }
}

#[test]
fn flipped_bytes_never_end_the_host() {
    let whole = file::component(engine(), &module("base"))
        .expect("a projection")
        .bytes;
    on_thread(move || {
        let loader = loader();
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x15;
            // Whether it loads depends on the byte; that this line is passed is the test.
            drop(loader.load_bytes(Path::new("x.wasm"), bytes));
        }
    });
}

#[test]
fn a_component_of_another_world_is_told_what_it_exports() {
    let other = wat::parse_str(
        r#"(component
            (core module $m (func (export "run")))
            (core instance $i (instantiate $m))
            (func $run (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $cli)))"#,
    )
    .expect("valid text");
    refused(
        other,
        506,
        &[
            "it exports `wasi:cli/run@0.2.0`",
            "projector:projection/manifest",
        ],
    );
}

#[test]
fn half_a_world_and_wrong_types_are_named() {
    let manifest_only = wat::parse_str(
        r#"(component
            (instance $i)
            (export "projector:projection/manifest@0.1.0" (instance $i)))"#,
    )
    .expect("valid text");
    refused(
        manifest_only,
        506,
        &["but not `projector:projection/projector`"],
    );
    let wrong_types = wat::parse_str(
        r#"(component
            (instance $i)
            (export "projector:projection/manifest@0.1.0" (instance $i))
            (export "projector:projection/projector@0.1.0" (instance $i)))"#,
    )
    .expect("valid text");
    refused(
        wrong_types,
        506,
        &["other types than the contract", "describe"],
    );
}

#[test]
fn another_version_of_the_contract_is_named_with_its_number() {
    let later = wat::parse_str(
        r#"(component
            (instance $i)
            (export "projector:projection/manifest@0.2.0" (instance $i))
            (export "projector:projection/projector@0.2.0" (instance $i)))"#,
    )
    .expect("valid text");
    refused(later, 507, &["version 0.2.0", "0.1.0"]);
}

#[test]
fn a_later_patch_of_the_contract_is_the_same_contract() {
    let wit =
        std::fs::read_to_string(repository("plugins/wit/projection.wit")).expect("the contract");
    assert!(
        wit.contains("package projector:projection@0.1.0;"),
        "the version in this test is stale"
    );
    let component = file::component(engine(), &module("base"))
        .expect("a projection")
        .bytes;
    let needle = b"@0.1.0";
    let mut patched = component;
    for at in 0..patched.len() - needle.len() {
        if &patched[at..at + needle.len()] == needle {
            patched[at + 5] = b'7';
        }
    }
    let plugin = load(patched).expect("0.1.7 speaks 0.1.0");
    project(&plugin.guest, events(1), &Limits::default()).expect("and runs");
}

#[test]
fn every_unknown_import_is_listed_in_one_message() {
    let greedy = wat::parse_str(
        r#"(component
            (import "acme:secrets/vault@1.0.0" (instance))
            (import "acme:net/socket@1.0.0" (instance))
            (instance $i)
            (export "projector:projection/manifest@0.1.0" (instance $i))
            (export "projector:projection/projector@0.1.0" (instance $i)))"#,
    )
    .expect("valid text");
    refused(
        greedy,
        508,
        &["acme:secrets/vault@1.0.0", "acme:net/socket@1.0.0"],
    );
}

#[test]
fn core_modules_for_other_targets_are_told_how_to_build() {
    let plain = wat::parse_str("(module (memory (export \"memory\") 1))").expect("valid text");
    refused(
        plain,
        505,
        &["core module without the section", "wit-bindgen"],
    );
    let preview1 = from_text(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1))"#,
    );
    refused(preview1, 505, &["wasm32-wasip1", "wasm32-unknown-unknown"]);
    let unexported = from_text("(module (memory (export \"memory\") 1))");
    refused(unexported, 505, &["cannot be made a component", "describe"]);
}

#[test]
fn switched_off_features_are_refused_before_compiling() {
    for text in [
        "(module (memory 1 2 shared))",
        "(module (memory i64 1))",
        "(module (type (struct (field i32))))",
        "(module (tag (param i32)))",
    ] {
        let bytes = wat::parse_str(text).expect("valid text");
        refused(bytes, 504, &["no valid WebAssembly for this host"]);
    }
}

#[test]
fn a_plugin_that_cannot_describe_itself_is_refused_with_the_reason() {
    refused(
        module("trap-in-describe"),
        510,
        &["cannot be asked what it is", "unreachable"],
    );
    refused(
        module("refuses-config"),
        510,
        &["refuses its configuration"],
    );
    let text =
        std::fs::read_to_string(repository("plugins/fixtures/base.wat")).expect("the fixture");
    refused(
        from_text(
            &text
                .replace("hostile\\001.0", "HOSTILE\\001.0")
                .replace("\\00text", "\\00txet"),
        ),
        511,
        &[
            "name: \"HOSTILE\"",
            "events.id: has the unknown type `txet`",
        ],
    );
}
