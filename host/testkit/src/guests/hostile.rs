//! What becomes of each guest of `plugins/fixtures` in a running host.

/// One guest.
#[derive(Clone, Copy, Debug)]
pub struct Hostile {
    /// Its file, without the ending.
    pub fixture: &'static str,
    /// What must happen.
    pub expected: Expected,
}

/// What becomes of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Its file is refused, with this code.
    Refused(u16),
    /// Its projection stops at its event, with this category.
    Stops(&'static str),
    /// Its event passes.
    Passes,
}

use Expected::{Passes, Refused, Stops};

const fn guest(fixture: &'static str, expected: Expected) -> Hostile {
    Hostile { fixture, expected }
}

/// All of them.
pub const EVERY_GUEST: &[Hostile] = &[
    guest("base", Passes),
    guest("json", Passes),
    guest("counts-calls", Passes),
    guest("log-flood", Passes),
    // Its number does not fit a column of text.
    guest("wasi", Stops("bad-write")),
    guest("wasi-socket", Stops("trap")),
    guest("loop-in-start", Refused(510)),
    guest("loop-in-describe", Refused(510)),
    guest("loop-in-realloc", Refused(510)),
    guest("loop-in-project", Stops("fuel")),
    guest("loop-in-post-return", Stops("fuel")),
    guest("trap-in-start", Refused(510)),
    guest("trap-in-describe", Refused(510)),
    guest("trap-in-realloc", Refused(510)),
    guest("trap-in-project", Stops("trap")),
    guest("trap-in-post-return", Stops("trap")),
    guest("divide-by-zero", Stops("trap")),
    guest("out-of-bounds", Stops("trap")),
    guest("behind-memory", Stops("trap")),
    guest("leftovers", Passes),
    guest("recursion", Stops("stack")),
    guest("grow-memory", Stops("memory")),
    guest("grow-in-describe", Refused(510)),
    guest("grow-table", Stops("memory")),
    guest("many-memories", Refused(510)),
    guest("large-table", Refused(510)),
    guest("huge-list", Stops("output")),
    guest("huge-text", Stops("output")),
    guest("bad-text", Stops("output")),
    guest("bad-text-in-describe", Refused(510)),
    guest("bad-text-in-log", Stops("output")),
    guest("bad-variant", Stops("output")),
    guest("bad-pointer", Stops("output")),
    guest("bad-realloc", Refused(510)),
    guest("wrong-event", Stops("output")),
    guest("json-malformed", Stops("output")),
    guest("json-nested", Stops("output")),
    guest("many-writes", Stops("bad-write")),
    guest("foreign-table", Stops("bad-write")),
    guest("quoted-table", Stops("bad-write")),
    guest("quoted-column", Stops("bad-write")),
    guest("quoted-name", Refused(511)),
    guest("zero-in-text", Stops("bad-write")),
    guest("nested-value", Stops("bad-write")),
    guest("lookup-once", Passes),
    guest("lookups", Stops("lookup-limit")),
    guest("huge-lookup", Stops("output")),
    guest("fails-rejected", Stops("rejected")),
    guest("fails-retry", Stops("retry")),
    guest("fails-fatal", Stops("fatal")),
    guest("refuses-config", Refused(510)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_fixture_is_in_the_list_once() {
        let folder = super::super::repository("plugins/fixtures");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .filter_map(|entry| {
                let name = entry.expect("it can be read").file_name();
                Some(name.to_str()?.strip_suffix(".wat")?.to_owned())
            })
            // One does what an event's type says, one counts.
            .filter(|name| name != "by-type" && name != "counts")
            .collect();
        let listed: BTreeSet<String> = EVERY_GUEST
            .iter()
            .map(|guest| guest.fixture.to_owned())
            .collect();
        assert_eq!(files, listed);
        assert_eq!(listed.len(), EVERY_GUEST.len());
    }
}
