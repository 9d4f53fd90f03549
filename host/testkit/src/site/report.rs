//! How everything stood when a test failed.

use std::{fmt::Write as _, path::PathBuf};

use super::{Site, http, replica};
use crate::server::psql;

const LOG_LINES_MAX: usize = 50;

/// What a replica leaves behind.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) node: String,
    pub(super) log: PathBuf,
}

const LOCKS: &str = "select l.pid, l.locktype, l.classid, l.objid, l.mode, l.granted, a.application_name \
    from pg_locks l left join pg_stat_activity a using (pid) \
    where l.database = (select oid from pg_database where datname = current_database()) \
    and (l.locktype = 'advisory' or not l.granted)";

const SESSIONS: &str = "select pid, application_name, state, wait_event, now() - xact_start, left(query, 80) \
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";

impl Site {
    pub(super) fn report(&self) -> String {
        let mut report = String::new();
        let mut urls = vec![("event store", &self.store)];
        if self.store != self.model {
            urls.push(("read model", &self.model));
        }
        for (name, url) in urls {
            for (what, sql) in [("locks", LOCKS), ("sessions", SESSIONS)] {
                let answer = psql(&self.psql, url, sql).unwrap_or_else(|error| error.to_string());
                let _ = writeln!(report, "--- {what} in the {name} database\n{answer}");
            }
        }
        let checkpoints =
            "select projection, position, term, state, failure_message from projector.checkpoints";
        let answer =
            psql(&self.psql, &self.model, checkpoints).unwrap_or_else(|error| error.to_string());
        let _ = writeln!(report, "--- checkpoints\n{answer}");
        let traces = self.traces();
        let last_life = |(number, trace): &(usize, &Trace)| {
            !traces[number + 1..]
                .iter()
                .any(|later| later.node == trace.node)
        };
        for (_, trace) in traces.iter().enumerate().filter(last_life) {
            let role =
                replica::address(&trace.log).and_then(|address| http::get(address, "/leaderz"));
            let log = replica::read(&trace.log);
            let lines: Vec<&str> = log.lines().collect();
            let end = &lines[lines.len().saturating_sub(LOG_LINES_MAX)..];
            let _ = writeln!(report, "--- {}: {role:?}\n{}", trace.node, end.join("\n"));
        }
        report
    }
}
