//! The plugin folder: good files run whatever lies beside them.

use std::path::{Path, PathBuf};

use projector_host::guest::Limits;
use projector_host::plugin::{Declared, Loaded, Options, file, load_all};
use tempfile::TempDir;

use projector_testkit::guests::from_text;

use crate::fixture::{engine, module, repository};

struct Folder {
    dir: TempDir,
    options: Options,
}

impl Folder {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).expect("a file");
        }
        let options = Options {
            dir: dir.path().to_owned(),
            cache_dir: None,
            limits: Limits {
                fuel_max: 50_000_000,
                ..Limits::default()
            },
            projections: Vec::new(),
            program: None,
        };
        Self { dir, options }
    }

    fn declare(mut self, name: &str, change: impl FnOnce(&mut Declared)) -> Self {
        let mut declared = Declared {
            name: name.into(),
            component: None,
            sha256: None,
            config_json: "{}".into(),
            limits: None,
        };
        change(&mut declared);
        self.options.projections.push(declared);
        self
    }

    fn load(&self) -> Loaded {
        load_all(engine(), &self.options)
    }

    /// Names of what runs, and code and file of what does not.
    fn check(&self, runs: &[&str], refused: &[(u16, &str)]) -> Loaded {
        let loaded = self.load();
        let found: Vec<&str> = loaded
            .plugins
            .iter()
            .map(|p| p.manifest.name.as_str())
            .collect();
        assert_eq!(found, runs, "{:?}", loaded.refused);
        let found: Vec<(u16, PathBuf)> = loaded
            .refused
            .iter()
            .map(|r| (r.code.0, r.file.clone()))
            .collect();
        let expected: Vec<(u16, PathBuf)> = refused
            .iter()
            .map(|(code, file)| (*code, self.dir.path().join(file)))
            .collect();
        assert_eq!(found, expected, "{:?}", loaded.refused);
        for refused in &loaded.refused {
            assert!(
                refused
                    .message
                    .starts_with(&refused.file.display().to_string())
            );
        }
        loaded
    }
}

/// The well-behaved guest under another name (7 letters) and with another table (6 letters).
fn named(name: &str, table: &str) -> Vec<u8> {
    assert_eq!((name.len(), table.len()), (7, 6));
    let text =
        std::fs::read_to_string(repository("plugins/fixtures/base.wat")).expect("the fixture");
    let changed = text
        .replace("\"hostile\\", &format!("\"{name}\\"))
        .replace("\\00events\\", &format!("\\00{table}\\"));
    from_text(&changed)
}

#[test]
fn a_bad_file_never_stops_a_good_one() {
    let folder = Folder::new(&[
        ("a-empty.wasm", Vec::new()),
        ("b-text.wasm", b"(module)".to_vec()),
        ("c-good.wasm", module("base")),
        ("d-trap.wasm", module("trap-in-start")),
        ("e-loop.wasm", module("loop-in-describe")),
        ("notes.txt", b"not looked at".to_vec()),
        (".half.wasm", b"hidden: still being written".to_vec()),
    ]);
    std::fs::create_dir(folder.dir.path().join("folder.wasm")).expect("a folder");
    let loaded = folder.check(
        &["hostile"],
        &[
            (502, "a-empty.wasm"),
            (502, "b-text.wasm"),
            (510, "d-trap.wasm"),
            (510, "e-loop.wasm"),
        ],
    );
    let plugin = &loaded.plugins[0];
    assert_eq!(plugin.sha256, file::sha256(&module("base")));
    assert_eq!(&*plugin.bytes, module("base"));
    assert_eq!(plugin.config_json, "{}");
}

#[test]
fn two_files_with_one_name_or_one_table_are_both_refused_and_name_each_other() {
    let folder = Folder::new(&[
        ("a.wasm", named("first-x", "tablea")),
        ("b.wasm", named("first-x", "tableb")),
        ("c.wasm", named("third-x", "tablec")),
        ("d.wasm", named("fourth-", "tablec")),
        ("e.wasm", named("fifth-x", "tablee")),
    ]);
    let loaded = folder.check(
        &["fifth-x"],
        &[
            (512, "a.wasm"),
            (512, "b.wasm"),
            (512, "c.wasm"),
            (512, "d.wasm"),
        ],
    );
    assert!(
        loaded.refused[0]
            .message
            .contains("the projection name `first-x` is also claimed by")
    );
    assert!(loaded.refused[0].message.contains("b.wasm"));
    assert!(loaded.refused[3].message.contains("the table `tablec`"));
    assert!(loaded.refused[3].message.contains("c.wasm"));
}

#[test]
fn a_pin_is_checked_before_anything_of_the_file_is_used() {
    let digest = file::sha256(&module("base"));
    let files = [("hostile.wasm", module("base"))];
    Folder::new(&files)
        .declare("hostile", |d| d.sha256 = Some(digest.to_uppercase()))
        .check(&["hostile"], &[]);
    Folder::new(&files)
        .declare("hostile", |d| d.sha256 = Some("0".repeat(64)))
        .check(&[], &[(513, "hostile.wasm")]);
    Folder::new(&[("hostile.wasm", b"no plugin at all".to_vec())])
        .declare("hostile", |d| d.sha256 = Some(digest.clone()))
        .check(&[], &[(513, "hostile.wasm")]);
    // Found by its own name, under another file name.
    Folder::new(&[("other.wasm", module("base"))])
        .declare("hostile", |d| d.sha256 = Some("0".repeat(64)))
        .check(&[], &[(513, "other.wasm")]);
}

#[test]
fn a_configured_projection_is_found_by_file_or_by_its_own_name() {
    let limits = Limits {
        writes_per_batch_max: 7,
        ..Limits::default()
    };
    let with_config = |d: &mut Declared| {
        d.config_json = r#"{"a":1}"#.into();
        d.limits = Some(limits.clone());
    };
    for (name, component) in [
        ("hostile.wasm", None),
        ("other.wasm", Some("other.wasm")),
        ("other.wasm", None),
    ] {
        let folder = Folder::new(&[(name, module("base"))]).declare("hostile", |d| {
            with_config(d);
            d.component = component.map(PathBuf::from);
        });
        let loaded = folder.check(&["hostile"], &[]);
        assert_eq!(
            loaded.plugins[0].config_json, r#"{"a":1}"#,
            "{name} {component:?}"
        );
        assert_eq!(loaded.plugins[0].limits, limits);
    }
    Folder::new(&[("order.wasm", module("base"))])
        .declare("order", |_| {})
        .check(&[], &[(515, "order.wasm")]);
    Folder::new(&[])
        .declare("order", |_| {})
        .check(&[], &[(514, "order.wasm")]);
    Folder::new(&[("good.wasm", module("base"))])
        .declare("order", |d| d.component = Some("gone.wasm".into()))
        .check(&["hostile"], &[(514, "gone.wasm")]);
}

#[test]
fn a_projection_whose_file_another_one_has_is_refused_by_name() {
    let shared = Folder::new(&[("hostile.wasm", module("base"))])
        .declare("hostile", |_| {})
        .declare("second", |d| d.component = Some("hostile.wasm".into()))
        .check(&["hostile"], &[(831, "hostile.wasm")]);
    let message = &shared.refused[0].message;
    assert!(
        message.contains("`second`") && message.contains("`hostile`"),
        "{message}"
    );
    assert!(shared.broken.is_empty(), "the first one is fine");
}

#[test]
fn a_file_outside_the_folder_can_be_configured() {
    let outside = Folder::new(&[("plugin.wasm", module("base"))]);
    let path = outside.dir.path().join("plugin.wasm");
    Folder::new(&[])
        .declare("hostile", |d| d.component = Some(path))
        .check(&["hostile"], &[]);
}

#[test]
fn a_folder_that_is_not_there_is_one_refusal() {
    let mut folder = Folder::new(&[]);
    folder.options.dir = folder.dir.path().join("gone");
    let loaded = folder.load();
    assert_eq!(loaded.refused.len(), 1);
    assert!(
        loaded.refused[0].message.contains("set `[plugins] dir`"),
        "{:?}",
        loaded.refused
    );
}

#[test]
fn compiled_code_is_kept_and_used_again() {
    let cache = tempfile::tempdir().expect("a folder");
    let mut folder = Folder::new(&[("hostile.wasm", module("base"))]);
    folder.options.cache_dir = Some(cache.path().join("compiled"));
    folder.check(&["hostile"], &[]);
    let entries = || {
        std::fs::read_dir(cache.path().join("compiled"))
            .expect("made")
            .filter(|entry| {
                let path = entry.as_ref().expect("an entry").path();
                path.extension().is_some_and(|end| end == "compiled")
            })
            .count()
    };
    assert_eq!(entries(), 1);
    folder.check(&["hostile"], &[]);
    assert_eq!(entries(), 1);
    // A cache that cannot be written costs nothing but time.
    folder.options.cache_dir = Some(Path::new("/proc/no-folder-can-be-made-here").to_owned());
    folder.check(&["hostile"], &[]);
}
