//! `cargo xtask failover`: how fast another replica leads, by what happened to the leader, held against the bounds that
//! `docs/leadership.md` promises.
//!
//! Two real replicas with the default times on a server of their own. The lock is watched about a thousand times a
//! second, and a take-over has ended when the next term was claimed, by the clock of the read-model database.

mod case;
mod table;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use projector_testkit::{
    Installation, ServerOptions,
    domain::Generator,
    namespace::Namespace,
    proxy::Proxy,
    site::{DEFAULT, Databases, Programs, Site},
    skip::skipped,
};

use crate::{interrupt::Interrupt, steps::Steps, torture::prepare};
use case::{Case, From, Scene};
use table::Row;

/// Pause between two events of a busy store.
const EVENT_INTERVAL: Duration = Duration::from_millis(5);

/// Numbers below are taken by tests.
const NAMESPACE: u8 = 60;

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only what happens to the leader by a name that holds this
    filter: Option<String>,
    /// So often each
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A table for people, or JSON
    #[arg(short, long, value_enum, default_value = "table")]
    output: table::Form,
    /// On this major version of PostgreSQL
    #[arg(long)]
    pg: Option<u32>,
}

/// One take-over.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Until the lock was free.
    free: Duration,
    /// Until the next term was claimed, from when the bound counts.
    claimed: Duration,
}

/// Measures all cases.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::begin();
    let (programs, installation) = prepare(&mut steps, arguments.pg)?;
    let interrupt = Interrupt::listen()?;
    let mut rows = Vec::new();
    let filter = arguments.filter.as_deref().unwrap_or_default();
    for case in case::ALL.iter().filter(|case| case.name.contains(filter)) {
        let rounds = arguments.rounds.max(1);
        let measuring = || measure(case, &programs, &installation, rounds, &interrupt);
        let times = steps.run(case.name, || {
            // A site's failures are panics, as in tests; their text has been printed by then.
            catch_unwind(AssertUnwindSafe(measuring)).unwrap_or_else(|_| bail!("see above"))
        })?;
        rows.push(Row::new(case, times));
    }
    println!("{}", arguments.output.show(&rows));
    let over: Vec<&str> = rows
        .iter()
        .filter(|row| !row.holds())
        .map(Row::name)
        .collect();
    if !over.is_empty() {
        bail!("over the bound: {}", over.join(", "));
    }
    Ok(())
}

fn measure(
    case: &Case,
    programs: &Programs,
    installation: &Installation,
    rounds: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Times>> {
    let mut options = ServerOptions::default().installation(installation.clone());
    let namespace = case.apart.then(|| Namespace::make(NAMESPACE)).flatten();
    match &namespace {
        Some(namespace) => {
            let addresses = format!("127.0.0.1,{}", namespace.here());
            options = options
                .setting("listen_addresses", addresses)
                .trust(namespace.network());
        }
        None if case.apart => {
            skipped(case.name, "network namespaces need root and `ip`");
            return Ok(Vec::new());
        }
        None => {}
    }
    let site = Site::own_server_with(programs.clone(), Databases::Two, DEFAULT, options);
    site.store(include_str!("failover/watch.sql"));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        if case.busy {
            scope.spawn(|| write(&site, &over));
        }
        let times = (0..rounds)
            .map(|_| match interrupt.asked() {
                true => bail!("interrupted"),
                false => round(case, &site, namespace.as_ref()),
            })
            .collect();
        over.store(true, Ordering::SeqCst);
        times
    })
}

fn write(site: &Site, over: &AtomicBool) {
    let mut generator = Generator::new(1);
    let mut session = site.session();
    while !over.load(Ordering::SeqCst) {
        let draft = generator.draft();
        let events = serde_json::json!([{ "type": draft.kind, "data": draft.data }]);
        session.run(&format!(
            "select from event_store.append($torture${}$torture$, null, $torture${events}$torture$::jsonb)",
            draft.stream
        ));
        thread::sleep(EVENT_INTERVAL);
    }
}

fn round(case: &Case, site: &Site, namespace: Option<&Namespace>) -> Result<Times> {
    let (store, model) = site.urls();
    let networks = [store, model].map(|url| Proxy::before(url, 1));
    let through = [
        ("ES_DATABASE_URL", networks[0].url()),
        ("DATABASE_URL", networks[1].url()),
    ];
    let leader = match namespace {
        Some(namespace) => {
            namespace.heal();
            namespace.replica(site, "leader")
        }
        None => site.replica_with("leader", &["run"], &through),
    };
    leader.leads_eventually();
    site.begun();
    let standby = site.replica("standby");
    standby.stands_by_eventually();
    site.eventually("the standby listens", || {
        let listening = "select count(*) from pg_stat_activity where application_name like '%/standby/listen' \
                         and query like 'LISTEN%' and datname = current_database()";
        (site.store(listening) == "1").then_some(())
    });
    let row = site.model(
        "select term || ' ' || backend_pid from projector.leadership where released_at is null",
    );
    let (term, pid) = row.split_once(' ').context("nobody leads")?;
    let scene = Scene {
        site,
        leader: &leader,
        networks: &networks,
        namespace,
        leader_pid: pid.parse()?,
    };
    let (fault, watched) = thread::scope(|scope| -> Result<_> {
        let watching = scope.spawn(|| watch(site, pid));
        // The watcher looks before anything happens.
        site.eventually("the lock is watched", || {
            let watching = "select count(*) from pg_stat_activity where query like '%watch_lock(%' and state = 'active' \
                            and pid <> pg_backend_pid() and datname = current_database()";
            (site.store(watching) == "1").then_some(())
        });
        let fault = now();
        (case.strike)(&scene)?;
        let up = now();
        let watched = watching.join().ok().flatten();
        Ok(((fault, up), watched))
    })?;
    let claimed = site.eventually("the standby claims a term", || {
        let claimed =
            "select (extract(epoch from since) * 1000000)::bigint from projector.leadership";
        let since = site.model(&format!("{claimed} where term > {term}"));
        since.parse::<i64>().ok()
    });
    let (fault, up) = fault;
    // A restart ends the watcher too; then only the claim is known.
    let free = watched.unwrap_or(up);
    let begin = match case.from {
        From::Fault => fault,
        From::Release => free,
        From::Server => up,
    };
    let time = |end: i64, begin: i64| Duration::from_micros((end - begin).max(0).unsigned_abs());
    Ok(Times {
        free: time(free, fault),
        claimed: time(claimed, begin),
    })
}

/// When the lock was free, if that was seen.
fn watch(site: &Site, pid: &str) -> Option<i64> {
    let seen = site
        .session()
        .run(&format!("select public.watch_lock({pid})"));
    seen.split_once(' ')?.0.parse().ok()
}

/// Microseconds since 1970, by the clock that the server has too.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| {
        i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
    })
}
