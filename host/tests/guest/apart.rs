//! Files that are loaded in a process of their own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use projector_host::error::Code;
use projector_host::guest::Limits;
use projector_host::plugin::{Loaded, Loader, Options, Shelf, load_all};
use tempfile::TempDir;

use projector_testkit::guests::harmful::every_file;

use crate::fixture::{engine, module};

/// Most that any of the harmful files may take, on a machine that does much else.
const TIME_MAX: Duration = Duration::from_secs(20);

struct Folder {
    dir: TempDir,
    options: Options,
}

impl Folder {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let plugins = dir.path().join("plugins");
        std::fs::create_dir(&plugins).expect("a folder");
        for (name, bytes) in files {
            std::fs::write(plugins.join(name), bytes).expect("a file");
        }
        let options = Options {
            dir: plugins,
            cache_dir: None,
            limits: Limits {
                fuel_max: 50_000_000,
                ..Limits::default()
            },
            projections: Vec::new(),
            program: Some(PathBuf::from(env!("CARGO_BIN_EXE_projector-host"))),
        };
        Self { dir, options }
    }

    fn load(&self) -> Loaded {
        load_all(engine(), &self.options)
    }
}

fn codes(loaded: &Loaded) -> Vec<Code> {
    loaded.refused.iter().map(|refused| refused.code).collect()
}

#[test]
fn a_plugin_is_the_same_as_when_it_is_loaded_here() {
    let mut folder = Folder::new(&[("hostile.wasm", module("base"))]);
    let apart = folder.load();
    folder.options.program = None;
    let here = folder.load();
    assert_eq!(apart.refused, []);
    assert_eq!(apart.plugins[0].manifest, here.plugins[0].manifest);
    assert_eq!(apart.plugins[0].sha256, here.plugins[0].sha256);
}

#[test]
fn refusals_are_the_same_as_when_it_is_loaded_here() {
    let names = [
        "trap-in-start",
        "trap-in-describe",
        "loop-in-describe",
        "quoted-name",
        "refuses-config",
    ];
    let files: Vec<(String, Vec<u8>)> = names
        .iter()
        .map(|name| (format!("{name}.wasm"), module(name)))
        .chain([
            ("empty.wasm".to_owned(), Vec::new()),
            ("text.wasm".to_owned(), b"(module)".to_vec()),
            ("cut.wasm".to_owned(), module("base")[..300].to_vec()),
        ])
        .collect();
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let mut folder = Folder::new(&files);
    let apart = folder.load();
    folder.options.program = None;
    assert_eq!(apart.refused, folder.load().refused);
    assert_eq!(apart.refused.len(), files.len());
}

#[test]
fn harmful_files_are_refused_by_name_and_in_time_and_the_good_one_runs() {
    let harmful = every_file();
    let folder = Folder::new(&[("hostile.wasm", module("base"))]);
    for file in &harmful {
        let path = folder.options.dir.join(format!("{}.wasm", file.name));
        std::fs::write(&path, &file.bytes).expect("there is room");
        let begun = Instant::now();
        let loaded = folder.load();
        assert_eq!(codes(&loaded), [Code(file.code)], "{:?}", loaded.refused);
        let message = &loaded.refused[0].message;
        assert!(
            message.starts_with(&path.display().to_string()),
            "{message}"
        );
        assert_eq!(loaded.plugins.len(), 1, "{}", file.name);
        assert!(
            begun.elapsed() < TIME_MAX,
            "{}: {:?}",
            file.name,
            begun.elapsed()
        );
        std::fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn what_was_compiled_before_needs_no_process_and_no_other_file_gets_it() {
    let mut folder = Folder::new(&[("hostile.wasm", module("base"))]);
    let cache = folder.dir.path().join("compiled");
    folder.options.cache_dir = Some(cache.clone());
    assert_eq!(folder.load().refused, []);
    folder.options.program = Some("/no/such/program".into());
    assert_eq!(folder.load().refused, []);
    let entry = |dir: &Path| {
        let entries = std::fs::read_dir(dir).expect("the cache");
        let mut paths = entries.map(|entry| entry.expect("an entry").path());
        paths.find(|path| path.extension().is_some_and(|end| end == "compiled"))
    };
    // The same entry under the name of another file.
    let other = module("json");
    let name = entry(&cache).expect("one entry");
    let settings = name
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let settings = settings.split_once('-').expect("two parts").1.to_owned();
    let digest = projector_host::plugin::file::sha256(&other);
    std::fs::rename(&name, cache.join(format!("{digest}-{settings}"))).expect("own folder");
    std::fs::write(folder.options.dir.join("hostile.wasm"), other).expect("there is room");
    assert_eq!(codes(&folder.load()), [Code(519)]);
}

#[test]
fn a_file_for_which_there_was_no_process_is_tried_again_without_being_changed() {
    let folder = Folder::new(&[("hostile.wasm", module("base"))]);
    let program = folder.dir.path().join("program");
    let options = Options {
        program: Some(program.clone()),
        ..folder.options.clone()
    };
    let mut shelf = Shelf::new(Loader::new(engine(), &options).into());
    shelf.take_all();
    assert_eq!(codes(&shelf.loaded()), [Code(519)]);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_projector-host"), program).expect("a link");
    shelf.take_all();
    assert_eq!(shelf.loaded().plugins.len(), 1);
}

#[test]
fn a_file_name_cannot_forge_a_line() {
    let folder = Folder::new(&[("a\n2026-01-01 INFO leading\u{1b}[2J.wasm", Vec::new())]);
    let loaded = folder.load();
    let message = &loaded.refused[0].message;
    assert!(!message.contains(char::is_control), "{message:?}");
    assert!(
        message.contains("a\\n2026-01-01 INFO leading\\u{1b}[2J.wasm"),
        "{message}"
    );
}
