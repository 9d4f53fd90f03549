//! COMMITs that are lost: before the server saw them, after it obeyed, and without a sign.

use projector_testkit::domain::Generator;
use projector_testkit::proxy::{LostCommit, Proxy};

use crate::support::*;

fn commits_are_lost(how: LostCommit, rounds: u64) {
    let site = site();
    let mut generator = Generator::new(81);
    let proxy = Proxy::before(site.urls().0, 81);
    let leader = leads_behind(&site, &proxy, "a");
    site.append(&generator.lines(40), 20);
    site.wait();
    let before = term(&site);
    for round in 1..=rounds {
        proxy.lose_commits(how, 1);
        site.append(&generator.lines(40), 40);
        site.all_is_right_at_the_head();
        assert_eq!(proxy.lost_commits(), round, "the fault did not happen");
    }
    assert_eq!(term(&site), before, "nobody stepped down");
    ends_well(&site, &mut generator, &[&leader]);
}

#[test]
fn a_commit_that_never_arrived_is_done_again() {
    commits_are_lost(LostCommit::Request, 6);
}

#[test]
fn a_commit_whose_reply_was_lost_is_not_done_again() {
    commits_are_lost(LostCommit::Reply, 6);
}

#[test]
fn a_commit_that_is_never_answered_holds_its_projection_for_seconds() {
    commits_are_lost(LostCommit::ReplySilently, 1);
}
