//! Rules between keys: what each key allows alone, but not together.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Config;
use super::fault::{DUPLICATE, Fault, INCONSISTENT};
use super::reading::Reading;
use super::section::projection::Retry;
use crate::advisory_lock::key::Key;

/// Checks all of them.
pub(super) fn check(reading: &mut Reading<'_>, config: &Config) {
    leases(reading, config);
    schemas(reading, config);
    secrets(reading);
    retry(reading, "defaults.retry", &config.defaults.retry);
    for (index, projection) in config.projection.iter().enumerate() {
        if let Some(own) = &projection.retry {
            retry(reading, &format!("projection[{index}].retry"), own);
        }
    }
    names(reading, config);
    locks(reading, config);
    stall(reading, config);
}

fn leases(reading: &mut Reading<'_>, config: &Config) {
    let leader = &config.leader;
    let shown = |duration: Duration| humantime::format_duration(duration).to_string();
    let beats = leader.heartbeat_interval.saturating_mul(3);
    if beats > leader.local_lease {
        reading.rule(
            INCONSISTENT,
            &["leader.local_lease", "leader.heartbeat_interval"],
            format!(
                "`leader.local_lease` is {}, shorter than three times `leader.heartbeat_interval` ({})",
                shown(leader.local_lease),
                shown(beats)
            ),
            "a leader must be able to miss two heartbeats: lengthen the lease or shorten the interval",
        );
    }
    if leader.local_lease + Duration::from_secs(1) > leader.server_lease {
        reading.rule(
            INCONSISTENT,
            &["leader.server_lease", "leader.local_lease"],
            format!(
                "`leader.server_lease` is {}, less than a second above `leader.local_lease` ({})",
                shown(leader.server_lease),
                shown(leader.local_lease)
            ),
            "a silent leader must stop by itself before the database gives its lock away",
        );
    }
}

fn schemas(reading: &mut Reading<'_>, config: &Config) {
    if config.read_model.schema == config.read_model.control_schema {
        reading.rule(
            INCONSISTENT,
            &["read_model.control_schema", "read_model.schema"],
            format!(
                "`read_model.schema` and `read_model.control_schema` are both {}",
                config.read_model.schema
            ),
            "the views of the projections and the host's own tables need schemas of their own",
        );
    }
}

fn secrets(reading: &mut Reading<'_>) {
    for (section, env, file) in [
        ("event_store", "url_env", "url_file"),
        ("read_model", "url_env", "url_file"),
        ("http", "admin_token_env", "admin_token_file"),
    ] {
        let keys = [format!("{section}.{file}"), format!("{section}.{env}")];
        if keys.iter().all(|key| reading.is_in_file(key)) {
            reading.rule(
                INCONSISTENT,
                &[&keys[0], &keys[1]],
                format!("`{}` and `{}` are both set", keys[1], keys[0]),
                "keep one of them",
            );
        }
    }
}

fn retry(reading: &mut Reading<'_>, path: &str, retry: &Retry) {
    if retry.initial > retry.max {
        let keys = [format!("{path}.initial"), format!("{path}.max")];
        reading.rule(
            INCONSISTENT,
            &[&keys[0], &keys[1]],
            format!(
                "`{}` is {}, longer than `{}` ({})",
                keys[0],
                humantime::format_duration(retry.initial),
                keys[1],
                humantime::format_duration(retry.max)
            ),
            "pauses grow from `initial` to `max`",
        );
    }
}

fn names(reading: &mut Reading<'_>, config: &Config) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (index, projection) in config.projection.iter().enumerate() {
        let name = projection.name.as_str();
        if name.is_empty() {
            continue;
        }
        let Some(first) = seen.insert(name.replace('-', "_"), name) else {
            continue;
        };
        let place = reading.place_of(&format!("projection[{index}].name"));
        let fault = if first == name {
            Fault::new(
                DUPLICATE,
                place,
                format!("a second [[projection]] is named `{name}`"),
            )
            .hint("put all settings of a projection into one [[projection]]")
        } else {
            Fault::new(
                DUPLICATE,
                place,
                format!("the projections `{first}` and `{name}` would share their schemas"),
            )
            .hint("names must differ in more than `-` and `_`")
        };
        reading.faults.push(fault);
    }
}

/// Keys are derived from names by a hash, so two names can meet, however unlikely it is.
fn locks(reading: &mut Reading<'_>, config: &Config) {
    let mut seen = vec![(config.leader.key, "the leader lock".to_owned())];
    for (name, lock) in &config.locks.registry {
        let key = Key::derive(&lock.namespace, name);
        if let Some((_, other)) = seen.iter().find(|(other, _)| *other == key) {
            let place = reading.place_of(&format!("locks.registry.{name}"));
            let message = format!("the lock `{name}` has the same key as {other}, {key}");
            let fault = Fault::new(DUPLICATE, place, message)
                .hint("give one of them another name or key, or they will wait for each other");
            reading.faults.push(fault);
        }
        seen.push((key, format!("the lock `{name}`")));
    }
}

fn stall(reading: &mut Reading<'_>, config: &Config) {
    if config.plugins.limits.call_timeout >= config.leader.stall_limit {
        reading.warn(
            INCONSISTENT,
            &["plugins.limits.call_timeout", "leader.stall_limit"],
            "`plugins.limits.call_timeout` is not below `leader.stall_limit`".to_owned(),
            "a leader would resign during a call that is still allowed to run",
        );
    }
}
