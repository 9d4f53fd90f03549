//! What a configuration means and which faults it has, as tables of `check(input, expected)`.

use std::path::Path;
use std::time::Duration;

use bytesize::ByteSize;

use super::*;
use crate::commands::config::SAMPLE;
use crate::event_store::event::Position;

mod effective;

fn parsed(text: &str) -> Result<Loaded, Faults> {
    parse(
        text,
        Path::new("/etc/p.toml"),
        &Environment::default(),
        &Flags::default(),
    )
}

fn valid(text: &str) -> Config {
    parsed(text).expect("a valid configuration").config
}

/// The faults of a text as `place code message`, one a line.
fn faults(text: &str) -> Vec<String> {
    match parsed(text) {
        Ok(loaded) => loaded.warnings,
        Err(Faults(faults)) => faults,
    }
    .iter()
    .map(|fault| format!("{} {} {}", fault.place, fault.code, fault.message))
    .collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(faults(text), expected, "faults of:\n{text}");
}

#[test]
fn an_empty_file_means_the_defaults() {
    let config = valid("");
    assert_eq!(config.event_store, EventStore::default());
    assert_eq!(config.leader, Leader::default());
    assert_eq!(config.defaults, Defaults::default());
    assert_eq!(config.plugins.dir, Path::new("/etc/plugins"));
    assert!(
        config
            .host
            .node
            .ends_with(&format!("-{}", std::process::id()))
    );
}

#[test]
fn the_sample_sets_every_default_and_names_every_key() {
    let tree = |config: &Config| {
        let mut tree = serde_json::to_value(config).expect("a configuration is JSON");
        // Depends on the machine, so the sample only shows an example of it.
        tree["host"]["node"].take();
        tree
    };
    let sample = parsed(SAMPLE).expect("the sample is valid");
    assert_eq!(tree(&sample.config), tree(&valid("")));

    // Without the comment signs before the examples, every key of the schema is there.
    let uncommented: Vec<&str> = SAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with("[[") || is_assignment(rest) => rest,
            _ => line,
        })
        .collect();
    let all = toml::from_str::<toml::Table>(&uncommented.join("\n")).expect("still TOML");
    let all = serde_json::to_value(all).expect("still JSON");
    let schema = serde_json::from_str(&schema::json()).expect("the schema is JSON");
    let mut missing = Vec::new();
    compare("", &schema, &all, &mut missing);
    assert_eq!(missing, Vec::<String>::new(), "keys that the sample lacks");

    // A key with a default stands in the sample as a value, not only as a comment.
    let unset: Vec<String> = sample
        .settings()
        .into_iter()
        .filter(|setting| setting.source == Source::Default && !setting.value.is_null())
        .map(|setting| setting.key)
        .collect();
    assert_eq!(unset, ["host.node"]);
}

fn is_assignment(line: &str) -> bool {
    let key = line.split(" = ").next().unwrap_or_default();
    line.contains(" = ")
        && key
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_-0123456789".contains(c))
}

fn compare(
    path: &str,
    schema: &serde_json::Value,
    value: &serde_json::Value,
    missing: &mut Vec<String>,
) {
    // Single limits and pauses of one projection are those of all, listed once.
    if matches!(path, ".projection.retry" | ".projection.limits") {
        return;
    }
    let (schema, value) = match schema.get("items") {
        Some(items) => (items, &value[0]),
        None => (schema, value),
    };
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        match value.get(key) {
            None => missing.push(path),
            Some(value) => compare(&path, below, value, missing),
        }
    }
}

#[test]
fn every_key_of_the_schema_is_read_and_every_key_that_is_read_is_in_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&schema::json()).expect("JSON");
    for (name, section) in schema["properties"].as_object().into_iter().flatten() {
        let (heading, section) = match section.get("items") {
            Some(items) => (format!("[[{name}]]\nname = \"a\""), items),
            None => (format!("[{name}]"), section),
        };
        // The fault of a key that nobody has lists all keys that are read.
        let Err(Faults(found)) = parsed(&format!("{heading}\nQQQ = 1\n")) else {
            panic!("{heading} takes any key");
        };
        let hint = found[0].hint.clone().unwrap_or_default();
        let mut read: Vec<&str> = hint
            .trim_start_matches("known here: ")
            .split(", ")
            .filter(|key| *key != "columns")
            .collect();
        read.sort_unstable();
        read.dedup();
        let mut described: Vec<&str> = section["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .collect();
        described.sort_unstable();
        assert_eq!(read, described, "{heading}");
    }
}

#[test]
fn generated_files_are_current() {
    let check = |file: &str, expected: &str| {
        let path = projector_testkit::repository(file);
        let current = std::fs::read_to_string(path).is_ok_and(|text| text == expected);
        assert!(
            current,
            "{file} is out of date: run `cargo xtask generate` and commit it"
        );
    };
    check("config/projections.schema.json", &schema::json());
    check("docs/reference/config.md", &schema::reference());
}

#[test]
fn all_faults_are_found_at_once_in_the_order_of_the_file() {
    check(
        "[host]\nnod = \"x\"\ndrain_timeout = 20\n[event_store]\nschema = \"Event Store\"\n[[projection]]\n[tail]\n",
        &[
            "/etc/p.toml:2:1 PH0103 unknown key `nod` in [host]",
            "/etc/p.toml:3:17 PH0104 `host.drain_timeout` must be a duration in quotes, not an integer",
            "/etc/p.toml:5:10 PH0108 `event_store.schema` is no schema name: the name \"Event Store\" has the character 'E'; use lower-case letters, digits and underscores",
            "/etc/p.toml:6:1 PH0104 `projection[0]` lacks `name`",
            "/etc/p.toml:7:2 PH0103 unknown table `tail` at the top of the file",
        ],
    );
}

#[test]
fn text_that_is_not_toml_lists_every_place_that_could_not_be_read() {
    check(
        "[host\n",
        &["/etc/p.toml:1:6 PH0102 unclosed table, expected `]`"],
    );
    let found = faults("[host]\nnode = \nlog = info\nauto_migrate = ture\n");
    let lines: Vec<&str> = found
        .iter()
        .filter_map(|fault| fault.split(' ').next())
        .collect();
    assert_eq!(
        lines,
        ["/etc/p.toml:2:8", "/etc/p.toml:3:7", "/etc/p.toml:4:16"],
        "{found:?}"
    );
    assert!(faults("[host]\n[host]\n")[0].starts_with("/etc/p.toml:2:2 PH0102 duplicate key"));
}

#[test]
fn values_have_bounds_and_forms() {
    check(
        "[host]\nnode = \"a b\"\nwrite_connections_max = 0\nlog = \"a=b=c\"\nlog_format = \"jsn\"\ncache_dir = \"\"\nauto_migrate = \"yes\"\nlookup_connections_max = -1\n",
        &[
            "/etc/p.toml:2:8 PH0108 `host.node` has the character ' '",
            "/etc/p.toml:3:25 PH0105 `host.write_connections_max` is 0, but must lie between 1 and 1000",
            "/etc/p.toml:4:7 PH0104 `host.log` is no log filter: error parsing level filter: expected one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\", or a number 0-5",
            "/etc/p.toml:5:14 PH0104 `host.log_format` is \"jsn\", but must be one of \"text\", \"json\"",
            "/etc/p.toml:6:13 PH0104 `host.cache_dir` is empty",
            "/etc/p.toml:7:16 PH0104 `host.auto_migrate` must be true or false, not a text",
            "/etc/p.toml:8:26 PH0105 `host.lookup_connections_max` is -1, but must lie between 0 and 4294967295",
        ],
    );
    check(
        "[event_store]\npoll_interval = \"0s\"\nbatch_bytes_max = \"8\"\nbatch_events_max = 0\nurl_env = \"a-b\"\n",
        &[
            "/etc/p.toml:2:17 PH0105 `event_store.poll_interval` is \"0s\", but must lie between \"1ms\" and \"1day\"",
            "/etc/p.toml:3:19 PH0104 `event_store.batch_bytes_max` is no size",
            "/etc/p.toml:4:20 PH0105 `event_store.batch_events_max` is 0, but must lie between 1 and 1000000",
            "/etc/p.toml:5:11 PH0108 `event_store.url_env` is not the name of an environment variable",
        ],
    );
    check(
        "[plugins.limits]\nmemory_max = \"5GiB\"\nfuel_max = 0\nstack_max = \"1KiB\"\ncall_timeout = \"5 parsecs\"\n",
        &[
            "/etc/p.toml:2:14 PH0105 `plugins.limits.memory_max` is \"5GiB\", but must lie between \"64KiB\" and \"4GiB\"",
            "/etc/p.toml:3:12 PH0105 `plugins.limits.fuel_max` is 0, but must lie between 1 and 9223372036854775807",
            "/etc/p.toml:4:13 PH0105 `plugins.limits.stack_max` is \"1KiB\", but must lie between \"64KiB\" and \"64MiB\"",
            "/etc/p.toml:5:16 PH0104 `plugins.limits.call_timeout` is no duration: unknown time unit \"parsecs\", supported units: ns, us/µs, ms, sec, min, hours, days, weeks, months, years (and few variations)",
        ],
    );
    check(
        "[http]\nlisten = \"localhost:1\"\n[leader]\ngroup = \"\"\nkey = { namespace = 1 }\n",
        &[
            "/etc/p.toml:2:10 PH0104 `http.listen` is no address",
            "/etc/p.toml:4:9 PH0108 `leader.group` is empty",
            "/etc/p.toml:5:7 PH0104 `leader.key` lacks `id`",
        ],
    );
    check(
        "projection = 1\nplugins = \"x\"\n[locks.registry]\na = 1\nb = { namespac = \"x\" }\n",
        &[
            "/etc/p.toml:1:14 PH0104 `projection` must be a list of tables, not an integer",
            "/etc/p.toml:2:11 PH0104 `plugins` must be a table, not a text",
            "/etc/p.toml:4:5 PH0104 `locks.registry.a` must be a table such as {}, not an integer",
            "/etc/p.toml:5:7 PH0103 unknown key `namespac` in [locks.registry.b]",
        ],
    );
}

#[test]
fn the_leases_must_leave_a_silent_leader_time_to_stop() {
    check(
        "[leader]\nheartbeat_interval = \"1s\"\nlocal_lease = \"3s\"\nserver_lease = \"4s\"\n",
        &[],
    );
    check(
        "[leader]\nlocal_lease = \"2999ms\"\n",
        &[
            "/etc/p.toml:2:15 PH0106 `leader.local_lease` is 2s 999ms, shorter than three times `leader.heartbeat_interval` (3s)",
        ],
    );
    check(
        "[leader]\nserver_lease = \"4999ms\"\n",
        &[
            "/etc/p.toml:2:16 PH0106 `leader.server_lease` is 4s 999ms, less than a second above `leader.local_lease` (4s)",
        ],
    );
    // A value that was not understood is not complained about twice.
    check(
        "[leader]\nheartbeat_interval = \"2s\"\nlocal_lease = 4\n",
        &[
            "/etc/p.toml:3:15 PH0104 `leader.local_lease` must be a duration in quotes, not an integer",
        ],
    );
}

#[test]
fn values_that_do_not_fit_each_other_are_found() {
    check(
        "[event_store]\nurl_env = \"A\"\nurl_file = \"a\"\n[read_model]\nschema = \"projector\"\n[defaults]\nretry = { initial = \"31s\" }\n",
        &[
            "/etc/p.toml:3:12 PH0106 `event_store.url_env` and `event_store.url_file` are both set",
            "/etc/p.toml:5:10 PH0106 `read_model.schema` and `read_model.control_schema` are both projector",
            "/etc/p.toml:7:21 PH0106 `defaults.retry.initial` is 31s, longer than `defaults.retry.max` (30s)",
        ],
    );
    check(
        "[[projection]]\nname = \"a-b\"\n[[projection]]\nname = \"a-b\"\n[[projection]]\nname = \"a_b\"\nretry = { initial = \"1m\" }\n[[projection]]\nname = \"Order\"\nsha256 = \"0f\"\n",
        &[
            "/etc/p.toml:4:8 PH0109 a second [[projection]] is named `a-b`",
            "/etc/p.toml:6:8 PH0109 the projections `a-b` and `a_b` would share their schemas",
            "/etc/p.toml:7:21 PH0106 `projection[2].retry.initial` is 1m, longer than `projection[2].retry.max` (30s)",
            "/etc/p.toml:9:8 PH0108 `projection[3].name` is no name of a projection",
            "/etc/p.toml:10:10 PH0104 `projection[3].sha256` is no SHA-256 digest",
        ],
    );
    let loaded = parsed("[plugins.limits]\ncall_timeout = \"60s\"\n").expect("only a warning");
    assert_eq!(loaded.warnings[0].severity, Severity::Warning);
    assert_eq!(loaded.warnings[0].place.to_string(), "/etc/p.toml:2:16");
}

#[test]
fn lock_names_that_share_a_key_are_found() {
    check(
        "[leader]\nkey = -2656678946205210572\n[locks.registry]\nnightly-invoices = {}\nother = { namespace = \"x\" }\n",
        &[
            "/etc/p.toml:4:20 PH0109 the lock `nightly-invoices` has the same key as the leader lock, -2656678946205210572",
        ],
    );
    check(
        "[locks.registry]\na = {}\nb = {}\nc = { namespace = \"a\" }\n",
        &[],
    );
}

#[test]
fn what_is_not_available_yet_is_refused_by_name() {
    check(
        "[event_store]\nlayout = \"marten\"\ncolumns = {}\n[plugins]\nwatch = true\non_change = \"rebuild\"\n[[projection]]\nname = \"a\"\nwasi = [\"wasi:x\"]\n",
        &[
            "/etc/p.toml:2:10 PH0107 `event_store.layout` = \"marten\" is not available yet",
            "/etc/p.toml:3:11 PH0107 `event_store.columns` is not available yet",
            "/etc/p.toml:9:8 PH0107 `projection.wasi` with anything in it is not available yet",
        ],
    );
    check(
        "[leader]\nscope = \"projection\"\n[defaults]\non_error = \"park\"\n[plugins]\nwatch = false\non_change = \"refuse\"\n[[projection]]\nname = \"a\"\non_error = \"skip\"\nwasi = []\n",
        &[],
    );
    check(
        "[plugins]\nwatch = \"polll\"\n",
        &[
            "/etc/p.toml:2:9 PH0104 `plugins.watch` is \"polll\", but must be false, true or \"poll\"",
        ],
    );
}
