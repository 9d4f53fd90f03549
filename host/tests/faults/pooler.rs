//! A real PgBouncer: in transaction mode nobody competes and no command runs; in session mode everything works.

use projector_testkit::domain::Generator;
use projector_testkit::pooler::Pooler;
use projector_testkit::site::Site;
use projector_testkit::skip::skipped;

use crate::support::*;

fn pooler(site: &Site, mode: &str) -> Option<Pooler> {
    let pooler = Pooler::start(site.urls().0, mode);
    if pooler.is_none() {
        skipped(
            &format!("PgBouncer in {mode} mode"),
            "pgbouncer is not installed",
        );
    }
    pooler
}

/// `locks run` through this URL: exit code and messages.
fn locks_run(site: &Site, url: &str) -> (i32, String) {
    let mut command = site.program(&["locks", "run", "--url-env", "POOLED", "job", "--", "true"]);
    command.env("POOLED", url);
    let answer = site.answer(command);
    (answer.code, answer.error)
}

#[test]
fn in_transaction_mode_nobody_leads_and_the_reason_is_said() {
    let site = site();
    for mode in ["transaction", "statement"] {
        let Some(pooler) = pooler(&site, mode) else {
            return;
        };
        let variables = [("ES_DATABASE_URL", pooler.url())];
        let replica = site.replica_with(mode, &["run"], &variables);
        assert_eq!(replica.exit_code(), 78, "{}", replica.log());
        let log = replica.log();
        assert!(
            log.contains("PH0401") && log.contains("transaction mode"),
            "{log}"
        );
        let (code, error) = locks_run(&site, pooler.url());
        assert_eq!(code, 78, "{error}");
        assert!(error.contains("PH0401"), "{error}");
        assert_eq!(site.remains().1, 0, "a lock stays in the pooler's server");
    }
    let mut generator = Generator::new(221);
    let direct = site.leader("direct");
    ends_well(&site, &mut generator, &[&direct]);
}

#[test]
fn in_session_mode_it_leads_hands_over_and_leaves_nothing() {
    let site = site();
    let Some(pooler) = pooler(&site, "session") else {
        return;
    };
    let mut generator = Generator::new(222);
    let url = pooler.url();
    let variables = [("ES_DATABASE_URL", url), ("DATABASE_URL", url)];
    let start = |node| site.replica_with(node, &["run"], &variables);
    let first = start("a");
    first.leads_eventually();
    site.begun();
    let second = start("b");
    second.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    assert_eq!(locks_run(&site, url).0, 0);
    first.kill();
    second.leads_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    second.stop();
    assert_eq!(site.remains().1, 0, "a lock stays in the pooler's server");
    let direct = site.leader("direct");
    drop(pooler);
    ends_well(&site, &mut generator, &[&direct]);
}

#[test]
fn before_the_read_model_it_is_found_at_the_start_and_by_validate() {
    let site = Site::shared(
        crate::support::programs(),
        projector_testkit::site::Databases::Two,
        projector_testkit::site::QUICK,
    );
    for mode in ["transaction", "statement"] {
        let Some(pooler) = Pooler::start(site.urls().1, mode) else {
            skipped(
                &format!("PgBouncer in {mode} mode"),
                "pgbouncer is not installed",
            );
            return;
        };
        for arguments in [&["run"][..], &["validate"]] {
            let mut command = site.program(arguments);
            command.env("DATABASE_URL", pooler.url());
            let answer = site.answer(command);
            let said = format!("{}{}", answer.out, answer.error);
            assert_eq!(answer.code, 78, "{mode} {arguments:?}: {said}");
            assert!(
                said.contains("PH0413") && said.contains("the read model database"),
                "{mode} {arguments:?}: {said}"
            );
        }
    }
}
