//! Which plugin a projection runs: the one that made its rows, or the file that this replica has. A pure decision.
//!
//! Promises: code that did not make the rows never goes on with them unless a policy or a person says so, and an
//! older file never silently replaces a newer one.

use crate::plugin::manifest::{Difference, Manifest};

use super::roster::OnChange;

/// What is known when a projection starts or its file changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    /// Digest of the plugin that made the rows.
    pub(super) recorded: &'a str,
    /// What that one declared, unless it cannot be read.
    pub(super) declared: Option<&'a Manifest>,
    /// Digests that filled the generation before.
    pub(super) former: &'a [String],
    /// The file: digest, manifest, and whether this leader saw how it was saved.
    pub(super) file: Option<(&'a str, &'a Manifest, bool)>,
    /// Whether there is a file that cannot be used.
    pub(super) broken: bool,
    /// The policy.
    pub(super) on_change: OnChange,
    /// Whether the file always counts.
    pub(super) dev: bool,
    /// Whether the configuration pins the file's digest.
    pub(super) pinned: bool,
    /// Whether somebody gave `resume --accept-plugin`.
    pub(super) accepted: bool,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// The file, which is the recorded plugin.
    File,
    /// The file, which is recorded from now on; rows stay.
    GoOn,
    /// The file, which is recorded from now on; the generation is emptied first, and why.
    BeginAnew(Vec<String>),
    /// The recorded plugin, and why not the file.
    Recorded(Why),
    /// Nothing: the file is the recorded one, but declares other things with today's configuration.
    Neither(Vec<String>),
}

/// Why the recorded plugin runs instead of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// There is none.
    NoFile,
    /// It cannot be used.
    Broken,
    /// The policy says no.
    Refused,
    /// It is older than the recorded one.
    Older,
    /// It cannot go on with these rows.
    Unfit(Vec<String>),
}

pub(super) fn choose(case: &Case<'_>) -> Choice {
    let Some((sha256, manifest, saved)) = case.file else {
        return Choice::Recorded(if case.broken {
            Why::Broken
        } else {
            Why::NoFile
        });
    };
    // What an unreadable record declared is not known, so nothing can be said against the file but its digest.
    let difference = case
        .declared
        .map(|declared| Difference::between(declared, manifest))
        .unwrap_or_default();
    let same = sha256 == case.recorded;
    if same && difference.goes_on() {
        return if difference.indexes.is_empty() {
            Choice::File
        } else {
            Choice::GoOn
        };
    }
    let anew = case.on_change == OnChange::Rebuild;
    if same {
        return if anew {
            Choice::BeginAnew(difference.rebuild)
        } else {
            Choice::Neither(difference.rebuild)
        };
    }
    if !case.accepted {
        if case.on_change == OnChange::Refuse {
            let fits = difference.goes_on();
            return Choice::Recorded(if fits {
                Why::Refused
            } else {
                Why::Unfit(difference.rebuild)
            });
        }
        let older = case.former.iter().any(|former| former == sha256);
        // Who writes a digest into the configuration means that file; but a pin alone never empties tables.
        let meant = case.pinned && case.on_change == OnChange::Continue;
        if older && !saved && !case.dev && !meant {
            return Choice::Recorded(Why::Older);
        }
    }
    match (anew, difference.goes_on()) {
        (true, goes_on) if !case.accepted || !goes_on => Choice::BeginAnew(difference.rebuild),
        (_, true) => Choice::GoOn,
        (_, false) => Choice::Recorded(Why::Unfit(difference.rebuild)),
    }
}

#[cfg(test)]
mod tests {
    use super::OnChange::{Continue, Rebuild, Refuse};
    use super::*;
    use crate::event_store::event::Subscription;

    fn manifest(types: &[&str]) -> Manifest {
        Manifest {
            name: "order".into(),
            version: "1".into(),
            subscription: Subscription {
                types: types.iter().map(|ty| (*ty).to_owned()).collect(),
                stream_prefixes: Vec::new(),
            },
            reads: false,
            tables: Vec::new(),
        }
    }

    /// Words: the digest `now` made the rows and `old` did before; `wide` wants more events than they had; `saved`,
    /// `pinned`, `accepted`, `dev` and `broken` are what they say.
    fn check(words: &str, on_change: OnChange, expected: &Choice) {
        let has = |word: &str| words.split(' ').any(|other| other == word);
        let (declared, wide) = (manifest(&["A"]), manifest(&["A", "B"]));
        let former = ["older".to_owned(), "old".to_owned()];
        let digest = words
            .split(' ')
            .find(|word| ["now", "new", "old"].contains(word));
        let case = Case {
            recorded: "now",
            declared: Some(&declared),
            former: &former,
            file: digest.map(|digest| {
                (
                    digest,
                    if has("wide") { &wide } else { &declared },
                    has("saved"),
                )
            }),
            broken: has("broken"),
            on_change,
            dev: has("dev"),
            pinned: has("pinned"),
            accepted: has("accepted"),
        };
        assert_eq!(choose(&case), *expected, "{words} {on_change:?}");
    }

    fn unfit() -> Vec<String> {
        vec!["it wants events that were passed over before: B".to_owned()]
    }

    #[test]
    fn the_recorded_file_runs_and_without_a_file_the_recorded_plugin() {
        for on_change in [Refuse, Continue, Rebuild] {
            check("now", on_change, &Choice::File);
            check("now accepted", on_change, &Choice::File);
            check("", on_change, &Choice::Recorded(Why::NoFile));
            check("broken", on_change, &Choice::Recorded(Why::Broken));
        }
        // The same file with a configuration that makes it declare more.
        check("now wide", Refuse, &Choice::Neither(unfit()));
        check("now wide accepted", Continue, &Choice::Neither(unfit()));
        check("now wide", Rebuild, &Choice::BeginAnew(unfit()));
    }

    #[test]
    fn another_file_runs_as_the_policy_says() {
        check("new saved", Refuse, &Choice::Recorded(Why::Refused));
        check("new wide", Refuse, &Choice::Recorded(Why::Unfit(unfit())));
        check("new", Continue, &Choice::GoOn);
        check("new wide", Continue, &Choice::Recorded(Why::Unfit(unfit())));
        check("new", Rebuild, &Choice::BeginAnew(Vec::new()));
        check("new wide", Rebuild, &Choice::BeginAnew(unfit()));
    }

    #[test]
    fn an_older_file_replaces_a_newer_one_only_by_an_act() {
        for (on_change, taken) in [
            (Continue, Choice::GoOn),
            (Rebuild, Choice::BeginAnew(Vec::new())),
        ] {
            check("old", on_change, &Choice::Recorded(Why::Older));
            check("old saved", on_change, &taken);
            check("old dev", on_change, &taken);
            check("old accepted", on_change, &Choice::GoOn);
        }
        check("old saved", Refuse, &Choice::Recorded(Why::Refused));
        check("old pinned", Refuse, &Choice::Recorded(Why::Refused));
        check("old pinned", Continue, &Choice::GoOn);
        check(
            "old wide pinned",
            Continue,
            &Choice::Recorded(Why::Unfit(unfit())),
        );
        check("old pinned", Rebuild, &Choice::Recorded(Why::Older));
    }

    #[test]
    fn what_somebody_accepts_goes_on_if_it_fits() {
        check("new accepted", Refuse, &Choice::GoOn);
        check(
            "new wide accepted",
            Refuse,
            &Choice::Recorded(Why::Unfit(unfit())),
        );
        check("new accepted", Rebuild, &Choice::GoOn);
        check("new wide accepted", Rebuild, &Choice::BeginAnew(unfit()));
    }
}
