//! All guests that misbehave against a running host: what becomes of each, and of the host.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::json;

use super::harmful::{Harmful, every_file};
use super::{EVERY_GUEST, Expected, from_text, module, renamed, text};
use crate::ServerOptions;
use crate::domain::Generator;
use crate::site::{Databases, Programs, Replica, Site};

/// A lease that a busy machine does not end.
const LEADER: &str = "local_lease = \"12s\"\nserver_lease = \"15s\"\n";

/// The guest that traps at each event of the type `Trap`.
const TRAPS: &str = "by-type";

/// The same endless loop, ended by the clock.
const CLOCK: &str = "loop-by-the-clock";

/// Events of the neighbours in one measurement.
const NEIGHBOURS_EVENTS: usize = 500;

/// A leak of a page a trap would be 40 MB.
const GROWTH_BYTES_MAX: u64 = 32 << 20;
const GROWTH_FILES_MAX: usize = 16;

/// Beside a trapping plugin the others may take so much longer.
const RATIO_MAX: f64 = 8.0;

/// A replica that met every file may have taken so much memory; with 10,000 components in one it took 3 GB.
const PEAK_BYTES_MAX: u64 = 1 << 30;

/// `validate` of all files together may take so long.
const VALIDATE_MAX: Duration = Duration::from_secs(60);

/// What is tried.
#[derive(Debug)]
pub struct Options {
    /// So many traps in a row.
    pub traps: usize,
    /// Where events and rows live.
    pub server: ServerOptions,
}

/// What the host's process holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Memory that belongs to it alone.
    pub bytes: u64,
    /// Open files and sockets.
    pub files: usize,
}

/// What became of one guest.
#[derive(Debug)]
pub struct Verdict {
    guest: String,
    expected: String,
    happened: String,
    before: Usage,
    after: Usage,
}

/// What became of all.
#[derive(Debug)]
pub struct Report {
    verdicts: Vec<Verdict>,
    wrong: Vec<String>,
    notes: Vec<String>,
}

struct Guest {
    /// What people call it.
    title: String,
    /// Its projection, and the type of its event.
    projection: String,
    expected: String,
}

impl Report {
    /// Runs it. Whatever ends the host ends this with a panic, as in tests.
    pub fn of(mut programs: Programs, options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let shipped = std::mem::replace(&mut programs.plugins, folder.path().to_owned());
        for name in ["order", "scheduling", "service-request"] {
            let file = format!("{name}.wasm");
            fs::copy(shipped.join(&file), folder.path().join(&file)).expect("the shipped plugins");
        }
        let guests = place(folder.path());
        let cuts = cut(folder.path());
        let harmful = place_harmful(folder.path());
        let site = Site::own_server_with(programs, Databases::One, LEADER, options.server);
        site.configure(|config| format!("{config}\n{}", configuration(&guests)));
        let replica = site.leader("host");
        let mut report = Self {
            verdicts: Vec::new(),
            wrong: Vec::new(),
            notes: Vec::new(),
        };
        let refused = refusals(&replica);
        let count = refused
            .keys()
            .filter(|file| file.starts_with("cut-"))
            .count();
        report.notes.push(format!(
            "a file cut at {cuts} section boundaries: {count} refused"
        ));
        if count != cuts {
            report.wrong.push(format!(
                "{} files that were cut are not refused",
                cuts - count
            ));
        }
        harm(&site, &replica, &harmful, &refused, &mut report);
        begun(&site, &guests, &refused);
        for guest in &guests {
            let verdict = one(&site, &replica, guest, &refused);
            if verdict.happened != verdict.expected {
                report.wrong.push(format!(
                    "{}: {}, not {}",
                    verdict.guest, verdict.happened, verdict.expected
                ));
            }
            report.verdicts.push(verdict);
        }
        traps(&site, &replica, options.traps, &mut report);
        site.rows_are_right();
        report
    }

    /// What is not as it should be.
    #[must_use]
    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }
}

impl Expected {
    fn word(self) -> String {
        match self {
            Self::Refused(code) => format!("refused PH{code:04}"),
            Self::Stops(category) => format!("stopped {category}"),
            Self::Passes => "passes".to_owned(),
        }
    }
}

/// Writes a plugin file for each guest.
fn place(folder: &Path) -> Vec<Guest> {
    let mut guests = Vec::new();
    let listed = EVERY_GUEST
        .iter()
        .map(|guest| (guest.fixture, guest.fixture, guest.expected.word()));
    let clock = (CLOCK, "loop-in-project", Expected::Stops("timeout").word());
    for (at, (title, fixture, expected)) in listed.chain([clock]).enumerate() {
        let (projection, table) = (format!("guest{at:02}"), format!("rows{at:02}"));
        let text = renamed(&text(fixture), &projection, &table, true);
        fs::write(folder.join(format!("{projection}.wasm")), from_text(&text))
            .expect("there is room");
        guests.push(Guest {
            title: title.to_owned(),
            projection,
            expected,
        });
    }
    let text = renamed(&text(TRAPS), TRAPS, "events", false);
    fs::write(folder.join(format!("{TRAPS}.wasm")), from_text(&text)).expect("there is room");
    guests
}

/// Writes the smallest guest, cut at each boundary of its sections; says how many.
fn cut(folder: &Path) -> usize {
    let whole = module("base");
    let mut ends = vec![0, 4, 8];
    let mut at = 8;
    while at < whole.len() {
        let (size, length) = leb128(&whole[at + 1..]);
        at += 1 + length + size;
        ends.push(at);
    }
    // What is whole is no cut; without its last section it has no contract.
    ends.retain(|end| *end < whole.len());
    for end in &ends {
        fs::write(folder.join(format!("cut-{end:05}.wasm")), &whole[..*end])
            .expect("there is room");
    }
    ends.len()
}

/// Writes the files that cost much to read; says how each is refused.
fn place_harmful(folder: &Path) -> Vec<(String, String)> {
    let place = |file: Harmful| {
        let name = format!("harmful-{}", file.name);
        fs::write(folder.join(format!("{name}.wasm")), file.bytes).expect("there is room");
        (name, Expected::Refused(file.code).word())
    };
    every_file().into_iter().map(place).collect()
}

/// Files that cost much to read are refused at the start and by `validate`, which costs no more than it may.
fn harm(
    site: &Site,
    replica: &Replica<'_>,
    harmful: &[(String, String)],
    refused: &BTreeMap<String, String>,
    report: &mut Report,
) {
    for (name, expected) in harmful {
        let code = refused.get(name).map_or("nothing", String::as_str);
        if format!("refused {code}") != *expected {
            let wrong = format!("{name}: {code} instead of {expected}");
            report.wrong.push(wrong);
        }
    }
    let peak = peak_bytes(replica);
    if peak > PEAK_BYTES_MAX {
        let wrong = format!("the start took {} MB of memory", peak >> 20);
        report.wrong.push(wrong);
    }
    let begun = Instant::now();
    let answer = site.run(&["validate", "--offline"]);
    let took = begun.elapsed();
    let unnamed = harmful
        .iter()
        .filter(|(name, _)| !format!("{}{}", answer.out, answer.error).contains(name));
    let unnamed: Vec<&str> = unnamed.map(|(name, _)| name.as_str()).collect();
    if answer.code != 78 || !unnamed.is_empty() || took > VALIDATE_MAX {
        report.wrong.push(format!(
            "validate ended with {} after {} ms, and did not name {unnamed:?}",
            answer.code,
            millis(took)
        ));
    }
    report.notes.push(format!(
        "{} files that cost much to read: at most {} MB at the start, validate took {} ms",
        harmful.len(),
        peak >> 20,
        millis(took)
    ));
}

/// Most memory that a replica had so far.
fn peak_bytes(replica: &Replica<'_>) -> u64 {
    let status = format!("/proc/{}/status", replica.pid());
    let status = fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(u64::MAX >> 10) << 10
}

/// A number and how many bytes it takes.
fn leb128(bytes: &[u8]) -> (usize, usize) {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return (number, at + 1);
        }
    }
    (number, bytes.len())
}

fn configuration(guests: &[Guest]) -> String {
    let clock = guests.iter().find(|guest| guest.title == CLOCK);
    let clock = clock.map_or("", |guest| &guest.projection);
    format!(
        "[plugins.limits]\nfuel_max = 50000000\n\
         [defaults]\nretry = {{ attempts_max = 2, initial = \"10ms\", max = \"20ms\" }}\n\
         [[projection]]\nname = \"{TRAPS}\"\non_error = \"skip\"\n\
         [[projection]]\nname = \"{clock}\"\nlimits = {{ fuel_max = 900000000000, call_timeout = \"200ms\" }}\n"
    )
}

/// Codes of the files that the host refused, by their names.
fn refusals(replica: &Replica<'_>) -> BTreeMap<String, String> {
    // A reason may have several lines.
    let log = replica.log();
    let reasons = log.split("a plugin is refused: ").skip(1);
    let word = |reason: &str, start: &str| -> Option<String> {
        let rest = reason.split_once(start)?.1;
        Some(rest.split_whitespace().next()?.to_owned())
    };
    reasons
        .filter_map(|reason| {
            let file = word(reason, " file=")?;
            let name = Path::new(&file).file_stem()?.to_str()?.to_owned();
            Some((name, word(reason, " code=")?))
        })
        .collect()
}

/// Waits until every projection that runs has its checkpoint.
fn begun(site: &Site, guests: &[Guest], refused: &BTreeMap<String, String>) {
    let run = guests
        .iter()
        .filter(|guest| !refused.contains_key(&guest.projection));
    let expected = run.count() + 4;
    site.eventually("every projection has begun", || {
        let begun = site.model("select count(*) from projector.checkpoints");
        (begun.parse() == Ok(expected)).then_some(())
    });
}

fn one(
    site: &Site,
    replica: &Replica<'_>,
    guest: &Guest,
    refused: &BTreeMap<String, String>,
) -> Verdict {
    let before = Usage::of(replica);
    let happened = match refused.get(&guest.projection) {
        Some(code) => format!("refused {code}"),
        None => {
            let event = json!({ "stream": "hostile", "type": guest.projection, "data": {} });
            site.append(&format!("{event}\n"), 1);
            let head = site.head();
            let sql = format!(
                "select case when failure_at is not null then 'stopped ' || failure_category
                        when position >= {head} then 'passes' else '' end
                 from projector.checkpoints where projection = '{}'",
                guest.projection
            );
            let what = format!("{} ends or passes", guest.title);
            site.eventually(&what, || {
                Some(site.model(&sql)).filter(|word| !word.is_empty())
            })
        }
    };
    Verdict {
        guest: guest.title.clone(),
        expected: guest.expected.clone(),
        happened,
        before,
        after: Usage::of(replica),
    }
}

/// Many traps in a row, and the neighbours meanwhile.
fn traps(site: &Site, replica: &Replica<'_>, count: usize, report: &mut Report) {
    let trap = json!({ "stream": "traps", "type": "Trap", "data": {} });
    let traps = |count: usize| site.append(&format!("{trap}\n").repeat(count), 500);
    let caught_up = |name: &str| {
        site.runs(&["wait", name, "--until-caught-up", "--timeout", "600s"]);
    };
    let mut generator = Generator::new(7);
    let mut neighbours = || {
        let lines = generator.lines(NEIGHBOURS_EVENTS);
        let begun = Instant::now();
        site.append(&lines, 500);
        caught_up("order");
        begun.elapsed()
    };
    neighbours();
    let alone = (0..3).map(|_| neighbours()).min().unwrap_or_default();
    traps(200.min(count));
    caught_up(TRAPS);
    let before = Usage::of(replica);
    traps(count);
    let beside = (0..3).map(|_| neighbours()).min().unwrap_or_default();
    let begun = Instant::now();
    caught_up(TRAPS);
    let after = Usage::of(replica);
    let ratio = beside.as_secs_f64() / alone.as_secs_f64().max(0.001);
    report.notes.push(format!(
        "{count} traps: {before} before, {after} after; last ones waited for {:.1} s",
        begun.elapsed().as_secs_f64()
    ));
    report.notes.push(format!(
        "{NEIGHBOURS_EVENTS} events of the neighbours: {} ms alone, {} ms beside the traps, ratio {ratio:.2}",
        millis(alone),
        millis(beside)
    ));
    if after.bytes > before.bytes + GROWTH_BYTES_MAX
        || after.files > before.files + GROWTH_FILES_MAX
    {
        report.wrong.push(format!(
            "{count} traps left something behind: {before} before, {after} after"
        ));
    }
    if ratio > RATIO_MAX {
        report.wrong.push(format!(
            "the neighbours took {ratio:.1} times as long beside the traps"
        ));
    }
    let buried = site.model("select count(*) from projector.dead_letters where projection = 'by-type' and category = 'trap'");
    let expected = count + 200.min(count);
    if buried.parse() != Ok(expected) {
        report
            .wrong
            .push(format!("{buried} dead letters of {expected} traps"));
    }
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

impl Usage {
    fn of(replica: &Replica<'_>) -> Self {
        let process = Path::new("/proc").join(replica.pid().to_string());
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        Self {
            bytes: kilobytes.unwrap_or(0) << 10,
            files: fs::read_dir(process.join("fd")).map_or(0, Iterator::count),
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB, {} files", self.bytes >> 20, self.files)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<22} {:<18} {:<18} {:<16} after",
            "guest", "expected", "happened", "before"
        )?;
        for one in &self.verdicts {
            let mark = if one.happened == one.expected {
                ""
            } else {
                "  <- WRONG"
            };
            writeln!(
                f,
                "{:<22} {:<18} {:<18} {:<16} {}{mark}",
                one.guest,
                one.expected,
                one.happened,
                one.before.to_string(),
                one.after
            )?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}
