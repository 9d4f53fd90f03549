//! `scope = "projection"`: each projection has its own leader, load is spread, and one's death concerns only its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use projector_host::advisory_lock::Key;
use projector_host::leadership::election::lock_of;
use projector_testkit::domain::{Generator, PROJECTIONS};
use projector_testkit::site::{Databases, QUICK, Replica, Site};

use crate::programs::programs;
use crate::support::*;

/// After a look, a replica that holds two locks hesitates for so long.
const HESITATION_MAX: Duration = Duration::from_millis(250);

fn site_of(databases: Databases) -> Site {
    let leader = format!("{QUICK}scope = \"projection\"\n");
    Site::shared(programs(), databases, &leader)
}

/// Which replica says that it leads which projection.
fn leaders<'a>(replicas: &'a [Replica<'_>]) -> BTreeMap<&'static str, Vec<&'a str>> {
    let of = |name: &str| {
        let leads = |one: &&Replica<'_>| one.code(&format!("/leaderz/{name}")) == 200;
        replicas.iter().filter(leads).map(Replica::node).collect()
    };
    PROJECTIONS.iter().map(|name| (*name, of(name))).collect()
}

/// Waits until each projection has one leader.
fn each_is_led(site: &Site, replicas: &[Replica<'_>]) -> BTreeMap<&'static str, String> {
    site.eventually("each projection has one leader", || {
        let leaders = leaders(replicas);
        let one = leaders.iter().all(|(_, nodes)| nodes.len() == 1);
        let first = |(name, nodes): (&&'static str, &Vec<&str>)| (*name, nodes[0].to_owned());
        one.then(|| leaders.iter().map(first).collect())
    })
}

#[test]
fn three_replicas_share_the_projections_and_a_killed_one_s_go_to_the_others() {
    let site = site_of(Databases::Two);
    let mut generator = Generator::new(181);
    // Held until all of them compete.
    let mut holder = site.session();
    for name in PROJECTIONS {
        let key = lock_of(Key::Single(0x5049_434F_4351_5253), Some(name));
        holder.run(&format!("select pg_advisory_lock({})", key.arguments()));
    }
    let mut replicas: Vec<Replica<'_>> = ["a", "b", "c"].map(|node| site.replica(node)).into();
    for replica in &replicas {
        replica.stands_by_eventually();
    }
    holder.run("select pg_advisory_unlock_all()");
    let mut before = each_is_led(&site, &replicas);
    site.append(&generator.lines(100), 20);
    site.all_is_right_at_the_head();
    let nodes: BTreeSet<&String> = before.values().collect();
    eprintln!("{} replicas lead: {before:?}", nodes.len());
    assert!(nodes.len() > 1, "one replica leads everything: {before:?}");
    let says = site.status();
    assert!(says["leader"].is_null(), "{says}");
    for round in 0..4 {
        // In the middle of the work.
        site.append(&generator.lines(60), 10);
        let victim = before[PROJECTIONS[round % PROJECTIONS.len()]].clone();
        let orphans: Vec<&str> = before
            .iter()
            .filter(|(_, node)| **node == victim)
            .map(|(name, _)| *name)
            .collect();
        let place = replicas
            .iter()
            .position(|one| one.node() == victim)
            .expect("it runs");
        let killed = Instant::now();
        replicas.remove(place).kill();
        let after = each_is_led(&site, &replicas);
        let took = killed.elapsed();
        eprintln!("round {round}: {victim} led {orphans:?}; taken over after {took:?}");
        assert!(
            took <= HESITATION_MAX + RETRY_INTERVAL + SLACK,
            "round {round}: {took:?}"
        );
        for (name, node) in &before {
            if *node != victim {
                assert_eq!(&after[name], node, "{name} changed its leader for nothing");
            }
        }
        site.rows_are_right();
        let newcomer = site.replica(&format!("after-{round}"));
        newcomer.stands_by_eventually();
        replicas.push(newcomer);
        before = each_is_led(&site, &replicas);
    }
    let all: Vec<&Replica<'_>> = replicas.iter().collect();
    ends_well(&site, &mut generator, &all);
}

#[test]
fn a_single_replica_leads_all_projections_and_reads_once_for_all() {
    let site = site_of(Databases::One);
    let mut generator = Generator::new(182);
    let replicas = [site.replica("a")];
    each_is_led(&site, &replicas);
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let a = &replicas[0];
    until(&site, "it listens", || {
        a.metric("projector_listening") == Some(1.0)
    });
    let sessions = |purpose: &str| {
        let count = site.store(&format!(
            "select count(*) from pg_stat_activity where datname = current_database() \
             and application_name like 'projector/default/a/{purpose}'"
        ));
        count.parse::<usize>().unwrap_or_default()
    };
    assert_eq!((sessions("lock"), sessions("listen")), (3, 1));
    assert!(sessions("read") <= 2 && sessions("write") <= 4 && sessions("lookup") <= 2);
    assert_eq!(a.metric("projector_leader"), Some(1.0));
    assert_eq!(a.metric("projector_projection_leader"), Some(3.0));
    assert_eq!(a.code("/leaderz"), 200);
    assert_eq!(a.code("/leaderz/nothing"), 404);
    ends_well(&site, &mut generator, &[a]);
}

#[test]
fn commands_name_the_leader_of_each_projection_and_one_can_resign_alone() {
    let site = site_of(Databases::One);
    let mut generator = Generator::new(183);
    let replicas = [site.replica("a"), site.replica("b")];
    let before = each_is_led(&site, &replicas);
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    for (name, node) in &before {
        let status = site.status_of(name);
        assert_eq!(status["leader"]["node"], node.as_str(), "{status}");
        assert_eq!(status["leader"]["group"], "default", "{status}");
    }
    let shown = site.runs(&["leader", "show"]);
    let json = site.runs(&["leader", "show", "-o", "json"]);
    for name in PROJECTIONS {
        assert!(shown.contains(name) && json.contains(name), "{shown}{json}");
    }
    let listed = site.runs(&["locks", "list"]);
    assert!(listed.contains("the leader lock of order"), "{listed}");
    assert_eq!(site.run(&["leader", "resign"]).code, 2);
    let term = |name: &str| site.status_of(name)["leader"]["term"].clone();
    let (order, scheduling) = (term("order"), term("scheduling"));
    site.runs(&["leader", "resign", "--projection", "order"]);
    let after = each_is_led(&site, &replicas);
    assert_ne!(after["order"], before["order"]);
    assert_eq!(after["scheduling"], before["scheduling"]);
    assert_ne!(term("order"), order);
    assert_eq!(term("scheduling"), scheduling);
    ends_well(&site, &mut generator, &[&replicas[0], &replicas[1]]);
}

#[test]
fn the_two_scopes_do_not_lead_beside_each_other() {
    let site = site_of(Databases::One);
    let mut generator = Generator::new(184);
    let replicas = [site.replica("a")];
    each_is_led(&site, &replicas);
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let of_all = Site::at(programs(), site.urls().0, site.urls().1, QUICK);
    let refused = of_all.replica("of-all");
    assert_eq!(refused.exit_code(), 78, "{}", refused.log());
    assert!(refused.log().contains("PH0403"), "{}", refused.log());
    ends_well(&site, &mut generator, &[&replicas[0]]);
}
