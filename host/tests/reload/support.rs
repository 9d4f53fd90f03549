//! A site with plugin folders of its own, and plugins in any number of versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use projector_host::plugin::file::sha256;
use projector_testkit::guests::from_text;
use projector_testkit::repository;
use projector_testkit::site::{Databases, Programs, QUICK, Replica, Site};
use serde_json::Value;
use tempfile::TempDir;

/// A site and the plugin folder that its configuration names.
pub struct Place {
    pub site: Site,
    pub dir: TempDir,
}

impl Place {
    /// An empty plugin folder, with these lines under `[plugins]`.
    pub fn new(lines: &str) -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        let programs = Programs {
            plugins: dir.path().to_owned(),
            ..programs()
        };
        let site = Site::shared(programs, Databases::One, QUICK);
        site.configure(|text| text.replace("[plugins]\n", &format!("[plugins]\n{lines}\n")));
        Self { site, dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Saves a file as build tools should: under another name, then renamed.
    pub fn save(&self, name: &str, bytes: &[u8]) {
        save(self.dir.path(), name, bytes);
    }

    /// Waits until a saved plugin runs, and returns how long it took in milliseconds.
    pub fn runs(&self, leader: &Replica<'_>, bytes: &[u8]) -> u64 {
        let digest = sha256(bytes);
        let what = format!("the plugin {} runs", &digest[..12]);
        self.site.eventually(&what, || {
            let log = leader.log();
            let line = log
                .lines()
                .rev()
                .find(|line| line.contains("the saved plugin runs") && line.contains(&digest))?;
            let took = line.split("saved_to_running_ms=").nth(1)?;
            took.split_whitespace().next()?.parse().ok()
        })
    }

    /// Waits until an event appended now has been applied.
    pub fn applies_an_event(&self, projection: &str) {
        let before = self.site.head();
        self.site.append(
            "{\"stream\":\"s-1\",\"type\":\"Happened\",\"data\":{}}\n",
            10,
        );
        let what = format!("{projection} applies an event");
        self.site.eventually(&what, || {
            (self.site.position(projection) > before).then_some(())
        });
    }

    /// The rows that the small guests have written.
    pub fn ids(&self) -> String {
        self.site
            .model("select string_agg(id, ' ' order by id) from read_model.events")
    }

    /// Waits until `status` shows this state.
    pub fn state(&self, projection: &str, state: &str) -> Value {
        let what = format!("{projection} is {state}");
        self.site.eventually(&what, || {
            let status = self.site.status();
            let mut all = status["projections"].as_array()?.iter();
            let found = all.find(|one| one["name"] == projection && one["state"] == state);
            found.cloned()
        })
    }

    /// Waits until this digest is the recorded one.
    pub fn records(&self, projection: &str, bytes: &[u8]) {
        let digest = sha256(bytes);
        let sql =
            format!("select sha256 from projector.generations where projection = '{projection}'");
        let what = format!("{} is recorded", &digest[..12]);
        self.site
            .eventually(&what, || (self.site.model(&sql) == digest).then_some(()));
    }
}

/// How often a log has a text.
pub fn count(replica: &Replica<'_>, text: &str) -> usize {
    replica.log().matches(text).count()
}

pub fn save(dir: &Path, name: &str, bytes: &[u8]) {
    let temporary = dir.join(format!(".{name}.tmp"));
    fs::write(&temporary, bytes).expect("there is room");
    fs::rename(temporary, dir.join(name)).expect("one folder");
}

/// The program of this build, with the plugins that `cargo xtask plugins` has built.
pub fn programs() -> Programs {
    Programs::built(
        env!("CARGO_BIN_EXE_projector-host"),
        env!("CARGO_TARGET_TMPDIR"),
    )
}

/// A shipped plugin.
pub fn shipped(name: &str) -> Vec<u8> {
    fs::read(programs().plugins.join(format!("{name}.wasm"))).expect("it was built")
}

/// The same code in another file: a further custom section changes nothing but the digest.
pub fn variant(bytes: &[u8], number: u32) -> Vec<u8> {
    let text = number.to_string();
    let mut section = vec![7];
    section.extend(b"variant");
    section.extend(text.bytes());
    let length = u8::try_from(section.len()).expect("short");
    let mut changed = bytes.to_vec();
    changed.extend([0, length]);
    changed.extend(section);
    changed
}

/// A small guest, `hostile`, that puts one row a batch into `events`: its version, three letters long.
pub fn small(version: &str) -> Vec<u8> {
    from_text(&small_text(version))
}

/// The same with changes in its text.
pub fn small_with(version: &str, changes: &[(&str, &str)]) -> Vec<u8> {
    let mut text = small_text(version);
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    from_text(&text)
}

/// Another projection, `another`, with a table of its own, `things`.
pub fn other(version: &str) -> Vec<u8> {
    let name = ("\"hostile\\", "\"another\\");
    small_with(version, &[name, ("\\00events\\", "\\00things\\")])
}

fn small_text(version: &str) -> String {
    assert_eq!(version.len(), 3);
    static BASE: OnceLock<String> = OnceLock::new();
    let base = BASE.get_or_init(|| {
        let file = repository("plugins/fixtures/base.wat");
        fs::read_to_string(file).expect("the fixture")
    });
    // The key's value is the version instead of the text `id`.
    let value = "\"\\18\\01\\00\\00\\02\\00\\00\\00\" \"\\04\\00\\00\\00\\00\\00\\00\\00\" \"\\18\\01\\00\\00\\02\\00\\00\\00\"";
    assert!(base.contains(value), "the fixture was changed");
    base.replace(
        value,
        "\"\\18\\01\\00\\00\\02\\00\\00\\00\" \"\\04\\00\\00\\00\\00\\00\\00\\00\" \"\\08\\01\\00\\00\\03\\00\\00\\00\"",
    )
    .replace("hostile\\001.0\\", &format!("hostile\\00{version}\\"))
}
