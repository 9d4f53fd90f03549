//! What `locks list` sees.

use projector_host::advisory_lock::Key;
use projector_host::advisory_lock::inspect::{self, Lock};
use projector_host::advisory_lock::registry::Registry;
use projector_host::database::session::{Database, Purpose};
use sqlx::Executor as _;

use crate::support::*;

fn find<'a>(locks: &'a [Lock], key: &str, granted: bool) -> &'a Lock {
    locks
        .iter()
        .find(|lock| lock.key == key && lock.granted == granted)
        .unwrap_or_else(|| panic!("no {key} among {locks:?}"))
}

#[tokio::test]
async fn both_forms_of_keys_are_decoded_with_names_and_holders() {
    let test = fresh();
    let mut holder = connect(&test).await;
    let keys = [0, -1, 1 << 32, i64::MAX, i64::MIN, -4_294_967_297].map(Key::Single);
    let pairs = [(0, 0), (-1, -2), (i32::MAX, i32::MIN)].map(|(a, b)| Key::Pair(a, b));
    let named = Key::derive("billing", "nightly-report");
    for key in keys.into_iter().chain(pairs).chain([named]) {
        let sql = format!("SELECT pg_advisory_lock({})", key.arguments());
        holder
            .execute(sqlx::AssertSqlSafe(sql))
            .await
            .expect("it is free");
    }
    holder
        .execute("SELECT pg_advisory_lock_shared(77)")
        .await
        .expect("it is free");
    let mut looking = connect(&test).await;
    let registry = Registry::new([("billing", "nightly-report")]).expect("one name");
    let locks = inspect::locks(&mut looking, &registry)
        .await
        .expect("it answers");
    assert_eq!(locks.len(), 11);
    for key in keys.into_iter().chain(pairs) {
        let lock = find(&locks, &key.to_string(), true);
        assert_eq!(lock.mode, "exclusive");
        assert_eq!(
            lock.application_name.as_deref(),
            Some("projector/test/plain/admin")
        );
        assert_eq!(lock.key_bigint.is_some(), matches!(key, Key::Single(_)));
    }
    let lock = find(&locks, &named.to_string(), true);
    assert_eq!(lock.name.as_deref(), Some("billing/nightly-report"));
    assert_eq!(find(&locks, "77", true).mode, "shared");
    assert!(lock.query.is_some() && !lock.hidden && !lock.idle_and_holding);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_names_who_blocks_it_and_for_how_long() {
    let test = fresh();
    let mut holder = connect(&test).await;
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut holder)
        .await
        .expect("it answers");
    holder
        .execute("SELECT pg_advisory_lock(5)")
        .await
        .expect("it is free");
    let mut waiter = connect(&test).await;
    let waiting = tokio::spawn(async move { waiter.execute("SELECT pg_advisory_lock(5)").await });
    eventually("it waits", || waiting_for_locks(&test) == "1");
    let mut looking = connect(&test).await;
    let locks = inspect::locks(&mut looking, &Registry::default())
        .await
        .expect("it answers");
    let lock = find(&locks, "5", false);
    assert_eq!(lock.blocked_by, [pid]);
    assert!(lock.waiting_seconds.is_some_and(|seconds| seconds >= 0.0));
    assert_eq!(find(&locks, "5", true).pid, Some(pid));
    holder
        .execute("SELECT pg_advisory_unlock(5)")
        .await
        .expect("it was held");
    waiting.await.expect("no panic").expect("it got it");
}

#[tokio::test]
async fn an_unprivileged_role_sees_keys_and_names_and_is_told_what_is_hidden() {
    let test = fresh();
    let role = format!("watcher_{}", test.name());
    test.psql(&format!("CREATE ROLE {role} LOGIN"))
        .expect("created");
    let mut holder = connect(&test).await;
    holder
        .execute("SELECT pg_advisory_lock(-9)")
        .await
        .expect("it is free");
    let (_, place) = test.url().split_once("://").expect("a URL");
    let place = place.split_once('@').map_or(place, |(_, place)| place);
    let url = format!("postgres://{role}@{place}");
    let looking = Database::new("lock", url.into(), "test", "watcher");
    let mut looking = looking.connect(&Purpose::Admin).await.expect("it opens");
    let locks = inspect::locks(&mut looking, &Registry::default())
        .await
        .expect("it answers");
    let lock = find(&locks, "-9", true);
    assert!(lock.hidden);
    assert_eq!(
        lock.application_name.as_deref(),
        Some("projector/test/plain/admin")
    );
    assert_eq!((&lock.query, &lock.state), (&None, &None));
    drop(looking);
    test.psql(&format!("DROP ROLE {role}")).expect("dropped");
}
