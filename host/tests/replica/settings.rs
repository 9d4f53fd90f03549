//! Roles and databases that differ from the usual: what they set changes no row, and what cannot work is refused by name.

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

/// Types, functions and operators that mean something else than the server's own, for whoever finds them first.
const TRAP: &str = "create schema trap;
    create domain trap.date as text; create domain trap.text as varchar; create domain trap.timestamptz as varchar;
    create domain trap.jsonb as json; create domain trap.uuid as varchar; create domain trap.bytea as varchar;
    create function trap.now() returns timestamptz language sql as $$select 'epoch'::pg_catalog.timestamptz$$;
    create function trap.clock_timestamp() returns timestamptz language sql
        as $$select 'epoch'::pg_catalog.timestamptz$$;
    create function trap.count(bigint) returns bigint language sql as 'select -1::bigint';
    create function trap.pg_backend_pid() returns integer language sql as 'select 1';
    create function trap.never(bigint, bigint) returns boolean language sql as 'select false';
    create operator trap.= (leftarg = bigint, rightarg = bigint, function = trap.never);
    create operator trap.> (leftarg = bigint, rightarg = bigint, function = trap.never);
    create function trap.never(pg_catalog.text, pg_catalog.text) returns boolean language sql as 'select false';
    create operator trap.= (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = trap.never);";

/// What a role may have set. The time-outs would end each session that does not set its own, and leave it the moment
/// that it takes to do so.
const HOSTILE: [&str; 38] = [
    "search_path = trap, pg_catalog, public",
    "datestyle = 'German, DMY'",
    "intervalstyle = 'sql_standard'",
    "timezone = 'Pacific/Chatham'",
    "extra_float_digits = -15",
    "bytea_output = 'escape'",
    "standard_conforming_strings = off",
    "backslash_quote = off",
    "array_nulls = off",
    "transform_null_equals = on",
    "quote_all_identifiers = on",
    "statement_timeout = '300ms'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '300ms'",
    "idle_session_timeout = '700ms'",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "client_min_messages = 'debug1'",
    "row_security = off",
    "xmloption = 'document'",
    "xmlbinary = 'hex'",
    "lc_messages = 'C'",
    "lc_numeric = 'C'",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_nestloop = off",
    "enable_sort = off",
    "plan_cache_mode = 'force_custom_plan'",
    "jit = on",
    "jit_above_cost = 0",
    "synchronous_commit = off",
    "work_mem = '64kB'",
    "cursor_tuple_fraction = 1",
    "check_function_bodies = off",
    "default_statistics_target = 1",
];

/// A role of this site's own that meets all of it; dropped with its settings.
struct Role<'a> {
    site: &'a Site,
    name: String,
}

impl<'a> Role<'a> {
    fn new(site: &'a Site) -> Self {
        let (store, model) = site.urls();
        let name = model.rsplit('/').next().unwrap_or_default();
        let name = format!("odd_{}", name.split('?').next().unwrap_or_default());
        site.model(&format!("create role \"{name}\" login superuser"));
        site.model(TRAP);
        if store != model {
            site.store(TRAP);
        }
        for setting in HOSTILE {
            site.model(&format!("alter role \"{name}\" set {setting}"));
        }
        Self { site, name }
    }

    /// A URL under this role.
    fn url(&self, url: &str) -> String {
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}user={}", self.name)
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        self.site.model(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{name}';
             reassign owned by \"{name}\" to current_user; drop owned by \"{name}\"; drop role \"{name}\""
        ));
    }
}

#[test]
fn settings_of_roles_and_databases_change_no_row() {
    let site = Site::unmigrated(programs(), Databases::One, QUICK);
    let role = Role::new(&site);
    let (store, model) = site.urls();
    let (store, model) = (role.url(store), role.url(model));
    let variables = [
        ("ES_DATABASE_URL", store.as_str()),
        ("DATABASE_URL", model.as_str()),
    ];
    for arguments in [&["migrate", "up"][..], &["validate"]] {
        let mut command = site.program(arguments);
        command.envs(variables);
        let answer = site.answer(command);
        assert_eq!(
            answer.code, 0,
            "{arguments:?}: {}{}",
            answer.out, answer.error
        );
    }
    let mut generator = Generator::new(411);
    let replica = site.replica_with("odd", &["run"], &variables);
    replica.leads_eventually();
    site.begun();
    for _ in 0..3 {
        site.append(&generator.lines(80), 20);
        site.all_is_right_at_the_head();
    }
    let foreign = site.model(
        "select string_agg(distinct c.relname || '.' || a.attname || ' ' || n.nspname || '.' || t.typname, ', ')
         from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
         join pg_namespace n on n.oid = t.typnamespace
         where c.relkind in ('r', 'p', 'v') and n.nspname <> 'pg_catalog'
           and c.relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema', 'trap')",
    );
    assert_eq!(foreign, "", "columns of another schema's types");
    for arguments in [
        &["status"][..],
        &["dead-letter", "list"],
        &["leader", "show"],
        &["locks", "list"],
        &["wait", "--until-caught-up"],
    ] {
        let mut command = site.program(arguments);
        command.envs(variables);
        let answer = site.answer(command);
        assert_eq!(
            answer.code, 0,
            "{arguments:?}: {}{}",
            answer.out, answer.error
        );
    }
    replica.stop();
}

#[test]
fn a_database_that_is_not_utf8_is_refused_by_name_everywhere() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let (url, _) = site.urls();
    let (server, name) = url.rsplit_once('/').expect("a database stands in it");
    let latin = format!("{}_latin", name.split('?').next().unwrap_or_default());
    site.model(&format!(
        "create database \"{latin}\" encoding 'LATIN1' template template0 locale 'C'"
    ));
    let other = format!("{server}/{latin}");
    for (variable, what) in [
        ("ES_DATABASE_URL", "event store"),
        ("DATABASE_URL", "read model"),
    ] {
        for arguments in [&["validate"][..], &["migrate", "up"], &["run"]] {
            let mut command = site.program(arguments);
            command.env(variable, &other);
            let answer = site.answer(command);
            let said = format!("{}{}", answer.out, answer.error);
            assert_eq!(answer.code, 78, "{arguments:?}: {said}");
            let reason = format!("the {what} database has the encoding LATIN1");
            assert!(
                said.contains("PH0112") && said.contains(&reason),
                "{arguments:?}: {said}"
            );
        }
    }
    site.model(&format!("drop database \"{latin}\" with (force)"));
}

#[test]
fn of_several_hosts_the_one_that_can_be_written_to_is_used() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let (url, _) = site.urls();
    // Nobody listens on port 1.
    let at = url.find("://").expect("it is a URL") + 3;
    let at = url[at..].find('@').map_or(at, |user| at + user + 1);
    let several = |attributes: &str| {
        let mark = if url.contains('?') { '&' } else { '?' };
        let (before, after) = url.split_at(at);
        format!("{before}127.0.0.1:1,{after}{mark}target_session_attrs={attributes}")
    };
    let mut generator = Generator::new(412);
    for attributes in ["read-write", "primary", "any"] {
        let url = several(attributes);
        let variables = [("ES_DATABASE_URL", url.as_str()), ("DATABASE_URL", &url)];
        let replica = site.replica_with(attributes, &["run"], &variables);
        replica.leads_eventually();
        site.begun();
        site.append(&generator.lines(40), 20);
        site.all_is_right_at_the_head();
        replica.stop();
    }
    let mut command = site.program(&["status"]);
    command.env("DATABASE_URL", several("standby"));
    let answer = site.answer(command);
    assert_eq!(answer.code, 78, "{}", answer.error);
    assert!(answer.error.contains("PH0111"), "{}", answer.error);

    // A server whose sessions are read-only is passed over, and named.
    let name = site.model("select current_database()");
    site.model(&format!(
        "alter database \"{name}\" set default_transaction_read_only = on"
    ));
    let mut command = site.program(&["status"]);
    command.env("DATABASE_URL", several("read-write"));
    let answer = site.answer(command);
    assert_eq!(answer.code, 69, "{}", answer.error);
    assert!(answer.error.contains("read-only"), "{}", answer.error);
}
