//! Sessions that are lent again and again.

use projector_host::database::connections::{Connections, Loan};
use projector_host::database::session::Purpose;
use sqlx::{Executor as _, Row as _};

use super::support::Site;

const USES: usize = 20;
const NEW_TABLES: usize = 11;

/// How the session would run the statement.
async fn plan(loan: &mut Loan) -> String {
    let rows = loan
        .fetch_all("EXPLAIN EXECUTE look (1)")
        .await
        .expect("explained");
    let lines = rows.iter().map(|row| row.get::<String, _>(0));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn what_was_planned_for_a_table_that_grows_is_planned_again() {
    let site = Site::new().await;
    let connections = Connections::new(site.database.clone(), Purpose::Write, 1);
    let mut loan = connections.lend().await.expect("a session");
    loan.execute(
        "SET search_path = public; CREATE TABLE things (a int PRIMARY KEY); INSERT INTO things SELECT generate_series(1, 10000); \
         PREPARE look (int) AS SELECT a FROM things WHERE a = $1; \
         SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
    )
    .await
    .expect("prepared");
    let unlucky = plan(&mut loan).await;
    assert!(unlucky.contains("Seq Scan"), "{unlucky}");
    loan.execute("SET enable_indexscan = on; SET enable_indexonlyscan = on")
        .await
        .expect("reset");
    let mut before = plan(&mut loan).await;
    assert_eq!(before, unlucky, "planned once a session");
    loan.give_back();
    let mut changes = Vec::new();
    for used in 2..=USES {
        if used == NEW_TABLES {
            connections.has_new_tables();
        }
        let mut loan = connections.lend().await.expect("a session");
        let now = plan(&mut loan).await;
        if now != before {
            changes.push(used);
        }
        // The next plan will be the other one.
        let switch = if now == unlucky { "on" } else { "off" };
        let other = format!("SET enable_indexscan = {switch}; SET enable_indexonlyscan = {switch}");
        loan.execute(sqlx::AssertSqlSafe(other)).await.expect("set");
        before = now;
        loan.give_back();
    }
    assert_eq!(changes, [2, 4, 8, 11, 12, 14, 18]);
}
