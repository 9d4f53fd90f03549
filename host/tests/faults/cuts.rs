//! The session that reads events is lost at every message of a look, and a guest that counts has seen each event once.

use projector_testkit::domain::Generator;
use projector_testkit::proxy::Proxy;
use projector_testkit::site::Site;

use crate::support::*;

/// The purpose of the session that is cut.
const READ: &str = "read";

/// Events that fill more than one page of a look.
const MORE_THAN_A_PAGE: usize = 620;

/// No look has so many messages; every message of the first ones is enough here.
const MESSAGES_MAX: u64 = 24;

/// The reader looks when it is woken, and hardly ever at another time.
fn woken(site: &Site) {
    site.configure(|config| config.replace("poll_interval = \"100ms\"", "poll_interval = \"20s\""));
}

#[test]
fn every_event_counts_once_wherever_its_reading_is_cut() {
    let site = site();
    woken(&site);
    let proxy = Proxy::before(site.urls().0, 191);
    let mut generator = Generator::new(191);
    let leader = leads_behind(&site, &proxy, "a");
    site.append(&generator.lines(20), 20);
    site.all_is_right_at_the_head();
    let mut cut = 0;
    for messages in 0..MESSAGES_MAX {
        // One transaction, so that one look finds a full page and more.
        proxy.cut_after(READ, messages);
        site.append(&generator.lines(MORE_THAN_A_PAGE), MORE_THAN_A_PAGE);
        site.wait();
        proxy.cut_no_more();
        // What counted twice stays so: the rows are looked at in the end.
        cut = proxy.cuts();
    }
    assert!(cut >= 14, "only {cut} looks were cut");
    site.all_is_right_at_the_head();
    let total = site.model("select seen from read_model.events_seen where key = 'total'");
    assert_eq!(total, site.store("select count(*) from event_store.events"));
    ends_well(&site, &mut generator, &[&leader]);
}
